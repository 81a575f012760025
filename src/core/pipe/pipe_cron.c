/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_cron.c - see pipe_cron.h. A time is found on the calendar, as if it were UTC, and then
 * placed in the zone; within the two days around a change of the clock the minutes are walked one
 * by one. */
#include "core/pipe/pipe_cron.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/message.h"
#include "base/str.h"

enum { MINUTE_S = 60, HOUR_S = 3600, DAY_S = 86400, CRON_YEARS = 9, CRON_TEXT_MAX = 200 };

static const char *const cron_months[] = {"jan", "feb", "mar", "apr", "may", "jun", "jul",
                                          "aug", "sep", "oct", "nov", "dec", NULL};
static const char *const cron_days[] = {"sun", "mon", "tue", "wed", "thu", "fri", "sat", NULL};

struct cron_field {
    const char *name;
    int least, most;
    const char *const *names; /* of least, least + 1, … */
};
static const struct cron_field cron_fields[] = {
    {"minute", 0, 59, NULL},          {"hour", 0, 23, NULL},
    {"day of month", 1, 31, NULL},    {"month", 1, 12, cron_months},
    {"day of week", 0, 7, cron_days},
};

/* ---- the calendar ---- */

struct cron_date {
    int month, day; /* from 1 */
};

/* The date of a day since 1970: the proleptic Gregorian calendar by eras of 400 years. */
static struct cron_date cron_date_of(int64_t days)
{
    int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097;
    int64_t doe = z - era * 146097;
    int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365;
    int64_t doy = doe - (365 * yoe + yoe / 4 - yoe / 100), mp = (5 * doy + 2) / 153;
    int month = (int)(mp < 10 ? mp + 3 : mp - 9);
    return (struct cron_date){.month = month, .day = (int)(doy - (153 * mp + 2) / 5 + 1)};
}

static bool cron_takes_day(const struct pipe_cron *c, int64_t days)
{
    struct cron_date d = cron_date_of(days);
    bool of_month = c->days >> d.day & 1;
    bool of_week = c->weekdays >> ((days % 7 + 11) % 7) & 1; /* 1970-01-01 was a Thursday */
    bool fits = c->any_day || c->any_weekday ? of_month && of_week : of_month || of_week;
    return fits && (c->months >> d.month & 1);
}

static bool cron_takes_minute(const struct pipe_cron *c, int64_t minute_of_day)
{
    return (c->hours >> (minute_of_day / 60) & 1) && (c->minutes >> (minute_of_day % 60) & 1);
}

/* ---- reading ---- */

static int cron_refuse(const char *text, const char *field, const char *part, struct err *err)
{
    return message_refuse(err, ERR_BAD_SPEC, "cron_field",
                          MESSAGE_ARGS(MESSAGE_STR("text", text), MESSAGE_STR("field", field),
                                       MESSAGE_STR("part", part)));
}

static bool cron_number(const struct cron_field *f, const char *s, size_t n, int *ret)
{
    int value = 0;
    for (int i = 0; f->names && f->names[i]; i++)
        if (n == 3 && !strncasecmp(s, f->names[i], 3)) {
            *ret = f->least + i;
            return true;
        }
    for (size_t i = 0; i < n; i++)
        if (!isdigit((unsigned char)s[i]))
            return false;
        else
            value = 10 * value + (s[i] - '0');
    *ret = value;
    return n > 0 && n <= 2 && value >= f->least && value <= f->most;
}

/* "*", "5", "1-5", each with "/2" behind it. */
static bool cron_part(const struct cron_field *f, const char *s, size_t n, uint64_t *ret)
{
    const char *slash = memchr(s, '/', n);
    size_t range = slash ? (size_t)(slash - s) : n;
    const char *dash = memchr(s, '-', range);
    int from = f->least, to = f->most, step = 1;
    struct cron_field steps = {"", 1, 99, NULL};
    if (slash && !cron_number(&steps, slash + 1, n - range - 1, &step))
        return false;
    if (range == 1 && *s == '*') {
        to -= f->most == 7; /* Sunday once */
    } else if (dash) {
        if (!cron_number(f, s, (size_t)(dash - s), &from) ||
            !cron_number(f, dash + 1, range - (size_t)(dash - s) - 1, &to) || to < from)
            return false;
    } else {
        if (!cron_number(f, s, range, &from))
            return false;
        to = slash ? f->most - (f->most == 7) : from;
    }
    for (int i = from; i <= to; i += step)
        *ret |= UINT64_C(1) << (f->most == 7 ? i % 7 : i);
    return true;
}

static const char *cron_word(const char *text)
{
    static const char *const words[][2] = {{"@hourly", "0 * * * *"},   {"@daily", "0 0 * * *"},
                                           {"@midnight", "0 0 * * *"}, {"@weekly", "0 0 * * 0"},
                                           {"@monthly", "0 0 1 * *"},  {"@yearly", "0 0 1 1 *"},
                                           {"@annually", "0 0 1 1 *"}};
    for (size_t i = 0; i < array_len(words); i++)
        if (str_eq(text, words[i][0]))
            return words[i][1];
    return text;
}

