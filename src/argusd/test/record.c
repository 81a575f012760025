/* SPDX-License-Identifier: Apache-2.0 */
/* A job survives the way into the store's rows and back in every member that decides something. */
#include "argusd/jobs/record.h"
#include "core/job/job_event.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/unit.h"

static struct moment moment_at(usec_t seconds)
{
    return (struct moment){
        .wall = seconds * USEC_SEC, .boot = (seconds - 900) * USEC_SEC, .boot_id = "some-start"};
}

static struct job *queued_job(void)
{
    struct job *j = job_new();
    j->seq = 7;
    const struct job_texts texts = {.id = "train-7",
                                    .name = "it's",
                                    .user = "ann",
                                    .project = "p",
                                    .workload = "grpo",
                                    .cluster = "default"};
    job_set_texts(j, &texts);
    j->pool = xstrdup("");
    j->spec = xstrdup("workload: grpo\n");
    j->priority = 60;
    j->demand = (struct demand){
        .nnodes = 2, .gpus_per_node = 4, .cpus_per_node = 8, .extra_cpus = 1, .driver_cpus = 1};
    j->limits.timeout = 3 * USEC_HOUR;
    j->limits.queue_timeout = USEC_DAY;
    j->limits.stop_grace = USEC_MIN;
    j->restart = (struct restart){.max = 3,
                                  .backoff = USEC_MIN,
                                  .avoid = true,
                                  .preemptible = true,
                                  .failures = 1,
                                  .preemptions = 2,
                                  .given_up = 1,
                                  .pause = USEC_MIN,
                                  .bad_nodes = xstrdup("w7")};
    restart_on_from_text("node_lost,infra,exit:7,fan_broken", &j->restart.on);
    j->queued_at = 1000 * USEC_SEC;
    const struct moment now = moment_at(1000);
    stopwatch_start(&j->watch, &now);
    return j;
}

/* To rows and back, attempts and all. */
static struct job *there_and_back(const struct job *j, struct record_extra *x)
{
    struct buf detail = BUF_INIT(RECORD_DETAIL_MAX);
    const struct record_extra in = {.argv = xstrdup("[\"python3\"]"),
                                    .verl = xstrdup("0.9.1"),
                                    .step = 12,
                                    .idle_learnt = 61 * USEC_MIN,
                                    .held = {.held = 7 * SLOTBOOK_GPU, .idle = 3, .redone = 5}};
    record_detail(j, &in, &detail);
    struct store_job row;
    record_job_row(j, &in, buf_str(&detail), &row);
    assert_int_equal(row.step, 12);
    assert_int_equal(row.gpu_held, 7 * SLOTBOOK_GPU);
    struct job *back = NULL;
    assert_int_equal(record_to_job(&row, &back, x, NULL), 0);
    for (int i = 0; i < j->n_attempts; i++) {
        struct buf text = BUF_INIT(4096);
        struct store_attempt a;
        record_attempt_row(j, &j->attempts[i], &text, &a);
        record_add_attempt(back, &a);
        buf_release(&text);
    }
    buf_release(&detail);
    free(in.argv);
    free(in.verl);
    return back;
}

static void assert_same_restart(const struct restart *a, const struct restart *b)
{
    assert_int_equal(a->max, b->max);
    assert_true(a->on.classes == b->on.classes);
    assert_memory_equal(a->on.codes, b->on.codes, sizeof(a->on.codes));
    assert_true(str_eq(a->on.foreign, b->on.foreign) && str_eq(a->bad_nodes, b->bad_nodes));
    assert_int_equal(a->backoff, b->backoff);
    assert_int_equal(a->avoid, b->avoid);
    assert_int_equal(a->preemptible, b->preemptible);
    assert_int_equal(a->failures, b->failures);
    assert_int_equal(a->preemptions, b->preemptions);
    assert_int_equal(a->given_up, b->given_up);
    assert_int_equal(a->pause, b->pause);
}

static void assert_same_watch(const struct stopwatch *a, const struct stopwatch *b)
{
    assert_int_equal(a->spent, b->spent);
    assert_int_equal(a->running, b->running);
    assert_int_equal(a->wall, b->wall);
    assert_int_equal(a->boot, b->boot);
    assert_string_equal(a->boot_id, b->boot_id);
}

