/* SPDX-License-Identifier: Apache-2.0 */
/* foreign.h - the jobs of Ray that Argus did not submit, and what they hold on which node.
 *
 * Whoever reads Ray's list of jobs tells who they are. What they hold is asked of Ray (its actors
 * and placement groups) every few seconds, while one of them lives or somebody wants to know, and
 * tied to jobs by Ray's own ids. An answer that does not come changes nothing: the last one stands,
 * and foreign_holders_of() says of when it is. An answer that Ray has cut short is believed for
 * what it shows, and proves nobody's absence. Tasks outside of actors and groups are in neither
 * list: Ray's count of what is used (cluster.h) has them, without a name. Never: a word to Ray that
 * changes anything. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"
#include "ray/ray.h"

struct foreign;

/* A submission, or a driver that was not submitted. */
struct foreign_job {
    char *ray_id;  /* of a driver that was not submitted the same as job_id */
    char *job_id;  /* Ray's hex id; NULL: its driver has not told it */
    char *node_id; /* Ray's id of the node of its entrypoint; NULL: not known */
    char *ip;      /* of its driver; NULL: not known */
    bool is_submission, is_live;
};

/* ray is borrowed. */
struct foreign *foreign_new(struct ray_client *ray);
/* Nothing is asked of Ray any more: before its client goes. */
void foreign_close(struct foreign *f);
void foreign_free(struct foreign *f); /* NULL is fine */

/* The foreign ones of Ray's list of jobs that was asked for at `asked` (monotonic). v and its texts
 * are taken. */
void foreign_take_jobs(struct foreign *f, struct foreign_job *v, size_t n, usec_t asked);
/* Somebody wants to know what they hold, though none of them lives: their leftovers may. */
void foreign_want(struct foreign *f, bool wanted);
bool foreign_is_wanted(const struct foreign *f);
/* Asks Ray if it is time. */
void foreign_turn(struct foreign *f, usec_t now);

/* A submission of the last list has this id. */
bool foreign_has_id(const struct foreign *f, const char *ray_id);
size_t foreign_count_live(const struct foreign *f);
/* When the last list of jobs, or of what they hold, was asked for (monotonic); 0: there is none, or
 * it is not whole. */
usec_t foreign_jobs_of(const struct foreign *f);
usec_t foreign_holders_of(const struct foreign *f);

/* What one of them has on a node: its entrypoint, actors, placement groups. Borrowed until the loop
 * goes on. */
struct foreign_hold {
    const struct foreign_job *job;
    double gpus, cpus;
};
/* On the node with this id at this address; node_id NULL: anywhere, jobs without a node too. Who
 * holds most comes first. free() *ret. */
size_t foreign_on(const struct foreign *f,
                  const char *node_id,
                  const char *ip,
                  struct foreign_hold **ret);
