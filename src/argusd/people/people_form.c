/* SPDX-License-Identifier: Apache-2.0 */
/* people_form.c - the tables of users, projects, quotas and requests for tokens; see
 * people_form.h. A new limit of a quota is one row of
 * core/job/quota.h, a member of struct people_quota, and what enforces it. */
#include "argusd/people/people_form.h"

#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "core/job/quota.h"
#include "core/spec/metric_alert.h"

enum { NOTE_MAX = 1000, EXPIRY_MAX_DAYS = 3650 };
enum { WHOLE = FIELD_STORED | FIELD_SHOWN | FIELD_ASKED };
#define DAYS 86400.0

/* ---- the members ---- */

const char *const people_role_names[] = {"none", "viewer", "user", "admin", NULL};

#define PERSON(key, ftype, ...)                                                                    \
    {                                                                                              \
        .name = #key, .type = ftype, .offset = offsetof(struct person, key), __VA_ARGS__           \
    }
static const struct field person_rows[] = {
    PERSON(name, FIELD_STR, .flags = WHOLE | FIELD_ALWAYS, .doc = "name of the user"),
    PERSON(role,
           FIELD_ENUM,
           .names = people_role_names,
           .flags = WHOLE,
           .dflt = "user",
           .doc = "the most that a token of this user may have: viewer, user or admin"),
    PERSON(disabled, FIELD_BOOL, .flags = WHOLE, .doc = "no token of this user opens anything"),
    PERSON(note,
           FIELD_STR,
           .flags = WHOLE | FIELD_ALWAYS,
           .dflt = "",
           .doc = "a note: who the user is"),
    PERSON(created_at, FIELD_TIME, .flags = FIELD_SHOWN),
};
const struct field_table person_table = {.name = "User",
                                         .rows = person_rows,
                                         .n = array_len(person_rows),
                                         .size = sizeof(struct person)};

#define PROJECT(key, ftype, ...)                                                                   \
    {                                                                                              \
        .name = #key, .type = ftype, .offset = offsetof(struct project, key), __VA_ARGS__          \
    }
static const struct field project_rows[] = {
    PROJECT(name, FIELD_STR, .flags = WHOLE | FIELD_ALWAYS, .doc = "name of the project"),
    PROJECT(note, FIELD_STR, .flags = WHOLE | FIELD_ALWAYS, .dflt = "", .doc = "what it is for"),
    PROJECT(pool,
            FIELD_STR,
            .flags = WHOLE | FIELD_ALWAYS,
            .dflt = "",
            .doc = "pool of jobs that name none; empty: any"),
    PROJECT(members, FIELD_STRV, .flags = WHOLE, .doc = "names of users"),
    PROJECT(share,
            FIELD_REAL,
            .flags = WHOLE,
            .dflt = "1",
            .min = 0.001,
            .max = 1000,
            .doc = "weight in fair share; 1 is normal"),
    PROJECT(priority_ceiling,
            FIELD_INT,
            .flags = WHOLE,
            .dflt = "100",
            .min = 0,
            .max = PEOPLE_PRIORITY_MAX,
            .doc = "the most that a job of it may ask for"),
    PROJECT(retention,
            FIELD_SPAN,
            .flags = WHOLE,
            .dflt = "0",
            .min = 0,
            .max = EXPIRY_MAX_DAYS * DAYS,
            .doc = "jobs that ended longer ago are archived by themselves; 0: never"),
    PROJECT(retention_checkpoints,
            FIELD_BOOL,
            .flags = WHOLE,
            .doc = "so are those that still have checkpoints; else these stay as they are"),
    PROJECT(alerts,
            FIELD_STRV,
            .flags = WHOLE,
            .doc = "of the metrics of each job that is submitted to it, beside the job's own: "
                   "\"actor/entropy < 0.1 for 10 steps\""),
    PROJECT(created_at, FIELD_TIME, .flags = FIELD_SHOWN),
};
const struct field_table project_table = {.name = "Project",
                                          .rows = project_rows,
                                          .n = array_len(project_rows),
                                          .size = sizeof(struct project)};

