/* SPDX-License-Identifier: Apache-2.0 */
/* figures_keep.c - what goes to files and comes back from them, in the worker pool; see README.md.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "argusd/figures/figures_state.h"
#include "argusd/ground/work.h"
#include "base/log.h"

/* ---- writing ---- */

struct keeping {
    struct figures_node *n;
    char *dir;
    int64_t slot;
    bool fresh[2];
    struct buf bytes[2]; /* samples, rollups */
    int result[2];
    struct err err;
};

static void keeping_run(void *arg)
{
    struct keeping *k = arg;
    for (int i = 0; i < 2; i++)
        k->result[i] = figures_append(k->dir, (enum figures_kind)i, k->slot, k->fresh[i],
                                      &k->bytes[i], &k->err);
}

static void keeping_done(void *arg)
{
    struct keeping *k = arg;
    struct figures *fs = k->n->fs;
    k->n->is_writing = false;
    fs->writing--;
    for (int i = 0; i < 2; i++) {
        fs->bytes += k->result[i] == 0 ? k->bytes[i].len : 0;
        fs->write_failures += k->result[i] < 0;
        k->n->fresh[i] = k->result[i] < 0;
        k->n->before[i].is_begun &= k->result[i] == 0; /* the next builds on nothing */
        buf_release(&k->bytes[i]);
    }
    if (k->result[0] < 0 || k->result[1] < 0)
        log_warn("figures", "%s node=%s", k->err.text, k->n->name);
    free(k->dir);
    free(k);
}

/* The samples of one rollup of a node, and the rollup; false: there is none. */
static bool keeping_fill(struct keeping *k)
{
    struct figures_node *n = k->n;
    struct figure_record *samples = xcalloc(1, sizeof(*samples));
    struct figure_record *rolls = xcalloc(1, sizeof(*rolls));
    bool any = false;
    *samples = (struct figure_record){.slot = k->slot, .n_gpus = n->n_gpus};
    *rolls = (struct figure_record){.is_rollup = true, .slot = k->slot, .n_gpus = n->n_gpus};
    for (size_t c = 0; c < figure_columns(n->n_gpus); c++) {
        for (int i = 0; i < FIGURE_ROLL; i++)
            samples->samples[c][i] = figures_cell(n, c, k->slot + i);
        rolls->rolls[c] = figure_roll_of(samples->samples[c], FIGURE_ROLL);
        any |= rolls->rolls[c].n > 0;
    }
    any = any && figure_record_put(samples, &n->before[0], &k->bytes[0]) == 0 &&
          figure_record_put(rolls, &n->before[1], &k->bytes[1]) == 0;
    free(samples);
    free(rolls);
    return any;
}

static void keeping_start(struct figures_node *n, int64_t slot)
{
    struct keeping *k = xcalloc(1, sizeof(*k));
    int64_t day = slot / FIGURES_DAY_SLOTS;
    if (day != n->day)
        n->before[0].is_begun = n->before[1].is_begun = false;
    n->day = day;
    *k = (struct keeping){.n = n,
                          .slot = slot,
                          .fresh = {n->fresh[0], n->fresh[1]},
                          .bytes = {BUF_INIT(FIGURE_RECORD_MAX), BUF_INIT(FIGURE_RECORD_MAX)}};
    if (!keeping_fill(k)) {
        buf_release(&k->bytes[0]);
        buf_release(&k->bytes[1]);
        free(k);
        return;
    }
    k->dir = figures_dir(n->fs->root, n->name);
    n->is_writing = true;
    n->fs->writing++;
    work_start(n->fs->loop, keeping_run, keeping_done, k);
}

/* All nodes are due in the same moment, and each holds its bytes until they are written: a few go
 * at a time, which costs the last of them seconds of the two minutes that it has. */
static bool figures_may_write(const struct figures_node *n, bool all)
{
    return n->newest && !n->is_writing && (all || n->fs->writing < FIGURES_WRITING_MAX);
}

