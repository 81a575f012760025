/* SPDX-License-Identifier: Apache-2.0 */
/* registry.c - the table of data sets and models; see registry.h.
 *
 * An entry's key is "<scope>/<name>@<version>", the scope being "common" or "~<owner>": no user's
 * name begins with a tilde. The highest version that a name ever had is a row of its own. */
#include "argusd/content/registry.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/hash.h"
#include "base/log.h"
#include "base/map.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "fsroot/tree/paths.h"

enum { TURN_MS = 2000, KEY_MAX = 160 };

static const char *const kind_words[REGISTRY_KINDS] = {REGISTRY_ENTRY_DATASET,
                                                       REGISTRY_ENTRY_MODEL};
static const char *const kind_names[REGISTRY_KINDS] = {"data set", "model"};
static const char *const last_words[REGISTRY_KINDS] = {REGISTRY_ENTRY_DATASET_LAST,
                                                       REGISTRY_ENTRY_MODEL_LAST};
static const char *const homes[REGISTRY_KINDS] = {"datasets", "models"};

const char *registry_kind_word(enum registry_kind kind)
{
    return kind_words[kind];
}

const char *registry_kind_name(enum registry_kind kind)
{
    return kind_names[kind];
}

const char *registry_ref(const struct registry_entry *e, char ret[static REGISTRY_REF_MAX])
{
    text_printf_to(ret, REGISTRY_REF_MAX, "%s@%" PRId64, e->name, e->version);
    return ret;
}

/* ---- life ---- */

struct registry *registry_new(const struct registry_parts *parts)
{
    unsigned char seed[16];
    struct registry *rg = xcalloc(1, sizeof(*rg));
    rg->p = *parts;
    random_bytes(seed, sizeof(seed));
    for (size_t i = 0; i < REGISTRY_KINDS; i++)
        rg->tables[i] = map_new(seed);
    rg->lasts = map_new(seed);
    return rg;
}

void registry_entry_free(struct registry_entry *e)
{
    if (!e)
        return;
    field_release(&registry_entry_table, e);
    free(e->progress);
    free(e->key);
    json_decref(e->lineage);
    json_decref(e->about);
    free(e);
}

void registry_free(struct registry *rg)
{
    struct registry_entry *e;
    struct registry_last *last;
    if (!rg)
        return;
    for (size_t i = 0; i < REGISTRY_KINDS; i++) {
        for (size_t pos = 0; (e = map_next(rg->tables[i], &pos, NULL));)
            registry_entry_free(e);
        map_free(rg->tables[i]);
    }
    for (size_t pos = 0; (last = map_next(rg->lasts, &pos, NULL));)
        free(last);
    map_free(rg->lasts);
    free(rg);
}

static void registry_on_timer(uv_timer_t *t)
{
    registry_turn(t->data);
}

void registry_start(struct registry *rg, struct jobs *jobs)
{
    rg->jobs = jobs;
    (void)uv_timer_init(rg->p.loop, &rg->timer); /* these cannot fail */
    rg->timer.data = rg;
    rg->has_timer = true;
    (void)uv_timer_start(&rg->timer, registry_on_timer, TURN_MS, TURN_MS);
}

void registry_on_made(struct registry *rg, registry_made_f made, void *arg)
{
    rg->made = made;
    rg->made_arg = arg;
}

void registry_on_keeper(struct registry *rg, registry_keeper_f keeper, void *arg)
{
    rg->keeper = keeper;
    rg->keeper_arg = arg;
}

void registry_close(struct registry *rg)
{
    if (!rg)
        return;
    rg->closed = true;
    if (rg->has_timer)
        uv_close((uv_handle_t *)&rg->timer, NULL);
    rg->has_timer = false;
}

/* ---- keys and places ---- */

static void put_scope(const struct registry_entry *e, char *ret, size_t size)
{
    text_printf_to(ret, size, "%s%s/%s", e->is_common ? "" : "~",
                   e->is_common ? "common" : e->owner, e->name);
}

static struct registry_last *registry_last_of(struct registry *rg,
                                              enum registry_kind kind,
                                              const char *scope)
{
    char key[KEY_MAX];
    text_printf(key, "%s %s", kind_words[kind], scope);
    struct registry_last *last = map_find(rg->lasts, key);
    if (!last) {
        last = xcalloc(1, sizeof(*last));
        map_set(rg->lasts, key, last);
    }
    return last;
}

