/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of store/store.h: opening, batches and the barrier, rows there and back. */
#include "store/store.h"

#include <setjmp.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "store/test/bed.h"

#include <cmocka.h>

static void put_job(struct bed *b, int64_t seq)
{
    struct bed_text t;
    struct store_job job = bed_job(seq, &t);
    store_put_job(b->s, &job);
}

/* What a load gave, counted, with the last row of each kind seen in full. */
struct seen {
    int jobs, attempts, ids, tokens, users, keys, metas;
    int64_t first_job, last_job;
    char *state, *detail, *spec;
    struct store_job job;
};

static void on_job(const struct store_job *job, void *arg)
{
    struct seen *seen = arg;
    if (!seen->jobs++)
        seen->first_job = job->seq;
    assert_true(job->seq > seen->last_job);
    seen->last_job = job->seq;
    seen->job = *job;
    set_str(&seen->state, job->state);
    set_str(&seen->detail, job->detail);
    set_str(&seen->spec, job->spec);
}

static void on_attempt(const struct store_attempt *a, void *arg)
{
    struct seen *seen = arg;
    seen->attempts++;
    assert_int_equal(a->job_seq, 1);
    assert_int_equal(a->k, seen->attempts);
    assert_string_equal(a->ray_id, a->k == 1 ? "job-1" : "job-1-a2");
    assert_string_equal(a->state, a->k == 1 ? "LOST" : "RUNNING");
    assert_int_equal(a->started_at, 10);
    assert_int_equal(a->ended_at, a->k == 1 ? 20 : 0);
    assert_string_equal(a->detail, "{}");
}

static void on_id(const char *id, void *arg)
{
    struct seen *seen = arg;
    assert_true(str_starts(id, "job-"));
    seen->ids++;
}

static void on_token(const struct store_token *token, void *arg)
{
    unsigned char hash[STORE_HASH_BYTES];
    struct seen *seen = arg;
    seen->tokens++;
    memset(hash, 0xab, sizeof(hash));
    assert_memory_equal(token->hash, hash, sizeof(hash));
    assert_string_equal(token->id, "t1");
    assert_string_equal(token->name, "laptop");
    assert_string_equal(token->user, "ann");
    assert_string_equal(token->role, "admin");
    assert_int_equal(token->created_at, 1);
    assert_int_equal(token->expires_at, 2);
    assert_int_equal(token->last_use_at, 99);
    assert_int_equal(token->revoked_at, 4);
}

static void on_user(const struct store_user *user, void *arg)
{
    struct seen *seen = arg;
    seen->users++;
    assert_string_equal(user->name, "ann");
    assert_string_equal(user->role, "viewer");
    assert_int_equal(user->created_at, 5);
    assert_string_equal(user->detail, "{}");
}

static void on_key(const struct store_idempotency *key, void *arg)
{
    struct seen *seen = arg;
    seen->keys++;
    assert_string_equal(key->user, "ann");
    assert_string_equal(key->key, "new");
    assert_int_equal(key->body_hash[0], 0xcd);
    assert_string_equal(key->job_id, "job-2");
    assert_int_equal(key->at, 2000);
}

static void on_meta(const char *key, const char *value, void *arg)
{
    struct seen *seen = arg;
    seen->metas++;
    assert_string_equal(key, "colour");
    assert_string_equal(value, "blue");
}

static struct store_last load(struct bed *b, struct seen *seen)
{
    static const struct store_load_ops ops = {
        .on_job = on_job,
        .on_attempt = on_attempt,
        .on_id = on_id,
        .on_token = on_token,
        .on_user = on_user,
        .on_idempotency = on_key,
        .on_meta = on_meta,
    };
    struct store_last last;

    *seen = (struct seen){0};
    assert_int_equal(store_load(b->s, &ops, seen, &last, NULL), 0);
    return last;
}

