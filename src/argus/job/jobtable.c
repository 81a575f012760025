/* SPDX-License-Identifier: Apache-2.0 */
/* jobtable.c - columns and cells of `argus ls`, `queue` and `top`; see jobtable.h. */
#include "argus/job/jobtable.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "argus/job/jobview.h"
#include "argus/show/curve.h"
#include "argus/show/member.h"
#include "argus/show/table.h"
#include "base/str.h"

enum { CURVE_WIDTH = 16 };

/* ids as we make them have at most 24 characters; those that people choose are longer, and most
 * often alike but for their ends. */
enum { ID_LEAST = 32 };

static const struct column LIST[] = {
    {.title = "say_id", .flags = COLUMN_NAME, .least = ID_LEAST},
    {.title = "say_name", .flags = COLUMN_FLEX, .least = 8, .rank = 6},
    {.title = "say_user", .flags = COLUMN_FLEX, .least = 6, .rank = 5},
    {.title = "say_workload", .rank = 4},
    {.title = "say_state", .flags = COLUMN_FLEX, .least = 9},
    {.title = "say_gang", .rank = 2},
    {.title = "say_queued", .rank = 3},
    {.title = "say_run", .rank = 1},
    {.title = "say_restarts", .flags = COLUMN_RIGHT, .rank = 9},
    {.title = "say_step", .flags = COLUMN_RIGHT, .rank = 7},
    {.title = "say_util", .flags = COLUMN_RIGHT, .rank = 8},
    {.title = "say_gpu_hours", .flags = COLUMN_RIGHT, .rank = 10},
    {.title = "say_project", .flags = COLUMN_WIDE},
    {.title = "say_pool", .flags = COLUMN_WIDE},
    {.title = "say_cluster", .flags = COLUMN_WIDE},
    {.title = "say_reason", .flags = COLUMN_ROOM},
};

static const struct column QUEUE[] = {
    {.title = "say_pos", .flags = COLUMN_RIGHT},
    {.title = "say_id", .flags = COLUMN_NAME, .least = ID_LEAST},
    {.title = "say_name", .flags = COLUMN_FLEX, .least = 8, .rank = 8},
    {.title = "say_user", .flags = COLUMN_FLEX, .least = 6, .rank = 4},
    {.title = "say_project", .flags = COLUMN_FLEX, .least = 6, .rank = 7},
    {.title = "say_pool", .flags = COLUMN_FLEX, .least = 4, .rank = 6},
    {.title = "say_prio", .flags = COLUMN_RIGHT, .rank = 5},
    {.title = "say_gang", .rank = 3},
    {.title = "say_wait", .rank = 1},
    {.title = "say_eta"},
    {.title = "say_reason", .flags = COLUMN_ROOM},
};

static const struct column TOP[] = {
    {.title = "say_id", .flags = COLUMN_NAME, .least = ID_LEAST},
    {.title = "say_name", .flags = COLUMN_FLEX, .least = 6, .rank = 5},
    {.title = "say_user", .flags = COLUMN_FLEX, .least = 5, .rank = 4},
    {.title = "say_step", .flags = COLUMN_RIGHT},
    {.title = "say_progress", .flags = COLUMN_RIGHT},
    {.title = "say_eta", .rank = 1},
    {.title = "say_step_time", .flags = COLUMN_RIGHT, .rank = 3},
    {.title = "say_tokens_s", .flags = COLUMN_RIGHT, .rank = 6},
    {.title = "say_util", .flags = COLUMN_RIGHT, .rank = 7},
    {.title = "say_reward", .flags = COLUMN_RIGHT},
    {.title = "say_curve", .rank = 2},
    {.title = "say_verdict", .rank = 4},
};

enum { COLUMNS_MAX = 20 };
static_assert(array_len(LIST) <= COLUMNS_MAX && array_len(QUEUE) <= COLUMNS_MAX &&
                  array_len(TOP) <= COLUMNS_MAX,
              "each table has room");

static void jobtable_add_number(struct table *t, const json_t *job, const char *key)
{
    int64_t n = json_get_int(job, key, -1);
    if (n < 0)
        table_add(t, STYLE_PLAIN, NULL);
    else
        table_addf(t, STYLE_PLAIN, "%" PRId64, n);
}

