/* SPDX-License-Identifier: Apache-2.0 */
/* The life of a node, each way out of it, and random events that never break its invariants. */
#include "core/job/node.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/unit.h"

static struct node_row *new_node(void)
{
    struct node_row *n = node_row_new();
    set_str(&n->spec.name, "n1");
    set_str(&n->spec.host, "10.0.0.1");
    n->added_at = n->since = 1000;
    return n;
}

static bool apply_event(struct node_row *n, const struct node_event *e, usec_t now)
{
    struct moment at = {.wall = now, .boot = now, .boot_id = "b"};
    bool changed = node_apply(n, e, &at);
    const char *broken = node_check(n);
    if (broken)
        fail_msg("after event %d: %s", (int)e->kind, broken);
    return changed;
}

static bool apply(struct node_row *n, enum node_event_kind kind, usec_t now)
{
    struct node_event e = {
        .kind = kind, .code = "code", .text = "a reason", .fix = "a fix", .session = "s1"};
    return apply_event(n, &e, now);
}

static struct node_row *online_node(void)
{
    struct node_row *n = new_node();
    assert_true(apply(n, NODE_EV_PROBED, 2000));
    assert_true(apply(n, NODE_EV_STARTED, 3000));
    assert_true(apply(n, NODE_EV_SEEN, 4000));
    return n;
}

static void test_words_both_ways(void **state)
{
    (void)state;
    for (int i = 0; i < NODE_THEN_END; i++)
        assert_int_equal(node_then_from_string(node_then_to_string((enum node_then)i)), i);
    assert_int_equal(node_then_from_string(NULL), NODE_THEN_END);
}

static void test_the_way_in(void **state)
{
    (void)state;
    struct node_row *n = new_node();
    assert_null(node_check(n));
    assert_int_equal(node_act(n), NODE_ACT_PROBE);
    assert_string_equal(node_why_not(n), "pending");
    assert_true(apply(n, NODE_EV_PROBED, 2000));
    assert_int_equal(node_act(n), NODE_ACT_START);
    assert_true(n->may_run); /* before it is started: a crash in between must not forget it */
    assert_true(apply(n, NODE_EV_STARTED, 3000));
    assert_int_equal(node_act(n), NODE_ACT_WATCH);
    assert_int_equal(node_patience(n), 3 * USEC_MIN);
    assert_int_equal(n->state, NODE_PENDING);
    assert_true(apply(n, NODE_EV_SEEN, 4000));
    assert_int_equal(n->state, NODE_ONLINE);
    assert_int_equal(n->since, 4000);
    assert_string_equal(node_why_not(n), "");
    assert_false(apply(n, NODE_EV_SEEN, 5000));
    node_row_free(n);
}

/* Its dashboard is silent: that is told, once, and what runs there goes on. */
static void test_a_silent_head_is_left_alone(void **state)
{
    (void)state;
    struct node_row *n = new_node();
    n->is_head = true;
    assert_true(apply(n, NODE_EV_PROBED, 2000));
    assert_true(apply(n, NODE_EV_STARTED, 3000));
    assert_int_equal(node_patience(n), 15 * USEC_SEC);
    assert_true(apply(n, NODE_EV_SILENT, 4000));
    assert_string_equal(n->reason.code, "code");
    assert_int_equal(n->step, NODE_STEP_JOIN);
    assert_int_equal(node_act(n), NODE_ACT_WATCH);
    assert_int_equal(n->tries, 0);
    assert_false(apply(n, NODE_EV_SILENT, 5000));
    assert_true(apply(n, NODE_EV_SEEN, 6000));
    assert_int_equal(n->state, NODE_ONLINE);
    assert_string_equal(n->reason.code, "");
    assert_false(apply(n, NODE_EV_SILENT, 7000));
    node_row_free(n);
}

