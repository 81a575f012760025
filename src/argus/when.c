/* SPDX-License-Identifier: Apache-2.0 */
/* when.c - relative and absolute times; see when.h. */
#include "argus/when.h"

#include <inttypes.h>
#include <stdio.h>

static const char *none(char out[static WHEN_TEXT_MAX])
{
    out[0] = '-';
    out[1] = 0;
    return out;
}

usec_t when_get(const json_t *object, const char *key)
{
    usec_t at = 0;
    const char *text = json_get_str(object, key, NULL);
    if (text && clock_from_string(text, &at, NULL) < 0)
        return 0;
    return at;
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
    (void)snprintf(out, WHEN_TEXT_MAX, "%" PRIu64 "%c", span / units[i].size, units[i].letter);
    return out;
}

const char *when_point(const struct when *w, usec_t at, char out[static WHEN_TEXT_MAX])
{
    char text[CLOCK_TEXT_MAX], rough[WHEN_TEXT_MAX];
    if (!at)
        return none(out);
    if (w->utc) {
        clock_to_string(at, text);
        (void)snprintf(out, WHEN_TEXT_MAX, "%.19sZ", text);
        return out;
    }
    const char *texts[] = {when_rough(at > w->now ? at - w->now : w->now - at, rough)};
    return msg_fill(w->lang, at > w->now ? MSG_IN : MSG_AGO, texts, out, WHEN_TEXT_MAX);
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
    (void)snprintf(out, WHEN_TEXT_MAX, "%s",
                   span_to_string(until > start ? until - start : 0, text));
    return out;
}
