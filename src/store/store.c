/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - the loop's side: gathers the open batch, hands it to the writer at the end
 * of a turn, and tells the owner what became durable.
 *
 * A prepare handle ends the turn: libuv calls it right before it may sleep, after
 * everything that ran since. The writer wakes the loop by an async handle. Neither keeps
 * the loop alive. See also: writer.c (the thread), reads.c (queries). */
#include "store/store.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "store/batch.h"
#include "store/conn.h"
#include "store/load.h"
#include "store/query.h"
#include "store/reads.h"
#include "store/schema.h"
#include "store/writer.h"

/* A commit costs about as much as twenty jobs; fewer are not worth one of their own. */
enum { EARLY_BYTES = 32 << 10 };

struct store {
    struct store_options opt; /* path and vfs are our copies */
    char *path, *vfs;
    int lock_fd;

    uv_prepare_t turn;
    uv_async_t news;
    int parts; /* of us that must be gone before the memory is */
    bool closing;

    struct writer *writer;
    struct batch open;
    uint64_t handed; /* number of the last batch that the writer got */
    uint64_t durable;
    bool failing;
    uint64_t troubles; /* of the writer, told so far */

    struct reads *reads;
    struct reader *own; /* of the loop thread */
};

/* ---- opening ---- */

/* Only its owner may read the store; SQLite gives its side files the same mode. */
static int create_private(const char *path, int *ret, struct err *err)
{
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOCTTY, 0600);
    if (fd < 0)
        return err_set(err, ERR_STORE, "cannot open '%s': %s", path, strerror(errno));
    *ret = fd;
    return 0;
}

int store_lock(const char *path, int *ret, struct err *err)
{
    _cleanup_(freep) char *name = xasprintf("%s.lock", path);
    _cleanup_(closep) int fd = -1;
    char pid[32] = {0};
    int r = create_private(name, &fd, err);
    if (r < 0)
        return r;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        if (read(fd, pid, sizeof(pid) - 1) < 0)
            pid[0] = '\0';
        pid[strcspn(pid, "\n")] = '\0';
        return message_refuse(
            err, ERR_CONFLICT, "store_in_use",
            MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_STR("pid", *pid ? pid : "unknown")));
    }
    text_printf(pid, "%ld\n", (long)getpid());
    /* The pid is only for the sentence above: a store without it works. */
    if (ftruncate(fd, 0) < 0 || write(fd, pid, strlen(pid)) < 0)
        pid[0] = '\0';
    *ret = fd;
    fd = -1;
    return 0;
}

static int open_database(const char *path, const char *vfs, sqlite3 **ret, struct err *err)
{
    _cleanup_(closep) int fd = -1;
    sqlite3 *db = NULL;
    int r = create_private(path, &fd, err);
    if (r < 0)
        return r;
    /* Before SQLite has it: closing any descriptor of a file drops this process's locks. */
    closep(&fd);
    fd = -1;
    r = conn_open(path, vfs, true, &db, err);
    if (r < 0)
        return r;
    r = schema_migrate(db, path, err);
    if (r < 0) {
        conn_close(db);
        return r;
    }
    *ret = db;
    return 0;
}

static void part_gone(struct store *s)
{
    if (--s->parts > 0)
        return;
    batch_release(&s->open);
    free(s->path);
    free(s->vfs);
    free(s);
}

static void on_handle_gone(uv_handle_t *h)
{
    part_gone(h->data);
}

static void on_reads_gone(void *arg)
{
    part_gone(arg);
}

static void store_on_turn(uv_prepare_t *h)
{
    store_flush(h->data);
}

/* why: NULL = it is over. */
static void tell_trouble(struct store *s, const char *why)
{
    s->failing = why != NULL;
    if (s->opt.on_trouble)
        s->opt.on_trouble(s->failing, why, s->opt.arg);
}