static void test_failures_are_tried_again_later_and_later(void **state)
{
    (void)state;
    struct node_row *n = new_node();
    assert_int_equal(node_backoff(n), 0);
    usec_t before = 0;
    for (int i = 0; i < 5; i++) {
        assert_true(apply(n, NODE_EV_FAILED, 2000));
        assert_int_equal(n->state, NODE_PENDING);
        assert_string_equal(n->reason.code, "code");
        assert_string_equal(n->reason.fix, "a fix");
        assert_true(node_backoff(n) > before);
        before = node_backoff(n);
    }
    for (int i = 0; i < 100; i++)
        (void)apply(n, NODE_EV_FAILED, 2000);
    assert_int_equal(node_backoff(n), 30 * USEC_SEC);
    assert_true(apply(n, NODE_EV_PROBED, 2000));
    assert_true(apply(n, NODE_EV_FAILED, 3000)); /* the start */
    assert_int_equal(node_act(n), NODE_ACT_PROBE);
    assert_true(apply(n, NODE_EV_SEEN, 4000)); /* it was started after all */
    assert_int_equal(n->state, NODE_ONLINE);
    assert_int_equal(node_backoff(n), 0);
    assert_string_equal(n->reason.code, "");
    node_row_free(n);
}

static void test_lost_and_found(void **state)
{
    (void)state;
    struct node_row *n = online_node();
    assert_true(apply(n, NODE_EV_SICK, 4500));
    assert_true(apply(n, NODE_EV_LOST, 5000));
    assert_int_equal(n->state, NODE_OFFLINE);
    assert_string_equal(n->sick, "");
    assert_int_equal(node_act(n), NODE_ACT_PROBE);
    assert_true(apply(n, NODE_EV_FAILED, 5500)); /* still away */
    assert_int_equal(n->state, NODE_OFFLINE);
    assert_int_equal(n->since, 5000);
    assert_true(apply(n, NODE_EV_PROBED, 6000));
    assert_int_equal(n->state, NODE_PENDING);
    assert_true(apply(n, NODE_EV_STARTED, 7000));
    assert_true(apply(n, NODE_EV_SEEN, 8000));
    assert_int_equal(n->state, NODE_ONLINE);
    node_row_free(n);
}

static void test_a_lost_session_is_fenced_first(void **state)
{
    (void)state;
    struct node_row *n = online_node();
    assert_true(apply(n, NODE_EV_SESSION, 5000));
    assert_int_equal(n->state, NODE_PENDING);
    assert_int_equal(node_act(n), NODE_ACT_FENCE);
    assert_false(apply(n, NODE_EV_SEEN, 5500)); /* of the old list: nothing can have joined */
    assert_true(apply(n, NODE_EV_FENCED, 6000));
    assert_false(n->may_run);
    assert_int_equal(node_act(n), NODE_ACT_PROBE);
    node_row_free(n);
}

static void test_drain_and_back(void **state)
{
    (void)state;
    struct node_row *n = online_node();
    struct node_event e = {.kind = NODE_EV_DRAIN, .within = 3000, .then = NODE_THEN_STOP};
    assert_true(apply_event(n, &e, 5000));
    assert_int_equal(n->state, NODE_DRAINING);
    assert_string_equal(node_why_not(n), "draining");
    assert_int_equal(node_act(n), NODE_ACT_WATCH);
    assert_false(apply_event(n, &e, 5001)); /* twice is once */
    assert_true(apply(n, NODE_EV_UNDRAIN, 5500));
    assert_int_equal(n->state, NODE_ONLINE);
    assert_int_equal(n->drain_within, 0);
    assert_true(apply_event(n, &e, 6000));
    struct moment before = {
        .wall = 90000, .boot = 8999, .boot_id = "b"}; /* the wall clock jumped */
    struct moment after = {.wall = 8000, .boot = 9000, .boot_id = "b"};
    assert_false(node_is_due(n, &before));
    assert_true(node_is_due(n, &after));
    assert_true(apply(n, NODE_EV_DUE, 9000));
    assert_false(node_is_due(n, &after));
    assert_false(apply(n, NODE_EV_DUE, 9001));
    assert_true(apply(n, NODE_EV_EMPTY, 9500));
    assert_int_equal(node_act(n), NODE_ACT_STOP);
    assert_true(apply(n, NODE_EV_FAILED, 9600));
    assert_int_equal(node_act(n), NODE_ACT_STOP);
    assert_true(apply(n, NODE_EV_STOPPED, 9700));
    assert_int_equal(n->state, NODE_OFFLINE);
    assert_int_equal(node_act(n), NODE_ACT_NONE);
    assert_string_equal(n->reason.code, "drained");
    assert_true(apply(n, NODE_EV_UNDRAIN, 9800));
    assert_int_equal(n->state, NODE_PENDING);
    assert_int_equal(node_act(n), NODE_ACT_PROBE);
    node_row_free(n);
}

