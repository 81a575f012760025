/* SPDX-License-Identifier: Apache-2.0 */
/* smoke.c - see smoke.h. Everything that it does not know stays as it is. */
#include "core/spec/smoke.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "core/spec/spec.h"

static bool trains(const struct node *root)
{
    const struct node *w = node_find(root, "workload");
    return w && w->text && workload_word_trains(w->text);
}

static bool is_ours(const char *key, bool training)
{
    static const char *const always[] = {"nnodes", "n_gpus_per_node", "restart", "overrides"};
    static const char *const when_training[] = {
        "total_training_steps", "total_epochs", "save_freq",   "test_freq",
        "checkpoint",           "resume",       "eval_on_save"};
    for (size_t i = 0; i < array_len(always); i++)
        if (!strcmp(key, always[i]))
            return true;
    for (size_t i = 0; training && i < array_len(when_training); i++)
        if (!strcmp(key, when_training[i]))
            return true;
    return false;
}

/* One GPU, or the part of one that was asked; none stays none. */
static void put_gpus(struct jout *j, const struct node *root)
{
    const struct node *given = node_find(root, "n_gpus_per_node");
    double gpus = 0;
    if (!given || node_is_null(given) || str_to_real(given->text, &gpus, NULL) < 0 || gpus <= 0)
        return;
    jout_real(j, "n_gpus_per_node", gpus < 1 ? gpus : 1);
}

/* An override says how long, how often or over how many GPUs: one that is not kept. */
static bool is_dropped(const char *o)
{
    static const char *const keys[] = {"trainer.total_training_steps=", "trainer.total_epochs=",
                                       "trainer.save_freq=", "trainer.test_freq="};
    const char *key = o + strspn(o, "+ ");
    for (size_t i = 0; i < array_len(keys); i++)
        if (str_starts(key, keys[i]))
            return true;
    return false;
}

static void put_override(struct jout *j, const char *o)
{
    const char *equals = strchr(o, '=');
    _cleanup_(freep) char *key = equals ? xstrndup(o, (size_t)(equals - o)) : NULL;
    if (is_dropped(o))
        return;
    if (key && (str_ends(key, "_parallel_size") || str_ends(key, ".fsdp_size"))) {
        _cleanup_(freep) char *one = xasprintf("%s=1", key);
        jout_str(j, NULL, one);
        return;
    }
    jout_str(j, NULL, o);
}

static void smoke_put_overrides(struct jout *j, const struct node *root)
{
    const struct node *given = node_find(root, "overrides");
    if (!given || node_is_null(given))
        return;
    jout_open(j, "overrides", '[');
    if (given->kind == NODE_SCALAR)
        put_override(j, given->text);
    for (const struct node *o = given->first; o; o = o->next)
        if (o->kind == NODE_SCALAR)
            put_override(j, o->text);
    jout_close(j, ']');
}

void smoke_spec(const struct node *root, struct buf *out)
{
    struct jout j = jout_begin(out);
    bool training = trains(root);
    jout_open(&j, NULL, '{');
    for (const struct node *n = root->first; n; n = n->next)
        if (!is_ours(n->key, training))
            node_to_json(n, &j, n->key);
    jout_int(&j, "nnodes", 1);
    put_gpus(&j, root);
    smoke_put_overrides(&j, root);
    if (training) {
        jout_int(&j, "total_training_steps", SMOKE_STEPS);
        jout_int(&j, "test_freq", -1);
        jout_str(&j, "checkpoint", "none");
        jout_str(&j, "resume", "never");
    }
    jout_close(&j, '}');
}
