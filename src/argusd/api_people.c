/* SPDX-License-Identifier: Apache-2.0 */
/* api_people.c - users, and what all handlers of people share.
 *
 * A change is made on a copy, checked whole, then put in place, stored and noted in one turn of
 * the loop; the answer waits for it to be on disk. */
#include "argusd/api_people.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/people_dirs.h"
#include "base/place.h"
#include "base/str.h"

enum { USER_MAX_BYTES = 256 << 10 };

/* ---- shared ---- */

int api_people_may(struct http_req *req,
                   struct api *a,
                   enum access_action action,
                   const char *verb,
                   const struct access_thing *thing,
                   bool changes)
{
    struct access_who who;
    struct err err = {0};
    people_who(a->people, http_req_principal(req), &who);
    int r = access_check(&who, action, verb, thing, &err);
    if (r == 0 && changes && store_is_failing(a->store))
        r = err_set(&err, ERR_STORE, "the store cannot write now: nothing can be changed");
    if (r < 0)
        api_fail(req, &err, 0);
    return r;
}

static void answer_unknown(struct http_req *req, const char *kind, const char *name)
{
    struct err err = {0};
    (void)err_set(&err, ERR_NOT_FOUND, "no %s '%.128s'", kind, name); /* only fills err */
    api_fail(req, &err, 0);
}

/* One project that both are in, NULL if there is none: what makes a user visible to another. */
static char *common_project(const struct api *a, const struct http_req *req, const struct person *p)
{
    struct access_who who;
    const char *list = p->projects, *item;
    people_who(a->people, http_req_principal(req), &who);
    for (size_t n; (item = str_item(&list, &n));) {
        char *name = xstrndup(item, n);
        if (str_list_has(who.projects, name))
            return name;
        free(name);
    }
    return NULL;
}

static int may_user(struct http_req *req,
                    struct api *a,
                    enum access_action action,
                    const char *verb,
                    const struct person *p)
{
    _cleanup_(freep) char *project = common_project(a, req, p);
    struct access_thing thing = {
        .kind = "user", .name = p->name, .owner = p->name, .project = project};
    return api_people_may(req, a, action, verb, &thing, action == ACCESS_USER_CHANGE);
}

struct person *api_people_find(struct http_req *req,
                               struct api *a,
                               enum access_action action,
                               const char *verb)
{
    const char *name = http_req_param(req, "user");
    struct person *p = people_find(a->people, name);
    if (!p)
        answer_unknown(req, "user", name);
    return p && may_user(req, a, action, verb, p) == 0 ? p : NULL;
}

struct project *api_people_find_project(struct http_req *req,
                                        struct api *a,
                                        enum access_action action,
                                        const char *verb)
{
    const char *name = http_req_param(req, "project");
    struct project *p = people_find_project(a->people, name);
    struct access_thing thing = {.kind = "project", .name = name, .project = name};
    if (!p) {
        answer_unknown(req, "project", name);
        return NULL;
    }
    bool changes = action == ACCESS_PROJECT_CHANGE;
    return api_people_may(req, a, action, verb, &thing, changes) == 0 ? p : NULL;
}

void api_people_note(struct http_req *req, struct api *a, struct api_change *taken)
{
    struct events_note note = {.kind = taken->kind,
                               .actor = http_req_principal(req)->user,
                               .object = taken->object,
                               .text = taken->text,
                               .before = taken->before,
                               .after = taken->after};
    events_add(a->events, &note, clock_wall());
    free(taken->before);
    free(taken->after);
    taken->before = taken->after = NULL;
}

char *api_person_text(const struct person *p)
{
    struct buf out = BUF_INIT(PEOPLE_TEXT_MAX);
    struct jout j = jout_begin(&out);
    people_form_put_person(&j, NULL, p);
    return buf_take(&out);
}

char *api_project_text(const struct project *p)
{
    struct buf out = BUF_INIT(PEOPLE_TEXT_MAX);
    struct jout j = jout_begin(&out);
    people_form_put_project(&j, NULL, p);
    return buf_take(&out);
}

char *api_quota_text(const struct people_quota *q)
{
    struct buf out = BUF_INIT(PEOPLE_TEXT_MAX);
    struct jout j = jout_begin(&out);
    people_form_put_quota(&j, NULL, q);
    return buf_take(&out);
}

