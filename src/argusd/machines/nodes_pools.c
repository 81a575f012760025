/* SPDX-License-Identifier: Apache-2.0 */
/* nodes_pools.c - the pools of the cluster: nodes by their labels, and what is free there. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/account/accounting.h"
#include "argusd/machines/nodes_run.h"
#include "base/field.h"
#include "base/str.h"
#include "base/text.h"

struct pool {
    const char *label; /* NULL = all nodes */
    size_t len;
    double gpus, used, foreign; /* of all its nodes, usable or not */
    double mem_used, mem_total; /* of the memory of its GPUs, as far as it is told */
    int nodes;
    char types[128];
};

struct pools {
    struct pool *v;
    size_t n;
};

static struct pool *pools_find(struct pools *ps, const char *label, size_t len)
{
    for (size_t i = 0; i < ps->n; i++)
        if (ps->v[i].len == len && (!len || !strncmp(ps->v[i].label, label, len)))
            return &ps->v[i];
    ps->v = xrealloc(ps->v, ps->n + 1, sizeof(*ps->v));
    ps->v[ps->n] = (struct pool){.label = label, .len = len};
    return &ps->v[ps->n++];
}

static void note_type(struct pool *p, const char *type)
{
    size_t n = strlen(p->types);
    if (type && *type && !str_list_has(p->types, type))
        text_printf_to(p->types + n, sizeof(p->types) - n, "%s%s", n ? "," : "", type);
}

static double used_on(const struct nodes *ns, const char *node)
{
    double gpus, cpus;
    sched_node_used(ns->p.sched, node, &gpus, &cpus);
    return gpus;
}

/* One node, into the whole and into each of its labels. */
struct counted {
    const char *labels, *type;
    double gpus, used, foreign, mem_used, mem_total;
};

/* GPUs whose memory nobody tells count for neither. */
static void pools_add_memory(const struct nodes *ns, const char *node, struct counted *c)
{
    const struct figures *fs = ns->p.figures;
    for (int gpu = 0; fs && gpu < figures_gpus(fs, node); gpu++) {
        double used = figures_now(fs, node, FIGURE_GPU_MEM_USED, gpu);
        double total = figures_now(fs, node, FIGURE_GPU_MEM_TOTAL, gpu);
        if (isnan(used) || isnan(total))
            continue;
        c->mem_used += used;
        c->mem_total += total;
    }
}

static void count_in(struct pools *ps, const struct counted *c)
{
    const char *labels = c->labels;
    const char *item = NULL;
    size_t len = 0;
    do {
        struct pool *p = pools_find(ps, item, len);
        p->nodes++;
        p->gpus += c->gpus;
        p->used += c->used;
        p->foreign += c->foreign;
        p->mem_used += c->mem_used;
        p->mem_total += c->mem_total;
        note_type(p, c->type);
    } while ((item = str_item(&labels, &len)));
}

static int compare_pools(const void *a, const void *b)
{
    const struct pool *x = a, *y = b;
    size_t n = x->len < y->len ? x->len : y->len;
    int c = n ? strncmp(x->label, y->label, n) : 0;
    return c ? c : (x->len > y->len) - (x->len < y->len);
}

/* Texts are borrowed for one answer. */
struct pool_page {
    const char *cluster, *label, *type;
    int64_t nodes, usable_nodes, queued;
    struct {
        double total, used, foreign, held, free, draining, bad, idle_held, unknown;
    } gpus;
    double util, mem_used, mem_total; /* NaN: nobody measured */
    double largest_gang;
    usec_t next_free;
};

#define ROW(key, ftype, member, ...) FIELD_AT(pool_page, key, ftype, member, __VA_ARGS__)
static const struct field pool_rows[] = {
    ROW("cluster", FIELD_STR, cluster, .flags = FIELD_ALWAYS),
    ROW("pool", FIELD_STR, label, .doc = "a label; null: all nodes"),
    ROW("type", FIELD_STR, type),
    ROW("nodes", FIELD_INT, nodes),
    ROW("usable_nodes", FIELD_INT, usable_nodes),
    ROW("gpus.total", FIELD_REAL, gpus.total),
    ROW("gpus.used", FIELD_REAL, gpus.used),
    ROW("gpus.foreign", FIELD_REAL, gpus.foreign),
    ROW("gpus.held", FIELD_REAL, gpus.held),
    ROW("gpus.free", FIELD_REAL, gpus.free),
    ROW("gpus.draining", FIELD_REAL, gpus.draining),
    ROW("gpus.bad", FIELD_REAL, gpus.bad),
    ROW("gpus.idle_held", FIELD_REAL, gpus.idle_held, .doc = "used GPUs that are measured idle"),
    ROW("gpus.unknown", FIELD_REAL, gpus.unknown, .doc = "used GPUs that nobody measures"),
    ROW("util",
        FIELD_REAL,
        util,
        .flags = FIELD_MAYBE,
        .doc = "mean use of the leased GPUs that are measured, 0 to 1"),
    ROW("gpu_mem_used_bytes",
        FIELD_REAL,
        mem_used,
        .flags = FIELD_MAYBE,
        .doc = "memory in use on the GPUs that tell of their memory"),
    ROW("gpu_mem_total_bytes", FIELD_REAL, mem_total, .flags = FIELD_MAYBE),
    ROW("largest_gang", FIELD_REAL, largest_gang),
    ROW("queued", FIELD_INT, queued),
    ROW("next_free", FIELD_TIME, next_free),
};
#undef ROW
const struct field_table nodes_pool_table = FIELD_TABLE("Pool", pool_rows, pool_page);

