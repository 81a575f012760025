/* SPDX-License-Identifier: Apache-2.0 */
/* people_form.c - the tables of keys; see people_form.h.
 *
 * conf_read() fills only what is given, so reading a body into a copy of the object is the
 * change that was asked for, and reading into a fresh one is making it. */
#include "argusd/people_form.h"

#include <stdlib.h>
#include <string.h>

#include "base/conf.h"
#include "base/str.h"

enum { NOTE_MAX = 1000, GPUS_MAX = 1000000, JOBS_MAX = 1000000, EXPIRY_MAX_DAYS = 3650 };
#define DAYS 86400.0

/* ---- the keys ---- */

static const char *const role_names[] = {"none", "viewer", "user", "admin", NULL};

#define PERSON(member) offsetof(struct person, member)
static const struct conf_key person_keys[] = {
    {.name = "name", .type = CONF_STR, .offset = PERSON(name), .doc = "of the user"},
    {.name = "role",
     .type = CONF_ENUM,
     .offset = PERSON(role),
     .names = role_names,
     .doc = "the most that a token of his may have: viewer, user or admin"},
    {.name = "disabled",
     .type = CONF_BOOL,
     .offset = PERSON(disabled),
     .doc = "his tokens open nothing"},
    {.name = "note", .type = CONF_STR, .offset = PERSON(note), .doc = "who that is"},
};

struct project_form {
    struct project p;
    struct strv add, remove;
};
#define PROJECT(member) offsetof(struct project_form, member)
static const struct conf_key project_keys[] = {
    {.name = "name", .type = CONF_STR, .offset = PROJECT(p.name), .doc = "of the project"},
    {.name = "note", .type = CONF_STR, .offset = PROJECT(p.note), .doc = "what it is for"},
    {.name = "pool",
     .type = CONF_STR,
     .offset = PROJECT(p.pool),
     .doc = "of jobs that name none; empty: any"},
    {.name = "members", .type = CONF_STRV, .offset = PROJECT(p.members), .doc = "names of users"},
    {.name = "share",
     .type = CONF_REAL,
     .offset = PROJECT(p.share),
     .min = 0.001,
     .max = 1000,
     .doc = "weight in fair share; 1 is normal"},
    {.name = "priority_ceiling",
     .type = CONF_INT,
     .offset = PROJECT(p.priority_ceiling),
     .min = 0,
     .max = PEOPLE_PRIORITY_MAX,
     .doc = "the most that a job of it may ask for"},
    {.name = "add", .type = CONF_STRV, .offset = PROJECT(add), .doc = "further members"},
    {.name = "remove", .type = CONF_STRV, .offset = PROJECT(remove), .doc = "members that go"},
};

#define QUOTA(member) offsetof(struct people_quota, member)
#define QUOTA_REAL(member, text)                                                                   \
    {                                                                                              \
        .name = #member, .type = CONF_REAL, .offset = QUOTA(member), .min = 0, .max = GPUS_MAX,    \
        .doc = (text)                                                                              \
    }
#define QUOTA_INT(member, text)                                                                    \
    {                                                                                              \
        .name = #member, .type = CONF_INT, .offset = QUOTA(member), .min = 0, .max = JOBS_MAX,     \
        .doc = (text)                                                                              \
    }
static const struct conf_key quota_keys[] = {
    QUOTA_REAL(gpus_guaranteed, "GPUs that others give back when it asks for them"),
    QUOTA_REAL(gpus_ceiling, "GPUs at most, borrowed ones too"),
    QUOTA_REAL(cpus, "CPUs at most"),
    QUOTA_REAL(memory, "GiB of memory at most, of what jobs state (memory_per_node)"),
    QUOTA_REAL(checkpoints, "GiB of checkpoints at most"),
    QUOTA_REAL(storage, "GiB at most of snapshots, data sets and models"),
    QUOTA_INT(running, "jobs at most that hold GPUs or CPUs"),
    QUOTA_INT(queued, "jobs at most that wait"),
    QUOTA_REAL(gpu_hours_per_month, "GPU-hours at most in a calendar month (UTC)"),
};

