/* SPDX-License-Identifier: Apache-2.0 */
/* change.c - stop, hold, release, justify and archive jobs and change their priority; stop many at
 * once. A change of one job is a row, which its route names.
 *
 * A change is decided and answered in one turn of the loop, so that it is one batch of the
 * store: of many jobs either all are stopped or, after a crash, none. Asking twice is
 * harmless. */
#include "argusd/api/jobs/change.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/api/jobs/jobs.h"
#include "argusd/archive/archives.h"
#include "argusd/kit/part.h"
#include "argusd/kit/stopplan.h"
#include "argusd/kit/view.h"
#include "argusd/submit/jobsight.h"
#include "base/doc/conf.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

enum { REASON_MAX = 300, JUSTIFY_MAX = 7 * 86400 }; /* bytes; s */
enum { STOP_MANY_MAX = 10000, ANSWER_MAX = 8 << 20, BODY_MAX = 4096, FILTER_MAX = 1 << 20 };

/* What a change may be asked of. */
enum change_of { CHANGE_ANY, CHANGE_LIVE, CHANGE_OVER };

struct change_ask {
    struct http_req *req;
    struct api *a;
    const struct http_principal *p;
    const struct job *job;
    const struct record_extra *extra;
    struct live *l; /* NULL: it is over */
    int64_t priority;
    bool with_checkpoints;
    char *reason; /* owned */
    usec_t span;
};

/* One change of one job, which its route names. */
struct change {
    const char *verb; /* of refusals */
    enum change_of of;
    int status; /* of the answer */
    int (*apply)(struct change_ask *q, struct err *err);
    const struct field_table *form;           /* of the body, into the ask; NULL: none is read */
    void (*plan)(const struct change_ask *q); /* answers ?dry_run; NULL: there is no such answer */
};

static int change_check(const struct change_ask *q, const struct change *how, struct err *err)
{
    bool is_over = how->of == CHANGE_OVER ? job_state_is_terminal(q->job->state) : !q->l;
    int r = api_may_change(q->a, q->p, how->verb, q->job, err);
    if (r == 0)
        r = store_check(q->a->store, err);
    if (r < 0 || how->of == CHANGE_ANY || is_over == (how->of == CHANGE_OVER))
        return r;
    return message_refuse(err, ERR_CONFLICT, is_over ? "job_over" : "job_not_over",
                          MESSAGE_ARGS(MESSAGE_STR("job", q->job->id),
                                       MESSAGE_STR("state", job_state_to_string(q->job->state))));
}

static void change_answer(const struct change_ask *q, int status)
{
    struct buf out = BUF_INIT(ANSWER_MAX);
    struct jout j = jout_begin(&out);
    struct api_eyes eyes = {.a = q->a, .p = q->p};
    if (q->l)
        view_job(&j, q->a->settings, q->l->job, &q->l->extra, q->l, &eyes);
    else
        view_job(&j, q->a->settings, q->job, q->extra, NULL, &eyes);
    http_reply_json(q->req, status, &out, api_barrier(q->a));
    buf_release(&out);
}

/* False: it was answered. */
static bool change_read_body(struct http_req *req, const struct field_table *form, void *ret)
{
    struct problems ps = {0};
    struct doc *d = NULL;
    size_t len;
    const char *text = http_req_body(req, &len);
    if (doc_parse(len ? text : "{}", len ? len : 2, true, &d, &ps) == 0)
        conf_read(form->rows, form->n, doc_root(d), ret, &ps);
    doc_free(d);
    bool good = !ps.errors;
    if (!good)
        api_answer_problems(req, &ps);
    problems_release(&ps);
    return good;
}

/* What would come of it, to who may do it; nothing is done. */
static void change_plan(const struct change_ask *q, const struct change *how)
{
    struct err err = {0};
    if (change_check(q, how, &err) < 0)
        api_fail(q->req, &err, 0);
    else
        how->plan(q);
}