static void test_undrain_while_it_leaves(void **state)
{
    (void)state;
    struct node_row *n = online_node();
    assert_true(apply(n, NODE_EV_DRAIN, 5000));
    assert_true(apply(n, NODE_EV_EMPTY, 5500));
    assert_true(apply(n, NODE_EV_UNDRAIN, 5600));
    assert_int_equal(node_act(n), NODE_ACT_STOP); /* what is under way ends first */
    assert_true(apply(n, NODE_EV_STOPPED, 5700));
    assert_int_equal(n->state, NODE_PENDING);
    assert_int_equal(node_act(n), NODE_ACT_PROBE);
    node_row_free(n);
}

static void test_drain_of_what_is_not_in(void **state)
{
    (void)state;
    struct node_row *n = new_node();
    assert_true(apply(n, NODE_EV_DRAIN, 2000)); /* nothing was started */
    assert_int_equal(n->state, NODE_OFFLINE);
    assert_int_equal(node_act(n), NODE_ACT_NONE);
    assert_true(apply(n, NODE_EV_UNDRAIN, 2100));
    assert_true(apply(n, NODE_EV_PROBED, 2200)); /* now something may run */
    assert_true(apply(n, NODE_EV_DRAIN, 2300));
    assert_int_equal(node_act(n), NODE_ACT_STOP);
    node_row_free(n);
    n = online_node();
    assert_true(apply(n, NODE_EV_DRAIN, 5000));
    assert_true(apply(n, NODE_EV_LOST, 6000));
    assert_int_equal(n->state, NODE_OFFLINE);
    assert_int_equal(node_act(n), NODE_ACT_STOP); /* its leftovers, once it can be reached */
    node_row_free(n);
}

static void test_remove(void **state)
{
    (void)state;
    struct node_row *n = new_node();
    assert_true(apply(n, NODE_EV_REMOVE, 2000));
    assert_int_equal(node_act(n), NODE_ACT_FORGET);
    node_row_free(n);
    n = online_node();
    assert_true(apply(n, NODE_EV_REMOVE, 5000));
    assert_int_equal(n->state, NODE_DRAINING);
    assert_int_equal(node_act(n), NODE_ACT_WATCH); /* others may use it */
    assert_true(apply(n, NODE_EV_EMPTY, 5050));
    assert_int_equal(node_act(n), NODE_ACT_STOP);
    assert_true(apply(n, NODE_EV_FAILED, 5100));
    assert_int_equal(node_act(n), NODE_ACT_STOP); /* it is not forgotten while it may run */
    assert_false(apply(n, NODE_EV_DRAIN, 5150));
    struct node_event force = {.kind = NODE_EV_REMOVE, .forced = true};
    assert_true(apply_event(n, &force, 5200));
    assert_true(apply(n, NODE_EV_FAILED, 5300));
    assert_int_equal(node_act(n), NODE_ACT_FORGET);
    node_row_free(n);
}

