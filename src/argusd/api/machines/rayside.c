/* SPDX-License-Identifier: Apache-2.0 */
/* rayside.c - Ray's own view: actors, placement groups and foreign jobs, each row
 * mapped to the job that it belongs to; and adopting a foreign job.
 *
 * Asked of Ray when asked of us, one request at a time: first its job list, which
 * ties its hexadecimal job ids to our ids, then the rows. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/api/machines/clusters.h"
#include "argusd/ground/idset.h"
#include "argusd/kit/part.h"
#include "argusd/launch/mark.h"
#include "base/message.h"
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
        (void)message_refuse(&e, ERR_UNAVAILABLE, "ray_silent",
                             MESSAGE_ARGS(MESSAGE_STR("why", err->text)));
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

/* {"CPU":1} as JSON; heap. */
static char *amounts_text(const struct ray_amounts *a)
{
    struct buf out = BUF_INIT(ANSWER_MAX);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    for (size_t i = 0; i < a->n; i++)
        jout_real(&j, a->v[i].name, a->v[i].amount);
    jout_close(&j, '}');
    return buf_take(&out);
}

/* Ray's own actor that runs an entrypoint bears the name of the submission, and no job's number.
 * What is left of a driver that Ray lists no more may be anybody's. */
static bool clusters_is_hidden(const struct look *k,
                               const char *job,
                               const char *ray_job_id,
                               const char *name)
{
    struct api_eyes who = {k->a, http_req_principal(k->req)};
    if (!job && name && str_starts(name, RAY_SUPERVISOR))
        job = str_or(pairs_find(&k->owners, name), name);
    if (!job && ray_job_id && !pairs_find(&k->others, ray_job_id))
        job = ray_job_id;
    return job && !api_sees_job(job, &who);
}

/* Whose it is, and the names that its program gave it; none of a job that its reader may not see.
 * Texts are borrowed for one answer, here and in the pages below. */
struct owner_page {
    const char *name, *job, *ray_job_id;
    bool job_hidden;
};
static const struct field owner_rows[] = {
    FIELD_AT(owner_page, "name", FIELD_STR, name),
    FIELD_AT(owner_page, "job", FIELD_STR, job),
    FIELD_AT(owner_page, "job_hidden", FIELD_BOOL, job_hidden),
    FIELD_AT(owner_page, "ray_job_id", FIELD_STR, ray_job_id),
};
static const struct field_table owner_table = FIELD_TABLE(NULL, owner_rows, owner_page);

static struct owner_page owner_of(const struct look *k, const char *ray_job_id, const char *name)
{
    const char *job = ray_job_id ? pairs_find(&k->owners, ray_job_id) : NULL;
    bool hidden = clusters_is_hidden(k, job, ray_job_id, name);
    return (struct owner_page){.name = hidden ? NULL : name,
                               .job = hidden ? NULL : job,
                               .ray_job_id = ray_job_id,
                               .job_hidden = hidden};
}

#define AMOUNTS(page)                                                                              \
    FIELD_AT(page, "resources", FIELD_JSON, resources, .flags = FIELD_ALWAYS, .schema = MAP(NUMBER))

/* ---- actors ---- */

struct actor_page {
    const char *actor_id, *class_name, *state, *node, *group_id;
    struct owner_page owner;
    int pid;
    bool is_detached;
    char *resources; /* owned */
};
#define ACTOR(key, ftype, member, ...) FIELD_AT(actor_page, key, ftype, member, __VA_ARGS__)
static const struct field actor_rows[] = {
    ACTOR("actor_id", FIELD_STR, actor_id, .flags = FIELD_ALWAYS),
    ACTOR("class_name", FIELD_STR, class_name),
    ACTOR("state", FIELD_STR, state, .flags = FIELD_ALWAYS),
    ACTOR("", FIELD_INLINE, owner, .of = &owner_table),
    ACTOR("node", FIELD_STR, node),
    ACTOR("pid", FIELD_INT32, pid),
    ACTOR("is_detached", FIELD_BOOL, is_detached),
    ACTOR("placement_group_id", FIELD_STR, group_id),
    AMOUNTS(actor_page),
};
#undef ACTOR
static const struct field_table actor_table = FIELD_TABLE("Actor", actor_rows, actor_page);

