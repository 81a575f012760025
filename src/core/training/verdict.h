/* SPDX-License-Identifier: Apache-2.0 */
/* verdict.h - what is wrong with a training, from its own metrics: since which step, by which
 * figure against the run's own baseline, how certain, and which key changes it.
 *
 * The rules are data (verdict_rules.c): a figure, a shape, its limits. The baseline is the median
 * of the run's first ten values, and what is usual the median of those before the newest. No rule
 * speaks before ten steps, and none of a figure that is not told: what cannot be judged is told as
 * not measured, never as fine. One statistic never says that a reward is gamed: reward against
 * validation only asks for a look at the samples.
 *
 * Pure, deterministic, in fixed memory: the same records give the same verdict, so it is made anew
 * from the merged file after a restart. A rule that held and holds no more for ten steps is over,
 * and stays in the list. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/field.h"
#include "core/metric/metric_watch.h"
#include "core/sample/sample_pick.h"
#include "core/training/training_figure.h"
#include "core/training/verdict_kind.h"

enum { VERDICT_FROM = 10 }; /* steps: fewer are too few */

struct verdict;

struct verdict *verdict_new(void);
/* One that has seen no record, with the same bounds. */
struct verdict *verdict_like(const struct verdict *v);
void verdict_free(struct verdict *v); /* NULL is fine */
/* Records in their order, the look being of this record, trouble of the watch that has seen it. */
void verdict_add(struct verdict *v,
                 const struct metric_record *r,
                 const struct training_look *l,
                 const struct metric_trouble *trouble);

void verdict_set_bounds(struct verdict *v, const struct verdict_bounds *bounds);

/* What one kind came to. */
struct verdict_item {
    enum verdict_kind kind;
    bool stands;
    int64_t onset, told; /* since this step; it was clear at that one */
    int64_t ended;       /* 0: it stands */
    char metric[METRIC_NAME_MAX + 1];
    double value, base, limit; /* NaN: there is none */
    double certainty;          /* from 0 to 1 */
    bool is_sft;               /* of a training on given answers, whose keys are others */
};
/* False: this kind was never seen. */
bool verdict_item(const struct verdict *v, enum verdict_kind k, struct verdict_item *ret);
/* Kinds that were ever seen, as bits. */
uint64_t verdict_seen(const struct verdict *v);
/* The same of what verdict_to_json() wrote. */
uint64_t verdict_seen_from_json(const json_t *verdict);
/* Samples that show this kind; NULL: nobody looked for them yet. Copied. */
const struct sample_picks *verdict_picks(const struct verdict *v, enum verdict_kind k);
void verdict_set_picks(struct verdict *v, enum verdict_kind k, const struct sample_picks *picks);
/* Which samples show it: the best ones where the score itself is in doubt. */
enum sample_pick_by verdict_pick_by(const struct verdict_item *item);
/* The sentence of an item, as base/message.h has it: its code, the arguments into text. */
const char *verdict_message(const struct verdict_item *item, char *text, size_t size);

/* X(enumerator, word): what may not be measured; the message is "unmeasured_" and its word. */
#define VERDICT_BLIND_TABLE(X)                                                                     \
    X(VERDICT_BLIND_ENTROPY, "entropy")                                                            \
    X(VERDICT_BLIND_KL, "kl")                                                                      \
    X(VERDICT_BLIND_LENGTH, "length")                                                              \
    X(VERDICT_BLIND_GAP, "gap")                                                                    \
    X(VERDICT_BLIND_STALENESS, "staleness")                                                        \
    X(VERDICT_BLIND_VALIDATION, "validation")                                                      \
    X(VERDICT_BLIND_MEMORY, "memory")
#define VERDICT_BLIND_ROW(e, ...) e,
enum verdict_blind { VERDICT_BLIND_TABLE(VERDICT_BLIND_ROW) VERDICT_BLINDS };
#undef VERDICT_BLIND_ROW
/* Which of these nobody measures, as bits; 0 before VERDICT_FROM steps. */
unsigned verdict_blind(const struct verdict *v);

/* As it is shown: "Verdict" in openapi.json. Nothing is written before the first step. */
extern const struct field_table verdict_table;
bool verdict_to_json(const struct verdict *v, struct jout *j, const char *key);
