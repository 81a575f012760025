/* SPDX-License-Identifier: Apache-2.0 */
/* recovery.c - what failures cost, by class and by node, and what people's jobs did with the GPUs.
 *
 * `report people` puts two answers of the server side by side: what was held in that time, by the
 * ledger, and what the jobs that held slots in that time ran again and waited for, in their whole
 * life. */
#include "argus/noun/noun.h"

#include <stdlib.h>
#include <string.h>

#include "argus/cli/listing.h"
#include "argus/show/csv.h"
#include "argus/show/member.h"
#include "base/message.h"

struct recovery_opts {
    int output;
    bool csv;
    const char *from, *to, *project, *user;
    int64_t limit;
};

#define ROW(type_, member) .type = (type_), .offset = offsetof(struct recovery_opts, member)
#define RECOVERY_RANGE(what)                                                                       \
    {.name = "from",                                                                               \
     ROW(OPT_TEXT, from),                                                                          \
     .arg = "TIME",                                                                                \
     .doc = what " from this time on, or this long ago (7d)"},                                     \
        {.name = "to", ROW(OPT_TEXT, to), .arg = "TIME", .doc = "end of the report (now)"},        \
    {                                                                                              \
        .name = "project", ROW(OPT_TEXT, project), .arg = "NAME",                                  \
        .doc = "only what this project did"                                                        \
    }

static const struct opt RECOVERY_OPTS[] = {
    RECOVERY_RANGE("jobs that held slots"),
    {.name = "user", ROW(OPT_TEXT, user), .arg = "NAME", .doc = "jobs of this user"},
    {.name = "limit",
     ROW(OPT_COUNT, limit),
     .arg = "N",
     .doc = "show at most N classes and N nodes (20)"},
    {.name = "csv", ROW(OPT_FLAG, csv), .doc = "GPU-hours of each class and node, as CSV"},
    OPT_OUTPUT(struct recovery_opts),
};

static const struct opt PEOPLE_OPTS[] = {
    RECOVERY_RANGE("held"),
    {.name = "csv", ROW(OPT_FLAG, csv), .doc = "GPU-hours of each user, as CSV"},
    OPT_OUTPUT(struct recovery_opts),
};

/* limit NULL: of the ledger, by user. */
static int recovery_ask(struct cli *cli,
                        const char *path,
                        const struct recovery_opts *o,
                        const char *limit,
                        json_t **ret,
                        struct err *err)
{
    _cleanup_(buf_release) struct buf url = BUF_INIT(8192);
    (void)buf_adds(&url, path); /* too long is refused below */
    if (!limit)
        url_query(&url, "by", "user");
    url_query(&url, "from", o->from ? o->from : "7d");
    url_query(&url, "to", o->to);
    url_query(&url, "project", o->project);
    url_query(&url, "user", o->user);
    if (limit)
        url_query(&url, "limit", limit);
    if (url.failed)
        return message_refuse(err, ERR_USAGE, "cli_filters_long", MESSAGE_NO_ARGS);
    return client_get(cli->client, buf_str(&url), ret, err);
}

/* ---- report recovery ---- */

static const char *const COST_KEYS[] = {"cost_hours",  "detect_hours", "diagnose_hours",
                                        "queue_hours", "start_hours",  "redo_hours"};
static const char *const COUNT_KEYS[] = {"jobs", "failures", "interruptions", "repaired"};

static void recovery_csv_list(FILE *out, const json_t *list, const char *what)
{
    const json_t *line;
    size_t i;
    json_array_foreach (list, i, line) {
        csv_text(out, what);
        (void)fputc(',', out);
        csv_text(out, member_str(line, "name"));
        for (size_t k = 0; k < array_len(COUNT_KEYS); k++)
            (void)fprintf(out, ",%lld", (long long)json_get_int(line, COUNT_KEYS[k], 0));
        (void)fputc(',', out);
        if (json_is_number(json_object_get(line, "mttr_s")))
            (void)fprintf(out, "%.3f", json_get_real(line, "mttr_s", 0));
        for (size_t k = 0; k < array_len(COST_KEYS); k++)
            (void)fprintf(out, ",%.6f", json_get_real(line, COST_KEYS[k], 0));
        (void)fputc('\n', out);
    }
}