static void change_apply(struct change_ask *q, const struct change *how)
{
    struct err err = {0};
    int r = change_check(q, how, &err);
    if (r == 0 && !q->l && how->of == CHANGE_ANY) {
        api_answer_job(q->req, q->a, q->job, q->extra,
                       NULL); /* it is over: nothing is to be done */
        return;
    }
    if (q->l)
        jobs_busy(q->l);
    if (r == 0)
        r = how->apply(q, &err);
    if (r == 0)
        change_answer(q, how->status);
    if (q->l)
        jobs_idle(q->l);
    if (r < 0)
        api_fail(q->req, &err, 0);
}

static void change_job(struct http_req *req,
                       struct api *a,
                       const struct job *job,
                       const struct record_extra *extra,
                       struct live *l)
{
    const struct change *how = http_req_arg(req);
    struct change_ask q = {.req = req,
                           .a = a,
                           .p = http_req_principal(req),
                           .job = job,
                           .extra = extra,
                           .l = how->of == CHANGE_OVER ? NULL : l};
    if (how->plan && http_req_query_bool(req, "dry_run", false))
        change_plan(&q, how);
    else if (!how->form || change_read_body(req, how->form, &q))
        change_apply(&q, how);
    free(q.reason);
}

static void api_jobs_change(struct http_req *req, void *app)
{
    api_find_job(req, app, change_job);
}

/* ---- stop, hold, release, priority, archive ---- */

bool api_stop_job(struct live *l, const char *user)
{
    char text[HTTP_USER_MAX + 32];
    message_write(text, sizeof(text), MESSAGE_ARGS(MESSAGE_STR("by", user)));
    struct job_event e = {
        .kind = JOB_EV_STOP, .cause = STOP_USER, .message = "job_stopped_by", .text = text};
    return jobs_apply(l, &e, user, clock_wall()); /* stopping twice changes nothing */
}

static int apply_stop(struct change_ask *q, struct err *err)
{
    (void)err;
    (void)api_stop_job(q->l, q->p->user); /* it may be stopping already */
    return 0;
}

static void plan_stop(const struct change_ask *q)
{
    const struct api_eyes eyes = {.a = q->a, .p = q->p};
    struct stopplan plan;
    struct buf out = BUF_INIT(ANSWER_MAX);
    struct jout j = jout_begin(&out);
    stopplan_make(&eyes, q->job, q->l, &plan);
    field_to_json(&stopplan_table, &plan, FIELD_ALL, FIELD_PAGE, &j, NULL);
    http_reply_json(q->req, 200, &out, api_barrier(q->a));
    buf_release(&out);
    stopplan_release(&plan);
}

static int apply_hold(struct change_ask *q, struct err *err)
{
    char text[HTTP_USER_MAX + 32];
    if (q->job->state != JOB_QUEUED)
        return message_refuse(
            err, ERR_CONFLICT, "job_not_waiting",
            MESSAGE_ARGS(MESSAGE_STR("job", q->job->id),
                         MESSAGE_STR("state", job_state_to_string(q->job->state))));
    message_write(text, sizeof(text), MESSAGE_ARGS(MESSAGE_STR("by", q->p->user)));
    struct job_event e = {.kind = JOB_EV_HELD,
                          .by = q->p->user,
                          .code = "held",
                          .message = "job_held_by",
                          .text = text};
    (void)jobs_apply(q->l, &e, q->p->user, clock_wall()); /* it may be held already */
    return 0;
}

static int apply_release(struct change_ask *q, struct err *err)
{
    const struct job *j = q->job;
    char text[HTTP_USER_MAX + 32];
    if (j->held_by && q->p->role < HTTP_ROLE_ADMIN && !str_eq(j->held_by, q->p->user))
        return message_refuse(
            err, ERR_FORBIDDEN, "held_by_another",
            MESSAGE_ARGS(MESSAGE_STR("job", j->id), MESSAGE_STR("holder", j->held_by)));
    message_write(text, sizeof(text), MESSAGE_ARGS(MESSAGE_STR("by", q->p->user)));
    struct job_event e = {
        .kind = JOB_EV_RELEASED, .code = "released", .message = "job_released_by", .text = text};
    (void)jobs_apply(q->l, &e, q->p->user, clock_wall()); /* it may not be held */
    return 0;
}

