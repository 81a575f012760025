/* SPDX-License-Identifier: Apache-2.0 */
/* people.c - users, and what the nouns of people share. */
#include "argusd/api/people/people.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/kit/part.h"
#include "argusd/people/people_dirs.h"
#include "base/message.h"
#include "base/order/place.h"
#include "base/str.h"
#include "base/text.h"

/* ---- shared ---- */

#define USAGE(key, ftype, words)                                                                   \
    {                                                                                              \
        .name = #key, .type = (ftype), .offset = offsetof(struct api_usage, key),                  \
        .flags = FIELD_SHOWN, .doc = (words)                                                       \
    }
static const struct field usage_rows[] = {
    USAGE(gpus, FIELD_REAL, "GPUs held"),
    USAGE(gpus_borrowed, FIELD_REAL, "GPUs held above the guarantee"),
    USAGE(cpus, FIELD_REAL, "CPUs held"),
    USAGE(memory, FIELD_REAL, "GiB that running jobs state"),
    USAGE(running, FIELD_INT, "jobs that hold something"),
    USAGE(queued, FIELD_INT, "jobs that wait"),
    USAGE(storage, FIELD_REAL, "GiB of snapshots, data sets and models"),
    USAGE(gpu_hours_this_month, FIELD_REAL, "GPU-hours in this calendar month (UTC)"),
};
const struct field_table api_usage_table = {.name = "Usage",
                                            .rows = usage_rows,
                                            .n = array_len(usage_rows),
                                            .size = sizeof(struct api_usage)};
static const struct field account_rows[] = {
    {.name = "quota",
     .type = FIELD_OBJECT,
     .offset = offsetof(struct api_account, quota),
     .of = &people_quota_table,
     .flags = FIELD_SHOWN},
    {.name = "usage",
     .type = FIELD_OBJECT,
     .offset = offsetof(struct api_account, usage),
     .of = &api_usage_table,
     .flags = FIELD_SHOWN},
};
const struct field_table api_account_table = {.rows = account_rows,
                                              .n = array_len(account_rows),
                                              .size = sizeof(struct api_account)};

void api_fill_account(const struct api *a,
                      enum sched_account kind,
                      const char *name,
                      const struct people_quota *quota,
                      struct api_account *ret)
{
    struct sched_usage u;
    sched_usage(jobs_sched(a->jobs), kind, name, jobs_now(a->jobs), &u);
    uint64_t bytes = storage_used(&a->storage, kind == SCHED_USER ? name : NULL,
                                  kind == SCHED_USER ? NULL : name);
    ret->quota = *quota;
    ret->usage = (struct api_usage){.gpus = u.gpus,
                                    .gpus_borrowed = u.gpus_borrowed,
                                    .cpus = u.cpus,
                                    .memory = u.memory,
                                    .running = u.running,
                                    .queued = u.queued,
                                    .storage = (double)bytes / (double)(1ULL << 30),
                                    .gpu_hours_this_month = u.gpu_seconds_month / 3600};
}

size_t api_count_admins(const struct api *a, const char *without_user, const char *without_token)
{
    usec_t now = clock_wall();
    const struct token *k;
    size_t n = 0;
    for (size_t pos = 0; (k = tokens_next(a->tokens, &pos));) {
        const struct person *p = people_find(a->people, k->user);
        if (k->role == HTTP_ROLE_ADMIN && token_works(k, now) && p && !p->disabled &&
            p->role == HTTP_ROLE_ADMIN && !(without_user && str_eq(k->user, without_user)) &&
            !(without_token && str_eq(k->id, without_token)))
            n++;
    }
    return n;
}

size_t api_count_jobs(const struct api *a, const char *user, const char *project)
{
    const struct live *l;
    size_t n = 0;
    for (size_t pos = 0; (l = jobs_next(a->jobs, &pos));)
        n +=
            (!user || str_eq(l->job->user, user)) && (!project || str_eq(l->job->project, project));
    return n;
}

/* ---- the page of a user ---- */

