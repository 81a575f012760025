/* SPDX-License-Identifier: Apache-2.0 */
/* job.c - what is done to jobs: stop, hold, release, justify, change the priority, wait for their
 * end, submit one again that has ended. */
#include "argus/noun/noun.h"

#include <ctype.h>
#include <inttypes.h>

#include "argus/cli/ask.h"
#include "argus/job/jobchange.h"
#include "argus/job/planview.h"
#include "argus/job/stopping.h"
#include "argus/job/stopview.h"
#include "argus/job/waiting.h"
#include "argus/show/member.h"
#include "argus/show/text.h"
#include "base/digest/hash.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/job/family.h"

struct stop_opts {
    struct strv filter, state;
    const char *user, *project, *pool, *workload;
    bool all, yes, wait, dry_run;
    int output;
};

#define STOP_ROW(type_, member) .type = (type_), .offset = offsetof(struct stop_opts, member)

static const struct opt STOP_OPTS[] = {
    {.name = "user", STOP_ROW(OPT_TEXT, user), .arg = "NAME", .doc = "live jobs of this user"},
    {.name = "project",
     STOP_ROW(OPT_TEXT, project),
     .arg = "NAME",
     .doc = "only jobs of this project"},
    {.name = "state",
     STOP_ROW(OPT_LIST, state),
     .arg = "STATE",
     .doc =
         "only jobs in this state: QUEUED, STARTING, RUNNING; may be given again, or with commas"},
    {.name = "pool", STOP_ROW(OPT_TEXT, pool), .arg = "NAME", .doc = "only jobs for this pool"},
    {.name = "workload",
     STOP_ROW(OPT_TEXT, workload),
     .arg = "KIND",
     .doc = "only jobs of this workload"},
    {.letter = 'a',
     .name = "all",
     STOP_ROW(OPT_FLAG, all),
     .doc = "everybody's jobs, not only yours"},
    {.name = "filter",
     STOP_ROW(OPT_LIST, filter),
     .arg = "KEY=VALUE",
     .doc = "the same as --user, --project, --state, --pool, --workload; all must match"},
    {.letter = 'y', .name = "yes", STOP_ROW(OPT_FLAG, yes), .doc = "stop them without asking"},
    {.name = "wait", STOP_ROW(OPT_FLAG, wait), .doc = "wait until they have ended"},
    {.name = "dry-run",
     STOP_ROW(OPT_FLAG, dry_run),
     .doc = "say what would end with each ID, and stop nothing; -o is of this"},
    OPT_OUTPUT(struct stop_opts),
};

static void stop_add_filter(struct strv *filters, const char *key, const char *value)
{
    _cleanup_(freep) char *text = value ? xasprintf("%s=%s", key, value) : NULL;
    if (text)
        strv_add(filters, text);
}

static void stop_gather(const struct stop_opts *o, struct strv *ret)
{
    strv_copy(ret, &o->filter);
    stop_add_filter(ret, "user", o->user);
    stop_add_filter(ret, "project", o->project);
    stop_add_filter(ret, "pool", o->pool);
    stop_add_filter(ret, "workload", o->workload);
    for (size_t i = 0; i < o->state.n; i++) {
        for (char *p = o->state.v[i]; *p; p++)
            *p = (char)toupper((unsigned char)*p);
        stop_add_filter(ret, "state", o->state.v[i]);
    }
}

static int stop_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct stop_opts *o = opts;
    _cleanup_(strv_release) struct strv ids = {0}, filters = {0};
    stop_gather(o, &filters);
    if (!args->n == !filters.n)
        return message_refuse(err, ERR_USAGE, args->n ? "cli_stop_not_both" : "cli_stop_which",
                              MESSAGE_NO_ARGS);
    if (o->dry_run && filters.n)
        return message_refuse(err, ERR_USAGE, "cli_stop_dry_ids", MESSAGE_NO_ARGS);
    strv_copy(&ids, args);
    int r = cli_open(cli, err);
    if (r >= 0 && o->dry_run)
        return stopview_run(cli, &ids, o->output, err);
    if (r >= 0 && filters.n)
        r = stopping_run(cli, &filters, o->all, o->yes, &ids, err);
    else if (r >= 0)
        r = jobchange_all(cli, &ids, &(struct jobchange){.word = "stop", .verb = ":stop"}, err);
    if (r < 0 || !o->wait || !ids.n)
        return r;
    r = waiting_run(cli, &ids, 0, OUTPUT_TABLE, err);
    return r == 11 ? 0 : r; /* STOPPED is what was asked for */
}

