/* SPDX-License-Identifier: Apache-2.0 */
/* tails.c - see tails.h.
 *
 * `end` of a tail is where its reader stands: followers before it catch up, those at it or behind
 * it wait for the reader. Each read at the end begins with the bytes before it, by which it is seen
 * that the file has become another one: that tail is `gone` then, who follows it gets what its
 * cache still has and goes on with a new tail from the first byte. Work per turn of the loop is
 * bounded by TURN_BYTES; what is left goes on in the next turn, after others had theirs. */
#include "argusd/logs/tails.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/logs/logparts.h"
#include "argusd/logs/tailcache.h"
#include "argusd/logs/tailmark.h"
#include "argusd/logs/tailpages.h"
#include "base/log.h"
#include "base/str.h"
#include "fsroot/attempt/launch.h"
#include "http/expo.h"

enum {
    TICK_MS = 250,
    CHECK_TICKS = 4,       /* ticks between two looks at a follower's rights */
    TURN_BYTES = 1 << 20,  /* of events, sent in one turn: some ms */
    EVENT_COST = 32 << 10, /* and the least that one counts: requests come between few sends */
    CATCH_UP_READS = 3,    /* at once, of all tails: the pool has other work as well */
    KEPT_BYTES = 64 << 20, /* of all tails; above it each keeps one chunk */
};

struct follower {
    struct tail *tail;
    struct http_stream *st;
    struct http_principal who;
    bool named;
    uint64_t offset; /* of the next byte to send */
};

struct tail {
    struct tail *next;
    struct tails *tails;
    char *job, *user, *project; /* whose it is */
    char *name;                 /* of the log */
    int k;                      /* 0: no attempt yet */
    uint64_t end;
    bool placed;   /* end is where the log ended once, not merely 0 */
    bool reading;  /* at end */
    bool fetching; /* of somebody who catches up */
    bool asking;   /* the job's row */
    bool complete; /* it was read to its end after the attempt was over */
    bool gone;     /* another file has its name: nothing of it can be read any more */
    bool told;     /* our own log has said so, of this one or one before it */
    bool shrank;   /* a fetch found less than there was: a look comes first */
    struct tailmark mark;
    struct tailcache cache;
    struct buf event; /* the last one made: of event_offset, and of those who named the attempt? */
    uint64_t event_offset, event_next;
    bool event_named;
    struct follower **followers;
    size_t n, cap, turn; /* turn: who is served first */
};

struct tails {
    struct tails_parts p;
    uv_timer_t timer, soon;
    struct tail *all;
    bool ticking;
    bool others_wait; /* for a fetch to end */
    unsigned ticks, fetches;
    size_t kept, n_followers;
    uint64_t reads, read_bytes, sent_bytes;
};

/* One that a read or a question may still come back to is freed when that is over. */
static void tail_release(struct tail *t)
{
    for (size_t i = 0; i < t->n; i++)
        free(t->followers[i]);
    t->tails->kept -= t->cache.bytes;
    tailcache_release(&t->cache);
    buf_release(&t->event);
    free(t->followers);
    free(t->job);
    free(t->user);
    free(t->project);
    free(t->name);
    free(t);
}

static bool tails_is_idle(const struct tail *t)
{
    return !t->n && !t->reading && !t->fetching && !t->asking;
}

static struct tail *tail_get(struct tails *ts,
                             const char *job,
                             const char *user,
                             const char *project,
                             const char *name,
                             int k)
{
    for (struct tail *t = ts->all; t; t = t->next)
        if (t->k == k && !t->gone && !strcmp(t->job, job) && !strcmp(t->name, name))
            return t;
    struct tail *t = xcalloc(1, sizeof(*t));
    *t = (struct tail){.next = ts->all,
                       .tails = ts,
                       .job = xstrdup(job),
                       .user = xstrdup(user),
                       .project = xstrdup(project),
                       .name = xstrdup(name),
                       .k = k,
                       .event = BUF_INIT(2 * TAILCACHE_CHUNK + 400)};
    ts->all = t;
    return t;
}

