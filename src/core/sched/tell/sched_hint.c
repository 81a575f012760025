/* SPDX-License-Identifier: Apache-2.0 */
/* sched_hint.c - see sched_hint.h.
 *
 * A change is tried where it can be tried for certain: on a copy, with a whole pass. Copies cost,
 * so what cannot help is sorted out before by looking at the ledger, and few are tried of each
 * kind; a job far down the line may get no hint although one exists. */
#include "core/sched/tell/sched_hint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/sched/line/sched_queue.h"
#include "core/sched/place/sched_fit.h"
#include "core/sched/place/sched_hosts.h"
#include "core/sched/place/sched_ledger.h"
#include "core/sched/sched_pass.h"
#include "core/sched/share/sched_quota.h"

enum { TRIES = 3 }; /* of each kind */

struct ask {
    struct sched *s;
    uint32_t job;
    const struct waiting *w;
    const struct shape *shape;
    struct sched_why *why;
};

/* The message is whole. */
static bool hint_say(const struct ask *q, struct message *m)
{
    message_end(m, q->why->hint_text, sizeof(q->why->hint_text));
    return true;
}

/* ---- trying ---- */

const char *minute_to_string(usec_t at, char text[static CLOCK_TEXT_MAX])
{
    (void)clock_to_string(at, text);
    if (strlen(text) > 16)
        text_copy_to(text + 16, 2, "Z"); /* over the seconds */
    return text;
}

/* Does a pass on c start the job? c is freed. */
static bool starts_on(struct sched *taken, const struct ask *q)
{
    struct sched_decision d;
    bool found = false;
    void *job = q->w->f.job;
    uint32_t waits;
    while (!found && sched_next(taken, q->s->now, &d)) {
        waits = waiting_find(taken, q->w->f.id);
        found = d.verb == SCHED_START && d.job == job && !waits;
    }
    sched_free(taken);
    return found;
}

/* The job as it was asked for, to ask for it otherwise. */
static struct sched_job asked(const struct ask *q)
{
    const struct facts *f = &q->w->f;
    return (struct sched_job){.id = f->id,
                              .seq = f->seq,
                              .priority = f->priority,
                              .pool = pool_at(q->s, q->shape->pool)->text,
                              .needs = pool_at(q->s, q->shape->pool)->needs,
                              .user = account_at(q->s, f->user)->name,
                              .project = account_at(q->s, f->project)->name,
                              .avoid = q->w->avoid,
                              .demand = q->shape->demand,
                              .queued_at = f->queued_at,
                              .limit = f->limit,
                              .expected_p50 = f->p50,
                              .expected_p90 = f->p90,
                              .restartable = f->restartable,
                              .held = q->w->held,
                              .job = f->job};
}

static bool starts_as(const struct ask *q, const struct sched_job *job)
{
    struct sched *c = sched_copy(q->s);
    sched_enqueue(c, job);
    return starts_on(c, q);
}

/* Is there room now for this demand in this pool? */
static bool has_room(const struct ask *q, const char *pool, const struct demand *d)
{
    struct shape shape;
    shape_init(q->s, &shape, pool, pool_at(q->s, q->shape->pool)->needs, d);
    bool found = fit_find(q->s, &(struct fit){.shape = &shape}, NULL);
    shape_release(q->s, &shape);
    return found;
}

static bool is_code(const struct ask *q, const char *prefix)
{
    return str_starts(q->why->code, prefix);
}

/* ---- what the user can change ---- */

static bool try_release(const struct ask *q)
{
    struct sched_hint *hint = &q->why->hint;
    struct sched *c = sched_copy(q->s);
    sched_set_held(c, q->w->f.id, false);
    if (!starts_on(c, q))
        return false;
    hint->kind = SCHED_HINT_RELEASE;
    struct message m;
    message_begin(&m);
    return hint_say(q, &m);
}

static bool try_pool(const struct ask *q, const char *label, size_t len)
{
    struct sched_hint *hint = &q->why->hint;
    char pool[sizeof(hint->pool)];
    struct sched_job job = asked(q);
    text_printf(pool, "%.*s", (int)len, label);
    if (len >= sizeof(pool) || str_list_has_all(pool, job.pool) || !has_room(q, pool, &job.demand))
        return false;
    job.pool = pool;
    if (!starts_as(q, &job))
        return false;
    hint->kind = SCHED_HINT_POOL;
    memcpy(hint->pool, pool, sizeof(pool));
    struct message m;
    message_begin(&m);
    jout_str(&m.j, "on", pool);
    return hint_say(q, &m);
}

/* A kind before this one has the same labels. */
static bool is_seen_before(const struct sched *s, uint32_t kind)
{
    uint32_t i = 1;
    while (i < kind && strcmp(s->kinds[i].labels, s->kinds[kind].labels) != 0)
        i++;
    return i < kind;
}

