/* SPDX-License-Identifier: Apache-2.0 */
/* reach.c - see reach.h. An address is 16 bytes, IPv4 as ::ffff:a.b.c.d, and so are networks: one
 * way to compare all of them. */
#include "ray/reach.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

struct ip {
    unsigned char b[16];
};
struct ip_net {
    struct ip at;
    unsigned bits; /* of the 128 */
};

static const unsigned char MAPPED[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

static struct ip ip_of_four(const unsigned char four[static 4])
{
    struct ip ip;
    memcpy(ip.b, MAPPED, sizeof(MAPPED));
    memcpy(ip.b + sizeof(MAPPED), four, 4);
    return ip;
}

static bool ip_from_text(const char *text, struct ip *ret)
{
    unsigned char four[4];
    if (inet_pton(AF_INET, text, four) == 1)
        *ret = ip_of_four(four);
    else if (inet_pton(AF_INET6, text, ret->b) != 1)
        return false;
    return true;
}

static bool ip_is_in(const struct ip *ip, const struct ip_net *net)
{
    unsigned whole = net->bits / 8, rest = net->bits % 8;
    unsigned mask = rest ? 0xffu << (8 - rest) & 0xffu : 0;
    return !memcmp(ip->b, net->at.b, whole) &&
           (!rest || (ip->b[whole] & mask) == (net->at.b[whole] & mask));
}

static bool ip_net_from_text(const char *text, struct ip_net *ret)
{
    char address[64];
    int64_t bits = 0;
    const char *slash = strchr(text, '/');
    size_t n = slash ? (size_t)(slash - text) : strlen(text);
    if (n >= sizeof(address))
        return false;
    text_printf(address, "%.*s", (int)n, text);
    if (!ip_from_text(address, &ret->at))
        return false;
    unsigned most = strchr(address, ':') ? 128 : 32;
    if (slash && str_to_int(slash + 1, 0, most, &bits, NULL) < 0)
        return false;
    ret->bits = 128 - most + (slash ? (unsigned)bits : most);
    return true;
}

static bool ip_is_among(const struct ip *ip, const char *const *texts)
{
    struct ip_net net;
    for (; *texts; texts++)
        if (ip_net_from_text(*texts, &net) && ip_is_in(ip, &net))
            return true;
    return false;
}

/* What an address of IPv6 stands for that has one of IPv4 within it. */
static struct ip ip_inside(const struct ip *ip)
{
    static const struct {
        const char *net;
        size_t at;
    } tunnels[] = {{"64:ff9b::/96", 12}, {"64:ff9b:1::/48", 12}, {"2002::/16", 2}};
    static const unsigned char none[12] = {0}, local[4] = {0, 0, 0, 1};
    struct ip_net net;
    for (size_t i = 0; i < array_len(tunnels); i++)
        if (ip_net_from_text(tunnels[i].net, &net) && ip_is_in(ip, &net))
            return ip_of_four(ip->b + tunnels[i].at);
    /* ::a.b.c.d is long out of use; ::1 and :: are what they are. */
    bool is_compatible = !memcmp(ip->b, none, sizeof(none)) && memcmp(ip->b + 12, none, 4) != 0 &&
                         memcmp(ip->b + 12, local, 4) != 0;
    return is_compatible ? ip_of_four(ip->b + 12) : *ip;
}

/* Nobody's server: the machine itself, its link, groups, and where clouds tell a machine its keys.
 */
static const char *const NOWHERE[] = {
    "0.0.0.0/8", "169.254.0.0/16", "224.0.0.0/3",   "100.100.100.200", "192.0.0.192", "::",
    "fe80::/10", "ff00::/8",       "fd00:ec2::/32", "fd20:ce::254",    NULL};
static const char *const LOOPBACK[] = {"127.0.0.0/8", "::1", NULL};
static const char *const PRIVATE[] = {"10.0.0.0/8",    "172.16.0.0/12", "192.168.0.0/16",
                                      "100.64.0.0/10", "192.0.0.0/24",  "198.18.0.0/15",
                                      "fc00::/7",      "fec0::/10",     NULL};

static bool reach_is_listed(const struct strv *networks, const struct ip *ip)
{
    struct ip_net net;
    for (size_t i = 0; networks && i < networks->n; i++)
        if (ip_net_from_text(networks->v[i], &net) && ip_is_in(ip, &net))
            return true;
    return false;
}

static bool reach_allows_ip(enum reach how, const struct strv *networks, struct ip ip)
{
    if (how == REACH_ANYWHERE || reach_is_listed(networks, &ip))
        return true;
    return !ip_is_among(&ip, NOWHERE) && (how < REACH_MACHINES || !ip_is_among(&ip, LOOPBACK)) &&
           (how < REACH_OUTSIDE || !ip_is_among(&ip, PRIVATE));
}

bool reach_allows(enum reach how, const struct strv *networks, const struct sockaddr *to)
{
    struct ip ip;
    if (how == REACH_ANYWHERE)
        return true;
    if (to->sa_family == AF_INET) {
        unsigned char four[4];
        memcpy(four, &((const struct sockaddr_in *)(const void *)to)->sin_addr, sizeof(four));
        ip = ip_of_four(four);
    } else if (to->sa_family == AF_INET6) {
        memcpy(ip.b, &((const struct sockaddr_in6 *)(const void *)to)->sin6_addr, sizeof(ip.b));
    } else {
        return false; /* no other family is an address that somebody could have meant */
    }
    return reach_allows_ip(how, networks, ip_inside(&ip));
}

bool reach_allows_text(enum reach how, const struct strv *networks, const char *text)
{
    struct ip ip;
    return ip_from_text(text, &ip) && reach_allows_ip(how, networks, ip_inside(&ip));
}

bool reach_is_within(const struct strv *networks, const char *text)
{
    struct ip ip;
    if (!ip_from_text(text, &ip))
        return false;
    ip = ip_inside(&ip);
    return reach_is_listed(networks, &ip);
}

bool reach_is_address(const char *text)
{
    struct ip ip;
    return ip_from_text(text, &ip);
}

bool reach_is_same(const char *a, const char *b)
{
    struct ip left, right;
    return ip_from_text(a, &left) && ip_from_text(b, &right) &&
           !memcmp(left.b, right.b, sizeof(left.b));
}

int reach_check_network(const char *text, struct err *err)
{
    struct ip_net net;
    if (ip_net_from_text(text, &net))
        return 0;
    return message_refuse(err, ERR_BAD_REQUEST, "bad_network",
                          MESSAGE_ARGS(MESSAGE_STR("text", text)));
}
