/* SPDX-License-Identifier: Apache-2.0 */
/* pipe.c - see pipe.h. Reads a pipeline by the rows below; the graph is pipe_graph.c's. */
#include "core/pipe/pipe.h"

#include <assert.h>
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/doc/conf.h"
#include "base/message.h"
#include "base/str.h"
#include "core/pipe/pipe_text.h"
#include "core/serve/serve_spec.h"

#define X(e, word) word,
static const char *const pipe_uses_names[] = {PIPE_USES(X) NULL};
static const char *const pipe_type_names[] = {PIPE_TYPES(X) NULL};
static const char *const pipe_concurrency_names[] = {PIPE_CONCURRENCY(X) NULL};
#undef X
static_assert(array_len(pipe_uses_names) == PIPE_USES_COUNT + 1, "one word per use");
static_assert(array_len(pipe_type_names) == PIPE_TYPES_COUNT + 1, "one word per type");
static_assert(array_len(pipe_concurrency_names) == PIPE_CONCURRENCY_COUNT + 1, "one word each");

/* clang-format off */
static const struct field pipe_keys[] = {
    FIELD_AT(pipe, "name", FIELD_STR, name, .flags = FIELD_REQUIRED, .doc = "name of the pipeline: a-z, 0-9, - and _"),
    FIELD_AT(pipe, "description", FIELD_STR, description, .doc = "one line for people"),
    FIELD_AT(pipe, "concurrency", FIELD_ENUM, concurrency, .dflt = "queue", .names = pipe_concurrency_names,
             .doc = "what a new run does while another one is under way"),
    FIELD_AT(pipe, "params", FIELD_NODE, given_params, .doc = "what a run is started with, by name"),
    FIELD_AT(pipe, "steps", FIELD_NODE, given_steps, .flags = FIELD_REQUIRED, .doc = "the steps, by name"),
};
static const struct field pipe_param_keys[] = {
    FIELD_AT(pipe_param, "type", FIELD_ENUM, type, .dflt = "text", .names = pipe_type_names, .doc = "what it takes"),
    FIELD_AT(pipe_param, "required", FIELD_BOOL, required, .dflt = "false", .doc = "whether it must be given"),
    FIELD_AT(pipe_param, "default", FIELD_NODE, dflt, .doc = "its value if it is not given"),
    FIELD_AT(pipe_param, "description", FIELD_STR, description, .doc = "one line for people"),
};
static const struct field pipe_step_keys[] = {
    FIELD_AT(pipe_step, "uses", FIELD_ENUM, uses, .dflt = "job", .names = pipe_uses_names, .doc = "what the step does"),
    FIELD_AT(pipe_step, "description", FIELD_STR, description, .doc = "one line for people"),
    FIELD_AT(pipe_step, "with", FIELD_NODE, with, .flags = FIELD_REQUIRED,
             .doc = "a JobSpec, or what the step uses; ${{ expressions }} stand anywhere in it"),
    FIELD_AT(pipe_step, "needs", FIELD_STRV, needs, .doc = "steps that end before it; each reference is one too"),
    FIELD_AT(pipe_step, "if", FIELD_STR, when_text, .doc = "the step is passed over unless this is true"),
    FIELD_AT(pipe_step, "matrix", FIELD_NODE, matrix, .doc = "lists by name: the step runs with each combination"),
    FIELD_AT(pipe_step, "retry.limit", FIELD_INT, retry_limit, .dflt = "0", .min = 0, .max = PIPE_RETRIES_MAX,
             .doc = "how often it is tried again after a failure"),
    FIELD_AT(pipe_step, "retry.backoff", FIELD_SPAN, retry_backoff, .dflt = "10s", .min = 0, .max = 86400,
             .doc = "how long it waits for that"),
    FIELD_AT(pipe_step, "timeout", FIELD_SPAN, timeout, .doc = "when a try of it is stopped; it counts as a failure"),
    FIELD_AT(pipe_step, "cache", FIELD_BOOL, cache, .dflt = "true",
             .doc = "whether an earlier run with the same inputs stands in for it"),
};
/* clang-format on */

