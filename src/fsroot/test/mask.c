/* SPDX-License-Identifier: Apache-2.0 */
/* What is hidden, and what is not touched. */
#include "fsroot/attempt/mask.h"

#include <stdlib.h>
#include <string.h>

#include "base/unit.h"

static void test_json_by_value(void **state)
{
    (void)state;
    _cleanup_(mask_release) struct mask m = {0};
    static const char *const rows[][2] = {
        {"{\"canary-1\":[\"a canary-1 b\",true],\"x\":\"\"}",
         "{\"***\":[\"a *** b\",true],\"x\":\"\"}"},
        {"\"q\\\"\\\\\"", "\"q\\\"\\\\\""},
        {"[\"has \\\"quotes\\\" in\",\"true\",true,null]", "[\"***\",\"***\",true,null]"},
        {"{\"MY_TOKEN\":\"open\"}", "{\"MY_TOKEN\":\"open\"}"},
        {"\"torn canary-1", "\"torn ***"},
    };
    mask_add(&m, "canary-1");
    mask_add(&m, "has \"quotes\" in");
    mask_add(&m, "true");
    for (size_t i = 0; i < array_len(rows); i++) {
        _cleanup_(buf_release) struct buf out = BUF_INIT(1000);
        mask_json(&m, rows[i][0], &out);
        assert_string_equal(buf_str(&out), rows[i][1]);
    }
    assert_true(mask_finds(&m, "x canary-1"));
    assert_false(mask_finds(&m, "x canary-2"));
}

static void assert_masked(const struct mask *m, const char *text, const char *want)
{
    _cleanup_(buf_release) struct buf out = BUF_INIT(1 << 20);
    mask_text(m, text, &out);
    assert_string_equal(buf_str(&out), want);
}

static void test_names(void **state)
{
    (void)state;
    static const char *const secret[] = {"WANDB_API_KEY", "HF_TOKEN",      "a.b.api_key",
                                         "DB_PASSWORD",   "api-key",       "MY_KEY",
                                         "x.secret",      "aws_access_key"};
    static const char *const open[] = {
        "data.prompt_key", "data.reward_fn_key", "max_tokens", "tokenizer", "secrets",
        "HF_HOME",         "data.api_key.path"};
    for (size_t i = 0; i < array_len(secret); i++)
        assert_true(mask_is_secret(secret[i]));
    for (size_t i = 0; i < array_len(open); i++)
        assert_false(mask_is_secret(open[i]));
}

static void test_by_name(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"HF_TOKEN: abc\nB: c\n", "HF_TOKEN: \"***\"\nB: c\n"},
        {"  HF_TOKEN: 'a b' # why\n", "  HF_TOKEN: '***' # why\n"},
        {"HF_TOKEN: two words, more\n", "HF_TOKEN: \"***\"\n"},
        {"env: {HF_TOKEN: a b, X: 1}", "env: {HF_TOKEN: \"***\", X: 1}"},
        {"HF_TOKEN: |\n  line one\n  line two\nX: 1\n", "HF_TOKEN: \"***\"\nX: 1\n"},
        {"{\"HF_TOKEN\": \"a\\\"b\", \"X\": 1}", "{\"HF_TOKEN\": \"***\", \"X\": 1}"},
        {"'{\\\"HF_TOKEN\\\": \\\"abc\\\", \\\"X\\\": 1}'",
         "'{\\\"HF_TOKEN\\\": \\\"***\\\", \\\"X\\\": 1}'"},
        {"run HF_TOKEN=abc x=y", "run HF_TOKEN=*** x=y"},
        {"secrets: [HF_TOKEN, B]\n", "secrets: [HF_TOKEN, B]\n"},
        {"credentials:\n  x: 1\n", "credentials:\n  x: 1\n"},
        {"data.prompt_key=question", "data.prompt_key=question"},
        {"rollout.skip_special_token: 512\n", "rollout.skip_special_token: 512\n"},
        {"use_token=true", "use_token=true"},
        {"HF_TOKEN=12345678", "HF_TOKEN=***"},
        {"proxy: http://me:pw@host:80/x", "proxy: http://me:***@host:80/x"},
        {"see https://host:80/x a@b", "see https://host:80/x a@b"},
        {"HF_TOKEN:", "HF_TOKEN:"},
        {"HF_TOKEN: \"open", "HF_TOKEN: \"***\""},
    };
    struct mask none = {0};
    for (size_t i = 0; i < array_len(rows); i++)
        assert_masked(&none, rows[i][0], rows[i][1]);
}

static void test_by_value(void **state)
{
    (void)state;
    _cleanup_(mask_release) struct mask m = {0};
    mask_add(&m, "s3cr3t");
    mask_add(&m, "s3cr3t-long");
    mask_add(&m, "with \"quote\" and 'one'");
    mask_add(&m, "abc"); /* too short to be looked for */
    assert_masked(&m, "x s3cr3t-longer y", "x ***er y");
    assert_masked(&m, "xs3cr3ty", "x***y");
    assert_masked(&m, "{\"a\":\"with \\\"quote\\\" and 'one'\"}", "{\"a\":\"***\"}");
    assert_masked(&m, "'with \"quote\" and '\\''one'\\'''", "'***'");
    assert_masked(&m, "abc", "abc");
}

