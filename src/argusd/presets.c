/* SPDX-License-Identifier: Apache-2.0 */
/* presets.c - see presets.h. Rows are entries of kind "preset", named "project/name"; shipped ones
 * stand in the same map as "/name". */
#include "argusd/presets.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/map.h"
#include "base/str.h"
#include "base/strv.h"
#include "embedded.h"

#define KIND "preset"
enum { ROW_MAX = 512 << 10 };

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

static char *key_of(const char *project, const char *name)
{
    return xasprintf("%s/%s", str_or(project, ""), name);
}

static struct preset_item *find(const struct presets *pr, const char *project, const char *name)
{
    _cleanup_(freep) char *key = key_of(project, name);
    return map_find(pr->by_key, key);
}

/* Takes preset. */
static struct preset_item *add(struct presets *pr,
                               const char *project,
                               const char *name,
                               const char *text,
                               struct preset *preset)
{
    _cleanup_(freep) char *key = key_of(project, name);
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
        add(pr, NULL, rows[i].name, text, p);
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

static void save(const struct presets *pr, const struct preset_item *i)
{
    _cleanup_(freep) char *key = key_of(i->project, i->name);
    struct buf body = BUF_INIT(ROW_MAX);
    struct jout j = jout_begin(&body);
    jout_open(&j, NULL, '{');
    jout_str(&j, "text", i->text);
    jout_str(&j, "changed_by", i->changed_by);
    jout_int(&j, "created_at", (int64_t)i->created_at);
    jout_int(&j, "changed_at", (int64_t)i->changed_at);
    jout_close(&j, '}');
    struct store_entry row = {
        .kind = KIND, .name = key, .body = buf_str(&body), .at = i->changed_at};
    store_put_entry(pr->store, &row);
    buf_release(&body);
}

bool presets_restore_entry(struct presets *pr, const struct store_entry *entry)
{
    const char *slash = strchr(entry->name, '/');
    _cleanup_(json_unrefp) json_t *o = NULL;
    struct problems ps = {0};
    struct preset *p = NULL;
    if (strcmp(entry->kind, KIND) != 0)
        return false;
    if (!slash || json_parse(entry->body, strlen(entry->body), ROW_MAX, &o, NULL) < 0)
        return true;
    _cleanup_(freep) char *project = xstrndup(entry->name, (size_t)(slash - entry->name));
    const char *text = json_get_str(o, "text", "");
    if (preset_parse(text, strlen(text), &p, &ps) < 0)
        p = NULL; /* it stays, and says so when it is asked for */
    struct preset_item *i = add(pr, project, slash + 1, text, p);
    set_str(&i->changed_by, json_get_str(o, "changed_by", ""));
    i->created_at = (usec_t)json_get_int(o, "created_at", 0);
    i->changed_at = (usec_t)json_get_int(o, "changed_at", 0);
    problems_release(&ps);
    return true;
}

/* ---- the table ---- */

const struct preset_item *presets_find(const struct presets *pr,
                                       const char *project,
                                       const char *name)
{
    return find(pr, project, name);
}

const struct preset_item *presets_next(const struct presets *pr, size_t *pos)
{
    return map_next(pr->by_key, pos, NULL);
}

size_t presets_count(const struct presets *pr)
{
    return map_count(pr->by_key);
}

static size_t count_of(const struct presets *pr, const char *project)
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
    if (find(pr, NULL, name))
        return err_set(err, ERR_CONFLICT, "'%s' is a shipped preset: choose another name", name);
    if (!find(pr, project, name) && count_of(pr, project) >= PRESETS_OF_PROJECT_MAX)
        return err_set(err, ERR_REFUSED, "project '%s' has %d presets, and cannot have more",
                       project, PRESETS_OF_PROJECT_MAX);
    r = preset_parse(text, strlen(text), &p, ps);
    if (r < 0)
        return err_set(err, r, "the preset has problems");
    struct preset_item *i = add(pr, project, name, text, p);
    i->created_at = i->created_at ? i->created_at : now;
    i->changed_at = now;
    set_str(&i->changed_by, by);
    save(pr, i);
    *ret = i;
    return 0;
}

void presets_remove(struct presets *pr, const struct preset_item *item)
{
    _cleanup_(freep) char *key = key_of(item->project, item->name);
    struct preset_item *own = map_remove(pr->by_key, key);
    store_remove_entry(pr->store, KIND, key);
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
        presets_remove(pr, find(pr, project, names.v[k]));
    strv_release(&names);
}

/* ---- who may ---- */

int presets_may(const struct preset_item *item,
                const struct access_who *who,
                enum access_action action,
                const char *verb,
                struct err *err)
{
    struct access_thing thing = {.kind = "preset", .name = item->name};
    if (!item->project)
        return action == ACCESS_PRESET_SEE
                   ? access_check_common(who, action, verb, &thing, err)
                   : err_set(err, ERR_FORBIDDEN, "preset '%s' is shipped: nobody can %s it",
                             item->name, verb);
    thing.owner = item->changed_by;
    thing.project = item->project;
    thing.is_common = str_eq(item->project, ACCESS_DEFAULT_PROJECT);
    return access_check(who, action, verb, &thing, err);
}

static bool may_see(const struct preset_item *item, const struct access_who *who)
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
        if (may_see(i, who))
            names[n++] = i->name;
    const char *near = str_nearest(ref, names, n);
    int r = err_set(err, ERR_BAD_SPEC,
                    "there is no preset '%.130s'%s%s%s: 'argus preset ls' lists them", ref,
                    near ? " (did you mean '" : "", str_or(near, ""), near ? "'?)" : "");
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
    const struct preset_item *i = slash ? find(pr, named, slash + 1) : NULL;
    for (size_t k = 0; !slash && !may_see(i, who) && k < array_len(places); k++)
        i = find(pr, places[k], ref);
    if (!may_see(i, who))
        return say_unknown(pr, who, ref, err);
    if (!i->preset)
        return err_set(err, ERR_BAD_SPEC,
                       "preset '%s' cannot be read by this version: store it anew", i->name);
    *ret = i;
    return 0;
}
