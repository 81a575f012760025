/* SPDX-License-Identifier: Apache-2.0 */
/* outlook.c - GET /v1/forecast: what each pool will need in the next weeks, when it is full, and
 * what more nodes would change.
 *
 * Demand is what was leased, kept for a gang, or held by others, day by day (UTC) from the ledger's
 * rows of days; today is left out. The forecast is core's (core/past/outlook.h) and is made on a
 * worker. "What if" plays the jobs of the last four weeks twice through the scheduler
 * (core/past/whatif.h), on a worker as well: pages of jobs are read one after the other, at most
 * OUTLOOK_JOBS_MAX of the newest. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/account/accounting.h"
#include "argusd/ground/work.h"
#include "argusd/kit/api.h"
#include "argusd/kit/part.h"
#include "base/message.h"
#include "base/str.h"
#include "core/past/outlook.h"
#include "core/past/whatif.h"

enum {
    OUTLOOK_WEEKS = 4,
    OUTLOOK_NODES_MAX = 1000,
    OUTLOOK_JOBS_MAX = 20000,
    OUTLOOK_BYTES_MAX = 16 << 20,
    OUTLOOK_POOLS_MAX = 200,
    SATURATED_DAYS = 28,
};
static const usec_t OUTLOOK_REPLAYED = 28 * USEC_DAY;

/* A pool day by day; the last day is yesterday. */
struct outlook_pool {
    char *label; /* "" = all nodes */
    double *demand, *capacity;
    size_t first; /* the first day on which it had nodes */
    struct outlook o;
};

struct outlook_pools {
    struct outlook_pool *v;
    size_t n;
};

/* The replays, which may outlive who asked. */
struct outlook_play {
    struct outlook_asked *asked; /* NULL: he is gone */
    struct whatif_facts facts;
    struct whatif result;
};

/* References, all counted on the loop: the request's and that of each read. */
struct outlook_asked {
    unsigned refs;
    struct http_req *req; /* NULL: gone */
    struct api *a;
    struct store_read *read;
    struct outlook_play *play;
    char *pool; /* NULL = all pools */
    size_t weeks, days;
    int more; /* nodes; 0 = nothing is asked */
    usec_t today;
    struct outlook_pools *pools;
    struct replay_job *jobs;
    size_t n_jobs;
};

static void outlook_pools_free(void *rendered)
{
    struct outlook_pools *all = rendered;
    for (size_t i = 0; all && i < all->n; i++) {
        free(all->v[i].label);
        free(all->v[i].demand);
        free(all->v[i].capacity);
    }
    if (all)
        free(all->v);
    free(all);
}

static void outlook_unref(void *arg)
{
    struct outlook_asked *k = arg;
    if (--k->refs)
        return;
    outlook_pools_free(k->pools);
    free(k->jobs);
    free(k->pool);
    free(k);
}

/* ---- demand, on a worker ---- */

static struct outlook_pool *outlook_place(struct outlook_pools *all,
                                          const char *label,
                                          size_t len,
                                          size_t days)
{
    for (size_t i = 0; i < all->n; i++)
        if (!strncmp(all->v[i].label, label, len) && !all->v[i].label[len])
            return &all->v[i];
    if (all->n == OUTLOOK_POOLS_MAX)
        return NULL;
    all->v = xrealloc(all->v, all->n + 1, sizeof(*all->v));
    all->v[all->n] = (struct outlook_pool){.label = xstrndup(label, len),
                                           .demand = xcalloc(days, sizeof(double)),
                                           .capacity = xcalloc(days, sizeof(double))};
    return &all->v[all->n++];
}

static void outlook_add(struct outlook_pool *p, const struct store_usage_sum *row)
{
    static const enum slotbook_sum wanted[] = {SLOTBOOK_USED, SLOTBOOK_HELD_IDLE, SLOTBOOK_BLOCKED,
                                               SLOTBOOK_FOREIGN};
    const double day = (double)SLOTBOOK_GPU * 1000 * ACCOUNTING_DAY;
    if (!p)
        return;
    for (size_t i = 0; i < array_len(wanted); i++)
        p->demand[row->point] += (double)row->sums[wanted[i]] / day;
    p->capacity[row->point] += (double)row->sums[SLOTBOOK_CAPACITY] / day;
}

