/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of demand.h: the sums that Ray will ask for, per version and workload. */
#include "core/verl/demand.h"

#include <stddef.h>

#include "base/unit.h"

static struct spec spec(enum workload w, int nnodes, double gpus)
{
    return (struct spec){.workload = (int)w,
                         .nnodes = nnodes,
                         .gpus_per_node = gpus,
                         .entrypoint_cpus = -1,
                         .entrypoint_gpus = -1};
}

static struct demand compute(const struct spec *s, const char *version)
{
    struct demand d;
    demand_compute(s, version ? verl_version_find(version, NULL) : NULL, NULL, &d);
    return d;
}

static void ppo_asks_more_in_newer_versions(void **state)
{
    /* One node of 8: bundles, TaskRunner, start, storage; and the driver's 1. */
    static const struct {
        const char *version;
        double bundles, extra;
    } rows[] = {
        {"0.5.0", 8, 1},  {"0.6.1", 8, 1},  {"0.7.0", 24, 2},
        {"0.7.1", 24, 2}, {"0.8.0", 24, 2}, {"0.9.1", 24, 11},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct spec s = spec(WORKLOAD_PPO, 2, 8);
        struct demand d = compute(&s, rows[i].version);
        assert_true(d.nnodes == 2 && d.gpus_per_node == 8);
        assert_true(d.cpus_per_node == rows[i].bundles);
        assert_true(d.extra_cpus == rows[i].extra);
        assert_true(d.driver_cpus == 1 && d.driver_gpus == 0);
        assert_true(demand_gpus(&d) == 16);
        assert_true(demand_cpus(&d) == 2 * rows[i].bundles + rows[i].extra + 1);
    }
}

static void overrides_change_the_storage_units(void **state)
{
    (void)state;
    struct spec s = spec(WORKLOAD_GRPO, 1, 1);
    strv_add(&s.overrides, "transfer_queue.backend.SimpleStorage.num_data_storage_units=1");
    struct demand d = compute(&s, "0.9.1");
    assert_true(d.extra_cpus == 4);
    strv_add(&s.overrides, "++transfer_queue.backend.SimpleStorage.num_data_storage_units=x");
    d = compute(&s, "0.9.1");
    assert_true(d.extra_cpus == 11);
    strv_release(&s.overrides);
}

static void n_cpus_per_gpu_wins(void **state)
{
    (void)state;
    struct spec s = spec(WORKLOAD_SFT, 2, 4);
    struct demand d = compute(&s, "0.9.1");
    assert_true(d.cpus_per_node == 40 && d.driver_gpus == 0);
    s.cpus_per_gpu = 2;
    d = compute(&s, "0.9.1");
    assert_true(d.cpus_per_node == 8);
}

static void an_entrypoint_may_say_cpus(void **state)
{
    (void)state;
    struct spec s = spec(WORKLOAD_SERVE, 1, 0);
    s.cpus_per_node = 3;
    struct demand d = compute(&s, "0.9.1");
    assert_true(d.cpus_per_node == 3 && d.gpus_per_node == 0);
    s.gpus_per_node = 4; /* those of its GPUs are among them */
    d = compute(&s, "0.9.1");
    assert_true(d.cpus_per_node == 4);
}

static void the_driver_holds_the_gpus_under_torchrun(void **state)
{
    (void)state;
    struct spec s = spec(WORKLOAD_SFT, 1, 4);
    struct demand d = compute(&s, "0.6.1");
    assert_true(d.gpus_per_node == 0 && d.cpus_per_node == 0);
    assert_true(d.driver_gpus == 4 && d.driver_cpus == 4);
    assert_true(demand_gpus(&d) == 4);
    s.cpus_per_gpu = 3;
    d = compute(&s, "0.6.1");
    assert_true(d.driver_cpus == 12);
}

static void the_entrypoint_counts(void **state)
{
    (void)state;
    const struct demand_defaults dflt = {.entrypoint_cpus = 2, .entrypoint_gpus = 1};
    struct spec s = spec(WORKLOAD_PPO, 1, 4);
    struct demand d;
    demand_compute(&s, verl_version_find("0.5.0", NULL), &dflt, &d);
    assert_true(d.driver_cpus == 2 && d.driver_gpus == 1 && demand_gpus(&d) == 5);
    s.entrypoint_cpus = 0;
    s.entrypoint_gpus = 0;
    demand_compute(&s, verl_version_find("0.5.0", NULL), &dflt, &d);
    assert_true(d.driver_cpus == 0 && d.driver_gpus == 0 && demand_gpus(&d) == 4);
}

static void small_workloads(void **state)
{
    (void)state;
    struct spec s = spec(WORKLOAD_MERGE, 1, 0);
    struct demand d = compute(&s, "0.9.1");
    assert_true(demand_gpus(&d) == 0 && demand_cpus(&d) == 1);
    s = spec(WORKLOAD_EVAL, 1, 0);
    d = compute(&s, "0.9.1");
    assert_true(demand_gpus(&d) == 0 && demand_cpus(&d) == 2);
    s = spec(WORKLOAD_GENERATE, 1, 2);
    d = compute(&s, "0.5.0");
    assert_true(d.cpus_per_node == 20 && d.gpus_per_node == 2);
    for (int w = WORKLOAD_RAY; w <= WORKLOAD_NOTEBOOK; w++) {
        s = spec((enum workload)w, 3, 0.5);
        d = compute(&s, NULL);
        assert_true(demand_gpus(&d) == 1.5 && d.cpus_per_node == 0.5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ppo_asks_more_in_newer_versions),
        cmocka_unit_test(overrides_change_the_storage_units),
        cmocka_unit_test(n_cpus_per_gpu_wins),
        cmocka_unit_test(an_entrypoint_may_say_cpus),
        cmocka_unit_test(the_driver_holds_the_gpus_under_torchrun),
        cmocka_unit_test(the_entrypoint_counts),
        cmocka_unit_test(small_workloads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
