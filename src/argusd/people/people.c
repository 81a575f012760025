/* SPDX-License-Identifier: Apache-2.0 */
/* people.c - the registry of people.h: two lists in the order of their names.
 *
 * A user is a row of the table of users, a project an entry of kind "project"; quotas are
 * entries of kind "quota", named "user/<name>" and "project/<name>". The texts inside are
 * people_form.c's. What follows from others (person.projects) is made anew on every change of
 * a project: that is as rare as it is cheap. */
#include "argusd/people/people.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/people/people_form.h"
#include "base/message.h"
#include "base/order/place.h"
#include "base/str.h"
#include "base/text.h"

struct people {
    struct store *store;
    struct sched *sched;
    struct person **persons; /* by name */
    size_t n_persons;
    struct project **projects; /* by name */
    size_t n_projects;
};

/* ---- values ---- */

static void person_free(struct person *p)
{
    field_release(&person_table, p);
    free(p->projects);
    free(p);
}

static void project_free(struct project *p)
{
    field_release(&project_table, p);
    free(p);
}

/* Nothing is limited. */
static struct people_quota people_no_quota(void)
{
    struct people_quota q = {0};
    field_clear_limits(&people_quota_table, &q);
    return q;
}

/* ---- the two lists ---- */

static int to_person(const void *name, const void *element)
{
    const struct person *const *p = element;
    return strcmp(name, (*p)->name);
}

static int to_project(const void *name, const void *element)
{
    const struct project *const *p = element;
    return strcmp(name, (*p)->name);
}

static size_t person_place(const struct people *pp, const char *name)
{
    return place_of(name, pp->persons, pp->n_persons, sizeof(struct person *), to_person);
}

static size_t project_place(const struct people *pp, const char *name)
{
    return place_of(name, pp->projects, pp->n_projects, sizeof(struct project *), to_project);
}

struct person *people_find(const struct people *pp, const char *name)
{
    size_t i = person_place(pp, name);
    return i < pp->n_persons && str_eq(pp->persons[i]->name, name) ? pp->persons[i] : NULL;
}

struct project *people_find_project(const struct people *pp, const char *name)
{
    size_t i = project_place(pp, name);
    return i < pp->n_projects && str_eq(pp->projects[i]->name, name) ? pp->projects[i] : NULL;
}

struct person *people_next(const struct people *pp, size_t *pos)
{
    return *pos < pp->n_persons ? pp->persons[(*pos)++] : NULL;
}

struct project *people_next_project(const struct people *pp, size_t *pos)
{
    return *pos < pp->n_projects ? pp->projects[(*pos)++] : NULL;
}

size_t people_count(const struct people *pp)
{
    return pp->n_persons;
}

size_t people_count_projects(const struct people *pp)
{
    return pp->n_projects;
}

/* Room for one more pointer at place i of n. */
static void *open_gap(void *list, size_t n, size_t i)
{
    void **v = xrealloc(list, n + 1, sizeof(void *));
    memmove(v + i + 1, v + i, (n - i) * sizeof(void *));
    return v;
}

static struct person *insert_person(struct people *pp, const char *name)
{
    struct person *p = xcalloc(1, sizeof(*p));
    size_t i = person_place(pp, name);
    *p = (struct person){.name = xstrdup(name),
                         .note = xstrdup(""),
                         .quota = people_no_quota(),
                         .projects = xstrdup("")};
    pp->persons = open_gap(pp->persons, pp->n_persons++, i);
    pp->persons[i] = p;
    return p;
}

static struct project *insert_project(struct people *pp, const char *name)
{
    struct project *p = xcalloc(1, sizeof(*p));
    size_t i = project_place(pp, name);
    *p = (struct project){.name = xstrdup(name),
                          .note = xstrdup(""),
                          .pool = xstrdup(""),
                          .share = 1,
                          .priority_ceiling = PEOPLE_PRIORITY_MAX,
                          .quota = people_no_quota()};
    pp->projects = open_gap(pp->projects, pp->n_projects++, i);
    pp->projects[i] = p;
    return p;
}

struct people *people_new(struct store *store)
{
    struct people *pp = xcalloc(1, sizeof(*pp));
    pp->store = store;
    (void)insert_project(pp, ACCESS_DEFAULT_PROJECT);
    return pp;
}

void people_free(struct people *pp)
{
    if (!pp)
        return;
    for (size_t i = 0; i < pp->n_persons; i++) {
        person_free(pp->persons[i]);
    }
    for (size_t i = 0; i < pp->n_projects; i++) {
        project_free(pp->projects[i]);
    }
    free(pp->persons);
    free(pp->projects);
    free(pp);
}

/* ---- what follows ---- */

static void people_join(struct people *pp, const char *user, const char *project)
{
    struct person *p = people_find(pp, user);
    if (!p)
        return;
    char *more = xasprintf("%s%s%s", p->projects, *p->projects ? "," : "", project);
    free(p->projects);
    p->projects = more;
}

