/* SPDX-License-Identifier: Apache-2.0 */
/* uploads.c - the table of uploads: rows, ceilings, expiry, and handing them on; see uploads.h.
 * What comes in is uploads_receive.c.
 *
 * Removing takes the row first and the bytes after it: what a crash leaves is a directory without
 * a row, and such are removed at start. */
#include "argusd/content/uploads.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/ground/work.h"
#include "base/json.h"
#include "base/log.h"
#include "base/map.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "fsroot/content/upload.h"

enum {
    TICK_MS = 10000,
    ROW_MAX = 16 << 10,
    WRITERS = 6, /* of argusd's 16 workers: a slow root must leave some to the others */
    WRITERS_OF_USER = 3,
};

static const uint64_t SPARE_BYTES = 1ULL << 30; /* of the shared root: jobs write there too */

struct uploads {
    struct uploads_parts p;
    struct map *map;
    uv_timer_t timer;
    bool is_running, is_swept, is_closing;
    struct turns turns;
};

static const char *const states[] =
    {[UPLOAD_OPEN] = "open", [UPLOAD_COMPLETE] = "complete", [UPLOAD_FAILED] = "failed", NULL};

const char *upload_state_to_string(enum upload_state s)
{
    return states[s];
}

uv_loop_t *uploads_loop(const struct uploads *us)
{
    return us->p.loop;
}

const char *uploads_root(const struct uploads *us)
{
    return us->p.settings->shared_root;
}

#define ROW(key, ftype, ...)                                                                       \
    {                                                                                              \
        .name = #key, .type = ftype, .offset = offsetof(struct upload, key), __VA_ARGS__           \
    }
enum { WHOLE = FIELD_STORED | FIELD_SHOWN };
static const struct field upload_rows[] = {
    ROW(id, FIELD_TEXT, .size = UPLOAD_ID_MAX, .flags = FIELD_SHOWN),
    ROW(name, FIELD_STR, .flags = WHOLE | FIELD_ALWAYS, .doc = "name of the file, for people"),
    ROW(user, FIELD_STR, .flags = WHOLE | FIELD_ALWAYS),
    ROW(bytes, FIELD_COUNT, .flags = WHOLE, .doc = "size of the whole upload"),
    ROW(wanted, FIELD_TEXT, .size = HASH_HEX, .flags = FIELD_STORED),
    ROW(state, FIELD_ENUM, .names = states, .flags = WHOLE),
    ROW(sha256, FIELD_TEXT, .size = HASH_HEX, .flags = FIELD_STORED),
    ROW(offset, FIELD_COUNT, .flags = WHOLE, .doc = "safe on the disk: where to go on"),
    ROW(running, FIELD_STR, .flags = FIELD_STORED),
    ROW(why, FIELD_STR, .flags = WHOLE, .doc = "what went wrong last"),
    ROW(created_at, FIELD_TIME, .flags = WHOLE),
};
const struct field_table upload_table = {.name = "Upload",
                                         .rows = upload_rows,
                                         .n = array_len(upload_rows),
                                         .size = sizeof(struct upload)};

static void upload_free(struct upload *u)
{
    field_release(&upload_table, u);
    free(u);
}

int uploads_ask_root(const struct uploads *us, struct err *err)
{
    if (us->is_closing) /* the cluster may be gone */
        return 0;
    return cluster_root_is_known(us->p.cluster) ? cluster_check_root(us->p.cluster, err)
                                                : cluster_check_root_answers(us->p.cluster, err);
}

/* ---- turns ---- */

/* Nobody's turn comes before argusd has looked at the root once: until then a root that argusd has
 * still to prepare looks like one that lost its mount. */
static void uploads_start_turns(struct uploads *us)
{
    bool may = us->is_closing || cluster_root_is_known(us->p.cluster);
    for (struct turn *t; may && (t = turns_next(&us->turns, WRITERS));) {
        const struct uploads_turn *x = container_of(t, struct uploads_turn, turn);
        x->start(x->arg);
    }
}

void uploads_wait_turn(struct uploads *us, struct uploads_turn *t)
{
    turns_add(&us->turns, &t->turn);
    uploads_start_turns(us);
}

void uploads_end_turn(struct uploads *us, struct uploads_turn *t)
{
    turns_leave(&us->turns, &t->turn);
    uploads_start_turns(us);
}

