/* SPDX-License-Identifier: Apache-2.0 */
/* netjoins.c - the check of a machine that has joined, before it takes jobs; see README.md.
 *
 * What is owed stands in the row of the machine (NODE_NET_DUE, NODE_NET_BAD) and in the rows of the
 * checks, so that a restart goes on by looking at both. One check at a time for a machine, also for
 * the neighbour: two at once would halve each other's figures. The job takes no GPU, since those of
 * the neighbour may be in use. */
#include <stdlib.h>
#include <string.h>

#include "argusd/network/netchecks_run.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

static const usec_t AGAIN_AFTER = 10 * USEC_MIN; /* a check that did not go well */
static const usec_t REFUSED_FOR = 10 * USEC_SEC;
static const double CPUS_OF_JOB = 1;

/* ---- who is measured with it ---- */

/* Lower is better. A machine that the last check was with may be the one to blame. */
enum { NEIGHBOUR_READY, NEIGHBOUR_DUE, NEIGHBOUR_BAD, NEIGHBOUR_LAST = 8, NEIGHBOUR_NONE = 99 };

struct neighbours {
    const char *best; /* NULL = none is free */
    int rank;
    size_t n; /* that there are, free or not */
};

/* One label is enough; a machine without labels is everybody's neighbour. */
static bool is_neighbour(const char *labels, const char *others)
{
    const char *item;
    size_t len;
    if (!*labels || !*others)
        return true;
    while ((item = str_item(&labels, &len))) {
        _cleanup_(freep) char *label = xstrndup(item, len);
        if (str_list_has_all(others, label))
            return true;
    }
    return false;
}

static int rank_by_state(const struct netchecks *nc, const char *name)
{
    const struct noderun *nr = nodes_find(nc->p.nodes, name);
    const struct node_row *row = nr ? nodes_row(nr) : NULL;
    if (!row || !*node_why_not(row))
        return NEIGHBOUR_READY;
    if (!node_waits_for_net(row))
        return NEIGHBOUR_NONE;
    return row->net == NODE_NET_DUE ? NEIGHBOUR_DUE : NEIGHBOUR_BAD;
}

static bool is_free(const struct netchecks *nc, const struct cluster_node *k)
{
    double gpus, cpus;
    sched_node_used(jobs_sched(nc->p.jobs), k->name, &gpus, &cpus);
    return k->cpus - cpus >= CPUS_OF_JOB && !netchecks_has_node(nc, k->name);
}

/* The newest check at a join of this machine; NULL: none is kept. */
static const struct netcheck *last_of(const struct netchecks *nc, const char *name)
{
    for (size_t i = 0; i < nc->n; i++)
        if (nc->v[i]->join && strv_has(&nc->v[i]->nodes, name))
            return nc->v[i];
    return NULL;
}

static struct neighbours neighbours_of(const struct netchecks *nc, const struct node_row *n)
{
    size_t all;
    struct neighbours ret = {.rank = NEIGHBOUR_NONE};
    const struct cluster_node *v = cluster_nodes(nc->p.cluster, &all);
    const struct netcheck *last = last_of(nc, n->spec.name);
    _cleanup_(freep) char *labels = nodespec_pool(&n->spec);
    for (size_t i = 0; i < all; i++) {
        _cleanup_(freep) char *own = nodes_labels(nc->p.nodes, v[i].name);
        int rank = rank_by_state(nc, v[i].name);
        if (!netchecks_takes_jobs(&v[i]) || str_eq(v[i].name, n->spec.name) ||
            rank == NEIGHBOUR_NONE || !is_neighbour(labels, own ? own : str_or(v[i].pool, "")))
            continue;
        ret.n++;
        if (last && strv_has(&last->nodes, v[i].name))
            rank += NEIGHBOUR_LAST;
        if (rank < ret.rank && is_free(nc, &v[i])) {
            ret.rank = rank;
            ret.best = v[i].name;
        }
    }
    return ret;
}

/* ---- in whose name ---- */

static bool may_ask(const struct person *who)
{
    return who && !who->disabled && who->role >= HTTP_ROLE_ADMIN;
}

/* Who added it, while he may; else any admin. */
static const struct person *asker_of(const struct netchecks *nc, const struct node_row *n)
{
    const struct people *people = nc->p.importer->people;
    const struct person *who = people_find(people, n->added_by);
    for (size_t pos = 0; !may_ask(who) && (who = people_next(people, &pos));)
        continue;
    return who;
}

