/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_cron.h - a schedule of five fields, as cron(5) has them.
 *
 *   minute hour day-of-month month day-of-week     0 2 * * mon-fri      30 6-20/2 * * *
 *
 * Lists, ranges and steps; names of months and days; 0 and 7 are Sunday; @hourly, @daily, @weekly,
 * @monthly, @yearly. Where both days are restricted either one matches; a field that begins with *
 * restricts nothing (Vixie cron's rule). A schedule that never comes is refused.
 *
 * Time zones come as a function, since their table is a file. A clock time that the zone skips
 * comes once, at the end of the gap; one that it repeats comes once, the first time. A schedule
 * whose hours begin with * follows real time through both. Pure. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/err.h"

struct pipe_cron {
    uint64_t minutes; /* bit per value, here and below */
    uint32_t hours, days, months, weekdays;
    bool any_day, any_weekday; /* the field begins with * */
    bool any_hour;
};

/* ERR_BAD_SPEC with the field. */
must_check int pipe_cron_parse(const char *text, struct pipe_cron *ret, struct err *err);

/* Seconds east of UTC at that moment, in seconds since 1970. NULL as a zone is UTC. */
typedef int (*pipe_zone_f)(int64_t at, void *arg);

/* The first time after `after`, both wall times. 0: none within nine years, which pipe_cron_parse()
 * excludes. */
usec_t pipe_cron_next(const struct pipe_cron *c, usec_t after, pipe_zone_f zone, void *arg);
