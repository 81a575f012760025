/* SPDX-License-Identifier: Apache-2.0 */
/* files.c - /v1/files: look, list, put and remove below the roots that the token may use.
 * Reading is api/content.c. What is asked of the disk runs on a worker thread. */
#include "argusd/api/files.h"
#include "argusd/api/handlers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/api/people.h"
#include "argusd/content/registry.h"
#include "argusd/content/uploads.h"
#include "argusd/ground/work.h"
#include "base/str.h"

enum { LIST_DEFAULT = 200, LIST_MOST = 1000, REPLY_MAX = 8 << 20, BODY_TEXT_MAX = 64 << 10 };

/* ---- who may ---- */

static void api_files_fail(struct http_req *req, const struct err *err)
{
    http_problem(req, err->code, err, "path", NULL, NULL, 0);
}

static bool root_is_away(const struct api *a, struct err *err)
{
    if (!cluster_root_is_bad(a->cluster) && !cluster_root_hangs(a->cluster))
        return false;
    (void)err_set(err, ERR_UNAVAILABLE, "files wait for the shared root: %s",
                  cluster_root_why(a->cluster)); /* only fills err */
    return true;
}

static struct access_thing api_files_thing(const struct walk_place *p)
{
    return (struct access_thing){.kind = ACCESS_KIND_FILE,
                                 .name = p->path,
                                 .owner = p->zone == WALK_USER ? p->name : NULL,
                                 .is_common = p->zone == WALK_COMMON};
}

static int api_files_may(const struct http_req *req,
                         const struct api *a,
                         bool changes,
                         const struct walk_place *p,
                         struct err *err)
{
    struct access_who who;
    struct access_thing thing = api_files_thing(p);
    enum access_action action = changes ? ACCESS_FILES_CHANGE : ACCESS_FILES_SEE;
    const char *verb = changes ? "change" : "read";
    people_who(a->people, http_req_principal(req), &who);
    if (p->zone == WALK_JOB && changes)
        return err_set(err, ERR_FORBIDDEN,
                       "the files of a job are its own: here they can be read and not changed");
    int r = p->zone == WALK_JOB ? 0 : access_check(&who, action, verb, &thing, err);
    return r == 0 && changes ? registry_check_files(a->registry, &who, p->path, err) : r;
}

static bool api_files_parse(struct http_req *req,
                            struct api *a,
                            const char *path,
                            bool changes,
                            struct walk_place *ret)
{
    struct err err = {0};
    int r = path ? walk_parse(a->settings->shared_root, path, ret, &err)
                 : err_set(&err, ERR_BAD_REQUEST, "say which: path=users/<you>/…");
    if (r == 0)
        r = api_files_may(req, a, changes, ret, &err);
    if (r == 0 && root_is_away(a, &err))
        r = err.code;
    if (r == 0 && changes && store_is_failing(a->store))
        r = err_set(&err, ERR_STORE, "the store cannot write now: nothing can be changed");
    if (r == 0)
        return true;
    walk_place_release(ret);
    api_files_fail(req, &err);
    return false;
}

/* A job is read from the store: then the path is looked at a second time, since req may go. */
static void on_job(struct http_req *req,
                   struct api *a,
                   const struct job *job,
                   const struct record_extra *extra,
                   struct live *l)
{
    const api_place_f *then = http_req_data(req);
    struct walk_place p = {0};
    struct err err = {0};
    (void)extra, (void)l;
    if (!api_files_parse(req, a, http_req_query(req, "path"), false, &p))
        return;
    if (str_eq(p.name, job->id)) {
        (*then)(req, a, &p);
        return;
    }
    (void)err_set(&err, ERR_NOT_FOUND, "no job '%.128s'", p.name); /* only fills err */
    api_files_fail(req, &err);
    walk_place_release(&p);
}

void api_find_place(struct http_req *req, struct api *a, const api_place_f *then)
{
    struct walk_place p = {0};
    if (!api_files_parse(req, a, http_req_query(req, "path"), false, &p))
        return;
    if (p.zone != WALK_JOB) {
        (*then)(req, a, &p);
        return;
    }
    http_req_set_data(req, (void *)(uintptr_t)then);
    api_find_job_named(req, a, p.name, on_job);
    walk_place_release(&p);
}

/* ---- an operation on a worker ---- */

