/* SPDX-License-Identifier: Apache-2.0 */
/* forward.c - a request that one row hands on to another, whose reply it wraps.
 *
 * Path, query and body are replaced, then the request goes the way of one that has just come: role,
 * query, waits, handler. Who asks stays the same. The wrap is in the way of every reply (reply.c),
 * refusals too, and lets itself be called once. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/text.h"
#include "http/state.h"

/* The target twice, as intake_begin() lays it out. */
static void forward_take_target(struct http_req *req, const char *target)
{
    size_t n = strlen(target);
    req->forward.text = xcalloc(1, 2 * (n + 1) + ROUTER_PARAMS_MAX * (ROUTER_NAME_MAX + 2));
    memcpy(req->forward.text, target, n);
    req->path = req->forward.text;
    req->query = strchr(req->path, '?');
    if (req->query)
        *req->query++ = 0;
    req->params_text = req->forward.text + n + 1;
    req->n_query = req->n_params = 0;
    req->tail = NULL;
}

static void forward_take_body(struct http_req *req, struct buf *body)
{
    intake_uncount_body(req);
    buf_release(&req->body);
    buf_init(&req->body, req->route->max_body);
    if (body && body->len && buf_add(&req->body, buf_str(body), body->len) < 0)
        req->refused = ERR_TOO_LARGE;
    if (body)
        buf_release(body);
    text_copy(req->content_type, "application/json");
}

static int forward_judge(struct http_req *req)
{
    if (!uri_is_clean(req->path) || (req->query && !uri_is_clean(req->query)))
        return ERR_BAD_REQUEST;
    int r = intake_find_route(req);
    return r == 0 && req->principal.role < req->route->least ? ERR_FORBIDDEN : r;
}

void http_req_forward(struct http_req *req, const struct http_forward *to)
{
    req->forward.wrap = to->wrap;
    req->forward.arg = to->arg;
    forward_take_target(req, to->target);
    req->method = to->method;
    req->refused = forward_judge(req);
    if (!req->refused)
        forward_take_body(req, to->body);
    else if (to->body)
        buf_release(to->body);
    if (req->refused)
        intake_refuse(req);
    else if (!intake_refuse_query(req) && !intake_refuse_poll(req))
        req->route->handle(req, req->conn->server->opt.app);
}

void forward_wrap(struct http_req *req, int *status, const char **content_type, struct buf *body)
{
    http_wrap_f wrap = req->forward.wrap;
    req->forward.wrap = NULL;
    wrap(req, status, content_type, body, req->forward.arg);
}

void forward_release(struct http_req *req)
{
    free(req->forward.arg);
    free(req->forward.text);
}
