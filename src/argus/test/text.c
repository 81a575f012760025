/* SPDX-License-Identifier: Apache-2.0 */
/* Width, cutting, cleaning and wrapping of text that a server chose. */
#include "argus/show/text.h"

#include <string.h>

#include "base/unit.h"

static void test_width(void **state)
{
    (void)state;
    assert_int_equal(text_width(""), 0);
    assert_int_equal(text_width("abc"), 3);
    assert_int_equal(text_width("节点×GPU"), 8);
    assert_int_equal(text_width("e\xcc\x81"), 1);        /* combining accent */
    assert_int_equal(text_width("\xff\xc0\xaf"), 3);     /* no UTF-8: a column each */
    assert_int_equal(text_width("\xf0\x9f\x98\x80"), 2); /* emoji */
    assert_int_equal(text_width("\xed\xa0\x80"), 3);     /* surrogate: no UTF-8 */
    assert_int_equal(text_width("\xf4\x90\x80\x80"), 4); /* beyond Unicode */
    assert_int_equal(text_width("\xe4\xbd"), 2);         /* cut short */
}

static void check_cut(const char *s, int width, const char *want)
{
    struct buf b = BUF_INIT(100);
    text_cut(&b, s, width);
    assert_string_equal(buf_str(&b), want);
    assert_true(text_width(buf_str(&b)) <= width);
    buf_release(&b);
}

static void test_cut(void **state)
{
    (void)state;
    check_cut("abcdef", 6, "abcdef");
    check_cut("abcdef", 5, "abcd…");
    check_cut("数学推理", 8, "数学推理");
    check_cut("数学推理", 7, "数学推…");
    check_cut("数学推理", 6, "数学…"); /* half a character is none */
    check_cut("abc", 1, "…");
    check_cut("abc", 0, "");
}

static void test_cut_middle(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(200);
    text_cut_middle(&b, "grpo-run-0007", 9);
    assert_string_equal(buf_str(&b), "grpo…0007");
    buf_reset(&b);
    text_cut_middle(&b, "基线实验七", 8);
    assert_string_equal(buf_str(&b), "基线…七");
    buf_reset(&b);
    for (int width = 0; width < 14; width++) {
        text_cut_middle(&b, "grpo-实验-0007", width);
        assert_true(text_width(buf_str(&b)) <= width);
        buf_reset(&b);
    }
    buf_release(&b);
}

static void test_clean(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(100);
    text_clean(&b, "a\x1b[2Jb\n\tc\x7f\xc2\x9b\xe2\x80\xae\xff 节");
    assert_string_equal(buf_str(&b), "a?[2Jb  c???? 节");
    buf_reset(&b);
    text_clean(&b, "\u061c\u200e\u200f\u202a\u2065\u2066\u2067\u2068\u2069\u206a\u200d");
    assert_string_equal(buf_str(&b), "????\u2065????\u206a\u200d");
    buf_release(&b);
}

static void test_wrap(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(200);
    text_wrap(&b, "one two three four", 10, 2);
    assert_string_equal(buf_str(&b), "one two\n  three\n  four");
    buf_reset(&b);
    text_wrap(&b, "unbreakable-word x", 5, 0);
    assert_string_equal(buf_str(&b), "unbreakable-word\nx");
    buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_width),      cmocka_unit_test(test_cut),
        cmocka_unit_test(test_cut_middle), cmocka_unit_test(test_clean),
        cmocka_unit_test(test_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
