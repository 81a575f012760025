/* SPDX-License-Identifier: Apache-2.0 */
/* change.c - stop, hold, release jobs and change their priority; stop many at once.
 *
 * A change is decided and answered in one turn of the loop, so that it is one batch of the
 * store: of many jobs either all are stopped or, after a crash, none. Only what is live
 * can change; asking twice is harmless. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/api/handlers.h"
#include "argusd/api/routes.h"
#include "argusd/kit/view.h"
#include "argusd/submit/jobsight.h"
#include "base/conf.h"
#include "base/str.h"
#include "base/text.h"

enum { STOP_MANY_MAX = 10000, ANSWER_MAX = 8 << 20 };

static int change_check(const struct api *a,
                        const struct http_principal *p,
                        const char *verb,
                        const struct job *job,
                        struct err *err)
{
    int r = api_may_change(a, p, verb, job, err);
    if (r == 0 && store_is_failing(a->store))
        r = err_set(err, ERR_STORE, "the store cannot write now: no job can be changed");
    return r;
}

static void change_answer(struct http_req *req, struct api *a, struct live *l, int status)
{
    struct buf out = BUF_INIT(ANSWER_MAX);
    struct jout j = jout_begin(&out);
    struct api_eyes eyes = {.a = a, .p = http_req_principal(req)};
    view_job(&j, a->settings, l->job, &l->extra, l, &eyes);
    http_reply_json(req, status, &out, api_barrier(a));
    buf_release(&out);
}

/* ---- stop one ---- */

static bool change_stop(struct live *l, const struct http_principal *p)
{
    char text[HTTP_USER_MAX + 32];
    text_printf(text, "stopped by '%s'", p->user);
    struct job_event e = {.kind = JOB_EV_STOP, .cause = STOP_USER, .text = text};
    return jobs_apply(l, &e, p->user, clock_wall()); /* stopping twice changes nothing */
}

static void stop_job(struct http_req *req,
                     struct api *a,
                     const struct job *job,
                     const struct record_extra *extra,
                     struct live *l)
{
    const struct http_principal *p = http_req_principal(req);
    struct err err = {0};
    if (change_check(a, p, "stop", job, &err) < 0) {
        api_fail(req, &err, 0);
        return;
    }
    if (!l) {
        api_answer_job(req, a, job, extra, NULL); /* it is over already: stopping is done */
        return;
    }
    jobs_busy(l);
    (void)change_stop(l, p);
    change_answer(req, a, l, 202);
    jobs_idle(l);
}

void api_jobs_stop(struct http_req *req, void *app)
{
    api_find_job(req, app, stop_job);
}

/* ---- hold, release, priority ---- */

typedef int (*change_f)(struct http_req *req, struct live *l, struct err *err);

static void change_job(struct http_req *req,
                       struct api *a,
                       const struct job *job,
                       struct live *l,
                       const char *verb,
                       change_f do_it)
{
    struct err err = {0};
    int r = change_check(a, http_req_principal(req), verb, job, &err);
    if (r == 0 && !l)
        r = message_refuse(&err, ERR_CONFLICT, "job_over",
                           MESSAGE_ARGS(MESSAGE_STR("job", job->id),
                                        MESSAGE_STR("state", job_state_to_string(job->state))));
    if (r == 0 && l) {
        jobs_busy(l);
        r = do_it(req, l, &err);
        if (r == 0)
            change_answer(req, a, l, 200);
        jobs_idle(l);
    }
    if (r < 0)
        api_fail(req, &err, 0);
}

static int change_hold(struct http_req *req, struct live *l, struct err *err)
{
    const struct http_principal *p = http_req_principal(req);
    char text[HTTP_USER_MAX + 32];
    if (l->job->state != JOB_QUEUED)
        return message_refuse(
            err, ERR_CONFLICT, "job_not_waiting",
            MESSAGE_ARGS(MESSAGE_STR("job", l->job->id),
                         MESSAGE_STR("state", job_state_to_string(l->job->state))));
    text_printf(text, "held by '%s'", p->user);
    struct job_event e = {.kind = JOB_EV_HELD, .by = p->user, .code = "held", .text = text};
    (void)jobs_apply(l, &e, p->user, clock_wall()); /* it may be held already */
    return 0;
}

static int change_release(struct http_req *req, struct live *l, struct err *err)
{
    const struct http_principal *p = http_req_principal(req);
    const struct job *j = l->job;
    char text[HTTP_USER_MAX + 32];
    if (j->held_by && p->role < HTTP_ROLE_ADMIN && !str_eq(j->held_by, p->user))
        return message_refuse(
            err, ERR_FORBIDDEN, "held_by_another",
            MESSAGE_ARGS(MESSAGE_STR("job", j->id), MESSAGE_STR("holder", j->held_by)));
    text_printf(text, "released by '%s'", p->user);
    struct job_event e = {.kind = JOB_EV_RELEASED, .code = "released", .text = text};
    (void)jobs_apply(l, &e, p->user, clock_wall()); /* it may not be held */
    return 0;
}

