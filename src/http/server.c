/* SPDX-License-Identifier: Apache-2.0 */
/* server.c - libmicrohttpd on the uv loop: opening, turning, deadlines, closing.
 *
 * Two epoll sets are polled by the loop. libmicrohttpd's own says that it has work. Ours
 * (watch_fd) has every connection for EPOLLRDHUP alone: libmicrohttpd does not look at a
 * suspended connection, and a long-poll or a quiet stream would outlive its client.
 * Deadlines are ours too, as libmicrohttpd's start again with every byte: a client that
 * sends one byte a second must not keep a connection, nor one that takes one byte a second. */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/str.h"
#include "http/certificate.h"
#include "http/listen.h"
#include "http/state.h"

enum {
    PEM_MAX = 1 << 20,
    CLOSING_TICK_MS = 20,
    GONE_USEC = 500000,
    REPLY_PROGRESS = 32 << 10, /* bytes of a reply that a client takes within reply_usec */
    SPARE_MAX = 16,            /* connections kept free for who comes next */
};

/* ---- connections ---- */

static void server_on_gone(uv_poll_t *handle, int status, int events)
{
    enum { AT_ONCE = 64 }; /* more come with the next turn: the set is level-triggered for us */
    struct http_server *s = handle->data;
    struct epoll_event ev[AT_ONCE];
    (void)status, (void)events;
    int n = epoll_wait(s->watch_fd, ev, AT_ONCE, 0);
    for (int i = 0; i < n; i++) {
        struct conn *c = ev[i].data.ptr;
        struct http_req *req = c->req;
        c->gone = true;
        if (c->phase == CONN_HEAD || c->phase == CONN_BODY || (req && relay_is_open(req)))
            c->since = s->opt.mono();
        if (!req)
            continue;
        bool waits = req->state == REQ_HANDLING && (req->on_close || req->on_timeout);
        if (relay_is_open(req))
            continue; /* its owner reads the end himself; where TLS hides it, the tick tells him */
        if (waits || ((req->stream || req->pull.pull) && req->state >= REQ_REPLIED))
            req_abort(req);
    }
}

static void server_on_tick(uv_timer_t *timer);
static void on_again(uv_timer_t *timer);

static uint64_t tick_ms(const struct http_server *s)
{
    const struct http_limits *l = &s->limits;
    usec_t least = l->idle_usec < l->body_usec ? l->idle_usec : l->body_usec;
    least = least < l->heartbeat_usec ? least : l->heartbeat_usec;
    least = least < l->reply_usec ? least : l->reply_usec;
    uint64_t ms = least / USEC_MS / 4;
    return ms < 10 ? 10 : ms > 1000 ? 1000 : ms;
}

/* Who comes next finds a place: of those that have sent no whole head the one that has waited
 * longest goes. Connections stand in the order in which they came, or in which they were last used.
 */
static void server_drop_oldest(struct http_server *s)
{
    for (struct link *l = s->conns.next; l != &s->conns; l = l->next) {
        struct conn *c = container_of(l, struct conn, link);
        if (c->phase != CONN_HEAD || c->dropped)
            continue;
        c->dropped = true;
        (void)shutdown(c->fd, SHUT_RDWR); /* it may be gone already */
        return;
    }
}

/* libmicrohttpd asks with each connection before it takes it. */
static enum MHD_Result on_accept(void *cls, const struct sockaddr *a, socklen_t n)
{
    struct http_server *s = cls;
    char peer[SHARE_NAME_MAX];
    (void)n;
    shares_address(a, s->limits.exempt, peer);
    if (!*peer ||
        shares_has_room(s->shares, SHARE_CONNECTIONS, peer, s->limits.address_connections))
        return MHD_YES;
    s->n_refused++;
    return MHD_NO;
}

static void server_conn_count(struct conn *c)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(c->mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    if (info && info->client_addr)
        shares_address(info->client_addr, c->server->limits.exempt, c->peer);
    if (*c->peer)
        (void)shares_take(c->server->shares, SHARE_CONNECTIONS, c->peer, 0); /* no limit: true */
}

