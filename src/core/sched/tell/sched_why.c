/* SPDX-License-Identifier: Apache-2.0 */
/* sched_why.c - why a job waits: one dominant reason, and the evidence; see sched.h.
 *
 * The codes are asked for in the order in which a pass would turn the job away. Arguments tell
 * moments, not spans: a reason that does not change reads the same. The sentences are in
 * base/message.c. */
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/sched/line/sched_order.h"
#include "core/sched/line/sched_queue.h"
#include "core/sched/place/sched_fit.h"
#include "core/sched/place/sched_hosts.h"
#include "core/sched/place/sched_ledger.h"
#include "core/sched/place/sched_promise.h"
#include "core/sched/sched_pass.h"
#include "core/sched/share/sched_flow.h"
#include "core/sched/share/sched_quota.h"
#include "core/sched/tell/sched_hint.h"

/* Names of one sentence: a reason is short, the page of a job's why has all of them. */
enum { UNFIT_NAMED = 3, UNFIT_NAME_SHOWN = 24, UNFIT_NAMES_MAX = 96, UNFIT_NEED_SHOWN = 48 };

struct case_of {
    struct sched *s;
    const struct waiting *w;
    struct shape *shape;
    uint32_t job;
    struct sched_pool pool; /* of the job's, the nodes that meet its needs, as they are now */
    struct sched_why *why;
};

static double in_units(int64_t amount)
{
    return (double)amount / UNIT;
}

static void put_pool(const struct case_of *c, struct jout *j)
{
    jout_str(j, "pool", pool_at(c->s, c->shape->pool)->text);
    jout_real(j, "gpus", c->pool.gpus);
    jout_int(j, "nodes", c->pool.nodes);
}

/* The message is whole. */
static bool sched_why_say(struct case_of *c, struct message *m, const char *code)
{
    message_end(m, c->why->text, sizeof(c->why->text));
    c->why->code = code;
    return true;
}

static double gpus_of_driver(const struct shape *sh)
{
    return sh->driver.whole + (double)sh->driver.part / UNIT;
}

/* ---- not by the moment ---- */

static bool sched_why_is_held(struct case_of *c)
{
    struct message m;
    if (!c->w->held)
        return false;
    message_begin(&m);
    return sched_why_say(c, &m, "held");
}

/* What it holds, and the most that it may, by the limit that blocks. */
static void put_quota(struct jout *j,
                      const char *code,
                      const struct account *a,
                      const struct shape *shape)
{
    const struct sched_quota *q = &a->quota;
    const struct {
        const char *code;
        int64_t held, needs;
        double limit;
    } amounts[] = {
        {"quota_gpus", a->gpus, shape->gpus, q->gpus_ceiling},
        {"quota_cpus", a->cpus, shape->cpus, q->cpus},
        {"quota_memory", a->memory, shape->memory, q->memory},
    };
    if (!strcmp(code, "quota_running")) {
        jout_int(j, "running", a->running);
        jout_int(j, "limit", q->running);
        return;
    }
    for (size_t i = 0; i < array_len(amounts); i++) {
        if (strcmp(code, amounts[i].code) != 0)
            continue;
        jout_real(j, "held", in_units(amounts[i].held));
        jout_real(j, "limit", amounts[i].limit);
        jout_real(j, "needs", in_units(amounts[i].needs));
        return;
    }
    jout_real(j, "limit", q->gpu_hours_per_month);
}

static bool sched_why_is_over_quota(struct case_of *c)
{
    const char *const kinds[] = {[SCHED_PROJECT] = "project", [SCHED_USER] = "user"};
    struct message m;
    uint32_t account;
    const char *code =
        quota_blocks(c->s, c->w->f.project, c->w->f.user, c->shape, c->s->now, &account);
    if (!code)
        return false;
    const struct account *a = account_at(c->s, account);
    message_begin(&m);
    jout_str(&m.j, "kind", kinds[a->kind]);
    jout_str(&m.j, "account", a->name);
    put_quota(&m.j, code, a, c->shape);
    return sched_why_say(c, &m, code);
}

