/* SPDX-License-Identifier: Apache-2.0 */
/* sched_ledger.c - leases and their parts; see sched_ledger.h.
 *
 * Invariant: what a slot, a host and an account have given away is what the parts say. What the
 * scheduler leases by itself is always free before; only a restored lease may land on a slot that
 * is not (forced), or find none (lost): the truth of a running job is not argued with. */
#include "core/sched/place/sched_ledger.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/hash.h"
#include "base/str.h"
#include "core/sched/place/sched_hosts.h"
#include "core/sched/share/sched_policy.h"
#include "core/sched/share/sched_quota.h"

/* ---- what is asked ---- */

static int64_t sched_ledger_units(double amount)
{
    return amount <= 0 ? 0 : amount > 1e8 ? (int64_t)1e12 : llround(amount * UNIT);
}

static struct share sched_ledger_share_of(double gpus, double cpus, double memory)
{
    int64_t g = sched_ledger_units(gpus);
    return (struct share){.whole = (int)(g / UNIT > 1000000 ? 1000000 : g / UNIT),
                          .part = (int)(g % UNIT),
                          .cpus = sched_ledger_units(cpus),
                          .memory = sched_ledger_units(memory)};
}

void shares_of(const struct demand *d, struct share *ret_driver, struct share *ret_other)
{
    /* Whole CPUs: half a CPU on each of two nodes holds no process that asks for one. */
    double spread = ceil(d->extra_cpus / (d->nnodes > 1 ? d->nnodes : 1));
    *ret_driver =
        sched_ledger_share_of(d->gpus_per_node + d->driver_gpus,
                              d->cpus_per_node + spread + d->driver_cpus, d->memory_per_node);
    *ret_other =
        sched_ledger_share_of(d->gpus_per_node, d->cpus_per_node + spread, d->memory_per_node);
}

static int64_t gpus_of(const struct share *share)
{
    return (int64_t)share->whole * UNIT + share->part;
}

usec_t job_lasts(const struct sched *s, usec_t limit)
{
    usec_t lasts = limit ? limit : s->limits.default_limit;
    return lasts && lasts < FAR ? lasts : FAR;
}

void facts_take(struct sched *s, struct facts *f, const struct sched_job *job)
{
    size_t len = strlen(job->id);
    assert(len < sizeof(f->id)); /* a job's id is checked where it comes in */
    *f = (struct facts){.seq = job->seq,
                        .priority = job->priority,
                        .queued_at = job->queued_at,
                        .limit = job->limit,
                        .p50 = job->expected_p50,
                        .p90 = job->expected_p90,
                        .restartable = job->restartable,
                        .memory = llround(demand_memory(&job->demand) * UNIT),
                        .job = job->job};
    if (policy_slices(s)) {
        f->served = job->served;
        f->slice = job->slice;
        f->saves_every = job->saves_every;
    }
    memcpy(f->id, job->id, len + 1);
    f->project = account_take(s, SCHED_PROJECT, str_or(job->project, ""));
    f->user = account_take(s, SCHED_USER, str_or(job->user, ""));
}

void facts_give(struct sched *s, struct facts *f)
{
    account_give(s, f->project);
    account_give(s, f->user);
}

/* ---- does a host hold a share ---- */

/* The slot that others share already and that has room for `part`, the fullest; -1 = none. */
static int shared_slot(const uint16_t *used, int n_slots, int part)
{
    int best = -1;
    for (int i = 0; i < n_slots; i++)
        if (used[i] && used[i] + part <= UNIT && (best < 0 || used[i] > used[best]))
            best = i;
    return best;
}

bool host_shares(const struct host *h, int part)
{
    return h->shareable && shared_slot(h->used, h->n_slots, part) >= 0;
}

static bool slots_hold(const struct host *h,
                       const uint16_t *used,
                       int free_slots,
                       const struct share *share)
{
    if (share->part && !h->shareable)
        return false;
    bool alone = share->part && shared_slot(used, h->n_slots, share->part) < 0;
    int needs = share->whole + alone;
    return !needs || free_slots >= needs;
}

/* What states no memory goes wherever there are slots: nobody knows how much it takes. */
static bool memory_holds(int64_t free_memory, const struct share *share)
{
    return !share->memory || free_memory >= share->memory;
}

