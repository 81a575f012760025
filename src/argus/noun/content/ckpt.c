/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt.c - the checkpoints of jobs: list them, read one to its last byte, remove those that the
 * retention of jobs lets go. */
#include "argus/noun/noun.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "argus/cli/listing.h"
#include "argus/show/member.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/metric/ckpt.h"

enum { NOTE_MAX = 4096 };

struct ckpt_scope {
    const char *project, *user; /* NULL: not given */
};
#define CKPT_SCOPE_OPTS(opts_struct)                                                               \
    {.name = "project",                                                                            \
     .type = OPT_TEXT,                                                                             \
     .offset = offsetof(opts_struct, scope.project),                                               \
     .arg = "NAME",                                                                                \
     .doc = "all jobs of this project, in place of ID"},                                           \
    {                                                                                              \
        .name = "user", .type = OPT_TEXT, .offset = offsetof(opts_struct, scope.user),             \
        .arg = "NAME", .doc = "all jobs of this user, in place of ID"                              \
    }

/* Either ID or a scope: ERR_USAGE. */
static int ckpt_check_scope(const struct ckpt_scope *s, const struct strv *args, struct err *err)
{
    bool is_wide = s->project || s->user;
    if (is_wide && args->n)
        return message_refuse(err, ERR_USAGE, "cli_ckpt_id_not_both", MESSAGE_NO_ARGS);
    if (!is_wide && !args->n)
        return message_refuse(err, ERR_USAGE, "cli_ckpt_id", MESSAGE_NO_ARGS);
    return 0;
}

/* The path of the list of jobs that have checkpoints; yours. */
static char *ckpt_path(const struct ckpt_scope *s)
{
    struct buf out = BUF_INIT(4096);
    (void)buf_adds(&out, "/v1/checkpoints");
    if (s->project) {
        (void)buf_adds(&out, "?project=");
        buf_add_url(&out, s->project);
    }
    if (s->user) {
        (void)buf_adds(&out, s->project ? "&user=" : "?user=");
        buf_add_url(&out, s->user); /* too long: the server says that it knows none */
    }
    return buf_take(&out);
}

/* The jobs of a list: ID, or those of the scope that have checkpoints. */
static int ckpt_find(struct cli *cli,
                     const struct ckpt_scope *s,
                     const struct strv *args,
                     struct strv *ret,
                     struct err *err)
{
    _cleanup_(json_unrefp) json_t *answer = NULL;
    size_t i;
    json_t *job;
    if (args->n) {
        strv_add(ret, args->v[0]);
        return 0;
    }
    _cleanup_(freep) char *path = ckpt_path(s);
    int r = client_get(cli->client, path, &answer, err);
    json_array_foreach (json_get_array(answer, "jobs"), i, job)
        strv_add(ret, member_str(job, "id"));
    long long total = (long long)json_get_int(answer, "total", 0);
    if (r >= 0 && (unsigned long long)total > ret->n)
        cli_talk(cli, "only the %zu with the largest checkpoints, of %lld jobs", ret->n, total);
    return r;
}

struct ckpt_ls_opts {
    struct listing_opts listing; /* first: its options know no other place */
    struct ckpt_scope scope;
    const char *metric;
    bool used_by;
};

static const struct opt CKPT_LS_OPTS[] = {
    {.name = "used-by",
     .type = OPT_FLAG,
     .offset = offsetof(struct ckpt_ls_opts, used_by),
     .doc = "NOTE names the jobs and the entries of the registry that need each, of ID alone"},
    {.name = "metric",
     .type = OPT_TEXT,
     .offset = offsetof(struct ckpt_ls_opts, metric),
     .arg = "KEY",
     .doc = "VALUE is that of this metric: a name, or a pattern whose mean it is"},
    LISTING_OPTS,
    CKPT_SCOPE_OPTS(struct ckpt_ls_opts),
};

static void ckpt_state(struct table *t, const json_t *c, const struct when *w)
{
    (void)w;
    table_add(t, json_get_bool(c, "verified", false) ? STYLE_GREEN : STYLE_RED,
              member_str(c, "state"));
}

