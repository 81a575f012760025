/* SPDX-License-Identifier: Apache-2.0 */
/* waste.c - GET /v1/usage/jobs: what each job held, what of that came to nothing, and what would
 * have changed it.
 *
 * Of the jobs that held slots in that time the newest that who asks may see are read with their
 * details on a worker; what the leases of live ones hold now is added on the loop. A job's figures
 * are kept as sums: they are of its whole life. Among the jobs read, those that took the advice of
 * an earlier one stand beside it (core/account/advice_taken.h). Who asks for the back-test has the
 * jobs queued in two weeks read before that: the advice of the first is tried on those of the last
 * (core/account/hindsight.h). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/account/accounting.h"
#include "argusd/kit/api.h"
#include "argusd/kit/part.h"
#include "argusd/people/people_rules.h"
#include "base/str.h"
#include "core/account/advice_taken.h"
#include "core/account/hindsight.h"

enum { WASTE_LIMIT = 20, WASTE_TAKEN_MAX = 20, WASTE_BYTES_MAX = 4 << 20 };
static const usec_t WASTE_SINCE = 7 * USEC_DAY, WASTE_WEEK = 7 * USEC_DAY;

/* Texts are borrowed from the result. */
struct waste_row {
    const char *id, *name, *user, *project, *workload, *state;
    char *inputs; /* the registered data and models that it had, as JSON; owned, NULL: none */
    usec_t queued_at, ended_at;
    double gpus;
    bool live;
    int failures;
    usec_t timeout, ran;
    struct slotbook_held held;
    struct goodput_sums sums;
    struct waste w;
};

struct waste_rows {
    struct waste_row *v;
    size_t n;
    bool more; /* older ones were not looked at */
};

static void waste_rows_free(void *rendered)
{
    struct waste_rows *rows = rendered;
    if (!rows)
        return;
    for (size_t i = 0; i < rows->n; i++)
        free(rows->v[i].inputs);
    free(rows->v);
    free(rows);
}

static void waste_read(const struct store_job *job, struct waste_row *ret)
{
    _cleanup_(json_unrefp) json_t *detail = NULL;
    const char *text = str_or(job->detail, "{}");
    const json_t *restart;
    if (json_parse(text, strlen(text), RECORD_DETAIL_MAX, &detail, NULL) < 0)
        detail = NULL; /* then nothing is known of it */
    restart = json_get_object(detail, "restart");
    *ret = (struct waste_row){
        .id = job->id,
        .name = str_or(job->name, job->id),
        .user = job->user,
        .project = job->project,
        .workload = job->workload,
        .state = job->state,
        .live = job->live,
        .inputs = json_dumps(json_object_get(detail, "inputs"), JSON_COMPACT | JSON_SORT_KEYS),
        .queued_at = job->queued_at,
        .ended_at = job->live ? 0 : job->ended_at,
        .gpus = (double)job->nnodes * job->n_gpus_per_node,
        .failures = (int)json_get_int(restart, "failures", 0) + str_eq(job->state, "FAILED"),
        .held = {.held = json_get_int(detail, "gpu_held", 0),
                 .idle = json_get_int(detail, "gpu_idle", 0),
                 .unknown = json_get_int(detail, "gpu_unknown", 0),
                 .busy = json_get_int(detail, "gpu_busy", 0)}};
    usec_t lasted =
        job->started_at && job->ended_at > job->started_at ? job->ended_at - job->started_at : 0;
    int64_t timeout = json_get_int(detail, "timeout", 0), ran = json_get_int(detail, "ran", 0);
    ret->timeout = timeout > 0 ? (usec_t)timeout : 0;
    ret->ran = ran > 0 ? (usec_t)ran : lasted;
    goodput_from_json(json_get_array(json_get_object(detail, "metrics"), "attempts"), &ret->sums);
}

static void *waste_render(const struct store_result *r, void *arg)
{
    struct waste_rows *rows = xcalloc(1, sizeof(*rows));
    (void)arg;
    rows->v = xcalloc(r->njobs + 1, sizeof(*rows->v));
    rows->n = r->njobs;
    rows->more = r->next != NULL;
    for (size_t i = 0; i < r->njobs; i++)
        waste_read(&r->jobs[i], &rows->v[i]);
    return rows;
}

/* ---- the answer ---- */

