/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a job, and random events that can never break its invariants. */
#include "core/job/job_event.h"

#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "base/unit.h"

static struct moment at(usec_t t)
{
    return (struct moment){.wall = t, .boot = t, .boot_id = "b"};
}

static bool apply_event(struct job *j, const struct job_event *e, usec_t now)
{
    struct moment m = at(now);
    bool changed = job_apply(j, e, &m);
    const char *broken = job_check(j);
    if (broken)
        fail_msg("after %s: %s", job_event_to_string(e->kind), broken);
    return changed;
}

static usec_t in_state(const struct job *j, usec_t now)
{
    struct moment m = at(now);
    return stopwatch_read(&j->watch, &m);
}

static struct job *new_job(void)
{
    struct moment m = at(1000);
    struct job *j = job_new();
    job_set_texts(j, &(struct job_texts){.id = "t1", .user = "alice"});
    j->queued_at = 1000;
    j->demand.nnodes = 1;
    stopwatch_start(&j->watch, &m);
    return j;
}

/* In English. */
static void says(const struct job *j, const char *want)
{
    const struct reason *why = job_state_reason(j);
    char said[JOB_REASON_TEXT_MAX];
    message_to_string(why->code, why->text, true, said, sizeof(said));
    assert_string_equal(said, want);
}

