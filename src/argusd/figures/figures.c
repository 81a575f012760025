/* SPDX-License-Identifier: Apache-2.0 */
/* figures.c - the samples in memory, and what is asked of them; see figures.h.
 *
 * A node's samples are a table of columns (figures_cells.h) by slots of 15 s, of which the last
 * FIGURES_SHORT are there, of a GPU's use FIGURES_LONG. A slot that was skipped is untold. When the
 * clock jumps further than the table is long, what is in memory is forgotten. */
#include "argusd/figures/figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/figures/figures_state.h"
#include "base/digest/hash.h"
#include "base/str.h"
#include "base/version.h"

enum { TICK_MS = 250, PARALLEL = 32 };
static const usec_t CONNECT_TIMEOUT = 3 * USEC_SEC;

/* ---- samples ---- */

int32_t figures_cell(const struct figures_node *n, size_t column, int64_t slot)
{
    bool is_there = column < n->cells.n_columns && slot <= n->newest &&
                    slot > n->newest - figures_cells_depth(column);
    return is_there ? figures_cells_get(&n->cells, column, slot) : FIGURE_UNTOLD;
}

static void figures_grow(struct figures_node *n, int n_gpus)
{
    figures_cells_grow(&n->cells, n_gpus);
    if (n->uuids && n_gpus <= n->n_gpus)
        return;
    n->uuids = xrealloc(n->uuids, (size_t)n_gpus + 1, sizeof(*n->uuids));
    for (int g = n->n_gpus; g < n_gpus; g++)
        *n->uuids[g] = 0;
    n->n_gpus = n_gpus;
}

static void figures_clear_slot(struct figures_node *n, int64_t slot)
{
    for (size_t c = 0; c < n->cells.n_columns; c++)
        figures_cells_put(&n->cells, c, slot, FIGURE_NONE);
}

/* The table's newest slot becomes this one. */
static void figures_move_to(struct figures_node *n, int64_t slot)
{
    bool jumped = slot <= n->newest - FIGURES_LONG || slot >= n->newest + FIGURES_LONG;
    if (!jumped && slot <= n->newest)
        return;
    for (int64_t s = jumped ? slot - FIGURES_LONG + 1 : n->newest + 1; s <= slot; s++)
        figures_clear_slot(n, s);
    if (jumped)
        n->kept_to = slot - slot % FIGURE_ROLL;
    n->newest = slot;
}

void figures_make_room(struct figures_node *n, int n_gpus, int64_t slot)
{
    figures_grow(n, n_gpus);
    figures_move_to(n, slot);
}

void figures_set(struct figures_node *n, size_t column, int64_t slot, int64_t steps)
{
    figures_cells_put(&n->cells, column, slot, steps);
}

static void figures_put_gpu(struct figures_node *n,
                            int g,
                            int64_t slot,
                            const struct figure_gpu *gpu)
{
    for (int i = 0; i < FIGURE_GPU_FIGURES; i++) {
        enum figure f = (enum figure)(FIGURE_GPU_UTIL + i);
        if (!figures_has_better(n, g, f, slot))
            figures_set(n, figure_column(f, g), slot, gpu->v[i]);
    }
    if (*gpu->uuid || !n->best)
        memcpy(n->uuids[g], gpu->uuid, sizeof(n->uuids[g]));
}

void figures_put(struct figures_node *n, int64_t slot, const struct figure_page *page)
{
    figures_make_room(n, page->n_gpus, slot);
    for (int f = 0; f < FIGURE_PAGE_FIGURES; f++)
        figures_set(n, (size_t)f, slot, page->v[f]);
    for (int g = 0; g < page->n_gpus; g++)
        figures_put_gpu(n, g, slot, &page->gpus[g]);
    figures_parts_sweep(n, slot);
}

/* ---- asking ---- */

static const struct figures_node *figures_find(const struct figures *fs, const char *node)
{
    return fs && node ? map_find(fs->nodes, node) : NULL;
}

struct figures_sum {
    double total, max, min;
    double last_total; /* of the newest of each GPU */
    int n, of, lasts;
};

/* Whose samples are asked for. */
struct figures_series {
    const struct figures_node *n; /* NULL: nobody knows it */
    enum figure f;
    int gpu;
    const char *job; /* of FIGURE_GPU_UTIL: its own part alone; NULL: all of it */
};

static int32_t figures_series_cell(const struct figures_series *of, int64_t slot)
{
    return of->job ? figures_part_cell(of->n, of->job, of->gpu, slot)
                   : figures_cell(of->n, figure_column(of->f, of->gpu), slot);
}