void uploads_root_news(struct uploads *us)
{
    uploads_start_turns(us);
}

/* ---- rows ---- */

void uploads_save(struct uploads *us, struct upload *u)
{
    struct upload row = *u;
    _cleanup_(freep) char *running = u->state == UPLOAD_OPEN && u->progress.synced
                                         ? hash_base64(&u->progress.hash, sizeof(u->progress.hash))
                                         : NULL;
    row.running = running;
    row.offset = u->state == UPLOAD_OPEN ? u->progress.synced : u->offset;
    if (u->state != UPLOAD_COMPLETE)
        row.sha256[0] = 0; /* of a part: its running hash says it */
    _cleanup_(freep) char *body = field_to_text(&upload_table, &row, FIELD_STORED, FIELD_ROW);
    struct store_entry entry = {
        .kind = UPLOADS_ENTRY, .name = u->id, .body = body, .at = u->touched_at};
    store_put_entry(us->p.store, &entry);
}

struct access_thing uploads_thing(const struct upload *u)
{
    return (struct access_thing){.kind = ACCESS_KIND_UPLOAD, .name = u->id, .owner = u->user};
}

static void uploads_note_message(struct uploads *us,
                                 const struct upload *u,
                                 const char *kind,
                                 const char *code,
                                 const char *text)
{
    _cleanup_(freep) char *object = xasprintf("upload/%s/%s", u->user, u->id);
    _cleanup_(buf_release) struct buf after = BUF_INIT(ROW_MAX);
    struct jout j = jout_begin(&after);
    jout_open(&j, NULL, '{');
    jout_str(&j, "name", u->name);
    jout_int(&j, "bytes", (int64_t)u->bytes);
    jout_str(&j, "state", upload_state_to_string(u->state));
    jout_str(&j, "sha256", u->state == UPLOAD_COMPLETE ? u->sha256 : NULL);
    jout_close(&j, '}');
    struct access_thing thing = uploads_thing(u);
    struct events_note note = {.thing = &thing,
                               .kind = kind,
                               .actor = u->user,
                               .object = object,
                               .code = code,
                               .text = text,
                               .after = buf_str(&after)};
    events_add(us->p.events, &note, clock_wall());
}

void uploads_note(struct uploads *us, const struct upload *u, const char *kind, const char *code)
{
    uploads_note_message(us, u, kind, code, "{}");
}

void uploads_note_failure(struct uploads *us, const struct upload *u, const struct err *why)
{
    uploads_note_message(us, u, "upload_failed", why->message,
                         why->message ? why->args : why->text);
}

static void take_hash(char to[static HASH_HEX], const char *from)
{
    text_copy_to(to, HASH_HEX, from);
}

/* An upload begins anew where its row is older than this column, or says something else. */
static void uploads_restore_progress(struct upload *u)
{
    size_t n = 0;
    _cleanup_(freep) unsigned char *hash =
        u->running && u->state == UPLOAD_OPEN ? hash_from_base64(u->running, &n) : NULL;
    upload_progress_init(&u->progress);
    if (hash && n == sizeof(u->progress.hash) && u->offset <= u->bytes) {
        u->progress.synced = u->offset;
        memcpy(&u->progress.hash, hash, n);
    }
    set_str(&u->running, NULL);
    u->offset = u->state == UPLOAD_COMPLETE ? u->bytes : u->progress.synced;
}

void uploads_restore(struct uploads *us, const struct store_entry *entry)
{
    struct upload *u = xcalloc(1, sizeof(*u));
    *u = (struct upload){.user = xstrdup(""), .name = xstrdup(""), .state = UPLOAD_FAILED};
    if (strlen(entry->name) >= UPLOAD_ID_MAX ||
        !field_from_text(&upload_table, entry->body, FIELD_STORED, u)) {
        log_err("store", "the row of upload '%.40s' cannot be read, ignoring it", entry->name);
        upload_free(u);
        return;
    }
    (void)snprintf(u->id, sizeof(u->id), "%s", entry->name); /* it fits */
    u->touched_at = entry->at;
    u->is_known = u->state != UPLOAD_OPEN;
    uploads_restore_progress(u);
    struct upload *old = map_set(us->map, u->id, u);
    if (old)
        upload_free(old); /* a key is there once */
}

/* ---- removing ---- */

struct removal {
    char *root;
    struct strv ids;
    struct uploads *us; /* of a sweep: finds them first; else NULL */
    struct err err;
};