static void jobtable_add_real(struct table *t,
                              const json_t *o,
                              const char *key,
                              double factor,
                              const char *unit)
{
    const json_t *v = json_object_get(o, key);
    if (json_is_number(v))
        table_addf(t, STYLE_PLAIN, "%.3g%s", json_number_value(v) * factor, unit);
    else
        table_add(t, STYLE_PLAIN, NULL);
}

static void jobtable_add_hours(struct table *t, const json_t *hours)
{
    if (json_is_number(hours) && json_number_value(hours) > 0)
        table_addf(t, STYLE_PLAIN, "%.2f", json_number_value(hours));
    else
        table_add(t, STYLE_PLAIN, NULL);
}

/* Takes the text. */
static void add_owned(struct table *t, enum style style, char *text)
{
    table_add(t, style, text);
    free(text);
}

static void add_list_row(struct table *t, const json_t *job, const struct when *w)
{
    char text[WHEN_TEXT_MAX];
    const char *state = member_str(job, "state");
    bool is_over = jobview_is_terminal(state);
    table_add(t, STYLE_PLAIN, member_str(job, "id"));
    table_add(t, STYLE_PLAIN, member_str(job, "name"));
    table_add(t, STYLE_PLAIN, member_str(job, "user"));
    table_add(t, STYLE_PLAIN, member_str(job, "workload"));
    add_owned(t, jobview_style(state), jobview_state(job));
    add_owned(t, STYLE_PLAIN, jobview_gang(job));
    table_add(t, STYLE_PLAIN, when_point(w, when_get(job, "queued_at"), text));
    usec_t end = when_get(job, "ended_at"), start = when_get(job, "started_at");
    table_add(t, STYLE_PLAIN, when_lasted(w, is_over && !end ? 0 : start, end, text));
    jobtable_add_number(t, job, "restarts");
    jobtable_add_number(t, job, "step");
    jobtable_add_real(t, job, "gpu_util", 1, "%");
    jobtable_add_hours(t, json_object_get(job, "gpu_hours"));
    table_add(t, STYLE_PLAIN, member_str(job, "project"));
    table_add(t, STYLE_PLAIN, member_str(job, "pool"));
    table_add(t, STYLE_PLAIN, member_str(job, "cluster"));
    add_owned(t, STYLE_PLAIN, jobview_reason(job));
}

static void add_queue_row(struct table *t, const json_t *job, const struct when *w)
{
    char text[WHEN_TEXT_MAX], eta[2 * WHEN_TEXT_MAX];
    jobtable_add_number(t, job, "position"); /* one that is held has none */
    table_add(t, STYLE_PLAIN, member_str(job, "id"));
    table_add(t, STYLE_PLAIN, member_str(job, "name"));
    table_add(t, STYLE_PLAIN, member_str(job, "user"));
    table_add(t, STYLE_PLAIN, member_str(job, "project"));
    table_add(t, STYLE_PLAIN, member_str(job, "pool"));
    jobtable_add_number(t, job, "priority");
    add_owned(t, STYLE_PLAIN, jobview_gang(job));
    usec_t queued = when_get(job, "queued_at");
    table_add(t, STYLE_PLAIN,
              w->utc ? when_point(w, queued, text) : when_lasted(w, queued, 0, text));
    table_add(t, STYLE_PLAIN, jobview_eta(job, w, eta, sizeof(eta)));
    add_owned(t, STYLE_PLAIN, jobview_reason(job));
}