static void assert_same_gang(const struct gang *a, const struct gang *b)
{
    assert_int_equal(a->n, b->n);
    for (size_t i = 0; i < a->n; i++) {
        assert_string_equal(a->v[i].name, b->v[i].name);
        assert_true(a->v[i].gpus == b->v[i].gpus);
    }
}

static void assert_same_proof(const struct proof *a, const struct proof *b)
{
    assert_int_equal(a->on_worker, b->on_worker);
    assert_string_equal(a->node, b->node);
    assert_string_equal(a->driver_ip, b->driver_ip);
    assert_int_equal(a->pid, b->pid);
    assert_int_equal(a->checked_at, b->checked_at);
}

static void assert_same_job(const struct job *a, const struct job *b)
{
    assert_string_equal(a->id, b->id);
    assert_string_equal(a->name, b->name);
    assert_string_equal(a->spec, b->spec);
    assert_int_equal(a->state, b->state);
    assert_int_equal(a->flags, b->flags);
    assert_int_equal(a->priority, b->priority);
    assert_int_equal(a->demand.nnodes, b->demand.nnodes);
    assert_true(demand_gpus(&a->demand) == demand_gpus(&b->demand));
    assert_int_equal(a->limits.timeout, b->limits.timeout);
    assert_int_equal(a->limits.queue_timeout, b->limits.queue_timeout);
    assert_int_equal(a->limits.stop_grace, b->limits.stop_grace);
    assert_int_equal(a->queued_at, b->queued_at);
    assert_int_equal(a->started_at, b->started_at);
    assert_int_equal(a->ended_at, b->ended_at);
    assert_int_equal(a->unknown_since, b->unknown_since);
    assert_int_equal(a->stop_cause, b->stop_cause);
    assert_int_equal(a->stop_asked_at, b->stop_asked_at);
    assert_same_gang(&a->gang, &b->gang);
    assert_same_proof(job_proof(a), job_proof(b));
    assert_true(str_eq(a->held_by, b->held_by));
    assert_int_equal(a->ran, b->ran);
    assert_same_restart(&a->restart, &b->restart);
    if (!job_state_is_terminal(a->state))
        assert_same_watch(&a->watch, &b->watch);
    assert_string_equal(job_state_reason(a)->code, job_state_reason(b)->code);
    assert_string_equal(job_state_reason(a)->text, job_state_reason(b)->text);
    assert_int_equal(a->has_exit, b->has_exit);
    assert_int_equal(a->n_attempts, b->n_attempts);
    for (int i = 0; i < a->n_attempts; i++) {
        assert_string_equal(a->attempts[i].ray_id, b->attempts[i].ray_id);
        assert_int_equal(a->attempts[i].phase, b->attempts[i].phase);
        assert_int_equal(a->attempts[i].accepted_at, b->attempts[i].accepted_at);
        assert_int_equal(a->attempts[i].ended_at, b->attempts[i].ended_at);
        assert_int_equal(a->attempts[i].outcome, b->attempts[i].outcome);
        assert_int_equal(a->attempts[i].fault_at, b->attempts[i].fault_at);
        assert_int_equal(a->attempts[i].noticed_at, b->attempts[i].noticed_at);
        assert_int_equal(a->attempts[i].finding, b->attempts[i].finding);
        assert_true(str_eq(a->attempts[i].node, b->attempts[i].node));
        assert_true(str_eq(a->attempts[i].slots, b->attempts[i].slots));
        assert_true(a->attempts[i].gpu_s == b->attempts[i].gpu_s);
        assert_true(a->attempts[i].gpu_idle_s == b->attempts[i].gpu_idle_s);
        assert_true(a->attempts[i].gpu_unknown_s == b->attempts[i].gpu_unknown_s);
        assert_true(a->attempts[i].gpu_redone_s == b->attempts[i].gpu_redone_s);
    }
    assert_null(job_check(b));
}

static void check_round(const struct job *j)
{
    struct record_extra x = {0};
    struct job *back = there_and_back(j, &x);
    assert_same_job(j, back);
    assert_string_equal(x.argv, "[\"python3\"]");
    assert_string_equal(x.verl, "0.9.1");
    assert_int_equal(x.idle_learnt, 61 * USEC_MIN);
    assert_int_equal(x.held.idle, 3);
    assert_int_equal(x.held.redone, 5);
    record_extra_release(&x);
    job_free(back);
}

