/* SPDX-License-Identifier: Apache-2.0 */
/* figures.c - GET /v1/nodes/{name}/figures and GET /v1/jobs/{id}/gpus: what a machine and the GPUs
 * of a job did, as series.
 *
 * A job's GPUs are those of its lease, by node and index, in the time in which the job ran; rank,
 * energy and the job's own part of each are of its scouts' books (evidence/gpubooks.h). What is
 * older than a day is there in steps of 5 minutes. Points are read in the worker pool. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/figures/figures.h"
#include "argusd/figures/gpurow.h"
#include "argusd/kit/api.h"
#include "argusd/kit/part.h"
#include "base/message.h"
#include "base/str.h"

enum { FIGURES_BYTES_MAX = 32 << 20 };
static const usec_t LATELY = USEC_HOUR;
static const usec_t SAMPLES_SINCE = USEC_DAY;
static const usec_t KEPT_SINCE = 91 * USEC_DAY; /* no file is looked for beyond */
static const usec_t ROLLUP = FIGURE_ROLL * FIGURE_EVERY;

struct figures_asked {
    struct http_req *req; /* NULL: gone */
    struct api *a;
    char *name;                      /* of the node or job */
    struct figures_read *used, *mem; /* mem: of a job alone */
    json_t *books;                   /* of a job: gpurow_find(); NULL: none */
    int attempt;
};

/* ---- the answer ---- */

/* Six digits: no figure has more, and none is written as 0.33333334326744. */
static double figures_short(double v)
{
    if (!isfinite(v) || v == 0)
        return v;
    double scale = pow(10, 5 - floor(log10(fabs(v))));
    return round(v * scale) / scale;
}

/* Over the points, which are as long as each other. */
static double figures_mean(const float *v, size_t n)
{
    double sum = 0;
    size_t told = 0;
    for (size_t i = 0; i < n; i++)
        if (!isnan(v[i])) {
            sum += (double)v[i];
            told++;
        }
    return told ? sum / (double)told : (double)NAN;
}

static double figures_max(const float *v, size_t n)
{
    double max = (double)NAN;
    for (size_t i = 0; i < n; i++)
        max = isnan(max) || (double)v[i] > max ? (double)v[i] : max;
    return max;
}

struct figures_row_page {
    const char *node, *uuid;
    int gpu; /* -1: of the node */
    struct field_list mean, max;
    double mean_of_all;
};
#define OF_ROW(member, ftype, ...) FIELD_AT(figures_row_page, #member, ftype, member, __VA_ARGS__)
static const struct field row_rows[] = {
    OF_ROW(node, FIELD_STR, .flags = FIELD_ALWAYS),
    OF_ROW(gpu, FIELD_INT32, .flags = FIELD_NO_LIMIT),
    OF_ROW(uuid, FIELD_STR, .flags = 0),
    OF_ROW(mean, FIELD_REALS, .flags = 0),
    OF_ROW(max, FIELD_REALS, .flags = 0),
    OF_ROW(mean_of_all, FIELD_REAL, .flags = FIELD_MAYBE),
};
static const struct field_table row_table = FIELD_TABLE("FigureSeries", row_rows, figures_row_page);

