/* SPDX-License-Identifier: Apache-2.0 */
/* state.h - the structs that the files of the server share; no other file includes it.
 *
 * Who owns what: the server owns its connections (from libmicrohttpd's notification to its
 * other one), a connection owns at most one request, a request owns at most one stream.
 * A request is freed only in on_completed(), which libmicrohttpd calls exactly once; all
 * other code only marks it and resumes its connection. */
#pragma once
#include <microhttpd.h>

#include "base/strv.h"
#include "http/http.h"
#include "http/relay.h"
#include "http/router.h"
#include "http/shares.h"
#include "http/stats.h"
#include "http/uri.h"

enum { QUERY_MAX = 32, TYPE_MAX = 64 };

/* Intrusive list, a ring with a head of its own. */
struct link {
    struct link *prev, *next;
};

static inline void link_init(struct link *l)
{
    l->prev = l->next = l;
}

static inline bool link_is_in(const struct link *l)
{
    return l->next != l;
}

static inline void link_remove(struct link *l)
{
    l->prev->next = l->next;
    l->next->prev = l->prev;
    link_init(l);
}

static inline void link_add_after(struct link *at, struct link *l)
{
    l->prev = at;
    l->next = at->next;
    at->next->prev = l;
    at->next = l;
}

struct http_server {
    struct http_options opt;
    struct http_limits limits; /* without zeroes */
    struct router *router;
    struct stats *stats;
    struct shares *shares;
    struct MHD_Daemon *daemon;
    unsigned port;
    usec_t cert_ends; /* of the certificate that it speaks with; 0: none, or not known */
    int watch_fd;     /* epoll set that hears of clients that go */
    uint64_t durable;

    uv_poll_t poll, watch;
    uv_timer_t again; /* libmicrohttpd has work left */
    uv_timer_t tick;  /* deadlines and heartbeats; runs while there are connections */
    uv_timer_t park;  /* the earliest parked request */
    unsigned n_handles;

    struct link conns;
    struct link held;    /* requests by barrier */
    struct link parked;  /* requests by deadline */
    struct link streams; /* open ones */
    unsigned n_conns, n_reqs, n_streams, n_bodies, n_relays;
    unsigned n_refused, n_slow; /* connections: over the ceiling of an address; cut as too slow */
    size_t body_bytes;          /* of bodies in memory */

    bool closing;
    usec_t close_by;
    void (*on_closed)(void *arg);
    void *on_closed_arg;
};

/* BUSY: it is our turn. REPLY: the client is to take what its socket does not hold. */
enum conn_phase { CONN_HEAD, CONN_BODY, CONN_BUSY, CONN_REPLY };

struct conn {
    struct link link;
    struct http_server *server;
    struct MHD_Connection *mhd;
    struct http_req *req;
    int fd; /* borrowed */
    enum conn_phase phase;
    usec_t since;              /* when the phase began */
    bool gone;                 /* the client closed its side */
    bool dropped;              /* it waited longest when the server was full, and is being closed */
    uint64_t acked;            /* bytes that the client had taken at `since` */
    char peer[SHARE_NAME_MAX]; /* the address that it counts for; "" = none */
};

enum req_state {
    REQ_HEAD,     /* the head is not judged */
    REQ_BODY,     /* the body comes */
    REQ_HANDLING, /* the handler owes a reply */
    REQ_REPLIED,  /* the response is there */
    REQ_SENT      /* libmicrohttpd has it */
};

/* The result of the single walk over the headers; borrowed from the connection. */
struct head {
    size_t bytes;
    unsigned n_length, n_encoding, n_host, n_authorization, n_cookie;
    bool is_bad;
    const char *length, *encoding, *authorization, *content_type, *none_match, *expect, *language;
    const char *cookie;
};

/* Fields before `head` are zeroed at birth, the others are filled when used. */
struct http_req {
    struct conn *conn;
    enum req_state state;
    bool suspended;
    bool aborted;    /* ends without a (further) reply */
    bool in_handler; /* libmicrohttpd waits for us below on the stack */
    bool dropping;   /* the body is read and thrown away */
    bool receiving;  /* of a route that takes pieces: the body is not over */
    bool early;      /* a reply made now leaves before the body was read */
    bool was_replied;
    bool is_long;  /* the target was cut */
    bool is_poll;  /* counts as a poll of its user */
    bool is_large; /* counts as a body of its user */
    bool is_relay; /* counts as a relay, its user's too */
    struct http_pull pull;
    struct http_upgrade upgrade;
    struct MHD_UpgradeResponseHandle *socket; /* the connection speaks no HTTP any more */
    int refused;                              /* code of the refusal found in the head, 0 if none */
    const struct http_route *route;
    struct MHD_Response *response;
    unsigned status;
    uint64_t barrier;
    struct link held, parked;
    usec_t started, park_until;
    size_t dropped_bytes;
    size_t counted_bytes; /* of body, in the server's sum and the user's */
    struct buf body;
    struct pairs headers; /* of the reply */
    char content_type[TYPE_MAX];
    http_close_f on_close;
    void *on_close_arg;
    http_timeout_f on_timeout;
    void *on_timeout_arg;
    struct http_stream *stream;
    struct pieces *pieces;
    void *data;
    struct { /* see http_req_forward(); zeroes: not forwarded */
        http_wrap_f wrap;
        char *arg, *text; /* text: the target twice and its decoded parameters */
    } forward;
    char *path;       /* as sent, without the query */
    char *query;      /* cut into pairs by the first look, but of a relay never; NULL if none */
    const char *tail; /* of the path, what the star of the pattern stands for; NULL: it has none */
    char *params_text;
    size_t n_query, n_params;
    const char *method;

