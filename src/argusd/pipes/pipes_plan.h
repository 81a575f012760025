/* SPDX-License-Identifier: Apache-2.0 */
/* pipes_plan.h - what a run, or a retry of one, would do if it began now: which steps run, which an
 * earlier run stands in for, which are passed over, and why. Nothing is begun and nothing kept.
 *
 * What a step that would run leaves behind is not known before: whoever reads it would run too, or
 * is decided then. A plan that leaves its sight open is not to be shown: who asks looks, and makes
 * it again with the same sight. */
#pragma once
#include "argusd/pipes/pipes.h"
#include "argusd/pipes/pipes_sight.h"

/* X(enumerator, word) */
#define PIPES_WOULD(X)                                                                             \
    X(PIPES_WOULD_RUN, "run")                                                                      \
    X(PIPES_WOULD_REUSE, "reuse")    /* an earlier run stands in for it */                         \
    X(PIPES_WOULD_KEEP, "keep")      /* of a retry: it stays as it is */                           \
    X(PIPES_WOULD_PASS, "pass")      /* a check that is true */                                    \
    X(PIPES_WOULD_SKIP, "skip")      /* its `if` is false, or what it needs does not succeed */    \
    X(PIPES_WOULD_FAIL, "fail")      /* a check that is not true, a value that is not there */     \
    X(PIPES_WOULD_DEPEND, "depends") /* on what a step that would run leaves behind */

enum pipes_would {
#define X(e, word) e,
    PIPES_WOULD(X)
#undef X
        PIPES_WOULD_COUNT
};

/* A key of an item's `with` that is another one than in the run before, or an input of the same
 * name that holds something else: its short hash, behind its version. Values as JSON texts. */
struct pipes_change {
    char *key, *from, *to; /* NULL: not there */
};
struct pipes_planned {
    const char *name, *step, *uses, *matrix; /* borrowed */
    int would;                               /* enum pipes_would */
    char *earlier, *job;                     /* the run that it is compared with, and its job */
    char *code, *text;                       /* why (base/message.h); NULL: nothing to say */
    struct field_list changes;               /* of struct pipes_change */
    struct field_list paths;                 /* of struct pipes_path: plain paths that it names */
};
struct pipes_plan {
    char *params;            /* a JSON object */
    struct field_list steps; /* of struct pipes_planned, in the order of the file */
    int64_t to_run, reused;
    struct pipe_life *run; /* heap: what the borrowed texts are of */
};
extern const char *const pipes_would_names[PIPES_WOULD_COUNT + 1];
extern const struct field_table pipes_change_table, pipes_path_table;

/* As pipes_run() and pipes_retry() would refuse. */
must_check int pipes_plan_run(struct pipes *ps,
                              const struct pipes_start_ask *ask,
                              struct pipes_sight *sight,
                              struct pipes_plan *ret,
                              struct problems *problems,
                              struct err *err);
must_check int pipes_plan_retry(const struct pipe_life *run,
                                const struct pipes_retry_ask *ask,
                                struct pipes_sight *sight,
                                struct pipes_plan *ret,
                                struct problems *problems,
                                struct err *err);
void pipes_plan_release(struct pipes_plan *plan);
