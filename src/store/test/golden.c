/* SPDX-License-Identifier: Apache-2.0 */
/* Stores that released versions left behind must keep opening, with every row.
 *
 * tests/golden/store-<schema>.db was made by the argusd of that time and never
 * changes. When the schema grows, run this program of the old version as
 * `test_store_golden --make store-N.db` before, and add N to the list below. */
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "store/test/bed.h"

#include <cmocka.h>

enum { OLDEST = 1, NEWEST = 10 };

static void put_all(struct store *s)
{
    unsigned char hash[STORE_HASH_BYTES];
    memset(hash, 7, sizeof(hash));
    for (int64_t seq = 1; seq <= 5; seq++) {
        struct bed_text t;
        struct store_job job = bed_job(seq, &t);
        store_put_job(s, &job);
        if (seq > 3) {
            job.state = "SUCCEEDED";
            job.live = false;
            job.has_exit_code = true;
            store_update_job(s, &job);
        }
        store_put_attempt(s, &(struct store_attempt){.job_seq = seq, .k = 1, .ray_id = job.id});
        store_put_event(
            s, &(struct store_event){
                   .seq = seq, .job_seq = seq, .kind = "queued", .object = "o/n", .hash = hash});
    }
    store_put_token(s, &(struct store_token){.hash = hash, .id = "t", .user = "ann"});
    store_put_user(s, &(struct store_user){.name = "ann", .role = "admin"});
    store_put_idempotency(
        s, &(struct store_idempotency){
               .user = "ann", .key = "k", .body_hash = hash, .job_id = "job-000001", .at = 1});
    store_put_meta(s, "made", "golden");
    store_put_entry(s, &(struct store_entry){"node", "n1", "{\"gpus\":8}", 3});
}

static int make(char *path)
{
    struct bed b = {.path = path};
    if (uv_loop_init(&b.loop) < 0)
        return 1;
    bed_open(&b, NULL);
    put_all(b.s);
    bed_close(&b);
    return uv_loop_close(&b.loop) < 0;
}

struct seen {
    int jobs, attempts, ids, tokens, users, keys, metas, entries;
};

static void on_job(const struct store_job *job, void *arg)
{
    struct bed_text t;
    struct store_job made = bed_job(job->seq, &t);
    ((struct seen *)arg)->jobs++;
    assert_string_equal(job->id, made.id);
    assert_string_equal(job->name, made.name);
    assert_string_equal(job->user, made.user);
    assert_string_equal(job->state, made.state);
    assert_string_equal(job->spec, made.spec);
    assert_string_equal(job->detail, made.detail);
    assert_int_equal(job->queued_at, made.queued_at);
    assert_int_equal(job->priority, made.priority);
}

static void on_attempt(const struct store_attempt *attempt, void *arg)
{
    ((struct seen *)arg)->attempts++;
    assert_true(str_starts(attempt->ray_id, "job-"));
}

static void on_id(const char *id, void *arg)
{
    ((struct seen *)arg)->ids++;
    assert_true(str_starts(id, "job-"));
}

static void on_token(const struct store_token *token, void *arg)
{
    ((struct seen *)arg)->tokens++;
    assert_int_equal(token->hash[STORE_HASH_BYTES - 1], 7);
}

static void on_user(const struct store_user *user, void *arg)
{
    ((struct seen *)arg)->users++;
    assert_string_equal(user->role, "admin");
}

static void on_key(const struct store_idempotency *key, void *arg)
{
    ((struct seen *)arg)->keys++;
    assert_string_equal(key->job_id, "job-000001");
}

static void on_meta(const char *key, const char *value, void *arg)
{
    ((struct seen *)arg)->metas++;
    assert_string_equal(key, "made");
    assert_string_equal(value, "golden");
}

