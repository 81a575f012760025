/* SPDX-License-Identifier: Apache-2.0 */
/* snapshots_table.c - see snapshots_table.h. Sorted by ref, then user. */
#include "argusd/snapshots_table.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/place.h"
#include "base/str.h"
#include "core/snapshot.h"
#include "fsroot/snapshot.h"

#define KIND "snapshot"

enum { ROW_MAX = 64 << 10 };

static int compare(const struct snapshot *s, const char *user, const char *ref)
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
    return -compare(*s, k->user, k->ref);
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
    return i < t->n && compare(t->v[i], user, ref) == 0 ? t->v[i] : NULL;
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

static void snapshot_free(struct snapshot *s)
{
    free(s->user);
    free(s->ref);
    free(s->path);
    free(s->verl);
    free(s->actor);
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
    struct buf out = BUF_INIT(ROW_MAX);
    struct jout j = jout_begin(&out);
    _cleanup_(freep) char *name = row_name(s);
    jout_open(&j, NULL, '{');
    jout_str(&j, "hash", s->hash);
    jout_int(&j, "bytes", (int64_t)s->bytes);
    jout_int(&j, "files", (int64_t)s->files);
    jout_str(&j, "verl", s->verl);
    jout_str(&j, "actor", s->actor);
    jout_bool(&j, "leaving", s->leaving || s->passing); /* after a kill nobody holds it */
    jout_close(&j, '}');
    struct store_entry row = {
        .kind = KIND, .name = name, .body = buf_str(&out), .at = s->created_at};
    store_put_entry(t->store, &row);
    buf_release(&out);
}

void snapshots_table_remove(struct snapshots_table *t, struct snapshot *s)
{
    _cleanup_(freep) char *name = row_name(s);
    size_t i = find_place(t, s->user, s->ref);
    store_remove_entry(t->store, KIND, name);
    memmove(t->v + i, t->v + i + 1, (t->n - i - 1) * sizeof(struct snapshot *));
    t->n--;
    snapshot_free(s);
}

void snapshots_table_add(struct snapshots_table *t, struct snapshot *taken)
{
    insert(t, taken);
    snapshots_table_save(t, taken);
}

bool snapshots_table_restore(struct snapshots_table *t, const struct store_entry *entry)
{
    _cleanup_(json_unrefp) json_t *v = NULL;
    const char *slash = strchr(entry->name, '/');
    if (strcmp(entry->kind, KIND) != 0)
        return false;
    const char *hash = NULL;
    if (slash && json_parse(entry->body, strlen(entry->body), ROW_MAX, &v, NULL) == 0)
        hash = json_get_str(v, "hash", NULL);
    if (!hash || strlen(hash) != HASH_HEX - 1) {
        log_err("store", "the row of a snapshot cannot be read: ignoring name=%s", entry->name);
        return true;
    }
    struct snapshot *s = xcalloc(1, sizeof(*s));
    s->user = slash > entry->name ? xstrndup(entry->name, (size_t)(slash - entry->name)) : NULL;
    s->ref = xstrdup(slash + 1);
    s->path = snapshot_path(t->shared_root, s->user, s->ref);
    memcpy(s->hash, hash, HASH_HEX);
    s->bytes = (uint64_t)json_get_int(v, "bytes", 0);
    s->files = (uint64_t)json_get_int(v, "files", 0);
    s->verl = xstrdup(json_get_str(v, "verl", NULL));
    s->actor = xstrdup(json_get_str(v, "actor", ""));
    s->leaving = json_get_bool(v, "leaving", false);
    s->created_at = entry->at;
    insert(t, s);
    return true;
}
