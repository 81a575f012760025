/* SPDX-License-Identifier: Apache-2.0 */
/* reply.c - making replies, holding them at the barrier, and handing them over.
 *
 * libmicrohttpd takes a response only below its own callback. So a reply that is made later
 * is kept in the request, its suspended connection is resumed, and the callback that follows
 * hands it over. Replies that wait for the disk stand in one list ordered by barrier; new
 * barriers are nearly always the largest, so the place is found from the end. */
#include <stdio.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "http/state.h"

enum { PROBLEM_MAX = 256 << 10 };
/* Whatever a browser opens at an address of the API (a file of a user is one) runs nothing, is
 * framed by nobody and has an origin of its own: the pages say otherwise of themselves. */
#define CSP "Content-Security-Policy"

/* ---- the hand-over ---- */

enum MHD_Result req_send(struct http_req *req)
{
    struct http_server *s = req->conn->server;
    if (req->aborted)
        return MHD_NO;
    if (req->state != REQ_REPLIED || link_is_in(&req->held)) {
        req->suspended = true;
        MHD_suspend_connection(req->conn->mhd);
        return MHD_YES;
    }
    req->state = REQ_SENT;
    stats_count(s->stats,
                &(struct stats_request){.route = req->route == s->opt.pages ? NULL : req->route,
                                        .status = (int)req->status,
                                        .waited = req->park_until != 0,
                                        .span = s->opt.mono() - req->started});
    enum MHD_Result r = MHD_queue_response(req->conn->mhd, req->status, req->response);
    MHD_destroy_response(req->response); /* our reference; libmicrohttpd has its own */
    req->response = NULL;
    return r;
}

void req_wake(struct http_req *req)
{
    if (!req->suspended)
        return;
    req->suspended = false;
    MHD_resume_connection(req->conn->mhd);
    server_turn_soon(req->conn->server); /* nothing else tells it before its next tick */
}

static void reply_hold(struct http_server *s, struct http_req *req)
{
    struct link *at = s->held.prev;
    while (at != &s->held && container_of(at, struct http_req, held)->barrier > req->barrier)
        at = at->prev;
    link_add_after(at, &req->held);
}

void req_leave(struct http_req *req,
               struct MHD_Response *response,
               unsigned status,
               uint64_t barrier)
{
    struct http_server *s = req->conn->server;
    req->response = response;
    req->status = status;
    req->barrier = barrier;
    req->state = REQ_REPLIED;
    req->was_replied = true;
    link_remove(&req->parked);
    if (barrier > s->durable)
        reply_hold(s, req);
    else if (!req->in_handler)
        req_wake(req);
}

void http_server_release(struct http_server *s, uint64_t durable)
{
    if (durable > s->durable)
        s->durable = durable;
    while (link_is_in(&s->held)) {
        struct http_req *req = container_of(s->held.next, struct http_req, held);
        if (req->barrier > s->durable)
            return;
        link_remove(&req->held);
        if (!req->in_handler)
            req_wake(req);
    }
}

void http_server_refuse_held(struct http_server *s, const struct err *err)
{
    while (link_is_in(&s->held)) {
        struct http_req *req = container_of(s->held.next, struct http_req, held);
        link_remove(&req->held);
        if (req->stream) {
            req_abort(req); /* its head says 200 already: the client comes back */
            continue;
        }
        MHD_destroy_response(req->response);
        req->response = NULL;
        req->state = REQ_HANDLING;
        http_problem(req, err->code, err, NULL, NULL, 0);
    }
}

void req_abort(struct http_req *req)
{
    if (req->aborted)
        return;
    bool owes = req->state == REQ_HANDLING;
    req->aborted = true;
    link_remove(&req->held);
    link_remove(&req->parked);
    if (req->stream)
        stream_close(req->stream);
    else if (owes && req->on_close)
        req->on_close(req, req->on_close_arg);
    req_wake(req);
}

/* ---- headers ---- */

void http_reply_header(struct http_req *req, const char *name, const char *value)
{
    for (const char *p = value; *p; p++)
        if ((unsigned char)*p < 0x20 || *p == 0x7f)
            return;
    pairs_set(&req->headers, name, value);
}

