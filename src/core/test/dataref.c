/* SPDX-License-Identifier: Apache-2.0 */
/* dataref.c - tests of names that are taken, and of those that are not. */
#include "core/spec/dataref.h"

#include <string.h>

#include "base/unit.h"

static void test_read(void **state)
{
    struct dataref d;
    (void)state;
    assert_true(dataref_read("gsm8k", &d));
    assert_string_equal(d.name, "gsm8k");
    assert_string_equal(d.owner, "");
    assert_int_equal(d.version, 0);
    assert_null(d.file);
    assert_true(dataref_read("common:Qwen2.5-0.5B@12/a/b.parquet", &d));
    assert_string_equal(d.name, "Qwen2.5-0.5B");
    assert_string_equal(d.owner, "common");
    assert_int_equal(d.version, 12);
    assert_string_equal(d.file, "a/b.parquet");
    assert_true(dataref_read("gsm8k/train.parquet", &d));
    assert_string_equal(d.file, "train.parquet");
}

static void test_refused(void **state)
{
    static const char *const bad[] = {"",
                                      "/a",
                                      "${SHARED_ROOT}/a",
                                      "~a",
                                      "../a",
                                      "a/",
                                      "a//b",
                                      "a/../b",
                                      "a/.",
                                      "a@",
                                      "a@0",
                                      "a@x",
                                      "a@1x",
                                      "a@99999999999999",
                                      ":a",
                                      "a:",
                                      "a:b:c",
                                      "a b",
                                      "a/b\\c",
                                      "a\n",
                                      "a/b\n",
                                      "a@1@2"};
    struct dataref d = {.version = 7};
    (void)state;
    for (size_t i = 0; i < array_len(bad); i++)
        assert_false(dataref_read(bad[i], &d));
    assert_int_equal(d.version, 7);
}

static void test_name(void **state)
{
    struct err err;
    char name[DATAREF_NAME_MAX + 2];
    (void)state;
    memset(name, 'a', sizeof(name));
    name[sizeof(name) - 1] = 0;
    assert_int_equal(dataref_check_name("data set", name, NULL), ERR_BAD_SPEC);
    name[DATAREF_NAME_MAX] = 0;
    assert_int_equal(dataref_check_name("data set", name, NULL), 0);
    assert_int_equal(dataref_check_name("data set", "a/b", &err), ERR_BAD_SPEC);
    assert_string_equal(err.text, "'a/b' cannot be the name of a data set: 1 to 63 of a-z A-Z 0-9 "
                                  "_ . - , beginning with a letter or a number");
    assert_int_equal(dataref_check_name("data set", "", NULL), ERR_BAD_SPEC);
    assert_int_equal(dataref_check_name("data set", ".a", NULL), ERR_BAD_SPEC);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
