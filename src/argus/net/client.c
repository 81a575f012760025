/* SPDX-License-Identifier: Apache-2.0 */
/* client.c - libcurl's multi interface behind client.h.
 *
 * Every transfer is an easy handle in one multi handle, so that a long-poll and a
 * stream run side by side in one thread. */
#include "argus/net/client.h"

#include <assert.h>
#include <curl/curl.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/message.h"
#include "base/said.h"
#include "base/str.h"
#include "base/version.h"

/* A stream that says nothing at all for this long is dead: servers send a comment each 15 s. */
enum {
    SILENCE_SECONDS = 75,
    CONNECT_SECONDS = 10,
    HEADERS_MAX = 64,
    BLOCK_BYTES = 512 << 10,
    NOT_YET_PAUSE_MS = 1000
};
static const usec_t NOT_YET_MOST = 10 * USEC_SEC;

static const char PROBLEM_TYPE[] = "urn:argus:problem:";

struct client {
    CURLM *multi;
    const struct settings *settings;
    int wake_fd;
    void (*talk)(const char *sentence, void *arg);
    void *talk_arg;
    enum message_language language;
    bool says_bodies;
};

struct transfer {
    struct client *client;
    CURL *easy;
    struct curl_slist *headers;
    client_bytes_f on_bytes;
    void *arg;
    client_read_f read;
    void *read_arg;
    struct response response;
    char curl_error[CURL_ERROR_SIZE];
    CURLcode result;
    int refused; /* what on_bytes, or the body's ceiling, said */
    bool is_done;
};

struct client *client_new(const struct settings *settings)
{
    struct client *c = xcalloc(1, sizeof(*c));
    CURLcode r = curl_global_init(CURL_GLOBAL_DEFAULT);
    assert(r == CURLE_OK);
    c->multi = curl_multi_init();
    assert(c->multi);
    c->settings = settings;
    c->wake_fd = -1;
    return c;
}

void client_free(struct client *c)
{
    if (!c)
        return;
    (void)curl_multi_cleanup(c->multi); /* fails only for a handle that is not ours */
    curl_global_cleanup();
    free(c);
}

void client_set_wake(struct client *c, int fd)
{
    c->wake_fd = fd;
}

void client_set_language(struct client *c, enum message_language language, bool bodies)
{
    c->language = language;
    c->says_bodies = bodies;
}

void client_set_talk(struct client *c, void (*talk)(const char *sentence, void *arg), void *arg)
{
    c->talk = talk;
    c->talk_arg = arg;
}

void response_release(struct response *r)
{
    buf_release(&r->body);
}

/* ---- callbacks of curl ---- */

static size_t on_body(char *p, size_t size, size_t n, void *arg)
{
    struct transfer *t = arg;
    long status = 0;
    n *= size;
    (void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status); /* 0 is no success */
    int r = t->on_bytes && status >= 200 && status < 300 ? t->on_bytes(p, n, t->arg)
                                                         : buf_add(&t->response.body, p, n);
    if (r < 0)
        t->refused = r;
    return r < 0 ? CURL_WRITEFUNC_ERROR : n;
}

/* The value if the header line has this name; cut to fit. */
static bool client_read_header(const char *line,
                               size_t n,
                               const char *name,
                               char *out,
                               size_t out_size)
{
    size_t len = strlen(name);
    if (n <= len || strncasecmp(line, name, len) != 0 || line[len] != ':')
        return false;
    const char *value = line + len + 1;
    const char *end = line + n;
    while (value < end && *value == ' ')
        value++;
    while (end > value && strchr(" \r\n", end[-1]))
        end--;
    if ((size_t)(end - value) >= out_size)
        return false;
    memcpy(out, value, (size_t)(end - value));
    out[end - value] = 0;
    return true;
}