/* Jobs of others are waited for, unless somebody says that they go, and not before the deadline. */
static void test_jobs_of_others(void **state)
{
    (void)state;
    struct moment early = {.wall = 6000, .boot = 6000, .boot_id = "b"};
    struct moment late = {.wall = 8000, .boot = 8000, .boot_id = "b"};
    struct node_row *n = online_node();
    assert_false(apply(n, NODE_EV_BLOCKED, 4500)); /* it is not on its way out */
    struct node_event e = {.kind = NODE_EV_DRAIN};
    assert_true(apply_event(n, &e, 5000));
    assert_false(node_stops_foreign(n, &late));
    assert_true(apply(n, NODE_EV_BLOCKED, 5100));
    assert_string_equal(n->reason.code, "code");
    assert_int_equal(node_act(n), NODE_ACT_WATCH);
    assert_false(apply(n, NODE_EV_BLOCKED, 5200)); /* the same reason is no news */
    e.stop_foreign = true;                         /* said later: it is another drain */
    assert_true(apply_event(n, &e, 5300));
    assert_true(node_stops_foreign(n, &early));
    e.within = 2000;
    assert_true(apply_event(n, &e, 5500));
    assert_false(node_stops_foreign(n, &early));
    assert_true(node_stops_foreign(n, &late));
    assert_true(apply(n, NODE_EV_UNDRAIN, 7000));
    assert_false(node_stops_foreign(n, &late));
    node_row_free(n);
    n = online_node();
    assert_true(apply(n, NODE_EV_REMOVE, 5000));
    assert_false(node_stops_foreign(n, &late));
    struct node_event removal = {.kind = NODE_EV_REMOVE, .stop_foreign = true};
    assert_true(apply_event(n, &removal, 5500));
    assert_true(node_stops_foreign(n, &early));
    assert_true(apply(n, NODE_EV_EMPTY, 6000));
    assert_true(apply(n, NODE_EV_BLOCKED, 6100)); /* somebody came in the last moment */
    assert_int_equal(node_act(n), NODE_ACT_STOP);
    node_row_free(n);
}

static void test_a_removal_says_itself_what_becomes_of_others(void **state)
{
    (void)state;
    struct moment early = {.wall = 6000, .boot = 6000, .boot_id = "b"};
    struct node_event drain = {.kind = NODE_EV_DRAIN, .within = 2000, .stop_foreign = true};
    struct node_event removal = {.kind = NODE_EV_REMOVE, .stop_foreign = true};
    struct node_row *n = online_node();
    assert_true(apply_event(n, &drain, 5000));
    assert_false(node_stops_foreign(n, &early)); /* they have until the deadline */
    assert_true(apply(n, NODE_EV_REMOVE, 5100)); /* and are not ended sooner by it */
    assert_false(node_stops_foreign(n, &early));
    assert_true(apply_event(n, &removal, 5200));
    assert_true(node_stops_foreign(n, &early));
    (void)apply(n, NODE_EV_REMOVE, 5300); /* once said for a removal it is not taken back */
    assert_true(node_stops_foreign(n, &early));
    node_row_free(n);
}

static void test_health_keeps_jobs_off(void **state)
{
    (void)state;
    struct node_row *n = online_node();
    assert_true(apply(n, NODE_EV_SICK, 5000));
    assert_string_equal(node_why_not(n), "unhealthy");
    assert_int_equal(n->state, NODE_ONLINE);
    assert_false(apply(n, NODE_EV_SICK, 6000)); /* the same trouble is no news */
    assert_int_equal(n->sick_since, 5000);
    assert_true(apply(n, NODE_EV_WELL, 7000));
    assert_string_equal(node_why_not(n), "");
    assert_true(apply(n, NODE_EV_AWAY, 8000)); /* ssh alone: it still takes jobs */
    assert_string_equal(node_why_not(n), "");
    assert_true(apply(n, NODE_EV_BACK, 9000));
    node_row_free(n);
}

