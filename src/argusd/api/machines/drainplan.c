/* SPDX-License-Identifier: Apache-2.0 */
/* drainplan.c - POST /v1/nodes/{name}:drain?dry_run=1: what a drain would do to the jobs there
 * (kit/jobrisk.h) and to those of others, and when the machine would be empty. */
#include "argusd/api/machines/drainplan.h"

#include <stdlib.h>
#include <string.h>

#include "argusd/kit/jobrisk.h"
#include "argusd/kit/part.h"
#include "base/json.h"
#include "base/str.h"

enum { PLAN_BYTES_MAX = 16 << 20 };

/* A job that Argus did not submit. */
struct drainplan_foreign {
    struct nodes_holder its;
    int fate; /* enum jobrisk_fate */
};
#define OTHERS(key, ftype, member, ...) FIELD_AT(drainplan_foreign, key, ftype, member, __VA_ARGS__)
static const struct field drainplan_foreign_rows[] = {
    OTHERS("ray_id",
           FIELD_STR,
           its.ray_id,
           .doc = "id in Ray; null: what Ray counts as used, by nobody that argusd knows"),
    OTHERS("project", FIELD_STR, its.project, .doc = "project that has adopted it"),
    OTHERS("owner", FIELD_STR, its.owner, .doc = "user for whom it was adopted"),
    OTHERS("gpus", FIELD_REAL, its.gpus, .doc = "GPUs of the machine that it holds"),
    OTHERS("cpus", FIELD_REAL, its.cpus),
    OTHERS("fate",
           FIELD_ENUM,
           fate,
           .names = jobrisk_fate_words,
           .doc = "stopped, or waited_for: nobody can tell when it ends"),
};
#undef OTHERS
static const struct field_table drainplan_foreign_table =
    FIELD_TABLE("DrainPlanForeign", drainplan_foreign_rows, drainplan_foreign);

struct drainplan {
    const char *node, *then;
    usec_t deadline;
    struct jobrisk_ask ask;
    struct field_list jobs, foreign;
    bool stop_foreign;
    struct strv users;
    double gpus, at_risk_gpu_hours;
    usec_t empty_at, empty_late_at;
};
#define PLAN(key, ftype, member, ...) FIELD_AT(drainplan, key, ftype, member, __VA_ARGS__)
static const struct field plan_rows[] = {
    PLAN("node", FIELD_STR, node, .flags = FIELD_ALWAYS),
    PLAN("then", FIELD_STR, then, .flags = FIELD_ALWAYS),
    PLAN("deadline", FIELD_TIME, deadline, .doc = "if it began now; null: none"),
    PLAN("jobs",
         FIELD_LIST,
         jobs,
         .of = &jobrisk_table,
         .doc = "jobs that hold something on the machine"),
    PLAN("foreign",
         FIELD_LIST,
         foreign,
         .of = &drainplan_foreign_table,
         .doc = "jobs that Argus did not submit and that use the machine"),
    PLAN("users", FIELD_STRV, users, .doc = "users whose jobs these are"),
    PLAN("gpus", FIELD_REAL, gpus, .doc = "GPUs of the machine that take no new job"),
    PLAN("at_risk_gpu_hours",
         FIELD_REAL,
         at_risk_gpu_hours,
         .doc = "work that is lost of the jobs that would be stopped or started again"),
    PLAN("empty_at", FIELD_TIME, empty_at, .doc = "expected, at 50 %; null: nobody can tell"),
    PLAN("empty_late_at", FIELD_TIME, empty_late_at, .doc = "expected with 90 % confidence"),
};
static const struct field_table drainplan_table = FIELD_TABLE("DrainPlan", plan_rows, drainplan);

/* When the last job has ended, at the deadline at the latest if jobs end there. 0: nobody can tell,
 * as of a job of others that is waited for. */
static usec_t drainplan_last(const struct drainplan *p, bool late)
{
    const struct jobrisk *v = p->jobs.v;
    usec_t last = clock_wall();
    if (p->foreign.n && !p->stop_foreign)
        return 0;
    if (p->foreign.n && p->deadline > last)
        last = p->deadline;
    for (size_t i = 0; i < p->jobs.n; i++) {
        usec_t end = late ? v[i].ends_late_at : v[i].ends_at;
        if (v[i].fate != FATE_WAITED_FOR && (!end || end > p->deadline))
            end = p->deadline;
        if (!end)
            return 0;
        last = end > last ? end : last;
    }
    return last;
}

static void drainplan_sum(struct drainplan *p)
{
    const struct jobrisk *v = p->jobs.v;
    for (size_t i = 0; i < p->jobs.n; i++) {
        if (!strv_has(&p->users, v[i].user))
            strv_add(&p->users, v[i].user);
        if (jobrisk_is_lost(&v[i]))
            p->at_risk_gpu_hours += v[i].at_risk_gpu_hours;
    }
    p->empty_at = drainplan_last(p, false);
    p->empty_late_at = drainplan_last(p, true);
}

static void drainplan_list_foreign(const struct api *a,
                                   const struct noderun *nr,
                                   struct drainplan *p)
{
    size_t n;
    struct nodes_holder *holders = nodes_holders(a->nodes, nr, &n);
    for (size_t i = 0; i < n; i++) {
        const struct drainplan_foreign row = {.its = holders[i],
                                              .fate = (int)jobrisk_fate_of_others(p->stop_foreign)};
        field_list_add(&p->foreign, &row, sizeof(row));
    }
    free(holders);
}

void api_nodes_plan_drain(struct http_req *req,
                          const struct api *a,
                          const struct noderun *nr,
                          const struct nodes_drain *how)
{
    struct drainplan p = {
        .node = nodes_row(nr)->spec.name,
        .then = node_then_to_string(how->then),
        .deadline = how->within || how->then != NODE_THEN_WAIT ? clock_wall() + how->within : 0,
        .stop_foreign = how->stop_foreign,
        .gpus = nodes_gpus(nr)};
    p.ask = (struct jobrisk_ask){.node = p.node, .then = how->then, .deadline = p.deadline};
    struct buf out = BUF_INIT(PLAN_BYTES_MAX);
    struct jout j = jout_begin(&out);
    const char *id;
    for (size_t i = 0; (id = sched_node_lease(jobs_sched(a->jobs), p.node, i)); i++) {
        const struct live *l = jobs_find_any(a->jobs, id);
        if (!l)
            continue;
        struct jobrisk row;
        jobrisk_fill(a, &p.ask, l, &row);
        field_list_add(&p.jobs, &row, sizeof(row));
    }
    drainplan_list_foreign(a, nr, &p);
    drainplan_sum(&p);
    field_to_json(&drainplan_table, &p, FIELD_ALL, FIELD_PAGE, &j, NULL);
    http_reply_json(req, 200, &out, api_reader_barrier(a));
    buf_release(&out);
    strv_release(&p.users);
    free(p.foreign.v);
    free(p.jobs.v);
}

static const struct http_schema schemas[] = {
    {.name = "DrainPlanJob", .table = &jobrisk_table},
    {.name = "DrainPlanForeign", .table = &drainplan_foreign_table},
    {.name = "DrainPlan", .table = &drainplan_table},
};
const struct api_part part_drainplan = {NULL, 0, schemas, array_len(schemas)};
