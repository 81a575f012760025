/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - where the GPUs' time went: by pool, project, user, and what was wasted, by job.
 *
 * Tables are in GPU-hours and fit 80 columns; --csv has every point in GPU-seconds. What projects
 * had of each other stands in a list of its own in the reply, and is put to their series here. */
#include "argus/noun/noun.h"

#include <stdlib.h>
#include <string.h>

#include "argus/cli/reported.h"
#include "argus/show/csv.h"
#include "argus/show/member.h"
#include "base/message.h"

struct report_opts {
    int output, by;
    bool utc, csv;
    const char *from, *to, *step, *pool, *project, *user;
    int64_t limit;
    struct reported_opts written;
};

static const char *const BY_WORDS[] = {"", "cluster", "pool", "project", "user", "workload", NULL};
enum { BY_PEOPLE = 3 }; /* from here on: of what people held; the first are projects */

#define REPORT_ROW(type_, member) .type = (type_), .offset = offsetof(struct report_opts, member)
#define REPORT_FROM(text)                                                                          \
    {                                                                                              \
        .name = "from", REPORT_ROW(OPT_TEXT, from), .arg = "TIME", .doc = (text)                   \
    }
#define REPORT_CSV(text)                                                                           \
    {                                                                                              \
        .name = "csv", REPORT_ROW(OPT_FLAG, csv), .doc = (text)                                    \
    }
#define REPORT_OF(name_, text)                                                                     \
    {                                                                                              \
        .name = #name_, REPORT_ROW(OPT_TEXT, name_), .arg = "NAME", .doc = (text)                  \
    }

static const struct opt GPU_OPTS[] = {
    {.name = "by",
     REPORT_ROW(OPT_CHOICE, by),
     .arg = "WHAT",
     .doc = "cluster, pool, project, user or workload (pool)",
     .choices = BY_WORDS},
    REPORT_FROM("from this time on, or this long ago (7d)"),
    {.name = "to", REPORT_ROW(OPT_TEXT, to), .arg = "TIME", .doc = "end of the report (now)"},
    {.name = "step",
     REPORT_ROW(OPT_TEXT, step),
     .arg = "SPAN",
     .doc = "with --csv: time that one line covers: 15m, 1h, 1d …"},
    REPORT_OF(pool, "with --by pool: this one alone"),
    REPORT_OF(project, "only what this project held"),
    REPORT_OF(user, "only what this user held"),
    REPORT_CSV("GPU-seconds of each name and step, as CSV"),
    OPT_OUTPUT(struct report_opts),
};

static const struct opt WASTE_OPTS[] = {
    REPORT_FROM("jobs that held slots from this time on, or from this long ago (7d)"),
    {.name = "to", REPORT_ROW(OPT_TEXT, to), .arg = "TIME", .doc = "and before this time (now)"},
    REPORT_OF(project, "jobs of this project"),
    REPORT_OF(user, "jobs of this user"),
    {.name = "limit", REPORT_ROW(OPT_COUNT, limit), .arg = "N", .doc = "show at most N jobs (20)"},
    REPORT_CSV("GPU-hours of each job, as CSV"),
    OPT_OUTPUT(struct report_opts),
};

static const struct opt JOB_OPTS[] = {
    OPT_REPORTED(struct report_opts, written),
    REPORT_CSV("GPU-seconds of the job and of each attempt, as CSV"),
    OPT_OUTPUT(struct report_opts),
};

/* ---- numbers ---- */

static double report_sum(const json_t *series, const char *key)
{
    double sum = 0;
    size_t i;
    const json_t *v;
    json_array_foreach (json_get_array(series, key), i, v)
        sum += json_number_value(v);
    return sum;
}

static void report_hours(struct table *t, double seconds)
{
    table_addf(t, STYLE_PLAIN, "%.1f", seconds / 3600);
}

