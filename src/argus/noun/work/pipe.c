/* SPDX-License-Identifier: Apache-2.0 */
/* pipe.c - pipelines: checked here before anything is sent, stored, run, drawn, run again. */
#include "argus/noun/noun.h"

#include <stdlib.h>
#include <string.h>

#include "argus/job/submission.h"
#include "argus/show/member.h"
#include "argus/show/text.h"
#include "base/file.h"
#include "base/message.h"
#include "core/pipe/pipe.h"
#include "core/pipe/pipe_jobs.h"

enum { PIPE_PATH_MAX = 1024, PIPE_LINE_MAX = 4096 };

/* ---- options ---- */

static const struct opt LS_OPTS[] = {LISTING_OPTS};
static const struct opt RUNS_OPTS[] = {
    {.name = "pipeline",
     .type = OPT_TEXT,
     .arg = "NAME",
     .doc = "only runs of this pipeline",
     .to = "query:pipeline"},
    {.name = "owner",
     .type = OPT_TEXT,
     .arg = "NAME",
     .doc = "only runs of this user's pipelines",
     .to = "query:owner"},
    {.name = "user",
     .type = OPT_TEXT,
     .arg = "NAME",
     .doc = "only runs that this user began",
     .to = "query:user"},
    {.name = "state",
     .type = OPT_TEXT,
     .arg = "STATES",
     .doc = "only runs in these states, with commas between them",
     .to = "query:state"},
    LISTING_OPTS,
};
struct pipe_retry_opts {
    int output;
    bool force, dry_run;
    const char *from;
    struct strv set;
};
#define PLAN_DOC "what would run, what not and why; nothing is begun"
static const struct opt RETRY_OPTS[] = {
    {.name = "from",
     .type = OPT_TEXT,
     .offset = offsetof(struct pipe_retry_opts, from),
     .arg = "STEP",
     .doc = "run this step and all that needs it; if not given, what did not succeed"},
    {.name = "set",
     .type = OPT_LIST,
     .offset = offsetof(struct pipe_retry_opts, set),
     .arg = "NAME=VALUE",
     .doc = "a new value of a parameter: steps that read it run again, too; may be given again"},
    {.name = "force",
     .type = OPT_FLAG,
     .offset = offsetof(struct pipe_retry_opts, force),
     .doc = "run every step, though an earlier run had the same inputs"},
    {.name = "dry-run",
     .type = OPT_FLAG,
     .offset = offsetof(struct pipe_retry_opts, dry_run),
     .doc = PLAN_DOC},
    OPT_OUTPUT(struct pipe_retry_opts),
};

#define WHOSE_DOC "whose pipeline NAME is; yours if not given"
struct pipe_run_opts {
    int output;
    bool force, dry_run;
    struct strv params;
    const char *project, *user;
};
static const struct opt RUN_OPTS[] = {
    {.letter = 'p',
     .name = "param",
     .type = OPT_LIST,
     .offset = offsetof(struct pipe_run_opts, params),
     .arg = "NAME=VALUE",
     .doc = "a parameter; may be given again and again"},
    {.name = "force",
     .type = OPT_FLAG,
     .offset = offsetof(struct pipe_run_opts, force),
     .doc = "no earlier run stands in for a step"},
    {.name = "project",
     .type = OPT_TEXT,
     .offset = offsetof(struct pipe_run_opts, project),
     .arg = "NAME",
     .doc = "project that FILE is stored in: its members see the pipeline and its runs"},
    {.name = "user",
     .type = OPT_TEXT,
     .offset = offsetof(struct pipe_run_opts, user),
     .arg = "NAME",
     .doc = WHOSE_DOC},
    OPT_OUTPUT(struct pipe_run_opts),
    /* The last one: 'pipe plan' has those before it. */
    {.name = "dry-run",
     .type = OPT_FLAG,
     .offset = offsetof(struct pipe_run_opts, dry_run),
     .doc = PLAN_DOC},
};

