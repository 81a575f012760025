/* SPDX-License-Identifier: Apache-2.0 */
/* tokencount.c - tests of tokens found while an answer passes, in pieces of any size. */
#include <stdlib.h>
#include <string.h>

#include "argusd/calls/tokencount.h"
#include "base/mem.h"
#include "base/unit.h"

static bool count(const char *text, size_t k, int64_t *in, int64_t *out)
{
    struct tokencount t;
    size_t n = strlen(text);
    tokencount_init(&t);
    for (size_t at = 0; at < n; at += k)
        tokencount_add(&t, text + at, n - at < k ? n - at : k);
    return tokencount_read(&t, in, out);
}

static void test_usage_of_an_answer(void **state)
{
    const char *text = "{\"id\":\"x\",\"choices\":[{\"message\":{\"content\":\"\\\"usage\\\"\"}}],"
                       "\"usage\":{\"prompt_tokens\": 12,\"total_tokens\":42,"
                       "\"completion_tokens\":30}}";
    int64_t in, out;
    (void)state;
    for (size_t k = 1; k < 200; k++) {
        assert_true(count(text, k, &in, &out));
        assert_int_equal(in, 12);
        assert_int_equal(out, 30);
    }
    assert_true(count("{\"usage\":{\"prompt_tokens\":5,\"total_tokens\":5}}", 7, &in, &out));
    assert_int_equal(in, 5);
    assert_int_equal(out, 0);
}

static void test_streams(void **state)
{
    const char *bare =
        "data: {\"a\":1}\n\ndata: {\"a\":2}\n\n: beat\n\nxdata: no\n\ndata: [DONE]\n\n";
    const char *told = "data: {\"a\":1}\n\ndata: {\"usage\":{\"prompt_tokens\":3,"
                       "\"completion_tokens\":9}}\n\ndata: [DONE]\n\n";
    int64_t in, out;
    (void)state;
    for (size_t k = 1; k < 40; k++) {
        assert_false(count(bare, k, &in, &out));
        assert_int_equal(in, -1);
        assert_int_equal(out, 2);
        assert_true(count(told, k, &in, &out));
        assert_int_equal(in, 3);
        assert_int_equal(out, 9);
    }
}

static void test_what_says_nothing(void **state)
{
    static const char *const texts[] = {"",
                                        "hello",
                                        "{\"usage\":null}",
                                        "{\"usage\":{}}",
                                        "{\"usage\":{\"prompt_tokens\":\"many\"}}",
                                        "{\"usage\":{\"prompt_tokens\":-4}}",
                                        "{\"usage\":{\"prompt_tokens\":"};
    int64_t in, out;
    (void)state;
    for (size_t i = 0; i < array_len(texts); i++) {
        assert_false(count(texts[i], 3, &in, &out));
        assert_int_equal(in, -1);
        assert_int_equal(out, -1);
    }
}

static void test_a_long_answer_and_a_large_number(void **state)
{
    const char *end = "\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":99999999999999999999}}";
    _cleanup_(freep) char *text = xmalloc(1000001 + strlen(end));
    int64_t in, out;
    (void)state;
    memset(text, 'y', 1000000);
    memcpy(text + 1000000, end, strlen(end) + 1);
    const size_t pieces[] = {1, 1000, 4096, 5000, 100000, 2000000};
    for (size_t i = 0; i < array_len(pieces); i++) {
        assert_true(count(text, pieces[i], &in, &out));
        assert_int_equal(in, 7);
        assert_true(out > 0 && out < 100000000000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_usage_of_an_answer),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_what_says_nothing),
        cmocka_unit_test(test_a_long_answer_and_a_large_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
