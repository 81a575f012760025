/* SPDX-License-Identifier: Apache-2.0 */
/* heads.c - writes the head of the request to the server behind, and picks the lines of its answer
 * that the client gets; the rules are those of headers.h. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/digest/hash.h"
#include "base/str.h"
#include "base/text.h"
#include "http/proxy/exchange.h"

enum { HEAD_MAX = 64 << 10, HOST_MAX = 128, CONNECTION_MAX = 1024 };

struct head_walk {
    struct buf *out;
    bool is_plain; /* what was said of compression is left out */
    char connection[CONNECTION_MAX];
    bool is_long; /* of Connection: too long to be understood */
};

static void head_on_connection(const char *name, const char *value, void *arg)
{
    struct head_walk *w = arg;
    size_t n = strlen(w->connection);
    if (strcasecmp(name, "Connection") != 0)
        return;
    if (n + strlen(value) + 2 > sizeof(w->connection)) {
        w->is_long = true;
        return;
    }
    text_printf_to(w->connection + n, sizeof(w->connection) - n, ",%s", value);
}

static void head_on_line(const char *name, const char *value, void *arg)
{
    struct head_walk *w = arg;
    if (w->is_plain && !strcasecmp(name, "Accept-Encoding"))
        return;
    if (header_goes_up(name, w->connection))
        buf_addf(w->out, "%s: %s\r\n", name, value);
}

static bool head_is_id(const char *id)
{
    size_t n = id ? strlen(id) : 0;
    return n && n < 64 &&
           strspn(id, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == n;
}

/* The client's own, so that it finds its request again, or one that is new. */
void head_choose_id(struct exchange *x)
{
    const char *id = http_req_header(x->req, "X-Request-ID");
    if (head_is_id(id)) {
        text_copy(x->id, id);
        return;
    }
    (void)random_hex_to(x->id, 16); /* returns x->id */
}

static void head_add_websocket(const struct exchange *x, struct buf *out)
{
    static const char *const lines[] = {"Sec-WebSocket-Key", "Sec-WebSocket-Version",
                                        "Sec-WebSocket-Protocol", "Sec-WebSocket-Extensions"};
    buf_adds(out, "Connection: Upgrade\r\nUpgrade: websocket\r\n");
    for (size_t i = 0; i < array_len(lines); i++) {
        const char *value = http_req_header(x->req, lines[i]);
        if (value)
            buf_addf(out, "%s: %s\r\n", lines[i], value);
    }
}

static void head_add_framing(const struct exchange *x, struct buf *out)
{
    int64_t length = http_req_body_length(x->req);
    if (x->is_upgrade) {
        head_add_websocket(x, out);
        return;
    }
    buf_adds(out, "Connection: close\r\n");
    if (length < 0)
        buf_adds(out, "Transfer-Encoding: chunked\r\n");
    else if (length > 0 || strcmp(http_req_method(x->req), "GET") != 0)
        buf_addf(out, "Content-Length: %lld\r\n", (long long)length);
}

void head_host(const struct exchange *x, char *ret, size_t size)
{
    const struct proxy_target *t = &x->targets[x->target];
    text_printf_to(ret, size, strchr(t->host, ':') ? "[%s]:%u" : "%s:%u", t->host, t->port);
}

static void head_add_lines(const struct exchange *x, struct buf *out)
{
    char peer[LISTEN_ADDRESS_MAX];
    const char *outside = http_req_header(x->req, "Host");
    http_req_peer(x->req, peer);
    buf_addf(out, "X-Request-ID: %s\r\nX-Forwarded-Proto: %s\r\nX-Forwarded-Prefix: %s\r\n", x->id,
             http_req_is_tls(x->req) ? "https" : "http", x->prefix);
    if (*peer)
        buf_addf(out, "X-Forwarded-For: %s\r\n", peer);
    if (outside)
        buf_addf(out, "X-Forwarded-Host: %s\r\n", outside);
    for (size_t i = 0; i < x->add.n; i++)
        buf_addf(out, "%s: %s\r\n", x->add.v[i].key, x->add.v[i].value);
    head_add_framing(x, out);
    buf_adds(out, "\r\n");
}

int head_write(struct exchange *x)
{
    _cleanup_(buf_release) struct buf head = BUF_INIT(HEAD_MAX);
    struct head_walk w = {.out = &head, .is_plain = x->flags & PROXY_PLAIN};
    char host[HOST_MAX];
    const char *query = http_req_raw_query(x->req), *base = x->targets[x->target].base;
    head_host(x, host, sizeof(host));
    http_req_each_header(x->req, head_on_connection, &w);
    buf_addf(&head, "%s %s%s%s%s%s HTTP/1.1\r\nHost: %s\r\n", http_req_method(x->req), base,
             x->path, *base || *x->path ? "" : "/", *query ? "?" : "", query, host);
    http_req_each_header(x->req, head_on_line, &w);
    head_add_lines(x, &head);
    if (head.failed || w.is_long)
        return -EMSGSIZE;
    struct buf whole = BUF_INIT(OUT_MAX);
    int r = buf_add(&whole, buf_str(&head), head.len);
    if (r == 0 && x->out.len)
        r = buf_add(&whole, buf_str(&x->out), x->out.len);
    buf_release(&x->out);
    x->out = whole;
    return r;
}

/* ---- the answer ---- */

void head_list_add(struct head_list *l, const char *name, const char *value)
{
    if (l->n < array_len(l->fields))
        l->fields[l->n++] = (struct http_field){name, value};
}

static void head_add_locations(const struct exchange *x, struct head_list *l)
{
    static const char *const names[] = {"Location", "Content-Location"};
    char host[HOST_MAX];
    head_host(x, host, sizeof(host));
    const struct header_place at = {
        .host = host, .base = x->targets[x->target].base, .prefix = x->prefix};
    for (size_t i = 0; i < array_len(names); i++) {
        const char *value = answer_find(x->answer, names[i]);
        buf_init(&l->locations[i], HEAD_MAX);
        if (value && header_location(&at, value, &l->locations[i]))
            head_list_add(l, names[i], buf_str(&l->locations[i]));
    }
}

void head_list_init(struct head_list *l, const struct exchange *x)
{
    const struct answer *a = x->answer;
    const char *connection = str_or(answer_find(a, "Connection"), "");
    const char *type = str_or(answer_find(a, "Content-Type"), "");
    l->n = 0;
    for (size_t i = 0; i < a->n; i++)
        if (header_goes_down(a->fields[i].name, connection))
            head_list_add(l, a->fields[i].name, a->fields[i].value);
    head_add_locations(x, l);
    head_list_add(l, "X-Request-ID", x->id);
    if (!answer_find(a, "Cache-Control"))
        head_list_add(l, "Cache-Control", "no-store");
    if (!answer_find(a, "X-Content-Type-Options"))
        head_list_add(l, "X-Content-Type-Options", "nosniff");
    if (x->flags & PROXY_SANDBOX)
        head_list_add(l, "Content-Security-Policy", "sandbox; frame-ancestors 'none'");
    if (!strncasecmp(type, "text/event-stream", 17))
        head_list_add(l, "X-Accel-Buffering", "no");
}

void head_list_release(struct head_list *l)
{
    for (size_t i = 0; i < array_len(l->locations); i++)
        buf_release(&l->locations[i]);
}
