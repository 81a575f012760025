/* SPDX-License-Identifier: Apache-2.0 */
/* park.c - requests that wait for something to happen, and no longer than their client said.
 * One timer serves all: the list is ordered by deadline, the timer stands at its first. */
#include "http/state.h"

void park_arm(struct http_server *s)
{
    if (!link_is_in(&s->parked)) {
        uv_timer_stop(&s->park);
        return;
    }
    struct http_req *first = container_of(s->parked.next, struct http_req, parked);
    usec_t now = s->opt.mono();
    usec_t left = first->park_until > now ? first->park_until - now : 0;
    /* Fails only on a closing handle, and then nothing is parked. */
    (void)uv_timer_start(&s->park, park_on_timer, left / USEC_MS + 1, 0);
}

static void fire(struct http_req *req)
{
    http_timeout_f cb = req->on_timeout;
    link_remove(&req->parked);
    req->on_timeout = NULL;
    cb(req, req->on_timeout_arg);
}

void park_on_timer(uv_timer_t *timer)
{
    struct http_server *s = timer->data;
    usec_t now = s->opt.mono();
    while (link_is_in(&s->parked)) {
        struct http_req *req = container_of(s->parked.next, struct http_req, parked);
        if (req->park_until > now)
            break;
        fire(req);
    }
    park_arm(s);
}

void park_fire_all(struct http_server *s)
{
    while (link_is_in(&s->parked))
        fire(container_of(s->parked.next, struct http_req, parked));
    park_arm(s);
}

usec_t http_req_wait(const struct http_req *req)
{
    const char *text = http_req_query(req, "wait");
    usec_t span;
    if (!text || span_from_string(text, &span, NULL) < 0)
        return 0; /* the form was checked before the handler was called */
    usec_t max = (usec_t)HTTP_WAIT_MAX_SEC * USEC_SEC;
    return span < max ? span : max;
}

void http_req_park(struct http_req *req, usec_t span, http_timeout_f cb, void *arg)
{
    struct http_server *s = req->conn->server;
    req->on_timeout = cb;
    req->on_timeout_arg = arg;
    req->park_until = s->opt.mono() + (s->closing ? 0 : span);
    link_remove(&req->parked);
    struct link *at = s->parked.prev;
    while (at != &s->parked &&
           container_of(at, struct http_req, parked)->park_until > req->park_until)
        at = at->prev;
    link_add_after(at, &req->parked);
    if (s->parked.next == &req->parked)
        park_arm(s);
}
