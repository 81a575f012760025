/* SPDX-License-Identifier: Apache-2.0 */
/* reads.c - connections go to reads in the order these came, but one is kept from the
 * reads that may walk over the whole history, so that a page is never stuck behind a
 * search. A read is made and delivered on the loop and runs on a worker; the loop
 * alone hands out connections, so nothing here needs a lock. A cancelled read that runs
 * is interrupted and dropped when it comes back. */
#include "store/reads.h"

#include <assert.h>
#include <stdlib.h>

#include "base/strv.h"
#include "store/query.h"

enum { READS_MIN = 2, READS_MAX = 16 };
enum line { LINE_FAST, LINE_SLOW, LINES };

struct store_read {
    uv_work_t work;
    struct reads *pool;
    struct store_read *next; /* in line, or running */
    struct store_then then;
    enum line line;
    bool cancelled;
    struct reader *reader; /* while it runs */

    int (*query)(struct store_read *r, struct err *err);
    struct store_job_query jobs;
    const char **states, **flags, **projects;
    struct store_scope scope;
    struct store_event_scope event_scope;
    struct store_event_query events;
    struct store_job_ref ref;
    struct store_family_query family;
    struct store_usage_query usage;
    int64_t job_seq;
    struct strv texts; /* what the queries point to */

    struct answer answer;
};

struct reads {
    uv_loop_t *loop;
    struct reader *readers[READS_MAX]; /* the first nfree are free */
    unsigned n, nfree;
    struct {
        struct store_read *first, **last; /* waiting */
    } lines[LINES];
    struct store_read *running;
    unsigned nslow;          /* of those that run */
    void (*gone)(void *arg); /* set: closing */
    void *arg;
};

struct reads *reads_new(uv_loop_t *loop, const char *path, const char *vfs, unsigned n)
{
    struct reads *rs = xcalloc(1, sizeof(*rs));
    rs->loop = loop;
    for (enum line l = 0; l < LINES; l++)
        rs->lines[l].last = &rs->lines[l].first;
    rs->n = n < READS_MIN ? READS_MIN : n > READS_MAX ? READS_MAX : n;
    for (rs->nfree = 0; rs->nfree < rs->n; rs->nfree++)
        rs->readers[rs->nfree] = reader_new(path, vfs);
    return rs;
}

static void read_free(struct store_read *r)
{
    if (r->answer.result.rendered && r->then.drop)
        r->then.drop(r->answer.result.rendered);
    answer_release(&r->answer);
    if (r->then.release)
        r->then.release(r->then.arg);
    strv_release(&r->texts);
    free(r->states);
    free(r->flags);
    free(r->projects);
    free(r);
}

static void reads_finish_close(struct reads *rs)
{
    void (*gone)(void *) = rs->gone;
    void *arg = rs->arg;

    for (unsigned i = 0; i < rs->n; i++)
        reader_free(rs->readers[i]);
    free(rs);
    gone(arg);
}

void reads_close(struct reads *rs, void (*gone)(void *arg), void *arg)
{
    struct store_read *next;
    for (enum line l = 0; l < LINES; l++) {
        for (struct store_read *r = rs->lines[l].first; r; r = next) {
            next = r->next;
            read_free(r);
        }
        rs->lines[l].first = NULL;
    }
    for (struct store_read *r = rs->running; r; r = r->next) {
        r->cancelled = true;
        reader_interrupt(r->reader);
    }
    rs->gone = gone;
    rs->arg = arg;
    if (!rs->running)
        reads_finish_close(rs);
}

/* On a worker. */
static void reads_on_work(uv_work_t *work)
{
    struct store_read *r = container_of(work, struct store_read, work);
    struct store_result *res = &r->answer.result;
    if (r->query(r, &res->err) == 0 && r->then.render)
        res->rendered = r->then.render(res, r->then.arg);
}

static void reads_start(struct reads *rs);

static void reads_take_back(struct store_read *r)
{
    struct reads *rs = r->pool;
    struct store_read **at = &rs->running;
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    rs->nslow -= r->line == LINE_SLOW;
    rs->readers[rs->nfree++] = r->reader;
    r->reader = NULL;
}

