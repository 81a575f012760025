/* SPDX-License-Identifier: Apache-2.0 */
/* sched.c - FIFO gang admission; see sched.h.
 *
 * The queue is one sorted list per priority. `scan` remembers how far from its
 * head the entries are known to be too large for the pool as it is now, so that
 * a pass does not walk them again; a change of nodes forgets it. Places in line are
 * numbers that stay right while jobs come last and go first, and are made anew when
 * somebody asks after one left from the middle: a page of a long queue costs no walk each. */
#include "core/sched.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/str.h"

enum { PRIORITIES = 101 };

struct entry {
    char *id;
    int64_t seq;
    int priority;
    char *pool;
    struct demand d;
    void *job;
    size_t place; /* rises by one along the line, from any number, unless it has gaps */
    struct entry *prev, *next;
};

struct line {
    struct entry *first, *last;
    struct entry *scan; /* everything before it is too large; NULL = start at first */
    bool all_too_large; /* the scan went over the end */
    size_t n;
    bool gaps; /* places are to be made anew */
};

struct host {
    char *name, *pool;
    double gpus, cpus, gpus_used, cpus_used;
    bool usable;
    bool listed; /* in the node table; false: only leases keep it here */
};

struct lease {
    char *id;
    struct demand d;
    char **hosts; /* names; [0] has the driver */
    size_t n;
};

struct sched {
    struct sched_limits limits;
    struct line lines[PRIORITIES];
    struct map *waiting; /* id -> entry */
    struct map *leases;  /* id -> lease */
    struct host *hosts;
    size_t n_hosts;
};

static const double TINY = 1e-6; /* Ray counts in 1/10000 */

struct sched *sched_new(const unsigned char seed[static 16], const struct sched_limits *limits)
{
    struct sched *s = xcalloc(1, sizeof(*s));
    s->limits = *limits;
    s->waiting = map_new(seed);
    s->leases = map_new(seed);
    return s;
}

static void entry_free(struct entry *e)
{
    free(e->id);
    free(e->pool);
    free(e);
}

static void lease_free(struct lease *l)
{
    for (size_t i = 0; i < l->n; i++)
        free(l->hosts[i]);
    free(l->hosts);
    free(l->id);
    free(l);
}

void sched_free(struct sched *s)
{
    if (!s)
        return;
    void *v;
    for (size_t pos = 0; (v = map_next(s->waiting, &pos, NULL));)
        entry_free(v);
    for (size_t pos = 0; (v = map_next(s->leases, &pos, NULL));)
        lease_free(v);
    map_free(s->waiting);
    map_free(s->leases);
    for (size_t i = 0; i < s->n_hosts; i++) {
        free(s->hosts[i].name);
        free(s->hosts[i].pool);
    }
    free(s->hosts);
    free(s);
}

/* ---- nodes and the ledger ---- */

static struct host *host_find(const struct sched *s, const char *name)
{
    for (size_t i = 0; i < s->n_hosts; i++)
        if (!strcmp(s->hosts[i].name, name))
            return &s->hosts[i];
    return NULL;
}

static struct host *host_add(struct sched *s, const char *name)
{
    s->hosts = xrealloc(s->hosts, s->n_hosts + 1, sizeof(*s->hosts));
    s->hosts[s->n_hosts] = (struct host){.name = xstrdup(name), .pool = xstrdup("")};
    return &s->hosts[s->n_hosts++];
}

static bool update_host(struct sched *s, const struct sched_node *n)
{
    struct host *h = host_find(s, n->name);
    bool is_new = !h;
    if (!h)
        h = host_add(s, n->name);
    bool changed = is_new || h->gpus < n->gpus || h->gpus > n->gpus || h->cpus < n->cpus ||
                   h->cpus > n->cpus || h->usable != n->usable ||
                   !str_eq(h->pool, str_or(n->pool, ""));
    h->gpus = n->gpus;
    h->cpus = n->cpus;
    h->usable = n->usable;
    h->listed = true;
    set_str(&h->pool, str_or(n->pool, ""));
    return changed;
}

