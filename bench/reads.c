/* SPDX-License-Identifier: Apache-2.0 */
/* reads.c - pages of jobs from the store alone, and its start: `bench-reads PATH SECONDS`.
 *
 * So many callers each ask for a page, get it on the loop, and ask again. */
#include <stdio.h>
#include <stdlib.h>

#include "bench.h"
#include "store/store.h"

enum { CALLERS = 16, PAGE = 50 };

struct run;

struct caller {
    struct run *run;
    uint64_t since;
};

struct run {
    uv_loop_t loop;
    struct store *store;
    const struct store_job_query *query;
    struct caller callers[CALLERS];
    uint64_t end;
    size_t done;
    struct samples samples;
};

static void ask(struct caller *c);

static void on_page(const struct store_result *r, void *arg)
{
    struct caller *c = arg;
    uint64_t now = bench_now();

    if (r->err.code)
        bench_die("list", r->err.text);
    samples_add(&c->run->samples, now - c->since);
    c->run->done++;
    if (now < c->run->end)
        ask(c);
}

static void ask(struct caller *c)
{
    c->since = bench_now();
    (void)store_list_jobs(c->run->store, c->run->query,
                          &(struct store_then){.done = on_page, .arg = c});
}

static void bench_query(struct run *r,
                        const char *what,
                        const struct store_job_query *q,
                        unsigned callers,
                        double seconds)
{
    uint64_t start = bench_now();

    r->query = q;
    r->end = start + (uint64_t)(seconds * 1e9);
    for (unsigned i = 0; i < callers; i++) {
        r->callers[i].run = r;
        ask(&r->callers[i]);
    }
    (void)uv_run(&r->loop, UV_RUN_DEFAULT);
    bench_print(what, callers, r->done, bench_now() - start, &r->samples);
    r->done = 0;
    samples_release(&r->samples);
}

static void on_id(const char *id, void *arg)
{
    *(size_t *)arg += id != NULL;
}

static void on_job(const struct store_job *job, void *arg)
{
    *(size_t *)arg += job != NULL;
}

static void bench_load(struct run *r, const char *what, const struct store_load_ops *ops)
{
    struct samples s = {0};
    struct store_last last;
    struct err err = {0};
    uint64_t start = bench_now(), took;
    size_t n = 0;

    if (store_load(r->store, ops, &n, &last, &err) < 0)
        bench_die(what, err.text);
    took = bench_now() - start;
    samples_add(&s, took);
    bench_print(what, 1, n, took, &s);
    samples_release(&s);
}

int main(int argc, char **argv)
{
    static const char *const failed[] = {"FAILED"};
    static const char *const two[] = {"FAILED", "SUCCEEDED"};
    static const struct {
        const char *what;
        struct store_job_query query;
    } queries[] = {
        {"first page", {.limit = PAGE}},
        {"page of 1000", {.limit = STORE_PAGE_MAX}},
        {"user", {.limit = PAGE, .user = "user7"}},
        {"state", {.limit = PAGE, .states = failed, .nstates = 1}},
        {"user and two states", {.limit = PAGE, .user = "user7", .states = two, .nstates = 2}},
        {"pool", {.limit = PAGE, .pool = "big"}},
        {"pool, nowhere", {.limit = PAGE, .pool = "nowhere"}},
        {"live", {.limit = PAGE, .live = true}},
        {"since", {.limit = PAGE, .since = (usec_t)1767225600 * USEC_SEC + 90 * USEC_DAY}},
        {"q, in one of 10,000", {.limit = PAGE, .q = "exp-1234"}},
        {"q, nowhere", {.limit = PAGE, .q = "nowhere"}},
    };
    struct run r = {0};
    struct store_options opt = {.loop = &r.loop};
    struct err err = {0};
    double seconds;

    if (argc != 3)
        bench_die("bench-reads", "usage: bench-reads PATH SECONDS");
    opt.path = argv[1];
    seconds = atof(argv[2]);
    if (uv_loop_init(&r.loop) < 0 || store_open(&opt, &r.store, &err) < 0)
        bench_die(argv[1], err.text);
    bench_load(&r, "start: every id", &(struct store_load_ops){.on_id = on_id});
    bench_load(&r, "start: live jobs", &(struct store_load_ops){.on_job = on_job});
    for (size_t i = 0; i < array_len(queries); i++) {
        bench_query(&r, queries[i].what, &queries[i].query, 1, seconds);
        bench_query(&r, queries[i].what, &queries[i].query, CALLERS, seconds);
    }
    if (store_close(r.store, &err) < 0)
        bench_die(argv[1], err.text);
    (void)uv_run(&r.loop, UV_RUN_DEFAULT);
    return uv_loop_close(&r.loop) < 0;
}
