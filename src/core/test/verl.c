/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of verl.h. */
#include "core/verl/verl.h"

#include <string.h>

#include "base/unit.h"

static void finds_rows(void **state)
{
    static const struct {
        const char *text, *row;
        bool exact;
    } rows[] = {
        {"0.5.0", "0.5.0", true},      {"0.5.0\n", "0.5.0", true},
        {"0.6.0", "0.6.0", true},      {"0.6.1", "0.6.1", true},
        {"0.7.1", "0.7.1", true},      {"0.7.2", "0.7.1", true},
        {"0.8.0", "0.8.0", true},      {"0.8", "0.8.0", true},
        {"0.9.2", "0.9.1", true},      {"0.9.0", "0.9.0", true},
        {"0.8.0.dev", "0.8.0", false}, {"0.10.0", "0.9.1", false},
        {"1.0.0", "0.9.1", false},     {"0.4.1", "0.5.0", false},
        {"main", "0.9.1", false},      {"", "0.9.1", false},
        {NULL, "0.9.1", false},        {"0.7.1.post1", "0.7.1", true},
        {"9", "0.9.1", false},         {"99999999999.1", "0.9.1", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        bool exact = !rows[i].exact;
        const struct verl_version *v = verl_version_find(rows[i].text, &exact);
        assert_string_equal(v->name, rows[i].row);
        assert_int_equal(exact, rows[i].exact);
    }
    assert_non_null(verl_version_find("0.5.0", NULL));
}

static void rows_are_whole_and_in_order(void **state)
{
    (void)state;
    int n = 0, last = -1;
    const struct verl_version *v = verl_version_all(&n);
    assert_true(n >= 8);
    for (int i = 0; i < n; i++) {
        int number = v[i].major * 10000 + v[i].minor * 100 + v[i].patch;
        assert_true(number > last);
        last = number;
        assert_ptr_equal(verl_version_find(v[i].name, NULL), &v[i]);
        assert_non_null(v[i].generate);
        assert_non_null(v[i].sft_torchrun);
        assert_non_null(v[i].reward_path);
        assert_non_null(v[i].reward_function);
        assert_non_null(v[i].eval_reward_path);
        assert_non_null(v[i].eval_reward_function);
        assert_true(v[i].ppo_cpus_per_gpu > 0 && v[i].generate_cpus_per_gpu > 0);
        assert_true(v[i].sft_is_engine || !v[i].sft_ray);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_rows),
        cmocka_unit_test(rows_are_whole_and_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
