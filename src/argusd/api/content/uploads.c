/* SPDX-License-Identifier: Apache-2.0 */
/* uploads.c - /v1/uploads: begin, send, look, list, remove. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/content/uploads.h"
#include "argusd/kit/part.h"
#include "argusd/kit/resource.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

struct upload_page {
    struct upload upload; /* borrowed */
    bool receiving;
    const char *sha256; /* borrowed */
    int64_t chunk;
    usec_t expires_at;
};
#define PAGE(key, ftype, ...)                                                                      \
    {                                                                                              \
        .name = #key, .type = ftype, .offset = offsetof(struct upload_page, key), __VA_ARGS__      \
    }
static const struct field page_rows[] = {
    {.name = "",
     .type = FIELD_INLINE,
     .offset = offsetof(struct upload_page, upload),
     .of = &upload_table,
     .flags = FIELD_BORROWED},
    PAGE(receiving, FIELD_BOOL, .flags = FIELD_SHOWN, .doc = "bytes come in right now"),
    PAGE(sha256,
         FIELD_STR,
         .flags = FIELD_SHOWN | FIELD_BORROWED,
         .doc = "hash of the bytes that are safe"),
    PAGE(chunk, FIELD_INT, .flags = FIELD_SHOWN, .doc = "bytes to send at once"),
    PAGE(expires_at, FIELD_TIME, .flags = FIELD_SHOWN),
};
static const struct field_table page_table = {.name = "Upload",
                                              .rows = page_rows,
                                              .n = array_len(page_rows),
                                              .size = sizeof(struct upload_page)};

static void upload_fill(struct resource_ask *q, const void *x, void *page)
{
    const struct upload *u = x;
    const struct message_listener to = {.language = http_req_principal(q->req)->language};
    free(q->own);
    q->own = message_kept_say(u->why, &to);
    *(struct upload_page *)page =
        (struct upload_page){.upload = *u,
                             .receiving = u->coming != NULL,
                             .sha256 = u->is_known && !u->coming && *u->sha256 ? u->sha256 : NULL,
                             .chunk = UPLOAD_CHUNK_BYTES,
                             .expires_at = uploads_expires_at(q->a->uploads, u)};
    ((struct upload_page *)page)->upload.why = q->own; /* until the next page is filled */
}

static void upload_answer(struct http_req *req,
                          struct api *a,
                          const struct upload *u,
                          int status,
                          uint64_t barrier)
{
    struct resource_ask q;
    resource_begin(&q, req, a);
    resource_reply(&q, u, status, barrier);
    resource_end(&q);
}

/* ---- which there are ---- */

static const void *upload_next(struct resource_ask *q, size_t *pos)
{
    return uploads_next(q->a->uploads, q->who.user, pos);
}

static int upload_compare(const void *x, const void *y)
{
    const struct upload *a = *(const struct upload *const *)x;
    const struct upload *b = *(const struct upload *const *)y;
    return a->created_at != b->created_at ? (a->created_at < b->created_at ? -1 : 1)
                                          : strcmp(a->id, b->id);
}

static const void *upload_find(struct resource_ask *q, const void *asked)
{
    struct upload *u = NULL;
    (void)asked;
    return uploads_find(q->a->uploads, q->name, NULL, &u, &q->err) == 0 ? u : NULL;
}

static void upload_thing(struct resource_ask *q,
                         const void *x,
                         const void *asked,
                         struct access_thing *ret)
{
    (void)q;
    (void)asked;
    *ret = uploads_thing(x);
}

static int upload_check_remove(struct resource_ask *q, const void *x)
{
    const struct upload *u = x;
    return u->taken ? message_refuse(&q->err, ERR_CONFLICT, "upload_in_use",
                                     MESSAGE_ARGS(MESSAGE_STR("id", u->id)))
                    : 0;
}

static bool upload_take_away(struct resource_ask *q, const void *x)
{
    struct upload *u = NULL;
    uploads_note(q->a->uploads, x, "upload_removed", "upload_removed");
    if (uploads_find(q->a->uploads, q->name, NULL, &u, NULL) == 0)
        uploads_remove(q->a->uploads, u);
    return true;
}

static const struct resource upload_noun = {
    .noun = "upload",
    .kind = ACCESS_KIND_UPLOAD,
    .collection = "uploads",
    .param = "id",
    .page = &page_table,
    .may_see = ACCESS_UPLOAD,
    .may_change = ACCESS_UPLOAD,
    .remove = {.verb = "remove"}, /* the event is uploads_note()'s */
    .next = upload_next,
    .compare = upload_compare,
    .find = upload_find,
    .thing = upload_thing,
    .fill = upload_fill,
    .check_remove = upload_check_remove,
    .take_away = upload_take_away,
};

