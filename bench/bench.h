/* SPDX-License-Identifier: Apache-2.0 */
/* bench.h - what the benchmark programs share: clock, latencies, one line of JSON. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* Nanoseconds that never jump. */
uint64_t bench_now(void);

struct samples {
    uint64_t *ns;
    size_t n, cap;
};

void samples_add(struct samples *s, uint64_t ns);
void samples_release(struct samples *s);

/* {"what":…,"clients":…,"n":…,"per_s":…,"p50_ms":…,"p99_ms":…,"max_ms":…} and a newline on
 * stdout; sorts the samples. */
void bench_print(const char *what, unsigned clients, size_t n, uint64_t took_ns, struct samples *s);

/* Prints one line on stderr and exits with status 1. */
_Noreturn void bench_die(const char *what, const char *why);
