/* SPDX-License-Identifier: Apache-2.0 */
/* jobs.c - submit, list and get jobs.
 *
 * Lists come from the store, so they wait first until what the client may have
 * been told is on disk; live jobs get their fresh reason while rendering. */
#include "argusd/api/jobs/jobs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/kit/part.h"
#include "argusd/kit/view.h"
#include "argusd/submit/submit.h"
#include "argusd/submit/submit_answer.h"
#include "base/digest/hash.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/spec/finding_class.h"

enum { LIST_MAX_BYTES = 8 << 20, JOB_MAX_BYTES = 8 << 20, LIST_DEFAULT = 50 };

/* ---- get ---- */

struct rendered {
    struct buf out;
    char tag[HASH_HEX];
};

static void api_jobs_render(const struct http_req *req,
                            const struct api *a,
                            const struct job *job,
                            const struct record_extra *extra,
                            struct live *l,
                            struct rendered *ret)
{
    ret->out = BUF_INIT(JOB_MAX_BYTES);
    struct jout j = jout_begin(&ret->out);
    struct api_eyes eyes = {.a = a, .p = http_req_principal(req)};
    view_job(&j, a->settings, job, extra, l, &eyes);
    (void)hash_sha256_hex(buf_str(&ret->out), ret->out.len, ret->tag);
    ret->tag[20] = 0;
}

static void api_jobs_answer(struct http_req *req, struct api *a, struct rendered *taken, bool live)
{
    uint64_t barrier = live ? api_barrier(a) : api_reader_barrier(a);
    if (!http_reply_not_modified(req, taken->tag, barrier))
        http_reply_json(req, 200, &taken->out, barrier);
    buf_release(&taken->out);
}

void api_answer_job(struct http_req *req,
                    struct api *a,
                    const struct job *job,
                    const struct record_extra *extra,
                    struct live *l)
{
    struct rendered now;
    api_jobs_render(req, a, job, extra, l, &now);
    api_jobs_answer(req, a, &now, l);
}

struct waiting {
    struct http_req *req;
    struct api *a;
    struct jobs_waiter *waiter;
    char *id;
};

static void waiting_free(struct waiting *w)
{
    free(w->id);
    free(w);
}

static void api_jobs_on_waiter_gone(struct http_req *req, void *arg)
{
    struct waiting *w = arg;
    (void)req;
    jobs_unwait(w->waiter);
    waiting_free(w);
}

/* May run inside jobs_apply(), where the job may be about to leave: rendered now. */
static void api_jobs_end_wait(struct waiting *w)
{
    const struct http_principal *p = http_req_principal(w->req);
    struct live *l = jobs_find_id(w->a->jobs, w->id);
    http_req_on_close(w->req, NULL, NULL);
    /* He may have left its project meanwhile. */
    if (l && people_check_job(w->a->people, p, ACCESS_JOB_SEE, "see", l->job, NULL) == 0)
        api_answer_job(w->req, w->a, l->job, &l->extra, l);
    else
        api_find_job(w->req, w->a, api_answer_job);
    waiting_free(w);
}

static void api_jobs_on_wait_over(struct http_req *req, void *arg)
{
    struct waiting *w = arg;
    (void)req;
    jobs_unwait(w->waiter);
    api_jobs_end_wait(w);
}

static void api_jobs_on_changed(void *arg)
{
    api_jobs_end_wait(arg); /* the waiter is gone with its call */
}

static void get_job(struct http_req *req,
                    struct api *a,
                    const struct job *job,
                    const struct record_extra *extra,
                    struct live *l)
{
    usec_t span = http_req_wait(req);
    struct rendered now;
    api_jobs_render(req, a, job, extra, l, &now);
    if (!l || !span || !http_req_has_etag(req, now.tag)) {
        api_jobs_answer(req, a, &now, l);
        return;
    }
    buf_release(&now.out);
    struct waiting *w = xcalloc(1, sizeof(*w));
    *w = (struct waiting){.req = req, .a = a, .id = xstrdup(job->id)};
    w->waiter = jobs_wait(l, api_jobs_on_changed, w);
    http_req_on_close(req, api_jobs_on_waiter_gone, w);
    http_req_park(req, span, api_jobs_on_wait_over, w);
}

