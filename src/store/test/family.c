/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of store_list_family(): up and down, what is out of sight, rows that lie, ceilings. */
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "store/test/bed.h"

#include <cmocka.h>

struct family_seen {
    bool done;
    int code;
    size_t n, n_specs;
    bool is_cut;
    struct buf said; /* "1 2:job-000001/fork=note" */
};

static void on_family(const struct store_result *r, void *arg)
{
    struct family_seen *s = arg;
    s->done = true;
    s->code = r->err.code;
    s->n = r->njobs;
    s->is_cut = r->is_cut;
    for (size_t i = 0; i < r->njobs && i < 20; i++) {
        const struct store_job *j = &r->jobs[i];
        assert_true(!j->spec || str_starts(j->spec, "name: "));
        assert_true(!j->spec == !j->detail);
        assert_true(!j->spec || s->n_specs == i); /* none behind one that has none */
        s->n_specs += j->spec != NULL;
        (void)buf_addf(&s->said, "%s%d", i ? " " : "", (int)j->seq);
        if (j->origin.parent)
            (void)buf_addf(&s->said, ":%s/%s", j->origin.parent + 8, str_or(j->origin.how, "-"));
        if (j->origin.note)
            (void)buf_addf(&s->said, "=%s", j->origin.note);
    }
}

static void read_family(struct bed *b,
                        int64_t seq,
                        const struct store_scope *scope,
                        struct family_seen *ret)
{
    struct bed_text t;
    struct store_job job = bed_job(seq, &t);
    *ret = (struct family_seen){.said = BUF_INIT(4096)};
    bed_settle(b);
    (void)store_list_family(b->s, &(struct store_family_query){.id = job.id, .scope = scope},
                            &(struct store_then){.done = on_family, .arg = ret});
    while (!ret->done)
        (void)uv_run(&b->loop, UV_RUN_ONCE);
}

static void expect_family(struct bed *b,
                          int64_t seq,
                          const struct store_scope *scope,
                          const char *said)
{
    struct family_seen s;
    read_family(b, seq, scope, &s);
    assert_int_equal(s.code, 0);
    assert_false(s.is_cut);
    assert_int_equal(s.n_specs, s.n);
    assert_string_equal(buf_str(&s.said), said);
    buf_release(&s.said);
}

/* parent 0: none. spec NULL: the bed's. */
static void put_child_of(struct bed *b,
                         int64_t seq,
                         int64_t parent,
                         const char *how,
                         const char *spec)
{
    struct bed_text t, of;
    struct store_job job = bed_job(seq, &t), up = bed_job(parent, &of);
    job.project = seq % 2 ? "odd" : "even";
    job.user = "ann";
    job.spec = str_or(spec, job.spec);
    store_put_job(b->s, &job);
    if (parent)
        store_put_origin(b->s, seq, &(struct store_origin){.parent = up.id, .how = how});
}

static void put_child(struct bed *b, int64_t seq, int64_t parent, const char *how)
{
    put_child_of(b, seq, parent, how, NULL);
}

static void test_up_and_down(void **state)
{
    struct bed b;
    struct family_seen s;
    (void)state;
    bed_init(&b, NULL);
    put_child(&b, 1, 0, NULL);
    put_child(&b, 2, 1, "retry");
    put_child(&b, 3, 1, "fork");
    put_child(&b, 4, 3, "resume");
    put_child(&b, 5, 0, NULL);
    put_child(&b, 6, 2, "eval");
    expect_family(&b, 4, NULL, "1 3:01/fork 4:03/resume 2:01/retry 6:02/eval");
    expect_family(&b, 5, NULL, "5");
    read_family(&b, 9, NULL, &s);
    assert_int_equal(s.code, ERR_NOT_FOUND);
    buf_release(&s.said);
    bed_close(&b);
    bed_open(&b, NULL);
    expect_family(&b, 1, NULL, "1 2:01/retry 3:01/fork 6:02/eval 4:03/resume");
    bed_release(&b);
}

static void test_notes(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    put_child(&b, 1, 0, NULL);
    put_child(&b, 2, 1, "fork");
    store_put_note(b.s, 1, "first");
    store_put_note(b.s, 2, "second");
    expect_family(&b, 1, NULL, "1=first 2:01/fork=second");
    store_put_note(b.s, 1, NULL);
    store_put_note(b.s, 2, "other");
    expect_family(&b, 1, NULL, "1 2:01/fork=other");
    bed_release(&b);
}

/* Who sees the odd ones alone sees a tree that begins below the even one, and none of its others.
 */
static void test_out_of_sight(void **state)
{
    static const char *const projects[] = {"odd"};
    const struct store_scope odd = {.user = "bob", .projects = projects, .nprojects = 1};
    const struct store_scope nothing = {.user = "bob"};
    struct bed b;
    struct family_seen s;
    (void)state;
    bed_init(&b, NULL);
    put_child(&b, 2, 0, NULL);
    put_child(&b, 3, 2, "fork");
    put_child(&b, 4, 3, "fork");
    put_child(&b, 5, 3, "fork");
    put_child(&b, 7, 2, "fork");
    put_child(&b, 9, 4, "fork");
    expect_family(&b, 5, &odd, "3 5:03/fork");
    expect_family(&b, 9, &odd, "9");
    read_family(&b, 4, &odd, &s);
    assert_int_equal(s.code, ERR_NOT_FOUND);
    buf_release(&s.said);
    read_family(&b, 5, &nothing, &s);
    assert_int_equal(s.code, ERR_NOT_FOUND);
    buf_release(&s.said);
    bed_release(&b);
}

