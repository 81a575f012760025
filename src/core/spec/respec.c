/* SPDX-License-Identifier: Apache-2.0 */
/* respec.c - see respec.h. The tree of the old text is written again as JSON, which is YAML too,
 * with the new values in their places. */
#include "core/spec/respec.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/message.h"
#include "base/str.h"

struct work {
    struct jout out, changes;
    int n;
    bool keeps_id;
    const json_t *env;           /* of the patch; NULL: none */
    const struct node *env_vars; /* of runtime_env: what stands there is changed there */
};

/* ---- what is told ---- */

struct edit_page {
    const char *key, *old, *new;
};
static const struct field edit_rows[] = {
    FIELD_AT(edit_page, "key", FIELD_STR, key, .flags = FIELD_ALWAYS),
    FIELD_AT(edit_page, "old", FIELD_STR, old),
    FIELD_AT(edit_page, "new", FIELD_STR, new),
};
const struct field_table respec_edit_table = FIELD_TABLE("SpecEdit", edit_rows, edit_page);

/* verl's sizes in tokens are no secrets, whatever their names say. */
static bool is_size(const char *key)
{
    return str_starts(key, "overrides.") && str_ends(key, "max_token_len_per_gpu");
}

void respec_tell_edit(struct jout *j, const char *key, const char *old, const char *new)
{
    const char *dot = strrchr(key, '.');
    bool hidden = str_is_secret_name(dot ? dot + 1 : key) && !is_size(key);
    const struct edit_page page = {
        .key = key, .old = old && hidden ? "***" : old, .new = new &&hidden ? "***" : new};
    field_to_json(&respec_edit_table, &page, FIELD_ALL, FIELD_PAGE, j, NULL);
}

static void respec_tell(struct work *w, const char *key, const char *old, const char *new)
{
    respec_tell_edit(&w->changes, key, old, new);
    w->n++;
}

/* The value as people write it. */
static char *json_text(const json_t *v)
{
    if (!v || json_is_null(v))
        return NULL;
    return json_is_string(v) ? xstrdup(json_string_value(v))
                             : json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
}

static char *node_text(const struct node *n)
{
    if (!n || node_is_null(n))
        return NULL;
    if (n->kind == NODE_SCALAR)
        return xstrdup(n->text);
    struct buf text = BUF_INIT(RESPEC_CHANGES_MAX);
    struct jout j = jout_begin(&text);
    node_to_json(n, &j, NULL);
    return buf_take(&text);
}

static void tell_value(struct work *w, const char *key, const struct node *old, const json_t *new)
{
    _cleanup_(freep) char *before = node_text(old), *after = json_text(new);
    if (!str_eq(before, after))
        respec_tell(w, key, before, after);
}

/* ---- overrides: told one by one ---- */

char *respec_override_key(const char *o)
{
    const char *s = o + strspn(o, "+~ ");
    return xstrndup(s, strcspn(s, "="));
}

const char *respec_override_value(const char *o)
{
    const char *equals = strchr(o, '=');
    return equals ? equals + 1 : "";
}

static const char *find_override(const json_t *list, const char *key)
{
    size_t i;
    json_t *v;
    json_array_foreach (list, i, v) {
        _cleanup_(freep) char *k = respec_override_key(str_or(json_string_value(v), ""));
        if (!strcmp(k, key))
            return json_string_value(v);
    }
    return NULL;
}

static const char *find_old_override(const struct node *list, const char *key)
{
    const char *found = NULL;
    for (const struct node *o = list ? list->first : NULL; o; o = o->next) {
        _cleanup_(freep) char *k = respec_override_key(str_or(o->text, ""));
        if (!strcmp(k, key))
            found = o->text; /* the last one wins */
    }
    return found;
}

static void tell_override(struct work *w, const char *old, const char *new)
{
    _cleanup_(freep) char *key = respec_override_key(str_or(old, str_or(new, "")));
    _cleanup_(freep) char *path = xasprintf("overrides.%s", key);
    const char *before = old ? respec_override_value(old) : NULL;
    const char *after = new ? respec_override_value(new) : NULL;
    if (!str_eq(before, after))
        respec_tell(w, path, before, after);
}

static void tell_overrides(struct work *w, const struct node *old, const json_t *new)
{
    size_t i;
    json_t *v;
    for (const struct node *o = old ? old->first : NULL; o; o = o->next) {
        _cleanup_(freep) char *key = respec_override_key(str_or(o->text, ""));
        if (!find_override(new, key))
            tell_override(w, o->text, NULL);
    }
    json_array_foreach (new, i, v) {
        const char *o = str_or(json_string_value(v), "");
        _cleanup_(freep) char *key = respec_override_key(o);
        tell_override(w, find_old_override(old, key), o);
    }
}

/* ---- the new text ---- */

static void respec_put_json(struct work *w, const char *key, const json_t *v)
{
    _cleanup_(freep) char *text = json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY);
    jout_raw(&w->out, key, str_or(text, "null"));
}

static void merge(struct work *w, const char *path, const struct node *old, const json_t *patch);