static void recovery_csv(FILE *out, const json_t *answer)
{
    (void)fputs("what,name", out);
    for (size_t k = 0; k < array_len(COUNT_KEYS); k++)
        (void)fprintf(out, ",%s", COUNT_KEYS[k]);
    (void)fputs(",mttr_s", out);
    for (size_t k = 0; k < array_len(COST_KEYS); k++)
        (void)fprintf(out, ",%s", COST_KEYS[k]);
    (void)fputc('\n', out);
    recovery_csv_list(out, json_get_array(answer, "classes"), "class");
    recovery_csv_list(out, json_get_array(answer, "nodes"), "node");
}

#define COST_CELL(name_, key_)                                                                     \
    static void cost_##name_(struct table *t, const json_t *line, const struct when *w)            \
    {                                                                                              \
        (void)w;                                                                                   \
        table_addf(t, STYLE_PLAIN, "%.2f", json_get_real(line, key_, 0));                          \
    }
COST_CELL(all, "cost_hours")
COST_CELL(detect, "detect_hours")
COST_CELL(diagnose, "diagnose_hours")
COST_CELL(queue, "queue_hours")
COST_CELL(start, "start_hours")
COST_CELL(redo, "redo_hours")

/* "-" where there is none. */
static const char *recovery_span(const json_t *line, char text[static CLOCK_TEXT_MAX])
{
    double s = json_get_real(line, "mttr_s", -1);
    if (!(s >= 0 && s < 1e9))
        return "-";
    return span_to_string((usec_t)(s + 0.5) * USEC_SEC, text);
}

static void cost_mttr(struct table *t, const json_t *line, const struct when *w)
{
    char text[CLOCK_TEXT_MAX];
    (void)w;
    table_add(t, STYLE_PLAIN, recovery_span(line, text));
}

#define COST_COLUMN(title_, name_, rank_)                                                          \
    {                                                                                              \
        .title = (title_), .flags = COLUMN_RIGHT, .rank = (rank_), .draw = cost_##name_            \
    }
#define COST_NAME(title_)                                                                          \
    {                                                                                              \
        .title = (title_), .flags = COLUMN_FLEX, .least = 12, .key = "name", .style = STYLE_BOLD   \
    }
#define COST_COUNT(title_, key_, rank_)                                                            \
    {                                                                                              \
        .title = (title_), .flags = COLUMN_RIGHT, .rank = (rank_), .key = (key_),                  \
        .as = CELL_NUMBER                                                                          \
    }
#define COST_REST                                                                                  \
    COST_COLUMN("say_cost", all, 0), COST_COUNT("say_failures", "failures", 0),                    \
        COST_COUNT("say_jobs", "jobs", 6), COST_COLUMN("say_mttr", mttr, 0),                       \
        COST_COLUMN("say_detect", detect, 3), COST_COLUMN("say_diagnose", diagnose, 5),            \
        COST_COLUMN("say_requeue", queue, 2), COST_COLUMN("say_start", start, 4),                  \
        COST_COLUMN("say_redone", redo, 1)
static const struct column CLASS_COLUMNS[] = {COST_NAME("say_failure_class"), COST_REST};
static const struct column NODE_COLUMNS[] = {COST_NAME("say_node"), COST_REST};

static void recovery_print_total(struct cli *cli, const json_t *answer)
{
    const json_t *total = json_get_object(answer, "total");
    char ettr[32] = "-", mttr[CLOCK_TEXT_MAX], failures[32], line[256];
    if (json_is_number(json_object_get(answer, "ettr")))
        (void)snprintf(ettr, sizeof(ettr), "%.1f%%", 100 * json_get_real(answer, "ettr", 0));
    (void)snprintf(failures, sizeof(failures), "%lld",
                   (long long)json_get_int(total, "failures", 0));
    const char *const texts[] = {ettr, recovery_span(total, mttr), failures};
    (void)fprintf(cli->out, "%s\n",
                  msg_fill(cli->term.lang, "say_ettr_of", texts, line, sizeof(line)));
}

