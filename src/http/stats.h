/* SPDX-License-Identifier: Apache-2.0 */
/* stats.h - how many requests of each route ended how, and how long they took. */
#pragma once
#include "base/buf.h"
#include "base/clock.h"
#include "http/expo.h"
#include "http/http.h"

struct stats;

/* Routes are borrowed. */
struct stats *stats_new(const struct http_route *routes, size_t n);
void stats_free(struct stats *st); /* NULL is fine */
/* route NULL: the request met none. span: from its head to its reply; not timed are streams and
 * what waited for news, which take as long as their client asked for. */
struct stats_request {
    const struct http_route *route;
    int status;
    bool waited;
    usec_t span;
};
void stats_count(struct stats *st, const struct stats_request *r);
void stats_put(const struct stats *st, struct expo *e);
