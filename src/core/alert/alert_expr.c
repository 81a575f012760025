/* SPDX-License-Identifier: Apache-2.0 */
/* alert_expr.c - see alert_expr.h. Recursive descent into an array of nodes; depth and size have
 * ceilings, since rules come from users. */
#include "core/alert/alert_expr.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/message.h"
#include "base/str.h"

enum expr_op {
    EXPR_AND,
    EXPR_OR,
    EXPR_NOT,
    EXPR_EQ,
    EXPR_NE,
    EXPR_LE,
    EXPR_GE,
    EXPR_LT,
    EXPR_GT,
    EXPR_LIKE
};

struct expr_node {
    enum expr_op op;
    int left, right; /* of and, or, not */
    char *fact, *text;
    double number; /* NaN: it is a text */
};

struct alert_expr {
    struct expr_node v[ALERT_EXPR_NODES];
    int n, root;
};

struct expr_reader {
    const char *text, *at;
    struct alert_expr *e;
    int depth;
    struct err *err;
};

const struct alert_fact *alert_fact_find(const struct alert_fact *v, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (*v[i].name == *name && !strcmp(v[i].name, name))
            return &v[i];
    return NULL;
}

const char *alert_expr_fact(const struct alert_expr *e, size_t i)
{
    for (int k = 0; k < e->n; k++)
        if (e->v[k].fact && i-- == 0)
            return e->v[k].fact;
    return NULL;
}

void alert_expr_free(struct alert_expr *e)
{
    for (int i = 0; e && i < e->n; i++) {
        free(e->v[i].fact);
        free(e->v[i].text);
    }
    free(e);
}

/* ---- reading ---- */

static int expr_refuse(const struct expr_reader *r, const char *code)
{
    return message_refuse(
        r->err, ERR_BAD_SPEC, code,
        MESSAGE_ARGS(MESSAGE_STR("text", r->text), MESSAGE_NUM("column", r->at - r->text + 1)));
}

static void expr_skip(struct expr_reader *r)
{
    while (isspace((unsigned char)*r->at))
        r->at++;
}

static bool expr_is_word(char c)
{
    return isalnum((unsigned char)c) || (c && strchr("_.-/%*?:+", c)) || (unsigned char)c >= 0x80;
}

static size_t expr_word(const struct expr_reader *r)
{
    size_t n = 0;
    while (expr_is_word(r->at[n]))
        n++;
    return n;
}

static bool expr_takes(struct expr_reader *r, const char *word)
{
    size_t n = strlen(word);
    expr_skip(r);
    if (expr_word(r) != n || strncmp(r->at, word, n) != 0)
        return false;
    r->at += n;
    return true;
}

static int expr_add(struct expr_reader *r, enum expr_op op, int left, int right)
{
    if (r->e->n == ALERT_EXPR_NODES)
        return expr_refuse(r, "expr_long");
    r->e->v[r->e->n] = (struct expr_node){.op = op, .left = left, .right = right, .number = NAN};
    return r->e->n++;
}

/* A number with a unit, in seconds, bytes or as a ratio. */
static bool expr_number(const char *text, double *ret)
{
    size_t n = strlen(text);
    usec_t span;
    uint64_t bytes;
    if (!isdigit((unsigned char)*text) && *text != '-')
        return false;
    if (n > 1 && text[n - 1] == '%') {
        _cleanup_(freep) char *part = xstrndup(text, n - 1);
        bool ok = str_to_real(part, ret, NULL) == 0;
        *ret = ok ? *ret / 100 : 0;
        return ok;
    }
    if (str_to_real(text, ret, NULL) == 0)
        return true;
    if (span_from_string(text, &span, NULL) == 0) {
        *ret = (double)span / (double)USEC_SEC;
        return true;
    }
    if (size_from_string(text, &bytes, NULL) < 0)
        return false;
    *ret = (double)bytes;
    return true;
}

static int expr_value(struct expr_reader *r, struct expr_node *node)
{
    expr_skip(r);
    char quote = *r->at;
    if (quote == '\'' || quote == '"') {
        const char *end = strchr(r->at + 1, quote);
        if (!end)
            return expr_refuse(r, "expr_quote");
        node->text = xstrndup(r->at + 1, (size_t)(end - r->at - 1));
        r->at = end + 1;
        return 0;
    }
    size_t n = expr_word(r);
    if (!n)
        return expr_refuse(r, "expr_value");
    node->text = xstrndup(r->at, n);
    if (expr_number(node->text, &node->number) && node->op != EXPR_LIKE)
        freep(&node->text);
    r->at += n;
    return 0;
}

static int expr_operator(struct expr_reader *r, enum expr_op *ret)
{
    static const struct {
        const char *sign;
        enum expr_op op;
    } signs[] = {{"==", EXPR_EQ}, {"!=", EXPR_NE}, {"<=", EXPR_LE}, {">=", EXPR_GE},
                 {"<", EXPR_LT},  {">", EXPR_GT},  {"~", EXPR_LIKE}};
    expr_skip(r);
    for (size_t i = 0; i < array_len(signs); i++)
        if (str_starts(r->at, signs[i].sign)) {
            r->at += strlen(signs[i].sign);
            *ret = signs[i].op;
            return 0;
        }
    return expr_refuse(r, "expr_operator");
}