    struct head head;
    struct http_principal principal;
    struct uri_pair params[ROUTER_PARAMS_MAX];
    struct uri_pair queries[QUERY_MAX];
    char text[]; /* the target twice: path and query; decoded parameters */
};

struct http_stream {
    struct link link;
    struct http_req *req;
    struct buf queue;
    size_t start; /* of what is not yet given away */
    size_t max;
    usec_t last_write;
    bool ended, wants_drain, is_events;
    http_stream_f on_drain, on_close;
    void *on_drain_arg, *on_close_arg;
};

/* reply.c: hands the response over, or sleeps until a response may be sent. */
enum MHD_Result req_send(struct http_req *req);
/* Ready to send: now if we are below libmicrohttpd, else wake the connection. */
void req_leave(struct http_req *req,
               struct MHD_Response *response,
               unsigned status,
               uint64_t barrier);
void req_wake(struct http_req *req);
/* libmicrohttpd has work that no socket tells of: turn when the loop goes on. */
void server_turn_soon(struct http_server *s);
/* The client is gone or the server closes: tell the owner, wake, and end without a reply. */
void req_abort(struct http_req *req);
/* Adds the headers of every reply, and those that the handler added. */
void req_headers(struct http_req *req, struct MHD_Response *response, const char *content_type);

/* The arguments of http_problem(), with a status that the table of codes does not have. */
struct problem_reply {
    unsigned status;
    int code;
    const struct err *err;
    const char *field;
    const struct problems *problems;
    uint64_t barrier;
};
void req_problem(struct http_req *req, const struct problem_reply *p);
/* 429: the user has as many as he may; the code says of what. */
void req_busy(struct http_req *req, unsigned most, const char *message);

/* intake.c: libmicrohttpd's callbacks for one request. */
void *intake_begin(void *cls, const char *uri, struct MHD_Connection *mhd);
enum MHD_Result intake_step(void *cls,
                            struct MHD_Connection *mhd,
                            const char *url,
                            const char *method,
                            const char *version,
                            const char *data,
                            size_t *n,
                            void **con_cls);
void intake_end(void *cls,
                struct MHD_Connection *mhd,
                void **con_cls,
                enum MHD_RequestTerminationCode why);
size_t intake_max_body(const struct http_req *req);
/* The user of the token that was sent: 0, or ERR_UNAUTHORISED. */
/* True: the query does not fit the route, and the reply was made. */
bool intake_refuse_query(struct http_req *req);
int intake_authenticate(struct http_req *req);
/* May whoever sends it, as intake_authenticate() found him, use its route? */
bool intake_may(const struct http_req *req);
/* The row of its method and path, and what the path names: ERR_NOT_FOUND, ERR_METHOD… */
must_check int intake_find_route(struct http_req *req);
void intake_refuse(struct http_req *req); /* by req->refused */
/* True if the reply was made: its user has as many that wait as he may. */
bool intake_refuse_poll(struct http_req *req);

/* ---- forward.c ---- */

/* What another row replied becomes what is sent. body is not NULL. */
void forward_wrap(struct http_req *req, int *status, const char **content_type, struct buf *body);
void forward_release(struct http_req *req);

/* Bytes of a refused body that are read and dropped, so that the client receives the reply. A
 * client that sends more is answered at once, or is cut off. */
enum { PIECES_REST_MAX = 64 << 20 };
/* pieces.c: the body of a route that takes it in pieces, its end, and the request's. */
enum MHD_Result pieces_take(struct http_req *req, const char *data, size_t *n);
enum MHD_Result pieces_end(struct http_req *req);
void pieces_free(struct http_req *req);
/* The body is over: it is none of those that the server and the user may have at a time. */
void intake_uncount_body(struct http_req *req);

/* stream.c */
void stream_free(struct http_stream *st);  /* NULL is fine */
void stream_close(struct http_stream *st); /* on_close, then nothing more is read */
void stream_beat(struct http_stream *st);

/* relay.c */
void relay_end(struct http_req *req);  /* libmicrohttpd is done with the request */
void relay_gone(struct http_req *req); /* the client of an upgraded connection has left */
bool relay_is_open(
    const struct http_req *req); /* what was a request is a connection of its owner's */

/* park.c */
void park_arm(struct http_server *s);
void park_fire_all(struct http_server *s);
void park_on_timer(uv_timer_t *timer);
