/* SPDX-License-Identifier: Apache-2.0 */
/* sample_pick.c - takes the sample that shows the most, then the next one of another prompt, as
 * often as there are picks; see sample_pick.h. */
#include "core/sample/sample_pick.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/text.h"
#include "core/sample/sample_figures.h"
#include "core/sample/sample_mark.h"

enum sample_pick_by sample_pick_by_metric(const char *metric)
{
    static const struct {
        enum sample_figure figure;
        enum sample_pick_by by;
    } of[] = {{SAMPLE_REPEATS, SAMPLE_PICK_REPEATS},
              {SAMPLE_WIDE_ANSWERS, SAMPLE_PICK_WIDE},
              {SAMPLE_BLANK, SAMPLE_PICK_BLANK},
              {SAMPLE_TEMPLATE, SAMPLE_PICK_TEMPLATE}};
    for (size_t i = 0; i < array_len(of); i++)
        if (str_eq(metric, sample_figure_names[of[i].figure]))
            return of[i].by;
    return SAMPLE_PICK_WORST;
}

/* The greater the sooner; NaN: it has nothing of it. */
static double pick_weight(enum sample_pick_by by, const struct sample_place *p)
{
    switch (by) {
    case SAMPLE_PICK_BEST:
        return p->score;
    case SAMPLE_PICK_REPEATS:
        return p->repeats ? (double)p->repeats : (double)NAN;
    case SAMPLE_PICK_WIDE:
        return p->wide_answer ? (double)p->wide_answer : (double)NAN;
    case SAMPLE_PICK_BLANK:
        return p->marks & SAMPLE_IS_BLANK ? 1 : (double)NAN;
    case SAMPLE_PICK_TEMPLATE:
        return p->marks & SAMPLE_HAS_TEMPLATE ? 1 : (double)NAN;
    case SAMPLE_PICK_WORST:
        break;
    }
    return -p->score;
}

static bool pick_has_prompt(const struct sample_place *const *picked, size_t n, uint64_t prompt)
{
    for (size_t i = 0; i < n; i++)
        if (picked[i]->prompt == prompt)
            return true;
    return false;
}

/* The next one behind those that are picked; NULL: there is none. */
static const struct sample_place *pick_next(enum sample_pick_by by,
                                            const struct sample_place *v,
                                            size_t n,
                                            const struct sample_place *const *picked,
                                            size_t n_picked)
{
    const struct sample_place *best = NULL;
    for (size_t i = 0; i < n; i++) {
        double weight = pick_weight(by, &v[i]);
        if (isnan(weight) || (best && weight <= pick_weight(by, best)) ||
            pick_has_prompt(picked, n_picked, v[i].prompt))
            continue;
        best = &v[i];
    }
    return best;
}

static size_t pick_some(enum sample_pick_by by,
                        const struct sample_place *v,
                        size_t n,
                        const struct sample_place *picked[static SAMPLE_PICKS])
{
    size_t n_picked = 0;
    const struct sample_place *next;
    while (n_picked < SAMPLE_PICKS && (next = pick_next(by, v, n, picked, n_picked)))
        picked[n_picked++] = next;
    return n_picked;
}

void sample_pick(enum sample_pick_by by,
                 const char *job,
                 int64_t step,
                 const struct sample_place *v,
                 size_t n,
                 struct sample_picks *ret)
{
    const struct sample_place *picked[SAMPLE_PICKS];
    size_t n_picked = pick_some(by, v, n, picked);
    if (!n_picked && by != SAMPLE_PICK_WORST)
        n_picked = pick_some(SAMPLE_PICK_WORST, v, n, picked);
    ret->n = n_picked;
    for (size_t i = 0; i < n_picked; i++) {
        struct sample_pick *p = &ret->v[i];
        p->step = step;
        p->score = picked[i]->score;
        text_printf(p->prompt, "%016" PRIx64, picked[i]->prompt);
        text_printf(p->command, "argus samples %s --step %" PRId64 " --prompt %s", job, step,
                    p->prompt);
    }
}

/* ---- the page ---- */

#define PICK(key, ftype, member, ...) FIELD_AT(sample_pick, key, ftype, member, __VA_ARGS__)
static const struct field sample_pick_rows[] = {
    PICK("step", FIELD_INT, step),
    PICK("prompt", FIELD_TEXT, prompt, .size = 17, .flags = FIELD_ALWAYS),
    PICK("score", FIELD_REAL, score, .flags = FIELD_MAYBE),
    PICK("command",
         FIELD_TEXT,
         command,
         .size = SAMPLE_COMMAND_MAX,
         .flags = FIELD_ALWAYS,
         .doc = "that opens the answers to this prompt"),
};
const struct field_table sample_pick_table = FIELD_TABLE(NULL, sample_pick_rows, sample_pick);

void sample_picks_to_json(const struct sample_picks *picks, struct jout *j, const char *key)
{
    jout_open(j, key, '[');
    for (size_t i = 0; picks && i < picks->n; i++)
        field_to_json(&sample_pick_table, &picks->v[i], FIELD_ALL, FIELD_PAGE, j, NULL);
    jout_close(j, ']');
}
