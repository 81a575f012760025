/* SPDX-License-Identifier: Apache-2.0 */
/* server.c - a toy server for tests/daemon/test_http_server.py: every feature of the layer
 * behind a small route table. It prints its port on stdout and ends with SIGTERM.
 * Arguments: name=value of struct http_limits (times in ms), cert=, key=, listen=. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "http/expo.h"
#include "http/http.h"
#include "http/openapi.h"

enum { WAITERS_MAX = 4096, BODY_MAX = 4096, BIG_BODY_MAX = 8 << 20, PIECES_MAX = 256 << 20 };

struct app {
    uv_loop_t loop;
    uv_signal_t term;
    struct http_server *server;
    struct http_req *waiters[WAITERS_MAX]; /* in /wait, answered by /wake */
    size_t n_waiters;
    struct http_stream *feed; /* the newest /feed */
    uint64_t fed, feed_until;
    size_t feed_size;
    unsigned gone, drained, cut, counting;
    struct counting *newest;
    int64_t pieced, length; /* of the newest /pieces */
};

static void say(struct http_req *req, int status, const char *text, uint64_t barrier)
{
    struct buf out = BUF_INIT(1 << 20);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    jout_str(&j, "text", text);
    jout_close(&j, '}');
    http_reply_json(req, status, &out, barrier);
}

static void on_hello(struct http_req *req, void *app)
{
    (void)app;
    if (!http_reply_not_modified(req, "v1", 0))
        say(req, 200, "hello", 0);
}

static void on_thing(struct http_req *req, void *app)
{
    (void)app;
    say(req, 200, http_req_param(req, "id"), 0);
}

static void on_stop(struct http_req *req, void *app)
{
    (void)app;
    http_reply_header(req, "X-Verb", "stop");
    say(req, 202, http_req_param(req, "id"), 0);
}

static void on_echo(struct http_req *req, void *app)
{
    (void)app;
    size_t n;
    const char *body = http_req_body(req, &n);
    struct buf out = BUF_INIT(BIG_BODY_MAX);
    (void)buf_add(&out, body, n);
    http_reply_header(req, "X-Type", http_req_content_type(req));
    http_reply_header(req, "X-Query", str_or(http_req_query(req, "text"), "none"));
    http_reply(req, 200, "application/octet-stream", &out, 0);
}

/* POST /held?barrier=N answers once N was released. */
static void on_held(struct http_req *req, void *app)
{
    struct err err;
    int64_t barrier;
    (void)app;
    if (http_req_query_int(req, "barrier", 0, INT64_MAX, 0, &barrier, &err) < 0)
        http_problem(req, ERR_BAD_REQUEST, &err, "barrier", NULL, 0);
    else
        say(req, 201, "held", (uint64_t)barrier);
}

static void on_release(struct http_req *req, void *arg)
{
    struct app *app = arg;
    struct err err;
    int64_t to;
    if (http_req_query_int(req, "to", 0, INT64_MAX, 0, &to, &err) < 0) {
        http_problem(req, ERR_BAD_REQUEST, &err, "to", NULL, 0);
        return;
    }
    http_server_release(app->server, (uint64_t)to);
    say(req, 200, "released", 0);
}

static void drop_waiter(struct app *app, const struct http_req *req)
{
    for (size_t i = 0; i < app->n_waiters; i++)
        if (app->waiters[i] == req)
            app->waiters[i] = app->waiters[--app->n_waiters];
}

static void on_waiter_gone(struct http_req *req, void *arg)
{
    struct app *app = arg;
    drop_waiter(app, req);
    app->gone++;
}

static void on_wait_over(struct http_req *req, void *arg)
{
    drop_waiter(arg, req);
    say(req, 200, "nothing", 0);
}

static void on_wait(struct http_req *req, void *arg)
{
    struct app *app = arg;
    if (app->n_waiters == WAITERS_MAX) {
        http_problem(req, ERR_UNAVAILABLE, NULL, NULL, NULL, 0);
        return;
    }
    app->waiters[app->n_waiters++] = req;
    http_req_on_close(req, on_waiter_gone, app);
    http_req_park(req, http_req_wait(req), on_wait_over, app);
}