static int hold_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    (void)opts;
    const struct jobchange what = {.word = "hold", .verb = ":hold", .done = "say_held"};
    int r = cli_open(cli, err);
    return r < 0 ? r : jobchange_all(cli, args, &what, err);
}

static int release_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    (void)opts;
    const struct jobchange what = {.word = "release", .verb = ":release"};
    int r = cli_open(cli, err);
    return r < 0 ? r : jobchange_all(cli, args, &what, err);
}

static int priority_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    int64_t priority;
    char body[64];
    (void)opts;
    if (str_to_int(args->v[1], 0, 100, &priority, NULL) < 0)
        return message_refuse(err, ERR_USAGE, "cli_no_priority",
                              MESSAGE_ARGS(MESSAGE_STR("text", args->v[1])));
    text_printf(body, "{\"priority\": %" PRId64 "}", priority);
    int r = cli_open(cli, err);
    const struct jobchange what = {
        .word = "priority", .verb = ":priority", .body = body, .done = "say_priority"};
    return r < 0 ? r : jobchange_one(cli, args->v[0], &what, err);
}

struct justify_opts {
    const char *span;
};

static const struct opt JUSTIFY_OPTS[] = {
    {.name = "for",
     .type = OPT_TEXT,
     .offset = offsetof(struct justify_opts, span),
     .arg = "SPAN",
     .doc = "from now on, 7d at most (4h)"},
};

static int justify_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct justify_opts *o = opts;
    _cleanup_(buf_release) struct buf body = BUF_INIT(4096);
    struct jout j = jout_begin(&body);
    jout_open(&j, NULL, '{');
    jout_str(&j, "reason", args->v[1]);
    jout_str(&j, "for", o->span ? o->span : "4h");
    jout_close(&j, '}');
    if (body.failed)
        return message_refuse(err, ERR_USAGE, "justify_no_reason",
                              MESSAGE_ARGS(MESSAGE_NUM("most", 300)));
    int r = cli_open(cli, err);
    const struct jobchange what = {
        .word = "justify", .verb = ":justify", .body = buf_str(&body), .done = "say_justified"};
    return r < 0 ? r : jobchange_one(cli, args->v[0], &what, err);
}

enum { RETRY_TRIES = 5, RETRY_BODY_MAX = 4096, RETRY_LINE_MAX = 1 << 14 };

/* "- key: old" and "+ key: new", as talk. */
static void retry_talk_changes(const struct cli *cli, const json_t *answer)
{
    size_t i;
    json_t *c;
    json_array_foreach (json_get_array(answer, "changes"), i, c) {
        const char *const marks[] = {"old", "new"};
        for (size_t k = 0; k < array_len(marks); k++) {
            const char *value = json_get_str(c, marks[k], NULL);
            _cleanup_(buf_release) struct buf line = BUF_INIT(RETRY_LINE_MAX);
            text_clean(&line, str_or(value, "")); /* a longer one is cut */
            if (value)
                cli_talk(cli, "%c %s: %s", k ? '+' : '-', member_str(c, "key"), buf_str(&line));
        }
    }
}

struct change_opts {
    bool dry_run;
    const char *pool, *timeout;
    int64_t nnodes, gpus, priority;
    int output;
};

#define CHANGE_ROW(type_, member) .type = (type_), .offset = offsetof(struct change_opts, member)

