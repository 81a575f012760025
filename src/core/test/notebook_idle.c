/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of notebook_idle.h: nobody is stopped unwarned, early, or while it is kept. */
#include "core/notebook/notebook_idle.h"

#include "base/mem.h"
#include "base/unit.h"

#define M USEC_MIN
static void test_the_rule(void **state)
{
    static const struct {
        struct notebook_use u;
        enum notebook_idle is;
        usec_t left;
    } cases[] = {
        {{.limit = 0, .quiet = 100 * M}, NOTEBOOK_IN_USE, 0},
        {{.limit = 60 * M, .quiet = 0}, NOTEBOOK_IN_USE, 60 * M},
        {{.limit = 60 * M, .quiet = 49 * M}, NOTEBOOK_IN_USE, 11 * M},
        {{.limit = 60 * M, .quiet = 50 * M}, NOTEBOOK_WARNED, 10 * M},
        {{.limit = 60 * M, .quiet = 55 * M, .warned = 5 * M}, NOTEBOOK_WARNED, 5 * M},
        {{.limit = 60 * M, .quiet = 60 * M, .warned = 10 * M}, NOTEBOOK_OVERDUE, 0},
        {{.limit = 60 * M, .quiet = 999 * M}, NOTEBOOK_WARNED, 10 * M}, /* argusd was away */
        {{.limit = 60 * M, .quiet = 999 * M, .warned = 4 * M}, NOTEBOOK_WARNED, 6 * M},
        {{.limit = 60 * M, .quiet = 999 * M, .kept = 30 * M}, NOTEBOOK_IN_USE, 30 * M},
        {{.limit = 60 * M, .quiet = 999 * M, .kept = 3 * M, .warned = 60 * M},
         NOTEBOOK_WARNED,
         3 * M},
        {{.limit = 4 * M, .quiet = 3 * M}, NOTEBOOK_WARNED, M},
    };
    (void)state;
    for (size_t i = 0; i < array_len(cases); i++) {
        usec_t left = 77;
        assert_int_equal(notebook_idle_judge(&cases[i].u, &left), cases[i].is);
        assert_int_equal(left, cases[i].left);
    }
}

/* Minute by minute: the warning comes once, its notice is whole, and then it ends. */
static void test_a_quiet_evening(void **state)
{
    usec_t warned_at = 0, ended = 0;
    (void)state;
    for (usec_t t = M; !ended; t += M) {
        usec_t left;
        const struct notebook_use u = {
            .limit = 40 * M, .quiet = t, .warned = warned_at ? t - warned_at : 0};
        enum notebook_idle is = notebook_idle_judge(&u, &left);
        if (is == NOTEBOOK_WARNED && !warned_at)
            warned_at = t;
        if (is == NOTEBOOK_OVERDUE)
            ended = t;
    }
    assert_int_equal(warned_at, 30 * M);
    assert_int_equal(ended, 40 * M);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_rule),
        cmocka_unit_test(test_a_quiet_evening),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