static void registry_keep(struct registry *rg, struct registry_entry *e)
{
    char scope[KEY_MAX];
    put_scope(e, scope, sizeof(scope));
    e->key = xasprintf("%s@%" PRId64, scope, e->version);
    map_set(rg->tables[e->kind], e->key, e);
    struct registry_last *last = registry_last_of(rg, e->kind, scope);
    if (e->version > last->version)
        last->version = e->version;
}

char *registry_home(const struct settings *s,
                    enum registry_kind kind,
                    const char *owner,
                    bool is_common)
{
    return is_common ? xasprintf("%s/common/%s", s->shared_root, homes[kind])
                     : xasprintf("%s/users/%s/%s", s->shared_root, owner, homes[kind]);
}

char *registry_staging(const struct settings *s, const struct registry_entry *e)
{
    _cleanup_(freep) char *home = registry_home(s, e->kind, e->owner, e->is_common);
    return xasprintf("%s/.import-%s", home, e->job);
}

char *registry_report(const struct settings *s, const char *job)
{
    _cleanup_(freep) char *dir = fsroot_job_dir(s->shared_root, job);
    return xasprintf("%s/import", dir);
}

/* ---- rows ---- */

static void restore_last(struct registry *rg,
                         enum registry_kind kind,
                         const struct store_entry *row)
{
    int64_t version = 0;
    if (str_to_int(row->body, 1, INT64_MAX, &version, NULL) == 0 &&
        registry_last_of(rg, kind, row->name)->version < version)
        registry_last_of(rg, kind, row->name)->version = version;
}

void registry_restore(struct registry *rg, const struct store_entry *row)
{
    struct err err = {0};
    struct registry_entry *e;
    for (int i = 0; i < REGISTRY_KINDS; i++)
        if (str_eq(row->kind, last_words[i]))
            restore_last(rg, (enum registry_kind)i, row);
        else if (!str_eq(row->kind, kind_words[i]))
            continue;
        else if (registry_record_read((enum registry_kind)i, row->body, &e, &err) < 0)
            log_err("registry", "%s", err.text);
        else
            registry_keep(rg, e);
}

static bool registry_put_row(struct registry *rg, const struct registry_entry *e)
{
    struct buf out = BUF_INIT(REGISTRY_BODY_MAX * 2);
    registry_record_write(e, &out);
    struct store_entry row = {
        .kind = kind_words[e->kind], .name = e->key, .body = buf_str(&out), .at = clock_wall()};
    bool fits = !out.failed;
    if (fits)
        store_put_entry(rg->p.store, &row);
    buf_release(&out);
    return fits;
}

void registry_save(struct registry *rg, struct registry_entry *e)
{
    if (registry_put_row(rg, e))
        return;
    log_warn("registry", "what the %s '%s' was made of is too much to keep", kind_names[e->kind],
             e->key);
    json_decref(e->lineage);
    e->lineage = NULL;
    if (!registry_put_row(rg, e)) /* all else has ceilings */
        log_err("registry", "the %s '%s' cannot be kept", kind_names[e->kind], e->key);
}

/* Whether there may be one more like it. */
static int registry_check_room(const struct registry *rg,
                               const struct registry_entry *e,
                               struct err *err)
{
    const struct registry_entry *other;
    const char *kind = kind_names[e->kind];
    size_t his = 0;
    if (registry_count(rg, e->kind) >= REGISTRY_ENTRIES_MAX)
        return message_refuse(
            err, ERR_REFUSED, "too_many_entries",
            MESSAGE_ARGS(MESSAGE_NUM("most", REGISTRY_ENTRIES_MAX), MESSAGE_STR("noun", kind)));
    for (size_t pos = 0; (other = map_next(rg->tables[e->kind], &pos, NULL));)
        his += str_eq(other->owner, e->owner);
    return his < REGISTRY_OF_USER_MAX
               ? 0
               : message_refuse(err, ERR_REFUSED, "too_many_entries_of_user",
                                MESSAGE_ARGS(MESSAGE_NUM("most", REGISTRY_OF_USER_MAX),
                                             MESSAGE_STR("noun", kind)));
}

