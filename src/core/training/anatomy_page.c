/* SPDX-License-Identifier: Apache-2.0 */
/* anatomy_page.c - the anatomy of a training's steps as it is shown; see anatomy.h. */
#include <math.h>

#include "base/mem.h"
#include "base/text.h"
#include "core/training/anatomy.h"
#include "core/training/training_message.h"

struct stage_page {
    const char *stage;
    double seconds, share, median_share;
};
static const struct field stage_rows[] = {
    FIELD_AT(stage_page, "stage", FIELD_STR, stage, .flags = FIELD_ALWAYS),
    FIELD_AT(stage_page, "seconds", FIELD_REAL, seconds, .doc = "of the mean step"),
    FIELD_AT(stage_page, "share", FIELD_REAL, share, .doc = "of all time, from 0 to 1"),
    FIELD_AT(stage_page,
             "median_share",
             FIELD_REAL,
             median_share,
             .doc = "the median of its shares over the run"),
};
static const struct field_table stage_table = FIELD_TABLE(NULL, stage_rows, stage_page);

struct bubble_page {
    double gpu_hours, share;
    bool at_least;
};
static const struct field bubble_rows[] = {
    FIELD_AT(bubble_page, "gpu_hours", FIELD_REAL, gpu_hours),
    FIELD_AT(bubble_page, "share", FIELD_REAL, share, .doc = "of the GPU-hours of its steps"),
    FIELD_AT(bubble_page, "at_least", FIELD_BOOL, at_least, .doc = "no rank tells its own time"),
};
static const struct field_table bubble_table = FIELD_TABLE(NULL, bubble_rows, bubble_page);

#define SLOWEST(key, ftype, member, ...) FIELD_AT(anatomy_slowest, key, ftype, member, __VA_ARGS__)
static const struct field slowest_rows[] = {
    SLOWEST("step", FIELD_INT, step),
    SLOWEST("seconds", FIELD_REAL, seconds),
    SLOWEST("generate", FIELD_REAL, generate, .flags = FIELD_MAYBE),
    SLOWEST("tools", FIELD_REAL, tools, .flags = FIELD_MAYBE),
    SLOWEST("score", FIELD_REAL, score, .flags = FIELD_MAYBE),
    SLOWEST("prompt_tokens", FIELD_REAL, prompt_tokens, .flags = FIELD_MAYBE),
    SLOWEST("response_tokens", FIELD_REAL, response_tokens, .flags = FIELD_MAYBE),
};
static const struct field_table slowest_table = FIELD_TABLE(NULL, slowest_rows, anatomy_slowest);

struct trend_page {
    double early_s, late_s, stage_s;
    const char *stage;
};
static const struct field trend_rows[] = {
    FIELD_AT(trend_page,
             "early_seconds",
             FIELD_REAL,
             early_s,
             .doc = "a step of the first quarter"),
    FIELD_AT(trend_page, "late_seconds", FIELD_REAL, late_s, .doc = "a step of the last quarter"),
    FIELD_AT(trend_page, "stage", FIELD_STR, stage, .doc = "that changed most"),
    FIELD_AT(trend_page, "stage_seconds", FIELD_REAL, stage_s, .doc = "by so much"),
};
static const struct field_table trend_table = FIELD_TABLE(NULL, trend_rows, trend_page);

struct lever_page {
    const char *lever, *key;
    double seconds, share, gpu_hours;
    struct training_message said;
};
static const struct field lever_rows[] = {
    FIELD_AT(lever_page, "lever", FIELD_STR, lever, .flags = FIELD_ALWAYS),
    FIELD_AT(lever_page, "key", FIELD_STR, key, .flags = FIELD_ALWAYS),
    FIELD_AT(lever_page, "seconds", FIELD_REAL, seconds, .doc = "of the mean step, at most"),
    FIELD_AT(lever_page, "share", FIELD_REAL, share, .doc = "of the mean step, at most"),
    FIELD_AT(lever_page,
             "gpu_hours",
             FIELD_REAL,
             gpu_hours,
             .flags = FIELD_MAYBE,
             .doc = "of all steps until now, at most"),
    TRAINING_MESSAGE_ROWS(lever_page, said),
};
static const struct field_table lever_table = FIELD_TABLE(NULL, lever_rows, lever_page);

#define BAR(key, ftype, member) FIELD_AT(anatomy_row, key, ftype, member)
static const struct field bar_rows[] = {
    BAR("first", FIELD_INT, first), BAR("last", FIELD_INT, last), BAR("steps", FIELD_INT, steps),
    BAR("seconds", FIELD_REAL, seconds),
#define X(e, word) BAR(#word, FIELD_REAL, stage[e]),
    ANATOMY_STAGE_TABLE(X)
#undef X
};
static const struct field_table bar_table = FIELD_TABLE(NULL, bar_rows, anatomy_row);

