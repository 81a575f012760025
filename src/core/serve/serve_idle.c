/* SPDX-License-Identifier: Apache-2.0 */
/* serve_idle.c - see serve_idle.h. No state is kept here but since when nobody asks. */
#include "core/serve/serve_idle.h"

#include "base/message.h"
#include "base/str.h"

int serve_idle_read(const char *text, usec_t *ret, struct err *err)
{
    usec_t span = 0;
    if (!str_eq(text, "off") && span_from_string(text, &span, NULL) < 0)
        return message_refuse(err, ERR_BAD_SPEC, "serve_idle",
                              MESSAGE_ARGS(MESSAGE_STR("text", text)));
    *ret = span;
    return 0;
}

int serve_idle_check(usec_t idle, usec_t least, struct err *err)
{
    char given[CLOCK_TEXT_MAX], limit[CLOCK_TEXT_MAX];
    if (!idle || idle >= least)
        return 0;
    return message_refuse(err, ERR_BAD_SPEC, "serve_idle_short",
                          MESSAGE_ARGS(MESSAGE_STR("given", span_to_string(idle, given)),
                                       MESSAGE_STR("least", span_to_string(least, limit))));
}

bool serve_idle_is_over(usec_t *since, const struct serve_idle_seen *seen, usec_t now)
{
    if (!*since || !seen->answers || seen->is_changing || seen->requests > 0)
        *since = now;
    return seen->idle && now > *since && now - *since >= seen->idle;
}

int64_t serve_wake_seconds(usec_t span)
{
    int64_t seconds = (int64_t)((span + USEC_SEC - 1) / USEC_SEC);
    return seconds > 1 ? seconds : 1;
}

int64_t serve_wake_left_s(usec_t took, usec_t gone)
{
    if (!took)
        return SERVE_WAKE_UNKNOWN_S;
    int64_t left = took > gone ? serve_wake_seconds(took - gone) : 0;
    return left > SERVE_WAKE_LEAST_S ? left : SERVE_WAKE_LEAST_S;
}
