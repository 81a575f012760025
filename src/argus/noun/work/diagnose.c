/* SPDX-License-Identifier: Apache-2.0 */
/* diagnose.c - why a job ended, or any run, from its log. */
#include "argus/noun/noun.h"

#include <inttypes.h>
#include <unistd.h>

#include "argus/job/findingcall.h"
#include "argus/job/findingview.h"
#include "base/message.h"
#include "base/str.h"
#include "core/finding/rules/finding_rules.h"

enum { DIAGNOSE_REPLY_MAX = 1 << 20, DIAGNOSE_PAGE_MAX = 1 << 20 };

struct diagnose_opts {
    const char *log, *rules, *exit_code;
    int64_t attempt;
    bool list_rules;
    int output;
};

static const struct opt DIAGNOSE_OPTS[] = {
    {.name = "log",
     .type = OPT_TEXT,
     .offset = offsetof(struct diagnose_opts, log),
     .arg = "FILE",
     .doc = "any log; - is standard input; no server is asked"},
    {.name = "attempt",
     .type = OPT_COUNT,
     .offset = offsetof(struct diagnose_opts, attempt),
     .arg = "K",
     .doc = "look at attempt K of the job; at the newest that has a finding if not given"},
    {.name = "rules",
     .type = OPT_TEXT,
     .offset = offsetof(struct diagnose_opts, rules),
     .arg = "DIR",
     .doc = "rules of this directory instead of those built in"},
    {.name = "exit-code",
     .type = OPT_TEXT,
     .offset = offsetof(struct diagnose_opts, exit_code),
     .arg = "N",
     .doc = "the status that the run ended with, 128 + N for signal N"},
    {.name = "list-rules",
     .type = OPT_FLAG,
     .offset = offsetof(struct diagnose_opts, list_rules),
     .doc = "print every class with its rules and what to do, as Markdown"},
    OPT_OUTPUT(struct diagnose_opts),
};

static int diagnose_list_rules(struct cli *cli, const struct finding_rules *rules, struct err *err)
{
    _cleanup_(buf_release) struct buf page = BUF_INIT(DIAGNOSE_PAGE_MAX);
    finding_rules_describe(rules, &page);
    if (page.failed)
        return message_refuse(err, ERR_TOO_LARGE, "cli_rules_large", MESSAGE_NO_ARGS);
    (void)fputs(buf_str(&page), cli->out); /* main() looks at stdout */
    return 0;
}

static int diagnose_show(struct cli *cli, const struct finding *f, int output, struct err *err)
{
    _cleanup_(buf_release) struct buf out = BUF_INIT(DIAGNOSE_REPLY_MAX);
    _cleanup_(json_unrefp) json_t *v = NULL;
    if (output < OUTPUT_JSON) {
        findingview_print(f, &cli->term, cli->out);
        return 0;
    }
    struct jout j = jout_begin(&out);
    finding_to_json(f, &j, NULL);
    int r = json_parse(buf_str(&out), out.len, DIAGNOSE_REPLY_MAX, &v, err);
    if (r == 0)
        cli_emit(cli, v, output);
    return r;
}

/* "x, attempt 1", and where the first line that is quoted stands. Attempt 0: before the first. */
static void diagnose_print_place(struct cli *cli, const json_t *found, const char *id)
{
    const json_t *first = json_array_get(json_get_array(found, "evidence"), 0);
    const char *source = json_get_str(first, "source", NULL);
    int64_t k = json_get_int(found, "attempt", 0);
    _cleanup_(freep) char *of = k ? xasprintf("attempt %" PRId64, k) : xstrdup("its trial");
    _cleanup_(freep) char *dir = k ? xasprintf("attempts/%" PRId64, k) : xstrdup("trial");
    (void)fprintf(cli->out, "%-11s %s, %s\n", "job", id, of);
    if (source)
        (void)fprintf(cli->out, "%-11s byte %" PRId64 " of %s/%s\n", "first seen",
                      json_get_int(first, "offset", 0), dir, source);
}