static const struct field project_form_rows[] = {
    {.name = "",
     .type = FIELD_INLINE,
     .offset = offsetof(struct project_form, p),
     .of = &project_table},
    {.name = "add",
     .type = FIELD_STRV,
     .offset = offsetof(struct project_form, add),
     .flags = FIELD_ASKED,
     .doc = "further members"},
    {.name = "remove",
     .type = FIELD_STRV,
     .offset = offsetof(struct project_form, remove),
     .flags = FIELD_ASKED,
     .doc = "members that go"},
};
const struct field_table project_form_table = {.name = "ProjectForm",
                                               .rows = project_form_rows,
                                               .n = array_len(project_form_rows),
                                               .size = sizeof(struct project_form)};

#define LIMIT(key, ftype, option, arg, title, used, words)                                         \
    {.name = #key,                                                                                 \
     .type = FIELD_##ftype,                                                                        \
     .offset = offsetof(struct people_quota, key),                                                 \
     .min = 0,                                                                                     \
     .max = QUOTA_##ftype##_MOST,                                                                  \
     .flags = WHOLE | FIELD_NO_LIMIT,                                                              \
     .doc = (words)},
static const struct field quota_rows[] = {QUOTA_LIMITS(LIMIT)};
const struct field_table people_quota_table = {.name = "Limits",
                                               .rows = quota_rows,
                                               .n = array_len(quota_rows),
                                               .size = sizeof(struct people_quota)};

#define TOKEN(key, ftype, ...)                                                                     \
    {                                                                                              \
        .name = #key, .type = ftype, .offset = offsetof(struct people_token_form, key),            \
        .flags = FIELD_ASKED, __VA_ARGS__                                                          \
    }
static const struct field token_rows[] = {
    TOKEN(name, FIELD_STR, .doc = "what it is for"),
    TOKEN(user, FIELD_STR, .doc = "whose; your own if not given"),
    TOKEN(role,
          FIELD_ENUM,
          .names = people_role_names,
          .doc = "viewer, user or admin; as much as you and the user may, if not given"),
    TOKEN(expires,
          FIELD_SPAN,
          .min = 60,
          .max = EXPIRY_MAX_DAYS * DAYS,
          .doc = "30d, 12h …; never if not given"),
};
const struct field_table people_token_form_table = {.name = "TokenForm",
                                                    .rows = token_rows,
                                                    .n = array_len(token_rows),
                                                    .size = sizeof(struct people_token_form)};

/* ---- checks ---- */

static void people_complain(struct problems *ps,
                            const char *field,
                            const char *code,
                            const struct message_arg *args)
{
    problems_add(ps, PROBLEM_ERROR, field, 0, 0, code, args);
}

static void people_check_name(const char *noun,
                              const char *old,
                              const char *name,
                              struct problems *ps)
{
    struct err err = {0};
    if (!old && !name)
        people_complain(ps, "name", "name_missing", MESSAGE_NO_ARGS);
    else if (!old && access_check_name(noun, name, &err) < 0)
        problems_add_err(ps, PROBLEM_ERROR, "name", 0, 0, &err);
    else if (old && !str_eq(old, name))
        problems_add(ps, PROBLEM_ERROR, "name", 0, 0, "never_renamed",
                     MESSAGE_ARGS(MESSAGE_STR("noun", noun)));
}

static void people_check_note(const char *note, struct problems *ps)
{
    if (strlen(note) > NOTE_MAX)
        problems_add(ps, PROBLEM_ERROR, "note", 0, 0, "note_long",
                     MESSAGE_ARGS(MESSAGE_NUM("most", NOTE_MAX)));
}