void figures_keep(struct figures_node *n, int64_t now_slot, bool all)
{
    if (!figures_may_write(n, all))
        return;
    if (n->kept_to < n->newest - FIGURES_SHORT + 1)
        n->kept_to = (n->newest - FIGURES_SHORT + FIGURE_ROLL) / FIGURE_ROLL * FIGURE_ROLL;
    /* A page that was asked for in the last slot may still come. */
    if (n->kept_to > n->newest || (!all && now_slot < n->kept_to + FIGURE_ROLL + 1))
        return;
    keeping_start(n, n->kept_to);
    n->kept_to += FIGURE_ROLL;
    figures_cells_pack(&n->cells);
}

/* ---- old files ---- */

struct sweep {
    struct figures *fs;
    char *root;
    int64_t slot;
};

static void sweep_run(void *arg)
{
    struct sweep *s = arg;
    figures_sweep(s->root, s->slot);
}

static void sweep_done(void *arg)
{
    struct sweep *s = arg;
    s->fs->is_sweeping = false;
    free(s->root);
    free(s);
}

void figures_keep_sweep(struct figures *fs, int64_t now_slot)
{
    int64_t day = now_slot / FIGURES_DAY_SLOTS;
    if (fs->is_sweeping || fs->swept == day)
        return;
    struct sweep *s = xcalloc(1, sizeof(*s));
    *s = (struct sweep){.fs = fs, .root = xstrdup(fs->root), .slot = now_slot};
    fs->swept = day;
    fs->is_sweeping = true;
    work_start(fs->loop, sweep_run, sweep_done, s);
}

/* ---- reading ---- */

struct figures_read *figures_read_new(enum figure f, usec_t from, usec_t to, usec_t step)
{
    struct figures_read *r = xcalloc(1, sizeof(*r));
    usec_t span = to > from ? to - from : FIGURE_EVERY;
    usec_t least = span / FIGURES_POINTS_MAX;
    step = step > least ? step : least;
    step = (step + FIGURE_EVERY - 1) / FIGURE_EVERY * FIGURE_EVERY;
    step = step ? step : FIGURE_EVERY;
    from = from / step * step;
    *r = (struct figures_read){.figure = f,
                               .from = from,
                               .to = to,
                               .step = step,
                               .points = (size_t)((to - from) / step) + 1};
    return r;
}

bool figures_read_add(struct figures_read *r, const char *node, int gpu)
{
    if (r->n_rows == FIGURES_ROWS_MAX)
        return false;
    r->rows = xrealloc(r->rows, r->n_rows + 1, sizeof(*r->rows));
    r->rows[r->n_rows++] = (struct figures_row){.node = xstrdup(node), .gpu = gpu};
    return true;
}

void figures_read_free(struct figures_read *r)
{
    for (size_t i = 0; r && i < r->n_rows; i++) {
        free(r->rows[i].node);
        free(r->rows[i].mean);
        free(r->rows[i].max);
    }
    if (r)
        free(r->rows);
    free(r);
}

/* Sums of the points of all rows of one node. */
struct reading {
    struct figures *fs;
    struct figures_read *r;
    char *root;
    double *sums;     /* [row][point] */
    uint32_t *counts; /* of samples */
    size_t first, n;  /* the rows of the node that is read */
    int64_t from, to; /* slots that are taken from this kind of file */
    void (*done)(void *arg);
    void *arg;
};

static void reading_add(struct reading *g, size_t row, int64_t slot, double v, double max, int n)
{
    usec_t at = (usec_t)slot * FIGURE_EVERY;
    if (at < g->r->from || at > g->r->to)
        return;
    size_t point = (size_t)((at - g->r->from) / g->r->step), i = row * g->r->points + point;
    float *top = &g->r->rows[row].max[point];
    g->sums[i] += v * n;
    g->counts[i] += (uint32_t)n;
    *top = isnan(*top) || max > (double)*top ? (float)max : *top;
}