static int apply_priority(struct change_ask *q, struct err *err)
{
    int r = people_check_priority(q->a->people, q->job->project, q->priority, err);
    if (r == 0)
        (void)jobs_set_priority(q->l, (int)q->priority, q->p->user,
                                clock_wall()); /* it may be that already */
    return r;
}

/* Its GPUs may rest for so long: what watches them (watch/hangs.h) reads it. */
static int apply_justify(struct change_ask *q, struct err *err)
{
    char text[JOB_REASON_TEXT_MAX], until[CLOCK_TEXT_MAX];
    usec_t now = clock_wall();
    if (!*q->reason || strlen(q->reason) > REASON_MAX)
        return message_refuse(err, ERR_BAD_SPEC, "justify_no_reason",
                              MESSAGE_ARGS(MESSAGE_NUM("most", REASON_MAX)));
    q->l->extra.idle_until = now + q->span;
    set_str(&q->l->extra.idle_why, q->reason);
    message_write(
        text, sizeof(text),
        MESSAGE_ARGS(MESSAGE_STR("by", q->p->user), MESSAGE_STR("reason", q->reason),
                     MESSAGE_STR("until", clock_to_string(q->l->extra.idle_until, until))));
    jobs_note_by(q->l, "justified", q->p->user, "job_justified", text, now);
    jobs_save(q->l);
    return 0;
}

/* The work goes on after the answer: the job's page says how far it is, and an event its end. */
static int apply_archive(struct change_ask *q, struct err *err)
{
    unsigned flags = q->with_checkpoints ? 0 : ARCHIVES_NO_CHECKPOINTS;
    int r = flags ? checkpoints_check_unpinned(q->a->checkpoints, q->job->id, err) : 0;
    return r < 0 ? r : archives_pack(q->a->archives, q->job, flags, q->p->user, err);
}

static int apply_unarchive(struct change_ask *q, struct err *err)
{
    return archives_unpack(q->a->archives, q->job, q->p->user, err);
}

static const struct field priority_rows[] = {
    FIELD_AT(change_ask,
             "priority",
             FIELD_INT,
             priority,
             .min = 0,
             .max = 100,
             .flags = FIELD_REQUIRED,
             .doc = "0 to 100, high first"),
};
static const struct field_table priority_form = FIELD_TABLE(NULL, priority_rows, change_ask);

static const struct field justify_rows[] = {
    FIELD_AT(change_ask,
             "reason",
             FIELD_STR,
             reason,
             .flags = FIELD_REQUIRED,
             .doc = "why its GPUs rest, 300 bytes at most"),
    FIELD_AT(change_ask,
             "for",
             FIELD_SPAN,
             span,
             .dflt = "4h",
             .min = 1,
             .max = JUSTIFY_MAX,
             .doc = "from now on, 7 days at most"),
};
static const struct field_table justify_form = FIELD_TABLE(NULL, justify_rows, change_ask);

static const struct field archive_rows[] = {
    FIELD_AT(change_ask,
             "checkpoints",
             FIELD_BOOL,
             with_checkpoints,
             .dflt = "true",
             .doc = "false: they are not packed, and are removed for good"),
};
static const struct field_table archive_form = FIELD_TABLE(NULL, archive_rows, change_ask);

static const struct change stop = {"stop", CHANGE_ANY, 202, apply_stop, NULL, plan_stop};
static const struct change hold = {"hold", CHANGE_LIVE, 200, apply_hold, NULL, NULL};
static const struct change release = {"release", CHANGE_LIVE, 200, apply_release, NULL, NULL};
static const struct change priority = {"change",       CHANGE_LIVE,    200,
                                       apply_priority, &priority_form, NULL};
