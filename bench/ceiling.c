/* SPDX-License-Identifier: Apache-2.0 */
/* ceiling.c - the least a durable submit can cost here: `bench-ceiling PORT DB ROW_BYTES`.
 *
 * libmicrohttpd takes a POST, one table gets one row of ROW_BYTES, and the answer
 * leaves when the commit that holds the row is on disk. Two threads: one serves, one
 * commits what has come since the last commit. No token, no checks, no JSON. A GET
 * answers at once: the ceiling of HTTP alone. Prints "ready" when it listens.
 *
 * Connections are resumed by the thread that serves: libmicrohttpd 0.9.75 loses one now and
 * then that another thread resumes, and its client would wait for ever. */
#include <microhttpd.h>
#include <poll.h>
#include <pthread.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "bench.h"

enum { CONNECTIONS_MAX = 2000 };

struct post {
    struct post *next;
    struct MHD_Connection *connection;
    long long row;
    bool begun, written;
};

static struct {
    sqlite3 *db;
    sqlite3_stmt *begin, *insert, *commit;
    char *row;
    pthread_mutex_t lock;
    pthread_cond_t some;
    struct post *waiting, *done; /* not written yet; written, and not resumed yet */
    int written;                 /* eventfd: there is something in done */
} ceiling = {.lock = PTHREAD_MUTEX_INITIALIZER, .some = PTHREAD_COND_INITIALIZER};

static void step(sqlite3_stmt *st)
{
    if (sqlite3_step(st) != SQLITE_DONE)
        bench_die("ceiling", sqlite3_errmsg(ceiling.db));
    (void)sqlite3_reset(st);
}

/* On disk: the serving thread answers them. */
static void hand_over(struct post *all)
{
    struct post **end = &all;
    uint64_t one = 1;

    while (*end)
        end = &(*end)->next;
    pthread_mutex_lock(&ceiling.lock);
    *end = ceiling.done;
    ceiling.done = all;
    pthread_mutex_unlock(&ceiling.lock);
    if (write(ceiling.written, &one, sizeof one) != sizeof one)
        bench_die("ceiling", "cannot wake its server");
}

static void *commit_for_ever(void *unused)
{
    for (;;) {
        struct post *all;

        pthread_mutex_lock(&ceiling.lock);
        while (!ceiling.waiting)
            pthread_cond_wait(&ceiling.some, &ceiling.lock);
        all = ceiling.waiting;
        ceiling.waiting = NULL;
        pthread_mutex_unlock(&ceiling.lock);
        step(ceiling.begin);
        for (struct post *p = all; p; p = p->next) {
            step(ceiling.insert);
            p->row = sqlite3_last_insert_rowid(ceiling.db);
        }
        step(ceiling.commit);
        hand_over(all);
    }
    return unused;
}

static void resume_all(void)
{
    struct post *all, *next;

    pthread_mutex_lock(&ceiling.lock);
    all = ceiling.done;
    ceiling.done = NULL;
    pthread_mutex_unlock(&ceiling.lock);
    for (struct post *p = all; p; p = next) {
        next = p->next;
        p->written = true;
        MHD_resume_connection(p->connection);
    }
}

static _Noreturn void serve_for_ever(struct MHD_Daemon *d)
{
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(d, MHD_DAEMON_INFO_EPOLL_FD);
    struct pollfd fds[] = {{.fd = info->epoll_fd, .events = POLLIN},
                           {.fd = ceiling.written, .events = POLLIN}};

    for (;;) {
        uint64_t n;
        MHD_UNSIGNED_LONG_LONG ms;
        int wait = MHD_get_timeout(d, &ms) == MHD_YES ? (int)ms : -1;

        if (poll(fds, 2, wait) < 0)
            bench_die("ceiling", "cannot wait");
        if ((fds[1].revents & POLLIN) && read(ceiling.written, &n, sizeof n) > 0)
            resume_all();
        if (MHD_run(d) != MHD_YES)
            bench_die("ceiling", "cannot serve");
    }
}

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *text)
{
    char *copy = strdup(text);
    struct MHD_Response *r =
        MHD_create_response_from_buffer(strlen(copy), copy, MHD_RESPMEM_MUST_FREE);
    enum MHD_Result result = MHD_queue_response(connection, status, r);

    MHD_destroy_response(r);
    return result;
}

