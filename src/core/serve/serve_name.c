/* SPDX-License-Identifier: Apache-2.0 */
/* serve_name.c - see serve_name.h. Numbers stand at the end of a name, behind "-v" and "-r",
 * without leading zeros, so that each application has one reading. */
#include "core/serve/serve_name.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

static bool name_is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

/* The number behind the last "-<word>" of the first len bytes of text, and where that begins. */
static bool name_tail(const char *text, size_t len, char word, size_t *ret_at, int64_t *ret)
{
    char digits[20];
    size_t at = len;
    while (at && text[at - 1] >= '0' && text[at - 1] <= '9')
        at--;
    if (at == len || len - at >= sizeof(digits) || at < 3 || text[at - 1] != word ||
        text[at - 2] != '-' || text[at] == '0')
        return false;
    memcpy(digits, text + at, len - at);
    digits[len - at] = '\0';
    *ret_at = at - 2;
    return str_to_int(digits, 1, INT64_MAX, ret, NULL) == 0;
}

bool serve_app_parse(const char *app,
                     char ret_service[static SERVE_NAME_MAX + 1],
                     int64_t *ret_version,
                     int64_t *ret_unit)
{
    size_t len = strlen(app), at;
    int64_t version, unit = 1;
    if (name_tail(app, len, 'r', &at, &unit)) {
        if (unit == 1)
            return false; /* the first one has no number */
        len = at;
    } else {
        unit = 1;
    }
    if (!name_tail(app, len, 'v', &at, &version) || at > SERVE_NAME_MAX)
        return false;
    memcpy(ret_service, app, at);
    ret_service[at] = '\0';
    *ret_version = version;
    *ret_unit = unit;
    return serve_name_check(ret_service, NULL) == 0;
}

int serve_name_check(const char *name, struct err *err)
{
    size_t len = strlen(name), at;
    int64_t number;
    bool ok = len && len <= SERVE_NAME_MAX && name_is_letter(*name);
    for (size_t i = 0; ok && i < len; i++)
        ok = name_is_letter(name[i]) || name[i] == '-';
    if (ok && name_tail(name, len, 'r', &at, &number))
        len = at;
    if (ok && !name_tail(name, len, 'v', &at, &number))
        return 0;
    return message_refuse(
        err, ERR_BAD_SPEC, "serve_name",
        MESSAGE_ARGS(MESSAGE_STR("name", name), MESSAGE_NUM("most", SERVE_NAME_MAX)));
}

void serve_name_make(const char *text, char ret[static SERVE_NAME_MAX + 1])
{
    size_t n = 0;
    for (; *text && n < SERVE_NAME_MAX; text++) {
        char c = (char)tolower((unsigned char)*text);
        if (name_is_letter(c))
            ret[n++] = c;
        else if (n && ret[n - 1] != '-')
            ret[n++] = '-';
    }
    while (n && ret[n - 1] == '-')
        n--;
    ret[n] = '\0';
}

const char *serve_app_name(const char *service,
                           int64_t version,
                           int64_t unit,
                           char ret[static SERVE_APP_MAX])
{
    char more[24] = "";
    if (unit > 1)
        text_printf(more, "-r%" PRId64, unit);
    text_printf_to(ret, SERVE_APP_MAX, "%s-v%" PRId64 "%s", service, version, more);
    return ret;
}

const char *serve_app_route(const char *app, char ret[static SERVE_APP_MAX + 8])
{
    text_printf_to(ret, SERVE_APP_MAX + 8, SERVE_ROUTES "%s", app);
    return ret;
}