/* The slots (from, to]. */
static void figures_sum_slots(struct figures_sum *s,
                              const struct figures_series *of,
                              int64_t from,
                              int64_t to)
{
    bool had_last = false;
    s->of += (int)(to - from);
    for (int64_t slot = to; of->n && slot > from; slot--) {
        int32_t cell = figures_series_cell(of, slot);
        if (cell == FIGURE_UNTOLD)
            continue;
        double v = figure_from_steps(of->f, cell);
        s->max = s->n && s->max > v ? s->max : v;
        s->min = s->n && s->min < v ? s->min : v;
        s->total += v;
        s->n++;
        s->last_total += had_last ? 0 : v;
        s->lasts += !had_last;
        had_last = true;
    }
}

static void figures_sum_add(struct figures_sum *s, const struct figures_series *of, usec_t span)
{
    int64_t now = figure_slot(clock_wall());
    int64_t slots = (int64_t)(span / FIGURE_EVERY);
    int64_t most = figures_cells_depth(figure_column(of->f, of->gpu)) - 8;
    slots = slots < 1 ? 1 : slots > most ? most : slots;
    figures_sum_slots(s, of, now - slots, now);
}

static struct figures_window figures_judge(const struct figures_sum *s)
{
    double none = (double)NAN;
    return (struct figures_window){.mean = s->n ? s->total / s->n : none,
                                   .max = s->n ? s->max : none,
                                   .min = s->n ? s->min : none,
                                   .last = s->lasts ? s->last_total / s->lasts : none,
                                   .n = s->n,
                                   .of = s->of};
}

static bool figures_is_asked_well(enum figure f, int gpu)
{
    return (unsigned)f < FIGURE_END && figure_is_of_gpu(f) == (gpu >= 0) && gpu < FIGURE_GPUS_MAX;
}

bool figures_window_is_told(const struct figures_window *w)
{
    return w->n > 0 && 2 * w->n >= w->of;
}

struct figures_window figures_window(const struct figures *fs,
                                     const char *node,
                                     enum figure f,
                                     int gpu,
                                     usec_t span)
{
    struct figures_sum s = {0};
    const struct figures_series of = {.n = figures_find(fs, node), .f = f, .gpu = gpu};
    if (figures_is_asked_well(f, gpu))
        figures_sum_add(&s, &of, span);
    return figures_judge(&s);
}

struct figures_window figures_use(const struct figures *fs,
                                  const char *job,
                                  const char *node,
                                  int gpu,
                                  usec_t span)
{
    struct figures_sum s = {0};
    const struct figures_series of = {
        .n = figures_find(fs, node), .f = FIGURE_GPU_UTIL, .gpu = gpu, .job = job};
    if (figures_is_asked_well(of.f, gpu))
        figures_sum_add(&s, &of, span);
    return figures_judge(&s);
}

double figures_now(const struct figures *fs, const char *node, enum figure f, int gpu)
{
    return figures_window(fs, node, f, gpu, FIGURES_FRESH + FIGURE_EVERY).last;
}

/* The series of each GPU of the lease, of which `of` has the figure and the job. */
static struct figures_window figures_gang_series(const struct figures *fs,
                                                 const struct gang *gang,
                                                 struct figures_series of,
                                                 usec_t span)
{
    struct figures_sum s = {0};
    for (size_t i = 0; i < gang->n && figure_is_of_gpu(of.f); i++) {
        of.n = figures_find(fs, gang->v[i].name);
        for (of.gpu = 0; of.gpu < GANG_GPUS_MAX; of.gpu++)
            if (gang->v[i].gpus >> of.gpu & 1)
                figures_sum_add(&s, &of, span);
    }
    return figures_judge(&s);
}

struct figures_window figures_gang(const struct figures *fs,
                                   const struct gang *gang,
                                   enum figure f,
                                   usec_t span)
{
    return figures_gang_series(fs, gang, (struct figures_series){.f = f}, span);
}

struct figures_window figures_gang_use(const struct figures *fs,
                                       const char *job,
                                       const struct gang *gang,
                                       usec_t span)
{
    const struct figures_series of = {.f = FIGURE_GPU_UTIL, .job = job};
    return figures_gang_series(fs, gang, of, span);
}

int figures_gpus(const struct figures *fs, const char *node)
{
    const struct figures_node *n = figures_find(fs, node);
    return n ? n->n_gpus : 0;
}

const char *figures_uuid(const struct figures *fs, const char *node, int gpu)
{
    const struct figures_node *n = figures_find(fs, node);
    return n && gpu >= 0 && gpu < n->n_gpus ? n->uuids[gpu] : "";
}

int figures_port(const struct figures *fs, const char *node)
{
    const struct figures_node *n = figures_find(fs, node);
    if (!n || (*n->ip && !n->told_port && (!n->port_at || n->port_call)))
        return -1;
    return n->told_port;
}