static int64_t load_last_job(struct bed *b)
{
    struct store_last last = {0};
    assert_int_equal(store_load(b->s, &(struct store_load_ops){0}, NULL, &last, NULL), 0);
    return last.job_seq;
}

static void seen_release(struct seen *seen)
{
    free(seen->state);
    free(seen->detail);
    free(seen->spec);
}

static void put_small_tables(struct store *s)
{
    unsigned char hash[STORE_HASH_BYTES], body[STORE_HASH_BYTES];
    struct store_token token = {.hash = hash,
                                .id = "t1",
                                .name = "laptop",
                                .user = "ann",
                                .role = "admin",
                                .created_at = 1,
                                .expires_at = 2,
                                .last_use_at = 3,
                                .revoked_at = 4};
    struct store_user user = {.name = "ann", .role = "admin", .created_at = 5, .detail = "{}"};
    struct store_idempotency key = {.user = "ann", .key = "old", .body_hash = body, .at = 1000};
    memset(hash, 0xab, sizeof(hash));
    memset(body, 0xcd, sizeof(body));
    store_put_token(s, &token);
    token.last_use_at = 99;
    store_put_token(s, &token);
    store_put_user(s, &user);
    user.role = "viewer";
    store_put_user(s, &user);
    store_put_idempotency(s, &key);
    key.key = "new";
    key.job_id = "job-2";
    key.at = 2000;
    store_put_idempotency(s, &key);
    store_prune_idempotency(s, NULL, 2000);
    struct store_idempotency hers = {.user = "eve", .key = "k", .body_hash = body, .at = 500};
    store_put_idempotency(s, &hers);
    store_prune_idempotency(s, "eve", 3000); /* and nobody else's */
    store_put_meta(s, "colour", "red");
    store_put_meta(s, "colour", "blue");
}

static void put_attempts(struct store *s)
{
    struct store_attempt a = {.job_seq = 1,
                              .k = 1,
                              .ray_id = "job-1",
                              .state = "RUNNING",
                              .started_at = 10,
                              .detail = "{}"};
    store_put_attempt(s, &a);
    a.state = "LOST";
    a.ended_at = 20;
    store_put_attempt(s, &a);
    a.k = 2;
    a.ray_id = "job-1-a2";
    a.state = "RUNNING";
    a.ended_at = 0;
    store_put_attempt(s, &a);
}

static void test_rows_come_back(void **state)
{
    struct seen seen;
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    put_small_tables(b.s);
    put_job(&b, 1);
    put_job(&b, 2);
    put_attempts(b.s);
    bed_close(&b);
    bed_open(&b, NULL);
    struct store_last last = load(&b, &seen);
    assert_int_equal(last.job_seq, 2);
    assert_int_equal(last.event_seq, 0);
    assert_int_equal(seen.jobs, 2);
    assert_int_equal(seen.first_job, 1);
    assert_int_equal(seen.ids, 2);
    assert_int_equal(seen.attempts, 2);
    assert_int_equal(seen.tokens, 1);
    assert_int_equal(seen.users, 1);
    assert_int_equal(seen.keys, 1);
    assert_int_equal(seen.metas, 1);
    assert_string_equal(seen.spec, "name: name-2\n");
    assert_string_equal(seen.detail, "{\"seq\":2}");
    assert_int_equal(seen.job.nnodes, 2);
    assert_true(seen.job.n_gpus_per_node > 0.4 && seen.job.n_gpus_per_node < 0.6);
    assert_int_equal(seen.job.priority, 2);
    assert_int_equal(seen.job.queued_at, 1000 * USEC_SEC + 2);
    assert_false(seen.job.has_exit_code);
    seen_release(&seen);
    bed_release(&b);
}

