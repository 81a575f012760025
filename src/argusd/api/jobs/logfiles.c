/* SPDX-License-Identifier: Apache-2.0 */
/* logfiles.c - GET /v1/jobs/{id}/logs/files: the logs of an attempt beside the driver's, each
 * by the name that GET /v1/jobs/{id}/logs takes as `file`. They are looked for in the worker pool:
 * a shared root may be slow. */
#include <stdlib.h>
#include <string.h>

#include "argusd/ground/work.h"
#include "argusd/kit/api.h"
#include "argusd/kit/part.h"
#include "base/message.h"
#include "base/str.h"
#include "fsroot/logs/loglist.h"

enum { ANSWER_MAX = 16 << 20 };

struct looking {
    struct http_req *req; /* NULL: the client has gone */
    struct api *a;
    char *root, *id, *node;
    int k;
    bool wants[LOGLIST_SOURCES];
    struct loglist found;
    int result;
    struct err err;
};

static void logfiles_on_gone(struct http_req *req, void *arg)
{
    struct looking *g = arg;
    (void)req;
    g->req = NULL; /* freed when the worker is done */
}

static void logfiles_look(void *arg)
{
    struct looking *g = arg;
    for (int s = 0; s < LOGLIST_SOURCES && g->result == 0; s++)
        if (g->wants[s])
            g->result = loglist_read(g->root, g->id, g->k, (enum loglist_source)s, g->node,
                                     &g->found, &g->err);
}

struct logfile_page {
    struct loglist_file f;
    const char *source;
    char *file; /* owned */
};
#define FILE_AT(key, ftype, member, ...) FIELD_AT(logfile_page, key, ftype, member, __VA_ARGS__)
static const struct field logfile_rows[] = {
    FILE_AT("source",
            FIELD_STR,
            source,
            .flags = FIELD_ALWAYS,
            .schema = WORDS("\"worker\",\"scene\"")),
    FILE_AT("file", FIELD_STR, file, .flags = FIELD_ALWAYS),
    FILE_AT("node", FIELD_STR, f.node, .flags = FIELD_ALWAYS),
    FILE_AT("name", FIELD_STR, f.name, .flags = FIELD_ALWAYS),
    FILE_AT("rank", FIELD_INT, f.rank, .flags = FIELD_NO_LIMIT),
    FILE_AT("actor", FIELD_STR, f.actor),
    FILE_AT("pid", FIELD_INT, f.pid, .flags = FIELD_NO_LIMIT),
    FILE_AT("bytes", FIELD_COUNT, f.bytes),
};
#undef FILE_AT
static const struct field_table logfile_table = FIELD_TABLE(NULL, logfile_rows, logfile_page);

struct logfiles_page {
    const char *id;
    int attempt;
    bool is_cut;
    struct field_list files;
};
static const struct field logfiles_rows[] = {
    FIELD_AT(logfiles_page, "id", FIELD_STR, id, .flags = FIELD_ALWAYS),
    FIELD_AT(logfiles_page, "attempt", FIELD_INT32, attempt),
    FIELD_AT(logfiles_page, "files", FIELD_LIST, files, .of = &logfile_table),
    FIELD_AT(logfiles_page, "cut", FIELD_BOOL, is_cut),
};
static const struct field_table logfiles_table =
    FIELD_TABLE("LogFiles", logfiles_rows, logfiles_page);

static void logfiles_put(const struct looking *g, struct jout *j)
{
    struct logfile_page *files = xcalloc(g->found.n + 1, sizeof(*files));
    const struct logfiles_page page = {.id = g->id,
                                       .attempt = g->k,
                                       .is_cut = g->found.is_cut,
                                       .files = {.v = files, .n = g->found.n}};
    for (size_t i = 0; i < g->found.n; i++)
        files[i] = (struct logfile_page){.f = g->found.v[i],
                                         .source = loglist_source_to_string(g->found.v[i].source),
                                         .file = loglist_name(&g->found.v[i])};
    field_to_json(&logfiles_table, &page, FIELD_ALL, FIELD_PAGE, j, NULL);
    for (size_t i = 0; i < g->found.n; i++)
        freep(&files[i].file);
    free(files);
}

