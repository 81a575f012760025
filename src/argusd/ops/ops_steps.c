/* SPDX-License-Identifier: Apache-2.0 */
/* ops_steps.c - each step of a plan: what is decided, what is looked at behind it, how long that is
 * waited for. One row a step. */
#include <stdlib.h>
#include <string.h>

#include "argusd/api/jobs/change.h"
#include "argusd/jobs/record.h"
#include "argusd/kit/api.h"
#include "argusd/kit/jobrisk.h"
#include "argusd/ops/ops_state.h"
#include "base/message.h"
#include "base/str.h"

/* A sentence as it is kept. Heap. */
static char *ops_kept(const char *code, const struct message_arg *args)
{
    struct err e = {0};
    (void)message_refuse(&e, ERR_REFUSED, code, args); /* only fills e */
    return message_keep(&e);
}

/* ---- one machine ---- */

static int ops_act_drain(struct ops_plan *p, struct err *err)
{
    struct noderun *nr = nodes_find(p->of->a->nodes, p->target);
    const struct nodes_drain how = {
        .within = p->within, .then = (enum node_then)p->then, .stop_foreign = p->stop_foreign};
    if (!nr)
        return message_refuse(
            err, ERR_NOT_FOUND, "not_found",
            MESSAGE_ARGS(MESSAGE_STR("noun", "node"), MESSAGE_STR("name", p->target)));
    return nodes_drain(nr, &how, p->applied_by, err);
}

static size_t ops_leases_on(const struct ops_plan *p)
{
    size_t n = 0;
    while (sched_node_lease(jobs_sched(p->of->a->jobs), p->target, n))
        n++;
    return n;
}

/* NULL: it is no more; then *ret_real says so. */
static const struct node_row *ops_node(const struct ops_plan *p, char **ret_real)
{
    const struct noderun *nr = nodes_find(p->of->a->nodes, p->target);
    if (!nr) {
        *ret_real = ops_kept("ops_real_gone", MESSAGE_ARGS(MESSAGE_STR("name", p->target)));
        return NULL;
    }
    const struct node_row *n = nodes_row(nr);
    *ret_real =
        ops_kept("ops_real_node", MESSAGE_ARGS(MESSAGE_STR("name", p->target),
                                               MESSAGE_STR("state", node_state_to_string(n->state)),
                                               MESSAGE_NUM("n", ops_leases_on(p))));
    return n;
}

static enum ops_found ops_look_drained(const struct ops_plan *p, char **ret_real)
{
    const struct node_row *n = ops_node(p, ret_real);
    if (!n || n->want == NODE_WANT_UP)
        return OPS_NEVER; /* somebody took it back, or away */
    return n->state == NODE_DRAINING || n->state == NODE_OFFLINE ? OPS_AS_EXPECTED : OPS_NOT_YET;
}

static enum ops_found ops_look_empty(const struct ops_plan *p, char **ret_real)
{
    const struct node_row *n = ops_node(p, ret_real);
    if (!n || n->want == NODE_WANT_UP)
        return OPS_NEVER;
    return n->state == NODE_OFFLINE && !ops_leases_on(p) ? OPS_AS_EXPECTED : OPS_NOT_YET;
}

static int ops_act_remove(struct ops_plan *p, struct err *err)
{
    struct noderun *nr = nodes_find(p->of->a->nodes, p->target);
    unsigned flags =
        (p->force ? NODES_REMOVE_FORCED : 0u) | (p->stop_foreign ? NODES_REMOVE_STOP_FOREIGN : 0u);
    return nr ? nodes_remove(nr, flags, p->applied_by, err) : 0; /* it is gone already */
}

static enum ops_found ops_look_removed(const struct ops_plan *p, char **ret_real)
{
    return ops_node(p, ret_real) ? OPS_NOT_YET : OPS_AS_EXPECTED;
}

/* ---- jobs ---- */

