/* SPDX-License-Identifier: Apache-2.0 */
/* recovery.c - GET /v1/usage/recovery: how much of the jobs' time went into training, and what
 * their failures cost, by class, by node and by user.
 *
 * Of the jobs that held slots in that time the newest that who asks may see are read with their
 * details and attempts and judged on a worker, as the store has them: the steps of a live job are
 * up to 15 s old there. Steps are kept as sums of an attempt, so that the figures are of a job's
 * whole life. */
#include <math.h>
#include <stdlib.h>

#include "argusd/kit/api.h"
#include "argusd/kit/part.h"
#include "argusd/people/people_rules.h"
#include "base/digest/hash.h"
#include "base/message.h"
#include "base/str.h"
#include "core/account/recovery_job.h"

enum { RECOVERY_LIMIT = 20, RECOVERY_BYTES_MAX = 8 << 20 };
static const usec_t RECOVERY_SINCE = 7 * USEC_DAY;

/* References, both counted on the loop: the request's, and that of its read. */
struct recovery_asked {
    unsigned refs;
    struct http_req *req;
    struct api *a;
    struct store_read *read;
    size_t limit;
    usec_t now, from, to;
    unsigned char seed[16];
};

struct recovery_read {
    struct recovery_book *book;
    size_t jobs;
    bool more; /* older ones were not looked at */
};

static void recovery_unref(void *arg)
{
    struct recovery_asked *k = arg;
    if (--k->refs == 0)
        free(k);
}

static void recovery_read_free(void *rendered)
{
    struct recovery_read *all = rendered;
    if (all)
        recovery_book_free(all->book);
    free(all);
}

/* ---- on the worker ---- */

/* next: the first attempt of r that was not used yet; they stand in the order of the jobs. */
static void recovery_read_job(const struct store_result *r,
                              size_t i,
                              size_t *next,
                              const struct recovery_asked *k,
                              struct recovery_book *book)
{
    struct job *job = NULL;
    struct record_extra x = {0};
    struct goodput_sums *steps = xcalloc(1, sizeof(*steps));
    bool is_read = record_to_job(&r->jobs[i], &job, &x, NULL) == 0;
    for (; *next < r->nattempts && r->attempts[*next].job_seq == r->jobs[i].seq; (*next)++)
        if (is_read)
            record_add_attempt(job, &r->attempts[*next]);
    if (is_read) {
        struct recovery_job told;
        struct recovery_attempt *v;
        (void)record_steps(x.metrics, steps);
        recovery_of_job(job, steps, k->now, &told, &v);
        recovery_book_add(book, &told);
        free(v);
    }
    free(steps);
    record_extra_release(&x);
    job_free(job);
}

static void *recovery_render(const struct store_result *r, void *arg)
{
    const struct recovery_asked *k = arg;
    struct recovery_read *all = xcalloc(1, sizeof(*all));
    size_t next = 0;
    *all = (struct recovery_read){
        .book = recovery_book_new(k->seed), .jobs = r->njobs, .more = r->next != NULL};
    for (size_t i = 0; i < r->njobs; i++)
        recovery_read_job(r, i, &next, k, all->book);
    return all;
}

/* ---- the answer ---- */

struct recovery_line {
    const char *name;
    int64_t jobs, failures, interruptions, repaired;
    double mttr_s, cost, wait, part[RECOVERY_PARTS];
};
#define LINE(key, ftype, member, ...) FIELD_AT(recovery_line, key, ftype, member, __VA_ARGS__)
#define LINE_PART(word, e, text) LINE(#word "_hours", FIELD_REAL, part[RECOVERY_##e], .doc = (text))
static const struct field cost_rows[] = {
    LINE("name", FIELD_STR, name, .doc = "null: of all together"),
    LINE("jobs", FIELD_INT, jobs),
    LINE("failures", FIELD_INT, failures),
    LINE("interruptions",
         FIELD_INT,
         interruptions,
         .doc = "failures, preemptions, and starts that came to nothing"),
    LINE("repaired", FIELD_INT, repaired, .doc = "failures with a new step behind them"),
    LINE("mttr_s",
         FIELD_REAL,
         mttr_s,
         .flags = FIELD_MAYBE,
         .doc = "mean, from a failure to the end of the first new step"),
    LINE("cost_hours", FIELD_REAL, cost, .doc = "GPU-hours: detect, diagnose, queue, start, redo"),
    LINE_PART(detect, DETECT, "from the fault until it was noticed"),
    LINE_PART(diagnose, DIAGNOSE, "until the attempt was ended, with what was found"),
    LINE_PART(queue, QUEUE, "until the next attempt had its slots"),
    LINE_PART(start, START, "until the first step of the next attempt began"),
    LINE_PART(redo, REDO, "steps that were run again, or cut off"),
};
static const struct field_table cost_table = FIELD_TABLE("RecoveryCost", cost_rows, recovery_line);

