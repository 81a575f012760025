/* SPDX-License-Identifier: Apache-2.0 */
/* conf.c - reads a mapping by a table of dotted keys; see conf.h.
 *
 * Defaults go first and through the same parsers as input, so that a default
 * that its own row would refuse shows in the first test. Unknown keys are found
 * by walking the input and asking whether any row lies at or below each path. */
#include "base/doc/conf.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

enum { PATH_MAX_BYTES = 256, JSON_MAX = 256 << 10 };

static void *at(const struct field *k, void *out)
{
    return (char *)out + k->offset;
}

/* ---- one value ---- */

static int check_bounds(const struct field *k, double v, const char *text, struct err *err)
{
    if ((k->min == 0 && k->max == 0) || (v >= k->min && v <= k->max))
        return 0;
    return message_refuse(err, ERR_BAD_SPEC,
                          k->type == FIELD_SPAN ? "outside_span" : "outside_bounds",
                          MESSAGE_ARGS(MESSAGE_STR("text", text), MESSAGE_NUM("min", k->min),
                                       MESSAGE_NUM("max", k->max)));
}

static int read_number(const struct field *k, const char *text, void *p, struct err *err)
{
    int64_t i = 0;
    const char *otherwise;
    double d = 0;
    usec_t span = 0;
    uint64_t bytes = 0;
    int r;
    switch (k->type) {
    case FIELD_INT:
        r = str_to_int(text, INT64_MIN, INT64_MAX, &i, NULL);
        otherwise = "not_whole";
        d = (double)i;
        break;
    case FIELD_SPAN:
        r = span_from_string(text, &span, NULL);
        otherwise = "not_span";
        d = (double)span / (double)USEC_SEC;
        break;
    case FIELD_SIZE:
        r = size_from_string(text, &bytes, NULL);
        otherwise = "not_size";
        d = (double)bytes;
        break;
    default:
        r = str_to_real(text, &d, NULL);
        otherwise = "not_number";
    }
    if (r < 0)
        return message_refuse(err, ERR_BAD_SPEC, otherwise,
                              MESSAGE_ARGS(MESSAGE_STR("text", text)));
    r = check_bounds(k, d, text, err);
    if (r < 0)
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
    return message_refuse(err, ERR_BAD_SPEC, "not_boolean",
                          MESSAGE_ARGS(MESSAGE_STR("text", text)));
}

static int refuse_enum(const struct field *k, const char *text, struct err *err)
{
    char all[256] = "";
    for (int i = 0; k->names[i]; i++) {
        size_t n = strlen(all);
        text_printf_to(all + n, sizeof(all) - n, "%s%s", n ? ", " : "", k->names[i]);
    }
    return message_refuse(err, ERR_BAD_SPEC, "not_one_of",
                          MESSAGE_ARGS(MESSAGE_STR("text", text), MESSAGE_STR("all", all)));
}

static int read_enum(const struct field *k, const char *text, int *p, struct err *err)
{
    for (int i = 0; k->names[i]; i++)
        if (!strcmp(text, k->names[i])) {
            *p = i;
            return 0;
        }
    return refuse_enum(k, text, err);
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
    case FIELD_JSON:
        return message_refuse(err, ERR_BAD_SPEC, "mapping_expected", MESSAGE_NO_ARGS);
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
    problems_add_err(ps, PROBLEM_ERROR, path, n->line, n->column, err);
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
            problems_add(ps, PROBLEM_ERROR, path, c->line, c->column, "list_holds",
                         MESSAGE_ARGS(MESSAGE_STR("shape", kind_word(c))));
    }
}

static void read_pairs(const char *path, const struct node *n, struct pairs *p, struct problems *ps)
{
    pairs_release(p);
    for (const struct node *c = n->first; c; c = c->next) {
        if (node_is_null(c) && *c->text) /* "key:" alone is an empty text */
            problems_add(ps, PROBLEM_ERROR, path, c->line, c->column, "pair_null",
                         MESSAGE_ARGS(MESSAGE_STR("key", c->key), MESSAGE_STR("word", c->text)));
        else if (c->kind == NODE_SCALAR)
            pairs_set(p, c->key, c->text);
        else
            problems_add(
                ps, PROBLEM_ERROR, path, c->line, c->column, "not_text",
                MESSAGE_ARGS(MESSAGE_STR("key", c->key), MESSAGE_STR("shape", kind_word(c))));
    }
}

/* A list, as others write it: "A=1", {A: 1}, {name: A, value: 1}. The first of it is shown as it is
 * written here. */
