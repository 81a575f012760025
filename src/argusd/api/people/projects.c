/* SPDX-License-Identifier: Apache-2.0 */
/* projects.c - projects: who is a member, and what their jobs may ask for. */
#include "argusd/api/people/people.h"

#include <string.h>

#include "argusd/kit/part.h"
#include "base/message.h"
#include "base/str.h"

struct project_page {
    struct project project; /* borrowed */
    struct api_account account;
};
static const struct field page_rows[] = {
    {.name = "",
     .type = FIELD_INLINE,
     .offset = offsetof(struct project_page, project),
     .of = &project_table,
     .flags = FIELD_BORROWED},
    {.name = "",
     .type = FIELD_INLINE,
     .offset = offsetof(struct project_page, account),
     .of = &api_account_table},
};
static const struct field_table page_table = {.name = "Project",
                                              .rows = page_rows,
                                              .n = array_len(page_rows),
                                              .size = sizeof(struct project_page)};

static void project_fill(struct resource_ask *q, const void *x, void *out)
{
    struct project_page *page = out;
    page->project = *(const struct project *)x;
    api_fill_account(q->a, SCHED_PROJECT, page->project.name, &page->project.quota, &page->account);
}

/* ---- which there are ---- */

static const void *project_next(struct resource_ask *q, size_t *pos)
{
    return people_next_project(q->a->people, pos);
}

static const void *project_find(struct resource_ask *q, const void *asked)
{
    (void)asked;
    return people_find_project(q->a->people, q->name);
}

static void project_thing(struct resource_ask *q,
                          const void *x,
                          const void *asked,
                          struct access_thing *ret)
{
    const struct project *p = x;
    (void)q;
    (void)asked;
    if (p)
        ret->name = ret->project = p->name;
}

int api_may_project(struct resource_ask *q,
                    enum access_action action,
                    const char *verb,
                    const struct project *p)
{
    struct access_thing thing = {.kind = ACCESS_KIND_PROJECT, .name = p->name, .project = p->name};
    if (action == ACCESS_PROJECT_SEE && str_eq(p->name, ACCESS_DEFAULT_PROJECT))
        return 0;
    return access_check(&q->who, action, verb, &thing, &q->err);
}

static int project_may(struct resource_ask *q,
                       enum access_action action,
                       const char *verb,
                       const void *x)
{
    return api_may_project(q, action, verb, x);
}

/* ---- changing ---- */

/* Members are users, and none of them is in too many projects. */
static int project_check_members(struct resource_ask *q,
                                 const struct project *old,
                                 const struct project *asked)
{
    for (size_t i = 0; i < asked->members.n; i++) {
        const char *name = asked->members.v[i];
        const struct person *p = people_find(q->a->people, name);
        if (!p)
            return message_refuse(&q->err, ERR_BAD_SPEC, "no_such_user",
                                  MESSAGE_ARGS(MESSAGE_STR("name", name)));
        size_t n = *p->projects != 0;
        for (const char *s = p->projects; *s; s++)
            n += *s == ',';
        if (n >= PEOPLE_PROJECTS_OF_USER_MAX && !(old && strv_has(&old->members, name)))
            return message_refuse(
                &q->err, ERR_REFUSED, "user_in_many_projects",
                MESSAGE_ARGS(MESSAGE_STR("name", name), MESSAGE_NUM("projects", n)));
    }
    return 0;
}

static int project_check(struct resource_ask *q, const void *old, void *asked)
{
    const struct project *was = old;
    struct project_form *f = asked;
    int r = people_check_project(f, was ? was->name : NULL, &q->problems);
    if (r < 0)
        return r;
    if (!was && people_find_project(q->a->people, f->p.name))
        return message_refuse(
            &q->err, ERR_CONFLICT, "is_there",
            MESSAGE_ARGS(MESSAGE_STR("noun", "project"), MESSAGE_STR("name", f->p.name)));
    if (!was && people_count_projects(q->a->people) >= PEOPLE_PROJECTS_MAX)
        return message_refuse(&q->err, ERR_REFUSED, "too_many_projects",
                              MESSAGE_ARGS(MESSAGE_NUM("most", PEOPLE_PROJECTS_MAX)));
    return project_check_members(q, was, &f->p);
}