static void put_actor(const struct look *k, const struct ray_actor *r, struct jout *j)
{
    struct actor_page page = {.actor_id = r->actor_id,
                              .state = ray_actor_state_to_string(r->state),
                              .owner = owner_of(k, r->job_id, r->name),
                              .node = clusters_node_name(k, r->node_id),
                              .group_id = r->group_id,
                              .pid = (int)r->pid,
                              .is_detached = r->is_detached,
                              .resources = amounts_text(&r->resources)};
    page.class_name = page.owner.job_hidden ? NULL : str_or(r->class_name, "");
    field_to_json(&actor_table, &page, FIELD_ALL, FIELD_PAGE, j, NULL);
    free(page.resources);
}

static void clusters_on_actors(const struct ray_actors *actors, const struct err *err, void *arg)
{
    struct look *k = arg;
    struct buf out = BUF_INIT(ANSWER_MAX);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    jout_open(&j, "actors", '[');
    for (size_t i = 0; actors && i < actors->n; i++)
        put_actor(k, &actors->v[i], &j);
    jout_close(&j, ']');
    jout_bool(&j, "is_partial", actors && actors->is_partial);
    jout_close(&j, '}');
    clusters_answer(k, &out, actors ? NULL : err);
    buf_release(&out);
}

/* ---- placement groups ---- */

struct bundle_page {
    const char *node;
    char *resources; /* owned */
};
static const struct field bundle_rows[] = {
    FIELD_AT(bundle_page, "node", FIELD_STR, node),
    AMOUNTS(bundle_page),
};
static const struct field_table bundle_table = FIELD_TABLE(NULL, bundle_rows, bundle_page);

struct group_page {
    const char *group_id, *state, *scheduling_state;
    struct owner_page owner;
    bool is_detached;
    struct field_list bundles; /* owned */
};
#define GROUP(key, ftype, member, ...) FIELD_AT(group_page, key, ftype, member, __VA_ARGS__)
static const struct field group_rows[] = {
    GROUP("placement_group_id", FIELD_STR, group_id, .flags = FIELD_ALWAYS),
    GROUP("state", FIELD_STR, state, .flags = FIELD_ALWAYS),
    GROUP("", FIELD_INLINE, owner, .of = &owner_table),
    GROUP("is_detached", FIELD_BOOL, is_detached),
    GROUP("scheduling_state", FIELD_STR, scheduling_state),
    GROUP("bundles", FIELD_LIST, bundles, .of = &bundle_table),
};
#undef GROUP
static const struct field_table placement_group_table =
    FIELD_TABLE("PlacementGroup", group_rows, group_page);

static void put_group(const struct look *k, const struct ray_group *g, struct jout *j)
{
    struct bundle_page *v = xcalloc(g->n_bundles + 1, sizeof(*v));
    const struct group_page page = {.group_id = g->group_id,
                                    .state = ray_group_state_to_string(g->state),
                                    .owner = owner_of(k, g->job_id, g->name),
                                    .is_detached = g->is_detached,
                                    .scheduling_state = g->scheduling_state,
                                    .bundles = {.v = v, .n = g->n_bundles}};
    for (size_t i = 0; i < g->n_bundles; i++)
        v[i] = (struct bundle_page){.node = clusters_node_name(k, g->bundles[i].node_id),
                                    .resources = amounts_text(&g->bundles[i].resources)};
    field_to_json(&placement_group_table, &page, FIELD_ALL, FIELD_PAGE, j, NULL);
    for (size_t i = 0; i < g->n_bundles; i++)
        free(v[i].resources);
    free(v);
}

static void clusters_on_groups(const struct ray_groups *groups, const struct err *err, void *arg)
{
    struct look *k = arg;
    struct buf out = BUF_INIT(ANSWER_MAX);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    jout_open(&j, "placement_groups", '[');
    for (size_t i = 0; groups && i < groups->n; i++)
        put_group(k, &groups->v[i], &j);
    jout_close(&j, ']');
    jout_bool(&j, "is_partial", groups && groups->is_partial);
    jout_close(&j, '}');
    clusters_answer(k, &out, groups ? NULL : err);
    buf_release(&out);
}