static void test_update_keeps_spec_and_detail(void **state)
{
    struct bed_text t;
    struct store_job job = bed_job(1, &t);
    struct seen seen;
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    store_put_job(b.s, &job);
    job.state = "RUNNING";
    job.attempt = 1;
    job.spec = "other";
    job.user = "other";
    job.detail = NULL;
    store_update_job(b.s, &job);
    bed_settle(&b);
    (void)load(&b, &seen);
    assert_string_equal(seen.state, "RUNNING");
    assert_string_equal(seen.spec, "name: name-1\n");
    assert_string_equal(seen.detail, "{\"seq\":1}");
    seen_release(&seen);
    job.detail = "{\"new\":1}";
    job.state = "FAILED";
    job.has_exit_code = true;
    job.exit_code = -9;
    job.gpu_held = (int64_t)1 << 50;
    store_update_job(b.s, &job);
    bed_settle(&b);
    (void)load(&b, &seen);
    assert_string_equal(seen.detail, "{\"new\":1}");
    assert_true(seen.job.has_exit_code);
    assert_int_equal(seen.job.exit_code, -9);
    assert_int_equal(seen.job.gpu_held, (int64_t)1 << 50);
    seen_release(&seen);
    job.live = false;
    store_update_job(b.s, &job);
    bed_settle(&b);
    (void)load(&b, &seen);
    assert_int_equal(seen.jobs, 0);
    assert_int_equal(seen.ids, 1);
    seen_release(&seen);
    bed_release(&b);
}

static void test_a_nameless_job_is_called_by_its_id(void **state)
{
    struct bed_text t;
    struct store_job job = bed_job(1, &t);
    struct bed_answer a;
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    job.name = job.id;
    store_put_job(b.s, &job);
    bed_settle(&b);
    bed_list(&b, &(struct store_job_query){.limit = 5, .q = "JOB-0"}, &a);
    assert_int_equal(a.njobs, 1);
    bed_answer_release(&a);
    bed_find(&b, job.id, &a);
    assert_int_equal(a.njobs, 1);
    bed_answer_release(&a);
    bed_release(&b);
}

static void test_batches_count_turns(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    assert_int_equal(store_batch(b.s), 0);
    put_job(&b, 1);
    assert_int_equal(store_batch(b.s), 1);
    put_job(&b, 2);
    assert_int_equal(store_batch(b.s), 1);
    store_flush(b.s);
    assert_int_equal(store_batch(b.s), 1);
    put_job(&b, 3);
    assert_int_equal(store_batch(b.s), 2);
    assert_int_equal(store_durable(b.s), 0); /* only the loop tells */
    bed_settle(&b);
    assert_int_equal(b.durable, 2);
    assert_int_equal(store_durable(b.s), 2);
    bed_settle(&b); /* nothing new: does not wait */
    assert_int_equal(store_batch(b.s), 2);
    bed_release(&b);
}

/* A long turn is handed over in parts once the thread sleeps, and nothing changes for whom
 * waits by number. */
static void test_a_long_turn_in_parts(void **state)
{
    int64_t seq = 0;
    uint64_t batch;
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    put_job(&b, ++seq);
    store_flush_if_idle(b.s); /* too little: stays open */
    put_job(&b, ++seq);
    assert_int_equal(store_batch(b.s), 1);
    while ((batch = store_batch(b.s)) < 3) { /* the loop does not run: all of this is one turn */
        put_job(&b, ++seq);
        store_flush_if_idle(b.s);
    }
    bed_settle(&b);
    assert_true(b.durable >= batch);
    bed_close(&b);
    bed_open(&b, NULL);
    assert_int_equal(load_last_job(&b), seq);
    bed_release(&b);
}

/* Whatever a reader sees is durable, and what was reported durable is seen. */
static void test_readers_see_what_is_durable(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    for (int64_t seq = 1; seq <= 200; seq++) {
        bool there = false;
        char id[64];
        put_job(&b, seq);
        (void)snprintf(id, sizeof(id), "job-%06lld", (long long)seq);
        assert_int_equal(store_has_id(b.s, id, &there, NULL), 0);
        assert_false(there);
        bed_settle(&b);
        assert_int_equal(store_has_id(b.s, id, &there, NULL), 0);
        assert_true(there);
    }
    bed_release(&b);
}

