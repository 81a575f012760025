/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of serve_name.h: no two services ever mean one application. */
#include "core/serve/serve_name.h"

#include <string.h>

#include "base/unit.h"

static void test_names(void **state)
{
    static const char *const good[] = {"sums", "a", "a-v", "q2-5", "a-v1b", "a-r2", "1"};
    static const char *const bad[] = {"",
                                      "-a",
                                      "A",
                                      "a_b",
                                      "a.b",
                                      "a-v1",
                                      "a-v12-r3",
                                      "a b",
                                      "a/b",
                                      "sums-v2",
                                      "abcdefghijklmnopqrstuvwxyz0123456789abcde"};
    (void)state;
    for (size_t i = 0; i < array_len(good); i++)
        assert_int_equal(serve_name_check(good[i], NULL), 0);
    for (size_t i = 0; i < array_len(bad); i++) {
        struct err err = {0};
        assert_int_equal(serve_name_check(bad[i], &err), ERR_BAD_SPEC);
        assert_string_equal(err.message, "serve_name");
    }
}

static void test_apps_there_and_back(void **state)
{
    char app[SERVE_APP_MAX], name[SERVE_NAME_MAX + 1], route[SERVE_APP_MAX + 8];
    int64_t version, unit;
    (void)state;
    assert_string_equal(serve_app_name("sums", 2, 1, app), "sums-v2");
    assert_string_equal(serve_app_route(app, route), "/s/sums-v2");
    assert_true(serve_app_parse(app, name, &version, &unit));
    assert_string_equal(name, "sums");
    assert_true(version == 2 && unit == 1);
    assert_string_equal(serve_app_name("a-v", 10, 12, app), "a-v-v10-r12");
    assert_true(serve_app_parse(app, name, &version, &unit));
    assert_string_equal(name, "a-v");
    assert_true(version == 10 && unit == 12);
    static const char *const others[] = {
        "sums", "sums-v0", "sums-v02", "sums-v2-r1", "-v2",
        "v2",   "sums-r2", "Sums-v2",  "a-v1-v2",    "sums-v99999999999999999999"};
    for (size_t i = 0; i < array_len(others); i++)
        assert_false(serve_app_parse(others[i], name, &version, &unit));
}

static void test_a_name_is_made(void **state)
{
    char name[SERVE_NAME_MAX + 1];
    (void)state;
    serve_name_make("Qwen2.5_0.5B-", name);
    assert_string_equal(name, "qwen2-5-0-5b");
    serve_name_make("模型", name);
    assert_string_equal(name, "");
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_apps_there_and_back),
        cmocka_unit_test(test_a_name_is_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