struct pipe_add_opts {
    int output;
    const char *project;
};
static const struct opt ADD_OPTS[] = {
    {.name = "project",
     .type = OPT_TEXT,
     .offset = offsetof(struct pipe_add_opts, project),
     .arg = "NAME",
     .doc = "project whose members see it; default if not given"},
    OPT_OUTPUT(struct pipe_add_opts),
};

struct pipe_show_opts {
    int output;
    bool utc, watch;
};
static const struct opt SHOW_OPTS[] = {
    OPT_OUTPUT(struct pipe_show_opts),
    OPT_UTC(struct pipe_show_opts),
    OPT_WATCH(struct pipe_show_opts),
};

struct pipe_schedule_opts {
    const char *cron, *zone, *user;
    struct strv params;
    bool off;
};
static const struct opt SCHEDULE_OPTS[] = {
    {.name = "cron",
     .type = OPT_TEXT,
     .offset = offsetof(struct pipe_schedule_opts, cron),
     .arg = "FIELDS",
     .doc = "minute hour day-of-month month day-of-week, or @daily and its like"},
    {.name = "zone",
     .type = OPT_TEXT,
     .offset = offsetof(struct pipe_schedule_opts, zone),
     .arg = "NAME",
     .doc = "time zone such as Asia/Shanghai; UTC if not given"},
    {.letter = 'p',
     .name = "param",
     .type = OPT_LIST,
     .offset = offsetof(struct pipe_schedule_opts, params),
     .arg = "NAME=VALUE",
     .doc = "a parameter of each run"},
    {.name = "off",
     .type = OPT_FLAG,
     .offset = offsetof(struct pipe_schedule_opts, off),
     .doc = "take the schedule away"},
    {.name = "user",
     .type = OPT_TEXT,
     .offset = offsetof(struct pipe_schedule_opts, user),
     .arg = "NAME",
     .doc = WHOSE_DOC},
};
static const struct opt RM_OPTS[] = {
    {.name = "user", .type = OPT_TEXT, .arg = "NAME", .doc = WHOSE_DOC, .to = "query:user"},
};

/* ---- tables ---- */

static enum style pipe_style(const char *state)
{
    static const struct {
        const char *state;
        enum style style;
    } styles[] = {{"SUCCEEDED", STYLE_GREEN},
                  {"RUNNING", STYLE_CYAN},
                  {"FAILED", STYLE_RED},
                  {"WAITING", STYLE_DIM},
                  {"CANCELLED", STYLE_YELLOW}};
    for (size_t i = 0; i < array_len(styles); i++)
        if (str_eq(state, styles[i].state))
            return styles[i].style;
    return STYLE_DIM;
}

static void pipe_state(struct table *t, const json_t *item, const struct when *w)
{
    const char *state = member_str(item, "state");
    (void)w;
    table_add(t, pipe_style(state), json_get_bool(item, "cached", false) ? "CACHED" : state);
}

static void pipe_done(struct table *t, const json_t *run, const struct when *w)
{
    (void)w;
    table_addf(t, STYLE_PLAIN, "%lld/%lld", (long long)json_get_int(run, "done", 0),
               (long long)json_get_int(run, "total", 0));
}

static void pipe_hours(struct table *t, const json_t *of, const struct when *w)
{
    double hours = json_get_real(of, "gpu_hours", 0);
    (void)w;
    if (hours > 0)
        table_addf(t, STYLE_PLAIN, "%.2f", hours);
    else
        table_add(t, STYLE_PLAIN, NULL);
}

static void pipe_reason(struct table *t, const json_t *step, const struct when *w)
{
    (void)w;
    table_add(t, STYLE_PLAIN, json_get_str(json_get_object(step, "reason"), "text", NULL));
}