static void uploads_run_removal(void *arg)
{
    struct removal *r = arg;
    for (size_t i = 0; i < r->ids.n; i++)
        if (upload_remove(r->root, r->ids.v[i], &r->err) < 0)
            log_warn("uploads", "the bytes of upload '%s' stay: %s", r->ids.v[i], r->err.text);
}

static void uploads_done_removal(void *arg)
{
    struct removal *r = arg;
    strv_release(&r->ids);
    free(r->root);
    free(r);
}

/* A removal that fails is done by the sweep of the next start. */
static void remove_bytes(struct uploads *us, const char *id)
{
    struct removal *r = xcalloc(1, sizeof(*r));
    r->root = xstrdup(uploads_root(us));
    strv_add(&r->ids, id);
    work_start(us->p.loop, uploads_run_removal, uploads_done_removal, r);
}

void uploads_let_go(struct uploads *us, struct upload *u)
{
    if (!u->doomed || u->coming || u->users || u->taken)
        return;
    if (!u->passing)
        store_remove_entry(us->p.store, UPLOADS_ENTRY, u->id);
    (void)map_remove(us->map, u->id); /* is u */
    remove_bytes(us, u->id);
    upload_free(u);
}

void uploads_remove(struct uploads *us, struct upload *u)
{
    u->doomed = true;
    uploads_let_go(us, u);
}

static void run_sweep(void *arg)
{
    struct removal *r = arg;
    (void)!upload_list(r->root, &r->ids, &r->err); /* done_sweep() looks at err */
}

static void done_sweep(void *arg)
{
    struct removal *r = arg;
    struct strv stray = {0};
    r->us->is_swept = r->err.code == 0;
    for (size_t i = 0; i < r->ids.n; i++)
        if (!map_find(r->us->map, r->ids.v[i]))
            strv_add(&stray, r->ids.v[i]);
    strv_release(&r->ids);
    r->ids = stray;
    if (!stray.n) {
        uploads_done_removal(r);
        return;
    }
    log_info("uploads", "removing %zu directories that belong to no upload", stray.n);
    work_start(r->us->p.loop, uploads_run_removal, uploads_done_removal, r);
}

static bool can_write(const struct uploads *us)
{
    return cluster_root_is_ok(us->p.cluster) && !cluster_root_hangs(us->p.cluster);
}

usec_t uploads_expires_at(const struct uploads *us, const struct upload *u)
{
    return u->touched_at + us->p.settings->uploads_keep;
}

static void uploads_on_tick(uv_timer_t *timer)
{
    struct uploads *us = container_of(timer, struct uploads, timer);
    usec_t now = clock_wall();
    struct upload *u;
    if (!can_write(us) || store_is_failing(us->p.store))
        return;
    if (!us->is_swept) {
        struct removal *r = xcalloc(1, sizeof(*r));
        r->root = xstrdup(uploads_root(us));
        r->us = us;
        us->is_swept = true;
        work_start(us->p.loop, run_sweep, done_sweep, r);
    }
    _cleanup_(strv_release) struct strv old = {0};
    for (size_t pos = 0; (u = map_next(us->map, &pos, NULL));)
        if (!u->coming && !u->taken && !u->users && uploads_expires_at(us, u) <= now)
            strv_add(&old, u->id);
    for (size_t i = 0; i < old.n; i++) {
        u = map_find(us->map, old.v[i]);
        uploads_note(us, u, "upload_expired", "upload_expired");
        uploads_remove(us, u);
    }
}

/* ---- add and find ---- */

static void uploads_sum_up(const struct uploads *us,
                           const char *user,
                           uint64_t *ret_own,
                           uint64_t *ret_all,
                           size_t *ret_n_own)
{
    const struct upload *u;
    *ret_own = *ret_all = 0;
    *ret_n_own = 0;
    for (size_t pos = 0; (u = map_next(us->map, &pos, NULL));) {
        *ret_all += u->bytes;
        if (!str_eq(u->user, user))
            continue;
        *ret_own += u->bytes;
        ++*ret_n_own;
    }
}

static int uploads_check_name(const char *name, struct err *err)
{
    size_t n = strlen(name);
    bool ok = n && n <= UPLOAD_NAME_MAX && !strchr(name, '/') && strcmp(name, ".") != 0 &&
              strcmp(name, "..") != 0 && !str_has_control(name);
    return ok ? 0
              : message_refuse(
                    err, ERR_BAD_REQUEST, "bad_file_name",
                    MESSAGE_ARGS(MESSAGE_STR("name", name), MESSAGE_NUM("most", UPLOAD_NAME_MAX)));
}