static void on_entry(const struct store_entry *entry, void *arg)
{
    ((struct seen *)arg)->entries++;
    assert_string_equal(entry->kind, "node");
    assert_string_equal(entry->name, "n1");
    assert_string_equal(entry->body, "{\"gpus\":8}");
    assert_int_equal(entry->at, 3);
}

/* version: of the store that was opened. */
static void expect_all(struct bed *b, int version)
{
    static const struct store_load_ops ops = {.on_job = on_job,
                                              .on_attempt = on_attempt,
                                              .on_id = on_id,
                                              .on_token = on_token,
                                              .on_user = on_user,
                                              .on_idempotency = on_key,
                                              .on_entry = on_entry,
                                              .on_meta = on_meta};
    struct seen seen = {0};
    struct bed_answer a;
    struct store_last last;
    assert_int_equal(store_load(b->s, &ops, &seen, &last, NULL), 0);
    assert_int_equal(last.job_seq, 5);
    assert_int_equal(last.event_seq, 5);
    assert_int_equal(last.has_event_hash, version >= 2);
    assert_int_equal(seen.entries, version >= 2);
    assert_int_equal(seen.jobs, 3);
    assert_int_equal(seen.attempts, 3);
    assert_int_equal(seen.ids, 5);
    assert_int_equal(seen.tokens, 1);
    assert_int_equal(seen.users, 1);
    assert_int_equal(seen.keys, 1);
    assert_int_equal(seen.metas, 1);
    bed_list(b, &(struct store_job_query){.limit = 10}, &a);
    assert_int_equal(a.njobs, 5);
    bed_answer_release(&a);
}

static void copy(const char *from, const char *to)
{
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    char part[4096];
    size_t n;
    assert_true(in && out);
    while ((n = fread(part, 1, sizeof(part), in)) > 0)
        assert_int_equal(fwrite(part, 1, n, out), n);
    assert_int_equal(fclose(in), 0);
    assert_int_equal(fclose(out), 0);
}

static void test_every_version_opens(void **state)
{
    (void)state;
    for (int version = OLDEST; version <= NEWEST; version++) {
        char *golden = xasprintf("%s/store-%d.db", getenv("STORE_GOLDEN"), version);
        struct bed_text t;
        struct store_job job = bed_job(6, &t);
        struct bed b;
        bed_init(&b, BED_CLOSED);
        copy(golden, b.path);
        bed_open(&b, NULL);
        expect_all(&b, version);
        bed_close(&b);
        bed_open(&b, NULL);
        expect_all(&b, version);
        store_put_job(b.s, &job);
        bed_settle(&b);
        bed_release(&b);
        free(golden);
    }
}

