/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of tailmark.h: what is kept, and what a later read is told by it. */
#include "argusd/logs/tailmark.h"

#include <string.h>

#include "base/unit.h"

static enum tailmark_sight sight(const struct tailmark *m, uint64_t at, const char *text)
{
    return tailmark_compare(m, at, text, strlen(text), at + strlen(text));
}

static void test_kept(void **state)
{
    struct tailmark m = {0};
    char long_text[3 * TAILMARK_BYTES];
    (void)state;
    tailmark_add(&m, 0, "one\n", 4);
    tailmark_add(&m, 4, "two\n", 4);
    assert_int_equal(m.n, 8);
    assert_memory_equal(m.bytes, "one\ntwo\n", 8);
    tailmark_add(&m, 100, "far\n", 4); /* behind a gap */
    assert_int_equal(m.n, 4);
    assert_int_equal(m.end, 104);
    for (size_t i = 0; i < sizeof(long_text); i++)
        long_text[i] = (char)('a' + i % 23);
    tailmark_add(&m, 104, long_text, sizeof(long_text));
    assert_int_equal(m.n, TAILMARK_BYTES);
    assert_memory_equal(m.bytes, long_text + 2 * TAILMARK_BYTES, TAILMARK_BYTES);
    tailmark_add(&m, m.end, "end", 3);
    assert_int_equal(m.n, TAILMARK_BYTES);
    assert_memory_equal(m.bytes, long_text + 2 * TAILMARK_BYTES + 3, TAILMARK_BYTES - 3);
    assert_memory_equal(m.bytes + TAILMARK_BYTES - 3, "end", 3);
}

static void test_sight(void **state)
{
    struct tailmark m = {0};
    (void)state;
    assert_int_equal(sight(&m, 0, ""), TAILMARK_SAME);
    tailmark_add(&m, 10, "one two", 7);
    assert_int_equal(sight(&m, 10, "one two"), TAILMARK_SAME);
    assert_int_equal(sight(&m, 10, "one two three"), TAILMARK_SAME);
    assert_int_equal(sight(&m, 14, "two three"), TAILMARK_SAME); /* its first bytes were dropped */
    assert_int_equal(sight(&m, 17, "three"), TAILMARK_SAME);     /* all of them were */
    assert_int_equal(sight(&m, 10, "one"), TAILMARK_CUT);
    assert_int_equal(sight(&m, 10, "one Two"), TAILMARK_OTHER);
    assert_int_equal(sight(&m, 10, "oNe"), TAILMARK_OTHER);
    assert_int_equal(sight(&m, 14, "TWO"), TAILMARK_OTHER);
    assert_int_equal(tailmark_compare(&m, 10, "", 0, 10), TAILMARK_OTHER);
    assert_int_equal(tailmark_compare(&m, 10, "", 0, 3), TAILMARK_OTHER);
    assert_int_equal(tailmark_compare(&m, 10, "", 0, 0), TAILMARK_OTHER);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_sight),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
