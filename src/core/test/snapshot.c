/* SPDX-License-Identifier: Apache-2.0 */
/* Names of snapshots, and names that may stand in one. */
#include <stdlib.h>
#include <string.h>

#include "base/unit.h"
#include "core/spec/snapshot.h"

static void test_ref(void **state)
{
    static const char *const good[] = {"verl@1", "verl@0.9.1", "my_code.x-2@Abc+1.2_3", "v@a"};
    static const char *const bad[] = {"",      "verl",  "verl@",  "@1",    "Verl@1",
                                      "a@b@c", "a/b@c", "a@../b", ".a@b",  "a@.b",
                                      "a@b\n", "a@-b",  "a b@c",  "a@b c", "\xc3\xa4@1"};
    struct err err;
    (void)state;
    for (size_t i = 0; i < array_len(good); i++)
        assert_int_equal(snapshot_check_ref(good[i], &err), 0);
    for (size_t i = 0; i < array_len(bad); i++) {
        assert_int_equal(snapshot_check_ref(bad[i], &err), ERR_BAD_REQUEST);
        assert_non_null(strstr(err.text, "use name@version"));
    }
    char longest[2 * SNAPSHOT_NAME_MAX + 3];
    memset(longest, 'a', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = 0;
    longest[SNAPSHOT_NAME_MAX] = '@';
    assert_int_equal(snapshot_check_ref(longest, &err), ERR_BAD_REQUEST);
    longest[2 * SNAPSHOT_NAME_MAX + 1] = 0;
    assert_int_equal(snapshot_check_ref(longest, &err), 0);
    assert_true(strlen(longest) < SNAPSHOT_REF_BUF);
    assert_true(snapshot_is_ref("verl@1"));
    assert_false(snapshot_is_ref("/a@b"));
    assert_false(snapshot_is_ref("./a@b"));
    assert_false(snapshot_is_ref("$A@b"));
    assert_false(snapshot_is_ref("verl"));
    assert_false(snapshot_is_ref(""));
}

static void test_good_paths(void **state)
{
    static const char *const good[] = {
        "a",
        "verl/trainer/main_ppo.py",
        ".gitignore",
        "...",
        "a b/c,d;e'f\"g",
        "caf\xc3\xa9",                           /* composed */
        "\xe6\xa8\xa1\xe5\x9e\x8b/\xe8\xaf\xbb", /* Chinese */
        "\xd0\xba\xd0\xbe\xd0\xb4/x.py",         /* Cyrillic in a part of its own */
        "\xce\xbcs-\xce\xb1",                    /* Greek without Latin twins */
        "\xf0\x9f\x98\x80",
    };
    struct err err = {0};
    (void)state;
    for (size_t i = 0; i < array_len(good); i++)
        assert_int_equal(snapshot_check_path(good[i], &err), 0);
}

static void test_bad_paths(void **state)
{
    static const struct {
        const char *path, *why;
    } bad[] = {
        {"", "is empty"},
        {"/etc/passwd", "is absolute"},
        {"C:/x", "is absolute"},
        {"a//b", "empty part"},
        {"a/", "empty part"},
        {"../x", "'..'"},
        {"a/../../x", "'..'"},
        {"a/./b", "'.'"},
        {"a\nb", "control character"},
        {"a\x7f", "control character"},
        {"a\\b", "backslash"},
        {"a\xff", "is not valid UTF-8"},
        {"a\xc0\xaf", "is not valid UTF-8"}, /* an overlong slash */
        {"user\xe2\x80\xae"
         "fdp.exe",
         "direction-changing"},         /* right-to-left override */
        {"a\xe2\x80\x8b", "invisible"}, /* zero width space */
        {"a\xef\xbb\xbf", "invisible"},
        {"cafe\xcc\x81", "composed form"},
        {"\xe2\x84\xab", "composed form"},             /* the Angstrom sign */
        {"\xe1\x84\x80\xe1\x85\xa1", "composed form"}, /* Hangul jamo */
        {"a\xe2\x88\x95"
         "b",
         "look-alike"},                             /* division slash */
        {"\xef\xbc\x8e\xef\xbc\x8e", "look-alike"}, /* full-width dots */
        {"a\xc2\xa0", "look-alike"},                /* a blank that is none */
        {"v\xd0\xb5rl/x", "look the same"},         /* Cyrillic e */
        {"t\xce\xbfrch", "look the same"},          /* Greek omicron */
    };
    struct err err;
    (void)state;
    for (size_t i = 0; i < array_len(bad); i++) {
        assert_int_equal(snapshot_check_path(bad[i].path, &err), ERR_REFUSED);
        if (!strstr(err.text, bad[i].why))
            fail_msg("%zu: '%s' does not say '%s'", i, err.text, bad[i].why);
        for (const char *s = err.text; *s; s++)
            assert_true(*s >= 0x20 && *s < 0x7f);
    }
}

static void test_limits(void **state)
{
    char path[SNAPSHOT_PATH_MAX + 2];
    struct err err;
    (void)state;
    memset(path, 'a', sizeof(path));
    path[SNAPSHOT_PART_MAX] = 0;
    assert_int_equal(snapshot_check_path(path, &err), 0);
    path[SNAPSHOT_PART_MAX] = 'a';
    path[SNAPSHOT_PART_MAX + 1] = 0;
    assert_int_equal(snapshot_check_path(path, &err), ERR_REFUSED);
    for (size_t i = 0; i + 1 < sizeof(path); i++)
        path[i] = i % 20 == 19 ? '/' : 'a';
    path[SNAPSHOT_PATH_MAX] = 0;
    assert_int_equal(snapshot_check_path(path, &err), 0);
    path[SNAPSHOT_PATH_MAX] = 'a';
    path[SNAPSHOT_PATH_MAX + 1] = 0;
    assert_int_equal(snapshot_check_path(path, &err), ERR_REFUSED);
    for (size_t i = 0; i < 2 * SNAPSHOT_DEPTH_MAX + 1; i++)
        path[i] = i % 2 ? '/' : 'a';
    path[2 * SNAPSHOT_DEPTH_MAX - 1] = 0;
    assert_int_equal(snapshot_check_path(path, &err), 0);
    path[2 * SNAPSHOT_DEPTH_MAX - 1] = '/';
    path[2 * SNAPSHOT_DEPTH_MAX + 1] = 0;
    assert_int_equal(snapshot_check_path(path, &err), ERR_REFUSED);
    assert_non_null(strstr(err.text, "64 directories deep"));
}

static void test_links(void **state)
{
    static const struct {
        const char *path, *target;
        int want;
    } rows[] = {
        {"a", "b", 0},
        {"a/b", "../c", 0},
        {"a/b/c", "../../d/./e", 0},
        {"a", "x/../y", 0},
        {"a", "..", ERR_REFUSED},
        {"a", "b/../../c", ERR_REFUSED},
        {"a/b", "../../c", ERR_REFUSED},
        {"a/b", "c/../../../d/../..", ERR_REFUSED},
        {"a", "/etc/passwd", ERR_REFUSED},
        {"a", "", ERR_REFUSED},
        {"a", "b\nc", ERR_REFUSED},
        {"a", "b\tc", ERR_REFUSED},
    };
    struct err err;
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++)
        assert_int_equal(snapshot_check_link(rows[i].path, rows[i].target, &err), rows[i].want);
}

