/* SPDX-License-Identifier: Apache-2.0 */
/* ops_look.c - what a plan would touch, as it is now: jobs, machines, checkpoints, and the facts
 * that the plan stands on. Nothing is done here.
 *
 * A fact is what somebody who approves would want to know again if it changed: whether a machine is
 * online, which jobs there are and which attempt of each. Steps and GPU-hours change by themselves
 * and are no facts. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/archive/archives.h"
#include "argusd/kit/api.h"
#include "argusd/kit/jobrisk.h"
#include "argusd/ops/ops_state.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

enum { JOBS_TEXT_MAX = 2 << 20, TARGET_TEXT_MAX = 4096, TARGET_JOBS_MAX = 3 };

/* One look. */
struct ops_sight {
    struct api *a;
    struct ops_plan *p;
    struct http_principal maker; /* whose rights count */
    struct buf jobs;
    struct jout j;
    struct err *err;
};

static void ops_fact(struct ops_sight *s, const char *kind, const char *name, char *value_taken)
{
    _cleanup_(freep) char *key = xasprintf("%s/%s", kind, name);
    _cleanup_(freep) char *value = value_taken;
    pairs_set(&s->p->facts, key, value);
}

static void ops_add_step(struct ops_plan *p, enum ops_what what)
{
    const struct ops_step step = {.what = (int)what};
    field_list_add(&p->steps, &step, sizeof(step));
}

static void ops_add_thing(struct ops_plan *p, char *thing_taken, const char *fate, uint64_t bytes)
{
    const struct ops_thing thing = {.thing = thing_taken, .fate = xstrdup(fate), .bytes = bytes};
    field_list_add(&p->things, &thing, sizeof(thing));
}

/* ---- jobs ---- */

static int ops_look_job(struct ops_sight *s, const struct live *l, const struct jobrisk_ask *how)
{
    struct ops_plan *p = s->p;
    const struct attempt *newest = job_attempt(l->job);
    enum job_state state = l->job->state;
    struct jobrisk row;
    if (p->job_ids.n == OPS_JOBS_MAX)
        return message_refuse(s->err, ERR_REFUSED, "ops_too_many_jobs",
                              MESSAGE_ARGS(MESSAGE_NUM("most", OPS_JOBS_MAX)));
    jobrisk_fill(s->a, how, l, &row);
    field_to_json(&jobrisk_table, &row, FIELD_ALL, FIELD_PAGE, &s->j, NULL);
    strv_add(&p->job_ids, l->job->id);
    if (row.fate == FATE_RESTARTED)
        strv_add(&p->back, l->job->id);
    if (!strv_has(&p->users, row.user))
        strv_add(&p->users, row.user);
    if (jobrisk_is_lost(&row))
        p->at_risk_gpu_hours += row.at_risk_gpu_hours;
    p->gpus += row.gpus_here;
    ops_fact(s, "job", l->job->id,
             xasprintf("%s, attempt %d",
                       job_state_to_string(state == JOB_STARTING ? JOB_RUNNING : state),
                       newest ? newest->k : 0));
    return 0;
}

/* ---- machines ---- */

static struct noderun *ops_find_node(struct ops_sight *s)
{
    const char *name = s->p->target;
    struct noderun *nr = nodes_find(s->a->nodes, name);
    if (nr && !nodes_row(nr)->is_head)
        return nr;
    if (nr)
        (void)message_refuse(s->err, ERR_CONFLICT, "head_is_configured", MESSAGE_NO_ARGS);
    else if (cluster_find_name(s->a->cluster, name))
        (void)message_refuse(s->err, ERR_CONFLICT, "node_not_ours",
                             MESSAGE_ARGS(MESSAGE_STR("name", name)));
    else
        (void)message_refuse(s->err, ERR_NOT_FOUND, "not_found",
                             MESSAGE_ARGS(MESSAGE_STR("noun", "node"), MESSAGE_STR("name", name)));
    return NULL; /* each only fills err */
}

static void ops_look_node(struct ops_sight *s, const struct node_row *n, const char *fate)
{
    ops_fact(
        s, "node", n->spec.name,
        xasprintf("%s, wanted %s", node_state_to_string(n->state), node_want_to_string(n->want)));
    ops_add_thing(s->p, xasprintf("node/%s", n->spec.name), fate, 0);
}