bool host_holds(const struct host *h, const struct share *share)
{
    return h->cpus_total - h->cpus_used >= share->cpus &&
           memory_holds(h->memory_total - h->memory_used, share) &&
           slots_hold(h, h->used, h->free, share);
}

bool host_holds_empty(const struct host *h, const struct share *share, bool others_too)
{
    static const uint16_t none[MAX_SLOTS];
    int64_t cpus = others_too ? sched_ledger_units(h->cpus) : h->cpus_total;
    return cpus >= share->cpus && memory_holds(h->memory_total, share) &&
           slots_hold(h, none, h->n_slots - (others_too ? 0 : h->held_slots), share);
}

usec_t lease_ends(const struct lease *l)
{
    return l->leaving && l->leaves_at < l->ends ? l->leaves_at : l->ends;
}

/* A host's leases as they end, one after the other. */
struct ending {
    usec_t at;
    uint32_t part;
};

static int order_ends(const void *a, const void *b)
{
    const struct ending *x = a, *y = b;
    return x->at != y->at ? (x->at < y->at ? -1 : 1) : (x->part > y->part) - (x->part < y->part);
}

static struct ending *sort_ends(const struct sched *s,
                                const struct host *h,
                                struct ending few[static MAX_SLOTS],
                                size_t *n)
{
    struct ending *v = few;
    *n = 0;
    for (uint32_t p = h->first_part; p; p = part_at(s, p)->host_next)
        ++*n;
    if (*n > MAX_SLOTS) /* jobs without GPUs */
        v = xcalloc(*n, sizeof(*v));
    *n = 0;
    for (uint32_t p = h->first_part; p; p = part_at(s, p)->host_next)
        v[(*n)++] = (struct ending){lease_ends(lease_at(s, part_at(s, p)->lease)), p};
    xsort(v, *n, sizeof(*v), order_ends);
    return v;
}

/* The slots of the part come back to a sketch of a host. */
static void sketch_give(struct host *h, const struct part *p)
{
    for (uint64_t m = p->slots; m; m &= m - 1) {
        int slot = __builtin_ctzll(m);
        h->used[slot] = (uint16_t)(h->used[slot] - UNIT);
        h->free += !h->used[slot] && slot < h->n_slots;
    }
    if (p->shared >= 0) {
        h->used[p->shared] = (uint16_t)(h->used[p->shared] - p->amount);
        h->free += !h->used[p->shared] && p->shared < h->n_slots;
    }
    h->free += p->lost;
    h->cpus_used -= p->cpus;
    h->memory_used -= p->memory;
}

static int count_unclaimed(const struct host *h, uint64_t busy)
{
    uint64_t all = h->n_slots >= MAX_SLOTS ? UINT64_MAX : ((uint64_t)1 << h->n_slots) - 1;
    return __builtin_popcountll(~busy & all) - h->held_slots;
}

struct host host_without(const struct host *h, const struct part *p)
{
    struct host sketch = *h;
    sketch.free = count_unclaimed(h, h->busy) - h->lost;
    sketch_give(&sketch, p);
    return sketch;
}

usec_t host_holds_at(const struct sched *s, const struct host *h, const struct share *share)
{
    if (host_holds(h, share))
        return 0;
    if (!host_holds_empty(h, share, false))
        return NEVER;
    struct host sketch = *h;
    struct ending few[MAX_SLOTS];
    size_t n;
    usec_t at = NEVER;
    struct ending *ends = sort_ends(s, h, few, &n);
    sketch.free = count_unclaimed(h, h->busy) - h->lost; /* what is owed is paid first */
    for (size_t i = 0; i < n && at == NEVER; i++) {
        sketch_give(&sketch, part_at(s, ends[i].part));
        if (host_holds(&sketch, share))
            at = ends[i].at;
    }
    if (ends != few)
        free(ends);
    return at;
}

void host_free_at(const struct sched *s, const struct host *h, usec_t at, struct room *ret)
{
    uint64_t busy = 0;
    int lost = 0;
    *ret = (struct room){.cpus = h->cpus_total, .memory = h->memory_total};
    for (uint32_t i = h->first_part; i; i = part_at(s, i)->host_next) {
        const struct part *p = part_at(s, i);
        if (lease_ends(lease_at(s, p->lease)) <= at)
            continue;
        busy |= p->slots | (p->shared >= 0 ? (uint64_t)1 << p->shared : 0);
        lost += p->lost;
        ret->cpus -= p->cpus;
        ret->memory -= p->memory;
    }
    ret->slots = count_unclaimed(h, busy) - lost;
}

