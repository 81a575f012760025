/* SPDX-License-Identifier: Apache-2.0 */
/* archives.c - the table of archives, their rows, and the line in which they are worked on; see
 * archives.h. An archive that has something to do is `owed`; the worker has copies of all that it
 * needs, and nothing of an archive that it works on is changed but by its end. */
#include "argusd/archive/archives.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/ground/work.h"
#include "base/digest/hash.h"
#include "base/log.h"
#include "base/map.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/spec/spec.h"
#include "fsroot/archive/jobarchive.h"

enum { TICK_MS = 2000, WAITING_MAX = 1000, WAITING_SHARE = 250 };
static const usec_t AGAIN_AFTER = 30 * USEC_SEC;

enum archive_state {
    ARCHIVE_PACKING,
    ARCHIVE_REMOVING,
    ARCHIVE_ARCHIVED,
    ARCHIVE_UNPACKING,
    ARCHIVE_RESTORING,
    ARCHIVE_FAILED, /* only in memory: the directory is as it was */
    ARCHIVE_BACK,   /* brought back at `at`: retention lets it be for as long again */
    ARCHIVE_STATES
};
static const char *const state_names[] = {"packing",   "removing", "archived", "unpacking",
                                          "restoring", "failed",   "back",     NULL};
static_assert(array_len(state_names) == ARCHIVE_STATES + 1, "a name for each state");

struct archived {
    char *id, *user, *project, *actor;
    char *dir; /* where its archive is, whatever the settings say by now */
    int64_t seq;
    int state; /* enum archive_state */
    char token[JOBARCHIVE_TOKEN_MAX];
    char hash[HASH_HEX];
    uint64_t bytes, packed, files;
    usec_t at;            /* when it was packed */
    char *path, *problem; /* problem: as message_keep() keeps it */
    bool no_checkpoints;

    bool owed, restarted; /* there is a step to do; that argusd before this one began */
    uint64_t batch;       /* its row has to be on disk for it */
    usec_t after;         /* monotonic: not before */
    struct archived *next;
};

struct archives {
    struct archives_parts p;
    uv_timer_t timer;
    struct map *by_id;
    struct map *turns;   /* of who asks -> uint64_t *: the turn that was his last */
    uint64_t turn_count; /* the newest turn */
    struct archived *first;
    bool busy, closing;
    volatile int stop;
};

#define ROW(key, ftype, member, ...)                                                               \
    {                                                                                              \
        .name = key, .type = ftype, .offset = offsetof(struct archived, member), __VA_ARGS__       \
    }
enum { WHOLE = FIELD_STORED | FIELD_SHOWN };
static const struct field archived_rows[] = {
    ROW("state", FIELD_ENUM, state, .names = state_names, .flags = WHOLE),
    ROW("at", FIELD_TIME, at, .flags = WHOLE, .doc = "time at which it was packed"),
    ROW("bytes", FIELD_COUNT, bytes, .flags = WHOLE, .doc = "size of the job's files"),
    ROW("packed", FIELD_COUNT, packed, .flags = WHOLE, .doc = "size of the archive"),
    ROW("files", FIELD_COUNT, files, .flags = WHOLE),
    ROW("path", FIELD_STR, path, .flags = FIELD_SHOWN, .doc = "path of the archive"),
    ROW("problem", FIELD_STR, problem, .flags = FIELD_SHOWN, .doc = "why the last try failed"),
    ROW("no_checkpoints",
        FIELD_BOOL,
        no_checkpoints,
        .flags = WHOLE,
        .doc = "its checkpoints were not packed, and are gone for good"),
    ROW("user", FIELD_STR, user, .flags = FIELD_STORED),
    ROW("project", FIELD_STR, project, .flags = FIELD_STORED),
    ROW("actor", FIELD_STR, actor, .flags = FIELD_STORED),
    ROW("dir", FIELD_STR, dir, .flags = FIELD_STORED),
    ROW("seq", FIELD_INT, seq, .flags = FIELD_STORED),
    ROW("token", FIELD_TEXT, token, .size = JOBARCHIVE_TOKEN_MAX, .flags = FIELD_STORED),
    ROW("hash", FIELD_TEXT, hash, .size = HASH_HEX, .flags = FIELD_STORED),
};
const struct field_table archives_table = {.name = "JobArchive",
                                           .rows = archived_rows,
                                           .n = array_len(archived_rows),
                                           .size = sizeof(struct archived)};