static void add_follower(struct tail *t, struct follower *f)
{
    if (t->n == t->cap) {
        t->cap = t->cap ? 2 * t->cap : 4;
        t->followers = xrealloc(t->followers, t->cap, sizeof(struct follower *));
    }
    t->followers[t->n++] = f;
    f->tail = t;
}

static void remove_follower(struct follower *f)
{
    struct tail *t = f->tail;
    for (size_t i = 0; i < t->n; i++)
        if (t->followers[i] == f) {
            t->followers[i] = t->followers[--t->n];
            break;
        }
}

static void drop_follower(struct follower *f)
{
    f->tail->tails->n_followers--;
    remove_follower(f);
    free(f);
}

static void tails_on_gone(struct http_stream *st, void *arg)
{
    (void)st;
    drop_follower(arg);
}

static void end_follower(struct follower *f)
{
    http_stream_end(f->st);
    drop_follower(f);
}

/* ---- sending ---- */

static void make_event(struct tail *t, const struct tailchunk *c, bool named)
{
    size_t len = sodium_base64_ENCODED_LEN(c->n, sodium_base64_VARIANT_ORIGINAL);
    char *b64 = xmalloc(len);
    (void)sodium_bin2base64(b64, len, (const unsigned char *)c->bytes, c->n,
                            sodium_base64_VARIANT_ORIGINAL); /* it fits by len */
    buf_reset(&t->event);
    (void)buf_adds(&t->event, "id: "); /* all of it fits: twice the chunk */
    if (!named && t->k > 1)
        (void)buf_addf(&t->event, "%d:", t->k);
    (void)buf_addf(&t->event, "%" PRIu64 "\nevent: log\ndata: ", c->at + c->n);
    const struct tails_piece page = {.attempt = t->k, .offset = c->at, .b64 = b64};
    tails_put_page(&tails_piece_table, &page, &t->event);
    (void)buf_adds(&t->event, "\n\n");
    t->event_offset = c->asked;
    t->event_next = c->at + c->n;
    t->event_named = named;
    free(b64);
}

/* What the cache has for him, if his queue is empty. False: it has nothing. */
static bool serve(struct follower *f, size_t *budget)
{
    struct tail *t = f->tail;
    struct tailchunk c;
    if (http_stream_queued(f->st))
        return true; /* he is slow: on_drain */
    if (!tailcache_find(&t->cache, f->offset, &c))
        return false;
    if (!t->event.len || t->event_offset != f->offset || t->event_next != c.at + c.n ||
        t->event_named != f->named)
        make_event(t, &c, f->named);
    if (http_stream_write(f->st, buf_str(&t->event), t->event.len) >= 0)
        f->offset = t->event_next;
    size_t cost = t->event.len > EVENT_COST ? t->event.len : EVENT_COST;
    *budget -= cost < *budget ? cost : *budget;
    t->tails->sent_bytes += c.n;
    return true;
}

/* He goes on at `offset` of tail `to`, and is told that this is not where he stood. */
static void follow_anew(struct follower *f, struct tail *to, uint64_t offset)
{
    struct tail *t = f->tail;
    const struct tails_replaced page = {.attempt = t->k,
                                        .was = t->end,
                                        .offset = offset,
                                        .lost = f->offset < t->end ? t->end - f->offset : 0};
    struct buf out = BUF_INIT(1024);
    char id[48], attempt[16] = "";
    if (!f->named && t->k > 1)
        (void)snprintf(attempt, sizeof(attempt), "%d:", t->k);
    (void)snprintf(id, sizeof(id), "%s%" PRIu64, attempt, offset);
    tails_put_page(&tails_replaced_table, &page, &out);
    /* No room: he comes back, and begins where his last id says. */
    bool said = http_stream_sse(f->st, id, "replaced", buf_str(&out), out.len) >= 0;
    (void)said;
    buf_release(&out);
    f->offset = offset;
    if (to == t)
        return;
    remove_follower(f);
    add_follower(to, f);
}