#define REPORT_CELL(key)                                                                           \
    static void report_##key(struct table *t, const json_t *series, const struct when *w)          \
    {                                                                                              \
        (void)w;                                                                                   \
        report_hours(t, report_sum(series, #key));                                                 \
    }
REPORT_CELL(capacity)
REPORT_CELL(used)
REPORT_CELL(held_idle)
REPORT_CELL(blocked)
REPORT_CELL(free)
REPORT_CELL(draining)
REPORT_CELL(broken)
REPORT_CELL(foreign)
REPORT_CELL(unknown)
REPORT_CELL(redone)

/* The use of those GPUs that were leased and measured. */
static void report_util(struct table *t, const json_t *series, const struct when *w)
{
    double measured = report_sum(series, "used") + report_sum(series, "held_idle") -
                      report_sum(series, "unknown");
    (void)w;
    if (measured > 0)
        table_addf(t, STYLE_PLAIN, "%.0f%%", 100 * report_sum(series, "busy") / measured);
    else
        table_add(t, STYLE_PLAIN, NULL);
}

static void report_name(struct table *t, const json_t *series, const struct when *w)
{
    const char *name = json_get_str(series, "name", "");
    (void)w;
    table_add(t, STYLE_PLAIN, *name ? name : "(none)");
}

/* ---- report gpu ---- */

#define REPORT_COLUMN(title_, key_, rank_)                                                         \
    {                                                                                              \
        .title = (title_), .flags = COLUMN_RIGHT, .rank = (rank_), .draw = report_##key_           \
    }
#define REPORT_NAMES                                                                               \
    {                                                                                              \
        .title = "say_name", .flags = COLUMN_FLEX, .least = 8, .draw = report_name                 \
    }
static const struct column POOL_COLUMNS[] = {
    REPORT_NAMES,
    REPORT_COLUMN("say_capacity", capacity, 0),
    REPORT_COLUMN("say_used", used, 0),
    REPORT_COLUMN("say_redone", redone, 1),
    REPORT_COLUMN("say_held_idle", held_idle, 0),
    REPORT_COLUMN("say_blocked", blocked, 3),
    REPORT_COLUMN("say_free", free, 0),
    REPORT_COLUMN("say_draining", draining, 5),
    REPORT_COLUMN("say_bad", broken, 2),
    REPORT_COLUMN("say_foreign", foreign, 6),
    REPORT_COLUMN("say_unmeasured", unknown, 4),
    REPORT_COLUMN("say_util", util, 0),
};
static const struct column PEOPLE_COLUMNS[] = {
    REPORT_NAMES,
    REPORT_COLUMN("say_used", used, 0),
    REPORT_COLUMN("say_redone", redone, 2),
    REPORT_COLUMN("say_held_idle", held_idle, 0),
    REPORT_COLUMN("say_unmeasured", unknown, 1),
    REPORT_COLUMN("say_util", util, 0),
};

/* ---- what projects had of each other ---- */

/* The series of this project; made if it held nothing. */
static json_t *report_series_of(json_t *all, const char *project)
{
    json_t *series;
    size_t i;
    json_array_foreach (all, i, series)
        if (str_eq(json_get_str(series, "name", ""), project))
            return series;
    series = json_pack("{s:s}", "name", project);
    (void)json_array_append_new(all, series); /* fails without memory alone */
    return series;
}

/* Nothing is told by user: the reply to a question about one then has no dealings. */
static void report_join_dealings(json_t *answer, bool of_user)
{
    if (of_user)
        (void)json_object_del(answer, "dealings"); /* it may have none */
    json_t *dealings, *all = json_object_get(answer, "series");
    size_t i;
    json_array_foreach (json_get_array(answer, "dealings"), i, dealings) {
        json_t *series = report_series_of(all, json_get_str(dealings, "project", ""));
        (void)json_object_set(series, "dealings", dealings); /* as above */
    }
}

/* A project without them is not known to have had none: its reader may not see it. */
#define DEALING_CELL(name_, key_)                                                                  \
    static void report_##name_(struct table *t, const json_t *series, const struct when *w)        \
    {                                                                                              \
        const json_t *dealings = json_get_object(series, "dealings");                              \
        (void)w;                                                                                   \
        if (dealings)                                                                              \
            report_hours(t, json_get_real(dealings, key_, 0));                                     \
        else                                                                                       \
            table_add(t, STYLE_PLAIN, NULL);                                                       \
    }
DEALING_CELL(wait_taken, "wait_taken_gpu_s")
DEALING_CELL(wait_given, "wait_given_gpu_s")
DEALING_CELL(lent, "lent_gpu_s")

/* "vision 12.0, speech 3.5": those who had most. */
static void report_lent_to(struct table *t, const json_t *series, const struct when *w)
{
    enum { NAMED = 3 };
    _cleanup_(buf_release) struct buf text = BUF_INIT(1024);
    const json_t *part;
    size_t i;
    (void)w;
    json_array_foreach (json_get_array(json_get_object(series, "dealings"), "lent"), i, part)
        if (i < NAMED)
            (void)buf_addf(&text, "%s%s %.1f", i ? ", " : "", member_str(part, "project"),
                           json_get_real(part, "gpu_s", 0) / 3600); /* too long is cut */
    table_add(t, STYLE_PLAIN, text.len ? buf_str(&text) : NULL);
}

static const struct column PROJECT_COLUMNS[] = {
    REPORT_NAMES,
    REPORT_COLUMN("say_used", used, 0),
    REPORT_COLUMN("say_redone", redone, 6),
    REPORT_COLUMN("say_held_idle", held_idle, 0),
    REPORT_COLUMN("say_unmeasured", unknown, 5),
    REPORT_COLUMN("say_util", util, 4),
    REPORT_COLUMN("say_wait_taken", wait_taken, 2),
    REPORT_COLUMN("say_wait_given", wait_given, 3),
    REPORT_COLUMN("say_lent", lent, 1),
    {.title = "say_lent_to", .flags = COLUMN_ROOM, .draw = report_lent_to},
};

/* ---- as CSV ---- */

static const char *const DEALING_KEYS[] = {"wait_taken_gpu_s", "wait_own_gpu_s", "wait_given_gpu_s",
                                           "lent_gpu_s", "borrowed_gpu_s"};

/* They are of the whole time: a line of a part of it has none. */
static bool csv_has_dealings(const json_t *page)
{
    return str_eq(member_str(page, "by"), "project") && json_get_int(page, "points", 0) == 1 &&
           json_get_array(page, "dealings");
}

static void csv_of_dealings(FILE *out, const json_t *series)
{
    const json_t *dealings = json_get_object(series, "dealings");
    for (size_t i = 0; i < array_len(DEALING_KEYS); i++) {
        (void)fputc(',', out);
        if (dealings)
            (void)fprintf(out, "%.4f", json_get_real(dealings, DEALING_KEYS[i], 0));
    }
}

static const char *const SUM_KEYS[] = {"capacity", "used",     "held_idle", "blocked",
                                       "free",     "draining", "broken",    "foreign",
                                       "unknown",  "busy",     "redone"};

static void csv_of_series(FILE *out, const json_t *page, const json_t *series)
{
    usec_t from = 0;
    int64_t points = json_get_int(page, "points", 0), step = json_get_int(page, "step_s", 0);
    if (clock_from_string(member_str(page, "from"), &from, NULL) < 0)
        from = 0; /* the server's words are times */
    for (int64_t p = 0; p < points; p++) {
        char at[CLOCK_TEXT_MAX];
        csv_text(out, json_get_str(series, "name", ""));
        (void)fprintf(out, ",%s", clock_to_string(from + (usec_t)(p * step) * USEC_SEC, at));
        for (size_t i = 0; i < array_len(SUM_KEYS); i++) {
            const json_t *v = json_array_get(json_get_array(series, SUM_KEYS[i]), (size_t)p);
            (void)fputc(',', out);
            if (v)
                (void)fprintf(out, "%.4f", json_number_value(v));
        }
        if (csv_has_dealings(page))
            csv_of_dealings(out, series);
        (void)fputc('\n', out);
    }
}

static void gpu_csv(FILE *out, const json_t *page)
{
    const json_t *series;
    size_t i;
    (void)fputs("name,from", out);
    for (i = 0; i < array_len(SUM_KEYS); i++)
        (void)fprintf(out, ",%s_gpu_s", SUM_KEYS[i]);
    for (i = 0; i < array_len(DEALING_KEYS) && csv_has_dealings(page); i++)
        (void)fprintf(out, ",%s", DEALING_KEYS[i]);
    (void)fputc('\n', out);
    json_array_foreach (json_get_array(page, "series"), i, series)
        csv_of_series(out, page, series);
}

/* The reply as the options ask for it, in place of a table; false: a table is wanted. */
static bool report_emit(struct cli *cli,
                        const struct report_opts *o,
                        const json_t *answer,
                        void (*csv)(FILE *out, const json_t *answer))
{
    if (o->output >= OUTPUT_JSON)
        cli_emit(cli, answer, o->output);
    else if (o->csv)
        csv(cli->out, answer);
    return o->output >= OUTPUT_JSON || o->csv;
}

static struct listing gpu_listing(const struct report_opts *o)
{
    const struct listing pools = {.columns = POOL_COLUMNS, .n_columns = array_len(POOL_COLUMNS)};
    const struct listing people = {.columns = PEOPLE_COLUMNS,
                                   .n_columns = array_len(PEOPLE_COLUMNS)};
    const struct listing projects = {.columns = PROJECT_COLUMNS,
                                     .n_columns = array_len(PROJECT_COLUMNS)};
    bool owned = o->by >= BY_PEOPLE || o->project || o->user;
    struct listing ret = o->by == BY_PEOPLE && !o->user ? projects : owned ? people : pools;
    ret.key = "series";
    ret.none = "say_no_usage";
    return ret;
}

static int report_gpu_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct report_opts *o = opts;
    _cleanup_(buf_release) struct buf path = BUF_INIT(8192);
    _cleanup_(json_unrefp) json_t *answer = NULL;
    (void)args;
    (void)buf_adds(&path, "/v1/usage"); /* too long is refused below */
    url_query(&path, "by", o->by ? BY_WORDS[o->by] : "pool");
    url_query(&path, "from", o->from ? o->from : "7d");
    url_query(&path, "to", o->to);
    url_query(&path, "step", o->step);
    url_query(&path, "pool", o->pool);
    url_query(&path, "project", o->project);
    url_query(&path, "user", o->user);
    if (path.failed)
        return message_refuse(err, ERR_USAGE, "cli_filters_long", MESSAGE_NO_ARGS);
    int r = cli_open(cli, err);
    if (r == 0)
        r = client_get(cli->client, buf_str(&path), &answer, err);
    if (r == 0 && o->output < OUTPUT_JSON)
        report_join_dealings(answer, o->user != NULL);
    if (r < 0 || report_emit(cli, o, answer, gpu_csv))
        return r;
    const struct listing table = gpu_listing(o);
    listing_print(cli, &table, answer, o->output, o->utc);
    return 0;
}

/* ---- report waste ---- */

#define WASTE_CELL(name_, key_)                                                                    \
    static void waste_##name_(struct table *t, const json_t *job, const struct when *w)            \
    {                                                                                              \
        (void)w;                                                                                   \
        table_addf(t, STYLE_PLAIN, "%.1f", json_get_real(job, key_, 0));                           \
    }
WASTE_CELL(held, "gpu_hours")
WASTE_CELL(idle, "idle_hours")
WASTE_CELL(redone, "redone_hours")
WASTE_CELL(unknown, "unknown_hours")

/* "-" for none: a column in which no job has any is left out. */
#define WASTE_RARE_CELL(name_, key_)                                                               \
    static void waste_##name_(struct table *t, const json_t *job, const struct when *w)            \
    {                                                                                              \
        double hours = json_get_real(job, key_, 0);                                                \
        (void)w;                                                                                   \
        if (hours >= 0.05)                                                                         \
            table_addf(t, STYLE_PLAIN, "%.1f", hours);                                             \
        else                                                                                       \
            table_add(t, STYLE_PLAIN, NULL);                                                       \
    }
WASTE_RARE_CELL(failed, "failed_hours")
WASTE_RARE_CELL(between, "between_hours")

static void waste_gain(struct table *t, const json_t *job, const struct when *w)
{
    double gain = json_get_real(job, "gain_hours", 0);
    (void)w;
    if (gain > 0)
        table_addf(t, STYLE_PLAIN, "%.1f", gain);
    else
        table_add(t, STYLE_PLAIN, NULL);
}

static void waste_advice(struct table *t, const json_t *job, const struct when *w)
{
    static const struct {
        const char *word, *say, *key; /* key NULL: it has no number */
    } advices[] = {{"fewer_gpus", "say_fewer_gpus", "advised_gpus"},
                   {"save_more_often", "say_save_each", "save_freq"},
                   {"faster_data", "say_faster_data", NULL},
                   {"shorter_time_limit", "say_shorter_limit", "advised_timeout_s"}};
    const char *word = member_str(job, "advice");
    size_t i = 0;
    while (i < array_len(advices) && !str_eq(word, advices[i].word))
        i++;
    if (i == array_len(advices)) {
        table_add(t, STYLE_PLAIN, NULL);
        return;
    }
    char number[CLOCK_TEXT_MAX], line[128];
    const char *const texts[] = {number, "", ""};
    int64_t n = advices[i].key ? json_get_int(job, advices[i].key, 0) : 0;
    if (str_eq(word, "shorter_time_limit"))
        span_to_string((usec_t)(n > 0 ? n : 0) * USEC_SEC, number);
    else
        (void)snprintf(number, sizeof(number), "%lld", (long long)n);
    table_add(t, STYLE_PLAIN, msg_fill(w->lang, advices[i].say, texts, line, sizeof(line)));
}

#define WASTE_COLUMN(title_, name_, rank_)                                                         \
    {                                                                                              \
        .title = (title_), .flags = COLUMN_RIGHT, .rank = (rank_), .draw = waste_##name_           \
    }
static const struct column WASTE_COLUMNS[] = {
    {.title = "say_job", .flags = COLUMN_FLEX, .least = 10, .key = "id", .style = STYLE_BOLD},
    {.title = "say_user", .flags = COLUMN_FLEX, .least = 4, .rank = 3, .key = "user"},
    WASTE_COLUMN("say_gpu_hours", held, 0),
    WASTE_COLUMN("say_held_idle", idle, 0),
    WASTE_COLUMN("say_redone", redone, 1),
    WASTE_COLUMN("say_lost_steps", failed, 0),
    WASTE_COLUMN("say_between", between, 1),
    WASTE_COLUMN("say_unmeasured", unknown, 2),
    WASTE_COLUMN("say_gain", gain, 0),
    {.title = "say_advice", .flags = COLUMN_ROOM, .draw = waste_advice},
};

/* "-" where it is not known; below 0: it cost more. */
static void taken_got(struct table *t, const json_t *pair, const struct when *w)
{
    const json_t *got = json_object_get(pair, "got_hours");
    (void)w;
    if (json_is_number(got))
        table_addf(t, STYLE_PLAIN, "%.1f", json_number_value(got));
    else
        table_add(t, STYLE_PLAIN, NULL);
}

static void taken_foreseen(struct table *t, const json_t *pair, const struct when *w)
{
    (void)w;
    table_addf(t, STYLE_PLAIN, "%.1f", json_get_real(pair, "foreseen_hours", 0));
}

static const struct column TAKEN_COLUMNS[] = {
    {.title = "say_advised_job", .flags = COLUMN_NAME, .least = 12, .key = "id"},
    {.title = "say_next_job",
     .flags = COLUMN_NAME,
     .least = 12,
     .key = "next",
     .style = STYLE_BOLD},
    {.title = "say_user", .flags = COLUMN_FLEX, .least = 4, .rank = 1, .key = "user"},
    {.title = "say_foreseen", .flags = COLUMN_RIGHT, .draw = taken_foreseen},
    {.title = "say_got", .flags = COLUMN_RIGHT, .draw = taken_got},
    {.title = "say_advice", .flags = COLUMN_ROOM, .draw = waste_advice},
};

/* What advice foresaw beside what the jobs that took it got; nothing is claimed where none did. */
static void waste_print_taken(struct cli *cli, const json_t *answer, const struct report_opts *o)
{
    const struct listing table = {
        .key = "taken", .columns = TAKEN_COLUMNS, .n_columns = array_len(TAKEN_COLUMNS)};
    const json_t *error = json_object_get(answer, "taken_error");
    char pairs[32], percent[32] = "-";
    (void)snprintf(pairs, sizeof(pairs), "%lld", (long long)json_get_int(answer, "taken_count", 0));
    if (json_is_number(error))
        (void)snprintf(percent, sizeof(percent), "%.0f%%", 100 * json_number_value(error));
    if (json_array_size(json_get_array(answer, "taken")))
        listing_print(cli, &table, answer, o->output, o->utc);
    cli_say(cli, "say_advice_taken", pairs, percent, "");
}

static const char *const WASTE_KEYS[] = {"gpus",          "gpu_hours",    "idle_hours",
                                         "unknown_hours", "redone_hours", "failed_hours",
                                         "between_hours", "waste_hours",  "gain_hours"};

static void waste_csv(FILE *out, const json_t *answer)
{
    static const char *const texts[] = {"id", "user", "project", "workload", "state", "advice"};
    const json_t *job;
    size_t i;
    for (size_t k = 0; k < array_len(texts); k++)
        (void)fprintf(out, "%s%s", k ? "," : "", texts[k]);
    for (size_t k = 0; k < array_len(WASTE_KEYS); k++)
        (void)fprintf(out, ",%s", WASTE_KEYS[k]);
    (void)fputc('\n', out);
    json_array_foreach (json_get_array(answer, "jobs"), i, job) {
        for (size_t k = 0; k < array_len(texts); k++) {
            (void)fputs(k ? "," : "", out);
            csv_text(out, member_str(job, texts[k]));
        }
        for (size_t k = 0; k < array_len(WASTE_KEYS); k++) {
            (void)fputc(',', out);
            if (json_is_number(json_object_get(job, WASTE_KEYS[k])))
                (void)fprintf(out, "%.4f", json_get_real(job, WASTE_KEYS[k], 0));
        }
        (void)fputc('\n', out);
    }
}

/* What the advice of the week before would have saved in the last one. */
static void waste_say_tried(struct cli *cli, const json_t *answer)
{
    const json_t *tried = json_get_object(answer, "back_test");
    char jobs[32], saved[32], wrong[32];
    if (json_get_int(tried, "tried", 0) <= 0) {
        cli_say(cli, "say_advice_untried", "", "", "");
        return;
    }
    (void)snprintf(jobs, sizeof(jobs), "%lld", (long long)json_get_int(tried, "tried", 0));
    (void)snprintf(saved, sizeof(saved), "%.1f/%.1f", json_get_real(tried, "saved_hours", 0),
                   json_get_real(tried, "held_hours", 0));
    (void)snprintf(wrong, sizeof(wrong), "%lld", (long long)json_get_int(tried, "too_small", 0));
    cli_say(cli, "say_advice_tried", jobs, saved, wrong);
}

static int report_waste_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct report_opts *o = opts;
    char limit[32];
    _cleanup_(buf_release) struct buf path = BUF_INIT(8192);
    _cleanup_(json_unrefp) json_t *answer = NULL;
    (void)args;
    (void)snprintf(limit, sizeof(limit), "%lld", (long long)(o->limit ? o->limit : 20));
    (void)buf_adds(&path, "/v1/usage/jobs"); /* too long is refused below */
    url_query(&path, "from", o->from ? o->from : "7d");
    url_query(&path, "to", o->to);
    url_query(&path, "project", o->project);
    url_query(&path, "user", o->user);
    url_query(&path, "limit", limit);
    url_query(&path, "back_test",
              o->csv && o->output < OUTPUT_JSON ? NULL : "true"); /* no column */
    if (path.failed)
        return message_refuse(err, ERR_USAGE, "cli_filters_long", MESSAGE_NO_ARGS);
    int r = cli_open(cli, err);
    if (r == 0)
        r = client_get(cli->client, buf_str(&path), &answer, err);
    if (r < 0 || report_emit(cli, o, answer, waste_csv))
        return r;
    const struct listing table = {.key = "jobs",
                                  .columns = WASTE_COLUMNS,
                                  .n_columns = array_len(WASTE_COLUMNS),
                                  .none = "say_no_usage"};
    listing_print(cli, &table, answer, o->output, o->utc);
    waste_print_taken(cli, answer, o);
    waste_say_tried(cli, answer);
    return 0;
}

