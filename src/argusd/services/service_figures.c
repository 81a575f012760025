/* SPDX-License-Identifier: Apache-2.0 */
/* service_figures.c - see service_figures.h. Pure: it reads the service's window. A percentile is
 * the upper bound of the span of milliseconds, a power of two, in which it lies. */
#include "argusd/services/service_figures.h"

#include <math.h>
#include <stdlib.h>

#include "argusd/services/serving.h"

enum { PAGE_S = SERVICE_WINDOW * SERVICE_WINDOW_S };

#define S(key, ftype, ...) FIELD_AT(service_span, #key, ftype, key, __VA_ARGS__)
static const struct field span_rows[] = {
    S(at, FIELD_TIME, .doc = "when its ten seconds began"),
    S(requests, FIELD_INT, .doc = "requests that ended in this span"),
    S(errors, FIELD_INT, .doc = "requests that had no answer, or one of 500 and above"),
    S(refused, FIELD_INT, .doc = "requests that limits refused"),
    S(tokens_in, FIELD_INT),
    S(tokens_out, FIELD_INT),
    S(p50_ms, FIELD_REAL, .flags = FIELD_MAYBE),
    S(p95_ms, FIELD_REAL, .flags = FIELD_MAYBE),
};
const struct field_table service_span_table = FIELD_TABLE("ServiceSpan", span_rows, service_span);

enum { EVERYWHERE = FIELD_SHOWN | FIELD_LISTED };
#define P(key, ftype, ...) FIELD_AT(service_figures, #key, ftype, key, __VA_ARGS__)
static const struct field figure_rows[] = {
    P(requests_per_minute,
      FIELD_REAL,
      .flags = EVERYWHERE,
      .doc = "this and all that follow are of the last five minutes"),
    P(errors_per_minute, FIELD_REAL, .flags = EVERYWHERE),
    P(refused_per_minute, FIELD_REAL, .flags = FIELD_SHOWN, .doc = "requests that limits refused"),
    P(tokens_per_second, FIELD_REAL, .flags = EVERYWHERE, .doc = "tokens made in a second"),
    P(p50_ms,
      FIELD_REAL,
      .flags = EVERYWHERE | FIELD_MAYBE,
      .doc = "time of a whole request, at most"),
    P(p95_ms, FIELD_REAL, .flags = EVERYWHERE | FIELD_MAYBE),
    P(p99_ms, FIELD_REAL, .flags = FIELD_SHOWN | FIELD_MAYBE),
    P(spans,
      FIELD_LIST,
      .of = &service_span_table,
      .flags = FIELD_SHOWN | FIELD_ALWAYS,
      .doc = "spans of ten seconds each, the oldest first"),
};
const struct field_table service_figures_table =
    FIELD_TABLE("ServiceFigures", figure_rows, service_figures);

/* The upper bound of the span in which so many of the requests end. */
static double figures_quantile(const struct service_minute *m, double share)
{
    int64_t sum = 0;
    for (int i = 0; m->requests && i < SERVICE_SPANS; i++) {
        sum += m->took[i];
        if ((double)sum >= share * (double)m->requests)
            return (double)((int64_t)1 << i);
    }
    return NAN;
}

static void figures_add(struct service_minute *all, const struct service_minute *m)
{
    all->requests += m->requests;
    all->errors += m->errors;
    all->refused += m->refused;
    all->tokens_out += m->tokens_out;
    for (int k = 0; k < SERVICE_SPANS; k++)
        all->took[k] += m->took[k];
}

void service_figures_fill(const struct served *s,
                          usec_t mono,
                          usec_t wall,
                          struct service_figures *ret)
{
    const int64_t now = (int64_t)(mono / USEC_SEC) / SERVICE_WINDOW_S;
    const usec_t begun = (usec_t)(now * SERVICE_WINDOW_S) * USEC_SEC; /* the span under way */
    struct service_minute all = {0};
    struct service_span *spans = xcalloc(SERVICE_WINDOW, sizeof(*spans));
    for (int i = 0; i < SERVICE_WINDOW; i++) {
        const int64_t at = now - SERVICE_WINDOW + 1 + i;
        const struct service_minute *m = &s->window[at >= 0 ? at % SERVICE_WINDOW : 0], none = {0};
        m = at >= 0 && m->at == at ? m : &none;
        figures_add(&all, m);
        spans[i] = (struct service_span){.at = wall - (mono - begun) -
                                               (usec_t)((now - at) * SERVICE_WINDOW_S) * USEC_SEC,
                                         .requests = m->requests,
                                         .errors = m->errors,
                                         .refused = m->refused,
                                         .tokens_in = m->tokens_in,
                                         .tokens_out = m->tokens_out,
                                         .p50_ms = figures_quantile(m, 0.5),
                                         .p95_ms = figures_quantile(m, 0.95)};
    }
    *ret = (struct service_figures){
        .requests_per_minute = (double)all.requests * 60 / PAGE_S,
        .errors_per_minute = (double)all.errors * 60 / PAGE_S,
        .refused_per_minute = (double)all.refused * 60 / PAGE_S,
        .tokens_per_second = (double)all.tokens_out / PAGE_S,
        .p50_ms = figures_quantile(&all, 0.5),
        .p95_ms = figures_quantile(&all, 0.95),
        .p99_ms = figures_quantile(&all, 0.99),
        .spans = {.v = spans, .n = SERVICE_WINDOW - 1},
    };
}