static const struct opt CHANGE_OPTS[] = {
    {.name = "pool",
     CHANGE_ROW(OPT_TEXT, pool),
     .arg = "NAME",
     .to = "body:pool",
     .doc = "wait for the nodes of this pool"},
    {.name = "nnodes",
     CHANGE_ROW(OPT_COUNT, nnodes),
     .arg = "N",
     .to = "body:nnodes",
     .doc = "on so many nodes"},
    {.name = "gpus",
     CHANGE_ROW(OPT_COUNT, gpus),
     .arg = "N",
     .to = "body:n_gpus_per_node",
     .doc = "with so many GPUs on each"},
    {.name = "timeout",
     CHANGE_ROW(OPT_TEXT, timeout),
     .arg = "SPAN",
     .to = "body:timeout",
     .doc = "run at most 90m, 12h, 2d …: short ones fit before a promise"},
    {.name = "priority",
     CHANGE_ROW(OPT_COUNT, priority),
     .arg = "N",
     .to = "body:priority",
     .doc = "1 to 100, high first"},
    {.letter = 'n',
     .name = "dry-run",
     CHANGE_ROW(OPT_FLAG, dry_run),
     .doc = "only say when it would start, and who would start later"},
    OPT_OUTPUT(struct change_opts),
};

static int change_report(struct cli *cli, const struct change_opts *o, const json_t *answer)
{
    if (o->output >= OUTPUT_JSON) {
        cli_emit(cli, answer, o->output);
        return 0;
    }
    retry_talk_changes(cli, answer);
    if (o->dry_run)
        planview_print(cli, "the change", answer);
    else
        (void)fprintf(cli->out, "%s\n", member_str(answer, "id"));
    return 0;
}

static int change_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct change_opts *o = opts;
    _cleanup_(json_unrefp) json_t *answer = NULL, *body = json_object();
    int r = ask_fill(CHANGE_OPTS, array_len(CHANGE_OPTS), o, body, err);
    if (r >= 0 && !json_object_size(body))
        r = message_refuse(err, ERR_USAGE, "change_what", MESSAGE_NO_ARGS);
    if (r >= 0)
        r = cli_open(cli, err);
    if (r < 0)
        return r;
    _cleanup_(freep) char *path =
        cli_job_path(args->v[0], o->dry_run ? ":change?dry_run=1&no_trial=1" : ":change");
    r = ask_send(cli, "POST", path, json_incref(body), 1, &answer, err);
    return r < 0 ? r : change_report(cli, o, answer);
}

struct wait_opts {
    usec_t timeout;
    int output;
};

static const struct opt WAIT_OPTS[] = {
    {.name = "timeout",
     .type = OPT_SPAN,
     .offset = offsetof(struct wait_opts, timeout),
     .arg = "SPAN",
     .doc = "give up after 90s, 10m, 2h …: exit status 7"},
    OPT_OUTPUT(struct wait_opts),
};

static int wait_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct wait_opts *o = opts;
    int r = cli_open(cli, err);
    return r < 0 ? r : waiting_run(cli, args, o->timeout, o->output, err);
}

struct retry_opts {
    bool apply_fix, dry_run, min, max;
    const char *from, *metric, *note;
    int output;
};

#define RETRY_ROW(type_, member) .type = (type_), .offset = offsetof(struct retry_opts, member)

static const struct opt RETRY_OPTS[] = {
    {.name = "apply-fix",
     RETRY_ROW(OPT_FLAG, apply_fix),
     .doc = "change the spec as the finding proposes"},
    {.name = "from",
     RETRY_ROW(OPT_TEXT, from),
     .arg = "CKPT",
     .doc = "go on from this checkpoint of the job: a step such as 20, or latest, or best"},
    {.name = "metric",
     RETRY_ROW(OPT_TEXT, metric),
     .arg = "KEY",
     .doc = "with --from best: the best by this metric, as 'argus ckpt best' says it"},
    {.name = "note",
     RETRY_ROW(OPT_TEXT, note),
     .arg = "TEXT",
     .doc = "why it is made, in one line: 'argus family' shows it"},
    {.name = "max", RETRY_ROW(OPT_FLAG, max), .doc = "with --from best: the greatest value"},
    {.name = "min", RETRY_ROW(OPT_FLAG, min), .doc = "with --from best: the smallest value"},
    {.letter = 'n',
     .name = "dry-run",
     RETRY_ROW(OPT_FLAG, dry_run),
     .doc = "check only, start nothing"},
    OPT_OUTPUT(struct retry_opts),
};

