/* SPDX-License-Identifier: Apache-2.0 */
/* stats.c - counts and times of requests, by route; see stats.h. One cell per route, and one
 * more for requests that met no route. Labels are patterns of the table, never what a client
 * sent: their number is bounded. */
#include "http/stats.h"

#include <stdlib.h>

static const int statuses[] = {200, 201, 202, 204, 304, 400, 401, 403, 404, 405, 409,
                               413, 414, 415, 422, 429, 431, 500, 503, 504, 0 /* any other */};
static const usec_t bounds[] = {100, 1000, 5000, 25000, 100000, 500000, 2500000, 10000000};

struct cell {
    uint64_t by_status[array_len(statuses)];
    uint64_t by_span[array_len(bounds) + 1];
    uint64_t count;
    usec_t sum;
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
    return st;
}

void stats_free(struct stats *st)
{
    if (!st)
        return;
    free(st->cells);
    free(st);
}

void stats_count(struct stats *st, const struct http_route *route, int status, usec_t span)
{
    struct cell *c = &st->cells[route ? (size_t)(route - st->routes) : st->n];
    size_t i = 0;
    while (statuses[i] && statuses[i] != status)
        i++;
    c->by_status[i]++;
    if (route && route->flags & HTTP_ROUTE_STREAM)
        return;
    for (i = 0; i < array_len(bounds) && span > bounds[i];)
        i++;
    c->by_span[i]++;
    c->count++;
    c->sum += span;
}

static void stats_label(const struct stats *st, size_t i, struct buf *out)
{
    if (i == st->n)
        buf_adds(out, "method=\"\",route=\"\"");
    else
        buf_addf(out, "method=\"%s\",route=\"%s\"", st->routes[i].method, st->routes[i].pattern);
}

static void requests_to_text(const struct stats *st, struct buf *out, const char *prefix)
{
    buf_addf(out, "# HELP %srequests_total Requests by route and status.\n", prefix);
    buf_addf(out, "# TYPE %srequests_total counter\n", prefix);
    for (size_t i = 0; i <= st->n; i++)
        for (size_t k = 0; k < array_len(statuses); k++) {
            if (!st->cells[i].by_status[k])
                continue;
            buf_addf(out, "%srequests_total{", prefix);
            stats_label(st, i, out);
            if (statuses[k])
                buf_addf(out, ",status=\"%d\"", statuses[k]);
            else
                buf_adds(out, ",status=\"other\"");
            buf_addf(out, "} %llu\n", (unsigned long long)st->cells[i].by_status[k]);
        }
}

static void spans_of_cell(const struct stats *st, size_t i, struct buf *out, const char *prefix)
{
    const struct cell *c = &st->cells[i];
    uint64_t sum = 0;
    for (size_t k = 0; k <= array_len(bounds); k++) {
        sum += c->by_span[k];
        buf_addf(out, "%srequest_seconds_bucket{", prefix);
        stats_label(st, i, out);
        if (k < array_len(bounds))
            buf_addf(out, ",le=\"%g\"} %llu\n", (double)bounds[k] / 1e6, (unsigned long long)sum);
        else
            buf_addf(out, ",le=\"+Inf\"} %llu\n", (unsigned long long)sum);
    }
    buf_addf(out, "%srequest_seconds_sum{", prefix);
    stats_label(st, i, out);
    buf_addf(out, "} %.6f\n%srequest_seconds_count{", (double)c->sum / 1e6, prefix);
    stats_label(st, i, out);
    buf_addf(out, "} %llu\n", (unsigned long long)c->count);
}

void stats_to_text(const struct stats *st, struct buf *out, const char *prefix)
{
    requests_to_text(st, out, prefix);
    buf_addf(out, "# HELP %srequest_seconds From the head of a request to its reply.\n", prefix);
    buf_addf(out, "# TYPE %srequest_seconds histogram\n", prefix);
    for (size_t i = 0; i <= st->n; i++)
        if (st->cells[i].count)
            spans_of_cell(st, i, out, prefix);
}
