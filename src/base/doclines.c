/* SPDX-License-Identifier: Apache-2.0 */
/* doclines.c - one pass over the lines; see doclines.h.
 *
 * A line is blank, a comment, `key:`, `key: value` at the left edge, or `- value` further in.
 * A value is printable ASCII that begins like a word or a path and holds neither ": " nor
 * " #": then YAML takes it as a plain scalar that ends with its line, unless the next line is
 * further in, which is refused here. */
#include "base/doclines.h"

#include <string.h>

enum { KEY_MAX = 100 };

struct lines {
    struct doc *d;
    struct node *map;
    int line;
    struct node *list;  /* that items go to; NULL: only a key may come */
    struct node **tail; /* where the next node is linked: of the list while one is open */
    size_t indent;      /* of the list's items, once there is one */
};

static bool is_word(char c)
{
    return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static size_t blanks(const char *s, size_t from, size_t n)
{
    while (from < n && s[from] == ' ')
        from++;
    return from;
}

static bool begins_plain(const char *s, size_t n)
{
    return n > 0 &&
           (is_word(*s) || *s == '/' || *s == '$' || (n > 1 && *s == '-' && is_word(s[1])));
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

static struct node *make(const struct lines *l, enum node_kind kind, size_t column)
{
    struct node *n = doc_new_node(l->d, kind);
    n->line = l->line;
    n->column = (int)column + 1;
    return n;
}

static struct node *make_scalar(const struct lines *l, const char *s, size_t n, size_t column)
{
    struct node *node = make(l, NODE_SCALAR, column);
    node->plain = true;
    node->text = doc_keep_text(l->d, s, n);
    return node;
}

/* "  - value" */
static bool take_item(struct lines *l, const char *s, size_t n, size_t indent)
{
    size_t value = blanks(s, indent + 1, n);
    size_t len = s[indent] == '-' && value > indent + 1 ? plain_length(s + value, n - value) : 0;
    if (!len || !l->list || (l->list->n && indent != l->indent))
        return false;
    if (!l->list->n) {
        l->list->line = l->line;
        l->list->column = (int)indent + 1;
        l->indent = indent;
    }
    *l->tail = make_scalar(l, s + value, len, value);
    l->tail = &(*l->tail)->next;
    l->list->n++;
    return true;
}

/* The name before the colon; 0 if there is none, or it was there before. */
static size_t key_length(const struct lines *l, const char *s, size_t n, const char **ret_name)
{
    size_t len = 0;
    while (len < n && len < KEY_MAX && is_word(s[len]))
        len++;
    if (!len || len == n || s[len] != ':')
        return 0;
    *ret_name = doc_keep_text(l->d, s, len);
    return node_find(l->map, *ret_name) ? 0 : len;
}

/* "key: value" or "key:" */
static bool take_key(struct lines *l, const char *s, size_t n)
{
    const char *name;
    size_t key = key_length(l, s, n, &name);
    size_t value = blanks(s, key + 1, n);
    size_t len = key && value > key + 1 ? plain_length(s + value, n - value) : 0;
    bool opens = value == n, empty_list = l->list && !l->list->n;
    if (!key || empty_list || (!opens && !len))
        return false;
    struct node *v = opens ? make(l, NODE_SEQ, 0) : make_scalar(l, s + value, len, value);
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

static bool take_line(struct lines *l, const char *s, size_t n)
{
    size_t indent = blanks(s, 0, n);
    if (indent == n || s[indent] == '#')
        return true;
    if (doc_count_nodes(l->d) >= DOC_MAX_NODES)
        return false;
    return indent ? take_item(l, s, n, indent) : take_key(l, s, n);
}

bool doclines_read(const char *text, size_t len, struct doc *d, struct node **ret)
{
    struct lines l = {.d = d};
    if (!len || !is_word(*text))
        return false;
    l.map = doc_new_node(d, NODE_MAP);
    l.map->line = l.map->column = 1;
    l.tail = &l.map->first;
    for (size_t at = 0; at < len;) {
        const char *stop = memchr(text + at, '\n', len - at);
        size_t n = stop ? (size_t)(stop - text) - at : len - at;
        l.line++;
        if (!take_line(&l, text + at, n))
            return false;
        at += n + 1;
    }
    if (l.list && !l.list->n)
        return false;
    *ret = l.map;
    return true;
}