static int outlook_by_label(const void *a, const void *b)
{
    return strcmp(((const struct outlook_pool *)a)->label, ((const struct outlook_pool *)b)->label);
}

static void *outlook_render(const struct store_result *r, void *arg)
{
    const struct outlook_asked *k = arg;
    struct outlook_pools *all = xcalloc(1, sizeof(*all));
    (void)outlook_place(all, "", 0, k->days);
    for (size_t i = 0; i < r->nusage; i++) {
        const struct store_usage_sum *row = &r->usage[i];
        const char *labels = row->name, *item;
        size_t len;
        if (row->point < 0 || row->point >= (int64_t)k->days)
            continue;
        outlook_add(&all->v[0], row);
        while ((item = str_item(&labels, &len)))
            outlook_add(outlook_place(all, item, len, k->days), row);
    }
    xsort(all->v, all->n, sizeof(*all->v), outlook_by_label);
    for (size_t i = 0; i < all->n; i++) {
        struct outlook_pool *p = &all->v[i];
        while (p->first < k->days && p->capacity[p->first] <= 0)
            p->first++;
        outlook_run(p->demand + p->first, k->days - p->first, k->weeks, &p->o);
    }
    return all;
}

/* ---- the answer ---- */

struct outlook_point_page {
    usec_t at;
    double gpus, low, high;
};
static const struct field point_rows[] = {
    FIELD_AT(outlook_point_page, "at", FIELD_TIME, at, .flags = FIELD_ALWAYS, .doc = "a day, UTC"),
    FIELD_AT(outlook_point_page, "gpus", FIELD_REAL, gpus, .doc = "the day's mean"),
    FIELD_AT(outlook_point_page, "low", FIELD_REAL, low),
    FIELD_AT(outlook_point_page, "high", FIELD_REAL, high, .doc = "four in five days lie between"),
};
static const struct field_table outlook_point_table =
    FIELD_TABLE("ForecastDay", point_rows, outlook_point_page);

#define SIDE(key, ftype, member, ...) FIELD_AT(outlook_side, key, ftype, member, __VA_ARGS__)
struct outlook_side {
    int64_t nodes, never;
    double utilisation, mean_s, p50_s, p95_s;
    usec_t full_at, full_early_at;
};
static const struct field side_rows[] = {
    SIDE("nodes", FIELD_INT, nodes),
    SIDE("utilisation", FIELD_REAL, utilisation, .flags = FIELD_MAYBE, .doc = "0 to 1"),
    SIDE("wait_mean_s", FIELD_REAL, mean_s, .flags = FIELD_MAYBE),
    SIDE("wait_p50_s", FIELD_REAL, p50_s, .flags = FIELD_MAYBE),
    SIDE("wait_p95_s", FIELD_REAL, p95_s, .flags = FIELD_MAYBE),
    SIDE("never", FIELD_INT, never, .doc = "jobs that are larger than the pool"),
    SIDE("full_at", FIELD_TIME, full_at, .doc = "null: not within the weeks told"),
    SIDE("full_early_at",
         FIELD_TIME,
         full_early_at,
         .doc = "the day by the upper end of the interval"),
};
static const struct field_table side_table = FIELD_TABLE("ForecastNodes", side_rows, outlook_side);

struct outlook_whatif {
    usec_t from;
    int64_t jobs;
    double node_gpus;
    struct outlook_side now, then;
};
static const struct field whatif_rows[] = {
    FIELD_AT(outlook_whatif,
             "from",
             FIELD_TIME,
             from,
             .flags = FIELD_ALWAYS,
             .doc = "the jobs queued since then are played again"),
    FIELD_AT(outlook_whatif, "jobs", FIELD_INT, jobs),
    FIELD_AT(outlook_whatif, "node_gpus", FIELD_REAL, node_gpus, .doc = "GPUs of each node"),
    FIELD_AT(outlook_whatif, "now", FIELD_OBJECT, now, .of = &side_table),
    FIELD_AT(outlook_whatif, "then", FIELD_OBJECT, then, .of = &side_table),
};
static const struct field_table whatif_table =
    FIELD_TABLE("ForecastWhatIf", whatif_rows, outlook_whatif);

