/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of pipe_cron.h: each schedule against the times that it names, in UTC and in a zone whose
 * clock goes forward and back. */
#include "core/pipe/pipe_cron.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/unit.h"

/* Seconds since 1970 of "2026-03-29 01:00", UTC. */
static int64_t at(const char *text)
{
    struct tm tm = {0};
    const char *end = strptime(text, "%Y-%m-%d %H:%M", &tm);
    assert_non_null(end);
    return timegm(&tm);
}

/* Central Europe in 2026: summer time from 29 March 01:00 UTC to 25 October 01:00 UTC. */
static int berlin(int64_t when, void *arg)
{
    (void)arg;
    return when >= at("2026-03-29 01:00") && when < at("2026-10-25 01:00") ? 7200 : 3600;
}

static const struct {
    const char *cron, *after;
    pipe_zone_f zone;
    const char *times[4]; /* one after the other, UTC */
} cases[] = {
    {"*/20 * * * *",
     "2026-01-01 00:00",
     NULL,
     {"2026-01-01 00:20", "2026-01-01 00:40", "2026-01-01 01:00"}},
    {"0 2 * * mon-fri", "2026-11-26 02:00", NULL, {"2026-11-27 02:00", "2026-11-30 02:00"}},
    {"30 6-10/2 1,15 * *",
     "2026-01-14 23:00",
     NULL,
     {"2026-01-15 06:30", "2026-01-15 08:30", "2026-01-15 10:30", "2026-02-01 06:30"}},
    {"0 0 29 2 *", "2026-01-01 00:00", NULL, {"2028-02-29 00:00", "2032-02-29 00:00"}},
    /* Both days restricted: either of them. */
    {"0 0 13 * 5",
     "2026-11-01 00:00",
     NULL,
     {"2026-11-06 00:00", "2026-11-13 00:00", "2026-11-20 00:00"}},
    {"0 0 13 * fri", "2026-12-12 00:00", NULL, {"2026-12-13 00:00", "2026-12-18 00:00"}},
    /* A field that begins with * restricts nothing: both have to fit. */
    {"0 0 */2 * 1", "2026-11-01 00:00", NULL, {"2026-11-09 00:00", "2026-11-23 00:00"}},
    {"0 0 * * 7", "2026-11-26 00:00", NULL, {"2026-11-29 00:00", "2026-12-06 00:00"}},
    {"@daily", "2026-11-26 00:00", NULL, {"2026-11-27 00:00"}},
    {"@weekly", "2026-11-26 00:00", NULL, {"2026-11-29 00:00"}},
    {"0 12 1 jan *", "2026-11-26 00:00", NULL, {"2027-01-01 12:00"}},
    /* 02:30 is skipped on 29 March: once, at the end of the gap, which is 03:00 there. */
    {"30 2 * * *",
     "2026-03-28 00:00",
     berlin,
     {"2026-03-28 01:30", "2026-03-29 01:00", "2026-03-30 00:30"}},
    {"*/20 2 * * *",
     "2026-03-28 02:00",
     berlin,
     {"2026-03-29 01:00", "2026-03-30 00:00", "2026-03-30 00:20"}},
    /* 02:30 comes twice on 25 October: once, the first time. */
    {"30 2 * * *", "2026-10-24 12:00", berlin, {"2026-10-25 00:30", "2026-10-26 01:30"}},
    {"30 2 * * *", "2026-10-25 00:30", berlin, {"2026-10-26 01:30"}},
    /* Hours that begin with * follow real time through both. */
    {"30 * * * *",
     "2026-03-29 00:00",
     berlin,
     {"2026-03-29 00:30", "2026-03-29 01:30", "2026-03-29 02:30"}},
    {"30 * * * *",
     "2026-10-24 23:30",
     berlin,
     {"2026-10-25 00:30", "2026-10-25 01:30", "2026-10-25 02:30"}},
    {"0 */2 * * *",
     "2026-10-24 22:00",
     berlin,
     {"2026-10-25 00:00", "2026-10-25 01:00", "2026-10-25 03:00"}},
    {"0 * 1 7 *", "2026-01-01 00:00", berlin, {"2026-06-30 22:00", "2026-06-30 23:00"}},
};

static void test_times(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_len(cases); i++) {
        struct pipe_cron c;
        struct err err = {0};
        usec_t now = (usec_t)at(cases[i].after) * USEC_SEC;
        assert_int_equal(pipe_cron_parse(cases[i].cron, &c, &err), 0);
        for (size_t k = 0; k < 4 && cases[i].times[k]; k++) {
            now = pipe_cron_next(&c, now, cases[i].zone, NULL);
            if ((int64_t)(now / USEC_SEC) != at(cases[i].times[k]))
                fail_msg("'%s', time %zu: %lld in place of %s", cases[i].cron, k,
                         (long long)(now / USEC_SEC), cases[i].times[k]);
        }
    }
}

/* Against a walk over every minute, which is what the words mean. */
static void test_walk(void **state)
{
    static const char *const all[] = {"7 * * * *",          "*/7 3,4 * * *", "0 9 1-7 * 1",
                                      "15 1 28-31 * *",     "59 23 * 2 *",   "0 0 * 6 0",
                                      "5-9/2 */5 */3 * 2-4"};
    (void)state;
    for (size_t i = 0; i < array_len(all); i++) {
        struct pipe_cron c;
        assert_int_equal(pipe_cron_parse(all[i], &c, NULL), 0);
        usec_t next = 0;
        for (int64_t m = at("2027-12-25 00:00"); m < at("2028-03-05 00:00"); m += 60) {
            time_t t = m;
            struct tm tm;
            (void)gmtime_r(&t, &tm);
            bool day = c.days >> tm.tm_mday & 1, week = c.weekdays >> tm.tm_wday & 1;
            bool fits = (c.any_day || c.any_weekday ? day && week : day || week) &&
                        (c.months >> (tm.tm_mon + 1) & 1) && (c.hours >> tm.tm_hour & 1) &&
                        (c.minutes >> tm.tm_min & 1);
            if (fits && next)
                assert_int_equal(next / USEC_SEC, m);
            if (fits || !next)
                next = pipe_cron_next(&c, (usec_t)m * USEC_SEC, NULL, NULL);
        }
    }
}

static void test_refused(void **state)
{
    static const char *const all[] = {
        "",           "* * * *",     "* * * * * *",  "60 * * * *",
        "* 24 * * *", "* * 0 * *",   "* * 32 * *",   "* * * 13 *",
        "* * * * 8",  "5-1 * * * *", "*/0 * * * *",  "1,, * * * *",
        ", * * * *",  "1- * * * *",  "a * * * *",    "* * * * mondays",
        "@reboot",    "0 0 31 2 *",  "0 0 30 feb *", "1, * * * *",
        "-1 * * * *", "* * L * *",   "* * * * 1#2",  "H * * * *"};
    (void)state;
    for (size_t i = 0; i < array_len(all); i++) {
        struct pipe_cron c;
        struct err err = {0};
        if (pipe_cron_parse(all[i], &c, &err) != ERR_BAD_SPEC)
            fail_msg("'%s' was read", all[i]);
        assert_non_null(err.message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_walk),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