static void recount(struct people *pp)
{
    for (size_t i = 0; i < pp->n_persons; i++)
        set_str(&pp->persons[i]->projects, "");
    for (size_t i = 0; i < pp->n_projects; i++)
        for (size_t k = 0; k < pp->projects[i]->members.n; k++)
            people_join(pp, pp->projects[i]->members.v[k], pp->projects[i]->name);
}

static bool has_quota(const struct people_quota *q)
{
    const struct people_quota none = people_no_quota();
    return !field_equal(&people_quota_table, q, &none, FIELD_STORED);
}

static void people_tell(const struct people *pp,
                        enum sched_account kind,
                        const char *name,
                        const struct people_quota *q,
                        double share,
                        int64_t priority_ceiling)
{
    struct sched_quota told = {.gpus_guaranteed = q->gpus_guaranteed > 0 ? q->gpus_guaranteed : 0,
                               .gpus_ceiling = q->gpus_ceiling,
                               .cpus = q->cpus,
                               .memory = q->memory,
                               .gpu_hours_per_month = q->gpu_hours_per_month,
                               .running = (int)q->running,
                               .queued = (int)q->queued,
                               .share = share,
                               .priority_ceiling = (int)priority_ceiling};
    bool says = has_quota(q) || share < 1 || share > 1 || priority_ceiling < PEOPLE_PRIORITY_MAX;
    if (pp->sched)
        sched_set_quota(pp->sched, kind, name, says ? &told : NULL);
}

static void tell_person(const struct people *pp, const struct person *p)
{
    people_tell(pp, SCHED_USER, p->name, &p->quota, 1, PEOPLE_PRIORITY_MAX);
}

static void tell_project(const struct people *pp, const struct project *p)
{
    people_tell(pp, SCHED_PROJECT, p->name, &p->quota, p->share, p->priority_ceiling);
}

void people_set_sched(struct people *pp, struct sched *sched)
{
    pp->sched = sched;
    for (size_t i = 0; i < pp->n_persons; i++)
        tell_person(pp, pp->persons[i]);
    for (size_t i = 0; i < pp->n_projects; i++)
        tell_project(pp, pp->projects[i]);
}

/* ---- storing ---- */

static void save_quota(const struct people *pp,
                       const char *kind,
                       const char *name,
                       const struct people_quota *q)
{
    _cleanup_(freep) char *key = xasprintf("%s/%s", kind, name);
    _cleanup_(freep) char *body = field_to_text(&people_quota_table, q, FIELD_STORED, FIELD_ROW);
    struct store_entry entry = {.kind = PEOPLE_ENTRY_QUOTA, .name = key, .body = body};
    if (has_quota(q))
        store_put_entry(pp->store, &entry);
    else
        store_remove_entry(pp->store, PEOPLE_ENTRY_QUOTA, key);
}

struct person *people_add(struct people *pp, const char *name, enum http_role role, usec_t now)
{
    struct person *p = insert_person(pp, name);
    p->role = (int)role;
    p->created_at = now;
    recount(pp);
    return p;
}

void people_save(struct people *pp, const struct person *p)
{
    _cleanup_(freep) char *detail = field_to_text(&person_table, p, FIELD_STORED, FIELD_ROW);
    struct store_user row = {.name = p->name,
                             .role = http_role_to_string((enum http_role)p->role),
                             .created_at = p->created_at,
                             .detail = detail};
    store_put_user(pp->store, &row);
    save_quota(pp, "user", p->name, &p->quota);
    tell_person(pp, p);
}

struct project *people_add_project(struct people *pp, const char *name, usec_t now)
{
    struct project *p = insert_project(pp, name);
    p->created_at = now;
    return p;
}

static void store_project(const struct people *pp, const struct project *p)
{
    _cleanup_(freep) char *body = field_to_text(&project_table, p, FIELD_STORED, FIELD_ROW);
    struct store_entry entry = {
        .kind = PEOPLE_ENTRY_PROJECT, .name = p->name, .body = body, .at = p->created_at};
    store_put_entry(pp->store, &entry);
}

void people_save_project(struct people *pp, const struct project *p)
{
    store_project(pp, p);
    save_quota(pp, PEOPLE_ENTRY_PROJECT, p->name, &p->quota);
    tell_project(pp, p);
    recount(pp);
}

static void leave(struct people *pp, const char *user)
{
    for (size_t i = 0; i < pp->n_projects; i++) {
        struct project *p = pp->projects[i];
        if (strv_has(&p->members, user)) {
            people_form_drop(&p->members, user);
            store_project(pp, p);
        }
    }
}

void people_remove(struct people *pp, struct person *p)
{
    size_t i = person_place(pp, p->name);
    leave(pp, p->name);
    const struct people_quota none = people_no_quota();
    save_quota(pp, "user", p->name, &none);
    store_remove_user(pp->store, p->name);
    if (pp->sched)
        sched_set_quota(pp->sched, SCHED_USER, p->name, NULL);
    memmove(pp->persons + i, pp->persons + i + 1, (--pp->n_persons - i) * sizeof(void *));
    person_free(p);
    recount(pp);
}