struct waste_page {
    const char *id, *name, *user, *project, *workload, *state;
    double gpus, gpu_hours, idle_hours, unknown_hours, redone_hours, failed_hours, between_hours,
        waste_hours, gain_hours;
    int advice;
    int64_t advised_gpus, save_freq, advised_timeout_s;
};
#define X(name, word) #word,
static const char *const waste_words[] = {WASTE_ADVICE_TABLE(X) NULL};
#undef X
#define WASTE(key, ftype, member, ...) FIELD_AT(waste_page, key, ftype, member, __VA_ARGS__)
static const struct field waste_page_rows[] = {
    WASTE("id", FIELD_STR, id, .flags = FIELD_ALWAYS),
    WASTE("name", FIELD_STR, name, .flags = FIELD_ALWAYS),
    WASTE("user", FIELD_STR, user, .flags = FIELD_ALWAYS),
    WASTE("project", FIELD_STR, project, .flags = FIELD_ALWAYS),
    WASTE("workload", FIELD_STR, workload, .flags = FIELD_ALWAYS),
    WASTE("state", FIELD_STR, state, .flags = FIELD_ALWAYS, .schema = "JobState"),
    WASTE("gpus", FIELD_REAL, gpus),
    WASTE("gpu_hours", FIELD_REAL, gpu_hours, .doc = "held, over all attempts"),
    WASTE("idle_hours", FIELD_REAL, idle_hours, .doc = "hours of these that were measured idle"),
    WASTE("unknown_hours", FIELD_REAL, unknown_hours, .doc = "hours of these that nobody measured"),
    WASTE("redone_hours", FIELD_REAL, redone_hours, .doc = "steps that a later attempt ran again"),
    WASTE("failed_hours",
          FIELD_REAL,
          failed_hours,
          .doc = "steps since the last save of a job that failed for good"),
    WASTE("between_hours",
          FIELD_REAL,
          between_hours,
          .doc = "between steps, where its log says what each took: waiting for data; a part of it "
                 "may be idle, too"),
    WASTE("waste_hours", FIELD_REAL, waste_hours, .doc = "idle, redone and failed"),
    WASTE("advice", FIELD_ENUM, advice, .names = waste_words),
    WASTE("gain_hours",
          FIELD_REAL,
          gain_hours,
          .flags = FIELD_MAYBE,
          .doc = "what the advice would have spared it; null of a shorter time limit, which spares "
                 "no GPU time: how much sooner the job starts is up to the others in the queue"),
    WASTE("advised_gpus", FIELD_INT, advised_gpus, .flags = FIELD_NO_LIMIT),
    WASTE("save_freq",
          FIELD_INT,
          save_freq,
          .flags = FIELD_NO_LIMIT,
          .doc = "steps between two checkpoints"),
    WASTE("advised_timeout_s",
          FIELD_INT,
          advised_timeout_s,
          .flags = FIELD_NO_LIMIT,
          .doc = "what it ran and half as much again, in a round number; it succeeded in a quarter "
                 "of its timeout"),
};
static const struct field_table waste_page_table =
    FIELD_TABLE("JobWaste", waste_page_rows, waste_page);

/* In hours. */
struct waste_tried {
    int64_t advised, tried, too_small;
    double promised, saved, held;
};
static const struct field tried_rows[] = {
    FIELD_AT(waste_tried,
             "advised",
             FIELD_INT,
             advised,
             .doc = "kinds of jobs with an advice in the week before last; that of a shorter time "
                    "limit, which saves no GPU time, is not tried"),
    FIELD_AT(waste_tried, "tried", FIELD_INT, tried, .doc = "jobs of these kinds in the last week"),
    FIELD_AT(waste_tried,
             "too_small",
             FIELD_INT,
             too_small,
             .doc = "jobs of these that were busier than the advice allows, so it was wrong"),
    FIELD_AT(waste_tried,
             "promised_hours",
             FIELD_REAL,
             promised,
             .doc = "hours that the advice promised"),
    FIELD_AT(
        waste_tried,
        "saved_hours",
        FIELD_REAL,
        saved,
        .flags = FIELD_MAYBE,
        .doc = "GPU-hours that it would have saved in the jobs tried; below 0: it would have cost"),
    FIELD_AT(waste_tried,
             "held_hours",
             FIELD_REAL,
             held,
             .doc = "GPU-hours that the jobs tried held"),
};
static const struct field_table tried_table = FIELD_TABLE("AdviceTried", tried_rows, waste_tried);