/* ---- the table ---- */

static void archived_free(struct archived *x)
{
    field_release(&archives_table, x);
    free(x->id);
    free(x);
}

static void archived_add(struct archives *as, struct archived *x)
{
    x->next = as->first;
    as->first = x;
    (void)map_set(as->by_id, x->id, x); /* the caller looked: it is new */
}

static void archived_remove(struct archives *as, struct archived *x)
{
    struct archived **at = &as->first;
    while (*at != x)
        at = &(*at)->next;
    *at = x->next;
    (void)map_remove(as->by_id, x->id); /* it is x */
    archived_free(x);
}

static void archived_save(struct archives *as, struct archived *x)
{
    _cleanup_(freep) char *body = field_to_text(&archives_table, x, FIELD_STORED, FIELD_ROW);
    struct store_entry row = {.kind = ARCHIVES_ENTRY, .name = x->id, .body = body, .at = x->at};
    store_put_entry(as->p.store, &row);
    x->batch = store_batch(as->p.store);
}

static void archived_set_path(struct archived *x)
{
    struct jobarchive a = {.dir = x->dir, .id = x->id, .token = x->token};
    free(x->path);
    x->path = x->dir ? jobarchive_path(&a) : NULL;
}

/* Who asked for what it waits for. */
static const char *archived_actor(const struct archived *x)
{
    return str_or(x->actor, "argusd");
}

/* Its directory is where it was. */
static bool archived_is_here(const struct archived *x)
{
    return x->state == ARCHIVE_FAILED || x->state == ARCHIVE_BACK;
}

void archives_restore(struct archives *as, const struct store_entry *row)
{
    struct archived *x = xcalloc(1, sizeof(*x));
    x->id = xstrdup(row->name);
    if (!field_from_text(&archives_table, row->body, FIELD_STORED, x) || !x->dir ||
        strlen(x->token) != JOBARCHIVE_TOKEN_MAX - 1) {
        log_err("store", "the row of an archive cannot be read: ignoring job=%s", row->name);
        archived_free(x);
        return;
    }
    archived_set_path(x);
    x->owed = x->restarted = x->state != ARCHIVE_ARCHIVED && !archived_is_here(x);
    archived_add(as, x);
}

static const struct archived *archives_find(const struct archives *as, const char *job)
{
    return map_find(as->by_id, job);
}

/* ---- what is asked ---- */

char *archives_text(const struct archives *as, const char *job, const struct message_listener *to)
{
    const struct archived *x = archives_find(as, job);
    if (!x || x->state == ARCHIVE_BACK)
        return NULL;
    struct archived page = *x; /* borrows all but what is said */
    _cleanup_(freep) char *said = page.problem = message_kept_say(x->problem, to);
    return field_to_text(&archives_table, &page, FIELD_SHOWN, FIELD_PAGE);
}

static void archived_keep_problem(struct archived *x, const struct err *why)
{
    free(x->problem);
    x->problem = message_keep(why);
}

bool archives_is_away(const struct archives *as, const char *job)
{
    const struct archived *x = as ? archives_find(as, job) : NULL;
    return x && !archived_is_here(x);
}

int archives_check_files(const struct archives *as, const char *job, struct err *err)
{
    const struct archived *x = archives_find(as, job);
    if (!x || archived_is_here(x))
        return 0;
    if (x->state == ARCHIVE_ARCHIVED)
        return message_refuse(err, ERR_CONFLICT, "job_archived",
                              MESSAGE_ARGS(MESSAGE_STR("job", job), MESSAGE_STR("name", job)));
    bool leaves = x->state <= ARCHIVE_REMOVING;
    return message_refuse(err, ERR_CONFLICT, leaves ? "job_leaves" : "job_comes_back",
                          MESSAGE_ARGS(MESSAGE_STR("job", job)));
}