struct op {
    struct api *a;
    struct http_req *req; /* NULL: gone */
    char *root;
    struct walk_place place;
    void (*end)(struct op *op);
    struct err err;

    /* look */
    char *after;
    size_t limit;
    struct place_entry entry;
    struct place_list list;

    /* put and remove */
    unsigned flags;
    bool recursive, was_there;
    uint64_t removed;
    char *upload, *user;
    struct upload_given given;
};

static void op_free(struct op *op)
{
    free(op->root);
    free(op->after);
    free(op->upload);
    free(op->user);
    walk_place_release(&op->place);
    place_entry_release(&op->entry);
    place_list_release(&op->list);
    upload_given_release(&op->given);
    free(op);
}

static void api_files_on_gone(struct http_req *req, void *arg)
{
    struct op *op = arg;
    (void)req;
    op->req = NULL;
}

static struct op *op_new(struct http_req *req, struct api *a, struct walk_place *taken)
{
    struct op *op = xcalloc(1, sizeof(*op));
    *op = (struct op){.a = a,
                      .req = req,
                      .root = xstrdup(a->settings->shared_root),
                      .place = *taken,
                      .user = xstrdup(http_req_principal(req)->user)};
    *taken = (struct walk_place){0};
    http_req_on_close(req, api_files_on_gone, op);
    return op;
}

static void api_files_on_done(void *arg)
{
    struct op *op = arg;
    op->end(op);
    op_free(op);
}

/* ---- look and list ---- */

static void api_files_run_look(void *arg)
{
    struct op *op = arg;
    if (place_look(op->root, &op->place, &op->entry, &op->err) == 0 &&
        op->entry.kind == PLACE_DIRECTORY &&
        place_list(op->root, &op->place, op->after, op->limit, &op->list, &op->err) < 0)
        return; /* err says it */
}

static void api_files_put_entry(struct jout *j, const struct place_entry *e)
{
    if (e->name)
        jout_str(j, "name", e->name);
    jout_str(j, "kind", place_kind_to_string(e->kind));
    if (e->kind == PLACE_FILE) {
        jout_int(j, "bytes", (int64_t)e->bytes);
        jout_str(j, "etag", e->etag);
    }
    if (e->target)
        jout_str(j, "target", e->target);
    if (e->is_odd)
        jout_bool(j, "odd", true);
    jout_time(j, "changed_at", e->changed_at);
}

static void end_look(struct op *op)
{
    if (!op->req)
        return;
    if (op->err.code) {
        api_files_fail(op->req, &op->err);
        return;
    }
    struct buf out = BUF_INIT(REPLY_MAX);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    jout_str(&j, "path", op->place.path);
    api_files_put_entry(&j, &op->entry);
    if (op->entry.kind == PLACE_DIRECTORY) {
        char cursor[2 * WALK_NAME_MAX + 1] = "";
        jout_open(&j, "entries", '[');
        for (size_t i = 0; i < op->list.n; i++) {
            jout_open(&j, NULL, '{');
            api_files_put_entry(&j, &op->list.v[i]);
            jout_close(&j, '}');
        }
        jout_close(&j, ']');
        if (op->list.more && op->list.n) {
            const char *last = op->list.v[op->list.n - 1].name;
            (void)str_hex((const unsigned char *)last, strlen(last), cursor);
        }
        jout_str(&j, "next_cursor", *cursor ? cursor : NULL);
    }
    jout_close(&j, '}');
    http_reply_json(op->req, 200, &out, 0);
    buf_release(&out);
}

static int digit(char c)
{
    const char *all = "0123456789abcdef", *at = c ? strchr(all, c) : NULL;
    return at ? (int)(at - all) : -1;
}

/* A cursor is the name of the last entry in hex. */
static int api_files_read_cursor(const char *hex, char **ret, struct err *err)
{
    size_t n = strlen(hex);
    _cleanup_(freep) char *name = xcalloc(1, n / 2 + 1);
    bool ok = n % 2 == 0 && n <= 2 * WALK_NAME_MAX;
    for (size_t i = 0; ok && i < n; i += 2) {
        int hi = digit(hex[i]), lo = digit(hex[i + 1]);
        ok = hi >= 0 && lo >= 0 && (hi || lo);
        name[i / 2] = (char)(hi * 16 + lo);
    }
    if (!ok)
        return err_set(err, ERR_BAD_REQUEST, "cursor '%.40s' is none of ours", hex);
    *ret = name;
    name = NULL;
    return 0;
}

