/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_text.h - texts and trees with ${{ expressions }} in them.
 *
 * A scalar that is one expression and nothing else becomes its value, of any kind; null leaves its
 * key out, as if it had not been written. Inside a longer text an expression must be a text, a
 * number or a boolean. `$${{` stands for `${{`. Pure. */
#pragma once
#include "base/doc/doc.h"
#include "core/pipe/pipe_expr.h"

struct pipe_hole {
    const char *before; /* text in front of the expression, */
    size_t n_before;
    const char *text; /* and the expression itself, without its brackets */
    size_t n;
};
/* The next expression of a text: *rest moves behind it. False: there is none, and *rest is the rest
 * of the text. An expression that is never closed reaches to the end of the text, and *ret->text is
 * NULL then. */
bool pipe_text_next(const char **rest, struct pipe_hole *ret);

/* Called for each expression in a tree, with the scalar where it stands. */
typedef void (*pipe_text_each_f)(const struct node *at, const struct pipe_hole *hole, void *arg);
void pipe_text_each(const struct node *tree, pipe_text_each_f each, void *arg);

/* Appends the tree as JSON with every expression replaced by its value. ERR_REFUSED: an expression
 * has no value where a text needs one; *ret_at is the scalar. The expressions were parsed before by
 * pipe_read(), so that none is malformed. */
must_check int pipe_text_fill(const struct node *tree,
                              const struct pipe_scope *scope,
                              struct jout *j,
                              const struct node **ret_at,
                              struct err *err);
