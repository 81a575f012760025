/* SPDX-License-Identifier: Apache-2.0 */
/* figures_parts.c - which part of a GPU's use is whose, where jobs share GPUs; see figures.h.
 *
 * A part is remembered of a job that leases a part of a GPU, and of one beside whose processes
 * those of other jobs live: of all others the GPU's use says as much, and costs nothing more. A
 * part is told by the job's own book, which comes each 15 s but not in each slot: it stands for the
 * next slots too. A job can write its book: its part is never more than the GPU's use, and no part
 * of another one is less for it. Who is not seen on a GPU is never taken for one that rests there:
 * its part is not known while others are told to work there. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/figures/figures_state.h"
#include "base/mem.h"
#include "base/str.h"

enum {
    PART_UNTOLD = 255,
    PART_STANDS = 2, /* slots after its own */
};

static struct figures_part *figures_part_find(const struct figures_node *n,
                                              const char *job,
                                              int gpu)
{
    for (size_t i = 0; i < n->n_parts; i++)
        if (n->parts[i].gpu == gpu && str_eq(n->parts[i].job, job))
            return &n->parts[i];
    return NULL;
}

/* NULL: FIGURES_PARTS_MAX are there. */
static struct figures_part *figures_part_add(struct figures_node *n, const char *job, int gpu)
{
    if (n->n_parts >= FIGURES_PARTS_MAX)
        return NULL;
    n->parts = xrealloc(n->parts, n->n_parts + 1, sizeof(*n->parts));
    struct figures_part *p = &n->parts[n->n_parts++];
    *p = (struct figures_part){.job = xstrdup(job), .gpu = gpu};
    return p;
}

static unsigned char *figures_part_at(struct figures_part *p, int64_t slot)
{
    return &p->use[slot % FIGURES_LONG];
}

/* use: below 0: it is there, and not known. */
static void figures_part_put(struct figures_part *p, int64_t slot, double use)
{
    bool jumped = slot <= p->newest - FIGURES_LONG || slot >= p->newest + FIGURES_LONG;
    if (jumped)
        memset(p->use, PART_UNTOLD, sizeof(p->use));
    for (int64_t s = p->newest + 1; s <= slot && !jumped; s++)
        *figures_part_at(p, s) = PART_UNTOLD;
    p->newest = jumped || slot > p->newest ? slot : p->newest;
    if (use >= 0)
        *figures_part_at(p, slot) = (unsigned char)lround(100 * fmin(use, 1));
}

static int32_t figures_part_told(const struct figures_part *p, int64_t slot)
{
    for (int64_t s = slot; s >= slot - PART_STANDS; s--)
        if (s <= p->newest && s > p->newest - FIGURES_LONG &&
            p->use[s % FIGURES_LONG] != PART_UNTOLD)
            return p->use[s % FIGURES_LONG];
    return FIGURE_UNTOLD;
}

int32_t figures_part_cell(const struct figures_node *n, const char *job, int gpu, int64_t slot)
{
    int32_t device = figures_cell(n, figure_column(FIGURE_GPU_UTIL, gpu), slot);
    const struct figures_part *own = figures_part_find(n, job, gpu);
    int32_t told = own ? figures_part_told(own, slot) : FIGURE_UNTOLD;
    if (!own || device == FIGURE_UNTOLD)
        return device;
    if (told != FIGURE_UNTOLD)
        return told < device ? told : device;
    for (size_t i = 0; i < n->n_parts; i++)
        if (n->parts[i].gpu == gpu && figures_part_told(&n->parts[i], slot) > 0)
            return FIGURE_UNTOLD;
    return device;
}

void figures_put_parts(struct figures *fs,
                       const char *job,
                       const struct gang_node *node,
                       const struct gpu_sample *book,
                       bool has_part)
{
    struct figures_node *n = fs ? map_find(fs->nodes, node->name) : NULL;
    int64_t slot = figure_slot(clock_wall());
    if (!n || fs->closing)
        return;
    figures_parts_sweep(n, slot);
    for (size_t i = 0; i < book->n; i++) {
        const struct gpu_card *c = &book->v[i];
        bool is_shared;
        double own = gpu_card_own(c, &is_shared);
        if (!(node->gpus >> c->index & 1))
            continue;
        struct figures_part *p = figures_part_find(n, job, c->index);
        if (!p && (has_part || is_shared))
            p = figures_part_add(n, job, c->index);
        if (p)
            figures_part_put(p, slot, own);
    }
}

void figures_parts_sweep(struct figures_node *n, int64_t slot)
{
    size_t kept = 0;
    for (size_t i = 0; i < n->n_parts; i++) {
        if (n->parts[i].newest + FIGURES_LONG > slot)
            n->parts[kept++] = n->parts[i];
        else
            free(n->parts[i].job);
    }
    n->n_parts = kept;
}

void figures_parts_free(struct figures_node *n)
{
    for (size_t i = 0; i < n->n_parts; i++)
        free(n->parts[i].job);
    free(n->parts);
}