static void on_worked(uv_work_t *work, int status)
{
    struct store_read *r = container_of(work, struct store_read, work);
    struct reads *rs = r->pool;
    (void)status; /* never UV_ECANCELED: uv_cancel() is not used */
    reads_take_back(r);
    reads_start(rs);
    if (!r->cancelled) {
        r->then.done(&r->answer.result, r->then.arg);
        r->answer.result.rendered = NULL;
    }
    read_free(r);
    if (rs->gone && !rs->running)
        reads_finish_close(rs);
}

/* The next read that gets a connection: NULL if none may have one now. */
static struct store_read *take_next(struct reads *rs)
{
    bool slow_may = rs->nslow < rs->n - 1;
    enum line l = rs->lines[LINE_FAST].first || !slow_may ? LINE_FAST : LINE_SLOW;
    struct store_read *r = rs->lines[l].first;
    if (!r)
        return NULL;
    rs->lines[l].first = r->next;
    if (!r->next)
        rs->lines[l].last = &rs->lines[l].first;
    rs->nslow += l == LINE_SLOW;
    return r;
}

/* Gives free connections to waiting reads. */
static void reads_start(struct reads *rs)
{
    struct store_read *r;
    while (rs->nfree && (r = take_next(rs)) != NULL) {
        r->reader = rs->readers[--rs->nfree];
        r->next = rs->running;
        rs->running = r;
        if (uv_queue_work(rs->loop, &r->work, reads_on_work, on_worked) < 0)
            abort(); /* only for a NULL callback */
    }
}

static struct store_read *read_new(struct reads *rs, const struct store_then *then)
{
    struct store_read *r = xcalloc(1, sizeof(*r));
    assert(then->done && !rs->gone);
    r->pool = rs;
    r->then = *then;
    return r;
}

static struct store_read *reads_enqueue(struct store_read *r)
{
    struct reads *rs = r->pool;
    *rs->lines[r->line].last = r;
    rs->lines[r->line].last = &r->next;
    reads_start(rs);
    return r;
}

static const char *own(struct store_read *r, const char *s)
{
    if (!s)
        return NULL;
    strv_add(&r->texts, s);
    return r->texts.v[r->texts.n - 1];
}

/* A copy that lives as long as the read. */
static const struct store_scope *own_scope(struct store_read *r, const struct store_scope *s)
{
    if (!s)
        return NULL;
    r->projects = xcalloc(s->nprojects + 1, sizeof(*r->projects));
    for (size_t i = 0; i < s->nprojects; i++)
        r->projects[i] = own(r, s->projects[i]);
    r->scope = (struct store_scope){
        .user = own(r, s->user), .projects = r->projects, .nprojects = s->nprojects};
    return &r->scope;
}

/* The commas around the kinds are for the SQL, which looks for ",job,". */
static const struct store_event_scope *own_event_scope(struct store_read *r,
                                                       const struct store_event_scope *s)
{
    const char *kinds[3];
    if (!s)
        return NULL;
    const char *const given[] = {s->own, s->shared, s->any};
    for (size_t i = 0; i < array_len(given); i++) {
        strv_addf(&r->texts, ",%s,", given[i]);
        kinds[i] = r->texts.v[r->texts.n - 1];
    }
    r->event_scope = (struct store_event_scope){
        .who = own_scope(r, s->who), .own = kinds[0], .shared = kinds[1], .any = kinds[2]};
    return &r->event_scope;
}

static int run_jobs(struct store_read *r, struct err *err)
{
    return query_jobs(r->reader, &r->jobs, &r->answer, err);
}

static int run_job(struct store_read *r, struct err *err)
{
    return query_job(r->reader, &r->ref, &r->answer, err);
}

static int run_family(struct store_read *r, struct err *err)
{
    return query_family(r->reader, &r->family, &r->answer, err);
}

static int run_events(struct store_read *r, struct err *err)
{
    return query_events(r->reader, &r->events, &r->answer, err);
}

static int run_findings(struct store_read *r, struct err *err)
{
    return query_findings(r->reader, r->job_seq, &r->answer, err);
}

static int run_usage(struct store_read *r, struct err *err)
{
    return query_usage(r->reader, &r->usage, &r->answer, err);
}