static size_t on_header(char *p, size_t size, size_t n, void *arg)
{
    struct transfer *t = arg;
    char text[32];
    n *= size;
    (void)client_read_header(p, n, "etag", t->response.etag, sizeof(t->response.etag));
    if (client_read_header(p, n, "argus-log-size", text, sizeof(text)) &&
        str_to_int(text, 0, INT64_MAX, &t->response.log_size, NULL) < 0)
        t->response.log_size = -1;
    if (client_read_header(p, n, "argus-log-offset", text, sizeof(text)) &&
        str_to_int(text, 0, INT64_MAX, &t->response.log_offset, NULL) < 0)
        t->response.log_offset = -1;
    return n;
}

/* ---- transfers ---- */

static void add_header(struct transfer *t, const char *name, const char *value)
{
    if (!value)
        return;
    char *line = xasprintf("%s: %s", name, value);
    t->headers = curl_slist_append(t->headers, line);
    assert(t->headers);
    free(line);
}

static void set_headers(struct transfer *t, const struct request *q)
{
    const struct settings *s = t->client->settings;
    char *bearer = s->token ? xasprintf("Bearer %s", s->token) : NULL;
    add_header(t, "Authorization", bearer);
    if (t->client->says_bodies && t->client->language == MESSAGE_CHINESE)
        add_header(t, "Accept-Language", "zh-CN"); /* for what is a sentence in an answer */
    add_header(t, "Accept", q->accept ? q->accept : "application/json");
    add_header(t, "Content-Type", q->content_type ? q->content_type : ""); /* "" = none */
    add_header(t, "Idempotency-Key", q->idempotency_key);
    add_header(t, "If-None-Match", q->etag);
    add_header(t, "Last-Event-ID", q->last_event_id);
    add_header(t, "Range", q->range);
    add_header(t, "If-Range", q->if_range);
    if (!q->read)
        add_header(t, "Expect", ""); /* no round trip before a small body */
    free(bearer);
    (void)curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, t->headers);
}

static size_t on_more_body(char *to, size_t size, size_t n, void *arg)
{
    struct transfer *t = arg;
    int64_t r = t->read(to, size * n, t->read_arg);
    return r < 0 ? CURL_READFUNC_ABORT : (size_t)r;
}

static void set_long_body(struct transfer *t, const struct request *q)
{
    CURL *e = t->easy;
    t->read = q->read;
    t->read_arg = q->read_arg;
    (void)curl_easy_setopt(e, CURLOPT_UPLOAD, 1L);
    (void)curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, q->method);
    (void)curl_easy_setopt(e, CURLOPT_INFILESIZE_LARGE, (curl_off_t)q->read_bytes);
    (void)curl_easy_setopt(e, CURLOPT_UPLOAD_BUFFERSIZE, (long)BLOCK_BYTES);
    (void)curl_easy_setopt(e, CURLOPT_READFUNCTION, on_more_body);
    (void)curl_easy_setopt(e, CURLOPT_READDATA, t);
}

static void set_method(struct transfer *t, const struct request *q)
{
    CURL *e = t->easy;
    if (q->read) {
        set_long_body(t, q);
        return;
    }
    if (!q->method || str_eq(q->method, "GET"))
        return;
    (void)curl_easy_setopt(e, CURLOPT_POST, 1L);
    (void)curl_easy_setopt(e, CURLOPT_CUSTOMREQUEST, q->method);
    (void)curl_easy_setopt(e, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body_len);
    (void)curl_easy_setopt(e, CURLOPT_POSTFIELDS, q->body ? q->body : "");
}

/* The options that fail only when libcurl lacks the feature are ignored: what is
 * missing then shows when the transfer runs. */