/* ---- report job ---- */

/* Where the time of a job went that told of steps: the word, and the member in seconds. */
static const char *const JOB_PARTS[][2] = {{"productive", "productive_s"},
                                           {"detect", "detect_s"},
                                           {"diagnose", "diagnose_s"},
                                           {"queue", "queue_s"},
                                           {"start", "start_s"},
                                           {"redo", "redo_s"},
                                           {"other", "other_s"}};
static const char *const ATTEMPT_KEYS[] = {"gpu_seconds", "gpu_idle_seconds", "gpu_unknown_seconds",
                                           "gpu_redone_seconds"};

/* ETTR, and its parts in GPU-hours: what the attempts held, and what was waited for between them.
 */
static void report_print_recovery(struct cli *cli, const json_t *recovery, double gpus)
{
    (void)fprintf(cli->out, "ETTR          %9.1f%%\n", 100 * json_get_real(recovery, "ettr", 0));
    for (size_t i = 0; i < array_len(JOB_PARTS); i++)
        (void)fprintf(cli->out, "  %-12s%10.2f\n", JOB_PARTS[i][0],
                      json_get_real(recovery, JOB_PARTS[i][1], 0) * gpus / 3600);
    (void)fprintf(cli->out, "failures      %10lld\n",
                  (long long)json_get_int(recovery, "failures", 0));
    if (json_is_number(json_object_get(recovery, "mttr_s")))
        (void)fprintf(cli->out, "MTTR          %9.0fs\n", json_get_real(recovery, "mttr_s", 0));
}

