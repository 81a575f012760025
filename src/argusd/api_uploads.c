/* SPDX-License-Identifier: Apache-2.0 */
/* api_uploads.c - /v1/uploads: begin, send, look, list, remove. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/api_people.h"
#include "argusd/uploads.h"
#include "base/str.h"

enum { UPLOAD_MAX_BYTES = 16 << 10, LIST_MAX = 4 << 20 };

static void put_upload(struct jout *j, const struct uploads *us, const struct upload *u)
{
    jout_open(j, NULL, '{');
    jout_str(j, "id", u->id);
    jout_str(j, "name", u->name);
    jout_str(j, "user", u->user);
    jout_str(j, "state", upload_state_to_string(u->state));
    jout_int(j, "bytes", (int64_t)u->bytes);
    jout_int(j, "offset", (int64_t)u->offset);
    jout_bool(j, "receiving", u->coming != NULL);
    jout_str(j, "sha256", u->is_known && !u->coming && *u->sha256 ? u->sha256 : NULL);
    jout_int(j, "chunk", UPLOAD_CHUNK_BYTES);
    jout_str(j, "why", u->why);
    jout_time(j, "created_at", u->created_at);
    jout_time(j, "expires_at", uploads_expires_at(us, u));
    jout_close(j, '}');
}

static void answer_upload(struct http_req *req,
                          struct api *a,
                          const struct upload *u,
                          int status,
                          uint64_t barrier)
{
    struct buf out = BUF_INIT(UPLOAD_MAX_BYTES);
    struct jout j = jout_begin(&out);
    put_upload(&j, a->uploads, u);
    http_reply_json(req, status, &out, barrier);
    buf_release(&out);
}

/* NULL: it was answered. */
static struct upload *find(struct http_req *req, struct api *a, const char *verb, bool changes)
{
    struct upload *u = NULL;
    struct err err = {0};
    const char *id = http_req_param(req, "id");
    if (uploads_find(a->uploads, id, NULL, &u, &err) < 0) {
        api_fail(req, &err, 0);
        return NULL;
    }
    struct access_thing thing = {.kind = "upload", .name = id, .owner = u->user};
    return api_people_may(req, a, ACCESS_UPLOAD, verb, &thing, changes) == 0 ? u : NULL;
}

/* ---- begin ---- */

static int read_wish(const json_t *v, const struct http_req *req, struct upload_wish *w)
{
    const json_t *bytes = json_object_get(v, "bytes"), *hash = json_object_get(v, "sha256");
    w->user = http_req_principal(req)->user;
    w->name = json_get_str(v, "name", NULL);
    w->bytes = json_is_integer(bytes) ? (uint64_t)json_integer_value(bytes) : 0;
    w->sha256 = json_get_str(v, "sha256", NULL);
    return w->name && json_is_integer(bytes) && json_integer_value(bytes) >= 0 &&
                   (!hash || json_is_null(hash) || w->sha256)
               ? 0
               : -1;
}

void api_upload_add(struct http_req *req, void *app)
{
    static const char *const keys[] = {"name", "bytes", "sha256", NULL};
    struct api *a = app;
    struct upload_wish w = {0};
    struct upload *u = NULL;
    struct err err = {0};
    const char *user = http_req_principal(req)->user;
    struct access_thing thing = {.kind = "user", .name = user, .owner = user};
    if (api_people_may(req, a, ACCESS_UPLOAD, "upload for", &thing, true) < 0)
        return;
    json_t *v = api_read_action(req, keys);
    if (!v)
        return;
    int r =
        read_wish(v, req, &w) == 0
            ? uploads_add(a->uploads, &w, &u, &err)
            : err_set(&err, ERR_BAD_REQUEST,
                      "an upload has a 'name', its size as 'bytes', a whole number, and maybe a "
                      "'sha256'");
    if (r < 0 || !u) {
        api_fail(req, &err, api_barrier(a));
    } else {
        uploads_note(a->uploads, u, "upload_begun", "upload begun");
        answer_upload(req, a, u, 201, api_barrier(a));
    }
    json_unrefp(&v);
}

/* ---- send ---- */

static void on_received(struct http_req *req,
                        struct uploads *us,
                        struct upload *u,
                        const struct err *err,
                        void *arg)
{
    struct api *a = arg;
    (void)us;
    if (err)
        http_problem(req, err->code, err, err->code == ERR_CONFLICT ? "offset" : NULL,
                     "GET the upload: it says where to go on", NULL, api_barrier(a));
    else
        answer_upload(req, a, u, 200, api_barrier(a));
}