static void on_wake(struct http_req *req, void *arg)
{
    struct app *app = arg;
    while (app->n_waiters)
        say(app->waiters[--app->n_waiters], 200, "woken", 0);
    say(req, 200, "waking", 0);
}

static void on_state(struct http_req *req, void *arg)
{
    struct app *app = arg;
    struct buf out = BUF_INIT(4096);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    jout_int(&j, "waiters", (int64_t)app->n_waiters);
    jout_int(&j, "gone", app->gone);
    jout_int(&j, "drained", app->drained);
    jout_int(&j, "cut", app->cut);
    jout_int(&j, "counting", app->counting);
    jout_int(&j, "pieced", app->pieced);
    jout_int(&j, "length", app->length);
    jout_int(&j, "fed", (int64_t)app->fed);
    jout_int(&j, "queued", app->feed ? (int64_t)http_stream_queued(app->feed) : -1);
    jout_close(&j, '}');
    http_reply_json(req, 200, &out, 0);
}

static void feed_more(struct http_stream *st, void *arg)
{
    struct app *app = arg;
    char id[32];
    _cleanup_(freep) char *data = xmalloc(app->feed_size);
    memset(data, 'x', app->feed_size);
    while (app->fed < app->feed_until) {
        (void)snprintf(id, sizeof(id), "%llu", (unsigned long long)app->fed + 1);
        if (http_stream_sse(st, id, NULL, data, app->feed_size) < 0) {
            app->drained++;
            return; /* goes on when there is room */
        }
        app->fed++;
    }
    if (app->feed_until) {
        app->feed = NULL;
        http_stream_end(st);
    }
}

static void on_feed_gone(struct http_stream *st, void *arg)
{
    struct app *app = arg;
    if (app->feed == st)
        app->feed = NULL;
    app->gone++;
}

/* GET /feed?until=N&size=B&barrier=K: events from Last-Event-ID + 1 to N; until=0 is silent. */
static void on_feed(struct http_req *req, void *arg)
{
    struct app *app = arg;
    int64_t until = 0, size = 1, from = 0, barrier = 0;
    const char *last = http_req_last_event_id(req);
    if (http_req_query_int(req, "until", 0, INT64_MAX, 0, &until, NULL) < 0 ||
        http_req_query_int(req, "size", 0, 65536, 1, &size, NULL) < 0 ||
        http_req_query_int(req, "barrier", 0, INT64_MAX, 0, &barrier, NULL) < 0 ||
        (last && str_to_int(last, 0, INT64_MAX, &from, NULL) < 0)) {
        http_problem(req, ERR_BAD_REQUEST, NULL, NULL, NULL, 0);
        return;
    }
    struct http_stream *st = http_stream_begin(req, "text/event-stream", (uint64_t)barrier);
    if (!st)
        return;
    app->feed = st;
    app->fed = (uint64_t)from;
    app->feed_until = (uint64_t)until;
    app->feed_size = (size_t)size;
    http_stream_on_close(st, on_feed_gone, app);
    http_stream_on_drain(st, feed_more, app);
    feed_more(st, app);
}

/* POST /feed: its body as one event of the newest stream. */
static void on_feed_post(struct http_req *req, void *arg)
{
    struct app *app = arg;
    size_t n;
    const char *body = http_req_body(req, &n);
    int64_t r = app->feed ? http_stream_sse(app->feed, "7", "note", body, n) : -1;
    say(req, r < 0 ? 409 : 200, "fed", 0);
}

/* ---- a body in pieces ---- */

/* PUT /pieces?pause=MS&refuse_at=N&wait=: counts and hashes its body; each piece takes MS as on a
 * slow disk, and the piece that reaches N is answered with 507. */
struct counting {
    struct app *app;
    struct http_req *req;
    uv_timer_t timer;
    struct hash_running hash;
    uint64_t got;
    int64_t pause, refuse_at;
    bool whole;
};

static void on_counting_closed(uv_handle_t *h)
{
    free(h->data);
}

static void end_counting(struct counting *k)
{
    k->app->counting--;
    k->req = NULL;
    if (k->app->newest == k)
        k->app->newest = NULL;
    uv_close((uv_handle_t *)&k->timer, on_counting_closed);
}