static void pipe_step_release(struct pipe_step *s)
{
    pipe_expr_free(s->when);
    conf_release(pipe_step_keys, array_len(pipe_step_keys), s);
}

void pipe_free(struct pipe *p)
{
    if (!p)
        return;
    for (size_t i = 0; i < p->n_steps; i++)
        pipe_step_release(&p->steps[i]);
    for (size_t i = 0; i < p->n_params; i++)
        conf_release(pipe_param_keys, array_len(pipe_param_keys), &p->params[i]);
    conf_release(pipe_keys, array_len(pipe_keys), p);
    free(p->steps);
    free(p->params);
    doc_free(p->doc);
    free(p);
}

const char *pipe_uses_to_string(enum pipe_uses uses)
{
    return pipe_uses_names[uses];
}

const char *pipe_type_to_string(enum pipe_type type)
{
    return pipe_type_names[type];
}

bool pipe_is_name(const char *name)
{
    size_t n = strlen(name);
    return n > 0 && n <= PIPE_NAME_MAX && *name != '-' && *name != '_' &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-_") == n;
}

const struct pipe_step *pipe_find_step(const struct pipe *p, const char *name)
{
    for (size_t i = 0; i < p->n_steps; i++)
        if (str_eq(p->steps[i].name, name))
            return &p->steps[i];
    return NULL;
}

const struct pipe_param *pipe_find_param(const struct pipe *p, const char *name)
{
    for (size_t i = 0; i < p->n_params; i++)
        if (str_eq(p->params[i].name, name))
            return &p->params[i];
    return NULL;
}

/* ---- reading ---- */

/* Fields that conf_read() told as "type" become "params.lr.type". */
static void pipe_put_path(struct problems *ps, size_t from, const char *part, const char *name)
{
    for (size_t i = from; i < ps->n; i++) {
        char *old = ps->v[i].field;
        ps->v[i].field = xasprintf("%s.%s%s%s", part, name, *old ? "." : "", old);
        free(old);
    }
}

static void pipe_bad_name(const struct node *n, const char *part, struct problems *ps)
{
    if (!pipe_is_name(n->key))
        problems_add(ps, PROBLEM_ERROR, part, n->key_line, n->key_column, "pipe_name",
                     MESSAGE_ARGS(MESSAGE_STR("name", n->key), MESSAGE_NUM("most", PIPE_NAME_MAX)));
}

static bool pipe_is_map(const struct node *n, const char *field, size_t most, struct problems *ps)
{
    if (n->kind == NODE_MAP && n->n > 0 && n->n <= most)
        return true;
    problems_add(ps, PROBLEM_ERROR, field, n->line, n->column, "pipe_not_mapping",
                 MESSAGE_ARGS(MESSAGE_STR("field", field), MESSAGE_NUM("most", most)));
    return false;
}

static json_t *pipe_param_value(int type, const char *text)
{
    double number;
    if (type == PIPE_TEXT)
        return json_string(text);
    if (type == PIPE_BOOLEAN)
        return str_eq(text, "true") ? json_true() : str_eq(text, "false") ? json_false() : NULL;
    if (str_to_real(text, &number, NULL) < 0 || !isfinite(number))
        return NULL;
    if (type == PIPE_NUMBER)
        return json_real(number);
    bool is_whole = floor(number) >= number && fabs(number) < 9e15;
    return is_whole ? json_integer((json_int_t)number) : NULL;
}

static void pipe_read_param(struct pipe *p, const struct node *n, struct problems *ps)
{
    struct pipe_param *param = &p->params[p->n_params++];
    size_t before = ps->n;
    param->name = n->key;
    conf_read(pipe_param_keys, array_len(pipe_param_keys), n, param, ps);
    pipe_put_path(ps, before, "params", n->key);
    pipe_bad_name(n, "params", ps);
    if (param->dflt && node_is_null(param->dflt))
        param->dflt = NULL;
    const struct node *d = param->dflt;
    _cleanup_(freep) char *field = xasprintf("params.%s.default", n->key);
    _cleanup_(json_unrefp) json_t *v =
        d && d->kind == NODE_SCALAR ? pipe_param_value(param->type, d->text) : NULL;
    if (d && !v)
        problems_add(ps, PROBLEM_ERROR, field, d->line, d->column, "pipe_param_type",
                     MESSAGE_ARGS(MESSAGE_STR("param", n->key),
                                  MESSAGE_STR("type", pipe_type_names[param->type])));
}

