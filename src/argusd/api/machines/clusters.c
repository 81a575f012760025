/* SPDX-License-Identifier: Apache-2.0 */
/* clusters.c - the cluster as a page, taken up and down. Ray's own view of it is rayside.c. */
#include "argusd/api/machines/clusters.h"

#include <string.h>

#include "argusd/kit/part.h"
#include "argusd/kit/saying.h"
#include "base/json.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

bool api_is_our_cluster(struct http_req *req, const struct api *a)
{
    const char *name = http_req_param(req, "cluster");
    struct err err = {0};
    if (!strcmp(name, a->settings->cluster))
        return true;
    (void)message_refuse(
        &err, ERR_NOT_FOUND, "no_such_cluster",
        MESSAGE_ARGS(MESSAGE_STR("cluster", name), MESSAGE_STR("ours", a->settings->cluster)));
    api_fail(req, &err, 0);
    return false;
}

/* Texts are borrowed for one answer. */
struct cluster_page {
    const char *name, *address, *ray_version, *head_ip, *shared_root;
    bool up;
    struct {
        bool managed;
        const char *host, *state, *ip;
    } head;
    int64_t nodes, registered, online;
    double gpus;
    struct said reason;
    const char *fix;
};

#define ROW(key, ftype, member, ...)                                                               \
    {                                                                                              \
        .name = key, .type = ftype, .offset = offsetof(struct cluster_page, member), __VA_ARGS__   \
    }
static const struct field cluster_rows[] = {
    ROW("name", FIELD_STR, name, .flags = FIELD_ALWAYS),
    ROW("address", FIELD_STR, address, .flags = FIELD_ALWAYS),
    ROW("up", FIELD_BOOL, up),
    ROW("ray_version", FIELD_STR, ray_version),
    ROW("head_ip", FIELD_STR, head_ip),
    ROW("head.managed", FIELD_BOOL, head.managed),
    ROW("head.host", FIELD_STR, head.host),
    ROW("head.state", FIELD_STR, head.state, .flags = FIELD_ALWAYS),
    ROW("head.ip", FIELD_STR, head.ip),
    ROW("nodes", FIELD_INT, nodes),
    ROW("registered", FIELD_INT, registered),
    ROW("online", FIELD_INT, online),
    ROW("gpus", FIELD_REAL, gpus),
    ROW("shared_root", FIELD_STR, shared_root, .flags = FIELD_ALWAYS),
    ROW("reason.code", FIELD_STR, reason.code, .flags = FIELD_ALWAYS),
    ROW("reason.text", FIELD_STR, reason.text, .flags = FIELD_ALWAYS),
    ROW("reason.fix", FIELD_STR, fix),
    ROW("reason.args",
        FIELD_JSON,
        reason.args,
        .flags = FIELD_OMIT | FIELD_BORROWED,
        .schema = MESSAGE_ARGS_SCHEMA),
};
#undef ROW
static const struct field_table cluster_table = {"Cluster", cluster_rows, array_len(cluster_rows),
                                                 sizeof(struct cluster_page), 0};

static void fill_head(const struct api *a, const struct noderun *head, struct cluster_page *c)
{
    const struct node_row *n = head ? nodes_row(head) : NULL;
    c->head.managed = a->settings->head_managed;
    c->head.host = a->settings->head_host;
    c->head.state = n                           ? node_state_to_string(n->state)
                    : cluster_is_up(a->cluster) ? "online"
                                                : "offline";
    c->head.ip = c->head_ip = cluster_head_ip(a->cluster);
}

/* Where argusd starts the head itself, the head's row says why it is not there yet. */
static void fill_reason(const struct api_eyes *eyes,
                        const struct noderun *head,
                        struct cluster_page *c)
{
    const struct node_reason *r = head ? &nodes_row(head)->reason : NULL;
    const char *code, *text;
    cluster_why_not(eyes->a->cluster, &code, &text);
    bool of_head =
        r && *r->text && !cluster_is_up(eyes->a->cluster) && nodes_row(head)->state != NODE_ONLINE;
    saying_say(eyes, NULL, of_head ? r->code : code, of_head ? r->text : text, &c->reason);
    c->fix = of_head && *r->fix ? r->fix : c->reason.fix;
}

