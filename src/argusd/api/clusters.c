/* SPDX-License-Identifier: Apache-2.0 */
/* clusters.c - Ray's own view: actors, placement groups and foreign jobs, each row
 * mapped to the job that it belongs to.
 *
 * Asked of Ray when asked of us, one request at a time: first its job list, which
 * ties its hexadecimal job ids to our ids, then the rows. */
#include <stdlib.h>
#include <string.h>

#include "argusd/api/handlers.h"
#include "argusd/launch/mark.h"
#include "base/str.h"
#include "base/text.h"

enum { ANSWER_MAX = 16 << 20 };

enum asked { ASKED_ACTORS, ASKED_GROUPS, ASKED_FOREIGN };

struct look {
    struct http_req *req;
    struct api *a;
    enum asked what;
    struct ray_call *call;
    struct pairs owners; /* Ray's hex job id, or its supervisor's name -> our job id */
};

static void clusters_look_free(struct look *k)
{
    pairs_release(&k->owners);
    free(k);
}

static void clusters_on_gone(struct http_req *req, void *arg)
{
    struct look *k = arg;
    (void)req;
    ray_call_free(k->call);
    clusters_look_free(k);
}

static void clusters_answer(struct look *k, struct buf *out, const struct err *err)
{
    struct err e = {0};
    http_req_on_close(k->req, NULL, NULL);
    if (err) {
        (void)err_set(&e, ERR_UNAVAILABLE, "Ray does not answer: %.300s", err->text);
        api_fail(k->req, &e, 0);
    } else {
        http_reply_json(k->req, 200, out, api_reader_barrier(k->a));
    }
    clusters_look_free(k);
}

static const char *clusters_node_name(const struct look *k, const char *node_id)
{
    const struct cluster_node *n = node_id ? cluster_find_id(k->a->cluster, node_id) : NULL;
    return n ? n->name : NULL;
}

static void clusters_put_amounts(struct jout *j, const struct ray_amounts *a)
{
    jout_open(j, "resources", '{');
    for (size_t i = 0; i < a->n; i++)
        jout_real(j, a->v[i].name, a->v[i].amount);
    jout_close(j, '}');
}

#define SUPERVISOR "_ray_internal_job_actor_"

/* Ray's own actor that runs an entrypoint bears the name of the submission, and no job's number. */
static bool clusters_is_hidden(const struct look *k, const char *job, const char *name)
{
    struct api_eyes who = {k->a, http_req_principal(k->req)};
    if (!job && name && str_starts(name, SUPERVISOR))
        job = str_or(pairs_find(&k->owners, name), name);
    return job && !api_sees_job(job, &who);
}

/* Whose it is, and the name that its program gave it; neither of a job that he may not see. */
static void put_owner(const struct look *k,
                      struct jout *j,
                      const char *ray_job_id,
                      const char *name)
{
    const char *job = ray_job_id ? pairs_find(&k->owners, ray_job_id) : NULL;
    bool hidden = clusters_is_hidden(k, job, name);
    jout_str(j, "name", hidden ? NULL : name);
    jout_str(j, "job", hidden ? NULL : job);
    jout_bool(j, "job_hidden", hidden);
    jout_str(j, "ray_job_id", ray_job_id);
}

/* ---- actors ---- */

static void clusters_on_actors(const struct ray_actors *actors, const struct err *err, void *arg)
{
    struct look *k = arg;
    struct buf out = BUF_INIT(ANSWER_MAX);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    jout_open(&j, "actors", '[');
    for (size_t i = 0; actors && i < actors->n; i++) {
        const struct ray_actor *r = &actors->v[i];
        jout_open(&j, NULL, '{');
        jout_str(&j, "actor_id", r->actor_id);
        jout_str(&j, "class_name", r->class_name);
        jout_str(&j, "state", ray_actor_state_to_string(r->state));
        put_owner(k, &j, r->job_id, r->name);
        jout_str(&j, "node", clusters_node_name(k, r->node_id));
        jout_int(&j, "pid", r->pid);
        jout_bool(&j, "is_detached", r->is_detached);
        jout_str(&j, "placement_group_id", r->group_id);
        clusters_put_amounts(&j, &r->resources);
        jout_close(&j, '}');
    }
    jout_close(&j, ']');
    jout_bool(&j, "is_partial", actors && actors->is_partial);
    jout_close(&j, '}');
    clusters_answer(k, &out, actors ? NULL : err);
    buf_release(&out);
}