static void pipe_read_params(struct pipe *p, struct problems *ps)
{
    const struct node *all = p->given_params;
    if (!all || node_is_null(all) || !pipe_is_map(all, "params", PIPE_PARAMS_MAX, ps))
        return;
    p->params = xcalloc(all->n, sizeof(*p->params));
    for (const struct node *n = all->first; n; n = n->next)
        pipe_read_param(p, n, ps);
}

static void pipe_read_matrix(struct pipe_step *s, struct problems *ps)
{
    _cleanup_(freep) char *field = xasprintf("steps.%s.matrix", s->name);
    s->n_items = 1;
    if (!s->matrix || node_is_null(s->matrix)) {
        s->matrix = NULL;
        return;
    }
    if (!pipe_is_map(s->matrix, field, PIPE_MATRIX_KEYS, ps))
        return;
    for (const struct node *list = s->matrix->first; list; list = list->next) {
        bool is_list = list->kind == NODE_SEQ && list->n > 0;
        for (const struct node *v = list->first; v; v = v->next)
            is_list = is_list && v->kind == NODE_SCALAR;
        if (!is_list)
            problems_add(ps, PROBLEM_ERROR, field, list->key_line, list->key_column,
                         "pipe_matrix_list", MESSAGE_ARGS(MESSAGE_STR("key", list->key)));
        else if (s->n_items <= PIPE_ITEMS_MAX)
            s->n_items *= list->n;
    }
}

static void pipe_read_if(struct pipe_step *s, const struct node *n, struct problems *ps)
{
    struct pipe_hole hole;
    struct err err = {0};
    const char *text = s->when_text;
    const struct node *at = node_find(n, "if");
    if (!text)
        return;
    _cleanup_(freep) char *field = xasprintf("steps.%s.if", s->name);
    const char *rest = text;
    size_t len = strlen(text);
    if (pipe_text_next(&rest, &hole) && !hole.n_before && !*rest && hole.text) {
        text = hole.text; /* the brackets may be there, and need not */
        len = hole.n;
    }
    if (pipe_expr_parse(text, len, &s->when, &err) < 0)
        problems_add_err(ps, PROBLEM_ERROR, field, at->line, at->column, &err);
}

struct pipe_expr_check {
    const struct pipe_step *step;
    struct problems *ps;
};

static void pipe_check_hole(const struct node *at, const struct pipe_hole *hole, void *arg)
{
    const struct pipe_expr_check *c = arg;
    struct pipe_expr *e = NULL;
    struct err err = {0};
    _cleanup_(freep) char *field = xasprintf("steps.%s.with", c->step->name);
    if (!hole->text)
        problems_add(c->ps, PROBLEM_ERROR, field, at->line, at->column, "pipe_not_closed",
                     MESSAGE_NO_ARGS);
    else if (pipe_expr_parse(hole->text, hole->n, &e, &err) < 0)
        problems_add_err(c->ps, PROBLEM_ERROR, field, at->line, at->column, &err);
    pipe_expr_free(e);
}

