/* SPDX-License-Identifier: Apache-2.0 */
/* curves.c - GET /v1/jobs/{id}/metrics: the curves of a job, as JSON or CSV.
 *
 * Read from the job's merged file and rendered in the worker pool; what runs and what has ended
 * look the same. The tables of the last few jobs are kept, each with one worker at a time. */
#include "argusd/api/jobs/curves.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/ground/work.h"
#include "argusd/kit/api.h"
#include "argusd/kit/part.h"
#include "base/message.h"
#include "base/str.h"
#include "fsroot/logs/metricfile.h"

enum { POINTS_MAX = 512, CURVES_MAX_BYTES = 32 << 20, KEPT_MAX = 8 };

/* The table of a job that was asked for: who polls pays only for what is new. */
struct kept {
    struct kept *next; /* the last used first */
    char *id;
    struct metric_curves *curves;
    bool busy; /* with a worker */
};

struct curves_kept {
    struct kept *first;
};

struct curves {
    struct http_req *req; /* NULL: gone */
    struct api *a;
    char *id, *summary;
    struct strv keys; /* patterns; none: all keys */
    struct metric_curves *curves;
    struct kept *kept; /* whose table that is; NULL: our own */
    const char *state; /* a literal */
    int64_t since, points;
    bool csv, want_voids, names_alone;
    struct buf out;
    struct err err;
    int result;
};

/* What is shown of a table: these keys, and of the points each `group` as one. */
struct shown {
    const struct metric_table *t;
    size_t *keys, n_keys;
    size_t from, group;
};

static struct strv curves_patterns(const char *list)
{
    struct strv patterns = {0};
    size_t n;
    for (const char *it; (it = str_item(&list, &n));)
        strv_addf(&patterns, "%.*s", (int)n, it);
    return patterns;
}

static bool curves_is_wanted(const struct curves *c, const char *key)
{
    bool is = !c->keys.n;
    for (size_t i = 0; i < c->keys.n && !is; i++)
        is = str_glob(c->keys.v[i], key);
    return is && !c->names_alone;
}

static void curves_choose(const struct curves *c, const struct metric_table *t, struct shown *ret)
{
    size_t n = metric_table_points(t), keys = metric_table_keys(t), most = (size_t)c->points;
    *ret = (struct shown){.t = t, .keys = xcalloc(keys + 1, sizeof(size_t))};
    ret->from = metric_table_after(t, c->since);
    ret->group = (n - ret->from + most - 1) / most;
    ret->group += !ret->group;
    for (size_t k = 0; k < keys; k++)
        if (curves_is_wanted(c, metric_table_key(t, k)))
            ret->keys[ret->n_keys++] = k;
}

/* The i-th shown point of a key; *ret_any: it has a value. False after the last. */
static bool point_at(const struct shown *s,
                     size_t key,
                     size_t i,
                     struct metric_point *ret,
                     bool *ret_any)
{
    size_t n = metric_table_points(s->t), from = s->from + i * s->group;
    size_t to = from + s->group;
    if (from >= n)
        return false;
    *ret_any = metric_table_range(s->t, key, from, to < n ? to : n, ret);
    return true;
}

/* ---- JSON ---- */

/* One curve: a list of each. */
struct series_page {
    struct field_list step, value, min, max, time;
};
#define SERIES(member, ...) FIELD_AT(series_page, #member, FIELD_REALS, member, __VA_ARGS__)
static const struct field series_rows[] = {
    SERIES(step, .schema = LIST(INTEGER)),
    SERIES(value, .flags = 0),
    SERIES(min, .flags = 0),
    SERIES(max, .flags = 0),
    SERIES(time, .flags = 0, .doc = "when it was written, in seconds since 1970; null: not known"),
};
static const struct field_table metric_series_table = FIELD_TABLE(NULL, series_rows, series_page);

