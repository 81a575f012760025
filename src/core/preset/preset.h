/* SPDX-License-Identifier: Apache-2.0 */
/* preset.h - a JobSpec with holes to fill.
 *
 *   description: GRPO of a 7B model on one node
 *   holes:
 *     model_id: {type: model, required: true, description: the model to train}
 *     lr: {type: number, default: 1e-6, description: learning rate of the actor}
 *   spec:
 *     workload: grpo
 *     model_id: ${hole:model_id}
 *     overrides: ["actor_rollout_ref.actor.optim.lr=${hole:lr}"]
 *
 * A value that is one hole and nothing else becomes what was given, a list too; within a longer
 * text the given words are put in. A value whose hole has nothing (neither given nor a default) is
 * left out with its key. What is given is a mapping: a key that is a hole's name fills the hole,
 * every other one is a key of the JobSpec and goes before the preset's; of `overrides` and `env`
 * the preset's stay and the given ones are added, and win. Pure. */
#pragma once
#include <stdbool.h>

#include "base/doc/doc.h"

/* X(enumerator, word). What a model or data hole takes may also be a registered name. */
#define PRESET_TYPES(X)                                                                            \
    X(PRESET_TEXT, "text")                                                                         \
    X(PRESET_INTEGER, "integer")                                                                   \
    X(PRESET_NUMBER, "number")                                                                     \
    X(PRESET_BOOLEAN, "boolean")                                                                   \
    X(PRESET_PATH, "path")                                                                         \
    X(PRESET_MODEL, "model")                                                                       \
    X(PRESET_DATA, "data") /* one, or a list */

enum preset_type {
#define X(e, word) e,
    PRESET_TYPES(X)
#undef X
        PRESET_TYPES_COUNT
};

enum { PRESET_MAX_BYTES = 64 << 10, PRESET_HOLES_MAX = 64, PRESET_NAME_MAX = 63 };

struct preset;

/* Everything wrong goes to ps, also what spec_read() says of it once it is filled with its
 * examples; then ERR_BAD_SPEC. */
must_check int preset_parse(const char *text, size_t len, struct preset **ret, struct problems *ps);
void preset_free(struct preset *p); /* NULL is fine */

const char *preset_description(const struct preset *p); /* borrowed; "" if it has none */
const char *preset_workload(const struct preset *p);    /* borrowed; NULL: a hole says it */
/* An array of {"name","type","required","default","example","description"} under key. */
void preset_put_holes(const struct preset *p, struct jout *j, const char *key);

/* Append the JobSpec as JSON. name: of the preset, for what is told. given: a mapping, its key
 * `preset` is ignored. ERR_BAD_SPEC when ps got errors. */
must_check int preset_fill(const struct preset *p,
                           const char *name,
                           const struct node *given,
                           struct buf *out,
                           struct problems *ps);
/* The same with each hole's example, else its default, else a word of its type. */
must_check int preset_sample(const struct preset *p, struct buf *out, struct problems *ps);

/* [a-z0-9][a-z0-9_.-]{0,62}. ERR_BAD_SPEC. */
must_check int preset_check_name(const char *name, struct err *err);
