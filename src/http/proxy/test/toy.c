/* SPDX-License-Identifier: Apache-2.0 */
/* toy.c - a server that passes /p/… on, for tests/daemon/test_proxy.py: it prints its port and ends
 * with SIGTERM. Arguments: up=PORT (twice: the second is tried when the first refuses), cert=,
 * key=, base=PATH there (before up=), and limits by name, times in ms. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/hash.h"
#include "base/log.h"
#include "base/str.h"
#include "base/text.h"
#include "http/expo.h"
#include "http/proxy/proxy.h"

enum { MOST_UP = 1 << 30 };

struct app {
    uv_loop_t loop;
    uv_signal_t term;
    struct http_server *server;
    struct proxy *proxy;
    struct proxy_target up[2];
    size_t n_up;
    const char *base;
    struct proxy_limits limits;
    struct proxy_result last;
    uint64_t sent, seen, done;
    bool may;
};

static void toy_sent(const char *p, size_t n, void *arg)
{
    struct app *app = arg;
    (void)p;
    app->sent += n;
}

static void toy_seen(const char *p, size_t n, void *arg)
{
    struct app *app = arg;
    (void)p;
    app->seen += n;
}

static void toy_done(const struct proxy_result *r, void *arg)
{
    struct app *app = arg;
    app->last = *r;
    app->done++;
}

static void on_pass(struct http_req *req, void *arg)
{
    struct app *app = arg;
    static const struct http_field add[] = {{"Authorization", "token inner"}};
    proxy_pass(app->proxy, req,
               &(struct proxy_pass){.targets = app->up,
                                    .n_targets = app->n_up,
                                    .prefix = "/p/x",
                                    .path = http_req_tail(req),
                                    .add = add,
                                    .n_add = array_len(add),
                                    .flags = PROXY_WEBSOCKET | PROXY_SANDBOX,
                                    .sent = toy_sent,
                                    .seen = toy_seen,
                                    .done = toy_done,
                                    .arg = app});
}

static void on_state(struct http_req *req, void *arg)
{
    struct app *app = arg;
    struct buf out = BUF_INIT(4096);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    jout_int(&j, "sent", (int64_t)app->sent);
    jout_int(&j, "seen", (int64_t)app->seen);
    jout_int(&j, "done", (int64_t)app->done);
    jout_str(&j, "end", proxy_end_to_string(app->last.end));
    jout_int(&j, "status", app->last.status);
    jout_int(&j, "up", (int64_t)app->last.bytes_up);
    jout_int(&j, "down", (int64_t)app->last.bytes_down);
    jout_int(&j, "target", (int64_t)app->last.target);
    jout_bool(&j, "websocket", app->last.is_websocket);
    jout_close(&j, '}');
    http_reply_json(req, 200, &out, 0);
}

static void on_metrics(struct http_req *req, void *arg)
{
    struct app *app = arg;
    struct buf out = BUF_INIT(1 << 20);
    struct expo e = {.out = &out, .prefix = "toy_"};
    http_metrics(app->server, &e);
    proxy_metrics(app->proxy, &e);
    http_reply(req, 200, "text/plain; version=0.0.4", &out, 0);
}

/* POST /forget: the token is not known any more. */
static void on_forget(struct http_req *req, void *arg)
{
    struct app *app = arg;
    app->may = false;
    http_reply(req, 204, NULL, NULL, 0);
}

static void on_hello(struct http_req *req, void *app)
{
    (void)app;
    http_reply(req, 200, "text/plain", NULL, 0);
}

#define PASS(m)                                                                                    \
    {                                                                                              \
        .method = (m), .pattern = "/p/x/*", .least = HTTP_ROLE_VIEWER, .max_body = MOST_UP,        \
        .handle = on_pass, .flags = HTTP_ROUTE_RELAY | HTTP_ROUTE_HIDDEN                           \
    }