/* ---- taking and giving back ---- */

static void take_slot(struct host *h, struct part *p, int slot, int amount)
{
    p->forced |= h->used[slot] + amount > UNIT;
    h->used[slot] = (uint16_t)(h->used[slot] + amount);
    h->busy |= (uint64_t)1 << slot;
    if (amount == UNIT) {
        p->slots |= (uint64_t)1 << slot;
    } else {
        p->shared = (int16_t)slot;
        p->amount = (uint16_t)amount;
    }
}

/* The lowest free slot number; beyond the host's own number when `anywhere`. -1 = none. */
static int lowest_free(const struct host *h, bool anywhere)
{
    uint64_t free = ~h->busy;
    if (!anywhere && h->n_slots < MAX_SLOTS)
        free &= ((uint64_t)1 << h->n_slots) - 1;
    return free ? __builtin_ctzll(free) : -1;
}

/* The next of the slots that are named, if it is one that the part can have; -1 = none. */
static int named_slot(const struct host *h, const struct part *p, uint64_t *named, int amount)
{
    int slot = *named ? __builtin_ctzll(*named) : -1;
    *named &= *named - 1;
    if (slot < 0 || p->slots >> slot & 1)
        return -1;
    return h->used[slot] + amount <= 6 * UNIT ? slot : -1; /* what `used` can count */
}

/* Slots as the restored lease names them, as far as it does; the rest where there is room. */
static void take_slots(struct host *h,
                       struct part *p,
                       const struct share *share,
                       const struct gang_node *restored)
{
    uint64_t named = restored ? restored->gpus : 0;
    for (int i = 0; i < share->whole + (share->part > 0); i++) {
        int amount = i < share->whole ? UNIT : share->part;
        int slot = named_slot(h, p, &named, amount);
        if (slot < 0 && amount < UNIT)
            slot = shared_slot(h->used, h->n_slots, amount);
        if (slot < 0)
            slot = lowest_free(h, restored);
        if (slot >= 0)
            take_slot(h, p, slot, amount);
        else
            p->lost += amount == UNIT;
    }
    h->lost += p->lost;
}

static void link_part(struct sched *s, struct host *h, uint32_t part)
{
    struct part *p = part_at(s, part);
    p->host_prev = h->last_part;
    if (h->last_part)
        part_at(s, h->last_part)->host_next = part;
    else
        h->first_part = part;
    h->last_part = part;
}

static void unlink_part(struct sched *s, struct host *h, const struct part *p)
{
    if (p->host_prev)
        part_at(s, p->host_prev)->host_next = p->host_next;
    else
        h->first_part = p->host_next;
    if (p->host_next)
        part_at(s, p->host_next)->host_prev = p->host_prev;
    else
        h->last_part = p->host_prev;
}

static uint32_t part_begin(struct sched *s,
                           uint32_t lease,
                           uint32_t host,
                           const struct share *share,
                           const struct gang_node *restored)
{
    uint32_t i = rows_take(&s->parts);
    struct part *p = part_at(s, i);
    struct host *h = host_at(s, host);
    p->lease = lease;
    p->host = host;
    p->shared = -1;
    p->gpus = gpus_of(share);
    p->cpus = share->cpus;
    p->memory = share->memory;
    take_slots(h, p, share, restored);
    h->gpus_used += p->gpus;
    h->cpus_used += p->cpus;
    h->memory_used += p->memory;
    link_part(s, h, i);
    host_touch(s, host, false);
    return i;
}

static void part_end(struct sched *s, uint32_t i)
{
    struct part p = *part_at(s, i);
    struct host *h = host_at(s, p.host);
    for (uint64_t m = p.slots; m; m &= m - 1) {
        int slot = __builtin_ctzll(m);
        h->used[slot] = (uint16_t)(h->used[slot] - UNIT);
    }
    if (p.shared >= 0)
        h->used[p.shared] = (uint16_t)(h->used[p.shared] - p.amount);
    h->busy = 0;
    for (int slot = 0; slot < MAX_SLOTS; slot++)
        h->busy |= (uint64_t)(h->used[slot] > 0) << slot;
    h->lost -= p.lost;
    h->gpus_used -= p.gpus;
    h->cpus_used -= p.cpus;
    h->memory_used -= p.memory;
    unlink_part(s, h, &p);
    rows_give(&s->parts, i);
    host_touch(s, p.host, true);
    host_drop_unused(s, p.host);
}

