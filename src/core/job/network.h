/* SPDX-License-Identifier: Apache-2.0 */
/* network.h - what a machine's network is, and what NCCL and Gloo are told of it on each node of a
 * gang.
 *
 * A probe reads sysfs into struct network_seen; network_judge() makes facts of it. network_plan()
 * takes the facts of a gang's nodes and what people wrote, and says which variables each node's
 * processes get: JobSpec > NodeSpec > argus.yaml > what was seen. Pure. */
#pragma once
#include "base/err.h"
#include "base/strv.h"
#include "core/job/node.h"

enum {
    NETWORK_NAME_MAX = 24, /* of an interface or an RDMA device */
    NETWORK_ADDRESS_MAX = 48,
    NETWORK_LINKS_MAX = 64,
    NETWORK_ROUTES_MAX = 128,
    NETWORK_PORTS_MAX = 32,
    NETWORK_GIDS_MAX = 256,
};

struct network_link {
    char name[NETWORK_NAME_MAX], beneath[64]; /* interfaces of a bond, comma-separated */
    int64_t mtu, mbps;                        /* 0: not known */
};

struct network_address { /* an interface has this address */
    char link[NETWORK_NAME_MAX], text[NETWORK_ADDRESS_MAX];
};

struct network_route { /* of IPv4, as the kernel writes both: host order of a little-endian machine
                        */
    char link[NETWORK_NAME_MAX];
    uint32_t to, mask;
};

struct network_port { /* of an RDMA device */
    char device[NETWORK_NAME_MAX], layer[16];
    int port;
    bool is_active, is_open; /* open: its device file is there for our user */
    int64_t gbps;
};

struct network_gid {
    char device[NETWORK_NAME_MAX], text[NETWORK_ADDRESS_MAX];
    int port, index, roce; /* 1 or 2 */
};

/* Lines beyond the ceilings are left out by whoever fills it. */
struct network_seen {
    struct network_link links[NETWORK_LINKS_MAX];
    struct network_address addresses[NETWORK_LINKS_MAX];
    struct network_route routes[NETWORK_ROUTES_MAX];
    struct network_port ports[NETWORK_PORTS_MAX];
    struct network_gid gids[NETWORK_GIDS_MAX];
    size_t n_links, n_addresses, n_routes, n_ports, n_gids;
};

/* Letters, digits and ". _ - :"; anything else never gets into a variable. */
bool network_is_name(const char *s);

/* The network members of *ret. node_ip: under which Ray knows the machine; NULL or "": not known,
 * then the interface is the one that leads away from it. */
void network_judge(const struct network_seen *seen, const char *node_ip, struct node_facts *ret);

/* A node of a gang; borrowed. */
struct network_node {
    const char *name;
    const struct node_facts *facts; /* NULL: nobody has looked at it */
    const struct pairs *own;        /* env of its NodeSpec; NULL: none */
};

/* Whether a variable belongs to the network profile: NCCL_… or GLOO_…. */
bool network_is_variable(const char *name);

/* Variables that a process on v[i] gets where it has none of that name, into ret[i]; names of
 * argus.yaml's that differ from node to node and so must not go to the whole job, into *ret_moved.
 * cluster: env_vars of argus.yaml, expanded; job: the JobSpec's own; both may hold other names.
 * warning: arguments of "network_differs" where the nodes' links differ, else untouched.
 * ERR_BAD_SPEC: nodes differ in a variable that must be the same on all of them; nothing is
 * returned then. */
must_check int network_plan(const struct network_node *v,
                            size_t n,
                            const struct pairs *cluster,
                            const struct pairs *job,
                            struct pairs *ret,
                            struct strv *ret_moved,
                            char **warning,
                            struct err *err);
/* What a node's own processes get if the job is alone on it and says nothing: for eyes. */
void network_profile(const struct network_node *v, const struct pairs *cluster, struct pairs *ret);