/* ---- placement groups ---- */

static void put_bundles(const struct look *k, struct jout *j, const struct ray_group *g)
{
    jout_open(j, "bundles", '[');
    for (size_t i = 0; i < g->n_bundles; i++) {
        jout_open(j, NULL, '{');
        jout_str(j, "node", clusters_node_name(k, g->bundles[i].node_id));
        clusters_put_amounts(j, &g->bundles[i].resources);
        jout_close(j, '}');
    }
    jout_close(j, ']');
}

static void clusters_on_groups(const struct ray_groups *groups, const struct err *err, void *arg)
{
    struct look *k = arg;
    struct buf out = BUF_INIT(ANSWER_MAX);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    jout_open(&j, "placement_groups", '[');
    for (size_t i = 0; groups && i < groups->n; i++) {
        const struct ray_group *g = &groups->v[i];
        jout_open(&j, NULL, '{');
        jout_str(&j, "placement_group_id", g->group_id);
        jout_str(&j, "state", ray_group_state_to_string(g->state));
        put_owner(k, &j, g->job_id, g->name);
        jout_bool(&j, "is_detached", g->is_detached);
        jout_str(&j, "scheduling_state", g->scheduling_state);
        put_bundles(k, &j, g);
        jout_close(&j, '}');
    }
    jout_close(&j, ']');
    jout_bool(&j, "is_partial", groups && groups->is_partial);
    jout_close(&j, '}');
    clusters_answer(k, &out, groups ? NULL : err);
    buf_release(&out);
}

/* ---- foreign jobs ---- */

static bool clusters_is_foreign(const struct look *k, const struct ray_job *rj)
{
    return rj->is_submission && !mark_is_ours(k->a->instance, rj) && !ray_job_is_ghost(rj);
}

static void answer_foreign(struct look *k, const struct ray_jobs *jobs)
{
    struct buf out = BUF_INIT(ANSWER_MAX);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    jout_open(&j, "foreign", '[');
    for (size_t i = 0; i < jobs->n; i++) {
        const struct ray_job *rj = &jobs->v[i];
        if (!clusters_is_foreign(k, rj))
            continue;
        jout_open(&j, NULL, '{');
        jout_str(&j, "ray_id", rj->submission_id);
        jout_str(&j, "ray_job_id", rj->job_id);
        jout_str(&j, "state", ray_job_status_to_string(rj->status));
        jout_time(&j, "started_at", rj->start);
        jout_time(&j, "ended_at", rj->end);
        jout_str(&j, "node", clusters_node_name(k, rj->driver_node_id));
        jout_close(&j, '}');
    }
    jout_close(&j, ']');
    jout_close(&j, '}');
    clusters_answer(k, &out, NULL);
    buf_release(&out);
}

/* ---- the requests ---- */

static void note_owners(struct look *k, const struct ray_jobs *jobs)
{
    for (size_t i = 0; i < jobs->n; i++) {
        const char *job = mark_job(&jobs->v[i]);
        const char *id = jobs->v[i].submission_id;
        if (!job || !id || !mark_is_ours(k->a->instance, &jobs->v[i]))
            continue;
        _cleanup_(freep) char *actor = xasprintf(SUPERVISOR "%s", id);
        pairs_set(&k->owners, actor, job);
        if (jobs->v[i].job_id)
            pairs_set(&k->owners, jobs->v[i].job_id, job);
    }
}

static void on_jobs(const struct ray_jobs *jobs, const struct err *err, void *arg)
{
    struct look *k = arg;
    k->call = NULL;
    if (!jobs) {
        clusters_answer(k, NULL, err);
        return;
    }
    note_owners(k, jobs);
    if (k->what == ASKED_FOREIGN)
        answer_foreign(k, jobs);
    else if (k->what == ASKED_ACTORS)
        k->call = ray_list_actors(k->a->ray, NULL, clusters_on_actors, k);
    else
        k->call = ray_list_groups(k->a->ray, NULL, clusters_on_groups, k);
}