static void set_options(struct transfer *t, const struct request *q)
{
    const struct settings *s = t->client->settings;
    CURL *e = t->easy;
    char *url = xasprintf("%s%s", s->server, q->path);
    (void)curl_easy_setopt(e, CURLOPT_URL, url);
    free(url);
    (void)curl_easy_setopt(e, CURLOPT_PROTOCOLS_STR, "http,https");
    (void)curl_easy_setopt(e, CURLOPT_USERAGENT, "argus/" ARGUS_VERSION);
    (void)curl_easy_setopt(e, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS);
    (void)curl_easy_setopt(e, CURLOPT_LOW_SPEED_LIMIT, 1L);
    (void)curl_easy_setopt(e, CURLOPT_LOW_SPEED_TIME, (long)SILENCE_SECONDS);
    (void)curl_easy_setopt(e, CURLOPT_TCP_KEEPALIVE, 1L);
    (void)curl_easy_setopt(e, CURLOPT_BUFFERSIZE, (long)BLOCK_BYTES);
    (void)curl_easy_setopt(e, CURLOPT_ERRORBUFFER, t->curl_error);
    (void)curl_easy_setopt(e, CURLOPT_WRITEFUNCTION, on_body);
    (void)curl_easy_setopt(e, CURLOPT_WRITEDATA, t);
    (void)curl_easy_setopt(e, CURLOPT_HEADERFUNCTION, on_header);
    (void)curl_easy_setopt(e, CURLOPT_HEADERDATA, t);
    (void)curl_easy_setopt(e, CURLOPT_PRIVATE, t);
    if (s->ca)
        (void)curl_easy_setopt(e, CURLOPT_CAINFO, s->ca);
    if (settings_url_is_loopback(s->server))
        (void)curl_easy_setopt(e, CURLOPT_PROXY, ""); /* a proxy has another loopback */
    set_method(t, q);
    set_headers(t, q);
}

struct transfer *transfer_start(struct client *c,
                                const struct request *request,
                                client_bytes_f on_bytes,
                                void *arg)
{
    struct transfer *t = xcalloc(1, sizeof(*t));
    *t = (struct transfer){.client = c,
                           .on_bytes = on_bytes,
                           .arg = arg,
                           .easy = curl_easy_init(),
                           .response = {.body = BUF_INIT(CLIENT_BODY_MAX),
                                        .log_size = -1,
                                        .log_offset = -1,
                                        .language = c->language}};
    assert(t->easy);
    set_options(t, request);
    CURLMcode r = curl_multi_add_handle(c->multi, t->easy);
    assert(r == CURLM_OK);
    return t;
}

void transfer_free(struct transfer *t)
{
    if (!t)
        return;
    (void)curl_multi_remove_handle(t->client->multi, t->easy); /* fine when it is done */
    curl_easy_cleanup(t->easy);
    curl_slist_free_all(t->headers);
    response_release(&t->response);
    free(t);
}

void transfer_freep(struct transfer **t)
{
    transfer_free(*t);
    *t = NULL;
}

bool transfer_is_done(const struct transfer *t)
{
    return t->is_done;
}

int transfer_status(const struct transfer *t)
{
    long status = 0;
    (void)curl_easy_getinfo(t->easy, CURLINFO_RESPONSE_CODE, &status); /* 0 is none */
    return (int)status;
}

struct response *transfer_response(struct transfer *t)
{
    return &t->response;
}

int transfer_result(const struct transfer *t, struct err *err)
{
    const char *server = t->client->settings->server;
    if (t->refused == -EMSGSIZE)
        return message_refuse(err, ERR_TOO_LARGE, "cli_answer_large",
                              MESSAGE_ARGS(MESSAGE_NUM("most", CLIENT_BODY_MAX)));
    if (t->refused)
        return message_refuse(err, t->refused, "cli_answer_odd",
                              MESSAGE_ARGS(MESSAGE_STR("server", server)));
    if (t->result == CURLE_OK)
        return 0;
    const char *why = *t->curl_error ? t->curl_error : curl_easy_strerror(t->result);
    long code = 0;
    if (t->result == CURLE_COULDNT_CONNECT &&
        curl_easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &code) == CURLE_OK && code)
        why = strerror((int)code);
    if (t->result == CURLE_PEER_FAILED_VERIFICATION || t->result == CURLE_SSL_CACERT_BADFILE)
        return message_refuse(err, ERR_UNREACHABLE, "cli_untrusted",
                              MESSAGE_ARGS(MESSAGE_STR("server", server), MESSAGE_STR("why", why)));
    return message_refuse(err, ERR_UNREACHABLE, "cli_no_reach",
                          MESSAGE_ARGS(MESSAGE_STR("server", server), MESSAGE_STR("why", why)));
}