static bool folds_alike(const char *a, const char *b)
{
    struct buf x = BUF_INIT(4096), y = BUF_INIT(4096);
    snapshot_fold(&x, a);
    snapshot_fold(&y, b);
    bool same = !strcmp(buf_str(&x), buf_str(&y));
    buf_release(&x);
    buf_release(&y);
    return same;
}

static void test_fold(void **state)
{
    (void)state;
    assert_true(folds_alike("README.md", "readme.MD"));
    assert_true(folds_alike("caf\xc3\xa9", "CAF\xc3\x89"));
    assert_true(folds_alike("\xd0\x96\xd0\x81", "\xd0\xb6\xd1\x91"));
    assert_true(folds_alike("\xce\xa9", "\xcf\x89"));
    assert_true(folds_alike("\xc5\x81", "\xc5\x82"));
    assert_true(folds_alike("\xc4\x8c", "\xc4\x8d"));
    assert_false(folds_alike("a", "b"));
    assert_false(folds_alike("\xc3\x97", "\xc3\xb7")); /* times and divided by */
    assert_false(folds_alike("\xc3\xa9", "e"));
    assert_true(folds_alike("\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80"));
}

static void is_called(const char *path, const char *name)
{
    char out[SNAPSHOT_DERIVED_MAX + 1];
    assert_string_equal(snapshot_derive_name(path, out), name);
}

static void test_derived_names(void **state)
{
    (void)state;
    is_called("/a/code", "code");
    is_called("/a/My Code (2)", "my-code--2-");
    is_called("/a/.verl_x.1", "verl_x.1");
    is_called("/a/\xe4\xbb\xa3\xe7\xa0\x81", "code");
    is_called("/", "code");
    is_called("/a/0123456789012345678901234567890123456789xyz",
              "0123456789012345678901234567890123456789");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ref),       cmocka_unit_test(test_good_paths),
        cmocka_unit_test(test_bad_paths), cmocka_unit_test(test_limits),
        cmocka_unit_test(test_links),     cmocka_unit_test(test_derived_names),
        cmocka_unit_test(test_fold),
    };
    return cmocka_run_group_tests_name("core/snapshot", tests, NULL, NULL);
}
