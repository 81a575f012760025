/* SPDX-License-Identifier: Apache-2.0 */
/* usage.c - GET /v1/usage: where the time of the GPUs went, as series by cluster, pool, project,
 * user or workload.
 *
 * What a pool did is everybody's to see, as in GET /v1/pools; what people held is theirs, their
 * projects' and the admins'. The sums are brought to the disk first, so that they go up to now, and
 * are then read and added up on a worker; by project a second read has what projects had of each
 * other. Days are UTC. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/account/accounting.h"
#include "argusd/api/usage/dealings.h"
#include "argusd/kit/api.h"
#include "argusd/kit/part.h"
#include "argusd/people/people_rules.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

enum { USAGE_POINTS_MAX = 1000, USAGE_BYTES_MAX = 64 << 20 };

static const char *const usage_by_words[] = {"cluster", "pool",     "project",
                                             "user",    "workload", NULL};
static_assert(array_len(usage_by_words) == STORE_USAGE_BYS + 1, "each grouping has its word");

/* One name's sums, point by point. */
struct usage_series {
    char *name;
    int64_t *sums; /* points x STORE_USAGE_SUMS */
};

struct usage_sums {
    struct usage_series *v;
    size_t n;
};

struct usage_asked {
    struct http_req *req;
    struct api *a;
    struct store_read *read;
    int reads; /* that are not released */
    struct usage_sums *sums;
    struct dealings *dealings;
    enum store_usage_by by;
    char *pool, *project, *user; /* filters; NULL = none */
    struct people_view view;
    int64_t from, to, point; /* s */
    size_t points;
    bool is_series;
    int64_t until_ms;
};

static bool usage_is_owned(const struct usage_asked *k)
{
    return k->by >= STORE_USAGE_BY_PROJECT || k->project || k->user;
}

/* ---- on the worker ---- */

static int64_t *usage_place(struct usage_sums *all, const char *name, size_t len, size_t points)
{
    for (size_t i = all->n; i-- > 0;) /* rows come by name: mostly the last one */
        if (!strncmp(all->v[i].name, name, len) && !all->v[i].name[len])
            return all->v[i].sums;
    all->v = xrealloc(all->v, all->n + 1, sizeof(*all->v));
    all->v[all->n] = (struct usage_series){
        .name = xstrndup(name, len), .sums = xcalloc(points * STORE_USAGE_SUMS, sizeof(int64_t))};
    return all->v[all->n++].sums;
}

static void usage_add_to(struct usage_sums *all,
                         const struct usage_asked *k,
                         const char *name,
                         size_t len,
                         const struct store_usage_sum *row)
{
    if (row->point < 0 || row->point >= (int64_t)k->points)
        return;
    int64_t *to = usage_place(all, name, len, k->points) + row->point * STORE_USAGE_SUMS;
    for (int i = 0; i < STORE_USAGE_SUMS; i++)
        to[i] += row->sums[i];
}

/* A node with two labels is in two pools. */
static void usage_add_pools(struct usage_sums *all,
                            const struct usage_asked *k,
                            const struct store_usage_sum *row)
{
    const char *labels = row->name, *item;
    size_t len;
    if (!*labels && !k->pool)
        usage_add_to(all, k, "", 0, row);
    while ((item = str_item(&labels, &len)))
        if (!k->pool || (strlen(k->pool) == len && !strncmp(k->pool, item, len)))
            usage_add_to(all, k, item, len, row);
}

static int usage_by_name(const void *a, const void *b)
{
    return strcmp(((const struct usage_series *)a)->name, ((const struct usage_series *)b)->name);
}

static void usage_sums_free(void *rendered)
{
    struct usage_sums *all = rendered;
    for (size_t i = 0; all && i < all->n; i++) {
        free(all->v[i].name);
        free(all->v[i].sums);
    }
    if (all)
        free(all->v);
    free(all);
}

static void usage_asked_free(struct usage_asked *k)
{
    usage_sums_free(k->sums);
    dealings_free(k->dealings);
    people_view_release(&k->view);
    free(k->pool);
    free(k->project);
    free(k->user);
    free(k);
}

static void *usage_render(const struct store_result *r, void *arg)
{
    const struct usage_asked *k = arg;
    struct usage_sums *all = xcalloc(1, sizeof(*all));
    for (size_t i = 0; i < r->nusage; i++)
        if (k->by == STORE_USAGE_BY_LABELS)
            usage_add_pools(all, k, &r->usage[i]);
        else
            usage_add_to(all, k, r->usage[i].name, strlen(r->usage[i].name), &r->usage[i]);
    xsort(all->v, all->n, sizeof(*all->v), usage_by_name);
    return all;
}

