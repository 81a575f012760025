/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of serve_step.h: every state of a replica from what is seen, versions, pauses, autoscaling.
 */
#include "core/serve/serve_step.h"

#include "base/mem.h"
#include "base/unit.h"

static void test_a_replica(void **state)
{
    static const struct {
        struct serve_unit_seen seen;
        enum serve_unit_state is;
    } cases[] = {
        {{.lease = SERVE_LEASE_NONE}, SERVE_UNIT_NEW},
        {{.lease = SERVE_LEASE_WAITS}, SERVE_UNIT_WAITING},
        {{.lease = SERVE_LEASE_HELD}, SERVE_UNIT_LOADING},
        {{.lease = SERVE_LEASE_HELD, .passed = true}, SERVE_UNIT_LOADING},
        {{.lease = SERVE_LEASE_HELD, .is_running = true, .has_door = true}, SERVE_UNIT_CHECKING},
        {{.lease = SERVE_LEASE_HELD, .is_running = true, .passed = true}, SERVE_UNIT_CHECKING},
        {{.lease = SERVE_LEASE_HELD, .is_running = true, .has_door = true, .passed = true},
         SERVE_UNIT_READY},
        {{.lease = SERVE_LEASE_ENDS, .is_running = true, .has_door = true, .passed = true},
         SERVE_UNIT_LEAVING},
        {{.leaves = true, .lease = SERVE_LEASE_HELD, .is_running = true}, SERVE_UNIT_LEAVING},
        {{.leaves = true, .lease = SERVE_LEASE_WAITS}, SERVE_UNIT_LEAVING},
        {{.leaves = true, .lease = SERVE_LEASE_NONE}, SERVE_UNIT_GONE},
    };
    (void)state;
    for (size_t i = 0; i < array_len(cases); i++)
        assert_int_equal(serve_unit_state(&cases[i].seen), cases[i].is);
}

static void test_a_version(void **state)
{
    static const struct {
        struct serve_version_seen seen;
        enum serve_version_state is;
    } cases[] = {
        {{.wanted = 0}, SERVE_VERSION_COLD},
        {{.wanted = 2}, SERVE_VERSION_WAITING},
        {{.wanted = 2, .loading = 1}, SERVE_VERSION_LOADING},
        {{.wanted = 2, .ready = 1}, SERVE_VERSION_LOADING},
        {{.wanted = 2, .ready = 2}, SERVE_VERSION_READY},
        {{.wanted = 2, .ready = 1, .was_ready = true}, SERVE_VERSION_DEGRADED},
        {{.wanted = 2, .was_ready = true}, SERVE_VERSION_WAITING},
        {{.wanted = 2, .ready = 1, .failed = true}, SERVE_VERSION_FAILED},
        {{.awaits = true},
         SERVE_VERSION_WAITING}, /* no replica is wanted before its model is there */
        {{.awaits = true, .failed = true}, SERVE_VERSION_FAILED},
        {{.sleeps = true, .was_ready = true}, SERVE_VERSION_SLEEPING},
        {{.sleeps = true, .failed = true}, SERVE_VERSION_FAILED},
    };
    (void)state;
    for (size_t i = 0; i < array_len(cases); i++)
        assert_int_equal(serve_version_state(&cases[i].seen), cases[i].is);
}

static void test_pauses_grow_to_a_bound(void **state)
{
    usec_t before = 0;
    (void)state;
    assert_true(serve_unit_pause(0) == 0);
    for (int i = 1; i < 40; i++) {
        usec_t now = serve_unit_pause(i);
        assert_true(now >= before && now >= 5 * USEC_SEC && now <= 300 * USEC_SEC);
        before = now;
    }
}