/* What its cache has is sent; then they go on with the log that has its name now. */
static void leave_gone(struct tail *t)
{
    size_t budget = TURN_BYTES;
    struct tail *to = NULL;
    for (size_t i = t->n; i-- > 0;) {
        struct follower *f = t->followers[i];
        while (budget && f->offset < t->end && !http_stream_queued(f->st) && serve(f, &budget))
            ;
        if (!budget || http_stream_queued(f->st))
            continue; /* at the next tick, or once his queue is empty */
        to = to ? to : tail_get(t->tails, t->job, t->user, t->project, t->name, t->k);
        to->told = true;
        follow_anew(f, to, 0);
    }
}

static bool fetch(struct tail *t, uint64_t offset);
static void on_soon(uv_timer_t *timer);

static void serve_soon(struct tails *ts)
{
    if (!uv_is_active((uv_handle_t *)&ts->soon))
        (void)uv_timer_start(&ts->soon, on_soon, 0, 0); /* cannot fail */
}

/* All whom the cache can serve; a read for the first whom it cannot. */
static void serve_all(struct tail *t)
{
    size_t budget = TURN_BYTES, i = 0, first = t->turn;
    if (t->gone) {
        leave_gone(t);
        return;
    }
    for (; i < t->n && budget; i++) {
        struct follower *f = t->followers[(first + i) % t->n];
        if (f->offset < t->end && !serve(f, &budget) && fetch(t, f->offset))
            t->turn = (first + i + 1) % t->n; /* another one's turn next */
    }
    if (i < t->n) {
        t->turn = (first + i) % t->n;
        serve_soon(t->tails);
    }
}

static void on_soon(uv_timer_t *timer)
{
    struct tails *ts = container_of(timer, struct tails, soon);
    for (struct tail *t = ts->all; t; t = t->next)
        serve_all(t);
}

static void tails_on_drain(struct http_stream *st, void *arg)
{
    struct follower *f = arg;
    size_t budget = SIZE_MAX;
    (void)st;
    if (f->tail->gone)
        serve_soon(f->tail->tails); /* not here: he would leave while he is called */
    else if (f->offset < f->tail->end && !serve(f, &budget))
        (void)fetch(f->tail, f->offset); /* or at the next turn */
}

/* ---- reading ---- */

static void tails_keep(struct tail *t, const struct logpart *p)
{
    struct tails *ts = t->tails;
    size_t before = t->cache.bytes;
    tailcache_add(&t->cache, p->offset, p->at, p->bytes, p->n,
                  ts->kept > KEPT_BYTES ? 1 : TAILCACHE_CHUNKS);
    ts->kept += t->cache.bytes - before;
}

static void start_read(struct tail *t,
                       uint64_t offset,
                       size_t before,
                       void (*done)(struct logpart *p, void *arg))
{
    const struct tails_parts *p = &t->tails->p;
    t->tails->reads++;
    struct logpart_ask ask = {.root = p->settings->shared_root,
                              .job = t->job,
                              .name = t->name,
                              .k = t->k,
                              .offset = offset - before,
                              .want = TAILCACHE_CHUNK + before,
                              .done = done,
                              .arg = t};
    logpart_read(p->loop, &ask);
}

/* Behind a gap that ends with the log, where nothing can be sent. */
static void skip(struct tail *t, uint64_t from, uint64_t to)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->followers[i]->offset == from)
            t->followers[i]->offset = to;
}

static void on_fetched(struct logpart *p, void *arg)
{
    struct tail *t = arg;
    t->fetching = false;
    t->tails->fetches--;
    t->tails->read_bytes += p->n;
    if (t->gone)
        ; /* nobody knows of which of the two it is */
    else if (p->result == 0 && p->n)
        tails_keep(t, p);
    else if (p->result == 0 && p->at > p->offset)
        skip(t, p->offset, p->at);
    else
        t->shrank = p->result == 0; /* an error: at the next tick */
    if (p->result == 0)
        serve_all(t);
    if (t->tails->others_wait)
        serve_soon(t->tails);
    t->tails->others_wait = false;
}

