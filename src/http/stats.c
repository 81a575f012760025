/* SPDX-License-Identifier: Apache-2.0 */
/* stats.c - counts and times of requests, by route; see stats.h. One cell per route, and one
 * more for requests that met no route. Labels are patterns of the table, never what a client
 * sent: their number is bounded. */
#include "http/stats.h"

#include <stdlib.h>

#include "base/text.h"

static const int statuses[] = {200, 201, 202, 204, 304, 400, 401, 403, 404, 405, 409,
                               413, 414, 415, 422, 429, 431, 500, 503, 504, 0 /* any other */};
static const usec_t bounds[] = {1000,   5000,   10000,   25000,   50000,   100000,
                                200000, 500000, 1000000, 2500000, 10000000};

struct cell {
    uint64_t by_status[array_len(statuses)];
    struct expo_spans spans;
};

struct stats {
    const struct http_route *routes;
    size_t n;
    struct cell *cells; /* n + 1 */
};

struct stats *stats_new(const struct http_route *routes, size_t n)
{
    struct stats *st = xcalloc(1, sizeof(*st));
    *st = (struct stats){.routes = routes, .n = n, .cells = xcalloc(n + 1, sizeof(struct cell))};
    for (size_t i = 0; i <= n; i++)
        st->cells[i].spans = (struct expo_spans){.bounds = bounds, .n = array_len(bounds)};
    return st;
}

void stats_free(struct stats *st)
{
    if (!st)
        return;
    free(st->cells);
    free(st);
}

void stats_count(struct stats *st, const struct stats_request *r)
{
    struct cell *c = &st->cells[r->route ? (size_t)(r->route - st->routes) : st->n];
    size_t i = 0;
    while (statuses[i] && statuses[i] != r->status)
        i++;
    c->by_status[i]++;
    if (!r->waited && !(r->route && r->route->flags & HTTP_ROUTE_STREAM))
        expo_spans_add(&c->spans, r->span);
}

/* The first two labels of each sample. */
static void stats_label(const struct stats *st, size_t i, struct expo_label *ret)
{
    ret[0] = (struct expo_label){"method", i == st->n ? "other" : st->routes[i].method};
    ret[1] = (struct expo_label){"route", i == st->n ? "other" : st->routes[i].pattern};
}

static void stats_put_statuses(const struct stats *st, struct expo *e)
{
    struct expo_label labels[3] = {{0}};
    char status[16];
    expo_family(e, EXPO_COUNTER, "http_requests_total", "Requests by route and status.");
    for (size_t i = 0; i <= st->n; i++)
        for (size_t k = 0; k < array_len(statuses); k++) {
            if (!st->cells[i].by_status[k])
                continue;
            stats_label(st, i, labels);
            text_printf(status, "%d", statuses[k]);
            labels[2] = (struct expo_label){"status", statuses[k] ? status : "other"};
            expo_put(e, (double)st->cells[i].by_status[k], labels, array_len(labels));
        }
}

void stats_put(const struct stats *st, struct expo *e)
{
    struct expo_label labels[2] = {{0}};
    stats_put_statuses(st, e);
    expo_family(e, EXPO_HISTOGRAM, "http_request_duration_seconds",
                "From the head of a request to its reply, without streams and waits for news.");
    for (size_t i = 0; i <= st->n; i++)
        if (st->cells[i].spans.count) {
            stats_label(st, i, labels);
            expo_spans_put(e, &st->cells[i].spans, labels, array_len(labels));
        }
}
