/* SPDX-License-Identifier: Apache-2.0 */
/* sched_why.c - why a job waits: one dominant reason, and the evidence; see sched.h.
 *
 * The codes are asked for in the order in which a pass would turn the job away. Texts tell moments,
 * not spans: a reason that does not change reads the same. */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "core/sched_fit.h"
#include "core/sched_hint.h"
#include "core/sched_hosts.h"
#include "core/sched_ledger.h"
#include "core/sched_order.h"
#include "core/sched_pass.h"
#include "core/sched_promise.h"
#include "core/sched_queue.h"
#include "core/sched_quota.h"

struct case_of {
    struct sched *s;
    const struct waiting *w;
    struct shape *shape;
    uint32_t job;
    struct sched_pool pool; /* the job's, as it is now */
    struct sched_why *why;
};

static double in_units(int64_t amount)
{
    return (double)amount / UNIT;
}

/* "pool 'h20' has 8 GPUs on 1 node" */
static const char *say_pool(const struct case_of *c, char *text, size_t size)
{
    const char *pool = pool_at(c->s, c->shape->pool)->text;
    double gpus = c->pool.gpus;
    (void)snprintf(text, size, "%s%.64s%s has %g GPU%s on %d node%s",
                   *pool ? "the pool '" : "the cluster", pool, *pool ? "'" : "", gpus,
                   gpus > 1 || gpus < 1 ? "s" : "", c->pool.nodes,
                   c->pool.nodes == 1 ? "" : "s"); /* it fits */
    return text;
}

static bool say(struct case_of *c, const char *code)
{
    c->why->code = code;
    return true;
}

/* ---- not by the moment ---- */

static bool is_held(struct case_of *c)
{
    if (!c->w->held)
        return false;
    (void)snprintf(c->why->text, sizeof(c->why->text), "held until it is released");
    return say(c, "held");
}

static bool is_over_quota(struct case_of *c)
{
    const char *const words[] = {[SCHED_PROJECT] = "project", [SCHED_USER] = "user"};
    uint32_t account;
    const char *code =
        quota_blocks(c->s, c->w->f.project, c->w->f.user, c->shape, c->s->now, &account);
    if (!code)
        return false;
    const struct account *a = account_at(c->s, account);
    const struct sched_quota *q = &a->quota;
    char *text = c->why->text;
    size_t size = sizeof(c->why->text);
    if (!strcmp(code, "quota_running"))
        (void)snprintf(text, size, "%s '%.64s' runs %d jobs and may run %d at once", words[a->kind],
                       a->name, a->running, q->running); /* cut: fine */
    else if (!strcmp(code, "quota_gpus"))
        (void)snprintf(text, size, "%s '%.64s' holds %g GPUs and may hold %g; this job needs %g",
                       words[a->kind], a->name, in_units(a->gpus), q->gpus_ceiling,
                       in_units(c->shape->gpus));
    else if (!strcmp(code, "quota_cpus"))
        (void)snprintf(text, size, "%s '%.64s' holds %g CPUs and may hold %g; this job needs %g",
                       words[a->kind], a->name, in_units(a->cpus), q->cpus,
                       in_units(c->shape->cpus));
    else if (!strcmp(code, "quota_memory"))
        (void)snprintf(
            text, size, "%s '%.64s' holds %g GiB of memory and may hold %g; this job states %g",
            words[a->kind], a->name, in_units(a->memory), q->memory, in_units(c->shape->memory));
    else
        (void)snprintf(text, size,
                       "%s '%.64s' has used its %g GPU-hours of this month; the next begins on the "
                       "1st (UTC)",
                       words[a->kind], a->name, q->gpu_hours_per_month);
    return say(c, code);
}

/* ---- the pool ---- */

/* How many more nodes of the pool would hold a share if they took jobs. */
static int unusable_nodes(const struct case_of *c, const char **ret_name, const char **ret_why)
{
    const char *pool = pool_at(c->s, c->shape->pool)->text;
    int n = 0;
    for (uint32_t i = 1; i < c->s->hosts.n; i++) {
        const struct host *h = row_is_used(&c->s->hosts, i) ? host_at(c->s, i) : NULL;
        if (!h || h->usable || !h->listed || !*h->why_not || !str_list_has_all(h->labels, pool) ||
            !host_holds_empty(h, &c->shape->other, true))
            continue;
        n++;
        *ret_name = h->name;
        *ret_why = h->why_not;
    }
    return n;
}

static void say_too_small(struct case_of *c)
{
    const struct shape *sh = c->shape;
    double has = c->pool.gpus, needs = in_units(sh->gpus);
    char pool[160];
    (void)say_pool(c, pool, sizeof(pool));
    if (has < needs)
        (void)snprintf(c->why->text, sizeof(c->why->text),
                       "pool_too_small (has %g, needs %g): %s; it starts when enough nodes join",
                       has, needs, pool); /* cut: fine */
    else
        (void)snprintf(c->why->text, sizeof(c->why->text),
                       "pool_too_small: %s, but no %d with %g GPUs and %g CPUs each, even when "
                       "empty%s; ask for another shape or fewer CPUs",
                       pool, sh->nnodes, sh->driver.whole + (double)sh->driver.part / UNIT,
                       in_units(sh->driver.cpus), sh->driver.part ? ", or share their GPUs" : "");
}

