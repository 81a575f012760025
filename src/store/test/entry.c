/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of store/store.h: entries, users that go, and the hashes of events. */
#include "store/store.h"

#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "store/test/bed.h"

#include <cmocka.h>

/* "kind/name=body@at " of every entry, in the order that they came. */
static void on_entry(const struct store_entry *entry, void *arg)
{
    char **all = arg;
    char *more =
        xasprintf("%s%s/%s=%s@%d ", *all, entry->kind, entry->name, entry->body, (int)entry->at);
    free(*all);
    *all = more;
}

static void on_user(const struct store_user *user, void *arg)
{
    char **all = arg;
    char *more = xasprintf("%suser %s ", *all, user->name);
    free(*all);
    *all = more;
}

static void on_token(const struct store_token *token, void *arg)
{
    char **all = arg;
    char *more = xasprintf("%stoken %s ", *all, token->id);
    free(*all);
    *all = more;
}

static void expect(struct bed *b, const char *what)
{
    static const struct store_load_ops ops = {
        .on_entry = on_entry, .on_user = on_user, .on_token = on_token};
    struct store_last last;
    char *all = xstrdup("");

    assert_int_equal(store_load(b->s, &ops, &all, &last, NULL), 0);
    assert_string_equal(all, what);
    free(all);
}

static void put(struct bed *b, const char *kind, const char *name, const char *body)
{
    store_put_entry(b->s, &(struct store_entry){kind, name, body, 7});
}

static void test_entries(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    expect(&b, "");
    put(&b, "project", "b", "{}");
    put(&b, "node", "z", "1");
    put(&b, "project", "a", "{}");
    put(&b, "project", "b", "{\"new\":1}");
    store_remove_entry(b.s, "project", "none");
    store_remove_entry(b.s, "none", "a");
    bed_settle(&b);
    expect(&b, "node/z=1@7 project/a={}@7 project/b={\"new\":1}@7 ");
    store_remove_entry(b.s, "project", "b");
    put(&b, "project", "c", "{}");
    bed_close(&b);
    bed_open(&b, NULL);
    expect(&b, "node/z=1@7 project/a={}@7 project/c={}@7 ");
    bed_release(&b);
}

static void test_users_and_tokens_go(void **state)
{
    unsigned char hashes[2][STORE_HASH_BYTES] = {{1}, {2}};
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    for (size_t i = 0; i < 2; i++)
        store_put_token(b.s,
                        &(struct store_token){.hash = hashes[i], .id = i ? "second" : "first"});
    store_remove_token(b.s, hashes[0]);
    store_remove_token(b.s, hashes[0]);
    store_put_user(b.s, &(struct store_user){.name = "ann", .role = "user"});
    store_put_user(b.s, &(struct store_user){.name = "bob", .role = "user"});
    store_remove_user(b.s, "ann");
    store_remove_user(b.s, "nobody");
    bed_settle(&b);
    expect(&b, "user bob token second ");
    bed_release(&b);
}

static void on_events(const struct store_result *r, void *arg)
{
    size_t *n = arg;
    assert_int_equal(r->err.code, 0);
    for (*n = 0; *n < r->nevents; (*n)++) {
        unsigned char hash[STORE_HASH_BYTES];
        memset(hash, (int)r->events[*n].seq, sizeof(hash));
        assert_string_equal(r->events[*n].object, "node/n1");
        if (r->events[*n].seq == 1)
            assert_null(r->events[*n].hash);
        else
            assert_memory_equal(r->events[*n].hash, hash, sizeof(hash));
    }
}

static struct store_last last_of(struct bed *b)
{
    struct store_last last;
    assert_int_equal(store_load(b->s, &(struct store_load_ops){0}, NULL, &last, NULL), 0);
    return last;
}

static void put_event(struct bed *b, int64_t seq, bool hashed)
{
    unsigned char hash[STORE_HASH_BYTES];
    memset(hash, (int)seq, sizeof(hash));
    store_put_event(
        b->s, &(struct store_event){
                  .seq = seq, .kind = "state", .object = "node/n1", .hash = hashed ? hash : NULL});
}

