/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - the store alone, and what the disk and bare SQLite can do beside it.
 *
 *   bench-store [--disk] DIR SECONDS     --disk: fdatasync alone
 *
 * Each client puts a job with its event and, when that is durable, the next. Bare
 * SQLite writes rows of the same size in groups as large as the number of clients, with
 * one index, in one thread that does nothing else. */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"
#include "store/store.h"

enum { SPEC_BYTES = 700, DETAIL_BYTES = 900, CLIENTS_MAX = 1000, PAGE_BYTES = 4096 };

static uint64_t seconds(const char *text)
{
    return (uint64_t)(atof(text) * 1e9);
}

static void bench_fdatasync(const char *dir, uint64_t limit)
{
    char *path = xasprintf("%s/sync.dat", dir);
    int fd = open(path, O_CREAT | O_RDWR | O_TRUNC | O_CLOEXEC, 0600);
    char page[PAGE_BYTES] = {1};
    struct samples s = {0};
    uint64_t start = bench_now(), at = start, last;

    if (fd < 0)
        bench_die(path, "cannot open");
    while (at - start < limit) {
        last = at;
        if (write(fd, page, sizeof page) != sizeof page || fdatasync(fd) < 0)
            bench_die(path, "cannot write");
        at = bench_now();
        samples_add(&s, at - last);
    }
    bench_print("fdatasync", 1, s.n, at - start, &s);
    samples_release(&s);
    (void)close(fd);
    (void)unlink(path);
    free(path);
}

static void bare_exec(sqlite3 *db, const char *sql)
{
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        bench_die("bare SQLite", sqlite3_errmsg(db));
}

static void bare_insert(sqlite3_stmt *st, const char *row)
{
    if (sqlite3_bind_text(st, 1, row, -1, SQLITE_STATIC) != SQLITE_OK ||
        sqlite3_step(st) != SQLITE_DONE || sqlite3_reset(st) != SQLITE_OK)
        bench_die("bare SQLite", "cannot insert");
}

static void bench_bare(const char *dir, uint64_t limit, unsigned group)
{
    char *path = xasprintf("%s/bare-%u.db", dir, group);
    char row[SPEC_BYTES + DETAIL_BYTES];
    struct samples s = {0};
    uint64_t start, at, last;
    sqlite3_stmt *st = NULL;
    sqlite3 *db = NULL;
    size_t n = 0;

    memset(row, 'x', sizeof row);
    row[sizeof row - 1] = '\0';
    if (sqlite3_open(path, &db) != SQLITE_OK)
        bench_die(path, "cannot open");
    bare_exec(db, "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                  "CREATE TABLE job(id INTEGER PRIMARY KEY, user TEXT, state TEXT, spec TEXT);"
                  "CREATE INDEX job_state ON job(state, id)");
    if (sqlite3_prepare_v2(db, "INSERT INTO job(user, state, spec) VALUES('u', 'QUEUED', ?)", -1,
                           &st, NULL) != SQLITE_OK)
        bench_die(path, sqlite3_errmsg(db));
    for (start = at = bench_now(); at - start < limit; n += group) {
        last = at;
        bare_exec(db, "BEGIN IMMEDIATE");
        for (unsigned i = 0; i < group; i++)
            bare_insert(st, row);
        bare_exec(db, "COMMIT");
        at = bench_now();
        samples_add(&s, at - last);
    }
    bench_print("bare SQLite", group, n, at - start, &s);
    samples_release(&s);
    (void)sqlite3_finalize(st);
    (void)sqlite3_close(db);
    free(path);
}

struct client {
    uint64_t batch, since; /* waits for batch since; 0 = idle */
};

struct run {
    uv_loop_t loop;
    uv_timer_t end;
    struct store *store;
    struct client clients[CLIENTS_MAX];
    unsigned n;
    int64_t seq;
    size_t done;
    bool stop;
    struct samples samples;
    char spec[SPEC_BYTES], detail[DETAIL_BYTES];
};