int registry_add(struct registry *rg,
                 struct registry_entry *taken,
                 struct registry_entry **ret,
                 struct err *err)
{
    char scope[KEY_MAX], number[24];
    int r = registry_check_room(rg, taken, err);
    if (r < 0) {
        registry_entry_free(taken);
        return r;
    }
    put_scope(taken, scope, sizeof(scope));
    taken->version = registry_last_of(rg, taken->kind, scope)->version + 1;
    if (!taken->in_place) {
        _cleanup_(freep) char *home =
            registry_home(rg->p.settings, taken->kind, taken->owner, taken->is_common);
        free(taken->path);
        taken->path = xasprintf("%s/%s/%" PRId64, home, taken->name, taken->version);
    }
    registry_keep(rg, taken);
    text_printf(number, "%" PRId64, taken->version);
    struct store_entry last = {
        .kind = last_words[taken->kind], .name = scope, .body = number, .at = clock_wall()};
    store_put_entry(rg->p.store, &last);
    registry_save(rg, taken);
    *ret = taken;
    return 0;
}

void registry_drop(struct registry *rg, struct registry_entry *e)
{
    store_remove_entry(rg->p.store, kind_words[e->kind], e->key);
    (void)map_remove(rg->tables[e->kind], e->key); /* e itself: we have it */
    registry_entry_free(e);
}

/* ---- looking ---- */

struct registry_entry *registry_next(const struct registry *rg,
                                     enum registry_kind kind,
                                     size_t *pos)
{
    return map_next(rg->tables[kind], pos, NULL);
}

size_t registry_count(const struct registry *rg, enum registry_kind kind)
{
    return map_count(rg->tables[kind]);
}

struct access_thing registry_thing(const struct registry_entry *e)
{
    static const enum access_kind kinds[REGISTRY_KINDS] = {
        [REGISTRY_DATASET] = ACCESS_KIND_DATASET, [REGISTRY_MODEL] = ACCESS_KIND_MODEL};
    return (struct access_thing){.kind = kinds[e->kind],
                                 .name = e->key,
                                 .owner = e->owner,
                                 .project = e->project,
                                 .is_common = e->is_common,
                                 .shared = &e->shared};
}

int registry_check(const struct registry_entry *e,
                   const struct access_who *who,
                   enum access_action action,
                   const char *verb,
                   struct err *err)
{
    char ref[REGISTRY_REF_MAX];
    struct access_thing thing = registry_thing(e);
    thing.name = registry_ref(e, ref);
    return access_check(who, action, verb, &thing, err);
}

static void registry_add_shared(struct strv *all, const char *kind, const struct strv *names)
{
    for (size_t i = 0; i < names->n; i++) {
        _cleanup_(freep) char *one = xasprintf("%s/%s", kind, names->v[i]);
        if (!strv_has(all, one))
            strv_add(all, one);
    }
}

int registry_share(struct registry *rg,
                   struct registry_entry *e,
                   const struct strv *users,
                   const struct strv *projects,
                   bool off,
                   struct err *err)
{
    struct strv named = {0}, all = {0};
    if (users->n + projects->n > REGISTRY_SHARED_MAX) /* each is compared with those before it */
        return message_refuse(err, ERR_REFUSED, "shared_too_many",
                              MESSAGE_ARGS(MESSAGE_NUM("most", REGISTRY_SHARED_MAX)));
    registry_add_shared(&named, "user", users);
    registry_add_shared(&named, "project", projects);
    for (size_t i = 0; i < e->shared.n; i++)
        if (!off || (named.n && !strv_has(&named, e->shared.v[i])))
            strv_add(&all, e->shared.v[i]);
    for (size_t i = 0; !off && i < named.n; i++)
        if (!strv_has(&all, named.v[i]))
            strv_add(&all, named.v[i]);
    strv_release(&named);
    if (all.n > REGISTRY_SHARED_MAX) {
        strv_release(&all);
        return message_refuse(err, ERR_REFUSED, "shared_too_many",
                              MESSAGE_ARGS(MESSAGE_NUM("most", REGISTRY_SHARED_MAX)));
    }
    strv_release(&e->shared);
    e->shared = all;
    registry_save(rg, e);
    return 0;
}

static bool registry_overlaps(const char *a, const char *b)
{
    size_t na = strlen(a), nb = strlen(b), n = na < nb ? na : nb;
    return !strncmp(a, b, n) && (na == nb || (na < nb ? b : a)[n] == '/');
}