int archives_check_text(const struct archives *as, const char *text, struct err *err)
{
    static const char below[] = "jobs/";
    int r = 0;
    if (!text || !as->first)
        return 0;
    for (const char *p = text; r == 0 && (p = strstr(p, below));) {
        p += sizeof(below) - 1;
        size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyz0123456789_.-");
        _cleanup_(freep) char *id = xstrndup(p, n < SPEC_ID_BUF ? n : 0);
        r = archives_check_files(as, id, err);
    }
    return r;
}

uint64_t archives_bytes(const struct archives *as, const char *user, const char *project)
{
    uint64_t sum = 0;
    for (const struct archived *x = as ? as->first : NULL; x; x = x->next)
        if (user ? str_eq(x->user, user) : str_eq(x->project, project))
            sum += x->packed;
    return sum;
}

bool archives_may_retire(const struct archives *as, const char *job, usec_t before)
{
    const struct archived *x = archives_find(as, job);
    return !x || (x->state == ARCHIVE_BACK && x->at <= before);
}

int archives_waiting(const struct archives *as, const char *actor)
{
    int n = 0;
    for (const struct archived *x = as->first; x; x = x->next)
        n += x->owed && (!actor || str_eq(archived_actor(x), actor));
    return n;
}

/* ---- the steps ---- */

struct archive_step {
    struct archives *as;
    struct archived *x;
    struct jobarchive order;
    char *root, *dir, *id;
    char token[JOBARCHIVE_TOKEN_MAX], hash[HASH_HEX];
    int state;
    bool taken_back; /* it is only undone, for the reason in err */
    struct jobarchive_made made;
    int result, undone; /* of the step; of taking it back, if it failed */
    struct err err, undo_err;
};

static void archive_step_free(struct archive_step *s)
{
    free(s->root);
    free(s->dir);
    free(s->id);
    free(s);
}

/* What a start or a failure takes back is taken back before anything is told. */
static void archive_step_run(void *arg)
{
    struct archive_step *s = arg;
    switch ((enum archive_state)s->state) {
    case ARCHIVE_PACKING:
        s->result = s->taken_back ? s->err.code : jobarchive_pack(&s->order, &s->made, &s->err);
        s->undone = s->result < 0 ? jobarchive_undo(&s->order, &s->undo_err) : 0;
        break;
    case ARCHIVE_REMOVING:
        s->result = jobarchive_finish(&s->order, &s->err);
        break;
    case ARCHIVE_UNPACKING:
        s->result = s->taken_back ? s->err.code : jobarchive_unpack(&s->order, s->hash, &s->err);
        s->undone = s->result < 0 ? jobarchive_drop(&s->order, &s->undo_err) : 0;
        break;
    case ARCHIVE_RESTORING:
        s->result = jobarchive_swap(&s->order, &s->err);
        break;
    case ARCHIVE_ARCHIVED:
    case ARCHIVE_BACK:
    case ARCHIVE_FAILED:
    case ARCHIVE_STATES:
        break;
    }
}

static void archive_tell(const struct archives *as,
                         const struct archived *x,
                         const char *kind,
                         const char *code,
                         const char *text)
{
    struct events_note note = {.kind = kind,
                               .actor = archived_actor(x),
                               .job_seq = x->seq,
                               .job = x->id,
                               .code = code,
                               .text = text};
    events_add(as->p.events, &note, clock_wall());
}

static void archive_fail(struct archives *as, struct archived *x, int state, const struct err *why)
{
    const char *kind = state == ARCHIVE_FAILED ? "archive_failed" : "unarchive_failed";
    x->state = state;
    x->owed = false;
    archived_keep_problem(x, why);
    log_warn("archive", "%s job=%s", why->text, x->id);
    archive_tell(as, x, kind, why->message, why->message ? why->args : why->text);
    if (state == ARCHIVE_FAILED) {
        store_remove_entry(as->p.store, ARCHIVES_ENTRY, x->id);
        x->packed = 0;
    } else {
        archived_save(as, x);
    }
}