static int ops_act_stop(struct ops_plan *p, struct err *err)
{
    (void)err;
    for (size_t i = 0; i < p->job_ids.n; i++) {
        struct live *l = jobs_find_id(p->of->a->jobs, p->job_ids.v[i]);
        if (l)
            (void)api_stop_job(l, p->applied_by); /* it may be stopping already */
    }
    return 0;
}

static size_t ops_count_live(const struct ops_plan *p, const struct strv *ids)
{
    size_t n = 0;
    for (size_t i = 0; i < ids->n; i++)
        n += jobs_find_id(p->of->a->jobs, ids->v[i]) != NULL;
    return n;
}

static enum ops_found ops_look_stopped(const struct ops_plan *p, char **ret_real)
{
    size_t live = ops_count_live(p, &p->job_ids);
    *ret_real = ops_kept("ops_real_stopped", MESSAGE_ARGS(MESSAGE_NUM("ended", p->job_ids.n - live),
                                                          MESSAGE_NUM("n", p->job_ids.n)));
    return live ? OPS_NOT_YET : OPS_AS_EXPECTED;
}

/* ---- the cluster ---- */

/* Those that may run again go back to their places in the queue, in the batch that takes the
 * cluster down: nothing starts in between. */
static int ops_act_down(struct ops_plan *p, struct err *err)
{
    const struct api *a = p->of->a;
    char text[200];
    struct live *l;
    int r = nodes_check_down(a->nodes, p->stop_foreign, err); /* before a job of ours ends for it */
    if (r < 0)
        return r;
    message_write(text, sizeof(text),
                  MESSAGE_ARGS(MESSAGE_STR("node", "head"), MESSAGE_NUM("restart", 1)));
    for (size_t pos = 0; (l = jobs_next_placed(a->jobs, &pos));)
        if (!jobs_preempt(l, "node_drained", text, p->applied_by))
            (void)api_stop_job(l, p->applied_by); /* it may be stopping already */
    return nodes_down(a->nodes, NODE_THEN_RESTART, p->stop_foreign, p->applied_by, err);
}

struct ops_machines {
    size_t all, out, online;
    enum node_state head;
};

static struct ops_machines ops_count_machines(const struct ops_plan *p)
{
    struct ops_machines m = {.head = NODE_OFFLINE};
    const struct node_row *n;
    for (size_t pos = 0; (n = nodes_next(p->of->a->nodes, &pos));) {
        _cleanup_(freep) char *fact = xasprintf("node/%s", n->spec.name);
        const char *was = pairs_find(&p->facts, fact);
        if (n->is_head)
            m.head = n->state;
        m.out += n->step == NODE_STEP_OUT;
        m.all++;
        /* One that was not there before need not come back. */
        m.online += n->state == NODE_ONLINE || !was || !str_starts(was, "online");
    }
    return m;
}

static enum ops_found ops_look_down(const struct ops_plan *p, char **ret_real)
{
    struct ops_machines m = ops_count_machines(p);
    *ret_real =
        ops_kept("ops_real_down", MESSAGE_ARGS(MESSAGE_NUM("out", m.out), MESSAGE_NUM("n", m.all)));
    size_t left = ops_count_live(p, &p->job_ids) - ops_count_live(p, &p->back);
    return m.out == m.all && !left ? OPS_AS_EXPECTED : OPS_NOT_YET;
}

/* Who has gone back to the queue is seen now: with the cluster up a short job may be over at once.
 */
static int ops_act_up(struct ops_plan *p, struct err *err)
{
    for (size_t i = 0; i < p->back.n; i++)
        if (jobs_find_id(p->of->a->jobs, p->back.v[i]))
            strv_add(&p->waited, p->back.v[i]);
    return nodes_up(p->of->a->nodes, p->applied_by, err);
}

