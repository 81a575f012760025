/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoints.c - the checkpoints of a job: listed, read to the last byte, and cleaned up. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/archive/archives.h"
#include "argusd/checkpoints/checkpoints.h"
#include "argusd/ground/work.h"
#include "argusd/kit/api.h"
#include "argusd/kit/part.h"
#include "argusd/people/people_rules.h"
#include "base/message.h"
#include "base/str.h"
#include "fsroot/ckpt/ckpt.h"

enum { ANSWER_MAX = 7 << 20, ROWS_MAX = 1000 };

/* ---- list ---- */

struct checkpoints_page {
    const char *id, *checkpoints, *metric, *mode;
    uint64_t bytes;
    int64_t best; /* -1: none */
    bool looking;
};
static const struct field list_rows[] = {
    FIELD_AT(checkpoints_page, "id", FIELD_STR, id, .flags = FIELD_ALWAYS),
    FIELD_AT(checkpoints_page, "bytes", FIELD_COUNT, bytes),
    FIELD_AT(checkpoints_page,
             "checkpoints",
             FIELD_JSON,
             checkpoints,
             .flags = FIELD_ALWAYS,
             .schema = LIST(REF("Checkpoint"))),
    FIELD_AT(checkpoints_page,
             "looking",
             FIELD_BOOL,
             looking,
             .doc = "what its last attempt saved is being looked at: there may be more"),
    FIELD_AT(checkpoints_page,
             "metric",
             FIELD_STR,
             metric,
             .doc =
                 "of the values: the one that was asked for, else keep_best's, else the main one "
                 "of validation"),
    FIELD_AT(checkpoints_page, "mode", FIELD_STR, mode, .doc = "max or min: which value is best"),
    FIELD_AT(checkpoints_page,
             "best",
             FIELD_INT,
             best,
             .flags = FIELD_NO_LIMIT,
             .doc = "step of the verified one with the best value, of equals the newest"),
};
static const struct field_table checkpoint_list_table =
    FIELD_TABLE("CheckpointList", list_rows, checkpoints_page);

static void api_checkpoints_put(struct http_req *req,
                                struct api *a,
                                const char *id,
                                const struct checkpoints_shown *s)
{
    struct buf out = BUF_INIT(ANSWER_MAX);
    struct jout j = jout_begin(&out);
    const struct message_listener to = {.language = http_req_principal(req)->language};
    const struct ckpt *best = ckpt_list_best(&s->list, s->is_min);
    _cleanup_(freep) char *all = checkpoints_shown_text(s, &to);
    const struct checkpoints_page page = {.id = id,
                                          .bytes = ckpt_list_bytes(&s->list),
                                          .checkpoints = all,
                                          .metric = s->metric,
                                          .mode = !s->metric  ? NULL
                                                  : s->is_min ? "min"
                                                              : "max",
                                          .best = best ? best->step : -1,
                                          .looking = checkpoints_is_looking(a->checkpoints, id)};
    field_to_json(&checkpoint_list_table, &page, FIELD_ALL, FIELD_PAGE, &j, NULL);
    http_reply_json(req, 200, &out, api_reader_barrier(a));
    buf_release(&out);
}

/* Its values of a metric that is asked for are read from its files. */
struct valuing {
    struct http_req *req; /* NULL: the client has gone */
    struct api *a;
    char *root, *id;
    struct checkpoints_shown shown;
    int result;
    struct err err;
};

static void on_valuer_gone(struct http_req *req, void *arg)
{
    struct valuing *v = arg;
    (void)req;
    v->req = NULL; /* freed when the worker is done */
}

static void run_valuing(void *arg)
{
    struct valuing *v = arg;
    v->result = ckpt_find_metric(v->root, v->id, v->shown.metric, &v->shown.list, &v->err);
}

static void done_valuing(void *arg)
{
    struct valuing *v = arg;
    if (v->req) {
        http_req_on_close(v->req, NULL, NULL);
        if (v->result < 0)
            api_fail(v->req, &v->err, api_reader_barrier(v->a));
        else
            api_checkpoints_put(v->req, v->a, v->id, &v->shown);
    }
    checkpoints_shown_release(&v->shown);
    free(v->root);
    free(v->id);
    free(v);
}

/* s is taken. */
static void begin_valuing(struct http_req *req,
                          struct api *a,
                          const char *id,
                          struct checkpoints_shown *s)
{
    struct valuing *v = xcalloc(1, sizeof(*v));
    *v = (struct valuing){.req = req,
                          .a = a,
                          .root = xstrdup(a->settings->shared_root),
                          .id = xstrdup(id),
                          .shown = *s};
    http_req_on_close(req, on_valuer_gone, v);
    work_start_for(a->loop, http_req_principal(req)->user, run_valuing, done_valuing, v);
}

