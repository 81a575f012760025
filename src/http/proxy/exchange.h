/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.h - one request on its way through a proxy; shared by the files of this folder only.
 *
 * An exchange owns its connection to the server behind. It ends once, by exchange_end(), and its
 * memory goes when the loop has closed its handles. `req` is NULL once the request is not ours. */
#pragma once
#include <uv.h>

#include "base/buf.h"
#include "http/proxy/answer.h"
#include "http/proxy/headers.h"
#include "http/proxy/proxy.h"

enum {
    SCRATCH_BYTES = 64 << 10,
    OUT_MAX = (2 << 20) + (128 << 10), /* a head and two pieces of a body */
};

struct exchange_list {
    struct exchange *first;
    size_t n;
};

struct proxy {
    struct proxy_options opt;
    struct proxy_limits limits; /* without zeroes */
    uv_timer_t tick;
    struct exchange_list open;
    size_t n_closing; /* exchanges whose handles the loop still closes */
    bool is_closing, is_tick_closed;
    uint64_t n_tunnels, bytes_up, bytes_down, ends[PROXY_ENDED + 1];
    char scratch[SCRATCH_BYTES]; /* of whoever has the turn */
};

enum exchange_phase {
    EXCHANGE_CONNECTING,
    EXCHANGE_SENDING, /* the request, its body as it comes */
    EXCHANGE_WAITING, /* for the head of the answer */
    EXCHANGE_PASSING, /* its body */
    EXCHANGE_TUNNEL,
};

/* One end of a tunnel. */
struct tunnel_end {
    int fd;            /* borrowed */
    uv_poll_t *poll;   /* borrowed */
    int events;        /* that the loop looks for */
    struct buf unsent; /* what the other end sent and this one has not taken */
    size_t sent;       /* bytes of it that it took */
    bool is_over;      /* it sends no more */
};

struct exchange {
    struct exchange *prev, *next;
    struct proxy *proxy;
    struct http_req *req;
    enum exchange_phase phase;
    usec_t began, since, first, checked; /* `since`: the last progress of the phase */

    uv_poll_t poll, client; /* the latter of a tunnel */
    unsigned n_handles;
    int fd, events;
    struct proxy_target targets[PROXY_TARGETS_MAX];
    char *hosts[PROXY_TARGETS_MAX], *bases[PROXY_TARGETS_MAX];
    size_t n_targets, target;

    char id[64]; /* X-Request-ID */
    char *prefix, *path;
    struct pairs add; /* lines for the server behind */
    usec_t patience;
    uint64_t max_body;
    struct buf out; /* for the server, the first out_sent bytes are gone */
    size_t out_sent;
    struct buf in; /* from it: the head, and what came with it */
    size_t in_used;
    struct answer *answer; /* until it was handed on */
    struct dechunk chunks;
    enum answer_body body;
    uint64_t left;    /* of a body whose length is known */
    unsigned n_early; /* answers of 1xx */
    unsigned flags;
    bool is_head, is_upgrade, is_chunked_up, is_up_over, is_up_broken, is_lent;
    bool is_waited_for; /* libmicrohttpd sleeps until there are bytes */
    bool is_over;       /* every byte of the answer was read */
    bool is_cut;        /* the answer will not be whole */
    bool is_ended;
    struct tunnel_end up, down; /* of a tunnel: the server's, the client's */
    struct proxy_result result;
    void (*tried)(size_t target, bool accepted, void *arg);
    void (*sent)(const char *p, size_t n, void *arg);
    void (*seen)(const char *p, size_t n, void *arg);
    void (*done)(const struct proxy_result *r, void *arg);
    void *arg;
};

/* proxy.c */
void proxy_add(struct proxy *p, struct exchange *x);
void proxy_remove(struct proxy *p, struct exchange *x); /* its result is counted */
void proxy_free_if_closed(struct proxy *p);

/* Not one more byte; frees when the handles are closed. */
void exchange_end(struct exchange *x);
/* No connection behind any more; the request may still be handed what was read. */
void exchange_hang_up(struct exchange *x);
/* A limit of time was passed, or its sender may not go on. */
void exchange_give_up(struct exchange *x, enum proxy_end why);
void exchange_check(struct exchange *x, usec_t now);
void exchange_on_handle_closed(uv_handle_t *handle);
void exchange_free(struct exchange *x);

/* heads.c: the head of the request before what is in x->out, -EMSGSIZE if it is too long; and the
 * lines of the answer, which point into the exchange and into the list. */
struct head_list {
    size_t n;
    struct http_field fields[ANSWER_FIELDS_MAX + 8];
    struct buf locations[2];
};
must_check int head_write(struct exchange *x);
void head_choose_id(struct exchange *x);
void head_host(const struct exchange *x, char *ret, size_t size); /* "10.0.0.1:8000" */
void head_list_init(struct head_list *l, const struct exchange *x);
void head_list_add(struct head_list *l, const char *name, const char *value); /* borrowed */
void head_list_release(struct head_list *l);

/* tunnel.c */
void tunnel_open(struct exchange *x, int fd, const char *data, size_t n);
void tunnel_stop(struct exchange *x); /* the client's descriptor is not used any more */
void tunnel_on_server(uv_poll_t *handle, int status, int events);
bool tunnel_is_stuck(const struct exchange *x);