static void test_autoscaling(void **state)
{
    const struct serve_spec spec = {.min_replicas = 1, .max_replicas = 4, .target_requests = 2};
    struct serve_scale s = {0};
    usec_t now = 1000 * USEC_SEC;
    (void)state;
    /* Not at once, and not beyond the bound. */
    assert_true(serve_scale_next(&s, &spec, 1, 100, now) == 1);
    assert_true(serve_scale_next(&s, &spec, 1, 100, now + 4 * USEC_SEC) == 1);
    assert_true(serve_scale_next(&s, &spec, 1, 100, now + 5 * USEC_SEC) == 4);
    /* A moment without load starts the wait anew. */
    now += 100 * USEC_SEC;
    assert_true(serve_scale_next(&s, &spec, 4, 0, now) == 4);
    assert_true(serve_scale_next(&s, &spec, 4, 8, now + 60 * USEC_SEC) == 4);
    assert_true(serve_scale_next(&s, &spec, 4, 0, now + 61 * USEC_SEC) == 4);
    assert_true(serve_scale_next(&s, &spec, 4, 0, now + 180 * USEC_SEC) == 4);
    assert_true(serve_scale_next(&s, &spec, 4, 0, now + 181 * USEC_SEC) == 3);
    /* Without a bound nothing moves. */
    const struct serve_spec fixed = {.min_replicas = 1, .target_requests = 2};
    assert_true(serve_scale_next(&s, &fixed, 2, 100, now + 900 * USEC_SEC) == 2);
}

/* A rollback on machines that have room for so many replicas in all, to a version of which so many
 * are loaded already. Returns how few answered at any moment, those that load being none. */
static int64_t roll_back(int64_t room, int64_t replicas, int64_t warm)
{
    struct serve_yield_seen y = {.from_held = room - warm, .from_ready = room - warm};
    int64_t given = 0, least = INT64_MAX;
    y.to_ready = warm;
    y.to_waiting = replicas - warm;
    for (int turn = 0; !serve_yield_is_over(&y, given); turn++) {
        assert_true(turn < 100);
        least = y.from_ready < least ? y.from_ready : least; /* the traffic is there */
        if (y.to_loading) {                                  /* it is loaded */
            y.to_loading--;
            y.to_ready++;
        } else if (y.from_leaving) { /* its lease is back, and taken */
            y.from_leaving--;
            y.to_waiting--;
            y.to_loading++;
        } else {
            assert_true(serve_yield_is_due(&y));
            y.from_held--;
            y.from_ready--;
            y.from_leaving++;
            given++;
        }
    }
    return least;
}

static void test_rolling_back_without_room_for_both(void **state)
{
    (void)state;
    for (int64_t replicas = 2; replicas <= 8; replicas++) {
        assert_true(roll_back(replicas, replicas, 0) >= replicas / 2);
        assert_true(roll_back(replicas, replicas, 1) >= (replicas - 1) / 2);
    }
    assert_int_equal(roll_back(1, 1, 0), 0); /* there is no other way */
}

static void test_nothing_is_given_in_vain(void **state)
{
    struct serve_yield_seen y = {.to_waiting = 1, .from_held = 1, .from_ready = 1};
    const struct serve_yield_seen vain[] = {
        {.from_held = 1, .from_ready = 1},
        {.to_waiting = 1, .from_held = 1, .from_ready = 1, .to_loading = 1},
        {.to_waiting = 1, .from_held = 1, .from_ready = 1, .from_leaving = 1},
        {.to_waiting = 1, .from_ready = 1},
        {.to_waiting = 1, .from_held = 1, .from_ready = 1, .to_failed = 1}, /* none would answer */
    };
    (void)state;
    assert_true(serve_yield_is_due(&y));
    for (size_t i = 0; i < array_len(vain); i++)
        assert_false(serve_yield_is_due(&vain[i]));
    y.to_failed = 1;
    y.from_ready = 2;
    assert_true(serve_yield_is_due(&y));
    y.from_ready = 0;
    assert_true(serve_yield_is_due(&y));
    /* Where nothing was given, the version waits for all of its replicas as in any deploy. */
    y = (struct serve_yield_seen){.to_ready = 2, .from_ready = 1, .from_held = 1};
    assert_false(serve_yield_is_over(&y, 0));
    assert_true(serve_yield_is_over(&y, 1));
    y.to_ready = 0;
    y.from_ready = 0;
    assert_false(serve_yield_is_over(&y, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_replica),
        cmocka_unit_test(test_a_version),
        cmocka_unit_test(test_pauses_grow_to_a_bound),
        cmocka_unit_test(test_autoscaling),
        cmocka_unit_test(test_rolling_back_without_room_for_both),
        cmocka_unit_test(test_nothing_is_given_in_vain),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
