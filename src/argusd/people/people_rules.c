/* SPDX-License-Identifier: Apache-2.0 */
/* people_rules.c - see people_rules.h. A job names no project, or the empty one, when it is of
 * "default" or from before there were projects. */
#include "argusd/people/people_rules.h"

#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"

static const char *project_of(const char *name)
{
    return name && *name ? name : ACCESS_DEFAULT_PROJECT;
}

struct access_thing people_job_thing(const struct job *job)
{
    return (struct access_thing){.kind = ACCESS_KIND_JOB,
                                 .name = job->id,
                                 .owner = job->user,
                                 .project = project_of(job->project)};
}

int people_check_job(const struct people *pp,
                     const struct http_principal *p,
                     enum access_action action,
                     const char *verb,
                     const struct job *job,
                     struct err *err)
{
    const struct access_thing thing = people_job_thing(job);
    struct access_who who;
    people_who(pp, p, &who);
    return access_check(&who, action, verb, &thing, err);
}

/* ---- submitting ---- */

static int check_project(const struct people *pp,
                         const struct http_principal *p,
                         const char *name,
                         struct err *err)
{
    struct access_who who;
    people_who(pp, p, &who);
    int r = access_check_name("project", name, err);
    if (r == 0 && !who.any_project && who.role == ACCESS_ADMIN && !people_find_project(pp, name))
        return message_refuse(err, ERR_BAD_SPEC, "no_such_project",
                              MESSAGE_ARGS(MESSAGE_STR("project", name)));
    if (r == 0)
        r = access_check_submit(&who, name, err);
    if (r != ERR_NOT_FOUND)
        return r;
    _cleanup_(freep) char *yours = xasprintf("default%s%s", *who.projects ? "," : "", who.projects);
    return message_refuse(err, ERR_BAD_SPEC, "no_such_project",
                          MESSAGE_ARGS(MESSAGE_STR("project", name), MESSAGE_STR("yours", yours)));
}

int people_check_priority(const struct people *pp,
                          const char *project,
                          int64_t priority,
                          struct err *err)
{
    const struct project *p = people_find_project(pp, project_of(project));
    if (!p || priority <= p->priority_ceiling)
        return 0;
    return message_refuse(err, ERR_REFUSED, "priority_ceiling",
                          MESSAGE_ARGS(MESSAGE_NUM("priority", priority),
                                       MESSAGE_NUM("limit", p->priority_ceiling),
                                       MESSAGE_STR("project", p->name)));
}

static void take_pool(const struct project *project, struct spec *spec)
{
    const char *list = project ? project->pool : NULL, *item;
    if (spec->pool.n)
        return;
    for (size_t n; (item = str_item(&list, &n));)
        strv_addf(&spec->pool, "%.*s", (int)n, item);
}

int people_check_submit(const struct people *pp,
                        const struct http_principal *p,
                        struct spec *spec,
                        const char **ret_field,
                        struct err *err)
{
    const char *name = project_of(spec->project);
    *ret_field = "project";
    int r = check_project(pp, p, name, err);
    if (r < 0)
        return r;
    const struct project *project = people_find_project(pp, name);
    *ret_field = "priority";
    r = people_check_priority(pp, name, spec->priority, err);
    if (r < 0)
        return r;
    take_pool(project, spec);
    if (!str_eq(spec->project, name))
        set_str(&spec->project, name);
    return 0;
}

/* ---- lists ---- */

static void read_projects(struct people_view *v, const char *list)
{
    const char *item;
    for (size_t n; (item = str_item(&list, &n));)
        strv_addf(&v->projects, "%.*s", (int)n, item);
    v->own.projects = (const char *const *)v->projects.v;
    v->own.nprojects = v->projects.n;
}

void people_view(const struct people *pp,
                 const struct http_principal *p,
                 enum people_wish wish,
                 struct people_view *ret)
{
    struct access_who who;
    people_who(pp, p, &who);
    *ret = (struct people_view){0};
    if (wish == PEOPLE_WISH_OWN || (wish == PEOPLE_WISH_USUAL && !who.sees_all))
        ret->user = p->user;
    if (who.sees_all)
        return;
    ret->own.user = p->user;
    read_projects(ret, who.projects);
    ret->scope = &ret->own;
}

void people_view_release(struct people_view *v)
{
    strv_release(&v->projects);
    *v = (struct people_view){0};
}

bool people_may_go_on(const struct people *pp,
                      const struct tokens *tokens,
                      const struct http_principal *p)
{
    const struct token *k = tokens_find(tokens, p->token_id);
    struct http_principal now = *p;
    return k && token_works(k, clock_wall()) && tokens_session_works(tokens, p, clock_wall()) &&
           people_admit(pp, &now) == 0 && now.role == p->role;
}

void people_sight(const struct people *pp, const struct http_principal *p, struct people_sight *ret)
{
    struct access_who who;
    people_who(pp, p, &who);
    *ret = (struct people_sight){0};
    if (access_sees_all_events(&who))
        return;
    ret->view.own.user = p->user;
    read_projects(&ret->view, who.projects);
    access_list_seen(ACCESS_OWN, who.role, ret->kinds[0]);
    access_list_seen(ACCESS_SHARED, who.role, ret->kinds[1]);
    access_list_seen(ACCESS_OTHER, who.role, ret->kinds[2]);
    ret->own = (struct store_event_scope){
        .who = &ret->view.own, .own = ret->kinds[0], .shared = ret->kinds[1], .any = ret->kinds[2]};
    ret->scope = &ret->own;
}

void people_sight_release(struct people_sight *s)
{
    people_view_release(&s->view);
    *s = (struct people_sight){0};
}