struct figures_gpu_page {
    struct figures_row_page row;
    double mem_used_max_bytes, mem_total_bytes, temperature_celsius, power_watts;
    struct gpurow use;
};
#define OF_GPU(member) FIELD_AT(figures_gpu_page, #member, FIELD_REAL, member, .flags = FIELD_MAYBE)
#define OF_USE(member)                                                                             \
    FIELD_AT(figures_gpu_page, #member, FIELD_REAL, use.member, .flags = FIELD_NO_LIMIT)
static const struct field gpu_rows[] = {
    FIELD_AT(figures_gpu_page, "", FIELD_INLINE, row, .of = &row_table),
    OF_GPU(mem_used_max_bytes),
    OF_GPU(mem_total_bytes),
    OF_GPU(temperature_celsius),
    OF_GPU(power_watts),
    OF_USE(rank),
    FIELD_AT(figures_gpu_page,
             "by_processes",
             FIELD_BOOL,
             use.by_processes,
             .doc = "the job's processes were seen on this GPU; else the lease says so"),
    OF_USE(watched_s),
    OF_USE(busy_s),
    OF_USE(used_joules),
    OF_USE(mem_peak_bytes),
};
static const struct field_table gpu_table = FIELD_TABLE("JobGpu", gpu_rows, figures_gpu_page);

/* The sum of a job's rows, of all attempts. */
#define OF_TOTAL(member, words)                                                                    \
    FIELD_AT(gpurow, #member, FIELD_REAL, member, .flags = FIELD_NO_LIMIT, .doc = (words))
static const struct field total_rows[] = {
    OF_TOTAL(watched_s, "seconds of its GPUs that were watched"),
    OF_TOTAL(busy_s, "of these, in which the GPUs worked for the job"),
    OF_TOTAL(used_joules, "energy, of a GPU that it shares its own part"),
    OF_TOTAL(mem_peak_bytes, "the most on one GPU"),
};
static const struct field_table total_table = FIELD_TABLE("JobGpuTotal", total_rows, gpurow);

/* The series are written between the other members, one after the other. */
enum { BEFORE_SERIES = FIELD_SHOWN, AFTER_SERIES = FIELD_LISTED };
struct figures_page {
    const char *name, *figure, *why_not;
    usec_t from;
    int64_t step_s, points;
    struct field_list series;
    struct field_list earlier; /* struct gpurow */
    const struct gpurow *total;
};
#define PAGE(key, ftype, member, ...) FIELD_AT(figures_page, key, ftype, member, __VA_ARGS__)
#define PAGE_ROWS(whose, item)                                                                     \
    PAGE(whose, FIELD_STR, name, .flags = FIELD_ALWAYS | BEFORE_SERIES),                           \
        PAGE("figure", FIELD_STR, figure, .flags = FIELD_ALWAYS | BEFORE_SERIES),                  \
        PAGE("from", FIELD_TIME, from, .flags = FIELD_ALWAYS | BEFORE_SERIES),                     \
        PAGE("step_s", FIELD_INT, step_s, .flags = BEFORE_SERIES),                                 \
        PAGE("points", FIELD_INT, points, .flags = BEFORE_SERIES),                                 \
        PAGE("series", FIELD_LIST, series, .of = &(item))
static const struct field of_job_rows[] = {
    PAGE_ROWS("id", gpu_table),
    PAGE("earlier",
         FIELD_LIST,
         earlier,
         .of = &gpurow_table,
         .flags = FIELD_ALWAYS | AFTER_SERIES,
         .doc = "what the attempts before used of each GPU: the newest 8 of all attempts"),
    PAGE("total",
         FIELD_PART,
         total,
         .of = &total_table,
         .flags = FIELD_ALWAYS | AFTER_SERIES,
         .doc = "sums over all attempts"),
};
static const struct field_table of_job_table = FIELD_TABLE("JobGpus", of_job_rows, figures_page);
static const struct field of_node_rows[] = {
    PAGE_ROWS("node", row_table),
    PAGE("why_not", FIELD_STR, why_not, .flags = FIELD_ALWAYS | AFTER_SERIES),
};
static const struct field_table of_node_table =
    FIELD_TABLE("NodeFigures", of_node_rows, figures_page);

static struct field_list figures_points(const float *from, size_t n, double *to)
{
    for (size_t i = 0; i < n; i++)
        to[i] = figures_short((double)from[i]);
    return (struct field_list){.v = to, .n = n};
}

/* v has room for two lists of points. */
static void figures_put_series(struct jout *j, const struct figures_asked *k, size_t i, double *v)
{
    const struct figures_row *row = &k->used->rows[i];
    const char *uuid = figures_uuid(k->a->figures, row->node, row->gpu);
    size_t n = k->used->points;
    struct figures_gpu_page page = {
        .row = {.node = row->node,
                .gpu = row->gpu,
                .uuid = *uuid ? uuid : NULL,
                .mean = figures_points(row->mean, n, v),
                .max = figures_points(row->max, n, v + n),
                .mean_of_all = figures_short(figures_mean(row->mean, n))}};
    if (!k->mem) {
        field_to_json(&row_table, &page.row, FIELD_ALL, FIELD_PAGE, j, NULL);
        return;
    }
    if (!gpurow_find(k->books, row->node, row->gpu, k->attempt, &page.use))
        page.use = gpurow_blank();
    page.temperature_celsius =
        figures_now(k->a->figures, row->node, FIGURE_GPU_TEMPERATURE, row->gpu);
    page.power_watts = figures_now(k->a->figures, row->node, FIGURE_GPU_POWER, row->gpu);
    page.mem_used_max_bytes = figures_short(figures_max(k->mem->rows[i].max, n));
    page.mem_total_bytes =
        figures_short(figures_now(k->a->figures, row->node, FIGURE_GPU_MEM_TOTAL, row->gpu));
    field_to_json(&gpu_table, &page, FIELD_ALL, FIELD_PAGE, j, NULL);
}

/* The rows of earlier attempts, without the sum of those that have none. free() them. */
static struct field_list figures_earlier(const struct figures_asked *k)
{
    struct gpurow *v;
    size_t n = gpurow_earlier(k->books, k->attempt, GPUROW_ROWS_MAX, &v);
    if (n && !v[0].attempt)
        memmove(v, v + 1, --n * sizeof(*v));
    return (struct field_list){.v = v, .n = n};
}

static void figures_answer(struct figures_asked *k)
{
    const struct figures_read *r = k->used;
    const struct gpurow total = gpurow_sum(k->books);
    const struct field_table *of = k->mem ? &of_job_table : &of_node_table;
    const struct figures_page page = {.name = k->name,
                                      .figure = figure_to_string(r->figure),
                                      .why_not =
                                          k->mem ? NULL : figures_why_not(k->a->figures, k->name),
                                      .from = r->from,
                                      .step_s = (int64_t)(r->step / USEC_SEC),
                                      .points = (int64_t)r->points,
                                      .earlier = figures_earlier(k),
                                      .total = &total};
    struct buf body = BUF_INIT(FIGURES_BYTES_MAX);
    struct jout j = jout_begin(&body);
    double *v = xcalloc(2 * r->points + 1, sizeof(*v));
    jout_open(&j, NULL, '{');
    field_put_members(of, &page, BEFORE_SERIES, FIELD_PAGE, &j);
    jout_open(&j, "series", '[');
    for (size_t i = 0; i < r->n_rows; i++)
        figures_put_series(&j, k, i, v);
    jout_close(&j, ']');
    field_put_members(of, &page, AFTER_SERIES, FIELD_PAGE, &j);
    jout_close(&j, '}');
    free(v);
    free(page.earlier.v);
    http_reply_json(k->req, 200, &body, api_reader_barrier(k->a));
    buf_release(&body);
}

static void figures_on_gone(struct http_req *req, void *arg)
{
    struct figures_asked *k = arg;
    (void)req;
    k->req = NULL;
}

static void figures_asked_free(struct figures_asked *k)
{
    figures_read_free(k->used);
    figures_read_free(k->mem);
    json_decref(k->books);
    free(k->name);
    free(k);
}

static void figures_on_read(void *arg)
{
    struct figures_asked *k = arg;
    if (k->req) {
        http_req_on_close(k->req, NULL, NULL);
        figures_answer(k);
    }
    figures_asked_free(k);
}

static void figures_on_first(void *arg)
{
    struct figures_asked *k = arg;
    if (k->mem && k->req)
        figures_read_start(k->a->figures, k->mem, figures_on_read, k);
    else
        figures_on_read(k);
}

static void figures_begin(struct figures_asked *k)
{
    http_req_on_close(k->req, figures_on_gone, k);
    figures_read_start(k->a->figures, k->used, figures_on_first, k);
}

/* ---- the request ---- */

/* Steps finer than a rollup are there for a day alone. */
static int figures_span(struct http_req *req,
                        usec_t *from,
                        usec_t *to,
                        usec_t *ret_step,
                        struct err *err)
{
    usec_t now = clock_wall();
    const char *step = http_req_query(req, "step");
    *ret_step = 0;
    if (api_read_time(req, "since", now, from, err) < 0 ||
        api_read_time(req, "until", now, to, err) < 0)
        return ERR_BAD_REQUEST;
    if (step && span_from_string(step, ret_step, err) < 0)
        return err->code = ERR_BAD_REQUEST;
    if (*to > now)
        *to = now;
    if (*from >= *to)
        return message_refuse(err, ERR_BAD_REQUEST, "since_behind_until", MESSAGE_NO_ARGS);
    if (*from + KEPT_SINCE < now && now < *to + KEPT_SINCE)
        *from = now - KEPT_SINCE;
    else if (*from + KEPT_SINCE < now) /* nothing is kept of that time: its end has no figures */
        *from = *to > FIGURE_EVERY ? *to - FIGURE_EVERY : 0;
    if (*from + SAMPLES_SINCE < now && *ret_step < ROLLUP)
        *ret_step = ROLLUP;
    return 0;
}

static void figures_add_node(struct figures_read *r, const struct api *a, const char *node)
{
    if (!figure_is_of_gpu(r->figure)) {
        (void)figures_read_add(r, node, -1); /* the first: there is room */
        return;
    }
    for (int g = 0; g < figures_gpus(a->figures, node); g++)
        (void)figures_read_add(r, node, g); /* at most 64 */
}

static void api_node_figures(struct http_req *req, void *app)
{
    struct api *a = app;
    struct err err = {0};
    const char *node = http_req_param(req, "name");
    const char *word = str_or(http_req_query(req, "figure"), "gpu_util_ratio");
    enum figure f = figure_from_string(word);
    usec_t to = clock_wall(), from = to - LATELY, step = 0;
    int r = 0;
    if (!cluster_find_name(a->cluster, node) && !nodes_find(a->nodes, node))
        r = message_refuse(&err, ERR_NOT_FOUND, "not_found",
                           MESSAGE_ARGS(MESSAGE_STR("noun", "node"), MESSAGE_STR("name", node)));
    else if (f == FIGURE_END)
        r = message_refuse(&err, ERR_BAD_REQUEST, "no_figure",
                           MESSAGE_ARGS(MESSAGE_STR("figure", word)));
    else
        r = figures_span(req, &from, &to, &step, &err);
    if (r < 0) {
        api_fail(req, &err, 0);
        return;
    }
    struct figures_asked *k = xcalloc(1, sizeof(*k));
    *k = (struct figures_asked){
        .req = req, .a = a, .name = xstrdup(node), .used = figures_read_new(f, from, to, step)};
    figures_add_node(k->used, a, node);
    figures_begin(k);
}

/* Its GPUs, on all its nodes; what does not fit is left out. */
static void figures_add_gang(struct figures_read *r, const struct gang *gang)
{
    for (size_t i = 0; i < gang->n; i++)
        for (int g = 0; g < GANG_GPUS_MAX; g++)
            if (gang->v[i].gpus >> g & 1 && !figures_read_add(r, gang->v[i].name, g))
                return;
}

static void figures_of_job(struct http_req *req,
                           struct api *a,
                           const struct job *job,
                           const struct record_extra *extra,
                           struct live *l)
{
    struct err err = {0};
    const struct attempt *last = job->n_attempts ? &job->attempts[job->n_attempts - 1] : NULL;
    usec_t now = clock_wall(), step = 0;
    usec_t to = last && last->ended_at ? last->ended_at : now;
    usec_t from = last && last->started_at ? last->started_at : to - FIGURE_EVERY;
    (void)l;
    if (figures_span(req, &from, &to, &step, &err) < 0) {
        api_fail(req, &err, 0);
        return;
    }
    struct figures_asked *k = xcalloc(1, sizeof(*k));
    *k = (struct figures_asked){.req = req,
                                .a = a,
                                .name = xstrdup(job->id),
                                .used = figures_read_new(FIGURE_GPU_UTIL, from, to, step),
                                .mem = figures_read_new(FIGURE_GPU_MEM_USED, from, to, step),
                                .books = extra->gpus ? json_loads(extra->gpus, 0, NULL) : NULL,
                                .attempt = last ? last->k : 0};
    figures_add_gang(k->used, &job->gang);
    figures_add_gang(k->mem, &job->gang);
    figures_begin(k);
}

static void api_jobs_gpus(struct http_req *req, void *app)
{
    api_find_job(req, app, figures_of_job);
}

/* ---- the routes ---- */

#define SPAN_PARAMS                                                                                \
    {"since", HTTP_PARAM_STRING, "from this time on, or this long ago (2h)"},                      \
        {"until", HTTP_PARAM_STRING, "up to this time, now if it is not given"},                   \
    {                                                                                              \
        "step", HTTP_PARAM_SPAN,                                                                   \
            "length of a point; at least 15s, 5m for what is older than a day, and what 1000 "     \
            "points ask for"                                                                       \
    }
static const struct http_param job_params[] = {SPAN_PARAMS, {0}};
static const struct http_param node_params[] = {
    {"figure", HTTP_PARAM_STRING, "which one, gpu_util_ratio if it is not given"},
    SPAN_PARAMS,
    {0}};

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/jobs/{id}/gpus",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_jobs_gpus,
     .summary = "what each GPU of a job did while its newest attempt ran, and what all attempts "
                "used",
     .params = job_params,
     .reply_schema = "JobGpus"},
    {.method = "GET",
     .pattern = "/v1/nodes/{name}/figures",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_node_figures,
     .summary = "one figure of a node, or of each of its GPUs, over time",
     .params = node_params,
     .reply_schema = "NodeFigures"},
};

static const struct http_schema schemas[] = {
    {.name = "FigureSeries", .table = &row_table},    {.name = "JobGpu", .table = &gpu_table},
    {.name = "NodeFigures", .table = &of_node_table}, {.name = "JobGpuUse", .table = &gpurow_table},
    {.name = "JobGpuTotal", .table = &total_table},   {.name = "JobGpus", .table = &of_job_table},
};

const struct api_part part_figures = {rows, array_len(rows), schemas, array_len(schemas)};