struct user_page {
    struct person person; /* borrowed */
    struct strv projects;
    int64_t tokens; /* that work */
    usec_t last_use_at;
    struct api_account account;
};
#define PAGE(member) offsetof(struct user_page, member)
static const struct field user_rows[] = {
    {.name = "",
     .type = FIELD_INLINE,
     .offset = PAGE(person),
     .of = &person_table,
     .flags = FIELD_BORROWED},
    {.name = "projects",
     .type = FIELD_STRV,
     .offset = PAGE(projects),
     .flags = FIELD_SHOWN,
     .doc = "those that you may see too"},
    {.name = "tokens",
     .type = FIELD_INT,
     .offset = PAGE(tokens),
     .flags = FIELD_SHOWN,
     .doc = "tokens of the user that work"},
    {.name = "last_use_at",
     .type = FIELD_TIME,
     .offset = PAGE(last_use_at),
     .flags = FIELD_SHOWN,
     .doc = "when any token of the user was last used"},
    {.name = "", .type = FIELD_INLINE, .offset = PAGE(account), .of = &api_account_table},
};
static const struct field_table user_table = {.name = "User",
                                              .rows = user_rows,
                                              .n = array_len(user_rows),
                                              .size = sizeof(struct user_page)};

/* Every token in the order of its user's name. */
struct shelf {
    size_t n;
    const struct token *v[];
};

static int user_compare_tokens(const void *x, const void *y)
{
    const struct token *a = *(const struct token *const *)x, *b = *(const struct token *const *)y;
    return strcmp(a->user, b->user);
}

static int user_compare_token(const void *user, const void *element)
{
    const struct token *const *k = element;
    return strcmp(user, (*k)->user);
}

/* Made once a request. */
static const struct shelf *user_shelf(struct resource_ask *q)
{
    const struct tokens *all = q->a->tokens;
    struct shelf *s = q->own;
    const struct token *k;
    if (s)
        return s;
    q->own = s = xcalloc(1, sizeof(*s) + tokens_count(all) * sizeof(void *));
    for (size_t pos = 0; (k = tokens_next(all, &pos));)
        s->v[s->n++] = k;
    xsort(s->v, s->n, sizeof(void *), user_compare_tokens);
    return s;
}

static void user_fill_tokens(struct resource_ask *q, struct user_page *page)
{
    const struct shelf *s = user_shelf(q);
    const char *user = page->person.name;
    usec_t now = clock_wall();
    size_t i = place_of(user, s->v, s->n, sizeof(void *), user_compare_token);
    for (; i < s->n && str_eq(s->v[i]->user, user); i++) {
        page->tokens += token_works(s->v[i], now);
        if (s->v[i]->last_use_at > page->last_use_at)
            page->last_use_at = s->v[i]->last_use_at;
    }
}

static void user_fill(struct resource_ask *q, const void *x, void *out)
{
    struct user_page *page = out;
    page->person = *(const struct person *)x;
    const char *list = page->person.projects, *item;
    for (size_t n; (item = str_item(&list, &n));) {
        _cleanup_(freep) char *name = xstrndup(item, n);
        struct access_thing thing = {.kind = ACCESS_KIND_PROJECT, .name = name, .project = name};
        if (str_eq(q->who.user, page->person.name) ||
            access_check(&q->who, ACCESS_PROJECT_SEE, "see", &thing, NULL) == 0)
            strv_add(&page->projects, name);
    }
    user_fill_tokens(q, page);
    api_fill_account(q->a, SCHED_USER, page->person.name, &page->person.quota, &page->account);
}

/* ---- who there is ---- */

static const void *user_next(struct resource_ask *q, size_t *pos)
{
    return people_next(q->a->people, pos);
}

static const void *user_find(struct resource_ask *q, const void *asked)
{
    (void)asked;
    return people_find(q->a->people, q->name);
}

/* A project that both are in makes a user visible to another. */
void api_thing_of_person(struct resource_ask *q, const struct person *p, struct access_thing *ret)
{
    const char *list = p->projects, *item;
    ret->name = ret->owner = p->name;
    for (size_t n; !q->is_trail && !ret->project && (item = str_item(&list, &n));) {
        text_printf(q->word, "%.*s", (int)n, item);
        if (str_list_has(q->who.projects, q->word))
            ret->project = q->word;
    }
}

static void user_thing(struct resource_ask *q,
                       const void *x,
                       const void *asked,
                       struct access_thing *ret)
{
    (void)asked;
    if (x)
        api_thing_of_person(q, x, ret);
}

/* ---- changing ---- */

/* Somebody must be left who can change things here. */
static int user_check_admins(struct resource_ask *q, const struct person *p)
{
    if (p->role != HTTP_ROLE_ADMIN || api_count_admins(q->a, p->name, NULL) > 0)
        return 0;
    return message_refuse(&q->err, ERR_CONFLICT, "last_admin",
                          MESSAGE_ARGS(MESSAGE_STR("name", p->name)));
}

