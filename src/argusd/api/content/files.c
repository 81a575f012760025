/* SPDX-License-Identifier: Apache-2.0 */
/* files.c - /v1/files: look, list, put and remove below the roots that the token may use.
 * Reading is api/content/content.c. What is asked of the disk runs on a worker thread. */
#include "argusd/api/content/files.h"
#include "argusd/kit/part.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/api/people/people.h"
#include "argusd/content/registry.h"
#include "argusd/content/uploads.h"
#include "argusd/ground/work.h"
#include "base/message.h"
#include "base/str.h"
#include "fsroot/tree/root.h"

enum { LIST_DEFAULT = 200, LIST_MOST = 1000, REPLY_MAX = 8 << 20, BODY_TEXT_MAX = 64 << 10 };

/* ---- who may ---- */

static void api_files_fail(struct http_req *req, const struct err *err)
{
    http_problem(req, err->code, err, "path", NULL, 0);
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
        return message_refuse(err, ERR_FORBIDDEN, "files_of_job", MESSAGE_NO_ARGS);
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
                 : message_refuse(&err, ERR_BAD_REQUEST, "file_which", MESSAGE_NO_ARGS);
    if (r == 0)
        r = api_files_may(req, a, changes, ret, &err);
    if (r == 0)
        r = cluster_check_root(a->cluster, &err);
    if (r == 0 && changes)
        r = store_check(a->store, &err);
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
    (void)message_refuse(
        &err, ERR_NOT_FOUND, "not_found",
        MESSAGE_ARGS(MESSAGE_STR("noun", "job"), MESSAGE_STR("name", p.name))); /* only fills err */
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

/* Files may be the first thing that a new user brings: his own directories are made by then. */
static bool op_makes_home(const struct op *op)
{
    return op->place.zone == WALK_USER && str_eq(op->place.name, op->user) &&
           fsroot_user_prepare(op->root, op->user, NULL) == 0;
}

/* ---- look and list ---- */

static void api_files_run_look(void *arg)
{
    struct op *op = arg;
    int r = place_look(op->root, &op->place, &op->entry, &op->err);
    if (r == ERR_NOT_FOUND && op_makes_home(op)) {
        op->err = (struct err){0};
        r = place_look(op->root, &op->place, &op->entry, &op->err);
    }
    if (r == 0 && op->entry.kind == PLACE_DIRECTORY &&
        place_list(op->root, &op->place, op->after, op->limit, &op->list, &op->err) < 0)
        return; /* err says it */
}

/* A file, or an entry of a directory: its name stands in its directory only. */
struct entry_page {
    const char *name, *kind, *etag, *target;
    int64_t bytes; /* of a file; -1 */
    bool odd;
    usec_t changed_at;
};
#define ENTRY(member, ftype, ...) FIELD_AT(entry_page, #member, ftype, member, __VA_ARGS__)
static const struct field entry_rows[] = {
    ENTRY(name, FIELD_STR, .flags = FIELD_OMIT),
    ENTRY(kind,
          FIELD_STR,
          .flags = FIELD_ALWAYS,
          .schema = WORDS("\"file\",\"directory\",\"link\",\"other\"")),
    ENTRY(bytes, FIELD_INT, .flags = FIELD_OMIT | FIELD_NO_LIMIT),
    ENTRY(etag, FIELD_STR, .flags = FIELD_OMIT),
    ENTRY(target, FIELD_STR, .flags = FIELD_OMIT),
    ENTRY(odd, FIELD_BOOL, .flags = FIELD_OMIT),
    ENTRY(changed_at, FIELD_TIME, .flags = 0),
};
static const struct field_table entry_table = {NULL, entry_rows, array_len(entry_rows),
                                               sizeof(struct entry_page), FIELD_SHOWN};

/* A directory is shown with all of these rows, anything else with those of FIELD_SHOWN. */
struct look_page {
    const char *path, *next_cursor;
    struct entry_page self;
    struct field_list entries;
};
#define LOOK(key, ftype, member, ...) FIELD_AT(look_page, key, ftype, member, __VA_ARGS__)
static const struct field look_rows[] = {
    LOOK("path", FIELD_STR, path, .flags = FIELD_ALWAYS | FIELD_SHOWN),
    LOOK("", FIELD_INLINE, self, .of = &entry_table),
    LOOK("entries", FIELD_LIST, entries, .of = &entry_table, .flags = FIELD_OWN(0)),
    LOOK("next_cursor", FIELD_STR, next_cursor, .flags = FIELD_OWN(0)),
};
static const struct field_table file_table = FIELD_TABLE(NULL, look_rows, look_page);

static struct entry_page entry_page_of(const struct place_entry *e)
{
    bool is_file = e->kind == PLACE_FILE;
    return (struct entry_page){.name = e->name,
                               .kind = place_kind_to_string(e->kind),
                               .bytes = is_file ? (int64_t)e->bytes : -1,
                               .etag = is_file ? e->etag : NULL,
                               .target = e->target,
                               .odd = e->is_odd,
                               .changed_at = e->changed_at};
}

static void answer_look(struct http_req *req, const struct look_page *page, bool is_directory)
{
    struct buf out = BUF_INIT(REPLY_MAX);
    struct jout j = jout_begin(&out);
    field_to_json(&file_table, page, is_directory ? FIELD_ALL : FIELD_SHOWN, FIELD_PAGE, &j, NULL);
    http_reply_json(req, 200, &out, 0);
    buf_release(&out);
}

static void end_look(struct op *op)
{
    char cursor[2 * WALK_NAME_MAX + 1] = "";
    const struct place_list *list = &op->list;
    if (!op->req)
        return;
    if (op->err.code) {
        api_files_fail(op->req, &op->err);
        return;
    }
    struct entry_page *v = xcalloc(list->n + 1, sizeof(*v));
    for (size_t i = 0; i < list->n; i++)
        v[i] = entry_page_of(&list->v[i]);
    if (list->more && list->n) {
        const char *last = list->v[list->n - 1].name;
        (void)str_hex((const unsigned char *)last, strlen(last), cursor);
    }
    const struct look_page page = {.path = op->place.path,
                                   .self = entry_page_of(&op->entry),
                                   .entries = {.v = v, .n = list->n},
                                   .next_cursor = *cursor ? cursor : NULL};
    answer_look(op->req, &page, op->entry.kind == PLACE_DIRECTORY);
    free(v);
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
        return message_refuse(err, ERR_BAD_REQUEST, "bad_cursor",
                              MESSAGE_ARGS(MESSAGE_STR("cursor", hex)));
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
        http_problem(req, ERR_BAD_REQUEST, &err, NULL, NULL, 0);
        return;
    }
    struct op *op = op_new(req, a, taken);
    op->after = after;
    op->limit = (size_t)limit;
    op->end = end_look;
    work_start_for(a->loop, op->user, api_files_run_look, api_files_on_done, op);
}