static void on_counting_gone(struct http_req *req, void *arg)
{
    struct counting *k = arg;
    (void)req;
    k->app->gone++;
    end_counting(k);
}

static void piece_done(uv_timer_t *timer)
{
    struct counting *k = timer->data;
    if (!k->req)
        return;
    if (k->refuse_at && k->got >= (uint64_t)k->refuse_at) {
        http_problem(k->req, ERR_NO_SPACE, NULL, NULL, NULL, 0);
        end_counting(k);
    } else if (!k->whole) {
        http_body_next(k->req);
    } else {
        char text[HASH_HEX + 32], hex[HASH_HEX];
        (void)hash_so_far_hex(&k->hash, hex); /* returns hex */
        (void)snprintf(text, sizeof(text), "%llu %s", (unsigned long long)k->got, hex); /* fits */
        say(k->req, 200, text, 0);
        end_counting(k);
    }
}

static void on_piece(struct http_req *req, struct buf *piece, enum http_body_how how, void *arg)
{
    struct counting *k = arg;
    k->got += piece->len;
    k->app->pieced = (int64_t)k->got;
    hash_add(&k->hash, buf_str(piece), piece->len);
    if (how == HTTP_BODY_CUT) {
        k->app->cut++;
        end_counting(k);
        return;
    }
    if (how == HTTP_BODY_WHOLE) {
        k->whole = true;
        http_req_on_close(req, on_counting_gone, k);
    }
    if (k->pause)
        (void)uv_timer_start(&k->timer, piece_done, (uint64_t)k->pause, 0); /* cannot fail here */
    else
        piece_done(&k->timer);
}

/* POST /hurry: the newest one's disk is fast from now on. */
static void on_hurry(struct http_req *req, void *arg)
{
    struct app *app = arg;
    if (app->newest) {
        app->newest->pause = 0;
        uv_timer_stop(&app->newest->timer);
        piece_done(&app->newest->timer);
    }
    say(req, 200, "hurrying", 0);
}

static void on_pieces(struct http_req *req, void *arg)
{
    struct app *app = arg;
    struct counting *k = xcalloc(1, sizeof(*k));
    *k = (struct counting){.app = app, .req = req};
    if (http_req_query_int(req, "pause", 0, 60000, 0, &k->pause, NULL) < 0 ||
        http_req_query_int(req, "refuse_at", 0, INT64_MAX, 0, &k->refuse_at, NULL) < 0 ||
        http_req_query_bool(req, "refuse", false)) {
        http_problem(req, ERR_CONFLICT, NULL, NULL, NULL, 0);
        free(k);
        return;
    }
    if (!http_body_read(req, on_piece, k)) {
        free(k);
        return;
    }
    hash_begin(&k->hash);
    (void)uv_timer_init(&app->loop, &k->timer); /* never fails */
    k->timer.data = k;
    app->counting++;
    app->newest = k;
    app->length = http_req_body_length(req);
}

static void on_problems(struct http_req *req, void *app)
{
    (void)app;
    struct problems ps = {0};
    problems_add(&ps, PROBLEM_ERROR, "a.b", 3, 5, "unknown_key",
                 MESSAGE_ARGS(MESSAGE_STR("key", "b"), MESSAGE_STR("near", "c")));
    http_problem(req, ERR_BAD_SPEC, NULL, NULL, &ps, 0);
    problems_release(&ps);
}

static void on_metrics(struct http_req *req, void *arg)
{
    struct app *app = arg;
    struct buf out = BUF_INIT(1 << 20);
    struct expo e = {.out = &out, .prefix = "toy_"};
    http_metrics(app->server, &e);
    http_reply(req, 200, "text/plain; version=0.0.4", &out, 0);
}

static void on_whoami(struct http_req *req, void *app)
{
    (void)app;
    say(req, 200, http_req_principal(req)->user, 0);
}

static void on_openapi(struct http_req *req, void *app);

