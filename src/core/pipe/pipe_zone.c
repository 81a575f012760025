/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_zone.c - see pipe_zone.h. Of the file the part with 64-bit times is read, which every file
 * since 2005 has, and of its rule the form with months (M3.5.0/2), which every zone of today has.
 */
#include "core/pipe/pipe_zone.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"

enum { TZ_HEAD = 44, TZ_TIMES_MAX = 4096, TZ_DAY_S = 86400, TZ_TEXT_MAX = 128 };

/* When the clock is changed each year: weekday `day` of week `week` (5: the last) of a month. */
struct tz_rule {
    int month, week, day, time_s;
};

struct pipe_zone {
    int64_t *at;  /* when the offset changes, in order */
    int32_t *off; /* the offset from then on */
    size_t n;
    int32_t first; /* before the first change */
    bool has_rule, has_summer;
    int32_t winter, summer; /* offsets behind the last change */
    struct tz_rule begin, end;
};

void pipe_zone_free(struct pipe_zone *z)
{
    if (!z)
        return;
    free(z->at);
    free(z->off);
    free(z);
}

bool pipe_zone_is_name(const char *name)
{
    size_t n = strlen(name);
    if (!n || n > PIPE_ZONE_NAME_MAX || *name == '/' || name[n - 1] == '/')
        return false;
    for (size_t i = 0; i < n; i++)
        if (!isalnum((unsigned char)name[i]) && !strchr("_+-/", name[i]))
            return false;
    return !strstr(name, "//");
}

/* ---- the rule at the end ---- */

/* A name: letters, or anything between < and >. NULL: there is none. */
static const char *tz_name(const char *s)
{
    const char *end = s;
    if (*s == '<') {
        end = strchr(s, '>');
        return end ? end + 1 : NULL;
    }
    while (isalpha((unsigned char)*end))
        end++;
    return end - s >= 3 ? end : NULL;
}

/* [+-]hh[:mm[:ss]] in seconds. */
static const char *tz_time(const char *s, int *ret)
{
    int sign = *s == '-' ? -1 : 1, unit = 3600, sum = 0;
    s += *s == '-' || *s == '+';
    if (!isdigit((unsigned char)*s))
        return NULL;
    for (;; unit /= 60) {
        int part = 0, digits = 0;
        for (; isdigit((unsigned char)*s) && digits < 3; s++, digits++)
            part = 10 * part + (*s - '0');
        sum += part * unit;
        if (*s != ':' || unit == 1 || !isdigit((unsigned char)s[1]))
            break;
        s++;
    }
    *ret = sign * sum;
    return s;
}

static const char *tz_number(const char *s, int least, int most, int *ret)
{
    int value = 0, digits = 0;
    for (; isdigit((unsigned char)*s) && digits < 2; s++, digits++)
        value = 10 * value + (*s - '0');
    *ret = value;
    return digits && value >= least && value <= most ? s : NULL;
}

/* ,M3.5.0/2 */
static const char *tz_read_rule(const char *s, struct tz_rule *ret)
{
    ret->time_s = 2 * 3600;
    if (s[0] != ',' || s[1] != 'M' || !(s = tz_number(s + 2, 1, 12, &ret->month)) || *s != '.' ||
        !(s = tz_number(s + 1, 1, 5, &ret->week)) || *s != '.' ||
        !(s = tz_number(s + 1, 0, 6, &ret->day)))
        return NULL;
    return *s == '/' ? tz_time(s + 1, &ret->time_s) : s;
}

static void tz_read_text(struct pipe_zone *z, const char *s)
{
    int winter = 0, summer = 0;
    if (!(s = tz_name(s)) || !(s = tz_time(s, &winter)))
        return;
    z->winter = -winter;
    z->has_rule = true;
    if (!*s || !(s = tz_name(s)))
        return;
    summer = winter - 3600;
    if (*s != ',' && !(s = tz_time(s, &summer)))
        return;
    z->summer = -summer;
    if (!(s = tz_read_rule(s, &z->begin)))
        return;
    z->has_summer = tz_read_rule(s, &z->end) != NULL;
}

/* Days from 1970 to the first of a month (1 to 12) of a year. */
static int64_t tz_days(int64_t year, int month)
{
    int64_t y = year - (month <= 2), era = (y >= 0 ? y : y - 399) / 400, yoe = y - era * 400;
    int64_t doy = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5;
    return era * 146097 + yoe * 365 + yoe / 4 - yoe / 100 + doy - 719468;
}

/* When a rule comes in a year, by the clock that it ends. */
static int64_t tz_rule_time(const struct tz_rule *r, int64_t year)
{
    int64_t first = tz_days(year, r->month);
    int64_t next = r->month == 12 ? tz_days(year + 1, 1) : tz_days(year, r->month + 1);
    int64_t weekday = ((first % 7) + 11) % 7; /* 1970-01-01 was a Thursday */
    int64_t day = first + (r->day - weekday + 7) % 7 + 7 * (int64_t)(r->week - 1);
    while (day >= next)
        day -= 7;
    return day * TZ_DAY_S + r->time_s;
}