/* In GPU-seconds; what nobody kept is a dash. */
static void report_print_attempts(struct cli *cli, const json_t *attempts)
{
    const json_t *attempt;
    size_t i;
    if (json_array_size(attempts))
        (void)fprintf(cli->out, "%-7s %14s %12s %12s %12s\n", "attempt", "GPU-seconds", "idle",
                      "unknown", "redone");
    json_array_foreach (attempts, i, attempt) {
        (void)fprintf(cli->out, "%-7lld", (long long)json_get_int(attempt, "k", 0));
        for (size_t k = 0; k < array_len(ATTEMPT_KEYS); k++) {
            const json_t *v = json_object_get(attempt, ATTEMPT_KEYS[k]);
            if (json_is_number(v))
                (void)fprintf(cli->out, " %*.3f", k ? 12 : 14, json_number_value(v));
            else
                (void)fprintf(cli->out, " %*s", k ? 12 : 14, "-");
        }
        (void)fputc('\n', cli->out);
    }
}

/* Empty where nobody kept it. */
static void csv_of_number(FILE *out, const json_t *v, double times)
{
    (void)fputc(',', out);
    if (json_is_number(v))
        (void)fprintf(out, "%.4f", json_number_value(v) * times);
}

/* What failures took of the whole job. */
static void csv_of_recovery(FILE *out, const json_t *recovery, double gpus)
{
    csv_of_number(out, json_object_get(recovery, "ettr"), 1);
    csv_of_number(out, json_object_get(recovery, "mttr_s"), 1);
    (void)fputc(',', out);
    if (recovery)
        (void)fprintf(out, "%lld", (long long)json_get_int(recovery, "failures", 0));
    for (size_t i = 0; i < array_len(JOB_PARTS); i++)
        csv_of_number(out, json_object_get(recovery, JOB_PARTS[i][1]), gpus);
    (void)fputc('\n', out);
}