static void put_pool(const struct nodes *ns, const struct pool *p, struct jout *j)
{
    struct sched_pool s;
    _cleanup_(freep) char *label = p->len ? xstrndup(p->label, p->len) : NULL;
    usec_t now = jobs_now(ns->p.jobs);
    sched_pool(ns->p.sched, str_or(label, ""), now, &s);
    usec_t left = s.next_free > now ? s.next_free - now : 0;
    int64_t book[SLOTBOOK_SUMS];
    accounting_pool(ns->p.accounting, str_or(label, ""), book);
    int64_t measured = book[SLOTBOOK_USED] + book[SLOTBOOK_HELD_IDLE] - book[SLOTBOOK_UNKNOWN];
    const struct pool_page page = {
        .cluster = ns->p.settings->cluster,
        .label = label,
        .type = *p->types ? p->types : NULL,
        .nodes = p->nodes,
        .usable_nodes = s.nodes,
        .gpus = {.total = p->gpus,
                 .used = p->used,
                 .foreign = p->foreign,
                 .held = s.held > p->foreign ? s.held - p->foreign : 0,
                 .free = s.free,
                 .draining = s.draining,
                 .bad = s.bad,
                 .idle_held = (double)book[SLOTBOOK_HELD_IDLE] / SLOTBOOK_GPU,
                 .unknown = (double)book[SLOTBOOK_UNKNOWN] / SLOTBOOK_GPU},
        .util = measured ? (double)book[SLOTBOOK_BUSY] / (double)measured : (double)NAN,
        .mem_used = p->mem_total > 0 ? p->mem_used : (double)NAN,
        .mem_total = p->mem_total > 0 ? p->mem_total : (double)NAN,
        .largest_gang = s.largest_gang,
        .queued = s.queued,
        .next_free = s.next_free ? clock_wall() + left : 0,
    };
    field_to_json(&nodes_pool_table, &page, FIELD_ALL, FIELD_PAGE, j, NULL);
}

void nodes_put_pools(const struct nodes *ns, struct jout *j, const char *key)
{
    size_t n;
    const struct cluster_node *v = cluster_nodes(ns->p.cluster, &n);
    struct pools ps = {0};
    char **labels = xcalloc(ns->n + 1, sizeof(*labels));
    (void)pools_find(&ps, NULL, 0); /* the whole comes first */
    for (size_t i = 0; i < ns->n; i++) {
        const struct noderun *nr = ns->v[i];
        const struct nodespec *spec = &nr->row->spec;
        if (nr->row->is_head || nr->gone)
            continue;
        labels[i] = nodespec_pool(spec);
        struct counted c = {.labels = labels[i],
                            .type = spec->gpu_type ? spec->gpu_type : nr->row->facts.gpu_type,
                            .gpus = nr->gpus,
                            .used = used_on(ns, spec->name),
                            .foreign = nr->foreign_gpus};
        pools_add_memory(ns, spec->name, &c);
        count_in(&ps, &c);
    }
    for (size_t i = 0; i < n; i++) {
        struct counted c = {.labels = v[i].pool, .gpus = v[i].gpus};
        if (!v[i].is_alive || v[i].is_head || nodes_view_is_hidden(ns, &v[i]))
            continue;
        c.used = used_on(ns, v[i].name);
        c.foreign = nodes_foreign(ns, &v[i]);
        pools_add_memory(ns, v[i].name, &c);
        count_in(&ps, &c);
    }
    xsort(ps.v, ps.n, sizeof(*ps.v), compare_pools);
    jout_open(j, key, '[');
    for (size_t i = 0; i < ps.n; i++)
        put_pool(ns, &ps.v[i], j);
    jout_close(j, ']');
    for (size_t i = 0; i < ns->n; i++)
        free(labels[i]);
    free(labels);
    free(ps.v);
}