/* Why it stays and for whom, why it is not whole, or what validation told at its step, and the job
 * that judges it. */
static void ckpt_note(struct table *t, const json_t *c, const struct when *w)
{
    _cleanup_(buf_release) struct buf out = BUF_INIT(NOTE_MAX);
    const char *name;
    const json_t *v, *user;
    size_t i;
    (void)w;
    bool is_pinned = json_get_bool(c, "pinned", false);
    (void)buf_adds(&out, is_pinned ? "pinned" : json_get_str(c, "kept", "")); /* they are short */
    json_array_foreach (json_get_array(c, "used_by"), i, user)
        (void)buf_addf(&out, "%s%s '%s'", out.len ? ", " : "", member_str(user, "kind"),
                       member_str(user, "name"));
    if (json_get_str(c, "why", NULL)) /* a longer one is cut, here and below */
        (void)buf_addf(&out, "%s%s", out.len ? ", " : "", json_get_str(c, "why", ""));
    json_object_foreach ((json_t *)(uintptr_t)json_get_object(c, "values"), name, v)
        (void)buf_addf(&out, "%s%s %.4g", out.len ? ", " : "", name,
                       json_is_number(v) ? json_number_value(v) : (double)NAN);
    if (json_get_str(c, "eval", NULL))
        (void)buf_addf(&out, "%s%s %s", out.len ? ", " : "", json_get_str(c, "eval_job", "eval"),
                       json_get_str(c, "eval", ""));
    table_add(t, STYLE_DIM, buf_str(&out));
}

static const struct column CHECKPOINTS[] = {
    {.title = "say_step",
     .flags = COLUMN_RIGHT,
     .key = "step",
     .as = CELL_NUMBER,
     .style = STYLE_BOLD},
    {.title = "say_state", .draw = ckpt_state},
    {.title = "say_size", .flags = COLUMN_RIGHT, .key = "bytes", .as = CELL_SIZE},
    {.title = "say_made", .key = "at", .as = CELL_TIME},
    {.title = "say_attempt", .flags = COLUMN_RIGHT, .rank = 2, .key = "attempt", .as = CELL_NUMBER},
    {.title = "say_value", .flags = COLUMN_RIGHT, .rank = 1, .key = "value", .as = CELL_VALUE},
    {.title = "say_note", .flags = COLUMN_ROOM, .draw = ckpt_note},
};

static void ckpt_newest(struct table *t, const json_t *sum, const struct when *w)
{
    int64_t newest = json_get_int(sum, "newest", 0);
    (void)w;
    if (newest)
        table_addf(t, STYLE_GREEN, "%" PRId64, newest);
    else
        table_add(t, STYLE_RED, NULL);
}

static const struct column JOBS[] = {
    {.title = "say_job", .flags = COLUMN_NAME, .least = 16, .key = "id", .style = STYLE_BOLD},
    {.title = "say_user", .flags = COLUMN_FLEX, .least = 6, .key = "user"},
    {.title = "say_project", .flags = COLUMN_FLEX, .least = 6, .rank = 1, .key = "project"},
    {.title = "say_checkpoints", .flags = COLUMN_RIGHT, .key = "checkpoints", .as = CELL_NUMBER},
    {.title = "say_size", .flags = COLUMN_RIGHT, .key = "bytes", .as = CELL_SIZE},
    {.title = "say_step", .flags = COLUMN_RIGHT, .draw = ckpt_newest},
};

/* The path of the list of a job's. metric and mode: NULL, they are its own. used_by: with who needs
 * each. */
static char *ckpt_values_path(const char *id, const char *metric, const char *mode, bool used_by)
{
    struct buf out = BUF_INIT(4096); /* a longer one is cut: the server knows no such metric */
    _cleanup_(freep) char *path = cli_job_path(id, "/checkpoints");
    (void)buf_adds(&out, path);
    url_query(&out, "used_by", used_by ? "1" : NULL);
    url_query(&out, "mode", mode);
    url_query(&out, "metric", metric);
    return buf_take(&out);
}

