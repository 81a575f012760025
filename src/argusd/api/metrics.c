/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.c - GET /metrics: argusd, its jobs and its machines, for Prometheus, and GET
 * /v1/prometheus/targets: where Ray's own pages are, for its HTTP service discovery.
 *
 * Ids that change (a job, a start of Ray on a node) stand in `_info` series alone. A list of
 * targets that is not whole yet is 503: Prometheus then keeps the last one, and drops what a
 * shorter one lacks.
 */
#include "argusd/api/metrics.h"

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "argusd/figures/figures.h"
#include "argusd/kit/api.h"
#include "argusd/kit/part.h"
#include "argusd/logs/tails.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "base/version.h"
#include "http/expo.h"
#include "http/proxy/proxy.h"

enum { STAT_MAX = 1024 };

/* ---- the process ---- */

static double resident_bytes(void)
{
    char text[STAT_MAX] = "";
    FILE *f = fopen("/proc/self/statm", "re");
    const char *space = f && fgets(text, sizeof(text), f) ? strchr(text, ' ') : NULL;
    if (f)
        (void)fclose(f); /* it was only read */
    return space ? strtod(space, NULL) * (double)sysconf(_SC_PAGESIZE) : 0;
}

static double open_descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    double n = 0;
    for (const struct dirent *e; d && (e = readdir(d));)
        n += *e->d_name != '.';
    if (d)
        (void)closedir(d);    /* it was only read */
    return n > 0 ? n - 1 : 0; /* this one */
}

