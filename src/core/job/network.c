/* SPDX-License-Identifier: Apache-2.0 */
/* network.c - from what was seen of a machine's links to what NCCL and Gloo are told; see
 * network.h.
 *
 * Of several kinds of links InfiniBand wins over RoCE, and of one kind the fastest ports count: a
 * slow port beside them is there for storage or management. A GID index is one number for all
 * ports, so it is told only where they agree; NCCL chooses by itself otherwise. */
#include "core/job/network.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

static const char INFINIBAND[] = "infiniband", ROCE[] = "roce", ETHERNET[] = "ethernet";

bool network_is_name(const char *s)
{
    if (!*s || *s == '-' || *s == '.')
        return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && !strchr("._-:", *s))
            return false;
    return true;
}

/* ---- facts ---- */

static const char *link_of_address(const struct network_seen *seen, const char *ip)
{
    for (size_t i = 0; i < seen->n_addresses; i++)
        if (!strcmp(seen->addresses[i].text, ip))
            return seen->addresses[i].link;
    return NULL;
}

/* The narrowest route that leads to this address; the way to everywhere is the widest. */
static const char *link_of_route(const struct network_seen *seen, uint32_t to)
{
    const struct network_route *best = NULL;
    for (size_t i = 0; i < seen->n_routes; i++) {
        const struct network_route *r = &seen->routes[i];
        if ((to & r->mask) == r->to && (!best || ntohl(r->mask) > ntohl(best->mask)))
            best = r;
    }
    return best ? best->link : NULL;
}

static void judge_interface(const struct network_seen *seen,
                            const char *node_ip,
                            struct node_facts *ret)
{
    struct in_addr to = {0};
    const char *name = node_ip && *node_ip ? link_of_address(seen, node_ip) : NULL;
    bool is_v6 = node_ip && strchr(node_ip, ':');
    if (!name && !is_v6) {
        if (node_ip)
            (void)inet_pton(AF_INET, node_ip, &to); /* a bad one leaves the way to everywhere */
        name = link_of_route(seen, to.s_addr);
    }
    if (!name)
        return;
    text_copy(ret->interface, name);
    for (size_t i = 0; i < seen->n_links; i++)
        if (!strcmp(seen->links[i].name, name)) {
            text_copy(ret->bond_of, seen->links[i].beneath);
            ret->mtu = seen->links[i].mtu;
            ret->interface_mbps = seen->links[i].mbps;
        }
}

static bool port_counts(const struct network_port *p, const char *layer, int64_t gbps)
{
    return p->is_active && p->is_open && !strcasecmp(p->layer, layer) && p->gbps >= gbps;
}

/* The rate of the fastest port of that layer; -1: there is none. */
static int64_t fastest(const struct network_seen *seen, const char *layer)
{
    int64_t most = -1;
    for (size_t i = 0; i < seen->n_ports; i++)
        if (port_counts(&seen->ports[i], layer, 0) && seen->ports[i].gbps > most)
            most = seen->ports[i].gbps;
    return most;
}

/* Higher is better: RoCE v2 of an IPv4 address is routed and the same after a restart. */
static int gid_worth(const struct network_gid *g)
{
    return g->roce * 2 + str_starts(g->text, "0000:0000:0000:0000:0000:ffff:");
}

static const struct network_gid *port_gid(const struct network_seen *seen,
                                          const struct network_port *p)
{
    const struct network_gid *best = NULL;
    for (size_t i = 0; i < seen->n_gids; i++) {
        const struct network_gid *g = &seen->gids[i];
        if (g->port == p->port && !strcmp(g->device, p->device) &&
            (!best || gid_worth(g) > gid_worth(best)))
            best = g;
    }
    return best;
}

