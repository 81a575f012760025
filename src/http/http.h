/* SPDX-License-Identifier: Apache-2.0 */
/* http.h - an HTTP/1.1 server on a uv loop: one route table, problem JSON, replies that
 * wait for a durability barrier, long-polls and event streams.
 *
 * libmicrohttpd is driven from the loop by its epoll descriptor; there is no thread. The
 * server knows nothing of jobs, store or SQL: tokens are judged by a callback, the time is
 * asked from a callback, routes are the owner's table.
 *
 * Life of a request: head read, URI, route, role and sizes checked (bad ones are answered
 * here as problem JSON) → body read whole → handler (a route may take its body in pieces, see
 * below: then the handler comes before it). The handler replies at once or keeps
 * `req` and replies later; every request is replied to exactly once (or begins a stream)
 * unless its on_close callback was called: then `req` is gone and must not be touched.
 * After http_reply(), http_problem() or http_stream_end() the pointer is no longer the
 * caller's.
 *
 * A reply with a barrier above the server's durable number leaves when
 * http_server_release() reaches it; replies leave in the order of their barriers. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/doc/problem.h"
#include "base/err.h"
#include "base/message.h"
#include "base/strv.h"

struct certificate; /* see certificate.h */
struct http_req;
struct http_server;
struct http_stream;

/* ---- the route table ---- */

/* Each may do what those before it may. */
enum http_role { HTTP_ROLE_NONE, HTTP_ROLE_VIEWER, HTTP_ROLE_USER, HTTP_ROLE_ADMIN };

const char *http_role_to_string(enum http_role role); /* "none" "viewer" "user" "admin" */
/* -EINVAL: no such role. */
must_check int http_role_from_string(const char *text, enum http_role *ret, struct err *err);

enum http_param_type { HTTP_PARAM_STRING, HTTP_PARAM_INTEGER, HTTP_PARAM_BOOLEAN, HTTP_PARAM_SPAN };

/* A query parameter. What the table does not name is refused with 400 and the nearest name. */
struct http_param {
    const char *name;
    enum http_param_type type; /* checked before the handler is called */
    const char *doc;
};

enum http_route_flags {
    HTTP_ROUTE_STREAM = 1 << 0,    /* answers with text/event-stream (docs; no latency metric) */
    HTTP_ROUTE_ANY_QUERY = 1 << 1, /* unknown query parameters are the handler's business */
    HTTP_ROUTE_HIDDEN = 1 << 2,    /* not in openapi.json */
    HTTP_ROUTE_CACHEABLE = 1 << 3, /* no "Cache-Control: no-store" */
    HTTP_ROUTE_PIECES = 1 << 4,    /* the handler comes before the body, see http_body_read() */
    HTTP_ROUTE_RELAY = 1 << 5,     /* the request is passed on: any query, a body of any type in
                                      pieces as small as they come, upgrades; see relay.h */
    HTTP_ROUTE_KEYS = 1 << 6,      /* a key comes in as well, see `only` of the principal */
};

typedef void (*http_handler_f)(struct http_req *req, void *app);

/* A row. All pointers are borrowed for the life of the server. */
struct http_route {
    const char *method;   /* GET POST PUT PATCH DELETE; HEAD comes with GET, OPTIONS by itself */
    const char *pattern;  /* "/v1/jobs", "/v1/jobs/{id}", "/v1/jobs/{id}:stop"; see router.h */
    enum http_role least; /* HTTP_ROLE_NONE: no token is asked for */
    unsigned flags;       /* enum http_route_flags */
    size_t max_body;      /* bytes; 0: a body is refused */
    http_handler_f handle;
    const void *arg;                 /* of the handler, see http_req_arg() */
    const char *example;             /* a value of the last name in the pattern, for the docs of
                                        every pattern that begins so; NULL: another row has it */
    const char *summary;             /* one line for the docs */
    const struct http_param *params; /* ends with a NULL name; NULL = none */
    const char *request_type;        /* media types of the body, NULL = application/json */
    const char *request_schema;      /* names of schemas, see openapi.h; NULL = none */
    const char *pieces_type;         /* a body of this media type comes in pieces, as with
                                        HTTP_ROUTE_PIECES; NULL = none does */
    size_t pieces_max;               /* and has at most so many bytes */
    const char *pieces_schema;
    const char *reply_type; /* NULL = application/json */
    const char *reply_schema;
    int reply_status; /* of success, for the docs; 0 = 200 */
    /* What else it may answer with 200: to a dry run, or because it was done before. */
    const char *other_schema;
    const char *stream_schema; /* of one message, where it may answer with an event stream */
};

/* ---- the server ---- */

enum { HTTP_USER_MAX = 64, HTTP_TOKEN_ID_MAX = 64 };

