/* SPDX-License-Identifier: Apache-2.0 */
/* snapshots_table.c - see snapshots_table.h. Sorted by ref, then user. */
#include "argusd/content/snapshots_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/order/place.h"
#include "base/str.h"
#include "core/spec/snapshot.h"
#include "fsroot/content/snapshot.h"

static int snapshots_table_compare(const struct snapshot *s, const char *user, const char *ref)
{
    int c = strcmp(s->ref, ref);
    return c ? c : strcmp(str_or(s->user, ""), str_or(user, ""));
}

struct key {
    const char *user, *ref;
};

static int to_snapshot(const void *key, const void *element)
{
    const struct key *k = key;
    const struct snapshot *const *s = element;
    return -snapshots_table_compare(*s, k->user, k->ref);
}

static size_t find_place(const struct snapshots_table *t, const char *user, const char *ref)
{
    struct key k = {user, ref};
    return place_of(&k, t->v, t->n, sizeof(struct snapshot *), to_snapshot);
}

struct snapshot *snapshots_table_at(const struct snapshots_table *t,
                                    const char *user,
                                    const char *ref)
{
    size_t i = find_place(t, user, ref);
    return i < t->n && snapshots_table_compare(t->v[i], user, ref) == 0 ? t->v[i] : NULL;
}

bool snapshots_table_has_content(const struct snapshots_table *t,
                                 const struct snapshot *but,
                                 const char *hash)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->v[i] != but && !strcmp(t->v[i]->hash, hash))
            return true;
    return false;
}

#define ROW(key, ftype, member, ...)                                                               \
    {                                                                                              \
        .name = key, .type = ftype, .offset = offsetof(struct snapshot, member), __VA_ARGS__       \
    }
enum { WHOLE = FIELD_STORED | FIELD_SHOWN };
static const struct field snapshot_rows[] = {
    ROW("name", FIELD_STR, ref, .flags = FIELD_SHOWN | FIELD_ALWAYS, .doc = "verl@0.9.1"),
    ROW("actor", FIELD_STR, actor, .flags = FIELD_STORED),
    ROW("user",
        FIELD_STR,
        actor,
        .flags = FIELD_SHOWN | FIELD_BORROWED | FIELD_ALWAYS,
        .doc = "user who added it"),
    ROW("hash", FIELD_TEXT, hash, .size = HASH_HEX, .flags = WHOLE, .doc = "hash of the content"),
    ROW("verl", FIELD_STR, verl, .flags = WHOLE, .doc = "the version of verl in it"),
    ROW("needs",
        FIELD_STRV,
        needs,
        .flags = WHOLE,
        .doc = "versions that it asks of a machine: torch>=2.4"),
    ROW("needs_by",
        FIELD_STR,
        needs_by,
        .flags = WHOLE,
        .doc = "user who set the needs; null: they are as its setup files say"),
    ROW("files", FIELD_COUNT, files, .flags = WHOLE),
    ROW("bytes", FIELD_COUNT, bytes, .flags = WHOLE),
    ROW("path", FIELD_STR, path, .flags = FIELD_SHOWN | FIELD_ALWAYS),
    ROW("created_at", FIELD_TIME, created_at, .flags = FIELD_SHOWN),
    ROW("leaving", FIELD_BOOL, leaving, .flags = FIELD_STORED),
};
const struct field_table snapshot_table = {.name = "Snapshot",
                                           .rows = snapshot_rows,
                                           .n = array_len(snapshot_rows),
                                           .size = sizeof(struct snapshot)};

static void snapshot_free(struct snapshot *s)
{
    field_release(&snapshot_table, s);
    free(s->user);
    free(s);
}

void snapshots_table_release(struct snapshots_table *t)
{
    for (size_t i = 0; i < t->n; i++)
        snapshot_free(t->v[i]);
    free(t->v);
}

static void insert(struct snapshots_table *t, struct snapshot *s)
{
    size_t i = find_place(t, s->user, s->ref);
    t->v = xrealloc(t->v, t->n + 1, sizeof(struct snapshot *));
    memmove(t->v + i + 1, t->v + i, (t->n - i) * sizeof(struct snapshot *));
    t->v[i] = s;
    t->n++;
}

/* ---- rows ---- */

static char *row_name(const struct snapshot *s)
{
    return xasprintf("%s/%s", str_or(s->user, ""), s->ref);
}

void snapshots_table_save(struct snapshots_table *t, const struct snapshot *s)
{
    struct snapshot kept = *s;
    kept.leaving = s->leaving || s->passing; /* after a kill nobody holds it */
    _cleanup_(freep) char *name = row_name(s);
    _cleanup_(freep) char *body = field_to_text(&snapshot_table, &kept, FIELD_STORED, FIELD_ROW);
    struct store_entry row = {
        .kind = SNAPSHOTS_ENTRY, .name = name, .body = body, .at = s->created_at};
    store_put_entry(t->store, &row);
}

void snapshots_table_remove(struct snapshots_table *t, struct snapshot *s)
{
    _cleanup_(freep) char *name = row_name(s);
    size_t i = find_place(t, s->user, s->ref);
    store_remove_entry(t->store, SNAPSHOTS_ENTRY, name);
    memmove(t->v + i, t->v + i + 1, (t->n - i - 1) * sizeof(struct snapshot *));
    t->n--;
    snapshot_free(s);
}

void snapshots_table_add(struct snapshots_table *t, struct snapshot *taken)
{
    insert(t, taken);
    snapshots_table_save(t, taken);
}

void snapshots_table_restore(struct snapshots_table *t, const struct store_entry *entry)
{
    const char *slash = strchr(entry->name, '/');
    struct snapshot *s = NULL;
    if (slash) {
        s = xcalloc(1, sizeof(*s));
        s->actor = xstrdup("");
        (void)field_from_text(&snapshot_table, entry->body, FIELD_STORED, s); /* no hash tells */
    }
    if (!s || strlen(s->hash) != HASH_HEX - 1) {
        log_err("store", "the row of a snapshot cannot be read: ignoring name=%s", entry->name);
        if (s)
            snapshot_free(s);
        return;
    }
    s->user = slash > entry->name ? xstrndup(entry->name, (size_t)(slash - entry->name)) : NULL;
    s->ref = xstrdup(slash + 1);
    s->path = snapshot_path(t->shared_root, s->user, s->ref);
    s->created_at = entry->at;
    insert(t, s);
}
