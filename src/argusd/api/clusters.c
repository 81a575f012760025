/* SPDX-License-Identifier: Apache-2.0 */
/* clusters.c - Ray's own view: actors, placement groups and foreign jobs, each row
 * mapped to the job that it belongs to; and adopting a foreign job.
 *
 * Asked of Ray when asked of us, one request at a time: first its job list, which
 * ties its hexadecimal job ids to our ids, then the rows. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/api/handlers.h"
#include "argusd/kit/saying.h"
#include "argusd/launch/mark.h"
#include "base/str.h"
#include "base/text.h"

enum { ANSWER_MAX = 16 << 20 };

enum asked { ASKED_ACTORS, ASKED_GROUPS, ASKED_FOREIGN, ASKED_ADOPT };

struct look {
    struct http_req *req;
    struct api *a;
    enum asked what;
    struct ray_call *call;
    struct pairs owners;   /* Ray's hex job id, or its supervisor's name -> our job id */
    struct pairs others;   /* Ray's hex job id of each foreign one in its list */
    char *project, *owner; /* of ASKED_ADOPT */
};

static void clusters_look_free(struct look *k)
{
    pairs_release(&k->owners);
    pairs_release(&k->others);
    free(k->project);
    free(k->owner);
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

/* Ray's own actor that runs an entrypoint bears the name of the submission, and no job's number.
 * What is left of a driver that Ray lists no more may be anybody's. */
static bool clusters_is_hidden(const struct look *k,
                               const char *job,
                               const char *ray_job_id,
                               const char *name)
{
    struct api_eyes who = {k->a, http_req_principal(k->req)};
    if (!job && name && str_starts(name, SUPERVISOR))
        job = str_or(pairs_find(&k->owners, name), name);
    if (!job && ray_job_id && !pairs_find(&k->others, ray_job_id))
        job = ray_job_id;
    return job && !api_sees_job(job, &who);
}

/* Whose it is, and the names that its program gave it; none of a job that he may not see. An actor
 * has a class, too. */
static void put_owner(const struct look *k,
                      struct jout *j,
                      const char *ray_job_id,
                      const char *name,
                      const char *class_name)
{
    const char *job = ray_job_id ? pairs_find(&k->owners, ray_job_id) : NULL;
    bool hidden = clusters_is_hidden(k, job, ray_job_id, name);
    if (class_name)
        jout_str(j, "class_name", hidden ? NULL : class_name);
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
        jout_str(&j, "state", ray_actor_state_to_string(r->state));
        put_owner(k, &j, r->job_id, r->name, str_or(r->class_name, ""));
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
        put_owner(k, &j, g->job_id, g->name, NULL);
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

/* Whose it is, for those who may see jobs of that user and project. */
static void put_adoption(const struct look *k, struct jout *j, const struct adopted_item *i)
{
    struct access_who who;
    struct access_thing thing = i ? adopted_thing(i) : (struct access_thing){0};
    people_who(k->a->people, http_req_principal(k->req), &who);
    bool seen = i && access_check(&who, ACCESS_JOB_SEE, "see", &thing, NULL) == 0;
    jout_bool(j, "is_adopted", i);
    jout_str(j, "project", seen ? i->project : NULL);
    jout_str(j, "owner", seen ? i->owner : NULL);
    jout_time(j, "adopted_at", i ? i->adopted_at : 0);
}

static void put_foreign(const struct look *k, struct jout *j, const struct ray_job *rj)
{
    const char *session = cluster_session(k->a->cluster);
    jout_open(j, NULL, '{');
    jout_str(j, "ray_id", rj->submission_id);
    jout_str(j, "ray_job_id", rj->job_id);
    jout_str(j, "state", ray_job_status_to_string(rj->status));
    jout_time(j, "started_at", rj->start);
    jout_time(j, "ended_at", rj->end);
    jout_str(j, "node", clusters_node_name(k, rj->driver_node_id));
    put_adoption(k, j, adopted_find(k->a->adopted, rj->submission_id, session));
    jout_close(j, '}');
}

/* Ray lists it no more: the record is what there is. */
static void put_forgotten(const struct look *k, struct jout *j, const struct adopted_item *i)
{
    jout_open(j, NULL, '{');
    jout_str(j, "ray_id", i->ray_id);
    jout_str(j, "ray_job_id", NULL);
    jout_str(j, "state", i->state);
    jout_time(j, "started_at", i->started_at);
    jout_time(j, "ended_at", i->ended_at);
    jout_str(j, "node", NULL);
    put_adoption(k, j, i);
    jout_close(j, '}');
}

static const struct ray_job *find_foreign(const struct look *k,
                                          const struct ray_jobs *jobs,
                                          const char *ray_id)
{
    for (size_t i = 0; i < jobs->n; i++)
        if (clusters_is_foreign(k, &jobs->v[i]) && str_eq(jobs->v[i].submission_id, ray_id))
            return &jobs->v[i];
    return NULL;
}

static void answer_foreign(struct look *k, const struct ray_jobs *jobs)
{
    const char *session = cluster_session(k->a->cluster);
    const struct adopted_item *item;
    struct buf out = BUF_INIT(ANSWER_MAX);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    jout_open(&j, "foreign", '[');
    for (size_t i = 0; i < jobs->n; i++)
        if (clusters_is_foreign(k, &jobs->v[i]))
            put_foreign(k, &j, &jobs->v[i]);
    for (size_t pos = 0; (item = adopted_next(k->a->adopted, &pos));)
        if (strcmp(item->session, session) != 0 || !find_foreign(k, jobs, item->ray_id))
            put_forgotten(k, &j, item);
    jout_close(&j, ']');
    jout_close(&j, '}');
    clusters_answer(k, &out, NULL);
    buf_release(&out);
}

/* ---- adopting one ---- */

static void tell_adopted(const struct look *k, const struct adopted_item *i)
{
    struct access_thing thing = adopted_thing(i);
    _cleanup_(freep) char *object = xasprintf("foreign/%s", i->ray_id);
    char text[300];
    text_printf(text, "adopted for project '%.40s', user '%.40s'", i->project, i->owner);
    struct events_note note = {
        .kind = "adopted", .actor = i->adopted_by, .text = text, .thing = &thing, .object = object};
    events_add(k->a->events, &note, clock_wall());
}

static void clusters_refuse(struct look *k, const struct err *err)
{
    http_req_on_close(k->req, NULL, NULL);
    api_fail(k->req, err, 0);
    clusters_look_free(k);
}

static void clusters_adopt_one(struct look *k, const struct ray_jobs *jobs)
{
    const char *ray_id = http_req_param(k->req, "ray_id");
    const struct ray_job *rj = find_foreign(k, jobs, ray_id);
    struct adopted_claim claim = {.session = cluster_session(k->a->cluster),
                                  .project = k->project,
                                  .owner = k->owner,
                                  .by = http_req_principal(k->req)->user};
    const struct adopted_item *item = NULL;
    struct err err = {0};
    int r = 0;
    if (!rj)
        r = err_set(&err, ERR_NOT_FOUND, "Ray lists no job '%.100s' that is not ours", ray_id);
    if (r == 0)
        r = adopted_put(k->a->adopted, rj, &claim, clock_wall(), &item, &err);
    if (r < 0) {
        clusters_refuse(k, &err);
        return;
    }
    assert(item); /* adopted_put() sets it */
    tell_adopted(k, item);
    struct buf out = BUF_INIT(64 << 10);
    struct jout j = jout_begin(&out);
    put_foreign(k, &j, rj);
    http_req_on_close(k->req, NULL, NULL);
    http_reply_json(k->req, 200, &out, api_barrier(k->a));
    clusters_look_free(k);
    buf_release(&out);
}

/* ---- the requests ---- */

static void note_owners(struct look *k, const struct ray_jobs *jobs)
{
    for (size_t i = 0; i < jobs->n; i++) {
        const char *job = mark_job(&jobs->v[i]);
        const char *id = jobs->v[i].submission_id;
        if (!job || !id || !mark_is_ours(k->a->instance, &jobs->v[i])) {
            if (jobs->v[i].job_id)
                pairs_set(&k->others, jobs->v[i].job_id, "");
            continue;
        }
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
    else if (k->what == ASKED_ADOPT)
        clusters_adopt_one(k, jobs);
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

static struct look *clusters_begin(struct http_req *req, struct api *a, enum asked what)
{
    if (!is_our_cluster(req, a))
        return NULL;
    struct look *k = xcalloc(1, sizeof(*k));
    *k = (struct look){.req = req, .a = a, .what = what};
    http_req_on_close(req, clusters_on_gone, k);
    k->call = ray_list_jobs(a->ray, on_jobs, k);
    return k;
}

void api_cluster_actors(struct http_req *req, void *app)
{
    (void)clusters_begin(req, app, ASKED_ACTORS); /* it answers by itself */
}

void api_cluster_groups(struct http_req *req, void *app)
{
    (void)clusters_begin(req, app, ASKED_GROUPS); /* the same */
}

void api_cluster_foreign(struct http_req *req, void *app)
{
    (void)clusters_begin(req, app, ASKED_FOREIGN); /* the same */
}

/* Which project and user: both have to be there. */
static int check_claim(const struct api *a, const char *project, const char *owner, struct err *err)
{
    if (!project)
        return err_set(err, ERR_BAD_SPEC, "say for which project: {\"project\": NAME}");
    if (strcmp(project, ACCESS_DEFAULT_PROJECT) != 0 && !people_find_project(a->people, project))
        return err_set(err, ERR_NOT_FOUND, "there is no project '%.60s'", project);
    if (!people_find(a->people, owner))
        return err_set(err, ERR_NOT_FOUND, "there is no user '%.60s'", owner);
    return store_is_failing(a->store)
               ? err_set(err, ERR_STORE, "the store cannot write now: nothing can be adopted")
               : 0;
}

void api_cluster_adopt(struct http_req *req, void *app)
{
    static const char *const keys[] = {"project", "user", NULL};
    struct api *a = app;
    struct err err = {0};
    _cleanup_(json_unrefp) json_t *o = api_read_action(req, keys);
    if (!o)
        return;
    const char *project = json_get_str(o, "project", NULL);
    const char *owner = json_get_str(o, "user", http_req_principal(req)->user);
    if (check_claim(a, project, owner, &err) < 0) {
        api_fail(req, &err, 0);
        return;
    }
    struct look *k = clusters_begin(req, a, ASKED_ADOPT);
    if (!k)
        return;
    k->project = xstrdup(project);
    k->owner = xstrdup(owner);
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
