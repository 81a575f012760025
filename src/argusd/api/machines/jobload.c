/* SPDX-License-Identifier: Apache-2.0 */
/* jobload.c - GET /v1/jobs/{id}/load: what a running job takes of its nodes now, and what these
 * nodes do.
 *
 * Cores and memory are the job's own, added up by the scout of each node (core/figure/host_load.h).
 * Nobody counts network and disk by process: they are the node's, and `alone` says whether the job
 * is the only one there. A job that does not run takes nothing, and has no rows. */
#include <math.h>
#include <stdlib.h>

#include "argusd/figures/figures.h"
#include "argusd/ground/work.h"
#include "argusd/kit/api.h"
#include "argusd/kit/part.h"
#include "base/str.h"
#include "core/figure/host_load.h"
#include "core/sched/sched.h"
#include "fsroot/attempt/gpufiles.h"

enum { NODES_MAX = 512, LOAD_BYTES_MAX = 1 << 20 };
/* Scouts write each 15 s; a load that is older than this is not what is now. The clocks of the two
 * machines may differ by as much as nodes.max_skew lets them. */
static const usec_t LOAD_FRESH = 2 * USEC_MIN;

struct jobnode {
    char *node; /* owned */
    bool is_alone;
    struct host_load load;
    double of_node[FIGURE_NODE_FIGURES]; /* NaN: not told */
};
#define NODE(key, ftype, member, ...) FIELD_AT(jobnode, key, ftype, member, __VA_ARGS__)
/* The rows of FIGURE_TABLE that are a node's: its column says `false` of them. */
#define OF_NODE_true(name, word)
#define OF_NODE_false(name, word)                                                                  \
    NODE(word, FIELD_REAL, of_node[FIGURE_##name], .flags = FIELD_MAYBE, .doc = "of the node"),
#define X(name, word, step, gpu) OF_NODE_##gpu(name, word)
static const struct field jobnode_rows[] = {
    NODE("node", FIELD_STR, node, .flags = FIELD_ALWAYS),
    NODE("alone",
         FIELD_BOOL,
         is_alone,
         .doc = "no other job of Argus has a lease there: what the node does, this job does"),
    NODE("job_processes", FIELD_REAL, load.processes, .flags = FIELD_NO_LIMIT),
    NODE("job_cpu_cores",
         FIELD_REAL,
         load.cpu_cores,
         .flags = FIELD_NO_LIMIT,
         .doc = "that the job's processes there kept busy in the last 15 s"),
    NODE("job_mem_bytes",
         FIELD_REAL,
         load.mem_bytes,
         .flags = FIELD_NO_LIMIT,
         .doc = "resident in its processes there, without what they share: Ray's objects, files"),
    FIGURE_TABLE(X)};
#undef X
static const struct field_table jobnode_table = FIELD_TABLE("JobNodeLoad", jobnode_rows, jobnode);

struct jobload_page {
    const char *id;
    double cpu_cores, mem_bytes;
    struct field_list nodes;
};
#define PAGE(key, ftype, member, ...) FIELD_AT(jobload_page, key, ftype, member, __VA_ARGS__)
static const struct field jobload_rows[] = {
    PAGE("id", FIELD_STR, id, .flags = FIELD_ALWAYS),
    PAGE("job_cpu_cores",
         FIELD_REAL,
         cpu_cores,
         .flags = FIELD_NO_LIMIT,
         .doc = "on all its nodes; null while one of them tells nothing, and beyond 512 nodes"),
    PAGE("job_mem_bytes", FIELD_REAL, mem_bytes, .flags = FIELD_NO_LIMIT, .doc = "the same"),
    PAGE("nodes", FIELD_LIST, nodes, .of = &jobnode_table),
};
static const struct field_table jobload_table = FIELD_TABLE("JobLoad", jobload_rows, jobload_page);

struct jobload_asked {
    struct http_req *req; /* NULL: gone */
    struct api *a;
    char *id, *root;
    int attempt;
    struct jobnode *v;
    size_t n;
    bool is_cut; /* it has more nodes: no sum is of all */
};

static void jobload_free(struct jobload_asked *k)
{
    for (size_t i = 0; i < k->n; i++)
        free(k->v[i].node);
    free(k->v);
    free(k->id);
    free(k->root);
    free(k);
}

/* ---- in the worker ---- */

static void jobload_read(void *arg)
{
    struct jobload_asked *k = arg;
    for (size_t i = 0; i < k->n; i++) {
        struct buf text = BUF_INIT(HOST_LOAD_MAX_BYTES);
        if (fsroot_load_read(k->root, k->id, k->attempt, k->v[i].node, &text, NULL) == 0)
            (void)!host_load_read(buf_str(&text), text.len, &k->v[i].load); /* else as it was */
        buf_release(&text);
    }
}

/* ---- on the loop ---- */

static void jobload_on_gone(struct http_req *req, void *arg)
{
    struct jobload_asked *k = arg;
    (void)req;
    k->req = NULL;
}

static void jobload_add(double *sum, double v)
{
    *sum = *sum < 0 || v < 0 ? -1 : *sum + v;
}

static void jobload_answer(struct jobload_asked *k)
{
    struct jobload_page page = {.id = k->id, .nodes = {.v = k->v, .n = k->n}};
    struct buf body = BUF_INIT(LOAD_BYTES_MAX);
    struct jout j = jout_begin(&body);
    usec_t now = clock_wall();
    if (!k->n || k->is_cut)
        page.cpu_cores = page.mem_bytes = -1;
    for (size_t i = 0; i < k->n; i++) {
        struct jobnode *h = &k->v[i];
        if (h->load.at + LOAD_FRESH < now || h->load.at > now + LOAD_FRESH)
            host_load_init(&h->load);
        jobload_add(&page.cpu_cores, h->load.cpu_cores);
        jobload_add(&page.mem_bytes, h->load.mem_bytes);
        for (int f = 0; f < FIGURE_NODE_FIGURES; f++)
            h->of_node[f] = figures_now(k->a->figures, h->node, (enum figure)f, -1);
    }
    field_to_json(&jobload_table, &page, FIELD_ALL, FIELD_PAGE, &j, NULL);
    http_reply_json(k->req, 200, &body, api_reader_barrier(k->a));
    buf_release(&body);
}

static void jobload_on_read(void *arg)
{
    struct jobload_asked *k = arg;
    if (k->req) {
        http_req_on_close(k->req, NULL, NULL);
        jobload_answer(k);
    }
    jobload_free(k);
}

static bool jobload_is_alone(const struct api *a, const char *job, const char *node)
{
    const char *id;
    for (size_t i = 0; (id = sched_node_lease(jobs_sched(a->jobs), node, i)); i++)
        if (!str_eq(id, job))
            return false;
    return true;
}

static void jobload_fill(struct jobload_asked *k, const struct gang *gang)
{
    size_t n = gang->n < NODES_MAX ? gang->n : NODES_MAX;
    k->v = xcalloc(n + 1, sizeof(*k->v));
    k->is_cut = gang->n > n;
    for (; k->n < n; k->n++) {
        struct jobnode *h = &k->v[k->n];
        h->node = xstrdup(gang->v[k->n].name);
        h->is_alone = jobload_is_alone(k->a, k->id, h->node);
        host_load_init(&h->load);
    }
}

static void jobload_of_job(struct http_req *req,
                           struct api *a,
                           const struct job *job,
                           const struct record_extra *extra,
                           struct live *l)
{
    struct jobload_asked *k = xcalloc(1, sizeof(*k));
    (void)extra;
    *k = (struct jobload_asked){.req = req,
                                .a = a,
                                .id = xstrdup(job->id),
                                .root = xstrdup(a->settings->shared_root),
                                .attempt = job->n_attempts};
    if (l && job->state == JOB_RUNNING)
        jobload_fill(k, &job->gang);
    if (k->n && cluster_root_is_ok(a->cluster)) {
        http_req_on_close(req, jobload_on_gone, k);
        work_start_for(a->loop, http_req_principal(req)->user, jobload_read, jobload_on_read, k);
        return;
    }
    jobload_answer(k); /* a root that is away tells of no process; the figures are in memory */
    jobload_free(k);
}

static void api_jobs_load(struct http_req *req, void *app)
{
    api_find_job(req, app, jobload_of_job);
}

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/jobs/{id}/load",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_jobs_load,
     .summary = "what a running job takes of its nodes now, and what these do",
     .reply_schema = "JobLoad"},
};
static const struct http_schema schemas[] = {
    {.name = "JobLoad", .table = &jobload_table},
    {.name = "JobNodeLoad", .table = &jobnode_table},
};
const struct api_part part_jobload = {rows, array_len(rows), schemas, array_len(schemas)};