/* The keys of `with` where it is no JobSpec. */
static const struct pipe_with_key {
    int uses;
    const char *key;
    bool required;
} pipe_with_keys[] = {
    {PIPE_USES_CHECK, "that", true},
    {PIPE_USES_CHECK, "else", false},
    {PIPE_USES_PUBLISH, "name", true},
    {PIPE_USES_PUBLISH, "source", true},
    {PIPE_USES_PUBLISH, "in_place", false},
    {PIPE_USES_PUBLISH, "include", false},
    {PIPE_USES_PREPARE, "name", true},
    {PIPE_USES_PREPARE, "with", true},
    {PIPE_USES_PREPARE, "as", false},
    {PIPE_USES_PREPARE, "args", false},
    /* Keys of publish and prepare: see REGISTRY_FORM_ROWS in argusd/imports. */
    {PIPE_USES_PUBLISH, "project", false},
    {PIPE_USES_PUBLISH, "pool", false},
    {PIPE_USES_PUBLISH, "py_executable", false},
    {PIPE_USES_PUBLISH, "common", false},
    {PIPE_USES_PUBLISH, "secrets", false},
    {PIPE_USES_PREPARE, "project", false},
    {PIPE_USES_PREPARE, "pool", false},
    {PIPE_USES_PREPARE, "py_executable", false},
    {PIPE_USES_PREPARE, "common", false},
    {PIPE_USES_PREPARE, "secrets", false},
    {PIPE_USES_DEPLOY, "name", true}, /* and what core/serve knows */
};

static bool pipe_knows_key(int uses, const char *key)
{
    for (size_t i = 0; i < array_len(pipe_with_keys); i++)
        if (pipe_with_keys[i].uses == uses && str_eq(pipe_with_keys[i].key, key))
            return true;
    return uses == PIPE_USES_DEPLOY && serve_knows_key(key);
}

static void pipe_check_with(const struct pipe_step *s, struct problems *ps)
{
    _cleanup_(freep) char *field = xasprintf("steps.%s.with", s->name);
    struct pipe_expr_check c = {.step = s, .ps = ps};
    if (s->with->kind != NODE_MAP) {
        problems_add(ps, PROBLEM_ERROR, field, s->with->line, s->with->column, "pipe_with_mapping",
                     MESSAGE_NO_ARGS);
        return;
    }
    pipe_text_each(s->with, pipe_check_hole, &c);
    if (s->uses == PIPE_USES_JOB)
        return;
    for (const struct node *n = s->with->first; n; n = n->next)
        if (!pipe_knows_key(s->uses, n->key))
            problems_add(ps, PROBLEM_ERROR, field, n->key_line, n->key_column, "pipe_with_key",
                         MESSAGE_ARGS(MESSAGE_STR("key", n->key),
                                      MESSAGE_STR("uses", pipe_uses_names[s->uses])));
    for (size_t i = 0; i < array_len(pipe_with_keys); i++)
        if (pipe_with_keys[i].uses == s->uses && pipe_with_keys[i].required &&
            !node_find(s->with, pipe_with_keys[i].key))
            problems_add(ps, PROBLEM_ERROR, field, s->with->line, s->with->column,
                         "pipe_with_missing",
                         MESSAGE_ARGS(MESSAGE_STR("key", pipe_with_keys[i].key),
                                      MESSAGE_STR("uses", pipe_uses_names[s->uses])));
}

static void pipe_read_step(struct pipe *p, const struct node *n, struct problems *ps)
{
    struct pipe_step *s = &p->steps[p->n_steps++];
    size_t before = ps->n, errors = ps->errors;
    s->name = n->key;
    s->line = n->key_line;
    s->column = n->key_column;
    conf_read(pipe_step_keys, array_len(pipe_step_keys), n, s, ps);
    pipe_put_path(ps, before, "steps", n->key);
    pipe_bad_name(n, "steps", ps);
    s->n_items = 1;
    if (ps->errors > errors)
        return;
    pipe_read_matrix(s, ps);
    pipe_read_if(s, n, ps);
    pipe_check_with(s, ps);
}

static void pipe_read_steps(struct pipe *p, struct problems *ps)
{
    const struct node *all = p->given_steps;
    size_t items = 0;
    if (!all || !pipe_is_map(all, "steps", PIPE_STEPS_MAX, ps))
        return;
    p->steps = xcalloc(all->n, sizeof(*p->steps));
    for (const struct node *n = all->first; n; n = n->next)
        pipe_read_step(p, n, ps);
    for (size_t i = 0; i < p->n_steps; i++)
        items += p->steps[i].n_items;
    if (items > PIPE_ITEMS_MAX)
        problems_add(ps, PROBLEM_ERROR, "steps", all->line, all->column, "pipe_items",
                     MESSAGE_ARGS(MESSAGE_NUM("n", items), MESSAGE_NUM("most", PIPE_ITEMS_MAX)));
}