#define TOKEN(member) offsetof(struct people_token_form, member)
static const struct conf_key token_keys[] = {
    {.name = "name", .type = CONF_STR, .offset = TOKEN(name), .doc = "what it is for"},
    {.name = "user",
     .type = CONF_STR,
     .offset = TOKEN(user),
     .doc = "whose; your own if not given"},
    {.name = "role",
     .type = CONF_ENUM,
     .offset = TOKEN(role),
     .names = role_names,
     .doc = "viewer, user or admin; as much as he who asks may, if not given"},
    {.name = "expires",
     .type = CONF_SPAN,
     .offset = TOKEN(expires),
     .min = 60,
     .max = EXPIRY_MAX_DAYS * DAYS,
     .doc = "30d, 12h …; never if not given"},
};

/* ---- reading ---- */

/* The root of the body; NULL with its problems. An empty body is an empty object. */
static struct doc *parse(const char *body, size_t n, struct problems *ps)
{
    struct doc *d = NULL;
    if (n == 0)
        return doc_parse("{}", 2, false, &d, ps) < 0 ? NULL : d;
    return doc_parse(body, n, true, &d, ps) < 0 ? NULL : d;
}

static bool read_body(const char *body,
                      size_t n,
                      const struct conf_key *keys,
                      size_t n_keys,
                      void *out,
                      struct problems *ps)
{
    struct doc *d = parse(body, n, ps);
    if (!d)
        return false;
    conf_read(keys, n_keys, doc_root(d), out, ps);
    doc_free(d);
    return ps->errors == 0;
}

static void read_own(const char *json, const struct conf_key *keys, size_t n_keys, void *out)
{
    struct problems ps = {0};
    (void)read_body(json, strlen(json), keys, n_keys, out, &ps); /* see people_form.h */
    problems_release(&ps);
}

void people_form_read_person(const char *json, struct person *p)
{
    read_own(json, person_keys, array_len(person_keys), p);
}

void people_form_read_project(const char *json, struct project *p)
{
    struct project_form f = {.p = *p};
    read_own(json, project_keys, array_len(project_keys), &f);
    strv_release(&f.add);
    strv_release(&f.remove);
    *p = f.p;
}

void people_form_read_quota(const char *json, struct people_quota *q)
{
    read_own(json, quota_keys, array_len(quota_keys), q);
}

/* ---- checks ---- */

static void complain(struct problems *ps, const char *field, const char *text)
{
    problems_add(ps, PROBLEM_ERROR, field, 0, 0, NULL, "%s", text);
}

/* name was NULL before the body was read when one is wanted, `old` when none may be given. */
static void check_name(const char *what,
                       const char *old,
                       const char *name,
                       bool want_name,
                       struct problems *ps)
{
    struct err err = {0};
    if (want_name && !name)
        problems_add(ps, PROBLEM_ERROR, "name", 0, 0, NULL, "'name' is missing");
    else if (want_name && access_check_name(what, name, &err) < 0)
        complain(ps, "name", err.text);
    else if (!want_name && !str_eq(old, name))
        problems_add(ps, PROBLEM_ERROR, "name", 0, 0, "make a new one, and remove this one",
                     "a %s is never renamed", what);
}

static void check_note(const char *note, struct problems *ps)
{
    if (strlen(note) > NOTE_MAX)
        problems_add(ps, PROBLEM_ERROR, "note", 0, 0, NULL, "the note is longer than %d bytes",
                     NOTE_MAX);
}

