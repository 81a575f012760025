/* SPDX-License-Identifier: Apache-2.0 */
/* samples.c - what a training wrote: prompts, answers, scores. */
#include "argus/noun/noun.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "argus/cli/listing.h"
#include "argus/show/member.h"
#include "argus/show/text.h"
#include "base/message.h"
#include "base/text.h"

struct samples_opts {
    struct listing_opts listing; /* first: its options know no other place */
    bool validation, full, steps;
    int64_t worst, best, limit;
    const char *step, *diff, *prompt, *grep, *least, *most, *cursor;
};

#define SAMPLES_OPT(opt_name, opt_type, member, opt_arg, text)                                     \
    {                                                                                              \
        .name = (opt_name), .type = (opt_type), .offset = offsetof(struct samples_opts, member),   \
        .arg = (opt_arg), .doc = (text)                                                            \
    }
static const struct opt SAMPLES_OPTS[] = {
    LISTING_OPTS,
    SAMPLES_OPT("step",
                OPT_TEXT,
                step,
                "N",
                "of this step; of the newest if not given, and of the older ones too with "
                "--prompt or --grep"),
    SAMPLES_OPT("validation", OPT_FLAG, validation, NULL, "of a validation, not of the training"),
    SAMPLES_OPT("prompt",
                OPT_TEXT,
                prompt,
                "KEY",
                "only answers to this prompt, as the column PROMPT has it"),
    SAMPLES_OPT("worst", OPT_COUNT, worst, "N", "the N with the lowest score"),
    SAMPLES_OPT("best", OPT_COUNT, best, "N", "the N with the highest score"),
    SAMPLES_OPT("diff",
                OPT_TEXT,
                diff,
                "STEP",
                "first the prompts whose mean score changed most since this step"),
    SAMPLES_OPT("grep",
                OPT_TEXT,
                grep,
                "RE",
                "only where a line of answer or prompt matches this regular expression (PCRE2)"),
    SAMPLES_OPT("min", OPT_TEXT, least, "SCORE", "only with this score or more"),
    SAMPLES_OPT("max", OPT_TEXT, most, "SCORE", "only with this score or less"),
    SAMPLES_OPT("limit", OPT_COUNT, limit, "N", "at most N, up to 100 (20)"),
    SAMPLES_OPT("cursor",
                OPT_TEXT,
                cursor,
                "CURSOR",
                "go on behind another page: its next_cursor in -o json"),
    SAMPLES_OPT("full", OPT_FLAG, full, NULL, "whole texts, one sample after the other"),
    SAMPLES_OPT("steps", OPT_FLAG, steps, NULL, "the steps that are kept, and their scores"),
};

/* ---- cells ---- */

static void samples_score(struct table *t, const json_t *item, const struct when *w)
{
    const json_t *score = json_object_get(item, "score");
    (void)w;
    if (json_is_number(score))
        table_addf(t, STYLE_BOLD, "%.4g", json_number_value(score));
    else
        table_add(t, STYLE_DIM, NULL);
}

static void samples_change(struct table *t, const json_t *item, const struct when *w)
{
    const json_t *change = json_object_get(item, "change");
    (void)w;
    if (json_is_number(change))
        table_addf(t, json_number_value(change) < 0 ? STYLE_RED : STYLE_GREEN, "%+.4g",
                   json_number_value(change));
    else
        table_add(t, STYLE_DIM, NULL);
}

static void samples_repeats(struct table *t, const json_t *item, const struct when *w)
{
    double share = json_get_real(item, "repeats", 0);
    (void)w;
    if (share >= 0.005)
        table_addf(t, share > 0.3 ? STYLE_RED : STYLE_PLAIN, "%.0f%%", 100 * share);
    else
        table_add(t, STYLE_DIM, NULL);
}

static const struct column SAMPLES[] = {
    {.title = "say_step", .flags = COLUMN_RIGHT, .key = "step", .as = CELL_NUMBER},
    {.title = "say_prompt", .rank = 2, .key = "prompt", .style = STYLE_DIM},
    {.title = "say_score", .flags = COLUMN_RIGHT, .draw = samples_score},
    {.title = "say_change", .flags = COLUMN_RIGHT, .rank = 1, .draw = samples_change},
    {.title = "say_repeats", .flags = COLUMN_RIGHT, .rank = 3, .draw = samples_repeats},
    {.title = "say_answer", .flags = COLUMN_ROOM, .key = "output"},
};

static const struct column SAMPLE_STEPS[] = {
    {.title = "say_step",
     .flags = COLUMN_RIGHT,
     .key = "step",
     .as = CELL_NUMBER,
     .style = STYLE_BOLD},
    {.title = "say_samples", .flags = COLUMN_RIGHT, .key = "samples", .as = CELL_NUMBER},
    {.title = "say_score", .flags = COLUMN_RIGHT, .key = "score_mean", .as = CELL_VALUE},
    {.title = "say_least",
     .flags = COLUMN_RIGHT,
     .rank = 2,
     .key = "score_least",
     .as = CELL_VALUE},
    {.title = "say_most", .flags = COLUMN_RIGHT, .rank = 2, .key = "score_most", .as = CELL_VALUE},
    {.title = "say_flat_groups",
     .flags = COLUMN_RIGHT,
     .rank = 1,
     .key = "flat_groups",
     .most = "groups",
     .as = CELL_USE},
    {.title = "say_size", .flags = COLUMN_RIGHT, .rank = 3, .key = "bytes", .as = CELL_SIZE},
};

/* ---- the request ---- */

