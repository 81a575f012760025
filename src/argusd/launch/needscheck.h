/* SPDX-License-Identifier: Apache-2.0 */
/* needscheck.h - what the snapshots of a job ask of a node (core/job/needs.h), and whether the
 * nodes of its pool have it. */
#pragma once
#include "argusd/ground/settings.h"
#include "base/doc/problem.h"
#include "core/job/job.h"
#include "core/sched/sched.h"

struct snapshots;

/* The snapshots of one spec, as code_resolve() names them. */
struct needscheck_ask {
    const struct snapshots *snapshots;
    const char *user; /* whose job it is */
    const char *code; /* NULL: it names none */
    bool own_python;  /* it brings its packages along: the nodes' are not asked for */
};
/* As one text, heap; NULL: nothing. */
char *needscheck_of(const struct needscheck_ask *ask);
/* The same of a job, by its spec; settings to read it. */
bool needscheck_own_python(const struct settings *settings, const struct job *job);

/* A warning for each snapshot that nodes of the pool ("": of all) are known not to fit, with the
 * first of them; an error where no node of the pool can fit. */
void needscheck(const struct sched *sched,
                const struct needscheck_ask *ask,
                const char *pool,
                struct problems *ps);
