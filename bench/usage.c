/* SPDX-License-Identifier: Apache-2.0 */
/* usage.c - sums of usage over 90 days by user, beside a plain SQL sum of the same rows.
 *
 *   bench-usage PATH USERS
 *
 * 91 days are made up: in each quarter of an hour a fifth of the users hold something, in each of 3
 * pools, of 5 workloads, and each pool has its own row. Then the same question several ways, each
 * ROUNDS times: by user as 90 points of a day; by user as one number, from a time that is no
 * midnight; and SQLite alone, which sums the quarters. At last jobs that are over are put, of which
 * each held slots in quarters where nobody else of its user and workload did: how many bytes the
 * store keeps of 1,000 jobs, and how many of what they held. Prints lines of JSON. */
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bench.h"
#include "store/store.h"

enum { DAYS = 91, QUARTERS = 96, QUARTER = 900, DAY = 86400, POOLS = 3, ROUNDS = 20 };
enum { JOBS = 10000, JOBS_A_TURN = 500, JOB_QUARTERS = 6, SPEC_BYTES = 700, DETAIL_BYTES = 900 };
static const int64_t BEGIN = (int64_t)1767225600; /* a midnight, UTC */

static void bench_add(struct store *s, int64_t at, int pool, int user)
{
    char labels[16], name[16] = "", project[24] = "", workload[16] = "";
    static const int64_t steps[] = {QUARTER, DAY};
    struct store_usage u = {.cluster = "main",
                            .labels = labels,
                            .project = project,
                            .user = name,
                            .workload = workload};
    (void)snprintf(labels, sizeof(labels), "pool%d", pool);
    if (user >= 0) {
        (void)snprintf(name, sizeof(name), "user%d", user);
        (void)snprintf(project, sizeof(project), "project%d", user / 5);
        (void)snprintf(workload, sizeof(workload), "kind%d", (int)(at / DAY + user) % 5);
    }
    for (int i = 0; i < STORE_USAGE_SUMS; i++)
        u.sums[i] = (int64_t)80000 * QUARTER * 1000 + user * 7919 + at % 997;
    for (size_t i = 0; i < array_len(steps); i++) {
        u.step = steps[i];
        u.at = at / u.step * u.step;
        store_add_usage(s, &u);
    }
}

static void bench_day(struct store *s, int day, int users)
{
    for (int q = 0; q < QUARTERS; q++) {
        int64_t at = BEGIN + (int64_t)day * DAY + (int64_t)q * QUARTER;
        for (int pool = 0; pool < POOLS; pool++) {
            bench_add(s, at, pool, -1);
            for (int user = (day + q / 8 + pool) % 5; user < users; user += 5)
                bench_add(s, at, pool, user);
        }
    }
}

struct counted {
    size_t rows;
    bool done;
};

static void usage_on_read(const struct store_result *r, void *arg)
{
    struct counted *c = arg;
    if (r->err.code)
        bench_die("usage", r->err.text);
    c->rows = r->nusage;
    c->done = true;
}

static void bench_ask(uv_loop_t *loop,
                      struct store *s,
                      const char *what,
                      const struct store_usage_query *q)
{
    struct samples samples = {0};
    struct counted c = {0};
    uint64_t start = bench_now();
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t from = bench_now();
        c.done = false;
        (void)store_list_usage(s, q, &(struct store_then){.done = usage_on_read, .arg = &c});
        while (!c.done)
            (void)uv_run(loop, UV_RUN_ONCE);
        samples_add(&samples, bench_now() - from);
    }
    bench_print(what, 1, c.rows, bench_now() - start, &samples);
    samples_release(&samples);
}

static int bench_row(void *arg, int n, char **values, char **names)
{
    (void)n;
    (void)values;
    (void)names;
    ++*(size_t *)arg;
    return 0;
}