/* The upload that the path names; NULL: it was answered. */
static struct upload *upload_named(struct http_req *req,
                                   struct api *a,
                                   enum resource_need need,
                                   const char *verb)
{
    struct resource_ask q;
    struct upload *u = NULL;
    resource_begin(&q, req, a);
    if (!resource_find(&q, need, verb) || uploads_find(a->uploads, q.name, NULL, &u, &q.err) < 0)
        resource_refuse(&q);
    resource_end(&q);
    return u;
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

static const struct field upload_form_rows[] = {MUST_TEXT("name"), MUST_INTEGER("bytes"),
                                                OPT_AS("sha256", TEXT_OR_NULL)};
static const struct field_table upload_form = ACTION_FORM(upload_form_rows);

static void upload_add(struct http_req *req, void *app)
{
    struct api *a = app;
    struct upload_wish w = {0};
    struct upload *u = NULL;
    struct err err = {0};
    const char *user = http_req_principal(req)->user;
    struct access_thing thing = {.kind = ACCESS_KIND_USER, .name = user, .owner = user};
    if (api_people_may(req, a, ACCESS_UPLOAD, "upload for", &thing, true) < 0)
        return;
    json_t *v = api_read_action(req, &upload_form);
    if (!v)
        return;
    int r = read_wish(v, req, &w) == 0
                ? uploads_add(a->uploads, &w, &u, &err)
                : message_refuse(&err, ERR_BAD_REQUEST, "upload_form", MESSAGE_NO_ARGS);
    if (r < 0 || !u) {
        api_fail(req, &err, api_barrier(a));
    } else {
        uploads_note(a->uploads, u, "upload_begun", "upload_begun");
        upload_answer(req, a, u, 201, api_barrier(a));
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
        http_problem(req, err->code, err, err->code == ERR_CONFLICT ? "offset" : NULL, NULL,
                     api_barrier(a));
    else
        upload_answer(req, a, u, 200, api_barrier(a));
}

static void upload_put(struct http_req *req, void *app)
{
    struct api *a = app;
    struct err err = {0};
    int64_t at;
    struct upload *u = upload_named(req, a, RESOURCE_TO_CHANGE, "send");
    if (!u)
        return;
    if (!http_req_query(req, "offset")) {
        (void)message_refuse(&err, ERR_BAD_REQUEST, "upload_no_offset", MESSAGE_NO_ARGS);
        http_problem(req, err.code, &err, "offset", NULL, 0);
        return;
    }
    if (http_req_query_int(req, "offset", 0, INT64_MAX, 0, &at, &err) < 0) {
        http_problem(req, ERR_BAD_REQUEST, &err, "offset", NULL, 0);
        return;
    }
    if (uploads_ask_root(a->uploads, &err) < 0) {
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

static void api_uploads_on_looked(const struct err *err, void *arg)
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
        upload_answer(k->req, k->a, u, 200, api_reader_barrier(k->a));
    free(k);
}

static void upload_get(struct http_req *req, void *app)
{
    struct api *a = app;
    struct upload *u = upload_named(req, a, RESOURCE_TO_SEE, "see");
    if (!u)
        return;
    struct asked *k = xcalloc(1, sizeof(*k));
    *k = (struct asked){.a = a, .req = req};
    text_copy(k->id, u->id);
    http_req_on_close(req, on_asker_gone, k);
    uploads_look(a->uploads, u, api_uploads_on_looked, k);
}

/* ---- routes ---- */

static const struct http_param put_params[] = {
    {"offset", HTTP_PARAM_INTEGER, "where the first of these bytes belongs: the upload's offset"},
    {0}};
static const struct http_route rows[] = {
    RESOURCE_ROUTE("POST",
                   upload_add,
                   &upload_noun,
                   "/v1/uploads",
                   USER,
                   "begin an upload; only you see it, and it goes when nothing is sent for a day",
                   .max_body = RESOURCE_BODY_MAX,
                   .request_schema = "UploadForm",
                   .reply_schema = "Upload",
                   .reply_status = 201),
    RESOURCE_LIST(&upload_noun,
                  "/v1/uploads",
                  USER,
                  "your uploads that were not used yet",
                  .reply_schema = "UploadList"),
    RESOURCE_ROUTE("GET",
                   upload_get,
                   &upload_noun,
                   "/v1/uploads/{id}",
                   USER,
                   "one upload: how much of it is safe on the disk",
                   .reply_schema = "Upload",
                   .example = "u1"),
    RESOURCE_ROUTE("PUT",
                   upload_put,
                   &upload_noun,
                   "/v1/uploads/{id}",
                   USER,
                   "send bytes of it, any number; after a cut go on where GET says",
                   .flags = HTTP_ROUTE_PIECES,
                   .max_body = 1ULL << 50,
                   .params = put_params,
                   .request_type = "application/octet-stream",
                   .reply_schema = "Upload"),
    RESOURCE_REMOVE(&upload_noun,
                    "/v1/uploads/{id}",
                    USER,
                    "remove an upload and its bytes",
                    .reply_schema = "Upload"),
};
static const struct http_schema schemas[] = {
    {.name = "UploadForm", .table = &upload_form, .is_form = true},
    {.name = "Upload", .table = &page_table, .which = FIELD_SHOWN},
    LIST_OF("UploadList", "uploads", "Upload"),
};
const struct api_part part_uploads = {rows, array_len(rows), schemas, array_len(schemas)};