struct outlook_page {
    const char *pool;
    int64_t days, days_needed, weeks, trials, saturated_days;
    bool enough;
    int method;
    double capacity, last_week, error, naive_error, covered;
    usec_t full_at, full_early_at;
    struct field_list points;
    const struct outlook_whatif *what_if;
};
#define X(name, word) #word,
static const char *const outlook_words[] = {OUTLOOK_METHOD_TABLE(X) NULL};
#undef X
#define OUTLOOK(key, ftype, member, ...) FIELD_AT(outlook_page, key, ftype, member, __VA_ARGS__)
static const struct field outlook_rows[] = {
    OUTLOOK("pool", FIELD_STR, pool, .doc = "a label; null: all nodes"),
    OUTLOOK("enough", FIELD_BOOL, enough, .doc = "false: too short a history, nothing is foretold"),
    OUTLOOK("days", FIELD_INT, days, .doc = "days of history"),
    OUTLOOK("days_needed",
            FIELD_INT,
            days_needed,
            .doc = "days of history that one week needs; each further week needs 7 more"),
    OUTLOOK("weeks", FIELD_INT, weeks, .doc = "weeks that are foretold"),
    OUTLOOK("capacity_gpus", FIELD_REAL, capacity, .doc = "now"),
    OUTLOOK("last_week_gpus", FIELD_REAL, last_week, .doc = "mean demand of the last seven days"),
    OUTLOOK(
        "saturated_days",
        FIELD_INT,
        saturated_days,
        .doc =
            "days of the last 28 on which the pool was full, so that more may have been wanted than is known"),
    OUTLOOK("method", FIELD_ENUM, method, .names = outlook_words),
    OUTLOOK("trials",
            FIELD_INT,
            trials,
            .doc = "days of the last eight weeks, foretold as it would have been done"),
    OUTLOOK("error_gpus", FIELD_REAL, error, .doc = "mean absolute error of these"),
    OUTLOOK("naive_error_gpus", FIELD_REAL, naive_error, .doc = "the same of 'as last week'"),
    OUTLOOK("covered", FIELD_REAL, covered, .doc = "share of these inside their interval"),
    OUTLOOK("full_at",
            FIELD_TIME,
            full_at,
            .doc = "the first day with 95 % of the capacity; null: not within the weeks told"),
    OUTLOOK("full_early_at",
            FIELD_TIME,
            full_early_at,
            .doc = "the day by the upper end of the interval"),
    OUTLOOK("points", FIELD_LIST, points, .of = &outlook_point_table),
    OUTLOOK("what_if",
            FIELD_PART,
            what_if,
            .of = &whatif_table,
            .doc = "what the pool asked for would be with other nodes"),
};
static const struct field_table outlook_table =
    FIELD_TABLE("ForecastPool", outlook_rows, outlook_page);

struct outlook_list {
    usec_t from;
    int64_t weeks;
    struct field_list pools;
};
static const struct field list_rows[] = {
    FIELD_AT(outlook_list, "from", FIELD_TIME, from, .flags = FIELD_ALWAYS, .doc = "today, UTC"),
    FIELD_AT(outlook_list, "weeks", FIELD_INT, weeks, .doc = "asked for"),
    FIELD_AT(outlook_list, "pools", FIELD_LIST, pools, .of = &outlook_table),
};
static const struct field_table outlook_list_table =
    FIELD_TABLE("Forecast", list_rows, outlook_list);

static usec_t full_day(const struct outlook_asked *k,
                       const struct outlook *o,
                       double gpus,
                       bool early)
{
    size_t i = outlook_full(o, gpus, early);
    return gpus > 0 && i < o->n ? k->today + i * USEC_DAY : 0;
}

static double outlook_capacity(const struct outlook_asked *k, const char *label)
{
    int64_t book[SLOTBOOK_SUMS];
    accounting_pool(k->a->accounting, label, book);
    return (double)book[SLOTBOOK_CAPACITY] / SLOTBOOK_GPU;
}

