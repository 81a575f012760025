/* SPDX-License-Identifier: Apache-2.0 */
/* sched.c - what a pass of the scheduler costs: `bench-sched JOBS NODES POLICY`.
 *
 * Cold: the first pass over an empty cluster with JOBS queued, until nobody more can start.
 * Incremental: on the full cluster, one job ends and the pass starts who can; one job is queued and
 * the pass finds that it cannot start; the same where a quota bars all that wait. The peer is a
 * plain scan, written as one would in an afternoon: every waiting job, in order, against every
 * node. It knows neither promises nor quotas, so that its work is less; its decisions are not
 * compared. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "core/sched/sched.h"

enum { GPUS = 8, USERS = 50, PROJECTS = 10, POOLS = 3, CHANGES = 2000, COLD = 9 };

static const char *const pools[POOLS] = {"a100", "h20", "h200"};

struct job {
    char id[24];
    int nnodes, gpus, pool;
    usec_t limit;
    bool runs, over;
};

static uint64_t rng = 88172645463325252u;

static unsigned pick(unsigned below)
{
    rng ^= rng << 13;
    rng ^= rng >> 7;
    rng ^= rng << 17;
    return (unsigned)(rng >> 32) % below;
}

/* Mostly small, some whole nodes, few gangs: as on the clusters that we have traces of. */
static void make_job(struct job *j, size_t i)
{
    unsigned p = pick(100);
    (void)snprintf(j->id, sizeof(j->id), "j%zu", i);
    j->gpus = p < 50 ? 1 : p < 60 ? 2 : p < 75 ? 4 : 8;
    j->nnodes = p < 92 ? 1 : 2 << pick(3);
    j->pool = (int)pick(POOLS);
    j->limit = (1 + pick(72)) * USEC_HOUR;
    j->runs = j->over = false;
}

static void submit(struct sched *s, struct job *j, int64_t seq)
{
    char user[16], project[16];
    (void)snprintf(user, sizeof(user), "u%u", pick(USERS));
    (void)snprintf(project, sizeof(project), "p%u", pick(PROJECTS));
    const struct sched_job job = {.id = j->id,
                                  .seq = seq,
                                  .priority = 50,
                                  .pool = pools[j->pool],
                                  .user = user,
                                  .project = project,
                                  .demand = {.nnodes = j->nnodes,
                                             .gpus_per_node = j->gpus,
                                             .cpus_per_node = 4.0 * j->gpus,
                                             .driver_cpus = 1},
                                  .queued_at = USEC_DAY,
                                  .limit = j->limit,
                                  .expected_p50 = j->limit / 2,
                                  .job = j};
    sched_enqueue(s, &job);
}

static void make_nodes(struct sched *s, size_t n)
{
    struct sched_node *v = calloc(n, sizeof(*v));
    char(*names)[24] = calloc(n, sizeof(*names));
    if (!v || !names)
        bench_die("sched", "no memory");
    for (size_t i = 0; i < n; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "n%zu", i);
        v[i] = (struct sched_node){
            .name = names[i], .pool = pools[i % POOLS], .gpus = GPUS, .cpus = 96, .usable = true};
    }
    sched_set_nodes(s, v, n);
    free(names);
    free(v);
}

static size_t run_pass(struct sched *s, usec_t now)
{
    struct sched_decision d;
    size_t n = 0;
    for (; sched_next(s, now, &d); n++)
        ((struct job *)d.job)->runs = true;
    return n;
}

/* The first pass, on copies: they decide the same. Returns how many start in all. */
static size_t cold(const struct sched *s, struct samples *t)
{
    size_t n = 0;
    for (int i = 0; i < COLD; i++) {
        struct sched *c = sched_copy(s);
        uint64_t begin = bench_now();
        n += run_pass(c, 2 * USEC_DAY);
        samples_add(t, bench_now() - begin);
        sched_free(c);
    }
    return n;
}

/* A running job ends; then the pass that follows. */
static void ends(struct sched *s, struct job *jobs, size_t n, struct samples *t)
{
    usec_t now = 2 * USEC_DAY;
    for (size_t i = 0; i < CHANGES; i++) {
        size_t k = pick((unsigned)n);
        while (!jobs[k].runs || jobs[k].over)
            k = (k + 1) % n;
        jobs[k].over = true;
        now += USEC_SEC;
        uint64_t begin = bench_now();
        sched_lease_end(s, jobs[k].id, now);
        (void)run_pass(s, now);
        samples_add(t, bench_now() - begin);
    }
}

static void comes(struct sched *s, struct job *more, size_t n, struct samples *t)
{
    usec_t now = 3 * USEC_DAY;
    for (size_t i = 0; i < CHANGES; i++) {
        make_job(&more[i], n + i);
        now += USEC_SEC;
        uint64_t begin = bench_now();
        submit(s, &more[i], (int64_t)(n + i));
        (void)run_pass(s, now);
        samples_add(t, bench_now() - begin);
    }
}

