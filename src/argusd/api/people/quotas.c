/* SPDX-License-Identifier: Apache-2.0 */
/* quotas.c - what a user or a project may hold, and holds. A PUT is the whole quota: what is not
 * given is no limit. */
#include <string.h>

#include "argusd/api/people/people.h"
#include "argusd/kit/part.h"
#include "base/str.h"

/* What the request is about; all borrowed. */
struct account {
    enum sched_account kind;
    const char *name;
    struct people_quota *quota;
    const struct person *person;   /* of a user */
    const struct project *project; /* of a project */
};

struct quota_page {
    int kind;   /* enum sched_account */
    char *name; /* borrowed */
    struct api_account account;
};
static const char *const kind_names[] = {[SCHED_PROJECT] = "project", [SCHED_USER] = "user", NULL};
#define PAGE(member) offsetof(struct quota_page, member)
static const struct field page_rows[] = {
    {.name = "kind",
     .type = FIELD_ENUM,
     .offset = PAGE(kind),
     .names = kind_names,
     .flags = FIELD_SHOWN},
    {.name = "name",
     .type = FIELD_STR,
     .offset = PAGE(name),
     .flags = FIELD_SHOWN | FIELD_BORROWED | FIELD_ALWAYS},
    {.name = "", .type = FIELD_INLINE, .offset = PAGE(account), .of = &api_account_table},
};
static const struct field_table page_table = {.name = "Quota",
                                              .rows = page_rows,
                                              .n = array_len(page_rows),
                                              .size = sizeof(struct quota_page)};

static void quota_fill(struct resource_ask *q, const void *x, void *out)
{
    const struct account *k = x;
    struct quota_page *page = out;
    *page = (struct quota_page){.kind = (int)k->kind, .name = (char *)(uintptr_t)k->name};
    api_fill_account(q->a, k->kind, k->name, k->quota, &page->account);
}

static char *quota_tell(const void *x)
{
    const struct account *k = x;
    return field_to_text(&people_quota_table, k->quota, FIELD_STORED, FIELD_PAGE);
}

/* ---- whose ---- */

static struct account quota_of_person(struct person *p)
{
    return (struct account){.kind = SCHED_USER, .name = p->name, .quota = &p->quota, .person = p};
}

static struct account quota_of_project(struct project *p)
{
    return (struct account){
        .kind = SCHED_PROJECT, .name = p->name, .quota = &p->quota, .project = p};
}

/* All accounts of projects, then of users, made once a request. */
static const void *quota_next(struct resource_ask *q, size_t *pos)
{
    struct people *pp = q->a->people;
    size_t n = 0, all = people_count_projects(pp) + people_count(pp);
    struct account *v = q->own;
    struct project *project;
    struct person *p;
    if (!v) {
        q->own = v = xcalloc(all, sizeof(*v));
        for (size_t i = 0; (project = people_next_project(pp, &i));)
            v[n++] = quota_of_project(project);
        for (size_t i = 0; (p = people_next(pp, &i));)
            v[n++] = quota_of_person(p);
    }
    return *pos < all ? &v[(*pos)++] : NULL;
}

static const void *quota_find_person(struct resource_ask *q, const void *asked)
{
    struct person *p = people_find(q->a->people, q->name);
    struct account *k = q->own = xcalloc(1, sizeof(*k));
    (void)asked;
    if (p)
        *k = quota_of_person(p);
    return p ? k : NULL;
}

static const void *quota_find_project(struct resource_ask *q, const void *asked)
{
    struct project *p = people_find_project(q->a->people, q->name);
    struct account *k = q->own = xcalloc(1, sizeof(*k));
    (void)asked;
    if (p)
        *k = quota_of_project(p);
    return p ? k : NULL;
}

static void quota_thing(struct resource_ask *q,
                        const void *x,
                        const void *asked,
                        struct access_thing *ret)
{
    const struct account *k = x;
    (void)asked;
    if (k->person)
        api_thing_of_person(q, k->person, ret);
    else
        ret->name = ret->project = k->name;
}

