/* SPDX-License-Identifier: Apache-2.0 */
/* nodes_peers.c - tries from other nodes the ports of Ray on a node that those have no business
 * with; see nodes_run.h.
 *
 * argusd's own trial (nodes_ports.c) cannot tell of ports that are argusd's to use, as the head's
 * dashboard, nor of the machine that it runs on. Another node of the registry can: over the
 * connection that its looks use it opens one to each port that the table of core/job/ports.h closes
 * to it. Nodes take turns as the one that tries; one that was let in tries again until it is not,
 * or another would take its word back. Few trials run at a time, the node whose turn is most
 * overdue first, so that many nodes make the turns longer and never the load higher. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/machines/nodes_run.h"
#include "base/str.h"
#include "base/text.h"
#include "ssh/tcptry.h"

static const usec_t PEERS_EVERY = 40 * USEC_SEC;
static const usec_t PEERS_EACH = 250 * USEC_MS; /* 1,000 nodes: each every four minutes */
static const usec_t PEER_LIMIT = 15 * USEC_SEC;
enum { PEER_SECONDS = 3, PEERS_FAILED_MAX = 3 };
static_assert((int)PORTS_COUNT <= (int)TCPTRY_PORTS_MAX, "all ports of a node in one trial");

static usec_t peers_every(const struct nodes *ns)
{
    usec_t all = ns->n * PEERS_EACH;
    return all > PEERS_EVERY ? all : PEERS_EVERY;
}

/* ---- who tries ---- */

static bool peer_is_busy(const struct nodes *ns, const char *name)
{
    for (size_t i = 0; i < array_len(ns->trying); i++)
        if (ns->trying[i] && str_eq(ns->trying[i]->peers.peer, name))
            return true;
    return false;
}

/* What comes from argusd's machine is tried from there without ssh. */
static bool peer_is_able(const struct noderun *peer)
{
    struct ssh_target t;
    if (peer->gone || peer->row->step != NODE_STEP_IN || peer->looks_failed)
        return false;
    nodes_target(peer, &t);
    return !t.local;
}

/* Fills what it is to try. */
static bool peer_suits(struct noderun *nr, const struct noderun *peer)
{
    nr->peers.n = peer_is_able(peer) ? nodes_peer_ports(nr, peer, nr->peers.v) : 0;
    return nr->peers.n > 0;
}

/* The one that was let in, as long as it is there; else the next in turn. NULL: nobody can now;
 * *ret_waits: but for those that try another node just now. */
static struct noderun *peer_choose(struct noderun *nr, bool *ret_waits)
{
    struct nodes *ns = nr->nodes;
    struct noderun *last = *nr->peers.let_in ? nodes_find(ns, nr->peers.let_in) : NULL;
    bool is_bound = last && last->row->step == NODE_STEP_IN;
    *ret_waits = false;
    for (size_t i = 0; i < (is_bound ? 1 : ns->n); i++) {
        struct noderun *peer = is_bound ? last : ns->v[nr->peers.place++ % ns->n];
        if (peer == nr || !peer_suits(nr, peer))
            continue;
        if (!peer_is_busy(ns, peer->row->spec.name))
            return peer;
        *ret_waits = true;
    }
    return NULL;
}

/* ---- a trial ---- */

static void peers_call_over(struct noderun *nr)
{
    nr->peers.call = NULL;
    for (size_t i = 0; i < array_len(nr->nodes->trying); i++)
        if (nr->nodes->trying[i] == nr)
            nr->nodes->trying[i] = NULL;
}

static void peers_take_failure(struct noderun *nr, usec_t now)
{
    if (++nr->peers.failed >= PEERS_FAILED_MAX)
        nr->peers.known = NODES_PORTS_UNKNOWN;
    nr->peers.after = now + PEERS_EVERY;
}

/* open: 0 = none of them. */
static void peers_take_answer(struct noderun *nr, int open, usec_t now)
{
    nr->peers.failed = 0;
    nr->peers.known = open ? NODES_PORTS_OPEN : NODES_PORTS_CLOSED;
    nr->peers.open = (struct nodes_port){0};
    for (size_t i = 0; open && i < nr->peers.n; i++)
        if (nr->peers.v[i].port == open)
            nr->peers.open = nr->peers.v[i];
    text_copy(nr->peers.let_in, open ? nr->peers.peer : "");
    nr->peers.after = now + (open ? PEERS_EVERY : peers_every(nr->nodes));
}

static struct tcptry_want peers_want(const struct noderun *nr)
{
    struct tcptry_want want = {
        .address = nr->row->address, .n = nr->peers.n, .seconds = PEER_SECONDS, .ray_bin = ""};
    for (size_t i = 0; i < nr->peers.n; i++)
        want.ports[i] = nr->peers.v[i].port;
    return want;
}

static void peers_on_answer(const struct ssh_result *r, void *arg)
{
    struct noderun *nr = arg;
    struct tcptry_want want = peers_want(nr);
    int open = 0;
    peers_call_over(nr);
    if (nr->row->step != NODE_STEP_IN)
        return; /* what it saw is of another time */
    if (r->trouble == SSH_OK && r->status == 0 && tcptry_read(r->out, r->out_len, &want, &open))
        peers_take_answer(nr, open, clock_mono());
    else
        peers_take_failure(nr, clock_mono());
}

static void peers_begin(struct noderun *nr, struct noderun **ret_slot, usec_t now)
{
    bool waits;
    const struct noderun *peer = peer_choose(nr, &waits);
    struct ssh_target t;
    if (!peer) {
        nr->peers.known = waits ? nr->peers.known : NODES_PORTS_UNKNOWN;
        nr->peers.after = now + (waits ? USEC_SEC : PEERS_EVERY);
        return;
    }
    struct tcptry_want want = peers_want(nr);
    want.ray_bin = peer->row->facts.ray_bin;
    text_copy(nr->peers.peer, peer->row->spec.name);
    nodes_target(peer, &t);
    nr->peers.call = tcptry_begin(nr->nodes->p.loop, &t, &want, PEER_LIMIT, peers_on_answer, nr);
    *ret_slot = nr;
}

void nodes_peers_cancel(struct noderun *nr)
{
    ssh_call_free(nr->peers.call);
    peers_call_over(nr);
}

/* ---- what is due ---- */

static void peers_forget(struct noderun *nr)
{
    nodes_peers_cancel(nr);
    nr->peers.known = NODES_PORTS_UNKNOWN;
    nr->peers.open = (struct nodes_port){0};
    nr->peers.let_in[0] = 0;
    nr->peers.after = 0;
}

/* The most overdue; NULL: none is due. */
static struct noderun *peers_next(const struct nodes *ns, usec_t now)
{
    struct noderun *next = NULL;
    for (size_t i = 0; i < ns->n; i++) {
        struct noderun *nr = ns->v[i];
        if (nr->gone || nr->row->step != NODE_STEP_IN || nr->peers.call || now < nr->peers.after)
            continue;
        if (!next || nr->peers.after < next->peers.after)
            next = nr;
    }
    return next;
}

void nodes_peers(struct nodes *ns, usec_t now)
{
    if (ns->p.settings->auth != RAY_AUTH_NONE)
        return;
    for (size_t i = 0; i < ns->n; i++)
        if (ns->v[i]->row->step != NODE_STEP_IN)
            peers_forget(ns->v[i]);
    for (size_t i = 0; i < array_len(ns->trying); i++) {
        struct noderun *nr = ns->trying[i] ? NULL : peers_next(ns, now);
        if (nr)
            peers_begin(nr, &ns->trying[i], now);
    }
}