int pipe_read(const char *text, size_t len, struct pipe **ret, struct problems *ps)
{
    struct doc *d = NULL;
    if (len > PIPE_MAX_BYTES)
        problems_add(ps, PROBLEM_ERROR, "", 0, 0, "pipe_bytes",
                     MESSAGE_ARGS(MESSAGE_NUM("most", PIPE_MAX_BYTES)));
    if (len > PIPE_MAX_BYTES || doc_parse(text, len, true, &d, ps) < 0)
        return ERR_BAD_SPEC;
    struct pipe *p = xcalloc(1, sizeof(*p));
    p->doc = d;
    conf_read(pipe_keys, array_len(pipe_keys), doc_root(d), p, ps);
    if (p->name && !pipe_is_name(p->name))
        problems_add(
            ps, PROBLEM_ERROR, "name", 0, 0, "pipe_name",
            MESSAGE_ARGS(MESSAGE_STR("name", p->name), MESSAGE_NUM("most", PIPE_NAME_MAX)));
    pipe_read_params(p, ps);
    pipe_read_steps(p, ps);
    if (!ps->errors)
        pipe_link(p, ps);
    if (ps->errors) {
        pipe_free(p);
        return ERR_BAD_SPEC;
    }
    *ret = p;
    return 0;
}

/* ---- what a run is started with ---- */

static json_t *pipe_given_value(const struct pipe_param *param, const json_t *v)
{
    char *text = json_is_string(v) ? NULL : json_dumps(v, JSON_ENCODE_ANY);
    bool is_plain = json_is_string(v) || json_is_number(v) || json_is_boolean(v);
    json_t *ret =
        is_plain ? pipe_param_value(param->type, text ? text : json_string_value(v)) : NULL;
    free(text);
    return ret;
}

static json_t *pipe_start_value(const struct pipe_param *param,
                                const json_t *given,
                                struct problems *ps)
{
    _cleanup_(freep) char *field = xasprintf("params.%s", param->name);
    if (given && !json_is_null(given)) {
        json_t *v = pipe_given_value(param, given);
        if (!v)
            problems_add(ps, PROBLEM_ERROR, field, 0, 0, "pipe_param_type",
                         MESSAGE_ARGS(MESSAGE_STR("param", param->name),
                                      MESSAGE_STR("type", pipe_type_names[param->type])));
        return v;
    }
    if (param->required)
        problems_add(ps, PROBLEM_ERROR, field, 0, 0, "pipe_param_missing",
                     MESSAGE_ARGS(MESSAGE_STR("param", param->name)));
    return param->dflt ? pipe_param_value(param->type, param->dflt->text) : json_null();
}

int pipe_fill_params(const struct pipe *p, json_t *given, json_t **ret, struct problems *ps)
{
    const char *key;
    json_t *value, *all = json_object();
    json_object_foreach (given, key, value) {
        _cleanup_(freep) char *field = xasprintf("params.%s", key);
        if (!pipe_find_param(p, key))
            problems_add(ps, PROBLEM_ERROR, field, 0, 0, "pipe_param_unknown",
                         MESSAGE_ARGS(MESSAGE_STR("param", key), MESSAGE_STR("pipe", p->name)));
    }
    for (size_t i = 0; i < p->n_params; i++) {
        value = pipe_start_value(&p->params[i], json_object_get(given, p->params[i].name), ps);
        if (value)
            (void)json_object_set_new(all, p->params[i].name,
                                      value); /* cannot fail: both are there */
    }
    if (ps->errors) {
        json_decref(all);
        return ERR_BAD_SPEC;
    }
    *ret = all;
    return 0;
}
