/* SPDX-License-Identifier: Apache-2.0 */
/* census.h - how many live jobs there are of each cluster, pool and workload.
 *
 * The store's indexes of these three hold the jobs that ended alone, so a list of those that no
 * live job has would walk over all live jobs to find none. Pure: no I/O, no clock. */
#pragma once
#include <stdbool.h>

#include "core/job/job.h"

struct census;

/* seed: 16 random bytes. */
struct census *census_new(const unsigned char seed[static 16]);
void census_free(struct census *c); /* NULL is fine */

/* A job's three words do not change between the two calls; they are copied. */
void census_add(struct census *c, const struct job *j);
void census_remove(struct census *c, const struct job *j);

/* Each word is that of some live job, not always of the same one; NULL stands for any. */
bool census_has(const struct census *c,
                const char *cluster,
                const char *pool,
                const char *workload);
