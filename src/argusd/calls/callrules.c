/* SPDX-License-Identifier: Apache-2.0 */
/* callrules.c - see callrules.h. A stream without `usage` costs its sender something, too: else
 * whoever leaves `stream_options` out had no limit. */
#include "argusd/calls/callrules.h"

#include "argusd/calls/callbook.h"
#include "argusd/kit/api.h"
#include "base/digest/hash.h"
#include "base/log.h"
#include "base/message.h"
#include "base/text.h"

struct call_tokens *call_tokens_new(const struct service_target *t)
{
    if (!t->counts_tokens)
        return NULL;
    struct call_tokens *seen = xcalloc(1, sizeof(*seen));
    tokencount_init(&seen->answered);
    return seen;
}

bool call_refuse_busy(struct http_req *req, struct api *a, const struct service_target *t)
{
    const struct callbook_limits l = {t->requests_per_minute, t->tokens_per_minute};
    usec_t wait = 0;
    struct err err;
    char seconds[24];
    enum callbook_answer is =
        callbook_take(a->calls, t->service, t->caller, &l, clock_mono(), &wait);
    if (is == CALLBOOK_GOES)
        return false;
    const struct service_counted none = {
        .status = 429, .tokens_in = -1, .tokens_out = -1, .refused = true};
    service_end(a->serving, t, NULL, &none);
    text_printf(seconds, "%llu", (unsigned long long)((wait + USEC_SEC - 1) / USEC_SEC));
    http_reply_header(req, "Retry-After", seconds);
    if (is == CALLBOOK_REQUESTS)
        message_refuse(&err, ERR_BUSY, "calls_too_many",
                       MESSAGE_ARGS(MESSAGE_STR("service", t->service),
                                    MESSAGE_STR("user", t->caller),
                                    MESSAGE_NUM("most", l.requests)));
    else
        message_refuse(&err, ERR_BUSY, "calls_tokens",
                       MESSAGE_ARGS(MESSAGE_STR("service", t->service),
                                    MESSAGE_STR("user", t->caller), MESSAGE_NUM("most", l.tokens)));
    api_fail(req, &err, 0);
    return true;
}

void call_take_tokens(struct service_counted *k, const struct call_tokens *seen)
{
    k->tokens_in = k->tokens_out = -1;
    if (!seen || tokencount_read(&seen->answered, &k->tokens_in, &k->tokens_out))
        return;
    k->is_estimated = k->tokens_out >= 0;
    if (k->is_estimated)
        k->tokens_in = promptcount_tokens(&seen->asked);
}

/* True for a share of all requests, chosen at random. */
static bool call_is_logged(const struct service_target *t)
{
    uint32_t random;
    random_bytes(&random, sizeof(random));
    return (double)random < t->log_share * (double)UINT32_MAX;
}

void call_write_down(struct api *a,
                     const struct service_target *t,
                     const struct service_counted *k,
                     const char *end)
{
    callbook_add_tokens(a->calls, t->service, t->caller,
                        (k->tokens_in > 0 ? k->tokens_in : 0) +
                            (k->tokens_out > 0 ? k->tokens_out : 0));
    if (!call_is_logged(t))
        return;
    log_info("calls",
             "service=%s version=%lld user=%s key=%s method=%s path=%s status=%d end=%s ms=%llu "
             "first_ms=%llu bytes_in=%llu bytes_out=%llu tokens_in=%lld tokens_out=%lld "
             "estimated=%s",
             t->service, (long long)t->version, k->user, *t->by_key ? t->by_key : "-", k->method,
             k->path, k->status, end, (unsigned long long)(k->took / USEC_MS),
             (unsigned long long)(k->first / USEC_MS), (unsigned long long)k->bytes_in,
             (unsigned long long)k->bytes_out, (long long)k->tokens_in, (long long)k->tokens_out,
             k->is_estimated ? "yes" : "no");
}