static void server_conn_open(struct http_server *s, struct MHD_Connection *mhd, void **context)
{
    struct conn *c = xcalloc(1, sizeof(*c));
    c->server = s;
    c->mhd = mhd;
    c->fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
    c->since = s->opt.mono();
    server_conn_count(c);
    struct epoll_event ev = {.events = EPOLLRDHUP | EPOLLET, .data.ptr = c};
    /* Without it the client's going is seen at the next write: slower, not wrong. */
    (void)epoll_ctl(s->watch_fd, EPOLL_CTL_ADD, c->fd, &ev);
    link_add_after(s->conns.prev, &c->link);
    if (!s->n_conns++ && !s->closing)
        (void)uv_timer_start(&s->tick, server_on_tick, tick_ms(s),
                             tick_ms(s)); /* cannot fail here */
    *context = c;
    unsigned spare = s->limits.connections / 8;
    if (s->n_conns + (spare < SPARE_MAX ? spare : SPARE_MAX) > s->limits.connections)
        server_drop_oldest(s);
}

static void on_connection(void *cls,
                          struct MHD_Connection *mhd,
                          void **context,
                          enum MHD_ConnectionNotificationCode what)
{
    struct http_server *s = cls;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        server_conn_open(s, mhd, context);
        return;
    }
    struct conn *c = *context;
    *context = NULL;
    (void)epoll_ctl(s->watch_fd, EPOLL_CTL_DEL, c->fd, NULL); /* may never have been in it */
    link_remove(&c->link);
    if (*c->peer)
        shares_give(s->shares, SHARE_CONNECTIONS, c->peer);
    free(c);
    /* At its limit libmicrohttpd does not listen, and looks again only when it turns. */
    if (s->n_conns >= s->limits.connections && !s->closing)
        (void)uv_timer_start(&s->again, on_again, 0, 0); /* cannot fail here */
    if (!--s->n_conns && !s->closing)
        uv_timer_stop(&s->tick);
}

/* ---- turning ---- */

static void server_turn(struct http_server *s);

static void on_again(uv_timer_t *timer)
{
    server_turn(timer->data);
}

void server_turn_soon(struct http_server *s)
{
    if (!uv_is_closing((uv_handle_t *)&s->again))
        (void)uv_timer_start(&s->again, on_again, 0, 0); /* cannot fail here */
}

static void on_ready(uv_poll_t *handle, int status, int events)
{
    (void)status, (void)events;
    server_turn(handle->data);
}

static void server_turn(struct http_server *s)
{
    unsigned long long ms;
    if (MHD_run(s->daemon) == MHD_NO)
        log_warn("http", "libmicrohttpd cannot turn, trying again");
    /* libmicrohttpd's longer timeouts are served by our tick. */
    if (MHD_get_timeout(s->daemon, &ms) == MHD_YES && ms == 0)
        (void)uv_timer_start(&s->again, on_again, 0, 0); /* cannot fail here */
}

/* A reply that has no end yet and does not sleep waits for its client. */
static bool is_too_slow_a_reader(struct conn *c, usec_t now)
{
    const struct http_req *req = c->req;
    if (!req || req->state != REQ_SENT || req->suspended || relay_is_open(req)) {
        c->phase = CONN_BUSY;
        return false;
    }
    if (c->phase == CONN_REPLY && now - c->since < c->server->limits.reply_usec)
        return false;
    uint64_t acked = listen_acked(c->fd);
    if (c->phase == CONN_REPLY && acked - c->acked < REPLY_PROGRESS)
        return true;
    c->phase = CONN_REPLY;
    c->since = now;
    c->acked = acked;
    return false;
}

/* libmicrohttpd's TLS does not tell the owner of an upgraded connection that its client has left.
 */
