/* SPDX-License-Identifier: Apache-2.0 */
/* jobspec.h - the one way to a spec: its text read and expanded by this argusd's settings.
 *
 * A job keeps what its text means (struct job, member `read`): it is read when somebody first asks,
 * never changes, and goes with the job. Jobs that nobody looks at, such as 10,000 in the queue,
 * cost their text alone. */
#pragma once
#include "argusd/ground/settings.h"
#include "core/job/job.h"
#include "core/spec/spec.h"

/* <shared_root>/users/<user>. Yours. */
char *jobspec_user_root(const struct settings *settings, const char *user);

/* ERR_BAD_SPEC; problems in ps. *ret is releasable in both cases; zeroed memory before. */
must_check int jobspec_read(const struct settings *settings,
                            const char *text,
                            size_t len,
                            const char *user,
                            bool want_places,
                            struct spec *ret,
                            struct problems *ps);

/* The spec of this job, as its user gave it: registered inputs and snapshots by their names. NULL:
 * it was taken by an older version that read it otherwise. Borrowed from the job; of one thread,
 * as the job is. */
const struct spec *jobspec_of(const struct settings *settings, const struct job *job);