/* The job first, its attempt empty; each attempt has no ETTR of its own. */
static void job_csv(FILE *out, const json_t *job)
{
    const json_t *attempt;
    size_t i;
    (void)fputs("id,attempt,state,held_gpu_s,idle_gpu_s,unknown_gpu_s,redone_gpu_s,ettr,mttr_s,"
                "failures",
                out);
    for (i = 0; i < array_len(JOB_PARTS); i++)
        (void)fprintf(out, ",%s_gpu_s", JOB_PARTS[i][0]);
    (void)fputc('\n', out);
    csv_text(out, member_str(job, "id"));
    (void)fprintf(out, ",,%s", member_str(job, "state"));
    csv_of_number(out, json_object_get(job, "gpu_seconds"), 1);
    csv_of_number(out, json_object_get(job, "gpu_idle_hours"), 3600);
    csv_of_number(out, json_object_get(job, "gpu_unknown_hours"), 3600);
    csv_of_number(out, json_object_get(job, "gpu_redone_hours"), 3600);
    csv_of_recovery(out, json_get_object(job, "recovery"), json_get_real(job, "gpus", 0));
    json_array_foreach (json_get_array(job, "attempts"), i, attempt) {
        csv_text(out, member_str(job, "id"));
        (void)fprintf(out, ",%lld,%s", (long long)json_get_int(attempt, "k", 0),
                      member_str(attempt, "state"));
        for (size_t k = 0; k < array_len(ATTEMPT_KEYS); k++)
            csv_of_number(out, json_object_get(attempt, ATTEMPT_KEYS[k]), 1);
        csv_of_recovery(out, NULL, 0);
    }
}