static void relay_gone_later(struct conn *c, usec_t now)
{
    enum { LAST_BYTES_USEC = 2 * USEC_SEC }; /* what the client sent last has come by then */
    if (c->gone && c->server->opt.tls_cert && now - c->since > LAST_BYTES_USEC)
        relay_gone(c->req);
}

/* A slow head, body or reader: end the connection under libmicrohttpd, which then cleans up. */
static void cut_slow(struct http_server *s, usec_t now)
{
    const usec_t limits[] = {[CONN_HEAD] = s->limits.idle_usec, [CONN_BODY] = s->limits.body_usec};
    for (struct link *l = s->conns.next; l != &s->conns; l = l->next) {
        struct conn *c = container_of(l, struct conn, link);
        if (c->req && relay_is_open(c->req)) {
            relay_gone_later(c, now);
            continue;
        }
        if (c->phase == CONN_BUSY || c->phase == CONN_REPLY) {
            if (is_too_slow_a_reader(c, now)) {
                s->n_slow++;
                (void)shutdown(c->fd, SHUT_RDWR); /* it may be gone already */
            }
            continue;
        }
        /* A client that closed its side may have sent a request before; libmicrohttpd reads it
         * now. It can miss an end that comes with the last bytes, so it is told again. */
        usec_t limit = c->gone ? GONE_USEC : limits[c->phase];
        if (now - c->since <= limit)
            continue;
        s->n_slow += c->phase == CONN_BODY || c->req;
        (void)shutdown(c->fd, SHUT_RDWR); /* it may be gone already */
    }
}

static void beat_streams(struct http_server *s, usec_t now)
{
    for (struct link *l = s->streams.next; l != &s->streams; l = l->next) {
        struct http_stream *st = container_of(l, struct http_stream, link);
        if (now - st->last_write >= s->limits.heartbeat_usec)
            stream_beat(st);
    }
}

static void server_finish_close(struct http_server *s);

static void server_on_tick(uv_timer_t *timer)
{
    struct http_server *s = timer->data;
    usec_t now = s->opt.mono();
    cut_slow(s, now);
    beat_streams(s, now);
    server_turn(s);
    if (s->closing && (!s->n_reqs || now >= s->close_by))
        server_finish_close(s);
}

/* ---- opening ---- */

static void fill_limits(struct http_limits *l)
{
    const struct http_limits dflt = {.connections = 4096,
                                     .streams = 2048,
                                     .relays = 4096,
                                     .bodies = 256,
                                     .head_bytes = 8192,
                                     .uri_bytes = 4096,
                                     .stream_bytes = 256 << 10,
                                     .idle_usec = 60 * USEC_SEC,
                                     .body_usec = 120 * USEC_SEC,
                                     .reply_usec = 60 * USEC_SEC,
                                     .bodies_bytes = 256 << 20,
                                     .heartbeat_usec = 15 * USEC_SEC};
    l->connections = l->connections ? l->connections : dflt.connections;
    l->streams = l->streams ? l->streams : dflt.streams;
    l->relays = l->relays ? l->relays : dflt.relays;
    l->bodies = l->bodies ? l->bodies : dflt.bodies;
    l->head_bytes = l->head_bytes ? l->head_bytes : dflt.head_bytes;
    l->uri_bytes = l->uri_bytes ? l->uri_bytes : dflt.uri_bytes;
    l->stream_bytes = l->stream_bytes ? l->stream_bytes : dflt.stream_bytes;
    l->idle_usec = l->idle_usec ? l->idle_usec : dflt.idle_usec;
    l->body_usec = l->body_usec ? l->body_usec : dflt.body_usec;
    l->reply_usec = l->reply_usec ? l->reply_usec : dflt.reply_usec;
    l->bodies_bytes = l->bodies_bytes ? l->bodies_bytes : dflt.bodies_bytes;
    l->heartbeat_usec = l->heartbeat_usec ? l->heartbeat_usec : dflt.heartbeat_usec;
}

