/* SPDX-License-Identifier: Apache-2.0 */
/* doclines.c - one pass over the lines; see doclines.h.
 *
 * A line is blank, a comment, `key:`, `key: value` or `key: [item, "item"]` at the left edge, or
 * `- value` or `key: value` further in. A value is printable ASCII that begins like a word or a
 * path and holds neither ": " nor " #": then YAML takes it as a plain scalar that ends with its
 * line, unless the next line is further in, which is refused here. An item in brackets holds no
 * bracket, brace, comma or quote besides; one in quotes holds neither a quote nor a backslash. */
#include "base/doc/doclines.h"

#include <string.h>

enum { KEY_MAX = 100 };

struct lines {
    struct doc *d;
    struct node *map;
    int line;
    struct node *list;  /* that items or inner keys go to; NULL: only a key may come */
    struct node **tail; /* where the next node is linked: of the list while one is open */
    size_t indent;      /* of what is in the list, once there is something */
};

static bool doclines_is_word(char c)
{
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static size_t doclines_blanks(const char *s, size_t from, size_t n)
{
    while (from < n && s[from] == ' ')
        from++;
    return from;
}

static bool begins_plain(const char *s, size_t n)
{
    size_t dashes = 0;
    while (dashes < n && dashes < 2 && s[dashes] == '-')
        dashes++;
    return dashes < n && (doclines_is_word(s[dashes]) || (!dashes && (*s == '/' || *s == '$')));
}

/* The length of the value without what trails, 0 if in doubt. */
static size_t plain_length(const char *s, size_t n)
{
    while (n > 0 && s[n - 1] == ' ')
        n--;
    if (!begins_plain(s, n) || s[n - 1] == ':')
        return 0;
    for (size_t i = 1; i < n; i++)
        if (s[i] < ' ' || s[i] > '~' || (s[i] == '#' && s[i - 1] == ' ') ||
            (s[i] == ' ' && s[i - 1] == ':'))
            return 0;
    return n;
}

static struct node *doclines_make(const struct lines *l, enum node_kind kind, size_t column)
{
    struct node *n = doc_new_node(l->d, kind);
    n->line = l->line;
    n->column = (int)column + 1;
    return n;
}

static struct node *make_scalar(const struct lines *l, const char *s, size_t n, size_t column)
{
    struct node *node = doclines_make(l, NODE_SCALAR, column);
    node->plain = true;
    node->text = doc_keep_text(l->d, s, n);
    return node;
}

/* The name before the colon; 0 if there is none, it was there before, or there are too many. */
static size_t key_length(const struct lines *l,
                         const struct node *map,
                         const char *s,
                         size_t n,
                         const char **ret_name)
{
    size_t len = 0;
    while (len < n && len < KEY_MAX && doclines_is_word(s[len]))
        len++;
    if (!len || len == n || s[len] != ':')
        return 0;
    *ret_name = doc_keep_text(l->d, s, len);
    return map->n >= DOC_MAX_KEYS || node_find(map, *ret_name) ? 0 : len;
}

/* ---- further in ---- */

/* The first line below `key:` says what stands there. */
static bool open_list(struct lines *l, enum node_kind kind, size_t indent)
{
    if (!l->list || (l->list->n && (l->list->kind != kind || indent != l->indent)))
        return false;
    if (l->list->n)
        return true;
    l->list->kind = kind;
    l->list->line = l->line;
    l->list->column = (int)indent + 1;
    l->indent = indent;
    return true;
}

static void add_inner(struct lines *l, struct node *v)
{
    *l->tail = v;
    l->tail = &v->next;
    l->list->n++;
}

/* "  - value" */
static bool take_item(struct lines *l, const char *s, size_t n, size_t indent)
{
    size_t value = doclines_blanks(s, indent + 1, n);
    size_t len = value > indent + 1 ? plain_length(s + value, n - value) : 0;
    if (!len || !open_list(l, NODE_SEQ, indent))
        return false;
    add_inner(l, make_scalar(l, s + value, len, value));
    return true;
}

/* "  key: value" */
static bool take_inner_key(struct lines *l, const char *s, size_t n, size_t indent)
{
    const char *name;
    if (!open_list(l, NODE_MAP, indent))
        return false;
    size_t key = key_length(l, l->list, s + indent, n - indent, &name), after = indent + key + 1;
    size_t value = doclines_blanks(s, after, n);
    size_t len = key && value > after ? plain_length(s + value, n - value) : 0;
    if (!len)
        return false;
    struct node *v = make_scalar(l, s + value, len, value);
    v->key = name;
    v->key_line = l->line;
    v->key_column = (int)indent + 1;
    add_inner(l, v);
    return true;
}

/* ---- in brackets ---- */

/* The item at s[at]; returns where it ends, 0 if in doubt. */
static size_t flow_item(struct lines *l, const char *s, size_t n, size_t at, struct node **ret)
{
    size_t end = at;
    bool quoted = at < n && s[at] == '"';
    if (quoted) {
        while (++end < n && s[end] != '"' && s[end] != '\\' && s[end] >= ' ' && s[end] <= '~')
            ;
        if (end == n || s[end] != '"')
            return 0;
        *ret = make_scalar(l, s + at + 1, end - at - 1, at);
        (*ret)->plain = false;
        return end + 1;
    }
    while (end < n && !strchr(",[]{}\"'", s[end]))
        end++;
    size_t len = plain_length(s + at, end - at);
    if (!len)
        return 0;
    *ret = make_scalar(l, s + at, len, at);
    return end;
}

/* "[a, b]" up to the end of the line; NULL if in doubt. */
static struct node *take_flow(struct lines *l, const char *s, size_t n, size_t at)
{
    struct node *seq = doclines_make(l, NODE_SEQ, at), **tail = &seq->first;
    do {
        if (doc_count_nodes(l->d) >= DOC_MAX_NODES)
            return NULL;
        at = flow_item(l, s, n, doclines_blanks(s, at + 1, n), tail);
        if (!at)
            return NULL;
        seq->n++;
        tail = &(*tail)->next;
        at = doclines_blanks(s, at, n);
    } while (at < n && s[at] == ',');
    return at < n && s[at] == ']' && doclines_blanks(s, at + 1, n) == n ? seq : NULL;
}

/* ---- at the left edge ---- */

/* What follows "key: "; NULL if in doubt. */
static struct node *doclines_take_value(struct lines *l, const char *s, size_t n, size_t at)
{
    if (at == n)
        return doclines_make(l, NODE_SEQ, 0); /* until the next line says what it is */
    if (s[at] == '[')
        return take_flow(l, s, n, at);
    size_t len = plain_length(s + at, n - at);
    return len ? make_scalar(l, s + at, len, at) : NULL;
}

/* "key: value" or "key:" */
static bool doclines_take_key(struct lines *l, const char *s, size_t n)
{
    const char *name;
    size_t key = key_length(l, l->map, s, n, &name);
    size_t value = doclines_blanks(s, key + 1, n);
    bool opens = value == n, empty_list = l->list && !l->list->n;
    struct node *v = key && !empty_list && (opens || value > key + 1)
                         ? doclines_take_value(l, s, n, value)
                         : NULL;
    if (!v)
        return false;
    v->key = name;
    v->key_line = l->line;
    v->key_column = 1;
    if (l->list)
        l->tail = &l->list->next;
    *l->tail = v;
    l->tail = opens ? &v->first : &v->next;
    l->list = opens ? v : NULL;
    l->map->n++;
    return true;
}

static bool doclines_take_line(struct lines *l, const char *s, size_t n)
{
    size_t indent = doclines_blanks(s, 0, n);
    if (indent == n || s[indent] == '#')
        return true;
    if (doc_count_nodes(l->d) >= DOC_MAX_NODES)
        return false;
    if (!indent)
        return doclines_take_key(l, s, n);
    return s[indent] == '-' ? take_item(l, s, n, indent) : take_inner_key(l, s, n, indent);
}

bool doclines_read(const char *text, size_t len, struct doc *d, struct node **ret)
{
    struct lines l = {.d = d};
    if (!len || !doclines_is_word(*text))
        return false;
    l.map = doc_new_node(d, NODE_MAP);
    l.map->line = l.map->column = 1;
    l.tail = &l.map->first;
    for (size_t at = 0; at < len;) {
        const char *stop = memchr(text + at, '\n', len - at);
        size_t n = stop ? (size_t)(stop - text) - at : len - at;
        l.line++;
        if (!doclines_take_line(&l, text + at, n))
            return false;
        at += n + 1;
    }
    if (l.list && !l.list->n)
        return false;
    *ret = l.map;
    return true;
}