static void logfiles_answer(struct looking *g)
{
    struct buf out = BUF_INIT(ANSWER_MAX);
    struct jout j = jout_begin(&out);
    http_req_on_close(g->req, NULL, NULL);
    if (g->result < 0) {
        g->err.code = ERR_UNAVAILABLE;
        api_fail(g->req, &g->err, 0);
    } else {
        logfiles_put(g, &j);
        http_reply_json(g->req, 200, &out, api_reader_barrier(g->a));
    }
    buf_release(&out);
}

static void logfiles_on_looked(void *arg)
{
    struct looking *g = arg;
    if (g->req)
        logfiles_answer(g);
    loglist_release(&g->found);
    free(g->root);
    free(g->id);
    free(g->node);
    free(g);
}

/* Which of them; all that there are when none is named. */
static int logfiles_read_source(struct http_req *req, bool *wants, struct err *err)
{
    enum loglist_source s = LOGLIST_WORKER;
    const char *source = http_req_query(req, "source");
    if (source && loglist_source_from_string(source, &s) < 0)
        return message_refuse(err, ERR_BAD_REQUEST, "log_no_list",
                              MESSAGE_ARGS(MESSAGE_STR("source", source)));
    for (int i = 0; i < LOGLIST_SOURCES; i++)
        wants[i] = !source || i == (int)s;
    return 0;
}

static void logfiles_list(struct http_req *req,
                          struct api *a,
                          const struct job *job,
                          const struct record_extra *extra,
                          struct live *l)
{
    bool wants[LOGLIST_SOURCES] = {0};
    int64_t k = 0;
    struct err err = {0};
    const char *node = http_req_query(req, "node");
    (void)extra;
    (void)l;
    if (!api_has_files(req, a, job))
        return;
    int r = http_req_query_int(req, "attempt", 1, 1 << 20, job->n_attempts, &k, &err);
    if (r < 0)
        r = err.code = ERR_BAD_REQUEST;
    if (r == 0)
        r = logfiles_read_source(req, wants, &err);
    if (r == 0)
        r = api_check_attempt(job, k, &err);
    if (r == 0)
        r = cluster_check_root_answers(a->cluster, &err);
    if (r < 0) {
        api_fail(req, &err, 0);
        return;
    }
    struct looking *g = xcalloc(1, sizeof(*g));
    *g = (struct looking){.req = req,
                          .a = a,
                          .root = xstrdup(a->settings->shared_root),
                          .id = xstrdup(job->id),
                          .node = node ? xstrdup(node) : NULL,
                          .k = k ? (int)k : 1};
    memcpy(g->wants, wants, sizeof(wants));
    http_req_on_close(req, logfiles_on_gone, g);
    work_start_for(a->loop, http_req_principal(req)->user, logfiles_look, logfiles_on_looked, g);
}

static void api_jobs_logfiles(struct http_req *req, void *app)
{
    api_find_job(req, app, logfiles_list);
}

static const struct http_param logfile_params[] = {
    {"attempt", HTTP_PARAM_INTEGER, "which attempt; the newest if not given"},
    {"source", HTTP_PARAM_STRING, "worker or scene; both if not given"},
    {"node", HTTP_PARAM_STRING, "only of this node"},
    {0}};

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/jobs/{id}/logs/files",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_jobs_logfiles,
     .summary = "what its workers printed and what was gathered at its failure, file by file",
     .params = logfile_params,
     .reply_schema = "LogFiles"},
};
static const struct http_schema schemas[] = {
    {.name = "LogFiles", .table = &logfiles_table},
};
const struct api_part part_logfiles = {rows, array_len(rows), schemas, array_len(schemas)};