/* Steps that were run again. */
struct void_page {
    struct metric_void steps;
    const char *series; /* NULL: was not asked for */
};
static const struct field void_rows[] = {
    FIELD_AT(void_page, "attempt", FIELD_INT32, steps.attempt),
    FIELD_AT(void_page, "from_step", FIELD_INT, steps.first),
    FIELD_AT(void_page, "to_step", FIELD_INT, steps.last),
    FIELD_AT(void_page,
             "series",
             FIELD_JSON,
             series,
             .flags = FIELD_OMIT,
             .schema = MAP(REF("Series"))),
};
static const struct field_table void_table = FIELD_TABLE(NULL, void_rows, void_page);

struct curves_page {
    const char *id, *state, *summary, *series;
    struct strv keys; /* the names are the table's */
    struct field_list superseded;
    bool cut;
};
#define PAGE(member, ftype, ...) FIELD_AT(curves_page, #member, ftype, member, __VA_ARGS__)
static const struct field curves_rows[] = {
    PAGE(id, FIELD_STR, .flags = FIELD_ALWAYS),
    PAGE(state, FIELD_STR, .flags = FIELD_ALWAYS, .schema = "JobState"),
    PAGE(summary, FIELD_JSON, .flags = 0, .schema = "Training"),
    PAGE(keys, FIELD_STRV, .flags = 0),
    PAGE(series, FIELD_JSON, .flags = FIELD_ALWAYS, .schema = MAP(REF("Series"))),
    PAGE(superseded, FIELD_LIST, .of = &void_table),
    PAGE(cut, FIELD_BOOL, .flags = 0),
};
static const struct field_table job_metrics_table = FIELD_TABLE(NULL, curves_rows, curves_page);

/* The points of one curve; v has room for each of the page's lists. */
static void fill_series(const struct shown *s, size_t key, double *v, struct series_page *ret)
{
    double *step = v, *value = v + POINTS_MAX, *min = value + POINTS_MAX, *max = min + POINTS_MAX;
    double *time = max + POINTS_MAX;
    struct metric_point p;
    bool any;
    size_t n = 0;
    for (size_t i = 0; point_at(s, key, i, &p, &any); i++) {
        if (!any)
            continue;
        step[n] = (double)p.last;
        value[n] = p.value;
        min[n] = p.min;
        time[n] = p.at ? (double)(p.at / 1000) / 1e3 : (double)NAN;
        max[n++] = p.max;
    }
    *ret = (struct series_page){{step, n}, {value, n}, {min, n}, {max, n}, {time, n}};
}

static void put_series(const struct shown *s, struct buf *out)
{
    struct jout j = jout_begin(out);
    double *v = xcalloc(5 * (size_t)POINTS_MAX, sizeof(*v));
    jout_open(&j, NULL, '{');
    for (size_t i = 0; i < s->n_keys; i++) {
        struct series_page page;
        fill_series(s, s->keys[i], v, &page);
        field_to_json(&metric_series_table, &page, FIELD_ALL, FIELD_PAGE, &j,
                      metric_table_key(s->t, s->keys[i]));
    }
    jout_close(&j, '}');
    free(v);
}

/* What that attempt had told of the steps that were run again. */
static void put_void_series(struct curves *c, size_t i, struct buf *out)
{
    struct shown s;
    curves_choose(c, metric_curves_void_table(c->curves, i), &s);
    put_series(&s, out);
    free(s.keys);
}

static void curves_put_json(struct curves *c, const struct shown *s)
{
    struct jout j = jout_begin(&c->out);
    struct buf series = BUF_INIT(CURVES_MAX_BYTES);
    size_t n, keys = metric_table_keys(s->t);
    const struct metric_void *voids = metric_curves_voids(c->curves, &n);
    struct void_page v[METRIC_VOIDS_MAX];
    struct buf old[METRIC_VOIDS_MAX];
    for (size_t i = 0; i < n; i++) {
        old[i] = BUF_INIT(CURVES_MAX_BYTES);
        if (c->want_voids)
            put_void_series(c, i, &old[i]);
        v[i] = (struct void_page){voids[i], c->want_voids ? buf_str(&old[i]) : NULL};
    }
    struct curves_page page = {.id = c->id,
                               .state = c->state,
                               .summary = c->summary,
                               .keys = {.v = xcalloc(keys + 1, sizeof(char *)), .n = keys},
                               .superseded = {.v = v, .n = n},
                               .cut = metric_curves_is_cut(c->curves)};
    for (size_t k = 0; k < keys; k++)
        page.keys.v[k] = (char *)(uintptr_t)metric_table_key(s->t, k); /* only written out */
    put_series(s, &series);
    page.series = buf_str(&series);
    field_to_json(&job_metrics_table, &page, FIELD_ALL, FIELD_PAGE, &j, NULL);
    c->out.failed |= series.failed;
    for (size_t i = 0; i < n; i++) {
        c->out.failed |= old[i].failed;
        buf_release(&old[i]);
    }
    free(page.keys.v);
    buf_release(&series);
}