static void api_jobs_get(struct http_req *req, void *app)
{
    api_find_job(req, app, get_job);
}

/* ---- list ---- */

struct listing {
    struct http_req *req;
    struct api *a;
    struct store_read *read;
    bool want_count;
};

static void on_list_gone(struct http_req *req, void *arg)
{
    struct listing *g = arg;
    (void)req;
    store_read_cancel(g->read);
    free(g);
}

/* The job behind a row: for its reason of the moment, unless it has gone on since. */
static struct live *live_of(const struct api *a, const struct store_job *row)
{
    struct live *l =
        row->live && !store_is_failing(a->store) ? jobs_find_id(a->jobs, row->id) : NULL;
    return l && str_eq(job_state_to_string(l->job->state), row->state) ? l : NULL;
}

/* On all pages; by state also those that a filter of states left out. */
static void put_counts(struct jout *j, const struct store_result *r)
{
    jout_int(j, "total", r->total);
    jout_open(j, "states", '{');
    for (size_t i = 0; i < r->ncounts; i++)
        jout_int(j, r->counts[i].state, r->counts[i].n);
    jout_close(j, '}');
}

static void api_jobs_on_listed(const struct store_result *r, void *arg)
{
    struct listing *g = arg;
    struct buf out = BUF_INIT(LIST_MAX_BYTES);
    struct jout j = jout_begin(&out);
    http_req_on_close(g->req, NULL, NULL);
    struct api_eyes eyes = {.a = g->a, .p = http_req_principal(g->req)};
    if (r->err.code) {
        api_fail(g->req, &r->err, 0);
    } else {
        jout_open(&j, NULL, '{');
        jout_open(&j, "jobs", '[');
        for (size_t i = 0; i < r->njobs; i++)
            view_item(&j, &r->jobs[i], live_of(g->a, &r->jobs[i]), &eyes);
        jout_close(&j, ']');
        jout_str(&j, "next_cursor", r->next);
        if (g->want_count)
            put_counts(&j, r);
        jout_close(&j, '}');
        api_mark_stale(g->req, g->a);
        http_reply_json(g->req, 200, &out, api_reader_barrier(g->a)); /* reasons are of now */
    }
    buf_release(&out);
    free(g);
}

/* "QUEUED,RUNNING" or several ?state=; "live" stands for all that are not over. */
static int read_states(const struct http_req *req,
                       struct store_job_query *q,
                       const char *ret[static STORE_STATES_MAX],
                       struct err *err)
{
    const char *text;
    bool is_over = false;
    for (size_t i = 0; (text = http_req_query_at(req, "state", i)); i++)
        while (*text) {
            char word[32];
            size_t n = strcspn(text, ",");
            text_printf(word, "%.*s", (int)n, text); /* cut words are unknown */
            enum job_state s = job_state_from_string(word);
            is_over |= s != JOB_STATE_END && job_state_is_terminal(s);
            if (!strcmp(word, "live"))
                q->live = true;
            else if (s == JOB_STATE_END)
                return message_refuse(err, ERR_BAD_REQUEST, "bad_state_query",
                                      MESSAGE_ARGS(MESSAGE_STR("state", word)));
            else if (q->nstates < STORE_STATES_MAX)
                ret[q->nstates++] = job_state_to_string(s);
            text += n + (text[n] == ',');
        }
    q->states = ret;
    q->live |= q->nstates && !is_over; /* then those that are over need not be looked at */
    return 0;
}

