/* SPDX-License-Identifier: Apache-2.0 */
/* snapshots.c - see snapshots.h.
 *
 * What is done to the shared root stands in a line: any number of additions run side by side, and
 * what removes content runs alone, so that nobody adds a name to content that just goes. A step
 * waits for a batch of the store where it acts on what was decided. Content is on
 * disk before it has a row. */
#include "argusd/content/snapshots.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "argusd/content/snapshots_table.h"
#include "argusd/ground/work.h"
#include "base/log.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/spec/snapshot.h"
#include "fsroot/content/bundle.h"
#include "fsroot/content/snapshot.h"
#include "fsroot/look/verlversion.h"
#include "fsroot/tree/rootfile.h"

enum task_kind {
    TASK_MAKE,  /* content; worker */
    TASK_LINK,  /* its name, once the row is on disk */
    TASK_CLEAN, /* remove a name, and content that has no other */
    TASK_START, /* what an end left half done */
};

struct task {
    struct task *next;
    struct snapshots *sn;
    enum task_kind kind;
    bool running;
    uint64_t batch; /* not before this is on disk */
    /* For the worker: copies. */
    char *root, *work, *user, *ref, *want, *path, *actor;
    char *over;        /* what is said when it is larger than the quota leaves, kept;
 NULL = no quota */
    bool keep_content; /* CLEAN: another name has it */
    bool passing;
    bool is_known;  /* MAKE: the content was there already */
    uint64_t bytes; /* MAKE: of the archive */
    struct unpack_limits limits;
    struct strv links; /* START: user, ref, hash; user "" = common */
    struct snapshot_made made;
    int result;
    struct err err;
    bool was_there;
    snapshots_row_f row;
    snapshots_made_f done;
    void *arg;
};

struct snapshots {
    struct snapshots_parts p;
    struct snapshots_table table;
    struct task *tasks; /* in order */
    size_t running;
    bool alone; /* what runs must have nobody beside it */
    pthread_mutex_t healing;
};

/* ---- finding ---- */

struct snapshot *snapshots_find(const struct snapshots *sn, const char *user, const char *ref)
{
    struct snapshot *s = snapshots_table_at(&sn->table, user, ref);
    return s && !s->leaving ? s : NULL;
}

struct snapshot *snapshots_find_for(const struct snapshots *sn, const char *user, const char *ref)
{
    struct snapshot *s = snapshots_find(sn, user, ref);
    return s ? s : snapshots_find(sn, NULL, ref);
}

static bool is_at_or_below(const char *path, const char *dir)
{
    size_t n = strlen(dir);
    return !strncmp(path, dir, n) && (path[n] == '/' || !path[n]);
}

struct snapshot *snapshots_find_path(const struct snapshots *sn, const char *path)
{
    for (size_t i = 0; i < sn->table.n; i++) {
        _cleanup_(freep) char *tree = snapshots_tree(sn, sn->table.v[i]);
        if (!sn->table.v[i]->leaving &&
            (is_at_or_below(path, sn->table.v[i]->path) || is_at_or_below(path, tree)))
            return sn->table.v[i];
    }
    return NULL;
}

struct snapshot *snapshots_next(const struct snapshots *sn, size_t *pos)
{
    while (*pos < sn->table.n && sn->table.v[*pos]->leaving)
        (*pos)++;
    return *pos < sn->table.n ? sn->table.v[(*pos)++] : NULL;
}

char *snapshots_tree(const struct snapshots *sn, const struct snapshot *s)
{
    return snapshot_tree(sn->p.settings->shared_root, s->hash);
}

void snapshots_restore(struct snapshots *sn, const struct store_entry *entry)
{
    snapshots_table_restore(&sn->table, entry);
}

/* ---- the line ---- */

static void snapshots_task_free(struct task *t)
{
    char *texts[] = {t->root, t->work, t->user, t->ref, t->want, t->path, t->actor, t->over};
    for (size_t i = 0; i < array_len(texts); i++)
        free(texts[i]);
    strv_release(&t->links);
    snapshot_made_release(&t->made);
    free(t);
}

