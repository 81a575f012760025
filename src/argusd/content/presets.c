/* SPDX-License-Identifier: Apache-2.0 */
/* presets.c - see presets.h. Rows are entries of kind "preset", named "project/name"; shipped ones
 * stand in the same map as "/name". */
#include "argusd/content/presets.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/map.h"
#include "base/message.h"
#include "base/str.h"
#include "base/strv.h"
#include "embedded.h"

struct presets {
    struct store *store;
    struct map *by_key;
};

static void item_free(struct preset_item *i)
{
    char *texts[] = {i->name, i->project, i->text, i->changed_by};
    for (size_t k = 0; k < array_len(texts); k++)
        free(texts[k]);
    preset_free(i->preset);
    free(i);
}

static char *presets_key_of(const char *project, const char *name)
{
    return xasprintf("%s/%s", str_or(project, ""), name);
}

static struct preset_item *content_presets_find(const struct presets *pr,
                                                const char *project,
                                                const char *name)
{
    _cleanup_(freep) char *key = presets_key_of(project, name);
    return map_find(pr->by_key, key);
}

/* Takes preset. */
static struct preset_item *presets_add(struct presets *pr,
                                       const char *project,
                                       const char *name,
                                       const char *text,
                                       struct preset *preset)
{
    _cleanup_(freep) char *key = presets_key_of(project, name);
    unsigned char hash[HASH_BYTES];
    struct preset_item *i = xcalloc(1, sizeof(*i));
    i->name = xstrdup(name);
    i->project = xstrdup(project);
    i->text = xstrdup(text);
    i->changed_by = xstrdup("");
    i->preset = preset;
    hash_sha256(text, strlen(text), hash);
    (void)str_hex(hash, sizeof(hash), i->hash);
    struct preset_item *old = map_set(pr->by_key, key, i);
    if (old) {
        i->created_at = old->created_at;
        item_free(old);
    }
    return i;
}

/* ---- those that are shipped ---- */

static void add_shipped(struct presets *pr)
{
    const struct {
        const char *name;
        const unsigned char *text;
        size_t size;
    } rows[] = {
        {"eval", embedded_eval_yaml, embedded_eval_yaml_size},
        {"generate", embedded_generate_yaml, embedded_generate_yaml_size},
        {"grpo-0.5b", embedded_grpo_0_5b_yaml, embedded_grpo_0_5b_yaml_size},
        {"grpo-32b", embedded_grpo_32b_yaml, embedded_grpo_32b_yaml_size},
        {"grpo-7b", embedded_grpo_7b_yaml, embedded_grpo_7b_yaml_size},
        {"merge", embedded_merge_yaml, embedded_merge_yaml_size},
        {"ppo-0.5b", embedded_ppo_0_5b_yaml, embedded_ppo_0_5b_yaml_size},
        {"ppo-7b", embedded_ppo_7b_yaml, embedded_ppo_7b_yaml_size},
        {"sft-0.5b", embedded_sft_0_5b_yaml, embedded_sft_0_5b_yaml_size},
        {"sft-7b", embedded_sft_7b_yaml, embedded_sft_7b_yaml_size},
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        struct problems ps = {0};
        struct preset *p = NULL;
        const char *text = (const char *)rows[i].text;
        int r = preset_parse(text, rows[i].size, &p, &ps);
        assert(r == 0); /* each is parsed by a test */
        (void)r;
        presets_add(pr, NULL, rows[i].name, text, p);
        problems_release(&ps);
    }
}

struct presets *presets_new(struct store *store)
{
    unsigned char seed[16];
    random_bytes(seed, sizeof(seed));
    struct presets *pr = xcalloc(1, sizeof(*pr));
    pr->store = store;
    pr->by_key = map_new(seed);
    add_shipped(pr);
    return pr;
}

void presets_free(struct presets *pr)
{
    struct preset_item *i;
    if (!pr)
        return;
    for (size_t pos = 0; (i = map_next(pr->by_key, &pos, NULL));)
        item_free(i);
    map_free(pr->by_key);
    free(pr);
}

/* ---- rows ---- */