static void add_top_row(struct table *t, const json_t *job, const struct when *w)
{
    char at[WHEN_TEXT_MAX];
    const json_t *m = json_get_object(job, "metrics"), *curve = json_get_object(m, "reward");
    int64_t step = json_get_int(m, "step", -1), total = json_get_int(m, "total_steps", 0);
    const json_t *verdict = json_get_object(job, "verdict");
    bool bad = json_get_object(m, "not_finite") || json_get_object(m, "collapse") ||
               str_eq(json_get_str(verdict, "state", ""), "bad");
    bool is_loss = !curve; /* training without a reward */
    curve = curve ? curve : json_get_object(m, "loss");
    struct buf spark = BUF_INIT(1024);
    curve_spark(&spark, json_get_array(curve, "spark"), CURVE_WIDTH);
    table_add(t, bad ? STYLE_RED : STYLE_PLAIN, member_str(job, "id"));
    table_add(t, STYLE_PLAIN, member_str(job, "name"));
    table_add(t, STYLE_PLAIN, member_str(job, "user"));
    if (step < 0)
        table_add(t, STYLE_PLAIN, NULL);
    else if (total > 0)
        table_addf(t, STYLE_PLAIN, "%" PRId64 "/%" PRId64, step, total);
    else
        table_addf(t, STYLE_PLAIN, "%" PRId64, step);
    jobtable_add_real(t, m, "progress", 100, "%");
    table_add(t, STYLE_PLAIN, when_point(w, when_get(m, "eta"), at));
    jobtable_add_real(t, m, "step_seconds", 1, "s");
    jobtable_add_real(t, m, "tokens_per_s", 1, "");
    jobtable_add_real(t, job, "gpu_util", 1, "%");
    if (is_loss && json_is_number(json_object_get(curve, "value")))
        table_addf(t, STYLE_PLAIN, "%s %.3g", msg(w->lang, "say_l_loss"),
                   json_get_real(curve, "value", 0));
    else
        jobtable_add_real(t, curve, "value", 1, "");
    table_add(t, STYLE_PLAIN, buf_str(&spark));
    table_add(t, bad ? STYLE_RED : STYLE_PLAIN,
              json_get_str(verdict, "kind", json_get_str(verdict, "state", NULL)));
    buf_release(&spark);
}

/* The sentence of each training of which something wrong is seen. */
static void say_verdicts(struct cli *cli, const json_t *jobs)
{
    size_t i;
    const json_t *job;
    json_array_foreach (jobs, i, job) {
        const json_t *verdict = json_get_object(job, "verdict");
        if (json_get_str(verdict, "kind", NULL))
            cli_say(cli, "say_verdict_of", member_str(job, "id"), member_str(verdict, "text"), "");
    }
}

/* What each kind of table has. */
static const struct {
    const struct column *columns;
    size_t n;
    const char *empty;
} KINDS[] = {
    [JOBTABLE_LIST] = {LIST, array_len(LIST), "say_no_jobs"},
    [JOBTABLE_ALL] = {LIST, array_len(LIST), "say_no_jobs_seen"},
    [JOBTABLE_QUEUE] = {QUEUE, array_len(QUEUE), "say_queue_empty"},
    [JOBTABLE_TOP] = {TOP, array_len(TOP), "say_nothing_runs"},
};

static bool jobtable_differ(const json_t *jobs, const char *key)
{
    const json_t *first = json_array_get(jobs, 0);
    size_t i;
    json_t *job;
    json_array_foreach (jobs, i, job)
        if (!str_eq(member_str(job, key), member_str(first, key)))
            return true;
    return false;
}

/* The user's column stays where it tells jobs apart; so does the pool's, which tells apart places
 * in different lines. */
static void columns_for(const json_t *jobs, enum jobtable kind, struct column *ret)
{
    bool users = jobtable_differ(jobs, "user");
    bool pools = kind == JOBTABLE_QUEUE && jobtable_differ(jobs, "pool");
    memcpy(ret, KINDS[kind].columns, KINDS[kind].n * sizeof(*ret));
    for (size_t i = 0; i < KINDS[kind].n; i++)
        if ((str_eq(ret[i].title, "say_user") && users) ||
            (str_eq(ret[i].title, "say_pool") && pools))
            ret[i].rank = 0;
}

void jobtable_print(struct cli *cli,
                    const json_t *jobs,
                    enum jobtable kind,
                    const struct when *w,
                    bool wide)
{
    struct column columns[COLUMNS_MAX];
    columns_for(jobs, kind, columns);
    _cleanup_(table_freep) struct table *t = table_new(columns, KINDS[kind].n);
    size_t i;
    json_t *job;
    json_array_foreach (jobs, i, job) {
        if (kind == JOBTABLE_LIST || kind == JOBTABLE_ALL)
            add_list_row(t, job, w);
        else if (kind == JOBTABLE_TOP)
            add_top_row(t, job, w);
        else
            add_queue_row(t, job, w);
    }
    int dropped = table_print(t, &cli->term, wide, cli->out);
    if (!i)
        cli_say(cli, KINDS[kind].empty, "", "", "");
    if (dropped && i)
        cli_say(cli, "say_columns_hidden", "", "", "");
    if (kind == JOBTABLE_TOP)
        say_verdicts(cli, jobs);
}
