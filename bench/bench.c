/* SPDX-License-Identifier: Apache-2.0 */
/* bench.c - see bench.h. */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

uint64_t bench_now(void)
{
    struct timespec t;

    if (clock_gettime(CLOCK_MONOTONIC, &t) < 0)
        bench_die("clock", "no monotonic time");
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void samples_add(struct samples *s, uint64_t ns)
{
    if (s->n == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 65536;
        s->ns = realloc(s->ns, s->cap * sizeof *s->ns);
        if (!s->ns)
            bench_die("samples", "out of memory");
    }
    s->ns[s->n++] = ns;
}

void samples_release(struct samples *s)
{
    free(s->ns);
    *s = (struct samples){0};
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static double quantile(const struct samples *s, double q)
{
    return s->n ? (double)s->ns[(size_t)((double)(s->n - 1) * q)] / 1e6 : 0;
}

void bench_print(const char *what, unsigned clients, size_t n, uint64_t took_ns, struct samples *s)
{
    if (s->n)
        qsort(s->ns, s->n, sizeof *s->ns, compare);
    (void)printf("{\"what\":\"%s\",\"clients\":%u,\"n\":%zu,\"per_s\":%.1f,\"p50_ms\":%.3f,"
                 "\"p99_ms\":%.3f,\"max_ms\":%.3f}\n",
                 what, clients, n, (double)n / ((double)took_ns / 1e9), quantile(s, 0.5),
                 quantile(s, 0.99), quantile(s, 1));
    (void)fflush(stdout);
}

void bench_die(const char *what, const char *why)
{
    (void)fprintf(stderr, "%s: %s\n", what, why);
    exit(1);
}