static struct task *snapshots_task_new(struct snapshots *sn, enum task_kind kind)
{
    struct task *t = xcalloc(1, sizeof(*t)), **end = &sn->tasks;
    t->sn = sn;
    t->kind = kind;
    t->root = xstrdup(sn->p.settings->shared_root);
    t->work = xstrdup(sn->p.settings->state_dir);
    while (*end)
        end = &(*end)->next;
    *end = t;
    return t;
}

static void unlist(struct task *t)
{
    for (struct task **p = &t->sn->tasks; *p; p = &(*p)->next)
        if (*p == t) {
            *p = t->next;
            return;
        }
}

static void snapshots_run_make(struct task *t)
{
    struct err why = {0};
    _cleanup_(closep) int fd = rootfile_open_within(t->root, t->path, t->bytes, &why);
    if (fd < 0) {
        (void)message_refuse(&t->err, fd, "upload_no_read",
                             MESSAGE_ARGS(MESSAGE_ERR("why", &why))); /* only fills it */
        return;
    }
    const char *at_sign = strchr(t->ref, '@');
    struct snapshot_source s = {.root = t->root,
                                .archive = fd,
                                .work = t->work,
                                .want = t->want,
                                .version = at_sign ? at_sign + 1 : NULL,
                                .limits = &t->limits,
                                .healing = &t->sn->healing};
    if (snapshot_make(&s, &t->made, &t->err) < 0 && !t->err.code)
        t->err.code = ERR_INTERNAL; /* never without a sentence, in truth */
}

/* The content is there already: is it still what it was? */
static void snapshots_run_look(struct task *t)
{
    struct manifest m = {0};
    if (snapshot_verify(t->root, t->want, &t->err) < 0 ||
        snapshot_read(t->root, t->want, &m, &t->err) < 0)
        return;
    text_copy(t->made.hash, t->want);
    t->made.bytes = m.bytes;
    t->made.files = m.n;
    t->made.existed = true;
    _cleanup_(freep) char *tree = snapshot_tree(t->root, t->want);
    manifest_release(&m);
    int r = fsroot_verl_version(t->root, tree, &t->made.verl, &t->err);
    if (r == 0)
        r = snapshot_read_needs(t->root, t->want, &t->made.needs, &t->err);
    if (r < 0 && !t->err.code)
        t->err.code = r; /* never without a sentence, in truth */
}

static void run_clean(struct task *t)
{
    int r = t->ref ? snapshot_unlink(t->root, t->user, t->ref, &t->err) : 0;
    if (r == 0 && !t->keep_content)
        r = snapshot_remove(t->root, t->want, &t->err);
    if (r < 0 && !t->err.code)
        t->err.code = r; /* never without a sentence, in truth */
}

static void snapshots_run_start(struct task *t)
{
    struct err err = {0};
    snapshot_sweep(t->root);
    bundle_sweep(t->work);
    for (size_t i = 0; i + 2 < t->links.n; i += 3) {
        const char *user = *t->links.v[i] ? t->links.v[i] : NULL;
        if (snapshot_link(t->root, user, t->links.v[i + 1], t->links.v[i + 2], &err) < 0)
            log_warn("snapshot", "%s snapshot=%s", err.text, t->links.v[i + 1]);
        if (snapshot_settle(t->root, t->links.v[i + 2], true, &err) < 0)
            log_warn("snapshot", "no job can use it until it is added again: %s snapshot=%s",
                     err.text, t->links.v[i + 1]);
    }
}

/* Content that was damaged is made anew, if there is something to make it of. */
static void run_look_or_make(struct task *t)
{
    if (t->is_known)
        snapshots_run_look(t);
    bool damaged = t->err.code == ERR_REFUSED || t->err.code == -ENOENT;
    if (damaged && !t->path)
        (void)message_refuse(&t->err, ERR_NOT_FOUND, "content_not_whole",
                             MESSAGE_ARGS(MESSAGE_STR("hash", t->want))); /* only fills err */
    if ((t->is_known && !damaged) || !t->path)
        return;
    t->err = (struct err){0};
    snapshots_run_make(t);
}

/* What is acknowledged, a job that names it above all, is on disk. */
static void run_content(struct task *t)
{
    run_look_or_make(t);
    if (!t->err.code)
        (void)!snapshot_settle(t->root, t->made.hash, false, &t->err); /* end_make() looks at err */
}

