/* SPDX-License-Identifier: Apache-2.0 */
/* needscheck.c - see needscheck.h. What a probe did not see is no reason: a machine that was not
 * looked at yet fits. */
#include "argusd/launch/needscheck.h"

#include <string.h>

#include "argusd/content/snapshots.h"
#include "argusd/machines/nodes.h"
#include "base/json.h"

enum { CODE_MAX = 64 << 10, FIRST_MAX = 300 };

static void needscheck_one(const struct nodes *ns,
                           const struct snapshot *s,
                           const char *key,
                           const char *pool,
                           struct problems *ps)
{
    char first[FIRST_MAX];
    int all = 0,
        n = s->needs.n ? nodes_count_unfit(ns, pool, &s->needs, &all, first, sizeof(first)) : 0;
    if (n)
        problems_add(ps, PROBLEM_WARNING, key, 0, 0,
                     "name a pool whose machines fit, or another snapshot",
                     "snapshot '%s' does not fit %d of %d machines: %s", s->ref, n, all, first);
}

void needscheck(const struct nodes *ns,
                const struct snapshots *sn,
                const char *code,
                const char *pool,
                struct problems *ps)
{
    _cleanup_(json_unrefp) json_t *v = NULL;
    size_t i;
    const json_t *one;
    if (!code || json_parse(code, strlen(code), CODE_MAX, &v, NULL) < 0)
        return;
    json_array_foreach (v, i, one) {
        const struct snapshot *s = snapshots_find_path(sn, json_get_str(one, "path", ""));
        if (s)
            needscheck_one(ns, s, json_get_str(one, "key", "code"), pool, ps);
    }
}