static int expr_comparison(struct expr_reader *r)
{
    enum expr_op op = EXPR_EQ;
    expr_skip(r);
    size_t n = expr_word(r);
    if (!n || !isalpha((unsigned char)*r->at))
        return expr_refuse(r, "expr_fact");
    const char *fact = r->at;
    r->at += n;
    if (expr_operator(r, &op) < 0)
        return r->err->code;
    int at = expr_add(r, op, -1, -1);
    if (at < 0)
        return at;
    struct expr_node *node = &r->e->v[at];
    node->fact = xstrndup(fact, n);
    if (expr_value(r, node) < 0)
        return r->err->code;
    if (node->text && op >= EXPR_LE && op <= EXPR_GT)
        return expr_refuse(r, "expr_text_order");
    return at;
}

static int expr_or(struct expr_reader *r);

static int expr_term(struct expr_reader *r)
{
    if (expr_takes(r, "not")) {
        if (++r->depth > ALERT_EXPR_DEPTH)
            return expr_refuse(r, "expr_deep");
        int left = expr_term(r);
        r->depth--;
        return left < 0 ? left : expr_add(r, EXPR_NOT, left, -1);
    }
    expr_skip(r);
    if (*r->at != '(')
        return expr_comparison(r);
    r->at++;
    int inner = expr_or(r);
    expr_skip(r);
    if (inner >= 0 && *r->at != ')')
        return expr_refuse(r, "expr_bracket");
    r->at += inner >= 0;
    return inner;
}

static int expr_and(struct expr_reader *r)
{
    int left = expr_term(r);
    while (left >= 0 && expr_takes(r, "and")) {
        int right = expr_term(r);
        left = right < 0 ? right : expr_add(r, EXPR_AND, left, right);
    }
    return left;
}

static int expr_or(struct expr_reader *r)
{
    if (++r->depth > ALERT_EXPR_DEPTH)
        return expr_refuse(r, "expr_deep");
    int left = expr_and(r);
    while (left >= 0 && expr_takes(r, "or")) {
        int right = expr_and(r);
        left = right < 0 ? right : expr_add(r, EXPR_OR, left, right);
    }
    r->depth--;
    return left;
}

int alert_expr_parse(const char *text, struct alert_expr **ret, struct err *err)
{
    struct err own = {0};
    struct expr_reader r = {.text = text, .at = text, .err = err ? err : &own};
    if (strlen(text) > ALERT_EXPR_MAX)
        return message_refuse(err, ERR_BAD_SPEC, "expr_bytes",
                              MESSAGE_ARGS(MESSAGE_NUM("most", ALERT_EXPR_MAX)));
    r.e = xcalloc(1, sizeof(*r.e));
    int root = expr_or(&r);
    expr_skip(&r);
    if (root >= 0 && *r.at)
        root = expr_refuse(&r, "expr_word");
    if (root < 0) {
        alert_expr_free(r.e);
        return root;
    }
    r.e->root = root;
    *ret = r.e;
    return 0;
}

/* ---- asking ---- */

static enum alert_truth expr_not(enum alert_truth t)
{
    return t == ALERT_NOT_KNOWN ? t : t == ALERT_TRUE ? ALERT_FALSE : ALERT_TRUE;
}

static bool expr_compares(enum expr_op op, double a, double b)
{
    switch (op) {
    case EXPR_LE:
        return a <= b;
    case EXPR_GE:
        return a >= b;
    case EXPR_LT:
        return a < b;
    case EXPR_GT:
        return a > b;
    case EXPR_NE:
        return a < b || a > b;
    default:
        return a >= b && a <= b;
    }
}

static enum alert_truth expr_compare(const struct expr_node *node,
                                     const struct alert_fact *v,
                                     size_t n)
{
    const struct alert_fact *f = alert_fact_find(v, n, node->fact);
    if (!f || !f->text != !node->text || (!f->text && isnan(f->number)))
        return ALERT_NOT_KNOWN;
    if (!f->text)
        return expr_compares(node->op, f->number, node->number) ? ALERT_TRUE : ALERT_FALSE;
    bool same = node->op == EXPR_LIKE ? str_glob(node->text, f->text) : str_eq(node->text, f->text);
    return same != (node->op == EXPR_NE) ? ALERT_TRUE : ALERT_FALSE;
}

static enum alert_truth expr_ask_node(const struct alert_expr *e,
                                      int at,
                                      const struct alert_fact *v,
                                      size_t n)
{
    const struct expr_node *node = &e->v[at];
    if (node->op > EXPR_NOT)
        return expr_compare(node, v, n);
    enum alert_truth left = expr_ask_node(e, node->left, v, n);
    if (node->op == EXPR_NOT)
        return expr_not(left);
    enum alert_truth decides = node->op == EXPR_AND ? ALERT_FALSE : ALERT_TRUE;
    if (left == decides)
        return decides;
    enum alert_truth right = expr_ask_node(e, node->right, v, n);
    if (right == decides)
        return decides;
    return left == ALERT_NOT_KNOWN || right == ALERT_NOT_KNOWN ? ALERT_NOT_KNOWN
                                                               : expr_not(decides);
}

enum alert_truth alert_expr_ask(const struct alert_expr *e, const struct alert_fact *v, size_t n)
{
    return expr_ask_node(e, e->root, v, n);
}

double alert_expr_next(const struct alert_expr *e, const char *fact, double from)
{
    double next = INFINITY;
    for (int i = 0; i < e->n; i++)
        if (e->v[i].fact && !isnan(e->v[i].number) && e->v[i].number >= from &&
            str_eq(e->v[i].fact, fact))
            next = fmin(next, e->v[i].number);
    return next;
}
