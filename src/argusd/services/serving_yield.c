/* SPDX-License-Identifier: Apache-2.0 */
/* serving_yield.c - a rollback where there is no room for both versions: the one that people leave
 * gives its leases for the one that they go back to, one after the other.
 *
 * Nothing is given in vain. A replica that waits must be the first in line, and wait for what
 * leases of ours hold: on a machine that has room for it once they are given, or within a quota
 * that they count towards. What waits for anything else waits as in any deploy. How many were given
 * stands in the service's row, so that a restart asks for none of them again; what is kept warm
 * does without them until another version has the traffic. */
#include <math.h>
#include <stdlib.h>

#include "argusd/services/serving_state.h"
#include "base/message.h"
#include "base/str.h"

static const double LEAST = 1e-6; /* of sums of shares of GPUs and CPUs */

void serving_yield_begin(struct served *s, const struct service_version *v)
{
    if (s->yields_to == v->n && s->wanted == v->n)
        return; /* it is asked for again: what was given stays given */
    s->yields_to = v->n;
    s->yielded = 0;
}

/* The version that people leave, or left for the one that they went back to and is kept warm. */
static const struct service_version *yield_from(const struct served *s)
{
    if (!s->yields_to || s->stopped || s->asleep_at)
        return NULL;
    if (s->yields_to == s->current) /* what is not kept warm goes without being asked */
        return s->keep == SERVE_KEEP_WARM ? service_find_version(s, s->previous) : NULL;
    return s->yields_to == s->wanted ? service_find_version(s, s->current) : NULL;
}

int64_t serving_yielded(const struct service_version *v)
{
    return yield_from(v->of) == v ? v->of->yielded : 0;
}

static bool yield_is_queued(const struct service_unit *u)
{
    const struct live *l = u->job ? jobs_find_id(u->of->of->serving->a->jobs, u->job) : NULL;
    return l && l->job->state == JOB_QUEUED;
}

static struct serve_yield_seen yield_see(const struct service_version *from,
                                         const struct service_version *to)
{
    struct serve_version_seen old, new;
    service_version_see(to, &old);
    service_version_see(from, &new);
    struct serve_yield_seen y = {.to_loading = old.loading,
                                 .to_ready = old.ready,
                                 .from_held = new.wanted,
                                 .from_ready = new.ready};
    for (size_t i = 0; i < to->n_units; i++) {
        bool waits = to->units[i]->state == SERVE_UNIT_WAITING;
        y.to_waiting += waits && yield_is_queued(to->units[i]);
        y.to_loading += waits && !yield_is_queued(to->units[i]); /* it has its lease, and starts */
        y.to_failed += to->n == to->of->wanted && to->units[i]->failures > 0;
    }
    for (size_t i = 0; i < from->n_units; i++)
        y.from_leaving += from->units[i]->leaves;
    return y;
}

/* The version that gives its leases for v, which has not the traffic yet; NULL: none does. What
 * is deployed after a rollback is not what was rolled back to: nothing is given for it. */
static const struct service_version *yield_giver(const struct service_version *v)
{
    const struct served *s = v->of;
    return v->n == s->wanted && v->n == s->yields_to ? yield_from(s) : NULL;
}

bool serving_yield_is_at_stake(const struct service_version *v)
{
    return yield_giver(v) && v->of->yielded && !service_version_answers(v);
}

void serving_yield_scaled(struct served *s, int64_t fewer)
{
    if (fewer > 0)
        s->yielded = s->yielded > fewer ? s->yielded - fewer : 0;
}

bool serving_yield_suffices(const struct service_version *v)
{
    const struct service_version *from = yield_giver(v);
    if (!from)
        return false;
    const struct serve_yield_seen y = yield_see(from, v);
    return serve_yield_is_over(&y, v->of->yielded);
}

/* ---- whose lease ---- */

struct yield_sum {
    struct service_unit *last; /* what goes first */
    double gpus, cpus, memory, n;
};

/* What its replicas hold on that machine; NULL: on all of them. */
static struct yield_sum yield_held_on(const struct service_version *from, const char *node)
{
    struct yield_sum sum = {0};
    for (size_t i = 0; i < from->n_units; i++) {
        struct service_unit *u = from->units[i];
        if (u->leaves || !u->held_at || (node && !str_eq(u->node, node)))
            continue;
        sum.n++;
        sum.gpus += serve_spec_gpus(&from->spec);
        sum.cpus += serve_spec_cpus(&from->spec);
        sum.memory += (double)from->spec.memory;
        if (!sum.last || service_unit_goes_first(u, sum.last))
            sum.last = u;
    }
    return sum;
}

