/* SPDX-License-Identifier: Apache-2.0 */
/* figures_cards.c - what a node itself says: the driver of its GPUs, in the place of Ray's page,
 * and its RDMA ports, of which Ray's page says nothing; see figures.h.
 *
 * Ray's page has what the driver said of a moment, without errors, and in Ray before 2.60 without
 * power and UUIDs. When the better source falls silent, Ray's figures come back after 45 s. */
#include <string.h>

#include "argusd/figures/figures_state.h"
#include "base/text.h"

enum { FIGURES_BEST_SLOTS = 2 };

bool figures_has_better(const struct figures_node *n, int gpu, enum figure f, int64_t slot)
{
    if (gpu >= n->n_best)
        return false;
    const struct figures_best *b = &n->best[gpu];
    return b->slot && b->slot + FIGURES_BEST_SLOTS >= slot && b->slot <= slot + 1 &&
           b->figures >> (f - FIGURE_GPU_UTIL) & 1;
}

bool figures_has_driver(const struct figures_node *n, int gpu, int64_t slot)
{
    int64_t told = gpu < n->n_best ? n->best[gpu].by_driver : 0;
    return told && told + FIGURES_BEST_SLOTS >= slot && told <= slot + 1;
}

static struct figures_best *figures_best_of(struct figures_node *n, int gpu)
{
    if (gpu >= n->n_best) {
        n->best = xrealloc(n->best, (size_t)gpu + 1, sizeof(*n->best));
        for (; n->n_best <= gpu; n->n_best++)
            n->best[n->n_best] = (struct figures_best){0};
    }
    return &n->best[gpu];
}

void figures_put_best(struct figures_node *n, int64_t slot, const struct figure_page *page)
{
    figures_make_room(n, page->n_gpus, slot);
    for (int g = 0; g < page->n_gpus; g++) {
        if (!page->gpus[g].is_there)
            continue;
        struct figures_best *b = figures_best_of(n, g);
        b->slot = slot;
        b->figures = 0;
        for (int i = 0; i < FIGURE_GPU_FIGURES; i++) {
            int64_t steps = page->gpus[g].v[i];
            if (steps == FIGURE_NONE)
                continue;
            b->figures |= 1U << i;
            figures_set(n, figure_column((enum figure)(FIGURE_GPU_UTIL + i), g), slot, steps);
        }
        if (*page->gpus[g].uuid)
            text_copy(n->uuids[g], page->gpus[g].uuid);
    }
}

static void figures_take_card(struct figure_page *page, const struct gpu_card *c)
{
    const struct {
        enum figure f;
        double v;
    } told[] = {
        {FIGURE_GPU_UTIL, c->util},
        {FIGURE_GPU_MEM_USED, c->mem_used_bytes},
        {FIGURE_GPU_MEM_TOTAL, c->mem_total_bytes},
        {FIGURE_GPU_POWER, c->power_watts},
        {FIGURE_GPU_TEMPERATURE, c->temperature_celsius},
        {FIGURE_GPU_XID, c->xid},
        {FIGURE_GPU_ECC, c->ecc_uncorrected},
    };
    struct figure_gpu *g = &page->gpus[c->index];
    g->is_there = true;
    text_copy(g->uuid, c->uuid);
    for (size_t i = 0; i < array_len(told); i++)
        if (told[i].v >= 0)
            g->v[told[i].f - FIGURE_GPU_UTIL] = figure_to_steps(told[i].f, told[i].v);
    page->n_gpus = c->index >= page->n_gpus ? c->index + 1 : page->n_gpus;
}

void figures_put_cards(struct figures *fs,
                       const char *node,
                       const struct gpu_sample *sample,
                       uint64_t allowed)
{
    struct figures_node *n = fs && node ? map_find(fs->nodes, node) : NULL;
    if (!n || fs->closing)
        return;
    struct figure_page *page = xcalloc(1, sizeof(*page));
    figure_page_init(page);
    for (size_t i = 0; i < sample->n; i++)
        if (allowed >> sample->v[i].index & 1)
            figures_take_card(page, &sample->v[i]);
    int64_t slot = figure_slot(clock_wall());
    figures_put_best(n, slot, page);
    for (size_t i = 0; i < sample->n; i++) {
        const struct gpu_card *c = &sample->v[i];
        if (!(allowed >> c->index & 1))
            continue;
        struct figures_best *b = figures_best_of(n, c->index);
        b->by_driver = slot;
        double most = b->card.nvlinks_most;
        b->card = (struct figures_card){.throttle = c->throttle,
                                        .rows_failed = c->rows_failed,
                                        .rows_pending = c->rows_pending,
                                        .nvlinks = c->nvlinks,
                                        .slowdown_celsius = c->slowdown_celsius,
                                        .pcie_width = c->pcie_width,
                                        .pcie_width_max = c->pcie_width_max,
                                        .nvlinks_most = most > c->nvlinks ? most : c->nvlinks};
    }
    free(page);
}

void figures_put_rdma(struct figures *fs, const char *node, const struct rdma_rate *rate)
{
    struct figures_node *n = fs && node ? map_find(fs->nodes, node) : NULL;
    int64_t slot = figure_slot(clock_wall());
    if (!n || fs->closing)
        return;
    figures_make_room(n, 0, slot);
    figures_set(n, FIGURE_RDMA_SENT, slot, figure_to_steps(FIGURE_RDMA_SENT, rate->sent));
    figures_set(n, FIGURE_RDMA_RECEIVED, slot,
                figure_to_steps(FIGURE_RDMA_RECEIVED, rate->received));
}

bool figures_card(const struct figures *fs, const char *node, int gpu, struct figures_card *ret)
{
    const struct figures_node *n = fs && node ? map_find(fs->nodes, node) : NULL;
    int64_t oldest = figure_slot(clock_wall() - FIGURES_FRESH);
    if (!n || gpu < 0 || gpu >= n->n_best || n->best[gpu].by_driver < oldest)
        return false;
    *ret = n->best[gpu].card;
    return true;
}

bool figures_card_is_throttled(const struct figures_card *c)
{
    /* NVML's bits: hardware slowdown, software and hardware thermal, power brake. */
    const unsigned held = 0x8 | 0x20 | 0x40 | 0x80;
    return c->throttle > 0 && c->throttle < UINT32_MAX && ((unsigned)c->throttle & held);
}

/* So many links as each other GPU of the node has; 0: they differ, or are fewer than 3. */
static double figures_links_beside(const struct figures *fs, const char *node, int gpu)
{
    double all = 0;
    int others = 0;
    struct figures_card card;
    for (int g = 0; g < figures_gpus(fs, node); g++) {
        if (g == gpu || !figures_card(fs, node, g, &card) || card.nvlinks < 0)
            continue;
        if (others++ && card.nvlinks != all)
            return 0;
        all = card.nvlinks;
    }
    return others >= 3 ? all : 0;
}

int figures_links_missing(const struct figures *fs, const char *node, int gpu)
{
    struct figures_card card;
    if (!figures_card(fs, node, gpu, &card) || card.nvlinks < 0)
        return -1;
    double beside = figures_links_beside(fs, node, gpu);
    double due = beside > card.nvlinks_most ? beside : card.nvlinks_most;
    return (int)(due - card.nvlinks);
}
