/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_expr.c - see pipe_expr.h. Recursive descent into an array of nodes; length, depth and number
 * of nodes have ceilings, since expressions come from users. */
#include "core/pipe/pipe_expr.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"

enum pipe_op {
    PIPE_OR,
    PIPE_AND,
    PIPE_NOT,
    PIPE_EQ,
    PIPE_NE,
    PIPE_LE,
    PIPE_GE,
    PIPE_LT,
    PIPE_GT,
    PIPE_VALUE,
    PIPE_REF,
    PIPE_SUCCESS,
    PIPE_FAILURE,
    PIPE_ALWAYS
};

struct pipe_expr_node {
    enum pipe_op op;
    int left, right;
    json_t *value;
    struct pipe_ref ref;
};

struct pipe_expr {
    struct pipe_expr_node v[PIPE_EXPR_NODES];
    int n, root;
};

struct pipe_reader {
    const char *text, *at, *end;
    struct pipe_expr *e;
    int depth;
    struct err *err;
};

void pipe_expr_free(struct pipe_expr *e)
{
    for (int i = 0; e && i < e->n; i++) {
        json_decref(e->v[i].value);
        for (int k = 0; k < e->v[i].ref.n; k++)
            free(e->v[i].ref.part[k]);
    }
    free(e);
}

const struct pipe_ref *pipe_expr_next_ref(const struct pipe_expr *e, int *pos)
{
    while (*pos < e->n) {
        const struct pipe_expr_node *node = &e->v[(*pos)++];
        if (node->op == PIPE_REF)
            return &node->ref;
    }
    return NULL;
}

bool pipe_expr_says_when(const struct pipe_expr *e)
{
    for (int i = 0; i < e->n; i++)
        if (e->v[i].op >= PIPE_SUCCESS)
            return true;
    return false;
}

/* ---- reading ---- */

static int pipe_expr_refuse(const struct pipe_reader *r, const char *code)
{
    _cleanup_(freep) char *text = xstrndup(r->text, (size_t)(r->end - r->text));
    return message_refuse(
        r->err, ERR_BAD_SPEC, code,
        MESSAGE_ARGS(MESSAGE_STR("text", text), MESSAGE_NUM("column", r->at - r->text + 1)));
}

static void pipe_expr_skip(struct pipe_reader *r)
{
    while (r->at < r->end && isspace((unsigned char)*r->at))
        r->at++;
}

static bool pipe_expr_takes(struct pipe_reader *r, const char *sign)
{
    size_t n = strlen(sign);
    pipe_expr_skip(r);
    if ((size_t)(r->end - r->at) < n || strncmp(r->at, sign, n) != 0)
        return false;
    r->at += n;
    return true;
}

static int pipe_expr_add(struct pipe_reader *r, enum pipe_op op, int left, int right)
{
    if (r->e->n == PIPE_EXPR_NODES)
        return pipe_expr_refuse(r, "expr_long");
    r->e->v[r->e->n] = (struct pipe_expr_node){.op = op, .left = left, .right = right};
    return r->e->n++;
}

static int pipe_expr_constant(struct pipe_reader *r, json_t *taken_value)
{
    int at = pipe_expr_add(r, PIPE_VALUE, -1, -1);
    if (at < 0)
        json_decref(taken_value);
    else
        r->e->v[at].value = taken_value;
    return at;
}

static int pipe_expr_text(struct pipe_reader *r)
{
    const char *begin = r->at + 1;
    const char *end = memchr(begin, *r->at, (size_t)(r->end - begin));
    json_t *value = end ? json_stringn(begin, (size_t)(end - begin)) : NULL;
    if (!value)
        return pipe_expr_refuse(r, "expr_quote");
    r->at = end + 1;
    return pipe_expr_constant(r, value);
}

static int pipe_expr_number(struct pipe_reader *r)
{
    size_t n = strspn(r->at, "0123456789.eE+-");
    double number;
    if (n > (size_t)(r->end - r->at))
        n = (size_t)(r->end - r->at);
    _cleanup_(freep) char *word = xstrndup(r->at, n);
    if (str_to_real(word, &number, NULL) < 0)
        return pipe_expr_refuse(r, "expr_value");
    r->at += n;
    return pipe_expr_constant(r, json_real(number));
}

static bool pipe_expr_is_name(char c)
{
    return isalnum((unsigned char)c) || c == '_' || c == '-' || c == '/' || c == '@';
}

static size_t pipe_expr_name(const struct pipe_reader *r)
{
    size_t n = 0;
    while (r->at + n < r->end && pipe_expr_is_name(r->at[n]))
        n++;
    return n;
}