static void recovery_print(struct cli *cli, const json_t *answer, int output)
{
    const struct listing classes = {.key = "classes",
                                    .columns = CLASS_COLUMNS,
                                    .n_columns = array_len(CLASS_COLUMNS),
                                    .none = "say_no_failures"};
    const struct listing nodes = {
        .key = "nodes", .columns = NODE_COLUMNS, .n_columns = array_len(NODE_COLUMNS)};
    recovery_print_total(cli, answer);
    listing_print(cli, &classes, answer, output, false);
    if (json_array_size(json_get_array(answer, "nodes")))
        listing_print(cli, &nodes, answer, output, false);
}

static int report_recovery_run(struct cli *cli,
                               void *opts,
                               const struct strv *args,
                               struct err *err)
{
    const struct recovery_opts *o = opts;
    char limit[32];
    _cleanup_(json_unrefp) json_t *answer = NULL;
    (void)args;
    (void)snprintf(limit, sizeof(limit), "%lld", (long long)(o->limit ? o->limit : 20));
    int r = cli_open(cli, err);
    if (r == 0)
        r = recovery_ask(cli, "/v1/usage/recovery", o, limit, &answer, err);
    if (r < 0)
        return r;
    if (o->output >= OUTPUT_JSON)
        cli_emit(cli, answer, o->output);
    else if (o->csv)
        recovery_csv(cli->out, answer);
    else
        recovery_print(cli, answer, o->output);
    return 0;
}

/* ---- report people ---- */

enum people_sum { HELD, COMPUTED, IDLE, UNKNOWN, REDONE, WAITED, PEOPLE_SUMS };
static const char *const PEOPLE_WORDS[PEOPLE_SUMS] = {"held",    "computed", "idle",
                                                      "unknown", "redone",   "waited"};

/* In GPU-hours. */
struct person {
    const char *name; /* borrowed from an answer */
    double sum[PEOPLE_SUMS];
};
struct persons {
    struct person *v;
    size_t n;
};

static void persons_release(struct persons *all)
{
    free(all->v);
}

static struct person *person_of(struct persons *all, const char *name)
{
    for (size_t i = 0; i < all->n; i++)
        if (str_eq(all->v[i].name, name))
            return &all->v[i];
    all->v = xrealloc(all->v, all->n + 1, sizeof(*all->v));
    all->v[all->n] = (struct person){.name = name};
    return &all->v[all->n++];
}

static double people_hours(const json_t *series, const char *key)
{
    double sum = 0;
    size_t i;
    const json_t *v;
    json_array_foreach (json_get_array(series, key), i, v)
        sum += json_number_value(v);
    return sum / 3600;
}

static void people_take_usage(struct persons *all, const json_t *usage)
{
    const json_t *series;
    size_t i;
    json_array_foreach (json_get_array(usage, "series"), i, series) {
        struct person *p = person_of(all, member_str(series, "name"));
        p->sum[IDLE] = people_hours(series, "held_idle");
        p->sum[HELD] = people_hours(series, "used") + p->sum[IDLE];
        p->sum[COMPUTED] = people_hours(series, "busy");
        p->sum[UNKNOWN] = people_hours(series, "unknown");
    }
}

static void people_take_recovery(struct persons *all, const json_t *recovery)
{
    const json_t *line;
    size_t i;
    json_array_foreach (json_get_array(recovery, "users"), i, line) {
        struct person *p = person_of(all, member_str(line, "name"));
        p->sum[REDONE] = json_get_real(line, "redo_hours", 0);
        p->sum[WAITED] =
            json_get_real(line, "queue_hours", 0) + json_get_real(line, "first_wait_hours", 0);
    }
}

static int people_who_held_most_first(const void *a, const void *b)
{
    const struct person *p = a, *q = b;
    if (p->sum[HELD] < q->sum[HELD] || p->sum[HELD] > q->sum[HELD])
        return p->sum[HELD] < q->sum[HELD] ? 1 : -1;
    return strcmp(p->name, q->name);
}

static void people_csv(FILE *out, const struct persons *all)
{
    (void)fputs("user", out);
    for (int k = 0; k < PEOPLE_SUMS; k++)
        (void)fprintf(out, ",%s_gpu_h", PEOPLE_WORDS[k]);
    (void)fputc('\n', out);
    for (size_t i = 0; i < all->n; i++) {
        csv_text(out, all->v[i].name);
        for (int k = 0; k < PEOPLE_SUMS; k++)
            (void)fprintf(out, ",%.6f", all->v[i].sum[k]);
        (void)fputc('\n', out);
    }
}