/* ---- foreign jobs ---- */

static bool clusters_knows_id(const char *id, void *used)
{
    return idset_has(used, id);
}

static bool clusters_is_foreign(const struct look *k, const struct ray_job *rj)
{
    return mark_is_foreign(k->a->instance, rj, clusters_knows_id, k->a->used);
}

struct foreign_page {
    const char *ray_id, *ray_job_id, *state, *node, *project, *owner;
    usec_t started_at, ended_at, adopted_at;
    bool is_adopted;
};
#define FOREIGN(key, ftype, member, ...) FIELD_AT(foreign_page, key, ftype, member, __VA_ARGS__)
static const struct field foreign_rows[] = {
    FOREIGN("ray_id", FIELD_STR, ray_id, .flags = FIELD_ALWAYS),
    FOREIGN("ray_job_id", FIELD_STR, ray_job_id),
    FOREIGN("state", FIELD_STR, state, .flags = FIELD_ALWAYS),
    FOREIGN("started_at", FIELD_TIME, started_at),
    FOREIGN("ended_at", FIELD_TIME, ended_at),
    FOREIGN("node", FIELD_STR, node),
    FOREIGN("is_adopted", FIELD_BOOL, is_adopted),
    FOREIGN("project", FIELD_STR, project),
    FOREIGN("owner", FIELD_STR, owner),
    FOREIGN("adopted_at", FIELD_TIME, adopted_at),
};
#undef FOREIGN
static const struct field_table foreign_table = FIELD_TABLE("Foreign", foreign_rows, foreign_page);

/* With whose it is, for those who may see jobs of that user and project. */
static void put_foreign_page(const struct look *k,
                             struct jout *j,
                             struct foreign_page page,
                             const struct adopted_item *i)
{
    struct access_who who;
    struct access_thing thing = i ? adopted_thing(i) : (struct access_thing){0};
    people_who(k->a->people, http_req_principal(k->req), &who);
    bool seen = i && access_check(&who, ACCESS_JOB_SEE, "see", &thing, NULL) == 0;
    page.is_adopted = i;
    page.project = seen ? i->project : NULL;
    page.owner = seen ? i->owner : NULL;
    page.adopted_at = i ? i->adopted_at : 0;
    field_to_json(&foreign_table, &page, FIELD_ALL, FIELD_PAGE, j, NULL);
}

static void put_foreign(const struct look *k, struct jout *j, const struct ray_job *rj)
{
    const char *session = cluster_session(k->a->cluster);
    const struct foreign_page page = {.ray_id = rj->submission_id,
                                      .ray_job_id = rj->job_id,
                                      .state = ray_job_status_to_string(rj->status),
                                      .started_at = rj->start,
                                      .ended_at = rj->end,
                                      .node = clusters_node_name(k, rj->driver_node_id)};
    put_foreign_page(k, j, page, adopted_find(k->a->adopted, rj->submission_id, session));
}