/* "HUNG,IDLE" or several ?flag=. The words are literals. */
static int list_read_flags(const struct http_req *req,
                           struct store_job_query *q,
                           const char *ret[static STORE_FLAGS_MAX],
                           struct err *err)
{
    const char *text, *it;
    size_t n;
    for (size_t i = 0; (text = http_req_query_at(req, "flag", i)); i++)
        while ((it = str_item(&text, &n))) {
            char word[32];
            text_printf(word, "%.*s", (int)n, it); /* cut words are unknown */
            unsigned flags = strchr(word, ',') ? 0 : record_flags_from_string(word);
            if (!flags)
                return message_refuse(err, ERR_BAD_REQUEST, "bad_flag_query",
                                      MESSAGE_ARGS(MESSAGE_STR("flag", word)));
            if (q->nflags < STORE_FLAGS_MAX)
                ret[q->nflags++] = record_flags_to_string(flags);
        }
    q->flags = ret;
    return 0;
}

/* "gpu_oom,unknown" */
static int list_read_failure(const struct http_req *req, struct store_job_query *q, struct err *err)
{
    const char *it, *text = http_req_query(req, "failure");
    size_t n;
    q->failure = text;
    while ((it = str_item(&text, &n))) {
        char word[64];
        text_printf(word, "%.*s", (int)n, it); /* cut words are unknown */
        if (finding_class_from_string(word) <= FINDING_NONE)
            return message_refuse(err, ERR_BAD_REQUEST, "bad_failure_query",
                                  MESSAGE_ARGS(MESSAGE_STR("class", word)));
    }
    return 0;
}

/* "8", "5-8", or "65-": that many and more. */
static int list_read_gpus(const struct http_req *req, struct store_job_query *q, struct err *err)
{
    const char *text = http_req_query(req, "gpus"), *to = text ? strchr(text, '-') : NULL;
    char least[24];
    if (!text)
        return 0;
    q->by_gpus = true;
    q->gpus_most = INT32_MAX;
    text_printf(least, "%.*s", (int)(to ? to - text : (ptrdiff_t)strlen(text)), text);
    bool is_open = to && !to[1];
    if (str_to_int(least, 0, INT32_MAX, &q->gpus_least, NULL) < 0 ||
        (!is_open &&
         str_to_int(to ? to + 1 : least, q->gpus_least, INT32_MAX, &q->gpus_most, NULL) < 0))
        return message_refuse(err, ERR_BAD_REQUEST, "bad_gpus_query",
                              MESSAGE_ARGS(MESSAGE_STR("gpus", text)));
    return 0;
}

static int list_read_order(const struct http_req *req, struct store_job_query *q, struct err *err)
{
    const char *sort = str_or(http_req_query(req, "sort"), "queued_at");
    const char *order = str_or(http_req_query(req, "order"), "desc");
    q->sort = store_job_sort_from_string(sort);
    q->ascending = str_eq(order, "asc");
    if (q->sort == STORE_SORTS) {
        struct buf words = BUF_INIT(1024);
        for (enum store_job_sort by = 0; by < STORE_SORTS; by++)
            (void)buf_addf(&words, "%s%s", by ? " " : "", store_job_sort_to_string(by));
        int r = message_refuse(
            err, ERR_BAD_REQUEST, "bad_sort_query",
            MESSAGE_ARGS(MESSAGE_STR("sort", sort), MESSAGE_STR("words", buf_str(&words))));
        buf_release(&words);
        return r;
    }
    if (!q->ascending && !str_eq(order, "desc"))
        return message_refuse(err, ERR_BAD_REQUEST, "bad_order_query",
                              MESSAGE_ARGS(MESSAGE_STR("order", order)));
    return 0;
}

/* What census knows is about one name each. */
static bool no_live_fits(const struct api *a, const struct store_job_query *q)
{
    const char *const names[] = {q->cluster, q->pool, q->workload};
    for (size_t i = 0; i < array_len(names); i++)
        if (names[i] && strchr(names[i], ','))
            return false;
    return !jobs_may_have(a->jobs, q->cluster, q->pool, q->workload);
}

static enum people_wish wish_of(const struct http_req *req)
{
    bool all = http_req_query_bool(req, "all", false);
    if (http_req_query(req, "all"))
        return all ? PEOPLE_WISH_ALL : PEOPLE_WISH_OWN;
    bool named = http_req_query(req, "user") || http_req_query(req, "project");
    return named ? PEOPLE_WISH_ALL : PEOPLE_WISH_USUAL;
}