static const char *cron_read_field(const struct cron_field *f,
                                   const char *s,
                                   uint64_t *ret,
                                   bool *ret_any)
{
    size_t n = strcspn(s, " \t");
    const char *end = s + n;
    *ret_any = *s == '*';
    while (s < end) {
        const char *comma = memchr(s, ',', (size_t)(end - s));
        const char *stop = comma ? comma : end;
        if (!cron_part(f, s, (size_t)(stop - s), ret) || (comma && comma + 1 == end))
            return NULL;
        s = comma ? comma + 1 : end;
    }
    return n ? end + strspn(end, " \t") : NULL;
}

int pipe_cron_parse(const char *text, struct pipe_cron *ret, struct err *err)
{
    uint64_t bits[array_len(cron_fields)] = {0};
    bool any[array_len(cron_fields)];
    if (strlen(text) > CRON_TEXT_MAX)
        return cron_refuse("…", "minute", "…", err);
    const char *s = cron_word(text);
    s += strspn(s, " \t");
    for (size_t i = 0; i < array_len(cron_fields); i++) {
        _cleanup_(freep) char *part = xstrndup(s, strcspn(s, " \t"));
        s = cron_read_field(&cron_fields[i], s, &bits[i], &any[i]);
        if (!s)
            return cron_refuse(text, cron_fields[i].name, part, err);
    }
    if (*s)
        return cron_refuse(text, "what follows the five fields", s, err);
    struct pipe_cron c = {.minutes = bits[0],
                          .hours = (uint32_t)bits[1],
                          .days = (uint32_t)bits[2],
                          .months = (uint32_t)bits[3],
                          .weekdays = (uint32_t)bits[4],
                          .any_hour = any[1],
                          .any_day = any[2],
                          .any_weekday = any[4]};
    if (!pipe_cron_next(&c, USEC_SEC, NULL, NULL))
        return message_refuse(err, ERR_BAD_SPEC, "cron_never",
                              MESSAGE_ARGS(MESSAGE_STR("text", text)));
    *ret = c;
    return 0;
}

/* ---- the next time ---- */

/* The next minute of the calendar after this one that fits; -1: none. */
static int64_t cron_next_clock(const struct pipe_cron *c, int64_t minute)
{
    for (int64_t day = (minute + 1) / 1440, n = 0; n < CRON_YEARS * 366; n++, day++) {
        if (!cron_takes_day(c, day))
            continue;
        int64_t first = n ? 0 : (minute + 1) % 1440;
        for (int64_t m = first; m < 1440; m++)
            if (cron_takes_minute(c, m))
                return day * 1440 + m;
    }
    return -1;
}

static int cron_offset(pipe_zone_f zone, void *arg, int64_t at)
{
    return zone ? zone(at, arg) : 0;
}

/* The first moment whose clock reads that minute; where the zone skips it, the end of the gap. */
static int64_t cron_place(int64_t minute, pipe_zone_f zone, void *arg)
{
    int64_t clock = minute * MINUTE_S, first = -1;
    for (int64_t at = clock - DAY_S; at <= clock + DAY_S; at += HOUR_S / 4) {
        int64_t here = clock - cron_offset(zone, arg, at);
        if (here + cron_offset(zone, arg, here) == clock && (first < 0 || here < first))
            first = here;
    }
    if (first >= 0)
        return first;
    for (int64_t at = clock - DAY_S; at <= clock + DAY_S; at += MINUTE_S)
        if (at + cron_offset(zone, arg, at) > clock)
            return at;
    return clock;
}

/* Real time: the first minute after now that the zone's clock reads as one that fits. Where the
 * clock is changed on the way the minutes around the found one are walked. */
static usec_t cron_next_real(const struct pipe_cron *c, int64_t now, pipe_zone_f zone, void *arg)
{
    int64_t at = now - now % MINUTE_S, offset = cron_offset(zone, arg, at);
    int64_t minute = cron_next_clock(c, (at + offset) / MINUTE_S);
    if (minute < 0)
        return 0;
    int64_t there = minute * MINUTE_S - offset;
    if (cron_offset(zone, arg, there) == offset)
        return (usec_t)there * USEC_SEC;
    int64_t from = there - DAY_S > at ? there - DAY_S : at + MINUTE_S;
    for (int64_t m = from; m < there + 2 * DAY_S; m += MINUTE_S) {
        int64_t local = (m + cron_offset(zone, arg, m)) / MINUTE_S;
        if (cron_takes_day(c, local / 1440) && cron_takes_minute(c, local % 1440))
            return (usec_t)m * USEC_SEC;
    }
    return (usec_t)there * USEC_SEC;
}

usec_t pipe_cron_next(const struct pipe_cron *c, usec_t after, pipe_zone_f zone, void *arg)
{
    int64_t now = (int64_t)(after / USEC_SEC);
    if (c->any_hour)
        return cron_next_real(c, now, zone, arg);
    int64_t minute = (now + cron_offset(zone, arg, now)) / MINUTE_S - 1440;
    minute = minute < 0 ? -1 : minute;
    while ((minute = cron_next_clock(c, minute)) >= 0) {
        int64_t at = cron_place(minute, zone, arg);
        if (at > now)
            return (usec_t)at * USEC_SEC;
    }
    return 0;
}
