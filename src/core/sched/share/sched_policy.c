/* SPDX-License-Identifier: Apache-2.0 */
/* sched_policy.c - which jobs yield, and which may pass them; see sched_policy.h. The rules were
 * measured on a trace of real clusters (argus simulate), at four loads, with many seeds, and on
 * pools that were cut in two.
 *
 * Most of the work of a cluster is in few long jobs; most waiting jobs are short, and a job that
 * takes a day loses little by an hour. A passing job must end by its limit, not only by its
 * expected span, before the first of the jobs that it passes is due: so each of these keeps its
 * place in time, and the line looks afterwards as it did before. Longer yields, gaps filled
 * shortest first, or more for wide jobs made means shorter still, but the longest waits longer,
 * and left large gangs for the end, when no small job is there to run beside them. A whole node
 * is not broken up for a passing job: it would have to be drained again. A job that has waited
 * long in proportion to its span lets no job pass: in a burst of equals the order is that of
 * submission. */
#include "core/sched/share/sched_policy.h"

enum { YIELD_PART = 10, PATIENCE = 10 };

bool policy_slices(const struct sched *s)
{
    return s->limits.policy == SCHED_POLICY_FLOW || s->limits.policy == SCHED_POLICY_SHORTEST;
}

/* True if the job takes so few slots of its only node that another job fits beside it. */
static bool is_narrow(const struct sched *s, const struct waiting *w)
{
    const struct shape *shape = shape_at(s, w->shape);
    const struct numbers *kinds = &pool_at(s, shape->pool)->kinds;
    int slots = 0;
    for (size_t i = 0; i < kinds->n; i++) {
        const struct kind *k = &s->kinds[kinds->v[i]];
        int n = k->n ? host_at(s, k->hosts[0])->n_slots : 0;
        slots = n > slots ? n : slots;
    }
    return shape->nnodes == 1 && shape->driver.whole + (shape->driver.part > 0) < slots;
}

/* True if the job may let others pass, as far as it alone is concerned. */
static bool is_patient(const struct sched *s, const struct waiting *w)
{
    usec_t waited = s->now > w->f.queued_at ? s->now - w->f.queued_at : 0;
    return s->limits.policy == SCHED_POLICY_FAIR && w->level < LEVEL_CLAIM && w->f.p50 &&
           waited / PATIENCE <= w->f.p50;
}

usec_t policy_told(const struct sched *s, const struct waiting *w, usec_t earliest)
{
    usec_t at = is_patient(s, w) ? s->now + w->f.p50 / YIELD_PART : 0;
    return at > earliest ? at : earliest;
}

usec_t policy_due(const struct sched *s, const struct waiting *w)
{
    if (!is_patient(s, w))
        return 0;
    if (w->due)
        return w->due;
    usec_t due = s->now + w->f.p50 / YIELD_PART;
    bool told = w->promised && w->promised_in + 1 >= s->walk.count;
    return told && w->promised < due ? w->promised : due;
}

usec_t policy_first_due(const struct sched *s)
{
    usec_t first = NEVER;
    for (size_t i = 0; i < s->walk.n_promises; i++) {
        const struct promise *p = &s->walk.promises[i];
        first = p->yields && p->at < first ? p->at : first;
    }
    return first;
}

bool policy_may_pass(const struct sched *s, const struct waiting *w)
{
    if (!s->walk.n_yields)
        return true;
    if (s->now + w->lasts > policy_first_due(s))
        return false;
    bool narrow = is_narrow(s, w);
    for (size_t i = 0; i < s->walk.n_promises; i++) {
        const struct promise *p = &s->walk.promises[i];
        const struct waiting *first = p->yields ? waiting_at(s, p->job) : w;
        if (narrow && !is_narrow(s, first))
            return false;
        if (w->f.priority != first->f.priority || w->f.project != first->f.project)
            return false;
    }
    return true;
}