static void forget_scans(struct sched *s)
{
    for (int p = 0; p < PRIORITIES; p++) {
        s->lines[p].scan = NULL;
        s->lines[p].all_too_large = false;
    }
}

void sched_set_nodes(struct sched *s, const struct sched_node *nodes, size_t n)
{
    bool changed = false;
    for (size_t i = 0; i < s->n_hosts; i++)
        s->hosts[i].listed = false;
    for (size_t i = 0; i < n; i++)
        changed |= update_host(s, &nodes[i]);
    for (size_t i = 0; i < s->n_hosts; i++) {
        struct host *h = &s->hosts[i];
        if (!h->listed && h->usable) {
            h->usable = false;
            changed = true;
        }
    }
    if (changed)
        forget_scans(s);
}

/* What a lease takes on host i of its gang: the driver sits on the first. */
static double share_gpus(const struct demand *d, size_t i)
{
    return d->gpus_per_node + (i == 0 ? d->driver_gpus : 0);
}

/* CPUs that may lie anywhere are counted evenly on the gang's own hosts. */
static double share_cpus(const struct demand *d, size_t i)
{
    return d->cpus_per_node + d->extra_cpus / d->nnodes + (i == 0 ? d->driver_cpus : 0);
}

static void charge(struct sched *s, const struct lease *l, int sign)
{
    for (size_t i = 0; i < l->n; i++) {
        struct host *h = host_find(s, l->hosts[i]);
        if (!h)
            h = host_add(s, l->hosts[i]);
        h->gpus_used += sign * share_gpus(&l->d, i);
        h->cpus_used += sign * share_cpus(&l->d, i);
    }
}

static void lease_begin(struct sched *s, struct lease *l)
{
    sched_lease_end(s, l->id);
    charge(s, l, 1);
    map_set(s->leases, l->id, l);
}

void sched_lease_end(struct sched *s, const char *id)
{
    struct lease *l = map_remove(s->leases, id);
    if (!l)
        return;
    charge(s, l, -1);
    lease_free(l);
}

void sched_lease_restore(struct sched *s, const char *id, const char *nodes, const struct demand *d)
{
    struct lease *l = xcalloc(1, sizeof(*l));
    l->id = xstrdup(id);
    l->d = *d;
    while (*nodes) {
        size_t len = strcspn(nodes, ",");
        l->hosts = xrealloc(l->hosts, l->n + 1, sizeof(*l->hosts));
        l->hosts[l->n++] = xstrndup(nodes, len);
        nodes += len + (nodes[len] == ',');
    }
    lease_begin(s, l);
}

void sched_node_used(const struct sched *s, const char *node, double *ret_gpus, double *ret_cpus)
{
    const struct host *h = host_find(s, node);
    *ret_gpus = h ? h->gpus_used : 0;
    *ret_cpus = h ? h->cpus_used : 0;
}

/* ---- does it fit ---- */

static bool has_label(const char *labels, const char *label, size_t len)
{
    while (*labels) {
        size_t n = strcspn(labels, ",");
        if (n == len && !strncmp(labels, label, len))
            return true;
        labels += n + (labels[n] == ',');
    }
    return false;
}

/* Every label that the job names must be one of the host's. */
static bool in_pool(const struct host *h, const char *pool)
{
    if (!h->usable)
        return false;
    while (*pool) {
        size_t n = strcspn(pool, ",");
        if (!has_label(h->pool, pool, n))
            return false;
        pool += n + (pool[n] == ',');
    }
    return true;
}

static bool host_fits(const struct host *h, const struct demand *d, size_t i, bool empty)
{
    double gpus = h->gpus - (empty ? 0 : h->gpus_used);
    double cpus = h->cpus - (empty ? 0 : h->cpus_used);
    return gpus + TINY >= share_gpus(d, i) && cpus + TINY >= share_cpus(d, i);
}