/* An advice beside what the job that took it got; hours are GPU-hours of the advised job. */
struct taken_page {
    const char *id, *next, *name, *user;
    int advice;
    int64_t advised_gpus, save_freq;
    double foreseen, got;
};
#define TAKEN(key, ftype, member, ...) FIELD_AT(taken_page, key, ftype, member, __VA_ARGS__)
static const struct field taken_rows[] = {
    TAKEN("id", FIELD_STR, id, .flags = FIELD_ALWAYS, .doc = "the job that was advised"),
    TAKEN("next",
          FIELD_STR,
          next,
          .flags = FIELD_ALWAYS,
          .doc = "the first job that took the advice and can be compared: of the same user, "
                 "project, workload, name and registered inputs, queued when that one was over"),
    TAKEN("name", FIELD_STR, name, .flags = FIELD_ALWAYS),
    TAKEN("user", FIELD_STR, user, .flags = FIELD_ALWAYS),
    TAKEN("advice", FIELD_ENUM, advice, .names = waste_words),
    TAKEN("advised_gpus", FIELD_INT, advised_gpus, .flags = FIELD_NO_LIMIT),
    TAKEN("save_freq", FIELD_INT, save_freq, .flags = FIELD_NO_LIMIT),
    TAKEN("foreseen_hours",
          FIELD_REAL,
          foreseen,
          .doc = "hours that the advice foresaw; of fewer GPUs, for as many as the next job had"),
    TAKEN("got_hours",
          FIELD_REAL,
          got,
          .flags = FIELD_MAYBE,
          .doc = "hours that the advised job would have been spared at the next job's price of a "
                 "step, or of a failure; below 0: it would have cost more"),
};
static const struct field_table taken_table = FIELD_TABLE("AdviceTaken", taken_rows, taken_page);

struct waste_list {
    const struct waste_tried *tried; /* NULL: nobody asked */
    struct field_list jobs, taken;
    int64_t taken_count;
    double taken_error;
    int64_t looked_at;
    bool complete;
};
static const struct field waste_list_rows[] = {
    FIELD_AT(waste_list, "jobs", FIELD_LIST, jobs, .of = &waste_page_table),
    FIELD_AT(
        waste_list,
        "back_test",
        FIELD_PART,
        tried,
        .of = &tried_table,
        .doc =
            "what the advice of the week before last would have done to the jobs of the last week; "
            "null unless it was asked for"),
    FIELD_AT(waste_list,
             "taken",
             FIELD_LIST,
             taken,
             .of = &taken_table,
             .doc = "advice of the jobs looked at that a later one of them took: what it foresaw "
                    "beside what was got; the newest 20"),
    FIELD_AT(waste_list, "taken_count", FIELD_INT, taken_count, .doc = "all of these"),
    FIELD_AT(waste_list,
             "taken_error",
             FIELD_REAL,
             taken_error,
             .flags = FIELD_MAYBE,
             .doc = "the median, over all of these, of how far what was got lies from what was "
                    "foreseen, as a part of that; null where there is none"),
    FIELD_AT(waste_list, "looked_at", FIELD_INT, looked_at, .doc = "jobs"),
    FIELD_AT(waste_list, "complete", FIELD_BOOL, complete, .doc = "no older one was left out"),
};
static const struct field_table waste_list_table =
    FIELD_TABLE("JobWasteList", waste_list_rows, waste_list);

struct waste_asked {
    struct http_req *req;
    struct api *a;
    struct store_read *read;
    size_t limit;
    usec_t since, until; /* until 0: open */
    usec_t end;          /* of the two weeks of the back-test */
    bool tries;
    struct waste_tried tried; /* if so */
};

static double waste_of(const struct waste_row *r)
{
    return r->w.idle_s + r->w.redone_s + r->w.failed_s;
}

/* What makes it worth a look: an advice may spare what is no waste, as the time between steps. */
static double waste_or_gain(const struct waste_row *r)
{
    return fmax(waste_of(r), r->w.gain_s);
}

static int waste_worst_first(const void *a, const void *b)
{
    double x = waste_or_gain(a), y = waste_or_gain(b);
    const struct waste_row *p = a, *q = b;
    if (x < y || x > y)
        return x < y ? 1 : -1;
    return p->held.held < q->held.held   ? 1
           : p->held.held > q->held.held ? -1
                                         : strcmp(p->id, q->id);
}