static bool try_pools(const struct ask *q)
{
    if (!*pool_at(q->s, q->shape->pool)->text)
        return false;
    int tries = 0;
    for (uint32_t i = 1; i < q->s->n_kinds && tries < 4 * TRIES; i++) {
        const char *list = is_seen_before(q->s, i) ? "" : q->s->kinds[i].labels;
        size_t len;
        for (const char *it; tries < 4 * TRIES && (it = str_item(&list, &len)); tries++)
            if (try_pool(q, it, len))
                return true;
    }
    return false;
}

static bool try_shape(const struct ask *q, int nnodes, int gpus)
{
    struct sched_hint *hint = &q->why->hint;
    struct sched_job job = asked(q);
    struct demand *d = &job.demand;
    d->cpus_per_node *= gpus / d->gpus_per_node;
    d->gpus_per_node = gpus;
    d->nnodes = nnodes;
    if (!has_room(q, job.pool, d) || !starts_as(q, &job))
        return false;
    hint->kind = SCHED_HINT_SHAPE;
    hint->nnodes = nnodes;
    hint->n_gpus_per_node = gpus;
    struct message m;
    message_begin(&m);
    jout_int(&m.j, "nnodes", nnodes);
    jout_int(&m.j, "each", gpus);
    return hint_say(q, &m);
}

static int whole_gpus(const struct ask *q)
{
    const struct share *share = &q->shape->other;
    return share->part || q->shape->demand.driver_gpus > 0 ? 0 : share->whole;
}

/* As many GPUs on more or fewer nodes. */
static bool try_same_gpus(const struct ask *q)
{
    int gpus = whole_gpus(q), tries = 0;
    int64_t all = (int64_t)gpus * q->shape->nnodes;
    for (int g = MAX_SLOTS; gpus && g > 0 && tries < TRIES; g--) {
        if (g == gpus || all % g || all / g > 100000)
            continue;
        struct demand d = q->shape->demand;
        d.cpus_per_node *= g / d.gpus_per_node;
        d.gpus_per_node = g;
        d.nnodes = (int)(all / g);
        if (!has_room(q, pool_at(q->s, q->shape->pool)->text, &d))
            continue;
        tries++;
        if (try_shape(q, d.nnodes, g))
            return true;
    }
    return false;
}

static bool try_fewer_gpus(const struct ask *q)
{
    for (int g = whole_gpus(q) / 2, tries = 0; g > 0 && tries < TRIES; g /= 2, tries++)
        if (try_shape(q, q->shape->nnodes, g))
            return true;
    return false;
}

static bool try_timeout(const struct ask *q)
{
    struct sched_job job = asked(q);
    usec_t window = pass_window(q->s, shape_at(q->s, q->w->shape));
    char text[CLOCK_TEXT_MAX];
    if (!is_code(q, "backfill_would_delay") || window == NEVER || window < 2 * USEC_MIN ||
        job.expected_p50 > window)
        return false;
    job.limit = window / USEC_MIN * USEC_MIN - USEC_MIN; /* some time to ask for it */
    if (!starts_as(q, &job))
        return false;
    q->why->hint.kind = SCHED_HINT_TIMEOUT;
    q->why->hint.limit = job.limit;
    struct message m;
    message_begin(&m);
    jout_str(&m.j, "limit", span_to_string(job.limit, text));
    return hint_say(q, &m);
}

static bool try_priority(const struct ask *q)
{
    struct sched_job job = asked(q);
    int best = account_ceiling(q->s, q->w->f.project, q->w->f.user, 100), highest = 0;
    for (int level = LEVEL_STARVED - 1; level > q->w->level && !highest; level--)
        highest = q->s->levels[level] ? level : 0;
    job.priority = highest ? highest + 1 : q->w->level + 1;
    job.priority = job.priority < best ? job.priority : best;
    if (job.priority <= q->w->level || !has_room(q, job.pool, &job.demand) || !starts_as(q, &job))
        return false;
    q->why->hint.kind = SCHED_HINT_PRIORITY;
    q->why->hint.priority = job.priority;
    struct message m;
    message_begin(&m);
    jout_int(&m.j, "priority", job.priority);
    return hint_say(q, &m);
}

/* ---- what others have to do ---- */

static usec_t expected_end(const struct sched *s, const struct lease *l)
{
    usec_t at = l->started_at + l->f.p50;
    if (l->f.p50 && at > s->now && at < l->ends)
        return at;
    return lease_ends(l);
}

struct ending {
    usec_t at;
    uint32_t lease;
};

static int order_endings(const void *a, const void *b)
{
    const struct ending *x = a, *y = b;
    return x->at != y->at ? (x->at < y->at ? -1 : 1)
                          : (x->lease > y->lease) - (x->lease < y->lease);
}