static void look_at_writer(struct store *s)
{
    struct writer_look look;
    writer_look(s->writer, &look);
    bool is_new = look.troubles != s->troubles;
    s->troubles = look.troubles;
    if (s->failing && (is_new || !look.failing))
        tell_trouble(s, NULL);
    if (is_new)
        tell_trouble(s, look.why);
    if (is_new && !look.failing) /* it was over before the loop looked */
        tell_trouble(s, NULL);
    if (look.durable > s->durable) {
        s->durable = look.durable;
        if (s->opt.on_durable)
            s->opt.on_durable(look.durable, s->opt.arg);
    }
}

static void on_news(uv_async_t *h)
{
    struct store *s = h->data;
    if (!s->closing)
        look_at_writer(s);
}

/* On the store thread. */
static void store_wake(void *arg)
{
    struct store *s = arg;
    (void)uv_async_send(&s->news); /* fails only for a handle of another type */
}

static int init_handles(struct store *s, struct err *err)
{
    int r = uv_async_init(s->opt.loop, &s->news, on_news);
    if (r < 0)
        return err_set(err, ERR_STORE, "cannot watch the store: %s", uv_strerror(r));
    (void)uv_prepare_init(s->opt.loop, &s->turn);    /* cannot fail */
    (void)uv_prepare_start(&s->turn, store_on_turn); /* only for a NULL callback */
    s->news.data = s;
    s->turn.data = s;
    uv_unref((uv_handle_t *)&s->news);
    uv_unref((uv_handle_t *)&s->turn);
    return 0;
}

static void store_close_handles(struct store *s)
{
    uv_close((uv_handle_t *)&s->news, on_handle_gone);
    uv_close((uv_handle_t *)&s->turn, on_handle_gone);
}

/* What store_open() has to undo by hand: before any handle is known to the loop. */
static void abandon(struct store *s)
{
    s->parts = 1;
    closep(&s->lock_fd);
    part_gone(s);
}

static int shut(struct store *s, struct err *err)
{
    int r = 0;
    store_flush(s);
    s->closing = true;
    reader_free(s->own);
    s->own = NULL;
    if (s->writer) {
        struct writer_look last;
        r = writer_close(s->writer, &last, err);
        s->writer = NULL;
        if (last.durable > s->durable && s->opt.on_durable)
            s->opt.on_durable(last.durable, s->opt.arg);
    }
    closep(&s->lock_fd);
    s->lock_fd = -1;
    store_close_handles(s);
    reads_close(s->reads, on_reads_gone, s);
    return r;
}

/* SQLite's WAL lives in memory that all openers share: over a network there is none, and the
 * database can be destroyed (https://www.sqlite.org/wal.html). */
static int check_local(const struct store *s, struct err *err)
{
    static const uint32_t CIFS = 0xff534d42, SMB2 = 0xfe534d42; /* not in each magic.h */
    struct statfs fs;
    if (fstatfs(s->lock_fd, &fs) < 0)
        return err_set(err, ERR_STORE, "'%s': %s", s->path, strerror(errno));
    uint32_t type = (uint32_t)fs.f_type;
    if (type == NFS_SUPER_MAGIC || type == SMB_SUPER_MAGIC || type == CIFS || type == SMB2)
        return message_refuse(err, ERR_REFUSED, "store_on_network",
                              MESSAGE_ARGS(MESSAGE_STR("path", s->path)));
    return 0;
}

int store_open(const struct store_options *opt, struct store **ret, struct err *err)
{
    struct store *s = xcalloc(1, sizeof(*s));
    sqlite3 *db = NULL;
    s->opt = *opt;
    s->lock_fd = -1;
    set_str(&s->path, opt->path);
    set_str(&s->vfs, opt->vfs);
    int r = store_lock(s->path, &s->lock_fd, err);
    if (r == 0)
        r = check_local(s, err);
    if (r == 0)
        r = open_database(s->path, s->vfs, &db, err);
    if (r == 0) {
        r = init_handles(s, err);
        if (r < 0)
            conn_close(db);
    }
    if (r < 0) {
        abandon(s);
        return r;
    }
    s->own = reader_new(s->path, s->vfs);
    s->reads = reads_new(opt->loop, s->path, s->vfs, opt->readers);
    s->parts = 3; /* two handles and reads */
    r = writer_open(db, store_wake, s, &s->writer, err);
    if (r < 0) {
        (void)shut(s, NULL); /* there is nothing to lose yet */
        return r;
    }
    *ret = s;
    return 0;
}

