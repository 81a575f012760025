/* SPDX-License-Identifier: Apache-2.0 */
/* The order of versions as PEP 440 gives it, and what each operator takes and leaves. */
#include "core/job/pep440.h"
#include "base/unit.h"

#include <string.h>

static struct pep440 version(const char *text)
{
    struct pep440 v;
    if (!pep440_read(text, &v))
        fail_msg("'%s' is a version", text);
    return v;
}

static void test_order(void **state)
{
    static const char *const rising[] = {
        "1.0.dev1",  "1.0a1.dev1", "1.0a1",     "1.0a2",     "1.0b1", "1.0rc1",
        "1.0",       "1.0+abc",    "1.0+abc.5", "1.0+abc.7", "1.0+5", "1.0.post1.dev1",
        "1.0.post1", "1.0.1",      "1.1.dev1",  "1.1",       "1.10",  "1!0.1"};
    (void)state;
    for (size_t i = 0; i < array_len(rising); i++)
        for (size_t k = 0; k < array_len(rising); k++) {
            struct pep440 a = version(rising[i]), b = version(rising[k]);
            int c = pep440_compare(&a, &b);
            if ((i < k) != (c < 0) || (i == k) != (c == 0))
                fail_msg("'%s' and '%s' compare as %d", rising[i], rising[k], c);
        }
}

static void test_one_version_written_differently(void **state)
{
    static const char *const same[][2] = {{"1.0", "1.0.0"},       {"1.0a1", "1.0-alpha.1"},
                                          {"1.0rc2", "1.0c2"},    {"1.0.post1", "1.0-1"},
                                          {"v2.4.0", "2.4"},      {"1.0+Ab-c", "1.0+ab.c"},
                                          {"1.0rc", "1.0rc0"},    {"1.0.dev", "1.0dev0"},
                                          {"1.0.post3", "1.0r3"}, {"0!1.2", "1.2"}};
    static const char *const none[] = {"",     "x",     "1.", "1..2",    "1.0 2",
                                       "1.0+", "2.4.x", "!1", "1.0foo1", "99999999999"};
    struct pep440 v;
    (void)state;
    for (size_t i = 0; i < array_len(same); i++) {
        struct pep440 a = version(same[i][0]), b = version(same[i][1]);
        if (pep440_compare(&a, &b) != 0)
            fail_msg("'%s' is '%s'", same[i][0], same[i][1]);
    }
    for (size_t i = 0; i < array_len(none); i++)
        if (pep440_read(none[i], &v))
            fail_msg("'%s' is no version", none[i]);
}

static void test_operators(void **state)
{
    static const struct {
        const char *version, *specifiers;
        bool holds;
    } rows[] = {
        {"2.4.0", ">=2.4", true},
        {"2.3.1", ">=2.4", false},
        {"2.4.0+cu121", "==2.4.0", true},
        {"2.4.0+cu121", "==2.4.0+cu118", false},
        {"2.4.0", "==2.4.0+cu121", false},
        {"2.4.0+cu121", "<=2.4.0", true},
        {"2.4.0+cu121", ">2.4.0", false},
        {"2.4.0.post1", ">2.4.0", false},
        {"2.4.0.post1", ">2.4.0.post0", true},
        {"2.5.1", "==2.5.*", true},
        {"2.5", "==2.5.*", true},
        {"2.50", "==2.5.*", false},
        {"2.5rc1", "==2.5.*", true},
        {"2.5.1", "!=2.5.*", false},
        {"2.6", "!=2.5.*,!=2.5", true},
        {"2.5.7", "~=2.5.1", true},
        {"2.6.0", "~=2.5.1", false},
        {"2.9", "~=2.5", true},
        {"3.0", "~=2.5", false},
        {"2.5.0", "~=2.5.1", false},
        {"2.0rc1", "<2.0", false},
        {"2.0rc1", "<2.0rc2", true},
        {"1.26.4", "<2.0.0", true},
        {"2.0.dev3", ">=2.0", false},
        {"2.1.dev3", ">=2.0", true},
        {"1.0", "===1.0", true},
        {"1.0.1", "===1.0", false},
        {"3.10.12", ">=3.10, <3.13", true},
        {"3.13.0", ">=3.10, <3.13", false},
        {"1!1.0", ">=2.0", true},
        {"1.0", "", true},
        {"1.0", "garbage", true},
    };
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++) {
        struct pep440 v = version(rows[i].version);
        if (pep440_satisfies(&v, rows[i].specifiers) != rows[i].holds)
            fail_msg("'%s' and '%s'", rows[i].version, rows[i].specifiers);
    }
}

static void test_specifiers_that_are_none(void **state)
{
    static const char *const bad[] = {"2.4", ">=",        ">=x",   ">=2.*",
                                      "~=2", "==2.4a1.*", "=>2.4", ">=2.4+cu121"};
    struct err err = {0};
    (void)state;
    for (size_t i = 0; i < array_len(bad); i++)
        if (pep440_check(bad[i], &err) != ERR_BAD_SPEC)
            fail_msg("'%s' is no specifier", bad[i]);
    assert_int_equal(pep440_check(">= 2.4 , != 2.5.*,<3", &err), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_one_version_written_differently),
        cmocka_unit_test(test_operators),
        cmocka_unit_test(test_specifiers_that_are_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
