/* SPDX-License-Identifier: Apache-2.0 */
/* conf.c - reads a mapping by a table of dotted keys; see conf.h.
 *
 * Defaults go first and through the same parsers as input, so that a default
 * that its own row would refuse shows in the first test. Unknown keys are found
 * by walking the input and asking whether any row lies at or below each path. */
#include "base/conf.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/text.h"

enum { PATH_MAX_BYTES = 256 };

static void *at(const struct field *k, void *out)
{
    return (char *)out + k->offset;
}

/* ---- one value ---- */

static int check_bounds(const struct field *k, double v, const char *text, struct err *err)
{
    if ((k->min == 0 && k->max == 0) || (v >= k->min && v <= k->max))
        return 0;
    return err_set(err, ERR_BAD_SPEC, "'%.60s' is outside %.15g to %.15g%s", text, k->min, k->max,
                   k->type == FIELD_SPAN ? " seconds" : "");
}

static int read_number(const struct field *k, const char *text, void *p, struct err *err)
{
    int64_t i = 0;
    double d = 0;
    usec_t span = 0;
    uint64_t bytes = 0;
    int r;
    switch (k->type) {
    case FIELD_INT:
        r = str_to_int(text, INT64_MIN, INT64_MAX, &i, err);
        d = (double)i;
        break;
    case FIELD_SPAN:
        r = span_from_string(text, &span, err);
        d = (double)span / (double)USEC_SEC;
        break;
    case FIELD_SIZE:
        r = size_from_string(text, &bytes, err);
        d = (double)bytes;
        break;
    default:
        r = str_to_real(text, &d, err);
    }
    if (r < 0 || (r = check_bounds(k, d, text, err)) < 0)
        return r;
    if (k->type == FIELD_INT)
        *(int64_t *)p = i;
    else if (k->type == FIELD_SPAN)
        *(usec_t *)p = span;
    else if (k->type == FIELD_SIZE)
        *(uint64_t *)p = bytes;
    else
        *(double *)p = d;
    return 0;
}

static int read_bool(const char *text, bool *p, struct err *err)
{
    static const char *const yes[] = {"true", "True", "TRUE"};
    static const char *const no[] = {"false", "False", "FALSE"};
    for (size_t i = 0; i < array_len(yes); i++) {
        if (!strcmp(text, yes[i]) || !strcmp(text, no[i])) {
            *p = !strcmp(text, yes[i]);
            return 0;
        }
    }
    return err_set(err, ERR_BAD_SPEC, "'%.60s' is neither true nor false", text);
}

static int read_enum(const struct field *k, const char *text, int *p, struct err *err)
{
    char all[256] = "";
    for (int i = 0; k->names[i]; i++) {
        if (!strcmp(text, k->names[i])) {
            *p = i;
            return 0;
        }
        size_t n = strlen(all);
        text_printf_to(all + n, sizeof(all) - n, "%s%s", n ? ", " : "", k->names[i]);
    }
    return err_set(err, ERR_BAD_SPEC, "'%.60s' is not one of %s", text, all);
}

static int conf_read_text(const struct field *k, const char *text, void *p, struct err *err)
{
    switch (k->type) {
    case FIELD_STR:
        set_str(p, text);
        return 0;
    case FIELD_BOOL:
        return read_bool(text, p, err);
    case FIELD_ENUM:
        return read_enum(k, text, p, err);
    case FIELD_STRV:
        strv_release(p);
        strv_add(p, text);
        return 0;
    case FIELD_PAIRS:
    case FIELD_NODE:
        return err_set(err, ERR_BAD_SPEC, "a mapping is expected");
    default:
        return read_number(k, text, p, err);
    }
}

/* ---- one node ---- */

static void conf_complain(struct problems *ps,
                          const char *path,
                          const struct node *n,
                          const struct err *err)
{
    problems_add(ps, PROBLEM_ERROR, path, n->line, n->column, NULL, "%s", err->text);
}

static const char *kind_word(const struct node *n)
{
    return n->kind == NODE_MAP ? "a mapping" : n->kind == NODE_SEQ ? "a list" : "a value";
}

static void read_strv(const char *path, const struct node *n, struct strv *sv, struct problems *ps)
{
    strv_release(sv);
    for (const struct node *c = n->first; c; c = c->next) {
        if (c->kind == NODE_SCALAR)
            strv_add(sv, c->text);
        else
            problems_add(ps, PROBLEM_ERROR, path, c->line, c->column, NULL,
                         "the list holds %s where a text is expected", kind_word(c));
    }
}

static void read_pairs(const char *path, const struct node *n, struct pairs *p, struct problems *ps)
{
    pairs_release(p);
    for (const struct node *c = n->first; c; c = c->next) {
        if (c->kind == NODE_SCALAR)
            pairs_set(p, c->key, c->text);
        else
            problems_add(ps, PROBLEM_ERROR, path, c->line, c->column, NULL,
                         "'%.60s' is %s where a text is expected", c->key, kind_word(c));
    }
}

