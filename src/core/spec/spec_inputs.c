/* SPDX-License-Identifier: Apache-2.0 */
/* spec_inputs.c - registered names in a spec, and what took their place at submit; see spec.h.
 *
 * What a name means is decided once and kept with the job: a version that is registered later
 * changes nothing of a job that waits. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "core/spec/dataref.h"
#include "core/spec/spec.h"

enum { INPUTS_MAX = 1 << 20 };

bool spec_is_input_name(const char *text)
{
    struct dataref ref;
    return dataref_read(text, &ref);
}

/* The elements that say `text` become these files. */
static void put_files(struct strv *list, const char *text, const json_t *files)
{
    struct strv all = {0};
    size_t k;
    const json_t *file;
    for (size_t i = 0; i < list->n; i++) {
        if (strcmp(list->v[i], text) != 0) {
            strv_add(&all, list->v[i]);
            continue;
        }
        json_array_foreach (files, k, file)
            if (json_is_string(file))
                strv_add(&all, json_string_value(file));
    }
    strv_release(list);
    *list = all;
}

bool spec_find_model(const char *inputs, char **ret_path, char **ret_hash)
{
    static const char word[] = "sha256:";
    _cleanup_(json_unrefp) json_t *all = NULL;
    size_t i;
    const json_t *one;
    if (!inputs || json_parse(inputs, strlen(inputs), INPUTS_MAX, &all, NULL) < 0)
        return false;
    json_array_foreach (all, i, one) {
        const char *hash = json_get_str(one, "hash", "");
        const char *path = json_string_value(json_array_get(json_get_array(one, "files"), 0));
        if (strcmp(json_get_str(one, "key", ""), "model_id") != 0 || !path ||
            !str_starts(hash, word))
            continue;
        *ret_path = xstrdup(path);
        *ret_hash = xstrdup(hash + sizeof(word) - 1);
        return true;
    }
    return false;
}

int spec_put_inputs(struct spec *s, const char *inputs, struct err *err)
{
    _cleanup_(json_unrefp) json_t *all = NULL;
    size_t i;
    const json_t *one;
    if (!inputs)
        return 0;
    int r = json_parse(inputs, strlen(inputs), INPUTS_MAX, &all, err);
    if (r < 0)
        return r;
    json_array_foreach (all, i, one) {
        const char *key = json_get_str(one, "key", ""), *text = json_get_str(one, "text", "");
        const json_t *files = json_get_array(one, "files");
        const char *first = json_string_value(json_array_get(files, 0));
        if (!strcmp(key, "train_file"))
            put_files(&s->train_file, text, files);
        else if (!strcmp(key, "val_file"))
            put_files(&s->val_file, text, files);
        else if (!strcmp(key, "model_id") && first)
            set_str(&s->model_id, first);
    }
    return 0;
}
