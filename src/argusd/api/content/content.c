/* SPDX-License-Identifier: Apache-2.0 */
/* content.c - the bytes of a file, whole or a range of them.
 *
 * One block is read ahead on a worker thread while the one before leaves: two blocks of memory,
 * however large the file and slow the client. A file that gets shorter meanwhile ends as a broken
 * connection, never as a whole answer; so does one whose reader's token or role ends meanwhile. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/api/content/files.h"
#include "argusd/ground/work.h"
#include "argusd/kit/part.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "http/uri.h"

enum { BLOCK_BYTES = 128 << 10 };

struct content {
    struct api *a;
    struct http_req *req;   /* until the head is made; NULL: gone */
    struct http_stream *st; /* then; NULL: gone, or all was written */
    bool working, is_head;
    struct http_principal who;

    /* of the worker while it works */
    char *root, *user;
    struct walk_place place;
    int fd;
    struct place_entry entry;
    uint64_t at, left;
    char *block;
    size_t n, sent;
    struct err err;
};

static void content_free(struct content *c)
{
    closep(&c->fd);
    walk_place_release(&c->place);
    place_entry_release(&c->entry);
    free(c->root);
    free(c->user);
    free(c->block);
    free(c);
}

/* Nobody needs it: at once, or when its worker comes back. */
static void content_let_go(struct content *c)
{
    if (!c->working && !c->st && !c->req)
        content_free(c);
}

/* ---- bytes ---- */

static void run_read(void *arg)
{
    struct content *c = arg;
    size_t n = c->left < BLOCK_BYTES ? (size_t)c->left : BLOCK_BYTES;
    c->n = c->sent = 0;
    if (place_read(&c->place, c->fd, c->at, c->block, n, &c->n, &c->err) == 0 && c->n < n)
        (void)message_refuse(&c->err, ERR_CONFLICT, "file_got_shorter",
                             MESSAGE_NO_ARGS); /* only fills err */
}

static void done_read(void *arg);

static void content_cut(struct content *c)
{
    http_stream_cut(c->st);
    c->st = NULL;
}

static void content_go_on(struct content *c)
{
    if (c->working || !c->st)
        return;
    if (!people_may_go_on(c->a->people, c->a->tokens, &c->who)) {
        content_cut(c);
        content_let_go(c);
        return;
    }
    if (c->sent < c->n) {
        if (http_stream_write(c->st, c->block, c->n) < 0)
            return; /* goes on when there is room */
        c->sent = c->n;
        c->at += c->n;
        c->left -= c->n;
    }
    if (!c->left) {
        http_stream_end(c->st);
        c->st = NULL;
        content_let_go(c);
        return;
    }
    c->working = true;
    work_start_for(c->a->loop, c->user, run_read, done_read, c);
}

static void done_read(void *arg)
{
    struct content *c = arg;
    c->working = false;
    if (c->st && c->err.code)
        content_cut(c);
    if (c->st)
        content_go_on(c);
    else
        content_let_go(c);
}

static void content_on_drain(struct http_stream *st, void *arg)
{
    (void)st;
    content_go_on(arg);
}

static void content_on_stream_gone(struct http_stream *st, void *arg)
{
    struct content *c = arg;
    (void)st;
    c->st = NULL;
    content_let_go(c);
}

/* ---- the head ---- */

/* 1: a part; 0: the whole; ERR_RANGE. */
static int content_choose(const struct http_req *req, struct content *c)
{
    char etag[PLACE_ETAG_MAX + 2];
    const char *range = http_req_header(req, "Range"), *only = http_req_header(req, "If-Range");
    text_printf(etag, "\"%s\"", c->entry.etag);
    c->at = 0;
    c->left = c->entry.bytes;
    if (!range || (only && strcmp(only, etag) != 0))
        return 0;
    return range_parse(range, c->entry.bytes, &c->at, &c->left);
}

static void begin_stream(struct content *c)
{
    struct http_req *req = c->req;
    char text[96];
    if (http_reply_not_modified(req, c->entry.etag, 0))
        return;
    http_reply_header(req, "Accept-Ranges", "bytes");
    int r = content_choose(req, c);
    if (r < 0) {
        struct err err;
        message_refuse(
            &err, ERR_RANGE, "file_range",
            MESSAGE_ARGS(MESSAGE_STR("path", c->place.path), MESSAGE_NUM("bytes", c->entry.bytes)));
        text_printf(text, "bytes */%" PRIu64, c->entry.bytes);
        http_reply_header(req, "Content-Range", text);
        http_problem(req, ERR_RANGE, &err, NULL, NULL, 0);
        return;
    }
    if (r > 0) {
        text_printf(text, "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, c->at, c->at + c->left - 1,
                    c->entry.bytes);
        http_reply_header(req, "Content-Range", text);
    }
    http_reply_header(req, "Content-Disposition", "attachment");
    c->st = http_stream_begin_sized(req, r > 0 ? 206 : 200, "application/octet-stream", c->left, 0);
    if (!c->st)
        return;
    http_stream_on_drain(c->st, content_on_drain, c);
    http_stream_on_close(c->st, content_on_stream_gone, c);
    c->block = xmalloc(BLOCK_BYTES);
}

static void run_open(void *arg)
{
    struct content *c = arg;
    if (place_open_file(c->root, &c->place, &c->fd, &c->entry, &c->err) < 0)
        return; /* err says it */
}

static void done_open(void *arg)
{
    struct content *c = arg;
    c->working = false;
    if (c->req) {
        http_req_on_close(c->req, NULL, NULL);
        if (c->err.code)
            http_problem(c->req, c->err.code, &c->err, "path", NULL, 0);
        else
            begin_stream(c);
        c->req = NULL;
    }
    if (c->st && !c->is_head)
        content_go_on(c);
    else
        content_let_go(c);
}

static void content_on_gone(struct http_req *req, void *arg)
{
    struct content *c = arg;
    (void)req;
    c->req = NULL;
    content_let_go(c);
}

static void content_begin(struct http_req *req, struct api *a, struct walk_place *taken)
{
    struct content *c = xcalloc(1, sizeof(*c));
    *c = (struct content){.a = a,
                          .req = req,
                          .working = true,
                          .is_head = str_eq(http_req_method(req), "HEAD"),
                          .root = xstrdup(a->settings->shared_root),
                          .who = *http_req_principal(req),
                          .user = xstrdup(http_req_principal(req)->user),
                          .place = *taken,
                          .fd = -1};
    *taken = (struct walk_place){0};
    http_req_on_close(req, content_on_gone, c);
    work_start_for(a->loop, c->user, run_open, done_open, c);
}

static void api_files_content(struct http_req *req, void *app)
{
    static const api_place_f then = content_begin;
    api_find_place(req, app, &then);
}

static const struct http_param content_params[] = {{"path", HTTP_PARAM_STRING, "path of the file"},
                                                   {0}};

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/files/content",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_files_content,
     .summary = "the bytes of a file, whole or by Range and If-Range",
     .params = content_params,
     .reply_type = "application/octet-stream"},
};
const struct api_part part_content = {rows, array_len(rows), NULL, 0};
