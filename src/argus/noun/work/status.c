/* SPDX-License-Identifier: Apache-2.0 */
/* status.c - all about one job, and what a job waits for. */
#include "argus/noun/noun.h"

#include <inttypes.h>
#include <stdlib.h>

#include "argus/job/jobpage.h"
#include "argus/job/jobview.h"
#include "argus/job/verdictview.h"
#include "argus/show/member.h"
#include "argus/show/text.h"

enum { LABEL_WIDTH = 12, VALUE_MAX = 4096 };

static const struct opt PAGE_OPTS[] = {LISTING_OPTS};

static void status_print(struct cli *cli, const json_t *job, const struct seen *seen)
{
    jobpage_print(cli, job, &seen->when);
}

static void why_line(struct cli *cli, const char *label, enum style style, const char *value)
{
    const struct term *t = &cli->term;
    const char *name = msg(t->lang, label);
    _cleanup_(buf_release) struct buf clean = BUF_INIT(VALUE_MAX);
    if (!value || !*value)
        return;
    text_clean(&clean, value); /* a longer one is cut */
    if (t->width > 2 * LABEL_WIDTH) {
        _cleanup_(freep) char *line = buf_take(&clean);
        text_wrap(&clean, line, t->width, LABEL_WIDTH);
    }
    int pad = LABEL_WIDTH - text_width(name);
    (void)fprintf(cli->out, "%s%s%s%*s%s%s%s\n", term_on(t, STYLE_DIM), name,
                  term_off(t, STYLE_DIM), pad > 1 ? pad : 1, "", term_on(t, style), buf_str(&clean),
                  term_off(t, style));
}

/* Nodes of the job's pool without something that its snapshots need, or of which nobody knows. */
static void why_unfit(struct cli *cli, const json_t *why, bool is_seen)
{
    size_t i;
    const json_t *one;
    json_array_foreach (json_get_array(why, "unfit"), i, one) {
        const char *has = json_get_str(one, "has", NULL);
        if (is_seen != (has && *has))
            continue;
        _cleanup_(freep) char *line =
            xasprintf("%s: %s%s%s", member_str(one, "node"), member_str(one, "need"),
                      is_seen ? ", has " : "", is_seen ? has : "");
        why_line(cli, is_seen ? "say_l_unfit" : "say_l_unseen", STYLE_PLAIN, line);
    }
}

static void why_verdict_line(void *page, const char *label, enum style style, const char *text)
{
    why_line(page, label, style, text);
}

static void why_print(struct cli *cli, const json_t *why, const struct seen *seen)
{
    char eta[2 * WHEN_TEXT_MAX + 16];
    const char *state = member_str(why, "state");
    int64_t position = json_get_int(why, "position", 0);
    char *at = position > 0 ? xasprintf("%s, position %" PRId64, state, position) : xstrdup(state);
    why_line(cli, "say_l_job", STYLE_BOLD, member_str(why, "id"));
    why_line(cli, "say_l_state", jobview_style(state), at);
    why_line(cli, "say_l_code", STYLE_PLAIN, json_get_str(why, "code", ""));
    why_line(cli, "say_l_reason", STYLE_PLAIN, json_get_str(why, "text", ""));
    size_t i;
    const json_t *also;
    json_array_foreach (json_get_array(why, "also"), i, also)
        why_line(cli, "say_l_also", STYLE_PLAIN, json_get_str(also, "text", ""));
    why_line(cli, "say_l_hint", STYLE_GREEN, json_get_str(why, "hint_text", ""));
    const json_t *verdict = json_get_object(why, "verdict");
    verdictview_print(cli, member_str(why, "id"), verdict, why_verdict_line, cli);
    const json_t *slow = json_get_object(why, "slow_rank");
    why_line(cli, "say_l_rank", STYLE_RED, json_get_str(slow, "text", ""));
    why_line(cli, "say_l_advice", STYLE_PLAIN, json_get_str(slow, "fix", ""));
    why_unfit(cli, why, true);
    why_unfit(cli, why, false);
    why_line(cli, "say_eta", STYLE_PLAIN, jobview_eta(why, &seen->when, eta, sizeof(eta)));
    free(at);
}

static const struct command STATUS_COMMANDS[] = {
    {
        .name = "status",
        .args = "ID",
        .least = 1,
        .most = 1,
        .summary = "show all about one job",
        .text = "Shows its state, reason, place in the queue, nodes, the proof that the driver "
                "runs on a worker, which verl the job's processes imported, attempts, times, "
                "paths on the shared root, newest metrics and the finding of a failure. ID is an "
                "id, a name, or a beginning of an id that fits one job only.",
        OPTS(PAGE_OPTS),
        .ask = {.path = "/v1/jobs/{}", .print = status_print},
    },
    {
        .name = "why",
        .args = "ID",
        .least = 1,
        .most = 1,
        .summary = "say what a job waits for",
        .text = "Says one reason with its code, the evidence, what else would keep the job "
                "waiting if that reason went, the smallest change that would "
                "start the job now (it is true: applied alone, the job starts at once), and when "
                "it is expected to start: half of such forecasts come true by the first time, "
                "nine of ten by the second. Nodes that do not fit its snapshots are named with "
                "what they lack; nodes that no probe has examined are named too, and the job may "
                "go there.",
        .example = "argus why grpo-7\twhy does it not start",
        OPTS(PAGE_OPTS),
        .ask = {.path = "/v1/jobs/{}/why", .print = why_print},
    },
};

NOUN(status, STATUS_COMMANDS);
