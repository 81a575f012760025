/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of store/batch.h: what is packed is unpacked, in order, and large blocks are
 * given back. */
#include "store/batch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static void expect_begin(const struct batch *b, size_t *pos, int64_t statement)
{
    struct batch_item it;
    assert_int_equal(batch_next(b, pos, &it), 1);
    assert_int_equal(it.kind, BATCH_BEGIN);
    assert_int_equal(it.i, statement);
}

static void test_values_come_back(void **state)
{
    struct batch b = {0};
    struct batch_item it;
    size_t pos = 0;
    (void)state;
    batch_begin(&b, 7);
    batch_int(&b, -5);
    batch_real(&b, 0.25);
    batch_text(&b, "");
    batch_text(&b, "grün");
    batch_text(&b, NULL);
    batch_blob(&b, "\0\1\2", 3);
    expect_begin(&b, &pos, 7);
    assert_int_equal(batch_next(&b, &pos, &it), 1);
    assert_int_equal(it.kind, BATCH_INT);
    assert_int_equal(it.i, -5);
    assert_int_equal(batch_next(&b, &pos, &it), 1);
    assert_int_equal(it.kind, BATCH_REAL);
    assert_true(it.r >= 0.25 && it.r <= 0.25);
    assert_int_equal(batch_next(&b, &pos, &it), 1);
    assert_int_equal(it.kind, BATCH_TEXT);
    assert_int_equal(it.n, 0);
    assert_int_equal(batch_next(&b, &pos, &it), 1);
    assert_int_equal(it.n, strlen("grün"));
    assert_memory_equal(it.p, "grün", it.n);
    assert_int_equal(batch_next(&b, &pos, &it), 1);
    assert_int_equal(it.kind, BATCH_NULL);
    assert_int_equal(batch_next(&b, &pos, &it), 1);
    assert_int_equal(it.kind, BATCH_BLOB);
    assert_int_equal(it.n, 3);
    assert_memory_equal(it.p, "\0\1\2", 3);
    assert_int_equal(batch_next(&b, &pos, &it), 0);
    batch_release(&b);
}

static void test_append_keeps_order_and_number(void **state)
{
    struct batch all = {0}, turn = {0};
    struct batch_item it;
    size_t pos = 0;
    (void)state;
    for (unsigned i = 1; i <= 3; i++) {
        batch_begin(&turn, i);
        batch_int(&turn, i);
        turn.number = i;
        batch_append(&all, &turn);
        assert_int_equal(turn.len, 0);
        assert_int_equal(all.number, i);
    }
    for (unsigned i = 1; i <= 3; i++) {
        expect_begin(&all, &pos, i);
        assert_int_equal(batch_next(&all, &pos, &it), 1);
        assert_int_equal(it.i, i);
    }
    assert_int_equal(batch_next(&all, &pos, &it), 0);
    batch_release(&all);
    batch_release(&turn);
}

static void test_a_burst_is_given_back(void **state)
{
    struct batch b = {0};
    char *big = xmalloc(4 << 20);
    (void)state;
    memset(big, 'x', 4 << 20);
    big[(4 << 20) - 1] = '\0';
    batch_text(&b, "small");
    batch_reset(&b);
    assert_true(b.cap > 0);
    batch_text(&b, big);
    batch_reset(&b);
    assert_int_equal(b.cap, 0);
    batch_text(&b, "again");
    assert_true(b.len > 0);
    batch_release(&b);
    free(big);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_come_back),
        cmocka_unit_test(test_append_keeps_order_and_number),
        cmocka_unit_test(test_a_burst_is_given_back),
    };

    return cmocka_run_group_tests_name("store/batch", tests, NULL, NULL);
}