static int ckpt_ls_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    static const struct listing of_job = {.key = "checkpoints",
                                          COLUMNS(CHECKPOINTS),
                                          .none = "say_no_checkpoints",
                                          .unsettled = "looking",
                                          .yet = "say_checkpoints_looked_at"};
    static const struct listing of_all = {
        .key = "jobs", COLUMNS(JOBS), .none = "say_no_checkpoints"};
    const struct ckpt_ls_opts *o = opts;
    int r = ckpt_check_scope(&o->scope, args, err);
    if (r == 0 && o->metric && !args->n)
        r = message_refuse(err, ERR_USAGE, "cli_ckpt_metric_one", MESSAGE_NO_ARGS);
    if (r < 0)
        return r;
    _cleanup_(freep) char *path =
        args->n ? ckpt_values_path(args->v[0], o->metric, NULL, o->used_by) : ckpt_path(&o->scope);
    return listing_run(cli, path, args->n ? &of_job : &of_all, &o->listing, err);
}

/* ---- best ---- */

struct ckpt_best_opts {
    const char *metric;
    bool min, max;
    int output;
};
#define CKPT_BEST_ROW(type_, member)                                                               \
    .type = (type_), .offset = offsetof(struct ckpt_best_opts, member)

static const struct opt CKPT_BEST_OPTS[] = {
    {.name = "metric",
     CKPT_BEST_ROW(OPT_TEXT, metric),
     .arg = "KEY",
     .doc = "by this metric: a name, or a pattern whose mean counts"},
    {.name = "max", CKPT_BEST_ROW(OPT_FLAG, max), .doc = "the greatest value"},
    {.name = "min", CKPT_BEST_ROW(OPT_FLAG, min), .doc = "the smallest value"},
    OPT_OUTPUT(struct ckpt_best_opts),
};

/* Borrowed; NULL: there is none. */
static const json_t *ckpt_find_best(const json_t *answer)
{
    const json_t *best = json_object_get(answer, "best"), *c;
    size_t i;
    json_array_foreach (json_get_array(answer, "checkpoints"), i, c)
        if (json_is_integer(best) && json_get_int(c, "step", 0) == json_integer_value(best))
            return c;
    return NULL;
}

static int ckpt_best_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct ckpt_best_opts *o = opts;
    _cleanup_(json_unrefp) json_t *answer = NULL;
    char value[32], step[32];
    if (o->min && o->max)
        return message_refuse(err, ERR_USAGE, "cli_min_or_max", MESSAGE_NO_ARGS);
    _cleanup_(freep) char *path = ckpt_values_path(args->v[0], o->metric,
                                                   o->min   ? "min"
                                                   : o->max ? "max"
                                                            : NULL,
                                                   false);
    int r = cli_open(cli, err);
    if (r >= 0)
        r = client_get(cli->client, path, &answer, err);
    if (r < 0)
        return r;
    const json_t *best = ckpt_find_best(answer);
    const char *metric = json_get_str(answer, "metric", NULL);
    if (!best)
        return ckpt_refuse_best(json_get_str(answer, "id", args->v[0]), metric, err);
    if (o->output >= OUTPUT_JSON) {
        cli_emit(cli, best, o->output);
        return 0;
    }
    text_printf(step, "%" PRId64, json_get_int(best, "step", 0));
    text_printf(value, "%.6g", json_get_real(best, "value", NAN));
    (void)fprintf(cli->out, "%s\n", step);
    cli_say(cli,
            str_eq(json_get_str(answer, "mode", NULL), "min") ? "say_best_min" : "say_best_max",
            str_or(metric, ""), value, step);
    return 0;
}

struct ckpt_verify_opts {
    int output;
};

static const struct opt CKPT_VERIFY_OPTS[] = {OPT_OUTPUT(struct ckpt_verify_opts)};