static const struct column PIPELINES[] = {
    {.title = "say_name", .flags = COLUMN_FLEX, .least = 16, .key = "name", .style = STYLE_BOLD},
    {.title = "say_owner", .flags = COLUMN_FLEX, .least = 6, .key = "owner"},
    {.title = "say_project", .flags = COLUMN_FLEX, .least = 9, .key = "project", .rank = 2},
    {.title = "say_steps", .flags = COLUMN_FLEX, .least = 12, .key = "steps", .as = CELL_LIST},
    {.title = "say_schedule", .flags = COLUMN_FLEX, .least = 9, .key = "cron", .rank = 1},
    {.title = "say_next_at", .key = "next_at", .as = CELL_TIME},
};
static const struct column RUNS[] = {
    {.title = "say_run", .flags = COLUMN_FLEX, .least = 16, .key = "id", .style = STYLE_BOLD},
    {.title = "say_state", .draw = pipe_state},
    {.title = "say_steps", .draw = pipe_done},
    {.title = "say_user", .flags = COLUMN_FLEX, .least = 6, .key = "user", .rank = 2},
    {.title = "say_project", .flags = COLUMN_FLEX, .least = 9, .key = "project", .rank = 3},
    {.title = "say_made", .key = "created_at", .as = CELL_TIME},
    {.title = "say_ended_at", .key = "ended_at", .as = CELL_TIME, .rank = 1},
    {.title = "say_gpu_hours", .flags = COLUMN_RIGHT, .draw = pipe_hours, .rank = 4},
};
static const struct column STEPS[] = {
    {.title = "say_step_name",
     .flags = COLUMN_FLEX,
     .least = 10,
     .key = "name",
     .style = STYLE_BOLD},
    {.title = "say_state", .draw = pipe_state},
    {.title = "say_needs",
     .flags = COLUMN_FLEX,
     .least = 8,
     .key = "needs",
     .as = CELL_LIST,
     .rank = 2},
    {.title = "say_job", .flags = COLUMN_FLEX, .least = 12, .key = "job"},
    {.title = "say_started_at", .key = "started_at", .as = CELL_TIME, .rank = 3},
    {.title = "say_gpu_hours", .flags = COLUMN_RIGHT, .draw = pipe_hours, .rank = 1},
    {.title = "say_reason", .flags = COLUMN_ROOM, .draw = pipe_reason},
};

static void pipe_would(struct table *t, const json_t *step, const struct when *w)
{
    static const struct {
        const char *would;
        enum style style;
    } styles[] = {{"run", STYLE_CYAN},    {"depends", STYLE_YELLOW}, {"fail", STYLE_RED},
                  {"reuse", STYLE_GREEN}, {"keep", STYLE_GREEN},     {"pass", STYLE_GREEN}};
    const char *would = member_str(step, "would");
    enum style style = STYLE_DIM;
    (void)w;
    for (size_t i = 0; i < array_len(styles); i++)
        if (str_eq(would, styles[i].would))
            style = styles[i].style;
    table_add(t, style, would);
}

static const struct column PLANNED[] = {
    {.title = "say_step_name",
     .flags = COLUMN_FLEX,
     .least = 10,
     .key = "name",
     .style = STYLE_BOLD},
    {.title = "say_would", .draw = pipe_would},
    {.title = "say_since_run", .flags = COLUMN_FLEX, .least = 10, .key = "earlier"},
    {.title = "say_reason", .flags = COLUMN_ROOM, .draw = pipe_reason},
};

/* A line of texts that others wrote; one that is too long is cut. Releases it. */
static void pipe_print_line(const struct cli *cli, struct buf *taken_line)
{
    struct buf clean = BUF_INIT(2 * PIPE_LINE_MAX);
    text_clean(&clean, buf_str(taken_line));
    (void)fprintf(cli->out, "%s\n", buf_str(&clean));
    buf_release(&clean);
    buf_release(taken_line);
}