/* ---- the pool ---- */

/* How many more nodes of the pool would hold a share if they took jobs. */
static int unusable_nodes(const struct case_of *c, const char **ret_name, const char **ret_why)
{
    const struct pool *pool = pool_at(c->s, c->shape->pool);
    int n = 0;
    for (uint32_t i = 1; i < c->s->hosts.n; i++) {
        const struct host *h = row_is_used(&c->s->hosts, i) ? host_at(c->s, i) : NULL;
        if (!h || h->usable || !h->listed || !*h->why_not ||
            !pool_suits(pool, h->labels, h->only, h->versions) ||
            !host_holds_empty(h, &c->shape->other, true))
            continue;
        n++;
        *ret_name = h->name;
        *ret_why = h->why_not;
    }
    return n;
}

/* Nodes of the pool that are known not to meet the needs. */
struct unfit {
    int n;
    char names[UNFIT_NAMES_MAX];
    struct needs_unmet first; /* what the first of them lacks */
};

static struct unfit unfit_of(const struct case_of *c)
{
    const struct pool *pool = pool_at(c->s, c->shape->pool);
    struct unfit ret = {0};
    struct sched_gap gap;
    size_t pos = 0, len;
    while (*pool->needs && sched_gap_next(c->s, pool->text, pool->needs, &pos, &gap)) {
        if (!*gap.lacks.has)
            continue;
        if (!ret.n++)
            ret.first = gap.lacks;
        len = strlen(ret.names);
        if (ret.n <= UNFIT_NAMED)
            text_printf_to(ret.names + len, sizeof(ret.names) - len, "%s%.*s",
                           ret.n > 1 ? ", " : "", UNFIT_NAME_SHOWN, gap.node);
    }
    return ret;
}

static void put_unfit(const struct case_of *c, struct jout *j)
{
    int n = unfit_of(c).n;
    if (n)
        jout_int(j, "unfit", n);
}

/* With those that are known not to meet its needs it would fit. */
static bool is_unfit(struct case_of *c)
{
    struct shape without;
    struct message m;
    const struct pool *pool = pool_at(c->s, c->shape->pool);
    if (!*pool->needs)
        return false;
    shape_init(c->s, &without, pool->text, "", &c->shape->demand);
    bool fits = shape_fits_ever(c->s, &without);
    shape_release(c->s, &without);
    if (!fits)
        return false;
    struct unfit unfit = unfit_of(c);
    message_begin(&m);
    jout_int(&m.j, "nnodes", c->shape->nnodes);
    jout_int(&m.j, "fit", c->pool.nodes);
    jout_int(&m.j, "unfit", unfit.n);
    jout_str(&m.j, "nodes", unfit.names);
    if (unfit.n > UNFIT_NAMED)
        jout_int(&m.j, "more", unfit.n - UNFIT_NAMED);
    jout_strn(&m.j, "need", unfit.first.need, strnlen(unfit.first.need, UNFIT_NEED_SHOWN));
    jout_str(&m.j, "version", unfit.first.has);
    return sched_why_say(c, &m, "nodes_unfit");
}

static bool is_too_small(struct case_of *c)
{
    struct message m;
    const struct shape *sh = c->shape;
    double has = c->pool.gpus, needs = in_units(sh->gpus);
    message_begin(&m);
    put_pool(c, &m.j);
    put_unfit(c, &m.j);
    if (has < needs) {
        jout_real(&m.j, "has", has);
        jout_real(&m.j, "needs", needs);
    } else {
        jout_int(&m.j, "nnodes", sh->nnodes);
        jout_real(&m.j, "each", gpus_of_driver(sh));
        jout_real(&m.j, "cpus", in_units(sh->driver.cpus));
        if (sh->driver.memory)
            jout_real(&m.j, "memory", in_units(sh->driver.memory));
        jout_int(&m.j, "shared", sh->driver.part ? 1 : 0);
    }
    return sched_why_say(c, &m, "pool_too_small");
}

