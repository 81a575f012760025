/* SPDX-License-Identifier: Apache-2.0 */
/* observe.c - bytes that the figures of a node cost a day, and what reading pages and files costs.
 *
 *   bench-observe PAGE GPUS
 *
 * A day of one node with GPUS GPUs is made up: what a training does (use near full with drops,
 * memory that stays, power and heat that wander) on each GPU for two thirds of the day, and nothing
 * after. PAGE is a page of Ray, read over and over. Prints lines of JSON. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "bench.h"
#include "core/figure/figure_block.h"

enum { DAY_RECORDS = 288, PAGES = 2000 };

static uint32_t bench_seed = 7;

static int32_t bench_dice(int32_t sides)
{
    bench_seed = bench_seed * 1664525u + 1013904223u;
    return (int32_t)((bench_seed >> 8) % (uint32_t)sides);
}

/* The sample of one column while a training runs. */
static int32_t bench_value(enum figure f, int32_t last)
{
    switch (f) {
    case FIGURE_GPU_UTIL:
        return bench_dice(10) ? 88 + bench_dice(13) : bench_dice(60);
    case FIGURE_GPU_MEM_USED:
        return bench_dice(40) ? last : 60000 + bench_dice(15000);
    case FIGURE_GPU_MEM_TOTAL:
        return 81559;
    case FIGURE_GPU_POWER:
        return 480 + bench_dice(200);
    case FIGURE_GPU_TEMPERATURE:
        return last < 55 ? 60 : last + bench_dice(3) - 1;
    case FIGURE_GPU_XID:
    case FIGURE_GPU_ECC:
        return FIGURE_UNTOLD;
    case FIGURE_CPU_UTIL:
        return 150 + bench_dice(200);
    case FIGURE_CPU_COUNT:
        return 192;
    case FIGURE_MEM_TOTAL:
        return 2000000;
    case FIGURE_MEM_USED:
        return 600000 + bench_dice(4000);
    case FIGURE_DISK_USED:
    case FIGURE_DISK_FREE:
        return bench_dice(8) ? last : 500000 + bench_dice(1000);
    case FIGURE_OBJECTS_USED:
    case FIGURE_OBJECTS_FREE:
        return 100000 + bench_dice(2000);
    default:
        return bench_dice(4000); /* rates */
    }
}

static enum figure bench_figure(size_t column)
{
    return column < FIGURE_NODE_FIGURES
               ? (enum figure)column
               : (enum figure)(FIGURE_GPU_UTIL +
                               (column - FIGURE_NODE_FIGURES) % FIGURE_GPU_FIGURES);
}

/* The figures of a machine where nothing runs: 0 where the figure is a use. */
static int32_t bench_idle(enum figure f, int32_t last)
{
    switch (f) {
    case FIGURE_GPU_UTIL:
        return 0;
    case FIGURE_GPU_MEM_USED:
        return 4;
    case FIGURE_GPU_POWER:
        return 70 + bench_dice(3);
    case FIGURE_GPU_TEMPERATURE:
        return 34 + !bench_dice(20);
    case FIGURE_CPU_UTIL:
        return bench_dice(6);
    case FIGURE_MEM_USED:
        return 20000 + bench_dice(50);
    default:
        return figure_is_of_gpu(f) || f == FIGURE_CPU_COUNT || f == FIGURE_MEM_TOTAL ||
                       f == FIGURE_DISK_USED || f == FIGURE_DISK_FREE
                   ? last
                   : bench_dice(2);
    }
}

static void bench_fill(struct figure_record *r, int record, int32_t *last)
{
    bool busy = record < DAY_RECORDS * 2 / 3;
    r->slot = (int64_t)record * FIGURE_ROLL;
    for (size_t c = 0; c < figure_columns(r->n_gpus); c++)
        for (int i = 0; i < FIGURE_ROLL; i++) {
            enum figure f = bench_figure(c);
            last[c] = busy ? bench_value(f, last[c]) : bench_idle(f, last[c]);
            r->samples[c][i] = last[c];
        }
}

static void bench_bytes(int gpus)
{
    struct figure_record *samples = xcalloc(1, sizeof(*samples));
    struct figure_record *rolls = xcalloc(1, sizeof(*rolls));
    struct figure_before before[2] = {0};
    struct buf files[2] = {BUF_INIT(64 << 20), BUF_INIT(64 << 20)};
    int32_t last[FIGURE_COLUMNS_MAX] = {0};
    uint64_t from = bench_now();
    size_t columns = figure_columns(gpus);
    samples->n_gpus = rolls->n_gpus = gpus;
    rolls->is_rollup = true;
    for (int record = 0; record < DAY_RECORDS; record++) {
        bench_fill(samples, record, last);
        rolls->slot = samples->slot;
        for (size_t c = 0; c < columns; c++)
            rolls->rolls[c] = figure_roll_of(samples->samples[c], FIGURE_ROLL);
        if (figure_record_put(samples, &before[0], &files[0]) < 0 ||
            figure_record_put(rolls, &before[1], &files[1]) < 0)
            bench_die("a record", "too large");
    }
    double n = (double)columns * DAY_RECORDS;
    printf("{\"what\":\"a day of a node\",\"gpus\":%d,\"columns\":%zu,\"samples_bytes\":%zu,"
           "\"bytes_per_sample\":%.3f,\"rollups_bytes\":%zu,\"bytes_per_rollup\":%.3f,"
           "\"write_ms\":%.1f}\n",
           gpus, columns, files[0].len, (double)files[0].len / (n * FIGURE_ROLL), files[1].len,
           (double)files[1].len / n, (double)(bench_now() - from) / 1e6);
    from = bench_now();
    size_t at = 0, records = 0;
    figure_before_release(&before[0]);
    while (figure_record_get((const unsigned char *)files[1].data, files[1].len, &at, &before[0],
                             rolls) > 0)
        records++;
    if (records != DAY_RECORDS)
        bench_die("the rollups", "cannot be read back");
    printf("{\"what\":\"a day's rollups read\",\"ms\":%.3f}\n", (double)(bench_now() - from) / 1e6);
    buf_release(&files[0]);
    buf_release(&files[1]);
    figure_before_release(&before[0]);
    figure_before_release(&before[1]);
    free(samples);
    free(rolls);
}

static void bench_pages(const char *path)
{
    struct buf text = BUF_INIT(4 << 20);
    struct err err = {0};
    if (file_read(path, &text, &err) < 0)
        bench_die(path, err.text);
    struct figure_page *page = xcalloc(1, sizeof(*page));
    uint64_t from = bench_now();
    for (int i = 0; i < PAGES; i++) {
        figure_page_init(page);
        figure_page_read(page, FIGURE_OF_RAY, text.data, text.len);
    }
    double s = (double)(bench_now() - from) / 1e9;
    printf("{\"what\":\"a page read\",\"bytes\":%zu,\"lines\":%u,\"us\":%.1f,\"MB_per_s\":%.0f}\n",
           text.len, page->lines, s * 1e6 / PAGES, (double)text.len * PAGES / s / 1e6);
    free(page);
    buf_release(&text);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        bench_die("usage", "bench-observe PAGE GPUS");
    bench_bytes(atoi(argv[2]));
    bench_pages(argv[1]);
    return 0;
}