/* The newest of a list; 0: none. */
static int64_t ckpt_verify_newest(const json_t *answer)
{
    const json_t *all = json_get_array(answer, "checkpoints");
    return json_get_int(json_array_get(all, json_array_size(all) - 1), "step", 0);
}

static int ckpt_verify_find_step(struct cli *cli, const char *id, int64_t *ret, struct err *err)
{
    _cleanup_(json_unrefp) json_t *answer = NULL;
    _cleanup_(freep) char *path = cli_job_path(id, "/checkpoints");
    int r = client_get(cli->client, path, &answer, err);
    if (r < 0)
        return r;
    *ret = ckpt_verify_newest(answer);
    return *ret ? 0
                : message_refuse(err, ERR_NOT_FOUND, "cli_no_ckpt",
                                 MESSAGE_ARGS(MESSAGE_STR("job", id)));
}

static int ckpt_verify_verify(struct cli *cli,
                              const char *id,
                              int64_t step,
                              int output,
                              struct err *err)
{
    char rest[64], size[SIZE_TEXT_MAX];
    _cleanup_(json_unrefp) json_t *c = NULL;
    text_printf(rest, "/checkpoints/%lld:verify", (long long)step);
    _cleanup_(freep) char *path = cli_job_path(id, rest);
    struct request request = {.method = "POST", .path = path};
    int r = client_json(cli->client, &request, &c, err);
    if (r < 0)
        return r;
    if (output >= OUTPUT_JSON)
        cli_emit(cli, c, output);
    else
        (void)fprintf(cli->out, "step %lld %s, %s%s%s\n", (long long)step, member_str(c, "state"),
                      size_text(json_get_int(c, "bytes", 0), size),
                      json_get_str(c, "why", NULL) ? ": " : "", json_get_str(c, "why", ""));
    return json_get_bool(c, "verified", false)
               ? 0
               : message_refuse(err, ERR_REFUSED, "cli_ckpt_unusable",
                                MESSAGE_ARGS(MESSAGE_NUM("step", (long long)step)));
}

static int ckpt_verify_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct ckpt_verify_opts *o = opts;
    const char *colon = strrchr(args->v[0], ':');
    _cleanup_(freep) char *id =
        xstrndup(args->v[0], colon ? (size_t)(colon - args->v[0]) : strlen(args->v[0]));
    int64_t step = 0;
    int r = 0;
    if (colon && str_to_int(colon + 1, 1, INT32_MAX, &step, NULL) < 0)
        return message_refuse(err, ERR_USAGE, "cli_no_step",
                              MESSAGE_ARGS(MESSAGE_STR("text", colon + 1)));
    r = cli_open(cli, err);
    if (r >= 0 && !colon)
        r = ckpt_verify_find_step(cli, id, &step, err);
    return r < 0 ? r : ckpt_verify_verify(cli, id, step, o->output, err);
}

/* ---- gc ---- */

struct ckpt_gone {
    size_t n;
    int64_t bytes;
    json_t *answers; /* the server's, of each job */
};

static int ckpt_call_gc(struct cli *cli,
                        const char *id,
                        bool dry_run,
                        json_t **ret,
                        struct err *err)
{
    _cleanup_(freep) char *path = ask_path("/v1/jobs/{}/checkpoints:gc", id);
    json_t *body = dry_run ? json_pack("{s:b}", "dry_run", 1) : json_object();
    return ask_send(cli, "POST", path, body, 3, ret, err); /* twice is once */
}

/* The plan as talk, and what goes by it. */
static void ckpt_talk_plan(const struct cli *cli, const json_t *plan, struct ckpt_gone *gone)
{
    char size[SIZE_TEXT_MAX];
    size_t i;
    json_t *c;
    json_array_foreach (json_get_array(plan, "checkpoints"), i, c) {
        bool goes = json_get_bool(c, "goes", false);
        int64_t bytes = json_get_int(c, "bytes", 0);
        cli_talk(cli, "step %-8lld %-9s %9s  %s%s", (long long)json_get_int(c, "step", 0),
                 member_str(c, "state"), size_text(bytes, size),
                 goes ? "goes" : "stays: ", goes ? "" : member_str(c, "kept_by"));
        gone->n += goes;
        gone->bytes += goes ? bytes : 0;
    }
}