static enum ops_found ops_look_up(const struct ops_plan *p, char **ret_real)
{
    struct ops_machines m = ops_count_machines(p);
    bool up = cluster_is_up(p->of->a->cluster) && m.head == NODE_ONLINE;
    *ret_real = ops_kept("ops_real_up",
                         MESSAGE_ARGS(MESSAGE_STR("head", node_state_to_string(m.head)),
                                      MESSAGE_NUM("online", m.online), MESSAGE_NUM("n", m.all)));
    return up && m.online == m.all ? OPS_AS_EXPECTED : OPS_NOT_YET;
}

static enum ops_found ops_look_back(const struct ops_plan *p, char **ret_real)
{
    size_t live = ops_count_live(p, &p->back);
    *ret_real = ops_kept("ops_real_back",
                         MESSAGE_ARGS(MESSAGE_NUM("n", p->waited.n), MESSAGE_NUM("all", p->back.n),
                                      MESSAGE_NUM("live", live)));
    return p->waited.n == p->back.n ? OPS_AS_EXPECTED : OPS_NEVER;
}

/* ---- checkpoints ---- */

static void ops_on_cleaned(const struct checkpoints_answer *r, void *arg)
{
    struct ops_plan *p = arg;
    (void)r; /* what is there now is looked at */
    p->ask = NULL;
    p->settled = true;
}

/* A job that is over is read only now: when the plan was applied nobody could ask this. */
static bool ops_may_clean(const struct ops_plan *p)
{
    struct http_principal maker = {0};
    ops_maker(p->of->a, p, &maker);
    return api_may_change(p->of->a, &maker, "clean up", p->job, NULL) == 0;
}

static void ops_on_job(const struct store_result *r, void *arg)
{
    struct ops_plan *p = arg;
    struct record_extra x = {0};
    p->read = NULL;
    if (!r->err.code && record_to_job(&r->jobs[0], &p->job, &x, NULL) == 0 && ops_may_clean(p))
        p->ask =
            checkpoints_gc(p->of->a->checkpoints, p->job, false, p->applied_by, ops_on_cleaned, p);
    else
        p->settled = true; /* what was to go is still there */
    record_extra_release(&x);
}

static int ops_act_clean(struct ops_plan *p, struct err *err)
{
    const struct store_then then = {.done = ops_on_job, .arg = p};
    const struct store_job_ref ref = {.ref = p->target, .is_id = true};
    int r = cluster_check_root_answers(p->of->a->cluster, err);
    if (r < 0)
        return r;
    p->settled = false;
    p->read = store_find_job(p->of->a->store, &ref, &then);
    return 0;
}

/* How many of those that were to go are not known any more, of how many. */
static size_t ops_count_gone(const struct ops_plan *p, size_t *ret_all)
{
    const struct ckpt_list *known = checkpoints_of(p->of->a->checkpoints, p->target);
    const struct ops_thing *v = p->things.v;
    size_t gone = 0;
    *ret_all = 0;
    for (size_t i = 0; i < p->things.n; i++) {
        if (!str_eq(v[i].fate, "removed"))
            continue;
        int64_t step = strtoll(v[i].thing + strlen("checkpoint/"), NULL, 10);
        *ret_all += 1;
        gone += !known || !ckpt_list_find(known, step);
    }
    return gone;
}

static enum ops_found ops_look_clean(const struct ops_plan *p, char **ret_real)
{
    const struct ckpt_list *known = checkpoints_of(p->of->a->checkpoints, p->target);
    const struct ckpt *newest = known ? ckpt_list_newest(known) : NULL;
    size_t all, gone = ops_count_gone(p, &all);
    *ret_real =
        ops_kept("ops_real_clean", MESSAGE_ARGS(MESSAGE_NUM("gone", gone), MESSAGE_NUM("n", all),
                                                MESSAGE_NUM("step", newest ? newest->step : 0)));
    if (!p->settled && p->state == OPS_IS_APPLYING)
        return OPS_NOT_YET;
    bool kept = !p->newest || (newest && newest->step >= p->newest);
    return gone == all && kept ? OPS_AS_EXPECTED : OPS_NEVER;
}