static int api_checkpoints_read_mode(const char *mode, bool *is_min, struct err *err)
{
    if (mode && strcmp(mode, "max") != 0 && strcmp(mode, "min") != 0)
        return message_refuse(err, ERR_BAD_REQUEST, "bad_mode_query",
                              MESSAGE_ARGS(MESSAGE_STR("mode", mode)));
    *is_min = mode ? !strcmp(mode, "min") : *is_min;
    return 0;
}

static void api_checkpoints_list(struct http_req *req,
                                 struct api *a,
                                 const struct job *job,
                                 const struct record_extra *extra,
                                 struct live *l)
{
    const char *metric = http_req_query(req, "metric");
    struct err err = {0};
    struct checkpoints_shown s;
    (void)extra;
    (void)l;
    if (metric && !api_has_files(req, a, job))
        return;
    const struct http_principal *wants_users =
        http_req_query_bool(req, "used_by", false) ? http_req_principal(req) : NULL;
    checkpoints_show_used(a->checkpoints, job->id, wants_users, &s);
    if (metric)
        checkpoints_shown_ask(&s, metric);
    if (api_checkpoints_read_mode(http_req_query(req, "mode"), &s.is_min, &err) < 0) {
        api_fail(req, &err, 0);
    } else if (metric) {
        begin_valuing(req, a, job->id, &s);
        return;
    } else {
        api_checkpoints_put(req, a, job->id, &s);
    }
    checkpoints_shown_release(&s);
}

static void api_jobs_checkpoints(struct http_req *req, void *app)
{
    api_find_job(req, app, api_checkpoints_list);
}

/* ---- of all jobs ---- */

#define SUM(key, ftype, member, ...) FIELD_AT(checkpoints_sum, key, ftype, member, __VA_ARGS__)
static const struct field sum_rows[] = {
    SUM("id", FIELD_STR, id, .flags = FIELD_ALWAYS),
    SUM("user", FIELD_STR, user, .flags = FIELD_ALWAYS),
    SUM("project", FIELD_STR, project, .flags = FIELD_ALWAYS),
    SUM("checkpoints", FIELD_COUNT, n),
    SUM("bytes", FIELD_COUNT, bytes),
    SUM("newest", FIELD_INT, newest, .flags = FIELD_NO_LIMIT),
};
#undef SUM
static const struct field_table sum_table = FIELD_TABLE(NULL, sum_rows, checkpoints_sum);

struct sums {
    struct checkpoints_sum *v;
    size_t n;
    uint64_t bytes;
    struct field_list shown; /* the largest of v */
};
static const struct field sums_rows[] = {
    FIELD_AT(sums, "bytes", FIELD_COUNT, bytes),
    FIELD_AT(sums, "total", FIELD_COUNT, n),
    FIELD_AT(sums, "jobs", FIELD_LIST, shown, .of = &sum_table),
};
static const struct field_table checkpoint_sums_table =
    FIELD_TABLE("CheckpointSums", sums_rows, sums);

static int largest_first(const void *a, const void *b)
{
    const struct checkpoints_sum *x = a, *y = b;
    return x->bytes < y->bytes ? 1 : x->bytes > y->bytes ? -1 : strcmp(x->id, y->id);
}

static bool is_asked_for(struct http_req *req, const struct checkpoints_sum *s)
{
    const char *user = http_req_query(req, "user"), *project = http_req_query(req, "project");
    return (!user || str_eq(s->user, user)) &&
           (!project || !strcmp(*str_or(s->project, "") ? s->project : "default", project));
}

static bool api_checkpoints_may_see(struct api *a,
                                    struct http_req *req,
                                    const struct checkpoints_sum *s)
{
    struct job job = {
        .id = xstrdup(s->id), .user = xstrdup(s->user), .project = xstrdup(s->project)};
    bool may = people_check_job(a->people, http_req_principal(req), ACCESS_JOB_SEE, "see", &job,
                                NULL) == 0;
    free(job.id);
    free(job.user);
    free(job.project);
    return may;
}