/* Collects the checkpoints of one job after the other. A dry run says the plan, and counts what
 * would go. Where several jobs are named, one that may only be seen is left out, which the dry run
 * says. */
static int ckpt_gc(struct cli *cli,
                   const struct strv *jobs,
                   bool dry_run,
                   struct ckpt_gone *ret,
                   struct err *err)
{
    struct ckpt_gone gone = {.answers = json_array()};
    int r = 0;
    for (size_t i = 0; r >= 0 && i < jobs->n; i++) {
        _cleanup_(json_unrefp) json_t *answer = NULL;
        r = ckpt_call_gc(cli, jobs->v[i], dry_run, &answer, err);
        if (r == ERR_FORBIDDEN && jobs->n > 1) { /* others see it, too */
            _cleanup_(freep) char *said = cli_err_text(cli, err);
            if (dry_run)
                cli_talk(cli, "%s is left out: %s", jobs->v[i], said);
            r = 0;
            continue;
        }
        if (r >= 0 && dry_run && jobs->n > 1)
            cli_talk(cli, "%s:", jobs->v[i]);
        if (r >= 0 && dry_run)
            ckpt_talk_plan(cli, answer, &gone);
        gone.n += r >= 0 ? (size_t)json_get_int(answer, "removed", 0) : 0;
        gone.bytes += r >= 0 ? json_get_int(answer, "removed_bytes", 0) : 0;
        (void)json_array_append(gone.answers, answer); /* NULL: the call fails */
    }
    if (r < 0)
        json_decref(gone.answers);
    else
        *ret = gone;
    return r;
}

struct ckpt_gc_opts {
    bool dry_run, yes;
    int output;
    struct ckpt_scope scope;
};

#define CKPT_GC_ROW(type_, member) .type = (type_), .offset = offsetof(struct ckpt_gc_opts, member)

static const struct opt CKPT_GC_OPTS[] = {
    {.letter = 'n',
     .name = "dry-run",
     CKPT_GC_ROW(OPT_FLAG, dry_run),
     .doc = "say it, and remove nothing"},
    {.letter = 'y', .name = "yes", CKPT_GC_ROW(OPT_FLAG, yes), .doc = "remove them without asking"},
    CKPT_SCOPE_OPTS(struct ckpt_gc_opts),
    OPT_OUTPUT(struct ckpt_gc_opts),
};

static int ckpt_gc_ask(size_t n, int64_t bytes, struct err *err)
{
    char answer[16], size[SIZE_TEXT_MAX];
    if (!isatty(STDIN_FILENO))
        return message_refuse(err, ERR_USAGE, "cli_remove_no_terminal",
                              MESSAGE_ARGS(MESSAGE_NUM("count", n)));
    (void)fprintf(stderr, "remove these %zu, %s? [y/N] ", n, size_text(bytes, size));
    if (!fgets(answer, sizeof(answer), stdin) || (*answer != 'y' && *answer != 'Y'))
        return message_refuse(err, ERR_USAGE, "cli_nothing_removed", MESSAGE_NO_ARGS);
    return 0;
}

/* The plan is said, then one is asked, then it is done. *ret: what was done, or would be. */
static int ckpt_gc_clean(struct cli *cli,
                         const struct ckpt_gc_opts *o,
                         const struct strv *jobs,
                         struct ckpt_gone *ret,
                         struct err *err)
{
    struct ckpt_gone plan = {0};
    int r = ckpt_gc(cli, jobs, true, &plan, err);
    if (r < 0)
        return r;
    if (o->dry_run || !plan.n) {
        *ret = plan;
        ret->n = 0;
        ret->bytes = 0;
        return 0;
    }
    json_decref(plan.answers);
    if (!o->yes)
        r = ckpt_gc_ask(plan.n, plan.bytes, err);
    return r < 0 ? r : ckpt_gc(cli, jobs, false, ret, err);
}