static void api_files_begin_look(struct http_req *req, struct api *a, struct walk_place *taken)
{
    struct err err = {0};
    int64_t limit = 0;
    char *after = NULL;
    int r = http_req_query_int(req, "limit", 1, LIST_MOST, LIST_DEFAULT, &limit, &err);
    if (r == 0)
        r = api_files_read_cursor(str_or(http_req_query(req, "cursor"), ""), &after, &err);
    if (r < 0) {
        walk_place_release(taken);
        http_problem(req, ERR_BAD_REQUEST, &err, NULL, NULL, NULL, 0);
        return;
    }
    struct op *op = op_new(req, a, taken);
    op->after = after;
    op->limit = (size_t)limit;
    op->end = end_look;
    work_start(a->loop, api_files_run_look, api_files_on_done, op);
}

/* Without a path: where he may begin. */
static void answer_roots(struct http_req *req)
{
    struct buf out = BUF_INIT(BODY_TEXT_MAX);
    struct jout j = jout_begin(&out);
    _cleanup_(freep) char *own = xasprintf("users/%s", http_req_principal(req)->user);
    const char *const roots[] = {"common", own};
    jout_open(&j, NULL, '{');
    jout_str(&j, "path", "");
    jout_str(&j, "kind", place_kind_to_string(PLACE_DIRECTORY));
    jout_null(&j, "changed_at");
    jout_open(&j, "entries", '[');
    for (size_t i = 0; i < array_len(roots); i++) {
        jout_open(&j, NULL, '{');
        jout_str(&j, "name", roots[i]);
        jout_str(&j, "kind", place_kind_to_string(PLACE_DIRECTORY));
        jout_null(&j, "changed_at");
        jout_close(&j, '}');
    }
    jout_close(&j, ']');
    jout_null(&j, "next_cursor");
    jout_close(&j, '}');
    http_reply_json(req, 200, &out, 0);
    buf_release(&out);
}

void api_files(struct http_req *req, void *app)
{
    static const api_place_f then = api_files_begin_look;
    const char *path = http_req_query(req, "path");
    if (path && *path)
        api_find_place(req, app, &then);
    else
        answer_roots(req);
}

/* ---- put ---- */

static void run_put(void *arg)
{
    struct op *op = arg;
    op->was_there = place_look(op->root, &op->place, &op->entry, NULL) == 0;
    if (place_put(op->root, &op->place, op->given.path, op->flags, &op->err) < 0)
        return; /* err says it */
}

static void api_files_note(const struct op *op, const char *kind, const char *text)
{
    _cleanup_(freep) char *object = xasprintf("file/%s", op->place.path);
    _cleanup_(buf_release) struct buf before = BUF_INIT(BODY_TEXT_MAX);
    _cleanup_(buf_release) struct buf after = BUF_INIT(BODY_TEXT_MAX);
    struct jout b = jout_begin(&before), c = jout_begin(&after);
    jout_open(&b, NULL, '{');
    api_files_put_entry(&b, &op->entry);
    jout_close(&b, '}');
    jout_open(&c, NULL, '{');
    if (op->given.path) {
        jout_int(&c, "bytes", (int64_t)op->given.bytes);
        jout_str(&c, "sha256", op->given.sha256);
    } else {
        jout_int(&c, "removed", (int64_t)op->removed);
    }
    jout_close(&c, '}');
    struct access_thing thing = api_files_thing(&op->place);
    struct events_note n = {.thing = &thing,
                            .kind = kind,
                            .actor = op->user,
                            .object = object,
                            .text = text,
                            .before = op->was_there ? buf_str(&before) : NULL,
                            .after = buf_str(&after)};
    events_add(op->a->events, &n, clock_wall());
}

static void end_put(struct op *op)
{
    if (op->err.code) {
        uploads_give_back(op->a->uploads, op->upload);
        if (op->req)
            http_problem(op->req, op->err.code, &op->err, "path",
                         op->err.code == ERR_CONFLICT && op->entry.kind != PLACE_DIRECTORY
                             ? "replace: true puts it in its place"
                             : NULL,
                         NULL, 0);
        return;
    }
    api_files_note(op, "file_put", op->was_there ? "a file was replaced" : "a file was put");
    uploads_used(op->a->uploads, op->upload);
    if (!op->req)
        return;
    struct buf out = BUF_INIT(BODY_TEXT_MAX);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    jout_str(&j, "path", op->place.path);
    jout_str(&j, "kind", place_kind_to_string(PLACE_FILE));
    jout_int(&j, "bytes", (int64_t)op->given.bytes);
    jout_str(&j, "sha256", op->given.sha256);
    jout_bool(&j, "replaced", op->was_there);
    jout_close(&j, '}');
    http_reply_json(op->req, 201, &out, api_barrier(op->a));
    buf_release(&out);
}