static void archive_packed(struct archives *as, struct archived *x, const struct archive_step *s)
{
    x->bytes = s->made.bytes;
    x->packed = s->made.packed;
    x->files = s->made.files;
    text_copy(x->hash, s->made.hash);
    x->at = clock_wall();
    x->state = ARCHIVE_REMOVING;
    archived_save(as, x);
}

static void archive_done_well(struct archives *as, struct archived *x, const struct archive_step *s)
{
    char text[160];
    switch ((enum archive_state)s->state) {
    case ARCHIVE_PACKING:
        archive_packed(as, x, s);
        break;
    case ARCHIVE_REMOVING:
        x->state = ARCHIVE_ARCHIVED;
        x->owed = false;
        archived_save(as, x);
        if (x->no_checkpoints)
            as->p.checkpoints_gone(x->id, as->p.arg);
        message_write(text, sizeof(text),
                      MESSAGE_ARGS(MESSAGE_NUM("files", x->files), MESSAGE_NUM("bytes", x->bytes),
                                   MESSAGE_NUM("packed", x->packed),
                                   MESSAGE_NUM("removed", x->no_checkpoints)));
        archive_tell(as, x, "archived", "archived_job", text);
        break;
    case ARCHIVE_UNPACKING:
        x->state = ARCHIVE_RESTORING;
        archived_save(as, x);
        break;
    case ARCHIVE_RESTORING:
        archive_tell(as, x, "unarchived", "unarchived_job", "{}");
        x->state = ARCHIVE_BACK;
        x->owed = false;
        x->packed = 0;
        x->at = clock_wall();
        archived_save(as, x);
        break;
    case ARCHIVE_ARCHIVED:
    case ARCHIVE_BACK:
    case ARCHIVE_FAILED:
    case ARCHIVE_STATES:
        break;
    }
}

/* What cannot be done or undone now is tried until it can: the row stays. */
static void archive_again(struct archived *x, const struct err *why)
{
    x->after = clock_mono() + AGAIN_AFTER;
    _cleanup_(freep) char *kept = message_keep(why);
    if (!str_eq(x->problem, kept))
        log_warn("archive", "%s job=%s", why->text, x->id);
    set_str(&x->problem, kept);
}

static void archives_next(struct archives *as);

static void archive_step_done(void *arg)
{
    struct archive_step *s = arg;
    struct archives *as = s->as;
    struct archived *x = s->x;
    as->busy = false;
    if (as->closing) {
        archive_step_free(s);
        return; /* the row says what to go on with */
    }
    if (s->result == 0) {
        set_str(&x->problem, NULL);
        x->restarted = false;
        archive_done_well(as, x, s);
    } else if (s->undone < 0) {
        archive_again(x, &s->undo_err);
    } else if (s->state == ARCHIVE_PACKING || s->state == ARCHIVE_UNPACKING) {
        archive_fail(as, x, s->state == ARCHIVE_PACKING ? ARCHIVE_FAILED : ARCHIVE_ARCHIVED,
                     &s->err);
    } else {
        archive_again(x, &s->err);
    }
    archive_step_free(s);
    archives_next(as);
}

/* The turn that was the last of who asked for it; 0: he had none. */
static uint64_t archives_last_turn(const struct archives *as, const struct archived *x)
{
    const uint64_t *turn = map_find(as->turns, archived_actor(x));
    return turn ? *turn : 0;
}

static void archives_take_turn(struct archives *as, const struct archived *x)
{
    uint64_t *turn = map_find(as->turns, archived_actor(x));
    if (!turn) {
        turn = xcalloc(1, sizeof(*turn));
        (void)map_set(as->turns, archived_actor(x), turn); /* there was none */
    }
    *turn = ++as->turn_count;
}