static void test_where_its_driver_runs(void **state)
{
    struct job *j = queued_job();
    (void)state;
    const struct proof proof = {.on_worker = 1,
                                .driver_ip = "10.0.0.2",
                                .node = "w1",
                                .pid = 77,
                                .checked_at = 1200 * USEC_SEC};
    check_round(j); /* nobody has looked yet */
    job_set_proof(j, &proof);
    assert_same_proof(job_proof(j), &proof);
    check_round(j);
    job_free(j);
}

static void test_a_whole_life(void **state)
{
    (void)state;
    const struct job_end end = {.cause = "exit", .code = 3, .signal = "", .text = "exit code 3"};
    const struct job_end failed = {.cause = "exit",
                                   .code = 7,
                                   .signal = "",
                                   .finding = FINDING_HOST_OOM,
                                   .text = "killed",
                                   .fault_at = 2001 * USEC_SEC,
                                   .noticed_at = 2002 * USEC_SEC};
    struct gang gang;
    gang_from_text("w1:0,w2:3", &gang);
    const struct job_event life[] = {
        {.kind = JOB_EV_HELD, .by = "root"},
        {.kind = JOB_EV_RELEASED},
        {.kind = JOB_EV_ADMITTED, .gang = &gang},
        {.kind = JOB_EV_ACCEPTED},
        {.kind = JOB_EV_STARTED},
        {.kind = JOB_EV_BLIND, .text = "nobody can see it"},
        {.kind = JOB_EV_SEEN},
        {.kind = JOB_EV_ENDED, .end = &failed},
        {.kind = JOB_EV_ADMITTED, .gang = &gang},
        {.kind = JOB_EV_STARTED},
        {.kind = JOB_EV_STOP, .cause = STOP_USER, .text = "asked"},
        {.kind = JOB_EV_ENDED, .end = &end},
    };
    struct job *j = queued_job();
    check_round(j);
    for (size_t i = 0; i < array_len(life); i++) {
        const struct moment now = moment_at(2000 + i);
        assert_true(job_apply(j, &life[i], &now));
        check_round(j);
    }
    assert_int_equal(j->state, JOB_STOPPED);
    assert_true(j->attempts[0].outcome == ATTEMPT_FAILED && j->attempts[0].node);
    assert_string_equal(j->attempts[0].slots, "w1:0,w2:3");
    j->attempts[0].gpu_s = 12.5; /* the book of the slots says so, no event */
    j->attempts[0].gpu_idle_s = 3.001;
    j->attempts[1].gpu_s = 7;
    j->attempts[1].gpu_unknown_s = 6;
    j->attempts[1].gpu_redone_s = 0.5;
    check_round(j);
    gang_release(&gang);
    job_free(j);
}

/* A row of before there were stopwatches: the wall clock is all there is. */
static void test_a_row_without_a_stopwatch(void **state)
{
    (void)state;
    const struct store_job row = {.id = "a",
                                  .user = "ann",
                                  .state = "QUEUED",
                                  .queued_at = 1000 * USEC_SEC,
                                  .detail = "{\"queue_timeout\":5}"};
    struct record_extra x = {0};
    struct job *j = NULL;
    assert_int_equal(record_to_job(&row, &j, &x, NULL), 0);
    const struct moment now = moment_at(1010);
    assert_int_equal(stopwatch_read(&j->watch, &now), 10 * USEC_SEC);
    assert_int_equal(j->restart.max, 0);
    record_extra_release(&x);
    job_free(j);
}

/* A class and a word of restart.on that only a newer Argus knows stay as they are. */
static void test_words_of_a_newer_store(void **state)
{
    (void)state;
    const struct store_job row = {.id = "a",
                                  .state = "FAILED",
                                  .detail = "{\"finding\":\"fan_broken\",\"restart\":{\"max\":1,"
                                            "\"on\":\"node_lost,fan_broken\"}}"};
    struct record_extra x = {0};
    struct job *j = NULL;
    struct buf detail = BUF_INIT(RECORD_DETAIL_MAX);
    assert_int_equal(record_to_job(&row, &j, &x, NULL), 0);
    assert_int_equal(j->finding, FINDING_UNKNOWN);
    assert_string_equal(record_finding_word(j, &x), "fan_broken");
    record_detail(j, &x, &detail);
    assert_non_null(strstr(buf_str(&detail), "\"finding\":\"fan_broken\""));
    assert_non_null(strstr(buf_str(&detail), "\"on\":\"node_lost,fan_broken\""));
    j->finding = FINDING_GPU_OOM; /* found since */
    assert_string_equal(record_finding_word(j, &x), "gpu_oom");
    buf_release(&detail);
    record_extra_release(&x);
    job_free(j);
}

