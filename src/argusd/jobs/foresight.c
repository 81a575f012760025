/* SPDX-License-Identifier: Apache-2.0 */
/* foresight.c - learning on the loop, looking ahead on a worker; see foresight.h.
 *
 * The worker has a copy of the scheduler and of the error of past forecasts. Rows come back
 * with pointers at live jobs: jobs_sweep() frees none while a look is under way. A look
 * that took long is repeated less often, so that it never takes more than a tenth of one
 * core. What is told changes only when it changed by more than a person would care for,
 * so that a waiting client is not woken by every second that passes. */
#include "argusd/jobs/foresight.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/ground/work.h"
#include "argusd/jobs/jobs_state.h"
#include "base/digest/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "core/past/forecast.h"
#include "core/past/learn.h"

enum { HISTORY_MAX = 5000, FORESEEN_MAX = 1000, REST = 10 };
static const usec_t LOOK_EVERY = 3 * USEC_SEC;
static const usec_t SAME_WITHIN = 15 * USEC_SEC; /* told anew only beyond this … */
enum { SAME_SHARE = 20 };                        /* … or a 20th of the wait */

/* One run of the past, in memory of its own. */
struct run {
    char *user, *project, *workload, *pool, *name;
    double gpus;
    usec_t limit, ran;
};

struct history {
    struct run *v;
    size_t n;
};

struct foresight {
    struct jobs *js;
    struct learn *learn;
    struct forecast_error *error;
    struct history past;
    bool touched, looking;
    usec_t looked_at, rest; /* monotonic */
};

struct look {
    struct foresight *f;
    struct sched *copy;
    struct forecast_error *error;
    struct forecast_row *rows;
    size_t n;
    usec_t now, took;
};

struct foresight *foresight_new(struct jobs *js)
{
    unsigned char seed[16];
    random_bytes(seed, sizeof(seed));
    struct foresight *f = xcalloc(1, sizeof(*f));
    *f = (struct foresight){.js = js, .learn = learn_new(seed), .error = forecast_error_new()};
    return f;
}

static void history_release(struct history *h)
{
    for (size_t i = 0; i < h->n; i++) {
        char *texts[] = {h->v[i].user, h->v[i].project, h->v[i].workload, h->v[i].pool,
                         h->v[i].name};
        for (size_t k = 0; k < array_len(texts); k++)
            free(texts[k]);
    }
    free(h->v);
    *h = (struct history){0};
}

void foresight_free(struct foresight *f)
{
    if (!f)
        return;
    history_release(&f->past);
    learn_free(f->learn);
    forecast_error_free(f->error);
    free(f);
}

/* ---- the past ---- */

static struct learn_kind foresight_kind_of(const struct job *j)
{
    return (struct learn_kind){.user = j->user,
                               .project = j->project,
                               .workload = j->workload,
                               .pool = j->pool,
                               .name = j->name,
                               .gpus = demand_gpus(&j->demand),
                               .limit = j->limits.timeout};
}

/* A name that is only the id says nothing of the kind. */
static void foresight_add_row(struct history *h, const struct store_job *row)
{
    const char *detail = str_or(row->detail, "{}");
    _cleanup_(json_unrefp) json_t *v = NULL;
    if (json_parse(detail, strlen(detail), RECORD_DETAIL_MAX, &v, NULL) < 0)
        return;
    usec_t lasted = row->ended_at > row->started_at ? row->ended_at - row->started_at : 0;
    usec_t ran = (usec_t)json_get_int(v, "ran", row->started_at ? (int64_t)lasted : 0);
    if (!ran)
        return; /* it never ran */
    h->v[h->n++] = (struct run){
        .user = xstrdup(str_or(row->user, "")),
        .project = xstrdup(str_or(row->project, "")),
        .workload = xstrdup(str_or(row->workload, "")),
        .pool = xstrdup(str_or(row->pool, "")),
        .name = xstrdup(row->name && !str_eq(row->name, row->id) ? row->name : ""),
        .gpus = (double)row->nnodes * row->n_gpus_per_node,
        .limit = (usec_t)json_get_int(v, "timeout", 0),
        .ran = ran,
    };
}

