/* SPDX-License-Identifier: Apache-2.0 */
/* advise.c - see advise.h. A rule is silent where its facts are missing. */
#include "core/advise.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "core/preflight.h"

/* A limit that leaves room for a slow day, and one so long that it says nothing. */
enum { ROOM_PERCENT = 150, LOOSE = 4, SAVE_USUAL = 10 };

printf_like(4, 5) static void put(struct jout *j,
                                  const char *key,
                                  const char *value,
                                  const char *fmt,
                                  ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap); /* cut: fine */
    va_end(ap);
    jout_open(j, NULL, '{');
    jout_str(j, "key", key);
    jout_str(j, "value", value);
    jout_str(j, "text", text);
    jout_close(j, '}');
}

/* In whole minutes below two hours, else in whole hours; never less than asked. */
static usec_t round_up(usec_t span)
{
    usec_t unit = span < 2 * USEC_HOUR ? USEC_MIN : USEC_HOUR;
    return (span + unit - 1) / unit * unit;
}

static void advise_timeout(const struct advise_in *in, struct jout *j)
{
    char value[CLOCK_TEXT_MAX], p90[CLOCK_TEXT_MAX], has[CLOCK_TEXT_MAX];
    usec_t limit = in->spec->timeout, best = round_up(in->p90 * ROOM_PERCENT / 100);
    if (!in->p90 || (limit && limit < in->p90 * LOOSE) || (limit && best >= limit))
        return;
    (void)span_to_string(best, value);
    (void)span_to_string(in->p90, p90);
    (void)span_to_string(limit, has);
    if (limit)
        put(j, "timeout", value,
            "nine of ten runs like this ended within %s, far below its timeout of %s: a shorter "
            "one lets it start in gaps of the queue",
            p90, has);
    else
        put(j, "timeout", value,
            "nine of ten runs like this ended within %s: with a timeout it can start in gaps of "
            "the queue",
            p90);
}

static void advise_size(const struct advise_in *in, struct jout *j)
{
    char value[24];
    if (in->fits_pool || in->largest < 1 || in->largest >= in->demand->nnodes)
        return;
    (void)snprintf(value, sizeof(value), "%d", in->largest);
    put(j, "nnodes", value,
        "its pool has room for %d nodes of this shape and not for %d: as it is it waits for "
        "machines to join",
        in->largest, in->demand->nnodes);
}

static void advise_save(const struct advise_in *in, struct jout *j)
{
    char value[24], one[32];
    int64_t freq = in->spec->save_freq;
    if (freq < 1 || freq >= SAVE_USUAL || in->spec->checkpoint_none || !in->checkpoint_bytes)
        return;
    (void)snprintf(value, sizeof(value), "%d", SAVE_USUAL);
    put(j, "save_freq", value,
        "each checkpoint writes about %s while the GPUs wait, and there is one every %" PRId64
        " step%s",
        preflight_size_text(in->checkpoint_bytes, one), freq, freq == 1 ? "" : "s");
}

void advise_put(const struct advise_in *in, struct jout *j, const char *key)
{
    jout_open(j, key, '[');
    advise_timeout(in, j);
    advise_size(in, j);
    advise_save(in, j);
    jout_close(j, ']');
}
