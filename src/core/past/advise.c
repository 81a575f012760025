/* SPDX-License-Identifier: Apache-2.0 */
/* advise.c - see advise.h. A rule is silent where its facts are missing. */
#include "core/past/advise.h"

#include <inttypes.h>
#include <stdarg.h>

#include "base/str.h"
#include "base/text.h"
#include "core/account/waste.h"
#include "core/check/preflight.h"

enum { SAVE_USUAL = 10 };

struct advice {
    const char *key, *value, *text;
};
static const struct field advise_rows[] = {
    FIELD_AT(advice, "key", FIELD_STR, key),
    FIELD_AT(advice, "value", FIELD_STR, value),
    FIELD_AT(advice, "text", FIELD_STR, text, .flags = FIELD_ALWAYS),
};
const struct field_table advise_table = FIELD_TABLE("Advice", advise_rows, advice);

void advise_put_one(struct jout *j, const char *key, const char *value, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    text_vprintf(text, fmt, ap);
    va_end(ap);
    const struct advice advice = {.key = key, .value = value, .text = text};
    field_to_json(&advise_table, &advice, FIELD_ALL, FIELD_PAGE, j, NULL);
}

/* True: it has said something; so does the next one. */
static bool advise_timeout(const struct advise_in *in, struct jout *j)
{
    char value[CLOCK_TEXT_MAX], p90[CLOCK_TEXT_MAX], has[CLOCK_TEXT_MAX];
    usec_t limit = in->spec->timeout, best = waste_time_limit(in->p90, limit);
    if (!best)
        return false;
    (void)span_to_string(best, value);
    (void)span_to_string(in->p90, p90);
    (void)span_to_string(limit, has);
    if (limit)
        advise_put_one(
            j, "timeout", value,
            "nine of ten runs like this ended within %s, far below its timeout of %s: a shorter "
            "one lets it start in gaps of the queue",
            p90, has);
    else
        advise_put_one(
            j, "timeout", value,
            "nine of ten runs like this ended within %s: with a timeout it can start in gaps of "
            "the queue",
            p90);
    return true;
}

static bool advise_size(const struct advise_in *in, struct jout *j)
{
    char value[24];
    if (in->fits_pool || in->largest < 1 || in->largest >= in->demand->nnodes)
        return false;
    text_printf(value, "%d", in->largest);
    advise_put_one(
        j, "nnodes", value,
        "its pool has room for %d nodes of this shape and not for %d: as it is it waits for "
        "machines to join",
        in->largest, in->demand->nnodes);
    return true;
}

/* What was measured goes before what is usual. */
static void advise_save(const struct advise_in *in, struct jout *j)
{
    char value[24], one[32];
    int64_t freq = in->spec->save_freq;
    bool by_override = spec_override_find(in->spec, "trainer.save_freq");
    if (in->past &&
        past_advise_save(in->past, in->line, str_or(in->spec->project, ""), by_override, j))
        return;
    if (freq < 1 || freq >= SAVE_USUAL || in->spec->checkpoint_none || !in->checkpoint_bytes)
        return;
    text_printf(value, "%d", SAVE_USUAL);
    advise_put_one(
        j, "save_freq", value,
        "each checkpoint writes about %s while the GPUs wait, and there is one every %" PRId64
        " step%s",
        preflight_size_text(in->checkpoint_bytes, one), freq, freq == 1 ? "" : "s");
}

/* Only where all are kept: what a number of them needs is preflight's, which refuses. */
static void advise_keep(const struct advise_in *in, struct jout *j)
{
    const struct spec *s = in->spec;
    char value[24], one[32], all[32], has[32];
    uint64_t wants;
    if (s->keep_last > 0 || s->save_freq < 1 || s->total_training_steps < 1 || s->checkpoint_none ||
        !in->checkpoint_bytes || !in->free_bytes)
        return;
    uint64_t n = (uint64_t)(s->total_training_steps / s->save_freq);
    if (__builtin_mul_overflow(n, in->checkpoint_bytes, &wants))
        wants = UINT64_MAX;
    uint64_t fit = in->free_bytes / in->checkpoint_bytes; /* one of them is being written */
    if (wants <= in->free_bytes || fit < 2)
        return;
    text_printf(value, "%" PRIu64, fit - 1);
    advise_put_one(j, "checkpoint.keep_last", value,
                   "all of its %" PRIu64 " checkpoints of about %s need %s, and %s are free", n,
                   preflight_size_text(in->checkpoint_bytes, one), preflight_size_text(wants, all),
                   preflight_size_text(in->free_bytes, has));
}

void advise_put(const struct advise_in *in, struct jout *j)
{
    bool says_timeout = advise_timeout(in, j);
    bool says_size = advise_size(in, j);
    advise_save(in, j);
    advise_keep(in, j);
    if (in->past)
        past_advise_sizes(in->past, in->line, j);
    if (!in->hint || (in->hint->kind == SCHED_HINT_TIMEOUT && says_timeout) ||
        (in->hint->kind == SCHED_HINT_SHAPE && says_size))
        return;
    advise_put_hint(in->hint, j);
}

void advise_put_hint(const struct sched_hint *h, struct jout *j)
{
    char value[CLOCK_TEXT_MAX];
    switch (h->kind) {
    case SCHED_HINT_POOL:
        advise_put_one(j, "pool", h->pool, "it would start now in this pool; as it is it waits");
        break;
    case SCHED_HINT_SHAPE:
        text_printf(value, "%d", h->nnodes);
        advise_put_one(j, "nnodes", value,
                       "it would start now on %d node%s with %g GPUs each; as it is it waits",
                       h->nnodes, h->nnodes == 1 ? "" : "s", h->n_gpus_per_node);
        text_printf(value, "%g", h->n_gpus_per_node);
        advise_put_one(j, "n_gpus_per_node", value, "together with nnodes: %d", h->nnodes);
        break;
    case SCHED_HINT_TIMEOUT:
        (void)span_to_string(h->limit, value);
        advise_put_one(j, "timeout", value,
                       "with a timeout of at most %s it would delay no other job and start now",
                       value);
        break;
    default:
        break; /* nothing that he who submits can set */
    }
}