/* A bed with the store of this version, whose rows `past` changes before it is opened. */
static void golden_of_past(struct bed *b, int version, const char *past)
{
    _cleanup_(freep) char *golden = xasprintf("%s/store-%d.db", getenv("STORE_GOLDEN"), version);
    sqlite3 *db;
    bed_init(b, BED_CLOSED);
    copy(golden, b->path);
    assert_int_equal(sqlite3_open(b->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, past, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    bed_open(b, NULL);
}

/* Closes the store; then this SELECT finds this row in its file, with '|' between the columns. */
static void golden_expect_row(struct bed *b, const char *sql, const char *row)
{
    struct buf found = BUF_INIT(4096);
    sqlite3 *db;
    sqlite3_stmt *st;
    bed_close(b);
    assert_int_equal(sqlite3_open(b->path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &st, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_step(st), SQLITE_ROW);
    for (int i = 0; i < sqlite3_column_count(st); i++)
        assert_int_equal(
            buf_addf(&found, "%s%s", i ? "|" : "", (const char *)sqlite3_column_text(st, i)), 0);
    assert_string_equal(buf_str(&found), row);
    buf_release(&found);
    assert_int_equal(sqlite3_finalize(st), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
}

/* Until schema 6 it was in the detail alone. */
static void test_what_jobs_held_is_taken_over(void **state)
{
    static const char past[] =
        "UPDATE job_detail SET detail='{\"gpu_held\":77000}' WHERE seq=5;"
        " UPDATE job_detail SET detail='{\"gpu_held\":\"much\"}' WHERE seq=4;"
        " UPDATE job_detail SET detail='no JSON' WHERE seq=3; DELETE FROM job_detail WHERE seq=2";
    struct bed_answer a;
    struct bed b;
    (void)state;
    golden_of_past(&b, 6, past);
    bed_list(&b, &(struct store_job_query){.limit = 10}, &a);
    assert_int_equal(a.njobs, 5);
    assert_int_equal(a.jobs_held[0], 77000);
    for (size_t i = 1; i < a.njobs; i++)
        assert_int_equal(a.jobs_held[i], 0);
    bed_answer_release(&a);
    bed_release(&b);
}

/* Until schema 7 a retry knew its job in the detail alone. */
static void test_retries_are_taken_over(void **state)
{
    static const char past[] =
        "UPDATE job_detail SET detail='{\"retry_of\":\"job-000002\"}' WHERE seq=5;"
        " UPDATE job_detail SET detail='{\"retry_of\":7}' WHERE seq=4;"
        " UPDATE job_detail SET detail='no JSON' WHERE seq=3";
    static const char count[] = "SELECT count(*), max(seq), max(parent), max(how) FROM origin";
    struct bed b;
    (void)state;
    golden_of_past(&b, 7, past);
    golden_expect_row(&b, count, "1|5|job-000002|retry");
    bed_release(&b);
}

/* Until schema 9 nobody kept what was run again: the sums of that time stay, and have none of it.
 */
static void test_usage_is_taken_over(void **state)
{
    static const char past[] =
        "INSERT INTO usage_key(cluster, labels, project, user, workload)"
        " VALUES('main', '', 'p', 'ann', 'verl');"
        " INSERT INTO usage SELECT 900, 1800, id, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1 FROM usage_key";
    static const char sums[] = "SELECT count(*), sum(s0), sum(s9), sum(s10) FROM usage";
    const struct store_usage more = {.cluster = "main",
                                     .labels = "",
                                     .project = "p",
                                     .user = "ann",
                                     .workload = "verl",
                                     .step = 900,
                                     .at = 1800,
                                     .sums = {[0] = 7, [10] = 3}};
    struct bed b;
    (void)state;
    golden_of_past(&b, 9, past);
    store_add_usage(b.s, &more);
    bed_settle(&b);
    golden_expect_row(&b, sums, "1|17|1|3");
    bed_release(&b);
}

/* Until schema 10 events had no index by their time: those of before are in it. */
static void test_old_events_are_found_by_their_time(void **state)
{
    static const char past[] = "UPDATE event SET at=100*seq";
    struct bed_answer a;
    struct bed b;
    (void)state;
    golden_of_past(&b, 10, past);
    bed_events(&b, &(struct store_event_query){.limit = 9, .from = 200, .to = 400}, &a);
    assert_string_equal(a.err.text, "");
    assert_int_equal(a.nevents, 2);
    assert_int_equal(a.event_seqs[0], 2);
    assert_int_equal(a.event_seqs[1], 3);
    bed_answer_release(&a);
    golden_expect_row(&b, "SELECT tbl_name, sql FROM sqlite_schema WHERE name='event_at'",
                      "event|CREATE INDEX event_at ON event(at)");
    bed_release(&b);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_version_opens),
        cmocka_unit_test(test_what_jobs_held_is_taken_over),
        cmocka_unit_test(test_retries_are_taken_over),
        cmocka_unit_test(test_usage_is_taken_over),
        cmocka_unit_test(test_old_events_are_found_by_their_time),
    };

    if (argc == 3 && strcmp(argv[1], "--make") == 0)
        return make(argv[2]);
    return cmocka_run_group_tests_name("store/golden", tests, NULL, NULL);
}
