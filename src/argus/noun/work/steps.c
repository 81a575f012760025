/* SPDX-License-Identifier: Apache-2.0 */
/* steps.c - where the time of a training's steps goes. */
#include "argus/noun/noun.h"

#include <inttypes.h>
#include <stdlib.h>

#include "argus/show/member.h"
#include "argus/show/text.h"
#include "base/str.h"
#include "base/text.h"

enum { STEPS_LABEL = 14, STEPS_BAR = 30, STEPS_TEXT = 1024 };

static const struct opt STEPS_OPTS[] = {LISTING_OPTS};

static void steps_line(struct cli *cli, const char *label, enum style style, const char *value)
{
    const struct term *t = &cli->term;
    const char *name = label ? msg(t->lang, label) : "";
    int pad = STEPS_LABEL - text_width(name);
    struct buf folded = BUF_INIT(4 * STEPS_TEXT);
    if (!value || !*value)
        return;
    if (t->width > 2 * STEPS_LABEL && STEPS_LABEL + text_width(value) > t->width)
        text_wrap(&folded, value, t->width, STEPS_LABEL);
    (void)fprintf(cli->out, "%s%s%s%*s%s%s%s\n", term_on(t, STYLE_DIM), name,
                  term_off(t, STYLE_DIM), pad > 1 ? pad : 1, "", term_on(t, style),
                  folded.len ? buf_str(&folded) : value, term_off(t, style));
    buf_release(&folded);
}

static void steps_say(struct cli *cli,
                      const char *label,
                      const char *code,
                      const char *const *texts)
{
    char text[STEPS_TEXT];
    steps_line(cli, label, STYLE_PLAIN, msg_fill(cli->term.lang, code, texts, text, sizeof(text)));
}

static void seconds_text(const json_t *o, const char *key, char ret[static 32])
{
    text_printf_to(ret, 32, "%.3g s", json_get_real(o, key, 0));
}

/* " / 45 %", or blanks where nothing is known to be usual. */
static void usual_text(const json_t *usual, const char *stage, char ret[static 16])
{
    size_t i;
    const json_t *one;
    text_copy_to(ret, 16, "");
    json_array_foreach (json_get_array(usual, "stages"), i, one)
        if (str_eq(member_str(one, "stage"), stage))
            text_printf_to(ret, 16, " /%3.0f %%", 100 * json_get_real(one, "share", 0));
}

/* "generate  20.1 s  58 % / 45 %  ██████" */
static void print_stage(struct cli *cli, const json_t *stage, const json_t *usual)
{
    char theirs[16];
    const struct term *t = &cli->term;
    double share = json_get_real(stage, "share", 0);
    int blocks = (int)(share * STEPS_BAR + 0.5);
    struct buf bar = BUF_INIT(4 * STEPS_BAR);
    if (share <= 0)
        return;
    usual_text(usual, member_str(stage, "stage"), theirs);
    for (int i = 0; i < blocks && i < STEPS_BAR; i++)
        (void)buf_adds(&bar, "█"); /* it has room */
    (void)fprintf(cli->out, "%s%-*s%s%9.3g s %3.0f %%%s  %s\n", term_on(t, STYLE_DIM), STEPS_LABEL,
                  member_str(stage, "stage"), term_off(t, STYLE_DIM),
                  json_get_real(stage, "seconds", 0), 100 * share, theirs, buf_str(&bar));
    buf_release(&bar);
}

static void print_usual(struct cli *cli, const json_t *usual)
{
    char each[32], jobs[32];
    const char *texts[] = {each, jobs};
    if (!usual)
        return;
    seconds_text(usual, "step_seconds", each);
    text_printf(jobs, "%" PRId64, json_get_int(usual, "jobs", 0));
    steps_say(cli, "say_l_usual", "say_usual_of", texts);
}

static void print_bubble(struct cli *cli, const json_t *a)
{
    const json_t *bubble = json_get_object(a, "bubble");
    bool overlaps = json_is_true(json_object_get(a, "overlaps"));
    char hours[32], share[32];
    const char *texts[] = {hours, share};
    text_printf(hours, "%.3g", json_get_real(bubble, "gpu_hours", 0));
    text_printf(share, "%.0f %%", 100 * json_get_real(bubble, "share", 0));
    steps_say(cli, "say_l_bubble",
              bubble     ? "say_bubble_least"
              : overlaps ? "say_bubble_overlaps"
                         : "say_bubble_unmeasured",
              texts);
}

