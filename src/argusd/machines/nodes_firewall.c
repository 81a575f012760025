/* SPDX-License-Identifier: Apache-2.0 */
/* nodes_firewall.c - who is to reach which port of a machine: the table of core/job/ports.h, with
 * the addresses that the registry and Ray's list have for its words; see nodes.h.
 *
 * What is not known is said and never left open: a port's sources are all that may reach it. */
#include <assert.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "argusd/machines/nodes_run.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "ray/reach.h"

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
    if (fits && reach_is_address(text) &&
        (!slash || str_to_int(slash + 1, 1, most, &bits, NULL) == 0))
        return 0;
    _cleanup_(freep) char *shown = xstrndup(s, fits ? len : NETWORK_MAX);
    return message_refuse(err, ERR_BAD_REQUEST, "no_network",
                          MESSAGE_ARGS(MESSAGE_STR("text", shown)));
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
    if (!address || !reach_is_address(address))
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

struct rule_page {
    const char *key, *from, *why;
    int first, last;
    struct strv sources;
    bool is_closed;
};
static const struct field rule_rows[] = {
    FIELD_AT(rule_page, "key", FIELD_STR, key, .flags = FIELD_ALWAYS),
    FIELD_AT(rule_page, "first", FIELD_INT32, first),
    FIELD_AT(rule_page, "last", FIELD_INT32, last),
    FIELD_AT(rule_page, "from", FIELD_STR, from, .flags = FIELD_ALWAYS),
    FIELD_AT(rule_page, "sources", FIELD_STRV, sources),
    FIELD_AT(rule_page, "closed", FIELD_BOOL, is_closed),
    FIELD_AT(rule_page, "why", FIELD_STR, why, .flags = FIELD_ALWAYS),
};
const struct field_table nodes_rule_table = FIELD_TABLE("FirewallRule", rule_rows, rule_page);

struct wall_page {
    const char *node, *address;
    struct field_list rules;
    struct strv unknown;
    struct rule_page its_rules[PORTS_COUNT + 1]; /* and sshd */
};
static const struct field wall_rows[] = {
    FIELD_AT(wall_page, "node", FIELD_STR, node, .flags = FIELD_ALWAYS),
    FIELD_AT(wall_page, "address", FIELD_STR, address),
    FIELD_AT(wall_page, "rules", FIELD_LIST, rules, .of = &nodes_rule_table),
    FIELD_AT(wall_page, "unknown", FIELD_STRV, unknown),
};
const struct field_table nodes_firewall_table = FIELD_TABLE("Firewall", wall_rows, wall_page);

static void add_rule(const struct wall *w,
                     const struct ports_row *row,
                     struct ports_range range,
                     bool is_closed,
                     struct wall_page *page)
{
    struct rule_page *rule = &page->its_rules[page->rules.n++];
    *rule = (struct rule_page){.key = row->key,
                               .first = range.first,
                               .last = range.last,
                               .from = row->from,
                               .is_closed = is_closed,
                               .why = row->why};
    for (int s = 0; s < SIDES; s++)
        for (size_t i = 0; strstr(row->from, sides[s]) && i < w->of[s].n; i++)
            if (!strv_has(&rule->sources, w->of[s].v[i]))
                strv_add(&rule->sources, w->of[s].v[i]);
}

/* Others than argusd may need it, who are not ours to know: it is let in, nobody is kept out. */
static void add_sshd(const struct wall *w, struct wall_page *page)
{
    static const struct ports_row direct = {
        .key = "sshd", .from = "argusd", .why = "it starts, watches and stops Ray there"};
    static const struct ports_row jump = {
        .key = "sshd", .from = "jump host", .why = "argusd comes by way of proxy_jump"};
    struct ssh_target t;
    nodes_target(w->nr, &t);
    int port = t.port ? t.port : SSH_PORT;
    if (!t.local)
        add_rule(w, t.proxy_jump ? &jump : &direct, (struct ports_range){port, port}, false, page);
}

static void add_rules(const struct wall *w, struct wall_page *page)
{
    const struct ports *ports = &w->nr->nodes->p.settings->ports;
    add_sshd(w, page);
    for (int k = 0; k < PORTS_COUNT; k++) {
        const struct ports_row *row = ports_row((enum ports_key)k);
        if (row->on_node || w->nr->row->is_head)
            add_rule(w, row, ports_at(ports, (enum ports_key)k, w->nr->row->place), true, page);
    }
    for (int s = 0; s < SIDES; s++)
        if (w->is_unknown[s])
            strv_add(&page->unknown, sides[s]);
}