static void snapshots_run(void *arg)
{
    struct task *t = arg;
    if (t->kind == TASK_MAKE)
        run_content(t);
    else if (t->kind == TASK_LINK)
        t->result = snapshot_link(t->root, t->user, t->ref, t->want, &t->err);
    else if (t->kind == TASK_CLEAN)
        run_clean(t);
    else
        snapshots_run_start(t);
}

static void pump(struct snapshots *sn);

static bool is_alone(const struct task *t)
{
    return t->kind == TASK_CLEAN || t->kind == TASK_START;
}

/* ---- ends ---- */

/* ref NULL: only the content. */
static void clean_later(struct snapshots *sn, const char *user, const char *ref, const char *hash)
{
    struct task *t = snapshots_task_new(sn, TASK_CLEAN);
    t->user = xstrdup(user);
    t->ref = xstrdup(ref);
    t->want = xstrdup(hash);
    t->batch = store_batch(sn->p.store);
}

static void snapshots_tell(struct task *t, struct snapshot *s, bool taken)
{
    if (t->done)
        t->done(s, t->was_there, taken, s ? NULL : &t->err, t->arg);
}

static struct snapshot *snapshots_add_row(struct task *t)
{
    struct snapshot *s = xcalloc(1, sizeof(*s));
    s->user = xstrdup(t->user);
    s->ref = xstrdup(t->ref);
    s->path = snapshot_path(t->root, s->user, s->ref);
    memcpy(s->hash, t->made.hash, HASH_HEX);
    s->bytes = t->made.bytes;
    s->files = t->made.files;
    s->verl = xstrdup(t->made.verl);
    strv_copy(&s->needs, &t->made.needs);
    s->actor = xstrdup(t->actor);
    s->created_at = clock_wall();
    s->passing = t->passing;
    snapshots_table_add(&t->sn->table, s);
    if (t->row)
        t->row(s, t->arg);
    return s;
}

/* Those in the line that would remove this name. None runs: what is made runs beside none. */
static void forget_cleaning(struct snapshots *sn, const struct snapshot *s)
{
    for (struct task *t = sn->tasks, *next; t; t = next) {
        next = t->next;
        if (t->kind == TASK_CLEAN && str_eq(t->ref, s->ref) && str_eq(t->user, s->user)) {
            unlist(t);
            snapshots_task_free(t);
        }
    }
}

/* Its name is there already, for the same content: what was to go stays. */
static void use_again(struct task *t, struct snapshot *s)
{
    if (!s->leaving && (t->passing || !s->passing))
        return;
    if (s->leaving)
        forget_cleaning(t->sn, s);
    s->leaving = false;
    s->passing = t->passing;
    snapshots_table_save(&t->sn->table, s);
    if (t->row)
        t->row(s, t->arg);
}

/* "code" and the hash of its content: "code@0123456789ab". */
static void name_by_hash(struct task *t)
{
    char *ref = xasprintf("%s@%.*s", t->ref, SNAPSHOT_SHORT_HASH, t->made.hash);
    free(t->ref);
    t->ref = ref;
}

/* What is made cannot have this name: err is set. s: who has it; NULL = nobody. */
static void snapshots_check_name(struct task *t, const struct snapshot *s)
{
    int64_t most = t->sn->p.settings->snapshots_most;
    if (!s && (int64_t)t->sn->table.n >= most)
        (void)message_refuse(&t->err, ERR_REFUSED, "too_many_snapshots",
                             MESSAGE_ARGS(MESSAGE_NUM("most", most))); /* only fills err */
    else if (s && strcmp(s->hash, t->made.hash) != 0)
        (void)message_refuse(&t->err, ERR_CONFLICT, "snapshot_other",
                             MESSAGE_ARGS(MESSAGE_STR("ref", t->ref))); /* only fills err */
}

/* As it is now: others may have come meanwhile. s: the name as it is; NULL = it is new. */
static int snapshots_check_quota(const struct task *t, const struct snapshot *s, struct err *err)
{
    const struct storage *st = t->sn->p.storage;
    const char *payer = str_or(t->user, t->actor);
    if ((s && !s->leaving) || storage_has_content(st, payer, t->made.hash))
        return 0;
    return storage_check(st, payer, NULL, t->made.bytes, err);
}

