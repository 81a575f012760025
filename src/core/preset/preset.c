/* SPDX-License-Identifier: Apache-2.0 */
/* preset.c - see preset.h. Reads a preset and checks it: each hole, each mark, and what becomes of
 * it with a sample in each hole. It keeps the tree of its text. */
#include "core/preset/preset.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/doc/conf.h"
#include "base/message.h"
#include "base/str.h"
#include "core/preset/preset_holes.h"
#include "core/spec/spec.h"

static const char *const type_names[] = {
#define X(e, word) word,
    PRESET_TYPES(X)
#undef X
        NULL};
static_assert(array_len(type_names) == PRESET_TYPES_COUNT + 1, "one word per type");

/* clang-format off */
static const struct field preset_keys[] = {
    {.name = "description", .type = FIELD_STR, .offset = offsetof(struct preset, description),
     .doc = "one line for people"},
    {.name = "holes", .type = FIELD_NODE, .offset = offsetof(struct preset, given_holes),
     .doc = "what is to be filled in, by name"},
    {.name = "spec", .type = FIELD_NODE, .offset = offsetof(struct preset, spec),
     .flags = FIELD_REQUIRED, .doc = "a JobSpec in which ${hole:NAME} stands for a hole"},
};
static const struct field hole_keys[] = {
    {.name = "type", .type = FIELD_ENUM, .offset = offsetof(struct preset_hole, type), .dflt = "text",
     .names = type_names, .doc = "what it takes"},
    {.name = "required", .type = FIELD_BOOL, .offset = offsetof(struct preset_hole, required),
     .dflt = "false", .doc = "whether it must be given"},
    {.name = "default", .type = FIELD_NODE, .offset = offsetof(struct preset_hole, dflt),
     .doc = "its value if it is not given"},
    {.name = "example", .type = FIELD_NODE, .offset = offsetof(struct preset_hole, example),
     .doc = "what one may give"},
    {.name = "description", .type = FIELD_STR, .offset = offsetof(struct preset_hole, description),
     .doc = "one line for people"},
};
/* clang-format on */

void preset_free(struct preset *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n; i++)
        free(p->holes[i].description);
    free(p->holes);
    free(p->description);
    doc_free(p->doc);
    free(p);
}

/* ---- names ---- */

int preset_check_name(const char *name, struct err *err)
{
    size_t n = strlen(name);
    bool ok = n > 0 && n <= PRESET_NAME_MAX && isalnum((unsigned char)*name);
    for (const char *s = name; ok && *s; s++)
        ok = islower((unsigned char)*s) || isdigit((unsigned char)*s) || strchr("_.-", *s);
    return ok ? 0
              : message_refuse(err, ERR_BAD_SPEC, "bad_name",
                               MESSAGE_ARGS(MESSAGE_STR("noun", "preset"),
                                            MESSAGE_STR("name", name),
                                            MESSAGE_NUM("most", PRESET_NAME_MAX)));
}

static bool is_hole_name(const char *name)
{
    size_t n = strlen(name);
    return n > 0 && n <= PRESET_NAME_MAX && islower((unsigned char)*name) &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == n;
}

/* ---- reading ---- */

/* Fields that conf_read() told as "type" are "holes.lr.type". */
static void preset_put_path(struct problems *ps, size_t from, const char *name)
{
    for (size_t i = from; i < ps->n; i++) {
        char *old = ps->v[i].field;
        ps->v[i].field = xasprintf("holes.%s%s%s", name, *old ? "." : "", old);
        free(old);
    }
}

static void preset_check_value(const struct preset_hole *h,
                               const char *what,
                               const struct node *v,
                               struct problems *ps)
{
    _cleanup_(freep) char *field = xasprintf("holes.%s.%s", h->name, what);
    if (v && !node_is_null(v) && !preset_is_of_type(h->type, v))
        problems_add(ps, PROBLEM_ERROR, field, v->line, v->column, "hole_wrong_value",
                     MESSAGE_ARGS(MESSAGE_STR("is", what), MESSAGE_STR("hole", h->name),
                                  MESSAGE_STR("wants", preset_type_sentence(h->type)),
                                  MESSAGE_STR("value", preset_shown(v))));
}

static void read_hole(struct preset *p, const struct node *n, struct problems *ps)
{
    struct preset_hole *h = &p->holes[p->n++];
    size_t before = ps->n, errors = ps->errors;
    h->name = n->key;
    conf_read(hole_keys, array_len(hole_keys), n, h, ps);
    preset_put_path(ps, before, n->key);
    if (ps->errors > errors)
        return;
    _cleanup_(freep) char *field = xasprintf("holes.%s", n->key);
    if (!is_hole_name(n->key))
        problems_add(ps, PROBLEM_ERROR, field, n->key_line, n->key_column, "hole_name",
                     MESSAGE_ARGS(MESSAGE_STR("name", n->key)));
    if (!strcmp(n->key, "preset"))
        problems_add(ps, PROBLEM_ERROR, field, n->key_line, n->key_column, "hole_called_preset",
                     MESSAGE_NO_ARGS);
    if (h->required && h->dflt && !node_is_null(h->dflt))
        problems_add(ps, PROBLEM_ERROR, field, n->key_line, n->key_column, "hole_required_default",
                     MESSAGE_ARGS(MESSAGE_STR("hole", h->name)));
    preset_check_value(h, "default", h->dflt, ps);
    preset_check_value(h, "example", h->example, ps);
}