static bool is_too_large(struct case_of *c)
{
    const char *name, *why;
    if (shape_fits(c->s, c->shape))
        return false;
    if (shape_fits_ever(c->s, c->shape)) {
        (void)snprintf(c->why->text, sizeof(c->why->text),
                       "needs %d x %g GPUs; others than Argus hold %g of the pool's %g",
                       c->shape->nnodes, c->shape->demand.gpus_per_node, c->pool.held,
                       c->pool.gpus);
        return say(c, "waiting_for_gpus");
    }
    int more = unusable_nodes(c, &name, &why);
    if (more && shape_largest(c->s, c->shape, true) + more >= c->shape->nnodes) {
        (void)snprintf(c->why->text, sizeof(c->why->text),
                       "needs %d nodes; %d of its pool take no jobs now ('%.64s' is %.64s)",
                       c->shape->nnodes, more, name, why);
        return say(c, "nodes_not_usable");
    }
    say_too_small(c);
    return say(c, "pool_too_small");
}

static bool is_at_live_limit(struct case_of *c)
{
    if (!pass_at_live_limit(c->s))
        return false;
    (void)snprintf(c->why->text, sizeof(c->why->text),
                   "%zu jobs run, as many as limits.live_jobs allows", c->s->n_leases);
    return say(c, "live_jobs_limit");
}

/* ---- the moment ---- */

static bool is_reclaiming(struct case_of *c)
{
    int n = 0;
    double gpus = 0;
    for (uint32_t i = 1; i < c->s->leases.n && c->w->claims; i++) {
        const struct lease *l = row_is_used(&c->s->leases, i) ? lease_at(c->s, i) : NULL;
        if (!l || !l->leaving || !l->gpus)
            continue;
        n++;
        gpus += in_units(l->gpus);
    }
    if (!n)
        return false;
    (void)snprintf(c->why->text, sizeof(c->why->text),
                   "within its guarantee: %g GPUs come back from %d jobs that were asked to make "
                   "room",
                   gpus, n);
    return say(c, "reclaiming");
}

/* "first in line, promised …" or "4 jobs are before it". */
static const char *say_place(const struct case_of *c, char *text, size_t size)
{
    const struct promise *p = promise_of(c->s, c->job);
    char at[CLOCK_TEXT_MAX];
    if (p && p->at < c->s->now + FAR / 2)
        (void)snprintf(text, size, "first in line, its start is promised by %s",
                       minute_to_string(p->at, at));
    else if (c->why->position == 1)
        (void)snprintf(text, size, "first in line");
    else
        (void)snprintf(text, size, "%d before it in line", c->why->position - 1);
    return text;
}

static bool does_not_fit(struct case_of *c)
{
    char place[128];
    struct shape no_cpus = *c->shape;
    if (fit_exists_now(c->s, c->shape))
        return false;
    no_cpus.driver.cpus = no_cpus.other.cpus = 0;
    bool cpus = fit_find(c->s, &(struct fit){.shape = &no_cpus}, NULL);
    (void)say_place(c, place, sizeof(place));
    if (cpus)
        (void)snprintf(c->why->text, sizeof(c->why->text),
                       "needs %d x %g CPUs beside its GPUs, and where those are free the CPUs are "
                       "not; %s",
                       c->shape->nnodes, in_units(c->shape->driver.cpus), place);
    else
        (void)snprintf(
            c->why->text, sizeof(c->why->text),
            "needs %d x %g GPUs, %g of the pool's %g are free, in one gang at most %g; %s",
            c->shape->nnodes, c->shape->driver.whole + (double)c->shape->driver.part / UNIT,
            c->pool.free, c->pool.gpus, c->pool.largest_gang, place);
    return say(c, cpus ? "waiting_for_cpus" : "waiting_for_gpus");
}

static bool is_behind(struct case_of *c)
{
    const struct promise *p = promise_ahead(c->s, c->shape->pool);
    char ends[CLOCK_TEXT_MAX], at[CLOCK_TEXT_MAX];
    if (!p || p->job == c->job) {
        (void)snprintf(c->why->text, sizeof(c->why->text), "it fits and starts in the next pass");
        return say(c, "queued_behind");
    }
    const char *first = waiting_at(c->s, p->job)->f.id;
    if (c->s->limits.policy == SCHED_POLICY_FIFO) {
        (void)snprintf(c->why->text, sizeof(c->why->text), "behind '%s', which is first in line",
                       first);
        return say(c, "queued_behind");
    }
    if (c->w->lasts <= pass_window(c->s, c->shape)) {
        (void)snprintf(c->why->text, sizeof(c->why->text), "it fits and starts in the next pass");
        return say(c, "queued_behind");
    }
    bool endless = c->w->lasts >= FAR, known = p->at < c->s->now + FAR / 2;
    (void)snprintf(
        c->why->text, sizeof(c->why->text),
        "it fits but would delay '%s', first in line, whose nodes are promised %s%s: it %s%s",
        first, known ? "by " : "when those that run there end",
        known ? minute_to_string(p->at, at) : "", endless ? "has no timeout" : "may run for ",
        endless ? "" : span_to_string(c->w->lasts, ends));
    return say(c, "backfill_would_delay");
}

bool sched_explain(struct sched *s,
                   const char *id,
                   usec_t now,
                   bool want_hint,
                   struct sched_why *ret)
{
    static bool (*const reasons[])(struct case_of *) = {
        is_held,       is_over_quota, is_too_large, is_at_live_limit,
        is_reclaiming, does_not_fit,  is_behind,
    };
    uint32_t job = waiting_find(s, id);
    if (!job)
        return false;
    pass_look(s, now);
    *ret = (struct sched_why){.code = ""};
    const struct waiting *w = waiting_at(s, job);
    struct case_of c = {.s = s, .w = w, .shape = shape_at(s, w->shape), .job = job, .why = ret};
    sched_pool(s, pool_at(s, c.shape->pool)->text, s->now, &c.pool);
    ret->position = w->held ? 0 : order_place(s, job);
    for (size_t i = 0; i < array_len(reasons); i++)
        if (reasons[i](&c))
            break;
    if (want_hint)
        hint_find(s, job, ret);
    return true;
}
