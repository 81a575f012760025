/* SPDX-License-Identifier: Apache-2.0 */
/* when.c - relative and absolute times; see when.h. */
#include "argus/show/when.h"

#include <inttypes.h>
#include <time.h>

#include "base/text.h"

static const char *none(char out[static WHEN_TEXT_MAX])
{
    out[0] = '-';
    out[1] = 0;
    return out;
}

usec_t when_of(const json_t *text)
{
    usec_t at = 0;
    if (json_is_string(text) && clock_from_string(json_string_value(text), &at, NULL) < 0)
        return 0;
    return at;
}

usec_t when_get(const json_t *object, const char *key)
{
    return when_of(json_object_get(object, key));
}

const char *when_rough(usec_t span, char out[static WHEN_TEXT_MAX])
{
    static const struct {
        usec_t size;
        char letter;
    } units[] = {{USEC_DAY, 'd'}, {USEC_HOUR, 'h'}, {USEC_MIN, 'm'}, {USEC_SEC, 's'}};
    size_t i = 0;
    while (i < array_len(units) - 1 && span < units[i].size)
        i++;
    text_printf_to(out, WHEN_TEXT_MAX, "%" PRIu64 "%c", span / units[i].size, units[i].letter);
    return out;
}

const char *when_point(const struct when *w, usec_t at, char out[static WHEN_TEXT_MAX])
{
    char text[CLOCK_TEXT_MAX], rough[WHEN_TEXT_MAX];
    if (!at)
        return none(out);
    if (w->utc) {
        clock_to_string(at, text);
        text_printf_to(out, WHEN_TEXT_MAX, "%.19sZ", text);
        return out;
    }
    const char *texts[] = {when_rough(at > w->now ? at - w->now : w->now - at, rough)};
    return msg_fill(w->lang, at > w->now ? "say_in" : "say_ago", texts, out, WHEN_TEXT_MAX);
}

const char *when_here(const struct when *w, usec_t at, char out[static WHEN_TEXT_MAX])
{
    char point[WHEN_TEXT_MAX], local[40];
    time_t seconds = (time_t)(at / USEC_SEC);
    struct tm tm;
    text_copy(point, when_point(w, at, out));
    if (at && !w->utc && localtime_r(&seconds, &tm) &&
        strftime(local, sizeof(local), "%Y-%m-%d %H:%M:%S %z", &tm) > 0)
        text_printf_to(out, WHEN_TEXT_MAX, "%.20s (%s)", point, local);
    return out;
}

const char *when_lasted(const struct when *w,
                        usec_t start,
                        usec_t end,
                        char out[static WHEN_TEXT_MAX])
{
    char text[CLOCK_TEXT_MAX];
    usec_t until = end ? end : w->now;
    if (!start)
        return none(out);
    text_copy_to(out, WHEN_TEXT_MAX, span_to_string(until > start ? until - start : 0, text));
    return out;
}