static void bench_plain(const char *path)
{
    static const char sql[] =
        "SELECT k.user, sum(u.s1), sum(u.s2) FROM usage u JOIN usage_key k ON k.id=u.key"
        " WHERE u.step=900 AND k.user<>'' GROUP BY k.user";
    struct samples samples = {0};
    sqlite3 *db = NULL;
    size_t rows = 0;
    uint64_t start = bench_now();
    if (sqlite3_open(path, &db) != SQLITE_OK)
        bench_die(path, "cannot open");
    for (int i = 0; i < ROUNDS / 4; i++) {
        uint64_t from = bench_now();
        rows = 0;
        if (sqlite3_exec(db, sql, bench_row, &rows, NULL) != SQLITE_OK)
            bench_die("plain SQL", sqlite3_errmsg(db));
        samples_add(&samples, bench_now() - from);
    }
    bench_print("plain SQL, quarters", 1, rows, bench_now() - start, &samples);
    samples_release(&samples);
    (void)sqlite3_close(db);
}

static void usage_wait_durable(uv_loop_t *loop, struct store *s)
{
    store_flush(s);
    while (store_durable(s) < store_batch(s))
        (void)uv_run(loop, UV_RUN_ONCE);
}

/* The store's own handles do not keep a loop going. */
static void on_awake(uv_async_t *awake)
{
    (void)awake;
}

static void usage_on_durable(uint64_t batch, void *arg)
{
    (void)batch;
    (void)arg;
}

/* The store is closed: its log is in the file then. */
static int64_t usage_file_bytes(const char *path)
{
    struct stat st;
    if (stat(path, &st) < 0)
        bench_die(path, "is not there");
    return (int64_t)st.st_size;
}

static struct store *usage_open(uv_loop_t *loop, const char *path)
{
    struct store *s = NULL;
    struct err err = {0};
    struct store_options opt = {.loop = loop, .path = path, .on_durable = usage_on_durable};
    if (store_open(&opt, &s, &err) < 0)
        bench_die(path, err.text);
    return s;
}

/* Returns how large it is then. */
static int64_t usage_close(uv_loop_t *loop, struct store *s, const char *path)
{
    struct err err = {0};
    if (store_close(s, &err) < 0)
        bench_die(path, err.text);
    (void)uv_run(loop, UV_RUN_NOWAIT);
    return usage_file_bytes(path);
}

/* A job that is over, with its attempt and the three events that every job has. */
static void usage_put_job(struct store *s, int64_t seq)
{
    static const char *const states[] = {"QUEUED", "RUNNING", "SUCCEEDED"};
    static const unsigned char hash[STORE_HASH_BYTES] = {1};
    char id[40], user[16], project[16], spec[SPEC_BYTES], detail[DETAIL_BYTES];
    const usec_t at = (usec_t)(BEGIN + seq * QUARTER) * USEC_SEC;
    struct store_job job = {
        .seq = seq, .id = id, .name = "train", .user = user, .project = project, .spec = spec};
    memset(spec, '#', sizeof(spec) - 1);
    spec[sizeof(spec) - 1] = '\0';
    (void)snprintf(detail, sizeof(detail), "{\"held\":\"%0*d\"}", DETAIL_BYTES - 16, 0);
    (void)snprintf(id, sizeof(id), "train-%lld", (long long)seq);
    (void)snprintf(user, sizeof(user), "user%lld", (long long)seq % 100);
    (void)snprintf(project, sizeof(project), "project%lld", (long long)seq % 20);
    job.workload = "grpo";
    job.cluster = "main";
    job.pool = "pool0";
    job.state = states[2];
    job.reason_code = "done";
    job.reason_text = "the command ended";
    job.nnodes = 2;
    job.n_gpus_per_node = 4;
    job.queued_at = job.started_at = at;
    job.ended_at = at + (usec_t)JOB_QUARTERS * QUARTER * USEC_SEC;
    job.attempt = 1;
    job.detail = detail;
    store_put_job(s, &job);
    store_put_attempt(s, &(struct store_attempt){.job_seq = seq,
                                                 .k = 1,
                                                 .ray_id = id,
                                                 .state = "ENDED",
                                                 .started_at = at,
                                                 .ended_at = job.ended_at,
                                                 .detail = "{}"});
    for (size_t i = 0; i < array_len(states); i++)
        store_put_event(s, &(struct store_event){.seq = seq * 3 + (int64_t)i,
                                                 .at = at,
                                                 .job_seq = seq,
                                                 .kind = "job.state",
                                                 .actor = user,
                                                 .from_state = i ? states[i - 1] : NULL,
                                                 .to_state = states[i],
                                                 .text = "by the benchmark",
                                                 .hash = hash});
}