static int user_check_new(struct resource_ask *q, const char *name)
{
    q->field = "name";
    if (people_find(q->a->people, name))
        return message_refuse(&q->err, ERR_CONFLICT, "is_there",
                              MESSAGE_ARGS(MESSAGE_STR("noun", "user"), MESSAGE_STR("name", name)));
    if (people_count(q->a->people) >= PEOPLE_USERS_MAX)
        return message_refuse(&q->err, ERR_REFUSED, "too_many_users",
                              MESSAGE_ARGS(MESSAGE_NUM("most", PEOPLE_USERS_MAX)));
    return 0;
}

static int user_check(struct resource_ask *q, const void *old, void *asked)
{
    const struct person *p = asked, *was = old;
    int r = people_check_person(p, was ? was->name : NULL, &q->problems);
    if (r == 0 && !was)
        r = user_check_new(q, p->name);
    else if (r == 0 && (p->disabled || p->role != HTTP_ROLE_ADMIN))
        r = user_check_admins(q, was);
    return r;
}

static const void *user_write(struct resource_ask *q, const void *old, void *asked)
{
    struct api *a = q->a;
    const struct person *wanted = asked;
    struct person *p =
        old ? people_find(a->people, wanted->name)
            : people_add(a->people, wanted->name, (enum http_role)wanted->role, clock_wall());
    field_assign(&person_table, p, wanted, FIELD_ASKED);
    people_save(a->people, p);
    if (!old)
        people_dirs_make(a->loop, a->cluster, a->settings->shared_root, a->people, p);
    return p;
}

static int user_check_remove(struct resource_ask *q, const void *x)
{
    const struct person *p = x;
    size_t jobs = api_count_jobs(q->a, p->name, NULL);
    if (jobs)
        return message_refuse(
            &q->err, ERR_CONFLICT, "user_has_jobs",
            MESSAGE_ARGS(MESSAGE_STR("name", p->name), MESSAGE_NUM("jobs", jobs)));
    return user_check_admins(q, p);
}

static bool user_take_away(struct resource_ask *q, const void *x)
{
    struct person *p = people_find(q->a->people, ((const struct person *)x)->name);
    usec_t now = clock_wall();
    const struct token *k;
    for (size_t pos = 0; (k = tokens_next(q->a->tokens, &pos));)
        if (str_eq(k->user, p->name))
            tokens_revoke(q->a->tokens, k, now);
    secrets_remove_all(q->a->secrets, false, p->name);
    service_keys_remove_user(q->a->service_keys, p->name);
    people_remove(q->a->people, p);
    return true;
}

/* ---- the noun ---- */

static const struct resource user_noun = {
    .noun = "user",
    .kind = ACCESS_KIND_USER,
    .collection = "users",
    .param = "user",
    .page = &user_table,
    .trail = FIELD_STORED,
    .form = &person_table,
    .may_see = ACCESS_USER_SEE,
    .may_change = ACCESS_USER_CHANGE,
    .add = {"user_added", "make"},
    .change = {"user_changed", "change"},
    .remove = {"user_removed", "remove"},
    .next = user_next,
    .find = user_find,
    .thing = user_thing,
    .fill = user_fill,
    .check = user_check,
    .write = user_write,
    .check_remove = user_check_remove,
    .take_away = user_take_away,
};

static const struct http_route rows[] = {
    RESOURCE_LIST(&user_noun,
                  "/v1/users",
                  VIEWER,
                  "users: yourself and who shares a project with you, or all",
                  .reply_schema = "UserList"),
    RESOURCE_ADD(&user_noun,
                 "/v1/users",
                 ADMIN,
                 "make a user",
                 .max_body = RESOURCE_BODY_MAX,
                 .request_schema = "UserForm",
                 .reply_schema = "User"),
    RESOURCE_GET(&user_noun,
                 "/v1/users/{user}",
                 VIEWER,
                 "one user",
                 .reply_schema = "User",
                 .example = "alice"),
    RESOURCE_CHANGE(&user_noun,
                    "/v1/users/{user}",
                    ADMIN,
                    "change role, note, or disable",
                    .max_body = RESOURCE_BODY_MAX,
                    .request_schema = "UserForm",
                    .reply_schema = "User"),
    RESOURCE_REMOVE(&user_noun,
                    "/v1/users/{user}",
                    ADMIN,
                    "remove a user, with all tokens",
                    .reply_schema = "User"),
};
static const struct http_schema schemas[] = {
    {.name = "UserForm", .table = &person_table, .which = FIELD_ASKED, .is_form = true},
    {.name = "User", .table = &user_table, .which = FIELD_SHOWN},
    LIST_OF("UserList", "users", "User"),
    {.name = "Usage", .table = &api_usage_table, .which = FIELD_SHOWN},
};
const struct api_part part_people = {rows, array_len(rows), schemas, array_len(schemas)};