static int ckpt_gc_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct ckpt_gc_opts *o = opts;
    _cleanup_(strv_release) struct strv jobs = {0};
    struct ckpt_gone gone = {0};
    char size[SIZE_TEXT_MAX];
    int r = ckpt_check_scope(&o->scope, args, err);
    if (r >= 0)
        r = cli_open(cli, err);
    if (r >= 0)
        r = ckpt_find(cli, &o->scope, args, &jobs, err);
    if (r >= 0)
        r = ckpt_gc_clean(cli, o, &jobs, &gone, err);
    if (r < 0)
        return r;
    if (o->output >= OUTPUT_JSON)
        cli_emit(cli, args->n ? json_array_get(gone.answers, 0) : gone.answers, o->output);
    else
        (void)fprintf(cli->out, "%zu removed, %s\n", gone.n, size_text(gone.bytes, size));
    json_decref(gone.answers);
    return 0;
}

/* ---- export ---- */

static const struct opt CKPT_EXPORT_OPTS[] = {
    {.name = "hf",
     .type = OPT_FLAG,
     .doc = "as Hugging Face's directory, which is the one format there is",
     .to = "body:hf"},
    {.name = "name",
     .type = OPT_TEXT,
     .arg = "NAME",
     .doc = "what the model is called; if not given the job's id and the step",
     .to = "body:name"},
    {.name = "common", .type = OPT_FLAG, .doc = "a model for everybody", .to = "body:common"},
    OPT_OUTPUT(struct listing_opts),
};

static void ckpt_export_print(struct cli *cli, const json_t *answer, const struct seen *seen)
{
    const char *job = member_str(answer, "job");
    (void)seen;
    (void)fprintf(cli->out, "%s %s\n", member_str(answer, "model"), job);
    cli_say(cli, "say_next_steps", job, job, job);
}