static const struct http_route routes[] = {
    PASS("GET"),
    PASS("POST"),
    PASS("PUT"),
    PASS("PATCH"),
    PASS("DELETE"),
    {.method = "GET", .pattern = "/hello", .handle = on_hello},
    {.method = "GET", .pattern = "/state", .handle = on_state},
    {.method = "GET", .pattern = "/metrics", .handle = on_metrics},
    {.method = "POST", .pattern = "/forget", .handle = on_forget},
};

static int authenticate(const struct http_credentials *c, struct http_principal *ret, void *arg)
{
    struct app *app = arg;
    bool is_known = str_eq(c->bearer, "good") || str_eq(c->cookie, "session=good");
    if (!is_known || !app->may)
        return ERR_UNAUTHORISED;
    *ret = (struct http_principal){.user = "ann", .role = HTTP_ROLE_USER};
    return 0;
}

static void on_closed(void *arg)
{
    struct app *app = arg;
    proxy_close(app->proxy);
}

static void on_term(uv_signal_t *handle, int signum)
{
    struct app *app = handle->data;
    (void)signum;
    uv_close((uv_handle_t *)handle, NULL);
    http_server_close(app->server, 2 * USEC_SEC, on_closed, app);
}

static int set_span(struct app *app, struct http_limits *l, const char *name, int64_t ms)
{
    const struct {
        const char *name;
        usec_t *to;
    } spans[] = {
        {"connect", &app->limits.connect_usec},
        {"stall", &app->limits.stall_usec},
        {"answer", &app->limits.answer_usec},
        {"quiet", &app->limits.quiet_usec},
        {"idle", &app->limits.idle_usec},
        {"check", &app->limits.check_usec},
        {"reply", &l->reply_usec},
        {"body", &l->body_usec},
    };
    for (size_t i = 0; i < array_len(spans); i++)
        if (str_eq(spans[i].name, name)) {
            *spans[i].to = (usec_t)ms * USEC_MS;
            return 0;
        }
    return -1;
}

static int set_option(struct app *app, struct http_options *opt, char *arg)
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
    else if (str_eq(arg, "base")) /* before up= */
        app->base = value;
    else if (str_to_int(value, 0, INT32_MAX, &n, NULL) < 0)
        return -1;
    else if (str_eq(arg, "up") && app->n_up < array_len(app->up))
        app->up[app->n_up++] = (struct proxy_target){"127.0.0.1", (unsigned)n, app->base};
    else if (str_eq(arg, "user_relays"))
        opt->limits.user_relays = (unsigned)n;
    else
        return set_span(app, &opt->limits, arg, n);
    return 0;
}

int main(int argc, char **argv)
{
    static struct app app = {.may = true, .base = "/base"};
    struct err err;
    struct http_options opt = {.loop = &app.loop,
                               .listen = "127.0.0.1:0",
                               .routes = routes,
                               .n_routes = array_len(routes),
                               .authenticate = authenticate,
                               .mono = clock_mono,
                               .app = &app};
    for (int i = 1; i < argc; i++)
        if (set_option(&app, &opt, argv[i]) < 0) {
            fprintf(stderr, "toy: bad argument '%s'\n", argv[i]);
            return 2;
        }
    log_init();
    hash_init();
    if (uv_loop_init(&app.loop) < 0)
        return 1;
    if (http_server_open(&opt, &app.server, &err) < 0) {
        fprintf(stderr, "toy: %s\n", err.text);
        return 1;
    }
    app.proxy = proxy_new(
        &(struct proxy_options){.loop = &app.loop, .mono = clock_mono, .limits = app.limits});
    app.term.data = &app;
    if (uv_signal_init(&app.loop, &app.term) < 0 ||
        uv_signal_start(&app.term, on_term, SIGTERM) < 0)
        return 1;
    printf("%u\n", http_server_port(app.server));
    fflush(stdout);
    (void)uv_run(&app.loop, UV_RUN_DEFAULT); /* ends when every handle is closed */
    return uv_loop_close(&app.loop) < 0;
}
