/* SPDX-License-Identifier: Apache-2.0 */
/* wire.h - HTTP requests of one client on a uv loop: libcurl's multi interface
 * whose sockets and timer the loop polls.
 *
 * Knows nothing of Ray. A request may be a mail, too: url smtp(s)://…, mail_from, mail_to.
 * No redirects, no proxy, no cookies, http and https only.
 * Connections are kept and used again; at most parallel_max requests run, the
 * others wait in order. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <uv.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/strv.h"
#include "ray/reach.h"

struct wire;
struct wire_request;

struct wire_options {
    uv_loop_t *loop; /* borrowed */
    const char *user_agent;
    const char *token;   /* sent as `Authorization: Bearer`; NULL = none */
    const char *ca_file; /* NULL = the system's */
    usec_t connect_timeout;
    unsigned parallel_max;
    /* What all requests may reach, and what argus.yaml allows beside it (borrowed, NULL: nothing).
     * A connection goes to the very address that was judged. */
    enum reach reach;
    const struct strv *networks;
};

struct wire_order {
    const char *method;
    const char *url;
    const char *body; /* JSON, NULL = none */
    size_t body_len;  /* of one that may hold NUL; 0: up to its NUL */
    usec_t timeout;   /* of the whole request, from the moment that it is started */
    size_t max_bytes; /* of the reply's body */
    bool is_fresh;    /* not over a kept connection, which the peer may just be closing */
    enum reach reach; /* stricter than the options' */
    /* All NULL for none; copied. */
    /* "Name: value", beside ours; each up to its first control character: a value may be a user's,
     * and what stands behind a line break in it would be a header, or a request, of his own. */
    const struct strv *headers;
    const char *type;      /* of the body, in place of application/json */
    const char *said;      /* in sentences in place of the URL, which may hold a key */
    const char *mail_from; /* then it is a mail: body is the whole message */
    const struct strv *mail_to;
    const char *user, *password;
};

struct wire_reply {
    int status;       /* HTTP status; 0 = no whole answer: err says why */
    bool was_sent;    /* false: not one byte of the request left */
    const char *body; /* NUL-terminated, may hold NUL */
    size_t len;
    struct err err; /* ERR_UNREACHABLE, ERR_TIMEOUT, ERR_TOO_LARGE, ERR_UNAVAILABLE */
};

/* ERR_USAGE: text that cannot stand in a header. */
must_check int wire_new(const struct wire_options *opt, struct wire **ret, struct err *err);
/* NULL is fine; its requests end without callback. May be called from a callback.
 * The memory goes when the loop has closed the handles. */
void wire_free(struct wire *w);

/* The reply is borrowed until the callback returns. The callback never comes from
 * inside wire_send, and the request is gone after it. */
typedef void (*wire_f)(const struct wire_reply *reply, void *arg);
struct wire_request *wire_send(struct wire *w,
                               const struct wire_order *order,
                               wire_f cb,
                               void *arg);
/* Ends it without callback. NULL is fine. */
void wire_request_free(struct wire_request *r);
