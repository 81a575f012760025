/* SPDX-License-Identifier: Apache-2.0 */
/* specdiff.c - see specdiff.h. Keys stand sorted, so that two specs are compared in one walk. */
#include "core/spec/specdiff.h"

#include <stdlib.h>
#include <string.h>

#include "base/doc/doc.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/spec/respec.h"

/* The keys of one spec hold this much at most: each begins with those above it, so that a long one
 * with many below it would be many times the spec. */
enum { SPECKEYS_BYTES_MAX = 4 * DOC_MAX_BYTES };

struct speckey {
    char *key, *value;
    bool is_text; /* it stands for itself, whatever it looks like */
    size_t at;    /* which one it was */
};

struct speckeys {
    struct speckey *v;
    size_t n, cap;
    size_t bytes; /* of the keys */
};

void speckeys_free(struct speckeys *k)
{
    for (size_t i = 0; k && i < k->n; i++) {
        free(k->v[i].key);
        free(k->v[i].value);
    }
    if (k)
        free(k->v);
    free(k);
}

/* ---- reading ---- */

static void speckeys_add(struct speckeys *k, char *taken_key, char *taken_value, bool is_text)
{
    if (k->n == k->cap) {
        k->cap = k->cap ? 2 * k->cap : 64;
        k->v = xrealloc(k->v, k->cap, sizeof(*k->v));
    }
    k->v[k->n] =
        (struct speckey){.key = taken_key, .value = taken_value, .is_text = is_text, .at = k->n};
    k->n++;
}

/* A plain scalar as what it means, any other as it stands: a retry is written as JSON. */
static char *speckeys_value(const struct node *n, bool is_text)
{
    if (n->kind == NODE_SCALAR && (!n->plain || is_text))
        return xstrdup(n->text);
    struct buf out = BUF_INIT(4 * (size_t)DOC_MAX_BYTES);
    struct jout j = jout_begin(&out);
    node_to_json(n, &j, NULL);
    if (n->kind == NODE_SCALAR && out.len && buf_str(&out)[0] == '"') {
        buf_release(&out);
        return xstrdup(n->text);
    }
    return buf_take(&out);
}

static void speckeys_add_override(struct speckeys *k, const char *text)
{
    _cleanup_(freep) char *key = respec_override_key(text);
    const char *value = *text == '~' ? "~" : respec_override_value(text);
    speckeys_add(k, xasprintf("overrides.%s", key), xstrdup(value), false);
}

static void speckeys_walk(struct speckeys *k, const struct node *n, const char *path)
{
    bool is_top = !*path;
    bool is_env = !strcmp(path, "env") || !strcmp(path, "runtime_env.env_vars");
    for (const struct node *c = n->first; c; c = c->next) {
        _cleanup_(freep) char *place = xasprintf("%s%s%s", path, is_top ? "" : ".", c->key);
        k->bytes += strlen(place);
        if (k->bytes > SPECKEYS_BYTES_MAX)
            return;
        if ((is_top && !strcmp(c->key, "submission_id")) || node_is_null(c))
            continue;
        if (c->kind == NODE_MAP)
            speckeys_walk(k, c, place); /* a doc is not deep */
        else if (!strcmp(place, "overrides") && c->kind == NODE_SEQ)
            for (const struct node *o = c->first; o; o = o->next)
                speckeys_add_override(k, str_or(o->text, ""));
        else
            speckeys_add(k, xstrdup(place), speckeys_value(c, is_env),
                         is_env || (c->kind == NODE_SCALAR && !c->plain));
    }
}

static int speckeys_compare(const void *a, const void *b)
{
    const struct speckey *x = a, *y = b;
    int c = strcmp(x->key, y->key);
    return c ? c : (x->at > y->at) - (x->at < y->at);
}

/* Where a key is given twice the last one counts, as it does for Hydra. */
static void speckeys_sort(struct speckeys *k)
{
    size_t n = 0;
    if (k->n)
        qsort(k->v, k->n, sizeof(*k->v), speckeys_compare);
    for (size_t i = 0; i < k->n; i++) {
        if (i + 1 < k->n && !strcmp(k->v[i].key, k->v[i + 1].key)) {
            free(k->v[i].key);
            free(k->v[i].value);
        } else {
            k->v[n++] = k->v[i];
        }
    }
    k->n = n;
}

struct speckeys *speckeys_new(const char *text)
{
    _cleanup_(doc_freep) struct doc *d = NULL;
    struct problems ps = {0};
    int r = doc_parse(text, strlen(text), false, &d, &ps);
    problems_release(&ps);
    const struct node *root = r == 0 ? doc_root(d) : NULL;
    if (!root || root->kind != NODE_MAP || !root->first)
        return NULL;
    struct speckeys *k = xcalloc(1, sizeof(*k));
    speckeys_walk(k, root, "");
    if (k->bytes > SPECKEYS_BYTES_MAX) {
        speckeys_free(k);
        return NULL;
    }
    speckeys_sort(k);
    return k;
}

/* ---- comparing ---- */

/* A fraction has many spellings. */
static bool speckey_is_real(const struct speckey *k, double *ret)
{
    return !k->is_text && strpbrk(k->value, ".eE") && str_to_real(k->value, ret, NULL) == 0;
}

static bool speckey_is_same(const struct speckey *x, const struct speckey *y)
{
    double a, b;
    if (!strcmp(x->value, y->value))
        return true;
    return speckey_is_real(x, &a) && speckey_is_real(y, &b) && !(a < b) && !(a > b);
}

int speckeys_diff(const struct speckeys *old, const struct speckeys *new, struct buf *changes)
{
    struct jout j = jout_begin(changes);
    size_t a = 0, b = 0;
    int n = 0;
    jout_open(&j, NULL, '[');
    while (!changes->failed) {
        const struct speckey *x = a < old->n ? &old->v[a] : NULL;
        const struct speckey *y = b < new->n ? &new->v[b] : NULL;
        if (!x && !y)
            break;
        int c = !x ? 1 : !y ? -1 : strcmp(x->key, y->key);
        a += c <= 0;
        b += c >= 0;
        if (c == 0 && speckey_is_same(x, y))
            continue;
        respec_tell_edit(&j, c <= 0 ? x->key : y->key, c <= 0 ? x->value : NULL,
                         c >= 0 ? y->value : NULL);
        n++;
    }
    jout_close(&j, ']');
    return n;
}