static void test_argv(void **state)
{
    (void)state;
    static const char *const in[] = {
        "python3",           "trainer.api_key=a b 'c'", "--api-key", "xyz",     "--token=q",
        "data.prompt_key=p", "+x.max_token=5",          "s3cr3t!",   "--token", "--other"};
    static const char *const want[] = {
        "python3",           "trainer.api_key=***", "--api-key", "***",     "--token=***",
        "data.prompt_key=p", "+x.max_token=5",      "***!",      "--token", "--other"};
    _cleanup_(mask_release) struct mask m = {0};
    _cleanup_(strv_release) struct strv argv = {0}, out = {0};
    mask_add(&m, "s3cr3t");
    for (size_t i = 0; i < array_len(in); i++)
        strv_add(&argv, in[i]);
    mask_argv(&m, &argv, &out);
    assert_int_equal(out.n, array_len(want));
    for (size_t i = 0; i < array_len(want); i++)
        assert_string_equal(out.v[i], want[i]);
}

static void test_value(void **state)
{
    (void)state;
    struct mask none = {0};
    static const char *const rows[][3] = {{"HF_TOKEN", "1", "***"},
                                          {"HF_TOKEN", "", ""},
                                          {"X", "a=b", "a=b"},
                                          {"HTTP_PROXY", "http://a:b@c", "http://a:***@c"}};
    for (size_t i = 0; i < array_len(rows); i++) {
        _cleanup_(freep) char *got = mask_value(&none, rows[i][0], rows[i][1]);
        assert_string_equal(got, rows[i][2]);
    }
}

static void assert_masked_by_two(const struct mask *m,
                                 const struct mask *also,
                                 const char *json,
                                 const char *want)
{
    _cleanup_(buf_release) struct buf out = BUF_INIT(1000);
    mask_json_of_two(m, also, json, &out);
    assert_string_equal(buf_str(&out), want);
}

/* One after the other would leave "-longer" of a secret. */
static void test_two_masks(void **state)
{
    (void)state;
    _cleanup_(mask_release) struct mask a = {0}, b = {0};
    struct mask none = {0};
    mask_add(&a, "s3cr3t");
    mask_add(&b, "s3cr3t-longer");
    mask_add(&b, "other");
    assert_masked_by_two(&a, &b, "[\"s3cr3t-longer\",\"s3cr3t\",\"other\"]",
                         "[\"***\",\"***\",\"***\"]");
    assert_masked_by_two(&b, &a, "[\"s3cr3t-longer\",\"s3cr3t-long\"]", "[\"***\",\"***-long\"]");
    assert_masked_by_two(&a, &none, "\"s3cr3t other\"", "\"*** other\"");
}

/* Some begin like others, some like none, and all are looked for by halves. */
static void test_values_that_begin_alike(void **state)
{
    (void)state;
    _cleanup_(mask_release) struct mask m = {0};
    static const char *const values[] = {"bbbbb", "abcd",          "abcdefgh", "abcdz", "bbbb",
                                         "abce",  "abcdef\",\"bb", "abcdefg",  "abcd",  "zzzz"};
    for (size_t i = 0; i < array_len(values); i++)
        mask_add(&m, values[i]);
    for (size_t i = 1; i < m.values.n; i++)
        assert_true(strcmp(m.values.v[i - 1], m.values.v[i]) < 0);
    assert_masked(&m, "abcdefgh", "***");
    assert_masked(&m, "abcdefgx", "***x");
    assert_masked(&m, "abcdefx", "***efx");
    assert_masked(&m, "abcdzz abcc", "***z abcc");
    assert_masked(&m, "bbbbbbbbbba", "******a");
    assert_masked(&m, "bbb bbbbc", "bbb ***c");
    assert_masked(&m, "~~~~ zzz", "~~~~ zzz");
    _cleanup_(buf_release) struct buf out = BUF_INIT(1000);
    mask_json(&m, "[\"abcdef\",\"bbbb\"]", &out); /* what is longer ends behind the quote */
    assert_string_equal(buf_str(&out), "[\"***ef\",\"***\"]");
}

/* As long as those of a whole spec may be. */
static void test_many_values(void **state)
{
    enum { MANY = 20000 };
    (void)state;
    _cleanup_(mask_release) struct mask m = {0};
    for (int round = 0; round < 2; round++)
        for (unsigned i = 0; i < MANY; i++) {
            _cleanup_(freep) char *value = xasprintf("value-%u", i * 7919U % MANY);
            mask_add(&m, value);
        }
    assert_int_equal(m.values.n, MANY);
    assert_masked(&m, "value-19999 value-x value-00", "*** value-x ***0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),         cmocka_unit_test(test_by_name),
        cmocka_unit_test(test_by_value),      cmocka_unit_test(test_argv),
        cmocka_unit_test(test_json_by_value), cmocka_unit_test(test_value),
        cmocka_unit_test(test_two_masks),     cmocka_unit_test(test_values_that_begin_alike),
        cmocka_unit_test(test_many_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