static bool yield_makes_room(const struct sched_look *at,
                             const struct yield_sum *held,
                             const struct serve_spec *needs)
{
    switch (at->code) {
    case SCHED_LOOK_GPUS:
        return at->free + held->gpus + LEAST >= at->needs;
    case SCHED_LOOK_CPUS:
        return held->cpus + LEAST >= serve_spec_cpus(needs);
    case SCHED_LOOK_MEMORY:
        return held->memory >= (double)needs->memory;
    default: /* it has room, or what keeps it is not ours */
        return false;
    }
}

static struct service_unit *yield_of_nodes(const struct service_version *from,
                                           const struct service_version *to,
                                           const struct live *waits)
{
    size_t max, n;
    (void)cluster_nodes(from->of->serving->a->cluster, &max);
    struct sched_look *looks = xcalloc(max + 1, sizeof(*looks));
    struct service_unit *u = NULL;
    n = jobs_look_nodes(waits, max, looks);
    for (size_t i = 0; i < n && !u; i++) {
        const struct yield_sum held = yield_held_on(from, looks[i].node);
        u = yield_makes_room(&looks[i], &held, &to->spec) ? held.last : NULL;
    }
    free(looks);
    return u;
}

/* By the numbers that the sentence of the quota has. */
static struct service_unit *yield_of_quota(const struct service_version *from,
                                           const struct service_version *to,
                                           const struct sched_why *why)
{
    const struct yield_sum all = yield_held_on(from, NULL);
    _cleanup_(json_unrefp) json_t *said = json_loads(why->text, 0, NULL);
    double limit = json_get_real(said, "limit", NAN), needs = json_get_real(said, "needs", NAN);
    double held = json_get_real(said, "held", NAN), ours = NAN;
    if (str_eq(json_get_str(said, "kind", ""), "user") && !str_eq(from->user, to->user))
        return NULL;
    if (str_eq(why->code, "quota_gpus"))
        ours = all.gpus;
    if (str_eq(why->code, "quota_cpus"))
        ours = all.cpus;
    if (str_eq(why->code, "quota_running")) {
        ours = all.n;
        needs = 1;
        held = json_get_real(said, "running", NAN);
    }
    return held - ours + needs <= limit + LEAST ? all.last : NULL;
}

/* The replica whose lease lets this one begin; NULL: none would. */
static struct service_unit *yield_for(const struct service_version *from,
                                      const struct service_unit *waits)
{
    const struct jobs *jobs = from->of->serving->a->jobs;
    const struct live *l = waits->job ? jobs_find_id(jobs, waits->job) : NULL;
    struct sched_why why;
    if (!l || !jobs_why(l, false, &why) || why.position != 1)
        return NULL;
    if (str_starts(why.code, "quota_"))
        return yield_of_quota(from, waits->of, &why);
    return str_starts(why.code, "waiting_for_") ? yield_of_nodes(from, waits->of, l) : NULL;
}

/* One that waits in the same line, maybe before those of the version that it makes way for. */
static struct service_unit *yield_queued(const struct service_version *from)
{
    for (size_t i = 0; i < from->n_units; i++)
        if (!from->units[i]->leaves && yield_is_queued(from->units[i]))
            return from->units[i];
    return NULL;
}

/* ---- giving ---- */

static void yield_give(struct served *s, struct service_unit *u)
{
    char text[JOB_REASON_TEXT_MAX];
    s->yielded++;
    message_write(
        text, sizeof(text),
        MESSAGE_ARGS(MESSAGE_NUM("from", u->of->n), MESSAGE_NUM("version", s->yields_to)));
    serving_release(u);
    service_changed(s);
    serving_note(s, &(struct serving_said){.kind = "service_yielded",
                                           .actor = "argusd",
                                           .code = "service_yielded",
                                           .text = text});
}

void serving_turn_yield(struct served *s)
{
    const struct service_version *from = yield_from(s), *to = service_find_version(s, s->yields_to);
    if (!to || !from || to == from)
        return;
    const struct serve_yield_seen y = yield_see(from, to);
    if (!serve_yield_is_due(&y))
        return;
    struct service_unit *u = yield_queued(from);
    for (size_t i = 0; i < to->n_units && !u; i++)
        if (to->units[i]->state == SERVE_UNIT_WAITING)
            u = yield_for(from, to->units[i]);
    if (u)
        yield_give(s, u);
}