static bool harvest(struct client *c)
{
    CURLMsg *m;
    int left;
    bool any = false;
    while ((m = curl_multi_info_read(c->multi, &left))) {
        struct transfer *t = NULL;
        long status = 0;
        if (m->msg != CURLMSG_DONE)
            continue;
        (void)curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &t);
        (void)curl_easy_getinfo(m->easy_handle, CURLINFO_RESPONSE_CODE, &status);
        t->result = m->data.result;
        t->response.status = (int)status;
        t->is_done = any = true;
    }
    return any;
}

int client_turn(struct client *c, int timeout_ms)
{
    int running = 0;
    struct curl_waitfd wake = {.fd = c->wake_fd, .events = CURL_WAIT_POLLIN};
    (void)curl_multi_perform(c->multi, &running); /* its errors are our own bugs */
    if (!harvest(c)) {
        (void)curl_multi_poll(c->multi, &wake, c->wake_fd >= 0, timeout_ms, NULL);
        (void)curl_multi_perform(c->multi, &running);
        (void)harvest(c); /* what it found shows in the transfers */
    }
    return client_pause(c, 0);
}

int client_pause(struct client *c, int milliseconds)
{
    struct pollfd wake = {.fd = c->wake_fd, .events = POLLIN};
    return poll(&wake, c->wake_fd >= 0, milliseconds) > 0 ? -EINTR : 0;
}

int transfer_wait(struct client *c, const struct transfer *t, struct err *err)
{
    while (!transfer_is_done(t)) {
        int r = client_turn(c, 1000);
        if (r < 0)
            return message_refuse(err, r, "cli_interrupted", MESSAGE_NO_ARGS);
    }
    return 0;
}

/* ---- whole answers ---- */

static int call_once(struct client *c,
                     const struct request *request,
                     struct response *ret,
                     struct err *err)
{
    _cleanup_(transfer_freep) struct transfer *t = transfer_start(c, request, NULL, NULL);
    int r = transfer_wait(c, t, err);
    if (r == 0)
        r = transfer_result(t, err);
    if (r < 0)
        return r;
    *ret = t->response; /* moved */
    t->response.body = BUF_INIT(0);
    return 0;
}

static void client_tell(const struct client *c, const char *sentence)
{
    if (c->talk)
        c->talk(sentence, c->talk_arg);
}

/* A server that has just started says ERR_NOT_YET to what it did not begin: that is asked again
 * until it is ready. A body that is read in pieces is gone by then. */
static int call_ready(struct client *c,
                      const struct request *request,
                      struct response *ret,
                      struct err *err)
{
    usec_t until = clock_mono() + NOT_YET_MOST;
    for (bool is_told = false;; is_told = true) {
        struct err why;
        int r = call_once(c, request, ret, err);
        if (r < 0 || request->read || response_error(ret, &why) != ERR_NOT_YET ||
            clock_mono() > until)
            return r;
        response_release(ret);
        if (!is_told)
            client_tell(c, why.text);
        if (client_pause(c, NOT_YET_PAUSE_MS) < 0)
            return message_refuse(err, -EINTR, "cli_interrupted", MESSAGE_NO_ARGS);
    }
}