/* False: others are read for now; it is asked again. */
static bool fetch(struct tail *t, uint64_t offset)
{
    struct tails *ts = t->tails;
    if (t->fetching || t->shrank || t->gone || cluster_root_hangs(ts->p.cluster))
        return false;
    if (ts->fetches >= CATCH_UP_READS) {
        ts->others_wait = true;
        return false;
    }
    t->fetching = true;
    ts->fetches++;
    start_read(t, offset, 0, on_fetched);
    return true;
}

/* No more is written: the job is over, or has gone on to another attempt. */
static bool attempt_is_over(const struct tail *t)
{
    struct live *l = jobs_find_id(t->tails->p.jobs, t->job);
    const struct attempt *a = l ? job_attempt(l->job) : NULL;
    return !l || (a && a->k > t->k);
}

static void tails_look(struct tail *t);
static void look_at_end(struct tail *t);

/* The part without what lies before `from`, which was read to be compared. Borrows its bytes. */
static struct logpart part_behind(const struct logpart *p, uint64_t from)
{
    size_t seen = p->at < from ? (size_t)(from - p->at) : 0;
    struct logpart news = *p;
    news.offset = from;
    news.at = p->at + seen;
    news.bytes = p->bytes + (seen < p->n ? seen : p->n);
    news.n = seen < p->n ? p->n - seen : 0;
    return news;
}

/* The first look: the reader begins where the log ends now. */
static void place_tail(struct tail *t, const struct logpart *p)
{
    struct logpart news = part_behind(p, p->offset + p->want - TAILCACHE_CHUNK);
    t->end = p->end;
    t->placed = true;
    if (news.n)
        tails_keep(t, &news);
    if (p->at + p->n == t->end)
        tailmark_add(&t->mark, p->at, p->bytes, p->n);
}

/* It ends before where it was read to: who has seen more is told. */
static void cut_tail(struct tail *t, uint64_t end)
{
    struct tails *ts = t->tails;
    ts->kept -= t->cache.bytes;
    tailcache_release(&t->cache);
    buf_reset(&t->event);
    for (size_t i = 0; i < t->n; i++)
        if (t->followers[i]->offset > end)
            follow_anew(t->followers[i], t, end);
    t->end = end;
    t->mark = (struct tailmark){.end = end};
}

/* What is new behind the bytes of the mark. */
static void take_new(struct tail *t, struct logpart *p)
{
    struct logpart news = part_behind(p, t->end);
    if (news.n) {
        tails_keep(t, &news);
        tailmark_add(&t->mark, news.at, news.bytes, news.n);
        t->end = news.at + news.n;
    } else if (news.at > t->end && news.at <= p->end) {
        skip(t, t->end, news.at);
        t->end = news.at;
    }
    p->n = news.n;
}

/* False: it is another log. */
static bool go_on(struct tail *t, struct logpart *p)
{
    enum tailmark_sight sight = tailmark_compare(&t->mark, p->at, p->bytes, p->n, p->end);
    if (t->mark.end != t->end || !t->mark.n) /* nothing was read yet that it could be held to */
        sight = p->end < t->end ? TAILMARK_CUT : TAILMARK_SAME;
    bool other = sight == TAILMARK_OTHER;
    if (sight != TAILMARK_SAME && !t->told)
        log_warn(
            "logs",
            "a followed log was %s: its followers go on with what is there job=%s attempt=%d log=%s",
            other ? "replaced" : "cut", t->job, t->k, t->name);
    t->told |= sight != TAILMARK_SAME;
    t->gone = other;
    if (sight == TAILMARK_SAME)
        take_new(t, p);
    else if (!other)
        cut_tail(t, p->end);
    return !other;
}

static void tails_on_looked(struct logpart *p, bool was_over, struct tail *t)
{
    t->reading = false;
    t->tails->read_bytes += p->n;
    bool none = p->result == -ENOENT || p->result == -ELOOP || p->result == -EINVAL;
    if (p->result < 0 && !none)
        return; /* the next tick tries again */
    t->shrank = false;
    if (!none && !t->placed) {
        place_tail(t, p);
    } else if (!none && !go_on(t, p)) {
        serve_all(t);
        return;
    }
    t->complete = was_over && !p->n;
    serve_all(t);
    if (t->complete)
        look_at_end(t);
    else if (t->end < p->end || was_over)
        tails_look(t); /* there is more already, or this was the last */
}

