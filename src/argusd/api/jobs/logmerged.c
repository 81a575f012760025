/* SPDX-License-Identifier: Apache-2.0 */
/* logmerged.c - GET /v1/jobs/{id}/logs/merged: the driver's log and those of all workers as one row
 * of lines (fsroot/logs/logmerge.h).
 *
 * Nothing is kept between two requests: the cursor says how far each log was told, so a client that
 * asks with it again, also after a restart of argusd, misses no line and gets none twice. Each
 * answer is one look, in the worker pool and within the share of him who asks. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/ground/work.h"
#include "argusd/kit/api.h"
#include "argusd/kit/part.h"
#include "base/message.h"
#include "base/str.h"
#include "fsroot/logs/logmerge.h"

enum { MERGED_MAX = 8 << 20 }; /* a look reads 512 KiB at most, and JSON has six bytes for one */

struct merging {
    struct http_req *req; /* NULL: the client has gone */
    struct api *a;
    char *root, *id, *places;
    struct logmerge_ask ask;
    bool has_next; /* there is an attempt after this one, and it is not asked for this one alone */
    bool is_ended; /* the job is over, and no other attempt is told behind this one */
    struct logmerge found;
    int result;
    struct err err;
};

static void logmerged_on_gone(struct http_req *req, void *arg)
{
    struct merging *g = arg;
    (void)req;
    g->req = NULL; /* freed when the worker is done */
}

static void logmerged_look(void *arg)
{
    struct merging *g = arg;
    g->result = logmerge_look(&g->ask, &g->found, &g->err);
}

/* ---- the page ---- */

