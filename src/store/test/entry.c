/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of store/store.h: entries, users that go, and the hashes of events. */
#include "store/store.h"

#include <setjmp.h>
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

        memset(hash, (int)r->events[*n].seq, sizeof hash);
        assert_string_equal(r->events[*n].object, "node/n1");
        if (r->events[*n].seq == 1)
            assert_null(r->events[*n].hash);
        else
            assert_memory_equal(r->events[*n].hash, hash, sizeof hash);
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

    memset(hash, (int)seq, sizeof hash);
    store_put_event(
        b->s, &(struct store_event){
                  .seq = seq, .kind = "state", .object = "node/n1", .hash = hashed ? hash : NULL});
}

static void test_event_hashes(void **state)
{
    struct store_last last;
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
    last = last_of(&b);
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

/* Of the event: seq is the number of the row. */
static const struct store_event seen_events[] = {
    {.seq = 1, .job_seq = 1, .kind = "k"},                        /* of ann, in p */
    {.seq = 2, .job_seq = 2, .kind = "k"},                        /* of bob, in p */
    {.seq = 3, .job_seq = 3, .kind = "k"},                        /* of bob, in q */
    {.seq = 4, .kind = "k"},                                      /* of nothing */
    {.seq = 5, .kind = "k", .object = "node/n1", .actor = "bob"}, /* of a machine */
    {.seq = 6, .kind = "k", .object = "user/bob", .actor = "root"},
    {.seq = 7, .kind = "k", .object = "token/bob/1", .actor = "bob"},
    {.seq = 8, .kind = "k", .object = "project/q", .actor = "root"},
    {.seq = 9, .kind = "k", .object = "user/ann", .actor = "root"},
    {.seq = 10, .kind = "k", .object = "token/ann/2", .actor = "root"},
    {.seq = 11, .kind = "k", .object = "project/p", .actor = "root"},
    {.seq = 12, .kind = "k", .object = "user/new", .actor = "ann"},
    {.seq = 13, .kind = "k", .object = "token/anna/2", .actor = "root"},
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

static void test_events_in_scope(void **state)
{
    static const char *const projects[] = {"p", "r"}, *many[STORE_SCOPE_MAX + 1];
    struct store_scope ann = {.user = "ann", .projects = projects, .nprojects = 2};
    struct store_scope bob = {.user = "bob"};
    struct bed_answer a;
    struct bed b;

    (void)state;
    bed_init(&b, NULL);
    for (int64_t seq = 1; seq <= 3; seq++) {
        struct bed_text t;
        struct store_job job = bed_job(seq, &t);

        job.user = seq == 1 ? "ann" : "bob";
        job.project = seq == 3 ? "q" : "p";
        store_put_job(b.s, &job);
    }
    for (size_t i = 0; i < array_len(seen_events); i++)
        store_put_event(b.s, &seen_events[i]);
    bed_settle(&b);
    expect_events(&b, &(struct store_event_query){.limit = 99}, "1 2 3 4 5 6 7 8 9 10 11 12 13");
    expect_events(&b, &(struct store_event_query){.limit = 99, .scope = &ann},
                  "1 2 4 5 9 10 11 12");
    expect_events(&b, &(struct store_event_query){.limit = 99, .scope = &bob}, "2 3 4 5 6 7");
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
    expect_events(&b, &(struct store_event_query){.limit = 99, .kinds = "j,k"},
                  "1 2 3 4 5 6 7 8 9 10 11 12 13");
    expect_events(&b, &(struct store_event_query){.limit = 9, .kinds = "j,kk"}, "");
    expect_events(&b, &(struct store_event_query){.limit = 9, .actor = "ann", .scope = &ann}, "12");
    ann.projects = many;
    ann.nprojects = array_len(many);
    for (size_t i = 0; i < array_len(many); i++)
        many[i] = "x";
    bed_events(&b, &(struct store_event_query){.limit = 9, .scope = &ann}, &a);
    assert_int_equal(a.err.code, ERR_REFUSED);
    bed_answer_release(&a);
    bed_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_entries),
        cmocka_unit_test(test_users_and_tokens_go),
        cmocka_unit_test(test_event_hashes),
        cmocka_unit_test(test_events_in_scope),
    };

    return cmocka_run_group_tests_name("store/entry", tests, NULL, NULL);
}
