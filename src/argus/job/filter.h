/* SPDX-License-Identifier: Apache-2.0 */
/* filter.h - "user=alice" filters of jobs as a query of the API. */
#pragma once
#include <stdbool.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/strv.h"

/* Append "?user=alice&…"; without a filter of states the live ones are asked for. ERR_USAGE for
 * what is no filter. */
must_check int filter_to_query(const struct strv *filters, struct buf *query, struct err *err);
/* One of them has this key. */
bool filter_has(const struct strv *filters, const char *key);
