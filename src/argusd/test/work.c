/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of work.c: no user has more threads than his share, and nobody waits behind another's. */
#include "argusd/ground/work.h"

#include <stdatomic.h>
#include <stdlib.h>

#include "base/unit.h"

enum { HERS = 40 };

/* Hers are held until his and argusd's own are done. */
static struct held {
    uv_loop_t loop;
    uv_sem_t gate;
    atomic_int running, most;
    int done, others;
} held;

static void run_held(void *arg)
{
    (void)arg;
    int now = atomic_fetch_add(&held.running, 1) + 1;
    if (now > atomic_load(&held.most))
        atomic_store(&held.most, now);
    uv_sem_wait(&held.gate);
    (void)atomic_fetch_sub(&held.running, 1);
}

static void on_held(void *arg)
{
    (void)arg;
    held.done++;
}

static void run_nothing(void *arg)
{
    (void)arg;
}

static void on_other(void *arg)
{
    (void)arg;
    if (++held.others < 3)
        return;
    for (int i = 0; i < HERS; i++)
        uv_sem_post(&held.gate);
}

static void test_nobody_takes_all(void **state)
{
    (void)state;
    assert_int_equal(uv_loop_init(&held.loop), 0);
    assert_int_equal(uv_sem_init(&held.gate, 0), 0);
    work_shares_new(&held.loop);
    for (int i = 0; i < HERS; i++)
        work_start_for(&held.loop, "alice", run_held, on_held, NULL);
    work_start_for(&held.loop, "bob", run_nothing, on_other, NULL);
    work_start_for(&held.loop, "bob", run_nothing, on_other, NULL);
    work_start(&held.loop, run_nothing, on_other, NULL);
    assert_int_equal(uv_run(&held.loop, UV_RUN_DEFAULT), 0);
    assert_int_equal(held.done, HERS);
    assert_int_equal(held.others, 3);
    assert_true(atomic_load(&held.most) <= WORK_OF_USER_MAX);
    work_shares_free(&held.loop);
    uv_sem_destroy(&held.gate);
    assert_int_equal(uv_loop_close(&held.loop), 0);
}

int main(void)
{
    (void)setenv("UV_THREADPOOL_SIZE", "16", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_takes_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