void api_put_account(struct jout *j,
                     const struct api *a,
                     enum sched_account kind,
                     const char *name,
                     const struct people_quota *q)
{
    struct sched_usage u;
    sched_usage(jobs_sched(a->jobs), kind, name, jobs_now(a->jobs), &u);
    people_form_put_quota(j, "quota", q);
    jout_open(j, "usage", '{');
    jout_real(j, "gpus", u.gpus);
    jout_real(j, "gpus_borrowed", u.gpus_borrowed);
    jout_real(j, "cpus", u.cpus);
    jout_real(j, "memory", u.memory);
    jout_int(j, "running", u.running);
    jout_int(j, "queued", u.queued);
    jout_real(j, "storage",
              (double)storage_used(&a->storage, kind == SCHED_USER ? name : NULL,
                                   kind == SCHED_USER ? NULL : name) /
                  (double)(1ULL << 30));
    jout_real(j, "gpu_hours_this_month", u.gpu_seconds_month / 3600);
    jout_close(j, '}');
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

/* ---- reading users ---- */

static int by_user(const void *x, const void *y)
{
    const struct token *a = *(const struct token *const *)x, *b = *(const struct token *const *)y;
    return strcmp(a->user, b->user);
}

/* Every token in the order of its user's name. */
struct shelf {
    const struct token **v;
    size_t n;
};

static struct shelf shelf_new(const struct api *a)
{
    struct shelf s = {.v = xcalloc(tokens_count(a->tokens) + 1, sizeof(void *))};
    const struct token *k;
    for (size_t pos = 0; (k = tokens_next(a->tokens, &pos));)
        s.v[s.n++] = k;
    xsort(s.v, s.n, sizeof(void *), by_user);
    return s;
}

static int to_token(const void *user, const void *element)
{
    const struct token *const *k = element;
    return strcmp(user, (*k)->user);
}

static void put_tokens_of(struct jout *j, const struct shelf *s, const char *user)
{
    usec_t now = clock_wall(), used = 0;
    size_t i = place_of(user, s->v, s->n, sizeof(void *), to_token);
    int64_t n = 0;
    for (; i < s->n && str_eq(s->v[i]->user, user); i++) {
        n += token_works(s->v[i], now);
        used = s->v[i]->last_use_at > used ? s->v[i]->last_use_at : used;
    }
    jout_int(j, "tokens", n);
    jout_time(j, "last_use_at", used);
}

/* Those of his that who asks may see too. */
static void put_projects_of(struct jout *j, const struct access_who *who, const struct person *p)
{
    const char *list = p->projects, *item;
    jout_open(j, "projects", '[');
    for (size_t n; (item = str_item(&list, &n));) {
        _cleanup_(freep) char *name = xstrndup(item, n);
        struct access_thing thing = {.kind = "project", .name = name, .project = name};
        if (str_eq(who->user, p->name) ||
            access_check(who, ACCESS_PROJECT_SEE, "see", &thing, NULL) == 0)
            jout_str(j, NULL, name);
    }
    jout_close(j, ']');
}

static void put_user(struct jout *j,
                     const struct api *a,
                     const struct access_who *who,
                     const struct shelf *tokens,
                     const struct person *p)
{
    jout_open(j, NULL, '{');
    jout_str(j, "name", p->name);
    jout_str(j, "role", http_role_to_string((enum http_role)p->role));
    jout_bool(j, "disabled", p->disabled);
    jout_str(j, "note", p->note);
    put_projects_of(j, who, p);
    jout_time(j, "created_at", p->created_at);
    put_tokens_of(j, tokens, p->name);
    api_put_account(j, a, SCHED_USER, p->name, &p->quota);
    jout_close(j, '}');
}

static void put_one_user(struct jout *j,
                         const struct api *a,
                         const struct http_req *req,
                         const struct person *p)
{
    struct shelf tokens = shelf_new(a);
    struct access_who who;
    people_who(a->people, http_req_principal(req), &who);
    put_user(j, a, &who, &tokens, p);
    free(tokens.v);
}

static void answer_user(struct http_req *req, struct api *a, const struct person *p, int status)
{
    struct buf out = BUF_INIT(USER_MAX_BYTES);
    struct jout j = jout_begin(&out);
    put_one_user(&j, a, req, p);
    http_reply_json(req, status, &out, status == 200 ? api_reader_barrier(a) : api_barrier(a));
    buf_release(&out);
}

void api_users(struct http_req *req, void *app)
{
    struct api *a = app;
    struct buf out = BUF_INIT(API_PEOPLE_LIST_MAX);
    struct jout j = jout_begin(&out);
    struct shelf tokens = shelf_new(a);
    struct access_who who;
    const struct person *p;
    people_who(a->people, http_req_principal(req), &who);
    jout_open(&j, NULL, '{');
    jout_open(&j, "users", '[');
    for (size_t pos = 0; (p = people_next(a->people, &pos));) {
        _cleanup_(freep) char *project = common_project(a, req, p);
        struct access_thing thing = {
            .kind = "user", .name = p->name, .owner = p->name, .project = project};
        if (access_check(&who, ACCESS_USER_SEE, "see", &thing, NULL) == 0)
            put_user(&j, a, &who, &tokens, p);
    }
    free(tokens.v);
    jout_close(&j, ']');
    jout_close(&j, '}');
    http_reply_json(req, 200, &out, api_reader_barrier(a));
    buf_release(&out);
}

void api_user_get(struct http_req *req, void *app)
{
    const struct person *p = api_people_find(req, app, ACCESS_USER_SEE, "see");
    if (p)
        answer_user(req, app, p, 200);
}

/* ---- changing users ---- */

static int check_new(const struct api *a, const char *name, struct err *err)
{
    if (people_find(a->people, name))
        return err_set(err, ERR_CONFLICT, "there is a user '%s' already", name);
    if (people_count(a->people) >= PEOPLE_USERS_MAX)
        return err_set(err, ERR_REFUSED, "there are %d users, and there cannot be more",
                       PEOPLE_USERS_MAX);
    return 0;
}

/* The body read into *p, which is a copy or new; false: it was answered. */
static bool read_user(struct http_req *req, bool want_name, struct person *p)
{
    struct problems ps = {0};
    size_t n;
    const char *body = http_req_body(req, &n);
    bool good = people_form_person(body, n, want_name, p, &ps) == 0;
    if (!good)
        api_answer_problems(req, &ps);
    problems_release(&ps);
    return good;
}

static void add_user(struct http_req *req, struct api *a, const struct person *asked)
{
    usec_t now = clock_wall();
    struct person *p = people_add(a->people, asked->name, (enum http_role)asked->role, now);
    set_str(&p->note, asked->note);
    p->disabled = asked->disabled;
    people_save(a->people, p);
    _cleanup_(freep) char *object = xasprintf("user/%s", p->name);
    struct api_change change = {
        .kind = "user_added", .object = object, .text = "user made", .after = api_person_text(p)};
    api_people_note(req, a, &change);
    people_dirs_make(a->loop, a->cluster, a->settings->shared_root, a->people, p);
    answer_user(req, a, p, 201);
}

void api_user_add(struct http_req *req, void *app)
{
    struct api *a = app;
    struct access_thing thing = {.kind = "user", .name = "new"};
    struct person asked = {.role = HTTP_ROLE_USER, .note = xstrdup("")};
    struct err err = {0};
    if (api_people_may(req, a, ACCESS_USER_CHANGE, "make", &thing, true) == 0 &&
        read_user(req, true, &asked)) {
        if (check_new(a, asked.name, &err) == 0)
            add_user(req, a, &asked);
        else
            http_problem(req, err.code, &err, "name", NULL, NULL, api_barrier(a));
    }
    person_release(&asked);
}

/* Somebody must be left who can change things here. */
static int check_admins(const struct api *a, const struct person *p, struct err *err)
{
    if (api_count_admins(a, p->name, NULL) > 0)
        return 0;
    return err_set(err, ERR_CONFLICT,
                   "'%s' is the last admin: make another one, with a token, before", p->name);
}

static void change_user(struct http_req *req, struct api *a, struct person *p, struct person *asked)
{
    _cleanup_(freep) char *object = xasprintf("user/%s", p->name);
    struct api_change change = {.kind = "user_changed",
                                .object = object,
                                .text = "user changed",
                                .before = api_person_text(p)};
    p->role = asked->role;
    p->disabled = asked->disabled;
    set_str(&p->note, asked->note);
    people_save(a->people, p);
    change.after = api_person_text(p);
    api_people_note(req, a, &change);
    answer_user(req, a, p, 200);
}

void api_user_change(struct http_req *req, void *app)
{
    struct api *a = app;
    struct person *p = api_people_find(req, a, ACCESS_USER_CHANGE, "change"), asked = {0};
    struct err err = {0};
    if (!p)
        return;
    person_copy(&asked, p);
    bool good = read_user(req, false, &asked);
    bool falls = asked.disabled || asked.role != HTTP_ROLE_ADMIN;
    if (good && falls && p->role == HTTP_ROLE_ADMIN && check_admins(a, p, &err) < 0)
        api_fail(req, &err, api_barrier(a));
    else if (good)
        change_user(req, a, p, &asked);
    person_release(&asked);
}

static void revoke_all(struct api *a, const char *user, usec_t now)
{
    const struct token *k;
    for (size_t pos = 0; (k = tokens_next(a->tokens, &pos));)
        if (str_eq(k->user, user))
            tokens_revoke(a->tokens, k, now);
}

static void remove_user(struct http_req *req, struct api *a, struct person *p)
{
    _cleanup_(freep) char *object = xasprintf("user/%s", p->name);
    struct api_change change = {.kind = "user_removed",
                                .object = object,
                                .text = "user removed, with all tokens and secrets",
                                .before = api_person_text(p)};
    struct buf out = BUF_INIT(USER_MAX_BYTES);
    struct jout j = jout_begin(&out);
    put_one_user(&j, a, req, p);
    revoke_all(a, p->name, clock_wall());
    secrets_remove_all(a->secrets, false, p->name);
    people_remove(a->people, p);
    api_people_note(req, a, &change);
    http_reply_json(req, 200, &out, api_barrier(a));
    buf_release(&out);
}

void api_user_remove(struct http_req *req, void *app)
{
    struct api *a = app;
    struct person *p = api_people_find(req, a, ACCESS_USER_CHANGE, "remove");
    struct err err = {0};
    if (!p)
        return;
    size_t jobs = api_count_jobs(a, p->name, NULL);
    if (jobs)
        (void)err_set(&err, ERR_CONFLICT,
                      "'%s' has %zu job%s not over: stop what runs first, or disable the user",
                      p->name, jobs, jobs == 1 ? " that is" : "s that are");
    if (err.code || (p->role == HTTP_ROLE_ADMIN && check_admins(a, p, &err) < 0))
        api_fail(req, &err, api_barrier(a));
    else
        remove_user(req, a, p);
}
