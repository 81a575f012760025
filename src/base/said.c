/* SPDX-License-Identifier: Apache-2.0 */
/* said.c - see said.h. Names that the server hides are null in the arguments, and said as such. */
#include "base/said.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"

enum { SAID_DEPTH_MAX = 12 };

static void replace(json_t *o, const char *key, const char *text)
{
    if (text && json_is_string(json_object_get(o, key)))
        (void)json_object_set_new(o, key, json_string(text)); /* no memory: the old one stays */
}

static void say_again(json_t *o, enum message_language language)
{
    const struct message_listener to = {.language = language};
    const char *code = json_get_str(o, "code", NULL);
    _cleanup_(freep) char *args = json_dumps(json_get_object(o, "args"), JSON_COMPACT);
    if (!code || !args)
        return;
    struct message_page said;
    message_page(code, args, &to, &said);
    if (said.args && said.is_whole) {
        replace(o, "text", said.text);
        replace(o, "detail", said.text);
        replace(o, "fix", said.fix);
        replace(o, "hint", said.fix);
    }
    message_page_release(&said);
}

char *said_advice(const char *code, const char *advice, enum message_language language)
{
    const struct message_listener english = {.language = MESSAGE_ENGLISH},
                                  to = {.language = language};
    struct buf held = {0}, other = {0};
    const char *known = code ? message_say(code, "{}", &english, &held) : NULL;
    char *ret = xstrdup(advice);
    if (known && str_eq(known, advice)) { /* else somebody's own rule has that id */
        free(ret);
        ret = xstrdup(message_say(code, "{}", &to, &other));
    }
    buf_release(&held);
    buf_release(&other);
    return ret;
}

static void advise_again(json_t *o, enum message_language language)
{
    const char *code = json_get_str(o, "advice_code", NULL);
    _cleanup_(freep) char *said =
        code ? said_advice(code, json_get_str(o, "advice", NULL), language) : NULL;
    replace(o, "advice", said);
}

static void said_below(json_t *v, enum message_language language, int depth)
{
    const char *key;
    size_t i;
    json_t *member;
    if (depth > SAID_DEPTH_MAX)
        return;
    if (json_is_object(v)) {
        say_again(v, language);
        advise_again(v, language);
    }
    json_object_foreach (v, key, member)
        said_below(member, language, depth + 1);
    json_array_foreach (v, i, member)
        said_below(member, language, depth + 1);
}

char *said_in_text(const char *json, enum message_language language)
{
    _cleanup_(json_unrefp) json_t *v = NULL;
    size_t n = json ? strlen(json) : 0;
    if (language == MESSAGE_ENGLISH || !n || json_parse(json, n, n, &v, NULL) < 0)
        return xstrdup(json);
    said_in(v, language);
    char *said = json_dumps(v, JSON_COMPACT);
    return said ? said : xstrdup(json);
}

void said_in(json_t *v, enum message_language language)
{
    if (v && language != MESSAGE_ENGLISH)
        said_below(v, language, 0);
}
