/* SPDX-License-Identifier: Apache-2.0 */
/* doc.c - builds the node tree from libfyaml's events, or from jansson's tree.
 *
 * Events and not libfyaml's own document: limits are then checked while reading,
 * an alias is refused before it can be expanded, and every node has its token's
 * mark. All nodes and texts live in one arena that dies with the doc. See doc.h. */
#define _GNU_SOURCE
#include "base/doc/doc.h"

#include <errno.h>
#include <libfyaml.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/doc/docbroken.h"
#include "base/doc/dockeys.h"
#include "base/doc/doclines.h"
#include "base/doc/quoted.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

struct chunk {
    struct chunk *next;
    size_t used, cap;
    _Alignas(16) char bytes[];
};

struct doc {
    struct chunk *chunks;
    struct node *root;
    size_t nodes;
};

/* ---- arena ---- */

static void *arena(struct doc *d, size_t n)
{
    n = (n + 15) & ~(size_t)15;
    struct chunk *c = d->chunks;
    if (!c || c->cap - c->used < n) {
        size_t cap = n > 4096 ? n : 4096;
        c = xmalloc(sizeof(*c) + cap);
        *c = (struct chunk){.next = d->chunks, .cap = cap};
        d->chunks = c;
    }
    void *p = c->bytes + c->used;
    c->used += n;
    return p;
}

const char *doc_keep_text(struct doc *d, const char *s, size_t n)
{
    char *copy = arena(d, n + 1);
    if (n)
        memcpy(copy, s, n);
    copy[n] = 0;
    return copy;
}

void doc_free(struct doc *d)
{
    if (!d)
        return;
    for (struct chunk *c = d->chunks, *next; c; c = next) {
        next = c->next;
        free(c);
    }
    free(d);
}

void doc_freep(struct doc **d)
{
    doc_free(*d);
    *d = NULL;
}

const struct node *doc_root(const struct doc *d)
{
    return d->root;
}

struct node *doc_new_node(struct doc *d, enum node_kind kind)
{
    struct node *n = arena(d, sizeof(*n));
    *n = (struct node){.kind = kind};
    d->nodes++;
    return n;
}

size_t doc_count_nodes(const struct doc *d)
{
    return d->nodes;
}

/* ---- from JSON, without places ---- */

static int from_json(struct doc *d, const json_t *v, int depth, struct node **ret);

static int add_json_children(struct doc *d, const json_t *v, int depth, struct node *n)
{
    struct node **tail = &n->first;
    size_t i;
    json_t *child;
    const char *key;
    int r = 0;
    if (json_is_array(v)) {
        json_array_foreach (v, i, child) {
            if ((r = from_json(d, child, depth + 1, tail)) < 0)
                return r;
            tail = &(*tail)->next;
            n->n++;
        }
        return 0;
    }
    if (json_object_size(v) > DOC_MAX_KEYS) /* the YAML reader says it */
        return -EINVAL;
    json_object_foreach ((json_t *)(uintptr_t)v, key, child) {
        if ((r = from_json(d, child, depth + 1, tail)) < 0)
            return r;
        (*tail)->key = doc_keep_text(d, key, strlen(key));
        tail = &(*tail)->next;
        n->n++;
    }
    return 0;
}