static bool is_too_large(struct case_of *c)
{
    const char *name, *why;
    struct message m;
    if (shape_fits(c->s, c->shape))
        return false;
    if (shape_fits_ever(c->s, c->shape)) {
        message_begin(&m);
        jout_int(&m.j, "nnodes", c->shape->nnodes);
        jout_real(&m.j, "each", c->shape->demand.gpus_per_node);
        jout_real(&m.j, "foreign", c->pool.held);
        jout_real(&m.j, "all", c->pool.gpus);
        return sched_why_say(c, &m, "waiting_for_gpus");
    }
    int more = unusable_nodes(c, &name, &why);
    if (more && shape_largest(c->s, c->shape, true) + more >= c->shape->nnodes) {
        message_begin(&m);
        jout_int(&m.j, "nnodes", c->shape->nnodes);
        jout_int(&m.j, "more", more);
        jout_strn(&m.j, "node", name, strnlen(name, 64));
        jout_strn(&m.j, "state", why, strnlen(why, 64));
        return sched_why_say(c, &m, "nodes_not_usable");
    }
    return is_unfit(c) || is_too_small(c);
}

static bool is_at_live_limit(struct case_of *c)
{
    struct message m;
    if (!pass_at_live_limit(c->s))
        return false;
    message_begin(&m);
    jout_int(&m.j, "running", (int64_t)c->s->n_leases);
    return sched_why_say(c, &m, "live_jobs_limit");
}

/* ---- the moment ---- */

static bool is_reclaiming(struct case_of *c)
{
    int n = 0;
    double gpus = 0;
    struct message m;
    for (uint32_t i = 1; i < c->s->leases.n && c->w->claims; i++) {
        const struct lease *l = row_is_used(&c->s->leases, i) ? lease_at(c->s, i) : NULL;
        if (!l || !l->leaving || !l->gpus)
            continue;
        n++;
        gpus += in_units(l->gpus);
    }
    if (!n)
        return false;
    message_begin(&m);
    jout_real(&m.j, "gpus", gpus);
    jout_int(&m.j, "jobs", n);
    return sched_why_say(c, &m, "reclaiming");
}

/* Under flow: leases that go right after a checkpoint make room for it. */
static bool is_given_way(struct case_of *c)
{
    const struct promise *p = promise_of(c->s, c->job);
    char at[CLOCK_TEXT_MAX];
    struct message m;
    int n = p && p->rests ? flow_count_givers(c->s, p) : 0;
    if (!n)
        return false;
    message_begin(&m);
    jout_int(&m.j, "jobs", n);
    jout_str(&m.j, "at", minute_to_string(p->at, at));
    return sched_why_say(c, &m, "giving_way");
}

/* "first in line, promised …" or "4 jobs are before it", as an argument. */
static void put_place(const struct case_of *c, struct jout *j)
{
    const struct promise *p = promise_of(c->s, c->job);
    char at[CLOCK_TEXT_MAX];
    jout_open(j, "place", '{');
    jout_str(j, "code", "place");
    jout_open(j, "args", '{');
    if (p && p->at < c->s->now + FAR / 2)
        jout_str(j, "at", minute_to_string(p->at, at));
    else if (c->why->position != 1)
        jout_int(j, "before", c->why->position - 1);
    jout_close(j, '}');
    jout_close(j, '}');
}

/* What is short beside the slots; NULL: the slots are. */
static const char *short_of(const struct case_of *c)
{
    struct shape shape = *c->shape;
    shape.driver.memory = shape.other.memory = 0;
    if (fit_find(c->s, &(struct fit){.shape = &shape}, NULL))
        return "waiting_for_memory";
    shape.driver.cpus = shape.other.cpus = 0;
    return fit_find(c->s, &(struct fit){.shape = &shape}, NULL) ? "waiting_for_cpus" : NULL;
}

