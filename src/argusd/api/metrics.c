/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.c - GET /metrics: argusd, its jobs and its machines, for Prometheus, and GET
 * /v1/prometheus/targets: where Ray's own pages are, for its HTTP service discovery.
 *
 * Ids that change (a start of Ray on a node) stand in `_info` series alone. A list of targets that
 * is not whole yet is 503: Prometheus then keeps the last one, and drops what a shorter one lacks.
 */
#include <dirent.h>
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

enum { PAGE_MAX = 8 << 20, STAT_MAX = 1024 };

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

static void api_metrics(struct http_req *req, void *app)
{
    struct api *a = app;
    struct buf out = BUF_INIT(PAGE_MAX);
    struct expo e = {.out = &out, .prefix = a->settings->prefix};
    struct access_who who;
    expo_family(&e, EXPO_GAUGE, "build_info", "1; the version of argusd.");
    EXPO_PUT(&e, 1, {"version", ARGUS_VERSION}, {"commit", ARGUS_COMMIT},
             {"cluster", a->settings->cluster});
    put_process(&out, a);
    expo_one(&e, EXPO_COUNTER, "jobs_submitted_total", "Jobs that were ever submitted.",
             (double)idset_count(a->used));
    jobs_put_metrics(a->jobs, &e);
    put_nodes(&e, a);
    put_cluster(&e, a);
    http_metrics(a->http, &e);
    proxy_metrics(a->proxy, &e);
    tails_put_metrics(a->tails, &e);
    people_who(a->people, http_req_principal(req), &who);
    a->put_metrics(a, &who, &e);
    if (out.failed) {
        struct err err = {0};
        (void)message_refuse(
            &err, ERR_INTERNAL, "metrics_page_large",
            MESSAGE_ARGS(MESSAGE_NUM("most", PAGE_MAX >> 20))); /* only fills err */
        api_fail(req, &err, 0);
    } else {
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
    struct buf out = BUF_INIT(PAGE_MAX);
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