static const struct change justify = {"change",      CHANGE_LIVE,   200,
                                      apply_justify, &justify_form, NULL};
static const struct change archive = {"archive",     CHANGE_OVER,   202,
                                      apply_archive, &archive_form, NULL};
static const struct change unarchive = {"unarchive", CHANGE_OVER, 202, apply_unarchive, NULL, NULL};

/* ---- stop many ---- */

struct filter {
    char *user, *project, *pool, *workload;
    struct strv state, ids;
    unsigned states; /* as bits; 0 = any */
};

#define FILTER(member, ftype, words) FIELD_AT(filter, #member, ftype, member, .doc = (words))
static const struct field filter_rows[] = {
    FILTER(user, FIELD_STR, "jobs of this user"),
    FILTER(project, FIELD_STR, "jobs of this project"),
    FILTER(pool, FIELD_STR, "jobs for this pool"),
    FILTER(workload, FIELD_STR, "jobs of this workload"),
    FILTER(state, FIELD_STRV, "jobs in one of these states"),
    FILTER(ids, FIELD_STRV, "one of these"),
};
static const struct field_table job_filter_form = FIELD_TABLE(NULL, filter_rows, filter);

static int check_filter(const struct http_principal *p, struct filter *f, struct err *err)
{
    if (!f->user && !f->project && !f->pool && !f->workload && !f->state.n && !f->ids.n)
        return message_refuse(err, ERR_BAD_REQUEST, "filter_empty", MESSAGE_NO_ARGS);
    if (f->user && !str_eq(f->user, p->user) && p->role < HTTP_ROLE_ADMIN)
        return message_refuse(err, ERR_FORBIDDEN, "stop_anothers",
                              MESSAGE_ARGS(MESSAGE_STR("user", f->user)));
    for (size_t i = 0; i < f->state.n; i++) {
        enum job_state s = job_state_from_string(f->state.v[i]);
        if (s == JOB_STATE_END || job_state_is_terminal(s))
            return message_refuse(err, ERR_BAD_REQUEST, "state_not_stopped",
                                  MESSAGE_ARGS(MESSAGE_STR("state", f->state.v[i])));
        f->states |= 1u << s;
    }
    return 0;
}

static bool fits(const struct filter *f, const struct job *j)
{
    return (!f->user || str_eq(f->user, j->user)) &&
           (!f->project || str_eq(f->project, j->project)) &&
           (!f->pool || str_eq(f->pool, j->pool)) &&
           (!f->workload || str_eq(f->workload, j->workload)) &&
           (!f->states || f->states & 1u << j->state);
}

struct matches {
    struct live *v[STOP_MANY_MAX];
    size_t n;
    bool more;
};

static void add_match(struct matches *m, struct live *l)
{
    if (m->n == STOP_MANY_MAX) {
        m->more = true;
        return;
    }
    m->v[m->n++] = l;
    jobs_busy(l);
}

/* Named ones that are over need nothing; those that are not may each be changed, or nothing happens
 * at all. */
static int match_ids(const struct api *a,
                     const struct http_principal *p,
                     const struct filter *f,
                     struct matches *m,
                     struct err *err)
{
    for (size_t i = 0; i < f->ids.n; i++) {
        struct live *l = jobs_find_id(a->jobs, f->ids.v[i]);
        int r = l ? api_may_change(a, p, "stop", l->job, err) : 0;
        if (r < 0)
            return r;
        if (l && fits(f, l->job))
            add_match(m, l);
    }
    return 0;
}

/* Others' jobs are passed over: a filter is about one's own. */
static void match_all(const struct api *a,
                      const struct http_principal *p,
                      const struct filter *f,
                      struct matches *m)
{
    struct live *l;
    for (size_t pos = 0; (l = jobs_next(a->jobs, &pos));)
        if (fits(f, l->job) && api_may_change(a, p, "stop", l->job, NULL) == 0)
            add_match(m, l);
}

