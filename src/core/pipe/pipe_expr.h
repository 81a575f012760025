/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_expr.h - an expression of a pipeline, as it stands between ${{ and }}.
 *
 *   steps.eval.metrics.acc >= 0.6 && params.publish     references, comparisons, && || !
 *   steps.eval.metrics['val-core/math/acc'] > 0.5       a name with other characters, in brackets
 *   success()  failure()  always()                      how the steps that it needs ended
 *   'text'  0.6  true  null                             values
 *
 * A value is a JSON value. Comparing with a list asks each of its members: the answer is true when
 * it is true for all of them, so that a check over a step with a matrix is a check of every
 * combination. A comparison of different kinds is false, != excepted. Pure. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "base/json.h"

enum {
    PIPE_EXPR_MAX = 1000,
    PIPE_EXPR_NODES = 64,
    PIPE_EXPR_DEPTH = 16,
    PIPE_REF_PARTS = 6,
    PIPE_REF_PART_MAX = 128
};

/* steps.train.metrics.loss: its parts, of which the first is one of params, matrix, steps, run. */
struct pipe_ref {
    char *part[PIPE_REF_PARTS];
    int n;
};

/* What the references mean, and how the steps before it ended. */
struct pipe_scope {
    /* A new reference; NULL: there is no such value, which reads as null. */
    json_t *(*find)(const struct pipe_ref *ref, void *arg);
    void *arg;
    bool failed; /* one of the needed steps failed, or was cancelled */
};

struct pipe_expr;

/* n bytes of a text that ends in NUL somewhere behind them. ERR_BAD_SPEC: a code with the column
 * within text, from 1. */
must_check int pipe_expr_parse(const char *text, size_t n, struct pipe_expr **ret, struct err *err);
void pipe_expr_free(struct pipe_expr *e); /* NULL is fine */
/* Its references one after the other, from *pos = 0; NULL: no more. Borrowed. */
const struct pipe_ref *pipe_expr_next_ref(const struct pipe_expr *e, int *pos);
/* success(), failure() or always() stands in it: without one of them a condition means
 * success() && the condition. */
bool pipe_expr_says_when(const struct pipe_expr *e);
/* A new reference, never NULL. */
json_t *pipe_expr_value(const struct pipe_expr *e, const struct pipe_scope *scope);
/* null, false, 0, "" and an empty list are not true. */
bool pipe_value_is_true(const json_t *v);
