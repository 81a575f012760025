/* SPDX-License-Identifier: Apache-2.0 */
/* intake.c - from the first line of a request to its handler.
 *
 * libmicrohttpd calls us with the raw target, then once after the head, then with the body
 * piece by piece, then with no piece when it is whole, and again after each resume. A reply
 * made after the head closes the connection, so only what must close it (smuggling, bodies
 * too large to throw away) is refused there; other refusals wait until a small body has
 * been read, so that the connection stays in step and the client sees the answer.
 * A route that takes its body in pieces has its handler called after the head; see pieces.c. */
#include <string.h>
#include <strings.h>

#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "http/state.h"

enum {
    DROP_MAX = 1 << 20,    /* of a refused body; a client that sends more is cut off */
    LARGE_BODY = 64 << 10, /* from here on a body counts for its user */
};

/* ---- the head ---- */

static bool is_token(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        bool is_alpha = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!is_alpha && (!c || !strchr("!#$%&'*+-.^_`|~", c)))
            return false;
    }
    return n > 0;
}

static bool is_field_text(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        unsigned char c = (unsigned char)s[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

static bool intake_is_name(const char *key, size_t n, const char *name)
{
    return !strncasecmp(key, name, n) && !name[n];
}

static enum MHD_Result intake_on_header(void *cls,
                                        enum MHD_ValueKind kind,
                                        const char *key,
                                        size_t n,
                                        const char *value,
                                        size_t value_n)
{
    struct head *h = cls;
    (void)kind;
    h->bytes += n + value_n + 4;
    if (!is_token(key, n) || (value && !is_field_text(value, value_n)))
        h->is_bad = true;
    if (!value)
        return MHD_YES;
    switch (n) {
    case 4:
        h->n_host += intake_is_name(key, n, "host");
        break;
    case 6:
        if (intake_is_name(key, n, "expect")) {
            h->expect = value;
        } else if (intake_is_name(key, n, "cookie")) {
            h->cookie = value;
            h->n_cookie++;
        }
        break;
    case 12:
        if (intake_is_name(key, n, "content-type"))
            h->content_type = value;
        break;
    case 13:
        if (intake_is_name(key, n, "authorization")) {
            h->authorization = value;
            h->n_authorization++;
        } else if (intake_is_name(key, n, "if-none-match")) {
            h->none_match = value;
        }
        break;
    case 14:
        if (intake_is_name(key, n, "content-length")) {
            h->length = value;
            h->n_length++;
        }
        break;
    case 15:
        if (intake_is_name(key, n, "accept-language"))
            h->language = value;
        break;
    case 17:
        if (intake_is_name(key, n, "transfer-encoding")) {
            h->encoding = value;
            h->n_encoding++;
        }
        break;
    }
    return MHD_YES;
}

/* What another reader of the same bytes could understand otherwise. */
static bool is_ambiguous(const struct head *h)
{
    return h->is_bad || h->n_length > 1 || h->n_encoding > 1 || h->n_host > 1 ||
           h->n_authorization > 1 || h->n_cookie > 1 || (h->n_length && h->n_encoding) ||
           (h->n_encoding && strcasecmp(h->encoding, "chunked") != 0);
}

static bool has_body(const struct head *h)
{
    return h->n_encoding || (h->length && strcmp(h->length, "0") != 0);
}

/* The digits were checked by libmicrohttpd; false when they do not fit. */
static bool length_fits(const struct head *h, size_t max)
{
    int64_t n = 0;
    return !h->length || (str_to_int(h->length, 0, INT64_MAX, &n, NULL) == 0 && (size_t)n <= max);
}

static void copy_content_type(struct http_req *req)
{
    const char *s = str_or(req->head.content_type, "");
    size_t n = strcspn(s, "; \t");
    if (n >= TYPE_MAX)
        n = TYPE_MAX - 1;
    for (size_t i = 0; i < n; i++)
        req->content_type[i] = (char)(s[i] >= 'A' && s[i] <= 'Z' ? s[i] + 32 : s[i]);
    req->content_type[n] = 0;
}

/* What stands beside a cookie; most requests have none. */
static void read_cookie(const struct http_req *req, struct http_credentials *c)
{
    const char *site = http_req_header(req, "Sec-Fetch-Site");
    c->cookie = req->head.cookie;
    c->csrf = str_or(http_req_header(req, "Argus-CSRF"), "");
    c->changes = strcmp(req->method, "GET") != 0 && strcmp(req->method, "HEAD") != 0;
    c->is_foreign = site && strcmp(site, "same-origin") != 0 && strcmp(site, "none") != 0;
}

int intake_authenticate(struct http_req *req)
{
    const struct http_options *opt = &req->conn->server->opt;
    const struct head *h = &req->head;
    struct http_credentials c = {.bearer = "", .cookie = "", .csrf = ""};
    if (h->authorization && !strncasecmp(h->authorization, "bearer ", 7))
        c.bearer = h->authorization + 7 + strspn(h->authorization + 7, " ");
    if (!h->authorization && h->cookie)
        read_cookie(req, &c);
    memset(&req->principal, 0, sizeof(req->principal));
    int r = opt->authenticate(&c, &req->principal, opt->app);
    req->principal.language = message_language(req->head.language);
    return r < 0 ? ERR_UNAUTHORISED : 0;
}

bool intake_may(const struct http_req *req)
{
    const struct http_principal *p = &req->principal;
    return *p->only ? (req->route->flags & HTTP_ROUTE_KEYS) != 0 : p->role >= req->route->least;
}

static int authenticate(struct http_req *req)
{
    if (req->route->least == HTTP_ROLE_NONE) {
        /* Who sends a token may be told more; one that is not known is none, and so is a key. */
        bool says = req->head.authorization || req->head.cookie;
        if (!says || intake_authenticate(req) < 0 || *req->principal.only)
            req->principal =
                (struct http_principal){.language = message_language(req->head.language)};
        return 0;
    }
    if (intake_authenticate(req) < 0)
        return ERR_UNAUTHORISED;
    return intake_may(req) ? 0 : ERR_FORBIDDEN;
}

/* Decoded copies of the pattern's names; "." and ".." are never a thing's name. */
static int take_params(struct http_req *req, const struct router_match *m)
{
    char *to = req->params_text;
    for (size_t i = 0; i < m->n_params; i++) {
        const struct router_param *p = &m->params[i];
        char *name = to, *value = to + p->name_len + 1;
        memcpy(name, p->name, p->name_len);
        name[p->name_len] = 0;
        memcpy(value, p->start, p->len);
        value[p->len] = 0;
        to = value + p->len + 1;
        if (uri_decode(value, false, NULL) < 0)
            return ERR_BAD_REQUEST;
        if (!strcmp(value, ".") || !strcmp(value, ".."))
            return ERR_NOT_FOUND;
        req->params[req->n_params++] = (struct uri_pair){name, value};
    }
    return 0;
}

/* A path of the pages, which know their own addresses: a page's address is no row. */
static bool is_page(const struct http_req *req)
{
    bool is_read = !strcmp(req->method, "GET") || !strcmp(req->method, "HEAD");
    return req->conn->server->opt.pages && is_read && strncmp(req->path, "/v1/", 4) != 0 &&
           strcmp(req->path, "/v1") != 0;
}

int intake_find_route(struct http_req *req)
{
    struct router_match m;
    int r = router_find(req->conn->server->router, req->method, req->path, &m);
    if (r == ERR_NOT_FOUND && is_page(req)) {
        req->route = req->conn->server->opt.pages;
        return 0;
    }
    if (r < 0)
        return r;
    req->route = m.route;
    req->tail = m.tail;
    return take_params(req, &m);
}

static bool is_pieces_type(const struct http_req *req)
{
    const char *type = req->route->pieces_type;
    return type && !strcmp(req->content_type, type);
}

size_t intake_max_body(const struct http_req *req)
{
    return is_pieces_type(req) ? req->route->pieces_max : req->route->max_body;
}

/* 0, or the code of what is wrong with the head. */
static int judge_head(struct http_req *req)
{
    const struct http_limits *limits = &req->conn->server->limits;
    if (is_ambiguous(&req->head) || !uri_is_clean(req->path) ||
        (req->query && !uri_is_clean(req->query)))
        return ERR_BAD_REQUEST;
    if (req->head.bytes > limits->head_bytes)
        return ERR_HEADERS;
    if (!strcmp(req->method, "OPTIONS"))
        return ERR_METHOD;
    int r = intake_find_route(req);
    if (r == 0)
        r = authenticate(req);
    if (r == 0 && has_body(&req->head) && !length_fits(&req->head, intake_max_body(req)))
        r = ERR_TOO_LARGE;
    return r;
}

static void reply_options(struct http_req *req)
{
    char allow[ROUTER_ALLOW_MAX];
    bool is_all = !strcmp(req->path, "*");
    router_allow(req->conn->server->router, req->path, allow);
    if (!is_all && !*allow) {
        http_problem(req, ERR_NOT_FOUND, NULL, NULL, NULL, 0);
        return;
    }
    http_reply_header(req, "Allow",
                      is_all ? "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS" : allow);
    http_reply(req, MHD_HTTP_NO_CONTENT, NULL, NULL, 0);
}

static void refuse_method(struct http_req *req)
{
    if (!strcmp(req->method, "OPTIONS")) {
        reply_options(req);
        return;
    }
    char allow[ROUTER_ALLOW_MAX];
    struct err err;
    http_reply_header(req, "Allow", router_allow(req->conn->server->router, req->path, allow));
    message_refuse(&err, ERR_METHOD, "method_not_here",
                   MESSAGE_ARGS(MESSAGE_STR("method", req->method), MESSAGE_STR("allow", allow)));
    http_problem(req, ERR_METHOD, &err, NULL, NULL, 0);
}

static void refuse_uri(struct http_req *req)
{
    struct err err;
    message_refuse(&err, ERR_TOO_LARGE, "address_long",
                   MESSAGE_ARGS(MESSAGE_NUM("most", req->conn->server->limits.uri_bytes)));
    const struct problem_reply p = {
        .status = MHD_HTTP_URI_TOO_LONG, .code = ERR_TOO_LARGE, .err = &err};
    req_problem(req, &p);
}

static void refuse_role(const struct http_req *req, struct err *err)
{
    const struct http_principal *p = &req->principal;
    if (*p->only)
        message_refuse(err, ERR_FORBIDDEN, "key_opens_one",
                       MESSAGE_ARGS(MESSAGE_STR("service", p->only)));
    else
        message_refuse(err, ERR_FORBIDDEN, "role_too_low",
                       MESSAGE_ARGS(MESSAGE_STR("role", http_role_to_string(p->role)),
                                    MESSAGE_STR("needs", http_role_to_string(req->route->least))));
}

void intake_refuse(struct http_req *req)
{
    const struct http_limits *limits = &req->conn->server->limits;
    struct err err = {0};
    switch (req->refused) {
    case ERR_METHOD:
        refuse_method(req);
        return;
    case ERR_NOT_FOUND:
        message_refuse(&err, ERR_NOT_FOUND, "no_address",
                       MESSAGE_ARGS(MESSAGE_STR("path", req->path)));
        break;
    case ERR_UNAUTHORISED:
        http_reply_header(req, "WWW-Authenticate", "Bearer");
        if (req->principal.why_not)
            message_refuse_text(&err, ERR_UNAUTHORISED, req->principal.why_not,
                                req->principal.why_args);
        break;
    case ERR_FORBIDDEN:
        refuse_role(req, &err);
        break;
    case ERR_BUSY:
        req_busy(req, limits->user_bodies, "too_many_bodies");
        return;
    case ERR_UNAVAILABLE:
        message_refuse(&err, ERR_UNAVAILABLE, "too_many_bytes", MESSAGE_NO_ARGS);
        break;
    case ERR_TOO_LARGE:
        if (req->is_long) {
            refuse_uri(req);
            return;
        }
        message_refuse(&err, ERR_TOO_LARGE, "body_large",
                       MESSAGE_ARGS(MESSAGE_NUM("most", intake_max_body(req))));
        break;
    }
    http_problem(req, req->refused, err.code ? &err : NULL, NULL, NULL, 0);
}

/* A body that would not be thrown away in time, or a head that two readers may cut
 * differently: answer now and close. */
static bool must_close(const struct http_req *req)
{
    return req->refused && (is_ambiguous(&req->head) || req->head.expect ||
                            (has_body(&req->head) && !length_fits(&req->head, DROP_MAX)));
}

static bool wants_pieces(const struct http_req *req)
{
    if (req->refused)
        return false;
    if (req->route->flags & HTTP_ROUTE_RELAY)
        return has_body(&req->head);
    return (req->route->flags & HTTP_ROUTE_PIECES) || is_pieces_type(req);
}

static bool is_relayed(const struct http_req *req)
{
    return req->route->flags & HTTP_ROUTE_RELAY;
}

static enum MHD_Result begin_pieces(struct http_req *req);

/* A body of many bytes, or of nobody knows how many, is one of those that its user may send at
 * the same time. */
static int count_body(struct http_req *req)
{
    struct http_server *s = req->conn->server;
    if (!req->head.n_encoding && length_fits(&req->head, LARGE_BODY))
        return 0;
    if (!shares_take(s->shares, SHARE_BODIES, req->principal.user, s->limits.user_bodies))
        return ERR_BUSY;
    req->is_large = true;
    return 0;
}

static enum MHD_Result intake_take_head(struct http_req *req, const char *method)
{
    struct conn *c = req->conn;
    req->method = method;
    req->started = c->server->opt.mono();
    memset(&req->head, 0, sizeof(req->head));
    (void)MHD_get_connection_values_n(c->mhd, MHD_HEADER_KIND, intake_on_header,
                                      &req->head);                  /* a count */
    req->principal.language = message_language(req->head.language); /* of refusals before a token */
    copy_content_type(req);
    if (!req->refused)
        req->refused = judge_head(req);
    if (!req->refused)
        req->refused = count_body(req);
    req->state = REQ_BODY;
    c->phase = CONN_BODY;
    c->since = req->started;
    req->dropping = req->refused != 0;
    if (wants_pieces(req))
        return begin_pieces(req);
    if (!req->dropping)
        buf_init(&req->body, req->route->max_body);
    if (!must_close(req))
        return MHD_YES;
    c->phase = CONN_BUSY;
    req->state = REQ_HANDLING;
    req->in_handler = true;
    http_reply_header(req, "Connection", "close");
    intake_refuse(req);
    req->in_handler = false;
    return req_send(req);
}

/* ---- the body and the handler ---- */

void intake_uncount_body(struct http_req *req)
{
    struct http_server *s = req->conn->server;
    shares_give_bytes(s->shares, req->principal.user, req->counted_bytes);
    s->body_bytes -= req->counted_bytes;
    req->counted_bytes = 0;
    if (req->is_large)
        shares_give(s->shares, SHARE_BODIES, req->principal.user);
    req->is_large = false;
}

static void drop_body(struct http_req *req, int why)
{
    req->dropping = true;
    req->refused = why;
    buf_release(&req->body);
    intake_uncount_body(req);
}

/* What waits in memory is counted, for all and for the user. */
static int keep_body(struct http_req *req, const char *data, size_t n)
{
    struct http_server *s = req->conn->server;
    size_t most = s->limits.bodies_bytes;
    if (s->body_bytes + n > most)
        return ERR_UNAVAILABLE;
    if (!shares_take_bytes(s->shares, req->principal.user, n, most / 8))
        return ERR_BUSY;
    s->body_bytes += n;
    req->counted_bytes += n;
    return buf_add(&req->body, data, n) < 0 ? ERR_TOO_LARGE : 0;
}

static enum MHD_Result take_body(struct http_req *req, const char *data, size_t *n)
{
    int r = req->dropping ? 0 : keep_body(req, data, *n);
    if (r)
        drop_body(req, r);
    if (req->dropping && (req->dropped_bytes += *n) > DROP_MAX)
        return MHD_NO;
    *n = 0;
    return MHD_YES;
}

/* Is the type one of a list such as "application/json, application/yaml"? */
static bool is_listed(const char *list, const char *type)
{
    size_t n = strlen(type);
    for (const char *p = list; *p; p += strspn(p, ", ")) {
        size_t len = strcspn(p, ", ");
        if (len == n && !memcmp(p, type, n))
            return true;
        p += len;
    }
    return false;
}

/* A body of a type that the route does not read. No type at all is taken as the first. */
static bool refuse_media(struct http_req *req)
{
    const char *list = str_or(req->route->request_type, "application/json");
    if (!*req->content_type || is_listed(list, req->content_type) || is_pieces_type(req))
        return false;
    const char *form = req->route->pieces_type;
    struct err err;
    message_refuse(&err, ERR_MEDIA, "media_not_read",
                   MESSAGE_ARGS(MESSAGE_STR("type", req->content_type), MESSAGE_STR("list", list),
                                MESSAGE_STR("form", str_or(form, ""))));
    http_problem(req, ERR_MEDIA, &err, NULL, NULL, 0);
    return true;
}

/* True if the reply was made: a request that waits is one of those that its user may have. */
bool intake_refuse_poll(struct http_req *req)
{
    struct http_server *s = req->conn->server;
    if (!http_req_wait(req))
        return false;
    if (!shares_take(s->shares, SHARE_POLLS, req->principal.user, s->limits.user_polls)) {
        req_busy(req, s->limits.user_polls, "too_many_polls");
        return true;
    }
    req->is_poll = true;
    return false;
}

static enum MHD_Result handle(struct http_req *req)
{
    struct conn *c = req->conn;
    c->phase = CONN_BUSY;
    req->state = REQ_HANDLING;
    req->in_handler = true;
    if (req->refused)
        intake_refuse(req);
    else if (is_relayed(req) ||
             (!intake_refuse_query(req) && (!req->body.len || !refuse_media(req)) &&
              !intake_refuse_poll(req)))
        req->route->handle(req, c->server->opt.app);
    req->in_handler = false;
    if (c->gone && req->state == REQ_HANDLING && (req->on_close || req->on_timeout))
        req_abort(req);
    return req_send(req);
}

/* A refusal leaves before a body that is large or that the peer has not begun to send. */
static enum MHD_Result begin_pieces(struct http_req *req)
{
    req->early =
        has_body(&req->head) && (req->head.expect || !length_fits(&req->head, PIECES_REST_MAX));
    req->receiving = true;
    req->state = REQ_HANDLING;
    req->in_handler = true;
    if (is_relayed(req) ||
        (!intake_refuse_query(req) && (!has_body(&req->head) || !refuse_media(req))))
        req->route->handle(req, req->conn->server->opt.app);
    req->in_handler = false;
    if (req->state == REQ_BODY || !req->early)
        return MHD_YES;
    req->receiving = false;
    req->conn->phase = CONN_BUSY;
    return req_send(req);
}

/* ---- libmicrohttpd's callbacks ---- */

static struct conn *conn_of(struct MHD_Connection *mhd)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

void *intake_begin(void *cls, const char *uri, struct MHD_Connection *mhd)
{
    struct http_server *s = cls;
    struct conn *c = conn_of(mhd);
    if (!c)
        return NULL;
    size_t n = uri ? strlen(uri) : 0;
    bool is_long = n > s->limits.uri_bytes;
    if (is_long)
        n = 0;
    /* The names of parameters come from the table: each has its pattern's length at most. */
    struct http_req *req =
        xmalloc(sizeof(*req) + 2 * (n + 1) + ROUTER_PARAMS_MAX * (ROUTER_NAME_MAX + 2));
    memset(req, 0, offsetof(struct http_req, head));
    link_init(&req->held);
    link_init(&req->parked);
    req->conn = c;
    req->path = req->text;
    if (n)
        memcpy(req->path, uri, n);
    req->path[n] = 0;
    req->query = strchr(req->path, '?');
    if (req->query)
        *req->query++ = 0;
    req->params_text = req->text + n + 1;
    req->is_long = is_long;
    req->refused = is_long ? ERR_TOO_LARGE : 0;
    c->req = req;
    s->n_reqs++;
    return req;
}

enum MHD_Result intake_step(void *cls,
                            struct MHD_Connection *mhd,
                            const char *url,
                            const char *method,
                            const char *version,
                            const char *data,
                            size_t *n,
                            void **con_cls)
{
    struct http_req *req = *con_cls;
    (void)cls, (void)mhd, (void)url, (void)version;
    if (!req || req->aborted)
        return MHD_NO;
    if (req->receiving)
        return *n ? pieces_take(req, data, n) : pieces_end(req);
    switch (req->state) {
    case REQ_HEAD:
        return intake_take_head(req, method);
    case REQ_BODY:
        return *n ? take_body(req, data, n) : handle(req);
    case REQ_HANDLING:
    case REQ_REPLIED:
        return req_send(req);
    case REQ_SENT:
        break;
    }
    return MHD_NO;
}

void intake_end(void *cls,
                struct MHD_Connection *mhd,
                void **con_cls,
                enum MHD_RequestTerminationCode why)
{
    struct http_server *s = cls;
    struct http_req *req = *con_cls;
    (void)mhd, (void)why;
    *con_cls = NULL;
    if (!req)
        return;
    struct conn *c = req->conn;
    if (req->state == REQ_HANDLING && req->on_close && !req->aborted)
        req->on_close(req, req->on_close_arg);
    if (req->stream)
        stream_close(req->stream);
    link_remove(&req->held);
    link_remove(&req->parked);
    stream_free(req->stream);
    relay_end(req);
    pieces_free(req);
    intake_uncount_body(req);
    if (req->is_poll)
        shares_give(s->shares, SHARE_POLLS, req->principal.user);
    if (req->response)
        MHD_destroy_response(req->response);
    buf_release(&req->body);
    pairs_release(&req->headers);
    forward_release(req);
    free(req);
    c->req = NULL;
    c->phase = CONN_HEAD;
    c->since = s->opt.mono();
    link_remove(&c->link); /* the last one used */
    link_add_after(s->conns.prev, &c->link);
    s->n_reqs--;
}
