/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of gang.c: the text of a lease both ways, and what is asked about its nodes. */
#include "core/job/gang.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/unit.h"

static void check_text(const char *text, const char *back)
{
    struct gang g;
    struct buf out = BUF_INIT(4096);
    gang_from_text(text, &g);
    gang_to_text(&g, &out);
    assert_string_equal(buf_str(&out), back);
    buf_release(&out);
    gang_release(&g);
}

static void test_text_both_ways(void **state)
{
    (void)state;
    check_text("a:0+1,b:2", "a:0+1,b:2");
    check_text("a,b", "a,b"); /* written before GPUs were known */
    check_text("a:63", "a:63");
    check_text("a:3+1", "a:1+3");
    check_text("a:,b:64+x", "a,b"); /* no GPU of a node */
    check_text("", "");
    check_text(NULL, "");
}

static void test_what_is_asked(void **state)
{
    (void)state;
    struct gang g, other, none = {0};
    gang_from_text("w1:0+1,w2:2,w3", &g);
    gang_from_text("w9,w2", &other);
    assert_int_equal(g.n, 3);
    assert_int_equal(gang_node_gpus(&g.v[0]), 2);
    assert_int_equal(gang_node_gpus(&g.v[2]), 0);
    assert_string_equal(gang_driver(&g), "w1");
    assert_null(gang_driver(&none));
    assert_true(gang_has(&g, "w3"));
    assert_false(gang_has(&g, "w") || gang_has(&g, "") || gang_has(&g, NULL));
    assert_true(gang_meets(&g, &other) && gang_meets(&other, &g));
    assert_false(gang_meets(&g, &none) || gang_meets(&none, &none));
    gang_release(&g);
    gang_release(&other);
}

static void test_nodes_that_look_alike_do_not_meet(void **state)
{
    (void)state;
    struct gang a, b;
    gang_from_text("a,b", &a);
    gang_from_text("c,ab,ba", &b);
    assert_false(gang_meets(&a, &b));
    gang_release(&a);
    gang_release(&b);
}

static void test_the_driver_is_first(void **state)
{
    (void)state;
    struct gang g, copy;
    gang_from_text("a:0,b:1,c:2", &g);
    gang_set_driver(&g, "c");
    gang_set_driver(&g, "x");
    gang_set_driver(&g, NULL);
    gang_copy(&copy, &g);
    _cleanup_(freep) char *names = gang_names(&copy);
    assert_string_equal(names, "c,a,b");
    assert_true(copy.v[0].gpus == 4);
    gang_release(&g);
    gang_release(&copy);
    gang_copy(&copy, NULL);
    assert_null(gang_names(&copy));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_text_both_ways),
        cmocka_unit_test(test_what_is_asked),
        cmocka_unit_test(test_nodes_that_look_alike_do_not_meet),
        cmocka_unit_test(test_the_driver_is_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