static int retry_post(struct cli *cli,
                      const struct retry_opts *o,
                      const char *id,
                      json_t **ret,
                      struct err *err)
{
    char key[2 * 16 + 1];
    _cleanup_(buf_release) struct buf body = BUF_INIT(RETRY_BODY_MAX);
    _cleanup_(freep) char *path = cli_job_path(id, o->dry_run ? ":retry?dry_run=1" : ":retry");
    struct jout j = jout_begin(&body);
    const char *note = NULL;
    if (o->min && o->max)
        return message_refuse(err, ERR_USAGE, "cli_min_or_max", MESSAGE_NO_ARGS);
    if (family_check_note(o->note, &note, err) < 0)
        return ERR_BAD_REQUEST;
    jout_open(&j, NULL, '{');
    if (o->metric)
        jout_str(&j, "metric", o->metric);
    if (o->min || o->max)
        jout_str(&j, "mode", o->min ? "min" : "max");
    if (o->apply_fix)
        jout_bool(&j, "apply_fix", true);
    if (o->from)
        jout_str(&j, "from", o->from);
    if (note)
        jout_str(&j, "note", note);
    jout_close(&j, '}');
    if (body.failed)
        return message_refuse(err, ERR_USAGE, "cli_from_long", MESSAGE_NO_ARGS);
    hash_init();
    struct request request = {.method = "POST",
                              .path = path,
                              .content_type = "application/json",
                              .body = buf_str(&body),
                              .body_len = body.len,
                              .idempotency_key = random_hex(key),
                              .tries = RETRY_TRIES};
    return client_json(cli->client, &request, ret, err);
}

static int retry_report(struct cli *cli,
                        const struct retry_opts *o,
                        const json_t *answer,
                        struct err *err)
{
    const char *id = json_get_str(answer, "id", NULL);
    if (o->output >= OUTPUT_JSON)
        cli_emit(cli, answer, o->output);
    else
        retry_talk_changes(cli, answer);
    if (o->dry_run && o->output < OUTPUT_JSON)
        planview_print(cli, "the retry", answer);
    if (o->dry_run)
        return planview_is_good(answer)
                   ? 0
                   : message_refuse(err, ERR_BAD_SPEC, "cli_retry_trial", MESSAGE_NO_ARGS);
    if (o->output >= OUTPUT_JSON)
        return 0;
    if (!id)
        return message_refuse(err, ERR_INTERNAL, "cli_job_not_named", MESSAGE_NO_ARGS);
    (void)fprintf(cli->out, "%s\n", id);
    (void)fflush(cli->out); /* ferror(out) tells at the end */
    cli_say(cli, "say_next_steps", id, id, id);
    return 0;
}

static int retry_one(struct cli *cli, const char *id, const void *opts, struct err *err)
{
    _cleanup_(json_unrefp) json_t *job = NULL, *answer = NULL;
    int r = cli_get_job(cli, id, &job, err);
    if (r >= 0)
        r = retry_post(cli, opts, json_get_str(job, "id", id), &answer, err);
    return r < 0 ? r : retry_report(cli, opts, answer, err);
}

static int retry_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    int r = cli_open(cli, err);
    if (r < 0)
        return r;
    return args->n == 1 ? retry_one(cli, args->v[0], opts, err)
                        : jobchange_each(cli, args, "retry", retry_one, opts, err);
}