static int check_hash(const char *hex, struct err *err)
{
    if (hash_is_hex(hex))
        return 0;
    return message_refuse(err, ERR_BAD_REQUEST, "bad_sha256",
                          MESSAGE_ARGS(MESSAGE_STR("text", hex)));
}

static int uploads_check_root(const struct uploads *us, uint64_t bytes, struct err *err)
{
    int r = uploads_ask_root(us, err);
    if (r < 0)
        return r;
    if (!cluster_root_is_ok(us->p.cluster))
        return 0; /* it is being looked at: the first byte waits for that */
    uint64_t room = cluster_root_free_bytes(us->p.cluster);
    if (bytes > room || room - bytes < SPARE_BYTES)
        return message_refuse(err, ERR_NO_SPACE, "root_has_no_room",
                              MESSAGE_ARGS(MESSAGE_NUM("free", room), MESSAGE_NUM("bytes", bytes)));
    return 0;
}

/* bytes: of one upload, of which `has` are counted already. */
static int check_bytes(const struct uploads *us,
                       const char *user,
                       uint64_t has,
                       uint64_t bytes,
                       struct err *err)
{
    const struct settings *s = us->p.settings;
    uint64_t own, all, more = bytes - has;
    size_t n_own;
    uploads_sum_up(us, user, &own, &all, &n_own);
    if (bytes > s->upload_bytes)
        return message_refuse(err, ERR_TOO_LARGE, "upload_too_large",
                              MESSAGE_ARGS(MESSAGE_NUM("most", s->upload_bytes)));
    if (own + more > s->uploads_user_bytes)
        return message_refuse(err, ERR_TOO_LARGE, "uploads_too_large",
                              MESSAGE_ARGS(MESSAGE_NUM("bytes", own + more),
                                           MESSAGE_NUM("most", s->uploads_user_bytes)));
    if (all + more > s->uploads_total_bytes)
        return message_refuse(err, ERR_BUSY, "uploads_full", MESSAGE_NO_ARGS);
    return 0;
}

static int uploads_check_room(const struct uploads *us,
                              const struct upload_wish *w,
                              struct err *err)
{
    uint64_t own, all;
    size_t n_own;
    int r = check_bytes(us, w->user, 0, w->bytes, err);
    if (r < 0)
        return r;
    uploads_sum_up(us, w->user, &own, &all, &n_own);
    if (map_count(us->map) >= UPLOADS_MAX)
        return message_refuse(err, ERR_BUSY, "uploads_full", MESSAGE_NO_ARGS);
    if (n_own >= UPLOADS_OF_USER_MAX)
        return message_refuse(err, ERR_BUSY, "too_many_uploads",
                              MESSAGE_ARGS(MESSAGE_NUM("uploads", n_own)));
    return 0;
}

int uploads_grow(struct uploads *us, const char *id, uint64_t bytes, struct err *err)
{
    struct upload *u = map_find(us->map, id);
    if (!u)
        return message_refuse(err, ERR_NOT_FOUND, "not_found",
                              MESSAGE_ARGS(MESSAGE_STR("noun", "upload"), MESSAGE_STR("name", id)));
    if (bytes <= u->bytes)
        return 0;
    int r = check_bytes(us, u->user, u->bytes, bytes, err);
    if (r == 0)
        r = uploads_check_root(us, bytes - u->bytes, err);
    if (r == 0)
        u->bytes = bytes;
    return r;
}

int uploads_add(struct uploads *us,
                const struct upload_wish *w,
                struct upload **ret,
                struct err *err)
{
    int r = uploads_check_name(w->name, err);
    if (r == 0 && w->sha256)
        r = check_hash(w->sha256, err);
    if (r == 0)
        r = uploads_check_room(us, w, err);
    if (r == 0)
        r = uploads_check_root(us, w->bytes, err);
    if (r < 0)
        return r;
    struct upload *u = xcalloc(1, sizeof(*u));
    u->id[0] = 'u';
    (void)random_hex_to(u->id + 1, 10);
    u->user = xstrdup(w->user);
    u->name = xstrdup(w->name);
    u->bytes = w->bytes;
    take_hash(u->wanted, str_or(w->sha256, ""));
    u->created_at = u->touched_at = clock_wall();
    u->is_known = true;
    upload_progress_init(&u->progress);
    (void)hash_sha256_hex("", 0, u->sha256);
    (void)map_set(us->map, u->id, u); /* 80 random bits: nothing was there */
    u->passing = u->taken = w->passing;
    if (!u->passing)
        uploads_save(us, u);
    *ret = u;
    return 0;
}