/* Without a path: where he may begin. */
static void answer_roots(struct http_req *req)
{
    _cleanup_(freep) char *own = xasprintf("users/%s", http_req_principal(req)->user);
    const char *const roots[] = {"common", own};
    const struct entry_page directory = {.kind = place_kind_to_string(PLACE_DIRECTORY),
                                         .bytes = -1};
    struct entry_page v[array_len(roots)];
    for (size_t i = 0; i < array_len(roots); i++) {
        v[i] = directory;
        v[i].name = roots[i];
    }
    const struct look_page page = {
        .path = "", .self = directory, .entries = {.v = v, .n = array_len(roots)}};
    answer_look(req, &page, true);
}

static void api_files(struct http_req *req, void *app)
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
    if (!op->was_there)
        (void)op_makes_home(op); /* what fails is told by the put */
    const struct upload_given *g = &op->given;
    if (place_put(op->root, &op->place, g->path, g->bytes, op->flags, &op->err) < 0)
        return; /* err says it */
}

/* What a change came to, as its reply and as its event say. */
struct changed_page {
    const char *path, *kind, *sha256;
    uint64_t bytes, removed;
    bool replaced;
};
#define CHANGED(member, ftype, ...) FIELD_AT(changed_page, #member, ftype, member, __VA_ARGS__)
static const struct field put_rows[] = {
    CHANGED(path, FIELD_STR, .flags = FIELD_ALWAYS),
    CHANGED(kind, FIELD_STR, .flags = FIELD_ALWAYS),
    CHANGED(bytes, FIELD_COUNT, .flags = FIELD_STORED),
    CHANGED(sha256, FIELD_STR, .flags = FIELD_ALWAYS | FIELD_STORED),
    CHANGED(replaced, FIELD_BOOL, .flags = 0),
};
static const struct field_table file_put_table = FIELD_TABLE(NULL, put_rows, changed_page);
static const struct field removed_rows[] = {
    CHANGED(path, FIELD_STR, .flags = FIELD_ALWAYS),
    CHANGED(removed, FIELD_COUNT, .flags = FIELD_STORED),
};
static const struct field_table file_removed_table = FIELD_TABLE(NULL, removed_rows, changed_page);