static void test_event_hashes(void **state)
{
    size_t n = SIZE_MAX;
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    assert_false(last_of(&b).has_event_hash);
    put_event(&b, 1, false);
    bed_settle(&b);
    assert_false(last_of(&b).has_event_hash);
    put_event(&b, 2, true);
    put_event(&b, 3, true);
    bed_close(&b);
    bed_open(&b, NULL);
    struct store_last last = last_of(&b);
    assert_true(last.has_event_hash);
    assert_int_equal(last.event_seq, 3);
    assert_int_equal(last.event_hash[0], 3);
    assert_int_equal(last.event_hash[STORE_HASH_BYTES - 1], 3);
    (void)store_list_events(b.s, &(struct store_event_query){.limit = 9},
                            &(struct store_then){.done = on_events, .arg = &n});
    while (n == SIZE_MAX)
        (void)uv_run(&b.loop, UV_RUN_ONCE);
    assert_int_equal(n, 3);
    bed_release(&b);
}

/* The events: seq is the number of the row. */
static const struct store_event seen_events[] = {
    {.seq = 1, .job_seq = 1, .kind = "k"}, /* of ann, in p */
    {.seq = 2, .job_seq = 2, .kind = "k"}, /* of bob, in p */
    {.seq = 3, .job_seq = 3, .kind = "k"}, /* of bob, in q */
    {.seq = 4, .at = 200, .kind = "k", .thing = "cluster"},
    {.seq = 5, .at = 250, .kind = "k", .object = "node/n1", .actor = "bob", .thing = "node"},
    {.seq = 6, .kind = "k", .object = "user/bob", .thing = "user", .owner = "bob"},
    {.seq = 7, .kind = "k", .object = "token/bob/1", .thing = "token", .owner = "bob"},
    {.seq = 8, .kind = "k", .object = "project/q", .thing = "project", .project = "q"},
    {.seq = 9, .at = 300, .kind = "k", .object = "user/ann", .thing = "user", .owner = "ann"},
    {.seq = 10, .kind = "k", .object = "token/ann/2", .thing = "token", .owner = "ann"},
    {.seq = 11, .kind = "k", .object = "project/p", .thing = "project", .project = "p"},
    {.seq = 12, .kind = "k", .object = "user/new", .actor = "ann", .thing = "user", .owner = "new"},
    {.seq = 13, .kind = "k", .object = "token/anna/2", .thing = "token", .owner = "anna"},
    {.seq = 14, .kind = "k", .object = "secret/user/bob/s", .thing = "secret", .owner = "bob"},
    {.seq = 15, .kind = "k", .object = "secret/project/p/s", .thing = "secret", .project = "p"},
    {.seq = 16, .kind = "k", .object = "upload/bob/u", .thing = "upload", .owner = "bob"},
    {.seq = 17, .kind = "k", .object = "upload/ann/u", .thing = "upload", .owner = "ann"},
    {.seq = 18, .kind = "k", .object = "file/users/bob/a/b", .thing = "file", .owner = "bob"},
    {.seq = 19, .kind = "k", .object = "file/common/a", .thing = "file", .project = "*"},
    {.seq = 20, .kind = "k", .object = "snapshot/x@1", .thing = "snapshot", .project = "*"},
    {.seq = 21,
     .kind = "k",
     .object = "user/ann/snapshot/x@1",
     .thing = "snapshot",
     .owner = "ann"},
    {.seq = 22, .kind = "k", .object = "dataset/~bob/d@1", .thing = "dataset", .owner = "bob"},
    {.seq = 23, .kind = "k", .object = "dataset/common/d@1", .thing = "dataset", .project = "*"},
    {.seq = 24, .kind = "k", .object = "model/~ann/m@1", .thing = "model", .owner = "ann"},
    {.seq = 25, .kind = "k", .object = "comet/ann/m"}, /* no rule: for nobody with a scope */
};

static void expect_events(struct bed *b, const struct store_event_query *q, const char *seqs)
{
    struct bed_answer a;
    struct buf text = BUF_INIT(1024);
    bed_events(b, q, &a);
    assert_string_equal(a.err.text, "");
    for (size_t i = 0; i < a.nevents; i++)
        (void)buf_addf(&text, "%s%d", i ? " " : "", (int)a.event_seqs[i]);
    assert_string_equal(buf_str(&text), seqs);
    buf_release(&text);
    bed_answer_release(&a);
}

