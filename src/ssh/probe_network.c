/* SPDX-License-Identifier: Apache-2.0 */
/* probe_network.c - takes the lines about links, addresses, routes and RDMA ports; see
 * probe_network.h.
 *
 * A name with anything odd in it would end up in a variable of every job there: its line is left
 * out, as is what comes beyond the ceilings of struct network_seen. */
#include "ssh/probe_network.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"

enum { MTU_MAX = 1 << 20, MBPS_MAX = 100000000, GBPS_MAX = 100000, GID_INDEX_MAX = 4095 };

/* The next word, a name; false if it is none. */
static bool take_name(const char **rest, char *ret, size_t size)
{
    char word[64];
    answer_word(rest, word, sizeof(word));
    if (!network_is_name(word) || strlen(word) >= size)
        return false;
    text_copy_to(ret, size, word);
    return true;
}

static void take_link(const char *rest, struct network_seen *seen)
{
    struct network_link l = {0};
    if (seen->n_links == NETWORK_LINKS_MAX || !take_name(&rest, l.name, sizeof(l.name)))
        return;
    l.mtu = (int64_t)answer_number(&rest, MTU_MAX, 0);
    l.mbps = (int64_t)answer_number(&rest, MBPS_MAX, 0);
    char one[NETWORK_NAME_MAX];
    size_t used = 0;
    while (take_name(&rest, one, sizeof(one)) && used + strlen(one) + 2 < sizeof(l.beneath)) {
        text_printf_to(l.beneath + used, sizeof(l.beneath) - used, "%s%s", used ? "," : "", one);
        used += strlen(one) + (used > 0);
    }
    seen->links[seen->n_links++] = l;
}

static void take_address(const char *rest, struct network_seen *seen)
{
    struct network_address a = {0};
    if (seen->n_addresses == NETWORK_LINKS_MAX || !take_name(&rest, a.link, sizeof(a.link)))
        return;
    answer_word(&rest, a.text, sizeof(a.text));
    seen->addresses[seen->n_addresses++] = a;
}

/* "0x00FE630A": the bytes of the address as they lie in memory. */
static bool take_hex(const char **rest, uint32_t *ret)
{
    char word[12], *end;
    answer_word(rest, word, sizeof(word));
    unsigned long v = strtoul(word, &end, 16);
    *ret = (uint32_t)v;
    return strlen(word) == 10 && !*end;
}

static void take_route(const char *rest, struct network_seen *seen)
{
    struct network_route r = {0};
    if (seen->n_routes == NETWORK_ROUTES_MAX || !take_name(&rest, r.link, sizeof(r.link)) ||
        !take_hex(&rest, &r.to) || !take_hex(&rest, &r.mask))
        return;
    seen->routes[seen->n_routes++] = r;
}

static void take_port(const char *rest, struct network_seen *seen)
{
    enum { ACTIVE = 4 };
    struct network_port p = {0};
    if (seen->n_ports == NETWORK_PORTS_MAX || !take_name(&rest, p.device, sizeof(p.device)))
        return;
    p.port = (int)answer_number(&rest, 255, 0);
    answer_word(&rest, p.layer, sizeof(p.layer));
    p.is_active = answer_number(&rest, 255, 0) == ACTIVE;
    p.gbps = (int64_t)answer_number(&rest, GBPS_MAX, 0);
    p.is_open = answer_number(&rest, 1, 0) == 1;
    if (p.port > 0)
        seen->ports[seen->n_ports++] = p;
}

static void take_gid(const char *rest, struct network_seen *seen)
{
    struct network_gid g = {0};
    if (seen->n_gids == NETWORK_GIDS_MAX || !take_name(&rest, g.device, sizeof(g.device)))
        return;
    g.port = (int)answer_number(&rest, 255, 0);
    g.index = (int)answer_number(&rest, GID_INDEX_MAX, GID_INDEX_MAX);
    g.roce = (int)answer_number(&rest, 2, 0);
    answer_word(&rest, g.text, sizeof(g.text));
    if (g.port > 0 && g.index < GID_INDEX_MAX && g.roce > 0)
        seen->gids[seen->n_gids++] = g;
}

void probe_network_line(const struct answer *a, struct network_seen *seen)
{
    static const struct {
        const char *key;
        void (*take)(const char *rest, struct network_seen *seen);
    } keys[] = {{"LINK", take_link},
                {"ADDRESS", take_address},
                {"ROUTE", take_route},
                {"HCA", take_port},
                {"GID", take_gid}};
    for (size_t i = 0; i < array_len(keys); i++)
        if (answer_is(a, keys[i].key))
            keys[i].take(a->value, seen);
}