int store_close(struct store *s, struct err *err)
{
    return s ? shut(s, err) : 0;
}

/* ---- batches ---- */

uint64_t store_batch(const struct store *s)
{
    return s->handed + (s->open.len > 0);
}

uint64_t store_durable(const struct store *s)
{
    return s->durable;
}

bool store_is_failing(const struct store *s)
{
    return s->failing;
}

int store_check(const struct store *s, struct err *err)
{
    return s->failing ? message_refuse(err, ERR_STORE, "store_failed", MESSAGE_NO_ARGS) : 0;
}

void store_flush(struct store *s)
{
    if (!s->open.len || !s->writer)
        return;
    s->open.number = ++s->handed;
    writer_add(s->writer, &s->open);
}

void store_flush_if_idle(struct store *s)
{
    if (s->open.len >= EARLY_BYTES && writer_is_idle(s->writer))
        store_flush(s);
}

/* ---- changes ---- */

static void put_time(struct batch *b, usec_t t)
{
    batch_int(b, (int64_t)t);
}

static void put_exit_code(struct batch *b, const struct store_job *job)
{
    if (job->has_exit_code)
        batch_int(b, job->exit_code);
    else
        batch_null(b);
}

/* The values from `state` on, in the order that both statements have. */
static void put_state(struct batch *b, const struct store_job *job)
{
    batch_text(b, job->state);
    batch_int(b, job->live);
    batch_text(b, job->flags);
    batch_text(b, job->reason_code);
    batch_text(b, job->reason_text);
    batch_int(b, job->nnodes);
    batch_real(b, job->n_gpus_per_node);
    batch_int(b, job->priority);
    put_time(b, job->started_at);
    put_time(b, job->ended_at);
    batch_int(b, job->attempt);
    batch_int(b, job->restarts);
    batch_int(b, job->step);
    put_exit_code(b, job);
}

static void put_long_text(struct batch *b, unsigned statement, int64_t seq, const char *text)
{
    if (!text)
        return;
    batch_begin(b, statement);
    batch_int(b, seq);
    batch_text(b, text);
}

void store_put_job(struct store *s, const struct store_job *job)
{
    struct batch *b = &s->open;
    assert(job->seq > 0 && job->id && job->state);
    batch_begin(b, WRITE_JOB);
    batch_int(b, job->seq);
    batch_text(b, job->id);
    batch_text(b, str_eq(job->name, job->id) ? NULL : job->name);
    batch_text(b, job->user);
    batch_text(b, job->project);
    batch_text(b, job->workload);
    batch_text(b, job->cluster);
    batch_text(b, job->pool);
    put_time(b, job->queued_at);
    put_state(b, job);
    put_long_text(b, WRITE_JOB_SPEC, job->seq, job->spec);
    put_long_text(b, WRITE_JOB_DETAIL_NEW, job->seq, job->detail);
}

void store_update_job(struct store *s, const struct store_job *job)
{
    struct batch *b = &s->open;
    assert(job->seq > 0 && job->state);
    batch_begin(b, WRITE_JOB_STATE);
    batch_int(b, job->seq);
    put_state(b, job);
    batch_int(b, job->gpu_held);
    put_long_text(b, WRITE_JOB_DETAIL, job->seq, job->detail);
}