/* One buffer, so that no copy of a key stays behind where it grew; wiped by pem_freep(). */
static int read_pem(const char *path, bool is_secret, char **ret, struct err *err)
{
    _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0 || fstat(fd, &st) < 0)
        return err_set(err, -errno, "cannot read '%s': %s", path, strerror(errno));
    if (is_secret && st.st_mode & (S_IWGRP | S_IRWXO))
        return err_set(err, ERR_USAGE,
                       "the key '%s' has mode %03o: chmod 600 it, others than its owner and group "
                       "must not read it",
                       path, (unsigned)st.st_mode & 0777);
    if (st.st_size > PEM_MAX)
        return err_set(err, ERR_USAGE, "'%s' is too large for a PEM file", path);
    char *text = xcalloc(1, (size_t)st.st_size + 1);
    ssize_t n = read(fd, text, (size_t)st.st_size);
    if (n != st.st_size) {
        int e = n < 0 ? errno : EIO;
        free(text);
        return err_set(err, -e, "cannot read '%s': %s", path, strerror(e));
    }
    *ret = text;
    return 0;
}

static void pem_freep(char **text)
{
    if (*text)
        explicit_bzero(*text, strlen(*text));
    free(*text);
}

int http_check_tls(const char *cert, const char *key, struct err *err)
{
    _cleanup_(freep) char *open_text = NULL;
    _cleanup_(pem_freep) char *secret = NULL;
    int r = read_pem(cert, false, &open_text, err);
    return r < 0 ? r : read_pem(key, true, &secret, err);
}

int http_read_certificate(const char *path, struct certificate *ret, struct err *err)
{
    _cleanup_(freep) char *text = NULL;
    int r = read_pem(path, false, &text, err);
    if (r == 0 && certificate_read(text, ret) < 0)
        r = err_set(err, ERR_USAGE, "'%s' has no certificate in it", path);
    return r;
}

/* The end of what is served: the file may be another one later. */
static void server_note_end(struct http_server *s, const char *pem)
{
    struct certificate c = {0};
    if (certificate_read(pem, &c) == 0)
        s->cert_ends = c.ends;
    certificate_release(&c);
}

usec_t http_server_cert_ends(const struct http_server *s)
{
    return s->cert_ends;
}

printf_like(2, 0) static void server_on_log(void *arg, const char *fmt, va_list ap)
{
    (void)arg;
    if (!log_is_debug("http"))
        return;
    _cleanup_(buf_release) struct buf b = BUF_INIT(1024);
    if (buf_vaddf(&b, fmt, ap) == 0)
        log_debug("http", "%s", buf_str(&b));
}

static bool server_has_relays(const struct http_server *s)
{
    for (size_t i = 0; i < s->opt.n_routes; i++)
        if (s->opt.routes[i].flags & HTTP_ROUTE_RELAY)
            return true;
    return false;
}

/* Before 1.0 libmicrohttpd passes the bytes of an upgraded TLS connection four at a time. */
static void server_warn_of_tls(const struct http_server *s)
{
    if (s->opt.tls_cert && str_starts(MHD_get_version(), "0.") && server_has_relays(s))
        log_warn("http",
                 "libmicrohttpd %s passes WebSockets over TLS at 0.3 MB/s: install version 1.0 or "
                 "newer, or let a server in front end TLS",
                 MHD_get_version());
}