static const char *const ann_projects[] = {"p", "r"};
static const struct store_scope ann_who = {"ann", ann_projects, array_len(ann_projects)};
static const struct store_scope bob_who = {.user = "bob"};
#define ALL_THINGS "job,user,token,project,secret,upload,file,snapshot,dataset,model"
static const struct store_event_scope ann = {&ann_who, ALL_THINGS, ALL_THINGS, "node,cluster"};
static const struct store_event_scope bob = {&bob_who, ALL_THINGS, ALL_THINGS, "node,cluster"};

static void put_seen_events(struct bed *b)
{
    for (int64_t seq = 1; seq <= 3; seq++) {
        struct bed_text t;
        struct store_job job = bed_job(seq, &t);
        job.user = seq == 1 ? "ann" : "bob";
        job.project = seq == 3 ? "q" : "p";
        store_put_job(b->s, &job);
    }
    for (size_t i = 0; i < array_len(seen_events); i++)
        store_put_event(b->s, &seen_events[i]);
    bed_settle(b);
}

static void expect_scopes(struct bed *b)
{
    expect_events(b, &(struct store_event_query){.limit = 99},
                  "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25");
    expect_events(b, &(struct store_event_query){.limit = 99, .scope = &ann},
                  "1 2 4 5 9 10 11 15 17 19 20 21 23 24");
    expect_events(b, &(struct store_event_query){.limit = 99, .scope = &bob},
                  "2 3 4 5 6 7 14 16 18 19 20 22 23");
}

static void test_events_in_scope(void **state)
{
    static const char *many[STORE_SCOPE_MAX + 1];
    struct store_scope crowd = {.user = "ann", .projects = many, .nprojects = array_len(many)};
    struct bed_answer a;
    struct bed b;

    (void)state;
    bed_init(&b, NULL);
    put_seen_events(&b);
    expect_scopes(&b);
    expect_events(&b,
                  &(struct store_event_query){
                      .limit = 2, .newest_first = true, .since = 2, .before = 12, .scope = &ann},
                  "11 10");
    expect_events(&b, &(struct store_event_query){.limit = 9, .job = "job-000003", .scope = &ann},
                  "");
    expect_events(&b, &(struct store_event_query){.limit = 9, .object = "token"}, "7 10 13");
    expect_events(&b, &(struct store_event_query){.limit = 9, .object = "token/ann/2"}, "10");
    expect_events(&b, &(struct store_event_query){.limit = 9, .object = "nod"}, "");
    expect_events(&b, &(struct store_event_query){.limit = 9, .object = "job"}, "1 2 3");
    expect_events(&b, &(struct store_event_query){.limit = 9, .object = "job/job-000002"}, "2");
    expect_events(&b, &(struct store_event_query){.limit = 9, .kinds = "j,k"}, "1 2 3 4 5 6 7 8 9");
    expect_events(&b, &(struct store_event_query){.limit = 9, .kinds = "j,kk"}, "");
    expect_events(&b, &(struct store_event_query){.limit = 9, .actor = "bob", .scope = &ann}, "5");
    expect_events(&b, &(struct store_event_query){.limit = 9, .from = 200, .to = 300}, "4 5");
    expect_events(&b, &(struct store_event_query){.limit = 9, .to = 300}, "1 2 3 4 5 6 7 8 10");
    expect_events(
        &b,
        &(struct store_event_query){.limit = 9, .from = 200, .newest_first = true, .scope = &ann},
        "9 5 4");
    for (size_t i = 0; i < array_len(many); i++)
        many[i] = "x";
    bed_events(&b,
               &(struct store_event_query){
                   .limit = 9, .scope = &(struct store_event_scope){&crowd, "", "", ""}},
               &a);
    assert_int_equal(a.err.code, ERR_REFUSED);
    bed_answer_release(&a);
    bed_release(&b);
}

/* TIMED_MOST is TIME_LOOK_MAX of query.c. A clock that was set back gave TIMED_STRAY its time. */
enum { TIMED_EVENTS = 6000, TIMED_MOST = 5000, TIMED_STRAY = 5500 };

/* Ten microseconds apart, but for the stray one. */
static void put_timed_events(struct bed *b)
{
    for (int64_t seq = 1; seq <= TIMED_EVENTS; seq++) {
        store_put_event(b->s,
                        &(struct store_event){.seq = seq,
                                              .at = seq == TIMED_STRAY ? 1005 : (usec_t)seq * 10,
                                              .kind = seq % 2 ? "odd" : "even",
                                              .object = "node/n1"});
        if (seq % 1000 == 0)
            bed_settle(b);
    }
    bed_settle(b);
}

