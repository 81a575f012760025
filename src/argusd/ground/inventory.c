/* SPDX-License-Identifier: Apache-2.0 */
/* inventory.c - see inventory.h. Texts are compared as addresses (ray/reach.h); a name is none. */
#include "argusd/ground/inventory.h"

#include <string.h>

#include "base/str.h"
#include "base/text.h"
#include "ray/reach.h"

/* The host of a URL, without the brackets of IPv6. */
static void inventory_find_host(const char *url, char *ret, size_t size)
{
    const char *at = strstr(url, "://");
    at = at ? at + 3 : url;
    bool has_brackets = *at == '[';
    at += has_brackets;
    text_printf_to(ret, size, "%.*s", (int)strcspn(at, has_brackets ? "]" : ":/"), at);
}

bool inventory_is_here(const char *ray_address)
{
    char host[INVENTORY_HOST_MAX];
    inventory_find_host(ray_address, host, sizeof(host));
    return str_starts(host, "127.") || !strcmp(host, "localhost") || !strcmp(host, "::1");
}

static bool inventory_has_head(const struct inventory *iv, const char *address)
{
    char host[INVENTORY_HOST_MAX];
    inventory_find_host(iv->ray_address, host, sizeof(host));
    if (reach_is_same(address, host) || reach_is_same(address, str_or(iv->head_host, "")))
        return true;
    for (size_t i = 0; inventory_is_here(iv->ray_address) && i < iv->addresses->n; i++)
        if (reach_is_same(address, iv->addresses->v[i]))
            return true;
    return false;
}

bool inventory_has(const struct inventory *iv,
                   const char *registered,
                   bool is_head,
                   const char *address)
{
    if (reach_is_within(iv->networks, address))
        return true;
    if (registered)
        return reach_is_same(registered, address);
    return is_head && inventory_has_head(iv, address);
}