/* The user who sent the request. Filled by the authenticate callback. */
struct http_principal {
    char user[HTTP_USER_MAX];
    char token_id[HTTP_TOKEN_ID_MAX];
    char session_id[HTTP_TOKEN_ID_MAX]; /* "": the request came with the token itself */
    /* The request came with a key, which opens this one thing and no route but those with
     * HTTP_ROUTE_KEYS, whatever its user may; its role is none. "": it came with a token. */
    char only[HTTP_USER_MAX];
    enum http_role role;
    enum message_language language; /* that he reads, by his Accept-Language; the server fills it */
    const char *why_not;            /* of a refusal: a code of the catalogue; NULL: the usual one */
    char why_args[160];             /* its arguments, as message_write() writes them */
};

/* ERR_UNAUTHORISED, with why_not and why_args. */
int http_principal_refuse(struct http_principal *p,
                          const char *message,
                          const struct message_arg *args);

/* How a request says who sends it. Texts are borrowed and never NULL ("" when nothing was sent), so
 * that the work of judging them is the same. A bearer token goes before a cookie. */
struct http_credentials {
    const char *bearer;
    const char *cookie; /* the header; "" also when there is a token */
    const char *csrf;   /* the header Argus-CSRF */
    bool changes;       /* neither GET nor HEAD */
    bool is_foreign;    /* the browser says that another site asks (Sec-Fetch-Site) */
};

/* The value of one cookie of a Cookie header, copied. False: there is none of this name, or there
 * are two, of which nobody knows who set which, or it does not fit. */
bool http_cookie_find(const char *header, const char *name, char *ret, size_t size);

struct http_limits {              /* 0 = the default in brackets */
    unsigned connections;         /* [4096] more wait in the kernel's queue */
                                  /* what has waited longest for a request then goes */
    unsigned address_connections; /* [no limit] of one address; more are closed at once */
    const struct strv *exempt;    /* addresses that have no such limit; borrowed, NULL = none */
    unsigned streams;             /* [2048] more get 503 */
    unsigned user_streams;        /* [no limit] of one user; more get 429, as in the next two */
    unsigned user_polls;          /* [no limit] requests that wait, see http_req_wait() */
    unsigned relays;              /* [4096] requests that are passed on; more get 503 */
    unsigned user_relays;         /* [no limit] of one user; more get 429 */
    unsigned user_bodies;         /* [no limit] bodies of more than 64 KiB, or of any length */
    unsigned bodies;              /* [256] read in pieces at the same time; more get 503 */
    size_t bodies_bytes;          /* [256 MiB] all bodies in memory that are not in pieces, and
                                     an eighth of it those of one user; more get 503 and 429 */
    size_t head_bytes;            /* [8192] name and value of all headers; more is 431 */
    size_t uri_bytes;             /* [4096] more is 414 */
    size_t stream_bytes;          /* [262144] queue of one stream */
    usec_t idle_usec;             /* [60 s] from accept or last reply to the next whole head */
    usec_t body_usec;             /* [120 s] from the head to the whole body, or 32 KiB of pieces */
    usec_t reply_usec;            /* [60 s] a client takes 32 KiB of a reply in it, or all */
    usec_t heartbeat_usec;        /* [15 s] a comment on a silent stream */
};

struct http_options {
    uv_loop_t *loop;      /* borrowed */
    const char *listen;   /* "127.0.0.1:8080" "[::1]:8080"; port 0 = any; not a name */
    const char *tls_cert; /* paths of PEM files, both or neither */
    const char *tls_key;
    struct http_limits limits;
    const struct http_route *routes; /* borrowed */
    size_t n_routes;
    /* What answers a GET of a path that no row has and that is not below /v1/: the pages of people.
     * Borrowed; NULL: such a path is not found. */
    const struct http_route *pages;
    /* Judge them: 0 and *ret filled, or negative for an unknown, expired or missing one. */
    int (*authenticate)(const struct http_credentials *c, struct http_principal *ret, void *app);
    usec_t (*mono)(void); /* clock_mono */
    void *app;            /* given to handlers and authenticate; borrowed */
};

/* Can these PEM files be read by http_server_open()? Neither may be NULL. ERR_USAGE, -errno. */
must_check int http_check_tls(const char *cert, const char *key, struct err *err);
/* What such a file says now. ERR_USAGE: it is no certificate; -errno. It blocks. */
must_check int http_read_certificate(const char *path, struct certificate *ret, struct err *err);

/* Listens at once. ERR_USAGE (address, table), -EADDRINUSE…, with one sentence. */
must_check int http_server_open(const struct http_options *opt,
                                struct http_server **ret,
                                struct err *err);
/* Stop accepting, end streams, let replies leave; what is still pending after `grace` is cut
 * off (with its on_close). done (may be NULL) is called on the loop when the server is freed;
 * held replies need http_server_release() meanwhile. */