static int pipe_expr_add_part(struct pipe_reader *r, struct pipe_ref *ref, const char *s, size_t n)
{
    if (!n || n > PIPE_REF_PART_MAX || ref->n == PIPE_REF_PARTS)
        return pipe_expr_refuse(r, "pipe_ref_form");
    ref->part[ref->n++] = xstrndup(s, n);
    return 0;
}

/* ['a name'] */
static int pipe_expr_bracket(struct pipe_reader *r, struct pipe_ref *ref)
{
    char quote = r->at < r->end ? *r->at : 0;
    const char *begin = r->at + 1;
    const char *end =
        quote == '\'' || quote == '"' ? memchr(begin, quote, (size_t)(r->end - begin)) : NULL;
    if (!end)
        return pipe_expr_refuse(r, "pipe_ref_form");
    int x = pipe_expr_add_part(r, ref, begin, (size_t)(end - begin));
    r->at = end + 1;
    if (x == 0 && !pipe_expr_takes(r, "]"))
        x = pipe_expr_refuse(r, "pipe_ref_form");
    return x;
}

static int pipe_expr_ref(struct pipe_reader *r)
{
    int at = pipe_expr_add(r, PIPE_REF, -1, -1);
    if (at < 0)
        return at;
    struct pipe_ref *ref = &r->e->v[at].ref;
    size_t n = pipe_expr_name(r);
    int x = pipe_expr_add_part(r, ref, r->at, n);
    r->at += n;
    while (x == 0 && r->at < r->end && (*r->at == '.' || *r->at == '[')) {
        bool bracket = *r->at++ == '[';
        n = pipe_expr_name(r);
        x = bracket ? pipe_expr_bracket(r, ref) : pipe_expr_add_part(r, ref, r->at, n);
        if (!bracket)
            r->at += n;
    }
    return x < 0 ? x : at;
}

static int pipe_expr_word(struct pipe_reader *r)
{
    static const struct {
        const char *word;
        enum pipe_op op;
    } calls[] = {{"success", PIPE_SUCCESS}, {"failure", PIPE_FAILURE}, {"always", PIPE_ALWAYS}};
    size_t n = pipe_expr_name(r);
    _cleanup_(freep) char *word = xstrndup(r->at, n);
    json_t *value = str_eq(word, "true")    ? json_true()
                    : str_eq(word, "false") ? json_false()
                    : str_eq(word, "null")  ? json_null()
                                            : NULL;
    if (value) {
        r->at += n;
        return pipe_expr_constant(r, value);
    }
    const char *begin = r->at;
    for (size_t i = 0; i < array_len(calls); i++) {
        r->at = begin + n;
        if (str_eq(word, calls[i].word) && pipe_expr_takes(r, "(") && pipe_expr_takes(r, ")"))
            return pipe_expr_add(r, calls[i].op, -1, -1);
    }
    r->at = begin;
    return pipe_expr_ref(r);
}

static int pipe_expr_or(struct pipe_reader *r);

static int pipe_expr_unary(struct pipe_reader *r)
{
    pipe_expr_skip(r);
    if (r->at == r->end)
        return pipe_expr_refuse(r, "expr_value");
    if (r->depth >= PIPE_EXPR_DEPTH)
        return pipe_expr_refuse(r, "expr_deep");
    r->depth++;
    int at;
    if (pipe_expr_takes(r, "!")) {
        at = pipe_expr_unary(r);
        at = at < 0 ? at : pipe_expr_add(r, PIPE_NOT, at, -1);
    } else if (pipe_expr_takes(r, "(")) {
        at = pipe_expr_or(r);
        if (at >= 0 && !pipe_expr_takes(r, ")"))
            at = pipe_expr_refuse(r, "expr_bracket");
    } else if (*r->at == '\'' || *r->at == '"') {
        at = pipe_expr_text(r);
    } else if (isdigit((unsigned char)*r->at) || *r->at == '-' || *r->at == '.') {
        at = pipe_expr_number(r);
    } else {
        at = pipe_expr_name(r) ? pipe_expr_word(r) : pipe_expr_refuse(r, "expr_value");
    }
    r->depth--;
    return at;
}

static int pipe_expr_comparison(struct pipe_reader *r)
{
    static const struct {
        const char *sign;
        enum pipe_op op;
    } signs[] = {{"==", PIPE_EQ}, {"!=", PIPE_NE}, {"<=", PIPE_LE},
                 {">=", PIPE_GE}, {"<", PIPE_LT},  {">", PIPE_GT}};
    int left = pipe_expr_unary(r);
    for (size_t i = 0; left >= 0 && i < array_len(signs); i++)
        if (pipe_expr_takes(r, signs[i].sign)) {
            int right = pipe_expr_unary(r);
            return right < 0 ? right : pipe_expr_add(r, signs[i].op, left, right);
        }
    return left;
}