static void put_wall(const struct wall *w, struct jout *j)
{
    const struct node_row *row = w->nr->row;
    struct wall_page page = {.node = row->spec.name,
                             .address = *row->address ? row->address : NULL};
    page.rules.v = page.its_rules;
    add_rules(w, &page);
    field_to_json(&nodes_firewall_table, &page, FIELD_ALL, FIELD_PAGE, j, NULL);
    for (size_t i = 0; i < page.rules.n; i++)
        strv_release(&page.its_rules[i].sources);
    strv_release(&page.unknown);
}

/* ---- what argusd's machine is kept out of ---- */

/* Prometheus may run beside argusd. Workers have no port of which one could be tried. */
static bool is_strange(const struct wall *w, enum ports_key k, const char *own)
{
    const struct ports_row *row = ports_row(k);
    if (k == PORTS_WORKER || !(row->on_node || w->nr->row->is_head))
        return false;
    if (strstr(row->from, sides[SIDE_ARGUSD]) || strstr(row->from, sides[SIDE_PROMETHEUS]))
        return false;
    for (int s = 0; s < SIDES; s++)
        if (strstr(row->from, sides[s]) && (w->is_unknown[s] || strv_has(&w->of[s], own)))
            return false;
    return true;
}

static struct nodes_port firewall_port(const struct noderun *nr, enum ports_key k)
{
    const struct ports_row *row = ports_row(k);
    return (struct nodes_port){
        .key = row->key,
        .from = row->from,
        .port = ports_at(&nr->nodes->p.settings->ports, k, nr->row->place).first};
}

size_t nodes_strange_ports(const struct noderun *nr, struct nodes_port ret[static PORTS_COUNT])
{
    struct wall w = {.nr = nr};
    char own[NETWORK_MAX];
    struct ssh_target t;
    size_t n = 0;
    nodes_target(nr, &t);
    find_own_address(nr->row->address, own, sizeof(own));
    if (t.local || !*own || str_eq(own, nr->row->address))
        return 0;
    nodes_firewall_take_nodes(&w);
    for (int k = 0; k < PORTS_COUNT; k++)
        if (is_strange(&w, (enum ports_key)k, own))
            ret[n++] = firewall_port(nr, (enum ports_key)k);
    for (int s = 0; s < SIDES; s++)
        strv_release(&w.of[s]);
    return n;
}

/* ---- what another node is kept out of ---- */

/* What else the machine of a node is, or may be. */
struct peer_sides {
    bool may_be_head, may_be_argusd;
};

/* Prometheus may run on any node. A notebook asks for a token of its own, and workers have no port
 * of which one could be tried. */
static bool is_closed_to_peer(const struct noderun *nr, enum ports_key k, struct peer_sides peer)
{
    const struct ports_row *row = ports_row(k);
    if (k == PORTS_WORKER || k == PORTS_NOTEBOOK || !(row->on_node || nr->row->is_head))
        return false;
    if (strstr(row->from, sides[SIDE_NODES]) || strstr(row->from, sides[SIDE_PROMETHEUS]))
        return false;
    return !(peer.may_be_head && strstr(row->from, sides[SIDE_HEAD])) &&
           !(peer.may_be_argusd && strstr(row->from, sides[SIDE_ARGUSD]));
}

size_t nodes_peer_ports(const struct noderun *nr,
                        const struct noderun *peer,
                        struct nodes_port ret[static PORTS_COUNT])
{
    const char *to = nr->row->address, *from = peer->row->address;
    const char *known = cluster_head_ip(nr->nodes->p.cluster);
    const char *head = *known ? known : str_or(nr->nodes->p.settings->head_host, "");
    char own[NETWORK_MAX];
    size_t n = 0;
    if (!reach_is_address(to) || !reach_is_address(from) || str_eq(to, from))
        return 0;
    find_own_address(to, own, sizeof(own));
    struct peer_sides also = {.may_be_head = peer->row->is_head || !reach_is_address(head) ||
                                             str_eq(head, from),
                              .may_be_argusd = !*own || str_eq(own, from)};
    for (int k = 0; k < PORTS_COUNT; k++)
        if (is_closed_to_peer(nr, (enum ports_key)k, also))
            ret[n++] = firewall_port(nr, (enum ports_key)k);
    return n;
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
        put_wall(&w, j);
    }
    for (int s = 0; s < SIDES; s++)
        strv_release(&w.of[s]);
    return r;
}