static const struct http_param echo_params[] = {
    {"text", HTTP_PARAM_STRING, "comes back as a header"},
    {"n", HTTP_PARAM_INTEGER, "a number"},
    {"yes", HTTP_PARAM_BOOLEAN, "a flag"},
    {.name = NULL},
};
static const struct http_param pieces_params[] = {
    {"pause", HTTP_PARAM_INTEGER, "ms that each piece takes"},
    {"refuse_at", HTTP_PARAM_INTEGER, "bytes"},
    {"refuse", HTTP_PARAM_BOOLEAN, "at once"},
    {0}};
static const struct http_param wait_params[] = {{"wait", HTTP_PARAM_SPAN, "how long"}, {0}};
static const struct http_param barrier_params[] = {{"barrier", HTTP_PARAM_INTEGER, "number"}, {0}};
static const struct http_param release_params[] = {{"to", HTTP_PARAM_INTEGER, "number"}, {0}};
static const struct http_schema schemas[] = {
    {.name = "Text",
     .json = "{\"type\":\"object\",\"properties\":{\"text\":{\"type\":\"string\"}}}"},
};
#define ROW(m, p, role, body, fn, text)                                                            \
    .method = (m), .pattern = (p), .least = (role), .max_body = (body), .handle = (fn),            \
    .summary = (text)

static const struct http_route routes[] = {
    {ROW("GET", "/hello", HTTP_ROLE_NONE, 0, on_hello, "say hello"), .flags = HTTP_ROUTE_CACHEABLE,
     .reply_schema = "Text"},
    {ROW("GET", "/things/{id}", HTTP_ROLE_NONE, 0, on_thing, "one thing"), .example = "one",
     .reply_schema = "Text"},
    {ROW("POST", "/things/{id}:stop", HTTP_ROLE_NONE, 0, on_stop, "stop it"), .reply_status = 202},
    {ROW("POST", "/echo", HTTP_ROLE_NONE, BODY_MAX, on_echo, "the body again"),
     .params = echo_params, .request_type = "application/json, application/octet-stream",
     .request_schema = "Text"},
    {ROW("PUT", "/big", HTTP_ROLE_NONE, BIG_BODY_MAX, on_echo, "a large body"),
     .flags = HTTP_ROUTE_ANY_QUERY, .request_type = "application/octet-stream"},
    {ROW("PUT", "/pieces", HTTP_ROLE_NONE, PIECES_MAX, on_pieces, "count a body"),
     .flags = HTTP_ROUTE_PIECES, .params = pieces_params,
     .request_type = "application/octet-stream"},
    {ROW("POST", "/hurry", HTTP_ROLE_NONE, 0, on_hurry, "a faster disk")},
    {ROW("POST", "/held", HTTP_ROLE_NONE, BODY_MAX, on_held, "wait for the disk"),
     .params = barrier_params},
    {ROW("POST", "/release", HTTP_ROLE_NONE, 0, on_release, "the disk has it"),
     .params = release_params},
    {ROW("GET", "/wait", HTTP_ROLE_NONE, 0, on_wait, "wait"), .params = wait_params},
    {ROW("POST", "/wake", HTTP_ROLE_NONE, 0, on_wake, "wake all that wait")},
    {ROW("GET", "/state", HTTP_ROLE_NONE, 0, on_state, "counters")},
    {ROW("GET", "/feed", HTTP_ROLE_NONE, 0, on_feed, "events"),
     .flags = HTTP_ROUTE_STREAM | HTTP_ROUTE_ANY_QUERY, .reply_type = "text/event-stream"},
    {ROW("POST", "/feed", HTTP_ROLE_NONE, BODY_MAX, on_feed_post, "one event"),
     .request_type = "text/plain"},
    {ROW("GET", "/problems", HTTP_ROLE_NONE, 0, on_problems, "all that is wrong")},
    {ROW("GET", "/metrics", HTTP_ROLE_NONE, 0, on_metrics, "counters"), .reply_type = "text/plain"},
    {ROW("GET", "/whoami", HTTP_ROLE_VIEWER, 0, on_whoami, "who asks")},
    {ROW("POST", "/whoami", HTTP_ROLE_ADMIN, BODY_MAX, on_whoami, "for admins")},
    {ROW("GET", "/openapi.json", HTTP_ROLE_NONE, 0, on_openapi, "this")},
    {ROW("GET", "/hidden", HTTP_ROLE_NONE, 0, on_hello, "not told"), .flags = HTTP_ROUTE_HIDDEN},
};