/* True if the path names our cluster; else the 404 was sent. */
static bool is_our_cluster(struct http_req *req, const struct api *a)
{
    const char *name = http_req_param(req, "cluster");
    struct err err = {0};
    if (!strcmp(name, a->settings->cluster))
        return true;
    (void)err_set(&err, ERR_NOT_FOUND, "there is no cluster '%.60s'; there is '%s'", name,
                  a->settings->cluster);
    api_fail(req, &err, 0);
    return false;
}

static void clusters_begin(struct http_req *req, struct api *a, enum asked what)
{
    if (!is_our_cluster(req, a))
        return;
    struct look *k = xcalloc(1, sizeof(*k));
    *k = (struct look){.req = req, .a = a, .what = what};
    http_req_on_close(req, clusters_on_gone, k);
    k->call = ray_list_jobs(a->ray, on_jobs, k);
}

void api_cluster_actors(struct http_req *req, void *app)
{
    clusters_begin(req, app, ASKED_ACTORS);
}

void api_cluster_groups(struct http_req *req, void *app)
{
    clusters_begin(req, app, ASKED_GROUPS);
}

void api_cluster_foreign(struct http_req *req, void *app)
{
    clusters_begin(req, app, ASKED_FOREIGN);
}

void api_cluster_nodes(struct http_req *req, void *app)
{
    if (is_our_cluster(req, app))
        api_nodes(req, app);
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
    const char *code, *text;
    char why[2 * NODE_TEXT_MAX + 64];
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
    ROW("reason.code", FIELD_STR, code, .flags = FIELD_ALWAYS),
    ROW("reason.text", FIELD_STR, text, .flags = FIELD_ALWAYS),
};
#undef ROW
const struct field_table cluster_table = {"Cluster", cluster_rows, array_len(cluster_rows),
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

/* Of a head that argusd starts itself its row says why it is not there yet. */
static void fill_reason(const struct api *a, const struct noderun *head, struct cluster_page *c)
{
    const struct node_reason *r = head ? &nodes_row(head)->reason : NULL;
    cluster_why_not(a->cluster, &c->code, &c->text);
    if (!r || cluster_is_up(a->cluster) || nodes_row(head)->state == NODE_ONLINE || !*r->text)
        return;
    c->code = r->code;
    c->text = c->why;
    text_printf(c->why, "the head is %s: %s%s%s", node_state_to_string(nodes_row(head)->state),
                r->text, *r->fix ? "; " : "", r->fix);
}

static void put_cluster(const struct api *a, struct jout *j)
{
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
    fill_reason(a, head, &c);
    field_to_json(&cluster_table, &c, FIELD_ALL, FIELD_PAGE, j, NULL);
}

static void answer_clusters(struct http_req *req, const struct api *a, int status)
{
    struct buf out = BUF_INIT(64 << 10);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    jout_open(&j, "clusters", '[');
    put_cluster(a, &j);
    jout_close(&j, ']');
    jout_close(&j, '}');
    http_reply_json(req, status, &out, status == 200 ? api_reader_barrier(a) : api_barrier(a));
    buf_release(&out);
}

void api_clusters(struct http_req *req, void *app)
{
    answer_clusters(req, app, 200);
}

/* ---- up and down ---- */

static void clusters_change(struct http_req *req, struct api *a, bool up)
{
    static const char *const keys[] = {"stop_jobs", NULL};
    const char *user = http_req_principal(req)->user;
    struct err err = {0};
    if (!is_our_cluster(req, a))
        return;
    if (store_is_failing(a->store)) {
        (void)err_set(&err, ERR_STORE, "the store cannot write now: no machine can be changed");
        api_fail(req, &err, 0);
        return;
    }
    _cleanup_(json_unrefp) json_t *o = api_read_action(req, keys);
    if (!o)
        return;
    bool stop_jobs = json_get_bool(o, "stop_jobs", false);
    int r = up ? nodes_up(a->nodes, user, &err) : nodes_down(a->nodes, stop_jobs, user, &err);
    if (r < 0)
        api_fail(req, &err, 0);
    else
        answer_clusters(req, a, 202);
}

void api_cluster_up(struct http_req *req, void *app)
{
    clusters_change(req, app, true);
}

void api_cluster_down(struct http_req *req, void *app)
{
    clusters_change(req, app, false);
}