/* Best fit: the host whose free GPUs are fewest among those that hold the share. */
static const struct host *pick(const struct sched *s,
                               const char *pool,
                               const struct demand *d,
                               size_t i,
                               bool empty,
                               const bool *taken)
{
    const struct host *best = NULL;
    for (size_t h = 0; h < s->n_hosts; h++) {
        const struct host *c = &s->hosts[h];
        if (taken[h] || !in_pool(c, pool) || !host_fits(c, d, i, empty))
            continue;
        double left = c->gpus - (empty ? 0 : c->gpus_used);
        if (!best || left < best->gpus - (empty ? 0 : best->gpus_used))
            best = c;
    }
    return best;
}

/* Distinct hosts for the whole gang, the driver's first (its share is the largest,
 * so choosing it first never hides a solution). Returns how many were found. */
static size_t find_gang(const struct sched *s,
                        const char *pool,
                        const struct demand *d,
                        bool empty,
                        const struct host **ret)
{
    bool *taken = xcalloc(s->n_hosts, sizeof(*taken));
    size_t n = 0;
    for (; n < (size_t)d->nnodes; n++) {
        const struct host *h = pick(s, pool, d, n, empty, taken);
        if (!h)
            break;
        taken[h - s->hosts] = true;
        if (ret)
            ret[n] = h;
    }
    free(taken);
    return n;
}

bool sched_fits_empty(const struct sched *s, const char *pool, const struct demand *d)
{
    return (size_t)d->nnodes <= s->n_hosts &&
           find_gang(s, pool, d, true, NULL) == (size_t)d->nnodes;
}

double sched_pool_gpus(const struct sched *s, const char *pool)
{
    double sum = 0;
    for (size_t i = 0; i < s->n_hosts; i++)
        if (in_pool(&s->hosts[i], pool))
            sum += s->hosts[i].gpus;
    return sum;
}

/* ---- the queue ---- */

static struct line *line_of(struct sched *s, const struct entry *e)
{
    return &s->lines[e->priority];
}

static void insert(struct line *l, struct entry *e)
{
    struct entry *after = l->last;
    while (after && after->seq > e->seq)
        after = after->prev;
    e->prev = after;
    e->next = after ? after->next : l->first;
    if (e->next)
        e->next->prev = e;
    else
        l->last = e;
    if (after)
        after->next = e;
    else
        l->first = e;
    l->n++;
    l->gaps = l->gaps || e->next;
    e->place = after ? after->place + 1 : 0;
    if (e->next) { /* it came in before others: the scan may have passed its place */
        l->scan = NULL;
        l->all_too_large = false;
    } else if (l->all_too_large) {
        l->all_too_large = false;
        l->scan = e;
    }
}

void sched_enqueue(struct sched *s,
                   const char *id,
                   int64_t seq,
                   int priority,
                   const char *pool,
                   const struct demand *d,
                   void *job)
{
    sched_dequeue(s, id);
    struct entry *e = xcalloc(1, sizeof(*e));
    *e = (struct entry){.id = xstrdup(id),
                        .seq = seq,
                        .priority = priority < 0     ? 0
                                    : priority > 100 ? 100
                                                     : priority,
                        .pool = xstrdup(str_or(pool, "")),
                        .d = *d,
                        .job = job};
    insert(line_of(s, e), e);
    map_set(s->waiting, id, e);
}

static void unlink_entry(struct sched *s, struct entry *e)
{
    struct line *l = line_of(s, e);
    l->n--;
    l->gaps = l->gaps || (e->prev && e->next);
    if (l->scan == e) {
        l->scan = e->next;
        l->all_too_large = !e->next && e->prev;
    }
    if (e->prev)
        e->prev->next = e->next;
    else
        l->first = e->next;
    if (e->next)
        e->next->prev = e->prev;
    else
        l->last = e->prev;
}