static void judge_gids(const struct network_seen *seen,
                       const char *layer,
                       int64_t gbps,
                       struct node_facts *ret)
{
    int index = -1, roce = 2;
    bool agree = true;
    for (size_t i = 0; i < seen->n_ports; i++) {
        if (!port_counts(&seen->ports[i], layer, gbps))
            continue;
        const struct network_gid *g = port_gid(seen, &seen->ports[i]);
        if (!g)
            return;
        agree = agree && (index < 0 || index == g->index);
        index = g->index;
        roce = g->roce < roce ? g->roce : roce;
    }
    if (index < 0)
        return;
    text_printf(ret->roce, "v%d", roce);
    if (agree)
        text_printf(ret->gid_index, "%d", index);
}

static void judge_rdma(const struct network_seen *seen, struct node_facts *ret)
{
    const char *layer = fastest(seen, "InfiniBand") >= 0 ? "InfiniBand" : "Ethernet";
    int64_t gbps = fastest(seen, layer);
    text_copy(ret->link_layer, gbps < 0 ? ETHERNET : *layer == 'I' ? INFINIBAND : ROCE);
    if (gbps < 0)
        return;
    size_t used = 0;
    for (size_t i = 0; i < seen->n_ports; i++) {
        const struct network_port *p = &seen->ports[i];
        char one[NETWORK_NAME_MAX + 8];
        if (!port_counts(p, layer, gbps))
            continue;
        text_printf(one, "%s%s:%d", used ? "," : "", p->device, p->port);
        if (used + strlen(one) >= sizeof(ret->hca))
            break;
        text_printf_to(ret->hca + used, sizeof(ret->hca) - used, "%s", one);
        used += strlen(one);
    }
    ret->rdma_gbps = gbps;
    if (*layer != 'I')
        judge_gids(seen, layer, gbps, ret);
}

void network_judge(const struct network_seen *seen, const char *node_ip, struct node_facts *ret)
{
    if (!seen->n_links)
        return; /* the probe did not come that far */
    judge_interface(seen, node_ip, ret);
    judge_rdma(seen, ret);
}

/* ---- variables ---- */

bool network_is_variable(const char *name)
{
    return str_starts(name, "NCCL_") || str_starts(name, "GLOO_");
}

static void set_absent(struct pairs *p, const char *name, const char *value)
{
    if (!pairs_find(p, name))
        pairs_set(p, name, value);
}

static bool has_rdma(const struct node_facts *f)
{
    return f && *f->hca;
}

/* What was seen, in words of NCCL and Gloo. */
static void add_seen(const struct node_facts *f, bool with_rdma, struct pairs *ret)
{
    char text[sizeof(f->hca) + 2];
    if (!f || !*f->link_layer)
        return;
    if (*f->interface) {
        text_printf(text, "=%s", f->interface); /* exactly this one: NCCL takes a beginning else */
        set_absent(ret, "NCCL_SOCKET_IFNAME", text);
        set_absent(ret, "GLOO_SOCKET_IFNAME", f->interface);
    }
    if (!with_rdma) {
        set_absent(ret, "NCCL_IB_DISABLE", "1");
    } else if (has_rdma(f)) {
        text_printf(text, "=%s", f->hca);
        set_absent(ret, "NCCL_IB_HCA", text);
        if (*f->gid_index)
            set_absent(ret, "NCCL_IB_GID_INDEX", f->gid_index);
    }
}

static void add_variables(const struct pairs *from, struct pairs *ret)
{
    for (size_t i = 0; from && i < from->n; i++)
        if (network_is_variable(from->v[i].key))
            set_absent(ret, from->v[i].key, from->v[i].value);
}

/* All but the job's own, with those of argus.yaml. */
static void add_layers(const struct network_node *v,
                       const struct pairs *cluster,
                       bool with_rdma,
                       struct pairs *ret)
{
    add_variables(v->own, ret);
    add_variables(cluster, ret);
    add_seen(v->facts, with_rdma, ret);
}

void network_profile(const struct network_node *v, const struct pairs *cluster, struct pairs *ret)
{
    add_layers(v, cluster, has_rdma(v->facts), ret);
}

