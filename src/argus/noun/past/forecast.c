/* SPDX-License-Identifier: Apache-2.0 */
/* forecast.c - what each pool will need in the next weeks, and what more nodes would change.
 *
 * One row per pool; of a pool that is asked for also a row per week, and with --nodes the last
 * weeks with and without the nodes. --csv has every day. */
#include "argus/noun/noun.h"

#include <stdlib.h>
#include <string.h>

#include "argus/show/csv.h"
#include "argus/show/member.h"
#include "base/message.h"

enum { DAYS_OF_WEEK = 7, DAY_TEXT = 10 };

struct forecast_opts {
    int output;
    bool csv;
    const char *pool, *nodes;
    int64_t weeks;
};

#define FORECAST_ROW(type_, member)                                                                \
    .type = (type_), .offset = offsetof(struct forecast_opts, member)
static const struct opt FORECAST_OPTS[] = {
    {.name = "pool",
     FORECAST_ROW(OPT_TEXT, pool),
     .arg = "NAME",
     .doc = "show this pool alone, with each of its weeks"},
    {.name = "weeks",
     FORECAST_ROW(OPT_COUNT, weeks),
     .arg = "N",
     .doc = "so many weeks ahead, up to 13 (4)"},
    {.name = "nodes",
     FORECAST_ROW(OPT_TEXT, nodes),
     .arg = "N",
     .doc = "show how it would be with N nodes more, or with -N fewer"},
    {.name = "csv", FORECAST_ROW(OPT_FLAG, csv), .doc = "print every day of each pool, as CSV"},
    OPT_OUTPUT(struct forecast_opts),
};

/* ---- cells ---- */

static void add_gpus(struct table *t, double gpus)
{
    table_addf(t, STYLE_PLAIN, "%.1f", gpus);
}

static void add_day(struct table *t, const char *time)
{
    if (time)
        table_addf(t, STYLE_PLAIN, "%.*s", DAY_TEXT, time);
    else
        table_add(t, STYLE_PLAIN, NULL);
}

static void forecast_pool(struct table *t, const json_t *pool, const struct when *w)
{
    (void)w;
    table_add(t, STYLE_BOLD, json_get_str(pool, "pool", "(all)"));
}

#define FORECAST_GPUS(name_, key_)                                                                 \
    static void forecast_##name_(struct table *t, const json_t *pool, const struct when *w)        \
    {                                                                                              \
        (void)w;                                                                                   \
        add_gpus(t, json_get_real(pool, key_, 0));                                                 \
    }
FORECAST_GPUS(capacity, "capacity_gpus")
FORECAST_GPUS(last_week, "last_week_gpus")

/* What was foretold, "-" where there is nothing. */
#define FORECAST_TOLD(name_, key_)                                                                 \
    static void forecast_##name_(struct table *t, const json_t *pool, const struct when *w)        \
    {                                                                                              \
        (void)w;                                                                                   \
        if (json_is_true(json_object_get(pool, "enough")))                                         \
            add_gpus(t, json_get_real(pool, key_, 0));                                             \
        else                                                                                       \
            table_add(t, STYLE_PLAIN, NULL);                                                       \
    }
FORECAST_TOLD(error, "error_gpus")
FORECAST_TOLD(naive, "naive_error_gpus")

/* The mean of a week's days; false: it is not told. */
static bool week_mean(const json_t *pool, size_t week, const char *key, double *ret)
{
    const json_t *points = json_get_array(pool, "points");
    size_t first = week * DAYS_OF_WEEK;
    *ret = 0;
    if (first + DAYS_OF_WEEK > json_array_size(points))
        return false;
    for (size_t i = first; i < first + DAYS_OF_WEEK; i++)
        *ret += json_get_real(json_array_get(points, i), key, 0) / DAYS_OF_WEEK;
    return true;
}

static void add_week(struct table *t, const json_t *pool, size_t week)
{
    double gpus, high;
    if (week_mean(pool, week, "gpus", &gpus) && week_mean(pool, week, "high", &high))
        table_addf(t, STYLE_PLAIN, "%.1f±%.1f", gpus, high - gpus);
    else
        table_add(t, STYLE_PLAIN, NULL);
}

static void forecast_next(struct table *t, const json_t *pool, const struct when *w)
{
    (void)w;
    add_week(t, pool, 0);
}

static void forecast_last(struct table *t, const json_t *pool, const struct when *w)
{
    size_t days = json_array_size(json_get_array(pool, "points"));
    (void)w;
    add_week(t, pool, days < DAYS_OF_WEEK ? 0 : days / DAYS_OF_WEEK - 1);
}

static void forecast_full(struct table *t, const json_t *pool, const struct when *w)
{
    (void)w;
    add_day(t, json_get_str(pool, "full_at", NULL));
}