void people_remove_project(struct people *pp, struct project *p)
{
    size_t i = project_place(pp, p->name);
    const struct people_quota none = people_no_quota();
    save_quota(pp, PEOPLE_ENTRY_PROJECT, p->name, &none);
    store_remove_entry(pp->store, PEOPLE_ENTRY_PROJECT, p->name);
    if (pp->sched)
        sched_set_quota(pp->sched, SCHED_PROJECT, p->name, NULL);
    memmove(pp->projects + i, pp->projects + i + 1, (--pp->n_projects - i) * sizeof(void *));
    project_free(p);
    recount(pp);
}

/* ---- at start ---- */

void people_restore_user(struct people *pp, const struct store_user *row)
{
    enum http_role role = HTTP_ROLE_NONE;
    struct person *p = people_find(pp, row->name);
    if (!p)
        p = insert_person(pp, row->name);
    field_from_text(&person_table, row->detail, FIELD_STORED, p);
    set_str(&p->name, row->name);
    /* A role that we do not know may do nothing. */
    if (http_role_from_string(str_or(row->role, ""), &role, NULL) < 0)
        role = HTTP_ROLE_NONE;
    p->role = (int)role;
    p->created_at = row->created_at;
}

static void restore_project(struct people *pp, const struct store_entry *entry)
{
    struct project *p = people_find_project(pp, entry->name);
    if (!p)
        p = insert_project(pp, entry->name);
    field_from_text(&project_table, entry->body, FIELD_STORED, p);
    set_str(&p->name, entry->name);
    p->created_at = entry->at;
}

/* They come after what they are of. */
static void restore_quota(struct people *pp, const struct store_entry *entry)
{
    const char *name = str_or(strchr(entry->name, '/'), "/") + 1;
    struct person *user = str_starts(entry->name, "user/") ? people_find(pp, name) : NULL;
    struct project *project =
        str_starts(entry->name, "project/") ? people_find_project(pp, name) : NULL;
    if (user)
        field_from_text(&people_quota_table, entry->body, FIELD_STORED, &user->quota);
    else if (project)
        field_from_text(&people_quota_table, entry->body, FIELD_STORED, &project->quota);
}

void people_restore_entry(struct people *pp, const struct store_entry *entry)
{
    if (!strcmp(entry->kind, PEOPLE_ENTRY_PROJECT))
        restore_project(pp, entry);
    else
        restore_quota(pp, entry);
}

void people_imply_user(struct people *pp, const struct store_token *row)
{
    enum http_role role = HTTP_ROLE_NONE;
    struct person *p = row->user ? people_find(pp, row->user) : NULL;
    if (!row->user || row->revoked_at || (p && !p->implied))
        return;
    if (!p)
        p = insert_person(pp, row->user);
    p->implied = true;
    if (!p->created_at || row->created_at < p->created_at)
        p->created_at = row->created_at;
    if (http_role_from_string(str_or(row->role, ""), &role, NULL) == 0 && (int)role > p->role)
        p->role = (int)role;
}

void people_restored(struct people *pp)
{
    for (size_t i = 0; i < pp->n_persons; i++)
        if (pp->persons[i]->implied) {
            pp->persons[i]->implied = false;
            people_save(pp, pp->persons[i]);
        }
    recount(pp);
}

/* ---- who asks ---- */

int people_admit(const struct people *pp, struct http_principal *p)
{
    const struct person *who = people_find(pp, p->user);
    if (!who || who->disabled)
        return http_principal_refuse(p, who ? "you_are_disabled" : "you_are_unknown",
                                     MESSAGE_ARGS(MESSAGE_STR("name", p->user)));
    if ((int)p->role > who->role)
        p->role = (enum http_role)who->role;
    return 0;
}

int people_admit_absent(const struct people *pp,
                        const char *user,
                        struct http_principal *ret,
                        struct err *err)
{
    *ret = (struct http_principal){.role = HTTP_ROLE_USER};
    text_copy(ret->user, user);
    return people_admit(pp, ret) < 0
               ? message_refuse_text(err, ERR_REFUSED, ret->why_not, ret->why_args)
               : 0;
}

void people_who(const struct people *pp, const struct http_principal *p, struct access_who *ret)
{
    static_assert((int)ACCESS_ADMIN == (int)HTTP_ROLE_ADMIN, "the same roles");
    const struct person *who = people_find(pp, p->user);
    int role = who ? who->role : HTTP_ROLE_NONE;
    *ret = (struct access_who){.user = p->user,
                               .role = (enum access_role)p->role,
                               .sees_all = role == HTTP_ROLE_ADMIN || role == HTTP_ROLE_VIEWER,
                               .any_project = pp->n_projects == 1,
                               .projects = who ? who->projects : ""};
}