int client_call(struct client *c,
                const struct request *request,
                struct response *ret,
                struct err *err)
{
    struct err e = {0};
    for (int k = 0;; k++) {
        struct response response = {0};
        int r = call_ready(c, request, &response, &e);
        bool is_away = r == ERR_UNREACHABLE || (r == 0 && response.status == 503);
        if (!is_away || k >= request->tries) {
            if (r < 0)
                return err_copy(err, r, &e);
            *ret = response;
            return 0;
        }
        response_release(&response);
        _cleanup_(freep) char *sentence =
            xasprintf("%s; trying again (%d of %d)",
                      r < 0 ? e.text : "the server cannot answer now", k + 1, request->tries);
        client_tell(c, sentence);
        if (client_pause(c, k < 3 ? 200 << k : 2000) < 0)
            return message_refuse(err, -EINTR, "cli_interrupted", MESSAGE_NO_ARGS);
    }
}

static int status_code(int status)
{
    switch (status) {
    case 401:
        return ERR_UNAUTHORISED;
    case 403:
        return ERR_FORBIDDEN;
    case 404:
        return ERR_NOT_FOUND;
    case 413:
        return ERR_TOO_LARGE;
    case 429:
        return ERR_BUSY;
    case 502:
    case 503:
    case 504:
        return ERR_UNAVAILABLE;
    default:
        return status >= 500 ? ERR_INTERNAL : ERR_REFUSED;
    }
}

int response_error(const struct response *r, struct err *err)
{
    if (r->status < 400)
        return 0;
    _cleanup_(json_unrefp) json_t *problem = NULL;
    if (json_parse(buf_str(&r->body), r->body.len, CLIENT_BODY_MAX, &problem, NULL) < 0)
        problem = NULL; /* some proxy's page: the status says enough */
    said_in(problem, r->language);
    const char *type = json_get_str(problem, "type", "");
    const char *word = str_starts(type, PROBLEM_TYPE) ? type + strlen(PROBLEM_TYPE)
                                                      : json_get_str(problem, "code", "");
    const char *field =
        json_get_array(problem, "problems") ? json_get_str(problem, "field", "") : "";
    const char *detail = json_get_str(problem, "detail", json_get_str(problem, "title", NULL));
    const char *hint = json_get_str(problem, "hint", NULL);
    int code = err_from_word(word);
    if (code == ERR_INTERNAL)
        code = status_code(r->status);
    if (code == ERR_UNAUTHORISED && !hint)
        hint = "'argus login URL' stores a token";
    (void)(detail
               ? err_set(err, code, "%s%s%s%s%s%s%s", *field ? "'" : "", field, *field ? "': " : "",
                         detail, hint ? " (" : "", hint ? hint : "", hint ? ")" : "")
               : message_refuse(err, code, "cli_no_why",
                                MESSAGE_ARGS(MESSAGE_NUM("status", r->status))));
    return code;
}

void client_say(const struct client *c, json_t *answer)
{
    if (c->says_bodies)
        said_in(answer, c->language);
}

int client_json(struct client *c, const struct request *request, json_t **ret, struct err *err)
{
    _cleanup_(response_release) struct response response = {0};
    int r = client_call(c, request, &response, err);
    if (r < 0)
        return r;
    r = response_error(&response, err);
    if (r < 0)
        return r;
    r = json_parse(buf_str(&response.body), response.body.len, CLIENT_BODY_MAX, ret, err);
    if (r < 0 || !json_is_object(*ret)) {
        if (r >= 0)
            json_unrefp(ret);
        return message_refuse(err, ERR_INTERNAL, "cli_no_argusd",
                              MESSAGE_ARGS(MESSAGE_STR("server", c->settings->server)));
    }
    client_say(c, *ret);
    return 0;
}

int client_get(struct client *c, const char *path, json_t **ret, struct err *err)
{
    struct request request = {.path = path};
    return client_json(c, &request, ret, err);
}

/* ---- addresses ---- */

void url_query(struct buf *out, const char *key, const char *value)
{
    if (!value)
        return;
    (void)buf_addf(out, "%c%s=", strchr(buf_str(out), '?') ? '&' : '?', key);
    buf_add_url(out, value);
}
