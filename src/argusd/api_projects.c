/* SPDX-License-Identifier: Apache-2.0 */
/* api_projects.c - projects, and the quotas of projects and users. */
#include <stdlib.h>
#include <string.h>

#include "argusd/api_people.h"
#include "base/str.h"

enum { PROJECT_MAX_BYTES = 256 << 10 };

/* ---- reading ---- */

static void put_project(struct jout *j, const struct api *a, const struct project *p)
{
    jout_open(j, NULL, '{');
    people_form_put_project_fields(j, p);
    jout_time(j, "created_at", p->created_at);
    api_put_account(j, a, SCHED_PROJECT, p->name, &p->quota);
    jout_close(j, '}');
}

static void answer_project(struct http_req *req, struct api *a, const struct project *p, int status)
{
    struct buf out = BUF_INIT(PROJECT_MAX_BYTES);
    struct jout j = jout_begin(&out);
    put_project(&j, a, p);
    http_reply_json(req, status, &out, api_barrier(a));
    buf_release(&out);
}

/* "default" is everybody's to see: all may submit there. */
static bool sees(const struct access_who *who, const struct project *p)
{
    struct access_thing thing = {.kind = "project", .name = p->name, .project = p->name};
    return str_eq(p->name, ACCESS_DEFAULT_PROJECT) ||
           access_check(who, ACCESS_PROJECT_SEE, "see", &thing, NULL) == 0;
}

void api_projects(struct http_req *req, void *app)
{
    struct api *a = app;
    struct buf out = BUF_INIT(API_PEOPLE_LIST_MAX);
    struct jout j = jout_begin(&out);
    struct access_who who;
    const struct project *p;
    people_who(a->people, http_req_principal(req), &who);
    jout_open(&j, NULL, '{');
    jout_open(&j, "projects", '[');
    for (size_t pos = 0; (p = people_next_project(a->people, &pos));)
        if (sees(&who, p))
            put_project(&j, a, p);
    jout_close(&j, ']');
    jout_close(&j, '}');
    http_reply_json(req, 200, &out, api_reader_barrier(a));
    buf_release(&out);
}

static struct project *find_seen(struct http_req *req, struct api *a)
{
    if (str_eq(http_req_param(req, "project"), ACCESS_DEFAULT_PROJECT))
        return people_find_project(a->people, ACCESS_DEFAULT_PROJECT);
    return api_people_find_project(req, a, ACCESS_PROJECT_SEE, "see");
}

void api_project_get(struct http_req *req, void *app)
{
    const struct project *p = find_seen(req, app);
    if (p)
        answer_project(req, app, p, 200);
}

/* ---- changing ---- */

/* Members are users, and none of them is in too many projects. */
static int check_members(const struct api *a,
                         const struct project *old,
                         const struct project *asked,
                         struct err *err)
{
    for (size_t i = 0; i < asked->members.n; i++) {
        const char *name = asked->members.v[i];
        const struct person *p = people_find(a->people, name);
        if (!p)
            return err_set(err, ERR_BAD_SPEC,
                           "there is no user '%.60s': make him with 'argus user add'", name);
        size_t n = *p->projects != 0;
        for (const char *s = p->projects; *s; s++)
            n += *s == ',';
        if (n >= PEOPLE_PROJECTS_OF_USER_MAX && !(old && strv_has(&old->members, name)))
            return err_set(err, ERR_REFUSED, "'%s' is in %zu projects, and cannot be in more", name,
                           n);
    }
    return 0;
}

static bool read_project(struct http_req *req, bool want_name, struct project *p)
{
    struct problems ps = {0};
    size_t n;
    const char *body = http_req_body(req, &n);
    bool good = people_form_project(body, n, want_name, p, &ps) == 0;
    if (!good)
        api_answer_problems(req, &ps);
    problems_release(&ps);
    return good;
}

/* What was asked for takes the place of what there is; the name and the quota stay. */
static void put_in_place(struct api *a, struct project *p, const struct project *asked)
{
    set_str(&p->note, asked->note);
    set_str(&p->pool, asked->pool);
    strv_copy(&p->members, &asked->members);
    p->share = asked->share;
    p->priority_ceiling = asked->priority_ceiling;
    people_save_project(a->people, p);
}

