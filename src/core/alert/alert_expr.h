/* SPDX-License-Identifier: Apache-2.0 */
/* alert_expr.h - an expression over facts, as a rule has it.
 *
 *   state == offline and want == up            words, or texts in quotes
 *   disk_free < 10GiB or not (disk_used < 95%) numbers with % or a unit of bytes or time (30s, 2h)
 *   kind ~ node_*                              a pattern with * and ?
 *
 * `and`, `or`, `not`, parentheses; == != < <= > >= ~. Times are seconds, 95% is 0.95. A comparison
 * whose fact is not there, or of another kind, is not known: neither true nor false, and so is what
 * depends on it. Pure. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* text NULL: the number. A number that is no number (NaN) is not known. */
struct alert_fact {
    const char *name;
    double number;
    const char *text;
};
/* NULL: it is not there. */
const struct alert_fact *alert_fact_find(const struct alert_fact *v, size_t n, const char *name);

enum alert_truth { ALERT_FALSE, ALERT_TRUE, ALERT_NOT_KNOWN };

struct alert_expr;
enum { ALERT_EXPR_MAX = 1000, ALERT_EXPR_NODES = 64, ALERT_EXPR_DEPTH = 16 };
/* ERR_BAD_SPEC: one sentence with the column. */
must_check int alert_expr_parse(const char *text, struct alert_expr **ret, struct err *err);
void alert_expr_free(struct alert_expr *e); /* NULL is fine */
/* The smallest number that this fact is compared with and that is no smaller than `from`: while
 * the fact grows towards that, the answer stays. INFINITY: there is none. */
double alert_expr_next(const struct alert_expr *e, const char *fact, double from);
/* The fact of the i-th comparison, borrowed; NULL behind the last. */
const char *alert_expr_fact(const struct alert_expr *e, size_t i);
enum alert_truth alert_expr_ask(const struct alert_expr *e, const struct alert_fact *v, size_t n);
