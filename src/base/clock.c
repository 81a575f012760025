/* SPDX-License-Identifier: Apache-2.0 */
/* clock.c - the only file below the programs that asks the system for the time;
 * the rest turns times and spans into text and back. See clock.h. */
#define _GNU_SOURCE
#include "base/clock.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/message.h"
#include "base/text.h"

static usec_t read_clock(clockid_t id)
{
    struct timespec ts;
    (void)clock_gettime(id, &ts); /* cannot fail for the ids used */
    return (usec_t)ts.tv_sec * USEC_SEC + (usec_t)ts.tv_nsec / 1000;
}

usec_t clock_wall(void)
{
    return read_clock(CLOCK_REALTIME);
}

usec_t clock_mono(void)
{
    return read_clock(CLOCK_MONOTONIC);
}

const char *clock_boot_id(char ret[static CLOCK_BOOT_ID_MAX])
{
    ret[0] = 0;
    FILE *f = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (!f)
        return ret;
    if (!fgets(ret, CLOCK_BOOT_ID_MAX, f))
        ret[0] = 0;
    ret[strcspn(ret, "\n")] = 0;
    (void)fclose(f); /* only read */
    return ret;
}

struct moment clock_moment(const char *boot_id)
{
    return (struct moment){
        .wall = clock_wall(), .boot = read_clock(CLOCK_BOOTTIME), .boot_id = boot_id};
}

/* n digits of v at p: the place behind them. Lists print thousands of times, and strftime() costs.
 */
static char *put_digits(char *p, unsigned v, int n)
{
    for (int i = n - 1; i >= 0; i--, v /= 10)
        p[i] = (char)('0' + v % 10);
    return p + n;
}

const char *clock_to_string(usec_t wall, char text[static CLOCK_TEXT_MAX])
{
    char *p = text;
    text[0] = 0;
    if (!wall)
        return text;
    time_t sec = (time_t)(wall / USEC_SEC);
    struct tm tm;
    if (!gmtime_r(&sec, &tm) || tm.tm_year > 8099)
        return text;
    const unsigned part[] = {(unsigned)tm.tm_year + 1900,
                             (unsigned)tm.tm_mon + 1,
                             (unsigned)tm.tm_mday,
                             (unsigned)tm.tm_hour,
                             (unsigned)tm.tm_min,
                             (unsigned)tm.tm_sec,
                             (unsigned)(wall % USEC_SEC / USEC_MS)};
    static const char after[] = "--T::.Z";
    for (size_t i = 0; i < array_len(part); i++) {
        p = put_digits(p, part[i], i == 0 ? 4 : i == 6 ? 3 : 2);
        *p++ = after[i];
    }
    *p = 0;
    return text;
}

int clock_from_string(const char *text, usec_t *ret_wall, struct err *err)
{
    struct tm tm = {0};
    const char *p = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
    usec_t frac = 0;
    if (p && *p == '.') {
        usec_t unit = USEC_SEC / 10;
        for (p++; *p >= '0' && *p <= '9'; p++, unit /= 10)
            frac += (usec_t)(*p - '0') * unit;
    }
    if (p && *p == 'Z')
        p++;
    time_t sec = p && !*p ? timegm(&tm) : -1;
    if (sec < 0)
        return message_refuse(err, -EINVAL, "not_time", MESSAGE_ARGS(MESSAGE_STR("text", text)));
    *ret_wall = (usec_t)sec * USEC_SEC + frac;
    return 0;
}

static usec_t unit_of(char c)
{
    switch (c) {
    case 's':
        return USEC_SEC;
    case 'm':
        return USEC_MIN;
    case 'h':
        return USEC_HOUR;
    case 'd':
        return USEC_DAY;
    default:
        return 0;
    }
}

int span_from_string(const char *text, usec_t *ret_span, struct err *err)
{
    usec_t sum = 0;
    const char *p = text;
    while (*p >= '0' && *p <= '9') {
        char *end;
        errno = 0;
        unsigned long long n = strtoull(p, &end, 10);
        usec_t unit = *end ? unit_of(*end) : p == text ? USEC_SEC : 0;
        if (errno || !unit || n > 36500 * USEC_DAY / unit)
            break;
        sum += n * unit;
        p = *end ? end + 1 : end;
        if (!*p) {
            *ret_span = sum;
            return 0;
        }
    }
    return message_refuse(err, -EINVAL, "not_span", MESSAGE_ARGS(MESSAGE_STR("text", text)));
}

const char *span_to_string(usec_t span, char text[static CLOCK_TEXT_MAX])
{
    static const char units[] = "dhms";
    usec_t left = span;
    for (size_t i = 0; units[i]; i++) {
        usec_t unit = unit_of(units[i]);
        if (left < unit && units[i] != 's')
            continue;
        int n = snprintf(text, CLOCK_TEXT_MAX, "%" PRIu64 "%c", left / unit, units[i]);
        left %= unit;
        if (units[i + 1] && left / unit_of(units[i + 1]))
            text_printf_to(text + n, CLOCK_TEXT_MAX - (size_t)n, "%" PRIu64 "%c",
                           left / unit_of(units[i + 1]), units[i + 1]);
        break;
    }
    return text;
}