/* ---- leases ---- */

static bool lease_is(const struct sched *s, uint32_t i, const void *key)
{
    return !strcmp(lease_at(s, i)->f.id, key);
}

uint32_t lease_find(const struct sched *s, const char *id)
{
    return index_find(&s->lease_of, s, hash_keyed(s->seed, id, strlen(id)), lease_is, id);
}

static uint32_t lease_new(struct sched *s, const struct facts *taken, usec_t started_at)
{
    uint32_t i = rows_take(&s->leases);
    struct lease *l = lease_at(s, i);
    l->f = *taken;
    l->started_at = started_at;
    l->ends = started_at + job_lasts(s, taken->limit);
    l->steady_from = started_at + taken->served;
    l->saved_at = l->steady_from;
    l->saves_every = taken->saves_every;
    l->order = ++s->lease_order;
    index_add(&s->lease_of, hash_keyed(s->seed, l->f.id, strlen(l->f.id)), i);
    s->n_leases++;
    return i;
}

static void charge_both(struct sched *s, const struct lease *l, int sign, usec_t now)
{
    struct amounts taken = {.gpus = l->gpus, .cpus = l->cpus, .memory = l->f.memory};
    account_charge(s, l->f.project, &taken, sign, now);
    account_charge(s, l->f.user, &taken, sign, now);
}

/* Charges the accounts of a lease whose parts are complete. */
static void lease_charge(struct sched *s, uint32_t lease, usec_t now)
{
    struct lease *l = lease_at(s, lease);
    for (uint32_t p = l->first_part; p; p = part_at(s, p)->next) {
        l->gpus += part_at(s, p)->gpus;
        l->cpus += part_at(s, p)->cpus;
    }
    charge_both(s, l, 1, now);
}

uint32_t lease_begin(struct sched *s,
                     const struct facts *taken,
                     const struct shape *shape,
                     const struct numbers *hosts,
                     usec_t now)
{
    usec_t served = taken->served < now ? taken->served : 0;
    uint32_t lease = lease_new(s, taken, now - served), last = 0;
    for (size_t i = 0; i < hosts->n; i++) {
        uint32_t part = part_begin(s, lease, hosts->v[i], i ? &shape->other : &shape->driver, NULL);
        *(last ? &part_at(s, last)->next : &lease_at(s, lease)->first_part) = part;
        last = part;
    }
    lease_charge(s, lease, now);
    return lease;
}

void sched_lease_restore(struct sched *s,
                         const struct sched_job *job,
                         const struct gang *gang,
                         usec_t started_at)
{
    struct share driver, other;
    struct facts f;
    uint32_t last = 0;
    sched_lease_end(s, job->id, s->now);
    shares_of(&job->demand, &driver, &other);
    facts_take(s, &f, job);
    uint32_t lease = lease_new(s, &f, started_at ? started_at : s->now);
    for (size_t i = 0; i < gang->n; i++) {
        const struct gang_node *n = &gang->v[i];
        uint32_t host = host_take(s, n->name, strlen(n->name));
        uint32_t part = part_begin(s, lease, host, i ? &other : &driver, n);
        *(last ? &part_at(s, last)->next : &lease_at(s, lease)->first_part) = part;
        last = part;
    }
    lease_charge(s, lease, started_at > s->now ? started_at : s->now);
    changed(s);
}

void lease_leave(struct sched *s, struct lease *l, usec_t at)
{
    lease_stay(s, l);
    l->leaving = true;
    l->leaves_at = at;
    account_at(s, l->f.project)->gpus_leaving += l->gpus;
    account_at(s, l->f.user)->gpus_leaving += l->gpus;
    for (uint32_t p = l->first_part; p; p = part_at(s, p)->next)
        host_touch(s, part_at(s, p)->host, false); /* what is foreseen of it is old */
}

void lease_stay(struct sched *s, struct lease *l)
{
    if (!l->leaving)
        return;
    l->leaving = l->gives_way = false;
    account_at(s, l->f.project)->gpus_leaving -= l->gpus;
    account_at(s, l->f.user)->gpus_leaving -= l->gpus;
    for (uint32_t p = l->first_part; p; p = part_at(s, p)->next)
        host_touch(s, part_at(s, p)->host, false);
}

