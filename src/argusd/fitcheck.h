/* SPDX-License-Identifier: Apache-2.0 */
/* fitcheck.h - a gang at its submit against the pool as it is now, and what would serve it better.
 */
#pragma once
#include "argusd/api.h"
#include "core/spec.h"

/* A gang larger than the pool waits, with a warning in ps; ERR_POOL_TOO_SMALL where it is required
 * to fit. */
must_check int fitcheck(const struct api *a,
                        const struct demand *d,
                        const char *pool,
                        bool required,
                        struct problems *ps,
                        struct err *err);

/* Advice as JSON objects with commas between them, yours, "" = none. checkpoint_bytes: of one;
 * free_bytes: where they go; 0 = not known. */
char *fitcheck_advice(const struct api *a,
                      const struct spec *spec,
                      const struct job *job,
                      uint64_t checkpoint_bytes,
                      uint64_t free_bytes);