void store_respec_job(struct store *s, int64_t seq, const char *pool, const char *spec)
{
    struct batch *b = &s->open;
    assert(seq > 0 && spec);
    batch_begin(b, WRITE_JOB_POOL);
    batch_int(b, seq);
    batch_text(b, pool);
    put_long_text(b, WRITE_JOB_RESPEC, seq, spec);
}

void store_put_origin(struct store *s, int64_t seq, const struct store_origin *origin)
{
    struct batch *b = &s->open;
    assert(seq > 0);
    batch_begin(b, WRITE_ORIGIN);
    batch_int(b, seq);
    batch_text(b, origin->parent);
    batch_text(b, origin->how);
    batch_int(b, origin->step);
    batch_text(b, origin->note);
}

void store_put_note(struct store *s, int64_t seq, const char *note)
{
    struct batch *b = &s->open;
    assert(seq > 0);
    batch_begin(b, WRITE_NOTE);
    batch_int(b, seq);
    batch_text(b, note);
}

void store_put_attempt(struct store *s, const struct store_attempt *attempt)
{
    struct batch *b = &s->open;
    batch_begin(b, WRITE_ATTEMPT);
    batch_int(b, attempt->job_seq);
    batch_int(b, attempt->k);
    batch_text(b, attempt->ray_id);
    batch_text(b, attempt->state);
    put_time(b, attempt->started_at);
    put_time(b, attempt->ended_at);
    batch_text(b, attempt->detail);
}

void store_put_finding(struct store *s, const struct store_finding *finding)
{
    struct batch *b = &s->open;
    assert(finding->class && finding->body);
    batch_begin(b, WRITE_FINDING);
    batch_int(b, finding->job_seq);
    batch_int(b, finding->k);
    batch_text(b, finding->class);
    batch_text(b, finding->rule);
    batch_text(b, finding->node);
    batch_text(b, finding->rank);
    put_time(b, finding->at);
    batch_real(b, finding->confidence);
    batch_text(b, finding->body);
}

void store_put_event(struct store *s, const struct store_event *event)
{
    struct batch *b = &s->open;
    assert(event->seq > 0);
    batch_begin(b, WRITE_EVENT);
    batch_int(b, event->seq);
    put_time(b, event->at);
    batch_int(b, event->job_seq);
    batch_text(b, event->kind);
    batch_text(b, event->actor);
    batch_text(b, event->from_state);
    batch_text(b, event->to_state);
    batch_text(b, event->reason_code);
    batch_text(b, event->text);
    batch_text(b, event->data);
    batch_text(b, event->object);
    if (event->hash)
        batch_blob(b, event->hash, STORE_HASH_BYTES);
    else
        batch_null(b);
    batch_text(b, event->thing);
    batch_text(b, event->owner);
    batch_text(b, event->project);
}

void store_put_token(struct store *s, const struct store_token *token)
{
    struct batch *b = &s->open;
    assert(token->hash);
    batch_begin(b, WRITE_TOKEN);
    batch_blob(b, token->hash, STORE_HASH_BYTES);
    batch_text(b, token->id);
    batch_text(b, token->name);
    batch_text(b, token->user);
    batch_text(b, token->role);
    put_time(b, token->created_at);
    put_time(b, token->expires_at);
    put_time(b, token->last_use_at);
    put_time(b, token->revoked_at);
}

void store_remove_token(struct store *s, const unsigned char hash[static STORE_HASH_BYTES])
{
    batch_begin(&s->open, WRITE_TOKEN_REMOVE);
    batch_blob(&s->open, hash, STORE_HASH_BYTES);
}

void store_put_user(struct store *s, const struct store_user *user)
{
    struct batch *b = &s->open;
    assert(user->name);
    batch_begin(b, WRITE_USER);
    batch_text(b, user->name);
    batch_text(b, user->role);
    put_time(b, user->created_at);
    batch_text(b, user->detail);
}

void store_remove_user(struct store *s, const char *name)
{
    batch_begin(&s->open, WRITE_USER_REMOVE);
    batch_text(&s->open, name);
}