static const struct command JOB_COMMANDS[] = {
    {
        .name = "stop",
        .args = "[ID…]",
        .most = ARGS_ANY,
        .summary = "stop jobs",
        .text = "Asks for the stop and returns; --wait returns when they have ended. Stopping a "
                "job that has ended changes nothing. With a filter the jobs are named first; "
                "after you agree, all are stopped in one transaction.",
        .example = "argus stop --wait grpo-7\tand its resources are free\n"
                   "argus stop --dry-run grpo-7\twhat would be lost, and who waits for it\n"
                   "argus stop --user alice --state QUEUED -y\tnobody is asked",
        .opts = STOP_OPTS,
        .n_opts = array_len(STOP_OPTS),
        .opts_size = sizeof(struct stop_opts),
        .run = stop_run,
    },
    {
        .name = "hold",
        .args = "ID…",
        .least = 1,
        .most = ARGS_ANY,
        .summary = "keep jobs that wait from starting",
        .text = "They keep their place in the queue, and the time that they are held does not "
                "count as waiting. 'argus release' lets them go on. A job that an admin holds "
                "only an admin can release.",
        .example = "argus hold grpo-7\tnot tonight",
        .run = hold_run,
    },
    {
        .name = "release",
        .args = "ID…",
        .least = 1,
        .most = ARGS_ANY,
        .summary = "let jobs that are held go on",
        .text = "They wait for their turn again, at the place that they have kept. A job "
                "that has failed and whose slots are kept for a look (hold_on_failure) gives "
                "them back.",
        .run = release_run,
    },
    {
        .name = "priority",
        .args = "ID PRIORITY",
        .least = 2,
        .most = 2,
        .summary = "change a job's priority",
        .text = "0 to 100, high first; 50 is normal. It may not be above the ceiling of the "
                "job's project.",
        .example = "argus priority grpo-7 80\tbefore those with 50",
        .run = priority_run,
    },
    {
        .name = "justify",
        .args = "ID REASON",
        .least = 2,
        .most = 2,
        .summary = "say why the GPUs of a job rest",
        .text = "For that time the job is neither called idle nor, where its spec has idle.action "
                "stop, ended for it. The reason stands on the job's page and among its events.",
        .example = "argus justify --for 2h grpo-7 'a judge model scores on CPUs'\tand nobody takes "
                   "them",
        .opts = JUSTIFY_OPTS,
        .n_opts = array_len(JUSTIFY_OPTS),
        .opts_size = sizeof(struct justify_opts),
        .run = justify_run,
    },
    {
        .name = "change",
        .args = "ID",
        .least = 1,
        .most = 1,
        .summary = "change what a job that waits asks for",
        .text = "Its pool, nodes, GPUs, timeout or priority; it keeps its id and its place, and is "
                "checked as a new job is. 'argus why' names a change that would start it. With "
                "--dry-run nothing is changed: the expected start before and after, and the jobs "
                "that would start at another time. Nodes and GPUs of a job that has run already "
                "stay: what it saved is of them.",
        .example = "argus change --dry-run --nnodes 1 grpo-7\twhen would it start on one node?\n"
                   "argus change --pool a100 --timeout 6h grpo-7\tand then it waits there",
        .opts = CHANGE_OPTS,
        .n_opts = array_len(CHANGE_OPTS),
        .opts_size = sizeof(struct change_opts),
        .run = change_run,
    },
    {
        .name = "wait",
        .args = "ID…",
        .least = 1,
        .most = 64,
        .summary = "wait until jobs have ended",
        .text = "Prints each job's end as it comes. The exit status is that of the worst "
                "job: 13, 10, 12, 11, 0. Lost connections are made again; Ctrl-C ends the "
                "waiting, not the jobs.",
        .example = "argus wait --timeout 2h grpo-7 && echo done\tgo on only after success",
        .opts = WAIT_OPTS,
        .n_opts = array_len(WAIT_OPTS),
        .opts_size = sizeof(struct wait_opts),
        .run = wait_run,
    },
    {
        .name = "retry",
        .args = "ID…",
        .least = 1,
        .most = ARGS_ANY,
        .summary = "submit jobs that have ended once more",
        .text = "Prints the id of each new job: it has the spec of the old one, belongs to the "
                "same user and writes into a directory of its own. Each of several jobs is tried, "
                "even when one is refused. With --apply-fix the spec is changed as the finding of "
                "the failure proposes, and every change is shown; without a proposal it is "
                "refused. With --from the training goes on from a finished checkpoint of the old "
                "job, else it begins anew; best is the one that 'argus ckpt best' names.",
        .example =
            "argus retry --apply-fix grpo-7\twith the fix of 'argus diagnose grpo-7'\n"
            "argus retry --from latest grpo-7 grpo-8\tgo on from the newest checkpoint of each",
        .opts = RETRY_OPTS,
        .n_opts = array_len(RETRY_OPTS),
        .opts_size = sizeof(struct retry_opts),
        .run = retry_run,
    },
};

NOUN(job, JOB_COMMANDS);