static int pipe_expr_and(struct pipe_reader *r)
{
    int left = pipe_expr_comparison(r);
    while (left >= 0 && pipe_expr_takes(r, "&&")) {
        int right = pipe_expr_comparison(r);
        left = right < 0 ? right : pipe_expr_add(r, PIPE_AND, left, right);
    }
    return left;
}

static int pipe_expr_or(struct pipe_reader *r)
{
    int left = pipe_expr_and(r);
    while (left >= 0 && pipe_expr_takes(r, "||")) {
        int right = pipe_expr_and(r);
        left = right < 0 ? right : pipe_expr_add(r, PIPE_OR, left, right);
    }
    return left;
}

int pipe_expr_parse(const char *text, size_t n, struct pipe_expr **ret, struct err *err)
{
    struct err own = {0};
    struct pipe_reader r = {.text = text, .at = text, .end = text + n, .err = err ? err : &own};
    if (n > PIPE_EXPR_MAX)
        return message_refuse(err, ERR_BAD_SPEC, "expr_bytes",
                              MESSAGE_ARGS(MESSAGE_NUM("most", PIPE_EXPR_MAX)));
    r.e = xcalloc(1, sizeof(*r.e));
    int root = pipe_expr_or(&r);
    pipe_expr_skip(&r);
    if (root >= 0 && r.at < r.end)
        root = pipe_expr_refuse(&r, "pipe_expr_word");
    if (root < 0) {
        pipe_expr_free(r.e);
        return root;
    }
    r.e->root = root;
    *ret = r.e;
    return 0;
}

/* ---- asking ---- */

bool pipe_value_is_true(const json_t *v)
{
    if (json_is_number(v))
        return json_number_value(v) < 0 || json_number_value(v) > 0;
    if (json_is_string(v))
        return json_string_length(v) > 0;
    return json_is_array(v) ? json_array_size(v) > 0 : json_is_true(v) || json_is_object(v);
}

static bool pipe_order_is(enum pipe_op op, int order)
{
    switch (op) {
    case PIPE_LE:
        return order <= 0;
    case PIPE_GE:
        return order >= 0;
    case PIPE_LT:
        return order < 0;
    case PIPE_GT:
        return order > 0;
    case PIPE_NE:
        return order != 0;
    default:
        return order == 0;
    }
}

static bool pipe_compare_one(enum pipe_op op, const json_t *a, const json_t *b)
{
    if (json_is_number(a) && json_is_number(b)) {
        double x = json_number_value(a), y = json_number_value(b);
        return pipe_order_is(op, (x > y) - (x < y));
    }
    if (json_is_string(a) && json_is_string(b))
        return pipe_order_is(op, strcmp(json_string_value(a), json_string_value(b)));
    return op == PIPE_EQ ? json_equal(a, b) : op == PIPE_NE && !json_equal(a, b);
}

static bool pipe_compare(enum pipe_op op, const json_t *a, const json_t *b)
{
    const json_t *list = json_is_array(a) ? a : json_is_array(b) ? b : NULL;
    if (!list)
        return pipe_compare_one(op, a, b);
    if (json_is_array(a) && json_is_array(b))
        return op == PIPE_EQ ? json_equal(a, b) : op == PIPE_NE && !json_equal(a, b);
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *one = json_array_get(list, i);
        if (!pipe_compare_one(op, list == a ? one : a, list == a ? b : one))
            return false;
    }
    return json_array_size(list) > 0;
}

static json_t *pipe_node_value(const struct pipe_expr *e, int at, const struct pipe_scope *scope)
{
    const struct pipe_expr_node *node = &e->v[at];
    json_t *found = NULL;
    if (node->op == PIPE_VALUE)
        return json_incref(node->value);
    if (node->op == PIPE_REF)
        found = scope->find(&node->ref, scope->arg);
    if (node->op == PIPE_REF)
        return found ? found : json_null();
    if (node->op >= PIPE_SUCCESS)
        return json_boolean(node->op == PIPE_ALWAYS || scope->failed == (node->op == PIPE_FAILURE));
    _cleanup_(json_unrefp) json_t *left = pipe_node_value(e, node->left, scope);
    if (node->op == PIPE_NOT)
        return json_boolean(!pipe_value_is_true(left));
    if (node->op <= PIPE_AND && pipe_value_is_true(left) == (node->op == PIPE_OR))
        return json_boolean(node->op == PIPE_OR);
    _cleanup_(json_unrefp) json_t *right = pipe_node_value(e, node->right, scope);
    return json_boolean(node->op <= PIPE_AND ? pipe_value_is_true(right)
                                             : pipe_compare(node->op, left, right));
}

json_t *pipe_expr_value(const struct pipe_expr *e, const struct pipe_scope *scope)
{
    return pipe_node_value(e, e->root, scope);
}
