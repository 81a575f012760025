/* SPDX-License-Identifier: Apache-2.0 */
/* verdict_kind.c - the words of the kinds; see verdict_kind.h. They leave the process: events,
 * facts of alerts and pages have them. */
#include "core/training/verdict_kind.h"

#include <assert.h>

#include "base/str.h"

static_assert(VERDICT_KINDS <= 64, "a set of kinds is 64 bits");

static const struct {
    const char *word, *key;
    bool severe;
} kinds[VERDICT_KINDS] = {
#define X(e, word, is_severe, key) [e] = {word, key, is_severe},
    VERDICT_KIND_TABLE(X)
#undef X
};

/* The keys of a training on given answers, where they are others. */
static const char *const sft_keys[VERDICT_KINDS] = {
    [VERDICT_NOT_FINITE] = "optim.lr",
    [VERDICT_GRAD_JUMP] = "optim.clip_grad",
    [VERDICT_NO_UPDATE] = "optim.lr",
    [VERDICT_WARMUP] = "optim.lr_warmup_steps_ratio",
    [VERDICT_MEMORY] = "data.micro_batch_size_per_gpu",
};

const char *verdict_kind_key(enum verdict_kind k, bool is_sft)
{
    return is_sft && sft_keys[k] ? sft_keys[k] : kinds[k].key;
}

uint64_t verdict_kind_bit(enum verdict_kind k)
{
    return UINT64_C(1) << k;
}

const char *verdict_kind_to_string(enum verdict_kind k)
{
    return kinds[k].word;
}

enum verdict_kind verdict_kind_from_string(const char *word)
{
    int k = 0;
    while (k < VERDICT_KINDS && !str_eq(kinds[k].word, word))
        k++;
    return (enum verdict_kind)k;
}

bool verdict_kind_is_severe(enum verdict_kind k)
{
    return kinds[k].severe;
}