static void api_jobs_list(struct http_req *req, void *app)
{
    struct api *a = app;
    struct err err = {0};
    const char *states[STORE_STATES_MAX], *flags[STORE_FLAGS_MAX];
    int64_t limit = LIST_DEFAULT;
    usec_t now = clock_wall();
    struct store_job_query q = {.failure_node = http_req_query(req, "failure_node"),
                                .user = http_req_query(req, "user"),
                                .project = http_req_query(req, "project"),
                                .cluster = http_req_query(req, "cluster"),
                                .pool = http_req_query(req, "pool"),
                                .workload = http_req_query(req, "workload"),
                                .q = http_req_query(req, "q"),
                                .now = now,
                                .want_count = http_req_query_bool(req, "count", false),
                                .cursor = http_req_query(req, "cursor")};
    if (http_req_query_int(req, "limit", 1, STORE_PAGE_MAX, LIST_DEFAULT, &limit, &err) < 0 ||
        read_states(req, &q, states, &err) < 0 || list_read_flags(req, &q, flags, &err) < 0 ||
        list_read_failure(req, &q, &err) < 0 || list_read_gpus(req, &q, &err) < 0 ||
        list_read_order(req, &q, &err) < 0 ||
        api_read_time(req, "since", now, &q.since, &err) < 0 ||
        api_read_time(req, "until", now, &q.until, &err) < 0 ||
        api_read_time(req, "ran_since", now, &q.ran_since, &err) < 0 ||
        api_read_time(req, "ran_until", now, &q.ran_until, &err) < 0) {
        err.code = ERR_BAD_REQUEST;
        api_fail(req, &err, 0);
        return;
    }
    q.limit = (unsigned)limit;
    q.no_live = no_live_fits(a, &q);
    struct people_view view;
    people_view(a->people, http_req_principal(req), wish_of(req), &view);
    q.scope = view.scope;
    q.user = q.user ? q.user : view.user;
    struct listing *g = xcalloc(1, sizeof(*g));
    *g = (struct listing){.req = req, .a = a, .want_count = q.want_count};
    http_req_on_close(req, on_list_gone, g);
    struct store_then then = {.done = api_jobs_on_listed, .arg = g};
    g->read = store_list_jobs(a->store, &q, &then);
    people_view_release(&view);
}

static void api_jobs_create(struct http_req *req, void *app)
{
    submit_request(req, app);
}

/* ---- routes ---- */

enum { SPEC_MAX = 1 << 20 };

static const struct http_param submit_params[] = {
    {"dry_run", HTTP_PARAM_BOOLEAN, "check only: the resolved spec, its demand and all problems"},
    {"require_fit", HTTP_PARAM_BOOLEAN, "422 if the gang is larger than the pool is now"},
    {"smoke", HTTP_PARAM_BOOLEAN, "the same spec with 1 GPU, 2 steps and no checkpoint"},
    {"suggest", HTTP_PARAM_BOOLEAN,
     "as a dry run without trial, and what would serve the job better: advice"},
    {"no_trial", HTTP_PARAM_BOOLEAN,
     "skip the short run on a worker that comes before a job of verl"},
    {"from", HTTP_PARAM_STRING, "id of the job whose spec this one was made of: its parent"},
    {"note", HTTP_PARAM_STRING, "why it is made: one line of text, 500 bytes at most"},
    {0}};