#define ROW(key, ftype, ...)                                                                       \
    {                                                                                              \
        .name = #key, .type = ftype, .offset = offsetof(struct preset_item, key), __VA_ARGS__      \
    }
enum { EVERYWHERE = FIELD_SHOWN | FIELD_LISTED, WHOLE = FIELD_STORED | EVERYWHERE };
static const struct field item_rows[] = {
    ROW(name, FIELD_STR, .flags = EVERYWHERE | FIELD_ALWAYS),
    ROW(project, FIELD_STR, .flags = EVERYWHERE, .doc = "null: it is shipped"),
    ROW(text,
        FIELD_STR,
        .flags = FIELD_STORED | FIELD_SHOWN | FIELD_ALWAYS,
        .doc = "YAML, as it was given"),
    ROW(changed_by, FIELD_STR, .flags = FIELD_STORED),
    ROW(hash, FIELD_TEXT, .size = HASH_HEX, .flags = EVERYWHERE, .doc = "SHA-256 of the text"),
    ROW(created_at, FIELD_TIME, .flags = WHOLE),
    ROW(changed_at, FIELD_TIME, .flags = WHOLE),
};
const struct field_table preset_item_table = {.name = "Preset",
                                              .rows = item_rows,
                                              .n = array_len(item_rows),
                                              .size = sizeof(struct preset_item)};

static void presets_save(const struct presets *pr, const struct preset_item *i)
{
    _cleanup_(freep) char *key = presets_key_of(i->project, i->name);
    _cleanup_(freep) char *body = field_to_text(&preset_item_table, i, FIELD_STORED, FIELD_ROW);
    struct store_entry row = {
        .kind = PRESETS_ENTRY, .name = key, .body = body, .at = i->changed_at};
    store_put_entry(pr->store, &row);
}

void presets_restore_entry(struct presets *pr, const struct store_entry *entry)
{
    const char *slash = strchr(entry->name, '/');
    struct preset_item row = {0};
    struct problems ps = {0};
    struct preset *p = NULL;
    if (!slash || !field_from_text(&preset_item_table, entry->body, FIELD_STORED, &row))
        return;
    _cleanup_(freep) char *project = xstrndup(entry->name, (size_t)(slash - entry->name));
    const char *text = str_or(row.text, "");
    if (preset_parse(text, strlen(text), &p, &ps) < 0)
        p = NULL; /* it stays, and says so when it is asked for */
    struct preset_item *i = presets_add(pr, project, slash + 1, text, p);
    set_str(&i->changed_by, str_or(row.changed_by, ""));
    i->created_at = row.created_at;
    i->changed_at = row.changed_at;
    field_release(&preset_item_table, &row);
    problems_release(&ps);
}

/* ---- the table ---- */

const struct preset_item *presets_find(const struct presets *pr,
                                       const char *project,
                                       const char *name)
{
    return content_presets_find(pr, project, name);
}

const struct preset_item *presets_next(const struct presets *pr, size_t *pos)
{
    return map_next(pr->by_key, pos, NULL);
}

size_t presets_count(const struct presets *pr)
{
    return map_count(pr->by_key);
}

static size_t presets_count_of(const struct presets *pr, const char *project)
{
    const struct preset_item *i;
    size_t n = 0;
    for (size_t pos = 0; (i = presets_next(pr, &pos));)
        n += str_eq(i->project, project);
    return n;
}

int presets_put(struct presets *pr,
                const char *project,
                const char *name,
                const char *text,
                const char *by,
                usec_t now,
                const struct preset_item **ret,
                struct problems *ps,
                struct err *err)
{
    struct preset *p = NULL;
    int r = preset_check_name(name, err);
    if (r < 0)
        return r;
    if (content_presets_find(pr, NULL, name))
        return message_refuse(err, ERR_CONFLICT, "preset_shipped",
                              MESSAGE_ARGS(MESSAGE_STR("name", name)));
    if (!content_presets_find(pr, project, name) &&
        presets_count_of(pr, project) >= PRESETS_OF_PROJECT_MAX)
        return message_refuse(err, ERR_REFUSED, "too_many_presets",
                              MESSAGE_ARGS(MESSAGE_STR("project", project),
                                           MESSAGE_NUM("most", PRESETS_OF_PROJECT_MAX)));
    r = preset_parse(text, strlen(text), &p, ps);
    if (r < 0)
        return message_refuse(err, r, "preset_has_problems", MESSAGE_NO_ARGS);
    struct preset_item *i = presets_add(pr, project, name, text, p);
    i->created_at = i->created_at ? i->created_at : now;
    i->changed_at = now;
    set_str(&i->changed_by, by);
    presets_save(pr, i);
    *ret = i;
    return 0;
}