struct stopped_job {
    const char *id, *state;
};
static const struct field stopped_job_rows[] = {
    FIELD_AT(stopped_job, "id", FIELD_STR, id, .flags = FIELD_ALWAYS),
    FIELD_AT(stopped_job, "state", FIELD_STR, state, .flags = FIELD_ALWAYS, .schema = "JobState"),
};
static const struct field_table stopped_job_table =
    FIELD_TABLE(NULL, stopped_job_rows, stopped_job);

struct stopped_page {
    struct field_list jobs;
    bool more;
};
static const struct field stopped_rows[] = {
    FIELD_AT(stopped_page, "jobs", FIELD_LIST, jobs, .of = &stopped_job_table),
    FIELD_AT(stopped_page, "more", FIELD_BOOL, more),
};
static const struct field_table stopped_table = FIELD_TABLE("Stopped", stopped_rows, stopped_page);

static void answer_many(struct http_req *req, struct api *a, const struct matches *m)
{
    struct buf out = BUF_INIT(ANSWER_MAX);
    struct jout j = jout_begin(&out);
    struct stopped_job *jobs = xcalloc(m->n + 1, sizeof(*jobs));
    for (size_t i = 0; i < m->n; i++)
        jobs[i] = (struct stopped_job){.id = m->v[i]->job->id,
                                       .state = job_state_to_string(m->v[i]->job->state)};
    const struct stopped_page page = {.jobs = {.v = jobs, .n = m->n}, .more = m->more};
    field_to_json(&stopped_table, &page, FIELD_ALL, FIELD_PAGE, &j, NULL);
    free(jobs);
    http_reply_json(req, 202, &out, api_barrier(a));
    buf_release(&out);
}

/* While it is asked whether the named ones are there. */
struct stop_many {
    struct http_req *req;
    struct api *a;
    struct filter filter;
    struct jobsight *sight; /* under way */
};

static void stop_many_free(struct stop_many *s)
{
    jobsight_forget(s->sight);
    field_release(&job_filter_form, &s->filter);
    free(s);
}

static void stop_matches(struct stop_many *s)
{
    const struct http_principal *p = http_req_principal(s->req);
    struct matches *m = xcalloc(1, sizeof(*m));
    struct err err = {0};
    int r = store_check(s->a->store, &err);
    if (r == 0 && s->filter.ids.n)
        r = match_ids(s->a, p, &s->filter, m, &err);
    else if (r == 0)
        match_all(s->a, p, &s->filter, m);
    for (size_t i = 0; i < m->n && r == 0; i++)
        (void)api_stop_job(m->v[i], p->user);
    if (r == 0)
        answer_many(s->req, s->a, m);
    else
        api_fail(s->req, &err, 0);
    for (size_t i = 0; i < m->n; i++)
        jobs_idle(m->v[i]);
    free(m);
}

static void stop_many_on_sight(const char *field, const struct err *err, void *arg)
{
    struct stop_many *s = arg;
    http_req_on_close(s->req, NULL, NULL);
    if (field)
        api_fail(s->req, err, 0);
    else
        stop_matches(s);
    stop_many_free(s);
}

static void stop_many_on_gone(struct http_req *req, void *arg)
{
    (void)req;
    stop_many_free(arg);
}

static void api_jobs_stop_many(struct http_req *req, void *app)
{
    const struct http_principal *p = http_req_principal(req);
    struct stop_many *s = xcalloc(1, sizeof(*s));
    struct spec_jobs named = {0};
    struct err err = {0};
    *s = (struct stop_many){.req = req, .a = app};
    if (!change_read_body(req, &job_filter_form, &s->filter)) {
        stop_many_free(s);
    } else if (check_filter(p, &s->filter, &err) < 0) {
        api_fail(req, &err, 0);
        stop_many_free(s);
    } else {
        for (size_t i = 0; i < s->filter.ids.n; i++)
            spec_jobs_add(&named, "ids", s->filter.ids.v[i]);
        http_req_on_close(req, stop_many_on_gone, s);
        jobsight_ask(s->a, p, &named, stop_many_on_sight, s, &s->sight);
    }
}