static struct waste_facts waste_facts_of(const struct waste_row *r)
{
    const double unit = (double)SLOTBOOK_GPU * 1000;
    return (struct waste_facts){.held_s = (double)r->held.held / unit,
                                .idle_s = (double)r->held.idle / unit,
                                .unknown_s = (double)r->held.unknown / unit,
                                .gpus = r->gpus,
                                .sums = &r->sums,
                                .failures = r->failures,
                                .failed = str_eq(r->state, "FAILED"),
                                .timeout = r->timeout,
                                .ran = r->ran,
                                .succeeded = str_eq(r->state, "SUCCEEDED")};
}

static void waste_judge_rows(const struct api *a, struct waste_rows *rows)
{
    for (size_t i = 0; i < rows->n; i++) {
        struct waste_row *r = &rows->v[i];
        const struct live *l = r->live ? jobs_find_id(a->jobs, r->id) : NULL;
        if (l)
            jobs_add_held(l, &r->held);
        const struct waste_facts facts = waste_facts_of(r);
        waste_judge(&facts, &r->w);
    }
}

/* Who runs what on how many GPUs. Digits in names do not count: grpo-7 is of the kind of grpo-8. */
static char *waste_kind(const struct waste_row *r)
{
    char *kind =
        xasprintf("%s\n%s\n%s\n%g\n%s", r->user, r->project, r->workload, r->gpus, r->name);
    char *to = kind + strlen(kind) - strlen(r->name);
    for (const char *p = to; *p; p++)
        if (*p < '0' || *p > '9')
            *to++ = *p;
    *to = '\0';
    return kind;
}

/* Jobs that still run say too little. */
static struct waste_tried waste_try(const struct waste_asked *k, const struct waste_rows *rows)
{
    const double hour = 3600;
    struct hindsight_job *jobs = xcalloc(rows->n + 1, sizeof(*jobs));
    char **kinds = xcalloc(rows->n + 1, sizeof(*kinds));
    struct hindsight h;
    size_t n = 0;
    for (size_t i = 0; i < rows->n; i++) {
        const struct waste_row *r = &rows->v[i];
        if (r->live || r->queued_at + 2 * WASTE_WEEK < k->end)
            continue;
        kinds[n] = waste_kind(r);
        jobs[n] = (struct hindsight_job){.kind = kinds[n],
                                         .later = r->queued_at + WASTE_WEEK >= k->end,
                                         .order = (int64_t)r->queued_at,
                                         .facts = waste_facts_of(r),
                                         .waste = r->w};
        n++;
    }
    hindsight_judge(jobs, n, &h);
    for (size_t i = 0; i < n; i++)
        free(kinds[i]);
    free(kinds);
    free(jobs);
    return (struct waste_tried){.advised = (int64_t)h.advised,
                                .tried = (int64_t)h.tried,
                                .too_small = (int64_t)h.too_small,
                                .promised = h.promised_s / hour,
                                .saved = h.saved_s / hour,
                                .held = h.held_s / hour};
}

/* The name is taken as it stands: what differs by a number may be another model. */
static char *taken_kind(const struct waste_row *r)
{
    return xasprintf("%s\n%s\n%s\n%s\n%s", r->user, r->project, r->workload, r->name,
                     str_or(r->inputs, ""));
}

/* Returns the pairs, yours. */
static struct advice_taken *taken_find(const struct waste_rows *rows, size_t *ret_n)
{
    struct advice_taken_job *jobs = xcalloc(rows->n + 1, sizeof(*jobs));
    struct advice_taken *pairs = xcalloc(rows->n + 1, sizeof(*pairs));
    char **kinds = xcalloc(rows->n + 1, sizeof(*kinds));
    for (size_t i = 0; i < rows->n; i++) {
        const struct waste_row *r = &rows->v[i];
        kinds[i] = taken_kind(r);
        jobs[i] = (struct advice_taken_job){.kind = kinds[i],
                                            .row = i,
                                            .queued_at = r->queued_at,
                                            .ended_at = r->ended_at,
                                            .facts = waste_facts_of(r),
                                            .waste = r->w};
    }
    *ret_n = advice_taken_find(jobs, rows->n, pairs);
    for (size_t i = 0; i < rows->n; i++)
        free(kinds[i]);
    free(kinds);
    free(jobs);
    return pairs;
}