void presets_remove(struct presets *pr, const struct preset_item *item)
{
    _cleanup_(freep) char *key = presets_key_of(item->project, item->name);
    struct preset_item *own = map_remove(pr->by_key, key);
    store_remove_entry(pr->store, PRESETS_ENTRY, key);
    item_free(own);
}

void presets_remove_all(struct presets *pr, const char *project)
{
    struct strv names = {0};
    const struct preset_item *i;
    for (size_t pos = 0; (i = presets_next(pr, &pos));)
        if (str_eq(i->project, project))
            strv_add(&names, i->name);
    for (size_t k = 0; k < names.n; k++)
        presets_remove(pr, content_presets_find(pr, project, names.v[k]));
    strv_release(&names);
}

/* ---- who may ---- */

struct access_thing presets_thing(const struct preset_item *item)
{
    return (struct access_thing){.kind = ACCESS_KIND_PRESET,
                                 .name = item->name,
                                 .owner = item->changed_by,
                                 .project = item->project,
                                 .is_common = str_eq(item->project, ACCESS_DEFAULT_PROJECT)};
}

int presets_may(const struct preset_item *item,
                const struct access_who *who,
                enum access_action action,
                const char *verb,
                struct err *err)
{
    struct access_thing thing = presets_thing(item);
    if (!item->project)
        return action == ACCESS_PRESET_SEE
                   ? access_check_common(who, action, verb, &thing, err)
                   : message_refuse(
                         err, ERR_FORBIDDEN, "preset_shipped_kept",
                         MESSAGE_ARGS(MESSAGE_STR("name", item->name), MESSAGE_STR("verb", verb)));
    return access_check(who, action, verb, &thing, err);
}

static bool presets_may_see(const struct preset_item *item, const struct access_who *who)
{
    return item && presets_may(item, who, ACCESS_PRESET_SEE, "see", NULL) == 0;
}

static int say_unknown(const struct presets *pr,
                       const struct access_who *who,
                       const char *ref,
                       struct err *err)
{
    const char **names = xcalloc(presets_count(pr) + 1, sizeof(*names));
    const struct preset_item *i;
    size_t n = 0;
    for (size_t pos = 0; (i = presets_next(pr, &pos));)
        if (presets_may_see(i, who))
            names[n++] = i->name;
    const char *near = str_nearest(ref, names, n);
    int r = message_refuse(
        err, ERR_BAD_SPEC, "no_preset",
        MESSAGE_ARGS(MESSAGE_STR("name", ref), MESSAGE_STR("near", str_or(near, ""))));
    free(names);
    return r;
}

int presets_look_up(const struct presets *pr,
                    const struct access_who *who,
                    const char *project,
                    const char *ref,
                    const struct preset_item **ret,
                    struct err *err)
{
    const char *slash = strchr(ref, '/');
    _cleanup_(freep) char *named = slash ? xstrndup(ref, (size_t)(slash - ref)) : NULL;
    const char *places[] = {project && *project ? project : ACCESS_DEFAULT_PROJECT,
                            ACCESS_DEFAULT_PROJECT, NULL};
    const struct preset_item *i = slash ? content_presets_find(pr, named, slash + 1) : NULL;
    for (size_t k = 0; !slash && !presets_may_see(i, who) && k < array_len(places); k++)
        i = content_presets_find(pr, places[k], ref);
    if (!presets_may_see(i, who))
        return say_unknown(pr, who, ref, err);
    if (!i->preset)
        return message_refuse(err, ERR_BAD_SPEC, "preset_unreadable",
                              MESSAGE_ARGS(MESSAGE_STR("name", i->name)));
    *ret = i;
    return 0;
}