static const char *json_scalar_text(struct doc *d, const json_t *v)
{
    char number[40];
    switch (json_typeof(v)) {
    case JSON_STRING:
        return doc_keep_text(d, json_string_value(v), json_string_length(v));
    case JSON_INTEGER:
        text_printf(number, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
        return doc_keep_text(d, number, strlen(number)); /* 20 digits fit */
    case JSON_REAL:
        json_real_text(json_real_value(v), number);
        return doc_keep_text(d, number, strlen(number));
    case JSON_TRUE:
        return "true";
    case JSON_FALSE:
        return "false";
    default:
        return "null";
    }
}

static int from_json(struct doc *d, const json_t *v, int depth, struct node **ret)
{
    if (depth > DOC_MAX_DEPTH || d->nodes >= DOC_MAX_NODES)
        return -EINVAL;
    if (json_is_object(v) || json_is_array(v)) {
        *ret = doc_new_node(d, json_is_object(v) ? NODE_MAP : NODE_SEQ);
        return add_json_children(d, v, depth, *ret);
    }
    *ret = doc_new_node(d, NODE_SCALAR);
    (*ret)->plain = !json_is_string(v);
    (*ret)->text = json_scalar_text(d, v);
    return 0;
}

/* The happy path for JSON bodies: any doubt and the YAML reader says what is wrong. */
static int parse_json(const char *text, size_t len, struct doc *d)
{
    _cleanup_(json_unrefp) json_t *v = NULL;
    if (json_parse(text, len, DOC_MAX_BYTES, &v, NULL) < 0)
        return -EINVAL;
    return from_json(d, v, 0, &d->root);
}

/* ---- from YAML events ---- */

struct reader {
    struct doc *d;
    struct fy_parser *parser;
    struct problems *ps;
    const char *text; /* borrowed: what the parser reads */
    int depth;
};

static int doc_complain(struct reader *rd, const struct fy_mark *m, const char *code)
{
    problems_add(rd->ps, PROBLEM_ERROR, "", m ? m->line + 1 : 0, m ? m->column + 1 : 0, code,
                 MESSAGE_NO_ARGS);
    return -EINVAL;
}

static int doc_read_value(struct reader *rd, struct fy_event *e, struct node **ret);

static void doc_place(struct node *n, struct fy_token *t)
{
    const struct fy_mark *m = fy_token_start_mark(t);
    if (m) {
        n->line = m->line + 1;
        n->column = m->column + 1;
    }
}

/* The quote that stands around the token's text, 0 if none does. */
static char quote_of(struct fy_token *t)
{
    enum fy_scalar_style style = fy_token_scalar_style(t);
    return style == FYSS_SINGLE_QUOTED ? '\'' : style == FYSS_DOUBLE_QUOTED ? '"' : '\0';
}

static int scalar_text(struct reader *rd, struct fy_token *t, struct buf *out)
{
    const struct fy_mark *from = fy_token_start_mark(t), *to = fy_token_end_mark(t);
    if (quote_of(t) && from && to)
        return quoted_decode(rd->text + from->input_pos, to->input_pos - from->input_pos,
                             quote_of(t), out);
    size_t len = 0;
    const char *s = fy_token_get_text(t, &len);
    return s ? buf_add(out, s, len) : -EINVAL;
}

/* A plain scalar on one line is what stands there: libfyaml would copy it twice. */
static const char *plain_text(const struct reader *rd, struct fy_token *t, size_t *ret_n)
{
    const struct fy_mark *from = t ? fy_token_start_mark(t) : NULL;
    const struct fy_mark *to = from ? fy_token_end_mark(t) : NULL;
    if (!to || fy_token_scalar_style(t) != FYSS_PLAIN || from->line != to->line)
        return NULL;
    *ret_n = to->input_pos - from->input_pos;
    return rd->text + from->input_pos;
}

static int read_scalar(struct reader *rd, struct fy_event *e, struct node **ret)
{
    struct fy_token *t = e->scalar.value;
    size_t n_plain = 0;
    const char *plain = plain_text(rd, t, &n_plain);
    if (plain) {
        *ret = doc_new_node(rd->d, NODE_SCALAR);
        (*ret)->plain = true;
        (*ret)->text = doc_keep_text(rd->d, plain, n_plain);
        doc_place(*ret, t);
        return 0;
    }
    _cleanup_(buf_release) struct buf text = BUF_INIT(4 * DOC_MAX_BYTES);
    if (t && scalar_text(rd, t, &text) < 0)
        return doc_complain(rd, fy_token_start_mark(t), "yaml_escape");
    if (memchr(buf_str(&text), 0, text.len))
        return doc_complain(rd, fy_token_start_mark(t), "yaml_nul");
    struct node *n = doc_new_node(rd->d, NODE_SCALAR);
    n->plain = !t || fy_token_scalar_style(t) == FYSS_PLAIN;
    n->text = doc_keep_text(rd->d, buf_str(&text), text.len);
    doc_place(n, t);
    if (t && n->column > 1 && quote_of(t))
        n->column--; /* libfyaml's mark stands behind the quote */
    *ret = n;
    return 0;
}

/* ---- what a scalar may be ---- */

bool node_is_null(const struct node *n)
{
    return n->kind == NODE_SCALAR && n->plain &&
           (!*n->text || !strcmp(n->text, "~") || !strcasecmp(n->text, "null"));
}

/* A number beyond what JSON readers hold stays a text, whole. */
static bool is_json_number(const char *s)
{
    const char *p = s + (*s == '-');
    if (*p < '0' || *p > '9' || (*p == '0' && p[1] >= '0' && p[1] <= '9'))
        return false;
    if (!strpbrk(s, ".eE")) {
        int64_t i;
        return str_to_int(s, INT64_MIN, INT64_MAX, &i, NULL) == 0;
    }
    double d;
    return strspn(s, "-+0123456789.eE") == strlen(s) && !str_ends(s, ".") && !strstr(s, ".e") &&
           !strstr(s, ".E") && str_to_real(s, &d, NULL) == 0;
}

/* ---- tags ---- */

/* Does the value of this tag's type read as one? */
static bool doc_fits_tag(const char *tag, struct node *n)
{
    static const char *const words[] = {"true", "True", "TRUE", "false", "False", "FALSE"};
    bool is_bool = false;
    if (n->kind != NODE_SCALAR)
        return str_eq(tag, n->kind == NODE_MAP ? "!!map" : "!!seq");
    n->plain = !str_eq(tag, "!!str") && !str_eq(tag, "!");
    for (size_t i = 0; i < array_len(words); i++)
        is_bool |= !strcmp(n->text, words[i]);
    return !n->plain || (str_eq(tag, "!!null") && node_is_null(n)) ||
           (str_eq(tag, "!!bool") && is_bool) ||
           (str_eq(tag, "!!float") && is_json_number(n->text)) ||
           (str_eq(tag, "!!int") && is_json_number(n->text) && !strpbrk(n->text, ".eE"));
}

static bool doc_knows_tag(const char *tag)
{
    static const char *const tags[] = {"!",      "!!str",  "!!int", "!!float",
                                       "!!bool", "!!null", "!!map", "!!seq"};
    for (size_t i = 0; i < array_len(tags); i++)
        if (!strcmp(tag, tags[i]))
            return true;
    return false;
}

/* A tag that means nothing here would be dropped without a word. */
static int doc_take_tag(struct reader *rd, struct fy_token *t, struct node *n)
{
    const struct fy_mark *from = t ? fy_token_start_mark(t) : NULL;
    const struct fy_mark *to = from ? fy_token_end_mark(t) : NULL;
    if (!to)
        return 0;
    _cleanup_(freep) char *tag =
        xstrndup(rd->text + from->input_pos, to->input_pos - from->input_pos);
    const char *code = !doc_knows_tag(tag)     ? "yaml_tag"
                       : !doc_fits_tag(tag, n) ? "yaml_tag_value"
                                               : NULL;
    if (!code)
        return 0;
    problems_add(rd->ps, PROBLEM_ERROR, "", from->line + 1, from->column + 1, code,
                 MESSAGE_ARGS(MESSAGE_STR("tag", tag)));
    return -EINVAL;
}

/* ---- collections ---- */

static int read_seq(struct reader *rd, struct node *n)
{
    struct node **tail = &n->first;
    for (;;) {
        struct fy_event *e = fy_parser_parse(rd->parser);
        if (!e)
            return -EINVAL;
        if (e->type == FYET_SEQUENCE_END) {
            fy_parser_event_free(rd->parser, e);
            return 0;
        }
        int r = doc_read_value(rd, e, tail);
        fy_parser_event_free(rd->parser, e);
        if (r < 0)
            return r;
        tail = &(*tail)->next;
        n->n++;
    }
}

static int doc_read_key(struct reader *rd,
                        const struct node *map,
                        struct fy_event *e,
                        struct node **ret)
{
    struct fy_token *t = fy_event_get_token(e);
    const struct fy_mark *m = t ? fy_token_start_mark(t) : NULL;
    if (e->type != FYET_SCALAR)
        return doc_complain(rd, m, "yaml_key");
    if (map->n >= DOC_MAX_KEYS)
        return doc_complain(rd, m, "yaml_many_keys");
    int r = read_scalar(rd, e, ret);
    if (r == 0)
        r = doc_take_tag(rd, fy_event_get_tag_token(e), *ret);
    if (r == 0 && node_find(map, (*ret)->text)) {
        problems_add(rd->ps, PROBLEM_ERROR, (*ret)->text, (*ret)->line, (*ret)->column,
                     "yaml_key_twice", MESSAGE_ARGS(MESSAGE_STR("key", (*ret)->text)));
        return -EINVAL;
    }
    return r;
}

static int read_map(struct reader *rd, struct node *n)
{
    struct node **tail = &n->first;
    for (;;) {
        struct fy_event *e = fy_parser_parse(rd->parser);
        if (!e)
            return -EINVAL;
        bool end = e->type == FYET_MAPPING_END;
        struct node *key = NULL;
        int r = end ? 0 : doc_read_key(rd, n, e, &key);
        fy_parser_event_free(rd->parser, e);
        if (end || r < 0)
            return r;
        e = fy_parser_parse(rd->parser);
        if (!e)
            return -EINVAL;
        struct node *value = NULL;
        r = doc_read_value(rd, e, &value);
        fy_parser_event_free(rd->parser, e);
        if (r < 0 || !key || !value)
            return r < 0 ? r : -EINVAL; /* each is there where the reading went well */
        value->key = key->text;
        value->key_line = key->line;
        value->key_column = key->column;
        *tail = value;
        tail = &value->next;
        n->n++;
    }
}

static int doc_read_untagged(struct reader *rd, struct fy_event *e, struct node **ret)
{
    struct fy_token *t = fy_event_get_token(e);
    const struct fy_mark *m = t ? fy_token_start_mark(t) : NULL;
    if (rd->d->nodes >= DOC_MAX_NODES)
        return doc_complain(rd, m, "yaml_too_many");
    if (e->type == FYET_SCALAR)
        return read_scalar(rd, e, ret);
    if (e->type == FYET_ALIAS)
        return doc_complain(rd, m, "yaml_alias");
    if (e->type != FYET_MAPPING_START && e->type != FYET_SEQUENCE_START)
        return doc_complain(rd, m, "no_value");
    if (rd->depth == DOC_MAX_DEPTH)
        return doc_complain(rd, m, "yaml_too_deep");
    bool map = e->type == FYET_MAPPING_START;
    struct node *n = doc_new_node(rd->d, map ? NODE_MAP : NODE_SEQ);
    doc_place(n, t);
    *ret = n;
    rd->depth++;
    int r = map ? read_map(rd, n) : read_seq(rd, n);
    rd->depth--;
    return r;
}

static int doc_read_value(struct reader *rd, struct fy_event *e, struct node **ret)
{
    struct node *n = NULL;
    int r = doc_read_untagged(rd, e, &n);
    if (r == 0)
        r = doc_take_tag(rd, fy_event_get_tag_token(e), n);
    if (r == 0)
        *ret = n;
    return r;
}

/* One document: its value goes to d->root; more than one is an error. */
static int doc_read_stream(struct reader *rd)
{
    int docs = 0, r = 0;
    struct fy_event *e;
    while (r == 0 && (e = fy_parser_parse(rd->parser))) {
        switch (e->type) {
        case FYET_STREAM_START:
        case FYET_STREAM_END:
        case FYET_DOCUMENT_END:
            break;
        case FYET_DOCUMENT_START:
            if (docs++)
                r = doc_complain(rd, NULL, "yaml_documents");
            break;
        default:
            r = doc_read_value(rd, e, &rd->d->root);
        }
        fy_parser_event_free(rd->parser, e);
    }
    return r < 0 || fy_parser_get_stream_error(rd->parser) ? -EINVAL : 0;
}

/* libfyaml's own words stay inside: what they mean is said. */
static void report_syntax(struct reader *rd, struct fy_diag *diag)
{
    void *prev = NULL;
    struct fy_diag_error *e = fy_diag_errors_iterate(diag, &prev);
    problems_add(rd->ps, PROBLEM_ERROR, "", e ? e->line : 0, e ? e->column : 0,
                 docbroken_code(e ? e->msg : ""), MESSAGE_NO_ARGS);
}

static int parse_yaml(const char *text, size_t len, struct doc *d, struct problems *ps)
{
    struct fy_diag_cfg dc;
    fy_diag_cfg_default(&dc);
    dc.fp = NULL;
    dc.colorize = false;
    struct fy_diag *diag = fy_diag_create(&dc);
    fy_diag_set_collect_errors(diag, true);
    struct fy_parse_cfg cfg = {.search_path = "", .flags = FYPCF_DEFAULT_PARSE, .diag = diag};
    struct reader rd = {.d = d, .ps = ps, .text = text, .parser = fy_parser_create(&cfg)};
    size_t before = ps->errors;
    int r = fy_parser_set_string(rd.parser, text, len) == 0 ? doc_read_stream(&rd) : -EINVAL;
    if (r < 0 && ps->errors == before)
        report_syntax(&rd, diag);
    fy_parser_destroy(rd.parser);
    fy_diag_destroy(diag);
    return r;
}

/* libfyaml 0.7.12 never ends on a directive with a broken sequence, so that none may reach it. */
static int doc_check_bytes(const char *text, size_t len, struct problems *ps)
{
    int line = 1, column = 1;
    for (size_t i = 0, n; i < len; i += n) {
        n = str_utf8_length(text + i, len - i);
        if (n == 0 || text[i] == 0) {
            problems_add(ps, PROBLEM_ERROR, "", line, column, n ? "text_nul" : "text_not_utf8",
                         MESSAGE_NO_ARGS);
            return -EINVAL;
        }
        line += text[i] == '\n';
        column = text[i] == '\n' ? 1 : column + 1;
    }
    return 0;
}

static int doc_refuse_question(const char *text, size_t len, struct problems *ps)
{
    int line, column;
    if (!dockeys_find(text, len, &line, &column))
        return 0;
    problems_add(ps, PROBLEM_ERROR, "", line, column, "yaml_question", MESSAGE_NO_ARGS);
    return -EINVAL;
}

int doc_parse(const char *text, size_t len, bool want_places, struct doc **ret, struct problems *ps)
{
    if (len > DOC_MAX_BYTES) {
        problems_add(ps, PROBLEM_ERROR, "", 0, 0, "text_too_long",
                     MESSAGE_ARGS(MESSAGE_NUM("bytes", len), MESSAGE_NUM("most", DOC_MAX_BYTES)));
        return -EINVAL;
    }
    if (doc_check_bytes(text, len, ps) < 0)
        return -EINVAL;
    _cleanup_(doc_freep) struct doc *d = xcalloc(1, sizeof(*d));
    bool fast = doclines_read(text, len, d, &d->root) ||
                (!want_places && len && text[0] == '{' && parse_json(text, len, d) == 0);
    if (!fast) {
        d->nodes = 0;
        d->root = NULL;
        if (doc_refuse_question(text, len, ps) < 0 || parse_yaml(text, len, d, ps) < 0)
            return -EINVAL;
    }
    if (!d->root) {
        d->root = doc_new_node(d, NODE_MAP); /* an empty text is an empty mapping */
        d->root->line = d->root->column = 1;
    }
    *ret = d;
    d = NULL;
    return 0;
}

/* ---- reading the tree ---- */

const struct node *node_find(const struct node *n, const char *key)
{
    if (!n || n->kind != NODE_MAP)
        return NULL;
    for (const struct node *c = n->first; c; c = c->next)
        if (!strcmp(c->key, key))
            return c;
    return NULL;
}

static const struct node *node_find_part(const struct node *n, const char *name, size_t len)
{
    if (!n || n->kind != NODE_MAP)
        return NULL;
    for (const struct node *c = n->first; c; c = c->next)
        if (c->key[0] == name[0] && !strncmp(c->key, name, len) && !c->key[len])
            return c;
    return NULL;
}

const struct node *node_find_path(const struct node *root, const char *path)
{
    const struct node *n = root;
    while (n && *path) {
        size_t len = (size_t)(strchrnul(path, '.') - path);
        n = node_find_part(n, path, len);
        path += len + (path[len] == '.');
    }
    return n;
}

static void scalar_to_json(const struct node *n, struct jout *j, const char *key)
{
    if (node_is_null(n))
        jout_null(j, key);
    else if (n->plain && (!strcasecmp(n->text, "true") || !strcasecmp(n->text, "false")))
        jout_bool(j, key, n->text[0] == 't' || n->text[0] == 'T');
    else if (n->plain && is_json_number(n->text))
        jout_raw(j, key, n->text);
    else
        jout_str(j, key, n->text);
}

void node_to_json(const struct node *n, struct jout *j, const char *key)
{
    if (n->kind == NODE_SCALAR) {
        scalar_to_json(n, j, key);
        return;
    }
    bool map = n->kind == NODE_MAP;
    jout_open(j, key, map ? '{' : '[');
    for (const struct node *c = n->first; c; c = c->next)
        node_to_json(c, j, map ? c->key : NULL);
    jout_close(j, map ? '}' : ']');
}