static void test_close_commits_what_is_pending(void **state)
{
    struct seen seen;
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    put_job(&b, 1);
    bed_close(&b);
    assert_int_equal(b.durable, 1);
    bed_open(&b, NULL);
    (void)load(&b, &seen);
    assert_int_equal(seen.jobs, 1);
    seen_release(&seen);
    bed_release(&b);
}

static void test_one_process_at_a_time(void **state)
{
    struct stat st;
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    bed_open_fails(&b, ERR_CONFLICT, "is in use by another argusd");
    assert_int_equal(stat(b.path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0600);
    bed_close(&b);
    bed_open(&b, NULL);
    bed_release(&b);
}

static void sql(struct bed *b, const char *text)
{
    sqlite3 *db = NULL;
    assert_int_equal(sqlite3_open(b->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

static void test_what_cannot_be_opened(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    bed_close(&b);
    sql(&b, "PRAGMA user_version=99");
    bed_open_fails(&b, ERR_REFUSED, "start the newer argusd");
    assert_int_equal(unlink(b.path), 0);
    sql(&b, "CREATE TABLE shopping(item)");
    bed_open_fails(&b, ERR_REFUSED, "some other program");
    sql(&b, "INSERT INTO shopping VALUES('milk')"); /* untouched and not in WAL mode */
    FILE *f = fopen(b.path, "w");
    assert_non_null(f);
    assert_true(fputs("certainly no database, and long enough to be looked at by SQLite, "
                      "which wants a hundred bytes of header before it says so\n",
                      f) > 0);
    assert_int_equal(fclose(f), 0);
    bed_open_fails(&b, ERR_STORE, "not a database");
    char *path = b.path;
    b.path = xasprintf("%s/none/argus.db", b.dir);
    bed_open_fails(&b, ERR_STORE, "No such file");
    free(b.path);
    b.path = path;
    bed_release(&b);
}

/* Our own bug ends the process, and leaves what was durable. */
static void test_a_used_id_ends_the_process(void **state)
{
    struct seen seen;
    struct bed b;
    int status = 0;
    (void)state;
    bed_init(&b, BED_CLOSED);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        if (!freopen("/dev/null", "w", stderr))
            _exit(3);
        if (uv_loop_fork(&b.loop) < 0)
            _exit(3);
        bed_open(&b, NULL);
        put_job(&b, 1);
        bed_settle(&b);
        put_job(&b, 1);
        bed_settle(&b);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
    bed_open(&b, NULL);
    (void)load(&b, &seen);
    assert_int_equal(seen.jobs, 1);
    seen_release(&seen);
    bed_release(&b);
}

struct findings {
    bool done;
    size_t n;
    char text[200];
};

static void on_findings(const struct store_result *r, void *arg)
{
    struct findings *f = arg;
    assert_int_equal(r->err.code, 0);
    f->done = true;
    f->n = r->nfindings;
    for (size_t i = 0; i < r->nfindings; i++) {
        const struct store_finding *row = &r->findings[i];
        size_t len = strlen(f->text);
        (void)snprintf(f->text + len, sizeof(f->text) - len, "%d %s %s %s %s %d %g %s; ",
                       (int)row->k, row->class, str_or(row->rule, "-"), str_or(row->node, "-"),
                       str_or(row->rank, "-"), (int)row->at, row->confidence, row->body);
    }
}

/* One per attempt: another one of the same replaces it. */
static void test_findings(void **state)
{
    struct findings got = {0};
    struct store_finding row = {.job_seq = 1, .k = 2, .class = "unknown", .body = "{}"};
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    put_job(&b, 1);
    store_put_finding(b.s, &row);
    store_put_finding(b.s, &(struct store_finding){.job_seq = 1,
                                                   .k = 1,
                                                   .class = "gpu_oom",
                                                   .rule = "torch-cuda-oom",
                                                   .node = "n1",
                                                   .rank = "3",
                                                   .at = 7,
                                                   .confidence = 0.5,
                                                   .body = "{\"a\":1}"});
    row.class = "node_lost";
    store_put_finding(b.s, &row);
    row.job_seq = 2;
    store_put_finding(b.s, &row);
    bed_settle(&b);
    (void)store_list_findings(b.s, 1,
                              &(struct store_then){.done = on_findings, .arg = &got}); /* runs */
    while (!got.done)
        (void)uv_run(&b.loop, UV_RUN_ONCE);
    assert_int_equal(got.n, 2);
    assert_string_equal(got.text, "1 gpu_oom torch-cuda-oom n1 3 7 0.5 {\"a\":1}; "
                                  "2 node_lost - - - 0 0 {}; ");
    bed_release(&b);
}

static void test_find(void **state)
{
    struct bed_answer a;
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    for (int64_t seq = 1; seq <= 20; seq++)
        put_job(&b, seq);
    put_attempts(b.s);
    bed_settle(&b);
    bed_find(&b, "job-000001", &a);
    assert_int_equal(a.err.code, 0);
    assert_int_equal(a.njobs, 1);
    assert_int_equal(a.nattempts, 2);
    assert_string_equal(a.first_spec, "name: name-1\n");
    assert_string_equal(a.first_detail, "{\"seq\":1}");
    bed_answer_release(&a);
    bed_find(&b, "name-1", &a); /* a whole name wins over longer ones */
    assert_int_equal(a.njobs, 1);
    assert_int_equal(a.job_seqs[0], 1);
    bed_answer_release(&a);
    bed_find(&b, "job-00002", &a);
    assert_int_equal(a.njobs, 1);
    assert_int_equal(a.job_seqs[0], 20);
    bed_answer_release(&a);
    bed_find(&b, "job-00001", &a);
    assert_int_equal(a.err.code, ERR_CONFLICT);
    assert_non_null(strstr(a.err.text, "'job-000013', 'job-000012'"));
    assert_non_null(strstr(a.err.text, "and more"));
    bed_answer_release(&a);
    bed_find(&b, "jobs", &a);
    assert_int_equal(a.err.code, ERR_NOT_FOUND);
    bed_answer_release(&a);
    bed_find(&b, "", &a);
    assert_int_equal(a.err.code, ERR_NOT_FOUND);
    bed_answer_release(&a);
    bed_find(&b, "\xff", &a);
    assert_int_equal(a.err.code, ERR_NOT_FOUND);
    bed_answer_release(&a);
    bed_release(&b);
}

/* Jobs are of green, blue, red, green … in turn; see bed_job(). */
static void test_find_in_scope(void **state)
{
    static const char *const projects[] = {"q", "p"};
    const struct store_scope red = {.user = "red"}, all = {"red", projects, 2};
    const struct {
        struct store_job_ref ref;
        int code;
        int64_t seq;
    } rows[] = {
        {{"job-000002", "red", &red, false}, ERR_NOT_FOUND, 0},
        {{"job-000002", "red", &all, false}, 0, 2},
        {{"job-000003", "red", &red, false}, 0, 3},
        {{"name-2", "red", &red, false}, ERR_NOT_FOUND, 0},
        {{"name-2", "red", &all, false}, 0, 2},
        {{"job-00000", "red", &red, false}, ERR_CONFLICT, 0},
        {{"job-00001", "red", &red, false}, 0, 12}, /* one of those of 10, 11, 12, 13 is his */
        {{"job-00001", "red", &all, false}, 0, 12}, /* his own goes first */
        {{"job-00001", "red", NULL, false}, 0, 12},
        {{"job-00001", "nobody", NULL, false}, ERR_CONFLICT, 0},
        {{"name-1", "red", NULL, false},
         0,
         1}, /* another's whole name before his own's beginning */
        {{"job-000013", "red", NULL, false}, 0, 13},
        {{"job-000013", NULL, NULL, true},
         0,
         13}, /* an id: neither a name nor a beginning is meant */
        {{"name-1", "red", NULL, true}, ERR_NOT_FOUND, 0},
        {{"job-00001", "red", NULL, true}, ERR_NOT_FOUND, 0},
    };
    struct bed_answer a;
    struct bed b;

    (void)state;
    bed_init(&b, NULL);
    for (int64_t seq = 1; seq <= 13; seq++)
        put_job(&b, seq);
    bed_settle(&b);
    for (size_t i = 0; i < array_len(rows); i++) {
        bed_find_of(&b, &rows[i].ref, &a);
        assert_int_equal(a.err.code, rows[i].code);
        if (!rows[i].code)
            assert_int_equal(a.job_seqs[0], rows[i].seq);
        bed_answer_release(&a);
    }
    bed_release(&b);
}

static void put_events(struct bed *b)
{
    put_job(b, 1);
    put_job(b, 2);
    for (int64_t seq = 1; seq <= 9; seq++)
        store_put_event(b->s, &(struct store_event){.seq = seq,
                                                    .at = (usec_t)seq,
                                                    .job_seq = seq % 3,
                                                    .kind = "state",
                                                    .actor = "ann",
                                                    .from_state = "QUEUED",
                                                    .to_state = "RUNNING",
                                                    .reason_code = "r",
                                                    .text = "t",
                                                    .data = "{}"});
    bed_settle(b);
}

static void test_events(void **state)
{
    struct bed_answer a;
    struct seen seen;
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    put_events(&b);
    bed_events(&b, &(struct store_event_query){.since = 3, .limit = 4}, &a);
    assert_int_equal(a.nevents, 4);
    assert_int_equal(a.event_seqs[0], 4);
    assert_int_equal(a.event_seqs[3], 7);
    assert_string_equal(a.first_event_job, "job-000001");
    bed_answer_release(&a);
    bed_events(&b, &(struct store_event_query){.before = 9, .limit = 2, .newest_first = true}, &a);
    assert_int_equal(a.nevents, 2);
    assert_int_equal(a.event_seqs[0], 8);
    assert_int_equal(a.event_seqs[1], 7);
    bed_answer_release(&a);
    bed_events(&b, &(struct store_event_query){.job = "job-000002", .limit = 9}, &a);
    assert_int_equal(a.nevents, 3);
    assert_int_equal(a.event_seqs[0], 2);
    assert_int_equal(a.event_seqs[2], 8);
    bed_answer_release(&a);
    bed_events(&b, &(struct store_event_query){.job = "none", .limit = 9}, &a);
    assert_int_equal(a.err.code, 0);
    assert_int_equal(a.nevents, 0);
    bed_answer_release(&a);
    assert_int_equal(load(&b, &seen).event_seq, 9);
    seen_release(&seen);
    bed_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* First: it forks, and no thread of a store was there yet. */
        cmocka_unit_test(test_a_used_id_ends_the_process),
        cmocka_unit_test(test_rows_come_back),
        cmocka_unit_test(test_update_keeps_spec_and_detail),
        cmocka_unit_test(test_a_nameless_job_is_called_by_its_id),
        cmocka_unit_test(test_batches_count_turns),
        cmocka_unit_test(test_a_long_turn_in_parts),
        cmocka_unit_test(test_readers_see_what_is_durable),
        cmocka_unit_test(test_close_commits_what_is_pending),
        cmocka_unit_test(test_one_process_at_a_time),
        cmocka_unit_test(test_what_cannot_be_opened),
        cmocka_unit_test(test_findings),
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_find_in_scope),
        cmocka_unit_test(test_events),
    };

    return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
