/* SPDX-License-Identifier: Apache-2.0 */
/* top.c - how the trainings go that run now, and what a job takes of its nodes. */
#include "argus/noun/noun.h"

#include "argus/job/jobpage.h"
#include "argus/job/jobtable.h"
#include "argus/job/jobview.h"
#include "argus/show/member.h"
#include "argus/show/table.h"
#include "base/message.h"
#include "base/str.h"
#include "core/metric/metric.h"

enum { TOP_TOP_DEFAULT = 20 };

struct top_opts {
    int output;
    bool utc, watch, all, csv;
    int64_t limit;
    const char *keys;
};

static const struct opt TOP_OPTS[] = {
    {.letter = 'a',
     .name = "all",
     .type = OPT_FLAG,
     .offset = offsetof(struct top_opts, all),
     .doc = "all jobs that you may see, not only yours"},
    {.name = "limit",
     .type = OPT_NUMBER,
     .offset = offsetof(struct top_opts, limit),
     .arg = "N",
     .doc = "show at most N jobs (20)"},
    {.name = "csv",
     .type = OPT_FLAG,
     .offset = offsetof(struct top_opts, csv),
     .doc =
         "with ID: print the curves, a row for each step; beyond 512 steps a row covers several"},
    {.name = "keys",
     .type = OPT_TEXT,
     .offset = offsetof(struct top_opts, keys),
     .arg = "NAMES",
     .doc = "with --csv: only these metrics, comma-separated; * and ? stand for any"},
    OPT_OUTPUT(struct top_opts),
    OPT_UTC(struct top_opts),
    OPT_WATCH(struct top_opts),
};

/* The jobs that run, each whole: a list's rows have no curves. */
static int top_get_jobs(struct cli *cli,
                        const struct top_opts *o,
                        json_t **ret,
                        bool *more,
                        struct err *err)
{
    _cleanup_(json_unrefp) json_t *rows = NULL, *jobs = json_array();
    const char *query = o->all ? "?state=RUNNING&all=1" : "?state=RUNNING";
    size_t i;
    json_t *row;
    int r = jobview_list(cli, query, o->limit ? o->limit : TOP_TOP_DEFAULT, &rows, more, err);
    if (r < 0)
        return r;
    json_array_foreach (rows, i, row) {
        json_t *job = NULL;
        r = cli_get_job(cli, member_str(row, "id"), &job, err);
        if (r < 0)
            return r;
        (void)json_array_append_new(jobs, job); /* fails only for lack of memory */
    }
    *ret = jobs;
    jobs = NULL;
    return 0;
}

static int top_print_csv(struct cli *cli, const struct top_opts *o, const char *id, struct err *err)
{
    _cleanup_(json_unrefp) json_t *job = NULL;
    _cleanup_(buf_release) struct buf path = BUF_INIT(1 << 13);
    _cleanup_(response_release) struct response answer = {0};
    int r = cli_get_job(cli, id, &job, err);
    if (r < 0)
        return r;
    (void)buf_addf(&path, "/v1/jobs/%s/metrics", member_str(job, "id"));
    url_query(&path, "format", "csv");
    url_query(&path, "keys", o->keys);
    if (path.failed)
        return message_refuse(err, ERR_USAGE, "cli_keys_long", MESSAGE_NO_ARGS);
    const struct request request = {.path = buf_str(&path), .accept = "text/csv", .tries = 3};
    r = client_call(cli->client, &request, &answer, err);
    if (r < 0)
        return r;
    r = response_error(&answer, err);
    if (r < 0)
        return r;
    (void)fwrite(buf_str(&answer.body), 1, answer.body.len, cli->out);
    if (str_starts(buf_str(&answer.body), "step\r\n"))
        cli_say(cli, o->keys ? "say_no_such_metrics" : "say_no_metrics",
                o->keys ? member_str(job, "id") : METRIC_LINE_EXAMPLE, "", "");
    return 0;
}

/* Asked of one job alone: argusd reads files of each of its nodes for it. Where that fails the page
 * stands without the line. */
static void top_print_load(struct cli *cli, const char *id)
{
    _cleanup_(freep) char *path = cli_job_path(id, "/load");
    _cleanup_(json_unrefp) json_t *load = NULL;
    if (client_get(cli->client, path, &load, NULL) == 0)
        jobpage_print_load(cli, load);
}

static int top_page_of_one(struct cli *cli,
                           const struct top_opts *o,
                           const char *id,
                           struct err *err)
{
    _cleanup_(json_unrefp) json_t *job = NULL;
    int r = cli_get_job(cli, id, &job, err);
    if (r < 0)
        return r;
    struct when w = cli_when(cli, o->utc);
    if (o->output >= OUTPUT_JSON) {
        cli_emit(cli, job, o->output);
        return 0;
    }
    jobpage_print_metrics(cli, job, &w);
    if (str_eq(member_str(job, "state"), "RUNNING"))
        top_print_load(cli, member_str(job, "id"));
    return 0;
}

