/* SPDX-License-Identifier: Apache-2.0 */
/* nodes_table.c - the registry beside Ray's list: what joins and is lost by it, and what the
 * scheduler may use; see nodes_run.h.
 *
 * What Ray counts as used beyond our leases belongs to somebody else and is held back before a
 * gang is admitted. Ray's count is seconds old: a lease that has just ended is not foreign. */
#include <stdlib.h>
#include <string.h>

#include "argusd/account/accounting.h"
#include "argusd/machines/nodes_run.h"
#include "base/str.h"
#include "base/text.h"
#include "core/job/needs.h"

static const usec_t MISSING_FOR = 12 * USEC_SEC; /* in lists without it, before it is lost */
static const usec_t USE_LAGS = 12 * USEC_SEC;
static const char LACKS[] = "no_driver_resources"; /* see entrypoint_resources */
static const double GIB = 1 << 30;

bool nodes_is_busy(const struct noderun *nr)
{
    return sched_node_lease(nr->nodes->p.sched, nr->row->spec.name, 0) != NULL;
}

/* ---- leases that end ---- */

/* The last few of one node. */
struct ended {
    struct {
        double gpus, cpus;
        usec_t at; /* monotonic */
    } v[8];
    size_t next;
};

static void note_ended(struct nodes *ns, const char *node, double gpus, double cpus)
{
    struct ended *e = map_find(ns->ended, node);
    if (!e) {
        e = xcalloc(1, sizeof(*e));
        map_set(ns->ended, node, e);
    }
    size_t i = e->next++ % array_len(e->v);
    e->v[i].gpus = gpus;
    e->v[i].cpus = cpus;
    e->v[i].at = clock_mono();
}

/* What Ray may still count for leases that are over. */
static void sum_ended(const struct nodes *ns, const char *node, double *ret_gpus, double *ret_cpus)
{
    const struct ended *e = map_find(ns->ended, node);
    usec_t now = clock_mono();
    *ret_gpus = *ret_cpus = 0;
    for (size_t i = 0; e && i < array_len(e->v); i++)
        if (e->v[i].at && now - e->v[i].at < USE_LAGS) {
            *ret_gpus += e->v[i].gpus;
            *ret_cpus += e->v[i].cpus;
        }
}

bool nodes_was_leased(const struct nodes *ns, const char *node)
{
    double gpus, cpus;
    sum_ended(ns, node, &gpus, &cpus);
    return gpus > 0 || cpus > 0;
}

void nodes_ended_free(struct nodes *ns)
{
    struct ended *e;
    for (size_t pos = 0; (e = map_next(ns->ended, &pos, NULL));)
        free(e);
    map_free(ns->ended);
}

void nodes_lease_ended(struct nodes *ns, const char *job, const struct gang *gang, double cpus)
{
    bool kick = false;
    for (size_t i = 0; i < gang->n; i++) {
        const char *name = gang->v[i].name;
        struct noderun *nr = nodes_find(ns, name);
        double gpus = gang_node_gpus(&gang->v[i]);
        note_ended(ns, name, gpus, cpus);
        if (nr && gpus > 0 && nr->row->step == NODE_STEP_IN) {
            nodes_hold(nr, job, gpus);
            kick = true;
        }
    }
    if (kick) {
        nodes_give_table(ns); /* before anybody else is admitted */
        nodes_kick(ns);
    }
}

/* ---- what is foreign ---- */

/* Used by Ray's count, leased by ours: the rest, unless it was leased a moment ago. */
void nodes_foreign_use(const struct nodes *ns,
                       const struct cluster_node *k,
                       bool is_new,
                       double *ret_gpus,
                       double *ret_cpus)
{
    double gpus, cpus, gone_gpus = 0, gone_cpus = 0;
    sched_node_used(ns->p.sched, k->name, &gpus, &cpus);
    if (!is_new)
        sum_ended(ns, k->name, &gone_gpus, &gone_cpus);
    gpus = k->gpus_used - gpus - gone_gpus;
    cpus = k->cpus_used - cpus - gone_cpus;
    *ret_gpus = vacancy_is_use(gpus, 0) ? gpus : 0;
    *ret_cpus = vacancy_is_use(0, cpus) ? cpus : 0;
}