static void enqueue(struct post *p, struct MHD_Connection *connection)
{
    p->connection = connection;
    MHD_suspend_connection(connection);
    pthread_mutex_lock(&ceiling.lock);
    p->next = ceiling.waiting;
    ceiling.waiting = p;
    pthread_cond_signal(&ceiling.some);
    pthread_mutex_unlock(&ceiling.lock);
}

static enum MHD_Result on_request(void *unused,
                                  struct MHD_Connection *connection,
                                  const char *url,
                                  const char *method,
                                  const char *version,
                                  const char *data,
                                  size_t *n,
                                  void **state)
{
    struct post *p = *state;
    char text[64];

    (void)unused;
    (void)url;
    (void)version;
    (void)data;
    if (!p) {
        *state = calloc(1, sizeof *p);
        return *state ? MHD_YES : MHD_NO;
    }
    if (*n) { /* the body is read and dropped: the row has its own bytes */
        *n = 0;
        return MHD_YES;
    }
    if (strcmp(method, "POST") != 0)
        return answer(connection, MHD_HTTP_OK, "{\"hello\":\"world\"}");
    if (!p->written) {
        enqueue(p, connection);
        return MHD_YES;
    }
    (void)snprintf(text, sizeof text, "{\"id\":%lld}", p->row);
    return answer(connection, MHD_HTTP_CREATED, text);
}

static void on_completed(void *unused,
                         struct MHD_Connection *connection,
                         void **state,
                         enum MHD_RequestTerminationCode why)
{
    (void)unused;
    (void)connection;
    (void)why;
    free(*state);
}

static void open_database(const char *path, int row_bytes)
{
    ceiling.row = calloc(1, (size_t)row_bytes + 1);
    memset(ceiling.row, 'x', (size_t)row_bytes);
    if (sqlite3_open(path, &ceiling.db) != SQLITE_OK ||
        sqlite3_exec(ceiling.db,
                     "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                     "CREATE TABLE job(id INTEGER PRIMARY KEY, user TEXT, state TEXT, row TEXT);"
                     "CREATE INDEX job_state ON job(state, id)",
                     NULL, NULL, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(ceiling.db, "BEGIN IMMEDIATE", -1, &ceiling.begin, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(ceiling.db, "COMMIT", -1, &ceiling.commit, NULL) != SQLITE_OK ||
        sqlite3_prepare_v2(ceiling.db,
                           "INSERT INTO job(user, state, row) VALUES('ann', 'QUEUED', ?)", -1,
                           &ceiling.insert, NULL) != SQLITE_OK ||
        sqlite3_bind_text(ceiling.insert, 1, ceiling.row, row_bytes, SQLITE_STATIC) != SQLITE_OK)
        bench_die(path, sqlite3_errmsg(ceiling.db));
}

int main(int argc, char **argv)
{
    unsigned flags = MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME;
    struct MHD_Daemon *d;
    pthread_t committer;

    if (argc != 4)
        bench_die("bench-ceiling", "usage: bench-ceiling PORT DB ROW_BYTES");
    open_database(argv[2], atoi(argv[3]));
    ceiling.written = eventfd(0, EFD_CLOEXEC);
    d = MHD_start_daemon(flags, (uint16_t)atoi(argv[1]), NULL, NULL, on_request, NULL,
                         MHD_OPTION_CONNECTION_LIMIT, CONNECTIONS_MAX, MHD_OPTION_NOTIFY_COMPLETED,
                         on_completed, NULL, MHD_OPTION_END);
    if (ceiling.written < 0 || !d || pthread_create(&committer, NULL, commit_for_ever, NULL) != 0)
        bench_die("bench-ceiling", "cannot start");
    (void)puts("ready");
    (void)fflush(stdout);
    serve_for_ever(d);
}