/* Ray lists it no more: the record is what there is. */
static void put_forgotten(const struct look *k, struct jout *j, const struct adopted_item *i)
{
    const struct foreign_page page = {.ray_id = i->ray_id,
                                      .state = i->state,
                                      .started_at = i->started_at,
                                      .ended_at = i->ended_at};
    put_foreign_page(k, j, page, i);
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
    message_write(text, sizeof(text),
                  MESSAGE_ARGS(MESSAGE_STR("project", i->project), MESSAGE_STR("owner", i->owner)));
    struct events_note note = {.kind = "adopted",
                               .actor = i->adopted_by,
                               .code = "adopted_job",
                               .text = text,
                               .thing = &thing,
                               .object = object};
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
        r = message_refuse(&err, ERR_NOT_FOUND, "no_foreign_job",
                           MESSAGE_ARGS(MESSAGE_STR("id", ray_id)));
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
        _cleanup_(freep) char *actor = xasprintf(RAY_SUPERVISOR "%s", id);
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

static struct look *clusters_begin(struct http_req *req, struct api *a, enum asked what)
{
    if (!api_is_our_cluster(req, a))
        return NULL;
    struct look *k = xcalloc(1, sizeof(*k));
    *k = (struct look){.req = req, .a = a, .what = what};
    http_req_on_close(req, clusters_on_gone, k);
    k->call = ray_list_jobs(a->ray, on_jobs, k);
    return k;
}

static void api_cluster_actors(struct http_req *req, void *app)
{
    (void)clusters_begin(req, app, ASKED_ACTORS); /* it answers by itself */
}

static void api_cluster_groups(struct http_req *req, void *app)
{
    (void)clusters_begin(req, app, ASKED_GROUPS); /* the same */
}

static void api_cluster_foreign(struct http_req *req, void *app)
{
    (void)clusters_begin(req, app, ASKED_FOREIGN); /* the same */
}

/* Which project and user: both have to be there. */
static int check_claim(const struct api *a, const char *project, const char *owner, struct err *err)
{
    if (!project)
        return message_refuse(err, ERR_BAD_SPEC, "adopt_no_project", MESSAGE_NO_ARGS);
    if (strcmp(project, ACCESS_DEFAULT_PROJECT) != 0 && !people_find_project(a->people, project))
        return message_refuse(
            err, ERR_NOT_FOUND, "not_found",
            MESSAGE_ARGS(MESSAGE_STR("noun", "project"), MESSAGE_STR("name", project)));
    if (!people_find(a->people, owner))
        return message_refuse(
            err, ERR_NOT_FOUND, "not_found",
            MESSAGE_ARGS(MESSAGE_STR("noun", "user"), MESSAGE_STR("name", owner)));
    return store_check(a->store, err);
}

static const struct field adopt_form_rows[] = {MUST_TEXT("project"), OPT_TEXT("user")};
static const struct field_table adopt_form = ACTION_FORM(adopt_form_rows);

static void api_cluster_adopt(struct http_req *req, void *app)
{
    struct api *a = app;
    struct err err = {0};
    _cleanup_(json_unrefp) json_t *o = api_read_action(req, &adopt_form);
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

enum { ACTION_MAX = 4096 };

static const struct http_route rows[] = {
    {.method = "GET",
     .pattern = "/v1/clusters/{cluster}/actors",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_cluster_actors,
     .summary = "Ray's actors, each with its job",
     .reply_schema = "ActorList"},
    {.method = "GET",
     .pattern = "/v1/clusters/{cluster}/placement_groups",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_cluster_groups,
     .summary = "Ray's placement groups, each with its job",
     .reply_schema = "PlacementGroupList"},
    {.method = "GET",
     .pattern = "/v1/clusters/{cluster}/foreign",
     .least = HTTP_ROLE_VIEWER,
     .handle = api_cluster_foreign,
     .summary = "Ray jobs that Argus did not submit",
     .reply_schema = "ForeignList"},
    {.method = "POST",
     .pattern = "/v1/clusters/{cluster}/foreign/{ray_id}:adopt",
     .example = "raysubmit_1",
     .least = HTTP_ROLE_ADMIN,
     .max_body = ACTION_MAX,
     .handle = api_cluster_adopt,
     .summary = "record whose a job is that Argus did not submit; nothing is done to it",
     .request_schema = "Adopt",
     .reply_schema = "Foreign"},
};
#define PARTIAL "," KEY("is_partial", BOOLEAN)

static const struct http_schema schemas[] = {
    LIST_AND("ActorList", "actors", "Actor", PARTIAL),
    LIST_AND("PlacementGroupList", "placement_groups", "PlacementGroup", PARTIAL),
    LIST_OF("ForeignList", "foreign", "Foreign"),
    {.name = "Actor", .table = &actor_table},
    {.name = "PlacementGroup", .table = &placement_group_table},
    {.name = "Foreign", .table = &foreign_table},
    {.name = "Adopt", .table = &adopt_form, .is_form = true},
};
const struct api_part part_rayside = {rows, array_len(rows), schemas, array_len(schemas)};