/* ---- history ---- */

void nodes_bury(const struct noderun *nr)
{
    size_t n;
    const struct cluster_node *v = cluster_nodes(nr->nodes->p.cluster, &n);
    for (size_t i = 0; i < n; i++)
        if (!strcmp(v[i].name, nr->row->spec.name) && (nr->was_ours || !v[i].is_alive))
            (void)map_set(nr->nodes->former, v[i].node_id, nr->nodes); /* any value: it is a set */
}

/* Before we came: what was told to end and did is nobody's trouble. */
static void bury_ended(struct nodes *ns)
{
    size_t n;
    const struct cluster_node *v = cluster_nodes(ns->p.cluster, &n);
    for (size_t i = 0; i < n; i++)
        if (!v[i].is_alive && str_starts(str_or(v[i].message, ""), "Expected termination"))
            (void)map_set(ns->former, v[i].node_id, ns);
}

bool nodes_is_former(const struct nodes *ns, const struct cluster_node *k)
{
    return map_find(ns->former, k->node_id) != NULL;
}

/* ---- Ray's list ---- */

static void go_in(struct noderun *nr)
{
    struct node_event e = {.kind = NODE_EV_SEEN, .session = cluster_session(nr->nodes->p.cluster)};
    nr->idle_since = 0;
    nr->lost_id[0] = 0;
    nr->look_after = nr->reach_after = 0;
    nr->looks_failed = nr->reach_failed = nr->slow = 0;
    nr->reach_ever = false;
    (void)nodes_change(nr, &e, "argusd");
}

static void nodes_table_lose(struct noderun *nr, const char *code, const char *text)
{
    struct node_event e = {.kind = NODE_EV_LOST, .code = code, .text = text};
    text_copy(nr->lost_id, nr->ray_id);
    nodes_holds_free(nr);
    (void)nodes_change(nr, &e, "argusd");
}

static void take_dead(struct noderun *nr, const struct cluster_node *k)
{
    char text[NODE_TEXT_MAX];
    usec_t now = clock_mono();
    if (nr->row->step != NODE_STEP_IN)
        return;
    if (k && !strcmp(k->node_id, nr->ray_id)) {
        text_printf(text, "Ray has given it up: %s", str_or(k->message, "no reason told"));
        nodes_table_lose(nr, "ray_dead", text);
        return;
    }
    if (!nr->missing_since)
        nr->missing_since = now;
    if (now - nr->missing_since >= MISSING_FOR)
        nodes_table_lose(nr, "ray_missing", "Ray's list does not have it any more");
}

/* The registered node of this Ray node that is alive, by name; of the head by its place. */
static const struct cluster_node *find_alive(const struct noderun *nr)
{
    size_t n;
    const struct cluster_node *v = cluster_nodes(nr->nodes->p.cluster, &n), *found = NULL;
    for (size_t i = 0; i < n; i++) {
        bool same = nr->row->is_head ? v[i].is_head : !strcmp(v[i].name, nr->row->spec.name);
        if (same && v[i].is_alive && strcmp(v[i].node_id, nr->lost_id) != 0)
            found = &v[i];
    }
    return found;
}

/* Ray lists a raylet that is gone as alive for up to half a minute. Meanwhile a driver on that
 * machine, which finds its raylet by address, may meet the former one: nothing starts there. */
static bool has_former_self(const struct noderun *nr, const struct cluster_node *now)
{
    size_t n;
    const struct cluster_node *v = cluster_nodes(nr->nodes->p.cluster, &n);
    for (size_t i = 0; i < n && !nr->row->is_head; i++)
        if (&v[i] != now && v[i].is_alive && !strcmp(v[i].name, nr->row->spec.name))
            return true;
    return false;
}

/* The one that was alive when we saw it last, and is not now. */
static const struct cluster_node *find_last(const struct noderun *nr)
{
    return *nr->ray_id ? cluster_find_id(nr->nodes->p.cluster, nr->ray_id) : NULL;
}