void http_server_close(struct http_server *s, usec_t grace, void (*done)(void *arg), void *arg);

unsigned http_server_port(const struct http_server *s);
/* The wall time at which the certificate ends that clients are shown: the one that was read when
 * the server was opened. 0: no TLS, or it is not known. */
usec_t http_server_cert_ends(const struct http_server *s);
/* Everything up to `durable` is on disk: let the replies that waited for it go. */
void http_server_release(struct http_server *s, uint64_t durable);
/* Held replies cannot be acknowledged now: answers each with err (503) instead of making it
 * wait. */
void http_server_refuse_held(struct http_server *s, const struct err *err);
struct expo;
/* Requests by route and status, their time, connections, streams. */
void http_metrics(const struct http_server *s, struct expo *e);

/* ---- reading a request; everything is borrowed until the reply ---- */

const char *http_req_method(const struct http_req *req);
/* As it was sent, without the query. */
const char *http_req_path(const struct http_req *req);
/* Decoded; "" only when the pattern has no such name. Never holds NUL or control bytes. */
const char *http_req_param(const struct http_req *req, const char *name);
/* Decoded; NULL if absent. Given twice: the first. */
const char *http_req_query(const struct http_req *req, const char *name);
/* Every value of a repeated parameter: i = 0, 1, …; NULL at the end. */
const char *http_req_query_at(const struct http_req *req, const char *name, size_t i);
/* The table's types were checked: these cannot fail on form, only on bounds (-EINVAL). */
must_check int http_req_query_int(const struct http_req *req,
                                  const char *name,
                                  int64_t min,
                                  int64_t max,
                                  int64_t dflt,
                                  int64_t *ret,
                                  struct err *err);
bool http_req_query_bool(const struct http_req *req, const char *name, bool dflt);
/* NULL if absent. Names are compared without case. */
const char *http_req_header(const struct http_req *req, const char *name);
const char *http_req_body(const struct http_req *req, size_t *ret_len); /* NUL-terminated */
/* The media type of Content-Type in lower case without parameters; "" if absent. */
const char *http_req_content_type(const struct http_req *req);
/* True if Accept allows this media type ("text/event-stream"); absent allows all. */
bool http_req_accepts(const struct http_req *req, const char *media_type);
/* On a route that asks for no token: the user of one that was sent and is known, else role none. */
const struct http_principal *http_req_principal(const struct http_req *req);
/* `arg` of the route's row: what makes one handler serve many rows. */
const void *http_req_arg(const struct http_req *req);
/* For the handler's own state; NULL at first. */
void http_req_set_data(struct http_req *req, void *data);
void *http_req_data(const struct http_req *req);

/* ---- a body in pieces ---- */

/* Pieces are of this size or little more, but the last. At most two of a body are in memory. */
enum { HTTP_PIECE_BYTES = 256 << 10 };

enum http_body_how {
    HTTP_BODY_MORE,  /* ask for the next with http_body_next() */
    HTTP_BODY_WHOLE, /* the last one, it may be empty: reply now or later */
    HTTP_BODY_CUT,   /* the last of a body that ended early: req is gone after the call */
};
/* piece is borrowed for the call, but its memory may be taken (buf_take(), or the struct moved
 * out and *piece made empty). CUT can come at any time, also while the owner still works on a
 * piece, and then no reply is possible. After a reply no further piece comes. */
typedef void (*http_piece_f)(struct http_req *req,
                             struct buf *piece,
                             enum http_body_how how,
                             void *arg);
/* The handler of an HTTP_ROUTE_PIECES route calls this, or replies, before it returns. False: too
 * many bodies are being read, the reply was made (503). */
must_check bool http_body_read(struct http_req *req, http_piece_f cb, void *arg);
/* The piece was used up; on the loop, then or later. */
void http_body_next(struct http_req *req);
/* Treats the request as if its client had disconnected: what was read comes as CUT, later. */
void http_req_cut(struct http_req *req);
/* The Content-Length of the request; -1: not given (chunked). */
int64_t http_req_body_length(const struct http_req *req);

/* ---- replying ---- */

/* Add a header to the reply to come. Values with control bytes are refused by dropping them. */
void http_reply_header(struct http_req *req, const char *name, const char *value);

/* body is taken (its memory moves; *body is empty after) and may be NULL. A body that
 * overflowed its ceiling becomes a 500 problem. content_type is copied. */
void http_reply(struct http_req *req,
                int status,
                const char *content_type,
                struct buf *body,
                uint64_t barrier);
/* A body that outlives the server: not copied, and made only once. */
void http_reply_borrowed(struct http_req *req,
                         int status,
                         const char *content_type,
                         const char *body,
                         size_t n);
/* application/json, the usual case. */
void http_reply_json(struct http_req *req, int status, struct buf *body, uint64_t barrier);