static void put_new(struct work *w,
                    const char *path,
                    const char *key,
                    const struct node *old,
                    const json_t *v)
{
    _cleanup_(freep) char *place = xasprintf("%s%s%s", path, *path ? "." : "", key);
    if (json_is_object(v)) {
        jout_open(&w->out, key, '{');
        merge(w, place, old && old->kind == NODE_MAP ? old : NULL, v);
        jout_close(&w->out, '}');
        return;
    }
    if (!strcmp(place, "overrides") && json_is_array(v))
        tell_overrides(w, old && old->kind == NODE_SEQ ? old : NULL, v);
    else
        tell_value(w, place, old, v);
    if (!json_is_null(v))
        respec_put_json(w, key, v);
}

/* Values of an environment are texts, whatever they look like. */
static void respec_put_env(struct work *w, const struct node *n)
{
    jout_open(&w->out, n->key, '{');
    for (const struct node *c = n->first; c; c = c->next)
        if (c->kind == NODE_SCALAR && !node_is_null(c))
            jout_str(&w->out, c->key, c->text);
        else
            node_to_json(c, &w->out, c->key);
    jout_close(&w->out, '}');
}

/* runtime_env.env_vars: with the new values of what stands there. */
static void put_env_vars(struct work *w, const struct node *n)
{
    jout_open(&w->out, n->key, '{');
    for (const struct node *c = n->first; c; c = c->next) {
        const json_t *new = json_object_get(w->env, c->key);
        if (new)
            put_new(w, "env", c->key, c, new);
        else if (c->kind == NODE_SCALAR && !node_is_null(c))
            jout_str(&w->out, c->key, c->text);
        else
            node_to_json(c, &w->out, c->key);
    }
    jout_close(&w->out, '}');
}

static void respec_put_runtime_env(struct work *w, const struct node *n)
{
    jout_open(&w->out, n->key, '{');
    for (const struct node *c = n->first; c; c = c->next)
        if (!strcmp(c->key, "env_vars") && c->kind == NODE_MAP)
            put_env_vars(w, c);
        else
            node_to_json(c, &w->out, c->key);
    jout_close(&w->out, '}');
}

static void put_old(struct work *w, const char *path, const struct node *n)
{
    bool top = !*path && n->kind == NODE_MAP;
    if (!strcmp(path, "env") && n->kind == NODE_SCALAR && !node_is_null(n))
        jout_str(&w->out, n->key, n->text);
    else if (top && !strcmp(n->key, "env"))
        respec_put_env(w, n);
    else if (top && !strcmp(n->key, "runtime_env"))
        respec_put_runtime_env(w, n);
    else
        node_to_json(n, &w->out, n->key);
}

static void merge(struct work *w, const char *path, const struct node *old, const json_t *patch)
{
    const char *key;
    json_t *v;
    for (const struct node *c = old ? old->first : NULL; c; c = c->next) {
        const json_t *new = json_object_get(patch, c->key);
        if (!*path && !w->keeps_id && !strcmp(c->key, "submission_id"))
            continue;
        if (new)
            put_new(w, path, c->key, c, new);
        else
            put_old(w, path, c);
    }
    json_object_foreach ((json_t *)(uintptr_t)patch, key, v) {
        bool is_elsewhere = !strcmp(path, "env") && node_find(w->env_vars, key);
        if (!node_find(old, key) && !is_elsewhere)
            put_new(w, path, key, NULL, v);
    }
}

/* The patch with the checkpoint in it: one thing to lay over the spec. New reference. */
static json_t *whole_patch(const struct respec *how)
{
    json_t *patch = how->patch ? json_copy((json_t *)(uintptr_t)how->patch) : json_object();
    if (how->resume)
        (void)json_object_set_new(patch, "resume", json_string(how->resume)); /* only lack of
                                                                                  memory fails */
    return patch;
}

int respec_text(const char *text,
                const struct respec *how,
                struct buf *out,
                struct buf *changes,
                struct err *err)
{
    _cleanup_(doc_freep) struct doc *d = NULL;
    _cleanup_(json_unrefp) json_t *patch = whole_patch(how);
    struct problems ps = {0};
    int r = doc_parse(text, strlen(text), false, &d, &ps);
    problems_release(&ps);
    const struct node *root = r == 0 ? doc_root(d) : NULL;
    if (!root || root->kind != NODE_MAP)
        return message_refuse(err, -EINVAL, "spec_not_readable", MESSAGE_NO_ARGS);
    struct work w = {
        .out = jout_begin(out), .changes = jout_begin(changes), .keeps_id = how->keeps_id};
    w.env = json_get_object(patch, "env");
    w.env_vars = node_find(node_find(root, "runtime_env"), "env_vars");
    jout_open(&w.changes, NULL, '[');
    if (!json_object_size(patch) && (how->keeps_id || !node_find(root, "submission_id"))) {
        (void)buf_adds(out, text); /* overflow: out->failed */
    } else {
        jout_open(&w.out, NULL, '{');
        merge(&w, "", root, patch);
        jout_close(&w.out, '}');
    }
    jout_close(&w.changes, ']');
    return w.n;
}