static int tz_by_rule(const struct pipe_zone *z, int64_t at)
{
    if (!z->has_summer)
        return z->winter;
    int64_t year = 1970 + (at + z->winter) / 31556952;
    while (tz_days(year + 1, 1) * TZ_DAY_S <= at + z->winter)
        year++;
    while (tz_days(year, 1) * TZ_DAY_S > at + z->winter)
        year--;
    int64_t begin = tz_rule_time(&z->begin, year) - z->winter;
    int64_t end = tz_rule_time(&z->end, year) - z->summer;
    bool is_summer = begin < end ? at >= begin && at < end : at >= begin || at < end;
    return is_summer ? z->summer : z->winter;
}

int pipe_zone_offset(int64_t at, void *zone)
{
    const struct pipe_zone *z = zone;
    size_t low = 0, high = z->n; /* the first change behind `at` */
    while (low < high) {
        size_t mid = (low + high) / 2;
        if (z->at[mid] <= at)
            low = mid + 1;
        else
            high = mid;
    }
    if (low == z->n && z->has_rule)
        return tz_by_rule(z, at);
    return low ? z->off[low - 1] : z->first;
}

/* ---- the file ---- */

static uint32_t tz_u32(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int64_t tz_i64(const unsigned char *p)
{
    return (int64_t)((uint64_t)tz_u32(p) << 32 | tz_u32(p + 4));
}

struct tz_counts {
    uint32_t utc, std, leap, times, types, chars;
};

static bool tz_head(const unsigned char *p, size_t n, struct tz_counts *ret)
{
    if (n < TZ_HEAD || memcmp(p, "TZif", 4) != 0 || p[4] < '2')
        return false;
    *ret = (struct tz_counts){tz_u32(p + 20), tz_u32(p + 24), tz_u32(p + 28),
                              tz_u32(p + 32), tz_u32(p + 36), tz_u32(p + 40)};
    return ret->utc <= 256 && ret->std <= 256 && ret->leap <= 1000 && ret->times <= TZ_TIMES_MAX &&
           ret->types >= 1 && ret->types <= 256 && ret->chars <= 1024;
}

static size_t tz_block(const struct tz_counts *c, size_t time_bytes)
{
    return c->times * (time_bytes + 1) + c->types * 6u + c->chars + c->leap * (time_bytes + 4) +
           c->std + c->utc;
}

static bool tz_read_times(struct pipe_zone *z, const unsigned char *p, const struct tz_counts *c)
{
    const unsigned char *which = p + 8u * c->times, *types = which + c->times;
    z->first = (int32_t)tz_u32(types);
    z->at = xcalloc(c->times + 1, sizeof(*z->at));
    z->off = xcalloc(c->times + 1, sizeof(*z->off));
    for (z->n = 0; z->n < c->times; z->n++) {
        if (which[z->n] >= c->types)
            return false;
        z->at[z->n] = tz_i64(p + 8u * z->n);
        z->off[z->n] = (int32_t)tz_u32(types + 6u * which[z->n]);
        bool is_sane = z->off[z->n] > -2 * TZ_DAY_S && z->off[z->n] < 2 * TZ_DAY_S;
        if (!is_sane || (z->n && z->at[z->n] <= z->at[z->n - 1]))
            return false;
    }
    return z->first > -2 * TZ_DAY_S && z->first < 2 * TZ_DAY_S;
}

static bool tz_read(struct pipe_zone *z, const unsigned char *p, size_t n)
{
    struct tz_counts c;
    char text[TZ_TEXT_MAX];
    size_t i = 0;
    if (!tz_head(p, n, &c) || n < TZ_HEAD + tz_block(&c, 4))
        return false;
    size_t skip = TZ_HEAD + tz_block(&c, 4);
    p += skip;
    n -= skip;
    if (!tz_head(p, n, &c) || n < TZ_HEAD + tz_block(&c, 8) || !tz_read_times(z, p + TZ_HEAD, &c))
        return false;
    skip = TZ_HEAD + tz_block(&c, 8);
    p += skip;
    n -= skip;
    for (; i + 1 < n && i + 1 < sizeof(text) && p[i + 1] != '\n'; i++)
        text[i] = (char)p[i + 1];
    text[i] = 0;
    if (n && *p == '\n')
        tz_read_text(z, text);
    return true;
}

int pipe_zone_parse(const void *bytes, size_t n, struct pipe_zone **ret, struct err *err)
{
    struct pipe_zone *z = xcalloc(1, sizeof(*z));
    if (n > PIPE_ZONE_MAX_BYTES || !tz_read(z, bytes, n)) {
        pipe_zone_free(z);
        return message_refuse(err, ERR_BAD_SPEC, "zone_file", MESSAGE_NO_ARGS);
    }
    *ret = z;
    return 0;
}
