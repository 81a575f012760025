/* SPDX-License-Identifier: Apache-2.0 */
/* api_registry.c - data sets and models: list, look, import, remove. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/api_people.h"
#include "argusd/lineage.h"
#include "argusd/registry.h"
#include "argusd/registry_prepare.h"
#include "base/str.h"

enum { ENTRY_MAX = 256 << 10, LIST_MAX = 16 << 20 };

/* ---- showing ---- */

static void put_json(struct jout *j, const char *key, const json_t *o, const char *member)
{
    const json_t *v = member ? json_object_get(o, member) : o;
    _cleanup_(freep) char *text = v ? json_dumps(v, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    jout_raw(j, key, str_or(text, "null"));
}

/* What argusd wrote down of a job is for those who may see the job, and for the owner, who could;
 * eyes: NULL = nobody's. Others learn which step it is, and what the importer said himself. */
static void put_lineage(struct jout *j, const struct registry_entry *e, struct api_eyes *eyes)
{
    static const char *const keys[] = {"job", "step", "said"};
    const char *job = json_get_str(e->lineage, "job", "");
    bool is_open = !e->lineage || !e->is_recorded ||
                   (eyes && (str_eq(eyes->p->user, e->owner) || api_sees_job(job, eyes)));
    if (is_open) {
        put_json(j, "lineage", e->lineage, NULL);
        return;
    }
    jout_open(j, "lineage", '{');
    for (size_t i = 0; i < array_len(keys); i++)
        if (json_object_get(e->lineage, keys[i]))
            put_json(j, keys[i], e->lineage, keys[i]);
    jout_close(j, '}');
}

static void put_entry(struct jout *j,
                      const struct registry_entry *e,
                      struct api_eyes *eyes,
                      bool whole)
{
    char ref[REGISTRY_REF_MAX];
    jout_open(j, NULL, '{');
    jout_str(j, "name", e->name);
    jout_int(j, "version", e->version);
    jout_str(j, "ref", registry_ref(e, ref));
    jout_str(j, "state", registry_state_to_string(e->state));
    jout_str(j, "owner", e->owner);
    jout_str(j, "project", *e->project ? e->project : NULL);
    jout_bool(j, "common", e->is_common);
    jout_str(j, "path", e->path);
    jout_bool(j, "in_place", e->in_place);
    jout_str(j, "source", e->source);
    jout_str(j, "revision", e->revision);
    jout_str(j, "hash", e->hash);
    jout_str(j, "job", e->job);
    jout_int(j, "bytes", e->bytes);
    jout_int(j, "files", e->files);
    jout_time(j, "created_at", e->created_at);
    jout_int(j, "uses", e->uses);
    jout_raw(j, "progress", str_or(e->progress, "null"));
    put_json(j, "note", e->about, "note");
    put_json(j, "format", e->about, "format");
    if (e->kind == REGISTRY_DATASET) {
        put_json(j, "rows", e->about, "rows");
        put_json(j, "fit", e->about, "fit");
    } else {
        put_json(j, "architecture", e->about, "architecture");
        put_json(j, "parameters", e->about, "parameters");
    }
    put_lineage(j, e, eyes);
    jout_str(j, "lineage_by", !e->lineage ? NULL : e->is_recorded ? "argusd" : "importer");
    if (whole)
        put_json(j, "about", e->about, NULL);
    jout_close(j, '}');
}

/* The job that uses it, as who asks may know it; NULL = none. */
static const char *user_of(struct http_req *req, struct api *a, const struct registry_entry *e)
{
    struct api_eyes eyes = {a, http_req_principal(req)};
    const char *job = registry_user_of(a->registry, e);
    return !job || api_sees_job(job, &eyes) ? job : "of somebody else";
}

static void answer_entry(struct http_req *req,
                         struct api *a,
                         const struct registry_entry *e,
                         int status)
{
    struct api_eyes eyes = {a, http_req_principal(req)};
    struct buf out = BUF_INIT(ENTRY_MAX);
    struct jout j = jout_begin(&out);
    put_entry(&j, e, &eyes, true);
    http_reply_json(req, status, &out, api_barrier(a));
    buf_release(&out);
}

static char *entry_text(const struct registry_entry *e)
{
    struct buf out = BUF_INIT(ENTRY_MAX);
    struct jout j = jout_begin(&out);
    put_entry(&j, e, NULL, false); /* for the trail, which others read */
    return buf_take(&out);
}

static void note(struct http_req *req,
                 struct api *a,
                 const struct registry_entry *e,
                 const char *verb,
                 const char *text,
                 char *before,
                 char *after)
{
    const char *word = registry_kind_word(e->kind);
    _cleanup_(freep) char *object = xasprintf("%s/%s", word, e->key);
    _cleanup_(freep) char *kind = xasprintf("%s_%s", word, verb);
    struct api_change change = {
        .kind = kind, .object = object, .text = text, .before = before, .after = after};
    api_people_note(req, a, &change);
}

/* ---- lists ---- */

static int by_name(const void *a, const void *b)
{
    const struct registry_entry *x = *(struct registry_entry *const *)a;
    const struct registry_entry *y = *(struct registry_entry *const *)b;
    int c = strcmp(x->name, y->name);
    if (c == 0)
        c = strcmp(x->key, y->key);
    return c != 0 && str_eq(x->name, y->name) && x->is_common == y->is_common &&
                   str_eq(x->owner, y->owner)
               ? (x->version < y->version ? 1 : -1)
               : c;
}

static bool is_wanted(struct http_req *req, const struct registry_entry *e)
{
    const char *q = http_req_query(req, "q"), *user = http_req_query(req, "user");
    return e->state != REGISTRY_removing && (!q || strstr(e->name, q)) &&
           (!user || str_eq(user, e->owner));
}

static void list(struct http_req *req, struct api *a, enum registry_kind kind, const char *key)
{
    struct buf out = BUF_INIT(LIST_MAX);
    struct jout j = jout_begin(&out);
    struct access_who who;
    struct api_eyes eyes = {a, http_req_principal(req)};
    struct registry_entry *e, **v = xcalloc(registry_count(a->registry, kind) + 1, sizeof(void *));
    size_t n = 0;
    people_who(a->people, http_req_principal(req), &who);
    for (size_t pos = 0; (e = registry_next(a->registry, kind, &pos));)
        if (is_wanted(req, e) && registry_check(e, &who, ACCESS_DATA_SEE, "see", NULL) == 0)
            v[n++] = e;
    xsort(v, n, sizeof(void *), by_name);
    jout_open(&j, NULL, '{');
    jout_open(&j, key, '[');
    for (size_t i = 0; i < n; i++)
        put_entry(&j, v[i], &eyes, false);
    jout_close(&j, ']');
    jout_close(&j, '}');
    free(v);
    http_reply_json(req, 200, &out, api_reader_barrier(a));
    buf_release(&out);
}

void api_datasets(struct http_req *req, void *app)
{
    list(req, app, REGISTRY_DATASET, "datasets");
}

void api_models(struct http_req *req, void *app)
{
    list(req, app, REGISTRY_MODEL, "models");
}

/* ---- one ---- */

/* NULL: it was answered. */
static struct registry_entry *find(struct http_req *req,
                                   struct api *a,
                                   enum registry_kind kind,
                                   enum access_action action,
                                   const char *verb)
{
    struct registry_entry *e = NULL;
    struct dataref ref;
    struct access_who who;
    struct err err = {0};
    const char *text = http_req_param(req, "name");
    people_who(a->people, http_req_principal(req), &who);
    int r = dataref_read(text, &ref) && !ref.file
                ? registry_find(a->registry, kind, &who, &ref, &e, &err)
                : err_set(&err, ERR_NOT_FOUND, "no %s '%.128s'", registry_kind_name(kind), text);
    if (r == 0)
        r = registry_check(e, &who, action, verb, &err);
    if (r == 0 && action == ACCESS_DATA_CHANGE && store_is_failing(a->store))
        r = err_set(&err, ERR_STORE, "the store cannot write now: nothing can be changed");
    if (r < 0)
        api_fail(req, &err, api_barrier(a));
    return r < 0 ? NULL : e;
}

static void get(struct http_req *req, struct api *a, enum registry_kind kind)
{
    const struct registry_entry *e = find(req, a, kind, ACCESS_DATA_SEE, "see");
    if (e)
        answer_entry(req, a, e, 200);
}

void api_dataset_get(struct http_req *req, void *app)
{
    get(req, app, REGISTRY_DATASET);
}

void api_model_get(struct http_req *req, void *app)
{
    get(req, app, REGISTRY_MODEL);
}

/* ---- import ---- */

/* While the job that made its source is looked for. */
struct import {
    struct http_req *req; /* NULL: the client has gone */
    struct api *a;
    enum registry_kind kind;
    struct registry_form form;
    char *job; /* that one */
};

static void import_free(struct import *x)
{
    registry_form_release(&x->form);
    free(x->job);
    free(x);
}

static void begin_import(struct import *x)
{
    struct registry_entry *e;
    struct err err = {0};
    const char *field = NULL;
    const struct http_principal *p = http_req_principal(x->req);
    if (registry_import(x->a, p, x->kind, &x->form, &e, &field, &err) < 0) {
        http_problem(x->req, err.code, &err, field, NULL, NULL, api_barrier(x->a));
    } else {
        note(x->req, x->a, e, "import", "an import begins", NULL, entry_text(e));
        answer_entry(x->req, x->a, e, 201);
    }
    import_free(x);
}

static void on_importer_gone(struct http_req *req, void *arg)
{
    struct import *x = arg;
    (void)req;
    x->req = NULL;
}

static void on_lineage(json_t *lineage, void *arg)
{
    struct import *x = arg;
    if (!x->req) {
        json_decref(lineage);
        import_free(x);
        return;
    }
    http_req_on_close(x->req, NULL, NULL);
    if (lineage) {
        registry_form_take_lineage(&x->form, x->job, lineage);
        x->job = NULL;
    }
    begin_import(x);
}

static void import(struct http_req *req, struct api *a, enum registry_kind kind)
{
    struct problems ps = {0};
    _cleanup_(freep) char *path = NULL;
    size_t n;
    const char *body = http_req_body(req, &n);
    struct import *x = xcalloc(1, sizeof(*x));
    *x = (struct import){.req = req, .a = a, .kind = kind};
    if (registry_form_read(body, n, &x->form, &ps) < 0) {
        api_answer_problems(req, &ps);
        import_free(x);
    } else if ((x->job = registry_source_job(a, http_req_principal(req), x->form.source, &path))) {
        http_req_on_close(req, on_importer_gone, x);
        lineage_find(a, http_req_principal(req), path, on_lineage, x);
    } else {
        begin_import(x);
    }
    problems_release(&ps);
}

void api_dataset_import(struct http_req *req, void *app)
{
    import(req, app, REGISTRY_DATASET);
}

void api_model_import(struct http_req *req, void *app)
{
    import(req, app, REGISTRY_MODEL);
}

void api_dataset_prepare(struct http_req *req, void *app)
{
    struct api *a = app;
    struct problems ps = {0};
    struct registry_preparation x = {0};
    struct registry_entry *e;
    struct err err = {0};
    const char *field = NULL;
    size_t n;
    const char *body = http_req_body(req, &n);
    if (registry_preparation_read(body, n, &x, &ps) < 0) {
        api_answer_problems(req, &ps);
    } else if (registry_prepare(a, http_req_principal(req), &x, &e, &field, &err) < 0) {
        http_problem(req, err.code, &err, field, NULL, NULL, api_barrier(a));
    } else {
        note(req, a, e, "prepare", "a preparation begins", NULL, entry_text(e));
        answer_entry(req, a, e, 201);
    }
    problems_release(&ps);
    registry_preparation_release(&x);
}

/* ---- remove ---- */

static int check_removable(struct http_req *req,
                           struct api *a,
                           const struct registry_entry *e,
                           struct err *err)
{
    char ref[REGISTRY_REF_MAX];
    const char *user = user_of(req, a, e);
    if (user)
        return err_set(err, ERR_CONFLICT, "'%s' is used by the job '%s', which is not over",
                       registry_ref(e, ref), user);
    return 0;
}

/* What is not there yet goes when its job has ended: that is how imports end. */
static void cancel(struct http_req *req, struct api *a, const struct registry_entry *e)
{
    char text[HTTP_USER_MAX + 64];
    const char *user = http_req_principal(req)->user;
    struct live *l = jobs_find_id(a->jobs, e->job);
    (void)snprintf(text, sizeof(text), "the import was removed by '%s'", user); /* fits */
    struct job_event stop = {.kind = JOB_EV_STOP, .cause = STOP_USER, .text = text};
    if (l)
        (void)jobs_apply(l, &stop, user, clock_wall()); /* it may be stopping already */
}

static void remove_entry(struct http_req *req, struct api *a, enum registry_kind kind)
{
    struct err err = {0};
    struct registry_entry *e = find(req, a, kind, ACCESS_DATA_CHANGE, "remove");
    if (!e)
        return;
    if (check_removable(req, a, e, &err) < 0) {
        api_fail(req, &err, api_barrier(a));
        return;
    }
    char *before = entry_text(e);
    bool coming = e->state == REGISTRY_importing;
    if (coming)
        cancel(req, a, e);
    else
        registry_remove(a->registry, e);
    note(req, a, e, "remove",
         coming        ? "its import is stopped"
         : e->in_place ? "it leaves the registry; its bytes stay where they are"
                       : "it leaves the registry, and its bytes are removed",
         before, NULL);
    answer_entry(req, a, e, 200);
}

void api_dataset_remove(struct http_req *req, void *app)
{
    remove_entry(req, app, REGISTRY_DATASET);
}

void api_model_remove(struct http_req *req, void *app)
{
    remove_entry(req, app, REGISTRY_MODEL);
}
