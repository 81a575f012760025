/* SPDX-License-Identifier: Apache-2.0 */
/* api_logs.c - a job's log: a part of the file, or a stream that follows it.
 *
 * One tail per file reads what is new, in the worker pool, four times a second;
 * followers that have caught up share what it reads. One who comes late reads the
 * older bytes for himself until he has caught up. Offsets count bytes of the file,
 * so a stream that breaks goes on where it was. */
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/api.h"
#include "argusd/work.h"
#include "base/str.h"
#include "fsroot/launch.h"
#include "fsroot/logread.h"

enum { TICK_MS = 250, CHUNK = 96 << 10, PART_DEFAULT = 1 << 20, PART_MAX = 8 << 20 };

/* One read in the worker pool. */
struct part {
    char *root, *job;
    int k;
    uint64_t offset;   /* asked for */
    uint64_t at, size; /* where the bytes begin, and where the log ends */
    size_t want, n;
    char *bytes;
    int result;
    struct err err;
    void (*done)(struct part *p, void *arg);
    void *arg;
};

struct follower {
    struct follower *next;
    struct tails *tails;
    struct http_stream *st; /* NULL: gone, freed when its read is back */
    struct http_principal who;
    char *job, *user, *project; /* whose it is */
    int k;                      /* 0: no attempt yet */
    uint64_t offset;
    bool busy, full;
    bool was_over; /* when its read began: then what it finds is all there will be */
};

struct tails {
    struct api *a;
    uv_timer_t timer;
    struct follower *followers;
    bool ticking, closing;
};

/* ---- reading ---- */

static void run_part(void *arg)
{
    struct part *p = arg;
    p->bytes = xmalloc(p->want);
    struct logread_part got = {.offset = p->offset};
    p->result =
        logread_at(p->root, p->job, p->k, ATTEMPT_LOG, p->offset, p->bytes, p->want, &got, &p->err);
    p->at = got.offset;
    p->n = got.n;
    p->size = got.end;
}

static void done_part(void *arg)
{
    struct part *p = arg;
    p->done(p, p->arg);
    free(p->root);
    free(p->job);
    free(p->bytes);
    free(p);
}

static void read_part(struct api *a,
                      const char *job,
                      int k,
                      uint64_t offset,
                      size_t want,
                      void (*done)(struct part *p, void *arg),
                      void *arg)
{
    struct part *p = xcalloc(1, sizeof(*p));
    *p = (struct part){.root = xstrdup(a->settings->shared_root),
                       .job = xstrdup(job),
                       .k = k,
                       .offset = offset,
                       .want = want,
                       .done = done,
                       .arg = arg};
    work_start(a->loop, run_part, done_part, p);
}

/* ---- one part of the file ---- */

struct once {
    struct http_req *req; /* NULL: gone */
    struct api *a;
    int64_t tail;
    size_t limit;
    bool sized;
};

static void on_once_gone(struct http_req *req, void *arg)
{
    struct once *o = arg;
    (void)req;
    o->req = NULL;
}

static void answer_part(struct once *o, const struct part *p)
{
    struct buf out = BUF_INIT(PART_MAX);
    char text[32];
    (void)buf_add(&out, p->bytes, p->n);                                     /* n <= PART_MAX */
    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)p->size); /* fits */
    http_reply_header(o->req, "Argus-Log-Size", text);
    (void)snprintf(text, sizeof(text), "%llu", (unsigned long long)p->at); /* fits */
    http_reply_header(o->req, "Argus-Log-Offset", text);
    http_reply(o->req, 200, "application/octet-stream", &out, 0);
    buf_release(&out);
}

/* ?tail=N lines: keep the last N lines of what was read. */
static void keep_lines(struct part *p, int64_t lines)
{
    size_t i = p->n;
    if (i && lines > 0 && p->bytes[i - 1] == '\n')
        i--;
    while (i && lines > 0)
        if (p->bytes[i - 1] == '\n' && --lines == 0)
            break;
        else
            i--;
    memmove(p->bytes, p->bytes + i, p->n - i);
    p->n -= i;
    p->at += i;
}