/* Nothing of any project may run, so that none in the queue is worth a look. */
static void bar_all(struct sched *s)
{
    for (int i = 0; i < PROJECTS; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "p%d", i);
        const struct sched_quota q = {
            .gpus_ceiling = -1,
            .cpus = -1,
            .gpu_hours_per_month = -1,
            .memory = -1,
            .queued = -1,
            .share = 1,
            .priority_ceiling = -1,
        };
        sched_set_quota(s, SCHED_PROJECT, name, &q);
    }
}

/* ---- the peer ---- */

struct plain {
    int *free;
    size_t n;
};

static bool plain_start(struct plain *p, const struct job *j, size_t *found)
{
    int n = 0;
    for (size_t i = (size_t)j->pool; i < p->n && n < j->nnodes; i += POOLS)
        if (p->free[i] >= j->gpus)
            found[n++] = i;
    if (n < j->nnodes)
        return false;
    for (int i = 0; i < n; i++)
        p->free[found[i]] -= j->gpus;
    return true;
}

static size_t plain_pass(struct plain *p, struct job *jobs, size_t n)
{
    size_t found[64], started = 0;
    for (size_t i = 0; i < n; i++)
        if (!jobs[i].runs && plain_start(p, &jobs[i], found)) {
            jobs[i].runs = true;
            started++;
        }
    return started;
}

static void plain(struct job *jobs, size_t n, size_t nodes)
{
    struct plain p = {.free = calloc(nodes, sizeof(*p.free)), .n = nodes};
    struct samples cold = {0}, again = {0};
    if (!p.free)
        bench_die("sched", "no memory");
    for (size_t i = 0; i < nodes; i++)
        p.free[i] = GPUS;
    for (size_t i = 0; i < n; i++)
        jobs[i].runs = false;
    uint64_t begin = bench_now();
    size_t started = plain_pass(&p, jobs, n);
    samples_add(&cold, bench_now() - begin);
    bench_print("plain cold", 1, started, bench_now() - begin, &cold);
    begin = bench_now();
    for (int i = 0; i < 5; i++) { /* a job of one GPU ends somewhere */
        uint64_t from = bench_now();
        p.free[pick((unsigned)nodes)]++;
        (void)plain_pass(&p, jobs, n);
        samples_add(&again, bench_now() - from);
    }
    bench_print("plain again", 1, again.n, bench_now() - begin, &again);
    samples_release(&cold);
    samples_release(&again);
    free(p.free);
}

int main(int argc, char **argv)
{
    static const unsigned char seed[16] = {5};
    if (argc != 4)
        bench_die("sched", "usage: bench-sched JOBS NODES POLICY");
    size_t n = strtoul(argv[1], NULL, 10), nodes = strtoul(argv[2], NULL, 10);
    enum sched_policy policy = sched_policy_from_string(argv[3]);
    struct job *jobs = calloc(n, sizeof(*jobs)), *more = calloc(2 * CHANGES, sizeof(*more));
    struct samples t[5] = {{0}};
    if (!n || !nodes || policy == SCHED_POLICY_END || !jobs || !more)
        bench_die("sched", "JOBS and NODES are numbers, POLICY is fifo, easy or fair");
    struct sched *s =
        sched_new(seed, &(struct sched_limits){.policy = policy, .starve_after = 100 * USEC_DAY});
    make_nodes(s, nodes);
    uint64_t begin = bench_now();
    for (size_t i = 0; i < n; i++) {
        make_job(&jobs[i], i);
        submit(s, &jobs[i], (int64_t)i);
    }
    samples_add(&t[0], (bench_now() - begin) / n);
    bench_print("submit", 1, n, bench_now() - begin, &t[0]);
    begin = bench_now();
    size_t started = cold(s, &t[1]);
    bench_print("cold", 1, started, bench_now() - begin, &t[1]);
    (void)run_pass(s, 2 * USEC_DAY);
    begin = bench_now();
    ends(s, jobs, n, &t[2]);
    bench_print("one ends", 1, t[2].n, bench_now() - begin, &t[2]);
    begin = bench_now();
    comes(s, more, n, &t[3]);
    bench_print("one comes", 1, t[3].n, bench_now() - begin, &t[3]);
    bar_all(s);
    begin = bench_now();
    comes(s, more + CHANGES, n + CHANGES, &t[4]);
    bench_print("one comes, all barred", 1, t[4].n, bench_now() - begin, &t[4]);
    struct samples copy = {0};
    begin = bench_now();
    sched_free(sched_copy(s));
    samples_add(&copy, bench_now() - begin);
    bench_print("copy", 1, 1, bench_now() - begin, &copy);
    plain(jobs, n, nodes);
    for (size_t i = 0; i < array_len(t); i++)
        samples_release(&t[i]);
    samples_release(&copy);
    sched_free(s);
    free(jobs);
    free(more);
    return 0;
}
