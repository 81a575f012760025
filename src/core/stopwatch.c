/* SPDX-License-Identifier: Apache-2.0 */
/* stopwatch.c - one comparison of boot ids decides which of the two clocks counts; a
 * difference that would be negative is none. See stopwatch.h. */
#include "core/stopwatch.h"

#include <stdio.h>
#include <string.h>

static void run_from(struct stopwatch *w, const struct moment *now)
{
    w->running = true;
    w->wall = now->wall;
    w->boot = now->boot;
    (void)snprintf(w->boot_id, sizeof(w->boot_id), "%s", now->boot_id); /* ids fit */
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
