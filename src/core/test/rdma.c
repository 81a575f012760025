/* SPDX-License-Identifier: Apache-2.0 */
/* Rates of RDMA ports: differences of counters that grow, and nothing where one cannot be told. */
#include "core/figure/rdma.h"

#include <stdlib.h>

#include "base/unit.h"

/* Counts of up to two ports; a name that is NULL is not there. */
struct rdma_case {
    const char *a, *b;
    uint64_t a_received, a_sent, b_received, b_sent;
    usec_t up;
};

static struct rdma_counts *counts_of(const struct rdma_case *k)
{
    struct rdma_counts *c = NULL;
    if (k->a)
        rdma_add(&c, k->a, k->a_received, k->a_sent);
    if (k->b)
        rdma_add(&c, k->b, k->b_received, k->b_sent);
    if (c)
        c->up = k->up;
    return c;
}

static bool rate_between(const struct rdma_case *was,
                         const struct rdma_case *now,
                         struct rdma_rate *ret)
{
    struct rdma_counts *from = counts_of(was), *to = counts_of(now);
    bool is_told = rdma_rate_of(from, to, ret);
    free(from);
    free(to);
    return is_told;
}

static const struct rdma_case first = {.a = "mlx5_0/1",
                                       .b = "mlx5_1/1",
                                       .a_received = 100,
                                       .a_sent = 200,
                                       .b_received = UINT64_C(5000000000),
                                       .b_sent = 0,
                                       .up = 100 * USEC_SEC};

static void test_ports_are_added_up(void **state)
{
    struct rdma_case then = first;
    struct rdma_rate rate;
    (void)state;
    then.up += 15 * USEC_SEC;
    then.a_received += 1500;
    then.b_received += 3000;
    then.b_sent += 30;
    assert_true(rate_between(&first, &then, &rate));
    assert_true(rate.received == 4500.0 * 4 / 15 && rate.sent == 30.0 * 4 / 15);
    /* Ports that rest are told of: 0 was measured. */
    then = first;
    then.up += USEC_SEC;
    assert_true(rate_between(&first, &then, &rate));
    assert_true(rate.received == 0 && rate.sent == 0);
    /* Counters of 64 bits go on far beyond where their bytes would not fit. */
    struct rdma_case high = first;
    high.a_received = UINT64_MAX - 1000;
    then = high;
    then.up += USEC_SEC;
    then.a_received += 1000;
    assert_true(rate_between(&high, &then, &rate));
    assert_true(rate.received == 4000);
}

static void check_untold(const char *why, struct rdma_case then)
{
    struct rdma_rate rate = {.received = 7, .sent = 7};
    if (rate_between(&first, &then, &rate) || rate.received != 7.0 || rate.sent != 7.0)
        fail_msg("%s: told as %g and %g", why, rate.received, rate.sent);
}

static void test_what_cannot_be_told(void **state)
{
    struct rdma_case none = {0}, good = first, k;
    struct rdma_rate rate;
    (void)state;
    good.up += 15 * USEC_SEC;
    good.a_sent += 100;
    good.b_received += 1000;
    assert_true(rate_between(&first, &good, &rate));
    check_untold("all devices are gone", none);
    assert_false(rate_between(&none, &first, &rate)); /* they came just now */
    k = good;
    k.b = NULL;
    check_untold("a device is gone", k);
    k = good;
    k.b = "mlx5_2/1";
    check_untold("another one came in its place", k);
    k = good;
    k.a_sent = first.a_sent - 1;
    check_untold("a device was reset", k);
    k = good;
    k.b_received = 20;
    check_untold("a counter of 32 bits began anew", k);
    k = good;
    k.a_received = UINT32_MAX;
    check_untold("a counter stopped at its end", k);
    k = good;
    k.a_received = UINT64_MAX;
    check_untold("no port is that fast", k);
    k = good;
    k.up = first.up;
    check_untold("no time has passed", k);
    k = good;
    k.up = USEC_SEC;
    check_untold("the machine has booted", k);
    k = good;
    k.up = first.up + USEC_HOUR;
    check_untold("the look before is long ago", k);
}

static void test_a_machine_with_too_many_ports(void **state)
{
    struct rdma_counts *was = NULL;
    struct rdma_rate rate;
    (void)state;
    for (int i = 0; i < 2 * RDMA_PORTS_MAX; i++) {
        rdma_add(&was, "mlx5_0/1", 1, 1);
        struct rdma_counts *now = rdma_copy(was);
        now->up += USEC_SEC;
        assert_int_equal(rdma_rate_of(was, now, &rate), i < RDMA_PORTS_MAX);
        free(now);
    }
    assert_int_equal(was->n, RDMA_PORTS_MAX + 1);
    assert_null(rdma_copy(NULL));
    free(was);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ports_are_added_up),
        cmocka_unit_test(test_what_cannot_be_told),
        cmocka_unit_test(test_a_machine_with_too_many_ports),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
