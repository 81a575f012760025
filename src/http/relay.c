/* SPDX-License-Identifier: Apache-2.0 */
/* relay.c - requests that are passed on; see relay.h.
 *
 * A pulled body has no queue of its own: libmicrohttpd asks for bytes when its client takes some,
 * and the owner reads them straight into libmicrohttpd's block. So a slow client holds back
 * whoever writes to the owner, and a relayed reply costs one block. An upgraded connection is
 * none of libmicrohttpd's sockets until it is closed; its request lives as long. */
#include "http/relay.h"

#include <assert.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>

#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "http/state.h"

enum { SIZED_PULL_BYTES = HTTP_PIECE_BYTES, OPEN_PULL_BYTES = 16 << 10 };

/* ---- the request ---- */

const char *http_req_raw_query(const struct http_req *req)
{
    return str_or(req->query, "");
}

const char *http_req_tail(const struct http_req *req)
{
    return req->tail;
}

void http_req_peer(const struct http_req *req, char ret[static LISTEN_ADDRESS_MAX])
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(req->conn->mhd, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    listen_address(info ? info->client_addr : NULL, ret);
}

bool http_req_is_tls(const struct http_req *req)
{
    return req->conn->server->opt.tls_cert != NULL;
}

bool http_req_is_by_cookie(const struct http_req *req)
{
    return !req->head.authorization && req->head.cookie;
}

struct header_walk {
    http_header_f cb;
    void *arg;
};

static enum MHD_Result relay_on_header(void *cls,
                                       enum MHD_ValueKind kind,
                                       const char *name,
                                       const char *value)
{
    const struct header_walk *w = cls;
    (void)kind;
    w->cb(name, str_or(value, ""), w->arg);
    return MHD_YES;
}

void http_req_each_header(const struct http_req *req, http_header_f cb, void *arg)
{
    struct header_walk w = {cb, arg};
    (void)MHD_get_connection_values(req->conn->mhd, MHD_HEADER_KIND, relay_on_header,
                                    &w); /* a count */
}

bool http_relay_begin(struct http_req *req)
{
    struct http_server *s = req->conn->server;
    assert(!req->is_relay);
    if (s->n_relays >= s->limits.relays || s->closing) {
        struct err err;
        message_refuse(&err, ERR_UNAVAILABLE, s->closing ? "server_closing" : "relays_full",
                       MESSAGE_NO_ARGS);
        http_problem(req, ERR_UNAVAILABLE, &err, NULL, NULL, 0);
        return false;
    }
    if (!shares_take(s->shares, SHARE_RELAYS, req->principal.user, s->limits.user_relays)) {
        req_busy(req, s->limits.user_relays, "too_many_relays");
        return false;
    }
    req->is_relay = true;
    s->n_relays++;
    return true;
}

bool http_relay_may_go_on(struct http_req *req)
{
    struct http_principal before = req->principal;
    int r = req->route->least == HTTP_ROLE_NONE ? 0 : intake_authenticate(req);
    bool may = r == 0 && intake_may(req) && !strcmp(req->principal.user, before.user) &&
               !strcmp(req->principal.only, before.only);
    req->principal = before; /* its shares are counted by that name */
    return may;
}

void http_relay_problem(struct http_req *req, int status, int code, const struct err *err)
{
    const struct problem_reply p = {.status = (unsigned)status, .code = code, .err = err};
    req_problem(req, &p);
}

/* ---- a body that is pulled ---- */

static void relay_add_fields(struct MHD_Response *response, const struct http_field *f, size_t n)
{
    for (size_t i = 0; i < n; i++)
        /* Refused only for a value that is not one header: then there is none. */
        (void)MHD_add_response_header(response, f[i].name, f[i].value);
}

static ssize_t relay_on_read(void *cls, uint64_t pos, char *to, size_t max)
{
    struct http_req *req = cls;
    (void)pos;
    if (req->aborted)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    int64_t n = req->pull.pull(to, max, req->pull.arg);
    if (n > 0)
        return (ssize_t)n;
    if (n == HTTP_PULL_END)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (n == HTTP_PULL_CUT)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    req->suspended = true;
    MHD_suspend_connection(req->conn->mhd);
    return 0;
}

/* The block of one reply: libmicrohttpd clears it, fills it anew each turn and keeps it until the
 * reply is over. Each turn costs the same whatever its bytes, so a long body has a large one; a
 * body without a length gets no more at a time than a connection's pool holds. */
static size_t relay_block(int64_t length)
{
    if (length < 0)
        return OPEN_PULL_BYTES;
    return length < SIZED_PULL_BYTES ? (size_t)length : (size_t)SIZED_PULL_BYTES;
}

void http_reply_pull(struct http_req *req, const struct http_pull *p)
{
    struct MHD_Response *response;
    req->pull = *p;
    if (p->length == 0)
        response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
    else
        response = MHD_create_response_from_callback(
            p->length < 0 ? MHD_SIZE_UNKNOWN : (uint64_t)p->length, relay_block(p->length),
            relay_on_read, req, NULL);
    relay_add_fields(response, p->fields, p->n_fields);
    if (req->conn->server->closing || req->early)
        (void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close"); /* valid */
    req_leave(req, response, (unsigned)p->status, 0);
}

void http_pull_wake(struct http_req *req)
{
    if (req->state == REQ_SENT)
        req_wake(req);
}

/* ---- a connection that stops to speak HTTP ---- */

static void relay_on_upgraded(void *cls,
                              struct MHD_Connection *mhd,
                              void *con_cls,
                              const char *extra,
                              size_t n,
                              MHD_socket fd,
                              struct MHD_UpgradeResponseHandle *handle)
{
    struct http_req *req = cls;
    int on = 1;
    (void)mhd, (void)con_cls;
    /* A small frame would wait for the acknowledgement of the one before it. */
    (void)setsockopt(req->conn->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    (void)setsockopt(req->conn->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on)); /* a help only */
    req->socket = handle;
    if (req->aborted || req->conn->server->closing)
        req->upgrade.end(req->upgrade.arg);
    else
        req->upgrade.opened(fd, extra, n, req->upgrade.arg);
}

void http_reply_upgrade(struct http_req *req, const struct http_upgrade *u)
{
    req->upgrade = *u;
    struct MHD_Response *response = MHD_create_response_for_upgrade(relay_on_upgraded, req);
    relay_add_fields(response, u->fields, u->n_fields);
    req_leave(req, response, MHD_HTTP_SWITCHING_PROTOCOLS, 0);
}

void http_upgrade_close(struct http_req *req)
{
    struct MHD_UpgradeResponseHandle *handle = req->socket;
    req->socket = NULL;
    req->aborted = true;
    if (!handle) {                                /* its 101 is still on its way */
        (void)shutdown(req->conn->fd, SHUT_RDWR); /* it may be gone already */
        req_wake(req);
        return;
    }
    (void)MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE); /* it has no other answer */
    server_turn_soon(req->conn->server); /* it closes the descriptor when it turns */
}

bool relay_is_open(const struct http_req *req)
{
    return req->upgrade.opened && req->state == REQ_SENT;
}

void relay_gone(struct http_req *req)
{
    if (req->socket)
        req->upgrade.end(req->upgrade.arg);
}

void relay_end(struct http_req *req)
{
    if (req->is_relay) {
        shares_give(req->conn->server->shares, SHARE_RELAYS, req->principal.user);
        req->conn->server->n_relays--;
    }
    if (req->pull.gone)
        req->pull.gone(req->pull.arg);
    if (req->upgrade.gone)
        req->upgrade.gone(req->upgrade.arg);
}
