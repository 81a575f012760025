/* SPDX-License-Identifier: Apache-2.0 */
/* A job's attempts and the moments of its steps, as the account of its interruptions. */
#include "core/account/recovery_job.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/unit.h"

static const usec_t S = USEC_SEC;

static struct attempt attempt_of(int k, enum attempt_outcome outcome, usec_t planned, usec_t ended)
{
    return (struct attempt){.k = k,
                            .phase = ended ? ATTEMPT_ENDED : ATTEMPT_RUNNING,
                            .outcome = outcome,
                            .planned_at = planned * S,
                            .ended_at = ended * S};
}

static struct job *job_with(int n, enum job_state state)
{
    struct job *j = job_new();
    j->n_attempts = n;
    j->attempts = xcalloc((size_t)n, sizeof(*j->attempts));
    j->state = state;
    job_set_texts(j, &(struct job_texts){.user = "ann"});
    j->queued_at = 50 * S;
    j->demand = (struct demand){.nnodes = 2, .gpus_per_node = 4};
    return j;
}

static void test_moments(void **state)
{
    const struct goodput_sums steps = {.v = {{.k = 1,
                                              .good_s = 10,
                                              .first_at = 110 * S,
                                              .kept_at = 120 * S,
                                              .last_at = 130 * S,
                                              .fresh_at = 115 * S}},
                                       .n = 1};
    struct recovery_job told;
    struct recovery_attempt *v;
    struct recovery r;
    struct recovery_page page;
    (void)state;
    struct job *j = job_with(2, JOB_RUNNING);
    j->attempts[0] = attempt_of(1, ATTEMPT_FAILED, 100, 150);
    j->attempts[0].fault_at = 140 * S;
    j->attempts[0].noticed_at = 145 * S;
    j->attempts[0].finding = FINDING_NODE_LOST;
    j->attempts[0].node = xstrdup("n1");
    j->attempts[1] = attempt_of(2, ATTEMPT_OPEN, 160, 0);
    recovery_of_job(j, &steps, 170 * S, &told, &v);
    assert_true(told.n == 2 && told.gpus == 8 && !told.waits && told.queued == 50 * S);
    assert_string_equal(told.user, "ann");
    assert_string_equal(v[0].class, "node_lost");
    assert_string_equal(v[0].node, "n1");
    assert_true(v[1].end == RECOVERY_RUNS && !v[1].first && !v[1].class);
    recovery_judge(&told, &r);
    recovery_to_page(&r, &page);
    const double expected[RECOVERY_PARTS] = {10, 5, 5, 10, 20, 20, 0};
    for (int p = 0; p < RECOVERY_PARTS; p++)
        assert_true(page.part[p] == expected[p]);
    assert_true(page.held == 60 && page.waited == 10 && page.first_wait == 50);
    assert_true(page.failures == 1 && page.ettr > 0.142 && page.ettr < 0.143);
    free(v);
    job_free(j);
}

/* Rows of before say less: what was followed by another attempt, or ended the job, has failed. */
static void test_rows_of_before(void **state)
{
    static const struct {
        enum job_state state;
        enum attempt_phase phase;
        enum attempt_outcome outcome;
        enum recovery_end first, last;
    } cases[] = {
        {JOB_FAILED, ATTEMPT_ENDED, ATTEMPT_OPEN, RECOVERY_FAILED, RECOVERY_FAILED},
        {JOB_SUCCEEDED, ATTEMPT_ENDED, ATTEMPT_OPEN, RECOVERY_FAILED, RECOVERY_DONE},
        {JOB_QUEUED, ATTEMPT_ENDED, ATTEMPT_OPEN, RECOVERY_FAILED, RECOVERY_FAILED},
        {JOB_QUEUED, ATTEMPT_ENDED, ATTEMPT_PREEMPTED, RECOVERY_FAILED, RECOVERY_PREEMPTED},
        {JOB_STOPPED, ATTEMPT_ABANDONED, ATTEMPT_OPEN, RECOVERY_FAILED, RECOVERY_NOT_STARTED},
        {JOB_STARTING, ATTEMPT_ACCEPTED, ATTEMPT_OPEN, RECOVERY_FAILED, RECOVERY_RUNS},
    };
    const struct goodput_sums steps = {.n = 0};
    (void)state;
    for (size_t i = 0; i < array_len(cases); i++) {
        struct recovery_job told;
        struct recovery_attempt *v;
        struct job *j = job_with(2, cases[i].state);
        j->attempts[0] = attempt_of(1, ATTEMPT_OPEN, 100, 150);
        j->attempts[1] = attempt_of(2, cases[i].outcome, 160, 170);
        j->attempts[1].phase = cases[i].phase;
        recovery_of_job(j, &steps, 200 * S, &told, &v);
        assert_int_equal(v[0].end, cases[i].first);
        assert_int_equal(v[1].end, cases[i].last);
        assert_true(told.waits == (cases[i].state == JOB_QUEUED));
        free(v);
        job_free(j);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_moments),
        cmocka_unit_test(test_rows_of_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