void sched_dequeue(struct sched *s, const char *id)
{
    struct entry *e = map_remove(s->waiting, id);
    if (!e)
        return;
    unlink_entry(s, e);
    entry_free(e);
}

size_t sched_queue_length(const struct sched *s)
{
    return map_count(s->waiting);
}

size_t sched_lease_count(const struct sched *s)
{
    return map_count(s->leases);
}

/* ---- the pass ---- */

/* The first entry that fits the pool when empty, in order; NULL if none. */
static struct entry *first_possible(struct sched *s)
{
    for (int p = PRIORITIES - 1; p >= 0; p--) {
        struct line *l = &s->lines[p];
        if (l->all_too_large)
            continue;
        for (struct entry *e = l->scan ? l->scan : l->first; e; e = e->next) {
            l->scan = e;
            if (sched_fits_empty(s, e->pool, &e->d))
                return e;
        }
        l->all_too_large = l->first != NULL;
    }
    return NULL;
}

static bool at_limit(const struct sched *s)
{
    return s->limits.live_jobs && map_count(s->leases) >= (size_t)s->limits.live_jobs;
}

bool sched_next(struct sched *s, struct sched_decision *ret)
{
    struct entry *e = at_limit(s) ? NULL : first_possible(s);
    if (!e)
        return false;
    const struct host **gang = xcalloc((size_t)e->d.nnodes, sizeof(const struct host *));
    bool fits = find_gang(s, e->pool, &e->d, false, gang) == (size_t)e->d.nnodes;
    if (fits) {
        struct buf names = BUF_INIT(sizeof(ret->nodes) - 1);
        for (int i = 0; i < e->d.nnodes; i++)
            (void)buf_addf(&names, "%s%s", i ? "," : "", gang[i]->name); /* overflow: below */
        fits = !names.failed; /* a gang that cannot be written down cannot be leased */
        if (fits) {
            *ret = (struct sched_decision){.job = e->job};
            (void)snprintf(ret->nodes, sizeof(ret->nodes), "%s", buf_str(&names));
            (void)snprintf(ret->driver_node, sizeof(ret->driver_node), "%s", gang[0]->name);
            sched_lease_restore(s, e->id, ret->nodes, &e->d);
        }
        buf_release(&names);
    }
    free(gang);
    if (fits)
        sched_dequeue(s, e->id);
    return fits;
}

/* ---- why ---- */

static void close_gaps(struct line *l)
{
    size_t place = 0;
    for (struct entry *e = l->gaps ? l->first : NULL; e; e = e->next)
        e->place = place++;
    l->gaps = false;
}

static int position_of(struct sched *s, const struct entry *e)
{
    struct line *l = line_of(s, e);
    close_gaps(l);
    size_t n = e->place - l->first->place + 1;
    for (int p = PRIORITIES - 1; p > e->priority; p--)
        n += s->lines[p].n;
    return (int)n;
}

static void explain_too_small(const struct sched *s, const struct entry *e, struct sched_why *ret)
{
    double has = sched_pool_gpus(s, e->pool), needs = e->d.nnodes * e->d.gpus_per_node;
    size_t hosts = 0;
    for (size_t i = 0; i < s->n_hosts; i++)
        hosts += in_pool(&s->hosts[i], e->pool);
    ret->code = "pool_too_small";
    if (has + TINY < needs)
        (void)snprintf(ret->text, sizeof(ret->text),
                       "pool_too_small (has %g, needs %g): the pool has %g GPUs on %zu nodes; it "
                       "starts when enough nodes join",
                       has, needs, has, hosts); /* fits */
    else
        (void)snprintf(ret->text, sizeof(ret->text),
                       "pool_too_small: no %d of its %zu nodes have %g GPUs and %g CPUs each, even "
                       "when empty; ask for another shape or fewer CPUs",
                       e->d.nnodes, hosts, share_gpus(&e->d, 0), share_cpus(&e->d, 0));
}