struct anatomy_page {
    int64_t steps, first, last;
    double step_seconds, gpus;
    bool overlaps;
    struct field_list stages, levers, bars;
    const struct bubble_page *bubble;
    const struct anatomy_slowest *slowest;
    const struct trend_page *trend;
};
#define PAGE(key, ftype, member, ...) FIELD_AT(anatomy_page, key, ftype, member, __VA_ARGS__)
static const struct field page_rows[] = {
    PAGE("steps", FIELD_INT, steps, .doc = "steps that tell their time"),
    PAGE("first", FIELD_INT, first),
    PAGE("last", FIELD_INT, last),
    PAGE("step_seconds", FIELD_REAL, step_seconds, .doc = "the mean step"),
    PAGE("gpus", FIELD_REAL, gpus, .flags = FIELD_MAYBE),
    PAGE("overlaps",
         FIELD_BOOL,
         overlaps,
         .doc = "stages run beside each other: shares are of their sum, and there is no bubble"),
    PAGE("stages", FIELD_LIST, stages, .of = &stage_table),
    PAGE("bubble", FIELD_PART, bubble, .of = &bubble_table, .doc = "null: not measured"),
    PAGE("slowest",
         FIELD_PART,
         slowest,
         .of = &slowest_table,
         .doc = "the sample that took longest of all; null: not measured"),
    PAGE("trend", FIELD_PART, trend, .of = &trend_table, .doc = "null: too few steps"),
    PAGE("levers", FIELD_LIST, levers, .of = &lever_table, .doc = "the largest first"),
    PAGE("bars", FIELD_LIST, bars, .of = &bar_table, .doc = "mean steps, in their order"),
};
const struct field_table anatomy_table = FIELD_TABLE("StepAnatomy", page_rows, anatomy_page);

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median_share(const struct anatomy_row *bars, size_t n, size_t stage)
{
    double v[ANATOMY_ROWS];
    for (size_t i = 0; i < n; i++)
        v[i] = bars[i].stage[stage] / bars[i].seconds;
    xsort(v, n, sizeof(v[0]), by_value);
    return v[n / 2];
}

static const struct {
    const char *word, *message, *key;
} levers[] = {
#define X(e, word, message, key) {word, message, key},
    ANATOMY_LEVER_TABLE(X)
#undef X
};

static void lever_fill(const struct anatomy_sums *s,
                       const struct anatomy_gain *gain,
                       struct lever_page *ret)
{
    char seconds[32], share[32], hours[32];
    double steps = (double)s->steps, of = gain->seconds * steps / s->seconds;
    *ret = (struct lever_page){.lever = levers[gain->lever].word,
                               .key = levers[gain->lever].key,
                               .seconds = gain->seconds,
                               .share = of,
                               .gpu_hours = gain->seconds * steps * s->ranks / 3600};
    text_printf(seconds, "%.3g", gain->seconds);
    text_printf(share, "%.0f", 100 * of);
    text_printf(hours, "%.3g", ret->gpu_hours);
    training_message_say(&ret->said, levers[gain->lever].message,
                         MESSAGE_ARGS(MESSAGE_STR("seconds", seconds), MESSAGE_STR("share", share),
                                      MESSAGE_STR("hours", isfinite(s->ranks) ? hours : ""),
                                      MESSAGE_STR("key", levers[gain->lever].key)));
}

bool anatomy_to_json(const struct anatomy *a, double gpus, struct jout *j, const char *key)
{
    struct anatomy_sums s;
    struct anatomy_row bars[ANATOMY_ROWS];
    struct stage_page stages[ANATOMY_STAGES];
    struct lever_page gains[ANATOMY_LEVERS];
    size_t n = anatomy_rows(a, bars);
    anatomy_sum(a, gpus, &s);
    if (!s.steps)
        return false;
    double steps = (double)s.steps;
    for (size_t i = 0; i < ANATOMY_STAGES; i++)
        stages[i] = (struct stage_page){.stage = anatomy_stage_to_string((enum anatomy_stage)i),
                                        .seconds = s.stage[i] / steps,
                                        .share = s.stage[i] / s.seconds,
                                        .median_share = median_share(bars, n, i)};
    for (size_t i = 0; i < s.n_levers; i++)
        lever_fill(&s, &s.levers[i], &gains[i]);
    const struct bubble_page bubble = {.gpu_hours = s.bubble_hours,
                                       .share = s.bubble_hours * 3600 / (s.seconds * s.ranks),
                                       .at_least = true};
    const struct trend_page trend = {s.early_s, s.late_s, s.grown_s,
                                     anatomy_stage_to_string(s.grown)};
    const struct anatomy_page page = {.steps = s.steps,
                                      .first = s.first,
                                      .last = s.last,
                                      .step_seconds = s.seconds / steps,
                                      .gpus = s.ranks,
                                      .overlaps = s.overlaps,
                                      .stages = {stages, ANATOMY_STAGES},
                                      .levers = {gains, s.n_levers},
                                      .bars = {bars, n},
                                      .bubble = isfinite(s.bubble_hours) ? &bubble : NULL,
                                      .slowest = isfinite(s.slowest.seconds) ? &s.slowest : NULL,
                                      .trend = isfinite(s.early_s) ? &trend : NULL};
    field_to_json(&anatomy_table, &page, FIELD_ALL, FIELD_PAGE, j, key);
    for (size_t i = 0; i < s.n_levers; i++)
        training_message_release(&gains[i].said);
    return true;
}