static void *usage_render_dealings(const struct store_result *r, void *arg)
{
    const struct usage_asked *k = arg;
    return dealings_read(r, &k->view);
}

static void usage_dealings_free(void *rendered)
{
    dealings_free(rendered);
}

/* ---- the answer ---- */

struct usage_series_page {
    const char *name;
    struct field_list sums[SLOTBOOK_SUMS];
};
#define SUM_ROW(e, word)                                                                           \
    FIELD_AT(usage_series_page, #word, FIELD_REALS, sums[SLOTBOOK_##e],                            \
             .doc = "GPU-seconds of each point"),
static const struct field series_rows[] = {
    FIELD_AT(usage_series_page, "name", FIELD_STR, name, .flags = FIELD_ALWAYS),
    SLOTBOOK_SUM_TABLE(SUM_ROW)};
#undef SUM_ROW
static const struct field_table series_table =
    FIELD_TABLE("UsageSeries", series_rows, usage_series_page);

struct usage_page {
    int by;
    usec_t from, to, until;
    int64_t step_s, points;
    struct field_list dealings, series;
};
#define USAGE(key, ftype, member, ...) FIELD_AT(usage_page, key, ftype, member, __VA_ARGS__)
static const struct field usage_rows[] = {
    USAGE("by", FIELD_ENUM, by, .names = usage_by_words, .flags = FIELD_SHOWN),
    USAGE("from", FIELD_TIME, from, .flags = FIELD_ALWAYS | FIELD_SHOWN),
    USAGE("to", FIELD_TIME, to, .flags = FIELD_ALWAYS | FIELD_SHOWN),
    USAGE("until", FIELD_TIME, until, .flags = FIELD_ALWAYS | FIELD_SHOWN),
    USAGE("step_s", FIELD_INT, step_s, .flags = FIELD_SHOWN),
    USAGE("points", FIELD_INT, points, .flags = FIELD_SHOWN),
    USAGE("dealings",
          FIELD_LIST,
          dealings,
          .of = &dealings_table,
          .flags = FIELD_SHOWN,
          .doc = "by=project, of no user: what projects had of each other in the whole time"),
    USAGE("series", FIELD_LIST, series, .of = &series_table),
};
static const struct field_table usage_table = FIELD_TABLE("UsageTime", usage_rows, usage_page);

static double usage_gpu_seconds(int64_t sum)
{
    return (double)sum / ((double)SLOTBOOK_GPU * 1000);
}

/* v has room for all sums of all points. Of what people hold there is no capacity, and nothing that
 * is free. */
static void usage_put_series(struct jout *j,
                             const struct usage_asked *k,
                             const struct usage_series *s,
                             double *v)
{
    struct usage_series_page page = {.name = s->name};
    bool owned = usage_is_owned(k);
    for (int i = 0; i < SLOTBOOK_SUMS; i++) {
        bool is_held = i == SLOTBOOK_USED || i == SLOTBOOK_HELD_IDLE || i >= SLOTBOOK_UNKNOWN;
        double *points = v + (size_t)i * k->points;
        for (size_t p = 0; p < k->points; p++)
            points[p] = usage_gpu_seconds(s->sums[p * STORE_USAGE_SUMS + (size_t)i]);
        page.sums[i] = (struct field_list){.v = points, .n = owned && !is_held ? 0 : k->points};
    }
    field_to_json(&series_table, &page, FIELD_ALL, FIELD_PAGE, j, NULL);
}

static void usage_answer(struct usage_asked *k)
{
    const struct usage_sums *all = k->sums;
    const struct usage_page page = {.by = (int)k->by,
                                    .from = (usec_t)k->from * USEC_SEC,
                                    .to = (usec_t)k->to * USEC_SEC,
                                    .until = (usec_t)k->until_ms * USEC_MS,
                                    .step_s = k->point,
                                    .points = (int64_t)k->points,
                                    .dealings = dealings_list(k->dealings)};
    struct buf body = BUF_INIT(USAGE_BYTES_MAX);
    struct jout j = jout_begin(&body);
    double *v = xcalloc(k->points * SLOTBOOK_SUMS, sizeof(*v));
    jout_open(&j, NULL, '{');
    field_put_members(&usage_table, &page, FIELD_SHOWN, FIELD_PAGE, &j);
    jout_open(&j, "series", '[');
    for (size_t i = 0; i < all->n; i++)
        usage_put_series(&j, k, &all->v[i], v);
    jout_close(&j, ']');
    jout_close(&j, '}');
    free(v);
    api_mark_stale(k->req, k->a);
    http_reply_json(k->req, 200, &body, 0); /* it is on disk */
    buf_release(&body);
}