static void on_openapi(struct http_req *req, void *app)
{
    (void)app;
    struct buf out = BUF_INIT(1 << 20);
    http_openapi(routes, array_len(routes), schemas, array_len(schemas), "1", &out);
    http_reply_json(req, 200, &out, 0);
}

static int authenticate(const struct http_credentials *c, struct http_principal *ret, void *app)
{
    const char *bearer = c->bearer;
    (void)app;
    unsigned char a[HASH_BYTES], b[HASH_BYTES];
    hash_sha256(bearer, strlen(bearer), a);
    hash_sha256("viewer-token", strlen("viewer-token"), b);
    if (hash_compare(a, b, sizeof(a)) != 0)
        return ERR_UNAUTHORISED;
    *ret = (struct http_principal){.user = "ann", .role = HTTP_ROLE_VIEWER};
    return 0;
}

static void on_term(uv_signal_t *handle, int signum)
{
    struct app *app = handle->data;
    (void)signum;
    uv_close((uv_handle_t *)handle, NULL);
    http_server_close(app->server, 2 * USEC_SEC, NULL, NULL);
}

/* The limits by name; times are in milliseconds. */
static int set_limit(struct http_limits *l, const char *name, int64_t n)
{
    usec_t span = (usec_t)n * USEC_MS;
    if (str_eq(name, "idle"))
        l->idle_usec = span;
    else if (str_eq(name, "body"))
        l->body_usec = span;
    else if (str_eq(name, "heartbeat"))
        l->heartbeat_usec = span;
    else if (str_eq(name, "reply"))
        l->reply_usec = span;
    else if (str_eq(name, "address_connections"))
        l->address_connections = (unsigned)n;
    else if (str_eq(name, "user_streams"))
        l->user_streams = (unsigned)n;
    else if (str_eq(name, "user_polls"))
        l->user_polls = (unsigned)n;
    else if (str_eq(name, "user_bodies"))
        l->user_bodies = (unsigned)n;
    else if (str_eq(name, "bodies_bytes"))
        l->bodies_bytes = (size_t)n;
    else if (str_eq(name, "streams"))
        l->streams = (unsigned)n;
    else if (str_eq(name, "bodies"))
        l->bodies = (unsigned)n;
    else if (str_eq(name, "connections"))
        l->connections = (unsigned)n;
    else
        return -1;
    return 0;
}

static int set_option(struct http_options *opt, char *arg)
{
    char *value = strchr(arg, '=');
    int64_t n = 0;
    if (!value)
        return -1;
    *value++ = 0;
    if (str_eq(arg, "cert"))
        opt->tls_cert = value;
    else if (str_eq(arg, "key"))
        opt->tls_key = value;
    else if (str_eq(arg, "listen"))
        opt->listen = value;
    else
        return str_to_int(value, 0, INT32_MAX, &n, NULL) < 0 ? -1 : set_limit(&opt->limits, arg, n);
    return 0;
}

int main(int argc, char **argv)
{
    static struct app app;
    struct err err;
    struct http_options opt = {.loop = &app.loop,
                               .listen = "127.0.0.1:0",
                               .routes = routes,
                               .n_routes = array_len(routes),
                               .authenticate = authenticate,
                               .mono = clock_mono,
                               .app = &app};
    for (int i = 1; i < argc; i++)
        if (set_option(&opt, argv[i]) < 0) {
            fprintf(stderr, "server: bad argument '%s'\n", argv[i]);
            return 2;
        }
    log_init();
    hash_init();
    if (uv_loop_init(&app.loop) < 0)
        return 1;
    if (http_server_open(&opt, &app.server, &err) < 0) {
        fprintf(stderr, "server: %s\n", err.text);
        return 1;
    }
    app.term.data = &app;
    if (uv_signal_init(&app.loop, &app.term) < 0 ||
        uv_signal_start(&app.term, on_term, SIGTERM) < 0)
        return 1;
    printf("%u\n", http_server_port(app.server));
    fflush(stdout);
    (void)uv_run(&app.loop, UV_RUN_DEFAULT); /* ends when every handle is closed */
    return uv_loop_close(&app.loop) < 0;
}
