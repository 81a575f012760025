/* SPDX-License-Identifier: Apache-2.0 */
/* wire.c - libcurl told by the loop.
 *
 * curl says which sockets it wants polled (on_want) and when it wants to be woken
 * (on_timeout); both end in curl_multi_socket_action, after which finished
 * transfers are handed out (deliver). Nothing is handed out from inside a curl
 * callback, so a user's callback may start, end and free what it likes.
 * `struct wire` outlives wire_free until uv has closed its timer and all polls,
 * which is never in the same turn: code that returns from a user's callback may
 * still look at w->is_dead. */
#include "ray/wire.h"

#include <assert.h>
#include <ctype.h>
#include <curl/curl.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/message.h"
#include "base/str.h"

#define WIRE_TYPE "Content-Type: "
enum { HEADER_BYTES_MAX = 64 * 1024 };

struct wire {
    uv_loop_t *loop;
    CURLM *multi;
    uv_timer_t timer;
    unsigned handles; /* of uv, not closed yet */
    bool is_dead;
    enum reach reach;
    const struct strv *networks;
    char *user_agent;
    char *ca_file;
    struct curl_slist *headers;
    long connect_timeout_ms;
    unsigned parallel_max;
    unsigned running;
    struct wire_request *first, *last; /* all that wait or run, in order */
};

struct wire_request {
    struct wire *w;
    struct wire_request *prev, *next;
    CURL *easy; /* NULL while it waits */
    char *method, *url, *body, *said;
    char *mail_from, *user, *password;
    struct curl_slist *headers, *mail_to;
    size_t body_len, body_sent;
    usec_t timeout;
    bool is_fresh, is_out_of_reach;
    enum reach reach;
    struct buf reply;
    size_t header_bytes;
    char error[CURL_ERROR_SIZE];
    wire_f cb;
    void *arg;
};

struct poll {
    uv_poll_t handle;
    struct wire *w;
    curl_socket_t fd;
};

static void start_waiting(struct wire *w);

static void wire_forget(struct wire *w)
{
    assert(w->handles > 0);
    if (--w->handles > 0)
        return;
    free(w->user_agent);
    free(w->ca_file);
    curl_slist_free_all(w->headers);
    free(w);
    curl_global_cleanup();
}

/* -- requests ------------------------------------------------------------------ */

static void unlink_request(struct wire_request *r)
{
    struct wire *w = r->w;
    if (r->prev)
        r->prev->next = r->next;
    else
        w->first = r->next;
    if (r->next)
        r->next->prev = r->prev;
    else
        w->last = r->prev;
    if (r->easy) {
        curl_multi_remove_handle(w->multi, r->easy);
        w->running--;
    }
}

static void wire_destroy(struct wire_request *r)
{
    if (r->easy)
        curl_easy_cleanup(r->easy);
    free(r->method);
    free(r->url);
    free(r->body);
    free(r->said);
    free(r->mail_from);
    free(r->user);
    if (r->password)
        explicit_bzero(r->password, strlen(r->password));
    free(r->password);
    curl_slist_free_all(r->headers);
    curl_slist_free_all(r->mail_to);
    buf_release(&r->reply);
    free(r);
}

void wire_request_free(struct wire_request *r)
{
    if (!r)
        return;
    struct wire *w = r->w;
    unlink_request(r);
    wire_destroy(r);
    start_waiting(w);
}

static size_t wire_on_body(char *data, size_t size, size_t n, void *arg)
{
    struct wire_request *r = arg;
    return buf_add(&r->reply, data, size * n) < 0 ? 0 : size * n;
}

static size_t wire_on_header(char *data, size_t size, size_t n, void *arg)
{
    (void)data;
    struct wire_request *r = arg;
    r->header_bytes += size * n;
    return r->header_bytes > HEADER_BYTES_MAX ? 0 : size * n;
}

static int on_socket(void *arg, curl_socket_t fd, curlsocktype purpose)
{
    (void)arg;
    (void)purpose;
    return fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 ? CURL_SOCKOPT_ERROR : CURL_SOCKOPT_OK;
}

