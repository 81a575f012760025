/* SPDX-License-Identifier: Apache-2.0 */
/* fill.c - a store with a history, for benchmarks: `bench-fill PATH JOBS [LIVE]`.
 *
 * Of JOBS jobs the last LIVE are queued and the others have ended, among a hundred
 * users, with an attempt and three events each. Nothing here is random: two runs give
 * the same rows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "store/store.h"

enum { SPEC_BYTES = 700, JOBS_PER_TURN = 2000, JOB_EVERY_SECONDS = 30 };
/* 2026-01-01 */
#define FIRST_DAY ((usec_t)1767225600 * USEC_SEC)

struct fill {
    uv_loop_t loop;
    uv_idle_t busy;
    struct store *store;
    int64_t n, live, seq, event;
    char spec[SPEC_BYTES];
};

static void put_events(struct fill *f, const struct store_job *job)
{
    static const char *const states[] = {"QUEUED", "RUNNING", "SUCCEEDED"};

    for (size_t i = 0; i < (job->live ? 1 : array_len(states)); i++)
        store_put_event(f->store, &(struct store_event){.seq = ++f->event,
                                                        .at = job->queued_at + i * USEC_MIN,
                                                        .job_seq = job->seq,
                                                        .kind = "job.state",
                                                        .actor = job->user,
                                                        .from_state = i ? states[i - 1] : NULL,
                                                        .to_state = states[i],
                                                        .text = "by the benchmark"});
}

static void put_job(struct fill *f, int64_t seq)
{
    static const char *const ends[] = {"SUCCEEDED", "SUCCEEDED", "SUCCEEDED", "FAILED", "STOPPED"};
    static const char *const workloads[] = {"grpo", "ppo", "sft", "ray"};
    bool live = seq > f->n - f->live;
    char id[40], name[40], user[16], project[16];
    struct store_job job = {.seq = seq, .id = id, .name = name, .user = user, .project = project};

    (void)snprintf(id, sizeof id, "old-%010lld", (long long)seq);
    (void)snprintf(name, sizeof name, "exp-%lld", (long long)(seq % 9973));
    (void)snprintf(user, sizeof user, "user%lld", (long long)(seq * 7 % 100));
    (void)snprintf(project, sizeof project, "project%lld", (long long)(seq % 20));
    job.workload = workloads[seq % 4];
    job.cluster = "main";
    job.pool = seq % 3 ? "default" : "big";
    job.queued_at = FIRST_DAY + (usec_t)seq * JOB_EVERY_SECONDS * USEC_SEC;
    job.spec = f->spec;
    job.state = live ? "QUEUED" : ends[seq % 5];
    job.live = live;
    job.reason_code = live ? "pool_too_small" : "done";
    job.reason_text = live ? "waits for 2 nodes with 4 GPUs each" : "the command ended";
    job.nnodes = 2;
    job.n_gpus_per_node = 4;
    job.started_at = live ? 0 : job.queued_at + USEC_MIN;
    job.ended_at = live ? 0 : job.queued_at + 2 * USEC_MIN;
    job.attempt = live ? 0 : 1;
    job.detail = "{}";
    store_put_job(f->store, &job);
    if (!live)
        store_put_attempt(f->store, &(struct store_attempt){.job_seq = seq,
                                                            .k = 1,
                                                            .ray_id = id,
                                                            .state = job.state,
                                                            .started_at = job.started_at,
                                                            .ended_at = job.ended_at});
    put_events(f, &job);
}

/* A turn's rows, no faster than the disk takes them. */
static void on_idle(uv_idle_t *idle)
{
    struct fill *f = idle->data;

    if (store_durable(f->store) + 2 < store_batch(f->store))
        return;
    for (int i = 0; i < JOBS_PER_TURN && f->seq < f->n; i++)
        put_job(f, ++f->seq);
    if (f->seq == f->n)
        uv_close((uv_handle_t *)idle, NULL);
}

int main(int argc, char **argv)
{
    struct fill f = {0};
    struct store_options opt = {.loop = &f.loop};
    struct store_last last;
    struct err err = {0};

    if (argc < 3)
        bench_die("bench-fill", "usage: bench-fill PATH JOBS [LIVE]");
    opt.path = argv[1];
    f.n = atoll(argv[2]);
    f.live = argc > 3 ? atoll(argv[3]) : 0;
    memset(f.spec, '#', sizeof f.spec - 1);
    if (uv_loop_init(&f.loop) < 0 || uv_idle_init(&f.loop, &f.busy) < 0)
        bench_die("loop", "cannot start");
    f.busy.data = &f;
    if (store_open(&opt, &f.store, &err) < 0 ||
        store_load(f.store, &(struct store_load_ops){0}, NULL, &last, &err) < 0)
        bench_die(argv[1], err.text);
    f.seq = last.job_seq;
    f.event = last.event_seq;
    f.n += f.seq;
    if (uv_idle_start(&f.busy, on_idle) < 0)
        bench_die("loop", "cannot start");
    (void)uv_run(&f.loop, UV_RUN_DEFAULT);
    if (store_close(f.store, &err) < 0)
        bench_die(argv[1], err.text);
    (void)uv_run(&f.loop, UV_RUN_DEFAULT);
    return uv_loop_close(&f.loop) < 0;
}
