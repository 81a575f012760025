/* SPDX-License-Identifier: Apache-2.0 */
/* knock.c - see knock.h. The memory of a knock goes when libuv is done with its handle. */
#include "argusd/machines/knock.h"

#include <stdlib.h>

#include "base/mem.h"

struct knock {
    uv_tcp_t tcp;
    uv_connect_t req;
    knock_f cb; /* NULL: nobody wants to know any more */
    void *arg;
    usec_t began;
};

static void knock_on_closed(uv_handle_t *h)
{
    free(container_of(h, struct knock, tcp));
}

static void knock_close(struct knock *k)
{
    k->cb = NULL;
    uv_close((uv_handle_t *)&k->tcp, knock_on_closed);
}

static void knock_on_connected(uv_connect_t *req, int status)
{
    struct knock *k = container_of(req, struct knock, req);
    knock_f cb = k->cb;
    if (!cb)
        return; /* closed before */
    knock_close(k);
    cb(status, k->arg);
}

int knock_begin(uv_loop_t *loop,
                const char *address,
                int port,
                knock_f cb,
                void *arg,
                struct knock **ret)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } at;
    if (uv_ip4_addr(address, port, &at.v4) < 0 && uv_ip6_addr(address, port, &at.v6) < 0)
        return KNOCK_NO_ADDRESS;
    struct knock *k = xcalloc(1, sizeof(*k));
    *k = (struct knock){.cb = cb, .arg = arg, .began = clock_mono()};
    (void)uv_tcp_init(loop, &k->tcp); /* never fails */
    int r = uv_tcp_connect(&k->req, &k->tcp, &at.any, knock_on_connected);
    if (r < 0)
        knock_close(k);
    else
        *ret = k;
    return r;
}

bool knock_is_late(const struct knock *k, usec_t now, usec_t limit)
{
    return now - k->began > limit;
}

void knock_end(struct knock **k)
{
    if (*k)
        knock_close(*k);
    *k = NULL;
}