const char *figures_address(const struct figures *fs, const char *node)
{
    const struct figures_node *n = figures_find(fs, node);
    return n ? n->ip : NULL;
}

const char *figures_why_not(const struct figures *fs, const char *node)
{
    const struct figures_node *n = figures_find(fs, node);
    return n ? n->why : "";
}

void figures_each_node(const struct figures *fs,
                       void (*each)(const char *node, void *arg),
                       void *arg)
{
    size_t pos = 0;
    int64_t oldest = figure_slot(clock_wall() - FIGURES_FRESH);
    for (const struct figures_node *n; (n = map_next(fs->nodes, &pos, NULL));)
        if (n->newest >= oldest)
            each(n->name, arg);
}

static void figures_count_node(const char *node, void *arg)
{
    int *count = arg;
    (void)node;
    (*count)++;
}

void figures_put_metrics(const struct figures *fs, struct expo *e)
{
    int nodes = 0;
    figures_each_node(fs, figures_count_node, &nodes);
    expo_one(e, EXPO_GAUGE, "figures_nodes", "Nodes that told their figures in the last minute.",
             nodes);
    expo_one(e, EXPO_COUNTER, "figures_pages_total", "Pages of nodes that were read.",
             (double)fs->pages);
    expo_one(e, EXPO_COUNTER, "figures_page_failures_total",
             "Pages of nodes that could not be had.", (double)fs->failures);
    expo_one(e, EXPO_COUNTER, "figures_bad_lines_total", "Lines of pages that could not be read.",
             (double)fs->bad_lines);
    expo_one(e, EXPO_COUNTER, "figures_written_bytes_total", "Bytes of figures written to files.",
             (double)fs->bytes);
    expo_one(e, EXPO_COUNTER, "figures_write_failures_total",
             "Records of figures that could not be written.", (double)fs->write_failures);
}

/* ---- life ---- */

void figures_node_free(struct figures_node *n)
{
    free(n->name);
    free(n->node_id);
    free(n->ip);
    free(n->uuids);
    figures_cells_release(&n->cells);
    for (size_t i = 0; i < array_len(n->before); i++)
        figure_before_release(&n->before[i]);
    free(n->best);
    figures_parts_free(n);
    free(n->exporter);
    free(n);
}

static void figures_on_tick(uv_timer_t *timer)
{
    struct figures *fs = timer->data;
    int64_t slot = figure_slot(clock_wall());
    size_t pos = 0;
    figures_scrape_tick(fs);
    for (struct figures_node *n; (n = map_next(fs->nodes, &pos, NULL));)
        figures_keep(n, slot, false);
    figures_keep_sweep(fs, slot);
}

int figures_new(const struct figures_parts *parts, struct figures **ret, struct err *err)
{
    unsigned char seed[16];
    struct wire *wire;
    struct wire_options opt = {.loop = parts->loop,
                               .user_agent = "argus/" ARGUS_VERSION,
                               .connect_timeout = CONNECT_TIMEOUT,
                               .parallel_max = PARALLEL,
                               .reach = REACH_NAMED,
                               .networks = &parts->settings->call_networks};
    int r = wire_new(&opt, &wire, err);
    if (r < 0)
        return r;
    random_bytes(seed, sizeof(seed));
    struct figures *fs = xcalloc(1, sizeof(*fs));
    *fs = (struct figures){.loop = parts->loop,
                           .settings = parts->settings,
                           .cluster = parts->cluster,
                           .ray = parts->ray,
                           .wire = wire,
                           .root = xasprintf("%s/figures", parts->settings->state_dir),
                           .nodes = map_new(seed)};
    (void)uv_timer_init(fs->loop, &fs->timer); /* never fails */
    fs->timer.data = fs;
    *ret = fs;
    return 0;
}

void figures_start(struct figures *fs)
{
    (void)uv_timer_start(&fs->timer, figures_on_tick, TICK_MS, TICK_MS); /* never fails */
}

void figures_close(struct figures *fs)
{
    size_t pos = 0;
    if (!fs || fs->closing)
        return;
    fs->closing = true;
    uv_close((uv_handle_t *)&fs->timer, NULL);
    for (struct figures_node *n; (n = map_next(fs->nodes, &pos, NULL));) {
        figures_scrape_stop(n);
        figures_keep(n, n->newest, true);
    }
    wire_free(fs->wire);
}

void figures_free(struct figures *fs)
{
    size_t pos = 0;
    if (!fs)
        return;
    for (struct figures_node *n; (n = map_next(fs->nodes, &pos, NULL));)
        figures_node_free(n);
    map_free(fs->nodes);
    free(fs->root);
    free(fs);
}
