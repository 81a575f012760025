/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of store_list_jobs(): the jobs behind a number of the usage, by the class of a failure and
 * by how many GPUs they have. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "store/test/bed.h"

#include <cmocka.h>

/* A job and what its attempts say of their ends. */
static const struct behind {
    const char *id, *state;
    int64_t nnodes;
    double gpus_per_node;
    const char *attempts[3];
} rows[] = {
    {"went well", "SUCCEEDED", 1, 8, {"{\"outcome\":\"done\"}"}},
    {"failed",
     "FAILED",
     2,
     8,
     {"{\"outcome\":\"failed\",\"class\":\"gpu_oom\"}",
      "{\"outcome\":\"failed\",\"class\":\"node_lost\",\"node\":\"n1\"}"}},
    {"failed once",
     "SUCCEEDED",
     1,
     1,
     {"{\"outcome\":\"failed\",\"class\":\"node_lost\",\"node\":\"n12\"}",
      "{\"outcome\":\"done\",\"node\":\"n3\"}"}},
    {"nobody knows", "FAILED", 1, 0.25, {"{\"outcome\":\"failed\"}"}},
    {"was hung, and stopped",
     "STOPPED",
     1,
     0,
     {"{\"outcome\":\"done\",\"class\":\"timeout_or_hang\"}"}},
    {"is damaged", "FAILED", 7, 10.0 / 7, {"{", NULL}},
    {"waits", "QUEUED", 16, 8, {NULL}},
    {"is of before outcomes", "FAILED", 1, 3, {"{}", "{\"class\":\"gpu_oom\"}"}},
};

static void put_behind(struct bed *b, int64_t seq, const struct behind *row)
{
    int n = 0;
    for (; n < 3 && row->attempts[n]; n++)
        store_put_attempt(b->s, &(struct store_attempt){.job_seq = seq,
                                                        .k = n + 1,
                                                        .ray_id = "r",
                                                        .state = "ENDED",
                                                        .started_at = USEC_DAY,
                                                        .ended_at = 2 * USEC_DAY,
                                                        .detail = row->attempts[n]});
    store_put_job(b->s, &(struct store_job){.seq = seq,
                                            .id = row->id,
                                            .user = "ann",
                                            .queued_at = USEC_DAY,
                                            .state = row->state,
                                            .live = str_eq(row->state, "QUEUED"),
                                            .nnodes = row->nnodes,
                                            .n_gpus_per_node = row->gpus_per_node,
                                            .attempt = n,
                                            .started_at = n ? USEC_DAY : 0,
                                            .ended_at = n ? 2 * USEC_DAY : 0,
                                            .spec = "spec",
                                            .detail = "{}"});
}

/* seqs: the numbers of the rows, from 1, newest first; "" for none. In the newest order, in another
 * one, and counted. */
static void expect_behind(struct bed *b, struct store_job_query q, const char *seqs)
{
    for (int turn = 0; turn < 2; turn++) {
        struct buf found = BUF_INIT(256);
        struct bed_answer a;
        q.limit = 100;
        q.want_count = true;
        q.sort = turn ? STORE_SORT_ID : STORE_SORT_NEWEST;
        bed_list(b, &q, &a);
        assert_string_equal(a.err.text, "");
        for (int64_t seq = (int64_t)array_len(rows); seq > 0; seq--)
            for (size_t i = 0; i < a.njobs; i++)
                if (a.job_seqs[i] == seq)
                    (void)buf_addf(&found, "%lld", (long long)seq);
        assert_string_equal(buf_str(&found), seqs);
        assert_int_equal(a.total, strlen(seqs));
        buf_release(&found);
        bed_answer_release(&a);
    }
}

static void finds_jobs_by_the_class_of_a_failure(void **state)
{
    static const struct {
        const char *failure, *seqs;
    } cases[] = {{"gpu_oom", "82"},          {"node_lost", "32"}, {"node_lost,gpu_oom", "832"},
                 {"unknown", "84"},          {"node", ""},        {"timeout_or_hang", ""},
                 {"unknown,gpu_oom", "842"}, {NULL, "87654321"}};
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    for (size_t i = 0; i < array_len(rows); i++)
        put_behind(&b, (int64_t)i + 1, &rows[i]);
    bed_settle(&b);
    for (size_t i = 0; i < array_len(cases); i++)
        expect_behind(&b, (struct store_job_query){.failure = cases[i].failure}, cases[i].seqs);
    /* Beside other filters, of which one drives. */
    static const char *const states[] = {"SUCCEEDED"};
    expect_behind(
        &b, (struct store_job_query){.failure = "node_lost", .states = states, .nstates = 1}, "3");
    expect_behind(&b, (struct store_job_query){.failure = "node_lost", .user = "ann"}, "32");
    expect_behind(&b, (struct store_job_query){.failure = "node_lost", .user = "bob"}, "");
    expect_behind(&b, (struct store_job_query){.failure = "gpu_oom", .ran_since = USEC_DAY}, "82");
    expect_behind(&b, (struct store_job_query){.failure = "gpu_oom", .ran_since = 3 * USEC_DAY},
                  "");
    bed_release(&b);
}

static void finds_jobs_by_the_node_at_fault(void **state)
{
    static const struct {
        const char *node, *failure, *seqs;
    } cases[] = {{"n1", NULL, "2"},     {"n12", NULL, "3"},       {"n12,n1", NULL, "32"},
                 {"n3", NULL, ""},      {"n", NULL, ""},          {"", NULL, ""},
                 {"n1", "gpu_oom", ""}, {"n1", "node_lost", "2"}, {"n2", NULL, ""}};
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    for (size_t i = 0; i < array_len(rows); i++)
        put_behind(&b, (int64_t)i + 1, &rows[i]);
    bed_settle(&b);
    for (size_t i = 0; i < array_len(cases); i++)
        expect_behind(
            &b,
            (struct store_job_query){.failure_node = cases[i].node, .failure = cases[i].failure},
            cases[i].seqs);
    bed_release(&b);
}

static void finds_jobs_by_their_gpus(void **state)
{
    static const struct {
        int64_t least, most;
        const char *seqs;
    } cases[] = {{0, 0, "5"},          {1, 1, "43"},    {8, 8, "1"},
                 {2, 16, "8621"},      {10, 10, "6"},   {17, 64, ""},
                 {65, INT32_MAX, "7"}, {128, 128, "7"}, {0, INT32_MAX, "87654321"}};
    struct bed b;
    (void)state;
    bed_init(&b, NULL);
    for (size_t i = 0; i < array_len(rows); i++)
        put_behind(&b, (int64_t)i + 1, &rows[i]);
    bed_settle(&b);
    for (size_t i = 0; i < array_len(cases); i++)
        expect_behind(&b,
                      (struct store_job_query){.by_gpus = true,
                                               .gpus_least = cases[i].least,
                                               .gpus_most = cases[i].most},
                      cases[i].seqs);
    expect_behind(&b,
                  (struct store_job_query){
                      .by_gpus = true, .gpus_least = 1, .gpus_most = 16, .failure = "gpu_oom"},
                  "82");
    bed_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_jobs_by_the_class_of_a_failure),
        cmocka_unit_test(finds_jobs_by_the_node_at_fault),
        cmocka_unit_test(finds_jobs_by_their_gpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
