/* SPDX-License-Identifier: Apache-2.0 */
/* share.c - names of the shares, and which one is free; see share.h.
 *
 * A share may be had by two leases whose nodes differ; leases with a node in common have
 * different ones. Who holds what is the caller's ledger: a bit for each share. */
#include "core/share.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/str.h"

const char *share_name(int share, char ret[static SHARE_NAME_MAX])
{
    (void)snprintf(ret, SHARE_NAME_MAX, SHARE_PREFIX "%d", share); /* fits */
    return ret;
}

void share_put_resources(struct jout *j)
{
    char name[SHARE_NAME_MAX];
    for (int i = 0; i < SHARES; i++)
        jout_int(j, share_name(i, name), 1);
}

static bool has(const char *list, const char *name, size_t len)
{
    const char *it;
    size_t n;
    while ((it = str_item(&list, &n)))
        if (n == len && !memcmp(it, name, n))
            return true;
    return false;
}

bool share_nodes_meet(const char *a, const char *b)
{
    const char *it;
    size_t n;
    while ((it = str_item(&a, &n)))
        if (has(b, it, n))
            return true;
    return false;
}

int share_free(uint32_t taken)
{
    for (int i = 0; i < SHARES; i++)
        if (!(taken & (1u << i)))
            return i;
    return SHARE_NONE;
}
