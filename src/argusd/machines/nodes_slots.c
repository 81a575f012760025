/* SPDX-License-Identifier: Apache-2.0 */
/* nodes_slots.c - see nodes_slots.h. Figures are those of now; not told is null, never 0. */
#include "argusd/machines/nodes_slots.h"

#include <math.h>
#include <stdlib.h>

#include "argusd/machines/nodes_run.h"
#include "base/strv.h"

enum slot_state { SLOT_FREE, SLOT_LEASED, SLOT_FOREIGN, SLOT_HELD, SLOT_DRAINING, SLOT_BROKEN };
static const char *const slot_states[] = {"free",     "leased", "foreign", "held",
                                          "draining", "broken", NULL};

struct node_slot_page {
    int gpu, state;
    const char *uuid; /* borrowed */
    struct strv jobs;
    int64_t hidden;
    double util, mem_used, mem_total, celsius, xid, ecc;
};
#define SLOT(key, ftype, member, ...) FIELD_AT(node_slot_page, key, ftype, member, __VA_ARGS__)
static const struct field slot_rows[] = {
    SLOT("gpu", FIELD_INT32, gpu, .doc = "index of the GPU on its node"),
    SLOT("uuid", FIELD_STR, uuid, .flags = FIELD_BORROWED),
    SLOT("state", FIELD_ENUM, state, .names = slot_states),
    SLOT("jobs", FIELD_STRV, jobs, .doc = "jobs that hold the GPU or a share of it"),
    SLOT("jobs_hidden", FIELD_INT, hidden, .doc = "jobs of others that you may not see"),
    SLOT("util", FIELD_REAL, util, .flags = FIELD_MAYBE, .doc = "0 to 1; null: not told lately"),
    SLOT("mem_used_bytes", FIELD_REAL, mem_used, .flags = FIELD_MAYBE),
    SLOT("mem_total_bytes", FIELD_REAL, mem_total, .flags = FIELD_MAYBE),
    SLOT("temperature_celsius", FIELD_REAL, celsius, .flags = FIELD_MAYBE),
    SLOT("xid",
         FIELD_REAL,
         xid,
         .flags = FIELD_MAYBE,
         .doc = "the newest error of the driver; 0: none"),
    SLOT("ecc_uncorrected", FIELD_REAL, ecc, .flags = FIELD_MAYBE),
};
const struct field_table nodes_slot_table = FIELD_TABLE("NodeSlot", slot_rows, node_slot_page);

enum { SLOTS_MAX = 64 };

/* As many as the machine has, and at least as many as leases name. */
static size_t nodes_slots_count(const struct nodes_slots_of *of)
{
    size_t n = of->total > 0 ? (size_t)ceil(of->total) : 0;
    for (size_t i = 0; i < of->n; i++)
        for (size_t g = n; g < SLOTS_MAX; g++)
            if (of->leases[i].gpus >> g & 1)
                n = g + 1;
    return n < SLOTS_MAX ? n : SLOTS_MAX;
}

static void nodes_slots_fill_jobs(const struct nodes_slots_of *of, struct node_slot_page *s)
{
    for (size_t i = 0; i < of->n; i++) {
        if (!(of->leases[i].gpus >> s->gpu & 1))
            continue;
        s->state = SLOT_LEASED;
        if (of->leases[i].job)
            strv_add(&s->jobs, of->leases[i].job);
        else
            s->hidden++;
    }
}

static void nodes_slots_fill_figures(const struct nodes *ns,
                                     const char *node,
                                     struct node_slot_page *s)
{
    const struct figures *fs = ns->p.figures;
    const char *uuid = figures_uuid(fs, node, s->gpu);
    s->uuid = *uuid ? uuid : NULL;
    s->util = figures_now(fs, node, FIGURE_GPU_UTIL, s->gpu);
    s->mem_used = figures_now(fs, node, FIGURE_GPU_MEM_USED, s->gpu);
    s->mem_total = figures_now(fs, node, FIGURE_GPU_MEM_TOTAL, s->gpu);
    s->celsius = figures_now(fs, node, FIGURE_GPU_TEMPERATURE, s->gpu);
    s->xid = figures_now(fs, node, FIGURE_GPU_XID, s->gpu);
    s->ecc = figures_now(fs, node, FIGURE_GPU_ECC, s->gpu);
}

/* The last `count` free ones become `state`. */
static void nodes_slots_take(struct node_slot_page *v,
                             size_t n,
                             double count,
                             enum slot_state state)
{
    for (size_t i = n; i-- > 0 && count > 0;)
        if (v[i].state == SLOT_FREE) {
            v[i].state = (int)state;
            count--;
        }
}

void nodes_slots_list(const struct nodes *ns,
                      const struct nodes_slots_of *of,
                      struct field_list *ret)
{
    size_t n = nodes_slots_count(of);
    struct node_slot_page *v = xcalloc(n + 1, sizeof(*v));
    for (size_t i = 0; i < n; i++) {
        v[i].gpu = (int)i;
        nodes_slots_fill_jobs(of, &v[i]);
        nodes_slots_fill_figures(ns, of->node, &v[i]);
    }
    nodes_slots_take(v, n, of->foreign, SLOT_FOREIGN);
    nodes_slots_take(v, n, of->held - of->foreign, SLOT_HELD);
    if (of->draining)
        nodes_slots_take(v, n, (double)n, SLOT_DRAINING);
    else if (!of->usable && !of->is_head)
        nodes_slots_take(v, n, (double)n, SLOT_BROKEN);
    *ret = (struct field_list){.v = v, .n = n};
}

void nodes_slots_release(struct field_list *slots)
{
    struct node_slot_page *v = slots->v;
    for (size_t i = 0; i < slots->n; i++)
        strv_release(&v[i].jobs);
    free(v);
    *slots = (struct field_list){0};
}