static void take_session(struct noderun *nr)
{
    const char *session = cluster_session(nr->nodes->p.cluster);
    struct node_event e = {.kind = NODE_EV_SESSION};
    if (!nr->row->is_head && nr->row->may_run && *nr->row->session && *session &&
        strcmp(nr->row->session, session) != 0)
        (void)nodes_change(nr, &e, "argusd");
}

static void take_one(struct noderun *nr)
{
    const struct cluster_node *k = find_alive(nr);
    nr->ray_alive = k != NULL;
    if (k) {
        text_copy(nr->ray_id, k->node_id);
        nr->gpus = k->gpus;
        nr->cpus = k->cpus;
        nr->takes_drivers = k->takes_drivers;
        nr->missing_since = 0;
        nr->former_self = has_former_self(nr, k);
        nr->was_ours |= nr->row->may_run;
        if (nr->row->may_run && nr->row->step < NODE_STEP_IN && !nr->former_self)
            go_in(nr); /* one that we started */
    } else {
        take_dead(nr, find_last(nr));
    }
}

void nodes_take(struct nodes *ns)
{
    uint64_t generation = cluster_generation(ns->p.cluster);
    if (ns->closing || !ns->started)
        return;
    if (generation != ns->generation && cluster_is_up(ns->p.cluster)) {
        if (!ns->generation)
            bury_ended(ns);
        ns->generation = generation;
        for (size_t i = 0; i < ns->n; i++) {
            take_session(ns->v[i]);
            take_one(ns->v[i]);
        }
    }
    nodes_give_table(ns);
    nodes_pass(ns);
}

/* ---- the scheduler's table ---- */

static double held_of(const struct noderun *nr, double used)
{
    double held = nodes_held(nr) + nr->foreign_gpus, room = nr->gpus - used;
    return held < room ? held : room > 0 ? room : 0;
}

double nodes_foreign(const struct nodes *ns, const struct cluster_node *k)
{
    double gpus, cpus;
    nodes_foreign_use(ns, k, false, &gpus, &cpus);
    return gpus;
}

/* Both texts are yours. */
static struct sched_node registered(struct noderun *nr, char **ret_pool, char **ret_versions)
{
    const char *why = node_why_not(nr->row);
    bool may_be_measured = node_waits_for_net(nr->row) && nr->takes_drivers && !nr->former_self;
    const struct cluster_node *k = nr->ray_alive ? find_last(nr) : NULL;
    double gpus, cpus;
    sched_node_used(nr->nodes->p.sched, nr->row->spec.name, &gpus, &cpus);
    nr->foreign_gpus = nr->foreign_cpus = 0;
    if (k)
        nodes_foreign_use(nr->nodes, k, false, &nr->foreign_gpus, &nr->foreign_cpus);
    if (!*why && !nr->takes_drivers)
        why = LACKS;
    if (!*why && nr->former_self)
        why = "Ray has not given up its former raylet yet";
    *ret_pool = nodespec_pool(&nr->row->spec);
    *ret_versions = needs_versions(&nr->row->facts);
    return (struct sched_node){.name = nr->row->spec.name,
                               .pool = *ret_pool,
                               .network = nr->row->spec.network,
                               .versions = *ret_versions,
                               .gpus = nr->gpus,
                               .cpus = nr->cpus,
                               .memory = (double)nr->row->facts.memory_bytes / GIB,
                               .gpus_held = held_of(nr, gpus),
                               .cpus_held =
                                   nr->foreign_cpus < nr->cpus ? nr->foreign_cpus : nr->cpus,
                               .usable = !*why,
                               .why_not = *why ? why : NULL,
                               .only = may_be_measured ? "" : NULL,
                               .slow = node_slow_is(nr->row->slow, clock_wall()),
                               .shareable = nr->row->spec.shareable};
}