static void on_looked_live(struct logpart *p, void *arg)
{
    tails_on_looked(p, false, arg);
}

static void on_looked_over(struct logpart *p, void *arg)
{
    tails_on_looked(p, true, arg);
}

/* What is new. Where nobody stands yet, from the first follower's place on. */
static void tails_look(struct tail *t)
{
    if (t->reading || t->gone || !t->n || cluster_root_hangs(t->tails->p.cluster))
        return;
    uint64_t from = t->placed ? t->end : t->followers[0]->offset;
    size_t before = t->placed ? (t->mark.end == t->end ? t->mark.n : 0)
                              : (from < TAILMARK_BYTES ? (size_t)from : TAILMARK_BYTES);
    t->reading = true;
    start_read(t, from, before, attempt_is_over(t) ? on_looked_over : on_looked_live);
}

/* ---- the end ---- */

static void move_follower(struct follower *f, int k)
{
    struct tail *t = f->tail;
    struct tail *to = tail_get(t->tails, t->job, t->user, t->project, t->name, k);
    remove_follower(f);
    f->offset = t->k ? 0 : f->offset;
    add_follower(to, f);
}

static void send_end(struct follower *f, const struct job *job)
{
    struct buf out = BUF_INIT(4096);
    tails_put_end(job, &out);
    /* No room: it ends without the event, and the client asks for the rest. */
    bool said = http_stream_sse(f->st, NULL, "end", buf_str(&out), out.len) >= 0;
    (void)said;
    buf_release(&out);
    end_follower(f);
}

static bool is_at_end(const struct follower *f)
{
    return !f->tail->k || (!f->tail->gone && f->tail->complete && f->offset >= f->tail->end);
}

/* n_attempts: of the job; job: NULL while it is not over. */
static void finish_some(struct tail *t, int n_attempts, const struct job *job)
{
    for (size_t i = t->n; i-- > 0;) {
        struct follower *f = t->followers[i];
        if (!is_at_end(f))
            continue;
        if ((!f->named || !t->k) && n_attempts > t->k)
            move_follower(f, t->k + 1);
        else if (job)
            send_end(f, job);
    }
}

static void tails_on_job_row(const struct store_result *r, void *arg)
{
    struct tail *t = arg;
    struct record_extra extra = {0};
    struct job *job = NULL;
    t->asking = false;
    if (r->err.code || record_to_job(&r->jobs[0], &job, &extra, NULL) < 0) {
        for (size_t i = t->n; i-- > 0;)
            if (is_at_end(t->followers[i]))
                end_follower(t->followers[i]); /* the client asks again */
    } else { /* not terminal: its end is not on disk yet, and the next tick asks again */
        finish_some(t, (int)r->nattempts, job_state_is_terminal(job->state) ? job : NULL);
    }
    record_extra_release(&extra);
    job_free(job);
}

static void look_at_end(struct tail *t)
{
    struct live *l = jobs_find_id(t->tails->p.jobs, t->job);
    const struct attempt *a = l ? job_attempt(l->job) : NULL;
    bool some = false;
    for (size_t i = 0; i < t->n && !some; i++)
        some = is_at_end(t->followers[i]);
    if (!some || t->asking)
        return;
    if (l) {
        finish_some(t, a ? a->k : 0, NULL);
        return;
    }
    t->asking = true;
    struct store_then then = {.done = tails_on_job_row, .arg = t};
    struct store_job_ref ref = {.ref = t->job, .is_id = true};
    (void)store_find_job(t->tails->p.store, &ref, &then);
}

/* ---- the tick ---- */

/* His token still works, and he has not left the job's project. */
static bool may_go_on(const struct follower *f)
{
    const struct tail *t = f->tail;
    const struct tails_parts *p = &t->tails->p;
    struct job job = {.id = t->job, .user = t->user, .project = t->project};
    return people_may_go_on(p->people, p->tokens, &f->who) &&
           people_check_job(p->people, &f->who, ACCESS_JOB_SEE, "see", &job, NULL) == 0;
}

