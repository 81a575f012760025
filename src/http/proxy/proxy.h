/* SPDX-License-Identifier: Apache-2.0 */
/* proxy.h - passes requests on to servers behind argusd, and their answers back.
 *
 * For handlers of HTTP_ROUTE_RELAY routes. The caller has judged who asks and names the address by
 * number; no text of the request ever becomes an address. Lines of a head are handed on as
 * headers.h says; no cookie and no credential of ours goes up, none of the server's comes down. */
#pragma once
#include "base/clock.h"
#include "http/relay.h"

struct expo;
struct proxy;

struct proxy_limits {    /* 0 = the default in brackets */
    usec_t connect_usec; /* [5 s] to each address */
    usec_t stall_usec;   /* [60 s] a peer takes no byte of those that wait for it */
    usec_t answer_usec;  /* [10 min] from the whole request to the head of its answer */
    usec_t quiet_usec;   /* [10 min] the server sends no byte of a body that it owes */
    usec_t idle_usec;    /* [1 h] no byte passes a WebSocket either way */
    usec_t check_usec;   /* [60 s] how often it is asked whether the sender may go on */
};

struct proxy_options {
    uv_loop_t *loop;      /* borrowed */
    usec_t (*mono)(void); /* clock_mono */
    struct proxy_limits limits;
};

struct proxy *proxy_new(const struct proxy_options *opt);
/* After the server was closed, so that nothing is passed on any more. Freed when the loop has
 * closed its handles. NULL is fine. */
void proxy_close(struct proxy *p);
/* What is passed on now and was, in bytes, and how it ended. */
void proxy_metrics(const struct proxy *p, struct expo *e);

struct proxy_target {
    const char *host; /* an IP address, not a name */
    unsigned port;
    const char *base; /* path of the place there, "" or "/s/chat-v2" */
};

enum proxy_flags {
    PROXY_SANDBOX = 1 << 0,   /* what a browser gets has no origin of ours and runs nothing */
    PROXY_WEBSOCKET = 1 << 1, /* it may become a WebSocket */
    PROXY_PLAIN = 1 << 2,     /* the answer is not to be compressed: somebody reads along */
};

enum proxy_end {
    PROXY_WHOLE,       /* the answer passed to its end */
    PROXY_LEFT,        /* the client left before that, or argusd closes */
    PROXY_REFUSED,     /* by us: too many, or no request that may be passed on */
    PROXY_UNREACHABLE, /* no address answered */
    PROXY_BROKEN,      /* the server's answer is none, or ended early */
    PROXY_SLOW,        /* a limit of time */
    PROXY_ENDED,       /* the sender may not go on */
};

struct proxy_result {
    enum proxy_end end;
    int status; /* that the client was told; 0: none */
    bool is_websocket;
    uint64_t bytes_up, bytes_down; /* of bodies, or both ways of a WebSocket */
    usec_t first_usec;             /* to the head of the answer, 0: none came */
    usec_t whole_usec;
    size_t target; /* which of the targets answered or was tried last */
};

struct proxy_pass {
    /* Tried in their order until one accepts; and the next one also where a GET or HEAD without a
     * body was accepted and not one byte came back. */
    const struct proxy_target *targets;
    size_t n_targets;             /* 1 to PROXY_TARGETS_MAX */
    const char *prefix;           /* of the same place here, "/v1/services/chat" */
    const char *path;             /* behind `base`, as it was sent: http_req_tail() */
    const struct http_field *add; /* lines for the server behind */
    size_t n_add;
    unsigned flags;    /* enum proxy_flags */
    uint64_t max_body; /* bytes; more is 413; 0: as many as the route takes */
    usec_t patience;   /* until the head of the answer, and between bytes of it; 0: the proxy's */
    /* Says of each target that was tried whether it accepted the connection; NULL: nobody asks. */
    void (*tried)(size_t target, bool accepted, void *arg);
    /* Content of the request, and of the answer, as it passes, borrowed; NULL: nobody wants it. */
    void (*sent)(const char *p, size_t n, void *arg);
    void (*seen)(const char *p, size_t n, void *arg);
    /* Once for each proxy_pass(), maybe before it returns; NULL: nobody asks. */
    void (*done)(const struct proxy_result *r, void *arg);
    void *arg;
};

enum { PROXY_TARGETS_MAX = 4 };

/* Texts are copied. The request is the proxy's from here on, whatever becomes of it. */
void proxy_pass(struct proxy *p, struct http_req *req, const struct proxy_pass *how);

const char *proxy_end_to_string(enum proxy_end end); /* "whole" "left" … */