/* ---- the rows ---- */

static const struct ops_step_row {
    const char *expected;                            /* a code */
    int (*act)(struct ops_plan *p, struct err *err); /* NULL: it is only looked at */
    enum ops_found (*look)(const struct ops_plan *p, char **ret_real);
    usec_t patience;
    bool is_single;
} ops_step_rows[OPS_WHATS] = {
    [OPS_STEP_DRAIN] = {"ops_expect_drain", ops_act_drain, ops_look_drained, 5 * USEC_MIN, false},
    [OPS_STEP_EMPTY] = {"ops_expect_empty", NULL, ops_look_empty, 15 * USEC_MIN, false},
    [OPS_STEP_REMOVE] = {"ops_expect_remove", ops_act_remove, ops_look_removed, 5 * USEC_MIN,
                         false},
    [OPS_STEP_STOP] = {"ops_expect_stopped", ops_act_stop, ops_look_stopped, 15 * USEC_MIN, false},
    [OPS_STEP_DOWN] = {"ops_expect_down", ops_act_down, ops_look_down, 15 * USEC_MIN, false},
    [OPS_STEP_UP] = {"ops_expect_up", ops_act_up, ops_look_up, 15 * USEC_MIN, false},
    [OPS_STEP_BACK] = {"ops_expect_back", NULL, ops_look_back, USEC_MIN, false},
    [OPS_STEP_CLEAN] = {"ops_expect_clean", ops_act_clean, ops_look_clean, 30 * USEC_MIN, true},
};

int ops_step_act(struct ops_plan *p, const struct ops_step *s, struct err *err)
{
    const struct ops_step_row *row = &ops_step_rows[s->what];
    return row->act ? row->act(p, err) : 0;
}

enum ops_found ops_step_look(const struct ops_plan *p, const struct ops_step *s, char **ret_real)
{
    return ops_step_rows[s->what].look(p, ret_real);
}

/* The plan names jobs of others that run to their end. */
static bool ops_waits_for_others(const struct ops_plan *p)
{
    const struct ops_thing *v = p->things.v;
    for (size_t i = 0; i < p->things.n; i++)
        if (str_starts(v[i].thing, OPS_FOREIGN "/") &&
            str_eq(v[i].fate, jobrisk_fate_words[FATE_WAITED_FOR]))
            return true;
    return false;
}

usec_t ops_step_patience(const struct ops_plan *p, const struct ops_step *s)
{
    bool empties = s->what == OPS_STEP_EMPTY;
    bool waits = empties && p->then == NODE_THEN_WAIT; /* jobs run to their end */
    if (empties || s->what == OPS_STEP_REMOVE)
        waits |= ops_waits_for_others(p);
    return waits ? 0 : (empties ? p->within : 0) + ops_step_rows[s->what].patience;
}

bool ops_step_is_single(const struct ops_step *s)
{
    return ops_step_rows[s->what].is_single;
}

char *ops_step_expected(const struct ops_plan *p, const struct ops_step *s)
{
    size_t n = s->what == OPS_STEP_BACK ? p->back.n : p->job_ids.n;
    if (s->what == OPS_STEP_CLEAN)
        (void)ops_count_gone(p, &n); /* only the sum is asked for */
    return ops_kept(ops_step_rows[s->what].expected,
                    MESSAGE_ARGS(MESSAGE_STR("name", str_or(p->target, "")), MESSAGE_NUM("n", n),
                                 MESSAGE_NUM("step", p->newest)));
}

char *ops_step_now(const struct ops_plan *p, const struct ops_step *s)
{
    char *real = NULL;
    (void)ops_step_look(p, s, &real); /* how it ends is the pass's to say */
    return real;
}

void ops_step_forget(struct ops_plan *p)
{
    if (p->read)
        store_read_cancel(p->read);
    checkpoints_unask(p->ask);
    job_free(p->job);
    p->read = NULL;
    p->ask = NULL;
    p->job = NULL;
}