/* points has room for all of them. */
static void outlook_fill(const struct outlook_asked *k,
                         const struct outlook_pool *p,
                         struct outlook_point_page *points,
                         struct outlook_page *ret)
{
    const struct outlook *o = &p->o;
    double capacity = outlook_capacity(k, p->label);
    *ret = (struct outlook_page){.pool = *p->label ? p->label : NULL,
                                 .enough = o->weeks > 0,
                                 .days = (int64_t)(k->days - p->first),
                                 .days_needed = OUTLOOK_NEED,
                                 .weeks = (int64_t)o->weeks,
                                 .capacity = capacity,
                                 .method = (int)o->method,
                                 .trials = (int64_t)o->trials,
                                 .error = o->error,
                                 .naive_error = o->naive_error,
                                 .covered = o->covered,
                                 .full_at = full_day(k, o, capacity, false),
                                 .full_early_at = full_day(k, o, capacity, true),
                                 .points = {.v = points, .n = o->n}};
    for (size_t i = 0; i < o->n; i++)
        points[i] = (struct outlook_point_page){k->today + i * USEC_DAY, o->points[i].mid,
                                                o->points[i].low, o->points[i].high};
    for (size_t i = 1; i <= SATURATED_DAYS && i <= k->days - p->first; i++) {
        size_t day = k->days - i;
        ret->last_week += i <= OUTLOOK_WEEK ? p->demand[day] / OUTLOOK_WEEK : 0;
        ret->saturated_days +=
            p->capacity[day] > 0 && p->demand[day] >= OUTLOOK_FULL * p->capacity[day];
    }
}

static struct outlook_side side_of(const struct outlook_asked *k,
                                   const struct outlook *o,
                                   const struct whatif_side *s,
                                   double capacity)
{
    return (struct outlook_side){.nodes = s->nodes,
                                 .never = (int64_t)s->never,
                                 .utilisation = s->utilisation,
                                 .mean_s = s->mean_s,
                                 .p50_s = s->p50_s,
                                 .p95_s = s->p95_s,
                                 .full_at = full_day(k, o, capacity, false),
                                 .full_early_at = full_day(k, o, capacity, true)};
}

static void outlook_fill_whatif(const struct outlook_asked *k,
                                const struct outlook_pool *p,
                                const struct outlook_play *play,
                                struct outlook_whatif *ret)
{
    double capacity = outlook_capacity(k, p->label), of_node = play->facts.gpus_per_node;
    *ret = (struct outlook_whatif){
        .from = play->facts.from,
        .jobs = (int64_t)play->facts.n,
        .node_gpus = of_node,
        .now = side_of(k, &p->o, &play->result.now, capacity),
        .then = side_of(k, &p->o, &play->result.then, capacity + k->more * of_node)};
}

/* The pool asked for; of what-if alone: all nodes. */
static bool outlook_is_meant(const struct outlook_asked *k, const struct outlook_pool *p)
{
    return str_eq(p->label, str_or(k->pool, ""));
}

static void outlook_reply(const struct outlook_asked *k, const struct outlook_list *list)
{
    struct buf body = BUF_INIT(OUTLOOK_BYTES_MAX);
    struct jout j = jout_begin(&body);
    field_to_json(&outlook_list_table, list, FIELD_ALL, FIELD_PAGE, &j, NULL);
    api_mark_stale(k->req, k->a);
    http_reply_json(k->req, 200, &body, 0); /* it is on disk */
    buf_release(&body);
}

/* play: NULL, if nothing was asked of it. */
static void outlook_answer(struct outlook_asked *k, const struct outlook_play *play)
{
    const size_t room = (size_t)OUTLOOK_WEEKS_MAX * OUTLOOK_WEEK;
    struct outlook_page *pages = xcalloc(k->pools->n, sizeof(*pages));
    struct outlook_point_page *points = xcalloc(k->pools->n * room, sizeof(*points));
    struct outlook_whatif what_if;
    size_t n = 0;
    for (size_t i = 0; i < k->pools->n; i++) {
        const struct outlook_pool *p = &k->pools->v[i];
        if (k->pool && !outlook_is_meant(k, p))
            continue;
        outlook_fill(k, p, points + n * room, &pages[n]);
        if (play && outlook_is_meant(k, p)) {
            outlook_fill_whatif(k, p, play, &what_if);
            pages[n].what_if = &what_if;
        }
        n++;
    }
    const struct outlook_list list = {
        .from = k->today, .weeks = (int64_t)k->weeks, .pools = {.v = pages, .n = n}};
    http_req_on_close(k->req, NULL, NULL);
    outlook_reply(k, &list);
    free(points);
    free(pages);
    outlook_unref(k); /* the request's */
}