void sched_lease_end(struct sched *s, const char *id, usec_t now)
{
    uint32_t lease = lease_find(s, id);
    if (!lease)
        return;
    struct lease *l = lease_at(s, lease);
    s->now = now > s->now ? now : s->now;
    lease_stay(s, l);
    charge_both(s, l, -1, s->now);
    facts_give(s, &l->f);
    for (uint32_t p = l->first_part, next; p; p = next) {
        next = part_at(s, p)->next;
        part_end(s, p);
    }
    index_remove(&s->lease_of, hash_keyed(s->seed, l->f.id, strlen(l->f.id)), lease);
    rows_give(&s->leases, lease);
    s->n_leases--;
    changed(s);
}

void ledger_names(const struct sched *s, const struct lease *l, struct buf *out)
{
    buf_reset(out);
    for (uint32_t i = l->first_part; i; i = part_at(s, i)->next)
        (void)buf_addf(out, "%s%s", out->len ? "," : "",
                       host_at(s, part_at(s, i)->host)->name); /* it fits */
}

void ledger_gang(const struct sched *s, const struct lease *l, struct gang *ret)
{
    *ret = (struct gang){0};
    for (uint32_t i = l->first_part; i; i = part_at(s, i)->next) {
        const struct part *p = part_at(s, i);
        const char *name = host_at(s, p->host)->name;
        gang_add(ret, name, strlen(name),
                 p->slots | (p->shared >= 0 ? (uint64_t)1 << p->shared : 0));
    }
}

/* ---- invariants ---- */

static const char *check_part(const struct sched *s, const struct part *p, uint32_t *used)
{
    if (!row_is_used(&s->leases, p->lease))
        return "a part belongs to a lease";
    for (uint64_t m = p->slots; m; m &= m - 1)
        used[__builtin_ctzll(m)] += UNIT;
    if (p->shared >= 0)
        used[p->shared] += p->amount;
    int64_t amount = (int64_t)__builtin_popcountll(p->slots) * UNIT +
                     (p->shared >= 0 ? p->amount : 0) + (int64_t)p->lost * UNIT;
    bool short_of_part = p->shared < 0 && p->gpus % UNIT;
    if (amount != p->gpus && !short_of_part)
        return "a part has the slots of its share";
    return NULL;
}

static const char *check_host(const struct sched *s, const struct host *h, uint32_t host)
{
    uint32_t used[MAX_SLOTS] = {0};
    int64_t gpus = 0, cpus = 0, memory = 0;
    bool forced = false;
    for (uint32_t i = h->first_part; i; i = part_at(s, i)->host_next) {
        const struct part *p = part_at(s, i);
        const char *broken = p->host == host ? check_part(s, p, used) : "a part is on its host";
        if (broken)
            return broken;
        gpus += p->gpus;
        cpus += p->cpus;
        memory += p->memory;
        forced |= p->forced;
    }
    if (gpus != h->gpus_used || cpus != h->cpus_used || memory != h->memory_used)
        return "what a node has given away is what its leases hold";
    for (int i = 0; i < MAX_SLOTS; i++) {
        if (used[i] != h->used[i] || (used[i] > 0) != (h->busy >> i & 1))
            return "what a slot has given away is what its leases hold";
        if (used[i] > UNIT && !forced)
            return "no slot is given away twice";
    }
    return NULL;
}

const char *ledger_check(const struct sched *s)
{
    size_t n_parts = 0, n_leases = 0;
    for (uint32_t i = 1; i < s->hosts.n; i++) {
        const char *broken = row_is_used(&s->hosts, i) ? check_host(s, host_at(s, i), i) : NULL;
        if (broken)
            return broken;
    }
    for (uint32_t i = 1; i < s->parts.n; i++)
        n_parts += row_is_used(&s->parts, i);
    for (uint32_t i = 1; i < s->leases.n; i++) {
        if (!row_is_used(&s->leases, i))
            continue;
        n_leases++;
        if (lease_find(s, lease_at(s, i)->f.id) != i)
            return "a lease is found by its id";
        for (uint32_t p = lease_at(s, i)->first_part; p; p = part_at(s, p)->next) {
            n_parts--;
            if (part_at(s, p)->lease != i)
                return "a lease has its own parts";
        }
    }
    return n_parts                   ? "each part is of one lease"
           : n_leases != s->n_leases ? "leases are counted"
                                     : NULL;
}
