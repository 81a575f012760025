/* SPDX-License-Identifier: Apache-2.0 */
/* pipe.h - a pipeline: steps that need each other.
 *
 *   name: sft-to-model
 *   params:
 *     lr: {type: number, default: 1e-5}
 *   steps:
 *     train:
 *       with: {preset: sft-0.5b, overrides: ["optim.lr=${{ params.lr }}"]}
 *       retry: {limit: 1, backoff: 1m}
 *     merge:
 *       with: {workload: merge, model_id: "${{ steps.train.checkpoint.best_path }}"}
 *     good:
 *       uses: check
 *       with: {that: "${{ steps.train.metrics.loss < 2 }}"}
 *     publish:
 *       uses: publish
 *       needs: [good]
 *       with: {name: my-sft, source: "${{ steps.merge.dir }}/output/model"}
 *
 * A step runs once all that it needs has ended. Without `if` it runs when all of that has
 * succeeded; `if` is an expression (pipe_expr.h). `matrix` makes one run of the step for each
 * combination of its lists. Pure. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/doc/doc.h"
#include "base/field.h"
#include "base/strv.h"
#include "core/pipe/pipe_expr.h"

/* X(enumerator, word): what a step does. */
#define PIPE_USES(X)                                                                               \
    X(PIPE_USES_JOB, "job")         /* `with` is a JobSpec, of a preset perhaps */                 \
    X(PIPE_USES_CHECK, "check")     /* goes on only if `that` is true */                           \
    X(PIPE_USES_PUBLISH, "publish") /* a checkpoint becomes a version of a registered model */     \
    X(PIPE_USES_PREPARE, "prepare") /* a data set is made of another one */                        \
    X(PIPE_USES_DEPLOY, "deploy")   /* a service, or its next version, has the traffic */

enum pipe_uses {
#define X(e, word) e,
    PIPE_USES(X)
#undef X
        PIPE_USES_COUNT
};

/* X(enumerator, word): types of parameters. */
#define PIPE_TYPES(X)                                                                              \
    X(PIPE_TEXT, "text")                                                                           \
    X(PIPE_INTEGER, "integer")                                                                     \
    X(PIPE_NUMBER, "number")                                                                       \
    X(PIPE_BOOLEAN, "boolean")

enum pipe_type {
#define X(e, word) e,
    PIPE_TYPES(X)
#undef X
        PIPE_TYPES_COUNT
};

/* X(enumerator, word): what a new run does while one of the same pipeline is under way. */
#define PIPE_CONCURRENCY(X)                                                                        \
    X(PIPE_QUEUE, "queue")     /* it waits */                                                      \
    X(PIPE_SKIP, "skip")       /* it is refused */                                                 \
    X(PIPE_REPLACE, "replace") /* the other one is cancelled */                                    \
    X(PIPE_ALLOW, "allow")     /* both run */

enum pipe_concurrency {
#define X(e, word) e,
    PIPE_CONCURRENCY(X)
#undef X
        PIPE_CONCURRENCY_COUNT
};

enum {
    PIPE_MAX_BYTES = 256 << 10,
    PIPE_NAME_MAX = 63,
    PIPE_PARAMS_MAX = 64,
    PIPE_STEPS_MAX = 64,
    PIPE_MATRIX_KEYS = 4,
    PIPE_ITEMS_MAX = 256, /* runs of all its steps, each combination of a matrix counted */
    PIPE_RETRIES_MAX = 10
};

/* Read-only to everybody but pipe.c. Nodes and names live as long as the pipe. */
struct pipe_param {
    const char *name;
    char *description;
    int type; /* enum pipe_type */
    bool required;
    const struct node *dflt; /* NULL: none */
};

struct pipe_step {
    const char *name;
    int line, column;
    char *description;
    int uses;                         /* enum pipe_uses */
    const struct node *with, *matrix; /* NULL: none */
    struct strv needs;                /* as they were given */
    char *when_text;                  /* `if`; NULL: none */
    struct pipe_expr *when;
    int64_t retry_limit;
    usec_t retry_backoff, timeout; /* timeout 0: none */
    bool cache;
    int before[PIPE_STEPS_MAX]; /* the steps that it needs, by `needs` and by references */
    int n_before;
    size_t n_items; /* combinations of its matrix; 1 without one */
};

struct pipe {
    char *name, *description;
    int concurrency; /* enum pipe_concurrency */
    struct pipe_param *params;
    size_t n_params;
    struct pipe_step *steps;
    size_t n_steps;
    int order[PIPE_STEPS_MAX]; /* the steps so that each comes behind all that it needs */
    const struct node *given_params, *given_steps;
    struct doc *doc;
};

/* Everything wrong goes to ps with its place; then ERR_BAD_SPEC. */
must_check int pipe_read(const char *text, size_t len, struct pipe **ret, struct problems *ps);
void pipe_free(struct pipe *p); /* NULL is fine */

/* NULL: it has no such step, no such parameter. */
const struct pipe_step *pipe_find_step(const struct pipe *p, const char *name);
const struct pipe_param *pipe_find_param(const struct pipe *p, const char *name);
const char *pipe_uses_to_string(enum pipe_uses uses);
const char *pipe_type_to_string(enum pipe_type type);
/* [a-z0-9][a-z0-9_-]{0,62}. */
bool pipe_is_name(const char *name);

/* What a run is started with: an object with each parameter, of its type. given: an object whose
 * values may be texts, as a command line has them; NULL: nothing is given. */
must_check int pipe_fill_params(const struct pipe *p,
                                json_t *given,
                                json_t **ret,
                                struct problems *ps);

/* Each reference in its `if`, in its `with`, as often as it stands there. */
enum pipe_refs_in { PIPE_REFS_IF = 1 << 0, PIPE_REFS_WITH = 1 << 1 };
void pipe_step_each_ref(const struct pipe_step *s,
                        unsigned in, /* enum pipe_refs_in */
                        void (*each)(const struct pipe_ref *ref, void *arg),
                        void *arg);
/* steps.train.metrics['critic/score/mean'] */
void pipe_ref_write(const struct pipe_ref *ref, struct buf *out);

/* Inside: fills before[], n_before and order[]; tells unknown steps, circles and references that
 * mean nothing. */
void pipe_link(struct pipe *p, struct problems *ps);