/* ---- the reads ---- */

static int64_t floor_to(int64_t at, int64_t step)
{
    return at / step * step;
}

static int64_t ceil_to(int64_t at, int64_t step)
{
    return (at + step - 1) / step * step;
}

/* Whole days come from the rows of days, the edges from quarters of an hour; so do points that are
 * no whole days. */
static size_t usage_spans(const struct usage_asked *k, struct store_usage_span *ret)
{
    int64_t first = ceil_to(k->from, ACCOUNTING_DAY), last = floor_to(k->to, ACCOUNTING_DAY);
    bool by_days = !k->is_series || k->point % ACCOUNTING_DAY == 0;
    if (!by_days || first >= last) {
        ret[0] = (struct store_usage_span){ACCOUNTING_QUARTER, k->from, k->to};
        return 1;
    }
    ret[0] = (struct store_usage_span){ACCOUNTING_QUARTER, k->from, first};
    ret[1] = (struct store_usage_span){ACCOUNTING_DAY, first, last};
    ret[2] = (struct store_usage_span){ACCOUNTING_QUARTER, last, k->to};
    return 3;
}

/* No worker looks at it any more. */
static void usage_on_released(void *arg)
{
    struct usage_asked *k = arg;
    if (!--k->reads)
        usage_asked_free(k);
}

static void usage_read(struct usage_asked *k,
                       const struct store_usage_query *q,
                       const struct store_then *then)
{
    k->reads++;
    k->read = store_list_usage(k->a->store, q, then);
}

static void usage_finish(struct usage_asked *k, const struct err *err)
{
    http_req_on_close(k->req, NULL, NULL);
    if (err->code)
        api_fail(k->req, err, 0);
    else
        usage_answer(k);
}

static void usage_on_dealings(const struct store_result *r, void *arg)
{
    struct usage_asked *k = arg;
    k->read = NULL;
    k->dealings = r->rendered;
    usage_finish(k, &r->err);
}

/* The whole time as one point; names are those of pairs. */
static void usage_read_dealings(struct usage_asked *k)
{
    struct store_usage_query q = {.by = STORE_USAGE_BY_WORKLOAD,
                                  .origin = k->from,
                                  .point = k->to - k->from,
                                  .project = k->project,
                                  .owned = true,
                                  .scope = k->view.scope};
    struct store_then then = {.render = usage_render_dealings,
                              .done = usage_on_dealings,
                              .drop = usage_dealings_free,
                              .release = usage_on_released,
                              .arg = k};
    q.n_spans = usage_spans(k, q.spans);
    for (size_t i = 0; i < q.n_spans; i++)
        q.spans[i].step = -q.spans[i].step;
    usage_read(k, &q, &then);
}

static void usage_on_sums(const struct store_result *r, void *arg)
{
    struct usage_asked *k = arg;
    k->read = NULL;
    k->sums = r->rendered;
    if (!r->err.code && k->by == STORE_USAGE_BY_PROJECT && !k->user)
        usage_read_dealings(k);
    else
        usage_finish(k, &r->err);
}

static void usage_on_settled(int64_t until_ms, void *arg)
{
    struct usage_asked *k = arg;
    struct store_usage_query q = {.by = k->by,
                                  .origin = k->from,
                                  .point = k->point,
                                  .project = k->project,
                                  .user = k->user,
                                  .owned = usage_is_owned(k),
                                  .scope = usage_is_owned(k) ? k->view.scope : NULL};
    struct store_then then = {.render = usage_render,
                              .done = usage_on_sums,
                              .drop = usage_sums_free,
                              .release = usage_on_released,
                              .arg = k};
    k->until_ms = until_ms;
    q.n_spans = usage_spans(k, q.spans);
    usage_read(k, &q, &then);
}

/* ---- the request ---- */

static void usage_on_gone(struct http_req *req, void *arg)
{
    struct usage_asked *k = arg;
    (void)req;
    accounting_forget(k->a->accounting, k);
    if (k->read)
        store_read_cancel(k->read); /* frees k, when no worker reads it */
    else
        usage_asked_free(k);
}

/* Rounded outwards to quarters of an hour, or to days where points are days, or where quarters are
 * kept no more. */
