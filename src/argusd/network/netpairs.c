/* SPDX-License-Identifier: Apache-2.0 */
/* netpairs.c - see netpairs.h. Rows are entries of kind "netpair", named "<a> <b>" in the order of
 * the names: no name of a node has a space. */
#include "argusd/network/netpairs.h"

#include <stdlib.h>
#include <string.h>

#include "base/digest/hash.h"
#include "base/map.h"
#include "base/str.h"

struct netpairs {
    struct store *store;
    struct map *by_names;
};

#define ROW(key, ftype) FIELD_AT(netpair, #key, ftype, key, .flags = FIELD_STORED)
static const struct field netpair_rows[] = {
    ROW(a, FIELD_STR),
    ROW(b, FIELD_STR),
    ROW(mbps, FIELD_REAL),
    ROW(usec, FIELD_REAL),
    ROW(baseline, FIELD_REAL),
    ROW(at, FIELD_TIME),
    ROW(job, FIELD_STR),
    ROW(baseline_at, FIELD_TIME),
    ROW(baseline_job, FIELD_STR),
};
#undef ROW
static const struct field_table netpair_table = FIELD_TABLE(NULL, netpair_rows, netpair);

static void netpair_free(struct netpair *p)
{
    if (!p)
        return;
    field_release(&netpair_table, p);
    free(p);
}

struct netpairs *netpairs_new(struct store *store)
{
    unsigned char seed[16];
    random_bytes(seed, sizeof(seed));
    struct netpairs *np = xcalloc(1, sizeof(*np));
    *np = (struct netpairs){.store = store, .by_names = map_new(seed)};
    return np;
}

void netpairs_free(struct netpairs *np)
{
    struct netpair *p;
    if (!np)
        return;
    for (size_t pos = 0; (p = map_next(np->by_names, &pos, NULL));)
        netpair_free(p);
    map_free(np->by_names);
    free(np);
}

static char *netpair_name(const char *a, const char *b)
{
    return xasprintf("%s %s", a, b);
}

void netpairs_restore(struct netpairs *np, const struct store_entry *row)
{
    struct netpair *p = xcalloc(1, sizeof(*p));
    if (field_from_text(&netpair_table, row->body, FIELD_STORED, p) && p->a && p->b && p->job) {
        _cleanup_(freep) char *name = netpair_name(p->a, p->b);
        netpair_free(map_set(np->by_names, name, p));
    } else {
        netpair_free(p);
    }
}

const struct netpair *netpairs_next(const struct netpairs *np, size_t *pos)
{
    return map_next(np->by_names, pos, NULL);
}

double netpairs_baseline(const struct netcheck_pair *p, void *arg)
{
    const struct netpairs *np = arg;
    _cleanup_(freep) char *name = netpair_name(p->a, p->b);
    const struct netpair *known = map_find(np->by_names, name);
    return known ? known->baseline : 0;
}

static int order_rates(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

double netpairs_usual(const struct netpairs *np, const char *node)
{
    const struct netpair *p;
    double *v = xcalloc(map_count(np->by_names) + 1, sizeof(*v));
    size_t n = 0;
    for (size_t pos = 0; (p = netpairs_next(np, &pos));)
        if (p->baseline > 0 && (str_eq(p->a, node) || str_eq(p->b, node)))
            v[n++] = p->baseline;
    xsort(v, n, sizeof(*v), order_rates);
    double usual = n ? (v[(n - 1) / 2] + v[n / 2]) / 2 : 0;
    free(v);
    return usual;
}

double netpairs_join_baseline(const struct netcheck_pair *p, void *arg)
{
    double was = netpairs_baseline(p, arg);
    double a = netpairs_usual(arg, p->a), b = netpairs_usual(arg, p->b);
    if (was > 0)
        return was;
    return a > 0 && b > 0 ? (a < b ? a : b) : a + b;
}

bool netpairs_take(struct netpairs *np,
                   const struct netcheck_pair *p,
                   const char *job,
                   unsigned flags,
                   usec_t now)
{
    _cleanup_(freep) char *name = netpair_name(p->a, p->b);
    struct netpair *known = map_find(np->by_names, name);
    if (!known && map_count(np->by_names) >= NETPAIRS_MAX)
        return false;
    if (!known) {
        known = xcalloc(1, sizeof(*known));
        *known = (struct netpair){.a = xstrdup(p->a), .b = xstrdup(p->b)};
        map_set(np->by_names, name, known);
    }
    known->mbps = p->mbps;
    known->usec = p->usec;
    known->at = now;
    set_str(&known->job, job);
    if ((flags & NETPAIRS_ANEW) || ((flags & NETPAIRS_FIRST) && !(known->baseline > 0))) {
        known->baseline = p->mbps;
        known->baseline_at = now;
        set_str(&known->baseline_job, job);
    }
    _cleanup_(freep) char *body = field_to_text(&netpair_table, known, FIELD_STORED, FIELD_ROW);
    struct store_entry row = {.kind = NETPAIRS_ENTRY, .name = name, .body = body, .at = now};
    store_put_entry(np->store, &row);
    return true;
}
