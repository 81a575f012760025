/* SPDX-License-Identifier: Apache-2.0 */
/* service_figures.h - what was asked of a service in the last five minutes: rates, percentiles, and
 * the same in spans of ten seconds, for a curve. */
#pragma once
#include "base/field.h"

struct served;

/* One span of SERVICE_WINDOW_S seconds. */
struct service_span {
    usec_t at; /* when it began, wall time */
    int64_t requests, errors, refused, tokens_in, tokens_out;
    double p50_ms, p95_ms;
};
extern const struct field_table service_span_table;

/* Members of a service's page. NaN: there was no request. */
struct service_figures {
    double requests_per_minute, errors_per_minute, refused_per_minute, tokens_per_second;
    double p50_ms, p95_ms, p99_ms;
    struct field_list
        spans; /* struct service_span: the oldest first, the one under way is left out */
};
extern const struct field_table service_figures_table;

/* Releases: free(ret->spans.v). */
void service_figures_fill(const struct served *s,
                          usec_t mono,
                          usec_t wall,
                          struct service_figures *ret);