static void put_cluster(const struct api_eyes *eyes, struct jout *j)
{
    const struct api *a = eyes->a;
    const char *version = cluster_ray_version(a->cluster);
    const struct noderun *head = nodes_find(a->nodes, "head");
    size_t n, registered, online;
    struct sched_pool pool;
    (void)cluster_nodes(a->cluster, &n);
    nodes_count(a->nodes, &registered, &online);
    sched_pool(jobs_sched(a->jobs), "", jobs_now(a->jobs), &pool);
    struct cluster_page c = {.name = a->settings->cluster,
                             .address = a->settings->ray_address,
                             .up = cluster_is_up(a->cluster),
                             .ray_version = *version ? version : NULL,
                             .nodes = (int64_t)n,
                             .registered = (int64_t)registered,
                             .online = (int64_t)online,
                             .gpus = pool.gpus,
                             .shared_root = a->settings->shared_root};
    fill_head(a, head, &c);
    fill_reason(eyes, head, &c);
    field_to_json(&cluster_table, &c, FIELD_ALL, FIELD_PAGE, j, NULL);
    said_release(&c.reason);
}

static void answer_clusters(struct http_req *req, const struct api *a, int status)
{
    struct buf out = BUF_INIT(64 << 10);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    jout_open(&j, "clusters", '[');
    const struct api_eyes eyes = {.a = a, .p = http_req_principal(req)};
    put_cluster(&eyes, &j);
    jout_close(&j, ']');
    jout_close(&j, '}');
    http_reply_json(req, status, &out, status == 200 ? api_reader_barrier(a) : api_barrier(a));
    buf_release(&out);
}

static void api_clusters(struct http_req *req, void *app)
{
    answer_clusters(req, app, 200);
}

static const struct field cluster_down_form_rows[] = {
    OPT_BOOLEAN("stop_jobs"),
    SAYS("stop_foreign",
         FIELD_BOOL,
         .flags = 0,
         .doc =
             "jobs that Argus did not submit end with the cluster; otherwise they are in the way"),
};
static const struct field_table cluster_down_form = ACTION_FORM(cluster_down_form_rows);

/* ---- up and down ---- */

static void clusters_change(struct http_req *req, struct api *a, bool up)
{
    const char *user = http_req_principal(req)->user;
    struct err err = {0};
    if (!api_is_our_cluster(req, a))
        return;
    if (store_check(a->store, &err) < 0) {
        api_fail(req, &err, 0);
        return;
    }
    _cleanup_(json_unrefp) json_t *o = api_read_action(req, &cluster_down_form);
    if (!o)
        return;
    enum node_then then = json_get_bool(o, "stop_jobs", false) ? NODE_THEN_STOP : NODE_THEN_WAIT;
    bool stop_foreign = json_get_bool(o, "stop_foreign", false);
    int r =
        up ? nodes_up(a->nodes, user, &err) : nodes_down(a->nodes, then, stop_foreign, user, &err);
    if (r < 0)
        api_fail(req, &err, 0);
    else
        answer_clusters(req, a, 202);
}

static void api_cluster_up(struct http_req *req, void *app)
{
    clusters_change(req, app, true);
}

static void api_cluster_down(struct http_req *req, void *app)
{
    clusters_change(req, app, false);
}

enum { ACTION_MAX = 4096 };

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/clusters",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_clusters,
     .summary = "the Ray clusters",
     .reply_schema = "ClusterList"},
    {.method = "POST",
     .pattern = "/v1/clusters/{cluster}:up",
     .example = "default",
     .least = HTTP_ROLE_ADMIN,
     .max_body = ACTION_MAX,
     .handle = api_cluster_up,
     .summary = "make sure that the managed head and all nodes run",
     .reply_schema = "ClusterList",
     .reply_status = 202},
    {.method = "POST",
     .pattern = "/v1/clusters/{cluster}:down",
     .least = HTTP_ROLE_ADMIN,
     .max_body = ACTION_MAX,
     .handle = api_cluster_down,
     .summary = "stop exactly what argusd started, nodes first, then the head",
     .request_schema = "Down",
     .reply_schema = "ClusterList",
     .reply_status = 202},
};
static const struct http_schema schemas[] = {
    LIST_OF("ClusterList", "clusters", "Cluster"),
    {.name = "Down", .table = &cluster_down_form, .is_form = true},
    {.name = "Cluster", .table = &cluster_table},
};
const struct api_part part_clusters = {rows, array_len(rows), schemas, array_len(schemas)};
