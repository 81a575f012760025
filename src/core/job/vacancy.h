/* SPDX-License-Identifier: Apache-2.0 */
/* vacancy.h - may the raylet of a machine be stopped, or does somebody still use it?
 *
 * Our own jobs have leases. Jobs that Argus did not submit are seen in three lists of Ray: its jobs
 * (where their entrypoints and drivers run), its actors and placement groups, and its count of used
 * GPUs and CPUs, of which whatever is not leased is theirs. A list says nothing before it shows the
 * machine as it was after the last lease there was given back: until then what a job of ours left
 * looks like somebody else's.
 *
 * Where a list does not come the rules are: whoever is seen is waited for, however long. Nobody is
 * taken for gone because Ray is silent: a machine goes only when all three lists are new enough.
 * After a while one of the last two will do beside the list of jobs, but only where no job of
 * others lives anywhere: the count alone does not see actors that hold nothing, and the list of
 * actors does not see plain tasks. A Ray that falls silent is believed for what it told last, after
 * a minute, and only where no job of others lived anywhere then. A Ray that has told nothing at all
 * is waited for until it answers, its head is known to be gone, or the operator says that jobs of
 * others may be stopped; when the whole cluster is taken down it is not waited for. Pure. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/clock.h"

/* Moments are monotonic; 0: never. */
struct vacancy_sight {
    bool is_leased; /* a lease of ours is on it, and is waited for */
    bool is_lost;   /* whatever Ray ran there is lost already: Ray or its head has given it up */
    bool may_end;   /* jobs of others may be stopped now: somebody said so */
    bool is_whole;  /* the whole cluster is taken down */
    bool ray_away;  /* Ray does not answer */
    usec_t since;   /* it is to go, and no lease of ours is on it */
    /* How it was at that moment, or later, is what the list shows. */
    usec_t use_of, holders_of, jobs_of;
    double gpus, cpus; /* of the count, beyond our leases */
    size_t here;       /* jobs of others that have a process or a placement group there */
    size_t anywhere;   /* jobs of others that live, wherever */
};

enum vacancy {
    VACANCY_FREE,   /* its raylet may be stopped */
    VACANCY_OURS,   /* a job of ours runs on it */
    VACANCY_OTHERS, /* somebody else's does */
    VACANCY_UNTOLD, /* Ray has not told yet, or does not tell, whether somebody else's does */
};

/* Less than this is no use: Ray adds fractions as floats. */
bool vacancy_is_use(double gpus, double cpus);
enum vacancy vacancy_judge(const struct vacancy_sight *s, usec_t now);