bool nodes_meets(const struct nodes *ns, const char *name, const char *needs)
{
    const struct noderun *nr = nodes_find(ns, name);
    _cleanup_(freep) char *versions = nr ? needs_versions(&nr->row->facts) : NULL;
    return !versions || !needs_find_unmet(needs, versions, NULL);
}

char *nodes_labels(const struct nodes *ns, const char *name)
{
    const struct noderun *nr = nodes_find(ns, name);
    return nr ? nodespec_pool(&nr->row->spec) : NULL;
}

/* One that others started. It goes with a head of ours, and takes nothing while that one leaves. */
static struct sched_node attached(const struct nodes *ns, const struct cluster_node *k)
{
    double gpus, cpus;
    const struct noderun *head = nodes_find(ns, "head");
    bool head_goes = head && head->row->state == NODE_DRAINING;
    bool usable = !k->is_head && k->takes_drivers && !head_goes;
    nodes_foreign_use(ns, k, false, &gpus, &cpus);
    return (struct sched_node){.name = k->name,
                               .pool = k->pool,
                               .gpus = k->gpus,
                               .cpus = k->cpus,
                               .gpus_held = gpus < k->gpus ? gpus : k->gpus,
                               .cpus_held = cpus < k->cpus ? cpus : k->cpus,
                               .usable = usable,
                               .why_not = usable || k->is_head ? NULL
                                          : head_goes          ? node_why_not(head->row)
                                                               : LACKS};
}

/* With the pools that it is in for a while: one that is to be measured is in these alone. */
static void give_more_pools(struct sched_node *k, const char *more, char **ret_pool)
{
    const char *written = str_or(k->pool, "");
    if (k->only) {
        k->usable = true;
        k->why_not = NULL;
        *ret_pool = xstrdup(more);
        k->only = *ret_pool;
        return;
    }
    *ret_pool = xasprintf("%s%s%s", written, *written ? "," : "", more);
    k->pool = *ret_pool;
}

/* The pools that a machine is in for a while are the scheduler's alone: nothing is accounted under
 * them. */
static void give_to_sched(const struct nodes *ns, const struct sched_node *v, size_t n)
{
    struct sched_node *all = xcalloc(n + 1, sizeof(*all));
    char **pools = xcalloc(n + 1, sizeof(char *));
    for (size_t i = 0; i < n; i++) {
        _cleanup_(freep) char *more = ns->p.also_in(v[i].name, ns->p.arg);
        all[i] = v[i];
        if (more)
            give_more_pools(&all[i], more, &pools[i]);
    }
    sched_set_nodes(ns->p.sched, all, n);
    for (size_t i = 0; i < n; i++)
        free(pools[i]);
    free(pools);
    free(all);
}

void nodes_give_table(struct nodes *ns)
{
    size_t n_ray, n = 0;
    const struct cluster_node *ray = cluster_nodes(ns->p.cluster, &n_ray);
    struct sched_node *v = xcalloc(ns->n + n_ray + 1, sizeof(*v));
    double *foreign = xcalloc(ns->n + n_ray + 1, sizeof(*foreign));
    char **texts = xcalloc(2 * ns->n + 1, sizeof(*texts)), **text = texts;
    ns->table_changed = false;
    for (size_t i = 0; i < ns->n; i++)
        if (!ns->v[i]->gone && !ns->v[i]->row->is_head) {
            v[n] = registered(ns->v[i], text, text + 1);
            foreign[n++] = ns->v[i]->foreign_gpus;
            text += 2;
        }
    for (size_t i = 0; i < n_ray; i++)
        if (ray[i].is_alive && !nodes_is_registered(ns, ray[i].name) &&
            !nodes_is_former(ns, &ray[i])) {
            v[n] = attached(ns, &ray[i]);
            foreign[n] = v[n].gpus_held;
            n++;
        }
    give_to_sched(ns, v, n);
    nodes_foreign_ask(ns);
    if (ns->generation) /* before Ray was seen once, its nodes are as they were last */
        accounting_set_nodes(ns->p.accounting, v, foreign, n);
    while (text > texts)
        free(*--text);
    free(texts);
    free(foreign);
    free(v);
}
