/* SPDX-License-Identifier: Apache-2.0 */
/* tunnel.c - a WebSocket after its 101: bytes both ways, never looked at.
 *
 * Read into the proxy's scratch and sent on in the same turn. What a side does not take waits with
 * it, at most one scratch, and the other side is not read meanwhile. When one side ends, what
 * waits for the other is sent, and then both are closed: a WebSocket has no half. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "http/proxy/exchange.h"

enum { ROUNDS = 4 }; /* reads of one side before others have their turn */

static size_t tunnel_waiting(const struct tunnel_end *e)
{
    return e->unsent.len - e->sent;
}

bool tunnel_is_stuck(const struct exchange *x)
{
    return tunnel_waiting(&x->up) || tunnel_waiting(&x->down);
}

static void tunnel_on_client(uv_poll_t *handle, int status, int events);

static void tunnel_watch(struct tunnel_end *e, const struct tunnel_end *other, uv_poll_cb cb)
{
    int wanted = (tunnel_waiting(e) ? UV_WRITABLE : 0) |
                 (e->is_over || tunnel_waiting(other) ? 0 : UV_READABLE);
    if (wanted == e->events)
        return;
    e->events = wanted;
    if (wanted)
        (void)uv_poll_start(e->poll, wanted, cb); /* fails only while closing */
    else
        uv_poll_stop(e->poll);
}

void tunnel_stop(struct exchange *x)
{
    struct http_req *req = x->req;
    if (x->down.poll) {
        uv_close((uv_handle_t *)&x->client, exchange_on_handle_closed);
        x->down.poll = NULL;
        x->proxy->n_tunnels--;
    }
    exchange_hang_up(x);
    http_upgrade_close(req); /* `gone` comes when libmicrohttpd turns */
}

/* Both sides ended as a WebSocket ends. */
static void tunnel_over(struct exchange *x)
{
    x->is_over = true;
    tunnel_stop(x);
}

/* 0, or -errno: the side is broken. What it does not take waits. */
static int tunnel_send(struct tunnel_end *to, const char *p, size_t n)
{
    while (n && !tunnel_waiting(to)) {
        ssize_t sent = send(to->fd, p, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR)
            continue;
        if (sent < 0 && errno != EAGAIN)
            return -errno;
        if (sent < 0)
            break;
        p += sent;
        n -= (size_t)sent;
    }
    return n ? buf_add(&to->unsent, p, n) : 0;
}

static int tunnel_flush(struct tunnel_end *to)
{
    while (tunnel_waiting(to)) {
        ssize_t n = send(to->fd, to->unsent.data + to->sent, tunnel_waiting(to), MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? 0 : -errno;
        to->sent += (size_t)n;
    }
    buf_release(&to->unsent);
    to->sent = 0;
    return 0;
}

/* Bytes that passed, or -errno: one of the sides is broken. */
static int64_t tunnel_pass(struct exchange *x, struct tunnel_end *from, struct tunnel_end *to)
{
    int64_t passed = 0;
    for (int i = 0; i < ROUNDS && !from->is_over && !tunnel_waiting(to); i++) {
        ssize_t n = recv(from->fd, x->proxy->scratch, SCRATCH_BYTES, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EAGAIN ? passed : -errno;
        from->is_over = !n;
        int r = tunnel_send(to, x->proxy->scratch, (size_t)n);
        if (r < 0)
            return r;
        passed += n;
    }
    return passed;
}

static void tunnel_turn(struct exchange *x, struct tunnel_end *e, int events, uint64_t *count)
{
    struct tunnel_end *other = e == &x->up ? &x->down : &x->up;
    size_t waiting = tunnel_waiting(e);
    int64_t r = events & UV_WRITABLE ? tunnel_flush(e) : 0;
    bool moved = tunnel_waiting(e) < waiting;
    if (r == 0 && events & UV_READABLE)
        r = tunnel_pass(x, e, other);
    if (r > 0)
        *count += (uint64_t)r;
    if (r > 0 || moved)
        x->since = x->proxy->opt.mono();
    bool is_over = (e->is_over && !tunnel_waiting(other)) || (other->is_over && !tunnel_waiting(e));
    if (r < 0 || is_over) {
        tunnel_over(x);
        return;
    }
    tunnel_watch(&x->up, &x->down, tunnel_on_server);
    tunnel_watch(&x->down, &x->up, tunnel_on_client);
}

void tunnel_on_server(uv_poll_t *handle, int status, int events)
{
    struct exchange *x = handle->data;
    tunnel_turn(x, &x->up, status < 0 ? UV_READABLE | UV_WRITABLE : events, &x->result.bytes_down);
}

static void tunnel_on_client(uv_poll_t *handle, int status, int events)
{
    struct exchange *x = handle->data;
    tunnel_turn(x, &x->down, status < 0 ? UV_READABLE | UV_WRITABLE : events, &x->result.bytes_up);
}

void tunnel_open(struct exchange *x, int fd, const char *data, size_t n)
{
    free(x->answer);
    x->answer = NULL;
    if (x->fd < 0 || uv_poll_init(x->proxy->opt.loop, &x->client, fd) < 0) {
        tunnel_stop(x);
        return;
    }
    x->client.data = x;
    x->n_handles++;
    x->proxy->n_tunnels++;
    x->up = (struct tunnel_end){.fd = x->fd, .poll = &x->poll};
    x->down = (struct tunnel_end){.fd = fd, .poll = &x->client};
    /* What came early is as much as a read of a head takes. */
    buf_init(&x->up.unsent, 2 * SCRATCH_BYTES);
    buf_init(&x->down.unsent, 2 * SCRATCH_BYTES);
    x->result.bytes_up += n;
    x->result.bytes_down += x->in.len - x->in_used;
    int r = tunnel_send(&x->up, data, n);
    if (r == 0)
        r = tunnel_send(&x->down, x->in.data + x->in_used, x->in.len - x->in_used);
    buf_release(&x->in);
    x->in_used = 0;
    if (r < 0) {
        tunnel_over(x);
        return;
    }
    tunnel_watch(&x->up, &x->down, tunnel_on_server);
    tunnel_watch(&x->down, &x->up, tunnel_on_client);
}
