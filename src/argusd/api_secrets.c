/* SPDX-License-Identifier: Apache-2.0 */
/* api_secrets.c - secrets: stored, listed by name, removed; a value is never given back.
 *
 * No answer, event or log line may hold anything of a body: it is read here and by nobody else. */
#include <stdlib.h>
#include <string.h>

#include "argusd/api_people.h"
#include "base/str.h"
#include "core/spec.h"

enum { SECRET_MAX_BYTES = 16 << 10, BODY_MAX = 8 * SECRET_VALUE_MAX, HIDDEN_FROM = 8 };

/* ---- what may be told ---- */

static void put_secret(struct jout *j, const struct secret *k)
{
    jout_open(j, NULL, '{');
    jout_str(j, "name", k->name);
    jout_str(j, "user", k->of_project ? NULL : k->owner);
    jout_str(j, "project", k->of_project ? k->owner : NULL);
    jout_int(j, "bytes", (int64_t)k->bytes);
    jout_bool(j, "masked", k->bytes >= HIDDEN_FROM);
    jout_time(j, "created_at", k->created_at);
    jout_time(j, "changed_at", k->changed_at);
    jout_str(j, "changed_by", k->changed_by);
    jout_time(j, "last_use_at", k->last_use_at);
    jout_close(j, '}');
}

static char *secret_text(const struct secret *k)
{
    struct buf out = BUF_INIT(SECRET_MAX_BYTES);
    struct jout j = jout_begin(&out);
    put_secret(&j, k);
    return buf_take(&out);
}

static void answer(struct http_req *req, struct api *a, const struct secret *k, int status)
{
    struct buf out = BUF_INIT(SECRET_MAX_BYTES);
    struct jout j = jout_begin(&out);
    put_secret(&j, k);
    http_reply_json(req, status, &out, api_barrier(a));
    buf_release(&out);
}

static struct access_thing thing_of(const char *name, bool of_project, const char *owner)
{
    return (struct access_thing){.kind = "secret",
                                 .name = name,
                                 .owner = of_project ? NULL : owner,
                                 .project = of_project ? owner : NULL};
}

static void note(struct http_req *req,
                 struct api *a,
                 const char *kind,
                 const char *text,
                 const char *key,
                 char *before,
                 char *after)
{
    _cleanup_(freep) char *object = xasprintf("secret/%s", key);
    struct api_change change = {
        .kind = kind, .object = object, .text = text, .before = before, .after = after};
    api_people_note(req, a, &change);
}

/* ---- list ---- */

static int by_key(const void *x, const void *y)
{
    const struct secret *a = *(const struct secret *const *)x;
    const struct secret *b = *(const struct secret *const *)y;
    return strcmp(a->key, b->key);
}

static bool is_wanted(const struct access_who *who,
                      const struct secret *k,
                      const char *user,
                      const char *project)
{
    struct access_thing thing = thing_of(k->name, k->of_project, k->owner);
    if ((user || project) && !str_eq(k->of_project ? project : user, k->owner))
        return false;
    return access_check(who, ACCESS_SECRET_SEE, "see", &thing, NULL) == 0;
}

void api_secrets(struct http_req *req, void *app)
{
    struct api *a = app;
    struct access_who who;
    const struct secret *k, **v = xcalloc(secrets_count(a->secrets) + 1, sizeof(void *));
    struct buf out = BUF_INIT(API_PEOPLE_LIST_MAX);
    struct jout j = jout_begin(&out);
    bool all = http_req_query_bool(req, "all", false);
    const char *user = http_req_query(req, "user"), *project = http_req_query(req, "project");
    size_t n = 0;
    people_who(a->people, http_req_principal(req), &who);
    for (size_t pos = 0; (k = secrets_next(a->secrets, &pos));) {
        bool mine = all || user || project || (!k->of_project && str_eq(k->owner, who.user)) ||
                    (k->of_project && str_list_has(who.projects, k->owner));
        if (mine && is_wanted(&who, k, user, project))
            v[n++] = k;
    }
    xsort(v, n, sizeof(void *), by_key);
    jout_open(&j, NULL, '{');
    jout_open(&j, "secrets", '[');
    for (size_t i = 0; i < n; i++)
        put_secret(&j, v[i]);
    jout_close(&j, ']');
    jout_close(&j, '}');
    http_reply_json(req, 200, &out, api_reader_barrier(a));
    buf_release(&out);
    free(v);
}

/* ---- whose ---- */

/* 0, or it was answered: two owners, one that is not there, or one whose secrets are not his to
 * change. */