int people_form_person(const char *body,
                       size_t n,
                       bool want_name,
                       struct person *p,
                       struct problems *ps)
{
    _cleanup_(freep) char *old = xstrdup(p->name);
    if (!read_body(body, n, person_keys, array_len(person_keys), p, ps))
        return ERR_BAD_SPEC;
    check_name("user", old, p->name, want_name, ps);
    check_note(p->note, ps);
    if (p->role == HTTP_ROLE_NONE)
        problems_add(ps, PROBLEM_ERROR, "role", 0, 0, "disable the user instead",
                     "a user is viewer, user or admin");
    if (want_name && str_eq(p->name, "argusd"))
        problems_add(ps, PROBLEM_ERROR, "name", 0, 0, NULL,
                     "'argusd' is what events call the server itself");
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
static void merge_members(struct project_form *f)
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

static void check_project(const struct project *p, struct problems *ps)
{
    check_note(p->note, ps);
    if (p->members.n > PEOPLE_MEMBERS_MAX)
        problems_add(ps, PROBLEM_ERROR, "members", 0, 0, NULL, "more than %d members",
                     PEOPLE_MEMBERS_MAX);
    if (strlen(p->pool) > NOTE_MAX || strpbrk(p->pool, " \t\n"))
        complain(ps, "pool", "a pool is labels with commas between them, without spaces");
    if (str_eq(p->name, ACCESS_DEFAULT_PROJECT) && p->members.n)
        complain(ps, "members", "everybody is in project 'default'");
}

int people_form_project(const char *body,
                        size_t n,
                        bool want_name,
                        struct project *p,
                        struct problems *ps)
{
    _cleanup_(freep) char *old = xstrdup(p->name);
    struct project_form f = {.p = *p};
    bool read = read_body(body, n, project_keys, array_len(project_keys), &f, ps);
    if (read)
        merge_members(&f);
    strv_release(&f.add);
    strv_release(&f.remove);
    *p = f.p;
    if (!read)
        return ERR_BAD_SPEC;
    check_name("project", old, p->name, want_name, ps);
    check_project(p, ps);
    return ps->errors ? ERR_BAD_SPEC : 0;
}

int people_form_quota(const char *body, size_t n, struct people_quota *q, struct problems *ps)
{
    struct people_quota fresh = people_no_quota;
    if (!read_body(body, n, quota_keys, array_len(quota_keys), &fresh, ps))
        return ERR_BAD_SPEC;
    if (fresh.gpus_ceiling >= 0 && fresh.gpus_guaranteed > fresh.gpus_ceiling) {
        complain(ps, "gpus_guaranteed", "the guarantee is above the ceiling");
        return ERR_BAD_SPEC;
    }
    *q = fresh;
    return 0;
}

void people_token_form_release(struct people_token_form *f)
{
    free(f->name);
    free(f->user);
    *f = (struct people_token_form){0};
}

int people_form_token(const char *body,
                      size_t n,
                      struct people_token_form *ret,
                      struct problems *ps)
{
    if (!read_body(body, n, token_keys, array_len(token_keys), ret, ps))
        return ERR_BAD_SPEC;
    if (ret->name && strlen(ret->name) > ACCESS_NAME_MAX * 2)
        complain(ps, "name", "the name of a token has at most 62 bytes");
    return ps->errors ? ERR_BAD_SPEC : 0;
}

/* ---- writing ---- */

void people_form_put_person(struct jout *j, const char *key, const struct person *p)
{
    jout_open(j, key, '{');
    jout_str(j, "name", p->name);
    jout_str(j, "role", role_names[p->role]);
    jout_bool(j, "disabled", p->disabled);
    jout_str(j, "note", p->note);
    jout_close(j, '}');
}

void people_form_put_project_fields(struct jout *j, const struct project *p)
{
    jout_str(j, "name", p->name);
    jout_str(j, "note", p->note);
    jout_str(j, "pool", p->pool);
    jout_open(j, "members", '[');
    for (size_t i = 0; i < p->members.n; i++)
        jout_str(j, NULL, p->members.v[i]);
    jout_close(j, ']');
    jout_real(j, "share", p->share);
    jout_int(j, "priority_ceiling", p->priority_ceiling);
}

void people_form_put_project(struct jout *j, const char *key, const struct project *p)
{
    jout_open(j, key, '{');
    people_form_put_project_fields(j, p);
    jout_close(j, '}');
}

static void put_limit(struct jout *j, const char *key, double v)
{
    if (v >= 0)
        jout_real(j, key, v);
    else
        jout_null(j, key);
}

void people_form_put_quota(struct jout *j, const char *key, const struct people_quota *q)
{
    jout_open(j, key, '{');
    put_limit(j, "gpus_guaranteed", q->gpus_guaranteed);
    put_limit(j, "gpus_ceiling", q->gpus_ceiling);
    put_limit(j, "cpus", q->cpus);
    put_limit(j, "memory", q->memory);
    put_limit(j, "checkpoints", q->checkpoints);
    put_limit(j, "storage", q->storage);
    put_limit(j, "running", (double)q->running);
    put_limit(j, "queued", (double)q->queued);
    put_limit(j, "gpu_hours_per_month", q->gpu_hours_per_month);
    jout_close(j, '}');
}