/* Jobs that Argus did not submit, on this machine; nr NULL: on all. Where they are stopped each is
 * a fact: whoever approved the plan has not seen the next one. So none is left out, and a plan that
 * would have to name too many is refused. */
static int ops_look_foreign(struct ops_sight *s, const struct noderun *nr)
{
    size_t n;
    bool stops = s->p->stop_foreign;
    const char *fate = jobrisk_fate_words[jobrisk_fate_of_others(stops)];
    _cleanup_(freep) struct nodes_holder *v = nodes_holders(s->a->nodes, nr, &n);
    if (n > OPS_JOBS_MAX)
        return message_refuse(s->err, ERR_REFUSED, "ops_too_many_foreign",
                              MESSAGE_ARGS(MESSAGE_NUM("most", OPS_JOBS_MAX)));
    for (size_t i = 0; i < n; i++) {
        const char *ray_id = str_or(v[i].ray_id, "unknown");
        ops_add_thing(s->p, xasprintf(OPS_FOREIGN "/%s", ray_id), fate, 0);
        if (stops)
            ops_fact(s, OPS_FOREIGN, ray_id, xstrdup("runs"));
    }
    return 0;
}

static int ops_look_jobs_on(struct ops_sight *s, const char *node, enum node_then then)
{
    const struct jobrisk_ask how = {
        .node = node,
        .then = then,
        .deadline = s->p->within || then != NODE_THEN_WAIT ? clock_wall() + s->p->within : 0};
    const char *id;
    int r = 0;
    for (size_t i = 0; r == 0 && (id = sched_node_lease(jobs_sched(s->a->jobs), node, i)); i++) {
        const struct live *l = jobs_find_any(s->a->jobs, id);
        r = l ? ops_look_job(s, l, &how) : 0;
    }
    return r;
}

static int ops_look_drain(struct ops_sight *s)
{
    struct noderun *nr = ops_find_node(s);
    int r = nr ? nodes_check_drain(nr, s->err) : s->err->code;
    if (r < 0)
        return r;
    ops_look_node(s, nodes_row(nr), "drained");
    r = ops_look_foreign(s, nr);
    if (r < 0)
        return r;
    ops_add_step(s->p, OPS_STEP_DRAIN);
    ops_add_step(s->p, OPS_STEP_EMPTY);
    return ops_look_jobs_on(s, s->p->target, (enum node_then)s->p->then);
}

/* With force its jobs end with it, else it runs empty first. */
static int ops_look_remove(struct ops_sight *s)
{
    struct noderun *nr = ops_find_node(s);
    if (!nr)
        return s->err->code;
    const struct node_row *n = nodes_row(nr);
    bool runs = n->want != NODE_WANT_REMOVED && n->state != NODE_OFFLINE;
    bool empties = runs && !s->p->force;
    ops_look_node(s, n, "removed");
    int r = ops_look_foreign(s, nr);
    if (r == 0 && empties)
        r = nodes_check_drain(nr, s->err);
    if (r < 0)
        return r;
    if (empties) {
        ops_add_step(s->p, OPS_STEP_DRAIN);
        ops_add_step(s->p, OPS_STEP_EMPTY);
    }
    ops_add_step(s->p, OPS_STEP_REMOVE);
    return ops_look_jobs_on(s, s->p->target,
                            s->p->force ? NODE_THEN_STOP : (enum node_then)s->p->then);
}

static int ops_look_cluster_jobs(struct ops_sight *s)
{
    struct live *l;
    int r = 0;
    for (size_t pos = 0; r == 0 && (l = jobs_next_placed(s->a->jobs, &pos));) {
        const struct jobrisk_ask how = {.then = job_is_preemptible(l->job) ? NODE_THEN_RESTART
                                                                           : NODE_THEN_STOP,
                                        .deadline = clock_wall()};
        r = ops_look_job(s, l, &how);
    }
    return r;
}