static void api_checkpoints_gather(struct api *a, struct http_req *req, struct sums *ret)
{
    const struct book *pos = NULL;
    struct checkpoints_sum s;
    while (checkpoints_next(a->checkpoints, &pos, &s)) {
        if (!s.user || !is_asked_for(req, &s) || !api_checkpoints_may_see(a, req, &s))
            continue;
        if ((ret->n & (ret->n - 1)) == 0)
            ret->v = xrealloc(ret->v, ret->n ? ret->n * 2 : 1, sizeof(*ret->v));
        s.project = *str_or(s.project, "") ? s.project : ACCESS_DEFAULT_PROJECT;
        s.newest = s.newest ? s.newest : -1; /* null */
        ret->v[ret->n++] = s;
        ret->bytes += s.bytes;
    }
    xsort(ret->v, ret->n, sizeof(*ret->v), largest_first);
}

/* A user who was removed may have left some checkpoints, so that name is asked for among them
 * too. */
static int api_checkpoints_check_names(const struct api *a,
                                       const struct http_req *req,
                                       struct err *err)
{
    const char *user = http_req_query(req, "user"), *project = http_req_query(req, "project");
    if (project && !people_find_project(a->people, project))
        return message_refuse(
            err, ERR_NOT_FOUND, "not_found",
            MESSAGE_ARGS(MESSAGE_STR("noun", "project"), MESSAGE_STR("name", project)));
    if (user && !people_find(a->people, user))
        return message_refuse(err, ERR_NOT_FOUND, "not_found",
                              MESSAGE_ARGS(MESSAGE_STR("noun", "user"), MESSAGE_STR("name", user)));
    return 0;
}

static void api_checkpoints(struct http_req *req, void *app)
{
    struct api *a = app;
    struct buf out = BUF_INIT(ANSWER_MAX);
    struct jout j = jout_begin(&out);
    struct sums all = {0};
    struct err err = {0};
    api_checkpoints_gather(a, req, &all);
    if (!all.n && api_checkpoints_check_names(a, req, &err) < 0) {
        api_fail(req, &err, 0);
        free(all.v);
        return;
    }
    all.shown = (struct field_list){.v = all.v, .n = all.n < ROWS_MAX ? all.n : ROWS_MAX};
    field_to_json(&checkpoint_sums_table, &all, FIELD_ALL, FIELD_PAGE, &j, NULL);
    http_reply_json(req, 200, &out, api_reader_barrier(a));
    buf_release(&out);
    free(all.v);
}

/* ---- gc ---- */

struct cleaning {
    struct http_req *req;
    struct api *a;
    struct checkpoints_ask *ask;
    char *id;
    bool dry_run;
};

static void cleaning_free(struct cleaning *c)
{
    free(c->id);
    free(c);
}

static void on_cleaner_gone(struct http_req *req, void *arg)
{
    struct cleaning *c = arg;
    (void)req;
    checkpoints_unask(c->ask);
    cleaning_free(c);
}

struct cleaned_page {
    int64_t step;
    const char *state, *kept_by;
    uint64_t bytes;
    bool goes;
};
static const struct field cleaned_rows[] = {
    FIELD_AT(cleaned_page, "step", FIELD_INT, step),
    FIELD_AT(cleaned_page, "state", FIELD_STR, state, .flags = FIELD_ALWAYS),
    FIELD_AT(cleaned_page, "bytes", FIELD_COUNT, bytes),
    FIELD_AT(cleaned_page, "goes", FIELD_BOOL, goes),
    FIELD_AT(cleaned_page, "kept_by", FIELD_STR, kept_by),
};
static const struct field_table cleaned_table = FIELD_TABLE(NULL, cleaned_rows, cleaned_page);

struct cleaning_page {
    const char *id;
    bool dry_run;
    struct field_list checkpoints;
    uint64_t removed, removed_bytes;
};
static const struct field cleaning_rows[] = {
    FIELD_AT(cleaning_page, "id", FIELD_STR, id, .flags = FIELD_ALWAYS),
    FIELD_AT(cleaning_page, "dry_run", FIELD_BOOL, dry_run),
    FIELD_AT(cleaning_page, "checkpoints", FIELD_LIST, checkpoints, .of = &cleaned_table),
    FIELD_AT(cleaning_page, "removed", FIELD_COUNT, removed),
    FIELD_AT(cleaning_page, "removed_bytes", FIELD_COUNT, removed_bytes),
};
static const struct field_table checkpoints_cleaned_table =
    FIELD_TABLE("CheckpointsCleaned", cleaning_rows, cleaning_page);

