/* SPDX-License-Identifier: Apache-2.0 */
/* api.c - see api.h. A job that is asked for may be in memory or on disk alone; while the store
 * fails only the disk is believed, since a crash would take the rest back. */
#include "argusd/kit/api.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/archive/archives.h"
#include "argusd/jobs/jobs_rules.h"
#include "base/message.h"
#include "base/str.h"

uint64_t api_barrier(const struct api *a)
{
    return store_batch(a->store);
}

uint64_t api_reader_barrier(const struct api *a)
{
    return store_is_failing(a->store) ? 0 : store_batch(a->store);
}

/* What is in memory alone may be taken back by a crash: then only the disk is believed. */
static struct live *find_believed(const struct api *a, const char *id)
{
    return store_is_failing(a->store) ? NULL : jobs_find_any(a->jobs, id);
}

void api_mark_stale(struct http_req *req, const struct api *a)
{
    if (store_is_failing(a->store))
        http_reply_header(req, "Argus-Stale", "true");
}

/* A key of a service is told from a token by its first letters, which are no secret. */
static int api_check_bearer(struct api *a, const char *bearer, struct http_principal *ret)
{
    return service_keys_is_text(bearer)
               ? service_keys_check(a->service_keys, bearer, clock_wall(), ret)
               : tokens_check(a->tokens, bearer, clock_wall(), ret);
}

int api_authenticate(const struct http_credentials *c, struct http_principal *ret, void *app)
{
    struct api *a = app;
    int r = *c->cookie   ? sessions_check(a->sessions, c, clock_wall(), ret)
            : *c->bearer ? api_check_bearer(a, c->bearer, ret)
                         : http_principal_refuse(ret, "no_token", MESSAGE_NO_ARGS);
    return r < 0 ? r : people_admit(a->people, ret);
}

bool api_sees_job(const char *id, void *eyes)
{
    const struct api_eyes *e = eyes;
    return jobs_may_be_seen(e->a->jobs, e->a->people, e->p, id);
}

void api_fail(struct http_req *req, const struct err *err, uint64_t barrier)
{
    http_problem(req, err->code, err, NULL, NULL, barrier);
}

void api_answer_problems(struct http_req *req, const struct problems *ps)
{
    http_problem(req, ERR_BAD_SPEC, NULL, NULL, ps, 0);
}

/* ---- what a request asks ---- */

int api_check_attempt(const struct job *job, int64_t k, struct err *err)
{
    if (k <= job->n_attempts || !job->n_attempts)
        return 0;
    return message_refuse(
        err, ERR_NOT_FOUND, "no_attempt",
        MESSAGE_ARGS(MESSAGE_STR("job", job->id), MESSAGE_NUM("attempts", job->n_attempts)));
}

int api_read_time(const struct http_req *req,
                  const char *name,
                  usec_t now,
                  usec_t *ret,
                  struct err *err)
{
    const char *text = http_req_query(req, name);
    usec_t span;
    if (!text)
        return 0;
    if (*text && !text[strspn(text, "0123456789")])
        return message_refuse(err, ERR_BAD_REQUEST, "time_no_unit",
                              MESSAGE_ARGS(MESSAGE_STR("param", name), MESSAGE_STR("text", text)));
    if (span_from_string(text, &span, NULL) == 0) {
        *ret = now > span ? now - span : 1;
        return 0;
    }
    if (clock_from_string(text, ret, NULL) == 0) {
        *ret = *ret ? *ret : 1;
        return 0;
    }
    return message_refuse(err, ERR_BAD_REQUEST, "bad_time",
                          MESSAGE_ARGS(MESSAGE_STR("param", name), MESSAGE_STR("text", text)));
}

static bool api_form_has(const struct field_table *form, const char *key)
{
    for (size_t i = 0; form && i < form->n; i++)
        if (!strcmp(form->rows[i].name, key))
            return true;
    return false;
}