/* Without a head no job of Ray lives: those of others cannot be waited for, they are in the way. */
static int ops_look_head_foreign(struct ops_sight *s)
{
    char jobs[200];
    if (!s->p->stop_foreign && nodes_holders_names(s->a->nodes, NULL, jobs, sizeof(jobs)))
        return message_refuse(s->err, ERR_CONFLICT, "ops_head_has_foreign",
                              MESSAGE_ARGS(MESSAGE_STR("jobs", jobs)));
    return ops_look_foreign(s, NULL);
}

static int ops_look_head(struct ops_sight *s)
{
    const struct settings *set = s->a->settings;
    const struct node_row *n;
    if (s->p->target && !str_eq(s->p->target, set->cluster))
        return message_refuse(
            s->err, ERR_NOT_FOUND, "no_such_cluster",
            MESSAGE_ARGS(MESSAGE_STR("cluster", s->p->target), MESSAGE_STR("ours", set->cluster)));
    if (!set->head_managed)
        return message_refuse(s->err, ERR_CONFLICT, "ops_head_not_ours", MESSAGE_NO_ARGS);
    set_str(&s->p->target, set->cluster);
    for (size_t pos = 0; (n = nodes_next(s->a->nodes, &pos));)
        ops_look_node(s, n, "restarted");
    ops_add_step(s->p, OPS_STEP_DOWN);
    ops_add_step(s->p, OPS_STEP_UP);
    ops_add_step(s->p, OPS_STEP_BACK);
    int r = ops_look_head_foreign(s);
    if (r == 0)
        r = ops_look_cluster_jobs(s);
    if (r < 0 || s->p->force || !s->p->job_ids.n)
        return r;
    return message_refuse(s->err, ERR_CONFLICT, "ops_head_has_jobs",
                          MESSAGE_ARGS(MESSAGE_NUM("n", s->p->job_ids.n)));
}

/* ---- many jobs ---- */

static bool ops_is_meant(const struct ops_plan *p, const struct job *j)
{
    return (!p->ids.n || strv_has(&p->ids, j->id)) &&
           (!p->of_user || str_eq(p->of_user, j->user)) &&
           (!p->of_project || str_eq(p->of_project, j->project)) &&
           (!p->of_pool || str_eq(p->of_pool, j->pool));
}

/* Named ones must be there, and each be the maker's to stop; a filter passes over others'. */
static int ops_look_ids(struct ops_sight *s)
{
    if (s->p->ids.n > OPS_JOBS_MAX) /* each live job is looked for among them */
        return message_refuse(s->err, ERR_REFUSED, "ops_too_many_jobs",
                              MESSAGE_ARGS(MESSAGE_NUM("most", OPS_JOBS_MAX)));
    for (size_t i = 0; i < s->p->ids.n; i++) {
        const struct live *l = jobs_find_id(s->a->jobs, s->p->ids.v[i]);
        if (!l)
            return message_refuse(s->err, ERR_NOT_FOUND, "ops_job_not_live",
                                  MESSAGE_ARGS(MESSAGE_STR("job", s->p->ids.v[i])));
        int r = api_may_change(s->a, &s->maker, "stop", l->job, s->err);
        if (r < 0)
            return r;
    }
    return 0;
}

/* "project/rlhf", "job/a,job/b", "job/a,job/b,job/c,+4": a plan for one project or one job is told
 * by it from those of others. The list of plans has this text, so it names only the first jobs. */
static void ops_name_many(struct ops_plan *p)
{
    const struct {
        const char *kind, *name;
    } filters[] = {{"user", p->of_user}, {"project", p->of_project}, {"pool", p->of_pool}};
    struct buf out = BUF_INIT(TARGET_TEXT_MAX); /* cut: fine, it is read and compared, no more */
    for (size_t i = 0; i < p->ids.n && i < TARGET_JOBS_MAX; i++)
        (void)buf_addf(&out, "%sjob/%s", out.len ? "," : "", p->ids.v[i]);
    if (p->ids.n > TARGET_JOBS_MAX)
        (void)buf_addf(&out, ",+%zu", p->ids.n - TARGET_JOBS_MAX);
    for (size_t i = 0; i < array_len(filters); i++)
        if (filters[i].name)
            (void)buf_addf(&out, "%s%s/%s", out.len ? "," : "", filters[i].kind, filters[i].name);
    free(p->target);
    p->target = buf_take(&out);
}