static bool does_not_fit(struct case_of *c)
{
    struct message m;
    if (fit_exists_now(c->s, c->shape))
        return false;
    const char *code = short_of(c);
    message_begin(&m);
    jout_int(&m.j, "nnodes", c->shape->nnodes);
    if (code) {
        jout_real(&m.j, "cpus", in_units(c->shape->driver.cpus));
        jout_real(&m.j, "memory", in_units(c->shape->driver.memory));
    } else {
        jout_real(&m.j, "each", gpus_of_driver(c->shape));
        jout_real(&m.j, "free", c->pool.free);
        jout_real(&m.j, "all", c->pool.gpus);
        jout_real(&m.j, "gang", c->pool.largest_gang);
        put_unfit(c, &m.j);
    }
    put_place(c, &m.j);
    return sched_why_say(c, &m, code ? code : "waiting_for_gpus");
}

/* Whom it would delay, until when, and for how long it may run. */
static bool would_delay(struct case_of *c, struct message *m, const struct promise *p)
{
    char lasts[CLOCK_TEXT_MAX], at[CLOCK_TEXT_MAX];
    if (p->at < c->s->now + FAR / 2)
        jout_str(&m->j, "at", minute_to_string(p->at, at));
    if (c->w->lasts < FAR)
        jout_str(&m->j, "lasts", span_to_string(c->w->lasts, lasts));
    return sched_why_say(c, m, "backfill_would_delay");
}

static bool is_behind(struct case_of *c)
{
    const struct promise *p = promise_ahead(c->s, c->shape->pool);
    bool fifo = c->s->limits.policy == SCHED_POLICY_FIFO;
    struct message m;
    message_begin(&m);
    if (!p || p->job == c->job || (!fifo && c->w->lasts <= pass_window(c->s, c->shape)))
        return sched_why_say(c, &m, "queued_behind");
    jout_str(&m.j, "first", waiting_at(c->s, p->job)->f.id);
    return fifo ? sched_why_say(c, &m, "queued_behind") : would_delay(c, &m, p);
}

static void case_begin(struct case_of *c, struct sched *s, uint32_t job, struct sched_why *why)
{
    const struct waiting *w = waiting_at(s, job);
    *c = (struct case_of){.s = s, .w = w, .shape = shape_at(s, w->shape), .job = job, .why = why};
    const struct pool *pool = pool_at(s, c->shape->pool);
    sched_pool_fit(s, pool->text, pool->needs, s->now, &c->pool);
    *why = (struct sched_why){.code = "", .position = w->held ? 0 : order_place(s, job)};
}

/* Those that hold whatever the others say; of the moment only where the pool is large enough. */
size_t sched_explain_more(struct sched *s,
                          const char *id,
                          usec_t now,
                          const char *but,
                          size_t max,
                          struct sched_why *ret)
{
    static bool (*const reasons[])(struct case_of *) = {
        sched_why_is_held, sched_why_is_over_quota, is_too_large, is_at_live_limit, does_not_fit,
    };
    size_t n = 0;
    bool is_large = false;
    uint32_t job = waiting_find(s, id);
    if (job)
        pass_look(s, now);
    for (size_t i = 0; job && i < array_len(reasons) && n < max; i++) {
        struct case_of c;
        case_begin(&c, s, job, &ret[n]);
        if ((is_large && reasons[i] == does_not_fit) || !reasons[i](&c))
            continue;
        is_large |= reasons[i] == is_too_large;
        n += strcmp(ret[n].code, but) != 0;
    }
    return n;
}

bool sched_explain(struct sched *s,
                   const char *id,
                   usec_t now,
                   bool want_hint,
                   struct sched_why *ret)
{
    static bool (*const reasons[])(struct case_of *) = {
        sched_why_is_held, sched_why_is_over_quota,
        is_too_large,      is_at_live_limit,
        is_reclaiming,     is_given_way,
        does_not_fit,      is_behind,
    };
    uint32_t job = waiting_find(s, id);
    if (!job)
        return false;
    pass_look(s, now);
    struct case_of c;
    case_begin(&c, s, job, ret);
    for (size_t i = 0; i < array_len(reasons); i++)
        if (reasons[i](&c))
            break;
    if (want_hint)
        hint_find(s, job, ret);
    return true;
}