/* RFC 9457. `code` gives status and word; the sentence is err's, or the code's own when err
 * is NULL. field and problems may be NULL. What to do about it is the fix of the error's row
 * (SAY_FIX of base/catalogue/message_rows.h). 503 and 429 get a
 * Retry-After of 2 s, ERR_NOT_YET of 1 s. */
void http_problem(struct http_req *req,
                  int code,
                  const struct err *err,
                  const char *field,
                  const struct problems *problems,
                  uint64_t barrier);

/* Sets the ETag header, given without quotes; do not set it again. True if If-None-Match has it:
 * then the reply was made (304, with that barrier) and the handler is done. */
bool http_reply_not_modified(struct http_req *req, const char *etag, uint64_t barrier);
/* If-None-Match has this etag (without quotes): for a long-poll that wants a newer one. */
bool http_req_has_etag(const struct http_req *req, const char *etag);

/* ---- in another row's place ---- */

/* What the other row replied, in problem JSON where it refused; may be changed. body is yours to
 * change and not NULL. 401 is better left as it is: clients know it. */
typedef void (*http_wrap_f)(struct http_req *req,
                            int *status,
                            const char **content_type,
                            struct buf *body,
                            const char *arg);
struct http_forward {
    const char *method; /* a literal */
    const char *target; /* "/v1/jobs/x?limit=5", escaped; copied */
    struct buf *body;   /* JSON, taken; NULL = none */
    http_wrap_f wrap;   /* called once, before the reply leaves */
    char *arg;          /* taken: freed with the request; may be NULL */
};
/* The request becomes one for another row, which judges it as if it had come over the wire: role,
 * query, body, waits. Of rows that reply once: no stream, relay or body in pieces. Nothing read of
 * req before holds after; the reply is made, or will be. Once per request. */
void http_req_forward(struct http_req *req, const struct http_forward *to);

/* ---- replying later ---- */

/* cb is called once if the client goes, or the server closes, before the reply was made;
 * req is freed after it. For streams see http_stream_on_close(). */
typedef void (*http_close_f)(struct http_req *req, void *arg);
void http_req_on_close(struct http_req *req, http_close_f cb, void *arg);

enum { HTTP_WAIT_MAX_SEC = 60 };
/* The span of ?wait=, 0 if absent, at most 60 s. */
usec_t http_req_wait(const struct http_req *req);
/* A reply to a request that had ?wait= is 401 instead when its token has ended meanwhile.
 * Call cb once after `span` unless the request was replied to or closed before. */
typedef void (*http_timeout_f)(struct http_req *req, void *arg);
void http_req_park(struct http_req *req, usec_t span, http_timeout_f cb, void *arg);

/* ---- streams ---- */

/* Begin a 200 of unknown length. NULL: too many streams, the reply was made (503).
 * Written bytes wait for the barrier too. req lives as long as the stream. */
struct http_stream *http_stream_begin(struct http_req *req,
                                      const char *content_type,
                                      uint64_t barrier);
/* http_stream_begin() with this status and a Content-Length of `bytes`: more bytes must not be
 * written, and fewer only before http_stream_cut(). For a HEAD request no byte is asked for and
 * the stream is closed soon. */
struct http_stream *http_stream_begin_sized(struct http_req *req,
                                            int status,
                                            const char *content_type,
                                            uint64_t bytes,
                                            uint64_t barrier);
/* Bytes queued after this write. At the ceiling nothing is taken and -EMSGSIZE comes back:
 * stop, and go on at on_drain. One write is taken whole or not at all. */
must_check int64_t http_stream_write(struct http_stream *st, const void *p, size_t n);
/* Queues one event of text/event-stream. id and event may be NULL; data may have many lines. */
must_check int64_t http_stream_sse(struct http_stream *st,
                                   const char *id,
                                   const char *event,
                                   const char *data,
                                   size_t n);
size_t http_stream_queued(const struct http_stream *st);
/* How many bytes may be written now. */
size_t http_stream_room(const struct http_stream *st);
/* Called when the queue has run empty, and when it fell below half of its ceiling after a write
 * was refused or left it above that; the callback may write or end. */
typedef void (*http_stream_f)(struct http_stream *st, void *arg);
void http_stream_on_drain(struct http_stream *st, http_stream_f cb, void *arg);
/* Called once when the client went or the server closes; st is freed after it. Not called
 * after http_stream_end(). */
void http_stream_on_close(struct http_stream *st, http_stream_f cb, void *arg);
/* Queued bytes are still sent; st is no longer the caller's. */
void http_stream_end(struct http_stream *st);
/* Something failed: the client sees a broken connection and not a whole answer. st is gone. */
void http_stream_cut(struct http_stream *st);
/* Last-Event-ID header (or ?last_event_id=), NULL if absent. */
const char *http_req_last_event_id(const struct http_req *req);