static double cpu_seconds(void)
{
    struct rusage u;
    (void)getrusage(RUSAGE_SELF, &u); /* cannot fail */
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

/* Prometheus' own names, which have no prefix. */
static void put_process(struct buf *out, const struct api *a)
{
    struct expo e = {.out = out, .prefix = ""};
    struct rlimit most = {0};
    (void)getrlimit(RLIMIT_NOFILE, &most); /* cannot fail */
    expo_one(&e, EXPO_COUNTER, "process_cpu_seconds_total", "CPU time of argusd.", cpu_seconds());
    expo_one(&e, EXPO_GAUGE, "process_resident_memory_bytes", "Memory of argusd.",
             resident_bytes());
    expo_one(&e, EXPO_GAUGE, "process_open_fds", "Open descriptors.", open_descriptors());
    expo_one(&e, EXPO_GAUGE, "process_max_fds", "Descriptors that may be open.",
             (double)most.rlim_cur);
    expo_one(&e, EXPO_GAUGE, "process_start_time_seconds", "Unix time at which argusd started.",
             (double)a->started_at / 1e6);
}

/* ---- the GPUs of live jobs ---- */

/* What a job does with the GPUs it holds now. NaN: not told lately. */
struct lane_gpus {
    double gpus, use, mem_used, mem_fullest;
};

/* Memory of all GPUs of a lease together, and the share of the fullest one. A GPU of which nothing
 * is told adds nothing. */
static void lane_read_memory(const struct figures *fs,
                             const struct gang_node *node,
                             struct lane_gpus *ret)
{
    for (int gpu = 0; gpu < GANG_GPUS_MAX; gpu++) {
        if (!(node->gpus >> gpu & 1))
            continue;
        double used = figures_now(fs, node->name, FIGURE_GPU_MEM_USED, gpu);
        double total = figures_now(fs, node->name, FIGURE_GPU_MEM_TOTAL, gpu);
        if (!isnan(used))
            ret->mem_used = isnan(ret->mem_used) ? used : ret->mem_used + used;
        if (total > 0) /* fmax() leaves out what is not told */
            ret->mem_fullest = fmax(ret->mem_fullest, used / total);
    }
}

static struct lane_gpus lane_read(const struct figures *fs, const struct job *j)
{
    const double none = (double)NAN;
    struct lane_gpus made = {
        .gpus = j->gang.n ? demand_gpus(&j->demand) : 0,
        .use = figures_gang_use(fs, j->id, &j->gang, FIGURES_FRESH).last,
        .mem_used = none,
        .mem_fullest = none,
    };
    for (size_t i = 0; i < j->gang.n; i++)
        lane_read_memory(fs, &j->gang.v[i], &made);
    return made;
}

/* One family: the same member of each lane that has it. */
static void put_lane_figure(struct expo *e, const struct lane_gpus *of, size_t lanes, size_t member)
{
    char number[24];
    for (size_t i = 0; i < lanes; i++) {
        double value;
        memcpy(&value, (const char *)&of[i] + member, sizeof(value));
        text_printf(number, "%zu", i + 1);
        if (of[i].gpus > 0 && !isnan(value))
            EXPO_PUT(e, value, {"lane", number});
    }
}

/* By lane, as the goodput is (jobs/lanes.h): job_lane_info says which job that is. */
static void put_lanes_gpus(struct expo *e, const struct api *a)
{
    static const struct {
        const char *name, *help;
        size_t member;
    } families[] = {
        {"job_gpus", "GPUs that a live job holds.", offsetof(struct lane_gpus, gpus)},
        {"job_gpu_use_ratio",
         "Mean use of the GPUs of a live job, its own part of those that it shares.",
         offsetof(struct lane_gpus, use)},
        {"job_gpu_memory_used_bytes",
         "Memory in use on all GPUs of a live job together, by whichever job.",
         offsetof(struct lane_gpus, mem_used)},
        {"job_gpu_memory_fullest_ratio",
         "Memory in use on the fullest GPU of a live job, as a share of what that GPU has.",
         offsetof(struct lane_gpus, mem_fullest)},
    };
    size_t lanes = 0;
    const struct live *l;
    for (size_t pos = 0; jobs_next_lane(a->jobs, &pos);)
        lanes = pos;
    struct lane_gpus *of = xcalloc(lanes + 1, sizeof(*of));
    for (size_t pos = 0; (l = jobs_next_lane(a->jobs, &pos));)
        of[pos - 1] = lane_read(a->figures, l->job);
    for (size_t i = 0; i < array_len(families); i++) {
        expo_family(e, EXPO_GAUGE, families[i].name, families[i].help);
        put_lane_figure(e, of, lanes, families[i].member);
    }
    free(of);
}

/* ---- machines ---- */

static void put_node_gpus(struct expo *e, const struct api *a, const struct cluster_node *n)
{
    double leased, cpus, foreign = nodes_foreign(a->nodes, n);
    sched_node_used(jobs_sched(a->jobs), n->name, &leased, &cpus);
    double rest = n->gpus - leased - foreign;
    EXPO_PUT(e, leased, {"node", n->name}, {"use", "leased"});
    EXPO_PUT(e, foreign, {"node", n->name}, {"use", "foreign"});
    EXPO_PUT(e, rest > 0 ? rest : 0, {"node", n->name}, {"use", "not_leased"});
}

static void put_nodes(struct expo *e, const struct api *a)
{
    size_t n;
    const struct cluster_node *v = cluster_nodes(a->cluster, &n);
    expo_family(e, EXPO_GAUGE, "node_gpus", "GPUs of a machine that Ray lists as alive, by use.");
    for (size_t i = 0; i < n; i++)
        if (v[i].is_alive && !v[i].is_head)
            put_node_gpus(e, a, &v[i]);
    expo_family(e, EXPO_GAUGE, "node_online", "1 while Ray lists the machine as alive.");
    for (size_t i = 0; i < n; i++)
        if (cluster_find_name(a->cluster, v[i].name) == &v[i]) /* of each name the newest start */
            EXPO_PUT(e, v[i].is_alive, {"node", v[i].name});
    expo_family(e, EXPO_GAUGE, "node_info", "1; what joins the names of a machine.");
    for (size_t i = 0; i < n; i++)
        if (v[i].is_alive)
            EXPO_PUT(e, 1, {"node", v[i].name}, {"ray_node_id", v[i].node_id}, {"address", v[i].ip},
                     {"pool", v[i].pool});
    nodes_put_metrics(a->nodes, e);
    figures_put_metrics(a->figures, e);
}

static void put_cluster(struct expo *e, const struct api *a)
{
    expo_one(e, EXPO_GAUGE, "ray_up", "1 while Ray answers.", cluster_is_up(a->cluster));
    expo_one(e, EXPO_GAUGE, "shared_root_ok", "1 while the shared root can be used.",
             cluster_root_is_ok(a->cluster));
    expo_one(e, EXPO_GAUGE, "shared_root_free_bytes", "Free bytes on the shared root.",
             (double)cluster_root_free_bytes(a->cluster));
    expo_one(e, EXPO_GAUGE, "store_failing", "1 while the store cannot write.",
             store_is_failing(a->store));
}

void metrics_page(const struct api *a, const struct access_who *who, struct buf *out)
{
    struct expo e = {.out = out, .prefix = a->settings->prefix};
    expo_family(&e, EXPO_GAUGE, "build_info", "1; the version of argusd.");
    EXPO_PUT(&e, 1, {"version", ARGUS_VERSION}, {"commit", ARGUS_COMMIT},
             {"cluster", a->settings->cluster});
    put_process(out, a);
    expo_one(&e, EXPO_COUNTER, "jobs_submitted_total", "Jobs that were ever submitted.",
             (double)idset_count(a->used));
    jobs_put_metrics(a->jobs, who, &e);
    put_lanes_gpus(&e, a);
    put_nodes(&e, a);
    put_cluster(&e, a);
    http_metrics(a->http, &e);
    proxy_metrics(a->proxy, &e);
    tails_put_metrics(a->tails, &e);
    a->put_metrics(a, who, &e);
}

static void api_metrics(struct http_req *req, void *app)
{
    struct api *a = app;
    struct buf out = BUF_INIT(METRICS_PAGE_MAX);
    struct access_who who;
    people_who(a->people, http_req_principal(req), &who);
    metrics_page(a, &who, &out);
    if (out.failed) {
        struct err err = {0};
        (void)message_refuse(
            &err, ERR_INTERNAL, "metrics_page_large",
            MESSAGE_ARGS(MESSAGE_NUM("most", METRICS_PAGE_MAX >> 20))); /* only fills err */
        api_fail(req, &err, 0);
    } else {
        a->metrics_takers.read_at = clock_wall();
        http_reply(req, 200, "text/plain; version=0.0.4; charset=utf-8", &out, 0);
    }
    buf_release(&out);
}

/* ---- targets ---- */

struct target_page {
    struct strv targets; /* borrowed */
    const char *cluster, *node, *pool, *kind;
};
#define LABEL(member, how)                                                                         \
    FIELD_AT(target_page, "labels." #member, FIELD_STR, member, .flags = (how))
static const struct field target_rows[] = {
    FIELD_AT(target_page, "targets", FIELD_STRV, targets),
    LABEL(cluster, FIELD_ALWAYS),
    LABEL(node, FIELD_ALWAYS),
    LABEL(pool, FIELD_OMIT), /* an empty label would be none */
    LABEL(kind, FIELD_ALWAYS),
};
static const struct field_table target_table = FIELD_TABLE(NULL, target_rows, target_page);

static void put_target(struct jout *j,
                       const struct api *a,
                       const struct cluster_node *n,
                       int port,
                       const char *kind)
{
    _cleanup_(freep) char *address = str_with_port(n->ip, port);
    char *targets[] = {address};
    const struct target_page page = {.targets = {.v = targets, .n = 1},
                                     .cluster = a->settings->cluster,
                                     .node = n->name,
                                     .pool = n->pool && *n->pool ? n->pool : NULL,
                                     .kind = kind};
    field_to_json(&target_table, &page, FIELD_ALL, FIELD_PAGE, j, NULL);
}

/* False: nobody knows yet where its pages are. */
static bool put_targets(struct jout *j, const struct api *a, const struct cluster_node *n)
{
    const char *why, *at = figures_address(a->figures, n->name);
    if (at && (!*at || !str_eq(at, n->ip)))
        return true; /* Prometheus is sent nowhere where argusd itself does not ask */
    int ray = figures_port(a->figures, n->name), gpus = figures_exporter(a->figures, n->name, &why);
    if (ray > 0)
        put_target(j, a, n, ray, "ray");
    if (gpus > 0)
        put_target(j, a, n, gpus, "exporter");
    return ray >= 0;
}

static void api_targets(struct http_req *req, void *app)
{
    struct api *a = app;
    struct buf out = BUF_INIT(METRICS_PAGE_MAX);
    struct jout j = jout_begin(&out);
    size_t n;
    const struct cluster_node *v = cluster_nodes(a->cluster, &n);
    bool whole = cluster_is_up(a->cluster) && n > 0;
    jout_open(&j, NULL, '[');
    for (size_t i = 0; whole && i < n; i++)
        if (v[i].is_alive)
            whole = put_targets(&j, a, &v[i]);
    jout_close(&j, ']');
    if (whole) {
        http_reply_json(req, 200, &out, 0);
    } else {
        struct err err = {0};
        (void)message_refuse(&err, ERR_UNAVAILABLE, "metrics_not_told",
                             MESSAGE_NO_ARGS); /* only fills err */
        api_fail(req, &err, 0);
    }
    buf_release(&out);
}

static const struct http_route routes[] = {
    {.method = "GET",
     .pattern = "/metrics",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_metrics,
     .summary = "Prometheus metrics",
     .reply_type = "text/plain"},
    {.method = "GET",
     .pattern = "/v1/prometheus/targets",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_targets,
     .summary =
         "where the machines' own metrics are, for Prometheus' HTTP service discovery; 503 until all have told",
     .reply_schema = "Targets"},
};

static const struct http_schema schemas[] = {
    {.name = "Target", .table = &target_table},
    {.name = "Targets", .json = LIST(REF("Target"))},
};

const struct api_part part_metrics = {routes, array_len(routes), schemas, array_len(schemas)};
