/* SPDX-License-Identifier: Apache-2.0 */
/* service_metrics.c - see service_metrics.h. A request that was tried twice counts once, with what
 * its client was told. */
#include "argusd/services/service_metrics.h"

#include <stdlib.h>

#include "argusd/services/serving.h"
#include "http/expo.h"

enum total_code { TOTAL_NONE, TOTAL_LEFT, TOTAL_REFUSED, TOTAL_1XX, TOTAL_CODES = TOTAL_1XX + 5 };
static const char *const code_words[TOTAL_CODES] = {"none", "left", "refused", "1xx",
                                                    "2xx",  "3xx",  "4xx",     "5xx"};
static const usec_t took_bounds[] = {50 * USEC_MS,  200 * USEC_MS, 1 * USEC_SEC, 5 * USEC_SEC,
                                     20 * USEC_SEC, 60 * USEC_SEC, 5 * USEC_MIN};

struct service_totals {
    int64_t requests[TOTAL_CODES], tokens_in, tokens_out;
    struct expo_spans took; /* of those that had an answer */
};

static enum total_code total_code_of(const struct service_counted *c)
{
    if (c->refused)
        return TOTAL_REFUSED;
    if (c->status == 499)
        return TOTAL_LEFT;
    return c->status >= 100 && c->status < 600 ? TOTAL_1XX + (unsigned)c->status / 100 - 1
                                               : TOTAL_NONE;
}

void service_totals_add(struct service_totals **t, const struct service_counted *c)
{
    if (!c->path && !c->refused)
        return; /* it goes on through another door */
    if (!*t) {
        *t = xcalloc(1, sizeof(**t));
        (*t)->took = (struct expo_spans){.bounds = took_bounds, .n = array_len(took_bounds)};
    }
    const enum total_code code = total_code_of(c);
    (*t)->requests[code]++;
    (*t)->tokens_in += c->tokens_in > 0 ? c->tokens_in : 0;
    (*t)->tokens_out += c->tokens_out > 0 ? c->tokens_out : 0;
    if (code >= TOTAL_1XX)
        expo_spans_add(&(*t)->took, c->took);
}

/* ---- the page ---- */

struct metrics_walk {
    const struct serving *sv;
    const struct access_who *who;
    size_t pos;
};

/* One service after the other that this reader sees; NULL behind the last. */
static const struct served *metrics_next_service(struct metrics_walk *w)
{
    const struct served *s;
    while ((s = serving_next(w->sv, &w->pos)))
        if (!s->removed && service_is_seen(s, w->who))
            break;
    return s;
}

static void put_service_replicas(struct metrics_walk w, struct expo *e)
{
    const struct served *s;
    expo_family(e, EXPO_GAUGE, "service_replicas",
                "Replicas of the version that has the traffic, or is to get it: those that are "
                "wanted, and those of them that answer.");
    while ((s = metrics_next_service(&w))) {
        struct serve_version_seen seen = {0};
        const struct service_version *v =
            service_find_version(s, s->current ? s->current : s->wanted);
        if (v)
            service_version_see(v, &seen);
        EXPO_PUT(e, (double)seen.wanted, {"service", s->name}, {"state", "wanted"});
        EXPO_PUT(e, (double)seen.ready, {"service", s->name}, {"state", "ready"});
    }
}

static void put_service_requests(struct metrics_walk w, struct expo *e)
{
    const struct served *s;
    expo_family(e, EXPO_COUNTER, "service_requests_total",
                "Requests to a service by the class of their status; none: no answer came, left: "
                "the client did not wait for it, refused: by argusd, for a limit.");
    while ((s = metrics_next_service(&w)))
        for (size_t i = 0; s->totals && i < TOTAL_CODES; i++)
            EXPO_PUT(e, (double)s->totals->requests[i], {"service", s->name},
                     {"code", code_words[i]});
}

static void put_service_spans(struct metrics_walk w, struct expo *e)
{
    const struct served *s;
    expo_family(e, EXPO_HISTOGRAM, "service_request_seconds",
                "Time of a whole request that had an answer.");
    while ((s = metrics_next_service(&w)))
        if (s->totals)
            expo_spans_put(e, &s->totals->took, &(struct expo_label){"service", s->name}, 1);
}

static void put_service_tokens(struct metrics_walk w, struct expo *e)
{
    const struct served *s;
    expo_family(e, EXPO_COUNTER, "service_tokens_total",
                "Tokens of prompts and of answers, estimated where an answer does not say.");
    while ((s = metrics_next_service(&w))) {
        if (!s->totals)
            continue;
        EXPO_PUT(e, (double)s->totals->tokens_in, {"service", s->name}, {"kind", "prompt"});
        EXPO_PUT(e, (double)s->totals->tokens_out, {"service", s->name}, {"kind", "answer"});
    }
}

void serving_put_metrics(const struct serving *sv, const struct access_who *who, struct expo *e)
{
    const struct metrics_walk all = {.sv = sv, .who = who};
    put_service_replicas(all, e);
    put_service_requests(all, e);
    put_service_spans(all, e);
    put_service_tokens(all, e);
}