static const struct http_param list_params[] = {
    {"limit", HTTP_PARAM_INTEGER, "rows of a page, 1 to 1000; 50 if not given"},
    {"cursor", HTTP_PARAM_STRING, "next_cursor of the page before"},
    {"state", HTTP_PARAM_STRING,
     "states, comma-separated or repeated; live: all that are not over"},
    {"all", HTTP_PARAM_BOOLEAN,
     "true: all that you may see, false: only your own; if not given, your own, or all for who "
     "sees "
     "everything"},
    {"flag", HTTP_PARAM_STRING, "with any of these flags, comma-separated or repeated"},
    {"failure", HTTP_PARAM_STRING,
     "with an attempt that failed by any of these classes, comma-separated: those of "
     "GET /v1/usage/recovery; unknown: without one"},
    {"failure_node", HTTP_PARAM_STRING,
     "with an attempt that failed, for which any of these nodes may be at fault, comma-separated; "
     "with failure: the same attempt"},
    {"gpus", HTTP_PARAM_STRING,
     "with so many GPUs in all: 8, 5-8, or 65- for that many and more; a part of one counts as one"},
    {"user", HTTP_PARAM_STRING, "only of these users, comma-separated; so the next four"},
    {"project", HTTP_PARAM_STRING, "only of these projects"},
    {"cluster", HTTP_PARAM_STRING, "only on these clusters"},
    {"pool", HTTP_PARAM_STRING, "only for these pools"},
    {"workload", HTTP_PARAM_STRING, "only of these workloads"},
    {"sort", HTTP_PARAM_STRING,
     "queued_at, started_at, ended_at, ran, name, id, user, project, workload, cluster, pool, "
     "state, priority, nnodes, gpus, restarts, step or gpu_hours, of live jobs as last written; "
     "queued_at if not given. What a job does not have goes last"},
    {"order", HTTP_PARAM_STRING, "asc or desc; desc, the newest or greatest first, if not given"},
    {"count", HTTP_PARAM_BOOLEAN, "how many there are on all pages: total, and states"},
    {"since", HTTP_PARAM_STRING, "submitted at or after: a time, or a span before now (2h)"},
    {"until", HTTP_PARAM_STRING, "submitted before"},
    {"ran_since", HTTP_PARAM_STRING,
     "held its slots at some moment from then on, however long ago it was submitted: a time, or a "
     "span before now (1d)"},
    {"ran_until", HTTP_PARAM_STRING, "held its slots at some moment before"},
    {"q", HTTP_PARAM_STRING, "part of the id or the name"},
    {0}};
static const struct http_param wait_params[] = {
    {"wait", HTTP_PARAM_SPAN, "with If-None-Match: answer when it changes, at most 60s"},
    {0}};

static const struct http_route rows[] = {
    {.method = "POST",
     .pattern = "/v1/jobs",
     .least = HTTP_ROLE_USER,
     .max_body = SPEC_MAX,
     .handle = api_jobs_create,
     .summary = "submit a JobSpec",
     .params = submit_params,
     .request_type = TEXT_TYPES,
     .request_schema = "JobOrder",
     .pieces_type = "multipart/form-data",
     .pieces_max = 1ULL << 50,
     .pieces_schema = "SubmitForm",
     .reply_schema = "Submitted",
     .reply_status = 201,
     .other_schema = "PlanOrSubmitted"},
    {.method = "GET",
     .pattern = "/v1/jobs",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_jobs_list,
     .summary = "list jobs, newest first or in another order",
     .params = list_params,
     .reply_schema = "JobList"},
    {.method = "GET",
     .pattern = "/v1/jobs/{id}",
     .example = "sft-gsm8k",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_jobs_get,
     .summary = "one job, by id, name or unique beginning",
     .params = wait_params,
     .reply_schema = "Job"},
};
static const struct http_schema schemas[] = {
    {.name = "SubmitForm",
     .json = OBJECT("\"spec\"",
                    KEY("spec", TEXT) "," KEY("code",
                                              "{\"type\":\"string\",\"format\":"
                                              "\"binary\"}"))},
    {.name = "PlanOrSubmitted", .json = "{\"anyOf\":[" REF("Plan") "," REF("Submitted") "]}"},
    LIST_AND("JobList",
             "jobs",
             "JobItem",
             "," KEY("next_cursor", TEXT_OR_NULL) "," KEY("total", INTEGER) "," KEY("states",
                                                                                    MAP(INTEGER))),
    {.name = "Submitted", .table = &submit_answer_table},
};
const struct api_part part_jobs = {rows, array_len(rows), schemas, array_len(schemas)};
