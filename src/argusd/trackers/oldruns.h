/* SPDX-License-Identifier: Apache-2.0 */
/* oldruns.h - which of the runs that are over are forgotten where there are too many: the oldest of
 * the users who have most, so that nobody's runs take those of others away. Pure. */
#pragma once
#include <stddef.h>

#include "base/clock.h"

struct oldrun {
    const char *user; /* borrowed */
    usec_t ended_at;
    void *run; /* the caller's */
};

/* Puts those that go to the front of v; how many: `excess` or, where users have equally many, a few
 * more, and never more than n. */
size_t oldruns_choose(struct oldrun *v, size_t n, size_t excess);
