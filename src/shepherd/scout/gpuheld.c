/* SPDX-License-Identifier: Apache-2.0 */
/* gpuheld.c - see gpuheld.h. The driver runs on the first node of the lease and may hold GPUs of
 * its own there, beside those that the lease has on each node. A lease that does not say how many
 * was written by an older argusd. */
#include "shepherd/scout/gpuheld.h"

#include <string.h>

#include "base/json.h"
#include "base/str.h"
#include "shepherd/host/kernel.h"

enum { LEASE_MAX = 128 << 10 }; /* one variable of an environment holds no more */

double gpuheld_leased(const char *lease, const char *node)
{
    size_t i;
    json_t *item;
    _cleanup_(json_unrefp) json_t *o = NULL;
    if (!lease || json_parse(lease, strlen(lease), LEASE_MAX, &o, NULL) < 0)
        return -1;
    double each = json_get_real(o, "gpus", -1), drivers = json_get_real(o, "driver_gpus", -1);
    if (!(each >= 0 && drivers >= 0))
        return -1;
    json_array_foreach (json_object_get(o, "nodes"), i, item)
        if (str_eq(json_get_str(item, "name", NULL), node))
            return i ? each : each + drivers;
    return -1;
}

int gpuheld_find(const struct gpu_sample *book, double leased, uint64_t *ret, size_t room)
{
    uint64_t seen[FIGURE_GPUS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < book->n; i++) {
        const struct gpu_card *c = &book->v[i];
        if (!c->is_ours)
            continue;
        uint64_t at = kernel_gpu_at(c->pci);
        if (!at)
            return -1; /* any Xid may be this one's */
        seen[n++] = at;
    }
    if (leased < 0 || (double)n < leased || n > room)
        return -1;
    memcpy(ret, seen, n * sizeof(seen[0]));
    return (int)n;
}
