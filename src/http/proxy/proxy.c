/* SPDX-License-Identifier: Apache-2.0 */
/* proxy.c - the proxy as a whole: its exchanges, the tick that ends those that make no progress,
 * figures; see proxy.h. The tick runs only while something is passed on. */
#include "http/proxy/proxy.h"

#include <assert.h>
#include <stdlib.h>

#include "http/expo.h"
#include "http/proxy/exchange.h"

static const char *const end_words[] = {
    [PROXY_WHOLE] = "whole",     [PROXY_LEFT] = "left",
    [PROXY_REFUSED] = "refused", [PROXY_UNREACHABLE] = "unreachable",
    [PROXY_BROKEN] = "broken",   [PROXY_SLOW] = "slow",
    [PROXY_ENDED] = "ended",
};
static_assert(array_len(end_words) == PROXY_ENDED + 1, "every end has a word");

const char *proxy_end_to_string(enum proxy_end end)
{
    return end_words[end];
}

static void proxy_fill_limits(struct proxy_limits *l)
{
    const struct proxy_limits dflt = {.connect_usec = 5 * USEC_SEC,
                                      .stall_usec = 60 * USEC_SEC,
                                      .answer_usec = 600 * USEC_SEC,
                                      .quiet_usec = 600 * USEC_SEC,
                                      .idle_usec = 3600 * USEC_SEC,
                                      .check_usec = 60 * USEC_SEC};
    l->connect_usec = l->connect_usec ? l->connect_usec : dflt.connect_usec;
    l->stall_usec = l->stall_usec ? l->stall_usec : dflt.stall_usec;
    l->answer_usec = l->answer_usec ? l->answer_usec : dflt.answer_usec;
    l->quiet_usec = l->quiet_usec ? l->quiet_usec : dflt.quiet_usec;
    l->idle_usec = l->idle_usec ? l->idle_usec : dflt.idle_usec;
    l->check_usec = l->check_usec ? l->check_usec : dflt.check_usec;
}

static void proxy_on_tick(uv_timer_t *timer)
{
    struct proxy *p = timer->data;
    usec_t now = p->opt.mono();
    struct exchange *next;
    for (struct exchange *x = p->open.first; x; x = next) {
        next = x->next;
        exchange_check(x, now); /* ends itself at most */
    }
    if (!p->open.first)
        uv_timer_stop(&p->tick);
}

void proxy_add(struct proxy *p, struct exchange *x)
{
    enum { TICKS = 4, LEAST_MS = 10, MOST_MS = 1000 };
    const usec_t spans[] = {p->limits.connect_usec, p->limits.stall_usec, p->limits.answer_usec,
                            p->limits.quiet_usec,   p->limits.idle_usec,  p->limits.check_usec};
    usec_t least = spans[0];
    for (size_t i = 1; i < array_len(spans); i++)
        least = spans[i] < least ? spans[i] : least;
    uint64_t ms = least / USEC_MS / TICKS;
    ms = ms < LEAST_MS ? LEAST_MS : ms > MOST_MS ? MOST_MS : ms;
    if (!p->open.first)
        (void)uv_timer_start(&p->tick, proxy_on_tick, ms, ms); /* cannot fail here */
    x->next = p->open.first;
    if (x->next)
        x->next->prev = x;
    p->open.first = x;
    p->open.n++;
}

void proxy_remove(struct proxy *p, struct exchange *x)
{
    if (x->prev)
        x->prev->next = x->next;
    else
        p->open.first = x->next;
    if (x->next)
        x->next->prev = x->prev;
    x->prev = x->next = NULL;
    p->open.n--;
    p->ends[x->result.end]++;
    p->bytes_up += x->result.bytes_up;
    p->bytes_down += x->result.bytes_down;
}

struct proxy *proxy_new(const struct proxy_options *opt)
{
    struct proxy *p = xcalloc(1, sizeof(*p));
    p->opt = *opt;
    p->limits = opt->limits;
    proxy_fill_limits(&p->limits);
    (void)uv_timer_init(opt->loop, &p->tick); /* never fails */
    p->tick.data = p;
    return p;
}

void proxy_free_if_closed(struct proxy *p)
{
    if (p->is_closing && p->is_tick_closed && !p->n_closing)
        free(p);
}

static void proxy_on_tick_closed(uv_handle_t *handle)
{
    struct proxy *p = handle->data;
    p->is_tick_closed = true;
    proxy_free_if_closed(p);
}

void proxy_close(struct proxy *p)
{
    if (!p)
        return;
    assert(!p->open.first);
    p->is_closing = true;
    uv_close((uv_handle_t *)&p->tick, proxy_on_tick_closed);
}

void proxy_metrics(const struct proxy *p, struct expo *e)
{
    expo_one(e, EXPO_GAUGE, "proxy_open", "Requests that are being passed on, WebSockets too.",
             (double)p->open.n);
    expo_one(e, EXPO_GAUGE, "proxy_websockets", "Open WebSockets.", (double)p->n_tunnels);
    expo_family(e, EXPO_COUNTER, "proxy_ended_total",
                "Requests that were passed on, by their end.");
    for (size_t i = 0; i < array_len(end_words); i++)
        expo_put(e, (double)p->ends[i], &(struct expo_label){"end", end_words[i]}, 1);
    expo_one(e, EXPO_COUNTER, "proxy_up_bytes_total", "Bytes to servers behind, without heads.",
             (double)p->bytes_up);
    expo_one(e, EXPO_COUNTER, "proxy_down_bytes_total", "Bytes from servers behind, without heads.",
             (double)p->bytes_down);
}