static int start_daemon(struct http_server *s,
                        int listen_fd,
                        char *cert,
                        char *key,
                        struct err *err)
{
    const struct http_limits *l = &s->limits;
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG;
    if (server_has_relays(s))
        flags |= MHD_ALLOW_UPGRADE;
    /* TLS 1.2 and 1.3, whatever the distribution's default is. Read by the call below only. */
    char tls_priorities[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";
    struct MHD_OptionItem tls[] = {{MHD_OPTION_HTTPS_MEM_CERT, 0, cert},
                                   {MHD_OPTION_HTTPS_MEM_KEY, 0, key},
                                   {MHD_OPTION_HTTPS_PRIORITIES, 0, tls_priorities},
                                   {MHD_OPTION_END, 0, NULL}};
    if (!cert)
        tls[0] = tls[3];
    /* The head, its fields and the head of the reply share the pool of a connection; what it
     * leaves is the block in which bodies are read. It is cleared with each request, so it is no
     * larger than it must be. */
    size_t pool = l->head_bytes + 2 * l->uri_bytes + 4096;
    s->daemon = MHD_start_daemon(
        flags | (cert ? MHD_USE_TLS : 0U), 0, on_accept, s, intake_step, s,
        MHD_OPTION_EXTERNAL_LOGGER, server_on_log, NULL, MHD_OPTION_LISTEN_SOCKET, listen_fd,
        MHD_OPTION_CONNECTION_LIMIT, l->connections, MHD_OPTION_CONNECTION_MEMORY_LIMIT, pool,
        MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)(l->idle_usec / USEC_SEC + 1),
        MHD_OPTION_NOTIFY_COMPLETED, intake_end, s, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s,
        MHD_OPTION_URI_LOG_CALLBACK, intake_begin, s, MHD_OPTION_STRICT_FOR_CLIENT, 1,
        MHD_OPTION_ARRAY, tls, MHD_OPTION_END);
    if (!s->daemon)
        return err_set(err, ERR_USAGE,
                       cert ? "cannot start the server: are the certificate and its key right"
                            : "cannot start the server: %s",
                       strerror(errno));
    return 0;
}

static int start_watching(struct http_server *s, struct err *err)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    int r = info ? uv_poll_init(s->opt.loop, &s->poll, info->epoll_fd) : UV_ENOTSUP;
    if (r == 0) {
        s->n_handles++;
        r = uv_poll_init(s->opt.loop, &s->watch, s->watch_fd);
    }
    if (r == 0) {
        s->n_handles++;
        r = uv_poll_start(&s->poll, UV_READABLE, on_ready);
    }
    if (r == 0)
        r = uv_poll_start(&s->watch, UV_READABLE, server_on_gone);
    if (r < 0)
        return err_set(err, r, "cannot watch the server's sockets: %s", uv_strerror(r));
    uv_timer_t *timers[] = {&s->again, &s->tick, &s->park};
    for (size_t i = 0; i < array_len(timers); i++) {
        (void)uv_timer_init(s->opt.loop, timers[i]); /* never fails */
        timers[i]->data = s;
        s->n_handles++;
    }
    s->poll.data = s->watch.data = s;
    return 0;
}

static int open_all(struct http_server *s, struct err *err)
{
    _cleanup_(freep) char *cert = NULL;
    _cleanup_(pem_freep) char *key = NULL;
    _cleanup_(closep) int fd = -1;
    int r = router_open(s->opt.routes, s->opt.n_routes, &s->router, err);
    if (r == 0 && !s->opt.tls_cert != !s->opt.tls_key)
        r = err_set(err, ERR_USAGE, "TLS needs a certificate and a key: only one is given");
    if (r == 0 && s->opt.tls_cert)
        r = read_pem(s->opt.tls_cert, false, &cert, err);
    if (r == 0 && s->opt.tls_key)
        r = read_pem(s->opt.tls_key, true, &key, err);
    if (r == 0)
        r = listen_open(s->opt.listen, &fd, &s->port, err);
    if (r < 0)
        return r;
    s->watch_fd = epoll_create1(EPOLL_CLOEXEC);
    if (s->watch_fd < 0)
        return err_set(err, -errno, "cannot watch connections: %s", strerror(errno));
    r = start_daemon(s, fd, cert, key, err);
    if (r < 0)
        return r;
    fd = -1; /* libmicrohttpd's now */
    if (cert)
        server_note_end(s, cert);
    server_warn_of_tls(s);
    return start_watching(s, err);
}