/* Its end could matter: its account's quota, or a node of the pool. */
static bool could_help(const struct ask *q, const struct lease *l)
{
    if (is_code(q, "quota"))
        return l->f.project == q->w->f.project || l->f.user == q->w->f.user;
    const struct numbers *kinds = &pool_at(q->s, q->shape->pool)->kinds;
    for (uint32_t p = l->first_part; p; p = part_at(q->s, p)->next) {
        uint32_t kind = host_at(q->s, part_at(q->s, p)->host)->kind;
        for (size_t i = 0; kind && i < kinds->n; i++)
            if (kinds->v[i] == kind)
                return true;
    }
    return is_code(q, "live_jobs_limit");
}

/* With this lease gone, is there room? Tried on the state itself and taken back. */
static bool leaves_room(const struct ask *q, uint32_t lease)
{
    struct shape *shape = shape_at(q->s, q->w->shape);
    int holding = 0, before = 0;
    if (fit_exists_now(q->s, shape))
        return true;
    for (uint32_t p = lease_at(q->s, lease)->first_part; p; p = part_at(q->s, p)->next) {
        const struct host *h = host_at(q->s, part_at(q->s, p)->host);
        struct host without = host_without(h, part_at(q->s, p));
        holding += h->kind && host_holds(&without, &shape->other);
        before += h->kind && host_holds(h, &shape->other);
    }
    return shape->nnodes == 1 ? holding > 0 : holding > before;
}

static bool try_end(const struct ask *q, uint32_t lease)
{
    struct sched_hint *hint = &q->why->hint;
    const struct lease *l = lease_at(q->s, lease);
    struct sched *c = sched_copy(q->s);
    sched_lease_end(c, l->f.id, q->s->now);
    if (!starts_on(c, q))
        return false;
    usec_t at = expected_end(q->s, l);
    char text[CLOCK_TEXT_MAX];
    hint->kind = SCHED_HINT_JOB_END;
    hint->at = at > q->s->now && at < l->started_at + FAR ? at : 0;
    memcpy(hint->job, l->f.id, sizeof(hint->job));
    struct message m;
    message_begin(&m);
    jout_str(&m.j, "job", hint->job);
    if (hint->at)
        jout_str(&m.j, "at", minute_to_string(hint->at, text));
    return hint_say(q, &m);
}

static bool try_ends(const struct ask *q)
{
    struct sched *s = q->s;
    struct ending *v = xcalloc(s->n_leases + 1, sizeof(*v));
    size_t n = 0;
    bool found = false;
    int tries = 0;
    for (uint32_t i = 1; i < s->leases.n; i++)
        if (row_is_used(&s->leases, i) && could_help(q, lease_at(s, i)))
            v[n++] = (struct ending){expected_end(s, lease_at(s, i)), i};
    xsort(v, n, sizeof(*v), order_endings);
    for (size_t i = 0; i < n && tries < TRIES && !found; i++)
        if (leaves_room(q, v[i].lease)) {
            tries++;
            found = try_end(q, v[i].lease);
        }
    free(v);
    return found;
}

static bool try_node(const struct ask *q, uint32_t host)
{
    struct sched_hint *hint = &q->why->hint;
    const char *name = host_at(q->s, host)->name;
    if (strlen(name) >= sizeof(hint->node))
        return false;
    struct sched *c = sched_copy(q->s);
    host_set_usable(c, host);
    if (!starts_on(c, q))
        return false;
    hint->kind = SCHED_HINT_NODE;
    text_copy(hint->node, name);
    struct message m;
    const char *state = host_at(q->s, host)->why_not;
    message_begin(&m);
    jout_str(&m.j, "node", name);
    jout_strn(&m.j, "state", state, strnlen(state, 64));
    return hint_say(q, &m);
}

static bool try_nodes(const struct ask *q)
{
    const struct pool *pool = pool_at(q->s, q->shape->pool);
    int tries = 0;
    for (uint32_t i = 1; i < q->s->hosts.n && tries < TRIES; i++) {
        const struct host *h = row_is_used(&q->s->hosts, i) ? host_at(q->s, i) : NULL;
        if (!h || h->usable || !h->listed || !*h->why_not ||
            !pool_suits(pool, h->labels, h->only, h->versions) || !host_holds(h, &q->shape->other))
            continue;
        tries++;
        if (try_node(q, i))
            return true;
    }
    return false;
}

void hint_find(struct sched *s, uint32_t job, struct sched_why *ret)
{
    static bool (*const kinds[])(const struct ask *) = {
        try_pools, try_same_gpus, try_timeout, try_ends, try_nodes, try_priority, try_fewer_gpus,
    };
    struct shape shape = *shape_at(s, waiting_at(s, job)->shape);
    struct waiting waiting = *waiting_at(s, job);
    const struct ask q = {.s = s, .job = job, .w = &waiting, .shape = &shape, .why = ret};
    if (waiting.held) {
        (void)try_release(&q);
        return;
    }
    for (size_t i = 0; i < array_len(kinds); i++)
        if (kinds[i](&q))
            return;
}