/* What the server found. */
static int diagnose_of_job(struct cli *cli,
                           const struct diagnose_opts *o,
                           const char *job,
                           struct err *err)
{
    _cleanup_(json_unrefp) json_t *found = NULL;
    _cleanup_(freep) char *id = NULL;
    struct finding f;
    if (o->log)
        return message_refuse(err, ERR_USAGE, "cli_job_or_log",
                              MESSAGE_ARGS(MESSAGE_STR("text", job)));
    if (o->rules || o->list_rules || o->exit_code)
        return message_refuse(err, ERR_USAGE, "cli_finding_takes", MESSAGE_NO_ARGS);
    int r = cli_open(cli, err);
    if (r >= 0)
        r = findingcall_get(cli, job, o->attempt, &found, &id, err);
    if (r < 0 && access(job, F_OK) == 0)
        return message_refuse(err, ERR_NOT_FOUND, "cli_is_file",
                              MESSAGE_ARGS(MESSAGE_STR("path", job)));
    if (r < 0)
        return r;
    if (o->output >= OUTPUT_JSON) {
        cli_emit(cli, found, o->output);
        return 0;
    }
    r = finding_from_json(found, &f, err);
    if (r == 0) {
        diagnose_print_place(cli, found, id);
        findingview_print(&f, &cli->term, cli->out);
    }
    if (r == 0 && f.n_patch)
        cli_talk(cli, "next: argus retry --apply-fix %s", id);
    finding_release(&f);
    return r;
}

static int diagnose_read_exit_code(const char *text, struct finding_facts *f, struct err *err)
{
    int64_t n = 0;
    if (!text)
        return 0;
    if (str_to_int(text, 0, 255, &n, NULL) < 0)
        return message_refuse(err, ERR_USAGE, "cli_no_status",
                              MESSAGE_ARGS(MESSAGE_STR("text", text)));
    f->exit_known = true;
    f->exit_code = (int)n;
    f->signal = n > 128 && n < 192 ? (int)n - 128 : 0;
    return 0;
}

static int diagnose_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct diagnose_opts *o = opts;
    _cleanup_(finding_rules_freep) struct finding_rules *rules = NULL;
    struct finding f;
    struct finding_facts facts = {0};
    if (args->n)
        return diagnose_of_job(cli, o, args->v[0], err);
    if (!o->log && !o->list_rules)
        return message_refuse(err, ERR_USAGE, "cli_diagnose_needs", MESSAGE_NO_ARGS);
    if (o->attempt)
        return message_refuse(err, ERR_USAGE, "cli_attempt_of_job", MESSAGE_NO_ARGS);
    int r = diagnose_read_exit_code(o->exit_code, &facts, err);
    if (r == 0)
        r = findingview_rules(o->rules, &rules, err);
    if (r == 0 && o->list_rules)
        return diagnose_list_rules(cli, rules, err);
    if (r == 0)
        r = findingview_diagnose(rules, o->log, &facts, &f, err);
    if (r < 0)
        return r;
    r = diagnose_show(cli, &f, o->output, err);
    finding_release(&f);
    return r;
}

static const struct command DIAGNOSE_COMMANDS[] = {
    {
        .name = "diagnose",
        .args = "[ID]",
        .most = 1,
        .summary = "say why a job ended, or any run, from its log",
        .text = "For a job: what the server found when its attempt ended, from the log and "
                "from what it knows besides. With --log: reads the log of any run once, "
                "here. Says the class of what failed, the line that shows it first with its "
                "place, what merely followed, and what a person can do. Wrappers, clean-up "
                "and warnings are not causes; unknown is an answer when nothing says why, and "
                "none when nothing failed. A log is read in whatever it came: behind the prefixes "
                "of journald, kubectl, docker and others, in their JSON, in UTF-16, or packed by "
                "gzip, xz, zstd or bzip2 where that program is here.\n"
                "The rules are data, built into this program from rules/*.yaml. With --rules "
                "the files of a directory take their place; each of their rules is tried on "
                "its own samples first.",
        .example = "argus diagnose grpo-7\twhy it failed, and what to do\n"
                   "argus diagnose --log driver.log\twhy it failed\n"
                   "argus logs ID | argus diagnose --log - -o json\tthe same for programs",
        .opts = DIAGNOSE_OPTS,
        .n_opts = array_len(DIAGNOSE_OPTS),
        .opts_size = sizeof(struct diagnose_opts),
        .run = diagnose_run,
    },
};

NOUN(diagnose, DIAGNOSE_COMMANDS);
