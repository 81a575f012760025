/* SPDX-License-Identifier: Apache-2.0 */
/* planview.c - data to stdout, so that the command line can be piped into a shell; all the rest
 * is talk. Members that the server does not give are left out. See planview.h. */
#include "argus/job/planview.h"

#include <stdlib.h>
#include <string.h>

#include "argus/job/jobview.h"
#include "argus/show/member.h"
#include "base/str.h"
#include "base/text.h"

enum { LINE_MAX = 1 << 20, TALK_MAX = 4096 };

static void print_command(struct cli *cli, const json_t *answer)
{
    struct buf line = BUF_INIT(LINE_MAX);
    size_t i;
    json_t *v;
    json_array_foreach (json_get_array(answer, "argv"), i, v) {
        if (i)
            (void)buf_addc(&line, ' ');
        (void)str_shell_quote(&line, json_string_value(v) ? json_string_value(v) : ""); /* fits */
    }
    if (line.len)
        (void)fprintf(cli->out, "%s\n", buf_str(&line));
    else if (json_get_object(answer, "resolved_spec"))
        cli_emit(cli, json_get_object(answer, "resolved_spec"), OUTPUT_YAML);
    buf_release(&line);
}

/* As talk: stdout has the command line alone. */
static void talk_spec(struct cli *cli, const json_t *answer)
{
    const json_t *spec = json_get_object(answer, "resolved_spec");
    struct cli talk = *cli;
    if (!spec)
        return;
    cli_talk(cli, "the spec, with everything that was left out:");
    talk.out = stderr;
    cli_emit(&talk, spec, OUTPUT_YAML);
    (void)fflush(stderr); /* talk */
}

/* "w1 (GPU 0,1), w2 (GPU 3)" */
static void talk_placement(struct cli *cli, const json_t *placement)
{
    struct buf b = BUF_INIT(TALK_MAX);
    jobview_add_places(&b, json_get_array(placement, "nodes"), " (GPU ", ",");
    cli_talk(cli, "would start now on %s", buf_str(&b));
    buf_release(&b);
}

static void talk_why(struct cli *cli, const json_t *answer)
{
    const json_t *why = json_get_object(answer, "why");
    char eta[2 * WHEN_TEXT_MAX];
    struct when w = cli_when(cli, false);
    const char *hint = json_get_str(why, "hint_text", "");
    if (!why)
        return;
    cli_talk(cli, "would wait: %s (%s)", member_str(why, "text"), member_str(why, "code"));
    if (*hint)
        cli_talk(cli, "%s", hint);
    if (*jobview_eta(answer, &w, eta, sizeof(eta)))
        cli_talk(cli, "expected to start in %s", eta);
}

/* Who starts at another time because of a change. */
static void talk_others(struct cli *cli, const json_t *answer)
{
    struct when w = cli_when(cli, false);
    size_t i;
    const json_t *other;
    json_array_foreach (json_get_array(answer, "others"), i, other) {
        char before[WHEN_TEXT_MAX], after[WHEN_TEXT_MAX];
        cli_talk(cli, "%s would start %s, not %s", json_get_str(other, "job", "another job"),
                 when_point(&w, when_get(other, "after"), after),
                 when_point(&w, when_get(other, "before"), before));
    }
}

static void talk_account(struct cli *cli, const json_t *quota, const char *kind)
{
    const json_t *a = json_get_object(quota, kind);
    double ceiling = json_get_real(a, "gpus_ceiling", -1);
    double borrowed = json_get_real(a, "gpus_borrowed_after", 0);
    char limit[64] = "", more[64] = "";
    if (!a)
        return;
    if (ceiling >= 0)
        text_printf(limit, " of %g", ceiling);
    if (borrowed > 0)
        text_printf(more, ", %g of them borrowed", borrowed);
    cli_talk(cli, "%s '%s' would use %g%s GPUs%s (now %g)", kind, json_get_str(a, "name", ""),
             json_get_real(a, "gpus_after", 0), limit, more, json_get_real(a, "gpus_used", 0));
}

