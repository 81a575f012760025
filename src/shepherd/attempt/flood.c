/* SPDX-License-Identifier: Apache-2.0 */
/* flood.c - a bucket of bytes that fills by the second; see flood.h. */
#include "shepherd/attempt/flood.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

struct flood {
    uint64_t rate, left; /* left: what may pass at once */
    usec_t filled;       /* when; 0: never */
    bool is_dropping;
    uint64_t dropped;
    char why[200];
    char *kept; /* a ring; `to` counts all bytes that went in since dropping began */
    uint64_t to;
};

struct flood *flood_new(uint64_t rate)
{
    struct flood *f = xcalloc(1, sizeof(*f));
    f->rate = rate;
    f->left = rate * FLOOD_SPAN;
    return f;
}

void flood_free(struct flood *f)
{
    if (!f)
        return;
    free(f->kept);
    free(f);
}

static void flood_fill(struct flood *f, usec_t mono)
{
    uint64_t most = f->rate * FLOOD_SPAN;
    usec_t span = f->filled && mono > f->filled ? mono - f->filled : 0;
    span = span < FLOOD_SPAN * USEC_SEC ? span : FLOOD_SPAN * USEC_SEC;
    uint64_t more = (uint64_t)((double)f->rate * (double)span / (double)USEC_SEC);
    if (more || !f->filled) /* less than a byte: time adds up */
        f->filled = mono;
    f->left = more > most - f->left ? most : f->left + more;
}

bool flood_pass(struct flood *f, size_t n, usec_t mono)
{
    if (!f->rate)
        return true;
    flood_fill(f, mono);
    uint64_t kept = f->to < FLOOD_KEPT ? f->to : FLOOD_KEPT;
    uint64_t need = f->is_dropping ? n + kept + f->rate : n;
    if (need > f->left && f->left < f->rate * FLOOD_SPAN) /* one piece may be larger than all */
        return false;
    f->left -= n < f->left ? n : f->left;
    return true;
}

void flood_drop(struct flood *f, const char *p, size_t n, const char *why)
{
    if (!f->kept)
        f->kept = xmalloc(FLOOD_KEPT);
    if (!f->is_dropping)
        text_copy(f->why, why);
    f->is_dropping = true;
    f->dropped += n;
    if (n > FLOOD_KEPT) {
        p += n - FLOOD_KEPT;
        f->to += n - FLOOD_KEPT;
        n = FLOOD_KEPT;
    }
    size_t at = (size_t)(f->to % FLOOD_KEPT);
    size_t first = n < FLOOD_KEPT - at ? n : FLOOD_KEPT - at;
    memcpy(f->kept + at, p, first);
    memcpy(f->kept, p + first, n - first);
    f->to += n;
}

bool flood_is_dropping(const struct flood *f)
{
    return f->is_dropping;
}

uint64_t flood_dropped(const struct flood *f)
{
    return f->dropped;
}

/* From the beginning of a line, where there is one. */
static void skip_torn_line(struct flood_end *e)
{
    for (size_t i = 0; i < array_len(e->kept); i++) {
        const char *line = e->kept_n[i] ? memchr(e->kept[i], '\n', e->kept_n[i]) : NULL;
        if (!line)
            continue;
        e->kept_n[i] -= (size_t)(line + 1 - e->kept[i]);
        e->kept[i] = line + 1;
        if (i)
            e->kept_n[0] = 0;
        return;
    }
}

void flood_end(const struct flood *f, struct flood_end *ret)
{
    struct flood_end e = {0};
    uint64_t n = f->to < FLOOD_KEPT ? f->to : FLOOD_KEPT, from = f->to - n;
    size_t at = (size_t)(from % FLOOD_KEPT), room = FLOOD_KEPT - at;
    e.kept[0] = f->kept + at;
    e.kept[1] = f->kept;
    e.kept_n[0] = n < room ? (size_t)n : room;
    e.kept_n[1] = (size_t)n - e.kept_n[0];
    if (n < f->dropped)
        skip_torn_line(&e);
    e.dropped = f->dropped - e.kept_n[0] - e.kept_n[1];
    if (e.dropped)
        text_printf(e.line, "[argus] %" PRIu64 " bytes of output dropped here: %s\n", e.dropped,
                    f->why);
    *ret = e;
}

void flood_reset(struct flood *f)
{
    f->is_dropping = false;
    f->dropped = f->to = 0;
}