int people_check_person(const struct person *p, const char *old, struct problems *ps)
{
    people_check_name("user", old, p->name, ps);
    people_check_note(p->note, ps);
    if (p->role == HTTP_ROLE_NONE)
        problems_add(ps, PROBLEM_ERROR, "role", 0, 0, "bad_role", MESSAGE_NO_ARGS);
    if (!old && str_eq(p->name, "argusd"))
        people_complain(ps, "name", "name_argusd", MESSAGE_NO_ARGS);
    return ps->errors ? ERR_BAD_SPEC : 0;
}

void people_form_drop(struct strv *members, const char *name)
{
    struct strv kept = {0};
    for (size_t i = 0; i < members->n; i++)
        if (!str_eq(members->v[i], name))
            strv_add(&kept, members->v[i]);
    strv_release(members);
    *members = kept;
}

/* Each once; then those that come, without those that go. */
static void people_merge_members(struct project_form *f)
{
    struct strv all = {0};
    const struct strv *lists[] = {&f->p.members, &f->add};
    for (size_t l = 0; l < array_len(lists); l++)
        for (size_t i = 0; i < lists[l]->n; i++)
            if (!strv_has(&all, lists[l]->v[i]) && !strv_has(&f->remove, lists[l]->v[i]))
                strv_add(&all, lists[l]->v[i]);
    strv_release(&f->p.members);
    f->p.members = all;
}

static void people_check_alerts(const struct strv *alerts, struct problems *ps)
{
    if (alerts->n > METRIC_ALERTS_MAX)
        problems_add(ps, PROBLEM_ERROR, "alerts", 0, 0, "project_alerts_many",
                     MESSAGE_ARGS(MESSAGE_NUM("most", METRIC_ALERTS_MAX)));
    for (size_t i = 0; i < alerts->n && i < METRIC_ALERTS_MAX; i++) {
        struct metric_alert a = {0};
        struct err err = {0};
        if (metric_alert_parse(alerts->v[i], &a, &err) < 0)
            problems_add_err(ps, PROBLEM_ERROR, "alerts", 0, 0, &err);
        metric_alert_release(&a);
    }
}

int people_check_project(struct project_form *f, const char *old, struct problems *ps)
{
    const struct project *p = &f->p;
    people_merge_members(f);
    people_check_name("project", old, p->name, ps);
    people_check_note(p->note, ps);
    if (p->members.n > PEOPLE_MEMBERS_MAX)
        problems_add(ps, PROBLEM_ERROR, "members", 0, 0, "too_many_members",
                     MESSAGE_ARGS(MESSAGE_NUM("most", PEOPLE_MEMBERS_MAX)));
    people_check_alerts(&p->alerts, ps);
    if (strlen(p->pool) > NOTE_MAX || strpbrk(p->pool, " \t\n"))
        people_complain(ps, "pool", "bad_pool", MESSAGE_NO_ARGS);
    if (str_eq(p->name, ACCESS_DEFAULT_PROJECT) && p->members.n)
        people_complain(ps, "members", "default_members", MESSAGE_NO_ARGS);
    return ps->errors ? ERR_BAD_SPEC : 0;
}

int people_check_quota(const struct people_quota *q, struct problems *ps)
{
    if (q->gpus_ceiling >= 0 && q->gpus_guaranteed > q->gpus_ceiling)
        people_complain(ps, "gpus_guaranteed", "guarantee_above_ceiling", MESSAGE_NO_ARGS);
    return ps->errors ? ERR_BAD_SPEC : 0;
}

int people_check_token(const struct people_token_form *f, struct problems *ps)
{
    if (f->name && strlen(f->name) > ACCESS_NAME_MAX * 2)
        people_complain(ps, "name", "token_name_long", MESSAGE_NO_ARGS);
    if (f->name && str_has_control(f->name))
        people_complain(ps, "name", "name_control", MESSAGE_NO_ARGS);
    return ps->errors ? ERR_BAD_SPEC : 0;
}
