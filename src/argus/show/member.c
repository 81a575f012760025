/* SPDX-License-Identifier: Apache-2.0 */
/* member.c - see member.h. A reply may come from an older or newer server: what is missing has
 * its own text. */
#include "argus/show/member.h"

#include <string.h>

#include "base/str.h"
#include "base/text.h"

const char *member_str(const json_t *object, const char *key)
{
    const char *s = json_get_str(object, key, NULL);
    return s && *s ? s : "-";
}

const json_t *member_at(const json_t *object, const char *path)
{
    const char *dot = strchr(path, '.');
    if (!dot)
        return json_object_get(object, path);
    _cleanup_(freep) char *first = xstrndup(path, (size_t)(dot - path));
    return member_at(json_object_get(object, first), dot + 1);
}

const char *size_text(int64_t bytes, char text[static SIZE_TEXT_MAX])
{
    double v = (double)bytes;
    const char *unit = text_bytes_unit(&v);
    text_printf_to(text, SIZE_TEXT_MAX, bytes < 1024 ? "%.0f %s" : "%.1f %s", v, unit);
    return text;
}