static void report_print_job(struct cli *cli, const json_t *job)
{
    const json_t *good = json_get_object(job, "goodput");
    const json_t *recovery = json_get_object(job, "recovery");
    double gpus = json_get_real(job, "gpus", 0);
    (void)fprintf(cli->out, "%s %s, %s, attempt %lld, %g GPUs\n", member_str(job, "id"),
                  member_str(job, "state"), member_str(job, "user"),
                  (long long)json_get_int(job, "attempt", 0), gpus);
    (void)fprintf(cli->out, "GPU-hours     %10.2f\n", json_get_real(job, "gpu_hours", 0));
    (void)fprintf(cli->out, "  idle        %10.2f\n", json_get_real(job, "gpu_idle_hours", 0));
    (void)fprintf(cli->out, "  unknown     %10.2f\n", json_get_real(job, "gpu_unknown_hours", 0));
    (void)fprintf(cli->out, "  redone      %10.2f\n", json_get_real(job, "gpu_redone_hours", 0));
    report_print_attempts(cli, json_get_array(job, "attempts"));
    if (!good)
        return;
    (void)fprintf(cli->out, "lost steps    %10.2f\n",
                  json_get_real(good, "lost_s", 0) * gpus / 3600);
    (void)fprintf(cli->out, "goodput       %9.1f%%\n", 100 * json_get_real(good, "ratio", 0));
    if (json_is_number(json_object_get(recovery, "ettr")))
        report_print_recovery(cli, recovery, gpus);
}