static void test_its_network_is_measured_at_each_join(void **state)
{
    (void)state;
    struct node_row *n = online_node();
    assert_false(node_waits_for_net(n)); /* nobody asked for it */
    assert_false(apply(n, NODE_EV_NET_BAD, 5000));
    node_row_free(n);
    n = new_node();
    n->spec.check_net = true;
    assert_true(apply(n, NODE_EV_PROBED, 2000) && apply(n, NODE_EV_STARTED, 3000));
    assert_true(apply(n, NODE_EV_SEEN, 4000));
    assert_int_equal(n->state, NODE_ONLINE);
    assert_string_equal(node_why_not(n), "pending");
    assert_true(node_waits_for_net(n));
    assert_true(apply(n, NODE_EV_NET_WAITS, 5000)); /* another reason */
    assert_true(apply(n, NODE_EV_NET_BAD, 6000));
    assert_string_equal(node_why_not(n), "unhealthy");
    assert_false(apply(n, NODE_EV_NET_WAITS, 7000)); /* measured anew: the reason stays */
    assert_true(apply(n, NODE_EV_SICK, 7100));
    assert_false(node_waits_for_net(n)); /* not its network alone */
    assert_true(apply(n, NODE_EV_WELL, 7200));
    assert_string_equal(node_why_not(n), "unhealthy"); /* a look says nothing about it */
    assert_true(apply(n, NODE_EV_NET_WELL, 8000));
    assert_string_equal(node_why_not(n), "");
    assert_true(apply(n, NODE_EV_LOST, 9000));
    assert_true(apply(n, NODE_EV_SEEN, 9500));
    assert_string_equal(n->net_code, "net_check_due");
    assert_true(apply(n, NODE_EV_LOST, 9900)); /* what was due goes with it */
    assert_int_equal(n->net, NODE_NET_FREE);
    node_row_free(n);
}

/* Whatever comes in whatever order: the invariants hold, and what was started is not forgotten. */
static void test_random_lives(void **state)
{
    (void)state;
    unsigned seed = 12345;
    for (int life = 0; life < 2000; life++) {
        struct node_row *n = new_node();
        n->spec.check_net = life % 2;
        bool runs = false; /* somebody started a raylet there */
        for (usec_t now = 2000; now < 2060; now++) {
            seed = seed * 1103515245 + 12345;
            enum node_event_kind kind = (enum node_event_kind)((seed >> 16) % NODE_EV_END);
            runs |= node_act(n) == NODE_ACT_START;
            struct node_event e = {.kind = kind,
                                   .code = "c",
                                   .text = "t",
                                   .session = "s",
                                   .forced = (seed >> 8 & 31) == 0};
            enum node_step before = n->step;
            (void)apply_event(n, &e, now);
            bool ended = (kind == NODE_EV_STOPPED && before == NODE_STEP_LEAVE) ||
                         (kind == NODE_EV_FENCED && before == NODE_STEP_FENCE);
            runs = ended ? false : runs;
            if (runs && node_act(n) == NODE_ACT_FORGET)
                assert_true(n->forced);
            if (runs && n->step == NODE_STEP_OUT)
                assert_true(n->forced);
        }
        node_row_free(n);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words_both_ways),
        cmocka_unit_test(test_the_way_in),
        cmocka_unit_test(test_a_silent_head_is_left_alone),
        cmocka_unit_test(test_failures_are_tried_again_later_and_later),
        cmocka_unit_test(test_lost_and_found),
        cmocka_unit_test(test_a_lost_session_is_fenced_first),
        cmocka_unit_test(test_drain_and_back),
        cmocka_unit_test(test_undrain_while_it_leaves),
        cmocka_unit_test(test_drain_of_what_is_not_in),
        cmocka_unit_test(test_remove),
        cmocka_unit_test(test_jobs_of_others),
        cmocka_unit_test(test_a_removal_says_itself_what_becomes_of_others),
        cmocka_unit_test(test_health_keeps_jobs_off),
        cmocka_unit_test(test_its_network_is_measured_at_each_join),
        cmocka_unit_test(test_random_lives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