static int top_page(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct top_opts *o = opts;
    _cleanup_(json_unrefp) json_t *jobs = NULL;
    bool more = false;
    if (args->n)
        return top_page_of_one(cli, o, args->v[0], err);
    int r = top_get_jobs(cli, o, &jobs, &more, err);
    if (r < 0)
        return r;
    if (o->output >= OUTPUT_JSON) {
        json_t *all = json_pack("{s:O}", "jobs", jobs);
        cli_emit(cli, all, o->output);
        json_decref(all);
        return 0;
    }
    struct when w = cli_when(cli, o->utc);
    jobtable_print(cli, jobs, JOBTABLE_TOP, &w, o->output == OUTPUT_WIDE);
    if (more)
        cli_say(cli, "say_more", "", "", "");
    return 0;
}

static int top_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct top_opts *o = opts;
    bool again = o->watch || (cli->term.is_tty && o->output < OUTPUT_JSON);
    if (o->csv && !args->n)
        return message_refuse(err, ERR_USAGE, "cli_csv_one", MESSAGE_NO_ARGS);
    if (o->csv && o->output)
        return message_refuse(err, ERR_USAGE, "cli_csv_without", MESSAGE_NO_ARGS);
    if (o->keys && !o->csv)
        return message_refuse(err, ERR_USAGE, "cli_keys_csv", MESSAGE_NO_ARGS);
    int r = cli_open(cli, err);
    if (r < 0)
        return r;
    return o->csv ? top_print_csv(cli, o, args->v[0], err)
                  : cli_page(cli, again, top_page, opts, args, err);
}

/* ---- what a job takes of its nodes ---- */

static const struct opt LOAD_OPTS[] = {LISTING_OPTS};

/* Where others run on the node, its network and disk are not this job's alone. */
static void load_draw_others(struct table *t, const json_t *node, const struct when *w)
{
    bool is_alone = json_is_true(json_object_get(node, "alone"));
    table_add(t, STYLE_PLAIN, msg(w->lang, is_alone ? "say_load_alone" : "say_load_shared"));
}

#define LOAD_SIZE(title_, key_, ...)                                                               \
    {                                                                                              \
        .title = (title_), .flags = COLUMN_RIGHT, .key = (key_), .as = CELL_SIZE, __VA_ARGS__      \
    }
static const struct column LOADS[] = {
    {.title = "say_node", .flags = COLUMN_FLEX, .least = 8, .key = "node"},
    {.title = "say_job_cores", .flags = COLUMN_RIGHT, .key = "job_cpu_cores", .as = CELL_VALUE},
    LOAD_SIZE("say_job_mem", "job_mem_bytes", .rank = 0),
    {.title = "say_node_cpu",
     .flags = COLUMN_RIGHT,
     .rank = 1,
     .key = "cpu_util_ratio",
     .as = CELL_RATIO},
    LOAD_SIZE("say_node_mem", "mem_used_bytes", .rank = 2),
    LOAD_SIZE("say_net_in", "net_received_bytes_per_second", .rank = 4),
    LOAD_SIZE("say_net_out", "net_sent_bytes_per_second", .rank = 5),
    LOAD_SIZE("say_rdma_in", "net_rdma_received_bytes_per_second", .rank = 6),
    LOAD_SIZE("say_rdma_out", "net_rdma_sent_bytes_per_second", .rank = 7),
    LOAD_SIZE("say_disk_read", "disk_read_bytes_per_second", .rank = 8),
    LOAD_SIZE("say_disk_write", "disk_write_bytes_per_second", .rank = 9),
    {.title = "say_others", .rank = 3, .draw = load_draw_others},
};

static const struct command TOP_COMMANDS[] = {
    {
        .name = "top",
        .args = "[ID]",
        .most = 1,
        .summary = "show how the trainings go that run now",
        .text = "Shows step, progress, expected end, time of a step, tokens per second, reward "
                "(or loss) and its curve of each job that runs; with ID all newest metrics of "
                "that job, and the CPU cores and memory that its processes take of its nodes; with "
                "--csv the curves for a spreadsheet. On a terminal it is printed again every 2 s "
                "until Ctrl-C. A job with a metric that is not a number, or whose reward fell "
                "back, is red.",
        .example = "argus top\tmy trainings\nargus top -a -o json\tfor programs\n"
                   "argus top --csv --keys 'critic/score/*' grpo-7 > score.csv\ta curve as a table",
        .opts = TOP_OPTS,
        .n_opts = array_len(TOP_OPTS),
        .opts_size = sizeof(struct top_opts),
        .run = top_run,
    },
    {
        .name = "load",
        .args = "ID",
        .least = 1,
        .most = 1,
        .summary = "show what a running job takes of its nodes",
        .text = "JOB CORES and JOB MEM are what the job's own processes use; what is behind them "
                "is what the node does in all: network, InfiniBand and disk in bytes a second. "
                "The last column says whether other jobs run there. '-' is not measured: the "
                "node has no InfiniBand or is not registered, or nothing of the job has told yet.",
        .example = "argus load grpo-7\tis it the data loader, or the network?",
        OPTS(LOAD_OPTS),
        .ask = {.path = "/v1/jobs/{}/load",
                .table = {.key = "nodes", COLUMNS(LOADS), .none = "say_no_load"}},
    },
};

NOUN(top, TOP_COMMANDS);
