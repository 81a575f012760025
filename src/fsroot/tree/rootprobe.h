/* SPDX-License-Identifier: Apache-2.0 */
/* rootprobe.h - does the shared root do what argusd stands on: a name that only one can make, a
 * lock that only one can have, a rename, a second name.
 *
 * A file server that looks well for reading and writing may lack one of these, and then two drivers
 * of one attempt could run. The test is made below argus/ with names of its own, which are gone
 * afterwards, or with the next test if argusd was killed; so only one may run at a time. It blocks
 * for as long as the root likes. */
#pragma once
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

struct rootprobe {
    usec_t took; /* all steps together, 1 at the least */
    uint64_t free_bytes, total_bytes;
};
/* now: a monotonic clock. A negative code with a sentence: the step that did not work. */
must_check int rootprobe_run(const char *root,
                             usec_t (*now)(void),
                             struct rootprobe *ret,
                             struct err *err);