static void read_holes(struct preset *p, struct problems *ps)
{
    const struct node *holes = p->given_holes;
    if (!holes || node_is_null(holes))
        return;
    if (holes->kind != NODE_MAP || holes->n > PRESET_HOLES_MAX) {
        problems_add(ps, PROBLEM_ERROR, "holes", holes->line, holes->column, "holes_not_mapping",
                     MESSAGE_ARGS(MESSAGE_NUM("most", PRESET_HOLES_MAX)));
        return;
    }
    p->holes = xcalloc(holes->n + 1, sizeof(*p->holes));
    for (const struct node *n = holes->first; n; n = n->next)
        read_hole(p, n, ps);
}

static void preset_no_hole(const struct node *at,
                           const char *name,
                           size_t len,
                           const char *all,
                           struct problems *ps)
{
    _cleanup_(freep) char *hole = xstrndup(name, len);
    problems_add(ps, PROBLEM_ERROR, "spec", at->line, at->column, "hole_unknown",
                 MESSAGE_ARGS(MESSAGE_STR("hole", hole), MESSAGE_STR("all", all)));
}

static void check_marks(struct preset *p, const struct node *n, struct problems *ps)
{
    const char *name, *end, *rest = n->text;
    size_t len;
    for (const struct node *c = n->first; c; c = c->next)
        check_marks(p, c, ps);
    if (n->kind != NODE_SCALAR)
        return;
    for (; preset_find_mark(rest, &name, &len, &end); rest = end) {
        struct preset_hole *h = preset_find_hole(p, name, len);
        _cleanup_(freep) char *all = preset_list_holes(p);
        if (h)
            h->is_used = true;
        else
            preset_no_hole(n, name, len, all, ps);
    }
}

static void preset_check_spec(struct preset *p, struct problems *ps)
{
    if (p->spec->kind != NODE_MAP) {
        problems_add(ps, PROBLEM_ERROR, "spec", p->spec->line, p->spec->column,
                     "preset_spec_not_mapping", MESSAGE_NO_ARGS);
        return;
    }
    const struct node *other = node_find(p->spec, "preset");
    if (other)
        problems_add(ps, PROBLEM_ERROR, "spec.preset", other->key_line, other->key_column,
                     "preset_of_preset", MESSAGE_NO_ARGS);
    check_marks(p, p->spec, ps);
    for (size_t i = 0; i < p->n; i++)
        if (!p->holes[i].is_used) {
            _cleanup_(freep) char *field = xasprintf("holes.%s", p->holes[i].name);
            problems_add(ps, PROBLEM_ERROR, field, 0, 0, "hole_unused",
                         MESSAGE_ARGS(MESSAGE_STR("hole", p->holes[i].name)));
        }
}

/* What spec_read() says of the sample, at the preset's own places. */
static void check_sample(const struct preset *p, struct problems *ps)
{
    struct problems found = {0};
    struct doc *d = NULL;
    struct spec spec = {0};
    struct buf out = BUF_INIT(DOC_MAX_BYTES);
    bool is_good = preset_sample(p, &out, &found) == 0 &&
                   doc_parse(buf_str(&out), out.len, false, &d, &found) == 0 &&
                   spec_read(doc_root(d), NULL, &spec, &found) == 0;
    for (size_t i = 0; !is_good && i < found.n; i++) {
        const struct problem *one = &found.v[i];
        _cleanup_(freep) char *top = xstrndup(one->field, strcspn(one->field, "."));
        _cleanup_(freep) char *field = xasprintf("spec.%s", one->field);
        const struct node *at = node_find(p->spec, top);
        if (one->level == PROBLEM_ERROR)
            problems_add_copy(ps, one, field, at ? at->key_line : 0, at ? at->key_column : 0);
    }
    spec_release(&spec);
    doc_free(d);
    buf_release(&out);
    problems_release(&found);
}

int preset_parse(const char *text, size_t len, struct preset **ret, struct problems *ps)
{
    size_t errors = ps->errors;
    struct preset *p = xcalloc(1, sizeof(*p));
    if (len > PRESET_MAX_BYTES)
        problems_add(ps, PROBLEM_ERROR, "", 0, 0, "preset_too_long",
                     MESSAGE_ARGS(MESSAGE_NUM("most", PRESET_MAX_BYTES)));
    else if (doc_parse(text, len, true, &p->doc, ps) == 0)
        conf_read(preset_keys, array_len(preset_keys), doc_root(p->doc), p, ps);
    if (ps->errors == errors)
        read_holes(p, ps);
    if (ps->errors == errors && p->spec)
        preset_check_spec(p, ps);
    if (ps->errors == errors && p->spec)
        check_sample(p, ps);
    if (ps->errors > errors) {
        preset_free(p);
        return ERR_BAD_SPEC;
    }
    *ret = p;
    return 0;
}

/* ---- what there is to be told ---- */

const char *preset_description(const struct preset *p)
{
    return str_or(p->description, "");
}

const char *preset_workload(const struct preset *p)
{
    const struct node *n = node_find(p->spec, "workload");
    return n && n->kind == NODE_SCALAR && !strstr(n->text, PRESET_MARK) ? n->text : NULL;
}

static void preset_put_node(struct jout *j, const char *key, const struct node *n)
{
    if (n)
        node_to_json(n, j, key);
    else
        jout_null(j, key);
}

void preset_put_holes(const struct preset *p, struct jout *j, const char *key)
{
    jout_open(j, key, '[');
    for (size_t i = 0; i < p->n; i++) {
        const struct preset_hole *h = &p->holes[i];
        jout_open(j, NULL, '{');
        jout_str(j, "name", h->name);
        jout_str(j, "type", type_names[h->type]);
        jout_bool(j, "required", h->required);
        preset_put_node(j, "default", h->dflt);
        preset_put_node(j, "example", h->example);
        jout_str(j, "description", str_or(h->description, ""));
        jout_close(j, '}');
    }
    jout_close(j, ']');
}