int uploads_find(const struct uploads *us,
                 const char *id,
                 const char *user,
                 struct upload **ret,
                 struct err *err)
{
    struct upload *u = map_find(us->map, id);
    if (!u || u->doomed || u->passing || (user && !str_eq(u->user, user)))
        return message_refuse(err, ERR_NOT_FOUND, "not_found",
                              MESSAGE_ARGS(MESSAGE_STR("noun", "upload"), MESSAGE_STR("name", id)));
    *ret = u;
    return 0;
}

struct upload *uploads_next(const struct uploads *us, const char *user, size_t *pos)
{
    struct upload *u;
    while ((u = map_next(us->map, pos, NULL)) &&
           (u->doomed || u->passing || (user && !str_eq(u->user, user))))
        ;
    return u;
}

/* ---- handing on ---- */

void upload_given_release(struct upload_given *g)
{
    free(g->path);
    free(g->name);
    *g = (struct upload_given){0};
}

int uploads_take(struct uploads *us,
                 const char *id,
                 const char *user,
                 struct upload_given *ret,
                 struct err *err)
{
    struct upload *u = NULL;
    int r = uploads_find(us, id, user, &u, err);
    if (r < 0 || !u)
        return r;
    if (u->state == UPLOAD_FAILED)
        return message_refuse(
            err, ERR_CONFLICT, "upload_failed",
            MESSAGE_ARGS(MESSAGE_STR("id", id), MESSAGE_KEPT("why", str_or(u->why, ""))));
    if (u->state != UPLOAD_COMPLETE || u->coming)
        return message_refuse(err, ERR_CONFLICT, "upload_not_complete",
                              MESSAGE_ARGS(MESSAGE_STR("id", id), MESSAGE_NUM("there", u->offset),
                                           MESSAGE_NUM("bytes", u->bytes)));
    if (u->taken)
        return message_refuse(err, ERR_CONFLICT, "upload_in_use",
                              MESSAGE_ARGS(MESSAGE_STR("id", id)));
    u->taken = true;
    *ret = (struct upload_given){
        .path = upload_path(uploads_root(us), id), .name = xstrdup(u->name), .bytes = u->bytes};
    take_hash(ret->sha256, u->sha256);
    return 0;
}

static struct upload *find_taken(const struct uploads *us, const char *id)
{
    struct upload *u = map_find(us->map, id);
    if (u)
        u->taken = false;
    return u;
}

void uploads_give_back(struct uploads *us, const char *id)
{
    struct upload *u = find_taken(us, id);
    if (u)
        uploads_let_go(us, u);
}

void uploads_used(struct uploads *us, const char *id)
{
    struct upload *u = find_taken(us, id);
    if (u)
        uploads_remove(us, u);
}

/* ---- life ---- */

struct uploads *uploads_new(const struct uploads_parts *parts)
{
    unsigned char seed[16];
    struct uploads *us = xcalloc(1, sizeof(*us));
    us->p = *parts;
    us->turns.most_of_one = WRITERS_OF_USER;
    random_bytes(seed, sizeof(seed));
    us->map = map_new(seed);
    return us;
}

void uploads_start(struct uploads *us)
{
    us->is_running = true;
    (void)uv_timer_init(us->p.loop, &us->timer); /* never fails, nor does the next */
    (void)uv_timer_start(&us->timer, uploads_on_tick, TICK_MS / 10, TICK_MS);
}

void uploads_close(struct uploads *us)
{
    if (!us || !us->is_running)
        return;
    us->is_closing = true;
    uploads_start_turns(us); /* no news of the root comes any more */
    uv_close((uv_handle_t *)&us->timer, NULL);
}

void uploads_free(struct uploads *us)
{
    struct upload *u;
    if (!us)
        return;
    for (size_t pos = 0; (u = map_next(us->map, &pos, NULL));)
        upload_free(u);
    map_free(us->map);
    free(us);
}
