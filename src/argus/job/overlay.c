/* SPDX-License-Identifier: Apache-2.0 */
/* overlay.c - --set on the way to the server; see overlay.h. The spec becomes a
 * tree of JSON values, so that types are those that the server would read. */
#include "argus/job/overlay.h"

#include <stdlib.h>
#include <string.h>

#include "argus/show/yaml.h"
#include "base/doc/doc.h"
#include "base/message.h"
#include "base/str.h"

/* YAML text as JSON values; NULL when it is none. */
static json_t *read_value(const char *text, size_t len)
{
    _cleanup_(problems_release) struct problems ps = {0};
    _cleanup_(doc_freep) struct doc *doc = NULL;
    _cleanup_(buf_release) struct buf b = BUF_INIT(4 * DOC_MAX_BYTES);
    json_t *v = NULL;
    if (doc_parse(text, len, true, &doc, &ps) < 0 || !doc_root(doc))
        return NULL;
    struct jout j = jout_begin(&b);
    node_to_json(doc_root(doc), &j, NULL);
    if (!b.failed && json_parse(buf_str(&b), b.len, b.max, &v, NULL) < 0)
        return NULL;
    return v;
}

static const char OVERRIDES[] = "overrides.";

/* In the place of one of the same key, which keeps its mark, else as the last. The value is
 * Hydra's: it goes as it is. */
static int set_override(json_t *root, const char *set, struct err *err)
{
    const char *text = set + strlen(OVERRIDES);
    size_t n = strcspn(text, "=") + 1, i;
    json_t *list = json_object_get(root, "overrides"), *one;
    if (n == 1)
        return message_refuse(err, ERR_USAGE, "cli_names_no_key",
                              MESSAGE_ARGS(MESSAGE_STR("text", set)));
    if (!list || json_is_null(list)) {
        (void)json_object_set_new(root, "overrides", json_array()); /* root is an object */
        list = json_object_get(root, "overrides");
    }
    if (!json_is_array(list))
        return message_refuse(err, ERR_USAGE, "cli_set_no_list",
                              MESSAGE_ARGS(MESSAGE_STR("text", set)));
    json_array_foreach (list, i, one) {
        const char *has = json_is_string(one) ? json_string_value(one) : "";
        size_t marks = strspn(has, "+");
        if (strncmp(has + marks, text, n) != 0)
            continue;
        _cleanup_(freep) char *changed = xasprintf("%.*s%s", (int)marks, has, text);
        (void)json_array_set_new(list, i, json_string(changed)); /* i is in it */
        return 0;
    }
    return json_array_append_new(list, json_string(text)) < 0
               ? message_refuse(err, ERR_USAGE, "cli_no_text",
                                MESSAGE_ARGS(MESSAGE_STR("text", set)))
               : 0;
}

static int set_one(json_t *root, const char *set, struct err *err)
{
    const char *eq = strchr(set, '=');
    if (!eq || eq == set)
        return message_refuse(err, ERR_USAGE, "cli_set_form",
                              MESSAGE_ARGS(MESSAGE_STR("text", set)));
    if (str_starts(set, OVERRIDES))
        return set_override(root, set, err);
    json_t *value = eq[1] ? read_value(eq + 1, strlen(eq + 1)) : json_string("");
    if (!value)
        return message_refuse(err, ERR_USAGE, "cli_set_no_yaml",
                              MESSAGE_ARGS(MESSAGE_STR("text", set)));
    json_t *map = root;
    const char *p = set;
    for (const char *dot; (dot = memchr(p, '.', (size_t)(eq - p))); p = dot + 1) {
        char *key = xstrndup(p, (size_t)(dot - p));
        json_t *next = json_object_get(map, key);
        if (!json_is_object(next)) {
            (void)json_object_set_new(map, key, json_object()); /* map is an object */
            next = json_object_get(map, key);
        }
        free(key);
        map = next;
    }
    char *key = xstrndup(p, (size_t)(eq - p));
    int r = map ? json_object_set_new(map, key, value) : -1;
    free(key);
    return r < 0 ? message_refuse(err, ERR_USAGE, "cli_names_no_key",
                                  MESSAGE_ARGS(MESSAGE_STR("text", set)))
                 : 0;
}

int overlay_apply(const char *text,
                  size_t len,
                  const struct strv *sets,
                  struct buf *out,
                  struct err *err)
{
    _cleanup_(json_unrefp) json_t *root = read_value(text, len);
    if (!json_is_object(root))
        return message_refuse(err, ERR_BAD_SPEC, "cli_spec_no_map", MESSAGE_NO_ARGS);
    for (size_t i = 0; i < sets->n; i++) {
        int r = set_one(root, sets->v[i], err);
        if (r < 0)
            return r;
    }
    yaml_add(out, root);
    return out->failed ? message_refuse(err, ERR_TOO_LARGE, "spec_too_large", MESSAGE_NO_ARGS) : 0;
}

void overlay_place(const char *text, size_t len, const char *field, int *ret_line, int *ret_column)
{
    _cleanup_(problems_release) struct problems ps = {0};
    _cleanup_(doc_freep) struct doc *doc = NULL;
    const struct node *n = NULL;
    *ret_line = *ret_column = 0;
    if (doc_parse(text, len, true, &doc, &ps) == 0)
        n = doc_root(doc);
    for (const char *p = field; n && *p;) {
        size_t part = strcspn(p, ".");
        char *key = xstrndup(p, part);
        n = node_find(n, key);
        free(key);
        p += part + (p[part] != 0);
    }
    if (!n || !n->key)
        return;
    *ret_line = n->key_line;
    *ret_column = n->key_column;
}
