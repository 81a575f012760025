/* SPDX-License-Identifier: Apache-2.0 */
/* agent.c - the ops agent: how the push to it goes, and what failures were said to be about. */
#include "argus/noun/noun.h"

#include <inttypes.h>
#include <stdio.h>

#include "argus/show/member.h"
#include "argus/show/text.h"

enum { AGENT_TEXT_MAX = 64 << 10, AGENT_INDENT = 14 };

static const struct opt AGENT_OPTS[] = {OPT_OUTPUT(struct listing_opts)};

/* "cause         folded text"; nothing where there is none. What others said is cleaned first. */
static void agent_print_line(struct cli *cli, const char *label, const char *text)
{
    _cleanup_(buf_release) struct buf clean = BUF_INIT(AGENT_TEXT_MAX);
    _cleanup_(buf_release) struct buf folded = BUF_INIT(4 * AGENT_TEXT_MAX);
    if (!text || !*text)
        return;
    text_clean(&clean, text); /* a longer one is cut */
    text_wrap(&folded, buf_str(&clean), cli->term.width > 40 ? cli->term.width : 100, AGENT_INDENT);
    (void)fprintf(cli->out, "%-*s%s\n", AGENT_INDENT, label, buf_str(&folded));
}

static void agent_print_push(struct cli *cli, const json_t *agent)
{
    _cleanup_(freep) char *events =
        xasprintf("taken up to %" PRId64 " of %" PRId64, json_get_int(agent, "taken", 0),
                  json_get_int(agent, "last", 0));
    const json_t *gap = json_get_object(agent, "gap");
    agent_print_line(cli, "token", member_str(agent, "token"));
    agent_print_line(cli, "events", events);
    if (gap) {
        _cleanup_(freep) char *missing =
            xasprintf("after %" PRId64 " up to %" PRId64 " are not told",
                      json_get_int(gap, "since", 0), json_get_int(gap, "next", 0));
        agent_print_line(cli, "gap", missing);
    }
    agent_print_line(cli, "last taken", json_get_str(agent, "taken_at", "never"));
    agent_print_line(cli, "failing since", json_get_str(agent, "failing_since", NULL));
    agent_print_line(cli, "trouble", json_get_str(agent, "trouble", NULL));
}

static void agent_print_second(struct cli *cli, const json_t *second)
{
    _cleanup_(freep) char *asked = xasprintf(
        "%" PRId64 " questions, %" PRId64 " answers, %" PRId64 " failed, %" PRId64 " passed over",
        json_get_int(second, "asked", 0), json_get_int(second, "answered", 0),
        json_get_int(second, "failed", 0), json_get_int(second, "passed_over", 0));
    _cleanup_(freep) char *left =
        xasprintf("%" PRId64 " questions in this hour, %" PRId64 " tokens today",
                  json_get_int(second, "left_in_hour", 0), json_get_int(second, "tokens_left", 0));
    agent_print_line(cli, "model", member_str(second, "model"));
    agent_print_line(cli, "asked", asked);
    agent_print_line(cli, "left", left);
    agent_print_line(cli, "trouble", json_get_str(second, "trouble", NULL));
}

static void agent_print(struct cli *cli, const json_t *agent, const struct seen *seen)
{
    const json_t *second = json_get_object(agent, "second_opinion");
    (void)seen;
    if (json_get_bool(agent, "is_there", false))
        agent_print_push(cli, agent);
    else
        agent_print_line(cli, "agent", "none: argus.yaml names no agent");
    if (second)
        agent_print_second(cli, second);
    else
        agent_print_line(cli, "model", "none is asked: argus.yaml names no second_opinion");
}

static void opinion_print(struct cli *cli, const json_t *o)
{
    const char *model = json_get_str(o, "model", NULL);
    double sure = json_get_real(o, "confidence", -1);
    _cleanup_(freep) char *who =
        xasprintf("%s%s%s, attempt %" PRId64 ", %s", member_str(o, "author"),
                  model ? " asked the model " : "", model ? model : "",
                  json_get_int(o, "attempt", 0), member_str(o, "at"));
    _cleanup_(freep) char *patch =
        json_get_object(o, "patch") ? json_dumps(json_object_get(o, "patch"), JSON_COMPACT) : NULL;
    agent_print_line(cli, "opinion of", who);
    agent_print_line(cli, "class", json_get_str(o, "class", NULL));
    if (sure >= 0)
        (void)fprintf(cli->out, "%-*s%.0f %%\n", AGENT_INDENT, "sure", sure * 100);
    agent_print_line(cli, "cause", member_str(o, "cause"));
    agent_print_line(cli, "advice", json_get_str(o, "advice", NULL));
    agent_print_line(cli, "link", json_get_str(o, "link", NULL));
    agent_print_line(cli, "change", patch);
}

static void opinions_print(struct cli *cli, const json_t *answer, const struct seen *seen)
{
    const json_t *o;
    size_t i;
    (void)seen;
    json_array_foreach (json_get_array(answer, "opinions"), i, o) {
        if (i)
            (void)fputc('\n', cli->out); /* main() looks at stdout */
        opinion_print(cli, o);
    }
    if (!i)
        cli_talk(cli, "nobody has given an opinion on this job");
}

static const struct command AGENT_COMMANDS[] = {
    {.name = "agent show",
     .args = "",
     .summary = "how the push to the ops agent goes, and the model that is asked",
     .text =
         "Up to which event the agent that argus.yaml names has taken them, what it is not told, "
         "and its trouble; beside it what a model was asked about failures.",
     OPTS(AGENT_OPTS),
     .ask = {.path = "/v1/agent", .print = agent_print}},
    {.name = "opinions",
     .args = "ID",
     .least = 1,
     .most = 1,
     .summary = "what others think of why a job failed",
     .text = "The ops agent, people, or a model that argusd asked: text beside the finding of "
             "'argus diagnose', which nothing acts on.",
     .example = "argus opinions grpo-7\twhat was said of it",
     OPTS(AGENT_OPTS),
     .ask = {.path = "/v1/jobs/{}/findings", .print = opinions_print}},
};

NOUN(agent, AGENT_COMMANDS);