/* ---- what the machine is told ---- */

static void say(struct noderun *nr,
                enum node_event_kind kind,
                const char *code,
                const struct message_arg *args)
{
    char text[NODE_TEXT_MAX];
    message_write(text, sizeof(text), args);
    const struct node_event e = {.kind = kind, .code = code, .text = text};
    nodes_net_told(nr, &e);
}

static void netjoins_begin(struct netchecks *nc, struct noderun *nr, const char *peer)
{
    const struct node_row *n = nodes_row(nr);
    const struct person *who = asker_of(nc, n);
    struct http_principal p = {.role = HTTP_ROLE_ADMIN};
    struct netchecks_order o = {.join = true};
    const struct netcheck *k = NULL;
    const char *field = NULL;
    struct err err = {0};
    text_copy(p.user, who ? who->name : n->added_by);
    strv_add(&o.nodes, n->spec.name);
    strv_add(&o.nodes, peer);
    int r = netchecks_begin(nc, &p, &o, &k, &field, &err);
    if (r < 0) {
        nc->join_after = clock_mono() + REFUSED_FOR;
        say(nr, NODE_EV_NET_WAITS, "net_check_refused", MESSAGE_ARGS(MESSAGE_ERR("why", &err)));
    } else {
        say(nr, NODE_EV_NET_WAITS, "net_check_runs",
            MESSAGE_ARGS(MESSAGE_STR("job", k->job), MESSAGE_STR("peer", peer)));
    }
    strv_release(&o.nodes);
}

/* ---- turns ---- */

static void netjoins_turn_one(struct netchecks *nc, struct noderun *nr)
{
    const struct node_row *n = nodes_row(nr);
    const struct cluster_node *k = cluster_find_name(nc->p.cluster, n->spec.name);
    const struct netcheck *last = n->net == NODE_NET_BAD ? last_of(nc, n->spec.name) : NULL;
    if (!k || !netchecks_takes_jobs(k) || netchecks_has_node(nc, n->spec.name) ||
        (last && clock_wall() < last->ended_at + AGAIN_AFTER))
        return;
    struct neighbours near = neighbours_of(nc, n);
    if (!near.n)
        say(nr, NODE_EV_NET_WELL, "net_check_alone", MESSAGE_NO_ARGS);
    else if (!near.best || !is_free(nc, k))
        say(nr, NODE_EV_NET_WAITS, "net_check_no_room", MESSAGE_ARGS(MESSAGE_NUM("n", near.n)));
    else
        netjoins_begin(nc, nr, near.best);
}

void netjoins_turn(struct netchecks *nc)
{
    const struct node_row *n;
    for (size_t pos = 0; (n = nodes_next(nc->p.nodes, &pos));) {
        struct noderun *nr = node_waits_for_net(n) ? nodes_find(nc->p.nodes, n->spec.name) : NULL;
        if (nr && clock_mono() >= nc->join_after)
            netjoins_turn_one(nc, nr);
    }
}

/* A check that came to nothing because one of its machines went away says nothing about the other.
 */
static bool tells_nothing(const struct netchecks *nc, const struct netcheck *k)
{
    const struct netcheck_said *first = k->troubles.v;
    if (!k->troubles.n || !str_eq(first->code, "net_no_result"))
        return false;
    for (size_t i = 0; i < k->nodes.n; i++) {
        const struct cluster_node *c = cluster_find_name(nc->p.cluster, k->nodes.v[i]);
        if (!c || !c->is_alive)
            return true;
    }
    return false;
}

void netjoins_tell(struct netchecks *nc, const struct netcheck *k)
{
    const struct netcheck_said *first = k->troubles.v;
    bool well = k->state == NETCHECK_PASSED;
    if ((!well && !k->join) || tells_nothing(nc, k))
        return; /* what somebody asked for takes no machine out of use */
    for (size_t i = 0; i < k->nodes.n; i++) {
        struct noderun *nr = nodes_find(nc->p.nodes, k->nodes.v[i]);
        if (!nr || nodes_row(nr)->net == NODE_NET_FREE)
            continue;
        if (well) {
            say(nr, NODE_EV_NET_WELL, "net_check_well", MESSAGE_ARGS(MESSAGE_STR("job", k->job)));
        } else if (k->troubles.n) {
            const struct node_event e = {
                .kind = NODE_EV_NET_BAD, .code = first->code, .text = first->text};
            nodes_net_told(nr, &e);
        }
    }
}
