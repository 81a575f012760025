/* SPDX-License-Identifier: Apache-2.0 */
/* preset_fill.c - makes a JobSpec of a preset; see preset.h. JSON is written from the preset's
 * tree, with the values of the holes beside (NULL: the hole has none). */
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "core/preset/preset_holes.h"
#include "core/spec/spec_table.h"

/* values[i] is hole i's, NULL: it has none. */
static const struct node *preset_fill_value_of(const struct preset *p,
                                               const struct node *const *values,
                                               const char *name,
                                               size_t len)
{
    const struct preset_hole *h = preset_find_hole(p, name, len);
    return h ? values[h - p->holes] : NULL;
}

/* With the words of its holes in it; false: one of them has none. */
static bool fill_text(const struct preset *p,
                      const struct node *const *values,
                      const char *text,
                      struct buf *out)
{
    const char *name, *end, *at;
    size_t len;
    while ((at = preset_find_mark(text, &name, &len, &end))) {
        const struct node *v = preset_fill_value_of(p, values, name, len);
        if (!v || v->kind != NODE_SCALAR)
            return false;
        (void)buf_add(out, text, (size_t)(at - text)); /* overflow: out->failed, told at the end */
        (void)buf_adds(out, v->text);
        text = end;
    }
    (void)buf_adds(out, text);
    return true;
}

static void put_scalar(const struct preset *p,
                       const struct node *const *values,
                       const struct node *n,
                       struct jout *j,
                       const char *key)
{
    const char *name, *end;
    size_t len;
    const char *at = preset_find_mark(n->text, &name, &len, &end);
    if (!at) {
        node_to_json(n, j, key);
        return;
    }
    if (at == n->text && !*end) {
        const struct node *v = preset_fill_value_of(p, values, name, len);
        if (v)
            node_to_json(v, j, key);
        return;
    }
    struct buf text = BUF_INIT(DOC_MAX_BYTES);
    if (fill_text(p, values, n->text, &text))
        jout_str(j, key, buf_str(&text));
    j->out->failed = j->out->failed || text.failed;
    buf_release(&text);
}

static void put_filled(const struct preset *p,
                       const struct node *const *values,
                       const struct node *n,
                       struct jout *j,
                       const char *key)
{
    if (n->kind == NODE_SCALAR) {
        put_scalar(p, values, n, j, key);
        return;
    }
    bool map = n->kind == NODE_MAP;
    jout_open(j, key, map ? '{' : '[');
    for (const struct node *c = n->first; c; c = c->next)
        put_filled(p, values, c, j, map ? c->key : NULL);
    jout_close(j, map ? '}' : ']');
}

/* The preset's and then the given ones, each a list or one text. */
static void put_both(const struct preset *p,
                     const struct node *const *values,
                     const struct node *own,
                     const struct node *given,
                     struct jout *j)
{
    jout_open(j, own->key, '[');
    if (own->kind == NODE_SCALAR)
        put_scalar(p, values, own, j, NULL);
    for (const struct node *c = own->first; c; c = c->next)
        put_filled(p, values, c, j, NULL);
    if (given->kind == NODE_SCALAR && !node_is_null(given))
        node_to_json(given, j, NULL);
    for (const struct node *c = given->first; c; c = c->next)
        node_to_json(c, j, NULL);
    jout_close(j, ']');
}

static void preset_fill_put_env(const struct preset *p,
                                const struct node *const *values,
                                const struct node *own,
                                const struct node *given,
                                struct jout *j)
{
    jout_open(j, own->key, '{');
    for (const struct node *c = own->first; c; c = c->next)
        if (!node_find(given, c->key))
            put_filled(p, values, c, j, c->key);
    for (const struct node *c = given->first; c; c = c->next)
        node_to_json(c, j, c->key);
    jout_close(j, '}');
}

static void put_key(const struct preset *p,
                    const struct node *const *values,
                    const struct node *own,
                    const struct node *given,
                    struct jout *j)
{
    bool is_map = own->kind == NODE_MAP && given && given->kind == NODE_MAP;
    if (!given || preset_find_hole(p, own->key, strlen(own->key)))
        put_filled(p, values, own, j, own->key);
    else if (!strcmp(own->key, "overrides") && own->kind != NODE_MAP && given->kind != NODE_MAP)
        put_both(p, values, own, given, j);
    else if (!strcmp(own->key, "env") && is_map)
        preset_fill_put_env(p, values, own, given, j);
    else
        node_to_json(given, j, own->key);
}

static void put_spec(const struct preset *p,
                     const struct node *const *values,
                     const struct node *given,
                     struct buf *out)
{
    struct jout j = jout_begin(out);
    jout_open(&j, NULL, '{');
    for (const struct node *own = p->spec->first; own; own = own->next)
        put_key(p, values, own, node_find(given, own->key), &j);
    for (const struct node *c = given ? given->first : NULL; c; c = c->next)
        if (!node_find(p->spec, c->key) && strcmp(c->key, "preset") != 0 &&
            !preset_find_hole(p, c->key, strlen(c->key)))
            node_to_json(c, &j, c->key);
    jout_close(&j, '}');
}

/* ---- what is given ---- */

/* "checkpoint" for "checkpoint.keep_last". */
static bool is_spec_key(const char *name)
{
    size_t n = strlen(name);
    for (size_t i = 0; i < spec_keys_n; i++)
        if (!strncmp(spec_keys[i].name, name, n) &&
            (!spec_keys[i].name[n] || spec_keys[i].name[n] == '.'))
            return true;
    return false;
}