/* Quarters that no other job shares with it, after all those of the days above. */
static void usage_put_held(struct store *s, int64_t seq)
{
    const int64_t after = BEGIN + (int64_t)DAYS * DAY, spans = seq / 100;
    for (int q = 0; q < JOB_QUARTERS; q++)
        bench_add(s, after + (spans * JOB_QUARTERS + q) * QUARTER, 0, (int)(seq % 100));
}

/* Bytes by which the file grew, for each 1,000 of them. */
static int64_t usage_bytes_of(uv_loop_t *loop,
                              const char *path,
                              void (*put)(struct store *s, int64_t seq))
{
    const int64_t before = usage_file_bytes(path);
    struct store *s = usage_open(loop, path);
    for (int64_t seq = 1; seq <= JOBS; seq++) {
        put(s, seq);
        if (seq % JOBS_A_TURN == 0)
            usage_wait_durable(loop, s);
    }
    return (usage_close(loop, s, path) - before) / (JOBS / 1000);
}

int main(int argc, char **argv)
{
    uv_loop_t loop;
    uv_async_t awake;
    const int64_t end = BEGIN + (int64_t)DAYS * DAY;
    const struct store_usage_query days = {.by = STORE_USAGE_BY_USER,
                                           .spans = {{DAY, end - 90 * (int64_t)DAY, end}},
                                           .n_spans = 1,
                                           .origin = end - 90 * (int64_t)DAY,
                                           .point = DAY,
                                           .owned = true};
    struct store_usage_query one = days;
    if (argc != 3)
        bench_die("usage", "bench-usage PATH USERS");
    if (uv_loop_init(&loop) < 0 || uv_async_init(&loop, &awake, on_awake) < 0)
        bench_die("loop", "cannot start");
    struct store *s = usage_open(&loop, argv[1]);
    for (int day = 0; day < DAYS; day++) {
        bench_day(s, day, atoi(argv[2]));
        usage_wait_durable(&loop, s);
    }
    one.spans[0] = (struct store_usage_span){QUARTER, days.origin - DAY / 2, days.origin};
    one.spans[1] = (struct store_usage_span){DAY, days.origin, end - DAY};
    one.spans[2] = (struct store_usage_span){QUARTER, end - DAY, end - DAY / 2};
    one.n_spans = 3;
    one.origin = one.spans[0].from;
    one.point = 90 * (int64_t)DAY;
    bench_ask(&loop, s, "by user, 90 days, a point a day", &days);
    bench_ask(&loop, s, "by user, 90 days, one point", &one);
    bench_plain(argv[1]);
    int64_t bytes = usage_close(&loop, s, argv[1]);
    printf("{\"what\":\"store\",\"bytes\":%lld,\"pool_days\":%d}\n", (long long)bytes,
           POOLS * DAYS);
    int64_t jobs = usage_bytes_of(&loop, argv[1], usage_put_job);
    int64_t held = usage_bytes_of(&loop, argv[1], usage_put_held);
    printf("{\"what\":\"jobs\",\"jobs\":%d,\"bytes_per_1000\":%lld,"
           "\"held_bytes_per_1000\":%lld}\n",
           JOBS, (long long)jobs, (long long)held);
    uv_close((uv_handle_t *)&awake, NULL);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    return uv_loop_close(&loop) < 0;
}
