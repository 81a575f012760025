/* SPDX-License-Identifier: Apache-2.0 */
/* Ceiling, growth and taking of struct buf. */
#include "base/buf.h"

#include <errno.h>
#include <stdlib.h>

#include "base/unit.h"

static void test_ceiling_refuses_and_keeps(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(5);
    assert_int_equal(buf_adds(&b, "abc"), 0);
    assert_int_equal(buf_adds(&b, "def"), -EMSGSIZE);
    assert_string_equal(buf_str(&b), "abc");
    assert_true(b.failed);
    assert_int_equal(buf_adds(&b, "d"), -EMSGSIZE); /* stays failed */
    buf_reset(&b);
    assert_int_equal(buf_addf(&b, "%d%s", 12, "345"), 0);
    assert_string_equal(buf_str(&b), "12345");
    assert_int_equal(buf_addf(&b, "x"), -EMSGSIZE);
    buf_release(&b);
}

static void test_take_and_consume(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(1000);
    assert_string_equal(buf_str(&b), "");
    for (int i = 0; i < 100; i++)
        assert_int_equal(buf_addf(&b, "%02d", i), 0);
    buf_consume(&b, 196);
    assert_string_equal(buf_str(&b), "9899");
    char *s = buf_take(&b);
    assert_string_equal(s, "9899");
    assert_int_equal(b.len, 0);
    free(s);
    s = buf_take(&b);
    assert_string_equal(s, "");
    free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_ceiling_refuses_and_keeps),
                                       cmocka_unit_test(test_take_and_consume)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