struct recovery_time {
    struct recovery_line line;
};
#define TIME_PART(key, member, text)                                                               \
    FIELD_AT(recovery_time, key, FIELD_REAL, line.member, .doc = (text))
static const struct field time_rows[] = {
    FIELD_AT(recovery_time, "", FIELD_INLINE, line, .of = &cost_table),
    TIME_PART("productive_hours", part[RECOVERY_PRODUCTIVE], "steps that counted"),
    TIME_PART("other_hours",
              part[RECOVERY_OTHER],
              "between steps and after the last; all that jobs held which told of no step"),
    TIME_PART("first_wait_hours", wait, "what first attempts waited for, in GPU-hours"),
};
static const struct field_table time_table = FIELD_TABLE("RecoveryTime", time_rows, recovery_time);

struct recovery_list {
    usec_t from, to;
    double ettr;
    struct recovery_time total;
    struct field_list classes, nodes, users;
    int64_t looked_at, left_out;
    bool complete;
};
#define MEMBER(key, ftype, member, ...) FIELD_AT(recovery_list, key, ftype, member, __VA_ARGS__)
static const struct field list_rows[] = {
    MEMBER("from", FIELD_TIME, from, .flags = FIELD_ALWAYS),
    MEMBER("to", FIELD_TIME, to, .flags = FIELD_ALWAYS),
    MEMBER("ettr",
           FIELD_REAL,
           ettr,
           .flags = FIELD_MAYBE,
           .doc = "of the total, productive over all parts; null: no job told of a step"),
    MEMBER("total", FIELD_OBJECT, total, .of = &time_table, .doc = "jobs that told of steps"),
    MEMBER("classes", FIELD_LIST, classes, .of = &cost_table, .doc = "of failure, costliest first"),
    MEMBER("nodes",
           FIELD_LIST,
           nodes,
           .of = &cost_table,
           .doc = "that may have been at fault, costliest first"),
    MEMBER("users", FIELD_LIST, users, .of = &time_table, .doc = "all their jobs"),
    MEMBER("looked_at", FIELD_INT, looked_at, .doc = "jobs"),
    MEMBER("left_out", FIELD_INT, left_out, .doc = "names of a list beyond the limit"),
    MEMBER("complete", FIELD_BOOL, complete, .doc = "no older job was left out"),
};
static const struct field_table recovery_list_table =
    FIELD_TABLE("RecoveryList", list_rows, recovery_list);

static struct recovery_time recovery_line_of(const struct recovery_sum *s)
{
    const double hour = 3600;
    struct recovery_line l = {.name = s->name,
                              .jobs = (int64_t)s->jobs,
                              .failures = (int64_t)s->failures,
                              .interruptions = (int64_t)s->interruptions,
                              .repaired = (int64_t)s->repaired,
                              .mttr_s = s->repaired ? s->repair_s / (double)s->repaired : NAN,
                              .cost = recovery_cost(s) / hour,
                              .wait = s->wait_s / hour};
    for (int p = 0; p < RECOVERY_PARTS; p++)
        l.part[p] = s->part_s[p] / hour;
    return (struct recovery_time){.line = l};
}

/* Its list is heap, of the caller. Returns how many names were left out. */
static int64_t recovery_fill(const struct recovery_asked *k,
                             struct recovery_book *b,
                             enum recovery_by by,
                             struct field_list *ret)
{
    size_t n, left_out = recovery_book_left_out(b, by);
    const struct recovery_sum *const *v = recovery_book_list(b, by, &n);
    struct recovery_time *lines = xcalloc(n + 1, sizeof(*lines));
    ret->n = n < k->limit ? n : k->limit;
    for (size_t i = 0; i < ret->n; i++)
        lines[i] = recovery_line_of(v[i]);
    ret->v = lines;
    return (int64_t)(left_out + n - ret->n);
}

static double recovery_ettr(const struct recovery_sum *s)
{
    double sum = 0;
    for (int p = 0; p < RECOVERY_PARTS; p++)
        sum += s->part_s[p];
    return sum > 0 ? s->part_s[RECOVERY_PRODUCTIVE] / sum : NAN;
}

