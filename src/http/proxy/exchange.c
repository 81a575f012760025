/* SPDX-License-Identifier: Apache-2.0 */
/* exchange.c - one request and its answer, on a connection of its own to the server behind.
 *
 * The body of the request comes in pieces; the next one is asked for when the server has taken the
 * one before, so a slow server holds its client. The body of the answer has no queue: it is read
 * from the server's socket when libmicrohttpd asks for bytes, so a slow client holds the server.
 * Whoever leaves ends the other side at once: libmicrohttpd tells of the client by on_close, a cut
 * piece or `gone`, whichever belongs to the phase. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "http/proxy/exchange.h"

enum {
    READ_BYTES = 16 << 10, /* of a head at once */
    EARLY_MAX = 8,         /* answers of 1xx before the real one */
    PULLS_MAX = 8,         /* reads of framing alone before others have their turn */
    BAD_GATEWAY = 502,
};

/* ---- the end ---- */

void exchange_free(struct exchange *x)
{
    struct proxy *p = x->proxy;
    for (size_t i = 0; i < x->n_targets; i++) {
        freep(&x->hosts[i]);
        freep(&x->bases[i]);
    }
    pairs_release(&x->add);
    free(x->prefix);
    free(x->path);
    free(x->answer);
    buf_release(&x->out);
    buf_release(&x->in);
    buf_release(&x->up.unsent);
    buf_release(&x->down.unsent);
    free(x);
    p->n_closing--;
    proxy_free_if_closed(p);
}

void exchange_on_handle_closed(uv_handle_t *handle)
{
    struct exchange *x = handle->data;
    if (!--x->n_handles && x->is_ended)
        exchange_free(x);
}

void exchange_hang_up(struct exchange *x)
{
    if (x->fd < 0)
        return;
    uv_close((uv_handle_t *)&x->poll, exchange_on_handle_closed); /* the descriptor is free now */
    closep(&x->fd);
    x->events = 0;
}

void exchange_end(struct exchange *x)
{
    struct proxy *p = x->proxy;
    exchange_hang_up(x);
    x->req = NULL;
    x->is_ended = true;
    x->result.whole_usec = p->opt.mono() - x->began;
    x->result.first_usec = x->first ? x->first - x->began : 0;
    x->result.target = x->target;
    proxy_remove(p, x);
    p->n_closing++;
    if (x->done)
        x->done(&x->result, x->arg);
    if (!x->n_handles)
        exchange_free(x);
}

/* The client gets no (whole) answer. Before its head: a problem that says why; else a connection
 * that breaks. */
static void exchange_fail(struct exchange *x, enum proxy_end why, int status, const char *message)
{
    struct err err;
    x->result.end = why;
    if (x->phase == EXCHANGE_PASSING) {
        x->is_cut = true;
        exchange_hang_up(x);
        http_pull_wake(x->req);
        return;
    }
    struct http_req *req = x->req;
    int code = status == 504   ? ERR_TIMEOUT
               : status == 401 ? ERR_UNAUTHORISED
               : status == 413 ? ERR_TOO_LARGE
                               : ERR_UNREACHABLE;
    message_refuse(&err, code, message_code(message), MESSAGE_NO_ARGS);
    x->result.status = status;
    exchange_end(x);
    http_relay_problem(req, status, code, &err);
}

static void exchange_break(struct exchange *x, const char *why)
{
    log_debug("http", "id=%s to=%s:%u answer is not passed on: %s", x->id,
              x->targets[x->target].host, x->targets[x->target].port, why);
    exchange_fail(x, PROXY_BROKEN, BAD_GATEWAY, "behind_broken");
}

void exchange_give_up(struct exchange *x, enum proxy_end why)
{
    if (x->phase == EXCHANGE_TUNNEL) {
        x->result.end = why;
        tunnel_stop(x);
    } else if (why == PROXY_ENDED) {
        exchange_fail(x, why, 401, "token_may_no_more");
    } else {
        exchange_fail(x, why, 504, "behind_slow");
    }
}

