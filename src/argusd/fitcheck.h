/* SPDX-License-Identifier: Apache-2.0 */
/* fitcheck.h - a gang at its submit against the pool as it is now. */
#pragma once
#include "argusd/api.h"

/* A gang larger than the pool waits, with a warning in ps; ERR_POOL_TOO_SMALL where it is required
 * to fit. */
must_check int fitcheck(const struct api *a,
                        const struct demand *d,
                        const char *pool,
                        bool required,
                        struct problems *ps,
                        struct err *err);