static void reading_on_record(const struct figure_record *rec, void *arg)
{
    struct reading *g = arg;
    enum figure f = g->r->figure;
    if (rec->slot < g->from || rec->slot > g->to)
        return;
    for (size_t row = g->first; row < g->first + g->n; row++) {
        int gpu = g->r->rows[row].gpu;
        if (gpu >= rec->n_gpus)
            continue;
        size_t c = figure_column(f, gpu);
        const struct figure_roll *roll = &rec->rolls[c];
        if (rec->is_rollup && roll->n > 0)
            reading_add(g, row, rec->slot, figure_from_steps(f, roll->mean),
                        figure_from_steps(f, roll->max), roll->n);
        for (int i = 0; !rec->is_rollup && i < FIGURE_ROLL; i++)
            if (rec->samples[c][i] != FIGURE_UNTOLD) {
                double v = figure_from_steps(f, rec->samples[c][i]);
                reading_add(g, row, rec->slot + i, v, v, 1);
            }
    }
}

/* Fine steps come from samples, as far back as these are kept; coarse ones from rollups. */
static void reading_node(struct reading *g)
{
    _cleanup_(freep) char *dir = figures_dir(g->root, g->r->rows[g->first].node);
    bool fine = g->r->step < FIGURE_ROLL * FIGURE_EVERY;
    g->from = figure_slot(g->r->from) - FIGURE_ROLL;
    g->to = figure_slot(g->r->to);
    figures_each_record(dir, fine ? FIGURES_SAMPLES : FIGURES_ROLLUPS, g->from, g->to,
                        reading_on_record, g);
}

static void reading_run(void *arg)
{
    struct reading *g = arg;
    struct figures_read *r = g->r;
    for (g->first = 0; g->first < r->n_rows; g->first += g->n) {
        for (g->n = 1; g->first + g->n < r->n_rows &&
                       !strcmp(r->rows[g->first].node, r->rows[g->first + g->n].node);)
            g->n++;
        reading_node(g);
    }
    for (size_t i = 0; i < r->n_rows * r->points; i++)
        if (g->counts[i])
            r->rows[i / r->points].mean[i % r->points] = (float)(g->sums[i] / g->counts[i]);
}

static void reading_done(void *arg)
{
    struct reading *g = arg;
    g->done(g->arg);
    free(g->root);
    free(g->sums);
    free(g->counts);
    free(g);
}

/* What is in memory and not in a file yet. */
static void reading_take_memory(struct reading *g)
{
    struct figures_read *r = g->r;
    for (size_t row = 0; row < r->n_rows; row++) {
        const struct figures_node *n = map_find(g->fs->nodes, r->rows[row].node);
        size_t c = figure_column(r->figure, r->rows[row].gpu);
        for (int64_t slot = n ? n->kept_to : 1; n && slot <= n->newest; slot++) {
            int32_t cell = figures_cell(n, c, slot);
            double v = figure_from_steps(r->figure, cell);
            if (cell != FIGURE_UNTOLD)
                reading_add(g, row, slot, v, v, 1);
        }
    }
}

void figures_read_start(struct figures *fs,
                        struct figures_read *r,
                        void (*done)(void *arg),
                        void *arg)
{
    struct reading *g = xcalloc(1, sizeof(*g));
    *g = (struct reading){.fs = fs,
                          .r = r,
                          .root = xstrdup(fs->root),
                          .sums = xcalloc(r->n_rows * r->points + 1, sizeof(*g->sums)),
                          .counts = xcalloc(r->n_rows * r->points + 1, sizeof(*g->counts)),
                          .done = done,
                          .arg = arg};
    for (size_t i = 0; i < r->n_rows; i++) {
        r->rows[i].mean = xcalloc(r->points, sizeof(float));
        r->rows[i].max = xcalloc(r->points, sizeof(float));
        for (size_t p = 0; p < r->points; p++)
            r->rows[i].mean[p] = r->rows[i].max[p] = NAN;
    }
    reading_take_memory(g);
    work_start(fs->loop, reading_run, reading_done, g);
}