static void forecast_early(struct table *t, const json_t *pool, const struct when *w)
{
    (void)w;
    add_day(t, json_get_str(pool, "full_early_at", NULL));
}

#define FORECAST_COLUMN(title_, name_, rank_)                                                      \
    {                                                                                              \
        .title = (title_), .flags = COLUMN_RIGHT, .rank = (rank_), .draw = forecast_##name_        \
    }
static const struct column FORECAST_COLUMNS[] = {
    {.title = "say_pool", .flags = COLUMN_FLEX, .least = 6, .draw = forecast_pool},
    FORECAST_COLUMN("say_capacity", capacity, 0),
    FORECAST_COLUMN("say_last_week", last_week, 0),
    FORECAST_COLUMN("say_next_week", next, 0),
    FORECAST_COLUMN("say_far_week", last, 0),
    FORECAST_COLUMN("say_full_at", full, 0),
    FORECAST_COLUMN("say_full_early", early, 1),
    FORECAST_COLUMN("say_error_gpus", error, 2),
    FORECAST_COLUMN("say_naive_gpus", naive, 3),
};

/* ---- a pool's weeks ---- */

static const struct column WEEK_COLUMNS[] = {
    {.title = "say_week_from"},
    {.title = "say_demand", .flags = COLUMN_RIGHT},
    {.title = "say_low", .flags = COLUMN_RIGHT},
    {.title = "say_high", .flags = COLUMN_RIGHT},
};

static void print_weeks(struct cli *cli, const json_t *pool, int output)
{
    static const char *const keys[] = {"gpus", "low", "high"};
    _cleanup_(table_freep) struct table *t = table_new(WEEK_COLUMNS, array_len(WEEK_COLUMNS));
    const json_t *points = json_get_array(pool, "points");
    double mean;
    for (size_t week = 0; week_mean(pool, week, keys[0], &mean); week++) {
        add_day(t, member_str(json_array_get(points, week * DAYS_OF_WEEK), "at"));
        for (size_t k = 0; k < array_len(keys); k++) {
            (void)week_mean(pool, week, keys[k], &mean); /* it is there */
            add_gpus(t, mean);
        }
    }
    if (!table_rows(t))
        return;
    (void)fputc('\n', cli->out);
    (void)table_print(t, &cli->term, output == OUTPUT_WIDE, cli->out);
}

/* ---- what if ---- */

static const struct column SIDE_COLUMNS[] = {
    {.title = "say_nodes", .flags = COLUMN_RIGHT},
    {.title = "say_util", .flags = COLUMN_RIGHT},
    {.title = "say_mean_wait", .flags = COLUMN_RIGHT},
    {.title = "say_p95", .flags = COLUMN_RIGHT},
    {.title = "say_never", .flags = COLUMN_RIGHT},
    {.title = "say_full_at", .flags = COLUMN_RIGHT},
    {.title = "say_full_early", .flags = COLUMN_RIGHT},
};

static void add_wait(struct table *t, const json_t *side, const char *key)
{
    char text[WHEN_TEXT_MAX];
    const json_t *v = json_object_get(side, key);
    if (!json_is_number(v)) {
        table_add(t, STYLE_PLAIN, NULL);
        return;
    }
    const struct when none = {0};
    usec_t span = (usec_t)(json_number_value(v) * 1e6);
    table_add(t, STYLE_PLAIN, when_lasted(&none, 1, 1 + span, text));
}

static void print_side(struct table *t, const json_t *side)
{
    const json_t *used = json_object_get(side, "utilisation");
    table_addf(t, STYLE_PLAIN, "%lld", (long long)json_get_int(side, "nodes", 0));
    if (json_is_number(used))
        table_addf(t, STYLE_PLAIN, "%.0f%%", 100 * json_number_value(used));
    else
        table_add(t, STYLE_PLAIN, NULL);
    add_wait(t, side, "wait_mean_s");
    add_wait(t, side, "wait_p95_s");
    table_addf(t, STYLE_PLAIN, "%lld", (long long)json_get_int(side, "never", 0));
    add_day(t, json_get_str(side, "full_at", NULL));
    add_day(t, json_get_str(side, "full_early_at", NULL));
}

static void print_whatif(struct cli *cli, const json_t *pool, int output)
{
    const json_t *what_if = json_get_object(pool, "what_if");
    char jobs[32], day[DAY_TEXT + 1];
    if (!what_if)
        return;
    _cleanup_(table_freep) struct table *t = table_new(SIDE_COLUMNS, array_len(SIDE_COLUMNS));
    print_side(t, json_get_object(what_if, "now"));
    print_side(t, json_get_object(what_if, "then"));
    (void)fputc('\n', cli->out);
    (void)table_print(t, &cli->term, output == OUTPUT_WIDE, cli->out);
    (void)snprintf(jobs, sizeof(jobs), "%lld", (long long)json_get_int(what_if, "jobs", 0));
    (void)snprintf(day, sizeof(day), "%.*s", DAY_TEXT, member_str(what_if, "from"));
    cli_say(cli, "say_played_again", jobs, day, "");
}

