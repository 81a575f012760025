/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of answer.c: lines, their cutting and masking. */
#include "ssh/answer.h"

#include <string.h>

#include "base/unit.h"

static void test_lines(void **state)
{
    (void)state;
    static const char text[] =
        "noise\nA=1\n=x\nlower=2\nB_2= two words \r\nTHIS_KEY_IS_MUCH_TOO_LONG=3\n\nC=";
    struct answer a = answer_of(text, strlen(text));
    assert_true(answer_next(&a) && answer_is(&a, "A"));
    assert_string_equal(a.value, "1");
    assert_true(answer_next(&a) && answer_is(&a, "B_2"));
    assert_string_equal(a.value, " two words");
    assert_true(answer_next(&a) && answer_is(&a, "C"));
    assert_string_equal(a.value, "");
    assert_false(answer_next(&a));
    assert_false(answer_next(&a));
}

static void test_values_are_printable(void **state)
{
    (void)state;
    static const char text[] = "A=a\x1b[31m\tb\x01\xff\xc3\xa9\xc3";
    struct answer a = answer_of(text, strlen(text));
    assert_true(answer_next(&a));
    assert_string_equal(a.value, "a?[31m b??\xc3\xa9?");
}

static void test_values_are_cut(void **state)
{
    (void)state;
    char text[2000] = "A=";
    memset(text + 2, 'x', sizeof(text) - 2);
    text[ANSWER_VALUE_MAX] = '\xc3'; /* the cut would go through a letter */
    text[ANSWER_VALUE_MAX + 1] = '\xa9';
    struct answer a = answer_of(text, sizeof(text));
    assert_true(answer_next(&a));
    assert_int_equal(strlen(a.value), ANSWER_VALUE_MAX - 1);
    assert_int_equal(a.value[ANSWER_VALUE_MAX - 2], '?');
}

static void test_words(void **state)
{
    (void)state;
    const char *rest = "  12 three  -4 99999999999999999999 last words";
    char word[8];
    assert_int_equal(answer_number(&rest, 100, 7), 12);
    answer_word(&rest, word, 4);
    assert_string_equal(word, "thr");
    assert_int_equal(answer_number(&rest, 100, 7), 7);
    assert_int_equal(answer_number(&rest, UINT64_MAX, 7), 7);
    assert_string_equal(rest, "last words");
    answer_text(rest, word, sizeof(word));
    assert_string_equal(word, "last wo");
    rest = "";
    answer_word(&rest, word, sizeof(word));
    assert_string_equal(word, "");
    assert_int_equal(answer_number(&rest, 5, 3), 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_values_are_printable),
        cmocka_unit_test(test_values_are_cut),
        cmocka_unit_test(test_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