/* The same events, whether their time has few of them, which are looked up, or more than that, and
 * whatever else narrows the page. */
static void test_events_of_a_time(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    put_timed_events(&b);
    expect_events(&b, &(struct store_event_query){.limit = 9, .from = 1000, .to = 1021},
                  "100 101 102 5500");
    expect_events(
        &b, &(struct store_event_query){.limit = 3, .from = 1000, .to = 1021, .newest_first = true},
        "5500 102 101");
    expect_events(
        &b, &(struct store_event_query){.limit = 9, .from = 1000, .to = 1021, .kinds = "even"},
        "100 102 5500");
    expect_events(&b,
                  &(struct store_event_query){
                      .limit = 9, .from = 1000, .to = 1021, .since = 100, .before = 102},
                  "101");
    expect_events(&b, &(struct store_event_query){.limit = 9, .from = 1001, .to = 1005}, "");
    expect_events(&b, &(struct store_event_query){.limit = 9, .to = 25}, "1 2");
    expect_events(&b, &(struct store_event_query){.limit = 9, .from = 59985}, "5999 6000");
    expect_events(&b, &(struct store_event_query){.limit = 9, .from = 60001}, "");
    expect_events(&b,
                  &(struct store_event_query){
                      .limit = 9, .from = 1000, .to = 1021, .since = 102, .before = 5500},
                  "");
    expect_events(&b,
                  &(struct store_event_query){.limit = 9, .from = 10, .to = 59985, .since = 5996},
                  "5997 5998");
    for (int most = TIMED_MOST - 2; most <= TIMED_MOST + 1; most++) {
        _cleanup_(freep) char *newest = xasprintf("%d %d", TIMED_STRAY, most);
        struct store_event_query q = {.limit = 2, .from = 10, .to = (usec_t)most * 10 + 1};
        expect_events(&b, &q, "1 2");
        q.newest_first = true;
        expect_events(&b, &q, newest);
    }
    bed_release(&b);
}

/* Who sees which kinds is the caller's rule: each list has its own effect. */
static void test_each_kind_has_its_rule(void **state)
{
    struct store_event_scope s = {&ann_who, "token", "secret", "cluster"};
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    put_seen_events(&b);
    expect_events(&b, &(struct store_event_query){.limit = 99, .scope = &s}, "4 10 15");
    s = (struct store_event_scope){&ann_who, "", "", ""};
    expect_events(&b, &(struct store_event_query){.limit = 99, .scope = &s}, "");
    s = (struct store_event_scope){&ann_who, "", "", "job,comet"};
    expect_events(&b, &(struct store_event_query){.limit = 99, .scope = &s}, "1 2 3 25");
    bed_release(&b);
}

/* Events of before they said who may see them: it is read from their objects, once. */
static void test_old_events(void **state)
{
    static const char downgrade[] =
        "ALTER TABLE event DROP COLUMN thing; ALTER TABLE event DROP COLUMN owner;"
        " ALTER TABLE event DROP COLUMN project;"
        " DROP TABLE usage; DROP TABLE usage_key; DROP TABLE origin;"
        " DROP INDEX event_at; DROP INDEX job_ended_at; DROP INDEX job_ended_cluster;"
        " DROP INDEX job_ended_pool; DROP INDEX job_ended_workload;"
        " CREATE INDEX job_cluster ON job(cluster); CREATE INDEX job_pool ON job(pool);"
        " CREATE INDEX job_workload ON job(workload); ALTER TABLE job DROP COLUMN gpu_held;"
        " PRAGMA user_version=3";
    struct bed b;
    sqlite3 *db;
    (void)state;
    bed_init(&b, NULL);
    put_seen_events(&b);
    bed_close(&b);
    assert_int_equal(sqlite3_open(b.path, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, downgrade, NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    bed_open(&b, NULL);
    expect_scopes(&b);
    bed_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries),          cmocka_unit_test(test_users_and_tokens_go),
        cmocka_unit_test(test_event_hashes),     cmocka_unit_test(test_events_in_scope),
        cmocka_unit_test(test_events_of_a_time), cmocka_unit_test(test_each_kind_has_its_rule),
        cmocka_unit_test(test_old_events),
    };

    return cmocka_run_group_tests_name("store/entry", tests, NULL, NULL);
}