/* A row of before GPUs were known has the nodes alone; the driver's comes first. */
static void test_a_row_with_names_alone(void **state)
{
    (void)state;
    const struct store_job row = {
        .id = "a",
        .state = "RUNNING",
        .detail = "{\"nodes\":\"w1,w2\",\"driver_node\":\"w2\",\"slots\":null,\"share\":1}"};
    struct record_extra x = {0};
    struct job *j = NULL;
    assert_int_equal(record_to_job(&row, &j, &x, NULL), 0);
    assert_int_equal(j->gang.n, 2);
    assert_string_equal(gang_driver(&j->gang), "w2");
    assert_true(gang_has(&j->gang, "w1") && !j->gang.v[0].gpus && !j->gang.v[1].gpus);
    record_extra_release(&x);
    job_free(j);
}

/* What advice is made from is read with the keys that record_detail() writes. */
static void test_a_row_of_the_past(void **state)
{
    (void)state;
    struct job *j = queued_job();
    struct buf detail = BUF_INIT(RECORD_DETAIL_MAX);
    struct record_extra x = {.argv = xstrdup("[\"a=1\"]"),
                             .verl = xstrdup("0.9.1"),
                             .metrics = xstrdup("{\"step_seconds\":2.5}"),
                             .finding = {.json = xstrdup("{\"class\":\"gpu_oom\",\"attempt\":1}")}};
    struct store_job row;
    struct past_row past;
    j->ran = 7 * USEC_SEC;
    j->finding = FINDING_NODE_LOST;
    record_detail(j, &x, &detail);
    record_job_row(j, &x, buf_str(&detail), &row);
    row.state = "FAILED";
    json_t *v = NULL;
    assert_int_equal(json_parse(buf_str(&detail), detail.len, RECORD_DETAIL_MAX, &v, NULL), 0);
    record_past_row(&row, v, &past);
    assert_string_equal(past.id, "train-7");
    assert_string_equal(past.verl, "0.9.1");
    assert_int_equal(past.state, JOB_FAILED);
    assert_int_equal(json_array_size(past.argv), 1);
    assert_true(json_get_real(past.metrics, "step_seconds", 0) > 2);
    assert_int_equal(past.ran, 7 * USEC_SEC);
    assert_int_equal(past.finding, FINDING_NODE_LOST);
    assert_int_equal(past.newest, FINDING_GPU_OOM);
    assert_int_equal(past.failures, 1);
    json_decref(v);
    buf_release(&detail);
    record_extra_release(&x);
    job_free(j);
}

static void test_flags_both_ways(void **state)
{
    (void)state;
    for (unsigned f = 0; f < 32; f++) {
        unsigned flags = (f & 7) | (f & 8 ? JOB_FLAG_HUNG : 0) | (f & 16 ? JOB_FLAG_IDLE : 0);
        assert_int_equal(record_flags_from_string(record_flags_to_string(flags)), flags);
    }
    assert_int_equal(record_flags_from_string(record_flags_to_string(JOB_FLAG_HOLDING)),
                     JOB_FLAG_HOLDING);
    assert_int_equal(record_flags_from_string(NULL), 0);
}

static void test_rows_that_are_none_of_ours(void **state)
{
    (void)state;
    const struct store_job rows[] = {
        {.id = "a", .state = "SLEEPING", .detail = "{}"},
        {.id = "a", .state = "RUNNING", .detail = "{"},
        {.id = "a", .detail = "{}"},
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        struct record_extra x = {0};
        struct job *j = NULL;
        struct err err = {0};
        assert_int_equal(record_to_job(&rows[i], &j, &x, &err), -EINVAL);
        assert_null(j);
        assert_non_null(strstr(err.text, "'a'"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_whole_life),
        cmocka_unit_test(test_where_its_driver_runs),
        cmocka_unit_test(test_a_row_without_a_stopwatch),
        cmocka_unit_test(test_words_of_a_newer_store),
        cmocka_unit_test(test_a_row_with_names_alone),
        cmocka_unit_test(test_a_row_of_the_past),
        cmocka_unit_test(test_flags_both_ways),
        cmocka_unit_test(test_rows_that_are_none_of_ours),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
