/* SPDX-License-Identifier: Apache-2.0 */
/* nodes_firewall.c - who is to reach which port of a machine: the table of core/job/ports.h, with
 * the addresses that the registry and Ray's list have for its words; see nodes.h.
 *
 * What is not known is said and never left open: a port's sources are all that may reach it. */
#include <arpa/inet.h>
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "argusd/machines/nodes_run.h"
#include "base/str.h"
#include "base/text.h"

enum { SSH_PORT = 22, ANY_PORT = 9, NETWORK_MAX = 64 };

/* The words of ports_row.from that are somebody's addresses. */
enum side { SIDE_NODES, SIDE_ARGUSD, SIDE_HEAD, SIDE_PROMETHEUS, SIDES };
static const char *const sides[] = {"nodes", "argusd", "head", "prometheus"};
static_assert(array_len(sides) == SIDES, "a word for each");

struct wall {
    const struct noderun *nr;
    struct strv of[SIDES];
    bool is_unknown[SIDES]; /* wholly or in part */
};

/* ---- addresses ---- */

static bool is_address(const char *s)
{
    unsigned char bytes[16];
    return inet_pton(AF_INET, s, bytes) == 1 || inet_pton(AF_INET6, s, bytes) == 1;
}

static int check_network(const char *s, size_t len, struct err *err)
{
    char text[NETWORK_MAX];
    int64_t bits = 0;
    bool fits = len < sizeof(text);
    text_printf(text, "%.*s", (int)len, s); /* cut: refused */
    char *slash = strchr(text, '/');
    if (slash)
        *slash = 0;
    int64_t most = strchr(text, ':') ? 128 : 32;
    if (fits && is_address(text) && (!slash || str_to_int(slash + 1, 1, most, &bits, NULL) == 0))
        return 0;
    return err_set(err, ERR_BAD_REQUEST,
                   "'%.*s' is neither an address nor a network such as 10.0.0.0/24",
                   (int)(fits ? len : NETWORK_MAX), s);
}

static int nodes_firewall_take_given(struct wall *w,
                                     enum side side,
                                     const char *list,
                                     struct err *err)
{
    const char *item;
    size_t len;
    while ((item = str_item(&list, &len))) {
        int r = check_network(item, len, err);
        if (r < 0)
            return r;
        strv_addf(&w->of[side], "%.*s", (int)len, item);
    }
    return 0;
}

/* What a machine sends to itself does not come by its network. */
static void take_address(struct wall *w, enum side side, const char *address)
{
    if (!address || !is_address(address))
        w->is_unknown[side] = true;
    else if (strcmp(address, w->nr->row->address) != 0 && !strv_has(&w->of[side], address))
        strv_add(&w->of[side], address);
}

/* The address from which this machine reaches another; nothing is sent. "" = not known. */
static void find_own_address(const char *to, char *ret, socklen_t size)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } at = {0};
    socklen_t len = sizeof(at);
    *ret = 0;
    if (uv_ip4_addr(to, ANY_PORT, &at.v4) < 0 && uv_ip6_addr(to, ANY_PORT, &at.v6) < 0)
        return;
    int fd = socket(at.any.sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    socklen_t own = at.any.sa_family == AF_INET ? sizeof(at.v4) : sizeof(at.v6);
    if (connect(fd, &at.any, own) == 0 && getsockname(fd, &at.any, &len) == 0)
        (void)uv_ip_name(&at.any, ret, size); /* "" where it fails */
    (void)close(fd);                          /* nothing was written */
}

static void take_argusd(struct wall *w)
{
    char own[NETWORK_MAX];
    struct ssh_target t;
    nodes_target(w->nr, &t);
    find_own_address(w->nr->row->address, own, sizeof(own));
    if (!t.local)
        take_address(w, SIDE_ARGUSD, own);
}