json_t *api_read_action(struct http_req *req, const struct field_table *form)
{
    struct err err = {0};
    size_t len;
    json_t *o = NULL;
    const char *key, *body = http_req_body(req, &len);
    int r = len ? json_parse(body, len, 1 << 16, &o, &err) : 0;
    if (r == 0 && !len)
        o = json_object();
    if (r == 0 && !json_is_object(o))
        r = message_refuse(&err, ERR_BAD_REQUEST, "no_object", MESSAGE_NO_ARGS);
    json_t *v;
    if (r == 0)
        json_object_foreach (o, key, v)
            if (!api_form_has(form, key))
                r = message_refuse(&err, ERR_BAD_REQUEST, "unknown_member",
                                   MESSAGE_ARGS(MESSAGE_STR("member", key)));
    if (r == 0)
        return o;
    err.code = ERR_BAD_REQUEST;
    api_fail(req, &err, 0);
    json_decref(o);
    return NULL;
}

/* ---- who may ---- */

int api_may_change(const struct api *a,
                   const struct http_principal *p,
                   const char *verb,
                   const struct job *job,
                   struct err *err)
{
    return people_check_job(a->people, p, ACCESS_JOB_CHANGE, verb, job, err);
}

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
    if (r == 0 && changes)
        r = store_check(a->store, &err);
    if (r < 0)
        api_fail(req, &err, 0);
    return r;
}

bool api_has_files(struct http_req *req, const struct api *a, const struct job *job)
{
    struct err err = {0};
    if (archives_check_files(a->archives, job->id, &err) == 0)
        return true;
    api_fail(req, &err, 0);
    return false;
}

/* ---- finding one ---- */

struct job_search {
    struct http_req *req;
    struct api *a;
    api_job_f cb;
    struct store_read *read;
};

static void api_on_gone(struct http_req *req, void *arg)
{
    struct job_search *f = arg;
    (void)req;
    store_read_cancel(f->read);
    free(f);
}

static void found_row(struct job_search *f, const struct store_result *r)
{
    struct live *l = find_believed(f->a, r->jobs[0].id);
    struct record_extra extra = {0};
    struct job *job = NULL;
    struct err err = {0};
    api_mark_stale(f->req, f->a);
    if (l) {
        f->cb(f->req, f->a, l->job, &l->extra, l->over ? NULL : l);
    } else if (record_to_job(&r->jobs[0], &job, &extra, &err) < 0) {
        api_fail(f->req, &err, 0);
    } else {
        secrets_open_spec(f->a->secrets, job->id, &job->spec);
        for (size_t i = 0; i < r->nattempts; i++)
            record_add_attempt(job, &r->attempts[i]);
        f->cb(f->req, f->a, job, &extra, NULL);
    }
    record_extra_release(&extra);
    job_free(job);
}

static void api_on_found(const struct store_result *r, void *arg)
{
    struct job_search *f = arg;
    http_req_on_close(f->req, NULL, NULL);
    if (r->err.code)
        api_fail(f->req, &r->err, 0);
    else
        found_row(f, r);
    free(f);
}

void api_find_job(struct http_req *req, struct api *a, api_job_f cb)
{
    api_find_job_named(req, a, http_req_param(req, "id"), cb);
}

void api_find_job_named(struct http_req *req, struct api *a, const char *ref, api_job_f cb)
{
    const struct http_principal *p = http_req_principal(req);
    struct live *l = find_believed(a, ref);
    if (l && people_check_job(a->people, p, ACCESS_JOB_SEE, "see", l->job, NULL) == 0) {
        cb(req, a, l->job, &l->extra, l->over ? NULL : l);
        return;
    }
    struct job_search *f = xcalloc(1, sizeof(*f));
    *f = (struct job_search){.req = req, .a = a, .cb = cb};
    http_req_on_close(req, api_on_gone, f);
    struct store_then then = {.done = api_on_found, .arg = f};
    struct people_view view;
    people_view(a->people, p, PEOPLE_WISH_ALL, &view);
    struct store_job_ref asked = {.ref = ref, .user = p->user, .scope = view.scope};
    f->read = store_find_job(a->store, &asked, &then);
    people_view_release(&view);
}
