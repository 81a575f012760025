/* SPDX-License-Identifier: Apache-2.0 */
/* nodes_ports.c - tries from here the ports of Ray on a node that argusd's machine has no business
 * with, and tells what is known of them; see nodes_run.h.
 *
 * Who connects to which port is the table of core/job/ports.h. Where Ray asks for no token, a port
 * runs code for everyone who reaches it, and argusd's machine stands for everyone: a firewall that
 * lets in those of the table alone keeps it out of the ports of nodes and of the head. So nothing
 * is known where argusd runs on that machine or on one that is let in, and nothing is asked where
 * Ray asks for a token. A connection is opened and closed; nothing is sent. */
#include <stdlib.h>
#include <string.h>

#include "argusd/machines/knock.h"
#include "argusd/machines/nodes_run.h"
#include "base/log.h"
#include "base/str.h"

static const usec_t PORTS_EVERY = 40 * USEC_SEC;
static const usec_t PORT_LIMIT = 3 * USEC_SEC; /* a filter that drops says nothing */

static void ports_round_ends(struct noderun *nr, const struct nodes_port *open, usec_t now)
{
    nr->ports.known = open ? NODES_PORTS_OPEN : NODES_PORTS_CLOSED;
    nr->ports.open = open ? *open : (struct nodes_port){0};
    nr->ports.n = 0;
    nr->ports.after = now + PORTS_EVERY;
}

/* One that answers is enough: the round is over. */
static void take_try(struct noderun *nr, int status, usec_t now)
{
    const struct nodes_port *tried = &nr->ports.v[--nr->ports.n];
    if (status == 0) {
        struct nodes_port open = *tried;
        ports_round_ends(nr, &open, now);
    } else if (!nr->ports.n) {
        ports_round_ends(nr, NULL, now);
    }
}

static void try_on_answer(int status, void *arg)
{
    struct noderun *nr = arg;
    nr->ports.now = NULL;
    take_try(nr, status, clock_mono());
    nodes_pass(nr->nodes);
}

static void try_begin(struct noderun *nr, usec_t now)
{
    int port = nr->ports.v[nr->ports.n - 1].port;
    int r =
        knock_begin(nr->nodes->p.loop, nr->row->address, port, try_on_answer, nr, &nr->ports.now);
    if (r == KNOCK_NO_ADDRESS) {
        nr->ports.n = 0;
        nr->ports.after = now + USEC_MIN;
    } else if (r < 0) {
        take_try(nr, r, now);
    }
}

void nodes_ports(struct noderun *nr, usec_t now)
{
    if (nr->nodes->p.settings->auth != RAY_AUTH_NONE)
        return;
    if (nr->row->step != NODE_STEP_IN) {
        nodes_ports_cancel(nr);
        nr->ports.after = 0;
        nr->ports.known = NODES_PORTS_UNKNOWN;
        return;
    }
    if (nr->ports.now && knock_is_late(nr->ports.now, now, PORT_LIMIT)) {
        knock_end(&nr->ports.now);
        take_try(nr, UV_ETIMEDOUT, now);
    }
    if (!nr->ports.now && !nr->ports.n && now >= nr->ports.after) {
        nr->ports.n = nodes_strange_ports(nr, nr->ports.v);
        if (!nr->ports.n) {
            nr->ports.known = NODES_PORTS_UNKNOWN;
            nr->ports.after = now + PORTS_EVERY;
        }
    }
    if (!nr->ports.now && nr->ports.n)
        try_begin(nr, now);
}

void nodes_ports_cancel(struct noderun *nr)
{
    knock_end(&nr->ports.now);
    nr->ports.n = 0;
}

/* One open port is enough, whoever found it; that another way is closed does not take it back. */
enum nodes_ports_known nodes_open_port(const struct nodes *ns,
                                       const char *name,
                                       struct nodes_port *ret)
{
    const struct noderun *nr = nodes_find(ns, name);
    if (!nr || ns->p.settings->auth != RAY_AUTH_NONE)
        return NODES_PORTS_UNKNOWN;
    if (nr->ports.known == NODES_PORTS_OPEN) {
        *ret = nr->ports.open;
        return NODES_PORTS_OPEN;
    }
    if (*nr->peers.let_in) {
        *ret = nr->peers.open;
        ret->peer = nr->peers.let_in;
        return nr->peers.known;
    }
    return nr->peers.known == NODES_PORTS_CLOSED ? NODES_PORTS_CLOSED : nr->ports.known;
}