static void reply_add(struct MHD_Response *response, const char *name, const char *value)
{
    /* Refused only for a value that is not one header: then there is none. */
    (void)MHD_add_response_header(response, name, value);
}

void req_headers(struct http_req *req, struct MHD_Response *response, const char *content_type)
{
    if (content_type)
        reply_add(response, MHD_HTTP_HEADER_CONTENT_TYPE, content_type);
    reply_add(response, "X-Content-Type-Options", "nosniff");
    reply_add(response, "Referrer-Policy", "no-referrer");
    if (!pairs_find(&req->headers, CSP))
        reply_add(response, CSP, "default-src 'none'; frame-ancestors 'none'; sandbox");
    if (!req->route || !(req->route->flags & HTTP_ROUTE_CACHEABLE))
        reply_add(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    for (size_t i = 0; i < req->headers.n; i++)
        reply_add(response, req->headers.v[i].key, req->headers.v[i].value);
    if ((req->conn->server->closing || req->early) &&
        !pairs_find(&req->headers, MHD_HTTP_HEADER_CONNECTION))
        reply_add(response, MHD_HTTP_HEADER_CONNECTION, "close");
}

/* ---- replies ---- */

void req_busy(struct http_req *req, unsigned most, const char *message)
{
    struct err err;
    message_refuse(
        &err, ERR_BUSY, message_code(message),
        MESSAGE_ARGS(MESSAGE_NUM("most", most), MESSAGE_STR("user", req->principal.user)));
    http_problem(req, ERR_BUSY, &err, NULL, NULL, 0);
}

/* Who waited is asked for his token again: it may have ended meanwhile. True: the reply was made.
 */
static bool refuse_ended(struct http_req *req, struct buf *body)
{
    if (!req->is_poll || req->route->least == HTTP_ROLE_NONE)
        return false;
    struct http_principal before = req->principal;
    int r = intake_authenticate(req);
    text_copy(req->principal.user, before.user); /* for whom it counts */
    if (r == 0 && req->principal.role >= req->route->least)
        return false;
    shares_give(req->conn->server->shares, SHARE_POLLS, before.user);
    req->is_poll = false;
    if (body)
        buf_release(body);
    struct err err;
    bool is_told = r < 0 && req->principal.why_not;
    message_refuse_text(&err, ERR_UNAUTHORISED,
                        is_told ? req->principal.why_not : "token_may_no_more",
                        is_told ? req->principal.why_args : "{}");
    http_problem(req, ERR_UNAUTHORISED, &err, NULL, NULL, 0);
    return true;
}

void http_reply_borrowed(struct http_req *req,
                         int status,
                         const char *content_type,
                         const char *body,
                         size_t n)
{
    char *p = NULL;
    memcpy(&p, &body, sizeof(p)); /* libmicrohttpd only reads it */
    struct MHD_Response *response = MHD_create_response_from_buffer(n, p, MHD_RESPMEM_PERSISTENT);
    req_headers(req, response, content_type);
    req_leave(req, response, (unsigned)status, 0);
}

void http_reply(struct http_req *req,
                int status,
                const char *content_type,
                struct buf *body,
                uint64_t barrier)
{
    if (refuse_ended(req, body))
        return;
    if (body && body->failed) {
        struct err err;
        message_refuse(&err, ERR_INTERNAL, "reply_too_large",
                       MESSAGE_ARGS(MESSAGE_NUM("most", body->max)));
        buf_release(body);
        http_problem(req, ERR_INTERNAL, &err, NULL, NULL, barrier);
        return;
    }
    struct buf empty = {0};
    if (req->forward.wrap)
        forward_wrap(req, &status, &content_type, body ? body : (body = &empty));
    struct MHD_Response *response;
    if (body && body->len) {
        size_t n = body->len;
        response = MHD_create_response_from_buffer(n, buf_take(body), MHD_RESPMEM_MUST_FREE);
    } else {
        if (body)
            buf_release(body);
        response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    }
    req_headers(req, response, content_type);
    req_leave(req, response, (unsigned)status, barrier);
}

void http_reply_json(struct http_req *req, int status, struct buf *body, uint64_t barrier)
{
    http_reply(req, status, "application/json", body, barrier);
}

/* A problem whose code is a class of failure, where nothing more is known. */
static struct problem_page say_class(const struct problem_reply *p, enum message_language in)
{
    const struct message_listener to = {.language = in};
    struct buf held = {0};
    char code[64];
    text_printf(code, "class_%s", err_word(p->code));
    const struct problem_page page = {.field = p->field,
                                      .detail = xstrdup(message_say(code, "{}", &to, &held))};
    buf_release(&held);
    return page;
}

/* What is said: the error, the first of a list of problems, or the class. */
static struct problem_page say_problem(const struct problem_reply *p, enum message_language in)
{
    const struct problem *first = p->problems ? problems_first(p->problems) : NULL;
    if (!p->err || !p->err->text[0])
        return first ? problem_say(first, in) : say_class(p, in);
    /* Borrowed for this one call. */
    const struct problem own = {
        .code = (char *)(uintptr_t)p->err->message,
        .text = (char *)(uintptr_t)(p->err->message ? p->err->args : p->err->text),
        .field = (char *)(uintptr_t)p->field};
    return problem_say(&own, in);
}

static void problem_to_json(const struct problem_reply *p,
                            bool has_list,
                            enum message_language in,
                            struct buf *out)
{
    struct jout j = jout_begin(out);
    const char *word = err_word(p->code);
    struct problem_page said = say_problem(p, in), title = say_class(p, in);
    char type[96];
    text_printf(type, "urn:argus:problem:%s", word);
    jout_open(&j, NULL, '{');
    jout_str(&j, "type", type);
    jout_str(&j, "title", title.detail);
    jout_int(&j, "status", p->status);
    if (said.field && *said.field)
        jout_str(&j, "field", said.field);
    if (said.line) {
        jout_int(&j, "line", said.line);
        jout_int(&j, "column", said.column);
    }
    jout_str(&j, "detail", said.detail);
    jout_str(&j, "code", str_or(said.code, word));
    if (said.args)
        jout_raw(&j, "args", said.args);
    if (said.hint)
        jout_str(&j, "hint", said.hint);
    if (has_list)
        problems_to_json(p->problems, in, &j, "problems");
    jout_close(&j, '}');
    problem_page_release(&said);
    problem_page_release(&title);
}

void req_problem(struct http_req *req, const struct problem_reply *p)
{
    struct buf out = BUF_INIT(PROBLEM_MAX);
    problem_to_json(p, p->problems, req->principal.language, &out);
    if (out.failed) { /* the list was too long: the first one alone is not */
        buf_release(&out);
        problem_to_json(p, false, req->principal.language, &out);
    }
    if ((p->status == 503 || p->status == 429) && !pairs_find(&req->headers, "Retry-After"))
        http_reply_header(req, "Retry-After", p->code == ERR_NOT_YET ? "1" : "2");
    http_reply(req, (int)p->status, "application/problem+json", &out, p->barrier);
}

void http_problem(struct http_req *req,
                  int code,
                  const struct err *err,
                  const char *field,
                  const struct problems *problems,
                  uint64_t barrier)
{
    const struct problem_reply p = {.status = (unsigned)err_http_status(code),
                                    .code = code,
                                    .err = err,
                                    .field = field,
                                    .problems = problems,
                                    .barrier = barrier};
    req_problem(req, &p);
}

bool http_req_has_etag(const struct http_req *req, const char *etag)
{
    return req->head.none_match && etag_list_has(req->head.none_match, etag);
}

bool http_reply_not_modified(struct http_req *req, const char *etag, uint64_t barrier)
{
    char quoted[160];
    int n = snprintf(quoted, sizeof(quoted), "\"%s\"", etag);
    if (n < 0 || (size_t)n >= sizeof(quoted))
        return false; /* no ETag is better than a cut one */
    http_reply_header(req, MHD_HTTP_HEADER_ETAG, quoted);
    if (!http_req_has_etag(req, etag))
        return false;
    http_reply(req, MHD_HTTP_NOT_MODIFIED, NULL, NULL, barrier);
    return true;
}