static const void *project_write(struct resource_ask *q, const void *old, void *asked)
{
    struct people *pp = q->a->people;
    const struct project *wanted = asked;
    struct project *p = old ? people_find_project(pp, wanted->name)
                            : people_add_project(pp, wanted->name, clock_wall());
    field_assign(&project_table, p, wanted, FIELD_ASKED);
    people_save_project(pp, p);
    return p;
}

/* More share may be what a job waited for. */
static void project_after(struct resource_ask *q, const void *x)
{
    (void)x;
    jobs_admit(q->a->jobs, clock_wall());
}

static int project_check_remove(struct resource_ask *q, const void *x)
{
    const struct project *p = x;
    size_t jobs = api_count_jobs(q->a, NULL, p->name);
    if (str_eq(p->name, ACCESS_DEFAULT_PROJECT))
        return message_refuse(&q->err, ERR_CONFLICT, "default_project_stays", MESSAGE_NO_ARGS);
    if (jobs)
        return message_refuse(
            &q->err, ERR_CONFLICT, "project_has_jobs",
            MESSAGE_ARGS(MESSAGE_STR("name", p->name), MESSAGE_NUM("jobs", jobs)));
    return 0;
}

static bool project_take_away(struct resource_ask *q, const void *x)
{
    struct project *p = people_find_project(q->a->people, ((const struct project *)x)->name);
    secrets_remove_all(q->a->secrets, true, p->name);
    presets_remove_all(q->a->presets, p->name);
    people_remove_project(q->a->people, p);
    return true;
}

/* ---- the noun ---- */

static const struct resource project_noun = {
    .noun = "project",
    .kind = ACCESS_KIND_PROJECT,
    .collection = "projects",
    .param = "project",
    .page = &page_table,
    .trail = FIELD_STORED,
    .form = &project_form_table,
    .may_see = ACCESS_PROJECT_SEE,
    .may_change = ACCESS_PROJECT_CHANGE,
    .add = {"project_added", "make"},
    .change = {"project_changed", "change"},
    .remove = {"project_removed", "remove"},
    .next = project_next,
    .find = project_find,
    .thing = project_thing,
    .may = project_may,
    .fill = project_fill,
    .check = project_check,
    .write = project_write,
    .after = project_after,
    .check_remove = project_check_remove,
    .take_away = project_take_away,
};

static const struct http_route rows[] = {
    RESOURCE_LIST(&project_noun,
                  "/v1/projects",
                  VIEWER,
                  "projects: default and your own, or all",
                  .reply_schema = "ProjectList"),
    RESOURCE_ADD(&project_noun,
                 "/v1/projects",
                 ADMIN,
                 "make a project",
                 .max_body = RESOURCE_BODY_MAX,
                 .request_schema = "ProjectForm",
                 .reply_schema = "Project"),
    RESOURCE_GET(&project_noun,
                 "/v1/projects/{project}",
                 VIEWER,
                 "one project",
                 .reply_schema = "Project",
                 .example = "rlhf"),
    RESOURCE_CHANGE(&project_noun,
                    "/v1/projects/{project}",
                    ADMIN,
                    "change members, pool, share, priority ceiling or note",
                    .max_body = RESOURCE_BODY_MAX,
                    .request_schema = "ProjectForm",
                    .reply_schema = "Project"),
    RESOURCE_REMOVE(&project_noun,
                    "/v1/projects/{project}",
                    ADMIN,
                    "remove a project that has no live jobs",
                    .reply_schema = "Project"),
};
static const struct http_schema schemas[] = {
    {.name = "ProjectForm", .table = &project_form_table, .which = FIELD_ASKED, .is_form = true},
    {.name = "Project", .table = &page_table, .which = FIELD_SHOWN},
    LIST_OF("ProjectList", "projects", "Project"),
};
const struct api_part part_projects = {rows, array_len(rows), schemas, array_len(schemas)};