static void nodes_firewall_take_nodes(struct wall *w)
{
    size_t n;
    const struct nodes *ns = w->nr->nodes;
    const struct cluster_node *k = cluster_nodes(ns->p.cluster, &n);
    const char *head = cluster_head_ip(ns->p.cluster);
    take_address(w, SIDE_HEAD, *head ? head : ns->p.settings->head_host);
    for (size_t i = 0; i < ns->n; i++)
        if (ns->v[i] != w->nr && !ns->v[i]->gone)
            take_address(w, SIDE_NODES, ns->v[i]->row->address);
    for (size_t i = 0; i < n; i++)
        if (k[i].is_alive)
            take_address(w, SIDE_NODES, k[i].ip);
}

/* ---- rules ---- */

static void put_rule(const struct wall *w,
                     const struct ports_row *row,
                     struct ports_range range,
                     bool is_closed,
                     struct jout *j)
{
    jout_open(j, NULL, '{');
    jout_str(j, "key", row->key);
    jout_int(j, "first", range.first);
    jout_int(j, "last", range.last);
    jout_str(j, "from", row->from);
    jout_open(j, "sources", '[');
    struct strv all = {0};
    for (int s = 0; s < SIDES; s++)
        for (size_t i = 0; strstr(row->from, sides[s]) && i < w->of[s].n; i++)
            if (!strv_has(&all, w->of[s].v[i])) {
                strv_add(&all, w->of[s].v[i]);
                jout_str(j, NULL, w->of[s].v[i]);
            }
    strv_release(&all);
    jout_close(j, ']');
    jout_bool(j, "closed", is_closed);
    jout_str(j, "why", row->why);
    jout_close(j, '}');
}

/* Others than argusd may need it, who are not ours to know: it is let in, nobody is kept out. */
static void put_sshd(const struct wall *w, struct jout *j)
{
    static const struct ports_row direct = {
        .key = "sshd", .from = "argusd", .why = "it starts, watches and stops Ray there"};
    static const struct ports_row jump = {
        .key = "sshd", .from = "jump host", .why = "argusd comes by way of proxy_jump"};
    struct ssh_target t;
    nodes_target(w->nr, &t);
    int port = t.port ? t.port : SSH_PORT;
    if (!t.local)
        put_rule(w, t.proxy_jump ? &jump : &direct, (struct ports_range){port, port}, false, j);
}

static void put_rules(const struct wall *w, struct jout *j)
{
    const struct ports *ports = &w->nr->nodes->p.settings->ports;
    jout_open(j, "rules", '[');
    put_sshd(w, j);
    for (int k = 0; k < PORTS_COUNT; k++) {
        const struct ports_row *row = ports_row((enum ports_key)k);
        if (row->on_node || w->nr->row->is_head)
            put_rule(w, row, ports_at(ports, (enum ports_key)k, w->nr->row->place), true, j);
    }
    jout_close(j, ']');
    jout_open(j, "unknown", '[');
    for (int s = 0; s < SIDES; s++)
        if (w->is_unknown[s])
            jout_str(j, NULL, sides[s]);
    jout_close(j, ']');
}

int nodes_put_firewall(const struct noderun *nr,
                       const char *argusd,
                       const char *prometheus,
                       struct jout *j,
                       struct err *err)
{
    struct wall w = {.nr = nr};
    int r = nodes_firewall_take_given(&w, SIDE_ARGUSD, argusd, err);
    if (r == 0)
        r = nodes_firewall_take_given(&w, SIDE_PROMETHEUS, prometheus, err);
    if (r == 0) {
        w.is_unknown[SIDE_PROMETHEUS] = !w.of[SIDE_PROMETHEUS].n;
        if (!w.of[SIDE_ARGUSD].n)
            take_argusd(&w);
        nodes_firewall_take_nodes(&w);
        jout_open(j, NULL, '{');
        jout_str(j, "node", nr->row->spec.name);
        jout_str(j, "address", *nr->row->address ? nr->row->address : NULL);
        put_rules(&w, j);
        jout_close(j, '}');
    }
    for (int s = 0; s < SIDES; s++)
        strv_release(&w.of[s]);
    return r;
}