static void on_part(struct part *p, void *arg)
{
    struct once *o = arg;
    if (!o->req) {
        free(o);
        return;
    }
    if (p->result == -ENOENT) {
        p->n = 0;
        p->size = 0;
        p->result = 0;
    }
    if (p->result == 0 && o->tail >= 0 && !o->sized) {
        /* The size is known now: read the end of the file. */
        o->sized = true;
        read_part(o->a, p->job, p->k, p->size > o->limit ? p->size - o->limit : 0, o->limit,
                  on_part, o);
        return;
    }
    if (p->result == 0 && o->tail >= 0 && p->n && p->at + p->n < p->size && p->n < p->want) {
        /* A gap: the last lines are those behind it. */
        read_part(o->a, p->job, p->k, p->at + p->n, o->limit, on_part, o);
        return;
    }
    http_req_on_close(o->req, NULL, NULL);
    if (p->result < 0) {
        api_fail(o->req, &p->err, 0);
    } else {
        if (o->tail >= 0) {
            p->size = p->at + p->n; /* the file may have grown since: one goes on from here */
            keep_lines(p, o->tail);
        }
        answer_part(o, p);
    }
    free(o);
}

/* ---- following ---- */

/* One that is in no list. */
static void follower_release(struct follower *f)
{
    free(f->job);
    free(f->user);
    free(f->project);
    free(f);
}

static void follower_free(struct follower *f)
{
    for (struct follower **p = &f->tails->followers; *p; p = &(*p)->next)
        if (*p == f) {
            *p = f->next;
            break;
        }
    follower_release(f);
}

static void on_stream_gone(struct http_stream *st, void *arg)
{
    struct follower *f = arg;
    (void)st;
    f->st = NULL;
    if (!f->busy)
        follower_free(f);
}

static void on_drain(struct http_stream *st, void *arg)
{
    struct follower *f = arg;
    (void)st;
    f->full = false;
}

/* False: there is no room now; nothing was sent. */
static bool send_part(struct follower *f, const struct part *p)
{
    const char *bytes = p->bytes;
    size_t n = p->n;
    size_t len = sodium_base64_ENCODED_LEN(n, sodium_base64_VARIANT_ORIGINAL);
    char *b64 = xmalloc(len);
    char id[32];
    struct buf out = BUF_INIT(2 * CHUNK + 200);
    struct jout j = jout_begin(&out);
    (void)sodium_bin2base64(b64, len, (const unsigned char *)bytes, n,
                            sodium_base64_VARIANT_ORIGINAL); /* it fits by len */
    jout_open(&j, NULL, '{');
    jout_int(&j, "offset", (int64_t)p->at);
    jout_str(&j, "b64", b64);
    jout_close(&j, '}');
    (void)snprintf(id, sizeof(id), "%llu", (unsigned long long)(p->at + n)); /* fits */
    bool ok = http_stream_sse(f->st, id, "log", buf_str(&out), out.len) >= 0;
    buf_release(&out);
    free(b64);
    if (ok)
        f->offset = p->at + n;
    else
        f->full = true;
    return ok;
}

static void send_end(struct follower *f, const struct job *job)
{
    struct buf out = BUF_INIT(4096);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    jout_str(&j, "state", job_state_to_string(job->state));
    if (job->has_exit && job->exit_code >= 0)
        jout_int(&j, "exit_code", job->exit_code);
    else
        jout_null(&j, "exit_code");
    jout_open(&j, "reason", '{');
    jout_str(&j, "code", job->reason.code);
    jout_str(&j, "text", job->reason.text);
    jout_close(&j, '}');
    jout_close(&j, '}');
    /* No room: it ends without the event, and the client asks for the rest. */
    bool said = http_stream_sse(f->st, NULL, "end", buf_str(&out), out.len) >= 0;
    (void)said;
    buf_release(&out);
    http_stream_end(f->st);
    f->st = NULL;
    follower_free(f);
}

/* The job is over and the file was read to its end: look at how it ended, say so. */