static void archive_step_start(struct archives *as, struct archived *x)
{
    const struct settings *set = as->p.settings;
    struct archive_step *s = xcalloc(1, sizeof(*s));
    *s = (struct archive_step){.as = as,
                               .x = x,
                               .root = xstrdup(set->shared_root),
                               .dir = xstrdup(x->dir),
                               .id = xstrdup(x->id),
                               .state = x->state,
                               .taken_back = x->restarted};
    if (x->restarted && x->problem)
        (void)message_refuse_kept(&s->err, -ECANCELED, x->problem); /* only fills it */
    else if (x->restarted)
        (void)message_refuse(&s->err, -ECANCELED, "argusd_ended", MESSAGE_NO_ARGS);
    x->restarted = true; /* whatever comes of it: the step was begun */
    archives_take_turn(as, x);
    text_copy(s->token, x->token);
    text_copy(s->hash, x->hash);
    s->order = (struct jobarchive){.root = s->root,
                                   .dir = s->dir,
                                   .id = s->id,
                                   .token = s->token,
                                   .limits = {.bytes = set->archive_bytes,
                                              .entries = set->archive_files,
                                              .stop = &as->stop,
                                              .hollow = x->no_checkpoints ? "checkpoints" : NULL}};
    as->busy = true;
    work_start(as->p.loop, archive_step_run, archive_step_done, s);
}

/* Somebody may have come for its files since it was asked for: they are packed, and nothing was
 * taken away yet. */
static bool archive_is_wanted_back(struct archives *as, struct archived *x)
{
    struct err err = {0};
    if (x->state != ARCHIVE_REMOVING || x->restarted ||
        as->p.check_unused(x->id, as->p.arg, &err) == 0)
        return false;
    x->state = ARCHIVE_PACKING;
    x->restarted = true;
    archived_keep_problem(x, &err);
    archived_save(as, x);
    return true;
}

/* The oldest archive that has a step to do, of who had a turn longest ago. begun: only an archive
 * that is half done. */
static struct archived *archives_oldest(const struct archives *as, bool begun)
{
    struct archived *oldest = NULL; /* the list begins with the newest */
    usec_t now = clock_mono();
    uint64_t least = UINT64_MAX;
    for (struct archived *x = as->first; x; x = x->next) {
        bool is_begun = x->state == ARCHIVE_REMOVING || x->state == ARCHIVE_RESTORING;
        if (!x->owed || now < x->after || (begun && !is_begun))
            continue;
        uint64_t last = archives_last_turn(as, x);
        if (last <= least) {
            oldest = x;
            least = last;
        }
    }
    return oldest;
}

static void archives_next(struct archives *as)
{
    if (as->busy || as->closing || !cluster_root_is_ok(as->p.cluster) ||
        store_is_failing(as->p.store))
        return;
    struct archived *next = archives_oldest(as, true);
    if (!next)
        next = archives_oldest(as, false);
    if (next && store_durable(as->p.store) >= next->batch && !archive_is_wanted_back(as, next))
        archive_step_start(as, next);
}

void archives_durable(struct archives *as, uint64_t batch)
{
    (void)batch;
    archives_next(as);
}

static void archives_on_tick(uv_timer_t *t)
{
    archives_next(container_of(t, struct archives, timer));
}

/* ---- asked by people ---- */

/* Nobody is refused while there is room: the last places are for those who have less than a share,
 * so that whoever asks for many leaves them to others. */
static int archives_check_line(const struct archives *as, const char *actor, struct err *err)
{
    int n = archives_waiting(as, NULL), his = archives_waiting(as, actor);
    int r = cluster_check_root_answers(as->p.cluster, err);
    if (r < 0)
        return r;
    if (his >= WAITING_SHARE && n >= WAITING_MAX - WAITING_SHARE && n < WAITING_MAX)
        return message_refuse(err, ERR_BUSY, "archives_of_one_busy",
                              MESSAGE_ARGS(MESSAGE_NUM("jobs", his)));
    return n < WAITING_MAX ? 0
                           : message_refuse(err, ERR_BUSY, "archives_busy",
                                            MESSAGE_ARGS(MESSAGE_NUM("jobs", n)));
}