static size_t wire_on_mail(char *to, size_t size, size_t n, void *arg)
{
    struct wire_request *r = arg;
    size_t left = r->body_len - r->body_sent, take = size * n < left ? size * n : left;
    memcpy(to, r->body + r->body_sent, take);
    r->body_sent += take;
    return take;
}

static curl_socket_t open_allowed(void *arg, curlsocktype purpose, struct curl_sockaddr *to)
{
    struct wire_request *r = arg;
    (void)purpose;
    if (!reach_allows(r->reach, r->w->networks, &to->addr)) {
        r->is_out_of_reach = true;
        return CURL_SOCKET_BAD;
    }
    r->is_out_of_reach = false; /* another address of the name may do */
    return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

/* Options of ours are known to this libcurl: a refusal is our own bug. */
#define set(r, option, value)                                                                      \
    do {                                                                                           \
        CURLcode set_code = curl_easy_setopt((r)->easy, option, value);                            \
        assert(set_code == CURLE_OK);                                                              \
    } while (0)

static void wire_set_mail(struct wire_request *r)
{
    set(r, CURLOPT_PROTOCOLS_STR, "smtp,smtps");
    set(r, CURLOPT_CUSTOMREQUEST, (char *)NULL);
    set(r, CURLOPT_MAIL_FROM, r->mail_from);
    set(r, CURLOPT_MAIL_RCPT, r->mail_to);
    set(r, CURLOPT_UPLOAD, 1L);
    set(r, CURLOPT_READFUNCTION, wire_on_mail);
    set(r, CURLOPT_READDATA, r);
    set(r, CURLOPT_USE_SSL, r->user ? (long)CURLUSESSL_ALL : (long)CURLUSESSL_TRY);
}

static void wire_set_body(struct wire_request *r)
{
    set(r, CURLOPT_POSTFIELDS, str_or(r->body, ""));
    set(r, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body_len);
}

static void wire_set_options(struct wire_request *r)
{
    const struct wire *w = r->w;
    set(r, CURLOPT_PRIVATE, r);
    set(r, CURLOPT_URL, r->url);
    set(r, CURLOPT_PATH_AS_IS, 1L);
    set(r, CURLOPT_PROTOCOLS_STR, "http,https");
    set(r, CURLOPT_PROXY, "");
    set(r, CURLOPT_NOSIGNAL, 1L);
    set(r, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    set(r, CURLOPT_CUSTOMREQUEST, r->method);
    set(r, CURLOPT_USERAGENT, w->user_agent);
    set(r, CURLOPT_HTTPHEADER, r->headers ? r->headers : w->headers);
    set(r, CURLOPT_TCP_KEEPALIVE, 1L);
    set(r, CURLOPT_MAXAGE_CONN, 30L); /* the dashboard closes idle ones after 75 s */
    /* A kept connection may be to an address that is allowed to others only. */
    bool is_strict = r->reach > w->reach;
    set(r, CURLOPT_FRESH_CONNECT, r->is_fresh || is_strict ? 1L : 0L);
    set(r, CURLOPT_CONNECTTIMEOUT_MS, w->connect_timeout_ms);
    set(r, CURLOPT_TIMEOUT_MS, (long)(r->timeout / USEC_MS));
    set(r, CURLOPT_ERRORBUFFER, r->error);
    set(r, CURLOPT_SOCKOPTFUNCTION, on_socket);
    set(r, CURLOPT_WRITEFUNCTION, wire_on_body);
    set(r, CURLOPT_WRITEDATA, r);
    set(r, CURLOPT_HEADERFUNCTION, wire_on_header);
    set(r, CURLOPT_HEADERDATA, r);
    if (w->ca_file)
        set(r, CURLOPT_CAINFO, w->ca_file);
    set(r, CURLOPT_OPENSOCKETFUNCTION, open_allowed);
    set(r, CURLOPT_OPENSOCKETDATA, r);
    if (r->user) {
        set(r, CURLOPT_USERNAME, r->user);
        set(r, CURLOPT_PASSWORD, str_or(r->password, ""));
    }
    if (r->mail_from)
        wire_set_mail(r);
    else if (r->body || str_eq(r->method, "POST"))
        wire_set_body(r);
}

static void wire_start(struct wire_request *r)
{
    r->easy = curl_easy_init();
    assert(r->easy);
    wire_set_options(r);
    CURLMcode code = curl_multi_add_handle(r->w->multi, r->easy);
    assert(code == CURLM_OK);
    r->w->running++;
}

static void start_waiting(struct wire *w)
{
    for (struct wire_request *r = w->first; r && !w->is_dead && w->running < w->parallel_max;
         r = r->next)
        if (!r->easy)
            wire_start(r);
}

static struct curl_slist *slist_add(struct curl_slist *list, const char *text)
{
    struct curl_slist *longer = curl_slist_append(list, text);
    assert(longer);
    return longer;
}

/* libcurl sends a header as it is given, line breaks and all. */
static struct curl_slist *slist_add_header(struct curl_slist *list, const char *text)
{
    size_t n = 0;
    while (text[n] && !iscntrl((unsigned char)text[n]))
        n++;
    _cleanup_(freep) char *line = xstrndup(text, n);
    struct curl_slist *longer = slist_add(list, line);
    explicit_bzero(line, n); /* it may hold a secret */
    return longer;
}

static void wire_copy_body(struct wire_request *r, const struct wire_order *order)
{
    if (!order->body)
        return;
    r->body_len = order->body_len ? order->body_len : strlen(order->body);
    r->body = xmalloc(r->body_len + 1);
    memcpy(r->body, order->body, r->body_len);
    r->body[r->body_len] = 0;
}

static void wire_copy_more(struct wire_request *r, const struct wire_order *order)
{
    wire_copy_body(r, order);
    r->said = xstrdup(order->said);
    r->mail_from = xstrdup(order->mail_from);
    r->user = xstrdup(order->user);
    r->password = xstrdup(order->password);
    for (size_t i = 0; order->mail_to && i < order->mail_to->n; i++)
        r->mail_to = slist_add(r->mail_to, order->mail_to->v[i]);
    if (!order->headers && !order->type)
        return;
    for (const struct curl_slist *h = r->w->headers; h; h = h->next)
        if (!order->type || !str_starts(h->data, WIRE_TYPE))
            r->headers = slist_add(r->headers, h->data);
    if (order->type) {
        _cleanup_(freep) char *type = xasprintf(WIRE_TYPE "%s", order->type);
        r->headers = slist_add_header(r->headers, type);
    }
    for (size_t i = 0; order->headers && i < order->headers->n; i++)
        r->headers = slist_add_header(r->headers, order->headers->v[i]);
}

struct wire_request *wire_send(struct wire *w, const struct wire_order *order, wire_f cb, void *arg)
{
    assert(!w->is_dead);
    struct wire_request *r = xcalloc(1, sizeof(*r));
    *r = (struct wire_request){
        .w = w,
        .prev = w->last,
        .method = xstrdup(order->method),
        .url = xstrdup(order->url),
        .timeout = order->timeout,
        .is_fresh = order->is_fresh,
        .reach = order->reach > w->reach ? order->reach : w->reach,
        .reply = BUF_INIT(order->max_bytes),
        .cb = cb,
        .arg = arg,
    };
    wire_copy_more(r, order);
    if (w->last)
        w->last->next = r;
    else
        w->first = r;
    w->last = r;
    start_waiting(w);
    return r;
}

/* -- ends ------------------------------------------------------------------------ */

static bool is_never_sent(const struct wire_request *r)
{
    long bytes = 0;
    curl_off_t ready = 0;
    (void)curl_easy_getinfo(r->easy, CURLINFO_REQUEST_SIZE, &bytes); /* 0 then: not sent */
    (void)curl_easy_getinfo(r->easy, CURLINFO_PRETRANSFER_TIME_T, &ready);
    return bytes == 0 && ready == 0;
}

static void describe_failure(const struct wire_request *r, CURLcode code, struct wire_reply *reply)
{
    /* Its own words may hold the URL. */
    const char *why = *r->error && !r->said ? r->error : curl_easy_strerror(code);
    int word = !reply->was_sent                   ? ERR_UNREACHABLE
               : r->reply.failed                  ? ERR_TOO_LARGE
               : code == CURLE_OPERATION_TIMEDOUT ? ERR_TIMEOUT
                                                  : ERR_UNAVAILABLE;
    if (word == ERR_TOO_LARGE)
        (void)message_refuse(&reply->err, word, "answer_too_large",
                             MESSAGE_ARGS(MESSAGE_STR("method", r->method),
                                          MESSAGE_STR("url", str_or(r->said, r->url)),
                                          MESSAGE_NUM("most", r->reply.max)));
    else if (r->is_out_of_reach)
        (void)message_refuse(&reply->err, word, "out_of_reach",
                             MESSAGE_ARGS(MESSAGE_STR("method", r->method),
                                          MESSAGE_STR("url", str_or(r->said, r->url))));
    else if (r->header_bytes > HEADER_BYTES_MAX)
        (void)message_refuse(&reply->err, word, "answer_headers",
                             MESSAGE_ARGS(MESSAGE_STR("method", r->method),
                                          MESSAGE_STR("url", str_or(r->said, r->url))));
    else
        (void)message_refuse(&reply->err, word, "request_failed",
                             MESSAGE_ARGS(MESSAGE_STR("method", r->method),
                                          MESSAGE_STR("url", str_or(r->said, r->url)),
                                          MESSAGE_STR("why", why)));
}

/* Hand one finished transfer out. The request is off all lists before the callback. */
static void wire_finish(struct wire_request *r, CURLcode code)
{
    struct wire_reply reply = {.was_sent = !is_never_sent(r)};
    long status = 0;
    if (code == CURLE_OK || r->mail_from) /* a mail that is refused is an error to curl */
        (void)curl_easy_getinfo(r->easy, CURLINFO_RESPONSE_CODE, &status); /* 0 = none */
    if (code != CURLE_OK && status < 400)
        status = 0;
    reply.status = (int)status;
    reply.body = buf_str(&r->reply);
    reply.len = r->reply.len;
    if (!status)
        describe_failure(r, code, &reply);
    unlink_request(r);
    r->cb(&reply, r->arg);
    wire_destroy(r);
}

/* Bounded: only what curl has finished by now, at most parallel_max; what a
 * callback starts needs another turn. */
static void deliver(struct wire *w)
{
    int left;
    CURLMsg *msg;
    while (!w->is_dead && (msg = curl_multi_info_read(w->multi, &left)) != NULL) {
        if (msg->msg != CURLMSG_DONE)
            continue;
        char *private = NULL;
        CURLcode code = msg->data.result; /* msg ends with the removal of its handle */
        (void)curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &private); /* always set */
        wire_finish((struct wire_request *)(void *)private, code);
    }
    if (!w->is_dead)
        start_waiting(w);
}

/* -- the loop ---------------------------------------------------------------------- */

static void act(struct wire *w, curl_socket_t fd, int events)
{
    int running;
    CURLMcode code = curl_multi_socket_action(w->multi, fd, events, &running);
    assert(code == CURLM_OK || code == CURLM_BAD_SOCKET);
    deliver(w);
}

static void wire_on_timer(uv_timer_t *timer)
{
    act(timer->data, CURL_SOCKET_TIMEOUT, 0);
}

static int on_timeout(CURLM *multi, long ms, void *arg)
{
    (void)multi;
    struct wire *w = arg;
    if (w->is_dead)
        return 0;
    if (ms < 0)
        uv_timer_stop(&w->timer);
    else
        uv_timer_start(&w->timer, wire_on_timer, (uint64_t)ms, 0);
    return 0;
}

static void on_poll(uv_poll_t *handle, int status, int events)
{
    struct poll *p = handle->data;
    int flags = status < 0 ? CURL_CSELECT_ERR : 0;
    if (events & UV_READABLE)
        flags |= CURL_CSELECT_IN;
    if (events & UV_WRITABLE)
        flags |= CURL_CSELECT_OUT;
    act(p->w, p->fd, flags);
}

static void on_poll_closed(uv_handle_t *handle)
{
    struct poll *p = handle->data;
    struct wire *w = p->w;
    free(p);
    wire_forget(w);
}

static struct poll *poll_new(struct wire *w, curl_socket_t fd)
{
    struct poll *p = xcalloc(1, sizeof(*p));
    p->w = w;
    p->fd = fd;
    if (uv_poll_init_socket(w->loop, &p->handle, fd) < 0) {
        free(p);
        return NULL;
    }
    p->handle.data = p;
    w->handles++;
    return p;
}

/* curl wants a socket polled, or no more. */
static int on_want(CURL *easy, curl_socket_t fd, int what, void *arg, void *assigned)
{
    (void)easy;
    struct wire *w = arg;
    struct poll *p = assigned;
    if (what == CURL_POLL_REMOVE) {
        if (p) {
            uv_close((uv_handle_t *)&p->handle, on_poll_closed);
            curl_multi_assign(w->multi, fd, NULL);
        }
        return 0;
    }
    if (!p) {
        p = poll_new(w, fd);
        if (!p)
            return 0; /* never polled: its transfers time out. -1 would end them all */
        curl_multi_assign(w->multi, fd, p);
    }
    int events = (what & CURL_POLL_IN ? UV_READABLE : 0) | (what & CURL_POLL_OUT ? UV_WRITABLE : 0);
    (void)uv_poll_start(&p->handle, events, on_poll); /* fails like an unpolled one */
    return 0;
}

/* -- start and end ------------------------------------------------------------------ */

static bool is_header_text(const char *s)
{
    for (; *s; s++)
        if (iscntrl((unsigned char)*s))
            return false;
    return true;
}

static void wire_add_header(struct wire *w, const char *text)
{
    struct curl_slist *longer = curl_slist_append(w->headers, text);
    assert(longer);
    w->headers = longer;
}

static void add_headers(struct wire *w, const char *token)
{
    wire_add_header(w, "Accept: application/json");
    wire_add_header(w, WIRE_TYPE "application/json");
    wire_add_header(w, "Expect:"); /* none: Ray's server does not answer it */
    if (!token)
        return;
    char *bearer = xasprintf("Authorization: Bearer %s", token);
    wire_add_header(w, bearer);
    free(bearer);
}

int wire_new(const struct wire_options *opt, struct wire **ret, struct err *err)
{
    if (!is_header_text(opt->user_agent) || strncasecmp(opt->user_agent, "mozilla", 7) == 0)
        return message_refuse(err, ERR_USAGE, "ray_browser",
                              MESSAGE_ARGS(MESSAGE_STR("name", opt->user_agent)));
    if (opt->token && (!*opt->token || !is_header_text(opt->token)))
        return message_refuse(err, ERR_USAGE, "ray_token_text", MESSAGE_NO_ARGS);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
        return err_set(err, ERR_INTERNAL, "libcurl cannot be started");
    struct wire *w = xcalloc(1, sizeof(*w));
    w->loop = opt->loop;
    w->user_agent = xstrdup(opt->user_agent);
    w->ca_file = xstrdup(opt->ca_file);
    w->connect_timeout_ms = (long)(opt->connect_timeout / USEC_MS);
    w->parallel_max = opt->parallel_max;
    w->reach = opt->reach;
    w->networks = opt->networks;
    add_headers(w, opt->token);
    w->multi = curl_multi_init();
    assert(w->multi);
    (void)uv_timer_init(w->loop, &w->timer); /* never fails */
    w->timer.data = w;
    w->handles = 1;
    curl_multi_setopt(w->multi, CURLMOPT_SOCKETFUNCTION, on_want);
    curl_multi_setopt(w->multi, CURLMOPT_SOCKETDATA, w);
    curl_multi_setopt(w->multi, CURLMOPT_TIMERFUNCTION, on_timeout);
    curl_multi_setopt(w->multi, CURLMOPT_TIMERDATA, w);
    curl_multi_setopt(w->multi, CURLMOPT_MAXCONNECTS, (long)w->parallel_max);
    *ret = w;
    return 0;
}

static void wire_on_timer_closed(uv_handle_t *handle)
{
    wire_forget(handle->data);
}

void wire_free(struct wire *w)
{
    if (!w || w->is_dead)
        return;
    w->is_dead = true;
    for (struct wire_request *r = w->first, *next; r; r = next) {
        next = r->next;
        if (r->easy)
            curl_multi_remove_handle(w->multi, r->easy);
        wire_destroy(r);
    }
    w->first = w->last = NULL;
    curl_multi_cleanup(w->multi); /* closes the sockets and, by on_want, their polls */
    uv_close((uv_handle_t *)&w->timer, wire_on_timer_closed);
}