static void check_followers(struct tail *t)
{
    for (size_t i = t->n; i-- > 0;)
        if (!may_go_on(t->followers[i]))
            end_follower(t->followers[i]); /* whoever comes back is told why */
}

/* What everybody has is forgotten. */
static void tails_forget(struct tail *t)
{
    uint64_t least = UINT64_MAX;
    size_t before = t->cache.bytes;
    for (size_t i = 0; i < t->n; i++)
        least = t->followers[i]->offset < least ? t->followers[i]->offset : least;
    tailcache_forget(&t->cache, least);
    if (!t->cache.n)
        buf_release(&t->event);
    t->tails->kept -= before - t->cache.bytes;
}

static void tick_tail(struct tail *t)
{
    if (t->tails->ticks % CHECK_TICKS == 0)
        check_followers(t);
    tails_forget(t);
    if (t->k)
        tails_look(t);
    serve_all(t);
    look_at_end(t);
}

static void tails_on_tick(uv_timer_t *timer)
{
    struct tails *ts = container_of(timer, struct tails, timer);
    ts->ticks++;
    for (struct tail *t = ts->all; t; t = t->next)
        tick_tail(t); /* new ones come at the front */
    for (struct tail **p = &ts->all; *p;) {
        struct tail *t = *p;
        if (tails_is_idle(t)) {
            *p = t->next;
            tail_release(t);
        } else {
            p = &t->next;
        }
    }
    if (!ts->all) {
        (void)uv_timer_stop(timer); /* cannot fail */
        ts->ticking = false;
    }
}

/* ---- from outside ---- */

struct tails *tails_new(const struct tails_parts *parts)
{
    struct tails *ts = xcalloc(1, sizeof(*ts));
    ts->p = *parts;
    (void)uv_timer_init(parts->loop, &ts->timer); /* these never fail */
    (void)uv_timer_init(parts->loop, &ts->soon);
    return ts;
}

static void tails_on_closed(uv_handle_t *h)
{
    free(container_of(h, struct tails, timer));
}

static void on_soon_closed(uv_handle_t *h)
{
    uv_close((uv_handle_t *)&container_of(h, struct tails, soon)->timer, tails_on_closed);
}

void tails_free(struct tails *ts)
{
    if (!ts)
        return;
    while (ts->all) {
        struct tail *t = ts->all;
        ts->all = t->next;
        tail_release(t);
    }
    uv_close((uv_handle_t *)&ts->soon, on_soon_closed);
}

void tails_follow(struct tails *ts,
                  struct http_req *req,
                  const struct job *job,
                  const struct tails_place *place)
{
    struct http_stream *st = http_stream_begin(req, "text/event-stream", place->barrier);
    if (!st)
        return;
    struct follower *f = xcalloc(1, sizeof(*f));
    *f = (struct follower){
        .st = st, .who = *http_req_principal(req), .named = place->named, .offset = place->offset};
    add_follower(tail_get(ts, job->id, job->user, job->project, place->name, place->k), f);
    ts->n_followers++;
    http_stream_on_drain(st, tails_on_drain, f);
    http_stream_on_close(st, tails_on_gone, f);
    if (!ts->ticking) {
        (void)uv_timer_start(&ts->timer, tails_on_tick, 0, TICK_MS); /* cannot fail */
        ts->ticking = true;
    }
}

void tails_put_metrics(const struct tails *ts, struct expo *e)
{
    expo_one(e, EXPO_GAUGE, "log_followers", "Streams that follow a log.", (double)ts->n_followers);
    expo_one(e, EXPO_COUNTER, "log_reads_total", "Reads of followed logs.", (double)ts->reads);
    expo_one(e, EXPO_COUNTER, "log_read_bytes_total", "Bytes read of followed logs.",
             (double)ts->read_bytes);
    expo_one(e, EXPO_COUNTER, "log_sent_bytes_total", "Bytes of logs sent to followers.",
             (double)ts->sent_bytes);
    expo_one(e, EXPO_GAUGE, "log_kept_bytes", "Bytes of logs kept for followers.",
             (double)ts->kept);
}