static void on_job_row(const struct store_result *r, void *arg)
{
    struct follower *f = arg;
    struct record_extra extra = {0};
    struct job *job = NULL;
    f->busy = false;
    if (!f->st) {
        follower_free(f);
    } else if (r->err.code || record_to_job(&r->jobs[0], &job, &extra, NULL) < 0) {
        http_stream_end(f->st); /* the client asks again */
        f->st = NULL;
        follower_free(f);
    } else if (job_state_is_terminal(job->state)) {
        send_end(f, job);
    } /* else its end is not on disk yet: the next tick asks again */
    record_extra_release(&extra);
    job_free(job);
}

static void finish(struct follower *f)
{
    f->busy = true;
    struct store_then then = {.done = on_job_row, .arg = f};
    (void)store_find_job(f->tails->a->store, &(struct store_job_ref){.ref = f->job}, &then);
}

/* Those of the same file that stand at the same place share one read. */
static void share(struct follower *f, const struct part *p)
{
    uint64_t at = p->offset;
    for (struct follower *o = f->tails->followers; o; o = o->next)
        if (o != f && o->st && !o->busy && !o->full && o->k == p->k && o->offset == at &&
            !strcmp(o->job, p->job))
            (void)send_part(o, p); /* full: it reads for itself later */
}

static void pull(struct follower *f);

static void on_chunk(struct part *p, void *arg)
{
    struct follower *f = arg;
    f->busy = false;
    if (p->n && p->result == 0)
        share(f, p);
    if (!f->st) {
        follower_free(f);
        return;
    }
    if (p->result == 0 && p->n && send_part(f, p) && f->offset < p->size)
        pull(f); /* there is more already */
    else if ((p->result == -ENOENT || (p->result == 0 && p->at >= p->size && !p->n)) && f->was_over)
        finish(f);
}

static void pull(struct follower *f)
{
    if (http_stream_room(f->st) < 2 * CHUNK) {
        f->full = http_stream_queued(f->st) > 0;
        return;
    }
    f->busy = true;
    f->was_over = !jobs_find_id(f->tails->a->jobs, f->job);
    read_part(f->tails->a, f->job, f->k, f->offset, CHUNK, on_chunk, f);
}

/* True if another follower of the same file at the same place reads already. */
static bool is_read_for(const struct follower *f)
{
    for (const struct follower *o = f->tails->followers; o != f; o = o->next)
        if (o->busy && o->st && o->k == f->k && o->offset == f->offset && !strcmp(o->job, f->job))
            return true;
    return false;
}

static bool may_pull(const struct follower *f, bool is_live)
{
    return f->k && !f->full && !(is_live && is_read_for(f)) &&
           !cluster_root_hangs(f->tails->a->cluster);
}

/* His token still works, and he has not left the job's project. */
static bool may_go_on(const struct follower *f)
{
    const struct api *a = f->tails->a;
    struct job job = {.id = f->job, .user = f->user, .project = f->project};
    return api_may_go_on(a, &f->who) &&
           people_check_job(a->people, &f->who, ACCESS_JOB_SEE, "see", &job, NULL) == 0;
}

static void tick_follower(struct follower *f)
{
    struct live *l = jobs_find_id(f->tails->a->jobs, f->job);
    const struct attempt *a = l ? job_attempt(l->job) : NULL;
    if (f->st && !may_go_on(f)) { /* also while it catches up for minutes */
        http_stream_end(f->st);   /* whoever comes back is told why */
        f->st = NULL;
        if (!f->busy)
            follower_free(f);
        return;
    }
    if (f->busy || !f->st)
        return;
    if (f->full && http_stream_queued(f->st) == 0)
        f->full = false;
    if (a && a->k > f->k) {
        f->k = a->k; /* the attempt before this one never wrote */
        f->offset = f->k == 1 ? f->offset : 0;
    }
    if (!l && !f->k)
        finish(f); /* it left the queue for good between two looks, or never had a file */
    else if (may_pull(f, l != NULL))
        pull(f);
}

static void on_tick(uv_timer_t *t)
{
    struct tails *ts = container_of(t, struct tails, timer);
    for (struct follower *f = ts->followers, *next; f; f = next) {
        next = f->next;
        tick_follower(f);
    }
    if (!ts->followers) {
        (void)uv_timer_stop(t); /* cannot fail */
        ts->ticking = false;
    }
}

