/* SPDX-License-Identifier: Apache-2.0 */
/* logfiles.c - GET /v1/jobs/{id}/logs/files: the logs of an attempt beside the driver's, each
 * by the name that GET /v1/jobs/{id}/logs takes as `file`. They are looked for in the worker pool:
 * a shared root may be slow. */
#include <stdlib.h>
#include <string.h>

#include "argusd/api/handlers.h"
#include "argusd/ground/work.h"
#include "base/str.h"
#include "fsroot/loglist.h"

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

static void put_number(struct jout *j, const char *key, int64_t n)
{
    if (n < 0)
        jout_null(j, key);
    else
        jout_int(j, key, n);
}

static void put_file(struct jout *j, const struct loglist_file *f)
{
    _cleanup_(freep) char *file = loglist_name(f);
    jout_open(j, NULL, '{');
    jout_str(j, "source", loglist_source_to_string(f->source));
    jout_str(j, "file", file);
    jout_str(j, "node", f->node);
    jout_str(j, "name", f->name);
    put_number(j, "rank", f->rank);
    jout_str(j, "actor", f->actor);
    put_number(j, "pid", f->pid);
    jout_int(j, "bytes", (int64_t)(f->bytes & INT64_MAX));
    jout_close(j, '}');
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
        jout_open(&j, NULL, '{');
        jout_str(&j, "id", g->id);
        jout_int(&j, "attempt", g->k);
        jout_open(&j, "files", '[');
        for (size_t i = 0; i < g->found.n; i++)
            put_file(&j, &g->found.v[i]);
        jout_close(&j, ']');
        jout_bool(&j, "cut", g->found.is_cut);
        jout_close(&j, '}');
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
        return err_set(err, ERR_BAD_REQUEST, "source '%.40s' has no list: worker or scene", source);
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
    int r = http_req_query_int(req, "attempt", 1, 1 << 20, job->n_attempts, &k, &err);
    if (r < 0)
        r = err.code = ERR_BAD_REQUEST;
    if (r == 0)
        r = logfiles_read_source(req, wants, &err);
    if (r == 0 && k > job->n_attempts && job->n_attempts)
        r = err_set(&err, ERR_NOT_FOUND, "job '%s' has %d attempts", job->id, job->n_attempts);
    if (r == 0 && cluster_root_hangs(a->cluster))
        r = err_set(&err, ERR_UNAVAILABLE, "the shared root does not answer: no log can be read");
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
    work_start(a->loop, logfiles_look, logfiles_on_looked, g);
}

void api_jobs_logfiles(struct http_req *req, void *app)
{
    api_find_job(req, app, logfiles_list);
}