/* "train /mnt/…: compared, 12", one a line. */
static void pipe_print_paths(const struct cli *cli, const json_t *step)
{
    const json_t *path;
    size_t k;
    json_array_foreach (json_get_array(step, "paths"), k, path) {
        struct buf line = BUF_INIT(PIPE_LINE_MAX);
        (void)buf_addf(&line, "%s %s: %s, %lld", member_str(step, "name"), /* cut: fine */
                       member_str(path, "path"), member_str(path, "state"),
                       (long long)json_get_int(path, "files", 0));
        pipe_print_line(cli, &line);
    }
}

/* The answer to a dry run: its steps, and below what is other than in the run before, and the paths
 * that were looked at. */
static void pipe_print_plan(struct cli *cli, const json_t *plan, int output)
{
    struct when w = cli_when(cli, false);
    const json_t *step, *change;
    size_t i, k;
    if (output >= OUTPUT_JSON) {
        cli_emit(cli, plan, output);
        return;
    }
    _cleanup_(table_freep) struct table *t = table_new(PLANNED, array_len(PLANNED));
    json_array_foreach (json_get_array(plan, "steps"), i, step)
        table_add_item(t, step, &w);
    (void)table_print(t, &cli->term, output == OUTPUT_WIDE, cli->out); /* as in pipe_show_page() */
    json_array_foreach (json_get_array(plan, "steps"), i, step)
        json_array_foreach (json_get_array(step, "changes"), k, change) {
            struct buf line = BUF_INIT(PIPE_LINE_MAX);
            (void)buf_addf(&line, "%s %s: %s -> %s", member_str(step, "name"), /* cut: fine */
                           member_str(change, "key"), json_get_str(change, "from", "-"),
                           json_get_str(change, "to", "-"));
            pipe_print_line(cli, &line);
        }
    json_array_foreach (json_get_array(plan, "steps"), i, step)
        pipe_print_paths(cli, step);
}

/* ---- a file, before it is sent ---- */

static void pipe_tell_problems(const struct cli *cli, const struct problems *ps, const char *file)
{
    struct buf text = BUF_INIT(PIPE_MAX_BYTES);
    problems_to_text(ps, file,
                     cli->term.lang == MESSAGE_CHINESE ? MESSAGE_CHINESE : MESSAGE_ENGLISH, &text);
    cli_talk(cli, "%s", buf_str(&text));
    buf_release(&text);
}

/* "train", "merge <- train", each behind all that it needs. */
static void pipe_draw(const struct cli *cli, const struct pipe *p)
{
    for (size_t i = 0; i < p->n_steps; i++) {
        const struct pipe_step *s = &p->steps[p->order[i]];
        struct buf line = BUF_INIT(PIPE_LINE_MAX);
        (void)buf_addf(&line, "%-20s %-8s", s->name, /* a long line is cut */
                       pipe_uses_to_string((enum pipe_uses)s->uses));
        for (int k = 0; k < s->n_before; k++)
            (void)buf_addf(&line, "%s%s", k ? ", " : " <- ", p->steps[s->before[k]].name);
        if (s->n_items > 1)
            (void)buf_addf(&line, " (%zu)", s->n_items);
        (void)fprintf(cli->out, "%s\n", buf_str(&line));
        buf_release(&line);
    }
}

/* The text of a file as a pipeline; its problems are told. */
static int pipe_take_text(const struct cli *cli,
                          const char *file,
                          const struct buf *text,
                          struct pipe **ret,
                          struct err *err)
{
    struct problems ps = {0};
    int r = pipe_read(buf_str(text), text->len, ret, &ps);
    if (r == 0)
        pipe_jobs_check(*ret, &ps);
    if (r == 0 && ps.errors) {
        r = ERR_BAD_SPEC;
        pipe_free(*ret);
        *ret = NULL;
    }
    if (r < 0) {
        pipe_tell_problems(cli, &ps, file);
        (void)message_refuse(
            err, ERR_BAD_SPEC, "cli_problems",
            MESSAGE_ARGS(MESSAGE_STR("file", file), MESSAGE_NUM("n", ps.errors))); /* fills err */
    }
    problems_release(&ps);
    return r;
}

