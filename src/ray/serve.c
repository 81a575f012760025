/* SPDX-License-Identifier: Apache-2.0 */
/* serve.c - the two calls of Ray Serve's REST API that there are for us: its state, and its list.
 */
#include "base/message.h"
#include "ray/call.h"

#define SERVE_PATH "/api/serve/applications/"

static int serve_error(const struct wire_reply *reply, const char *what, struct err *err)
{
    if (reply->status == 501)
        return message_refuse(err, ERR_UNAVAILABLE, "ray_no_serve", MESSAGE_NO_ARGS);
    return reply_error(reply, what, err);
}

static void finish_get_serve(struct ray_call *call, const struct wire_reply *reply)
{
    struct err err = {0};
    if (reply->status == 200) {
        call->cb.serve(reply->body, reply->len, NULL, call->arg);
        return;
    }
    (void)serve_error(reply, "asking ray for its services", &err); /* only fills err */
    call->cb.serve(NULL, 0, &err, call->arg);
}

struct ray_call *ray_get_serve(struct ray_client *rc, ray_serve_f cb, void *arg)
{
    struct ray_call *call = call_new(rc, finish_get_serve, arg);
    struct wire_order order = {
        .method = "GET", .timeout = rc->read_timeout, .max_bytes = rc->list_reply_max_bytes};
    call->cb.serve = cb;
    call_send(call, SERVE_PATH, &order);
    return call;
}

static void finish_put_serve(struct ray_call *call, const struct wire_reply *reply)
{
    struct err err = {0};
    if (reply->status == 200) {
        call->cb.serve("", 0, NULL, call->arg);
        return;
    }
    (void)serve_error(reply, "giving ray its services", &err); /* only fills err */
    call->cb.serve(NULL, 0, &err, call->arg);
}

struct ray_call *ray_put_serve(struct ray_client *rc, const char *list, ray_serve_f cb, void *arg)
{
    struct ray_call *call = call_new(rc, finish_put_serve, arg);
    struct wire_order order = {.method = "PUT",
                               .body = list,
                               .timeout = rc->submit_timeout,
                               .max_bytes = rc->reply_max_bytes};
    call->cb.serve = cb;
    call_send(call, SERVE_PATH, &order);
    return call;
}
