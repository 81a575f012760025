/* SPDX-License-Identifier: Apache-2.0 */
/* needscheck.h - what the snapshots of a submit ask for, against the machines of its pool. */
#pragma once
#include "base/problem.h"

struct nodes;
struct snapshots;

/* A warning for each snapshot that machines of the pool (NULL: of all) are known not to fit, with
 * the first of them and the need. code: as code_resolve() says it; NULL: none. */
void needscheck(const struct nodes *ns,
                const struct snapshots *sn,
                const char *code,
                const char *pool,
                struct problems *ps);