static int pipe_open_file(struct cli *cli, const char *file, struct pipe **ret, struct err *err)
{
    struct buf text = BUF_INIT(PIPE_MAX_BYTES + 1);
    int r = file_read_input(file, &text, err);
    if (r == 0)
        r = pipe_take_text(cli, file, &text, ret, err);
    buf_release(&text);
    return r;
}

static int pipe_check(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    struct pipe *p = NULL;
    (void)opts;
    int r = pipe_open_file(cli, args->v[0], &p, err);
    if (r == 0)
        pipe_draw(cli, p);
    pipe_free(p);
    return r;
}

/* ---- stored and run ---- */

static char *pipe_path(const char *name, const char *rest, const char *key, const char *value)
{
    struct buf path = BUF_INIT(PIPE_PATH_MAX);
    (void)buf_adds(&path, "/v1/pipelines/"); /* overflow: the server knows no such name */
    buf_add_url(&path, name);
    (void)buf_adds(&path, rest);
    url_query(&path, key, value);
    return buf_take(&path);
}

static int pipe_store(struct cli *cli,
                      const char *file,
                      const char *project,
                      json_t **ret,
                      struct err *err)
{
    static const struct submission_wish none = {0};
    _cleanup_(submission_release) struct submission s = {0};
    struct pipe *p = NULL;
    int r = submission_read(&s, file, &none, err);
    if (r == 0)
        r = pipe_take_text(cli, s.name, &s.text, &p, err);
    if (r < 0 || !p)
        return r < 0 ? r : ERR_BAD_SPEC;
    _cleanup_(freep) char *path = pipe_path(p->name, "", "project", project);
    pipe_free(p);
    return submission_put(&s, cli, path, ret, err);
}

static int pipe_add(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct pipe_add_opts *o = opts;
    _cleanup_(json_unrefp) json_t *answer = NULL;
    int r = cli_open(cli, err);
    if (r == 0)
        r = pipe_store(cli, args->v[0], o->project, &answer, err);
    if (r < 0)
        return r;
    if (o->output >= OUTPUT_JSON)
        cli_emit(cli, answer, o->output);
    else
        cli_say(cli, "say_done_stored", json_get_str(answer, "name", ""), NULL, NULL);
    return 0;
}

/* "lr=1e-6" into an object; NULL: it is none. */
static json_t *pipe_params(const struct strv *given, struct err *err)
{
    json_t *all = json_object();
    for (size_t i = 0; i < given->n; i++) {
        const char *equals = strchr(given->v[i], '=');
        _cleanup_(freep) char *name =
            equals ? xstrndup(given->v[i], (size_t)(equals - given->v[i])) : NULL;
        json_t *value = equals ? json_string(equals + 1) : NULL;
        if (!value || json_object_set_new(all, name, value) < 0) {
            json_decref(all);
            (void)message_refuse(err, ERR_USAGE, "cli_no_param",
                                 MESSAGE_ARGS(MESSAGE_STR("text", given->v[i]))); /* fills err */
            return NULL;
        }
    }
    return all;
}

/* A file is one that can be read here; anything else is the name of a pipeline. */
static bool pipe_is_file(const char *word)
{
    return !pipe_is_name(word) || str_eq(word, "-");
}

