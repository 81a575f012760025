/* SPDX-License-Identifier: Apache-2.0 */
/* preset_holes.c - what a preset leaves open; see preset_holes.h. */
#include "core/preset/preset_holes.h"

#include <string.h>
#include <strings.h>

#include "base/str.h"

struct preset_hole *preset_find_hole(const struct preset *p, const char *name, size_t len)
{
    for (size_t i = 0; i < p->n; i++)
        if (strlen(p->holes[i].name) == len && !memcmp(p->holes[i].name, name, len))
            return &p->holes[i];
    return NULL;
}

char *preset_list_holes(const struct preset *p)
{
    struct buf out = BUF_INIT(PRESET_HOLES_MAX * (PRESET_NAME_MAX + 16));
    for (size_t i = 0; i < p->n; i++)
        (void)buf_addf(&out, "%s%s%s", i ? ", " : "", p->holes[i].name,
                       p->holes[i].required ? " (required)" : ""); /* they fit */
    return p->n ? buf_take(&out) : xstrdup("none");
}

const char *preset_find_mark(const char *text,
                             const char **ret_name,
                             size_t *ret_len,
                             const char **ret_end)
{
    const char *at = strstr(text, PRESET_MARK);
    const char *end = at ? strchr(at, '}') : NULL;
    if (!end)
        return NULL;
    *ret_name = at + sizeof(PRESET_MARK) - 1;
    *ret_len = (size_t)(end - *ret_name);
    *ret_end = end + 1;
    return at;
}

bool preset_is_of_type(int type, const struct node *v)
{
    int64_t i;
    double d;
    if (type == PRESET_DATA && v->kind == NODE_SEQ) {
        for (const struct node *c = v->first; c; c = c->next)
            if (c->kind != NODE_SCALAR)
                return false;
        return v->n > 0;
    }
    if (v->kind != NODE_SCALAR)
        return false;
    switch (type) {
    case PRESET_INTEGER:
        return str_to_int(v->text, INT64_MIN, INT64_MAX, &i, NULL) == 0;
    case PRESET_NUMBER:
        return str_to_real(v->text, &d, NULL) == 0;
    case PRESET_BOOLEAN:
        return !strcasecmp(v->text, "true") || !strcasecmp(v->text, "false");
    case PRESET_TEXT:
        return true;
    default:
        return *v->text != 0;
    }
}

const char *preset_type_sentence(int type)
{
    static const char *const sentences[] = {
        [PRESET_TEXT] = "a text",          [PRESET_INTEGER] = "a whole number",
        [PRESET_NUMBER] = "a number",      [PRESET_BOOLEAN] = "true or false",
        [PRESET_PATH] = "a path",          [PRESET_MODEL] = "a model",
        [PRESET_DATA] = "data, or a list",
    };
    return sentences[type];
}

const char *preset_shown(const struct node *v)
{
    return v->kind == NODE_SCALAR ? v->text : v->kind == NODE_SEQ ? "a list" : "a mapping";
}