struct tails *tails_new(struct api *a)
{
    struct tails *ts = xcalloc(1, sizeof(*ts));
    ts->a = a;
    (void)uv_timer_init(a->loop, &ts->timer); /* never fails */
    return ts;
}

static void on_closed(uv_handle_t *h)
{
    free(container_of(h, struct tails, timer));
}

void tails_free(struct tails *ts)
{
    if (!ts)
        return;
    while (ts->followers) {
        struct follower *f = ts->followers;
        ts->followers = f->next;
        follower_release(f);
    }
    uv_close((uv_handle_t *)&ts->timer, on_closed);
}

static void begin_follow(struct http_req *req,
                         struct api *a,
                         const struct job *job,
                         int k,
                         uint64_t offset)
{
    struct tails *ts = a->tails;
    struct http_stream *st = http_stream_begin(req, "text/event-stream", api_reader_barrier(a));
    if (!st)
        return;
    struct follower *f = xcalloc(1, sizeof(*f));
    *f = (struct follower){.next = ts->followers,
                           .tails = ts,
                           .st = st,
                           .who = *http_req_principal(req),
                           .job = xstrdup(job->id),
                           .user = xstrdup(job->user),
                           .project = xstrdup(job->project),
                           .k = k,
                           .offset = offset};
    ts->followers = f;
    http_stream_on_drain(st, on_drain, f);
    http_stream_on_close(st, on_stream_gone, f);
    if (!ts->ticking) {
        (void)uv_timer_start(&ts->timer, on_tick, 0, TICK_MS); /* cannot fail */
        ts->ticking = true;
    }
}

/* ---- the request ---- */

static int read_place(struct http_req *req,
                      const struct job *job,
                      int64_t *ret_k,
                      int64_t *ret_offset,
                      struct err *err)
{
    const char *last = http_req_last_event_id(req);
    int r = http_req_query_int(req, "attempt", 1, 1 << 20, job->n_attempts, ret_k, err);
    if (r == 0)
        r = http_req_query_int(req, "offset", 0, INT64_MAX, 0, ret_offset, err);
    if (r == 0 && *ret_k > job->n_attempts && job->n_attempts)
        r = err_set(err, ERR_NOT_FOUND, "job '%s' has %d attempts", job->id, job->n_attempts);
    else if (r < 0)
        err->code = r = ERR_BAD_REQUEST;
    if (r == 0 && last && str_to_int(last, 0, INT64_MAX, ret_offset, NULL) < 0)
        r = err_set(err, ERR_BAD_REQUEST, "Last-Event-ID '%.40s' is not an offset", last);
    return r;
}

static void job_logs(struct http_req *req,
                     struct api *a,
                     const struct job *job,
                     const struct record_extra *extra,
                     struct live *l)
{
    int64_t k = 0, offset = 0, limit = PART_DEFAULT, tail = -1;
    struct err err = {0};
    (void)extra;
    (void)l;
    int r = read_place(req, job, &k, &offset, &err);
    if (r == 0 && (http_req_query_int(req, "limit", 1, PART_MAX, PART_DEFAULT, &limit, &err) < 0 ||
                   http_req_query_int(req, "tail", 0, 1000000, -1, &tail, &err) < 0))
        err.code = r = ERR_BAD_REQUEST;
    if (r < 0) {
        api_fail(req, &err, 0);
    } else if (http_req_query_bool(req, "follow", false)) {
        begin_follow(req, a, job, (int)k, (uint64_t)offset);
    } else if (cluster_root_hangs(a->cluster)) {
        (void)err_set(&err, ERR_UNAVAILABLE, "the shared root does not answer: no log can be read");
        api_fail(req, &err, 0);
    } else {
        struct once *o = xcalloc(1, sizeof(*o));
        *o = (struct once){.req = req, .a = a, .tail = tail, .limit = (size_t)limit};
        http_req_on_close(req, on_once_gone, o);
        read_part(a, job->id, k ? (int)k : 1, (uint64_t)offset, tail >= 0 ? 1 : (size_t)limit,
                  on_part, o);
    }
}

void api_jobs_logs(struct http_req *req, void *app)
{
    api_find_job(req, app, job_logs);
}