static int quota_may_project(struct resource_ask *q,
                             enum access_action action,
                             const char *verb,
                             const void *x)
{
    const struct account *k = x;
    return api_may_project(q, action, verb, k->project);
}

/* In the list are those of projects that may be seen, and one's own, or all. */
static int quota_may_list(struct resource_ask *q,
                          enum access_action action,
                          const char *verb,
                          const void *x)
{
    const struct account *k = x;
    if (k->project)
        return api_may_project(q, action, verb, k->project);
    return q->who.sees_all || str_eq(q->who.user, k->name) ? 0 : ERR_NOT_FOUND;
}

/* ---- changing ---- */

static int quota_check(struct resource_ask *q, const void *old, void *asked)
{
    (void)old;
    return people_check_quota(asked, &q->problems);
}

static const void *quota_write(struct resource_ask *q, const void *old, void *asked)
{
    const struct account *k = old;
    *k->quota = *(const struct people_quota *)asked;
    if (k->person)
        people_save(q->a->people, k->person);
    else
        people_save_project(q->a->people, k->project);
    return k;
}

/* A job may have waited for it. */
static void quota_after(struct resource_ask *q, const void *x)
{
    (void)x;
    jobs_admit(q->a->jobs, clock_wall());
}

/* ---- the nouns ---- */

#define QUOTA_OF(word, of, see, changes)                                                           \
    .noun = (word), .param = (word), .kind = (of), .page = &page_table,                            \
    .form = &people_quota_table, .may_see = (see), .may_change = (changes),                        \
    .change = {"quota_changed", "change"}, .thing = quota_thing, .fill = quota_fill,               \
    .tell = quota_tell, .check = quota_check, .write = quota_write, .after = quota_after
static const struct resource of_user = {
    QUOTA_OF("user", ACCESS_KIND_USER, ACCESS_USER_SEE, ACCESS_USER_CHANGE),
    .find = quota_find_person};
static const struct resource of_project = {
    QUOTA_OF("project", ACCESS_KIND_PROJECT, ACCESS_PROJECT_SEE, ACCESS_PROJECT_CHANGE),
    .find = quota_find_project, .may = quota_may_project};
static const struct resource quota_noun = {.noun = "quota",
                                           .collection = "quotas",
                                           .page = &page_table,
                                           .may_see = ACCESS_PROJECT_SEE,
                                           .next = quota_next,
                                           .may = quota_may_list,
                                           .fill = quota_fill};

static const struct http_route rows[] = {
    RESOURCE_GET(&of_user,
                 "/v1/users/{user}/quota",
                 VIEWER,
                 "what a user may hold, and holds",
                 .reply_schema = "Quota"),
    RESOURCE_PUT(&of_user,
                 "/v1/users/{user}/quota",
                 ADMIN,
                 "set what a user may hold; a limit that the body leaves out is lifted",
                 .max_body = RESOURCE_BODY_MAX,
                 .request_schema = "QuotaForm",
                 .reply_schema = "Quota"),
    RESOURCE_GET(&of_project,
                 "/v1/projects/{project}/quota",
                 VIEWER,
                 "what a project may hold, and holds",
                 .reply_schema = "Quota"),
    RESOURCE_PUT(&of_project,
                 "/v1/projects/{project}/quota",
                 ADMIN,
                 "set what a project may hold; a limit that the body leaves out is lifted",
                 .max_body = RESOURCE_BODY_MAX,
                 .request_schema = "QuotaForm",
                 .reply_schema = "Quota"),
    RESOURCE_LIST(&quota_noun,
                  "/v1/quotas",
                  VIEWER,
                  "quotas and use of all projects and users that you may see",
                  .reply_schema = "QuotaList"),
};
static const struct http_schema schemas[] = {
    {.name = "Limits", .table = &people_quota_table, .which = FIELD_SHOWN},
    {.name = "QuotaForm", .table = &people_quota_table, .which = FIELD_ASKED, .is_form = true},
    {.name = "Quota", .table = &page_table, .which = FIELD_SHOWN},
    LIST_OF("QuotaList", "quotas", "Quota"),
};
const struct api_part part_quotas = {rows, array_len(rows), schemas, array_len(schemas)};
