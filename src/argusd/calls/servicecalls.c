/* SPDX-License-Identifier: Apache-2.0 */
/* servicecalls.c - requests to services: judged, held to their limits, passed on, counted.
 *
 * The service names the doors (Ray Serve's proxies on machines that argusd leased); the second one
 * is tried where the first refuses. A request that went through a door is begun and ended with the
 * service exactly once, whatever becomes of it. */
#include <stdlib.h>
#include <string.h>

#include "argusd/api/routes.h"
#include "argusd/calls/callrules.h"
#include "argusd/kit/api.h"
#include "argusd/services/service_target.h"
#include "base/text.h"
#include "http/proxy/proxy.h"

enum { CALL_BODY_MAX = 1 << 30 /* of any service; each has its own below it */ };

/* One request on its way. */
struct service_call {
    struct api *a;
    struct service_target target;
    int door; /* that it was begun with; -1: none */
    char user[HTTP_USER_MAX], method[16], path[200];
    struct call_tokens *tokens; /* NULL: nobody counts */
};

static void call_on_tried(size_t target, bool accepted, void *arg)
{
    struct service_call *c = arg;
    struct serving *sv = c->a->serving;
    const struct service_door *d = &c->target.doors[target];
    if (!accepted) {
        service_door_failed(sv, &c->target, d);
        return;
    }
    if (c->door >= 0) { /* it broke before a byte of an answer came, and goes again */
        const struct service_counted none = {.tokens_in = -1, .tokens_out = -1};
        service_end(sv, &c->target, &c->target.doors[c->door], &none);
    }
    c->door = (int)target;
    service_begin(sv, &c->target, d);
}

static void call_on_sent(const char *p, size_t n, void *arg)
{
    struct service_call *c = arg;
    promptcount_add(&c->tokens->asked, p, n);
}

static void call_on_seen(const char *p, size_t n, void *arg)
{
    struct service_call *c = arg;
    tokencount_add(&c->tokens->answered, p, n);
}

static void call_on_done(const struct proxy_result *r, void *arg)
{
    struct service_call *c = arg;
    struct service_counted k = {.status = r->end == PROXY_LEFT ? 499 : r->status,
                                .took = r->whole_usec,
                                .first = r->first_usec,
                                .bytes_in = r->bytes_up,
                                .bytes_out = r->bytes_down,
                                .refused = r->end == PROXY_REFUSED,
                                .user = c->user,
                                .method = c->method,
                                .path = c->path};
    call_take_tokens(&k, c->tokens);
    service_end(c->a->serving, &c->target, c->door >= 0 ? &c->target.doors[c->door] : NULL, &k);
    call_write_down(c->a, &c->target, &k, proxy_end_to_string(r->end));
    free(c->tokens);
    free(c);
}

static void call_pass(struct http_req *req, struct service_call *c)
{
    const struct service_target *t = &c->target;
    struct proxy_target doors[SERVICE_DOORS];
    char prefix[SERVICE_NAME_MAX + 32];
    const struct http_field add[] = {{t->key_header, t->key}, {"X-Argus-User", c->user}};
    for (int i = 0; i < t->n_doors; i++)
        doors[i] = (struct proxy_target){t->doors[i].address, (unsigned)t->doors[i].port,
                                         t->doors[i].prefix};
    text_printf(prefix, "/v1/services/%s", t->service);
    proxy_pass(c->a->proxy, req,
               &(struct proxy_pass){.targets = doors,
                                    .n_targets = (size_t)t->n_doors,
                                    .prefix = prefix,
                                    .path = http_req_tail(req),
                                    .add = add,
                                    .n_add = array_len(add),
                                    .flags = PROXY_SANDBOX | PROXY_WEBSOCKET |
                                             (c->tokens ? PROXY_PLAIN : 0),
                                    .patience = t->timeout,
                                    .max_body = t->max_body,
                                    .tried = call_on_tried,
                                    .sent = c->tokens ? call_on_sent : NULL,
                                    .seen = c->tokens ? call_on_seen : NULL,
                                    .done = call_on_done,
                                    .arg = c});
}

static void call_service(struct http_req *req, void *app)
{
    struct api *a = app;
    struct service_target target;
    struct err err = {0};
    int64_t version = 0;
    int r = service_version_from_text(http_req_header(req, SERVICE_VERSION_HEADER), &version, &err);
    if (r == 0)
        r = service_target(a->serving, http_req_param(req, "name"), version,
                           http_req_principal(req), &target, &err);
    if (r != 0) {
        service_refuse(a->serving, req, version, &err);
        return;
    }
    if (call_refuse_busy(req, a, &target))
        return;
    struct service_call *c = xcalloc(1, sizeof(*c));
    *c = (struct service_call){
        .a = a, .target = target, .door = -1, .tokens = call_tokens_new(&target)};
    text_copy(c->user, http_req_principal(req)->user);
    text_copy(c->method, http_req_method(req));
    text_copy(c->path, http_req_tail(req));
    call_pass(req, c);
}

/* ---- routes ---- */

/* What answers there is the application's own: not in openapi.json, whose schemas are ours. */
#define CALL(m)                                                                                    \
    {                                                                                              \
        .method = (m), .pattern = "/v1/services/{name}/*", .least = HTTP_ROLE_VIEWER,              \
        .max_body = CALL_BODY_MAX, .handle = call_service,                                         \
        .flags = HTTP_ROUTE_RELAY | HTTP_ROUTE_STREAM | HTTP_ROUTE_HIDDEN | HTTP_ROUTE_KEYS,       \
        .summary = "ask a service"                                                                 \
    }
static const struct http_route rows[] = {
    CALL("GET"), CALL("POST"), CALL("PUT"), CALL("PATCH"), CALL("DELETE"),
};
const struct api_part part_servicecalls = {rows, array_len(rows), NULL, 0};