struct store_read *reads_jobs(struct reads *rs,
                              const struct store_job_query *q,
                              const struct store_then *then)
{
    struct store_read *r = read_new(rs, then);
    r->query = run_jobs;
    bool walks = (q->q && *q->q) || q->sort || q->ascending || q->want_count || q->nflags ||
                 q->ran_since || q->ran_until || q->failure || q->failure_node || q->by_gpus;
    r->line = walks ? LINE_SLOW : LINE_FAST;
    r->jobs = *q;
    r->states = xcalloc(q->nstates + 1, sizeof(*r->states));
    for (size_t i = 0; i < q->nstates; i++)
        r->states[i] = own(r, q->states[i]);
    r->jobs.states = r->states;
    r->flags = xcalloc(q->nflags + 1, sizeof(*r->flags));
    for (size_t i = 0; i < q->nflags; i++)
        r->flags[i] = own(r, q->flags[i]);
    r->jobs.flags = r->flags;
    r->jobs.user = own(r, q->user);
    r->jobs.project = own(r, q->project);
    r->jobs.cluster = own(r, q->cluster);
    r->jobs.pool = own(r, q->pool);
    r->jobs.workload = own(r, q->workload);
    r->jobs.q = own(r, q->q);
    r->jobs.failure = own(r, q->failure);
    r->jobs.failure_node = own(r, q->failure_node);
    r->jobs.cursor = own(r, q->cursor);
    r->jobs.scope = own_scope(r, q->scope);
    return reads_enqueue(r);
}

struct store_read *reads_job(struct reads *rs,
                             const struct store_job_ref *ref,
                             const struct store_then *then)
{
    struct store_read *r = read_new(rs, then);
    r->query = run_job;
    r->ref = (struct store_job_ref){.ref = own(r, ref->ref),
                                    .user = own(r, ref->user),
                                    .scope = own_scope(r, ref->scope),
                                    .is_id = ref->is_id};
    return reads_enqueue(r);
}

struct store_read *reads_family(struct reads *rs,
                                const struct store_family_query *q,
                                const struct store_then *then)
{
    struct store_read *r = read_new(rs, then);
    r->query = run_family;
    r->line = LINE_SLOW; /* it may look at many */
    r->family = (struct store_family_query){.id = own(r, q->id), .scope = own_scope(r, q->scope)};
    return reads_enqueue(r);
}

struct store_read *reads_events(struct reads *rs,
                                const struct store_event_query *q,
                                const struct store_then *then)
{
    struct store_read *r = read_new(rs, then);
    r->query = run_events;
    r->events = *q;
    r->events.job = own(r, q->job);
    r->events.kinds = own(r, q->kinds);
    r->events.actor = own(r, q->actor);
    r->events.object = own(r, q->object);
    bool walks = q->kinds || q->actor || q->object || q->from || q->to; /* they may be rare */
    r->line = walks ? LINE_SLOW : LINE_FAST;
    r->events.scope = own_event_scope(r, q->scope);
    return reads_enqueue(r);
}

struct store_read *reads_findings(struct reads *rs, int64_t job_seq, const struct store_then *then)
{
    struct store_read *r = read_new(rs, then);
    r->query = run_findings;
    r->job_seq = job_seq;
    return reads_enqueue(r);
}

struct store_read *reads_usage(struct reads *rs,
                               const struct store_usage_query *q,
                               const struct store_then *then)
{
    struct store_read *r = read_new(rs, then);
    r->query = run_usage;
    r->line = LINE_SLOW;
    r->usage = *q;
    r->usage.project = own(r, q->project);
    r->usage.user = own(r, q->user);
    r->usage.scope = own_scope(r, q->scope);
    return reads_enqueue(r);
}

void store_read_cancel(struct store_read *r)
{
    struct reads *rs = r->pool;
    struct store_read **at = &rs->lines[r->line].first;
    if (r->reader) {
        r->cancelled = true;
        reader_interrupt(r->reader);
        return;
    }
    while (*at != r)
        at = &(*at)->next;
    *at = r->next;
    if (!*at)
        rs->lines[r->line].last = at;
    read_free(r);
}