static void put_cleaning(const struct cleaning *c,
                         const struct checkpoints_answer *r,
                         struct jout *j)
{
    size_t n = r->plan ? r->list->n : 0;
    struct cleaned_page *rows = xcalloc(n + 1, sizeof(*rows));
    for (size_t i = 0; i < n; i++) {
        const struct ckpt *k = &r->list->v[i];
        bool goes = r->plan[i] == CKPT_GOES;
        rows[i] = (struct cleaned_page){.step = k->step,
                                        .state = ckpt_state_to_string(k->state),
                                        .bytes = k->bytes,
                                        .goes = goes,
                                        .kept_by = goes ? NULL : ckpt_keep_to_string(r->plan[i])};
    }
    const struct cleaning_page page = {.id = c->id,
                                       .dry_run = c->dry_run,
                                       .checkpoints = {.v = rows, .n = n},
                                       .removed = r->removed,
                                       .removed_bytes = r->removed_bytes};
    field_to_json(&checkpoints_cleaned_table, &page, FIELD_ALL, FIELD_PAGE, j, NULL);
    free(rows);
}

static void on_cleaned(const struct checkpoints_answer *r, void *arg)
{
    struct cleaning *c = arg;
    struct buf out = BUF_INIT(ANSWER_MAX);
    struct jout j = jout_begin(&out);
    http_req_on_close(c->req, NULL, NULL);
    if (r->err->code) {
        struct err err = *r->err;
        err.code = ERR_UNAVAILABLE;
        api_fail(c->req, &err, 0);
    } else {
        put_cleaning(c, r, &j);
        http_reply_json(c->req, 200, &out, api_barrier(c->a));
    }
    buf_release(&out);
    cleaning_free(c);
}

static const struct field checkpoint_cleaning_form_rows[] = {OPT_BOOLEAN("dry_run")};
static const struct field_table checkpoint_cleaning_form =
    ACTION_FORM(checkpoint_cleaning_form_rows);

static void api_checkpoints_clean(struct http_req *req,
                                  struct api *a,
                                  const struct job *job,
                                  const struct record_extra *extra,
                                  struct live *l)
{
    const struct http_principal *p = http_req_principal(req);
    struct err err = {0};
    _cleanup_(json_unrefp) json_t *body = NULL;
    (void)extra;
    (void)l;
    int r = api_may_change(a, p, "clean up", job, &err);
    if (r == 0)
        r = archives_check_files(a->archives, job->id, &err);
    if (r == 0)
        r = cluster_check_root_answers(a->cluster, &err);
    if (r < 0) {
        api_fail(req, &err, 0);
        return;
    }
    body = api_read_action(req, &checkpoint_cleaning_form);
    if (!body)
        return; /* that was answered */
    struct cleaning *c = xcalloc(1, sizeof(*c));
    *c = (struct cleaning){.req = req,
                           .a = a,
                           .id = xstrdup(job->id),
                           .dry_run = json_get_bool(body, "dry_run", false)};
    http_req_on_close(req, on_cleaner_gone, c);
    c->ask = checkpoints_gc(a->checkpoints, job, c->dry_run, p->user, on_cleaned, c);
}

static void api_jobs_checkpoints_gc(struct http_req *req, void *app)
{
    api_find_job(req, app, api_checkpoints_clean);
}

/* ---- verify ---- */

struct verifying {
    struct http_req *req; /* NULL: the client has gone */
    struct api *a;
    char *root, *id;
    struct ckpt found;
    volatile int stop;
    int result;
    struct err err;
};

static void on_reader_gone(struct http_req *req, void *arg)
{
    struct verifying *v = arg;
    (void)req;
    v->req = NULL; /* freed when the worker is done */
    v->stop = 1;
}

static void run_verify(void *arg)
{
    struct verifying *v = arg;
    v->result = ckpt_verify(v->root, v->id, &v->found, &v->stop, &v->err);
}

static void answer_verified(struct verifying *v)
{
    struct buf out = BUF_INIT(ANSWER_MAX);
    struct jout j = jout_begin(&out);
    const struct message_listener to = {.language = http_req_principal(v->req)->language};
    http_req_on_close(v->req, NULL, NULL);
    if (v->result < 0) {
        v->err.code = v->result == ERR_NOT_FOUND ? ERR_NOT_FOUND : ERR_UNAVAILABLE;
        api_fail(v->req, &v->err, 0);
    } else {
        ckpt_to_json(&v->found, checkpoints_of(v->a->checkpoints, v->id), &to, &j, NULL);
        http_reply_json(v->req, 200, &out, api_barrier(v->a));
    }
    buf_release(&out);
}