static char *network_differ(const struct network_node *v, size_t n)
{
    const struct network_node *first = NULL;
    for (size_t i = 0; i < n; i++) {
        if (!v[i].facts || !*v[i].facts->link_layer)
            continue;
        if (first && strcmp(first->facts->link_layer, v[i].facts->link_layer) != 0) {
            char text[640];
            message_write(text, sizeof(text),
                          MESSAGE_ARGS(MESSAGE_STR("node", first->name),
                                       MESSAGE_STR("link", first->facts->link_layer),
                                       MESSAGE_STR("other", v[i].name),
                                       MESSAGE_STR("other_link", v[i].facts->link_layer)));
            return xstrdup(text);
        }
        first = first ? first : &v[i];
    }
    return NULL;
}

static bool job_has(const struct pairs *job, const char *name)
{
    return job && pairs_find(job, name);
}

/* Names where one end must not think otherwise than the other. */
static int check_equal(const struct network_node *v,
                       size_t n,
                       const struct pairs *job,
                       const struct pairs *all,
                       struct err *err)
{
    static const char *const names[] = {"NCCL_IB_DISABLE", "NCCL_NET", "NCCL_ALGO", "NCCL_PROTO"};
    for (size_t k = 0; k < array_len(names); k++)
        for (size_t i = 1; i < n && !job_has(job, names[k]); i++) {
            const char *a = str_or(pairs_find(&all[0], names[k]), "");
            const char *b = str_or(pairs_find(&all[i], names[k]), "");
            if (strcmp(a, b) != 0)
                return message_refuse(
                    err, ERR_BAD_SPEC, "env_differs",
                    MESSAGE_ARGS(MESSAGE_STR("variable", names[k]), MESSAGE_STR("one", a),
                                 MESSAGE_STR("node", v[0].name), MESSAGE_STR("other", b),
                                 MESSAGE_STR("other_node", v[i].name)));
        }
    return 0;
}

/* Into ret what a node's processes do not have already, by the job or by argus.yaml for all. */
static void keep_needed(const struct pairs *cluster,
                        const struct pairs *job,
                        const struct strv *moved,
                        const struct pairs *all,
                        struct pairs *ret)
{
    for (size_t i = 0; i < all->n; i++) {
        const char *name = all->v[i].key;
        bool is_clusters = cluster && pairs_find(cluster, name) && !strv_has(moved, name);
        if (!job_has(job, name) && !is_clusters)
            pairs_set(ret, name, all->v[i].value);
    }
}

/* Variables of argus.yaml's that this node has its own values of. */
static void find_moved(const struct network_node *v,
                       const struct pairs *cluster,
                       const struct pairs *job,
                       struct strv *moved)
{
    for (size_t i = 0; v->own && cluster && i < v->own->n; i++) {
        const char *name = v->own->v[i].key;
        if (network_is_variable(name) && pairs_find(cluster, name) && !job_has(job, name) &&
            !strv_has(moved, name))
            strv_add(moved, name);
    }
}

int network_plan(const struct network_node *v,
                 size_t n,
                 const struct pairs *cluster,
                 const struct pairs *job,
                 struct pairs *ret,
                 struct strv *ret_moved,
                 char **warning,
                 struct err *err)
{
    _cleanup_(freep) char *differ = network_differ(v, n);
    struct pairs *all = xcalloc(n ? n : 1, sizeof(*all));
    bool with_rdma = !differ;
    for (size_t i = 0; i < n; i++)
        with_rdma = with_rdma && has_rdma(v[i].facts);
    for (size_t i = 0; i < n; i++)
        add_layers(&v[i], cluster, with_rdma, &all[i]);
    int r = check_equal(v, n, job, all, err);
    for (size_t i = 0; r == 0 && i < n; i++)
        find_moved(&v[i], cluster, job, ret_moved);
    for (size_t i = 0; r == 0 && i < n; i++)
        keep_needed(cluster, job, ret_moved, &all[i], &ret[i]);
    if (r == 0 && differ && n > 1) {
        *warning = differ;
        differ = NULL;
    }
    for (size_t i = 0; i < n; i++)
        pairs_release(&all[i]);
    free(all);
    return r;
}