static void outlook_fail(struct outlook_asked *k, struct err *err)
{
    http_req_on_close(k->req, NULL, NULL);
    api_fail(k->req, err, 0);
    outlook_unref(k); /* the request's */
}

/* ---- what if ---- */

static void outlook_play(void *arg)
{
    struct outlook_play *play = arg;
    whatif_run(&play->facts, &play->result);
}

static void outlook_played(void *arg)
{
    struct outlook_play *play = arg;
    if (play->asked) {
        play->asked->play = NULL;
        outlook_answer(play->asked, play);
    }
    free(play->facts.jobs);
    free(play);
}

static int outlook_by_submit(const void *a, const void *b)
{
    const struct replay_job *x = a, *y = b;
    return x->submit < y->submit ? -1 : x->submit > y->submit;
}

/* All its jobs are known. */
static void outlook_start_play(struct outlook_asked *k)
{
    struct sched_pool pool;
    struct err err = {0};
    sched_pool(jobs_sched(k->a->jobs), str_or(k->pool, ""), jobs_now(k->a->jobs), &pool);
    if (pool.nodes <= 0 || pool.gpus <= 0 || pool.nodes + k->more < 1) {
        (void)message_refuse(&err, ERR_REFUSED, "forecast_no_nodes",
                             MESSAGE_ARGS(MESSAGE_NUM("nodes", pool.nodes)));
        outlook_fail(k, &err);
        return;
    }
    struct outlook_play *play = xcalloc(1, sizeof(*play));
    usec_t now = clock_wall();
    *play = (struct outlook_play){.asked = k,
                                  .facts = {.jobs = k->jobs,
                                            .n = k->n_jobs,
                                            .nodes = pool.nodes,
                                            .more = k->more,
                                            .gpus_per_node = (int)ceil(pool.gpus / pool.nodes),
                                            .policy = settings_sched_policy(k->a->settings),
                                            .from = now - OUTLOOK_REPLAYED,
                                            .span = OUTLOOK_REPLAYED}};
    xsort(play->facts.jobs, play->facts.n, sizeof(*play->facts.jobs), outlook_by_submit);
    k->jobs = NULL;
    k->play = play;
    work_start(k->a->loop, outlook_play, outlook_played, play);
}

/* What ran, and for how long until now; what never started says nothing of its length. */
static void outlook_add_job(struct outlook_asked *k, const struct store_job *job, usec_t now)
{
    usec_t end = job->ended_at ? job->ended_at : now;
    if (!job->started_at || end <= job->started_at)
        return;
    double gpus = (double)job->nnodes * job->n_gpus_per_node;
    if (gpus <= 0 || gpus > 1e6)
        return;
    k->jobs[k->n_jobs++] = (struct replay_job){
        .submit = job->queued_at, .duration = end - job->started_at, .gpus = (int)ceil(gpus)};
}

static void outlook_read_jobs(struct outlook_asked *k, const char *cursor);

static void outlook_on_jobs(const struct store_result *r, void *arg)
{
    struct outlook_asked *k = arg;
    usec_t now = clock_wall();
    k->read = NULL;
    if (r->err.code) {
        struct err err = r->err;
        outlook_fail(k, &err);
        return;
    }
    k->jobs = xrealloc(k->jobs, k->n_jobs + r->njobs + 1, sizeof(*k->jobs));
    for (size_t i = 0; i < r->njobs; i++)
        outlook_add_job(k, &r->jobs[i], now);
    if (r->next && k->n_jobs < OUTLOOK_JOBS_MAX)
        outlook_read_jobs(k, r->next);
    else
        outlook_start_play(k);
}

static void outlook_read_jobs(struct outlook_asked *k, const char *cursor)
{
    struct store_job_query q = {.pool = k->pool,
                                .since = clock_wall() - OUTLOOK_REPLAYED,
                                .cursor = cursor,
                                .limit = STORE_PAGE_MAX,
                                .no_live = !jobs_may_have(k->a->jobs, NULL, k->pool, NULL)};
    k->refs++;
    k->read = store_list_jobs(
        k->a->store, &q,
        &(struct store_then){.done = outlook_on_jobs, .release = outlook_unref, .arg = k});
}

/* ---- the request ---- */