static int check_new(const struct api *a, const struct project *asked, struct err *err)
{
    if (people_find_project(a->people, asked->name))
        return err_set(err, ERR_CONFLICT, "there is a project '%s' already", asked->name);
    if (people_count_projects(a->people) >= PEOPLE_PROJECTS_MAX)
        return err_set(err, ERR_REFUSED, "there are %d projects, and there cannot be more",
                       PEOPLE_PROJECTS_MAX);
    return check_members(a, NULL, asked, err);
}

static void add_project(struct http_req *req, struct api *a, const struct project *asked)
{
    struct project *p = people_add_project(a->people, asked->name, clock_wall());
    put_in_place(a, p, asked);
    _cleanup_(freep) char *object = xasprintf("project/%s", p->name);
    struct api_change change = {.kind = "project_added",
                                .object = object,
                                .text = "project made",
                                .after = api_project_text(p)};
    api_people_note(req, a, &change);
    answer_project(req, a, p, 201);
}

void api_project_add(struct http_req *req, void *app)
{
    struct api *a = app;
    struct access_thing thing = {.kind = "project", .name = "new"};
    struct project asked = {.note = xstrdup(""),
                            .pool = xstrdup(""),
                            .share = 1,
                            .priority_ceiling = PEOPLE_PRIORITY_MAX};
    struct err err = {0};
    if (api_people_may(req, a, ACCESS_PROJECT_CHANGE, "make", &thing, true) == 0 &&
        read_project(req, true, &asked)) {
        if (check_new(a, &asked, &err) == 0)
            add_project(req, a, &asked);
        else
            api_fail(req, &err, api_barrier(a));
    }
    project_release(&asked);
}

static void change_project(struct http_req *req,
                           struct api *a,
                           struct project *p,
                           const struct project *asked)
{
    _cleanup_(freep) char *object = xasprintf("project/%s", p->name);
    struct api_change change = {.kind = "project_changed",
                                .object = object,
                                .text = "project changed",
                                .before = api_project_text(p)};
    put_in_place(a, p, asked);
    change.after = api_project_text(p);
    api_people_note(req, a, &change);
    jobs_admit(a->jobs, clock_wall()); /* more share may be what somebody waited for */
    answer_project(req, a, p, 200);
}

void api_project_change(struct http_req *req, void *app)
{
    struct api *a = app;
    struct project *p = api_people_find_project(req, a, ACCESS_PROJECT_CHANGE, "change");
    struct project asked = {0};
    struct err err = {0};
    if (!p)
        return;
    project_copy(&asked, p);
    if (read_project(req, false, &asked)) {
        if (check_members(a, p, &asked, &err) == 0)
            change_project(req, a, p, &asked);
        else
            api_fail(req, &err, api_barrier(a));
    }
    project_release(&asked);
}

static int check_removable(const struct api *a, const struct project *p, struct err *err)
{
    size_t jobs = api_count_jobs(a, NULL, p->name);
    if (str_eq(p->name, ACCESS_DEFAULT_PROJECT))
        return err_set(err, ERR_CONFLICT, "project 'default' is always there");
    if (jobs)
        return err_set(err, ERR_CONFLICT, "'%s' has %zu job%s not over: stop what runs first",
                       p->name, jobs, jobs == 1 ? " that is" : "s that are");
    return 0;
}

void api_project_remove(struct http_req *req, void *app)
{
    struct api *a = app;
    struct project *p = api_people_find_project(req, a, ACCESS_PROJECT_CHANGE, "remove");
    struct err err = {0};
    if (!p)
        return;
    if (check_removable(a, p, &err) < 0) {
        api_fail(req, &err, api_barrier(a));
        return;
    }
    _cleanup_(freep) char *object = xasprintf("project/%s", p->name);
    struct api_change change = {.kind = "project_removed",
                                .object = object,
                                .text = "project removed, with its secrets and presets",
                                .before = api_project_text(p)};
    struct buf out = BUF_INIT(PROJECT_MAX_BYTES);
    struct jout j = jout_begin(&out);
    put_project(&j, a, p);
    secrets_remove_all(a->secrets, true, p->name);
    presets_remove_all(a->presets, p->name);
    people_remove_project(a->people, p);
    api_people_note(req, a, &change);
    http_reply_json(req, 200, &out, api_barrier(a));
    buf_release(&out);
}

