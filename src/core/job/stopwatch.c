/* SPDX-License-Identifier: Apache-2.0 */
/* stopwatch.c - one comparison of boot ids decides which of the two clocks counts; a
 * difference that would be negative is none. See stopwatch.h. */
#include "core/job/stopwatch.h"

#include <string.h>

#include "base/mem.h"
#include "base/text.h"

#define ROW(key, ftype, ...)                                                                       \
    {                                                                                              \
        .name = #key, .type = ftype, .offset = offsetof(struct stopwatch, key), __VA_ARGS__        \
    }
static const struct field stopwatch_rows[] = {ROW(spent, FIELD_SPAN), ROW(running, FIELD_BOOL),
                                              ROW(wall, FIELD_TIME), ROW(boot, FIELD_SPAN),
                                              ROW(boot_id, FIELD_TEXT, .size = CLOCK_BOOT_ID_MAX)};
#undef ROW
const struct field_table stopwatch_table = {NULL, stopwatch_rows, array_len(stopwatch_rows),
                                            sizeof(struct stopwatch), 0};

static void run_from(struct stopwatch *w, const struct moment *now)
{
    w->running = true;
    w->wall = now->wall;
    w->boot = now->boot;
    text_copy(w->boot_id, now->boot_id);
}

void stopwatch_start(struct stopwatch *w, const struct moment *now)
{
    w->spent = 0;
    run_from(w, now);
}

void stopwatch_pause(struct stopwatch *w, const struct moment *now)
{
    w->spent = stopwatch_read(w, now);
    w->running = false;
}

void stopwatch_resume(struct stopwatch *w, const struct moment *now)
{
    if (!w->running)
        run_from(w, now);
}

usec_t stopwatch_read(const struct stopwatch *w, const struct moment *now)
{
    if (!w->running)
        return w->spent;
    bool same_start = *w->boot_id && !strcmp(w->boot_id, now->boot_id);
    usec_t since = same_start ? w->boot : w->wall, t = same_start ? now->boot : now->wall;
    return w->spent + (t > since ? t - since : 0);
}