static void done_verify(void *arg)
{
    struct verifying *v = arg;
    checkpoints_end_reading(v->a->checkpoints, v->id, v->result == 0 ? &v->found : NULL);
    if (v->req)
        answer_verified(v);
    free(v->root);
    free(v->id);
    free(v);
}

static int begin_verify(struct http_req *req, struct api *a, const struct job *job, struct err *err)
{
    int64_t step = 0;
    const char *text = http_req_param(req, "step");
    int r = api_may_change(a, http_req_principal(req), "verify", job, err);
    if (r == 0)
        r = archives_check_files(a->archives, job->id, err);
    if (r < 0)
        return r;
    if (str_to_int(str_or(text, ""), 1, INT32_MAX, &step, NULL) < 0)
        return message_refuse(err, ERR_BAD_REQUEST, "no_step",
                              MESSAGE_ARGS(MESSAGE_STR("step", str_or(text, ""))));
    r = cluster_check_root_answers(a->cluster, err);
    if (r < 0)
        return r;
    const struct ckpt_list *l = checkpoints_of(a->checkpoints, job->id);
    const struct ckpt *c = l ? ckpt_list_find(l, step) : NULL;
    if (!checkpoints_begin_reading(a->checkpoints))
        return message_refuse(err, ERR_UNAVAILABLE, "checkpoint_read_busy", MESSAGE_NO_ARGS);
    struct verifying *v = xcalloc(1, sizeof(*v));
    *v = (struct verifying){.req = req,
                            .a = a,
                            .root = xstrdup(a->settings->shared_root),
                            .id = xstrdup(job->id),
                            .found = c ? *c : (struct ckpt){.step = step}};
    http_req_on_close(req, on_reader_gone, v);
    work_start_for(a->loop, http_req_principal(req)->user, run_verify, done_verify, v);
    return 0;
}

static void verify(struct http_req *req,
                   struct api *a,
                   const struct job *job,
                   const struct record_extra *extra,
                   struct live *l)
{
    struct err err = {0};
    (void)extra;
    (void)l;
    if (begin_verify(req, a, job, &err) < 0)
        api_fail(req, &err, 0);
}

static void api_jobs_checkpoints_verify(struct http_req *req, void *app)
{
    api_find_job(req, app, verify);
}

static const struct http_param value_params[] = {
    {"metric", HTTP_PARAM_STRING,
     "values of this metric in place of the main one: a name, or a pattern with * and ? whose mean "
     "it is"},
    {"mode", HTTP_PARAM_STRING,
     "max or min: which value is best; if not given keep_best's of that metric, else min of a loss "
     "and max of all others"},
    {"used_by", HTTP_PARAM_BOOLEAN, "with who needs each: the jobs and the registry are searched"},
    {0}};
static const struct http_param checkpoint_params[] = {
    {"project", HTTP_PARAM_STRING, "only of jobs of this project"},
    {"user", HTTP_PARAM_STRING, "only of this user's jobs"},
    {0}};

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/jobs/{id}/checkpoints",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_jobs_checkpoints,
     .summary = "the checkpoints of a job, the oldest first, with what validation told at their "
                "steps",
     .params = value_params,
     .reply_schema = "CheckpointList"},
    {.method = "GET",
     .pattern = "/v1/checkpoints",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_checkpoints,
     .summary = "which jobs have checkpoints, those that take most first; at most 1000",
     .params = checkpoint_params,
     .reply_schema = "CheckpointSums"},
    {.method = "POST",
     .pattern = "/v1/jobs/{id}/checkpoints:gc",
     .least = HTTP_ROLE_USER,
     .max_body = 4096,
     .handle = api_jobs_checkpoints_gc,
     .summary = "remove the checkpoints that its retention lets go, or only say which",
     .request_schema = "CheckpointCleaning",
     .reply_schema = "CheckpointsCleaned"},
    {.method = "POST",
     .pattern = "/v1/jobs/{id}/checkpoints/{step}:verify",
     .example = "10",
     .least = HTTP_ROLE_USER,
     .max_body = 4096,
     .handle = api_jobs_checkpoints_verify,
     .summary = "read every byte of a checkpoint",
     .reply_schema = "Checkpoint"},
};
static const struct http_schema schemas[] = {
    {.name = "CheckpointList", .table = &checkpoint_list_table},
    {.name = "CheckpointSums", .table = &checkpoint_sums_table},
    {.name = "CheckpointCleaning", .table = &checkpoint_cleaning_form, .is_form = true},
    {.name = "CheckpointsCleaned", .table = &checkpoints_cleaned_table},
};
const struct api_part part_checkpoints = {rows, array_len(rows), schemas, array_len(schemas)};