/* ---- quotas ---- */

static void put_quota(struct jout *j,
                      const struct api *a,
                      enum sched_account kind,
                      const char *name,
                      const struct people_quota *q)
{
    jout_open(j, NULL, '{');
    jout_str(j, "kind", kind == SCHED_USER ? "user" : "project");
    jout_str(j, "name", name);
    api_put_account(j, a, kind, name, q);
    jout_close(j, '}');
}

static void answer_quota(struct http_req *req,
                         struct api *a,
                         enum sched_account kind,
                         const char *name,
                         const struct people_quota *q)
{
    struct buf out = BUF_INIT(PROJECT_MAX_BYTES);
    struct jout j = jout_begin(&out);
    put_quota(&j, a, kind, name, q);
    http_reply_json(req, 200, &out, api_barrier(a));
    buf_release(&out);
}

void api_project_quota_get(struct http_req *req, void *app)
{
    const struct project *p = find_seen(req, app);
    if (p)
        answer_quota(req, app, SCHED_PROJECT, p->name, &p->quota);
}

void api_user_quota_get(struct http_req *req, void *app)
{
    const struct person *p = api_people_find(req, app, ACCESS_USER_SEE, "see");
    if (p)
        answer_quota(req, app, SCHED_USER, p->name, &p->quota);
}

static bool read_quota(struct http_req *req, struct people_quota *q)
{
    struct problems ps = {0};
    size_t n;
    const char *body = http_req_body(req, &n);
    bool good = people_form_quota(body, n, q, &ps) == 0;
    if (!good)
        api_answer_problems(req, &ps);
    problems_release(&ps);
    return good;
}

/* Stored by the caller's save before this. */
static void note_quota(struct http_req *req,
                       struct api *a,
                       const char *kind,
                       const char *name,
                       const struct people_quota *before,
                       const struct people_quota *after)
{
    _cleanup_(freep) char *object = xasprintf("%s/%s", kind, name);
    struct api_change change = {.kind = "quota_changed",
                                .object = object,
                                .text = "quota changed",
                                .before = api_quota_text(before),
                                .after = api_quota_text(after)};
    api_people_note(req, a, &change);
    jobs_admit(a->jobs, clock_wall()); /* somebody may have waited for it */
}

void api_project_quota_put(struct http_req *req, void *app)
{
    struct api *a = app;
    struct project *p = api_people_find_project(req, a, ACCESS_PROJECT_CHANGE, "change");
    if (!p)
        return;
    struct people_quota before = p->quota;
    if (!read_quota(req, &p->quota))
        return;
    people_save_project(a->people, p);
    note_quota(req, a, "project", p->name, &before, &p->quota);
    answer_quota(req, a, SCHED_PROJECT, p->name, &p->quota);
}

void api_user_quota_put(struct http_req *req, void *app)
{
    struct api *a = app;
    struct person *p = api_people_find(req, a, ACCESS_USER_CHANGE, "change");
    if (!p)
        return;
    struct people_quota before = p->quota;
    if (!read_quota(req, &p->quota))
        return;
    people_save(a->people, p);
    note_quota(req, a, "user", p->name, &before, &p->quota);
    answer_quota(req, a, SCHED_USER, p->name, &p->quota);
}

void api_quotas(struct http_req *req, void *app)
{
    struct api *a = app;
    struct buf out = BUF_INIT(API_PEOPLE_LIST_MAX);
    struct jout j = jout_begin(&out);
    struct access_who who;
    const struct project *project;
    const struct person *p;
    people_who(a->people, http_req_principal(req), &who);
    jout_open(&j, NULL, '{');
    jout_open(&j, "quotas", '[');
    for (size_t pos = 0; (project = people_next_project(a->people, &pos));)
        if (sees(&who, project))
            put_quota(&j, a, SCHED_PROJECT, project->name, &project->quota);
    for (size_t pos = 0; (p = people_next(a->people, &pos));)
        if (who.sees_all || str_eq(who.user, p->name))
            put_quota(&j, a, SCHED_USER, p->name, &p->quota);
    jout_close(&j, ']');
    jout_close(&j, '}');
    http_reply_json(req, 200, &out, api_reader_barrier(a));
    buf_release(&out);
}