static struct changed_page changed_page_of(const struct op *op)
{
    return (struct changed_page){.path = op->place.path,
                                 .kind = place_kind_to_string(PLACE_FILE),
                                 .bytes = op->given.bytes,
                                 .sha256 = op->given.sha256,
                                 .replaced = op->was_there,
                                 .removed = op->removed};
}

static void api_files_note(const struct op *op, const char *kind, const char *code)
{
    const struct field_table *of = op->given.path ? &file_put_table : &file_removed_table;
    const struct changed_page page = changed_page_of(op);
    const struct entry_page entry = entry_page_of(&op->entry);
    _cleanup_(freep) char *object = xasprintf("file/%s", op->place.path);
    _cleanup_(freep) char *before = field_to_text(&entry_table, &entry, FIELD_ALL, FIELD_PAGE);
    _cleanup_(freep) char *after = field_to_text(of, &page, FIELD_STORED, FIELD_PAGE);
    struct access_thing thing = api_files_thing(&op->place);
    struct events_note n = {.thing = &thing,
                            .kind = kind,
                            .actor = op->user,
                            .object = object,
                            .code = code,
                            .text = "{}",
                            .before = op->was_there ? before : NULL,
                            .after = after};
    events_add(op->a->events, &n, clock_wall());
}

static void answer_changed(const struct op *op, const struct field_table *of, int status)
{
    const struct changed_page page = changed_page_of(op);
    struct buf out = BUF_INIT(BODY_TEXT_MAX);
    struct jout j = jout_begin(&out);
    field_to_json(of, &page, FIELD_ALL, FIELD_PAGE, &j, NULL);
    http_reply_json(op->req, status, &out, api_barrier(op->a));
    buf_release(&out);
}

static void end_put(struct op *op)
{
    if (op->err.code) {
        uploads_give_back(op->a->uploads, op->upload);
        if (op->req)
            http_problem(op->req, op->err.code, &op->err, "path", NULL, 0);
        return;
    }
    api_files_note(op, "file_put", op->was_there ? "file_replaced" : "file_put");
    uploads_used(op->a->uploads, op->upload);
    if (op->req)
        answer_changed(op, &file_put_table, 201);
}

static int take_upload(struct op *op, const json_t *v, struct err *err)
{
    const char *wanted = json_get_str(v, "sha256", NULL);
    const char *id = json_get_str(v, "upload", NULL);
    if (!id)
        return message_refuse(err, ERR_BAD_REQUEST, "file_no_upload", MESSAGE_NO_ARGS);
    int r = uploads_take(op->a->uploads, id, op->user, &op->given, err);
    if (r < 0)
        return r;
    set_str(&op->upload, id);
    if (wanted && !str_eq(wanted, op->given.sha256)) {
        uploads_give_back(op->a->uploads, id);
        return message_refuse(err, ERR_CONFLICT, "upload_other_sha256",
                              MESSAGE_ARGS(MESSAGE_STR("id", id),
                                           MESSAGE_STR("sha256", op->given.sha256),
                                           MESSAGE_STR("wanted", wanted)));
    }
    return 0;
}

static const struct field file_form_rows[] = {MUST_TEXT("path"), MUST_TEXT("upload"),
                                              OPT_TEXT("sha256"), OPT_BOOLEAN("replace"),
                                              OPT_BOOLEAN("parents")};