static int report_job_run(struct cli *cli, void *opts, const struct strv *args, struct err *err)
{
    const struct report_opts *o = opts;
    _cleanup_(json_unrefp) json_t *job = NULL;
    if (o->written.form)
        return reported_print(cli, "/v1/jobs/{}/report", args->v[0], &o->written, err);
    int r = cli_open(cli, err);
    if (r == 0)
        r = cli_get_job(cli, args->v[0], &job, err);
    if (r < 0 || report_emit(cli, o, job, job_csv))
        return r;
    report_print_job(cli, job);
    return 0;
}

static const struct command REPORT_COMMANDS[] = {
    {
        .name = "report gpu",
        .args = "",
        .summary = "show where the time of the GPUs went",
        .text =
            "In GPU-hours. Of a pool: what was used, held idle (leased, and measured idle), kept "
            "free for a gang that waits, free, draining, broken and foreign; together they are "
            "the capacity. UNKNOWN is the part of USED that nobody measured, UTIL the mean use of "
            "what was measured. A node with two labels counts in both pools. By project, user "
            "or workload: what they held; you see your own projects, admins see all. By project "
            "also WAIT-TAKEN, GPUs wanted times the time for which only GPUs kept its jobs "
            "waiting; WAIT-GIVEN, its part of what others waited, as it held GPUs of their pool; "
            "LENT, what others held of its guarantee, which it could not have had at once, and to "
            "whom ('*': several together). --csv without --step has these, too.",
        .example = "argus report gpu --by user --from 30d\n"
                   "argus report gpu --by pool --from 7d --step 1h --csv > week.csv",
        .opts = GPU_OPTS,
        .n_opts = array_len(GPU_OPTS),
        .opts_size = sizeof(struct report_opts),
        .run = report_gpu_run,
    },
    {
        .name = "report waste",
        .args = "",
        .summary = "show which jobs wasted GPU time, and what would have spared it",
        .text =
            "In GPU-hours, those first that wasted most or would have gained most, of the newest "
            "1000 jobs that held slots in that time, each with its whole life. IDLE was held and measured idle, REDONE are "
            "steps that a later attempt ran again, LOST the steps since the last save of a job "
            "that failed for good, DATA the time between steps, where its log says what each step "
            "took. GAIN is what the advice would have spared this very job, by its own figures: of "
            "steps that wait for data, if each had waited as little as those of the best tenth; of "
            "a shorter timeout none is told, for how much sooner a job starts by it is up to the "
            "others in the queue. The second table has advice that a later job of the same name "
            "took: FORESEEN is what it foresaw, GOT what the advised job would have been spared at "
            "the next job's price of a step, or of a failure; the line below says how far the two "
            "lie apart in the median. The last line is a test of the advice: that of the week "
            "before, tried on the jobs of the last week that are alike; a shorter timeout is not "
            "tried.",
        .example = "argus report waste --from 30d --project rl",
        .opts = WASTE_OPTS,
        .n_opts = array_len(WASTE_OPTS),
        .opts_size = sizeof(struct report_opts),
        .run = report_waste_run,
    },
    {
        .name = "report job",
        .args = "JOB",
        .least = 1,
        .most = 1,
        .summary = "show the GPU time of one job, or its whole report",
        .text =
            "What its leases held over all attempts, what of that was idle, unknown or redone, and "
            "the same of each attempt in GPU-seconds; of a job that told of steps, how much of its "
            "time was training (ETTR, see 'argus report recovery') and where the rest went, in "
            "GPU-hours. --csv has the same in GPU-seconds: a line of the job, whose attempt is "
            "empty, and one of each attempt. With --format the report that the server writes: what "
            "happened, the first cause with its evidence, what to do, what it cost, its "
            "checkpoints and its spec.",
        .example = "argus report job grpo-7 --format md > grpo-7.md\n"
                   "argus report job grpo-7 --format html --language zh > grpo-7.html\n"
                   "argus report job grpo-7 --csv > grpo-7.csv",
        .opts = JOB_OPTS,
        .n_opts = array_len(JOB_OPTS),
        .opts_size = sizeof(struct report_opts),
        .run = report_job_run,
    },
};

NOUN(report, REPORT_COMMANDS);
