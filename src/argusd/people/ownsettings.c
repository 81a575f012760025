/* SPDX-License-Identifier: Apache-2.0 */
/* ownsettings.c - see ownsettings.h.
 *
 * A change is merged into a copy and stored whole, so that one that is refused leaves nothing
 * behind. Whose settings they are is checked by when the person was made. */
#include "argusd/people/ownsettings.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/people/people.h"
#include "base/digest/hash.h"
#include "base/json.h"
#include "base/map.h"
#include "base/message.h"
#include "base/str.h"

struct ownsettings {
    struct store *store;
    struct map *by_user; /* struct ownsettings_of */
};

#define ROW(key, ftype, ...)                                                                       \
    {                                                                                              \
        .name = #key, .type = ftype, .offset = offsetof(struct ownsettings_of, key), __VA_ARGS__   \
    }
#define ANYTHING                                                                                   \
    "{\"type\":\"object\",\"additionalProperties\":{\"description\":\"as it was set\"}}"
static const struct field ownsettings_rows[] = {
    ROW(settings,
        FIELD_JSON,
        .flags = FIELD_STORED | FIELD_SHOWN | FIELD_ALWAYS,
        .schema = ANYTHING),
    ROW(changed_at, FIELD_TIME, .flags = FIELD_STORED | FIELD_SHOWN, .doc = "null: never"),
    ROW(user_since, FIELD_TIME, .flags = FIELD_STORED),
};
const struct field_table ownsettings_table =
    FIELD_TABLE("OwnSettings", ownsettings_rows, ownsettings_of);

struct ownsettings *ownsettings_new(struct store *store)
{
    unsigned char seed[16];
    struct ownsettings *os = xcalloc(1, sizeof(*os));
    random_bytes(seed, sizeof(seed));
    os->store = store;
    os->by_user = map_new(seed);
    return os;
}

static void ownsettings_of_free(struct ownsettings_of *o)
{
    if (!o)
        return;
    field_release(&ownsettings_table, o);
    free(o);
}

void ownsettings_free(struct ownsettings *os)
{
    struct ownsettings_of *o;
    if (!os)
        return;
    for (size_t pos = 0; (o = map_next(os->by_user, &pos, NULL));)
        ownsettings_of_free(o);
    map_free(os->by_user);
    free(os);
}

void ownsettings_restore(struct ownsettings *os, const struct store_entry *row)
{
    struct ownsettings_of *o = xcalloc(1, sizeof(*o));
    if (field_from_text(&ownsettings_table, row->body, FIELD_STORED, o) && o->settings)
        ownsettings_of_free(map_set(os->by_user, row->name, o));
    else
        ownsettings_of_free(o);
}

const struct ownsettings_of *ownsettings_find(const struct ownsettings *os, const struct person *p)
{
    const struct ownsettings_of *o = map_find(os->by_user, p->name);
    return o && o->user_since == p->created_at ? o : NULL;
}

static bool ownsettings_is_key(const char *key)
{
    size_t n = strlen(key);
    return n > 0 && n <= OWNSETTINGS_KEY_MAX &&
           strspn(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == n;
}

/* Into `all`, which is the caller's copy. */
static int ownsettings_merge(json_t *all, const json_t *changes, struct err *err)
{
    const char *key;
    json_t *value;
    json_object_foreach ((json_t *)(uintptr_t)changes, key, value) {
        if (!ownsettings_is_key(key))
            return message_refuse(
                err, ERR_BAD_SPEC, "own_settings_key",
                MESSAGE_ARGS(MESSAGE_STR("key", key), MESSAGE_NUM("most", OWNSETTINGS_KEY_MAX)));
        if (json_is_null(value))
            (void)json_object_del(all, key); /* it may not be there */
        else
            (void)json_object_set(all, key, value); /* fails for lack of memory only */
    }
    if (json_object_size(all) > OWNSETTINGS_KEYS_MAX)
        return message_refuse(err, ERR_TOO_LARGE, "own_settings_keys",
                              MESSAGE_ARGS(MESSAGE_NUM("most", OWNSETTINGS_KEYS_MAX)));
    return 0;
}

static void ownsettings_save(struct ownsettings *os,
                             const struct person *p,
                             char *text_taken,
                             usec_t now)
{
    struct ownsettings_of *o = xcalloc(1, sizeof(*o));
    *o = (struct ownsettings_of){
        .settings = text_taken, .changed_at = now, .user_since = p->created_at};
    _cleanup_(freep) char *body = field_to_text(&ownsettings_table, o, FIELD_STORED, FIELD_ROW);
    struct store_entry row = {.kind = OWNSETTINGS_ENTRY, .name = p->name, .body = body, .at = now};
    store_put_entry(os->store, &row);
    ownsettings_of_free(map_set(os->by_user, p->name, o));
}

int ownsettings_change(struct ownsettings *os,
                       const struct person *p,
                       const json_t *changes,
                       usec_t now,
                       struct err *err)
{
    const struct ownsettings_of *old = ownsettings_find(os, p);
    _cleanup_(json_unrefp) json_t *all = old ? json_loads(old->settings, 0, NULL) : json_object();
    int r = ownsettings_merge(all, changes, err);
    if (r < 0)
        return r;
    _cleanup_(freep) char *text = json_dumps(all, JSON_COMPACT);
    if (strlen(text) > OWNSETTINGS_BYTES_MAX)
        return message_refuse(err, ERR_TOO_LARGE, "own_settings_large",
                              MESSAGE_ARGS(MESSAGE_NUM("bytes", strlen(text)),
                                           MESSAGE_NUM("most", OWNSETTINGS_BYTES_MAX)));
    ownsettings_save(os, p, xstrdup(text), now);
    return 0;
}