static void talk_trial(struct cli *cli, const json_t *trial)
{
    const char *state = json_get_str(trial, "state", "");
    size_t i;
    const json_t *found;
    if (str_eq(state, "not_run"))
        cli_talk(cli, "its trial has not run: %s", member_str(trial, "text"));
    else if (str_eq(state, "passed"))
        cli_talk(cli, "its trial passed: rows, reward and command line are fine");
    else if (str_eq(state, "failed"))
        cli_talk(cli, "its trial failed: %s", member_str(trial, "text"));
    json_array_foreach (json_get_array(json_get_object(trial, "result"), "findings"), i, found) {
        const char *hint = json_get_str(found, "hint", "");
        cli_talk(cli, "  %s: %s%s%s%s", json_get_str(found, "field", ""),
                 json_get_str(found, "detail", ""), *hint ? " (" : "", hint, *hint ? ")" : "");
    }
}

static const char OVERRIDES[] = "overrides.";

/* One key of the spec. */
static void print_key(struct cli *cli, const json_t *one, const char *key, const char *value)
{
    const char *dot = strchr(key, '.');
    if (dot) /* checkpoint.keep_last */
        (void)fprintf(cli->out, "# %s\n%.*s: {%s: %s}\n", member_str(one, "text"), (int)(dot - key),
                      key, dot + 1, value);
    else
        (void)fprintf(cli->out, "# %s\n%s: %s\n", member_str(one, "text"), key, value);
}

/* They are one list: after the keys. */
static void print_overrides(struct cli *cli, const json_t *advice)
{
    const char *before = "";
    size_t i;
    const json_t *one;
    bool begun = false;
    json_array_foreach (advice, i, one) {
        const char *key = json_get_str(one, "key", ""), *text = member_str(one, "text");
        if (!str_starts(key, OVERRIDES))
            continue;
        if (!begun)
            (void)fputs("overrides:\n", cli->out);
        begun = true;
        if (!str_eq(text, before)) /* several sizes of one job */
            (void)fprintf(cli->out, "  # %s\n", text);
        before = text;
        (void)fprintf(cli->out, "  - %s=%s\n", key + strlen(OVERRIDES),
                      json_get_str(one, "value", ""));
    }
}

void planview_advice(struct cli *cli, const char *file, const json_t *answer)
{
    struct buf sets = BUF_INIT(TALK_MAX);
    const json_t *advice = json_get_array(answer, "advice");
    size_t i;
    const json_t *one;
    json_array_foreach (advice, i, one) {
        const char *key = json_get_str(one, "key", ""), *value = json_get_str(one, "value", "");
        if (!str_starts(key, OVERRIDES))
            print_key(cli, one, key, value);
        (void)buf_addf(&sets, " --set %s=%s", key, value); /* a few: they fit */
    }
    print_overrides(cli, advice);
    if (sets.len)
        cli_talk(cli, "to take it: argus submit %s%s", file, buf_str(&sets));
    else
        cli_talk(cli, "nothing is known that would serve '%s' better", file);
    buf_release(&sets);
}

bool planview_is_good(const json_t *answer)
{
    return !str_eq(json_get_str(json_get_object(answer, "trial"), "state", ""), "failed");
}

void planview_print(struct cli *cli, const char *file, const json_t *answer)
{
    const json_t *placement = json_get_object(answer, "placement");
    const json_t *quota = json_get_object(answer, "quota");
    if (json_get_array(answer, "argv"))
        talk_spec(cli, answer);
    print_command(cli, answer);
    if (placement)
        talk_placement(cli, placement);
    else
        talk_why(cli, answer);
    talk_others(cli, answer);
    talk_account(cli, quota, "project");
    talk_account(cli, quota, "user");
    talk_trial(cli, json_get_object(answer, "trial"));
    if (planview_is_good(answer))
        cli_talk(cli, "'%s' is fine; nothing was submitted", file);
}