static void free_all(struct http_server *s)
{
    closep(&s->watch_fd);
    stats_free(s->stats);
    shares_free(s->shares);
    router_free(s->router);
    free(s);
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct http_server *s = handle->data;
    if (--s->n_handles)
        return;
    void (*done)(void *arg) = s->on_closed;
    void *arg = s->on_closed_arg;
    free_all(s);
    if (done)
        done(arg);
}

static void server_close_handles(struct http_server *s)
{
    uv_handle_t *all[] = {(uv_handle_t *)&s->poll, (uv_handle_t *)&s->watch,
                          (uv_handle_t *)&s->again, (uv_handle_t *)&s->tick,
                          (uv_handle_t *)&s->park};
    unsigned n = s->n_handles; /* those that were initialised, in this order */
    for (unsigned i = 0; i < n; i++) {
        all[i]->data = s;
        uv_close(all[i], on_handle_closed);
    }
    if (!n)
        free_all(s);
}

int http_server_open(const struct http_options *opt, struct http_server **ret, struct err *err)
{
    struct http_server *s = xcalloc(1, sizeof(*s));
    s->opt = *opt;
    s->limits = opt->limits;
    s->watch_fd = -1;
    fill_limits(&s->limits);
    link_init(&s->conns);
    link_init(&s->held);
    link_init(&s->parked);
    link_init(&s->streams);
    s->shares = shares_new();
    s->stats = stats_new(opt->routes, opt->n_routes);
    int r = open_all(s, err);
    if (r < 0) {
        if (s->daemon)
            MHD_stop_daemon(s->daemon);
        server_close_handles(s);
        return r;
    }
    *ret = s;
    return 0;
}

/* ---- closing ---- */

/* Every suspended connection must be awake before libmicrohttpd stops. */
static void server_finish_close(struct http_server *s)
{
    struct link *next;
    for (struct link *l = s->conns.next; l != &s->conns; l = next) {
        struct conn *c = container_of(l, struct conn, link);
        next = l->next;
        if (c->req && relay_is_open(c->req))
            relay_gone(c->req);
        else if (c->req)
            req_abort(c->req);
    }
    uv_timer_stop(&s->tick);
    MHD_stop_daemon(s->daemon);
    server_close_handles(s);
}

void http_server_close(struct http_server *s, usec_t grace, void (*done)(void *arg), void *arg)
{
    s->closing = true;
    s->close_by = s->opt.mono() + grace;
    s->on_closed = done;
    s->on_closed_arg = arg;
    int fd = MHD_quiesce_daemon(s->daemon);
    closep(&fd);
    struct link *next;
    for (struct link *l = s->streams.next; l != &s->streams; l = next) {
        struct http_stream *st = container_of(l, struct http_stream, link);
        next = l->next;
        stream_close(st);
        if (st->req->state == REQ_SENT)
            req_wake(st->req);
    }
    for (struct link *l = s->conns.next; l != &s->conns; l = l->next) {
        struct conn *c = container_of(l, struct conn, link);
        if (c->req && relay_is_open(c->req))
            relay_gone(c->req);
    }
    park_fire_all(s);
    (void)uv_timer_start(&s->tick, server_on_tick, CLOSING_TICK_MS,
                         CLOSING_TICK_MS); /* cannot fail here */
}

unsigned http_server_port(const struct http_server *s)
{
    return s->port;
}

void http_metrics(const struct http_server *s, struct expo *e)
{
    stats_put(s->stats, e);
    expo_one(e, EXPO_GAUGE, "http_connections", "Open connections.", s->n_conns);
    expo_one(e, EXPO_GAUGE, "http_streams", "Open streams.", s->n_streams);
    expo_one(e, EXPO_GAUGE, "http_relays", "Requests that are being passed on.", s->n_relays);
    expo_one(e, EXPO_COUNTER, "http_connections_refused_total",
             "Connections over the ceiling of their address.", s->n_refused);
    expo_one(e, EXPO_COUNTER, "http_connections_slow_total",
             "Connections cut because their client was too slow.", s->n_slow);
}