static void recovery_answer(struct recovery_asked *k, struct recovery_read *all)
{
    struct buf out = BUF_INIT(RECOVERY_BYTES_MAX);
    struct jout j = jout_begin(&out);
    const struct recovery_sum *total = recovery_book_total(all->book);
    struct recovery_list list = {.from = k->from,
                                 .to = k->to,
                                 .ettr = recovery_ettr(total),
                                 .total = recovery_line_of(total),
                                 .looked_at = (int64_t)all->jobs,
                                 .complete = !all->more};
    list.left_out = recovery_fill(k, all->book, RECOVERY_BY_CLASS, &list.classes) +
                    recovery_fill(k, all->book, RECOVERY_BY_NODE, &list.nodes) +
                    recovery_fill(k, all->book, RECOVERY_BY_USER, &list.users);
    field_to_json(&recovery_list_table, &list, FIELD_ALL, FIELD_PAGE, &j, NULL);
    api_mark_stale(k->req, k->a);
    http_reply_json(k->req, 200, &out, api_reader_barrier(k->a));
    free(list.classes.v);
    free(list.nodes.v);
    free(list.users.v);
    buf_release(&out);
}

static void recovery_on_done(const struct store_result *r, void *arg)
{
    struct recovery_asked *k = arg;
    http_req_on_close(k->req, NULL, NULL);
    if (r->err.code)
        api_fail(k->req, &r->err, 0);
    else
        recovery_answer(k, r->rendered);
    recovery_read_free(r->rendered);
    recovery_unref(k);
}

static void recovery_on_gone(struct http_req *req, void *arg)
{
    struct recovery_asked *k = arg;
    (void)req;
    store_read_cancel(k->read);
    recovery_unref(k);
}

static int recovery_read_query(struct http_req *req, struct recovery_asked *k, struct err *err)
{
    int64_t limit = RECOVERY_LIMIT;
    if (http_req_query_int(req, "limit", 1, STORE_PAGE_MAX, RECOVERY_LIMIT, &limit, err) < 0 ||
        api_read_time(req, "from", k->now, &k->from, err) < 0 ||
        api_read_time(req, "to", k->now, &k->to, err) < 0)
        return err->code = ERR_BAD_REQUEST;
    if (k->from >= k->to)
        return message_refuse(err, ERR_BAD_REQUEST, "usage_no_time", MESSAGE_NO_ARGS);
    k->limit = (size_t)limit;
    return 0;
}

static void api_usage_recovery(struct http_req *req, void *app)
{
    struct api *a = app;
    struct err err = {0};
    usec_t now = clock_wall();
    struct recovery_asked *k = xcalloc(1, sizeof(*k));
    *k = (struct recovery_asked){
        .refs = 2, .req = req, .a = a, .now = now, .from = now - RECOVERY_SINCE, .to = now};
    random_bytes(k->seed, sizeof(k->seed));
    if (recovery_read_query(req, k, &err) < 0) {
        api_fail(req, &err, 0);
        free(k);
        return;
    }
    struct people_view view;
    people_view(a->people, http_req_principal(req), PEOPLE_WISH_ALL, &view);
    struct store_job_query q = {.user = http_req_query(req, "user"),
                                .project = http_req_query(req, "project"),
                                .scope = view.scope,
                                .ran_since = k->from,
                                .ran_until = k->to,
                                .limit = STORE_PAGE_MAX,
                                .want_detail = true,
                                .want_attempts = true};
    http_req_on_close(req, recovery_on_gone, k);
    struct store_then then = {.render = recovery_render,
                              .done = recovery_on_done,
                              .drop = recovery_read_free,
                              .release = recovery_unref,
                              .arg = k};
    k->read = store_list_jobs(a->store, &q, &then);
    people_view_release(&view);
}

static const struct http_param recovery_params[] = {
    {"from", HTTP_PARAM_STRING,
     "jobs that held their slots at some moment from then on, or from this long ago (7d)"},
    {"to", HTTP_PARAM_STRING, "and before this time, now if it is not given"},
    {"user", HTTP_PARAM_STRING, "jobs of this user"},
    {"project", HTTP_PARAM_STRING, "jobs of this project"},
    {"limit", HTTP_PARAM_INTEGER, "so many names of each list at most (20)"},
    {0}};

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/usage/recovery",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_usage_recovery,
     .summary = "how much of the jobs' time went into training (ETTR), how long failures took to "
                "repair (MTTR), and what they cost, in GPU-hours, by class, node and user: of the "
                "newest 1000 jobs that held slots in that time, each with its whole life",
     .params = recovery_params,
     .reply_schema = "RecoveryList"},
};

static const struct http_schema schemas[] = {
    {.name = "RecoveryCost", .table = &cost_table},
    {.name = "RecoveryTime", .table = &time_table},
    {.name = "RecoveryList", .table = &recovery_list_table},
};

const struct api_part part_recovery = {rows, array_len(rows), schemas, array_len(schemas)};