static void *render_page(const struct store_result *r, void *arg)
{
    struct history *page = xcalloc(1, sizeof(*page));
    (void)arg;
    page->v = xcalloc(r->njobs ? r->njobs : 1, sizeof(*page->v));
    for (size_t i = 0; i < r->njobs; i++)
        foresight_add_row(page, &r->jobs[i]);
    return page;
}

static void drop_page(void *rendered)
{
    history_release(rendered);
    free(rendered);
}

/* The oldest first, as they happened; what ended since the start counts as newer anyway. */
static void learn_past(struct foresight *f)
{
    for (size_t i = f->past.n; i-- > 0;) {
        const struct run *r = &f->past.v[i];
        struct learn_kind k = {.user = r->user,
                               .project = r->project,
                               .workload = r->workload,
                               .pool = r->pool,
                               .name = r->name,
                               .gpus = r->gpus,
                               .limit = r->limit};
        learn_add(f->learn, &k, r->ran);
    }
    struct live *l;
    for (size_t pos = 0; (l = jobs_next(f->js, &pos));)
        if (l->job->state == JOB_QUEUED) {
            sched_dequeue(f->js->sched, l->job->id);
            queue_enter(l); /* with what is known now */
        }
    if (f->past.n)
        log_info("jobs", "learnt from %zu runs of the past", f->past.n);
    history_release(&f->past);
    f->touched = true;
}

static void foresight_read_page(struct foresight *f, const char *cursor);

static void foresight_on_page(const struct store_result *r, void *arg)
{
    struct foresight *f = arg;
    struct history *page = r->rendered;
    if (r->err.code)
        log_warn("jobs", "runs of the past cannot be read: %s", r->err.text);
    if (page) {
        f->past.v = xrealloc(f->past.v, f->past.n + page->n + 1, sizeof(*f->past.v));
        if (page->n)
            memcpy(f->past.v + f->past.n, page->v, page->n * sizeof(*page->v));
        f->past.n += page->n;
        free(page->v);
        free(page);
    }
    if (!r->err.code && r->next && f->past.n < HISTORY_MAX)
        foresight_read_page(f, r->next);
    else
        learn_past(f);
}

static void foresight_read_page(struct foresight *f, const char *cursor)
{
    static const char *const ended[] = {"SUCCEEDED", "FAILED", "STOPPED", "TIMEOUT"};
    struct store_job_query q = {.states = ended,
                                .nstates = array_len(ended),
                                .cursor = cursor,
                                .limit = STORE_PAGE_MAX,
                                .want_detail = true};
    struct store_then then = {
        .render = render_page, .done = foresight_on_page, .drop = drop_page, .arg = f};
    (void)store_list_jobs(f->js->store, &q, &then); /* dropped when the store is closed */
}

void foresight_learn(struct foresight *f)
{
    foresight_read_page(f, NULL);
}

/* ---- the present ---- */

void foresight_expect(const struct foresight *f, const struct job *j, usec_t *p50, usec_t *p90)
{
    struct learn_kind k = foresight_kind_of(j);
    *p50 = *p90 = 0;
    (void)learn_expect(f->learn, &k, p50, p90); /* nothing known: 0 */
}

/* What is kept for a job that waits. */
struct foretold {
    struct forecast_row first; /* the first forecast; its job is NULL */
    usec_t at;                 /* jobs_now(); 0 = none, or it was judged already */
    usec_t p50, p90;           /* wall: when it starts; 0 = cannot be */
};

void jobs_eta(const struct live *l, usec_t *ret_p50, usec_t *ret_p90)
{
    const struct foretold *t = live_kept(l, LIVE_FORESIGHT);
    *ret_p50 = t ? t->p50 : 0;
    *ret_p90 = t ? t->p90 : 0;
}