static int find_owner(struct http_req *req,
                      struct api *a,
                      const char *user,
                      const char *project,
                      const char *verb,
                      bool *ret_of_project,
                      const char **ret_owner)
{
    struct err err = {0};
    *ret_of_project = project != NULL;
    *ret_owner = project ? project : str_or(user, http_req_principal(req)->user);
    struct access_thing thing = thing_of(http_req_param(req, "name"), *ret_of_project, *ret_owner);
    int r = user && project ? err_set(&err, ERR_BAD_SPEC,
                                      "a secret is of a user or of a project: give one of them")
                            : 0;
    if (r < 0) {
        http_problem(req, r, &err, "project", NULL, NULL, 0);
        return r;
    }
    r = api_people_may(req, a, ACCESS_SECRET_CHANGE, verb, &thing, true);
    if (r < 0)
        return r;
    if (project && !people_find_project(a->people, project))
        r = err_set(&err, ERR_NOT_FOUND, "no project '%.60s'", project);
    else if (!project && !people_find(a->people, *ret_owner))
        r = err_set(&err, ERR_NOT_FOUND, "no user '%.60s'", *ret_owner);
    if (r < 0)
        api_fail(req, &err, 0);
    return r;
}

/* ---- store ---- */

struct form {
    json_t *o;
    const char *value, *user, *project; /* borrowed from o */
};

static int read_text(const json_t *o, const char *key, const char **ret, struct err *err)
{
    const json_t *v = json_object_get(o, key);
    if (v && !json_is_null(v) && !json_is_string(v))
        return err_set(err, ERR_BAD_SPEC, "'%s' is no text", key);
    *ret = json_string_value(v);
    return 0;
}

static int check_value(const struct form *f, struct err *err)
{
    const json_t *v = json_object_get(f->o, "value");
    if (!f->value || !*f->value)
        return err_set(err, ERR_BAD_SPEC, "'value' is missing or empty");
    if (json_string_length(v) > SECRET_VALUE_MAX)
        return err_set(err, ERR_TOO_LARGE, "'value' has %zu bytes and may have %d",
                       json_string_length(v), SECRET_VALUE_MAX);
    return 0;
}

/* Its own words for what is wrong: those of a parser may quote the body. */
static int read_form(struct http_req *req, struct form *ret, struct err *err)
{
    static const char *const keys[] = {"value", "user", "project"};
    size_t n, known = 0;
    const char *body = http_req_body(req, &n);
    if (json_parse(body, n, BODY_MAX, &ret->o, NULL) < 0 || !json_is_object(ret->o))
        return err_set(err, ERR_BAD_REQUEST, "the body is no JSON object with a 'value'");
    for (size_t i = 0; i < array_len(keys); i++)
        known += json_object_get(ret->o, keys[i]) != NULL;
    if (known != json_object_size(ret->o))
        return err_set(err, ERR_BAD_SPEC, "the body has members other than value, user, project");
    int r = read_text(ret->o, "value", &ret->value, err);
    if (r == 0)
        r = read_text(ret->o, "user", &ret->user, err);
    if (r == 0)
        r = read_text(ret->o, "project", &ret->project, err);
    return r < 0 ? r : check_value(ret, err);
}

static void store(struct http_req *req, struct api *a, const struct form *f)
{
    const char *owner, *name = http_req_param(req, "name");
    bool of_project;
    struct err err = {0};
    if (find_owner(req, a, f->user, f->project, "set", &of_project, &owner) < 0)
        return;
    const struct secret *k = secrets_find(a->secrets, of_project, owner, name);
    char *before = k ? secret_text(k) : NULL;
    bool is_new = !k;
    if (secrets_set(a->secrets, of_project, owner, name, f->value, http_req_principal(req)->user,
                    clock_wall(), &k, &err) < 0) {
        free(before);
        api_fail(req, &err, api_barrier(a));
        return;
    }
    note(req, a, is_new ? "secret_added" : "secret_changed",
         is_new ? "secret stored" : "secret stored anew", k->key, before, secret_text(k));
    answer(req, a, k, is_new ? 201 : 200);
}

void api_secret_put(struct http_req *req, void *app)
{
    struct form f = {0};
    struct err err = {0};
    int r = spec_check_secret_name(http_req_param(req, "name"), &err);
    if (r == 0)
        r = read_form(req, &f, &err);
    if (r < 0)
        api_fail(req, &err, 0);
    else
        store(req, app, &f);
    json_decref(f.o);
}

/* ---- remove ---- */

void api_secret_remove(struct http_req *req, void *app)
{
    struct api *a = app;
    const char *owner, *name = http_req_param(req, "name");
    bool of_project;
    struct err err = {0};
    if (find_owner(req, a, http_req_query(req, "user"), http_req_query(req, "project"), "remove",
                   &of_project, &owner) < 0)
        return;
    const struct secret *k = secrets_find(a->secrets, of_project, owner, name);
    if (!k) {
        (void)err_set(&err, ERR_NOT_FOUND, "no secret '%.70s' of %s '%.40s'", name,
                      of_project ? "project" : "user", owner); /* only fills err */
        api_fail(req, &err, api_barrier(a));
        return;
    }
    _cleanup_(freep) char *key = xstrdup(k->key);
    note(req, a, "secret_removed", "secret removed", key, secret_text(k), NULL);
    answer(req, a, k, 200);
    secrets_remove(a->secrets, k);
}
