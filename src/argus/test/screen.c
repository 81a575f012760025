/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of screen.h: colours pass, nothing else steers the terminal, and no byte is lost. */
#include "argus/show/screen.h"

#include <stdlib.h>
#include <string.h>

#include "base/unit.h"

static void test_what_steers_is_shown(void **state)
{
    char *text = NULL;
    size_t n = 0;
    (void)state;
    FILE *to = open_memstream(&text, &n), *f = screen_open(to);
    assert_non_null(f);
    assert_true(fputs("\033[31mred\033[0m \033]0;title\a\033[2J\xc2\x9b"
                      "1A\n",
                      f) >= 0);
    assert_string_equal(text, "\033[31mred\033[0m ^[]0;title^G^[[2J\\x9b1A\n"); /* at its end */
    for (int i = 0; i < 10000; i++)
        assert_true(fputs("0123456789", f) >= 0);
    assert_true(fputs("\033[3", f) >= 0); /* a colour that never ends */
    assert_int_equal(fclose(f), 0);
    assert_int_equal(fflush(to), 0);
    assert_int_equal(n, strlen("\033[31mred\033[0m ^[]0;title^G^[[2J\\x9b1A\n") + 100000 + 4);
    assert_string_equal(text + n - 4, "^[[3");
    assert_int_equal(fclose(to), 0);
    free(text);
}

static void test_a_failure_is_seen(void **state)
{
    (void)state;
    FILE *full = fopen("/dev/full", "w"), *f = screen_open(full);
    assert_non_null(f);
    (void)fputs("a line\n", f);
    assert_true(fflush(f) != 0 || ferror(f));
    (void)fclose(f);
    (void)fclose(full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_steers_is_shown),
        cmocka_unit_test(test_a_failure_is_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