static struct archived *archived_new(const struct archives *as,
                                     const struct job *job,
                                     unsigned flags,
                                     const char *actor)
{
    struct archived *x = xcalloc(1, sizeof(*x));
    *x = (struct archived){.id = xstrdup(job->id),
                           .user = xstrdup(job->user),
                           .project = xstrdup(job->project),
                           .actor = xstrdup(actor),
                           .seq = job->seq,
                           .state = ARCHIVE_PACKING,
                           .no_checkpoints = flags & ARCHIVES_NO_CHECKPOINTS,
                           .owed = true};
    x->dir = as->p.settings->archive_dir
                 ? xstrdup(as->p.settings->archive_dir)
                 : xasprintf("%s/argus/archive", as->p.settings->shared_root);
    (void)random_hex(x->token);
    archived_set_path(x);
    return x;
}

int archives_pack(struct archives *as,
                  const struct job *job,
                  unsigned flags,
                  const char *actor,
                  struct err *err)
{
    struct archived *old = map_find(as->by_id, job->id);
    bool without = flags & ARCHIVES_NO_CHECKPOINTS;
    if (old && old->state <= ARCHIVE_ARCHIVED && old->no_checkpoints == without)
        return 0;
    if (old && !archived_is_here(old))
        return archives_check_files(as, job->id, err);
    int r = archives_check_line(as, actor, err);
    if (r == 0)
        r = as->p.check_unused(job->id, as->p.arg, err);
    if (r < 0)
        return r;
    if (old)
        archived_remove(as, old);
    struct archived *x = archived_new(as, job, flags, actor);
    archived_add(as, x);
    archived_save(as, x);
    return 0;
}

int archives_unpack(struct archives *as, const struct job *job, const char *actor, struct err *err)
{
    struct archived *x = map_find(as->by_id, job->id);
    if (!x || archived_is_here(x))
        return message_refuse(err, ERR_CONFLICT, "job_not_archived",
                              MESSAGE_ARGS(MESSAGE_STR("job", job->id)));
    if (x->state == ARCHIVE_UNPACKING || x->state == ARCHIVE_RESTORING)
        return 0;
    if (x->state != ARCHIVE_ARCHIVED)
        return archives_check_files(as, job->id, err);
    int r = archives_check_line(as, actor, err);
    if (r < 0)
        return r;
    x->state = ARCHIVE_UNPACKING;
    x->owed = true;
    x->restarted = false;
    x->after = 0;
    set_str(&x->actor, actor);
    set_str(&x->problem, NULL);
    archived_save(as, x);
    return 0;
}

/* ---- life ---- */

struct archives *archives_new(const struct archives_parts *parts)
{
    unsigned char seed[16];
    struct archives *as = xcalloc(1, sizeof(*as));
    random_bytes(seed, sizeof(seed));
    as->p = *parts;
    as->by_id = map_new(seed);
    as->turns = map_new(seed);
    (void)uv_timer_init(parts->loop, &as->timer); /* never fails */
    return as;
}

void archives_start(struct archives *as)
{
    (void)uv_timer_start(&as->timer, archives_on_tick, TICK_MS, TICK_MS); /* cannot fail */
}

void archives_close(struct archives *as)
{
    if (!as || as->closing)
        return;
    as->closing = true;
    as->stop = 1;
    uv_close((uv_handle_t *)&as->timer, NULL);
}

void archives_free(struct archives *as)
{
    uint64_t *turn;
    if (!as)
        return;
    for (struct archived *x = as->first, *next; x; x = next) {
        next = x->next;
        archived_free(x);
    }
    for (size_t pos = 0; (turn = map_next(as->turns, &pos, NULL));)
        free(turn);
    map_free(as->turns);
    map_free(as->by_id);
    free(as);
}