void store_put_entry(struct store *s, const struct store_entry *entry)
{
    struct batch *b = &s->open;
    assert(entry->kind && entry->name && entry->body);
    batch_begin(b, WRITE_ENTRY);
    batch_text(b, entry->kind);
    batch_text(b, entry->name);
    batch_text(b, entry->body);
    put_time(b, entry->at);
}

void store_remove_entry(struct store *s, const char *kind, const char *name)
{
    struct batch *b = &s->open;
    batch_begin(b, WRITE_ENTRY_REMOVE);
    batch_text(b, kind);
    batch_text(b, name);
}

void store_put_idempotency(struct store *s, const struct store_idempotency *key)
{
    struct batch *b = &s->open;
    assert(key->key && key->body_hash);
    batch_begin(b, WRITE_IDEMPOTENCY);
    batch_text(b, str_or(key->user, ""));
    batch_text(b, key->key);
    batch_blob(b, key->body_hash, STORE_HASH_BYTES);
    batch_text(b, key->job_id);
    put_time(b, key->at);
}

void store_put_meta(struct store *s, const char *key, const char *value)
{
    struct batch *b = &s->open;
    assert(key);
    batch_begin(b, WRITE_META);
    batch_text(b, key);
    batch_text(b, value);
}

static void put_usage_key(struct batch *b, unsigned statement, const struct store_usage *u)
{
    batch_begin(b, statement);
    batch_text(b, u->cluster);
    batch_text(b, u->labels);
    batch_text(b, u->project);
    batch_text(b, u->user);
    batch_text(b, u->workload);
}

void store_add_usage(struct store *s, const struct store_usage *usage)
{
    struct batch *b = &s->open;
    put_usage_key(b, WRITE_USAGE_KEY, usage);
    put_usage_key(b, WRITE_USAGE, usage);
    batch_int(b, usage->step);
    batch_int(b, usage->at);
    for (int i = 0; i < STORE_USAGE_SUMS; i++)
        batch_int(b, usage->sums[i]);
}

void store_prune_usage(struct store *s, int64_t step, int64_t before)
{
    batch_begin(&s->open, WRITE_USAGE_PRUNE);
    batch_int(&s->open, step);
    batch_int(&s->open, before);
}

void store_prune_idempotency(struct store *s, const char *user, usec_t before)
{
    batch_begin(&s->open, WRITE_IDEMPOTENCY_PRUNE);
    put_time(&s->open, before);
    batch_text(&s->open, user);
}

/* ---- reads ---- */

int store_load(struct store *s,
               const struct store_load_ops *ops,
               void *arg,
               struct store_last *ret,
               struct err *err)
{
    return load_all(s->own, ops, arg, ret, err);
}

int store_has_id(struct store *s, const char *id, bool *ret, struct err *err)
{
    return query_has_id(s->own, id, ret, err);
}

struct store_read *store_list_jobs(struct store *s,
                                   const struct store_job_query *query,
                                   const struct store_then *then)
{
    return reads_jobs(s->reads, query, then);
}

struct store_read *store_find_job(struct store *s,
                                  const struct store_job_ref *ref,
                                  const struct store_then *then)
{
    return reads_job(s->reads, ref, then);
}

struct store_read *store_list_family(struct store *s,
                                     const struct store_family_query *query,
                                     const struct store_then *then)
{
    return reads_family(s->reads, query, then);
}

struct store_read *store_list_events(struct store *s,
                                     const struct store_event_query *query,
                                     const struct store_then *then)
{
    return reads_events(s->reads, query, then);
}

struct store_read *store_list_findings(struct store *s,
                                       int64_t job_seq,
                                       const struct store_then *then)
{
    return reads_findings(s->reads, job_seq, then);
}

struct store_read *store_list_usage(struct store *s,
                                    const struct store_usage_query *query,
                                    const struct store_then *then)
{
    return reads_usage(s->reads, query, then);
}