static void submit(struct run *r, struct client *c)
{
    char id[40];

    (void)snprintf(id, sizeof id, "bench-%010lld", (long long)++r->seq);
    store_put_job(r->store, &(struct store_job){.seq = r->seq,
                                                .id = id,
                                                .name = "bench",
                                                .user = "ann",
                                                .project = "default",
                                                .workload = "grpo",
                                                .cluster = "main",
                                                .pool = "default",
                                                .queued_at = (usec_t)r->seq,
                                                .state = "QUEUED",
                                                .live = true,
                                                .reason_code = "waiting",
                                                .reason_text = "waits for its turn",
                                                .nnodes = 2,
                                                .n_gpus_per_node = 4,
                                                .spec = r->spec,
                                                .detail = r->detail});
    store_put_event(r->store, &(struct store_event){.seq = r->seq,
                                                    .at = (usec_t)r->seq,
                                                    .job_seq = r->seq,
                                                    .kind = "job",
                                                    .actor = "ann",
                                                    .to_state = "QUEUED",
                                                    .text = "submitted"});
    c->batch = store_batch(r->store);
    c->since = bench_now();
}

static void on_durable(uint64_t batch, void *arg)
{
    struct run *r = arg;
    uint64_t now = bench_now();

    for (struct client *c = r->clients; c < r->clients + r->n; c++) {
        if (!c->batch || c->batch > batch)
            continue;
        samples_add(&r->samples, now - c->since);
        r->done++;
        c->batch = 0;
        if (!r->stop)
            submit(r, c);
    }
}

static void on_end(uv_timer_t *timer)
{
    struct run *r = timer->data;

    r->stop = true;
    uv_close((uv_handle_t *)timer, NULL);
}

static void bench_store(const char *dir, uint64_t limit, unsigned clients)
{
    struct run *r = xcalloc(1, sizeof *r);
    char *path = xasprintf("%s/store-%u.db", dir, clients);
    struct store_options opt = {.path = path, .loop = &r->loop, .on_durable = on_durable, .arg = r};
    struct err err = {0};
    uint64_t start;

    r->n = clients;
    memset(r->spec, 's', sizeof r->spec - 1);
    memset(r->detail, 'd', sizeof r->detail - 1);
    if (uv_loop_init(&r->loop) < 0 || uv_timer_init(&r->loop, &r->end) < 0)
        bench_die("loop", "cannot start");
    r->end.data = r;
    if (store_open(&opt, &r->store, &err) < 0)
        bench_die(path, err.text);
    if (uv_timer_start(&r->end, on_end, limit / 1000000, 0) < 0)
        bench_die("timer", "cannot start");
    start = bench_now();
    for (unsigned i = 0; i < clients; i++)
        submit(r, &r->clients[i]);
    while (uv_run(&r->loop, UV_RUN_ONCE))
        ;
    bench_print("store", clients, r->done, bench_now() - start, &r->samples);
    if (store_close(r->store, &err) < 0)
        bench_die(path, err.text);
    (void)uv_run(&r->loop, UV_RUN_DEFAULT);
    (void)uv_loop_close(&r->loop);
    samples_release(&r->samples);
    free(path);
    free(r);
}

int main(int argc, char **argv)
{
    static const unsigned clients[] = {1, 16, 200};
    bool disk_only = argc > 1 && strcmp(argv[1], "--disk") == 0;

    argv += disk_only;
    argc -= disk_only;
    if (argc != 3)
        bench_die("bench-store", "usage: bench-store [--disk] DIR SECONDS");
    bench_fdatasync(argv[1], seconds(argv[2]));
    for (size_t i = 0; !disk_only && i < array_len(clients); i++) {
        bench_bare(argv[1], seconds(argv[2]), clients[i]);
        bench_store(argv[1], seconds(argv[2]), clients[i]);
    }
    return 0;
}