struct merged_source_page {
    const char *source, *node, *actor;
    char *file; /* owned */
    int64_t rank;
    uint64_t skipped_bytes;
};
#define MERGED_SOURCE(member, ftype, ...)                                                          \
    FIELD_AT(merged_source_page, #member, ftype, member, __VA_ARGS__)
static const struct field merged_source_rows[] = {
    MERGED_SOURCE(source,
                  FIELD_STR,
                  .flags = FIELD_ALWAYS,
                  .schema = WORDS("\"driver\",\"worker\"")),
    MERGED_SOURCE(file, FIELD_STR, .flags = 0),
    MERGED_SOURCE(node, FIELD_STR, .flags = 0),
    MERGED_SOURCE(rank, FIELD_INT, .flags = FIELD_NO_LIMIT),
    MERGED_SOURCE(actor, FIELD_STR, .flags = 0),
    MERGED_SOURCE(skipped_bytes, FIELD_COUNT, .flags = 0),
};
static const struct field_table merged_source_table =
    FIELD_TABLE(NULL, merged_source_rows, merged_source_page);

/* `text` is written from the log's own bytes. */
enum { MERGED_PUT = FIELD_SHOWN };
struct merged_line_page {
    int64_t source;
    uint64_t offset;
    bool cut;
    const char *text;
};
#define MERGED_LINE(member, ftype, ...)                                                            \
    FIELD_AT(merged_line_page, #member, ftype, member, __VA_ARGS__)
static const struct field merged_line_rows[] = {
    MERGED_LINE(source, FIELD_INT, .flags = MERGED_PUT),
    MERGED_LINE(offset, FIELD_COUNT, .flags = MERGED_PUT),
    MERGED_LINE(cut, FIELD_BOOL, .flags = MERGED_PUT),
    MERGED_LINE(text, FIELD_STR, .flags = FIELD_ALWAYS),
};
static const struct field_table merged_line_table =
    FIELD_TABLE(NULL, merged_line_rows, merged_line_page);

struct merged_page {
    const char *id;
    int attempt;
    struct field_list sources, lines; /* the lines go out one by one */
    int64_t left_out;
    bool more, ended;
    char *cursor; /* owned */
};
#define MERGED(member, ftype, ...) FIELD_AT(merged_page, #member, ftype, member, __VA_ARGS__)
static const struct field merged_rows[] = {
    MERGED(id, FIELD_STR, .flags = MERGED_PUT | FIELD_ALWAYS),
    MERGED(attempt, FIELD_INT32, .flags = MERGED_PUT),
    MERGED(sources, FIELD_LIST, .flags = MERGED_PUT, .of = &merged_source_table),
    MERGED(lines, FIELD_LIST, .of = &merged_line_table),
    MERGED(left_out, FIELD_INT, .flags = MERGED_PUT),
    MERGED(more, FIELD_BOOL, .flags = MERGED_PUT),
    MERGED(ended, FIELD_BOOL, .flags = MERGED_PUT),
    MERGED(cursor, FIELD_STR, .flags = MERGED_PUT | FIELD_ALWAYS),
};
static const struct field_table log_merged_table = FIELD_TABLE(NULL, merged_rows, merged_page);

/* "<attempt>~<places>"; once an attempt is over and told, the begin of the next one. Yours. */
static char *merged_cursor(const struct merging *g)
{
    bool is_told = !g->found.n_lines && !g->found.has_more;
    if (g->has_next && is_told && g->ask.places)
        return xasprintf("%d~", g->ask.attempt + 1);
    _cleanup_(freep) char *places = logmerge_places(&g->found);
    return xasprintf("%d~%s", g->ask.attempt, places);
}

static void merged_put_lines(const struct logmerge *m, struct jout *j)
{
    jout_open(j, "lines", '[');
    for (size_t i = 0; i < m->n_lines; i++) {
        const struct logmerge_line *l = &m->lines[i];
        const struct merged_line_page page = {
            .source = (int64_t)l->source, .offset = l->offset, .cut = l->is_cut};
        jout_open(j, NULL, '{');
        field_put_members(&merged_line_table, &page, MERGED_PUT, FIELD_PAGE, j);
        jout_strn(j, "text", l->text, l->n);
        jout_close(j, '}');
    }
    jout_close(j, ']');
}

static void merged_put(const struct merging *g, struct jout *j)
{
    const struct logmerge *m = &g->found;
    struct merged_source_page *sources = xcalloc(m->n_sources + 1, sizeof(*sources));
    const struct merged_page page = {
        .id = g->id,
        .attempt = g->ask.attempt,
        .sources = {.v = sources, .n = m->n_sources},
        .left_out = (int64_t)m->left_out,
        .more = m->has_more,
        .ended = g->is_ended && !m->has_more,
        .cursor = merged_cursor(g),
    };
    for (size_t i = 0; i < m->n_sources; i++) {
        const struct loglist_file *f = m->sources[i].file;
        sources[i] = (struct merged_source_page){.source = f ? loglist_source_to_string(f->source)
                                                             : "driver",
                                                 .file = f ? loglist_name(f) : NULL,
                                                 .node = f ? f->node : NULL,
                                                 .rank = f ? f->rank : -1,
                                                 .actor = f ? f->actor : NULL,
                                                 .skipped_bytes = m->sources[i].skipped};
    }
    jout_open(j, NULL, '{');
    field_put_members(&log_merged_table, &page, MERGED_PUT, FIELD_PAGE, j);
    merged_put_lines(m, j);
    jout_close(j, '}');
    for (size_t i = 0; i < m->n_sources; i++)
        freep(&sources[i].file);
    free(sources);
    free(page.cursor);
}

static void logmerged_answer(struct merging *g)
{
    struct buf out = BUF_INIT(MERGED_MAX);
    struct jout j = jout_begin(&out);
    http_req_on_close(g->req, NULL, NULL);
    if (g->result < 0) {
        g->err.code = ERR_UNAVAILABLE;
        api_fail(g->req, &g->err, 0);
    } else {
        merged_put(g, &j);
        http_reply_json(g->req, 200, &out, api_reader_barrier(g->a));
    }
    buf_release(&out);
}

static void logmerged_on_looked(void *arg)
{
    struct merging *g = arg;
    if (g->req)
        logmerged_answer(g);
    logmerge_release(&g->found);
    free(g->root);
    free(g->id);
    free(g->places);
    free(g);
}

/* ---- the request ---- */

struct merged_wish {
    int64_t k, tail;
    const char *places; /* in the request's cursor; NULL: a first look */
};

static int merged_read_cursor(struct http_req *req, struct merged_wish *ret, struct err *err)
{
    const char *cursor = http_req_query(req, "cursor");
    const char *tilde = cursor ? strchr(cursor, '~') : NULL;
    if (!cursor)
        return 0;
    _cleanup_(freep) char *k = tilde ? xstrndup(cursor, (size_t)(tilde - cursor)) : NULL;
    if (!k || !logmerge_are_places(tilde + 1) || str_to_int(k, 1, 1 << 20, &ret->k, NULL) < 0)
        return message_refuse(err, ERR_BAD_REQUEST, "bad_merged_cursor",
                              MESSAGE_ARGS(MESSAGE_STR("cursor", cursor)));
    ret->places = tilde + 1;
    return 0;
}

/* True when the driver's log is among them. */
static int merged_read_source(struct http_req *req, bool *ret_driver, struct err *err)
{
    const char *source = str_or(http_req_query(req, "source"), "all");
    *ret_driver = str_eq(source, "all");
    return *ret_driver || str_eq(source, "worker")
               ? 0
               : message_refuse(err, ERR_BAD_REQUEST, "log_not_merged",
                                MESSAGE_ARGS(MESSAGE_STR("source", source)));
}

static int merged_read(struct http_req *req,
                       const struct job *job,
                       struct merged_wish *wish,
                       bool *has_driver,
                       struct err *err)
{
    int r = http_req_query_int(req, "attempt", 1, 1 << 20, job->n_attempts, &wish->k, err);
    if (r == 0)
        r = http_req_query_int(req, "tail", 0, LOGMERGE_LINES_MAX, -1, &wish->tail, err);
    if (r < 0)
        return err->code = ERR_BAD_REQUEST;
    r = merged_read_cursor(req, wish, err);
    if (r == 0)
        r = merged_read_source(req, has_driver, err);
    return r == 0 ? api_check_attempt(job, wish->k, err) : r;
}

static void logmerged_begin(struct http_req *req,
                            struct api *a,
                            const struct job *job,
                            const struct record_extra *extra,
                            struct live *l)
{
    struct merged_wish wish = {0};
    struct err err = {0};
    bool has_driver = false;
    (void)extra;
    (void)l;
    if (!api_has_files(req, a, job))
        return;
    int r = merged_read(req, job, &wish, &has_driver, &err);
    if (r == 0)
        r = cluster_check_root_answers(a->cluster, &err);
    if (r < 0) {
        api_fail(req, &err, 0);
        return;
    }
    bool is_last = wish.k >= job->n_attempts, is_over = job_state_is_terminal(job->state);
    bool is_named = http_req_query(req, "attempt") != NULL;
    struct merging *g = xcalloc(1, sizeof(*g));
    *g = (struct merging){.req = req,
                          .a = a,
                          .root = xstrdup(a->settings->shared_root),
                          .id = xstrdup(job->id),
                          .places = wish.places ? xstrdup(wish.places) : NULL,
                          .has_next = !is_last && !is_named,
                          .is_ended = is_over && (is_last || is_named)};
    g->ask = (struct logmerge_ask){.root = g->root,
                                   .job = g->id,
                                   .attempt = wish.k ? (int)wish.k : 1,
                                   .has_driver = has_driver,
                                   .is_over = is_over || !is_last,
                                   .tail = wish.tail,
                                   .places = g->places};
    http_req_on_close(req, logmerged_on_gone, g);
    work_start_for(a->loop, http_req_principal(req)->user, logmerged_look, logmerged_on_looked, g);
}

static void api_jobs_logmerged(struct http_req *req, void *app)
{
    api_find_job(req, app, logmerged_begin);
}

static const struct http_param logmerged_params[] = {
    {"attempt", HTTP_PARAM_INTEGER,
     "which attempt; the newest if not given, and then those that follow as well"},
    {"source", HTTP_PARAM_STRING,
     "all: the driver's log and those of workers, without the lines of these that Ray repeats in the "
     "driver's; worker: of workers alone; all if not given"},
    {"tail", HTTP_PARAM_INTEGER, "without a cursor: the last so many lines, up to 2000"},
    {"cursor", HTTP_PARAM_STRING,
     "cursor of the answer before: what came since then; at once while that says more"},
    {0}};

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/jobs/{id}/logs/merged",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_jobs_logmerged,
     .summary = "the newest lines of the driver and of all workers, with the log that each is of, "
                "by the times that the lines begin with",
     .params = logmerged_params,
     .reply_schema = "LogMerged"},
};
static const struct http_schema schemas[] = {
    {.name = "LogMerged", .table = &log_merged_table},
};
const struct api_part part_logmerged = {rows, array_len(rows), schemas, array_len(schemas)};
