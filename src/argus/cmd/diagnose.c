/* SPDX-License-Identifier: Apache-2.0 */
/* diagnose.c - why a run failed, from its log. */
#include "argus/cmd/cmd.h"

#include "argus/findingview.h"
#include "base/str.h"
#include "core/finding_rules.h"

enum { REPLY_MAX = 1 << 20, PAGE_MAX = 1 << 20 };

struct opts {
    const char *log, *rules;
    int64_t exit_code;
    bool list_rules;
    int output;
};

static const struct opt OPTS[] = {
    {0, "log", OPT_TEXT, offsetof(struct opts, log), "FILE",
     "any log; - is standard input; no server is asked", NULL},
    {0, "rules", OPT_TEXT, offsetof(struct opts, rules), "DIR",
     "rules of this directory instead of those built in", NULL},
    {0, "exit-code", OPT_NUMBER, offsetof(struct opts, exit_code), "N",
     "the status that the run ended with, 128 + N for signal N", NULL},
    {0, "list-rules", OPT_FLAG, offsetof(struct opts, list_rules), NULL,
     "print every class with its rules and what to do, as Markdown", NULL},
    OPT_OUTPUT(struct opts),
};

static int list_rules(struct cli *cli, const struct finding_rules *rules, struct err *err)
{
    _cleanup_(buf_release) struct buf page = BUF_INIT(PAGE_MAX);
    finding_rules_describe(rules, &page);
    if (page.failed)
        return err_set(err, ERR_TOO_LARGE, "the page of the rules is larger than 1 MiB");
    (void)fputs(buf_str(&page), cli->out); /* main() looks at stdout */
    return 0;
}

static int show(struct cli *cli, const struct finding *f, int output, struct err *err)
{
    _cleanup_(buf_release) struct buf out = BUF_INIT(REPLY_MAX);
    _cleanup_(json_unrefp) json_t *v = NULL;
    if (output < OUTPUT_JSON) {
        findingview_print(f, &cli->term, cli->out);
        return 0;
    }
    struct jout j = jout_begin(&out);
    finding_to_json(f, &j, NULL);
    int r = json_parse(buf_str(&out), out.len, REPLY_MAX, &v, err);
    if (r == 0)
        cli_emit(cli, v, output);
    return r;
}

static int run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct opts *o = opts;
    _cleanup_(finding_rules_freep) struct finding_rules *rules = NULL;
    struct finding f;
    struct finding_facts facts = {0};
    (void)args;
    if (!o->log && !o->list_rules)
        return err_set(err, ERR_USAGE, "'argus diagnose' needs --log FILE");
    if (o->exit_code) {
        facts.exit_known = true;
        facts.exit_code = (int)o->exit_code;
        facts.signal = o->exit_code > 128 && o->exit_code < 192 ? (int)o->exit_code - 128 : 0;
    }
    int r = findingview_rules(o->rules, &rules, err);
    if (r == 0 && o->list_rules)
        return list_rules(cli, rules, err);
    if (r == 0)
        r = findingview_diagnose(rules, o->log, &facts, &f, err);
    if (r < 0)
        return r;
    r = show(cli, &f, o->output, err);
    finding_release(&f);
    return r;
}

const struct command cmd_diagnose = {
    .name = "diagnose",
    .args = "",
    .summary = "say why a run failed, from its log",
    .text =
        "Reads the log of any run once and says the class of what failed, the line that shows it "
        "first with its place, what merely followed, and what a person can do. Wrappers, clean-up "
        "and warnings are no causes; unknown is an answer when nothing says why, and none when "
        "nothing failed.\n"
        "The rules are data, built into this program from rules/*.yaml. With --rules the files of "
        "a directory take their place; each of their rules is tried on its own samples first.",
    .example = "argus diagnose --log driver.log\twhy it failed\n"
               "argus logs ID | argus diagnose --log - -o json\tthe same for programs",
    .opts = OPTS,
    .n_opts = array_len(OPTS),
    .opts_size = sizeof(struct opts),
    .run = run,
};