static int samples_check(const struct samples_opts *o, struct err *err)
{
    int orders = (o->worst > 0) + (o->best > 0) + (o->diff != NULL);
    if (orders > 1 || (o->limit && (o->worst || o->best)))
        return message_refuse(err, ERR_USAGE, "cli_samples_order", MESSAGE_NO_ARGS);
    return 0;
}

static void samples_query_number(struct buf *path, const char *key, int64_t value)
{
    char text[32];
    text_printf(text, "%" PRId64, value);
    if (value > 0)
        url_query(path, key, text);
}

static void samples_query_text(struct buf *path, const char *key, const char *value)
{
    if (value)
        url_query(path, key, value);
}

/* Yours; NULL: it is too long. */
static char *samples_path(const char *id, const struct samples_opts *o)
{
    struct buf path = BUF_INIT(1 << 14);
    _cleanup_(freep) char *begin = cli_job_path(id, "/samples");
    (void)buf_adds(&path, begin); /* too long shows below */
    samples_query_text(&path, "kind", o->validation ? "validation" : NULL);
    samples_query_text(&path, "step", o->step);
    samples_query_text(&path, "prompt", o->prompt);
    samples_query_text(&path, "grep", o->grep);
    samples_query_text(&path, "min", o->least);
    samples_query_text(&path, "max", o->most);
    samples_query_text(&path, "since", o->diff);
    samples_query_text(&path, "cursor", o->cursor);
    samples_query_text(&path, "order",
                       o->worst  ? "worst"
                       : o->best ? "best"
                       : o->diff ? "changed"
                                 : NULL);
    samples_query_number(&path, "limit", o->worst ? o->worst : o->best ? o->best : o->limit);
    samples_query_text(&path, "text", o->full ? "262144" : NULL);
    return buf_take_whole(&path);
}

/* ---- whole texts ---- */

static void samples_print_text(const struct cli *cli, const char *text)
{
    for (const char *line = text; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
        _cleanup_(buf_release) struct buf clean = BUF_INIT(1 << 20);
        _cleanup_(freep) char *one = xstrndup(line, strcspn(line, "\n"));
        text_clean(&clean, one);
        (void)fprintf(cli->out, "    %s\n", buf_str(&clean));
    }
}

static void samples_print_one(const struct cli *cli, const json_t *s)
{
    const char *key;
    json_t *part, *parts = json_object_get(s, "parts");
    (void)fprintf(cli->out, "step %" PRId64 "  prompt %s", json_get_int(s, "step", 0),
                  member_str(s, "prompt"));
    if (json_is_number(json_object_get(s, "score")))
        (void)fprintf(cli->out, "  score %.6g", json_get_real(s, "score", 0));
    json_object_foreach (parts, key, part)
        if (json_is_number(part))
            (void)fprintf(cli->out, "  %s %.6g", key, json_number_value(part));
    (void)fprintf(cli->out, "\n  prompt\n");
    samples_print_text(cli, member_str(s, "input"));
    (void)fprintf(cli->out, "  answer\n");
    samples_print_text(cli, member_str(s, "output"));
    (void)fputc('\n', cli->out);
}

static int samples_print_full(struct cli *cli, const char *path, struct err *err)
{
    _cleanup_(json_unrefp) json_t *answer = NULL;
    size_t i;
    json_t *s;
    int r = cli_open(cli, err);
    if (r >= 0)
        r = client_get(cli->client, path, &answer, err);
    if (r < 0)
        return r;
    json_array_foreach (json_get_array(answer, "samples"), i, s)
        samples_print_one(cli, s);
    if (!json_array_size(json_get_array(answer, "samples")))
        cli_say(cli, "say_no_samples", "", "", "");
    return 0;
}

static int samples_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    static const struct listing of_samples = {.key = "samples",
                                              COLUMNS(SAMPLES),
                                              .none = "say_no_samples",
                                              .unsettled = "pending",
                                              .yet = "say_samples_pending"};
    static const struct listing of_steps = {.key = "steps",
                                            COLUMNS(SAMPLE_STEPS),
                                            .none = "say_no_samples",
                                            .unsettled = "pending",
                                            .yet = "say_samples_pending"};
    const struct samples_opts *o = opts;
    int r = samples_check(o, err);
    if (r < 0)
        return r;
    _cleanup_(freep) char *path = samples_path(args->v[0], o);
    if (!path)
        return message_refuse(err, ERR_USAGE, "cli_filters_long", MESSAGE_NO_ARGS);
    if (o->full && o->listing.output == OUTPUT_TABLE)
        return samples_print_full(cli, path, err);
    return listing_run(cli, path, o->steps ? &of_steps : &of_samples, &o->listing, err);
}

static const struct command SAMPLES_COMMANDS[] = {
    {.name = "samples",
     .args = "ID",
     .least = 1,
     .most = 1,
     .summary = "what a training wrote: prompts, answers, scores",
     .text = "Jobs of workload ppo and grpo keep their samples, unless the spec says 'samples: "
             "false': what the model answered in training and validation, with the score and its "
             "parts. Without options those of the newest step are shown, 20 of them.\n"
             "PROMPT is the same for the same prompt at any step: --prompt shows its answers over "
             "the steps. REPEATS is the share of an answer that it had said before. Secrets of the "
             "job are masked.",
     .example =
         "argus samples my-run --worst 5 --full\tthe five worst answers of the newest step\n"
         "argus samples my-run --steps\tscores step by step, and groups that teach nothing\n"
         "argus samples my-run --step 80 --diff 40\twhere step 80 is better or worse than 40\n",
     OPTS(SAMPLES_OPTS),
     .opts_size = sizeof(struct samples_opts),
     .run = samples_run},
};
NOUN(samples, SAMPLES_COMMANDS);