static struct taken_page taken_page_of(const struct waste_rows *rows, const struct advice_taken *p)
{
    const struct waste_row *advised = &rows->v[p->advised], *next = &rows->v[p->next];
    const struct waste *w = &advised->w;
    return (struct taken_page){
        .id = advised->id,
        .next = next->id,
        .name = next->name,
        .user = next->user,
        .advice = (int)w->advice,
        .advised_gpus = w->advice == WASTE_FEWER_GPUS ? w->gpus : -1,
        .save_freq = w->advice == WASTE_SAVE_MORE_OFTEN ? w->save_freq : -1,
        .foreseen = p->foreseen_s / 3600,
        .got = p->got_s / 3600,
    };
}

static struct waste_page waste_page_of(const struct waste_row *r)
{
    const double hour = (double)SLOTBOOK_GPU * 1000 * 3600;
    return (struct waste_page){
        .id = r->id,
        .name = r->name,
        .user = r->user,
        .project = r->project,
        .workload = r->workload,
        .state = r->state,
        .gpus = r->gpus,
        .gpu_hours = (double)r->held.held / hour,
        .idle_hours = (double)r->held.idle / hour,
        .unknown_hours = (double)r->held.unknown / hour,
        .redone_hours = r->w.redone_s / 3600,
        .failed_hours = r->w.failed_s / 3600,
        .between_hours = r->w.between_s / 3600,
        .waste_hours = waste_of(r) / 3600,
        .advice = (int)r->w.advice,
        .gain_hours = r->w.advice == WASTE_SHORTER_TIME_LIMIT ? (double)NAN : r->w.gain_s / 3600,
        .advised_gpus = r->w.advice == WASTE_FEWER_GPUS ? r->w.gpus : -1,
        .save_freq = r->w.advice == WASTE_SAVE_MORE_OFTEN ? r->w.save_freq : -1,
        .advised_timeout_s =
            r->w.advice == WASTE_SHORTER_TIME_LIMIT ? (int64_t)(r->w.timeout / USEC_SEC) : -1,
    };
}

static void waste_answer(struct waste_asked *k, struct waste_rows *rows)
{
    struct buf out = BUF_INIT(WASTE_BYTES_MAX);
    struct jout j = jout_begin(&out);
    waste_judge_rows(k->a, rows);
    xsort(rows->v, rows->n, sizeof(*rows->v), waste_worst_first);
    size_t n = 0, n_taken;
    struct taken_page taken[WASTE_TAKEN_MAX];
    struct advice_taken *pairs = taken_find(rows, &n_taken);
    size_t told = n_taken < WASTE_TAKEN_MAX ? n_taken : WASTE_TAKEN_MAX;
    for (size_t i = 0; i < told; i++)
        taken[i] = taken_page_of(rows, &pairs[i]);
    while (n < rows->n && n < k->limit && rows->v[n].held.held)
        n++;
    struct waste_page *pages = xcalloc(n + 1, sizeof(*pages));
    for (size_t i = 0; i < n; i++)
        pages[i] = waste_page_of(&rows->v[i]);
    const struct waste_list list = {.tried = k->tries ? &k->tried : NULL,
                                    .jobs = {.v = pages, .n = n},
                                    .taken = {.v = taken, .n = told},
                                    .taken_count = (int64_t)n_taken,
                                    .taken_error = advice_taken_error(pairs, n_taken),
                                    .looked_at = (int64_t)rows->n,
                                    .complete = !rows->more};
    field_to_json(&waste_list_table, &list, FIELD_ALL, FIELD_PAGE, &j, NULL);
    api_mark_stale(k->req, k->a);
    http_reply_json(k->req, 200, &out, api_reader_barrier(k->a));
    free(pages);
    free(pairs);
    buf_release(&out);
}

static void waste_on_done(const struct store_result *r, void *arg)
{
    struct waste_asked *k = arg;
    http_req_on_close(k->req, NULL, NULL);
    if (r->err.code)
        api_fail(k->req, &r->err, 0);
    else
        waste_answer(k, r->rendered);
    waste_rows_free(r->rendered);
    free(k);
}

static void waste_on_gone(struct http_req *req, void *arg)
{
    struct waste_asked *k = arg;
    (void)req;
    store_read_cancel(k->read);
    free(k);
}

