/* SPDX-License-Identifier: Apache-2.0 */
/* preset.c - see preset.h. A preset keeps the tree of its text; filling writes JSON from it,
 * with the values of the holes beside (NULL: the hole has none). */
#include "core/preset.h"

#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/conf.h"
#include "base/str.h"
#include "core/spec.h"
#include "core/spec_table.h"

#define MARK "${hole:"

static const char *const type_names[] = {
#define X(e, word) word,
    PRESET_TYPES(X)
#undef X
        NULL};
static_assert(array_len(type_names) == PRESET_TYPES_COUNT + 1, "one word per type");

struct hole {
    const char *name; /* of the tree */
    int type;
    bool required, is_used;
    char *description;
    const struct node *dflt, *example;
};

struct preset {
    struct doc *doc;
    char *description;
    const struct node *given_holes, *spec;
    struct hole *holes;
    size_t n;
};

/* clang-format off */
static const struct conf_key preset_keys[] = {
    {.name = "description", .type = CONF_STR, .offset = offsetof(struct preset, description),
     .doc = "one line for people"},
    {.name = "holes", .type = CONF_NODE, .offset = offsetof(struct preset, given_holes),
     .doc = "what is to be filled in, by name"},
    {.name = "spec", .type = CONF_NODE, .offset = offsetof(struct preset, spec),
     .flags = CONF_REQUIRED, .doc = "a JobSpec in which ${hole:NAME} stands for a hole"},
};
static const struct conf_key hole_keys[] = {
    {.name = "type", .type = CONF_ENUM, .offset = offsetof(struct hole, type), .dflt = "text",
     .names = type_names, .doc = "what it takes"},
    {.name = "required", .type = CONF_BOOL, .offset = offsetof(struct hole, required),
     .dflt = "false", .doc = "whether it must be given"},
    {.name = "default", .type = CONF_NODE, .offset = offsetof(struct hole, dflt),
     .doc = "its value if it is not given"},
    {.name = "example", .type = CONF_NODE, .offset = offsetof(struct hole, example),
     .doc = "what one may give"},
    {.name = "description", .type = CONF_STR, .offset = offsetof(struct hole, description),
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
              : err_set(err, ERR_BAD_SPEC,
                        "'%.80s' cannot be the name of a preset: 1 to %d of a-z 0-9 _ . - , "
                        "beginning with a letter or a number",
                        name, PRESET_NAME_MAX);
}

static bool is_hole_name(const char *name)
{
    size_t n = strlen(name);
    return n > 0 && n <= PRESET_NAME_MAX && islower((unsigned char)*name) &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == n;
}

static struct hole *find_hole(const struct preset *p, const char *name, size_t len)
{
    for (size_t i = 0; i < p->n; i++)
        if (strlen(p->holes[i].name) == len && !memcmp(p->holes[i].name, name, len))
            return &p->holes[i];
    return NULL;
}

/* "a, b (required), c": what one may fill. */
static char *list_holes(const struct preset *p)
{
    struct buf out = BUF_INIT(PRESET_HOLES_MAX * (PRESET_NAME_MAX + 16));
    for (size_t i = 0; i < p->n; i++)
        (void)buf_addf(&out, "%s%s%s", i ? ", " : "", p->holes[i].name,
                       p->holes[i].required ? " (required)" : ""); /* they fit */
    return p->n ? buf_take(&out) : xstrdup("none");
}

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

/* The next mark in text: where it begins; its name and its end. NULL: there is none. */
static const char *find_mark(const char *text,
                             const char **ret_name,
                             size_t *ret_len,
                             const char **ret_end)
{
    const char *at = strstr(text, MARK);
    const char *end = at ? strchr(at, '}') : NULL;
    if (!end)
        return NULL;
    *ret_name = at + sizeof(MARK) - 1;
    *ret_len = (size_t)(end - *ret_name);
    *ret_end = end + 1;
    return at;
}

/* ---- values ---- */

static bool is_of_type(int type, const struct node *v)
{
    int64_t i;
    double d;
    if (type == PRESET_DATA && v->kind == NODE_SEQ) {
        for (const struct node *c = v->first; c; c = c->next)
            if (c->kind != NODE_SCALAR)
                return false;
        return v->n > 0;
    }
    if (v->kind != NODE_SCALAR)
        return false;
    switch (type) {
    case PRESET_INTEGER:
        return str_to_int(v->text, INT64_MIN, INT64_MAX, &i, NULL) == 0;
    case PRESET_NUMBER:
        return str_to_real(v->text, &d, NULL) == 0;
    case PRESET_BOOLEAN:
        return !strcasecmp(v->text, "true") || !strcasecmp(v->text, "false");
    case PRESET_TEXT:
        return true;
    default:
        return *v->text != 0;
    }
}

static const char *type_sentence(int type)
{
    static const char *const sentences[] = {
        [PRESET_TEXT] = "a text",          [PRESET_INTEGER] = "a whole number",
        [PRESET_NUMBER] = "a number",      [PRESET_BOOLEAN] = "true or false",
        [PRESET_PATH] = "a path",          [PRESET_MODEL] = "a model",
        [PRESET_DATA] = "data, or a list",
    };
    return sentences[type];
}

static const char *shown(const struct node *v)
{
    return v->kind == NODE_SCALAR ? v->text : v->kind == NODE_SEQ ? "a list" : "a mapping";
}

/* ---- reading ---- */

/* Fields that conf_read() told as "type" are "holes.lr.type". */
static void put_path(struct problems *ps, size_t from, const char *name)
{
    for (size_t i = from; i < ps->n; i++) {
        char *old = ps->v[i].field;
        ps->v[i].field = xasprintf("holes.%s%s%s", name, *old ? "." : "", old);
        free(old);
    }
}

static void check_value(const struct hole *h,
                        const char *what,
                        const struct node *v,
                        struct problems *ps)
{
    _cleanup_(freep) char *field = xasprintf("holes.%s.%s", h->name, what);
    if (v && !node_is_null(v) && !is_of_type(h->type, v))
        problems_add(ps, PROBLEM_ERROR, field, v->line, v->column, NULL,
                     "the %s of hole '%s' is to be %s and is '%.60s'", what, h->name,
                     type_sentence(h->type), shown(v));
}

static void read_hole(struct preset *p, const struct node *n, struct problems *ps)
{
    struct hole *h = &p->holes[p->n++];
    size_t before = ps->n, errors = ps->errors;
    h->name = n->key;
    conf_read(hole_keys, array_len(hole_keys), n, h, ps);
    put_path(ps, before, n->key);
    if (ps->errors > errors)
        return;
    _cleanup_(freep) char *field = xasprintf("holes.%s", n->key);
    if (!is_hole_name(n->key))
        problems_add(ps, PROBLEM_ERROR, field, n->key_line, n->key_column, NULL,
                     "'%.60s' cannot be the name of a hole: letters a-z first, then also 0-9 and _",
                     n->key);
    if (!strcmp(n->key, "preset"))
        problems_add(ps, PROBLEM_ERROR, field, n->key_line, n->key_column, NULL,
                     "a hole cannot be called 'preset'");
    if (h->required && h->dflt && !node_is_null(h->dflt))
        problems_add(ps, PROBLEM_ERROR, field, n->key_line, n->key_column, "leave one of them out",
                     "hole '%s' is required and has a default", h->name);
    check_value(h, "default", h->dflt, ps);
    check_value(h, "example", h->example, ps);
}

static void read_holes(struct preset *p, struct problems *ps)
{
    const struct node *holes = p->given_holes;
    if (!holes || node_is_null(holes))
        return;
    if (holes->kind != NODE_MAP || holes->n > PRESET_HOLES_MAX) {
        problems_add(ps, PROBLEM_ERROR, "holes", holes->line, holes->column, NULL,
                     "'holes' is to be a mapping of at most %d holes", PRESET_HOLES_MAX);
        return;
    }
    p->holes = xcalloc(holes->n + 1, sizeof(*p->holes));
    for (const struct node *n = holes->first; n; n = n->next)
        read_hole(p, n, ps);
}

static void check_marks(struct preset *p, const struct node *n, struct problems *ps)
{
    const char *name, *end, *rest = n->text;
    size_t len;
    for (const struct node *c = n->first; c; c = c->next)
        check_marks(p, c, ps);
    if (n->kind != NODE_SCALAR)
        return;
    for (; find_mark(rest, &name, &len, &end); rest = end) {
        struct hole *h = find_hole(p, name, len);
        _cleanup_(freep) char *all = list_holes(p);
        if (h)
            h->is_used = true;
        else
            problems_add(ps, PROBLEM_ERROR, "spec", n->line, n->column, NULL,
                         "there is no hole '%.*s'; the holes are: %s", (int)(len < 60 ? len : 60),
                         name, all);
    }
}

static void check_spec(struct preset *p, struct problems *ps)
{
    if (p->spec->kind != NODE_MAP) {
        problems_add(ps, PROBLEM_ERROR, "spec", p->spec->line, p->spec->column, NULL,
                     "'spec' is to be a mapping: a JobSpec");
        return;
    }
    const struct node *other = node_find(p->spec, "preset");
    if (other)
        problems_add(ps, PROBLEM_ERROR, "spec.preset", other->key_line, other->key_column, NULL,
                     "a preset cannot be made of another preset");
    check_marks(p, p->spec, ps);
    for (size_t i = 0; i < p->n; i++)
        if (!p->holes[i].is_used) {
            _cleanup_(freep) char *field = xasprintf("holes.%s", p->holes[i].name);
            problems_add(ps, PROBLEM_ERROR, field, 0, 0, "write ${hole:…} where its value goes",
                         "hole '%s' stands nowhere in the spec", p->holes[i].name);
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
            problems_add(ps, PROBLEM_ERROR, field, at ? at->key_line : 0, at ? at->key_column : 0,
                         one->hint, "%s", one->text);
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
        problems_add(ps, PROBLEM_ERROR, "", 0, 0, NULL, "a preset has at most %d bytes",
                     PRESET_MAX_BYTES);
    else if (doc_parse(text, len, true, &p->doc, ps) == 0)
        conf_read(preset_keys, array_len(preset_keys), doc_root(p->doc), p, ps);
    if (ps->errors == errors)
        read_holes(p, ps);
    if (ps->errors == errors && p->spec)
        check_spec(p, ps);
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
    return n && n->kind == NODE_SCALAR && !strstr(n->text, MARK) ? n->text : NULL;
}

static void put_node(struct jout *j, const char *key, const struct node *n)
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
        const struct hole *h = &p->holes[i];
        jout_open(j, NULL, '{');
        jout_str(j, "name", h->name);
        jout_str(j, "type", type_names[h->type]);
        jout_bool(j, "required", h->required);
        put_node(j, "default", h->dflt);
        put_node(j, "example", h->example);
        jout_str(j, "description", str_or(h->description, ""));
        jout_close(j, '}');
    }
    jout_close(j, ']');
}