static void check_keys(const struct preset *p,
                       const char *name,
                       const struct node *given,
                       struct problems *ps)
{
    const char **names = xcalloc(p->n + spec_keys_n, sizeof(*names));
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++)
        names[n++] = p->holes[i].name;
    for (size_t i = 0; i < spec_keys_n; i++)
        names[n++] = spec_keys[i].name;
    for (const struct node *c = given->first; c; c = c->next) {
        if (preset_find_hole(p, c->key, strlen(c->key)) || is_spec_key(c->key))
            continue;
        const char *near = str_nearest(c->key, names, n);
        _cleanup_(freep) char *all = preset_list_holes(p);
        problems_add(ps, PROBLEM_ERROR, c->key, c->key_line, c->key_column, "preset_key_unknown",
                     MESSAGE_ARGS(MESSAGE_STR("key", c->key), MESSAGE_STR("preset", name),
                                  MESSAGE_STR("all", all), MESSAGE_STR("near", str_or(near, ""))));
    }
    free(names);
}

static void check_missing(const struct preset *p,
                          const char *name,
                          const struct node *const *values,
                          struct problems *ps)
{
    struct buf missing = BUF_INIT(PRESET_HOLES_MAX * (PRESET_NAME_MAX + 16));
    const char *first = NULL;
    for (size_t i = 0; i < p->n; i++) {
        if (values[i] || !p->holes[i].required)
            continue;
        (void)buf_addf(&missing, "%s%s", first ? ", " : "", p->holes[i].name); /* they fit */
        first = first ? first : p->holes[i].name;
    }
    if (first) {
        _cleanup_(freep) char *all = preset_list_holes(p);
        problems_add(ps, PROBLEM_ERROR, "preset", 0, 0, "holes_missing",
                     MESSAGE_ARGS(MESSAGE_STR("preset", name),
                                  MESSAGE_STR("missing", buf_str(&missing)),
                                  MESSAGE_STR("all", all), MESSAGE_STR("hole", first)));
    }
    buf_release(&missing);
}

static void choose_values(const struct preset *p,
                          const char *name,
                          const struct node *given,
                          const struct node **values,
                          struct problems *ps)
{
    for (size_t i = 0; i < p->n; i++) {
        const struct preset_hole *h = &p->holes[i];
        const struct node *v = node_find(given, h->name);
        if (!v || node_is_null(v))
            v = h->dflt;
        if (!v || node_is_null(v))
            continue;
        values[i] = v;
        if (!preset_is_of_type(h->type, v))
            problems_add(ps, PROBLEM_ERROR, h->name, v->line, v->column, "hole_not_of_type",
                         MESSAGE_ARGS(MESSAGE_STR("hole", h->name), MESSAGE_STR("preset", name),
                                      MESSAGE_STR("wants", preset_type_sentence(h->type)),
                                      MESSAGE_STR("value", preset_shown(v)),
                                      MESSAGE_STR("doc", str_or(h->description, ""))));
    }
}

static int end_fill(const struct buf *out, size_t errors, struct problems *ps)
{
    if (out->failed)
        problems_add(ps, PROBLEM_ERROR, "preset", 0, 0, "preset_result_large", MESSAGE_NO_ARGS);
    return ps->errors > errors ? ERR_BAD_SPEC : 0;
}

int preset_fill(const struct preset *p,
                const char *name,
                const struct node *given,
                struct buf *out,
                struct problems *ps)
{
    size_t errors = ps->errors;
    const struct node **values = xcalloc(p->n + 1, sizeof(const struct node *));
    choose_values(p, name, given, values, ps);
    check_keys(p, name, given, ps);
    check_missing(p, name, values, ps);
    if (ps->errors == errors)
        put_spec(p, values, given, out);
    free(values);
    return end_fill(out, errors, ps);
}

int preset_sample(const struct preset *p, struct buf *out, struct problems *ps)
{
    static const struct node words[] = {
        [PRESET_TEXT] = {.kind = NODE_SCALAR, .text = "x"},
        [PRESET_INTEGER] = {.kind = NODE_SCALAR, .text = "1", .plain = true},
        [PRESET_NUMBER] = {.kind = NODE_SCALAR, .text = "1", .plain = true},
        [PRESET_BOOLEAN] = {.kind = NODE_SCALAR, .text = "true", .plain = true},
        [PRESET_PATH] = {.kind = NODE_SCALAR, .text = "${SHARED_ROOT}/x"},
        [PRESET_MODEL] = {.kind = NODE_SCALAR, .text = "x/y"},
        [PRESET_DATA] = {.kind = NODE_SCALAR, .text = "${SHARED_ROOT}/x.parquet"},
    };
    size_t errors = ps->errors;
    const struct node **values = xcalloc(p->n + 1, sizeof(const struct node *));
    for (size_t i = 0; i < p->n; i++) {
        const struct preset_hole *h = &p->holes[i];
        if (h->example && !node_is_null(h->example))
            values[i] = h->example;
        else if (h->dflt && !node_is_null(h->dflt))
            values[i] = h->dflt;
        else if (h->required)
            values[i] = &words[h->type];
    }
    put_spec(p, values, NULL, out);
    free(values);
    return end_fill(out, errors, ps);
}
