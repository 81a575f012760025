/* SPDX-License-Identifier: Apache-2.0 */
/* hang.c - how long a training may stay without a step; see hang.h.
 *
 * Long validations and saves are no hang: a step that contains one counts as the longest one from
 * then on, and while the log says that one is under way, the time of the first rollout holds. */
#define _GNU_SOURCE
#include "core/metric/hang.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

static const char *const texts[] = {
#define X(e, text) text,
    HANG_PHASE_TABLE(X)
#undef X
};

/* ---- marks ---- */

static const struct mark {
    const char *text;
    enum hang_phase phase;
} MARKS[] = {
    {"Using dataset class", HANG_MODEL},
    {"dataset len:", HANG_MODEL},
    {"Size of train dataloader", HANG_MODEL},
    {"Total training steps:", HANG_MODEL},
    {"Loading checkpoint shards", HANG_MODEL},
    {"Loading safetensors", HANG_MODEL},
    {"Checkpoint tracker file does not exist", HANG_FIRST},
    {"Training from scratch", HANG_FIRST},
    {"Found checkpoint:", HANG_FIRST},
    {"Setting global step to", HANG_FIRST},
    {"setting global step to", HANG_FIRST},
    {"Initial validation metrics", HANG_FIRST},
    {"test_gen_batch meta info", HANG_VALIDATION},
    {"validation generation end", HANG_VALIDATION},
    {"local_global_step_folder:", HANG_SAVING},
    {"Saving checkpoint to", HANG_SAVING},
    {"Saved model to", HANG_SAVING},
    {"Saved optim to", HANG_SAVING},
    {"Final validation metrics", HANG_FINISHING},
};

static const char *hang_find(const char *text, size_t n, const char *what)
{
    return memmem(text, n, what, strlen(what));
}

/* "… step:12 - …" */
static bool is_step(const char *line, size_t n)
{
    const char *at = hang_find(line, n, "step:");
    const char *end = line + n;
    if (!at)
        return false;
    const char *p = at + strlen("step:");
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p > at + strlen("step:") && (size_t)(end - p) >= 3 && !memcmp(p, " - ", 3);
}

enum hang_phase hang_phase_read(enum hang_phase before, const char *text, size_t n)
{
    const char *end = text + n;
    enum hang_phase phase = before;
    for (const char *line = text; line < end;) {
        const char *nl = memchr(line, '\n', (size_t)(end - line));
        size_t len = (size_t)((nl ? nl : end) - line);
        if (is_step(line, len))
            phase = HANG_TRAINING;
        for (size_t i = 0; i < array_len(MARKS); i++)
            if (hang_find(line, len, MARKS[i].text))
                phase = MARKS[i].phase;
        line += len + 1;
    }
    return phase;
}

/* ---- the watch ---- */

static void hang_begin(struct hang *h, const struct hang_look *look)
{
    *h = (struct hang){.begun = true,
                       .steps = look->steps,
                       .bytes = look->bytes,
                       .step_at = look->now,
                       .output_at = look->now,
                       .phase_at = look->now,
                       .phase = look->phase};
}

bool hang_see(struct hang *h, const struct hang_look *look)
{
    bool went_on = false;
    if (look->blind) {
        h->begun = false;
        return false;
    }
    if (!h->begun)
        hang_begin(h, look);
    h->is_known = look->is_known;
    h->is_done = look->is_done;
    h->median_s = look->median_s;
    h->longest_s = look->longest_s;
    if (h->phase != look->phase) {
        h->phase = look->phase;
        h->phase_at = look->now;
    }
    if (h->bytes != look->bytes) {
        h->bytes = look->bytes;
        h->output_at = look->now;
        went_on = !look->steps || look->is_done;
    }
    if (h->steps != look->steps) {
        h->steps = look->steps;
        h->step_at = look->now;
        went_on = true;
    }
    if (went_on)
        h->grants = 0;
    return went_on;
}

static usec_t hang_longer(usec_t a, usec_t b)
{
    return a > b ? a : b;
}

static usec_t hang_seconds(double s)
{
    static const double most = 1e9;
    return isfinite(s) && s > 0 ? (usec_t)((s < most ? s : most) * (double)USEC_SEC) : 0;
}

/* The limit of a step, derived from the job's own steps. */
static usec_t step_limit(const struct hang *h, const struct hang_limits *limits)
{
    usec_t limit = hang_longer(limits->floor, hang_seconds(limits->factor * h->median_s));
    limit = hang_longer(limit, hang_seconds(2 * h->longest_s));
    if (h->phase == HANG_VALIDATION || h->phase == HANG_SAVING || h->phase == HANG_FINISHING)
        limit = hang_longer(limit, limits->start[HANG_FIRST]);
    return limit;
}

static usec_t start_limit(const struct hang *h, const struct hang_limits *limits)
{
    enum hang_phase p = h->phase <= HANG_FIRST ? h->phase : HANG_FIRST;
    return limits->start[p];
}

/* Fills kind and limit; kind stays NOTHING where this attempt is not watched. */
static void hang_choose(const struct hang *h,
                        const struct hang_limits *limits,
                        struct hang_late *ret)
{
    if (h->steps && !h->is_done) {
        ret->kind = HANG_NO_STEP;
        ret->limit = step_limit(h, limits);
    } else if (h->is_known) {
        ret->kind = HANG_NO_OUTPUT;
        ret->limit = h->steps ? limits->start[HANG_FIRST] : start_limit(h, limits);
    } else if (limits->silence) {
        ret->kind = HANG_NO_OUTPUT;
        ret->limit = limits->silence;
    }
}

bool hang_is_late(const struct hang *h,
                  const struct hang_limits *limits,
                  usec_t now,
                  struct hang_late *ret)
{
    struct hang_late late = {.kind = HANG_NOTHING};
    if (!h->begun || limits->factor <= 0)
        return false;
    hang_choose(h, limits, &late);
    if (late.kind == HANG_NOTHING)
        return false;
    late.silent = now - h->output_at;
    late.span =
        late.kind == HANG_NO_STEP ? now - h->step_at : now - hang_longer(h->output_at, h->phase_at);
    if (late.span <= late.limit << h->grants)
        return false;
    *ret = late;
    return true;
}

bool hang_grant(struct hang *h)
{
    if (h->grants >= HANG_GRANTS_MAX)
        return false;
    h->grants++;
    return true;
}

const char *hang_late_message(const struct hang *h,
                              const struct hang_late *late,
                              char *text,
                              size_t size)
{
    char span[CLOCK_TEXT_MAX], limit[CLOCK_TEXT_MAX], own[CLOCK_TEXT_MAX],
        step[CLOCK_TEXT_MAX] = "";
    usec_t median = hang_seconds(h->median_s);
    bool has_steps = late->kind == HANG_NO_STEP;
    if (has_steps && isfinite(h->median_s))
        text_copy(step, median < USEC_SEC ? "<1s" : span_to_string(median, own));
    message_write(
        text, size,
        MESSAGE_ARGS(MESSAGE_STR("span", span_to_string(late->span, span)),
                     MESSAGE_STR("limit", span_to_string(late->limit, limit)),
                     MESSAGE_STR("step", step),
                     MESSAGE_STR("phase", has_steps || !h->is_known ? "" : texts[h->phase])));
    return has_steps ? "hang_no_step" : "hang_no_output";
}