static int usage_read_times(struct http_req *req, struct usage_asked *k, struct err *err)
{
    usec_t now = clock_wall(), from = now - USEC_DAY, to = now, step = 0;
    const char *word = http_req_query(req, "step");
    if (api_read_time(req, "from", now, &from, err) < 0 ||
        api_read_time(req, "to", now, &to, err) < 0 ||
        (word && span_from_string(word, &step, err) < 0))
        return err->code = ERR_BAD_REQUEST;
    if (from >= to)
        return message_refuse(err, ERR_BAD_REQUEST, "usage_no_time", MESSAGE_NO_ARGS);
    int64_t unit = ACCOUNTING_QUARTER;
    k->is_series = step > 0;
    if (step >= USEC_DAY || from + ACCOUNTING_KEPT < now)
        unit = ACCOUNTING_DAY;
    k->from = floor_to((int64_t)(from / USEC_SEC), unit);
    k->to = ceil_to((int64_t)(to / USEC_SEC),
                    unit == ACCOUNTING_DAY && step ? unit : ACCOUNTING_QUARTER);
    k->point = step ? ceil_to((int64_t)(step / USEC_SEC), unit) : k->to - k->from;
    int64_t points = (k->to - k->from + k->point - 1) / k->point;
    if (points > USAGE_POINTS_MAX)
        return message_refuse(
            err, ERR_BAD_REQUEST, "usage_too_fine",
            MESSAGE_ARGS(MESSAGE_NUM("points", points), MESSAGE_NUM("most", USAGE_POINTS_MAX)));
    k->points = (size_t)points;
    return 0;
}

static int usage_read_by(struct http_req *req, enum store_usage_by *ret, struct err *err)
{
    const char *word = str_or(http_req_query(req, "by"), "cluster");
    for (int i = 0; i < STORE_USAGE_BYS; i++)
        if (str_eq(word, usage_by_words[i])) {
            *ret = (enum store_usage_by)i;
            return 0;
        }
    char text[64];
    text_printf(text, "%.40s", word);
    return message_refuse(err, ERR_BAD_REQUEST, "usage_by_unknown",
                          MESSAGE_ARGS(MESSAGE_STR("by", text)));
}

/* A project that he is not in: what he holds there himself he gets without the filter. */
static int usage_check_project(const struct usage_asked *k, struct err *err)
{
    if (!k->project || !k->view.scope || strv_has(&k->view.projects, k->project))
        return 0;
    return message_refuse(err, ERR_FORBIDDEN, "usage_hidden",
                          MESSAGE_ARGS(MESSAGE_STR("project", k->project)));
}

static char *usage_filter(struct http_req *req, const char *name)
{
    const char *text = http_req_query(req, name);
    return text && *text ? xstrdup(text) : NULL;
}

static void api_usage(struct http_req *req, void *app)
{
    struct err err = {0};
    struct usage_asked *k = xcalloc(1, sizeof(*k));
    *k = (struct usage_asked){.req = req,
                              .a = app,
                              .pool = usage_filter(req, "pool"),
                              .project = usage_filter(req, "project"),
                              .user = usage_filter(req, "user")};
    people_view(k->a->people, http_req_principal(req), PEOPLE_WISH_ALL, &k->view);
    int r = usage_read_by(req, &k->by, &err);
    if (r == 0)
        r = usage_read_times(req, k, &err);
    if (r == 0)
        r = usage_check_project(k, &err);
    if (r < 0) {
        api_fail(req, &err, 0);
        usage_asked_free(k);
        return;
    }
    http_req_on_close(req, usage_on_gone, k);
    accounting_settle(k->a->accounting, usage_on_settled, k);
}

/* ---- the routes ---- */

static const struct http_param usage_params[] = {
    {"from", HTTP_PARAM_STRING, "from this time on, or this long ago (7d); one day ago if absent"},
    {"to", HTTP_PARAM_STRING, "up to this time, now if it is not given"},
    {"step", HTTP_PARAM_SPAN, "length of a point: quarters of an hour or whole days; absent: one"},
    {"by", HTTP_PARAM_STRING, "cluster, pool, project, user or workload; cluster if absent"},
    {"pool", HTTP_PARAM_STRING, "with by=pool: this one alone"},
    {"project", HTTP_PARAM_STRING, "only what this project held"},
    {"user", HTTP_PARAM_STRING, "only what this user held"},
    {0}};

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/usage",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_usage,
     .summary =
         "where the time of the GPUs went: GPU-seconds used (redone of these: steps that were "
         "run again), held idle, kept for a gang, free, draining, broken and foreign, which "
         "are the capacity, to the millisecond",
     .params = usage_params,
     .reply_schema = "UsageTime"},
};

static const struct http_schema schemas[] = {
    {.name = "DealingPart", .table = &dealing_part_table},
    {.name = "UsageDealings", .table = &dealings_table},
    {.name = "UsageSeries", .table = &series_table},
    {.name = "UsageTime", .table = &usage_table},
};

const struct api_part part_usage = {rows, array_len(rows), schemas, array_len(schemas)};