/* Parents that are younger, oneself, or not there. */
static void test_rows_that_lie(void **state)
{
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    put_child(&b, 1, 2, "fork");
    put_child(&b, 2, 1, "fork");
    put_child(&b, 3, 3, "fork");
    put_child(&b, 4, 77, "fork");
    expect_family(&b, 1, NULL, "1 2:01/fork");
    expect_family(&b, 2, NULL, "1 2:01/fork");
    expect_family(&b, 3, NULL, "3");
    expect_family(&b, 4, NULL, "4");
    bed_release(&b);
}

/* In a line the job that is asked about is there, with ancestors up to a ceiling; in a crowd the
 * first ones are. */
static void test_ceilings(void **state)
{
    enum { LONG = STORE_FAMILY_UP_MAX + 200, BROAD = STORE_FAMILY_MAX + 50 };
    struct bed b;
    struct family_seen s;
    (void)state;
    bed_init(&b, NULL);
    for (int64_t seq = 1; seq <= LONG; seq++)
        put_child(&b, seq, seq - 1, "retry");
    read_family(&b, LONG, NULL, &s);
    assert_int_equal(s.code, 0);
    assert_true(s.is_cut);
    assert_int_equal(s.n, STORE_FAMILY_UP_MAX);
    buf_release(&s.said);
    put_child(&b, LONG + 1, 0, NULL);
    for (int64_t seq = LONG + 2; seq <= LONG + BROAD; seq++)
        put_child(&b, seq, LONG + 1, "fork");
    read_family(&b, LONG + BROAD, NULL, &s);
    assert_true(s.is_cut);
    assert_int_equal(s.n, STORE_FAMILY_MAX);
    buf_release(&s.said);
    bed_release(&b);
}

/* All jobs are told; those behind the ceiling without their texts. */
static void test_texts_ceiling(void **state)
{
    enum { ONE = 1 << 20, FIT = STORE_FAMILY_BYTES_MAX / ONE - 1, ALL = FIT + 4 };
    _cleanup_(buf_release) struct buf spec = BUF_INIT(ONE + 1);
    struct bed b;
    struct family_seen s;
    (void)state;
    (void)buf_adds(&spec, "name: x\n#");
    while (spec.len < ONE)
        (void)buf_addc(&spec, 'x');
    assert_false(spec.failed);
    bed_init(&b, NULL);
    for (int64_t seq = 1; seq <= ALL; seq++)
        put_child_of(&b, seq, seq > 1, "fork", buf_str(&spec));
    read_family(&b, ALL, NULL, &s);
    assert_int_equal(s.code, 0);
    assert_true(s.is_cut);
    assert_int_equal(s.n, ALL);
    assert_int_equal(s.n_specs, FIT);
    buf_release(&s.said);
    bed_release(&b);
}

/* Children that are out of sight are looked at, too: whoever stands behind so many is not found. */
static void test_looks_ceiling(void **state)
{
    static const char *const projects[] = {"odd"};
    const struct store_scope odd = {.user = "bob", .projects = projects, .nprojects = 1};
    static const char rows[] =
        "WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i+1 FROM n WHERE i<=?1)"
        " INSERT INTO job(seq, id, user, project, queued_at, state, live, nnodes, n_gpus_per_node,"
        " priority, started_at, ended_at, attempt, restarts, step) SELECT i, 'many-'||i, 'ann',"
        " CASE WHEN i>?1 THEN 'odd' ELSE 'even' END, 0, 'STOPPED', 0, 1, 0, 0, 0, 0, 0, 0, 0 FROM n";
    static const char origins[] = "INSERT INTO origin(seq, parent, how, step)"
                                  " SELECT seq, 'job-000001', 'fork', 0 FROM job WHERE seq>?1";
    const char *const all[] = {rows, origins};
    struct bed b;
    struct family_seen s;
    sqlite3 *db;
    (void)state;
    bed_init(&b, NULL);
    put_child(&b, 1, 0, NULL);
    bed_close(&b);
    assert_int_equal(sqlite3_open(b.path, &db), SQLITE_OK);
    for (size_t i = 0; i < array_len(all); i++) {
        sqlite3_stmt *st;
        assert_int_equal(sqlite3_prepare_v2(db, all[i], -1, &st, NULL), SQLITE_OK);
        assert_int_equal(sqlite3_bind_int(st, 1, i ? 1 : STORE_FAMILY_LOOKS_MAX + 1), SQLITE_OK);
        assert_int_equal(sqlite3_step(st), SQLITE_DONE);
        assert_int_equal(sqlite3_finalize(st), SQLITE_OK);
    }
    assert_int_equal(sqlite3_close(db), SQLITE_OK);
    bed_open(&b, NULL);
    read_family(&b, 1, &odd, &s);
    assert_int_equal(s.code, 0);
    assert_true(s.is_cut);
    assert_int_equal(s.n, 1);
    buf_release(&s.said);
    bed_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_up_and_down),   cmocka_unit_test(test_notes),
        cmocka_unit_test(test_out_of_sight),  cmocka_unit_test(test_rows_that_lie),
        cmocka_unit_test(test_ceilings),      cmocka_unit_test(test_texts_ceiling),
        cmocka_unit_test(test_looks_ceiling),
    };
    return cmocka_run_group_tests_name("store/family", tests, NULL, NULL);
}
