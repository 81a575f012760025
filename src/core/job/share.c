/* SPDX-License-Identifier: Apache-2.0 */
/* share.c - names of the shares, and which one is free; see share.h.
 *
 * A share may be had by two leases whose nodes differ; leases with a node in common have
 * different ones. Who holds what is the caller's ledger: a bit for each share. */
#include "core/job/share.h"

#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "base/text.h"

const char *share_name(int share, char ret[static SHARE_NAME_MAX])
{
    text_printf_to(ret, SHARE_NAME_MAX, SHARE_PREFIX "%d", share);
    return ret;
}

void share_put_resources(struct jout *j)
{
    char name[SHARE_NAME_MAX];
    for (int i = 0; i < SHARES; i++)
        jout_int(j, share_name(i, name), 1);
}

int share_free(uint32_t taken)
{
    for (int i = 0; i < SHARES; i++)
        if (!(taken & (1u << i)))
            return i;
    return SHARE_NONE;
}
