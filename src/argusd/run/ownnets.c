/* SPDX-License-Identifier: Apache-2.0 */
/* ownnets.c - see ownnets.h. What may be written is judged by ray/reach.h, as calls are. */
#include "argusd/run/ownnets.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>
#include <uv.h>

#include "base/text.h"
#include "ray/reach.h"

/* The bytes of an address, 4 or 16 of them; 0: of another family. */
static size_t ownnets_read(const struct sockaddr *from, unsigned char ret[static 16])
{
    if (from->sa_family == AF_INET) {
        memcpy(ret, &((const struct sockaddr_in *)(const void *)from)->sin_addr, 4);
        return 4;
    }
    if (from->sa_family != AF_INET6)
        return 0;
    memcpy(ret, &((const struct sockaddr_in6 *)(const void *)from)->sin6_addr, 16);
    return 16;
}

/* How many bits a mask begins with. */
static int ownnets_bits(const unsigned char *mask, size_t n)
{
    int bits = 0;
    while ((size_t)bits < 8 * n && mask[bits / 8] & 0x80u >> bits % 8)
        bits++;
    return bits;
}

void ownnets_add(struct strv *to, const struct sockaddr *address, const struct sockaddr *mask)
{
    unsigned char at[16] = {0}, ones[16] = {0};
    char text[INET6_ADDRSTRLEN], net[INET6_ADDRSTRLEN + 8];
    size_t n = ownnets_read(address, at);
    int family = n == 4 ? AF_INET : AF_INET6;
    if (!n || ownnets_read(mask, ones) != n || to->n >= OWNNETS_MAX)
        return;
    int bits = ownnets_bits(ones, n);
    if (!bits || !reach_allows(REACH_MACHINES, NULL, address))
        return;
    for (int i = bits; (size_t)i < 8 * n; i++)
        at[i / 8] &= (unsigned char)~(0x80u >> i % 8);
    if (!inet_ntop(family, at, text, sizeof(text)))
        return;
    text_printf(net, "%s/%d", text, bits);
    if (!strv_has(to, net))
        strv_add(to, net);
}

void ownnets_find(bool has_ray, struct strv *ret)
{
    uv_interface_address_t *v = NULL;
    int n = 0;
    if (uv_interface_addresses(&v, &n) == 0) {
        for (int i = 0; i < n; i++)
            ownnets_add(ret, (const struct sockaddr *)&v[i].address,
                        (const struct sockaddr *)&v[i].netmask);
        uv_free_interface_addresses(v, n);
    }
    if (has_ray && !ret->n)
        strv_add(ret, "127.0.0.0/8");
}
