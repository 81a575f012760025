/* SPDX-License-Identifier: Apache-2.0 */
/* relay.h - what the server gives to an owner that only passes bytes on: a request as it was sent,
 * a reply whose body is pulled, and a connection that stops to speak HTTP.
 *
 * For routes with HTTP_ROUTE_RELAY. A request without a body reaches its handler as any other; one
 * with a body reaches it before the body, and http_body_read() gives pieces of any size as they
 * arrive. Nothing here looks at the bytes. */
#pragma once
#include "http/http.h"
#include "http/listen.h"

/* The path and the query as they were sent, "" when the latter is absent. Borrowed. */
const char *http_req_raw_query(const struct http_req *req);
/* What the star of the pattern stands for, as it was sent: "/a%2Fb". NULL: the pattern has none. */
const char *http_req_tail(const struct http_req *req);
/* The client's address without its port, "" if unknown. */
void http_req_peer(const struct http_req *req, char ret[static LISTEN_ADDRESS_MAX]);
bool http_req_is_tls(const struct http_req *req);
/* It came with a cookie and not with a token of its own. */
bool http_req_is_by_cookie(const struct http_req *req);
typedef void (*http_header_f)(const char *name, const char *value, void *arg);
void http_req_each_header(const struct http_req *req, http_header_f cb, void *arg);

/* The request is one more that is passed on, until it ends. False: the server or its user has too
 * many, the reply was made (503, 429). */
must_check bool http_relay_begin(struct http_req *req);
/* Whoever sent it may still do so: his token has not ended. For what stays open long. */
bool http_relay_may_go_on(struct http_req *req);
/* A problem with a status that no code has, such as 502. */
void http_relay_problem(struct http_req *req, int status, int code, const struct err *err);

struct http_field {
    const char *name, *value;
};

/* ---- a body that is pulled ---- */

enum { HTTP_PULL_LATER = 0, HTTP_PULL_END = -1, HTTP_PULL_CUT = -2 };

struct http_pull {
    int status;
    int64_t length; /* -1: unknown until HTTP_PULL_END */
    const struct http_field *fields;
    size_t n_fields; /* borrowed for the call; no others are added but Date and framing */
    /* At most `max` bytes to `to`: their count, or one of the above. After LATER it is asked again
     * when http_pull_wake() was called. CUT: the client sees a broken connection. A body of known
     * length needs no END. */
    int64_t (*pull)(char *to, size_t max, void *arg);
    /* Once, when libmicrohttpd is done with the request, whole or not: req is freed after it. */
    void (*gone)(void *arg);
    void *arg;
};
void http_reply_pull(struct http_req *req, const struct http_pull *p);
void http_pull_wake(struct http_req *req);

/* ---- a connection that stops to speak HTTP ---- */

struct http_upgrade {
    const struct http_field *fields; /* of the 101, borrowed for the call */
    size_t n_fields;
    /* The connection's descriptor, to be read and written but not closed, and what the client had
     * sent already. On the loop; `data` is borrowed. */
    void (*opened)(int fd, const char *data, size_t n, void *arg);
    /* The client has left (told only where TLS hides it), or the server closes: call
     * http_upgrade_close() before it returns. */
    void (*end)(void *arg);
    /* Once, as in struct http_pull; also when `opened` was never called. */
    void (*gone)(void *arg);
    void *arg;
};
void http_reply_upgrade(struct http_req *req, const struct http_upgrade *u);
/* The descriptor is not used any more, or, before `opened`, not wanted. Once. */
void http_upgrade_close(struct http_req *req);