/* ---- CSV ---- */

static void put_csv(struct curves *c, const struct shown *s)
{
    struct metric_point p;
    bool any;
    (void)buf_adds(&c->out, "step"); /* overflow: out.failed, here and below */
    for (size_t i = 0; i < s->n_keys; i++) {
        (void)buf_addc(&c->out, ',');
        buf_add_csv(&c->out, metric_table_key(s->t, s->keys[i]));
    }
    (void)buf_adds(&c->out, "\r\n");
    for (size_t i = 0; s->n_keys && point_at(s, s->keys[0], i, &p, &any); i++) {
        (void)buf_addf(&c->out, "%lld", (long long)p.last);
        for (size_t k = 0; k < s->n_keys; k++) {
            (void)point_at(s, s->keys[k], i, &p, &any); /* it is there, as the first was */
            (void)buf_addc(&c->out, ',');
            if (any)
                (void)buf_addf(&c->out, "%.15g", p.value);
        }
        (void)buf_adds(&c->out, "\r\n");
    }
}

/* ---- tables that are kept ---- */

struct curves_kept *curves_kept_new(void)
{
    return xcalloc(1, sizeof(struct curves_kept));
}

static void curves_drop(struct kept *k)
{
    metric_curves_free(k->curves);
    free(k->id);
    free(k);
}

void curves_kept_free(struct curves_kept *all)
{
    for (struct kept *k = all ? all->first : NULL, *next; k; k = next) {
        next = k->next;
        curves_drop(k);
    }
    free(all);
}

/* All but the first few that nobody uses now. */
static void forget_old(struct curves_kept *all)
{
    size_t n = 0;
    for (struct kept **p = &all->first; *p;) {
        struct kept *k = *p;
        if (++n <= KEPT_MAX || k->busy) {
            p = &k->next;
            continue;
        }
        *p = k->next;
        curves_drop(k);
    }
}

/* The kept one of this job, busy from now on, as the first; NULL: another request has it. */
static struct kept *take_kept(struct api *a, const char *id)
{
    struct kept **p = &a->curves->first, *k;
    while (*p && strcmp((*p)->id, id) != 0)
        p = &(*p)->next;
    k = *p;
    if (k && k->busy)
        return NULL;
    if (k) {
        *p = k->next;
    } else {
        k = xcalloc(1, sizeof(*k));
        k->id = xstrdup(id);
        k->curves = metric_curves_new(a->settings->shared_root, id, POINTS_MAX);
    }
    k->busy = true;
    k->next = a->curves->first;
    a->curves->first = k;
    forget_old(a->curves);
    return k;
}

/* ---- one request ---- */

static void curves_run(void *arg)
{
    struct curves *c = arg;
    struct shown s;
    c->result = metric_curves_update(c->curves, &c->err);
    if (c->result < 0)
        return;
    curves_choose(c, metric_curves_table(c->curves), &s);
    if (c->csv)
        put_csv(c, &s);
    else
        curves_put_json(c, &s);
    free(s.keys);
}

static void give_back(struct curves *c)
{
    if (c->kept)
        c->kept->busy = false;
    else
        metric_curves_free(c->curves);
}

