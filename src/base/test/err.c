/* SPDX-License-Identifier: Apache-2.0 */
/* Codes map both ways, sentences are cut and masked. */
#include "base/err.h"

#include <errno.h>
#include <string.h>

#include "base/unit.h"

static void test_words_map_both_ways(void **state)
{
    (void)state;
#define X(e, w, h, x)                                                                              \
    assert_int_equal(err_from_word(w), e);                                                         \
    assert_string_equal(err_word(e), w);                                                           \
    assert_int_equal(err_http_status(e), h);                                                       \
    assert_int_equal(err_exit_status(e), x);
    ERR_TABLE(X)
#undef X
    assert_int_equal(err_from_word("no such word"), ERR_INTERNAL);
    assert_string_equal(err_word(-ENOENT), "not_found");
    assert_int_equal(err_http_status(-ENOSPC), 503);
    assert_int_equal(err_http_status(-EBADF), 500);
}

static void test_sentence_is_cut_and_masked(void **state)
{
    (void)state;
    char big[1000];
    memset(big, 'x', sizeof(big) - 1);
    big[sizeof(big) - 1] = 0;
    struct err e = {0};
    assert_int_equal(err_set(&e, -EINVAL, "%s", big), -EINVAL);
    assert_string_equal(e.text + strlen(e.text) - 4, "x...");
    assert_int_equal(err_set(&e, ERR_NOT_FOUND, "no job 'a\nb\x1b[1m'"), ERR_NOT_FOUND);
    assert_string_equal(e.text, "no job 'a b [1m'");
    assert_int_equal(err_prefix(&e, "file '%s'", "f"), ERR_NOT_FOUND);
    assert_string_equal(e.text, "file 'f': no job 'a b [1m'");
    assert_int_equal(err_set(NULL, -EIO, "x"), -EIO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_words_map_both_ways),
                                       cmocka_unit_test(test_sentence_is_cut_and_masked)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