static const struct http_param stop_params[] = {
    {"dry_run", HTTP_PARAM_BOOLEAN, "answer what would end, and do nothing"},
    {0}};

static const struct http_route rows[] = {
    {.method = "POST",
     .pattern = "/v1/jobs/{id}:stop",
     .least = HTTP_ROLE_USER,
     .max_body = BODY_MAX,
     .handle = api_jobs_change,
     .arg = &stop,
     .summary = "stop a job",
     .params = stop_params,
     .reply_schema = "Job",
     .reply_status = 202,
     .other_schema = "JobOrStopPlan"},
    {.method = "POST",
     .pattern = "/v1/jobs:stop",
     .least = HTTP_ROLE_USER,
     .max_body = FILTER_MAX,
     .handle = api_jobs_stop_many,
     .summary = "stop all live jobs that fit a filter, in one transaction",
     .request_schema = "JobFilter",
     .reply_schema = "Stopped",
     .reply_status = 202},
    {.method = "POST",
     .pattern = "/v1/jobs/{id}:hold",
     .least = HTTP_ROLE_USER,
     .max_body = BODY_MAX,
     .handle = api_jobs_change,
     .arg = &hold,
     .summary = "keep a job that waits from starting",
     .reply_schema = "Job"},
    {.method = "POST",
     .pattern = "/v1/jobs/{id}:release",
     .least = HTTP_ROLE_USER,
     .max_body = BODY_MAX,
     .handle = api_jobs_change,
     .arg = &release,
     .summary = "let a job that is held wait for its turn again",
     .reply_schema = "Job"},
    {.method = "POST",
     .pattern = "/v1/jobs/{id}:priority",
     .least = HTTP_ROLE_USER,
     .max_body = BODY_MAX,
     .handle = api_jobs_change,
     .arg = &priority,
     .summary = "change a job's priority, within its project's ceiling",
     .request_schema = "Priority",
     .reply_schema = "Job"},
    {.method = "POST",
     .pattern = "/v1/jobs/{id}:justify",
     .least = HTTP_ROLE_USER,
     .max_body = BODY_MAX,
     .handle = api_jobs_change,
     .arg = &justify,
     .summary = "say why the GPUs of a job rest: it is neither called idle nor taken back for that "
                "time",
     .request_schema = "Justification",
     .reply_schema = "Job"},
    {.method = "POST",
     .pattern = "/v1/jobs/{id}:archive",
     .least = HTTP_ROLE_USER,
     .max_body = BODY_MAX,
     .handle = api_jobs_change,
     .arg = &archive,
     .summary = "pack the directory of a job that is over into one verified archive",
     .request_schema = "ArchiveOrder",
     .reply_schema = "Job",
     .reply_status = 202},
    {.method = "POST",
     .pattern = "/v1/jobs/{id}:unarchive",
     .least = HTTP_ROLE_USER,
     .max_body = BODY_MAX,
     .handle = api_jobs_change,
     .arg = &unarchive,
     .summary = "bring the directory of an archived job back, byte for byte",
     .reply_schema = "Job",
     .reply_status = 202},
};
static const struct http_schema schemas[] = {
    {.name = "ArchiveOrder", .table = &archive_form, .is_form = true},
    {.name = "JobFilter", .table = &job_filter_form, .is_form = true},
    {.name = "Justification", .table = &justify_form, .is_form = true},
    {.name = "Priority", .table = &priority_form, .is_form = true},
    {.name = "StopPlanJob", .table = &stopplan_job_table},
    {.name = "StopPlanStep", .table = &stopplan_step_table},
    {.name = "StopPlan", .table = &stopplan_table},
    {.name = "JobOrStopPlan", .json = "{\"anyOf\":[" REF("Job") "," REF("StopPlan") "]}"},
    {.name = "Stopped", .table = &stopped_table},
};
const struct api_part part_change = {rows, array_len(rows), schemas, array_len(schemas)};
