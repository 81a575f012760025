/* SPDX-License-Identifier: Apache-2.0 */
/* service_calls.c - a ring of requests and one of failed requests; see service_calls.h. Pure. */
#include "argusd/services/service_calls.h"

#include "base/text.h"

bool service_call_failed(int status)
{
    return status == 0 || status >= 500;
}

static void calls_put(struct service_call_row ring[static SERVICE_CALLS_KEPT],
                      uint64_t *n,
                      const struct service_call_row *row)
{
    ring[(*n)++ % SERVICE_CALLS_KEPT] = *row;
}

void service_calls_add(struct service_calls *k,
                       const struct service_target *t,
                       const struct service_counted *c,
                       usec_t now)
{
    struct service_call_row row = {.at = now,
                                   .version = t->version,
                                   .status = c->status,
                                   .took_ms = (int64_t)(c->took / USEC_MS),
                                   .first_ms = (int64_t)(c->first / USEC_MS),
                                   .bytes_in = (int64_t)c->bytes_in,
                                   .bytes_out = (int64_t)c->bytes_out,
                                   .tokens_in = c->tokens_in,
                                   .tokens_out = c->tokens_out,
                                   .tokens_estimated = c->is_estimated};
    text_copy(row.user, c->user);
    text_copy(row.key, t->by_key);
    text_copy(row.method, c->method);
    text_copy(row.path, c->path);
    calls_put(k->all, &k->n_all, &row);
    if (service_call_failed(c->status))
        calls_put(k->failed, &k->n_failed, &row);
}

size_t service_calls_list(const struct service_calls *k,
                          bool failed,
                          const struct service_call_row *ret[static SERVICE_CALLS_KEPT])
{
    const struct service_call_row *ring = failed ? k->failed : k->all;
    uint64_t n = failed ? k->n_failed : k->n_all;
    size_t there = n < SERVICE_CALLS_KEPT ? (size_t)n : SERVICE_CALLS_KEPT;
    for (size_t i = 0; i < there; i++)
        ret[i] = &ring[(n - 1 - i) % SERVICE_CALLS_KEPT];
    return there;
}