static bool apply(struct job *j, enum job_event_kind kind, usec_t now)
{
    static const struct job_end end = {.cause = "exit", .signal = "", .text = "it ended"};
    char name[] = "w1";
    struct gang_node node = {name, 1};
    struct job_event e = {.kind = kind,
                          .cause = STOP_USER,
                          .gang = &(struct gang){&node, 1},
                          .text = "because",
                          .end = &end};
    return apply_event(j, &e, now);
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
    for (int i = 0; i < STOP_END; i++)
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

/* The lease of an attempt stays with it, and it waited since the one before it ended. */
static void test_what_an_attempt_had(void **state)
{
    (void)state;
    struct job *j = new_job();
    apply(j, JOB_EV_ADMITTED, 2000);
    apply(j, JOB_EV_REQUEUED, 3000);
    apply(j, JOB_EV_ADMITTED, 4000);
    apply(j, JOB_EV_STARTED, 4500);
    apply(j, JOB_EV_ENDED, 5000);
    assert_int_equal(j->n_attempts, 2);
    assert_string_equal(j->attempts[0].slots, "w1:0");
    assert_string_equal(j->attempts[1].slots, "w1:0");
    assert_int_equal(job_attempt_queued_at(j, 1), 1000);
    assert_int_equal(job_attempt_queued_at(j, 2), 3000);
    job_free(j);
}

/* A lease whose text is long is not kept with each attempt: the job has it as long as it lasts. */
static void test_a_very_wide_attempt(void **state)
{
    (void)state;
    char name[] = "a-node-with-a-name-of-some-length";
    struct gang_node *nodes = xcalloc(1000, sizeof(*nodes));
    for (size_t i = 0; i < 1000; i++)
        nodes[i] = (struct gang_node){name, 255};
    const struct job_event e = {.kind = JOB_EV_ADMITTED, .gang = &(struct gang){nodes, 1000}};
    struct job *j = new_job();
    assert_true(apply_event(j, &e, 2000));
    assert_null(job_attempt(j)->slots);
    assert_int_equal(j->gang.n, 1000);
    job_free(j);
    free(nodes);
}

static enum job_state end_as(enum stop_cause cause, const char *how, int code)
{
    struct job *j = new_job();
    apply(j, JOB_EV_ADMITTED, 2000);
    apply(j, JOB_EV_STARTED, 3000);
    if (cause != STOP_NONE) {
        struct job_event stop = {.kind = JOB_EV_STOP, .cause = cause, .text = "so"};
        assert_true(apply_event(j, &stop, 3500));
        assert_int_equal(job_act(j), JOB_ACT_STOP);
        assert_false(apply_event(j, &stop, 3600));
    }
    struct job_end end = {.cause = how, .code = code, .signal = "", .text = "end"};
    struct job_event e = {.kind = JOB_EV_ENDED, .end = &end};
    assert_true(apply_event(j, &e, 4000));
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

static void test_limits_of_states(void **state)
{
    (void)state;
    struct job *j = new_job();
    assert_int_equal(job_limit(j, 20), 0);
    j->limits.queue_timeout = 50;
    j->limits.timeout = 70;
    j->limits.stop_grace = 5;
    assert_int_equal(job_limit(j, 20), 50);
    apply(j, JOB_EV_ADMITTED, 2000);
    assert_int_equal(job_limit(j, 20), 20);
    assert_int_equal(in_state(j, 2007), 7);
    apply(j, JOB_EV_ACCEPTED, 2100); /* what it waited to be sent is not held against it */
    assert_int_equal(in_state(j, 2107), 7);
    apply(j, JOB_EV_STARTED, 3000);
    assert_int_equal(job_limit(j, 20), 70);
    apply(j, JOB_EV_BLIND, 3010);
    assert_int_equal(in_state(j, 3030), 30);
    apply(j, JOB_EV_STOP, 3050);
    assert_int_equal(job_limit(j, 20), 5 + JOB_STOP_OVERDUE);
    assert_int_equal(in_state(j, 3051), 1);
    apply(j, JOB_EV_ENDED, 3060);
    assert_int_equal(job_limit(j, 20), 0);
    assert_int_equal(j->ran, 60);
    job_free(j);
}

static void test_deadlines_for_people(void **state)
{
    (void)state;
    struct job *j = new_job();
    struct moment now = {.wall = 1000 + 7, .boot = 1000 + 8, .boot_id = "b"};
    assert_int_equal(job_deadline(j, 20, &now), 0);
    j->limits.queue_timeout = 50;
    assert_int_equal(job_deadline(j, 20, &now), 1050);
    now.wall += USEC_DAY; /* set forward */
    assert_int_equal(job_deadline(j, 20, &now), USEC_DAY - USEC_SEC + 1050);
    apply(j, JOB_EV_HELD, 1020);
    assert_int_equal(job_deadline(j, 20, &now), 0);
    apply(j, JOB_EV_RELEASED, 2000);
    now = at(2005);
    assert_int_equal(job_deadline(j, 20, &now), 2030);
    apply(j, JOB_EV_STOP, 2010);
    assert_int_equal(job_deadline(j, 20, &now), 0);
    job_free(j);
}

static void test_held_time_is_not_counted(void **state)
{
    (void)state;
    struct job *j = new_job();
    struct job_event hold = {.kind = JOB_EV_HELD, .by = "root"};
    assert_true(apply_event(j, &hold, 1010));
    assert_false(apply(j, JOB_EV_HELD, 1020)); /* who held it first holds it */
    assert_string_equal(j->held_by, "root");
    assert_int_equal(in_state(j, 5000), 10);
    assert_true(apply(j, JOB_EV_RELEASED, 5000));
    assert_false(apply(j, JOB_EV_RELEASED, 5001));
    assert_null(j->held_by);
    assert_int_equal(in_state(j, 5005), 15);
    apply(j, JOB_EV_HELD, 5010);
    assert_true(apply(j, JOB_EV_STOP, 5020));
    assert_int_equal(j->flags, 0);
    job_free(j);
}

static struct job *running_job(int max, const char *on)
{
    struct job *j = new_job();
    j->restart = (struct restart){.max = max, .backoff = 100, .avoid = true, .preemptible = true};
    restart_on_from_text(on, &j->restart.on);
    apply(j, JOB_EV_ADMITTED, 2000);
    apply(j, JOB_EV_STARTED, 3000);
    return j;
}

static bool end_with(struct job *j, const char *cause, enum finding_class finding, usec_t now)
{
    struct job_end e = {.cause = cause, .code = -1, .signal = "", .finding = finding, .text = "so"};
    struct job_event event = {.kind = JOB_EV_ENDED, .end = &e};
    return apply_event(j, &event, now);
}

static void test_preempted_goes_back_and_on(void **state)
{
    (void)state;
    struct job *j = running_job(1, "node_lost");
    struct job_event preempt = {.kind = JOB_EV_STOP, .cause = STOP_PREEMPTED, .text = "for p"};
    assert_true(job_is_preemptible(j));
    assert_true(apply_event(j, &preempt, 3100));
    assert_false(job_is_preemptible(j));
    assert_int_equal(job_act(j), JOB_ACT_STOP);
    assert_true(end_with(j, "stopped", FINDING_NONE, 3150));
    assert_int_equal(j->state, JOB_QUEUED);
    assert_int_equal(j->flags, JOB_FLAG_RESTARTING);
    assert_int_equal(j->restart.preemptions, 1);
    assert_int_equal(j->restart.failures, 0);
    assert_int_equal(j->ran, 150);
    assert_string_equal(job_state_reason(j)->code, "preempted");
    assert_null(j->restart.bad_nodes);
    struct moment now = at(3151);
    assert_false(job_is_pausing(j, &now));
    assert_false(apply_event(j, &preempt, 3160)); /* it holds nothing */
    apply(j, JOB_EV_ADMITTED, 4000);
    assert_string_equal(job_attempt(j)->ray_id, "t1-a2");
    assert_int_equal(j->started_at, 0);
    apply(j, JOB_EV_STARTED, 4100);
    assert_int_equal(j->flags, 0);
    /* Somebody's stop overrules it; work that was done meanwhile is done. */
    assert_true(apply_event(j, &preempt, 4200));
    assert_true(apply(j, JOB_EV_STOP, 4210));
    assert_int_equal(j->stop_cause, STOP_USER);
    assert_false(apply_event(j, &preempt, 4220));
    assert_true(end_with(j, "stopped", FINDING_NONE, 4230));
    assert_int_equal(j->state, JOB_STOPPED);
    job_free(j);
}

static void test_preempted_but_done_or_not_begun(void **state)
{
    (void)state;
    struct job_event preempt = {.kind = JOB_EV_STOP, .cause = STOP_PREEMPTED, .text = "for p"};
    struct job *j = running_job(1, "node_lost");
    assert_true(apply_event(j, &preempt, 3100));
    struct job_end good = {.cause = "exit", .code = 0, .signal = "", .text = "done"};
    struct job_event done = {.kind = JOB_EV_ENDED, .end = &good};
    assert_true(apply_event(j, &done, 3150));
    assert_int_equal(j->state, JOB_SUCCEEDED);
    job_free(j);
    j = new_job();
    apply(j, JOB_EV_ADMITTED, 2000);
    assert_true(apply_event(j, &preempt, 2100));
    assert_true(apply(j, JOB_EV_REQUEUED, 2200));
    assert_int_equal(j->state, JOB_QUEUED);
    assert_int_equal(j->restart.given_up, 0);
    job_free(j);
}

static void test_failures_that_are_restarted(void **state)
{
    (void)state;
    struct job *j = running_job(1, "gpu_hardware,node_lost");
    assert_true(end_with(j, "lost", FINDING_NODE_LOST, 4000));
    assert_int_equal(j->state, JOB_QUEUED);
    assert_string_equal(j->restart.bad_nodes, "w1");
    says(j, "restart 1 of 1: so");
    assert_int_equal(j->finding, FINDING_NONE);
    struct moment now = at(4099);
    assert_true(job_is_pausing(j, &now));
    now = at(4100);
    assert_false(job_is_pausing(j, &now));
    apply(j, JOB_EV_ADMITTED, 5000);
    apply(j, JOB_EV_STARTED, 5100);
    assert_true(end_with(j, "lost", FINDING_NODE_LOST, 6000)); /* no restart is left */
    assert_int_equal(j->state, JOB_FAILED);
    assert_int_equal(j->finding, FINDING_NODE_LOST);
    job_free(j);
    j = running_job(3, "node_lost");
    assert_true(end_with(j, "exit", FINDING_USER_CODE_ERROR, 4000)); /* not one of those */
    assert_int_equal(j->state, JOB_FAILED);
    job_free(j);
}

static void test_starts_that_come_to_nothing(void **state)
{
    (void)state;
    struct job *j = new_job();
    struct job_event no_fault = {.kind = JOB_EV_REQUEUED, .no_fault = true, .text = "Ray is away"};
    usec_t t = 2000;
    for (int i = 0; i < 3 * JOB_GIVE_UPS_MAX; i++) {
        apply(j, JOB_EV_ADMITTED, t++);
        assert_true(apply_event(j, &no_fault, t++));
    }
    for (int i = 1; i < JOB_GIVE_UPS_MAX; i++) {
        apply(j, JOB_EV_ADMITTED, t++);
        assert_true(apply(j, JOB_EV_REQUEUED, t++));
        assert_int_equal(j->state, JOB_QUEUED);
    }
    apply(j, JOB_EV_ADMITTED, t++);
    assert_true(apply(j, JOB_EV_REQUEUED, t++));
    assert_int_equal(j->state, JOB_FAILED);
    assert_string_equal(job_state_reason(j)->code, "infra");
    assert_int_equal(j->finding, FINDING_INFRA);
    job_free(j);
}

/* Any order of events, doubled and late ones too. */
static bool fail_at(struct job *j, usec_t now)
{
    static const struct job_end end = {
        .cause = "exit", .code = 1, .signal = "", .finding = FINDING_DATA_ERROR, .text = "no rows"};
    struct job_event e = {.kind = JOB_EV_ENDED, .end = &end};
    return apply_event(j, &e, now);
}

static struct job *failed_and_held(void)
{
    struct job *j = new_job();
    j->limits.hold_on_failure = 500;
    j->restart.preemptible = true;
    apply(j, JOB_EV_ADMITTED, 2000);
    apply(j, JOB_EV_STARTED, 3000);
    assert_true(fail_at(j, 4000));
    return j;
}

static void test_slots_are_kept_for_a_look(void **state)
{
    (void)state;
    struct job *j = failed_and_held();
    assert_true(j->state == JOB_RUNNING && (j->flags & JOB_FLAG_HOLDING) && j->gang.n);
    assert_int_equal(j->finding, FINDING_DATA_ERROR);
    assert_string_equal(job_state_reason(j)->code, "data_error");
    says(j,
         "it has failed; its slots are kept for 0s: `argus release t1` gives them back: no rows");
    assert_int_equal(job_act(j), JOB_ACT_NONE);
    assert_int_equal(job_limit(j, 7), 500);
    assert_int_equal(in_state(j, 4100), 100); /* of the hold, not of the run */
    assert_int_equal(j->ran, 1000);
    assert_false(job_is_preemptible(j));
    assert_false(fail_at(j, 4100) || apply(j, JOB_EV_BLIND, 4100));
    assert_true(apply(j, JOB_EV_RELEASED, 4200));
    assert_true(j->state == JOB_FAILED && !j->flags && j->ran == 1000);
    says(j, "no rows");
    job_free(j);
    j = failed_and_held();
    assert_true(apply(j, JOB_EV_STOP, 4200)); /* by a user: it has failed all the same */
    assert_int_equal(j->state, JOB_FAILED);
    job_free(j);
}

/* What the account of its interruptions is made of. */
static void test_how_attempts_ended(void **state)
{
    (void)state;
    struct job *j = new_job();
    struct job_end end = {.cause = "exit",
                          .code = 1,
                          .signal = "",
                          .finding = FINDING_NODE_LOST,
                          .text = "it went away",
                          .fault_at = 3100,
                          .noticed_at = 3200};
    struct job_event ended = {.kind = JOB_EV_ENDED, .end = &end};
    struct job_event hung = {.kind = JOB_EV_HUNG, .since = 4100};
    restart_on_from_text("node_lost,timeout_or_hang", &j->restart.on);
    j->restart.max = 9;
    apply(j, JOB_EV_ADMITTED, 2000);
    apply(j, JOB_EV_STARTED, 3000);
    assert_true(apply_event(j, &ended, 3300) && j->state == JOB_QUEUED);
    const struct attempt *a = &j->attempts[0];
    assert_true(a->outcome == ATTEMPT_FAILED && a->finding == FINDING_NODE_LOST);
    assert_true(a->fault_at == 3100 && a->noticed_at == 3200 && a->ended_at == 3300);
    assert_non_null(a->node); /* its driver's: the class blames it */
    /* A hang that goes on is none; one that ends it keeps its times. */
    apply(j, JOB_EV_ADMITTED, 4000);
    apply(j, JOB_EV_STARTED, 4050);
    assert_true(apply_event(j, &hung, 4200) && job_attempt(j)->fault_at == 4100);
    assert_true(apply(j, JOB_EV_WENT_ON, 4250) && !job_attempt(j)->noticed_at);
    hung.since = 4300;
    assert_true(apply_event(j, &hung, 4400));
    end.finding = FINDING_TIMEOUT_OR_HANG; /* names a node, or blames none */
    assert_true(apply_event(j, &ended, 4500) && j->state == JOB_QUEUED);
    a = &j->attempts[1];
    assert_true(a->fault_at == 4300 && a->noticed_at == 4400 && a->outcome == ATTEMPT_FAILED);
    assert_null(a->node);
    /* What somebody wanted, and what ended well, is no failure. */
    apply(j, JOB_EV_ADMITTED, 5000);
    apply(j, JOB_EV_STARTED, 5050);
    end = (struct job_end){.cause = "exit", .signal = "", .text = "done", .fault_at = 5100};
    assert_true(apply_event(j, &ended, 5200) && j->state == JOB_SUCCEEDED);
    a = &j->attempts[2];
    assert_true(a->outcome == ATTEMPT_DONE && !a->fault_at && !a->noticed_at && !a->finding);
    job_free(j);
}

/* Where a code classes it, the message behind it is what is said, in each language. */
static void test_a_message_of_its_own(void **state)
{
    (void)state;
    static const struct message_listener chinese = {.language = MESSAGE_CHINESE};
    struct job *j = new_job();
    struct job_end end = {.cause = "exit",
                          .code = 3,
                          .signal = "",
                          .finding = FINDING_USER_CODE_ERROR,
                          .message = "attempt_exited",
                          .text = "{\"exit_code\":3}"};
    struct job_event ended = {.kind = JOB_EV_ENDED, .end = &end};
    assert_true(apply(j, JOB_EV_ADMITTED, 2000) && apply(j, JOB_EV_STARTED, 3000));
    says(j, "");
    assert_true(apply_event(j, &ended, 4000));
    assert_string_equal(job_state_reason(j)->code, "user_code_error");
    says(j, "the command ended with exit code 3");
    assert_string_equal(job_attempt(j)->end_text, "attempt_exited{\"exit_code\":3}");
    _cleanup_(freep) char *there = message_kept_say(job_attempt(j)->end_text, &chinese);
    assert_string_equal(there, "命令以退出码 3 结束");
    job_free(j);
}

static void test_slots_are_not_kept(void **state)
{
    (void)state;
    struct job *j = new_job(); /* it goes back to the queue */
    j->limits.hold_on_failure = 500;
    j->restart.max = 1;
    restart_on_from_text("data_error", &j->restart.on);
    apply(j, JOB_EV_ADMITTED, 2000);
    apply(j, JOB_EV_STARTED, 3000);
    assert_true(fail_at(j, 4000));
    assert_int_equal(j->state, JOB_QUEUED);
    apply(j, JOB_EV_ADMITTED, 5000);
    apply(j, JOB_EV_STARTED, 6000);
    assert_true(apply(j, JOB_EV_STOP, 7000)); /* somebody wanted its end */
    assert_true(fail_at(j, 8000));
    assert_int_equal(j->state, JOB_STOPPED);
    job_free(j);
}

static void test_random_events(void **state)
{
    (void)state;
    unsigned rng = 1;
    for (int round = 0; round < 2000; round++) {
        struct job *j = new_job();
        j->restart = (struct restart){.max = round % 3, .preemptible = true};
        j->limits.hold_on_failure = round % 2 ? 50 : 0;
        enum job_state last = j->state;
        for (usec_t t = 2000; t < 2040; t++) {
            rng = rng * 1664525 + 1013904223;
            enum job_event_kind kind = (enum job_event_kind)((rng >> 12) % JOB_EV_END);
            struct job_event preempt = {
                .kind = JOB_EV_STOP, .cause = STOP_PREEMPTED, .text = "for p"};
            if (kind == JOB_EV_STOP && (rng >> 20) % 4)
                apply_event(j, &preempt, t);
            else if (kind == JOB_EV_ENDED && (rng >> 20) % 2)
                fail_at(j, t);
            else
                apply(j, kind, t);
            if (job_state_is_terminal(last))
                assert_int_equal(j->state, last); /* over is over */
            last = j->state;
        }
        job_free(j);
    }
}

static struct job *job_to_try(void)
{
    struct job *j = new_job();
    j->trial = JOB_TRIAL_DUE;
    assert_int_equal(job_act(j), JOB_ACT_TRY);
    return j;
}

static void trial_id_is(const struct job *j, const char *want)
{
    _cleanup_(freep) char *id = job_trial_id(j);
    assert_string_equal(id, want);
}

static void test_a_trial_comes_first(void **state)
{
    (void)state;
    struct job *j = job_to_try();
    trial_id_is(j, "t1-trial");
    assert_false(apply(j, JOB_EV_ADMITTED, 2000));
    assert_true(apply(j, JOB_EV_HELD, 2100)); /* it is tried all the same */
    assert_int_equal(job_act(j), JOB_ACT_TRY);
    assert_true(apply(j, JOB_EV_TRIED, 2200));
    assert_false(apply(j, JOB_EV_TRIED, 2300));
    assert_int_equal(job_act(j), JOB_ACT_NONE);
    assert_true(apply(j, JOB_EV_RELEASED, 2400));
    assert_true(apply(j, JOB_EV_ADMITTED, 2500));
    assert_false(apply(j, JOB_EV_REJECTED, 2600)); /* too late */
    assert_int_equal(j->state, JOB_STARTING);
    job_free(j);
}

static void test_a_trial_that_finds_something(void **state)
{
    (void)state;
    struct job *j = job_to_try();
    struct job_event e = {
        .kind = JOB_EV_REJECTED, .finding = FINDING_DATA_ERROR, .text = "no rows"};
    assert_true(apply_event(j, &e, 2000));
    assert_int_equal(j->state, JOB_FAILED);
    assert_int_equal(j->finding, FINDING_DATA_ERROR);
    says(j, "no rows");
    assert_int_equal(j->n_attempts, 0);
    assert_int_equal(job_act(j), JOB_ACT_NONE);
    job_free(j);
    j = new_job(); /* one without a trial is not failed by one */
    assert_false(apply_event(j, &e, 2000));
    job_free(j);
}

static void test_a_trial_that_is_lost(void **state)
{
    (void)state;
    struct job *j = job_to_try();
    assert_true(apply(j, JOB_EV_UNTRIED, 2000));
    trial_id_is(j, "t1-a1-trial");
    assert_true(apply(j, JOB_EV_UNTRIED, 3000));
    trial_id_is(j, "t1-a2-trial");
    assert_int_equal(job_act(j), JOB_ACT_TRY);
    assert_true(apply(j, JOB_EV_UNTRIED, 4000));
    assert_int_equal(job_act(j), JOB_ACT_NONE); /* it goes on without */
    assert_true(apply(j, JOB_EV_ADMITTED, 5000));
    job_free(j);
}

static void test_idle_is_a_flag(void **state)
{
    (void)state;
    struct job *j = new_job();
    struct job_event idle = {.kind = JOB_EV_IDLE, .code = "gpu_idle", .text = "{}"};
    assert_false(apply_event(j, &idle, 1500));
    assert_true(apply(j, JOB_EV_ADMITTED, 2000));
    assert_true(apply(j, JOB_EV_STARTED, 3000));
    assert_false(apply(j, JOB_EV_BUSY, 3500));
    assert_true(apply_event(j, &idle, 4000));
    assert_false(apply_event(j, &idle, 4001));
    assert_int_equal(j->flags, JOB_FLAG_IDLE);
    assert_string_equal(job_state_reason(j)->code, "gpu_idle");
    assert_true(apply(j, JOB_EV_HUNG, 4500)); /* a hang is worse, and has the reason */
    assert_string_equal(job_state_reason(j)->code, "timeout_or_hang");
    assert_true(apply(j, JOB_EV_BUSY, 5000));
    assert_int_equal(j->flags, JOB_FLAG_HUNG);
    assert_string_equal(job_state_reason(j)->code, "timeout_or_hang");
    job_free(j);
}

static void test_a_hang_is_a_flag(void **state)
{
    (void)state;
    struct job *j = new_job();
    assert_false(apply(j, JOB_EV_HUNG, 1500));
    assert_true(apply(j, JOB_EV_ADMITTED, 2000));
    assert_true(apply(j, JOB_EV_STARTED, 3000));
    assert_false(apply(j, JOB_EV_WENT_ON, 3500));
    assert_true(apply(j, JOB_EV_HUNG, 4000));
    assert_false(apply(j, JOB_EV_HUNG, 4001));
    assert_int_equal(j->flags, JOB_FLAG_HUNG);
    assert_string_equal(job_state_reason(j)->code, "timeout_or_hang");
    assert_true(apply(j, JOB_EV_WENT_ON, 5000));
    assert_int_equal(j->flags, 0);
    says(j, "");
    assert_true(apply(j, JOB_EV_HUNG, 6000));
    assert_true(apply(j, JOB_EV_STOP, 6001));
    assert_int_equal(j->flags, JOB_FLAG_HUNG); /* what ends it is not what mended it */
    assert_true(apply(j, JOB_EV_ENDED, 6002));
    assert_int_equal(j->flags, 0);
    job_free(j);
}

/* A hang blames the node that is named, and nobody else's. */
static void test_a_hang_goes_elsewhere(void **state)
{
    (void)state;
    for (int named = 0; named < 2; named++) {
        struct job *j = new_job();
        struct job_end end = {.cause = "stopped",
                              .signal = "",
                              .text = "it hung",
                              .code = 1,
                              .node = named ? "w7" : NULL,
                              .finding = FINDING_TIMEOUT_OR_HANG};
        struct job_event stop = {.kind = JOB_EV_STOP,
                                 .cause = STOP_FINDING,
                                 .finding = FINDING_TIMEOUT_OR_HANG,
                                 .text = "hangs"};
        struct job_event ended = {.kind = JOB_EV_ENDED, .end = &end};
        j->restart = (struct restart){.max = 2, .avoid = true};
        restart_on_from_text("timeout_or_hang", &j->restart.on);
        assert_true(apply(j, JOB_EV_ADMITTED, 2000));
        assert_true(apply(j, JOB_EV_STARTED, 3000));
        assert_true(apply(j, JOB_EV_HUNG, 4000));
        assert_true(apply_event(j, &stop, 4000));
        assert_true(apply_event(j, &ended, 5000));
        assert_int_equal(j->state, JOB_QUEUED);
        struct reason cause;
        assert_int_equal(j->flags, JOB_FLAG_RESTARTING);
        assert_true(str_eq(j->restart.bad_nodes, named ? "w7" : NULL));
        says(j, "restart 1 of 2: it hung");
        job_event_cause(j, &ended, &cause);
        assert_string_equal(cause.text, job_state_reason(j)->text);
        job_free(j);
    }
}

/* Every pair of state and event that changes something says why, with or without a text. */
static void test_every_change_has_a_cause(void **state)
{
    (void)state;
    static const enum job_event_kind ways[][3] = {{JOB_EV_HELD},
                                                  {JOB_EV_ADMITTED},
                                                  {JOB_EV_ADMITTED, JOB_EV_STARTED},
                                                  {JOB_EV_ADMITTED, JOB_EV_STARTED, JOB_EV_HUNG},
                                                  {JOB_EV_ADMITTED, JOB_EV_STARTED, JOB_EV_BLIND},
                                                  {JOB_EV_ADMITTED, JOB_EV_STARTED, JOB_EV_STOP},
                                                  {JOB_EV_ADMITTED, JOB_EV_STOP},
                                                  {JOB_EV_TRIED}};
    static const struct job_end end = {
        .cause = "exit", .signal = "", .text = "it ended", .code = 1};
    size_t changes = 0;
    struct gang gang;
    gang_from_text("w1", &gang);
    for (size_t w = 0; w < array_len(ways); w++)
        for (int kind = 0; kind < JOB_EV_END; kind++) {
            struct job *j = new_job();
            struct job_event e = {.kind = (enum job_event_kind)kind,
                                  .cause = STOP_USER,
                                  .gang = &gang,
                                  .end = kind == JOB_EV_ENDED ? &end : NULL};
            j->trial = ways[w][0] == JOB_EV_TRIED ? JOB_TRIAL_DUE : JOB_TRIAL_NONE;
            for (size_t i = 0; i < 3 && (i == 0 || ways[w][i] != JOB_EV_ADMITTED); i++)
                (void)(j->trial == JOB_TRIAL_DUE || apply(j, ways[w][i], 2000 + i));
            if (apply_event(j, &e, 5000)) {
                struct reason cause;
                char said[JOB_REASON_TEXT_MAX];
                job_event_cause(j, &e, &cause);
                message_to_string(cause.code, cause.text, true, said, sizeof(said));
                assert_true(strlen(said) > 5);
                assert_null(strchr(said, '{')); /* it has a row */
                e.text = "somebody said so";
                job_event_cause(j, &e, &cause);
                if (kind != JOB_EV_ENDED)
                    assert_string_equal(cause.text, e.text);
                changes++;
            }
            job_free(j);
        }
    assert_true(changes >= 25);
    gang_release(&gang);
}

static void test_texts_and_proof(void **state)
{
    struct job *j = new_job();
    (void)state;
    assert_string_equal(j->id, "t1");
    assert_string_equal(j->name, "");
    assert_string_equal(j->user, "alice");
    assert_string_equal(j->cluster, "");
    assert_int_equal(job_proof(j)->on_worker, -1);
    assert_string_equal(job_proof(j)->node, "");
    job_set_proof(j, &(struct proof){.on_worker = 1, .node = "w1", .checked_at = 7});
    assert_int_equal(job_proof(j)->on_worker, 1);
    assert_string_equal(job_proof(j)->node, "w1");
    job_set_proof(j, NULL);
    assert_int_equal(job_proof(j)->checked_at, 0);
    job_free(j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_message_of_its_own),
        cmocka_unit_test(test_idle_is_a_flag),
        cmocka_unit_test(test_a_hang_is_a_flag),
        cmocka_unit_test(test_a_hang_goes_elsewhere),
        cmocka_unit_test(test_every_change_has_a_cause),
        cmocka_unit_test(test_words_both_ways),
        cmocka_unit_test(test_a_good_life),
        cmocka_unit_test(test_requeued_gets_a_new_id),
        cmocka_unit_test(test_what_an_attempt_had),
        cmocka_unit_test(test_a_very_wide_attempt),
        cmocka_unit_test(test_what_it_ends_as),
        cmocka_unit_test(test_limits_of_states),
        cmocka_unit_test(test_deadlines_for_people),
        cmocka_unit_test(test_held_time_is_not_counted),
        cmocka_unit_test(test_preempted_goes_back_and_on),
        cmocka_unit_test(test_preempted_but_done_or_not_begun),
        cmocka_unit_test(test_failures_that_are_restarted),
        cmocka_unit_test(test_starts_that_come_to_nothing),
        cmocka_unit_test(test_a_trial_comes_first),
        cmocka_unit_test(test_a_trial_that_finds_something),
        cmocka_unit_test(test_a_trial_that_is_lost),
        cmocka_unit_test(test_how_attempts_ended),
        cmocka_unit_test(test_slots_are_kept_for_a_look),
        cmocka_unit_test(test_slots_are_not_kept),
        cmocka_unit_test(test_random_events),
        cmocka_unit_test(test_texts_and_proof),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
