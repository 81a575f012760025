/* SPDX-License-Identifier: Apache-2.0 */
/* pieces.c - bodies of any length, handed over piece by piece.
 *
 * One piece is with its owner while the next one fills; when that is full too the connection
 * sleeps, and the peer is held by TCP. So a body takes two pieces of memory, however long it is
 * and however slow the disk. A connection that ends in the middle still hands over what came. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/message.h"
#include "base/str.h"
#include "http/state.h"

enum {
    PROGRESS_BYTES = 32 << 10, /* so many within body_usec, else the peer is too slow */
    FILL_MAX = HTTP_PIECE_BYTES + (1 << 20), /* and what libmicrohttpd reads at once */
};

struct pieces {
    http_piece_f cb;
    void *arg;
    struct buf fill;
    uint64_t received;
    size_t progress;
    size_t least; /* bytes of a piece, but of the last */
    bool lent;    /* the owner has not asked for the next one */
    bool ended;   /* he had the last one */
};

int64_t http_req_body_length(const struct http_req *req)
{
    int64_t n = -1;
    if (req->head.n_encoding)
        return -1;
    return !req->head.length                                          ? 0
           : str_to_int(req->head.length, 0, INT64_MAX, &n, NULL) < 0 ? -1
                                                                      : n;
}

bool http_body_read(struct http_req *req, http_piece_f cb, void *arg)
{
    struct http_server *s = req->conn->server;
    assert(req->receiving && req->state == REQ_HANDLING && !req->pieces);
    if (s->n_bodies >= s->limits.bodies || s->closing) {
        struct err err;
        message_refuse(&err, ERR_UNAVAILABLE, s->closing ? "server_closing" : "bodies_full",
                       MESSAGE_NO_ARGS);
        http_problem(req, ERR_UNAVAILABLE, &err, NULL, NULL, 0);
        return false;
    }
    if (!req->is_large &&
        !shares_take(s->shares, SHARE_BODIES, req->principal.user, s->limits.user_bodies)) {
        req_busy(req, s->limits.user_bodies, "too_many_bodies");
        return false;
    }
    req->is_large = true;
    struct pieces *p = xcalloc(1, sizeof(*p));
    p->cb = cb;
    p->arg = arg;
    p->least = req->route->flags & HTTP_ROUTE_RELAY ? 1 : HTTP_PIECE_BYTES;
    buf_init(&p->fill, FILL_MAX);
    req->pieces = p;
    req->early = false;
    req->state = REQ_BODY;
    s->n_bodies++;
    return true;
}

void http_req_cut(struct http_req *req)
{
    (void)shutdown(req->conn->fd, SHUT_RDWR); /* it may be gone already */
}

static void pieces_hand_over(struct http_req *req, enum http_body_how how)
{
    struct pieces *p = req->pieces;
    struct buf piece = p->fill;
    buf_init(&p->fill, FILL_MAX);
    p->lent = true;
    p->ended = how != HTTP_BODY_MORE;
    p->cb(req, &piece, how, p->arg);
    buf_release(&piece);
}

static bool pieces_is_full(const struct pieces *p)
{
    return p->fill.len >= HTTP_PIECE_BYTES;
}

static bool pieces_is_ready(const struct pieces *p)
{
    return p->fill.len >= p->least;
}

/* The client left while its last piece came, when nobody listened for that. */
static void pieces_abort_if_gone(struct http_req *req)
{
    if (req->conn->gone && req->state == REQ_HANDLING && req->on_close)
        req_abort(req);
}

void http_body_next(struct http_req *req)
{
    struct pieces *p = req->pieces;
    struct conn *c = req->conn;
    p->lent = false;
    if (p->ended || req->aborted || req->was_replied)
        return;
    if (!req->receiving) {
        pieces_hand_over(req, HTTP_BODY_WHOLE);
        pieces_abort_if_gone(req);
        return;
    }
    if (pieces_is_ready(p))
        pieces_hand_over(req, HTTP_BODY_MORE);
    if (req->receiving && req->suspended && !pieces_is_full(p)) {
        c->phase = CONN_BODY;
        c->since = c->server->opt.mono();
        req_wake(req);
    }
}

/* libmicrohttpd hands over the chunks of a chunked body that it has read already although the
 * connection sleeps: a second sleep would put the connection into its list twice. */
static enum MHD_Result sleep_until_next(struct http_req *req)
{
    req->conn->phase = CONN_BUSY;
    if (!req->suspended)
        MHD_suspend_connection(req->conn->mhd);
    req->suspended = true;
    return MHD_YES;
}

static enum MHD_Result drop_rest(struct http_req *req, size_t *n)
{
    struct conn *c = req->conn;
    if (c->phase != CONN_BODY) { /* it slept */
        c->phase = CONN_BODY;
        c->since = c->server->opt.mono();
    }
    req->dropped_bytes += *n;
    *n = 0;
    return req->dropped_bytes > PIECES_REST_MAX ? MHD_NO : MHD_YES;
}

static void note_progress(struct http_req *req, size_t n)
{
    struct pieces *p = req->pieces;
    p->received += n;
    p->progress += n;
    if (p->progress < PROGRESS_BYTES)
        return;
    p->progress = 0;
    req->conn->since = req->conn->server->opt.mono();
}

/* Everything is taken at once, although a piece gets a little larger by it: what is left with
 * libmicrohttpd would be lost with the connection. */
enum MHD_Result pieces_take(struct http_req *req, const char *data, size_t *n)
{
    struct pieces *p = req->pieces;
    if (!p || req->state == REQ_REPLIED)
        return drop_rest(req, n);
    if (p->received + *n > intake_max_body(req))
        return MHD_NO;
    if (buf_add(&p->fill, data, *n) < 0)
        return MHD_NO; /* it slept when it was full: this cannot be */
    note_progress(req, *n);
    *n = 0;
    if (pieces_is_ready(p) && !p->lent) {
        req->in_handler = true;
        pieces_hand_over(req, HTTP_BODY_MORE);
        req->in_handler = false;
    }
    return pieces_is_full(p) && req->state == REQ_BODY ? sleep_until_next(req) : MHD_YES;
}

enum MHD_Result pieces_end(struct http_req *req)
{
    struct pieces *p = req->pieces;
    req->receiving = false;
    req->conn->phase = CONN_BUSY;
    if (!p || req->state == REQ_REPLIED)
        return req_send(req);
    req->state = REQ_HANDLING;
    req->in_handler = true;
    if (!p->lent)
        pieces_hand_over(req, HTTP_BODY_WHOLE);
    req->in_handler = false;
    pieces_abort_if_gone(req);
    return req_send(req);
}

void pieces_free(struct http_req *req)
{
    struct pieces *p = req->pieces;
    if (!p)
        return;
    if (!p->ended && !req->was_replied)
        pieces_hand_over(req, HTTP_BODY_CUT);
    buf_release(&p->fill);
    free(p);
    req->pieces = NULL;
    req->conn->server->n_bodies--;
}