static void explain_waiting(const struct sched *s, const struct entry *e, struct sched_why *ret)
{
    struct demand gpus_only = e->d;
    gpus_only.cpus_per_node = gpus_only.driver_cpus = 0;
    bool cpus = find_gang(s, e->pool, &gpus_only, false, NULL) == (size_t)e->d.nnodes;
    double free_gpus = 0, free_cpus = 0;
    for (size_t i = 0; i < s->n_hosts; i++)
        if (in_pool(&s->hosts[i], e->pool)) {
            free_gpus += s->hosts[i].gpus - s->hosts[i].gpus_used;
            free_cpus += s->hosts[i].cpus - s->hosts[i].cpus_used;
        }
    ret->code = cpus ? "waiting_for_cpus" : "waiting_for_gpus";
    if (cpus)
        (void)snprintf(ret->text, sizeof(ret->text),
                       "first in line; needs %d x %g CPUs beside its GPUs, %g are free",
                       e->d.nnodes, share_cpus(&e->d, 0), free_cpus);
    else
        (void)snprintf(ret->text, sizeof(ret->text),
                       "first in line; needs %d x %g GPUs, %g are free", e->d.nnodes,
                       share_gpus(&e->d, 0), free_gpus);
}

bool sched_explain(struct sched *s, const char *id, struct sched_why *ret)
{
    const struct entry *e = map_find(s->waiting, id);
    if (!e)
        return false;
    *ret = (struct sched_why){.position = position_of(s, e)};
    const struct entry *first = first_possible(s); /* the one that blocks */
    if (!sched_fits_empty(s, e->pool, &e->d)) {
        explain_too_small(s, e, ret);
    } else if (at_limit(s)) {
        ret->code = "live_jobs_limit";
        (void)snprintf(ret->text, sizeof(ret->text),
                       "%zu jobs run, as many as limits.live_jobs allows", map_count(s->leases));
    } else if (first == e) {
        explain_waiting(s, e, ret);
    } else {
        ret->code = "queued_behind";
        (void)snprintf(ret->text, sizeof(ret->text), "behind '%s', which is first in line",
                       first->id);
    }
    return true;
}

/* ---- invariants ---- */

static const char *check_lines(const struct sched *s)
{
    size_t n = 0;
    for (int p = 0; p < PRIORITIES; p++) {
        size_t before = n;
        for (const struct entry *e = s->lines[p].first; e; e = e->next, n++) {
            if (e->next && e->next->seq < e->seq)
                return "a line is in order of submission";
            if (e->next ? e->next->prev != e : s->lines[p].last != e)
                return "a line is linked both ways";
            if (!s->lines[p].gaps && e->next && e->next->place != e->place + 1)
                return "places rise by one along a line";
            if (e->priority != p || map_find(s->waiting, e->id) != e)
                return "each waiting job is in the line of its priority, once";
        }
        if (n - before != s->lines[p].n)
            return "a line knows its length";
    }
    return n == map_count(s->waiting) ? NULL : "the lines hold exactly those that wait";
}

const char *sched_check(const struct sched *s)
{
    for (size_t i = 0; i < s->n_hosts; i++) {
        const struct host *h = &s->hosts[i];
        double gpus = 0, cpus = 0;
        struct lease *l;
        for (size_t pos = 0; (l = map_next(s->leases, &pos, NULL));)
            for (size_t k = 0; k < l->n; k++)
                if (!strcmp(l->hosts[k], h->name)) {
                    gpus += share_gpus(&l->d, k);
                    cpus += share_cpus(&l->d, k);
                }
        if (gpus - h->gpus_used > TINY || h->gpus_used - gpus > TINY ||
            cpus - h->cpus_used > TINY || h->cpus_used - cpus > TINY)
            return "what a node has given away is what its leases hold";
    }
    return check_lines(s);
}