static const struct column PEOPLE_COLUMNS[] = {
    {.title = "say_user", .flags = COLUMN_FLEX, .least = 8, .style = STYLE_BOLD},
    {.title = "say_gpu_hours", .flags = COLUMN_RIGHT},
    {.title = "say_computed", .flags = COLUMN_RIGHT},
    {.title = "say_held_idle", .flags = COLUMN_RIGHT},
    {.title = "say_unmeasured", .flags = COLUMN_RIGHT, .rank = 1},
    {.title = "say_redone", .flags = COLUMN_RIGHT},
    {.title = "say_waited", .flags = COLUMN_RIGHT},
};

static void people_print(struct cli *cli, const struct persons *all, int output)
{
    _cleanup_(table_freep) struct table *t = table_new(PEOPLE_COLUMNS, array_len(PEOPLE_COLUMNS));
    for (size_t i = 0; i < all->n; i++) {
        table_add(t, STYLE_BOLD, *all->v[i].name ? all->v[i].name : "(none)");
        for (int k = 0; k < PEOPLE_SUMS; k++)
            table_addf(t, STYLE_PLAIN, "%.2f", all->v[i].sum[k]);
    }
    (void)table_print(t, &cli->term, output == OUTPUT_WIDE, cli->out); /* one may be dropped */
    if (!all->n)
        cli_say(cli, "say_no_usage", "", "", "");
}

static int report_people_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct recovery_opts *o = opts;
    _cleanup_(json_unrefp) json_t *usage = NULL, *recovery = NULL, *both = NULL;
    _cleanup_(persons_release) struct persons all = {0};
    (void)args;
    int r = cli_open(cli, err);
    if (r == 0)
        r = recovery_ask(cli, "/v1/usage", o, NULL, &usage, err);
    if (r == 0)
        r = recovery_ask(cli, "/v1/usage/recovery", o, "1000", &recovery, err);
    if (r < 0)
        return r;
    if (o->output >= OUTPUT_JSON) {
        both = json_pack("{s:O, s:O}", "usage", usage, "recovery", recovery);
        cli_emit(cli, both, o->output);
        return 0;
    }
    people_take_usage(&all, usage);
    people_take_recovery(&all, recovery);
    xsort(all.v, all.n, sizeof(*all.v), people_who_held_most_first);
    if (o->csv)
        people_csv(cli->out, &all);
    else
        people_print(cli, &all, o->output);
    return 0;
}

static const struct command RECOVERY_COMMANDS[] = {
    {
        .name = "report recovery",
        .args = "",
        .summary = "show what failures cost, by class and by node",
        .text = "The first line: ETTR is the time of steps that counted, divided by the time that "
                "jobs held their slots or waited to be started again; MTTR the mean time from a "
                "failure to the first new step. Then, in GPU-hours, what failures cost: until they "
                "were noticed (DETECT) and judged (DIAG), in the queue for the next attempt "
                "(REQUEUE), until its first step (START), and steps run again (REDONE). By class "
                "of failure, then by the node that may have been at fault: the costliest first. "
                "Of the newest 1000 jobs that held slots in that time, each with its whole life.",
        .example = "argus report recovery --from 30d\n"
                   "argus report recovery --from 30d --csv > failures.csv",
        .opts = RECOVERY_OPTS,
        .n_opts = array_len(RECOVERY_OPTS),
        .opts_size = sizeof(struct recovery_opts),
        .run = report_recovery_run,
    },
    {
        .name = "report people",
        .args = "",
        .summary = "show what each user's jobs did with the GPUs",
        .text = "In GPU-hours: GPU-H is what they held in that time, COMPUTED what the GPUs were "
                "measured to work of it, IDLE held and measured idle, UNKNOWN measured by nobody. "
                "REDONE and WAITED are of the newest 1000 jobs that held slots in that time, each "
                "with its whole life: steps that were run again, and GPUs wanted times the time in "
                "the queue. You see your own projects, admins see all.",
        .example = "argus report people --from 30d\n"
                   "argus report people --from 30d --project rl --csv > people.csv",
        .opts = PEOPLE_OPTS,
        .n_opts = array_len(PEOPLE_OPTS),
        .opts_size = sizeof(struct recovery_opts),
        .run = report_people_run,
    },
};

NOUN(recovery, RECOVERY_COMMANDS);