int registry_check_files(const struct registry *rg,
                         const struct access_who *who,
                         const char *path,
                         struct err *err)
{
    _cleanup_(freep) char *full = xasprintf("%s/%s", rg->p.settings->shared_root, path);
    const struct registry_entry *e;
    for (int kind = 0; kind < REGISTRY_KINDS; kind++)
        for (size_t pos = 0; (e = registry_next(rg, (enum registry_kind)kind, &pos));) {
            if (e->state == REGISTRY_removing || !e->path || !registry_overlaps(e->path, full))
                continue;
            int r = registry_check(e, who, ACCESS_DATA_CHANGE, "change the files of", err);
            if (r == ERR_NOT_FOUND) /* of others: which one is not told */
                r = message_refuse(err, ERR_FORBIDDEN, "entry_lies_there",
                                   MESSAGE_ARGS(MESSAGE_STR("path", path)));
            if (r < 0)
                return r;
        }
    return 0;
}

/* How near it is to who asks; 0 = it is not what he named, or not for him to see. */
static int nearness(const struct registry_entry *e,
                    const struct access_who *who,
                    const struct dataref *ref)
{
    if (strcmp(e->name, ref->name) != 0 || (ref->version && e->version != ref->version) ||
        e->state == REGISTRY_removing || registry_check(e, who, ACCESS_DATA_SEE, "see", NULL) < 0)
        return 0;
    if (*ref->owner)
        return str_eq(ref->owner, e->is_common ? "common" : e->owner) ? 1 : 0;
    return e->is_common ? 2 : str_eq(e->owner, who->user) ? 3 : 1;
}

static bool is_better(const struct registry_entry *e, const struct registry_entry *than)
{
    if ((e->state == REGISTRY_ready) != (than->state == REGISTRY_ready))
        return e->state == REGISTRY_ready;
    return e->version > than->version;
}

int registry_find(const struct registry *rg,
                  enum registry_kind kind,
                  const struct access_who *who,
                  const struct dataref *ref,
                  struct registry_entry **ret,
                  struct err *err)
{
    struct registry_entry *e, *best = NULL;
    const struct registry_entry *other = NULL;
    int near = 0;
    for (size_t pos = 0; (e = registry_next(rg, kind, &pos));) {
        int n = nearness(e, who, ref);
        bool same = best && e->is_common == best->is_common && str_eq(e->owner, best->owner);
        if (n == 0 || n < near)
            continue;
        if (n == near && !e->is_common && !same)
            other = e;
        else if (n > near || is_better(e, best))
            best = e;
        if (n > near)
            other = NULL;
        near = n;
    }
    if (!best)
        return message_refuse(err, ERR_NOT_FOUND, "not_found",
                              MESSAGE_ARGS(MESSAGE_STR("noun", kind_names[kind]),
                                           MESSAGE_STR("owner", ref->owner),
                                           MESSAGE_STR("name", ref->name)));
    if (other)
        return message_refuse(
            err, ERR_CONFLICT, "entry_of_two",
            MESSAGE_ARGS(MESSAGE_STR("name", ref->name), MESSAGE_STR("noun", kind_names[kind]),
                         MESSAGE_STR("one", best->owner), MESSAGE_STR("other", other->owner)));
    *ret = best;
    return 0;
}

/* ---- use ---- */

void registry_note_use(struct registry *rg, struct registry_entry *e, const char *job)
{
    struct strv kept = {0};
    for (size_t i = e->used.n >= REGISTRY_USED_MAX ? 1 : 0; i < e->used.n; i++)
        strv_add(&kept, e->used.v[i]);
    strv_add(&kept, job);
    strv_release(&e->used);
    e->used = kept;
    e->uses++;
    registry_save(rg, e);
}

const char *registry_user_of(const struct registry *rg, const struct registry_entry *e)
{
    for (size_t i = e->used.n; i-- > 0;)
        if (rg->jobs && jobs_find_id(rg->jobs, e->used.v[i]))
            return e->used.v[i];
    return NULL;
}

int registry_check_kept(const struct registry *rg,
                        const struct registry_entry *e,
                        const struct access_who *who,
                        struct err *err)
{
    char ref[REGISTRY_REF_MAX];
    struct registry_keeper by = {0};
    if (e->kind != REGISTRY_MODEL || e->state != REGISTRY_ready || !rg->keeper ||
        !rg->keeper(e, who, &by, rg->keeper_arg))
        return 0;
    return message_refuse(err, ERR_CONFLICT, "entry_served",
                          MESSAGE_ARGS(MESSAGE_STR("entry", registry_ref(e, ref)),
                                       MESSAGE_STR("service", by.service),
                                       MESSAGE_NUM("version", by.version)));
}

void registry_remove(struct registry *rg, struct registry_entry *e)
{
    e->state = REGISTRY_removing;
    registry_save(rg, e);
}
