/* SPDX-License-Identifier: Apache-2.0 */
/* stats.h - how many requests of each route ended how, and how long they took. */
#pragma once
#include "base/buf.h"
#include "base/clock.h"
#include "http/http.h"

struct stats;

/* Routes are borrowed. */
struct stats *stats_new(const struct http_route *routes, size_t n);
void stats_free(struct stats *st); /* NULL is fine */
/* route NULL: the request met none. span: from head to reply; not counted for streams. */
void stats_count(struct stats *st, const struct http_route *route, int status, usec_t span);
void stats_to_text(const struct stats *st, struct buf *out, const char *prefix);