/* ---- the command ---- */

static void forecast_csv(FILE *out, const json_t *answer)
{
    const json_t *pool, *point;
    size_t i, k;
    (void)fputs("pool,day,gpus,low,high\n", out);
    json_array_foreach (json_get_array(answer, "pools"), i, pool)
        json_array_foreach (json_get_array(pool, "points"), k, point) {
            csv_text(out, member_str(pool, "pool"));
            (void)fprintf(out, ",%.*s,%.4f,%.4f,%.4f\n", DAY_TEXT, member_str(point, "at"),
                          json_get_real(point, "gpus", 0), json_get_real(point, "low", 0),
                          json_get_real(point, "high", 0));
        }
}

/* What the numbers cannot say: too short a history, and demand that nobody saw. */
static void say_limits(struct cli *cli, const json_t *pools)
{
    char a[32], b[32];
    const json_t *pool;
    size_t i;
    json_array_foreach (pools, i, pool) {
        int64_t full = json_get_int(pool, "saturated_days", 0);
        const char *name = json_get_str(pool, "pool", "(all)");
        if (!json_is_true(json_object_get(pool, "enough"))) {
            (void)snprintf(a, sizeof(a), "%lld", (long long)json_get_int(pool, "days", 0));
            (void)snprintf(b, sizeof(b), "%lld", (long long)json_get_int(pool, "days_needed", 0));
            cli_say(cli, "say_short_history", name, a, b);
        }
        if (full > 0) {
            (void)snprintf(a, sizeof(a), "%lld", (long long)full);
            cli_say(cli, "say_saturated", name, a, "");
        }
    }
}

static void forecast_print(struct cli *cli, const struct forecast_opts *o, const json_t *answer)
{
    const json_t *pools = json_get_array(answer, "pools"), *pool;
    const struct listing table = {
        .key = "pools", .columns = FORECAST_COLUMNS, .n_columns = array_len(FORECAST_COLUMNS)};
    size_t i;
    listing_print(cli, &table, answer, o->output, true);
    if (o->pool)
        print_weeks(cli, json_array_get(pools, 0), o->output);
    json_array_foreach (pools, i, pool)
        print_whatif(cli, pool, o->output);
    say_limits(cli, pools);
}

static int forecast_run_command(struct cli *cli,
                                void *opts,
                                const struct strv *args,
                                struct err *err)
{
    const struct forecast_opts *o = opts;
    char weeks[32] = "";
    _cleanup_(buf_release) struct buf path = BUF_INIT(8192);
    _cleanup_(json_unrefp) json_t *answer = NULL;
    (void)args;
    (void)buf_adds(&path, "/v1/forecast"); /* too long is refused below */
    if (o->weeks)
        (void)snprintf(weeks, sizeof(weeks), "%lld", (long long)o->weeks);
    url_query(&path, "pool", o->pool);
    url_query(&path, "weeks", *weeks ? weeks : NULL);
    url_query(&path, "nodes", o->nodes);
    if (path.failed)
        return message_refuse(err, ERR_USAGE, "cli_pool_long", MESSAGE_NO_ARGS);
    int r = cli_open(cli, err);
    if (r == 0)
        r = client_get(cli->client, buf_str(&path), &answer, err);
    if (r < 0)
        return r;
    if (o->output >= OUTPUT_JSON)
        cli_emit(cli, answer, o->output);
    else if (o->csv)
        forecast_csv(cli->out, answer);
    else
        forecast_print(cli, o, answer);
    return 0;
}

static const struct command FORECAST_COMMANDS[] = {
    {
        .name = "forecast",
        .args = "",
        .summary = "foretell how many GPUs each pool will need, and when it is full",
        .text =
            "Means of days in GPUs, from the ledger's days. Demand is what was leased, kept for a "
            "gang that waits, or held by others. ERROR is the mean error of such forecasts, had "
            "they been made on each day of the last eight weeks; NAIVE that of saying 'as last "
            "week'. Four in five days were within the interval (±). FULL is the first day with "
            "95 % of the capacity, EARLIEST that day by the upper end of the interval; '-': not "
            "within the weeks told.\n"
            "With --nodes the jobs of the last 28 days, of the pool or of all, are played again "
            "through the scheduler, with the nodes there are and with so many more.",
        .example = "argus forecast --weeks 8\twhat comes, pool by pool\n"
                   "argus forecast --pool h20 --nodes 2\twhat two more nodes would change",
        .opts = FORECAST_OPTS,
        .n_opts = array_len(FORECAST_OPTS),
        .opts_size = sizeof(struct forecast_opts),
        .run = forecast_run_command,
    },
};

NOUN(forecast, FORECAST_COMMANDS);