static void curves_done(void *arg)
{
    struct curves *c = arg;
    uint64_t barrier = api_reader_barrier(c->a);
    if (c->req)
        http_req_on_close(c->req, NULL, NULL);
    if (c->req && c->result < 0)
        api_fail(c->req, &c->err, barrier);
    else if (c->req && c->csv)
        http_reply(c->req, 200, "text/csv", &c->out, barrier);
    else if (c->req)
        http_reply_json(c->req, 200, &c->out, barrier);
    give_back(c);
    buf_release(&c->out);
    free(c->id);
    strv_release(&c->keys);
    free(c->summary);
    free(c);
}

static void curves_on_gone(struct http_req *req, void *arg)
{
    struct curves *c = arg;
    (void)req;
    c->req = NULL;
}

static bool wants_csv(const struct http_req *req)
{
    const char *format = http_req_query(req, "format");
    return format ? !strcmp(format, "csv")
                  : http_req_header(req, "Accept") && !http_req_accepts(req, "application/json") &&
                        http_req_accepts(req, "text/csv");
}

static void curves_answer(struct http_req *req,
                          struct api *a,
                          const struct job *job,
                          const struct record_extra *extra,
                          struct live *l)
{
    struct err err = {0};
    int64_t since = -1, points = POINTS_MAX;
    const char *format = http_req_query(req, "format");
    (void)l;
    if (!api_has_files(req, a, job))
        return;
    if (http_req_query_int(req, "since_step", -1, INT64_MAX / 2, -1, &since, &err) < 0 ||
        http_req_query_int(req, "points", 1, POINTS_MAX, POINTS_MAX, &points, &err) < 0 ||
        (format && strcmp(format, "csv") != 0 && strcmp(format, "json") != 0 &&
         message_refuse(&err, -EINVAL, "bad_format_query",
                        MESSAGE_ARGS(MESSAGE_STR("format", format))))) {
        err.code = ERR_BAD_REQUEST;
        api_fail(req, &err, 0);
        return;
    }
    struct curves *c = xcalloc(1, sizeof(*c));
    *c = (struct curves){.req = req,
                         .a = a,
                         .id = xstrdup(job->id),
                         .keys = curves_patterns(http_req_query(req, "keys")),
                         .summary = xstrdup(extra->metrics),
                         .state = job_state_to_string(job->state),
                         .since = since,
                         .points = points,
                         .csv = wants_csv(req),
                         .names_alone = !http_req_query_bool(req, "series", true),
                         .want_voids = http_req_query_bool(req, "superseded", false),
                         .out = BUF_INIT(CURVES_MAX_BYTES)};
    c->kept = take_kept(a, job->id);
    c->curves = c->kept ? c->kept->curves
                        : metric_curves_new(a->settings->shared_root, job->id, POINTS_MAX);
    http_req_on_close(req, curves_on_gone, c);
    work_start_for(a->loop, http_req_principal(req)->user, curves_run, curves_done, c);
}

static void api_jobs_metrics(struct http_req *req, void *app)
{
    api_find_job(req, app, curves_answer);
}

static const struct http_param metric_params[] = {
    {"keys", HTTP_PARAM_STRING,
     "names or patterns with * and ?, comma-separated; all if not given. A comma in a name is asked "
     "for as ?"},
    {"series", HTTP_PARAM_BOOLEAN, "false: the names of the keys without their curves"},
    {"since_step", HTTP_PARAM_INTEGER, "only what came after this step"},
    {"points", HTTP_PARAM_INTEGER,
     "points of a curve at most, up to 512, of a job with more than 512 keys up to 128; a point "
     "keeps the smallest and greatest value of its steps"},
    {"superseded", HTTP_PARAM_BOOLEAN,
     "with what attempts told of the steps that later ones ran again: superseded[].series"},
    {"format", HTTP_PARAM_STRING, "json or csv; Accept: text/csv does the same"},
    {0}};

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/jobs/{id}/metrics",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_jobs_metrics,
     .summary = "the curves of a job",
     .params = metric_params,
     .reply_schema = "JobMetrics"},
};
static const struct http_schema schemas[] = {
    {.name = "JobMetrics", .table = &job_metrics_table},
    {.name = "Series", .table = &metric_series_table},
};
const struct api_part part_curves = {rows, array_len(rows), schemas, array_len(schemas)};