static void end_unmade(struct task *t)
{
    if (*t->made.hash && !snapshots_table_has_content(&t->sn->table, NULL, t->made.hash))
        clean_later(t->sn, NULL, NULL, t->made.hash);
    bool transient = t->err.code != ERR_REFUSED && t->err.code != ERR_CONFLICT;
    snapshots_tell(t, NULL, !transient);
    snapshots_task_free(t);
}

/* The content is on disk: now its row. */
static void end_make(struct task *t)
{
    struct snapshots *sn = t->sn;
    struct snapshot *s = NULL;
    if (!t->err.code) {
        if (t->passing)
            name_by_hash(t);
        s = snapshots_table_at(&sn->table, t->user, t->ref);
        snapshots_check_name(t, s);
    }
    if (!t->err.code && snapshots_check_quota(t, s, &t->err) < 0 && !t->err.code)
        t->err.code = ERR_REFUSED; /* never without a sentence, in truth */
    if (t->err.code) {
        end_unmade(t);
        return;
    }
    bool was_there = s && !s->leaving && !s->passing;
    if (s)
        use_again(t, s);
    else
        s = snapshots_add_row(t);
    s->holders += t->passing;
    struct task *link = snapshots_task_new(sn, TASK_LINK);
    link->user = xstrdup(t->user);
    link->ref = xstrdup(t->ref);
    link->want = xstrdup(t->made.hash);
    link->was_there = was_there;
    link->passing = t->passing;
    link->batch = store_batch(sn->p.store);
    link->done = t->done;
    link->arg = t->arg;
    snapshots_task_free(t);
}

static void end_link(struct task *t)
{
    struct snapshot *s = snapshots_table_at(&t->sn->table, t->user, t->ref);
    if (t->err.code && s && t->passing)
        snapshots_let_go(t->sn, s);
    else if (t->err.code && s && !t->was_there) /* what nobody can use is not kept */
        snapshots_remove(t->sn, s);
    else if (!s && !t->err.code)
        (void)message_refuse(&t->err, ERR_CONFLICT, "snapshot_removed",
                             MESSAGE_ARGS(MESSAGE_STR("ref", t->ref)));
    snapshots_tell(t, t->err.code ? NULL : s, true);
    snapshots_task_free(t);
}

static void end_clean(struct task *t)
{
    struct snapshot *s = t->ref ? snapshots_table_at(&t->sn->table, t->user, t->ref) : NULL;
    if (t->err.code)
        log_warn("snapshot", "%s snapshot=%s", t->err.text, str_or(t->ref, t->want));
    if (s && s->leaving && !t->err.code)
        snapshots_table_remove(&t->sn->table, s); /* else the next start tries again */
    snapshots_task_free(t);
}

static void snapshots_done(void *arg)
{
    struct task *t = arg;
    struct snapshots *sn = t->sn;
    unlist(t);
    sn->running--;
    sn->alone = false;
    if (t->kind == TASK_MAKE)
        end_make(t);
    else if (t->kind == TASK_LINK)
        end_link(t);
    else if (t->kind == TASK_CLEAN)
        end_clean(t);
    else
        snapshots_task_free(t);
    pump(sn);
}

static void content_snapshots_start(struct task *t)
{
    struct snapshots *sn = t->sn;
    t->running = true;
    sn->running++;
    sn->alone = is_alone(t);
    if (t->kind == TASK_CLEAN) /* as it is now: names came and went while it stood in the line */
        t->keep_content = snapshots_table_has_content(
            &sn->table, t->ref ? snapshots_table_at(&sn->table, t->user, t->ref) : NULL, t->want);
    work_start_for(sn->p.loop, t->actor, snapshots_run, snapshots_done, t);
}

/* In order, but that a link, which has its content, passes by what waits. */
static void pump(struct snapshots *sn)
{
    uint64_t durable = store_durable(sn->p.store);
    bool blocked = false;
    for (struct task *t = sn->tasks; t && !sn->alone; t = t->next) {
        if (t->running || t->batch > durable)
            continue;
        if (is_alone(t) && sn->running)
            blocked = true;
        else if (!blocked || t->kind == TASK_LINK)
            content_snapshots_start(t);
    }
}