void api_upload_put(struct http_req *req, void *app)
{
    struct api *a = app;
    struct err err = {0};
    int64_t at;
    struct upload *u = find(req, a, "send", true);
    if (!u)
        return;
    if (!http_req_query(req, "offset")) {
        (void)err_set(&err, ERR_BAD_REQUEST, "say where the bytes belong: ?offset=N");
        http_problem(req, err.code, &err, "offset", NULL, NULL, 0);
        return;
    }
    if (http_req_query_int(req, "offset", 0, INT64_MAX, 0, &at, &err) < 0) {
        http_problem(req, ERR_BAD_REQUEST, &err, "offset", NULL, NULL, 0);
        return;
    }
    if (cluster_root_is_bad(a->cluster) || cluster_root_hangs(a->cluster)) {
        (void)err_set(&err, ERR_UNAVAILABLE, "uploads wait for the shared root: %s",
                      cluster_root_why(a->cluster)); /* only fills err */
        api_fail(req, &err, 0);
        return;
    }
    uploads_receive(a->uploads, u, (uint64_t)at, req, on_received, a);
}

/* ---- look ---- */

struct asked {
    struct api *a;
    struct http_req *req; /* NULL: gone */
    char id[UPLOAD_ID_MAX];
};

static void on_asker_gone(struct http_req *req, void *arg)
{
    struct asked *k = arg;
    (void)req;
    k->req = NULL;
}

static void on_looked(const struct err *err, void *arg)
{
    struct asked *k = arg;
    struct upload *u = NULL;
    struct err why = {0};
    if (!k->req)
        ;
    else if (err)
        api_fail(k->req, err, 0);
    else if (uploads_find(k->a->uploads, k->id, http_req_principal(k->req)->user, &u, &why) < 0 ||
             !u)
        api_fail(k->req, &why, 0);
    else
        answer_upload(k->req, k->a, u, 200, api_reader_barrier(k->a));
    free(k);
}

void api_upload_get(struct http_req *req, void *app)
{
    struct api *a = app;
    struct upload *u = find(req, a, "see", false);
    if (!u)
        return;
    struct asked *k = xcalloc(1, sizeof(*k));
    *k = (struct asked){.a = a, .req = req};
    (void)snprintf(k->id, sizeof(k->id), "%s", u->id); /* of the same size */
    http_req_on_close(req, on_asker_gone, k);
    uploads_look(a->uploads, u, on_looked, k);
}

static int by_time(const void *x, const void *y)
{
    const struct upload *a = *(const struct upload *const *)x,
                        *b = *(const struct upload *const *)y;
    return a->created_at != b->created_at ? (a->created_at < b->created_at ? -1 : 1)
                                          : strcmp(a->id, b->id);
}

void api_uploads(struct http_req *req, void *app)
{
    struct api *a = app;
    const struct upload *v[UPLOADS_OF_USER_MAX], *u;
    size_t n = 0;
    const char *user = http_req_principal(req)->user;
    for (size_t pos = 0; n < array_len(v) && (u = uploads_next(a->uploads, user, &pos));)
        v[n++] = u;
    xsort(v, n, sizeof(void *), by_time);
    struct buf out = BUF_INIT(LIST_MAX);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    jout_open(&j, "uploads", '[');
    for (size_t i = 0; i < n; i++)
        put_upload(&j, a->uploads, v[i]);
    jout_close(&j, ']');
    jout_close(&j, '}');
    http_reply_json(req, 200, &out, api_reader_barrier(a));
    buf_release(&out);
}

/* ---- remove ---- */

void api_upload_remove(struct http_req *req, void *app)
{
    struct api *a = app;
    struct err err = {0};
    struct upload *u = find(req, a, "remove", true);
    if (!u)
        return;
    if (u->taken) {
        (void)err_set(&err, ERR_CONFLICT, "upload '%s' is being used", u->id); /* only fills err */
        api_fail(req, &err, 0);
        return;
    }
    struct buf out = BUF_INIT(UPLOAD_MAX_BYTES);
    struct jout j = jout_begin(&out);
    put_upload(&j, a->uploads, u);
    uploads_note(a->uploads, u, "upload_removed", "upload removed");
    uploads_remove(a->uploads, u);
    http_reply_json(req, 200, &out, api_barrier(a));
    buf_release(&out);
}
