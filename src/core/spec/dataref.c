/* SPDX-License-Identifier: Apache-2.0 */
/* dataref.c - reads the names of registered things; see dataref.h. What it lets through can stand
 * in a path: no "..", no control character. */
#include "core/spec/dataref.h"

#include <ctype.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

static size_t name_length(const char *s)
{
    size_t n = 0;
    if (!isalnum((unsigned char)*s))
        return 0;
    while (isalnum((unsigned char)s[n]) || (s[n] && strchr("_.-", s[n])))
        n++;
    return n;
}

int dataref_check_name(const char *what, const char *name, struct err *err)
{
    size_t n = name_length(name);
    if (n > 0 && !name[n] && n <= DATAREF_NAME_MAX)
        return 0;
    return message_refuse(err, ERR_BAD_SPEC, "bad_entry_name",
                          MESSAGE_ARGS(MESSAGE_STR("name", name), MESSAGE_STR("noun", what),
                                       MESSAGE_NUM("most", DATAREF_NAME_MAX)));
}

/* "@12" at s; false when it is no version. *ret_len is what it takes. */
static bool read_version(const char *s, int64_t *ret, size_t *ret_len)
{
    char digits[12];
    size_t n = strspn(s + 1, "0123456789");
    if (n == 0 || n >= sizeof(digits))
        return false;
    text_printf(digits, "%.*s", (int)n, s + 1);
    *ret_len = n + 1;
    return str_to_int(digits, 1, INT64_MAX, ret, NULL) == 0;
}

/* ".." and the like never reach the disk from here. */
static bool is_file(const char *s)
{
    while (*s) {
        size_t n = strcspn(s, "/");
        if (n == 0 || *s == '.')
            return false;
        for (size_t i = 0; i < n; i++)
            if (iscntrl((unsigned char)s[i]) || s[i] == '\\')
                return false;
        s += n;
        if (*s && !*++s)
            return false;
    }
    return true;
}

bool dataref_read(const char *text, struct dataref *ret)
{
    struct dataref d = {0};
    const char *s = text;
    size_t n = name_length(s);
    if (s[n] == ':') {
        if (n == 0 || n > DATAREF_OWNER_MAX)
            return false;
        text_printf(d.owner, "%.*s", (int)n, s);
        s += n + 1;
        n = name_length(s);
    }
    if (n == 0 || n > DATAREF_NAME_MAX)
        return false;
    text_printf(d.name, "%.*s", (int)n, s);
    s += n;
    if (*s == '@' && read_version(s, &d.version, &n))
        s += n;
    if (*s == '/' && s[1] && is_file(s + 1))
        d.file = s + 1;
    else if (*s)
        return false;
    *ret = d;
    return true;
}
