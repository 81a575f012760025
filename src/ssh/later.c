/* SPDX-License-Identifier: Apache-2.0 */
/* later.c - a timer of no time; see later.h. */
#include "ssh/later.h"

#include <stdlib.h>

#include "base/mem.h"

struct later {
    uv_timer_t timer;
    void (*fire)(void *arg);
    void *arg;
};

static void later_on_closed(uv_handle_t *h)
{
    free(h->data);
}

static void later_on_timer(uv_timer_t *timer)
{
    struct later *l = timer->data;
    uv_close((uv_handle_t *)timer, later_on_closed);
    l->fire(l->arg);
}

struct later *later_new(uv_loop_t *loop, void (*fire)(void *arg), void *arg)
{
    struct later *l = xcalloc(1, sizeof(*l));
    l->fire = fire;
    l->arg = arg;
    (void)uv_timer_init(loop, &l->timer); /* neither can fail */
    l->timer.data = l;
    (void)uv_timer_start(&l->timer, later_on_timer, 0, 0);
    return l;
}

void later_free(struct later *l)
{
    if (l)
        uv_close((uv_handle_t *)&l->timer, later_on_closed);
}
