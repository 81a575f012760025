/* SPDX-License-Identifier: Apache-2.0 */
/* outlook.c - the forecast of demand on a trace of past jobs, beside "as last week".
 *
 *   bench-outlook TRACE.csv WEEKS
 *
 * A job is taken to run from its submission on: that is demand, whatever there was room for. For
 * each pool, and for all together, prints a line of JSON: the error of the forecasts as they would
 * have been made over the last weeks of the trace, that of "as last week", and how many days were
 * inside the interval. The last day, which the trace may only have a part of, is left out, and so
 * are the days behind it, on which nothing new comes. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "bench.h"
#include "core/past/outlook.h"
#include "core/past/trace.h"

enum { TRACE_BYTES_MAX = 256 << 20, BLOCK = 1 << 16 };

static void bench_read(const char *path, struct buf *ret)
{
    char block[BLOCK];
    size_t n;
    FILE *f = fopen(path, "r");
    if (!f)
        bench_die(path, "cannot open");
    while ((n = fread(block, 1, sizeof(block), f)) > 0)
        if (buf_add(ret, block, n) < 0)
            bench_die(path, "too large");
    (void)fclose(f);
}

/* What the job holds of each day. */
static void demand_add(double *days, size_t n, usec_t start, const struct trace_row *row)
{
    for (size_t day = (size_t)((row->submit - start) / USEC_DAY); day < n; day++) {
        usec_t from = start + day * USEC_DAY, to = from + USEC_DAY;
        usec_t end = row->submit + row->duration;
        if (end <= from)
            return;
        from = row->submit > from ? row->submit : from;
        to = end < to ? end : to;
        days[day] += row->gpus * (double)(to - from) / (double)USEC_DAY;
    }
}

static void outlook_print(const char *name, const double *days, size_t n, size_t weeks)
{
    struct outlook o;
    double sum = 0;
    uint64_t from = bench_now();
    outlook_run(days, n, weeks, &o);
    uint64_t took = bench_now() - from;
    for (size_t i = n > OUTLOOK_LOOK ? n - OUTLOOK_LOOK : 0; i < n; i++)
        sum += days[i];
    static const char *const words[] = {
#define X(name, word) #word,
        OUTLOOK_METHOD_TABLE(X)
#undef X
    };
    printf("{\"pool\":\"%s\",\"days\":%zu,\"weeks\":%zu,\"mean_gpus\":%.1f,\"method\":\"%s\","
           "\"trials\":%zu,\"error\":%.2f,\"naive\":%.2f,\"ratio\":%.3f,\"judged\":%zu,"
           "\"covered\":%.3f,\"us\":%llu}\n",
           name, o.days, o.weeks, sum / (double)(n < OUTLOOK_LOOK ? n : OUTLOOK_LOOK),
           o.weeks ? words[o.method] : "", o.trials, o.error, o.naive_error,
           o.naive_error > 0 ? o.error / o.naive_error : 0, o.judged, o.covered,
           (unsigned long long)(took / 1000));
}

int main(int argc, char **argv)
{
    struct buf text = BUF_INIT(TRACE_BYTES_MAX);
    struct trace t;
    struct err err = {0};
    if (argc != 3)
        bench_die("outlook", "bench-outlook TRACE.csv WEEKS");
    bench_read(argv[1], &text);
    if (trace_parse(argv[1], buf_str(&text), text.len, &t, &err) < 0)
        bench_die(argv[1], err.text);
    usec_t start = trace_start(&t) / USEC_DAY * USEC_DAY;
    size_t n = (size_t)((trace_start(&t) + trace_span(&t) - start) / USEC_DAY);
    size_t weeks = (size_t)strtoul(argv[2], NULL, 10);
    double *all = xcalloc(n + 1, sizeof(*all)), *days = xcalloc(n + 1, sizeof(*days));
    for (size_t p = 0; p < t.n_pools; p++) {
        memset(days, 0, n * sizeof(*days));
        for (size_t i = 0; i < t.pools[p].n; i++)
            demand_add(days, n, start, &t.rows[t.pools[p].first + i]);
        for (size_t i = 0; i < n; i++)
            all[i] += days[i];
        outlook_print(t.pools[p].name, days, n, weeks);
    }
    outlook_print("all", all, n, weeks);
    free(all);
    free(days);
    trace_release(&t);
    buf_release(&text);
    return 0;
}