static const struct command CKPT_COMMANDS[] = {
    {
        .name = "ckpt ls",
        .args = "[ID]",
        .most = 1,
        .summary = "list the checkpoints of a job, or what the jobs of a project have",
        .text =
            "STATE is verified (every shard is there and its directory could be read), "
            "partial (it is being written, or it was never finished) or broken. A job resumes "
            "only from a verified checkpoint. VALUE is that of checkpoint.keep_best's metric "
            "at its step, or of the main metric of validation where the spec names none, or of "
            "--metric; NOTE has whether it is pinned, and what validation told at the step, at "
            "most 8 metrics. With --project or --user in place of ID: each job that has some, the "
            "largest first; STEP is the newest that can be read.",
        .example = "argus ckpt ls grpo-7\n"
                   "argus ckpt ls --metric actor/entropy grpo-7\tits value at each of them\n"
                   "argus ckpt ls --project rlhf\twhat takes its quota",
        .opts = CKPT_LS_OPTS,
        .n_opts = array_len(CKPT_LS_OPTS),
        .opts_size = sizeof(struct ckpt_ls_opts),
        .run = ckpt_ls_run,
    },
    {
        .name = "ckpt best",
        .args = "ID",
        .least = 1,
        .most = 1,
        .summary = "the step of a job's best checkpoint",
        .text = "Of the verified ones the one with the best value of a metric at its step, of "
                "equals the newest: of --metric, else of checkpoint.keep_best's, else of the main "
                "metric of validation. The greatest value is the best, and of a loss the smallest; "
                "--min and --max say it. 'argus retry --from best' goes on from it.",
        .example = "argus ckpt best grpo-7\n"
                   "argus ckpt best --metric val/loss --min sft-3\tby another metric",
        .opts = CKPT_BEST_OPTS,
        .n_opts = array_len(CKPT_BEST_OPTS),
        .opts_size = sizeof(struct ckpt_best_opts),
        .run = ckpt_best_run,
    },
    {
        .name = "ckpt export",
        .args = "ID STEP",
        .least = 2,
        .most = 2,
        .summary = "make a model of a checkpoint",
        .text = "An ordinary job of the training's user, without a GPU, runs the merger of the "
                "training's own verl over the shards; the checkpoint stays while it does. What it "
                "leaves, a directory that transformers loads, is a model of the registry where it "
                "lies once another job has looked at it: share it as any other. Prints "
                "name@version and the job that merges.",
        .example = "argus ckpt export grpo-7 200 --hf\n"
                   "argus ckpt export grpo-7 $(argus ckpt best grpo-7) --name sums\tthe best one",
        OPTS(CKPT_EXPORT_OPTS),
        .ask = {.method = "POST",
                .path = "/v1/jobs/{}/checkpoints/{1}:export",
                .print = ckpt_export_print},
    },
    {
        .name = "ckpt pin",
        .args = "ID STEP",
        .least = 2,
        .most = 2,
        .summary = "keep a checkpoint whatever the retention says",
        .text = "It stays beside those that checkpoint.keep_last and keep_best keep, over restarts "
                "and after the end of the job, until 'argus ckpt unpin'; 64 at most of a job. It "
                "must be verified. Its bytes count in the quota as any other's, and the job cannot "
                "be archived without its checkpoints meanwhile.",
        .example = "argus ckpt pin grpo-7 200\n"
                   "argus ckpt pin grpo-7 $(argus ckpt best grpo-7)\tthe best one of now",
        .ask = {.method = "POST",
                .path = "/v1/jobs/{}/checkpoints/{1}:pin",
                .done = "say_done_pinned",
                .subject = "step {step}"},
    },
    {
        .name = "ckpt unpin",
        .args = "ID STEP",
        .least = 2,
        .most = 2,
        .summary = "leave a pinned checkpoint to the retention again",
        .text = "It goes with the next look at the job's checkpoints if nothing else keeps it; of "
                "a job that is over 'argus ckpt gc' removes it.",
        .ask = {.method = "POST",
                .path = "/v1/jobs/{}/checkpoints/{1}:unpin",
                .done = "say_done_unpinned",
                .subject = "step {step}"},
    },
    {
        .name = "ckpt verify",
        .args = "ID[:STEP]",
        .least = 1,
        .most = 1,
        .summary = "read a checkpoint to its last byte",
        .text = "Every byte of every shard is read and held against its CRC; without STEP "
                "those of the newest. What is read by itself, before each use, is a shard's "
                "directory and its small members: that tells a torn one, but not a byte that "
                "was changed within a tensor.",
        .example = "argus ckpt verify grpo-7:200",
        .opts = CKPT_VERIFY_OPTS,
        .n_opts = array_len(CKPT_VERIFY_OPTS),
        .opts_size = sizeof(struct ckpt_verify_opts),
        .run = ckpt_verify_run,
    },
    {
        .name = "ckpt gc",
        .args = "[ID]",
        .most = 1,
        .summary = "remove the checkpoints that a job, or a project's jobs, need not keep",
        .text =
            "By checkpoint.keep_last and keep_best of its spec, and of a job that is over "
            "also what was never finished, and what was put aside as torn. The last verified "
            "one always stays, and so does one that a job which is not over goes on from or "
            "reads, or that is pinned. The plan is shown first, and carried out only after you "
            "agree. Running jobs are cleaned up by themselves. With --project or --user in place "
            "of ID: all of their jobs that have checkpoints.",
        .example = "argus ckpt gc --dry-run grpo-7\twhat would go, and why the others stay\n"
                   "argus ckpt gc -y grpo-7\tnobody is asked\n"
                   "argus ckpt gc -n --project rlhf\twhat a project could do without",
        .opts = CKPT_GC_OPTS,
        .n_opts = array_len(CKPT_GC_OPTS),
        .opts_size = sizeof(struct ckpt_gc_opts),
        .run = ckpt_gc_run,
    },
};

NOUN(ckpt, CKPT_COMMANDS);