static int take_upload(struct op *op, const json_t *v, struct err *err)
{
    const char *wanted = json_get_str(v, "sha256", NULL);
    const char *id = json_get_str(v, "upload", NULL);
    if (!id)
        return err_set(err, ERR_BAD_REQUEST,
                       "say which upload the bytes are of: 'upload' (POST /v1/uploads makes one)");
    int r = uploads_take(op->a->uploads, id, op->user, &op->given, err);
    if (r < 0)
        return r;
    set_str(&op->upload, id);
    if (wanted && !str_eq(wanted, op->given.sha256)) {
        uploads_give_back(op->a->uploads, id);
        return err_set(err, ERR_CONFLICT, "upload '%s' has SHA-256 %s and not %.80s", id,
                       op->given.sha256, wanted);
    }
    return 0;
}

void api_files_put(struct http_req *req, void *app)
{
    static const char *const keys[] = {"path", "upload", "sha256", "replace", "parents", NULL};
    struct api *a = app;
    struct walk_place p = {0};
    struct err err = {0};
    _cleanup_(json_unrefp) json_t *v = api_read_action(req, keys);
    if (!v || !api_files_parse(req, a, json_get_str(v, "path", NULL), true, &p))
        return;
    struct op *op = op_new(req, a, &p);
    if (take_upload(op, v, &err) < 0) {
        http_req_on_close(req, NULL, NULL);
        http_problem(req, err.code, &err, "upload", NULL, NULL, 0);
        op_free(op);
        return;
    }
    op->flags = (json_get_bool(v, "replace", false) ? PLACE_REPLACE : 0U) |
                (json_get_bool(v, "parents", false) ? PLACE_PARENTS : 0U);
    op->end = end_put;
    work_start(a->loop, run_put, api_files_on_done, op);
}

/* ---- remove ---- */

static void api_files_run_remove(void *arg)
{
    struct op *op = arg;
    op->was_there = place_look(op->root, &op->place, &op->entry, NULL) == 0;
    if (place_remove(op->root, &op->place, op->recursive, &op->removed, &op->err) < 0)
        return; /* err says it */
}

static void end_remove(struct op *op)
{
    if (op->removed)
        api_files_note(op, "file_removed",
                       op->err.code ? "files were removed, not all" : "removed");
    if (!op->req)
        return;
    if (op->err.code) {
        http_problem(op->req, op->err.code, &op->err, "path",
                     op->err.code == ERR_CONFLICT && !op->recursive
                         ? "recursive=true removes all that is in it"
                         : NULL,
                     NULL, api_barrier(op->a));
        return;
    }
    struct buf out = BUF_INIT(BODY_TEXT_MAX);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    jout_str(&j, "path", op->place.path);
    jout_int(&j, "removed", (int64_t)op->removed);
    jout_close(&j, '}');
    http_reply_json(op->req, 200, &out, api_barrier(op->a));
    buf_release(&out);
}

/* What users, jobs and argusd expect to be there. */
static bool is_fixture(const struct walk_place *p)
{
    return p->zone != WALK_JOB &&
           (str_eq(p->rest, "datasets") || str_eq(p->rest, "models") || str_eq(p->rest, "code"));
}

void api_files_remove(struct http_req *req, void *app)
{
    struct api *a = app;
    struct walk_place p = {0};
    struct err err = {0};
    if (!api_files_parse(req, a, http_req_query(req, "path"), true, &p))
        return;
    if (is_fixture(&p)) {
        (void)err_set(&err, ERR_CONFLICT, "'%s' stays: remove what is in it",
                      p.path); /* only fills err */
        api_files_fail(req, &err);
        walk_place_release(&p);
        return;
    }
    struct op *op = op_new(req, a, &p);
    op->recursive = http_req_query_bool(req, "recursive", false);
    op->end = end_remove;
    work_start(a->loop, api_files_run_remove, api_files_on_done, op);
}
