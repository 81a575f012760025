/* SPDX-License-Identifier: Apache-2.0 */
/* sched_world.h - a small world for the scheduler: nodes, jobs with true lengths, a clock.
 * It keeps books of its own, and fails the test as soon as a decision breaks one of the rules
 * that hold always: no slot twice, gangs whole, nobody beyond a node's CPUs, nothing that is
 * held elsewhere, no quota exceeded. sched_check() after each step, when `checks` is set. */
#pragma once
#include "core/sched/sched.h"

enum { WORLD_NODES = 24, WORLD_SLOTS = 8, WORLD_JOBS = 4096 };

struct world_node {
    char name[16], labels[32], network[16], why_not[16], only[16];
    int gpus, cpus, held;
    int torch;               /* its version; 0 = nobody looked */
    int memory, memory_used; /* GiB; 0 = not known */
    bool usable, shareable;
    int used[WORLD_SLOTS]; /* 1/10000 of each */
    double cpus_used;
};

enum world_state { WORLD_WAITS, WORLD_RUNS, WORLD_OVER };
struct world_job {
    char id[16], pool[32], project[8], user[8], needs[16];
    struct sched_job j;
    int torch;    /* the least version that it needs; 0 = any */
    usec_t lasts; /* truly */
    usec_t started_at, promised, told_at;
    enum world_state state;
    char slots[512];
    int told;       /* times it was asked to go */
    usec_t at_save; /* when it was to go, under flow */
};

struct world {
    uint64_t rng;
    usec_t now;
    struct sched *s;
    bool checks;
    struct world_node nodes[WORLD_NODES];
    int n_nodes;
    struct world_job jobs[WORLD_JOBS];
    int n_jobs;
    uint64_t hash; /* of all decisions */
    int starts, preempts;
};

struct world *world_new(uint64_t seed, const struct sched_limits *limits);
void world_free(struct world *w);
uint32_t world_random(struct world *w, uint32_t below);

void world_add_nodes(struct world *w, int n, const char *labels, int gpus, int cpus);
void world_tell_nodes(struct world *w);

/* A job that is not queued yet; fill in what else it needs, then world_submit(). */
struct world_job *world_job(struct world *w, int nnodes, double gpus, usec_t limit, usec_t lasts);
void world_submit(struct world *w, struct world_job *j);
/* All decisions of now. */
void world_pass(struct world *w);
void world_end(struct world *w, struct world_job *j, bool back_to_queue);
struct world_job *world_find(struct world *w, const char *id);
/* The next end of a run: time goes there, it ends, a pass. False: nothing runs. */
bool world_step(struct world *w);
