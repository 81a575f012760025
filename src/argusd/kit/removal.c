/* SPDX-License-Identifier: Apache-2.0 */
/* removal.c - see removal.h.
 *
 * A name without a version means another entry from user to user, and another one tomorrow: it is
 * read here as it would be at a submit of that user now. */
#include "argusd/kit/removal.h"

#include <stdlib.h>

#include "base/str.h"

static const char *const removal_kinds[] = {"job", "service", "pipeline", "preset", NULL};

#define USER(key, ftype, member, ...) FIELD_AT(removal_user, key, ftype, member, __VA_ARGS__)
static const struct field removal_user_rows[] = {
    USER("kind", FIELD_ENUM, kind, .names = removal_kinds),
    USER("name", FIELD_STR, name, .flags = FIELD_ALWAYS, .doc = "of a job: its id"),
    USER("owner", FIELD_STR, owner, .doc = "of a preset: its project"),
    USER("keeps", FIELD_BOOL, keeps, .doc = "while it is there the removal is refused"),
};
const struct field_table removal_user_table =
    FIELD_TABLE("RemovalUser", removal_user_rows, removal_user);

#define PLAN(key, ftype, member, ...) FIELD_AT(removal, key, ftype, member, __VA_ARGS__)
static const struct field removal_rows[] = {
    PLAN("name", FIELD_STR, name, .flags = FIELD_ALWAYS, .doc = "of what would be removed"),
    PLAN("refused", FIELD_BOOL, is_refused, .doc = "it cannot be removed now"),
    PLAN("users",
         FIELD_LIST,
         users,
         .of = &removal_user_table,
         .doc = "what uses it, as far as you may see it"),
    PLAN("hidden", FIELD_INT, hidden, .doc = "how many more use it"),
};
const struct field_table removal_table = FIELD_TABLE("RemovalPlan", removal_rows, removal);

void removal_release(struct removal *r)
{
    free(r->users.v);
    r->users = (struct field_list){0};
}

void removal_add(struct removal *r, const struct removal_user *user, bool sees)
{
    r->is_refused |= user->keeps;
    if (!sees || r->users.n >= REMOVAL_USERS_MAX) {
        r->hidden++;
        return;
    }
    field_list_add(&r->users, user, sizeof(*user));
}

/* As this user sees the registry; p holds his name for ret. False: he is disabled or gone, and
 * nothing of his runs. */
static bool removal_see_as(const struct removal *r,
                           const char *user,
                           struct http_principal *p,
                           struct access_who *ret)
{
    if (!user || people_admit_absent(r->a->people, user, p, NULL) < 0)
        return false;
    people_who(r->a->people, p, ret);
    return true;
}

static bool removal_is_text(const struct removal *r, const struct access_who *who, const char *text)
{
    struct dataref ref;
    struct registry_entry *e = NULL;
    return text && dataref_read(text, &ref) &&
           registry_find(r->a->registry, r->entry->kind, who, &ref, &e, NULL) == 0 && e == r->entry;
}

bool removal_is_named(const struct removal *r,
                      const char *user,
                      enum registry_kind kind,
                      const json_t *value)
{
    struct http_principal p;
    struct access_who who;
    size_t i;
    const json_t *one;
    if (!r->entry || r->entry->kind != kind || !removal_see_as(r, user, &p, &who))
        return false;
    json_array_foreach (value, i, one)
        if (removal_is_text(r, &who, json_string_value(one)))
            return true;
    return removal_is_text(r, &who, json_string_value(value));
}

static bool removal_is_made_of(const struct removal *r,
                               const char *user,
                               const char *project,
                               const char *ref)
{
    struct http_principal p;
    struct access_who who;
    const struct preset_item *item = NULL;
    return r->preset && ref && removal_see_as(r, user, &p, &who) &&
           presets_look_up(r->a->presets, &who, project, ref, &item, NULL) == 0 &&
           item == r->preset;
}

bool removal_is_in_spec(const struct removal *r,
                        const char *user,
                        const char *project,
                        const json_t *spec)
{
    static const struct {
        const char *key;
        enum registry_kind kind;
    } keys[] = {{"model_id", REGISTRY_MODEL},
                {"train_file", REGISTRY_DATASET},
                {"val_file", REGISTRY_DATASET}};
    for (size_t i = 0; i < array_len(keys); i++)
        if (removal_is_named(r, user, keys[i].kind, json_object_get(spec, keys[i].key)))
            return true;
    return removal_is_made_of(r, user, json_get_str(spec, "project", project),
                              json_get_str(spec, "preset", NULL));
}
