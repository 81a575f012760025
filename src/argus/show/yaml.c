/* SPDX-License-Identifier: Apache-2.0 */
/* yaml.c - the writer of yaml.h: plain scalars where no reader can mistake them,
 * double quotes (JSON's own) everywhere else. */
#include "argus/show/yaml.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Words that some YAML reader takes for something else than text. */
static bool is_reserved(const char *s)
{
    static const char *const words[] = {"null", "true", "false", "yes", "no",
                                        "on",   "off",  "y",     "n"};
    for (size_t i = 0; i < array_len(words); i++)
        if (!strcasecmp(s, words[i]))
            return true;
    return false;
}

static bool yaml_is_plain(const char *s)
{
    if (!isalpha((unsigned char)*s) && *s != '/' && *s != '_')
        return false;
    for (const char *p = s; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("_./@+-", *p) &&
            !(*p == ' ' && p[1] && p[1] != ' '))
            return false;
    return !is_reserved(s);
}

static void add_scalar(struct buf *out, const json_t *v)
{
    const char *s = json_string_value(v);
    if (s && yaml_is_plain(s)) {
        (void)buf_adds(out, s); /* overflow: out->failed, here and below */
        return;
    }
    char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(15));
    (void)buf_adds(out, text ? text : "null");
    free(text);
}

static void add_value(struct buf *out, const json_t *v, int indent, bool after_key);

static void add_item(struct buf *out, const json_t *v, int indent)
{
    (void)buf_addf(out, "%*s-", indent, "");
    /* The first key of a mapping stands beside the dash. */
    if (json_is_object(v) && json_object_size(v)) {
        struct buf map = BUF_INIT(out->max);
        add_value(&map, v, indent + 2, false);
        (void)buf_addc(out, ' ');
        (void)buf_adds(out, buf_str(&map) + indent + 2);
        out->failed |= map.failed;
        buf_release(&map);
        return;
    }
    add_value(out, v, indent + 2, true);
}

static void add_pair(struct buf *out, const char *key, const json_t *v, int indent)
{
    json_t *name = json_string(key);
    (void)buf_addf(out, "%*s", indent, "");
    add_scalar(out, name);
    json_decref(name);
    (void)buf_addc(out, ':');
    add_value(out, v, indent + (json_is_object(v) ? 2 : 0), true);
}

/* after_key: the text so far ends in ':' or '-', so that a scalar wants a space and a block a
 * line end before it. */
static void add_value(struct buf *out, const json_t *v, int indent, bool after_key)
{
    const char *key;
    json_t *child;
    size_t i;
    if (!json_array_size(v) && !json_object_size(v)) {
        if (after_key)
            (void)buf_addc(out, ' ');
        add_scalar(out, v);
        (void)buf_addc(out, '\n');
        return;
    }
    if (after_key)
        (void)buf_addc(out, '\n');
    json_array_foreach (v, i, child)
        add_item(out, child, indent);
    void *it = json_is_object(v) ? json_object_iter((json_t *)(uintptr_t)v) : NULL;
    for (; it; it = json_object_iter_next((json_t *)(uintptr_t)v, it)) {
        key = json_object_iter_key(it);
        add_pair(out, key, json_object_iter_value(it), indent);
    }
}

void yaml_add(struct buf *out, const json_t *v)
{
    add_value(out, v, 0, false);
}