/* What the callbacks do that say that the request is gone. */
static void exchange_left(struct exchange *x)
{
    if (x->is_over && !x->is_cut)
        x->result.end = PROXY_WHOLE;
    exchange_end(x);
}

static void exchange_on_close(struct http_req *req, void *arg)
{
    (void)req;
    exchange_left(arg);
}

static void exchange_on_gone(void *arg)
{
    exchange_left(arg);
}

/* By us, before anything was passed on. */
static void exchange_refuse(struct exchange *x, int code, const char *message)
{
    struct http_req *req = x->req;
    struct err err;
    message_refuse(&err, code, message_code(message), MESSAGE_NO_ARGS);
    x->result.end = PROXY_REFUSED;
    x->result.status = err_http_status(code);
    exchange_end(x);
    http_problem(req, code, &err, NULL, NULL, 0);
}

/* ---- the connection ---- */

static void exchange_on_poll(uv_poll_t *handle, int status, int events);

/* What the loop must look for in this phase. */
static void exchange_watch(struct exchange *x)
{
    bool unsent = x->out.len > x->out_sent;
    int wanted = 0;
    switch (x->phase) {
    case EXCHANGE_CONNECTING:
        wanted = UV_WRITABLE;
        break;
    case EXCHANGE_SENDING:
        wanted = (unsent ? UV_WRITABLE : 0) | (x->answer ? 0 : UV_READABLE);
        break;
    case EXCHANGE_WAITING:
        wanted = UV_READABLE;
        break;
    case EXCHANGE_PASSING:
        wanted = x->is_waited_for ? UV_READABLE : 0;
        break;
    case EXCHANGE_TUNNEL:
        return;
    }
    if (x->fd < 0 || wanted == x->events)
        return;
    x->events = wanted;
    if (wanted)
        (void)uv_poll_start(&x->poll, wanted, exchange_on_poll); /* fails only while closing */
    else
        uv_poll_stop(&x->poll);
}

static socklen_t exchange_address(const struct proxy_target *t, struct sockaddr_storage *ret)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)ret;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)ret;
    memset(ret, 0, sizeof(*ret));
    if (inet_pton(AF_INET, t->host, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons((uint16_t)t->port);
        return sizeof(*v4);
    }
    if (inet_pton(AF_INET6, t->host, &v6->sin6_addr) != 1)
        return 0;
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons((uint16_t)t->port);
    return sizeof(*v6);
}