static int pipe_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct pipe_run_opts *o = opts;
    _cleanup_(json_unrefp) json_t *stored = NULL, *answer = NULL;
    bool is_file = pipe_is_file(args->v[0]);
    int r = cli_open(cli, err);
    json_t *params = r == 0 ? pipe_params(&o->params, err) : NULL;
    if (r == 0 && !params)
        r = ERR_USAGE;
    if (r == 0 && is_file)
        r = pipe_store(cli, args->v[0], o->project, &stored, err);
    if (r < 0) {
        json_decref(params);
        return r;
    }
    const char *name = is_file ? json_get_str(stored, "name", "") : args->v[0];
    _cleanup_(freep) char *path = pipe_path(name, ":run", "user", is_file ? NULL : o->user);
    json_t *body = json_pack("{s:o,s:b}", "params", params, "force", o->force);
    if (o->dry_run)
        (void)json_object_set_new(body, "dry_run", json_true()); /* both are there */
    r = ask_send(cli, "POST", path, body, 1, &answer, err);
    if (r < 0)
        return r;
    if (o->dry_run) {
        pipe_print_plan(cli, answer, o->output);
        return 0;
    }
    const char *id = json_get_str(answer, "id", "");
    if (o->output >= OUTPUT_JSON) {
        cli_emit(cli, answer, o->output);
    } else {
        (void)fprintf(cli->out, "%s\n", id);
        cli_say(cli, "say_next_pipe", id, id, NULL);
    }
    return 0;
}

static int pipe_plan(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    struct pipe_run_opts *o = opts;
    o->dry_run = true;
    return pipe_run(cli, o, args, err);
}

/* ---- a run ---- */

static int pipe_show_page(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct pipe_show_opts *o = opts;
    _cleanup_(json_unrefp) json_t *run = NULL;
    _cleanup_(freep) char *path = ask_path("/v1/pipeline-runs/{}", args->v[0]);
    int r = client_get(cli->client, path, &run, err);
    if (r < 0)
        return r;
    if (o->output >= OUTPUT_JSON) {
        cli_emit(cli, run, o->output);
        return 0;
    }
    _cleanup_(table_freep) struct table *t = table_new(STEPS, array_len(STEPS));
    struct when w = cli_when(cli, o->utc);
    size_t i;
    const json_t *step;
    double hours = json_get_real(run, "gpu_hours", 0);
    (void)fprintf(cli->out, "%s  %s", json_get_str(run, "id", ""), member_str(run, "state"));
    if (hours > 0)
        (void)fprintf(cli->out, "  %.2f %s", hours, message_words("say_gpu_hours", cli->term.lang));
    (void)fputc('\n', cli->out);
    json_array_foreach (json_get_array(run, "steps"), i, step)
        table_add_item(t, step, &w);
    (void)table_print(t, &cli->term, o->output == OUTPUT_WIDE,
                      cli->out); /* what has no room is in -o wide */
    return 0;
}

static int pipe_retry(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct pipe_retry_opts *o = opts;
    _cleanup_(json_unrefp) json_t *answer = NULL;
    _cleanup_(freep) char *path = ask_path("/v1/pipeline-runs/{}:retry", args->v[0]);
    int r = cli_open(cli, err);
    json_t *params = r == 0 ? pipe_params(&o->set, err) : NULL;
    if (r == 0 && !params)
        return ERR_USAGE;
    if (r < 0)
        return r;
    json_t *body = json_pack("{s:s?,s:o,s:b,s:b}", "from", o->from, "params", params, "force",
                             o->force, "dry_run", o->dry_run);
    r = ask_send(cli, "POST", path, body, 1, &answer, err);
    if (r < 0)
        return r;
    if (o->dry_run)
        pipe_print_plan(cli, answer, o->output);
    else if (o->output >= OUTPUT_JSON)
        cli_emit(cli, answer, o->output);
    else
        cli_say(cli, "say_done_changed", args->v[0], NULL, NULL);
    return 0;
}

static int pipe_show(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct pipe_show_opts *o = opts;
    int r = cli_open(cli, err);
    return r < 0 ? r : cli_page(cli, o->watch, pipe_show_page, opts, args, err);
}

/* The graph of a file as it would run, or of a run as it stands. */
static int pipe_graph(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    return pipe_is_file(args->v[0]) ? pipe_check(cli, opts, args, err)
                                    : pipe_show(cli, opts, args, err);
}