static void refuse_pairs_form(const char *path, const struct node *n, struct problems *ps)
{
    const struct node *one = n->kind == NODE_SEQ && n->first ? n->first : n;
    const struct node *name = node_find(one, "name"), *value = node_find(one, "value");
    _cleanup_(freep) char *first = NULL;
    const char *key = "NAME", *text = "value";
    if (name && value) {
        key = name->text;
        text = value->text;
    } else if (one->kind == NODE_MAP && one->first) {
        key = one->first->key;
        text = one->first->text;
    } else if (one->kind == NODE_SCALAR && strchr(one->text, '=')) {
        text = strchr(one->text, '=') + 1;
        first = xstrndup(one->text, (size_t)(text - 1 - one->text));
        key = first;
    }
    problems_add(ps, PROBLEM_ERROR, path, n->line, n->column, "pairs_form",
                 MESSAGE_ARGS(MESSAGE_STR("shape", kind_word(n)), MESSAGE_STR("field", path),
                              MESSAGE_STR("name", str_or(key, "NAME")),
                              MESSAGE_STR("value", str_or(text, "value"))));
}

/* As text, whatever is in it: who reads the row looks. */
static void read_json(const struct field *k, const struct node *n, char **p, struct problems *ps)
{
    struct buf text = BUF_INIT(JSON_MAX);
    struct jout j = jout_begin(&text);
    node_to_json(n, &j, NULL);
    if (text.failed) {
        problems_add(ps, PROBLEM_ERROR, k->name, n->line, n->column, "value_too_long",
                     MESSAGE_ARGS(MESSAGE_NUM("most", JSON_MAX)));
        buf_release(&text);
        return;
    }
    freep(p);
    *p = buf_take(&text);
}

static void read_node(const struct field *k, const struct node *n, void *out, struct problems *ps)
{
    struct err err = {0};
    if (k->type == FIELD_NODE) {
        *(const struct node **)at(k, out) = n;
    } else if (node_is_null(n)) {
        if (k->flags & FIELD_REQUIRED)
            problems_add(ps, PROBLEM_ERROR, k->name, n->line, n->column, "no_value",
                         MESSAGE_NO_ARGS);
    } else if (k->type == FIELD_STRV && n->kind == NODE_SEQ) {
        read_strv(k->name, n, at(k, out), ps);
    } else if (k->type == FIELD_JSON && n->kind == NODE_MAP) {
        read_json(k, n, at(k, out), ps);
    } else if (k->type == FIELD_JSON) {
        problems_add(ps, PROBLEM_ERROR, k->name, n->line, n->column, "mapping_expected",
                     MESSAGE_NO_ARGS);
    } else if (k->type == FIELD_PAIRS && n->kind == NODE_MAP) {
        read_pairs(k->name, n, at(k, out), ps);
    } else if (k->type == FIELD_PAIRS) {
        refuse_pairs_form(k->name, n, ps);
    } else if (n->kind != NODE_SCALAR) {
        problems_add(ps, PROBLEM_ERROR, k->name, n->line, n->column, "not_single",
                     MESSAGE_ARGS(MESSAGE_STR("shape", kind_word(n))));
    } else if (conf_read_text(k, n->text, at(k, out), &err) < 0) {
        conf_complain(ps, k->name, n, &err);
    }
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
    _cleanup_(freep) char *field = xasprintf("%s%s", prefix, c->key);
    problems_add(ps, PROBLEM_ERROR, field, c->key_line, c->key_column, "unknown_key",
                 MESSAGE_ARGS(MESSAGE_STR("key", c->key), MESSAGE_STR("near", str_or(near, ""))));
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
            problems_add(ps, PROBLEM_ERROR, path, c->line, c->column, "not_mapping",
                         MESSAGE_ARGS(MESSAGE_STR("shape", kind_word(c))));
        }
    }
}

static void set_default(const struct field *k, void *out)
{
    int r = k->dflt ? conf_read_text(k, k->dflt, at(k, out), NULL) : 0;
    assert(r == 0); /* a default that its own row refuses is our bug */
    (void)r;
}

/* A bit for the two letters with which a name begins, up to its first dot. */
static uint64_t conf_mark(const char *name)
{
    unsigned second = name[0] && name[1] != '.' ? (unsigned char)name[1] : 0;
    return UINT64_C(1) << (((unsigned char)name[0] * 7 + second) & 63);
}

/* The marks of all keys of the mapping: most rows of a table stand in no document, and are not
 * looked for. */
static uint64_t conf_marks(const struct node *map)
{
    uint64_t marks = 0;
    for (const struct node *c = map ? map->first : NULL; c; c = c->next)
        marks |= conf_mark(c->key);
    return marks;
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
        problems_add(ps, PROBLEM_ERROR, "", root->line, root->column, "body_not_mapping",
                     MESSAGE_ARGS(MESSAGE_STR("shape", kind_word(root))));
        root = NULL;
    }
    uint64_t marks = conf_marks(root);
    for (size_t i = 0; i < n; i++) {
        const struct node *v =
            marks & conf_mark(keys[i].name) ? node_find_path(root, keys[i].name) : NULL;
        if (v)
            read_node(&keys[i], v, out, ps);
        else if (keys[i].flags & FIELD_REQUIRED)
            problems_add(ps, PROBLEM_ERROR, keys[i].name, 0, 0, "key_missing",
                         MESSAGE_ARGS(MESSAGE_STR("key", keys[i].name),
                                      MESSAGE_STR("doc", str_or(keys[i].doc, ""))));
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