static void print_slowest(struct cli *cli, const json_t *slowest)
{
    char step[32], seconds[32], tools[32], prompt[32], response[32];
    const char *times[] = {step, seconds, tools}, *lengths[] = {response, prompt};
    if (!slowest)
        return;
    text_printf(step, "%" PRId64, json_get_int(slowest, "step", 0));
    seconds_text(slowest, "seconds", seconds);
    seconds_text(slowest, "tools", tools);
    text_printf(prompt, "%.0f", json_get_real(slowest, "prompt_tokens", 0));
    text_printf(response, "%.0f", json_get_real(slowest, "response_tokens", 0));
    steps_say(cli, "say_l_slowest", "say_slowest_sample", times);
    if (json_is_number(json_object_get(slowest, "response_tokens")))
        steps_say(cli, NULL, "say_slowest_length", lengths);
}

static void print_trend(struct cli *cli, const json_t *trend)
{
    char early[32], late[32], by[64];
    const char *texts[] = {early, late, by};
    if (!trend)
        return;
    seconds_text(trend, "early_seconds", early);
    seconds_text(trend, "late_seconds", late);
    text_printf(by, "%s %+.3g s", member_str(trend, "stage"),
                json_get_real(trend, "stage_seconds", 0));
    steps_say(cli, "say_l_trend", "say_trend_of", texts);
}

static void steps_print(struct cli *cli, const json_t *answer, const struct seen *seen)
{
    const json_t *a = json_get_object(answer, "anatomy"), *one;
    const json_t *usual = json_get_object(answer, "usual");
    char steps[32], range[64], each[32];
    const char *texts[] = {steps, range, each};
    size_t i;
    (void)seen;
    steps_line(cli, "say_l_job", STYLE_BOLD, member_str(answer, "id"));
    if (!a) {
        steps_line(cli, "say_l_steps", STYLE_PLAIN, msg(cli->term.lang, "say_no_steps"));
        return;
    }
    text_printf(steps, "%" PRId64, json_get_int(a, "steps", 0));
    text_printf(range, "%" PRId64 "-%" PRId64, json_get_int(a, "first", 0),
                json_get_int(a, "last", 0));
    seconds_text(a, "step_seconds", each);
    steps_say(cli, "say_l_steps", "say_steps_of", texts);
    json_array_foreach (json_get_array(a, "stages"), i, one)
        print_stage(cli, one, usual);
    print_usual(cli, usual);
    print_bubble(cli, a);
    print_slowest(cli, json_get_object(a, "slowest"));
    print_trend(cli, json_get_object(a, "trend"));
    json_array_foreach (json_get_array(a, "levers"), i, one) {
        steps_line(cli, i ? NULL : "say_l_lever", STYLE_PLAIN, member_str(one, "text"));
        steps_line(cli, NULL, STYLE_DIM, json_get_str(one, "fix", ""));
    }
}

static const struct command STEPS_COMMANDS[] = {
    {
        .name = "steps",
        .args = "ID",
        .least = 1,
        .most = 1,
        .summary = "show where the time of a training's steps goes",
        .text =
            "Shows the mean step by its stages (answers, tools, reward, log-probabilities, "
            "reference, update, weights, saving, validation, and what none of them explains), "
            "the GPU-hours that the GPUs waited at least, the sample that took longest with "
            "its length and the time of its tools, how a step changed over the run, and the "
            "three things that would make it shorter, with what each would give at most. What "
            "verl does not tell is not measured. Where three jobs of the same workload and pool "
            "ended that you may see, the median share of each stage in the newest twenty stands "
            "behind this job's own: 58 % / 45 %.",
        .example = "argus steps grpo-7\twhere a step of it goes\n"
                   "argus steps grpo-7 -o json\tfor programs",
        OPTS(STEPS_OPTS),
        .ask = {.path = "/v1/jobs/{}/steps", .print = steps_print},
    },
};

NOUN(steps, STEPS_COMMANDS);