struct priority_body {
    int64_t priority;
    const struct api *a;
};
static const struct field priority_rows[] = {
    FIELD_AT(priority_body,
             "priority",
             FIELD_INT,
             priority,
             .min = 0,
             .max = 100,
             .flags = FIELD_REQUIRED,
             .doc = "0 to 100, high first"),
};
const struct field_table priority_form = FIELD_TABLE(NULL, priority_rows, priority_body);

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

static int set_priority(struct http_req *req, struct live *l, struct err *err)
{
    const struct http_principal *p = http_req_principal(req);
    const struct priority_body *body = http_req_data(req);
    int r = people_check_priority(body->a->people, l->job->project, body->priority, err);
    if (r < 0)
        return r;
    (void)jobs_set_priority(l, (int)body->priority, p->user, clock_wall()); /* it may be that */
    return 0;
}

static void hold_job(struct http_req *req,
                     struct api *a,
                     const struct job *job,
                     const struct record_extra *extra,
                     struct live *l)
{
    (void)extra;
    change_job(req, a, job, l, "hold", change_hold);
}

static void release_job(struct http_req *req,
                        struct api *a,
                        const struct job *job,
                        const struct record_extra *extra,
                        struct live *l)
{
    (void)extra;
    change_job(req, a, job, l, "release", change_release);
}

static void set_priority_job(struct http_req *req,
                             struct api *a,
                             const struct job *job,
                             const struct record_extra *extra,
                             struct live *l)
{
    struct priority_body body = {.a = a};
    (void)extra;
    if (!change_read_body(req, &priority_form, &body))
        return;
    http_req_set_data(req, &body);
    change_job(req, a, job, l, "change", set_priority);
}

void api_jobs_hold(struct http_req *req, void *app)
{
    api_find_job(req, app, hold_job);
}

void api_jobs_release(struct http_req *req, void *app)
{
    api_find_job(req, app, release_job);
}

void api_jobs_priority(struct http_req *req, void *app)
{
    api_find_job(req, app, set_priority_job);
}

/* ---- stop many ---- */

struct filter {
    char *user, *project, *pool, *workload;
    struct strv state, ids;
    unsigned states; /* as bits; 0 = any */
};

#define FILTER(member, ftype, words) FIELD_AT(filter, #member, ftype, member, .doc = words)
static const struct field filter_rows[] = {
    FILTER(user, FIELD_STR, "jobs of this user"),
    FILTER(project, FIELD_STR, "of this project"),
    FILTER(pool, FIELD_STR, "for this pool"),
    FILTER(workload, FIELD_STR, "of this workload"),
    FILTER(state, FIELD_STRV, "in one of these states"),
    FILTER(ids, FIELD_STRV, "one of these"),
};
const struct field_table job_filter_form = FIELD_TABLE(NULL, filter_rows, filter);

static int check_filter(const struct http_principal *p, struct filter *f, struct err *err)
{
    if (!f->user && !f->project && !f->pool && !f->workload && !f->state.n && !f->ids.n)
        return err_set(err, ERR_BAD_REQUEST,
                       "the filter is empty: give ids, user, project, pool, workload or state");
    if (f->user && !str_eq(f->user, p->user) && p->role < HTTP_ROLE_ADMIN)
        return err_set(err, ERR_FORBIDDEN, "only an admin may stop the jobs of '%.60s'", f->user);
    for (size_t i = 0; i < f->state.n; i++) {
        enum job_state s = job_state_from_string(f->state.v[i]);
        if (s == JOB_STATE_END || job_state_is_terminal(s))
            return err_set(err, ERR_BAD_REQUEST,
                           "state '%.40s' cannot be stopped: QUEUED STARTING RUNNING STOPPING can",
                           f->state.v[i]);
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
const struct field_table stopped_table = FIELD_TABLE("Stopped", stopped_rows, stopped_page);

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
    int r = store_is_failing(s->a->store)
                ? err_set(&err, ERR_STORE, "the store cannot write now: no job can be stopped")
                : 0;
    if (r == 0 && s->filter.ids.n)
        r = match_ids(s->a, p, &s->filter, m, &err);
    else if (r == 0)
        match_all(s->a, p, &s->filter, m);
    for (size_t i = 0; i < m->n && r == 0; i++)
        (void)change_stop(m->v[i], p);
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

void api_jobs_stop_many(struct http_req *req, void *app)
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