/* ---- filling ---- */

/* values[i] is hole i's, NULL: it has none. */
static const struct node *value_of(const struct preset *p,
                                   const struct node *const *values,
                                   const char *name,
                                   size_t len)
{
    const struct hole *h = find_hole(p, name, len);
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
    while ((at = find_mark(text, &name, &len, &end))) {
        const struct node *v = value_of(p, values, name, len);
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
    const char *at = find_mark(n->text, &name, &len, &end);
    if (!at) {
        node_to_json(n, j, key);
        return;
    }
    if (at == n->text && !*end) {
        const struct node *v = value_of(p, values, name, len);
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

static void put_env(const struct preset *p,
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
    if (!given || find_hole(p, own->key, strlen(own->key)))
        put_filled(p, values, own, j, own->key);
    else if (!strcmp(own->key, "overrides") && own->kind != NODE_MAP && given->kind != NODE_MAP)
        put_both(p, values, own, given, j);
    else if (!strcmp(own->key, "env") && is_map)
        put_env(p, values, own, given, j);
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
            !find_hole(p, c->key, strlen(c->key)))
            node_to_json(c, &j, c->key);
    jout_close(&j, '}');
}

/* ---- what is given ---- */

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
        if (find_hole(p, c->key, strlen(c->key)) || is_spec_key(c->key))
            continue;
        const char *near = str_nearest(c->key, names, n);
        _cleanup_(freep) char *hint = near ? xasprintf("did you mean '%s'?", near) : NULL;
        _cleanup_(freep) char *all = list_holes(p);
        problems_add(ps, PROBLEM_ERROR, c->key, c->key_line, c->key_column, hint,
                     "'%.60s' is neither a hole of preset '%s' nor a key of a spec; its holes "
                     "are: %s",
                     c->key, name, all);
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
        _cleanup_(freep) char *hint = xasprintf("--set %s=…", first);
        _cleanup_(freep) char *all = list_holes(p);
        problems_add(ps, PROBLEM_ERROR, "preset", 0, 0, hint,
                     "preset '%s' needs a value for: %s; its holes are: %s", name,
                     buf_str(&missing), all);
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
        const struct hole *h = &p->holes[i];
        const struct node *v = node_find(given, h->name);
        if (!v || node_is_null(v))
            v = h->dflt;
        if (!v || node_is_null(v))
            continue;
        values[i] = v;
        if (!is_of_type(h->type, v))
            problems_add(ps, PROBLEM_ERROR, h->name, v->line, v->column,
                         h->description && *h->description ? h->description : NULL,
                         "hole '%s' of preset '%s' takes %s, not '%.60s'", h->name, name,
                         type_sentence(h->type), shown(v));
    }
}

static int end_fill(const struct buf *out, size_t errors, struct problems *ps)
{
    if (out->failed)
        problems_add(ps, PROBLEM_ERROR, "preset", 0, 0, NULL,
                     "the spec that the preset makes is too large");
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
        const struct hole *h = &p->holes[i];
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
