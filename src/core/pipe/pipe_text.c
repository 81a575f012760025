/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_text.c - see pipe_text.h. An expression ends at the first two closing braces outside a text
 * of its own. */
#include "core/pipe/pipe_text.h"

#include <stdlib.h>
#include <string.h>

#include "base/message.h"

enum { PIPE_TEXT_MAX = 64 << 10 };

/* The quote that a text of the expression opens hides a bracket inside. */
static const char *pipe_text_close(const char *s)
{
    char quote = 0;
    for (; *s; s++) {
        if (quote)
            quote = *s == quote ? 0 : quote;
        else if (*s == '\'' || *s == '"')
            quote = *s;
        else if (s[0] == '}' && s[1] == '}')
            return s;
    }
    return NULL;
}

bool pipe_text_next(const char **rest, struct pipe_hole *ret)
{
    const char *open = strstr(*rest, "${{");
    while (open && open > *rest && open[-1] == '$')
        open = strstr(open + 3, "${{");
    if (!open)
        return false;
    const char *close = pipe_text_close(open + 3);
    *ret = (struct pipe_hole){.before = *rest, .n_before = (size_t)(open - *rest)};
    if (close) {
        ret->text = open + 3;
        ret->n = (size_t)(close - open - 3);
    }
    *rest = close ? close + 2 : open + strlen(open);
    return true;
}

void pipe_text_each(const struct node *tree, pipe_text_each_f each, void *arg)
{
    const char *rest = tree->kind == NODE_SCALAR ? tree->text : "";
    struct pipe_hole hole;
    for (const struct node *c = tree->first; c; c = c->next)
        pipe_text_each(c, each, arg);
    while (pipe_text_next(&rest, &hole))
        each(tree, &hole, arg);
}

/* ---- filling ---- */

struct pipe_filling {
    const struct pipe_scope *scope;
    const struct node *at; /* the scalar that has no value */
    struct err *err;
};

static json_t *pipe_hole_value(const struct pipe_hole *hole, const struct pipe_scope *scope)
{
    struct pipe_expr *e = NULL;
    if (!hole->text || pipe_expr_parse(hole->text, hole->n, &e, NULL) < 0)
        return json_null();
    json_t *v = pipe_expr_value(e, scope);
    pipe_expr_free(e);
    return v;
}

/* `$${{` is `${{`. */
static void pipe_put_plain(struct buf *out, const char *s, size_t n)
{
    for (const char *end = s + n; s < end;) {
        const char *mark = memmem(s, (size_t)(end - s), "$${{", 4);
        const char *stop = mark ? mark : end;
        (void)buf_add(out, s, (size_t)(stop - s)); /* `failed` tells in the end */
        s = mark ? mark + 1 : end;
        if (mark) {
            (void)buf_add(out, s, 3);
            s += 3;
        }
    }
}

static int pipe_put_value(struct buf *out, const struct pipe_hole *hole, json_t *v, struct err *err)
{
    if (json_is_string(v))
        return buf_add(out, json_string_value(v), json_string_length(v));
    if (json_is_number(v) || json_is_boolean(v)) {
        char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
        int r = buf_adds(out, text);
        free(text);
        return r;
    }
    _cleanup_(freep) char *name = xstrndup(hole->text, hole->n);
    return message_refuse(err, ERR_REFUSED, json_is_null(v) ? "pipe_no_value" : "pipe_not_text",
                          MESSAGE_ARGS(MESSAGE_STR("expr", name)));
}

static int pipe_fill_text(struct pipe_filling *f, const char *text, struct buf *out)
{
    struct pipe_hole hole;
    while (pipe_text_next(&text, &hole)) {
        _cleanup_(json_unrefp) json_t *v = pipe_hole_value(&hole, f->scope);
        pipe_put_plain(out, hole.before, hole.n_before);
        int r = pipe_put_value(out, &hole, v, f->err);
        if (r < 0)
            return r;
    }
    pipe_put_plain(out, text, strlen(text));
    return out->failed ? message_refuse(f->err, ERR_REFUSED, "pipe_text_long",
                                        MESSAGE_ARGS(MESSAGE_NUM("most", PIPE_TEXT_MAX)))
                       : 0;
}

static void pipe_put_json(struct jout *j, const char *key, const json_t *v)
{
    char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15));
    jout_raw(j, key, text ? text : "null");
    free(text);
}

static int pipe_fill_scalar(struct pipe_filling *f, const struct node *n, struct jout *j)
{
    const char *rest = n->text;
    struct pipe_hole hole;
    if (!strstr(n->text, "${{")) {
        node_to_json(n, j, n->key);
        return 0;
    }
    bool has = pipe_text_next(&rest, &hole);
    if (has && !hole.n_before && !*rest) {
        _cleanup_(json_unrefp) json_t *v = pipe_hole_value(&hole, f->scope);
        if (!json_is_null(v))
            pipe_put_json(j, n->key, v);
        return 0;
    }
    struct buf out = BUF_INIT(PIPE_TEXT_MAX);
    f->at = n;
    int r = pipe_fill_text(f, n->text, &out);
    if (r >= 0)
        jout_strn(j, n->key, buf_str(&out), out.len);
    buf_release(&out);
    return r;
}

static int pipe_fill_tree(struct pipe_filling *f, const struct node *n, struct jout *j)
{
    int r = 0;
    if (n->kind == NODE_SCALAR)
        return pipe_fill_scalar(f, n, j);
    jout_open(j, n->key, n->kind == NODE_MAP ? '{' : '[');
    for (const struct node *c = n->first; c && r >= 0; c = c->next)
        r = pipe_fill_tree(f, c, j);
    jout_close(j, n->kind == NODE_MAP ? '}' : ']');
    return r;
}

int pipe_text_fill(const struct node *tree,
                   const struct pipe_scope *scope,
                   struct jout *j,
                   const struct node **ret_at,
                   struct err *err)
{
    struct pipe_filling f = {.scope = scope, .err = err};
    struct node root = *tree;
    root.key = NULL;
    int r = pipe_fill_tree(&f, &root, j);
    if (r < 0)
        *ret_at = f.at;
    return r < 0 ? r : 0;
}
