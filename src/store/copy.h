/* SPDX-License-Identifier: Apache-2.0 */
/* copy.h - the store as one file of its own, while argusd goes on writing, and a look at such a
 * file.
 *
 * A copy is what was on disk at one moment: whole batches, in order. All blocks, on any thread:
 * the connections are its own. */
#pragma once
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

struct store_copied {
    int64_t schema, jobs, events;
    int64_t last_event; /* its seq; 0: there is none */
    usec_t last_at;     /* when that was */
};

/* to: nothing has this name. ERR_STORE. */
must_check int store_copy(const char *path, const char *to, struct err *err);
/* Reads all of it. ERR_REFUSED: it is damaged, made by a newer argusd, or no store; ERR_STORE. */
must_check int store_copy_check(const char *path, struct store_copied *ret, struct err *err);
