/* SPDX-License-Identifier: Apache-2.0 */
/* registry_record.c - an entry as a row's text, and what the import tool says at its end.
 *
 * The result file lies where jobs write: it is outside bytes. It says what was found and never
 * where: the path is ours. What is too large for a row loses its sample first, then its splits. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/registry.h"
#include "base/str.h"

enum { ABOUT_MAX = 48 << 10 };

/* ---- rows ---- */

void registry_record_write(const struct registry_entry *e, struct buf *out)
{
    struct jout j = jout_begin(out);
    jout_open(&j, NULL, '{');
    jout_str(&j, "state", registry_state_to_string(e->state));
    jout_str(&j, "name", e->name);
    jout_int(&j, "version", e->version);
    jout_str(&j, "owner", e->owner);
    jout_str(&j, "project", e->project);
    jout_bool(&j, "common", e->is_common);
    jout_str(&j, "path", e->path);
    jout_bool(&j, "in_place", e->in_place);
    jout_str(&j, "source", e->source);
    jout_str(&j, "revision", e->revision);
    jout_str(&j, "hash", e->hash);
    jout_str(&j, "job", e->job);
    jout_int(&j, "bytes", e->bytes);
    jout_int(&j, "files", e->files);
    jout_time(&j, "created_at", e->created_at);
    jout_int(&j, "uses", e->uses);
    jout_open(&j, "used", '[');
    for (size_t i = 0; i < e->used.n; i++)
        jout_str(&j, NULL, e->used.v[i]);
    jout_close(&j, ']');
    _cleanup_(freep) char *lineage = e->lineage ? json_dumps(e->lineage, JSON_COMPACT) : NULL;
    _cleanup_(freep) char *about = e->about ? json_dumps(e->about, JSON_COMPACT) : NULL;
    jout_raw(&j, "lineage", str_or(lineage, "null"));
    jout_bool(&j, "recorded", e->is_recorded);
    jout_raw(&j, "about", str_or(about, "null"));
    jout_close(&j, '}');
}

static char *text_of(const json_t *o, const char *key)
{
    const char *s = json_get_str(o, key, NULL);
    return s ? xstrdup(s) : NULL;
}

static enum registry_state state_from_string(const char *word)
{
    int s = 0;
    while (s < REGISTRY_STATE_END &&
           strcmp(registry_state_to_string((enum registry_state)s), word) != 0)
        s++;
    return (enum registry_state)s;
}

static void fill(const json_t *o, struct registry_entry *e)
{
    size_t i;
    const json_t *job;
    e->state = state_from_string(json_get_str(o, "state", ""));
    e->name = text_of(o, "name");
    e->version = json_get_int(o, "version", 0);
    e->owner = text_of(o, "owner");
    e->project = xstrdup(json_get_str(o, "project", ""));
    e->is_common = json_get_bool(o, "common", false);
    e->path = text_of(o, "path");
    e->in_place = json_get_bool(o, "in_place", false);
    e->source = text_of(o, "source");
    e->revision = text_of(o, "revision");
    e->hash = text_of(o, "hash");
    e->job = text_of(o, "job");
    e->bytes = json_get_int(o, "bytes", 0);
    e->files = json_get_int(o, "files", 0);
    e->uses = json_get_int(o, "uses", 0);
    if (clock_from_string(json_get_str(o, "created_at", ""), &e->created_at, NULL) < 0)
        e->created_at = 0;
    json_array_foreach (json_object_get(o, "used"), i, job)
        if (json_is_string(job) && e->used.n < REGISTRY_USED_MAX)
            strv_add(&e->used, json_string_value(job));
    e->lineage = json_incref(json_object_get(o, "lineage"));
    e->is_recorded = json_get_bool(o, "recorded", false);
    e->about = json_incref(json_object_get(o, "about"));
    if (!json_is_object(e->lineage)) {
        json_decref(e->lineage);
        e->lineage = NULL;
    }
    if (!json_is_object(e->about)) {
        json_decref(e->about);
        e->about = NULL;
    }
}

int registry_record_read(enum registry_kind kind,
                         const char *text,
                         struct registry_entry **ret,
                         struct err *err)
{
    _cleanup_(json_unrefp) json_t *o = NULL;
    int r = json_parse(text, strlen(text), (size_t)REGISTRY_BODY_MAX * 2, &o, err);
    if (r < 0)
        return r;
    struct registry_entry *e = xcalloc(1, sizeof(*e));
    e->kind = kind;
    fill(o, e);
    if (e->state < REGISTRY_STATE_END && e->name && e->owner && e->path && e->version > 0 &&
        dataref_check_name("entry", e->name, NULL) == 0) {
        *ret = e;
        return 0;
    }
    registry_entry_free(e);
    return err_set(err, ERR_STORE, "the store holds a %s that cannot be read: %.200s",
                   registry_kind_name(kind), text);
}

/* ---- the tool's result ---- */

void registry_result_release(struct registry_result *r)
{
    json_decref(r->about);
    *r = (struct registry_result){0};
}

static size_t size_of(const json_t *about)
{
    return json_dumpb(about, NULL, 0, JSON_COMPACT);
}

/* Small enough for a row. */
static void shrink(json_t *about)
{
    static const char *const order[] = {"sample", "splits", "columns"};
    for (size_t i = 0; i < array_len(order) && size_of(about) > ABOUT_MAX; i++)
        (void)json_object_del(about, order[i]); /* it may not be there */
    if (size_of(about) > ABOUT_MAX)
        (void)json_object_clear(about); /* cannot fail */
}

static void put_text(const json_t *o, const char *key, char *ret, size_t size)
{
    (void)snprintf(ret, size, "%s", json_get_str(o, key, "")); /* cut: fine */
}

int registry_result_read(const char *text, size_t n, struct registry_result *ret, struct err *err)
{
    _cleanup_(json_unrefp) json_t *o = NULL;
    int r = json_parse(text, n, REGISTRY_RESULT_MAX, &o, err);
    if (r < 0)
        return r;
    if (!json_is_object(o) || !json_is_boolean(json_object_get(o, "ok")))
        return err_set(err, ERR_BAD_REQUEST, "the result of the import is no result");
    *ret = (struct registry_result){.ok = json_get_bool(o, "ok", false),
                                    .bytes = json_get_int(o, "bytes", 0),
                                    .files = json_get_int(o, "files", 0)};
    put_text(o, "error", ret->error, sizeof(ret->error));
    put_text(o, "hash", ret->hash, sizeof(ret->hash));
    put_text(o, "revision", ret->revision, sizeof(ret->revision));
    const json_t *about = json_get_object(o, "about");
    ret->about = about ? json_deep_copy(about) : json_object();
    shrink(ret->about);
    if (ret->bytes < 0 || ret->files < 0)
        ret->bytes = ret->files = 0;
    return 0;
}