static void outlook_on_usage(const struct store_result *r, void *arg)
{
    struct outlook_asked *k = arg;
    struct err err = r->err;
    bool known = !k->pool;
    k->read = NULL;
    k->pools = r->rendered;
    for (size_t i = 0; !err.code && !known && i < k->pools->n; i++)
        known = outlook_is_meant(k, &k->pools->v[i]);
    if (!err.code && !known)
        (void)message_refuse(&err, ERR_NOT_FOUND, "forecast_no_pool",
                             MESSAGE_ARGS(MESSAGE_STR("pool", k->pool)));
    if (err.code)
        outlook_fail(k, &err);
    else if (k->more)
        outlook_read_jobs(k, NULL);
    else
        outlook_answer(k, NULL);
}

static void outlook_on_settled(int64_t until_ms, void *arg)
{
    struct outlook_asked *k = arg;
    int64_t to = until_ms / 1000 / ACCOUNTING_DAY * ACCOUNTING_DAY;
    int64_t from = to - (int64_t)k->days * ACCOUNTING_DAY;
    struct store_usage_query q = {.by = STORE_USAGE_BY_LABELS,
                                  .origin = from,
                                  .point = ACCOUNTING_DAY,
                                  .spans = {{ACCOUNTING_DAY, from, to}},
                                  .n_spans = 1};
    k->today = (usec_t)to * USEC_SEC;
    k->refs++;
    k->read = store_list_usage(k->a->store, &q,
                               &(struct store_then){.render = outlook_render,
                                                    .done = outlook_on_usage,
                                                    .drop = outlook_pools_free,
                                                    .release = outlook_unref,
                                                    .arg = k});
}

static void outlook_on_gone(struct http_req *req, void *arg)
{
    struct outlook_asked *k = arg;
    (void)req;
    accounting_forget(k->a->accounting, k);
    if (k->play)
        k->play->asked = NULL;
    if (k->read)
        store_read_cancel(k->read);
    outlook_unref(k);
}

static void api_forecast(struct http_req *req, void *app)
{
    struct err err = {0};
    struct api *a = app;
    int64_t weeks = OUTLOOK_WEEKS, more = 0;
    const char *pool = http_req_query(req, "pool");
    if (http_req_query_int(req, "weeks", 1, OUTLOOK_WEEKS_MAX, OUTLOOK_WEEKS, &weeks, &err) < 0 ||
        http_req_query_int(req, "nodes", -OUTLOOK_NODES_MAX, OUTLOOK_NODES_MAX, 0, &more, &err) <
            0) {
        err.code = ERR_BAD_REQUEST;
        api_fail(req, &err, 0);
        return;
    }
    struct outlook_asked *k = xcalloc(1, sizeof(*k));
    *k = (struct outlook_asked){.refs = 1,
                                .req = req,
                                .a = a,
                                .pool = pool && *pool ? xstrdup(pool) : NULL,
                                .weeks = (size_t)weeks,
                                .days = OUTLOOK_PAST,
                                .more = (int)more};
    http_req_on_close(req, outlook_on_gone, k);
    accounting_settle(a->accounting, outlook_on_settled, k);
}

/* ---- the routes ---- */

static const struct http_param outlook_params[] = {
    {"pool", HTTP_PARAM_STRING, "this one alone"},
    {"weeks", HTTP_PARAM_INTEGER, "so many weeks ahead, 1 to 13 (4); fewer where history is short"},
    {"nodes", HTTP_PARAM_INTEGER,
     "what if there were so many nodes more (or, below 0, fewer): the jobs of the last 28 days, of "
     "the pool or of all, are played again through the scheduler"},
    {0}};

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/forecast",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_forecast,
     .summary = "how many GPUs each pool will need in the next weeks, how wrong such forecasts "
                "were, when it is full, and what more nodes would change",
     .params = outlook_params,
     .reply_schema = "Forecast"},
};

static const struct http_schema schemas[] = {
    {.name = "ForecastDay", .table = &outlook_point_table},
    {.name = "ForecastNodes", .table = &side_table},
    {.name = "ForecastWhatIf", .table = &whatif_table},
    {.name = "ForecastPool", .table = &outlook_table},
    {.name = "Forecast", .table = &outlook_list_table},
};

const struct api_part part_outlook = {rows, array_len(rows), schemas, array_len(schemas)};