/* The loop closes handles later, so each address has a handle of its own: 0, or -errno. */
static int exchange_connect(struct exchange *x)
{
    struct sockaddr_storage a;
    int on = 1;
    socklen_t n = exchange_address(&x->targets[x->target], &a);
    if (!n)
        return -EINVAL;
    int fd = socket(a.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* slower without, not wrong */
    (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
    int r = connect(fd, (struct sockaddr *)&a, n) < 0 && errno != EINPROGRESS ? -errno
            : uv_poll_init(x->proxy->opt.loop, &x->poll, fd) < 0              ? -EIO
                                                                              : 0;
    if (r < 0) {
        closep(&fd);
        return r;
    }
    x->poll.data = x;
    x->n_handles++;
    x->fd = fd;
    x->since = x->proxy->opt.mono();
    exchange_watch(x);
    return 0;
}

static void exchange_unreachable(struct exchange *x)
{
    exchange_fail(x, PROXY_UNREACHABLE, BAD_GATEWAY, "behind_unreachable");
}

/* The address whose turn it is, or the first after it that is not refused at once. */
static int exchange_begin(struct exchange *x)
{
    int r = -EINVAL;
    for (; x->target < x->n_targets; x->target++) {
        r = exchange_connect(x);
        if (r == 0)
            return 0;
        if (x->tried)
            x->tried(x->target, false, x->arg);
    }
    x->target = x->n_targets ? x->n_targets - 1 : 0;
    return r;
}

static void exchange_on_retry(uv_handle_t *handle)
{
    struct exchange *x = handle->data;
    bool is_ended = x->is_ended;
    exchange_on_handle_closed(handle);
    if (!is_ended && exchange_begin(x) < 0)
        exchange_unreachable(x);
}

/* The next address, once the loop has let go of the handle of this one. */
static void exchange_next_target(struct exchange *x)
{
    if (x->target + 1 >= x->n_targets) {
        exchange_unreachable(x);
        return;
    }
    x->target++;
    x->phase = EXCHANGE_CONNECTING;
    x->since = x->proxy->opt.mono();
    uv_close((uv_handle_t *)&x->poll, exchange_on_retry);
    closep(&x->fd);
    x->events = 0;
}

/* ---- the request ---- */

static void exchange_answer(struct exchange *x);

/* All of it is with the server: from now on it is its turn. */
static void exchange_sent(struct exchange *x)
{
    x->phase = EXCHANGE_WAITING;
    x->since = x->proxy->opt.mono();
    if (x->answer)
        exchange_answer(x);
    else
        exchange_watch(x);
}

/* The server takes no more: what it has answered before that may be there to be read. */
static void exchange_broken_up(struct exchange *x)
{
    x->is_up_broken = true;
    x->out_sent = x->out.len;
    exchange_sent(x);
}

static void exchange_flush(struct exchange *x)
{
    while (x->out.len > x->out_sent) {
        ssize_t n = send(x->fd, x->out.data + x->out_sent, x->out.len - x->out_sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0 && errno != EAGAIN) {
            exchange_broken_up(x);
            return;
        }
        if (n < 0) {
            exchange_watch(x);
            return;
        }
        x->out_sent += (size_t)n;
        x->since = x->proxy->opt.mono();
    }
    buf_release(&x->out);
    x->out.max = OUT_MAX;
    x->out_sent = 0;
    if (x->is_up_over) {
        exchange_sent(x);
        return;
    }
    exchange_watch(x);
    if (x->is_lent) {
        x->is_lent = false;
        http_body_next(x->req); /* may hand over the next piece, and end us */
    }
}

/* Where nothing waits to be sent, the piece's memory is taken and the piece is left empty; else its
 * bytes are copied behind what waits. */
static void exchange_add_piece(struct exchange *x, struct buf *piece)
{
    x->result.bytes_up += piece->len;
    if (x->sent && piece->len)
        x->sent(buf_str(piece), piece->len, x->arg);
    if (!x->is_chunked_up && !x->out.len) {
        buf_release(&x->out);
        x->out = *piece;
        x->out.max = OUT_MAX;
        *piece = BUF_INIT(0);
        return;
    }
    if (x->is_chunked_up && piece->len)
        buf_addf(&x->out, "%zx\r\n", piece->len);
    (void)buf_add(&x->out, buf_str(piece), piece->len); /* `failed` is looked at */
    if (x->is_chunked_up && piece->len)
        buf_adds(&x->out, "\r\n");
}

static bool exchange_is_too_large(const struct exchange *x, uint64_t bytes)
{
    return x->max_body && bytes > x->max_body;
}

static void exchange_on_piece(struct http_req *req,
                              struct buf *piece,
                              enum http_body_how how,
                              void *arg)
{
    struct exchange *x = arg;
    if (how == HTTP_BODY_CUT) {
        exchange_left(x);
        return;
    }
    exchange_add_piece(x, piece);
    if (exchange_is_too_large(x, x->result.bytes_up)) {
        exchange_fail(x, PROXY_REFUSED, 413, "call_body_large");
        return;
    }
    if (how == HTTP_BODY_WHOLE) {
        x->is_up_over = true;
        if (x->is_chunked_up)
            buf_adds(&x->out, "0\r\n\r\n");
        http_req_on_close(req, exchange_on_close, x);
    } else {
        x->is_lent = true;
    }
    if (x->out.failed) { /* the server hands over one piece at a time: this cannot be */
        exchange_break(x, "a piece is too large");
        return;
    }
    if (x->phase == EXCHANGE_SENDING)
        exchange_flush(x);
    else if (x->is_up_broken)
        x->out_sent = x->out.len;
}

/* ---- the answer ---- */

static bool exchange_tunnel_fits(const struct exchange *x)
{
    const char *upgrade = answer_find(x->answer, "Upgrade");
    const char *connection = answer_find(x->answer, "Connection");
    return x->is_upgrade && upgrade && !strcasecmp(upgrade, "websocket") && connection &&
           answer_list_has(connection, "upgrade") && answer_find(x->answer, "Sec-WebSocket-Accept");
}

static void exchange_on_opened(int fd, const char *data, size_t n, void *arg)
{
    tunnel_open(arg, fd, data, n);
}

static void exchange_on_end(void *arg)
{
    tunnel_stop(arg);
}

static void exchange_upgrade(struct exchange *x)
{
    static const char *const names[] = {"Sec-WebSocket-Accept", "Sec-WebSocket-Protocol",
                                        "Sec-WebSocket-Extensions"};
    struct head_list l = {0};
    if (!exchange_tunnel_fits(x)) {
        exchange_break(x, "it changes the protocol although nobody asked");
        return;
    }
    head_list_add(&l, "Upgrade", "websocket");
    for (size_t i = 0; i < array_len(names); i++) {
        const char *value = answer_find(x->answer, names[i]);
        if (value)
            head_list_add(&l, names[i], value);
    }
    head_list_add(&l, "X-Request-ID", x->id);
    x->phase = EXCHANGE_TUNNEL;
    x->since = x->proxy->opt.mono();
    x->result.status = 101;
    x->result.is_websocket = true;
    uv_poll_stop(&x->poll); /* until the client's side is ours */
    x->events = 0;
    http_reply_upgrade(x->req, &(struct http_upgrade){.fields = l.fields,
                                                      .n_fields = l.n,
                                                      .opened = exchange_on_opened,
                                                      .end = exchange_on_end,
                                                      .gone = exchange_on_gone,
                                                      .arg = x});
}

static void exchange_over(struct exchange *x)
{
    x->is_over = true;
    exchange_hang_up(x);
}

/* Bytes of the body that came with the head, then those of the socket: > 0, 0 at its end, -errno.
 */
static ssize_t exchange_read(struct exchange *x, char *to, size_t max)
{
    size_t kept = x->in.len - x->in_used;
    if (kept) {
        size_t n = kept < max ? kept : max;
        memcpy(to, x->in.data + x->in_used, n);
        x->in_used += n;
        if (n == kept)
            buf_release(&x->in);
        if (n == kept)
            x->in_used = 0;
        return (ssize_t)n;
    }
    ssize_t n = x->fd < 0 ? 0 : recv(x->fd, to, max, 0);
    return n < 0 ? -errno : n;
}

/* The content in the n bytes at p; sets is_over, or is_cut. */
static int64_t exchange_content(struct exchange *x, char *p, ssize_t n)
{
    int64_t content = n;
    if (n <= 0) {
        x->is_over = n == 0 && x->body == ANSWER_UNTIL_CLOSE;
        x->is_cut = !x->is_over;
        return 0;
    }
    if (x->body == ANSWER_CHUNKED) {
        content = dechunk_step(&x->chunks, p, (size_t)n);
        x->is_cut = content < 0;
        x->is_over = x->chunks.is_over;
        return content < 0 ? 0 : content;
    }
    if (x->body == ANSWER_LENGTH) {
        x->left -= (uint64_t)n;
        x->is_over = !x->left;
    }
    return content;
}

static int64_t exchange_wait(struct exchange *x)
{
    x->is_waited_for = true;
    x->since = x->proxy->opt.mono();
    exchange_watch(x);
    return HTTP_PULL_LATER;
}

static int64_t exchange_pull(char *to, size_t max, void *arg)
{
    struct exchange *x = arg;
    if (x->body == ANSWER_LENGTH && max > x->left)
        max = (size_t)x->left;
    for (int i = 0; !x->is_over && !x->is_cut; i++) {
        ssize_t n = i < PULLS_MAX ? exchange_read(x, to, max) : -EAGAIN;
        if (n == -EAGAIN || n == -EINTR)
            return exchange_wait(x);
        int64_t content = exchange_content(x, to, n);
        if (content <= 0)
            continue;
        x->result.bytes_down += (uint64_t)content;
        if (x->seen)
            x->seen(to, (size_t)content, x->arg);
        if (x->is_over || x->is_cut)
            exchange_hang_up(x);
        return content;
    }
    exchange_hang_up(x);
    if (x->is_cut && x->result.end == PROXY_LEFT)
        x->result.end = PROXY_BROKEN;
    return x->is_cut ? HTTP_PULL_CUT : HTTP_PULL_END;
}

static void exchange_answer(struct exchange *x)
{
    struct head_list l;
    const struct answer *a = x->answer;
    int64_t length = a->body == ANSWER_LENGTH || (a->body == ANSWER_NONE && x->is_head) ? a->length
                     : a->body == ANSWER_NONE                                           ? 0
                                                                                        : -1;
    head_list_init(&l, x);
    x->phase = EXCHANGE_PASSING;
    x->body = a->body;
    x->left = a->length > 0 ? (uint64_t)a->length : 0;
    x->result.status = a->status;
    if (a->body == ANSWER_NONE || (a->body == ANSWER_LENGTH && !a->length))
        exchange_over(x);
    exchange_watch(x);
    http_reply_pull(x->req, &(struct http_pull){.status = a->status,
                                                .length = length,
                                                .fields = l.fields,
                                                .n_fields = l.n,
                                                .pull = exchange_pull,
                                                .gone = exchange_on_gone,
                                                .arg = x});
    head_list_release(&l);
    free(x->answer);
    x->answer = NULL;
}

/* True: a whole head was taken from x->in, and it is no 1xx that is only skipped. */
static bool exchange_take_head(struct exchange *x, size_t n)
{
    struct err err;
    if (!x->answer)
        x->answer = xmalloc(sizeof(*x->answer));
    if (answer_parse(x->in.data + x->in_used, n, x->is_head, x->answer, &err) < 0) {
        exchange_break(x, err.text);
        return false;
    }
    x->in_used += n;
    if (x->answer->status == 101) {
        x->first = x->proxy->opt.mono();
        exchange_upgrade(x);
        return false;
    }
    if (x->answer->status >= 200)
        return true;
    free(x->answer);
    x->answer = NULL;
    if (++x->n_early > EARLY_MAX)
        exchange_break(x, "it has too many heads of 1xx");
    return false;
}

/* Heads of x->in, as far as they are whole. */
static void exchange_parse(struct exchange *x)
{
    size_t before;
    do {
        before = x->in_used;
        size_t n = answer_head_length(x->in.data + before, x->in.len - before, 0);
        if (!n && x->in.len - before >= ANSWER_HEAD_MAX) {
            exchange_break(x, "its head is too long");
            return;
        }
        if (!n)
            return;
        if (exchange_take_head(x, n)) {
            x->first = x->proxy->opt.mono();
            /* One that begins before the request is over waits, unless it refuses the rest. */
            if (x->is_up_over || x->is_up_broken || x->answer->status >= 400)
                exchange_answer(x);
            else
                exchange_watch(x);
            return;
        }
    } while (!x->is_ended && x->phase < EXCHANGE_PASSING && x->in_used > before);
}

/* Nothing came back of a request that changes nothing and has no body: it may be sent again. */
static bool exchange_may_repeat(const struct exchange *x)
{
    const char *method = http_req_method(x->req);
    return !x->in.len && !x->n_early && x->is_up_over && !x->result.bytes_up &&
           x->target + 1 < x->n_targets && (str_eq(method, "GET") || x->is_head);
}

static void exchange_read_head(struct exchange *x)
{
    if (!x->in.max)
        buf_init(&x->in, ANSWER_HEAD_MAX + READ_BYTES);
    char *to = buf_room(&x->in, READ_BYTES);
    if (!to) {
        exchange_break(x, "its head is too long");
        return;
    }
    ssize_t n = recv(x->fd, to, READ_BYTES, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0 && exchange_may_repeat(x)) {
        buf_release(&x->out); /* the head to this one; there is no body */
        x->out_sent = 0;
        x->is_up_broken = false;
        exchange_next_target(x);
        return;
    }
    if (n <= 0) {
        exchange_break(x, n ? strerror(errno) : "it ended before its head");
        return;
    }
    buf_wrote(&x->in, (size_t)n);
    exchange_parse(x);
}

/* ---- turns ---- */

static void exchange_connected(struct exchange *x)
{
    int why = 0;
    socklen_t n = sizeof(why);
    bool accepted = getsockopt(x->fd, SOL_SOCKET, SO_ERROR, &why, &n) == 0 && !why;
    if (x->tried)
        x->tried(x->target, accepted, x->arg);
    if (!accepted) {
        exchange_next_target(x);
        return;
    }
    if (head_write(x) < 0) {
        exchange_refuse(x, ERR_HEADERS, "head_too_long");
        return;
    }
    x->phase = EXCHANGE_SENDING;
    exchange_flush(x);
}

static void exchange_on_poll(uv_poll_t *handle, int status, int events)
{
    struct exchange *x = handle->data;
    if (status < 0) /* the calls below say what it is */
        events = UV_READABLE | UV_WRITABLE;
    switch (x->phase) {
    case EXCHANGE_CONNECTING:
        exchange_connected(x);
        return;
    case EXCHANGE_SENDING:
        /* What it says comes first: it may refuse what we are about to send. */
        if (events & UV_READABLE && !x->answer)
            exchange_read_head(x);
        else if (events & UV_WRITABLE)
            exchange_flush(x);
        return;
    case EXCHANGE_WAITING:
        exchange_read_head(x);
        return;
    case EXCHANGE_PASSING:
        x->is_waited_for = false;
        exchange_watch(x);
        http_pull_wake(x->req);
        return;
    case EXCHANGE_TUNNEL:
        tunnel_on_server(handle, status, events);
        return;
    }
}

static bool exchange_is_late(const struct exchange *x, usec_t now)
{
    const struct proxy_limits *l = &x->proxy->limits;
    usec_t span = now - x->since;
    switch (x->phase) {
    case EXCHANGE_CONNECTING:
        return span > l->connect_usec;
    case EXCHANGE_SENDING:
        return x->out.len > x->out_sent && span > l->stall_usec;
    case EXCHANGE_WAITING:
        return span > (x->patience ? x->patience : l->answer_usec);
    case EXCHANGE_PASSING:
        return x->is_waited_for && span > (x->patience ? x->patience : l->quiet_usec);
    case EXCHANGE_TUNNEL:
        return span > (tunnel_is_stuck(x) ? l->stall_usec : l->idle_usec);
    }
    return false;
}

void exchange_check(struct exchange *x, usec_t now)
{
    if (exchange_is_late(x, now)) {
        if (x->phase == EXCHANGE_CONNECTING && x->fd >= 0 && x->target + 1 < x->n_targets)
            exchange_next_target(x);
        else
            exchange_give_up(x, PROXY_SLOW);
        return;
    }
    if (now - x->checked < x->proxy->limits.check_usec)
        return;
    x->checked = now;
    if (!http_relay_may_go_on(x->req))
        exchange_give_up(x, PROXY_ENDED);
}

/* ---- the beginning ---- */

static bool exchange_wants_websocket(const struct http_req *req)
{
    const char *upgrade = http_req_header(req, "Upgrade");
    const char *connection = http_req_header(req, "Connection");
    return upgrade && connection && answer_list_has(upgrade, "websocket") &&
           answer_list_has(connection, "upgrade");
}

static bool exchange_is_websocket(const struct http_req *req)
{
    enum { KEY_LENGTH = 24 }; /* 16 bytes in base64 */
    const char *key = http_req_header(req, "Sec-WebSocket-Key");
    return str_eq(http_req_method(req), "GET") && !http_req_body_length(req) && key &&
           strlen(key) == KEY_LENGTH && str_eq(http_req_header(req, "Sec-WebSocket-Version"), "13");
}

/* A browser sends its cookie along with a WebSocket that any page opens: the page must be ours. */
static bool exchange_is_foreign(const struct http_req *req)
{
    const char *origin = http_req_header(req, "Origin"), *host = http_req_header(req, "Host");
    const char *at = origin ? strstr(origin, "://") : NULL;
    return http_req_is_by_cookie(req) && (!at || !host || strcasecmp(at + 3, host) != 0);
}

/* A code of the catalogue, or NULL. */
static const char *exchange_refusal(const struct http_req *req, const struct proxy_pass *how)
{
    if (!header_is_below(how->path))
        return "address_dots";
    if (!(how->flags & PROXY_WEBSOCKET) || !exchange_wants_websocket(req))
        return NULL;
    return !exchange_is_websocket(req) ? "bad_websocket"
           : exchange_is_foreign(req)  ? "websocket_foreign"
                                       : NULL;
}

static struct exchange *exchange_new(struct proxy *p,
                                     struct http_req *req,
                                     const struct proxy_pass *how)
{
    struct exchange *x = xcalloc(1, sizeof(*x));
    *x = (struct exchange){.proxy = p,
                           .req = req,
                           .fd = -1,
                           .flags = how->flags,
                           .prefix = xstrdup(how->prefix),
                           .path = xstrdup(how->path),
                           .patience = how->patience,
                           .max_body = how->max_body,
                           .tried = how->tried,
                           .sent = how->sent,
                           .seen = how->seen,
                           .done = how->done,
                           .arg = how->arg,
                           .result = {.end = PROXY_LEFT}};
    x->n_targets = how->n_targets < PROXY_TARGETS_MAX ? how->n_targets : PROXY_TARGETS_MAX;
    for (size_t i = 0; i < x->n_targets; i++) {
        x->hosts[i] = xstrdup(how->targets[i].host);
        x->bases[i] = xstrdup(how->targets[i].base);
        x->targets[i] = (struct proxy_target){x->hosts[i], how->targets[i].port, x->bases[i]};
    }
    for (size_t i = 0; i < how->n_add; i++)
        pairs_set(&x->add, how->add[i].name, how->add[i].value);
    buf_init(&x->out, OUT_MAX);
    x->is_head = str_eq(http_req_method(req), "HEAD");
    x->is_upgrade = how->flags & PROXY_WEBSOCKET && exchange_wants_websocket(req);
    x->is_chunked_up = http_req_body_length(req) < 0; /* pieces come before the head is written */
    head_choose_id(x);
    x->began = x->checked = p->opt.mono();
    proxy_add(p, x);
    return x;
}

void proxy_pass(struct proxy *p, struct http_req *req, const struct proxy_pass *how)
{
    struct exchange *x = exchange_new(p, req, how);
    if (!http_relay_begin(req)) {
        x->result.end = PROXY_REFUSED;
        exchange_end(x);
        return;
    }
    const char *refusal = exchange_refusal(req, how);
    if (refusal) {
        exchange_refuse(x, str_eq(refusal, "websocket_foreign") ? ERR_FORBIDDEN : ERR_BAD_REQUEST,
                        refusal);
        return;
    }
    int64_t length = http_req_body_length(req);
    if (length > 0 && exchange_is_too_large(x, (uint64_t)length)) {
        exchange_refuse(x, ERR_TOO_LARGE, "call_body_large");
        return;
    }
    if (exchange_begin(x) < 0) {
        exchange_unreachable(x);
        return;
    }
    if (!length) {
        x->is_up_over = true;
        http_req_on_close(req, exchange_on_close, x);
    } else if (!http_body_read(req, exchange_on_piece, x)) {
        x->result.end = PROXY_REFUSED;
        exchange_end(x);
    }
}