static int ops_look_many(struct ops_sight *s)
{
    struct ops_plan *p = s->p;
    const struct jobrisk_ask how = {.then = NODE_THEN_STOP, .deadline = clock_wall()};
    struct live *l;
    if (!p->ids.n && !p->of_user && !p->of_project && !p->of_pool)
        return message_refuse(s->err, ERR_BAD_REQUEST, "filter_empty", MESSAGE_NO_ARGS);
    int r = ops_look_ids(s);
    for (size_t pos = 0; r == 0 && (l = jobs_next(s->a->jobs, &pos));)
        if (ops_is_meant(p, l->job) && api_may_change(s->a, &s->maker, "stop", l->job, NULL) == 0)
            r = ops_look_job(s, l, &how);
    if (r == 0 && !p->job_ids.n)
        r = message_refuse(s->err, ERR_CONFLICT, "ops_no_jobs", MESSAGE_NO_ARGS);
    ops_name_many(p);
    ops_add_step(p, OPS_STEP_STOP);
    return r;
}

/* ---- checkpoints ---- */

static void ops_look_goes(struct ops_sight *s, const struct checkpoints_answer *goes)
{
    for (size_t i = 0; goes->plan && i < goes->list->n; i++) {
        const struct ckpt *c = &goes->list->v[i];
        ops_add_thing(s->p, xasprintf("checkpoint/%" PRId64, c->step),
                      goes->plan[i] == CKPT_GOES ? "removed" : ckpt_keep_to_string(goes->plan[i]),
                      c->bytes);
    }
}

/* The facts are what is known, in the plan as when it is applied: the look of just now is in it. */
static int ops_look_cleanup(struct ops_sight *s, const struct checkpoints_answer *goes)
{
    const struct ckpt_list *known = checkpoints_of(s->a->checkpoints, s->p->target);
    const struct ckpt *newest = known ? ckpt_list_newest(known) : NULL;
    int r = archives_check_files(s->a->archives, s->p->target, s->err);
    for (size_t i = 0; known && i < known->n; i++) {
        char step[32];
        (void)snprintf(step, sizeof(step), "%" PRId64, known->v[i].step);
        ops_fact(s, "checkpoint", step, xstrdup(ckpt_state_to_string(known->v[i].state)));
    }
    s->p->newest = newest ? newest->step : 0;
    if (goes)
        ops_look_goes(s, goes);
    ops_add_step(s->p, OPS_STEP_CLEAN);
    return r;
}

/* ---- all of them ---- */

static int ops_look_action(struct ops_sight *s, const struct checkpoints_answer *goes)
{
    switch ((enum ops_action)s->p->action) {
    case OPS_DRAIN_NODE:
        return ops_look_drain(s);
    case OPS_REMOVE_NODE:
        return ops_look_remove(s);
    case OPS_RESTART_RAY_HEAD:
        return ops_look_head(s);
    case OPS_CLEANUP_JOB_ARTIFACTS:
        return ops_look_cleanup(s, goes);
    case OPS_STOP_MANY:
        return ops_look_many(s);
    case OPS_ACTIONS:
        break;
    }
    return message_refuse(s->err, ERR_NOT_FOUND, "ops_no_action", MESSAGE_NO_ARGS);
}

void ops_maker(const struct api *a, const struct ops_plan *p, struct http_principal *ret)
{
    const struct person *maker = people_find(a->people, p->user);
    int role = maker && !maker->disabled ? maker->role : HTTP_ROLE_NONE;
    text_copy(ret->user, p->user);
    ret->role = (enum http_role)(role < p->role ? role : p->role);
}

int ops_look(struct api *a,
             struct ops_plan *p,
             const struct checkpoints_answer *goes,
             struct err *err)
{
    struct err own = {0};
    struct ops_sight s = {.a = a, .p = p, .jobs = BUF_INIT(JOBS_TEXT_MAX), .err = err ? err : &own};
    s.j = jout_begin(&s.jobs);
    ops_maker(a, p, &s.maker);
    jout_open(&s.j, NULL, '[');
    int r = ops_look_action(&s, goes);
    jout_close(&s.j, ']');
    free(p->jobs);
    p->jobs = buf_take(&s.jobs);
    return r;
}