static int pipe_schedule(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct pipe_schedule_opts *o = opts;
    _cleanup_(json_unrefp) json_t *answer = NULL;
    _cleanup_(freep) char *path = pipe_path(args->v[0], ":schedule", "user", o->user);
    if (o->off == (o->cron != NULL))
        return message_refuse(err, ERR_USAGE, "cli_pipe_when", MESSAGE_NO_ARGS);
    int r = cli_open(cli, err);
    json_t *params = r == 0 ? pipe_params(&o->params, err) : NULL;
    if (r == 0 && !params)
        return ERR_USAGE;
    if (r < 0)
        return r;
    json_t *body = json_pack("{s:s?,s:s?,s:o}", "cron", o->cron, "zone", o->zone, "params", params);
    r = ask_send(cli, "POST", path, body, 1, &answer, err);
    if (r < 0)
        return r;
    const char *next = json_get_str(answer, "next_at", NULL);
    if (next)
        cli_say(cli, "say_pipe_scheduled", args->v[0], next, NULL);
    else
        cli_say(cli, "say_done_changed", args->v[0], NULL, NULL);
    return 0;
}

static const struct command PIPE_COMMANDS[] = {
    {
        .name = "pipe ls",
        .args = "",
        .summary = "list the pipelines",
        .text = "Lists your pipelines and those of your projects, each with its steps and the "
                "next time of its schedule.",
        OPTS(LS_OPTS),
        .ask = {.path = "/v1/pipelines",
                .table = {.key = "pipelines", COLUMNS(PIPELINES), .none = "say_no_pipelines"}},
    },
    {
        .name = "pipe check",
        .args = "FILE",
        .least = 1,
        .most = 1,
        .summary = "check a pipeline and draw its steps",
        .text =
            "Nothing is sent: every mistake is told with its line and column, else the steps are "
            "printed so that each stands behind all that it needs.",
        .run = pipe_check,
    },
    {
        .name = "pipe add",
        .args = "FILE",
        .least = 1,
        .most = 1,
        .summary = "store a pipeline",
        .text = "The pipeline is stored under its own name and replaces one of that name; runs "
                "under way go on with the text that they began with.",
        OPTS(ADD_OPTS),
        .opts_size = sizeof(struct pipe_add_opts),
        .run = pipe_add,
    },
    {
        .name = "pipe run",
        .args = "FILE|NAME",
        .least = 1,
        .most = 1,
        .summary = "run a pipeline",
        .text =
            "FILE is stored first, as with 'argus pipe add'; NAME is one that is stored. Prints "
            "the "
            "id of the run. Each step is a job of yours, a check, a publish or a preparation of "
            "data. A step whose inputs an earlier run had (spec, code, data and models by their "
            "hashes, plain paths by names, sizes and times of their files) is not run again while "
            "what it made is there, unless --force is given. --dry-run tells which those are, "
            "and "
            "what is other than before.",
        .example =
            "argus pipe run sft.yaml -p lr=1e-5\tstore and run it\n"
            "argus pipe run sft-to-model --force\trun each of its steps\n"
            "argus pipe run sft-to-model --dry-run -p lr=2e-5\twhat would run again, and why",
        OPTS(RUN_OPTS),
        .opts_size = sizeof(struct pipe_run_opts),
        .run = pipe_run,
    },
    {
        .name = "pipe plan",
        .args = "FILE|NAME",
        .least = 1,
        .most = 1,
        .summary = "tell what a run would do, and begin nothing",
        .text = "As 'argus pipe run --dry-run': for each step whether it would run, or an earlier "
                "run stands in for it, and why, with what is other than before. FILE is stored "
                "first, as with 'argus pipe add'.",
        .example = "argus pipe plan sft-to-model -p lr=2e-5\twhat would run again, and why",
        .opts = RUN_OPTS,
        .n_opts = array_len(RUN_OPTS) - 1,
        .opts_size = sizeof(struct pipe_run_opts),
        .run = pipe_plan,
    },
    {
        .name = "pipe runs",
        .args = "",
        .summary = "list the runs, the newest first",
        .text = "Yours and those of your projects.",
        OPTS(RUNS_OPTS),
        .ask = {.path = "/v1/pipeline-runs",
                .table = {.key = "runs", COLUMNS(RUNS), .none = "say_no_runs"}},
    },
    {
        .name = "pipe show",
        .args = "RUN",
        .least = 1,
        .most = 1,
        .summary = "show a run's steps",
        .text =
            "Each step with its state, what it needs, its job and why it is where it is; -o json "
            "has what each left behind.",
        .example = "argus pipe show sft-to-model-7 --watch\tagain every 2 s",
        OPTS(SHOW_OPTS),
        .opts_size = sizeof(struct pipe_show_opts),
        .run = pipe_show,
    },
    {
        .name = "pipe graph",
        .args = "RUN|FILE",
        .least = 1,
        .most = 1,
        .summary = "draw the steps of a run or of a file",
        .text = "Shows a FILE as 'argus pipe check' does, and a RUN as 'argus pipe show' does.",
        OPTS(SHOW_OPTS),
        .opts_size = sizeof(struct pipe_show_opts),
        .run = pipe_graph,
    },
    {
        .name = "pipe cancel",
        .args = "RUN…",
        .least = 1,
        .most = ARGS_ANY,
        .summary = "cancel runs",
        .text = "Their jobs are stopped, and no other step begins.",
        .ask = {.method = "POST",
                .path = "/v1/pipeline-runs/{}:cancel",
                .done = "say_done_cancelled",
                .subject = "run {id}"},
    },
    {
        .name = "pipe retry",
        .args = "RUN",
        .least = 1,
        .most = 1,
        .summary = "run again what did not succeed",
        .text =
            "Runs again, within the same run, the steps that failed and all steps that need them; "
            "with --from that step and all that need it, with --set also those that read that "
            "parameter. A step that succeeded and needs none of these is not run again. Beside "
            "another run of the pipeline the run waits or is refused, by the pipeline's "
            "'concurrency', as a new one would.",
        .example = "argus pipe retry sft-to-model-7 --from eval\tfrom the evaluation on\n"
                   "argus pipe retry sft-to-model-7 --from train --set lr=2e-5\twith another rate",
        OPTS(RETRY_OPTS),
        .opts_size = sizeof(struct pipe_retry_opts),
        .run = pipe_retry,
    },
    {
        .name = "pipe rollback",
        .args = "RUN",
        .least = 1,
        .most = 1,
        .summary = "take back what a run deployed",
        .text = "Each service whose traffic a version has that this run deployed goes back to the "
                "version that had it before, as 'argus service rollback' would do it. Jobs, models "
                "and data sets of the run stay as they are.",
        .ask = {.method = "POST",
                .path = "/v1/pipeline-runs/{}:rollback",
                .done = "say_done_goes_back",
                .subject = "run {id}"},
    },
    {
        .name = "pipe schedule",
        .args = "NAME",
        .least = 1,
        .most = 1,
        .summary = "run a pipeline by itself",
        .text =
            "The schedule has the five fields of cron, in UTC or in a time zone. A time that the "
            "clock skips or repeats comes once; of times missed while argusd was away one run is "
            "made up for. Runs follow the pipeline's 'concurrency'.",
        .example =
            "argus pipe schedule nightly --cron '0 2 * * *' --zone Asia/Shanghai\teach night\n"
            "argus pipe schedule nightly --off\tnot any more",
        OPTS(SCHEDULE_OPTS),
        .opts_size = sizeof(struct pipe_schedule_opts),
        .run = pipe_schedule,
    },
    {
        .name = "pipe rm",
        .args = "NAME…",
        .least = 1,
        .most = ARGS_ANY,
        .summary = "remove pipelines",
        .text = "Runs of a removed pipeline stay.",
        OPTS(RM_OPTS),
        .ask = {.method = "DELETE",
                .path = "/v1/pipelines/{}",
                .done = "say_done_removed",
                .subject = "pipeline {name}"},
    },
};

NOUN(pipe, PIPE_COMMANDS);