static struct foretold *foretold_of(struct live *l)
{
    return live_keep(l, LIVE_FORESIGHT, sizeof(struct foretold));
}

void foresight_waits(struct foresight *f, struct live *l)
{
    if (live_kept(l, LIVE_FORESIGHT))
        *foretold_of(l) = (struct foretold){0};
    f->touched = true;
}

/* Its first forecast has come true, or not. */
void foresight_starts(struct foresight *f, struct live *l)
{
    const struct foretold *t = live_kept(l, LIVE_FORESIGHT);
    if (t && t->at) {
        forecast_error_add(f->error, &t->first, t->at, jobs_now(f->js) - t->at);
        foretold_of(l)->at = 0;
    }
    f->touched = true;
}

void foresight_ends(struct foresight *f, const struct job *j)
{
    struct learn_kind k = foresight_kind_of(j);
    if (j->ran)
        learn_add(f->learn, &k, j->ran);
    f->touched = true;
}

void foresight_touch(struct foresight *f)
{
    f->touched = true;
}

/* ---- the future ---- */

static void foresight_run_look(void *arg)
{
    struct look *k = arg;
    usec_t began = clock_mono();
    k->n = forecast_run(k->copy, k->error, k->now, FORESEEN_MAX, k->rows);
    k->took = clock_mono() - began;
}

static bool is_near(usec_t a, usec_t b, usec_t now)
{
    usec_t wait = b > now ? b - now : 0, apart = a > b ? a - b : b - a;
    return a && b && (apart < SAME_WITHIN || apart < wait / SAME_SHARE);
}

static void foresight_tell(struct foresight *f,
                           const struct look *k,
                           const struct forecast_row *row)
{
    struct live *l = row->job;
    usec_t wall = clock_wall(), p50 = jobs_to_wall(f->js, row->p50),
           p90 = jobs_to_wall(f->js, row->p90);
    if (l->over || l->job->state != JOB_QUEUED)
        return;
    struct foretold *t = foretold_of(l);
    if (!t->first.p50 && row->p50) {
        t->first = *row;
        t->first.job = NULL;
        t->at = k->now;
    } else if (t->at && forecast_error_late(f->error, &t->first, t->at, k->now)) {
        t->at = 0;
    }
    if (is_near(t->p50, p50, wall) && is_near(t->p90, p90, wall))
        return;
    t->p50 = p50;
    t->p90 = p90;
}

static void foresight_done_look(void *arg)
{
    struct look *k = arg;
    struct foresight *f = k->f;
    f->looking = false;
    f->looked_at = clock_mono();
    f->rest = REST * k->took;
    for (size_t i = 0; i < k->n; i++)
        foresight_tell(f, k, &k->rows[i]);
    forecast_error_free(k->error);
    free(k->rows);
    free(k);
}

void foresight_tick(struct foresight *f)
{
    struct jobs *js = f->js;
    usec_t now = clock_mono(), pause = f->rest > LOOK_EVERY ? f->rest : LOOK_EVERY;
    if (f->looking || !f->touched || now - f->looked_at < pause || !sched_queue_length(js->sched))
        return;
    struct look *k = xcalloc(1, sizeof(*k));
    *k = (struct look){.f = f,
                       .copy = sched_copy(js->sched),
                       .error = forecast_error_copy(f->error),
                       .rows = xcalloc(FORESEEN_MAX, sizeof(*k->rows)),
                       .now = jobs_now(js)};
    f->touched = false;
    f->looking = true;
    work_start(js->p.loop, foresight_run_look, foresight_done_look, k);
}

bool foresight_is_looking(const struct foresight *f)
{
    return f->looking;
}

struct forecast_error *foresight_error(const struct foresight *f)
{
    return forecast_error_copy(f->error);
}
