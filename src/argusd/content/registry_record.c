/* SPDX-License-Identifier: Apache-2.0 */
/* registry_record.c - an entry as a row's text, and what the import tool says at its end.
 *
 * The result file lies where jobs write: it is outside bytes. It says what was found and never
 * where: the path is ours. What is too large for a row loses its sample first, then its splits. */
#include <stdlib.h>
#include <string.h>

#include "argusd/content/registry.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

enum { ABOUT_MAX = 48 << 10 };

/* ---- rows ---- */

static const char *const state_names[] = {
#define X(word) #word,
    REGISTRY_STATE_TABLE(X)
#undef X
        NULL};

#define ROW(key, ftype, member, ...)                                                               \
    {                                                                                              \
        .name = key, .type = ftype, .offset = offsetof(struct registry_entry, member), __VA_ARGS__ \
    }
enum { WHOLE = FIELD_STORED | FIELD_SHOWN | FIELD_LISTED };
static const struct field entry_rows[] = {
    ROW("state", FIELD_ENUM, state, .names = state_names, .flags = WHOLE),
    ROW("name", FIELD_STR, name, .flags = WHOLE | FIELD_ALWAYS),
    ROW("version", FIELD_INT, version, .flags = WHOLE),
    ROW("owner", FIELD_STR, owner, .flags = WHOLE | FIELD_ALWAYS),
    ROW("project", FIELD_STR, project, .flags = FIELD_STORED),
    ROW("common", FIELD_BOOL, is_common, .flags = WHOLE, .doc = "everybody sees it"),
    ROW("shared", FIELD_STRV, shared, .flags = FIELD_STORED),
    ROW("path",
        FIELD_STR,
        path,
        .flags = WHOLE | FIELD_ALWAYS,
        .doc = "directory in which it lies, or will lie"),
    ROW("in_place",
        FIELD_BOOL,
        in_place,
        .flags = WHOLE,
        .doc = "the files were there before the import"),
    ROW("source", FIELD_STR, source, .flags = WHOLE, .doc = "source that the import named"),
    ROW("revision", FIELD_STR, revision, .flags = WHOLE),
    ROW("hash", FIELD_STR, hash, .flags = WHOLE),
    ROW("job", FIELD_STR, job, .flags = WHOLE, .doc = "job that brings or brought it"),
    ROW("bytes", FIELD_INT, bytes, .flags = WHOLE),
    ROW("files", FIELD_INT, files, .flags = WHOLE),
    ROW("created_at", FIELD_TIME, created_at, .flags = WHOLE),
    ROW("uses", FIELD_INT, uses, .flags = WHOLE, .doc = "jobs that had it among their inputs"),
    ROW("used", FIELD_STRV, used, .flags = FIELD_STORED),
    ROW("recorded", FIELD_BOOL, is_recorded, .flags = FIELD_STORED),
    ROW("made", FIELD_BOOL, is_made, .flags = FIELD_STORED),
};
const struct field_table registry_entry_table = {.name = "Entry",
                                                 .rows = entry_rows,
                                                 .n = array_len(entry_rows),
                                                 .size = sizeof(struct registry_entry)};

static void put_object(struct jout *j, const char *key, const json_t *o)
{
    _cleanup_(freep) char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
    jout_raw(j, key, str_or(text, "null"));
}

void registry_record_write(const struct registry_entry *e, struct buf *out)
{
    struct jout j = jout_begin(out);
    jout_open(&j, NULL, '{');
    field_put_members(&registry_entry_table, e, FIELD_STORED, FIELD_ROW, &j);
    put_object(&j, "lineage", e->lineage);
    put_object(&j, "about", e->about);
    jout_close(&j, '}');
}

static json_t *object_of(const json_t *o, const char *key)
{
    json_t *v = json_object_get(o, key);
    return json_is_object(v) ? json_incref(v) : NULL;
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
    *e = (struct registry_entry){.kind = kind, .state = REGISTRY_STATE_END, .project = xstrdup("")};
    field_from_json(&registry_entry_table, o, FIELD_STORED, e);
    e->lineage = object_of(o, "lineage");
    e->about = object_of(o, "about");
    if (!e->project)
        e->project = xstrdup("");
    if (e->state < REGISTRY_STATE_END && e->name && e->owner && e->path && e->version > 0 &&
        dataref_check_name("entry", e->name, NULL) == 0) {
        *ret = e;
        return 0;
    }
    registry_entry_free(e);
    return message_refuse(
        err, ERR_STORE, "stored_entry_broken",
        MESSAGE_ARGS(MESSAGE_STR("noun", registry_kind_name(kind)), MESSAGE_STR("text", text)));
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

static void registry_record_put_text(const json_t *o, const char *key, char *ret, size_t size)
{
    text_copy_to(ret, size, json_get_str(o, key, ""));
}

int registry_result_read(const char *text, size_t n, struct registry_result *ret, struct err *err)
{
    _cleanup_(json_unrefp) json_t *o = NULL;
    int r = json_parse(text, n, REGISTRY_RESULT_MAX, &o, err);
    if (r < 0)
        return r;
    if (!json_is_object(o) || !json_is_boolean(json_object_get(o, "ok")))
        return message_refuse(err, ERR_BAD_REQUEST, "import_no_result", MESSAGE_NO_ARGS);
    *ret = (struct registry_result){.ok = json_get_bool(o, "ok", false),
                                    .bytes = json_get_int(o, "bytes", 0),
                                    .files = json_get_int(o, "files", 0)};
    registry_record_put_text(o, "error", ret->error, sizeof(ret->error));
    registry_record_put_text(o, "hash", ret->hash, sizeof(ret->hash));
    registry_record_put_text(o, "revision", ret->revision, sizeof(ret->revision));
    const json_t *about = json_get_object(o, "about");
    ret->about = about ? json_deep_copy(about) : json_object();
    shrink(ret->about);
    if (ret->bytes < 0 || ret->files < 0)
        ret->bytes = ret->files = 0;
    return 0;
}
