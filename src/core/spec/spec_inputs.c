/* SPDX-License-Identifier: Apache-2.0 */
/* spec_inputs.c - registered names in a spec, what took their place at submit, and what overrides
 * put in their place; see spec.h.
 *
 * What a name means is decided once and kept with the job: a version that is registered later
 * changes nothing of a job that waits. */
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "core/spec/dataref.h"
#include "core/spec/hydra_read.h"
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

/* ---- what overrides put in their place ---- */

#define OF(w) (1u << (w))
/* The keys of every release of verl: a key that a release has not is refused for itself. */
static const struct placed {
    const char *key, *field;
    unsigned workloads;
    enum spec_replaced part;
} placed_keys[] = {
    {"data.train_files", "train_file", OF(WORKLOAD_PPO) | OF(WORKLOAD_GRPO) | OF(WORKLOAD_SFT),
     SPEC_REPLACED_TRAIN},
    {"data.val_files", "val_file", OF(WORKLOAD_PPO) | OF(WORKLOAD_GRPO) | OF(WORKLOAD_SFT),
     SPEC_REPLACED_VAL},
    {"data.path", "val_file", OF(WORKLOAD_EVAL) | OF(WORKLOAD_GENERATE), SPEC_REPLACED_VAL},
    {"data.train_files", "val_file", OF(WORKLOAD_GENERATE), SPEC_REPLACED_VAL},
    {"actor_rollout_ref.model.path", "model_id",
     OF(WORKLOAD_PPO) | OF(WORKLOAD_GRPO) | OF(WORKLOAD_GENERATE), SPEC_REPLACED_MODEL},
    {"model.path", "model_id", OF(WORKLOAD_SFT) | OF(WORKLOAD_GENERATE), SPEC_REPLACED_MODEL},
    {"model.partial_pretrain", "model_id", OF(WORKLOAD_SFT), SPEC_REPLACED_MODEL},
    {"custom_reward_function.path", "reward_fn_path",
     OF(WORKLOAD_PPO) | OF(WORKLOAD_GRPO) | OF(WORKLOAD_EVAL), SPEC_REPLACED_REWARD},
    {"reward.custom_reward_function.path", "reward_fn_path",
     OF(WORKLOAD_PPO) | OF(WORKLOAD_GRPO) | OF(WORKLOAD_EVAL), SPEC_REPLACED_REWARD},
};

static bool spec_is_placed(const struct spec *s, const struct placed *p)
{
    return p->workloads & OF(s->workload);
}

const char *spec_field_of_override(const struct spec *s, const char *key, size_t n)
{
    for (size_t i = 0; i < array_len(placed_keys); i++)
        if (spec_is_placed(s, &placed_keys[i]) && strlen(placed_keys[i].key) == n &&
            !strncmp(placed_keys[i].key, key, n))
            return placed_keys[i].field;
    return NULL;
}

/* The reward of an override: a file, or verl's word for a module. */
static void put_reward_path(struct spec *s, const char *path)
{
    static const char module[] = "pkg://";
    bool is_module = path && str_starts(path, module);
    set_str(&s->reward_fn_path, path);
    set_str(&s->reward_file, is_module ? NULL : path);
    set_str(&s->reward_module, is_module ? path + sizeof(module) - 1 : NULL);
}

static void put_part(struct spec *s, enum spec_replaced part, const struct strv *texts)
{
    const char *first = texts->n ? texts->v[0] : NULL;
    if (part == SPEC_REPLACED_MODEL) {
        set_str(&s->model_id, first);
        return;
    }
    if (part == SPEC_REPLACED_REWARD) {
        put_reward_path(s, first);
        return;
    }
    struct strv *list = part == SPEC_REPLACED_TRAIN ? &s->train_file : &s->val_file;
    strv_release(list);
    for (size_t i = 0; i < texts->n; i++)
        strv_add(list, texts->v[i]);
}

/* `s`, or its copy from the first change on. */
struct final {
    const struct spec *s;
    struct spec *held;
    bool is_copied;
};

static struct spec *final_copy(struct final *f)
{
    if (!f->is_copied)
        spec_copy(f->held, f->s);
    f->is_copied = true;
    return f->held;
}

/* The texts of the last override of this key; none where they are only known later. False: there is
 * no such override. */
static bool find_texts(const struct spec *s, const char *key, struct strv *ret)
{
    const char *value = spec_override_find(s, key);
    *ret = (struct strv){0};
    if (!value)
        return false;
    _cleanup_(freep) char *text = xasprintf("%s=%s", key, value);
    struct hydra_value v;
    if (hydra_read(text, &v) == HYDRA_FINE && v.is_known) {
        *ret = v.texts;
        v.texts = (struct strv){0};
    }
    hydra_value_release(&v);
    return true;
}

static void put_reward_name(struct final *f)
{
    static const char *const keys[] = {"custom_reward_function.name",
                                       "reward.custom_reward_function.name"};
    for (size_t i = 0; i < array_len(keys); i++) {
        struct strv texts;
        if (find_texts(f->s, keys[i], &texts) && texts.n == 1)
            set_str(&final_copy(f)->reward_function, texts.v[0]);
        strv_release(&texts);
    }
}

static unsigned put_placed(struct final *f)
{
    unsigned replaced = 0;
    for (size_t i = 0; i < array_len(placed_keys); i++) {
        const struct placed *p = &placed_keys[i];
        struct strv texts;
        if (!spec_is_placed(f->s, p) || !find_texts(f->s, p->key, &texts))
            continue;
        put_part(final_copy(f), p->part, &texts);
        strv_release(&texts);
        replaced |= p->part;
    }
    return replaced;
}

const struct spec *spec_final(const struct spec *s, struct spec *held, unsigned *ret_replaced)
{
    struct final f = {.s = s, .held = held};
    *held = (struct spec){0};
    *ret_replaced = put_placed(&f);
    if (s->reward_fn_path || (*ret_replaced & SPEC_REPLACED_REWARD))
        put_reward_name(&f);
    return f.is_copied ? held : s;
}
