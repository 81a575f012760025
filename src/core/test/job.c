/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a job, and random events that can never break its invariants. */
#include "core/job.h"

#include <string.h>

#include "base/str.h"
#include "base/unit.h"

static struct job *new_job(void)
{
    struct job *j = job_new();
    set_str(&j->id, "t1");
    set_str(&j->user, "alice");
    j->queued_at = 1000;
    j->demand.nnodes = 1;
    return j;
}

static bool apply(struct job *j, enum job_event_kind kind, usec_t now)
{
    static const struct job_end end = {.cause = "exit", .signal = "", .text = "it ended"};
    struct job_event e = {.kind = kind,
                          .cause = STOP_USER,
                          .nodes = "w1",
                          .driver_node = "w1",
                          .text = "because",
                          .end = &end};
    bool changed = job_apply(j, &e, now);
    const char *broken = job_check(j);
    if (broken)
        fail_msg("after %s: %s", job_event_to_string(kind), broken);
    return changed;
}

static void test_words_both_ways(void **state)
{
    (void)state;
    for (int i = 0; i < JOB_STATE_END; i++)
        assert_int_equal(job_state_from_string(job_state_to_string((enum job_state)i)), i);
    assert_int_equal(job_state_from_string("nope"), JOB_STATE_END);
    for (int i = 0; i < ATTEMPT_PHASE_END; i++)
        assert_int_equal(attempt_phase_from_string(attempt_phase_to_string((enum attempt_phase)i)),
                         i);
    for (int i = 0; i <= STOP_FINDING; i++)
        assert_int_equal(stop_cause_from_string(stop_cause_to_string((enum stop_cause)i)), i);
}

static void test_a_good_life(void **state)
{
    (void)state;
    struct job *j = new_job();
    assert_int_equal(job_act(j), JOB_ACT_NONE);
    assert_true(apply(j, JOB_EV_ADMITTED, 2000));
    assert_int_equal(job_act(j), JOB_ACT_SEND);
    assert_string_equal(job_attempt(j)->ray_id, "t1");
    assert_true(apply(j, JOB_EV_ACCEPTED, 3000));
    assert_false(apply(j, JOB_EV_ACCEPTED, 3001));
    assert_int_equal(job_act(j), JOB_ACT_NONE);
    assert_true(apply(j, JOB_EV_STARTED, 4000));
    assert_int_equal(j->state, JOB_RUNNING);
    assert_false(apply(j, JOB_EV_ADMITTED, 4001));
    assert_true(apply(j, JOB_EV_ENDED, 5000));
    assert_int_equal(j->state, JOB_SUCCEEDED);
    assert_false(apply(j, JOB_EV_STOP, 5001));
    assert_int_equal(job_act(j), JOB_ACT_NONE);
    job_free(j);
}

static void test_requeued_gets_a_new_id(void **state)
{
    (void)state;
    struct job *j = new_job();
    apply(j, JOB_EV_ADMITTED, 2000);
    apply(j, JOB_EV_ACCEPTED, 2500);
    assert_true(apply(j, JOB_EV_REQUEUED, 3000));
    assert_int_equal(j->state, JOB_QUEUED);
    apply(j, JOB_EV_ADMITTED, 4000);
    assert_string_equal(job_attempt(j)->ray_id, "t1-a2");
    assert_int_equal(j->attempts[0].phase, ATTEMPT_ABANDONED);
    job_free(j);
}

static enum job_state end_as(enum stop_cause cause, const char *how, int code)
{
    struct job *j = new_job();
    apply(j, JOB_EV_ADMITTED, 2000);
    apply(j, JOB_EV_STARTED, 3000);
    if (cause != STOP_NONE) {
        struct job_event stop = {.kind = JOB_EV_STOP, .cause = cause, .text = "so"};
        assert_true(job_apply(j, &stop, 3500));
        assert_int_equal(job_act(j), JOB_ACT_STOP);
        assert_false(job_apply(j, &stop, 3600));
    }
    struct job_end end = {.cause = how, .code = code, .signal = "", .text = "end"};
    struct job_event e = {.kind = JOB_EV_ENDED, .end = &end};
    assert_true(job_apply(j, &e, 4000));
    assert_null(job_check(j));
    enum job_state s = j->state;
    job_free(j);
    return s;
}

static void test_what_it_ends_as(void **state)
{
    (void)state;
    assert_int_equal(end_as(STOP_NONE, "exit", 0), JOB_SUCCEEDED);
    assert_int_equal(end_as(STOP_NONE, "exit", 1), JOB_FAILED);
    assert_int_equal(end_as(STOP_NONE, "lost", -1), JOB_FAILED);
    assert_int_equal(end_as(STOP_USER, "stopped", -1), JOB_STOPPED);
    assert_int_equal(end_as(STOP_USER, "stopped", 0), JOB_STOPPED);
    assert_int_equal(end_as(STOP_USER, "exit", 0), JOB_SUCCEEDED);
    assert_int_equal(end_as(STOP_TIMEOUT, "stopped", -1), JOB_TIMEOUT);
    assert_int_equal(end_as(STOP_FINDING, "exit", 0), JOB_FAILED);
}

static void test_reserved_ids(void **state)
{
    (void)state;
    assert_true(job_id_is_reserved("x-a2"));
    assert_true(job_id_is_reserved("x-trial"));
    assert_false(job_id_is_reserved("x-alpha"));
    assert_false(job_id_is_reserved("x-a"));
    assert_false(job_id_is_reserved("a2"));
}

static void test_deadlines(void **state)
{
    (void)state;
    struct job *j = new_job();
    assert_int_equal(job_deadline(j), 0);
    j->queue_timeout = 50;
    j->timeout = 70;
    assert_int_equal(job_deadline(j), 1050);
    apply(j, JOB_EV_ADMITTED, 2000);
    assert_int_equal(job_deadline(j), 0);
    apply(j, JOB_EV_STARTED, 3000);
    assert_int_equal(job_deadline(j), 3070);
    job_free(j);
}

/* Any order of events, doubled and late ones too. */
static void test_random_events(void **state)
{
    (void)state;
    unsigned rng = 1;
    for (int round = 0; round < 2000; round++) {
        struct job *j = new_job();
        enum job_state last = j->state;
        for (usec_t t = 2000; t < 2040; t++) {
            rng = rng * 1664525 + 1013904223;
            apply(j, (enum job_event_kind)((rng >> 12) % JOB_EV_END), t);
            if (job_state_is_terminal(last))
                assert_int_equal(j->state, last); /* over is over */
            last = j->state;
        }
        job_free(j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_both_ways),        cmocka_unit_test(test_a_good_life),
        cmocka_unit_test(test_requeued_gets_a_new_id), cmocka_unit_test(test_what_it_ends_as),
        cmocka_unit_test(test_reserved_ids),           cmocka_unit_test(test_deadlines),
        cmocka_unit_test(test_random_events)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
