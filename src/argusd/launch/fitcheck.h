/* SPDX-License-Identifier: Apache-2.0 */
/* fitcheck.h - a gang at its submit against the pool as it is now, and what would serve it better.
 */
#pragma once
#include "argusd/ground/cluster.h"
#include "argusd/jobs/jobs.h"
#include "core/past/advise.h"
#include "core/spec/spec.h"

struct fitcheck_ask {
    const struct demand *demand;
    const char *pool;  /* "": any */
    const char *needs; /* of its code; NULL: nothing */
    bool required;     /* to fit */
};

/* A gang larger than the pool waits, with a warning in ps; ERR_POOL_TOO_SMALL where it is required
 * to fit. */
must_check int fitcheck(const struct jobs *js,
                        const struct cluster *cluster,
                        const struct fitcheck_ask *ask,
                        struct problems *ps,
                        struct err *err);

/* Advice into the array that is open. in has what is known but of the pool and of the time that
 * runs like it took. */
void fitcheck_advise(const struct jobs *js,
                     const struct job *job,
                     const char *needs,
                     const struct advise_in *in,
                     struct jout *j);