/* The jobs of these times that who asks may see. */
static void waste_read_jobs(struct waste_asked *k,
                            const struct store_job_query *times,
                            void (*done)(const struct store_result *r, void *arg))
{
    struct people_view view;
    people_view(k->a->people, http_req_principal(k->req), PEOPLE_WISH_ALL, &view);
    struct store_job_query q = *times;
    q.user = http_req_query(k->req, "user");
    q.project = http_req_query(k->req, "project");
    q.scope = view.scope;
    q.limit = STORE_PAGE_MAX;
    q.want_detail = true;
    const struct store_then then = {
        .render = waste_render, .done = done, .drop = waste_rows_free, .arg = k};
    k->read = store_list_jobs(k->a->store, &q, &then);
    people_view_release(&view);
}

static void waste_read_ran(struct waste_asked *k)
{
    const struct store_job_query ran = {.ran_since = k->since, .ran_until = k->until};
    waste_read_jobs(k, &ran, waste_on_done);
}

static void waste_on_two_weeks(const struct store_result *r, void *arg)
{
    struct waste_asked *k = arg;
    if (r->err.code) {
        waste_on_done(r, k);
        return;
    }
    struct waste_rows *rows = r->rendered;
    waste_judge_rows(k->a, rows);
    k->tried = waste_try(k, rows);
    waste_rows_free(rows);
    waste_read_ran(k);
}

static void api_usage_jobs(struct http_req *req, void *app)
{
    struct api *a = app;
    struct err err = {0};
    usec_t now = clock_wall(), since = now - WASTE_SINCE, until = 0;
    int64_t limit = WASTE_LIMIT;
    if (http_req_query_int(req, "limit", 1, STORE_PAGE_MAX, WASTE_LIMIT, &limit, &err) < 0 ||
        api_read_time(req, "from", now, &since, &err) < 0 ||
        api_read_time(req, "to", now, &until, &err) < 0) {
        err.code = ERR_BAD_REQUEST;
        api_fail(req, &err, 0);
        return;
    }
    struct waste_asked *k = xcalloc(1, sizeof(*k));
    *k = (struct waste_asked){.req = req,
                              .a = a,
                              .limit = (size_t)limit,
                              .since = since,
                              .until = until < now ? until : 0,
                              .end = until && until < now ? until : now,
                              .tries = http_req_query_bool(req, "back_test", false)};
    http_req_on_close(req, waste_on_gone, k);
    if (!k->tries) {
        waste_read_ran(k);
        return;
    }
    const struct store_job_query two_weeks = {.since = k->end - 2 * WASTE_WEEK, .until = k->end};
    waste_read_jobs(k, &two_weeks, waste_on_two_weeks);
}

static const struct http_param waste_params[] = {
    {"from", HTTP_PARAM_STRING,
     "jobs that held their slots at some moment from then on, or from this long ago (7d)"},
    {"to", HTTP_PARAM_STRING, "and before this time, now if it is not given"},
    {"user", HTTP_PARAM_STRING, "jobs of this user"},
    {"project", HTTP_PARAM_STRING, "jobs of this project"},
    {"limit", HTTP_PARAM_INTEGER,
     "so many at most, those first that wasted most, or would have gained most by their advice "
     "(20)"},
    {"back_test", HTTP_PARAM_BOOLEAN,
     "try the advice of the week before last on the jobs of the last one: it reads two weeks more"},
    {0}};

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/usage/jobs",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_usage_jobs,
     .summary = "what jobs held and wasted: GPUs held idle, steps that were run again or lost by a "
                "failure, and what would have spared it, from the job's own figures; of the newest "
                "1000 that held slots in that time, each with its whole life; what the advice of "
                "some foresaw beside what the later ones that took it got; and, if asked for, what "
                "the advice of the week before would have saved in the last one",
     .params = waste_params,
     .reply_schema = "JobWasteList"},
};

static const struct http_schema schemas[] = {
    {.name = "JobWaste", .table = &waste_page_table},
    {.name = "AdviceTried", .table = &tried_table},
    {.name = "AdviceTaken", .table = &taken_table},
    {.name = "JobWasteList", .table = &waste_list_table},
};

const struct api_part part_waste = {rows, array_len(rows), schemas, array_len(schemas)};