static void read_node(const struct field *k, const struct node *n, void *out, struct problems *ps)
{
    struct err err = {0};
    if (k->type == FIELD_NODE) {
        *(const struct node **)at(k, out) = n;
    } else if (node_is_null(n)) {
        if (k->flags & FIELD_REQUIRED)
            problems_add(ps, PROBLEM_ERROR, k->name, n->line, n->column, NULL,
                         "a value is missing");
    } else if (k->type == FIELD_STRV && n->kind == NODE_SEQ) {
        read_strv(k->name, n, at(k, out), ps);
    } else if (k->type == FIELD_PAIRS && n->kind == NODE_MAP) {
        read_pairs(k->name, n, at(k, out), ps);
    } else if (n->kind != NODE_SCALAR) {
        problems_add(ps, PROBLEM_ERROR, k->name, n->line, n->column, NULL,
                     "%s stands where a single value is expected", kind_word(n));
    } else if (conf_read_text(k, n->text, at(k, out), &err) < 0) {
        conf_complain(ps, k->name, n, &err);
    }
    if (k->flags & FIELD_ACCEPTED)
        problems_add(ps, PROBLEM_WARNING, k->name, n->key_line, n->key_column, NULL,
                     "accepted, but this version does not act on it");
}

/* ---- the whole mapping ---- */

/* A key as long as len whose text is name's beginning. */
enum known { KNOWN_NOT, KNOWN_ROW, KNOWN_PARENT };

static enum known know(const struct field *keys, size_t n, const char *path)
{
    size_t len = strlen(path);
    for (size_t i = 0; i < n; i++) {
        if (keys[i].name[0] != path[0] || strncmp(keys[i].name, path, len) != 0)
            continue;
        if (!keys[i].name[len])
            return KNOWN_ROW;
        if (keys[i].name[len] == '.')
            return KNOWN_PARENT;
    }
    return KNOWN_NOT;
}

static void report_unknown(const struct field *keys,
                           size_t n,
                           const char *prefix,
                           const struct node *c,
                           struct problems *ps)
{
    /* Candidates: the part of each row's name that follows the prefix. */
    const char **names = xcalloc(n, sizeof(*names));
    size_t m = 0, len = strlen(prefix);
    for (size_t i = 0; i < n; i++)
        if (!strncmp(keys[i].name, prefix, len))
            names[m++] = keys[i].name + len;
    const char *near = str_nearest(c->key, names, m);
    _cleanup_(freep) char *hint = near ? xasprintf("did you mean '%s'?", near) : NULL;
    _cleanup_(freep) char *field = xasprintf("%s%s", prefix, c->key);
    problems_add(ps, PROBLEM_ERROR, field, c->key_line, c->key_column, hint, "unknown key '%.60s'",
                 c->key);
    free(names);
}

static void find_unknown(const struct field *keys,
                         size_t n,
                         const char *prefix,
                         const struct node *map,
                         struct problems *ps)
{
    for (const struct node *c = map->first; c; c = c->next) {
        char path[PATH_MAX_BYTES];
        size_t head = strlen(prefix), len = head + strlen(c->key);
        bool fits = len < sizeof(path) - 1;
        if (fits) {
            memcpy(path, prefix, head);
            memcpy(path + head, c->key, len - head + 1);
        }
        enum known k = fits ? know(keys, n, path) : KNOWN_NOT;
        if (k == KNOWN_NOT) {
            report_unknown(keys, n, prefix, c, ps);
        } else if (k == KNOWN_PARENT && c->kind == NODE_MAP) {
            path[len] = '.';
            path[len + 1] = 0;
            find_unknown(keys, n, path, c, ps);
        } else if (k == KNOWN_PARENT && !node_is_null(c)) {
            problems_add(ps, PROBLEM_ERROR, path, c->line, c->column, NULL,
                         "%s stands where a mapping is expected", kind_word(c));
        }
    }
}

static void set_default(const struct field *k, void *out)
{
    int r = k->dflt ? conf_read_text(k, k->dflt, at(k, out), NULL) : 0;
    assert(r == 0); /* a default that its own row refuses is our bug */
    (void)r;
}

void conf_read(const struct field *keys,
               size_t n,
               const struct node *root,
               void *out,
               struct problems *ps)
{
    for (size_t i = 0; i < n; i++)
        set_default(&keys[i], out);
    if (root && root->kind != NODE_MAP) {
        problems_add(ps, PROBLEM_ERROR, "", root->line, root->column, "write 'key: value' lines",
                     "%s stands where a mapping is expected", kind_word(root));
        root = NULL;
    }
    for (size_t i = 0; i < n; i++) {
        const struct node *v = root ? node_find_path(root, keys[i].name) : NULL;
        if (v)
            read_node(&keys[i], v, out, ps);
        else if (keys[i].flags & FIELD_REQUIRED)
            problems_add(ps, PROBLEM_ERROR, keys[i].name, 0, 0, keys[i].doc, "'%s' is missing",
                         keys[i].name);
    }
    if (root)
        find_unknown(keys, n, "", root, ps);
}

void conf_release(const struct field *keys, size_t n, void *out)
{
    const struct field_table t = {.rows = keys, .n = n};
    field_release(&t, out);
}

void conf_read_table(const struct field_table *t,
                     unsigned which,
                     bool is_change,
                     const struct node *root,
                     void *out,
                     struct problems *ps)
{
    size_t n;
    _cleanup_(freep) struct field *rows = field_flatten(t, which, &n);
    for (size_t i = 0; is_change && i < n; i++) {
        rows[i].dflt = NULL;
        rows[i].flags &= ~(unsigned)FIELD_REQUIRED;
    }
    conf_read(rows, n, root, out, ps);
}