static const struct field_table file_form = ACTION_FORM(file_form_rows);

static void api_files_put(struct http_req *req, void *app)
{
    struct api *a = app;
    struct walk_place p = {0};
    struct err err = {0};
    _cleanup_(json_unrefp) json_t *v = api_read_action(req, &file_form);
    if (!v || !api_files_parse(req, a, json_get_str(v, "path", NULL), true, &p))
        return;
    struct op *op = op_new(req, a, &p);
    if (take_upload(op, v, &err) < 0) {
        http_req_on_close(req, NULL, NULL);
        http_problem(req, err.code, &err, "upload", NULL, 0);
        op_free(op);
        return;
    }
    op->flags = (json_get_bool(v, "replace", false) ? PLACE_REPLACE : 0U) |
                (json_get_bool(v, "parents", false) ? PLACE_PARENTS : 0U);
    op->end = end_put;
    work_start_for(a->loop, op->user, run_put, api_files_on_done, op);
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
        api_files_note(op, "file_removed", op->err.code ? "files_removed_partly" : "file_removed");
    if (!op->req)
        return;
    if (op->err.code) {
        http_problem(op->req, op->err.code, &op->err, "path", NULL, api_barrier(op->a));
        return;
    }
    answer_changed(op, &file_removed_table, 200);
}

/* What users, jobs and argusd expect to be there. */
static bool is_fixture(const struct walk_place *p)
{
    return p->zone != WALK_JOB &&
           (str_eq(p->rest, "datasets") || str_eq(p->rest, "models") || str_eq(p->rest, "code"));
}

static void api_files_remove(struct http_req *req, void *app)
{
    struct api *a = app;
    struct walk_place p = {0};
    struct err err = {0};
    if (!api_files_parse(req, a, http_req_query(req, "path"), true, &p))
        return;
    if (is_fixture(&p)) {
        (void)message_refuse(&err, ERR_CONFLICT, "file_has_content",
                             MESSAGE_ARGS(MESSAGE_STR("path", p.path))); /* only fills err */
        api_files_fail(req, &err);
        walk_place_release(&p);
        return;
    }
    struct op *op = op_new(req, a, &p);
    op->recursive = http_req_query_bool(req, "recursive", false);
    op->end = end_remove;
    work_start_for(a->loop, op->user, api_files_run_remove, api_files_on_done, op);
}

static const struct http_param list_params[] = {
    {"path", HTTP_PARAM_STRING, "common/…, users/<you>/… or jobs/<id>/…; what there is if absent"},
    {"limit", HTTP_PARAM_INTEGER, "how many entries of a directory, at most 1000 [200]"},
    {"cursor", HTTP_PARAM_STRING, "next_cursor of the page before"},
    {0}};
static const struct http_param remove_params[] = {
    {"path", HTTP_PARAM_STRING, "path of a file, a link or a directory"},
    {"recursive", HTTP_PARAM_BOOLEAN, "a directory with all that is in it"},
    {0}};

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/files",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_files,
     .summary = "a file, or a directory and what is in it",
     .params = list_params,
     .reply_schema = "File"},
    {.method = "POST",
     .pattern = "/v1/files",
     .least = HTTP_ROLE_USER,
     .max_body = BODY_TEXT_MAX,
     .handle = api_files_put,
     .summary = "an upload becomes a file, in one step; none is replaced unless you say so",
     .request_schema = "FileForm",
     .reply_schema = "FilePut",
     .reply_status = 201},
    {.method = "DELETE",
     .pattern = "/v1/files",
     .least = HTTP_ROLE_USER,
     .handle = api_files_remove,
     .summary = "remove a file or a directory",
     .params = remove_params,
     .reply_schema = "FileRemoved"},
};
static const struct http_schema schemas[] = {
    {.name = "File", .table = &file_table},
    {.name = "FileForm", .table = &file_form, .is_form = true},
    {.name = "FilePut", .table = &file_put_table},
    {.name = "FileRemoved", .table = &file_removed_table},
};
const struct api_part part_files = {rows, array_len(rows), schemas, array_len(schemas)};