void snapshots_durable(struct snapshots *sn, uint64_t batch)
{
    (void)batch; /* the store knows */
    pump(sn);
}

/* ---- changing ---- */

/* No more is unpacked than there may be. What he has already costs nothing. */
static void limit_bytes(struct task *t)
{
    const struct storage *st = t->sn->p.storage;
    const char *payer = str_or(t->user, t->actor);
    uint64_t left = storage_left(st, payer, NULL);
    if (left >= t->limits.bytes || (t->want && storage_has_content(st, payer, t->want)))
        return;
    t->over = storage_keep(st, payer, NULL);
    t->limits.bytes = left;
    t->limits.over = t->over;
}

void snapshots_add(struct snapshots *sn,
                   const struct snapshots_wish *wish,
                   snapshots_row_f row,
                   snapshots_made_f made,
                   void *arg)
{
    const struct settings *st = sn->p.settings;
    struct task *t = snapshots_task_new(sn, TASK_MAKE);
    t->limits = (struct unpack_limits){.bytes = st->snapshot_bytes,
                                       .entries = (size_t)st->snapshot_files,
                                       .ratio = (unsigned)st->snapshot_ratio};
    t->user = xstrdup(wish->user);
    t->ref = xstrdup(wish->ref);
    t->actor = xstrdup(wish->actor);
    t->want = xstrdup(wish->want);
    t->path = xstrdup(wish->path);
    t->bytes = wish->bytes;
    t->passing = wish->passing;
    t->is_known = wish->is_known;
    t->row = row;
    t->done = made;
    t->arg = arg;
    limit_bytes(t);
    pump(sn);
}

void snapshots_keep(struct snapshots *sn, struct snapshot *s)
{
    s->passing = false;
    snapshots_table_save(&sn->table, s);
}

void snapshots_let_go(struct snapshots *sn, struct snapshot *s)
{
    if (--s->holders == 0 && s->passing && !s->leaving)
        snapshots_remove(sn, s);
}

void snapshots_set_needs(struct snapshots *sn,
                         struct snapshot *s,
                         const struct strv *needs,
                         const char *actor)
{
    strv_copy(&s->needs, needs);
    set_str(&s->needs_by, actor);
    snapshots_table_save(&sn->table, s);
}

void snapshots_remove(struct snapshots *sn, struct snapshot *s)
{
    s->leaving = true;
    snapshots_table_save(&sn->table, s);
    clean_later(sn, s->user, s->ref, s->hash);
}

/* ---- life ---- */

struct snapshots *snapshots_new(const struct snapshots_parts *parts)
{
    struct snapshots *sn = xcalloc(1, sizeof(*sn));
    sn->p = *parts;
    sn->table = (struct snapshots_table){.store = parts->store,
                                         .shared_root = parts->settings->shared_root};
    (void)pthread_mutex_init(&sn->healing, NULL); /* never fails with the usual attributes */
    return sn;
}

void snapshots_start(struct snapshots *sn)
{
    struct task *t = snapshots_task_new(sn, TASK_START);
    for (size_t i = 0; i < sn->table.n; i++) {
        const struct snapshot *s = sn->table.v[i];
        if (s->leaving) {
            clean_later(sn, s->user, s->ref, s->hash);
            continue;
        }
        strv_add(&t->links, str_or(s->user, ""));
        strv_add(&t->links, s->ref);
        strv_add(&t->links, s->hash);
    }
    pump(sn);
}

void snapshots_free(struct snapshots *sn)
{
    if (!sn)
        return;
    for (struct task *t = sn->tasks, *next; t; t = next) {
        next = t->next;
        (void)message_refuse(&t->err, ERR_UNAVAILABLE, "argusd_stops",
                             MESSAGE_NO_ARGS); /* only fills err */
        snapshots_tell(t, NULL, false);
        snapshots_task_free(t);
    }
    snapshots_table_release(&sn->table);
    (void)pthread_mutex_destroy(&sn->healing); /* nobody is left */
    free(sn);
}
