/* SPDX-License-Identifier: Apache-2.0 */
/* nodes_leave.c - how a machine leaves: its drain, and the end of exactly our raylet; see
 * nodes_run.h. Also the fence: what is left of a session that Ray has forgotten goes first.
 *
 * Whatever stops a raylet asks nodes_vacancy() before it does: jobs of others are waited for. The
 * fence does not ask: Ray does not know its raylet any more, so no job of Ray is there. */
#include <stdlib.h>
#include <string.h>

#include "argusd/machines/nodes_run.h"
#include "base/log.h"
#include "base/str.h"
#include "base/text.h"

static const usec_t STOP_GRACE = 10 * USEC_SEC;

void nodes_fail_end(struct noderun *nr, const struct raylet_end *end)
{
    const char *code = end->outcome == RAYLET_SSH ? ssh_trouble_to_string(end->trouble)
                                                  : raylet_outcome_to_string(end->outcome);
    nodes_fail(nr, code, end->text);
}

/* ---- stop ---- */

static void nodes_leave_on_stopped(const struct raylet_stopped *r, void *arg)
{
    struct noderun *nr = arg;
    struct node_event e = {.kind = nr->op == OP_FENCE ? NODE_EV_FENCED : NODE_EV_STOPPED};
    nr->op = OP_NONE;
    nr->call = NULL;
    if (r->end.outcome == RAYLET_OK) {
        if (r->ended)
            log_info("node", "ended %zu processes of ours, %zu of them by SIGKILL node=%s",
                     r->ended, r->killed, nr->row->spec.name);
        (void)nodes_change(nr, &e, "argusd");
    } else {
        nodes_fail_end(nr, &r->end);
    }
    nodes_pass(nr->nodes);
}

static void nodes_leave_begin_stop(struct noderun *nr, enum node_op op)
{
    struct ssh_target t;
    nodes_target(nr, &t);
    nr->op = op;
    nr->call = raylet_stop(nr->nodes->p.loop, &t, nr->nodes->p.instance, nr->row->spec.name,
                           STOP_GRACE, nodes_leave_on_stopped, nr);
}

void nodes_begin_fence(struct noderun *nr)
{
    nodes_leave_begin_stop(nr, OP_FENCE);
}

/* The head goes when none of its workers is left. Whoever is waited for becomes the reason. */
static bool may_stop(struct noderun *nr)
{
    const struct nodes *ns = nr->nodes;
    for (size_t i = 0; nr->row->is_head && i < ns->n; i++)
        if (ns->v[i] != nr && ns->v[i]->row->state == NODE_DRAINING)
            return false;
    enum vacancy v = nodes_vacancy(nr);
    nodes_tell_vacancy(nr, v);
    return v == VACANCY_FREE;
}

void nodes_begin_stop(struct noderun *nr)
{
    if (may_stop(nr))
        nodes_leave_begin_stop(nr, OP_STOP);
}

/* ---- drains ---- */

static void stop_jobs_of(struct noderun *nr)
{
    struct live *l;
    char text[200];
    bool restart = nr->row->then == NODE_THEN_RESTART;
    message_write(
        text, sizeof(text),
        restart ? MESSAGE_ARGS(MESSAGE_STR("node", nr->row->spec.name), MESSAGE_NUM("restart", 1))
                : MESSAGE_ARGS(MESSAGE_STR("node", nr->row->spec.name)));
    struct job_event e = {.kind = JOB_EV_STOP,
                          .cause = restart ? STOP_PREEMPTED : STOP_USER,
                          .code = "node_drained",
                          .text = text};
    for (size_t pos = 0; (l = jobs_next_placed(nr->nodes->p.jobs, &pos));)
        if (gang_has(&l->job->gang, nr->row->spec.name))
            (void)jobs_apply(l, &e, "argusd", clock_wall()); /* one that stops already stays so */
}

/* Jobs of others are there, and go with it: somebody said so. */
static bool nodes_leave_ends_others(const struct noderun *nr, const struct moment *now)
{
    size_t n = 0;
    if (node_stops_foreign(nr->row, now))
        free(nodes_holders(nr->nodes, nr, &n));
    return n > 0;
}

static void watch_drain(struct noderun *nr)
{
    static const char *const texts[NODE_THEN_END] = {[NODE_THEN_WAIT] = "{}",
                                                     [NODE_THEN_STOP] = "{\"stop\":1}",
                                                     [NODE_THEN_RESTART] = "{\"restart\":1}"};
    struct moment now = nodes_moment(nr->nodes);
    struct node_event empty = {.kind = NODE_EV_EMPTY};
    struct node_event due = {.kind = NODE_EV_DUE, .text = texts[nr->row->then]};
    enum vacancy v = nodes_vacancy(nr);
    if (v == VACANCY_FREE) {
        empty.text = nodes_leave_ends_others(nr, &now) ? "{\"foreign\":1}" : NULL;
        (void)nodes_change(nr, &empty, "argusd");
        return;
    }
    if (node_is_due(nr->row, &now))
        (void)nodes_change(nr, &due, "argusd");
    nodes_tell_vacancy(nr, v);
}

void nodes_watch_drain(struct noderun *nr)
{
    watch_drain(nr);
    /* After a restart of argusd in the middle of it, or for a job that came through since. */
    if (nr->row->state == NODE_DRAINING && nr->row->drain_due && nr->row->then != NODE_THEN_WAIT)
        stop_jobs_of(nr);
}
