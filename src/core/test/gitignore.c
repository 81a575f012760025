/* SPDX-License-Identifier: Apache-2.0 */
/* gitignore(5) as a table: patterns, a path, whether it is left out. */
#include <string.h>

#include "base/unit.h"
#include "core/check/gitignore.h"

static const struct {
    const char *patterns, *path;
    bool is_dir, skipped;
} rows[] = {
    {"*.pyc", "a.pyc", false, true},
    {"*.pyc", "d/e/a.pyc", false, true},
    {"*.pyc", "a.py", false, false},
    {"", "a", false, false},
    {"# a", "# a", false, false},
    {"\\# a", "# a", false, true},
    {"\\!a", "!a", false, true},
    {"a ", "a", false, true},
    {"a\\ ", "a ", false, true},
    {"a\r", "a", false, true},
    {"build/", "build", true, true},
    {"build/", "build", false, false},
    {"build/", "x/build", true, true},
    {"/build", "build", true, true},
    {"/build", "x/build", true, false},
    {"a/b", "a/b", false, true},
    {"a/b", "x/a/b", false, false},
    {"a/*", "a/b", false, true},
    {"a/*", "a/b/c", false, false},
    {"*", "a/b/c", false, true},
    {"foo*bar", "foo/bar", false, false},
    {"doc/*.txt", "doc/server/a.txt", false, false},
    {"**/foo", "foo", false, true},
    {"**/foo", "a/b/foo", false, true},
    {"**/foo/bar", "a/foo/bar", false, true},
    {"**/foo/bar", "a/foo/x/bar", false, false},
    {"abc/**", "abc", true, false},
    {"abc/**", "abc/d/e", false, true},
    {"a/**/b", "a/b", false, true},
    {"a/**/b", "a/x/b", false, true},
    {"a/**/b", "a/x/y/b", false, true},
    {"a/**/b", "a/xb", false, false},
    {"a/**/b/**/c", "a/b/x/b/y/c", false, true},
    {"a**b", "axxb", false, true},
    {"a**b/c", "ax/xb/c", false, false},
    {"**/a*b*c/x", "q/aXbYbZc/x", false, true},
    {"**/a*d/b", "ad/q/ad/b", false, true},
    {"?.o", "a.o", false, true},
    {"?.o", "ab.o", false, false},
    {"a?b/c", "a/b/c", false, false},
    {"[ab].c", "b.c", false, true},
    {"[!ab].c", "b.c", false, false},
    {"[^ab].c", "c.c", false, true},
    {"[a-f]0", "e0", false, true},
    {"[a-f]0", "g0", false, false},
    {"[]]x", "]x", false, true},
    {"[]-]x", "-x", false, true},
    {"[[:digit:]]*", "7a", false, true},
    {"[[:digit:]]*", "a7", false, false},
    {"[\\]]x", "]x", false, true},
    {"[ab", "a", false, false},
    {"a[/]b", "a/b", false, false},
    {"a\\*b", "a*b", false, true},
    {"a\\*b", "axb", false, false},
    {"a\\", "a\\", false, false},
    {"*.log\n!keep.log", "keep.log", false, false},
    {"*.log\n!keep.log", "x/keep.log", false, false},
    {"!keep.log\n*.log", "keep.log", false, true},
    {"*\n!*/\n!*.py", "a/b.py", false, false},
    {"*\n!*/\n!*.py", "a", true, false},
    {"*\n!*/\n!*.py", "a/b.txt", false, true},
    {"!", "a", false, false},
    {"/", "a", true, false},
    {"\xef\xbb\xbf*.o", "a.o", false, true},
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct gitignore *g = gitignore_new();
        gitignore_add(g, "", rows[i].patterns, strlen(rows[i].patterns));
        if (gitignore_skips(g, rows[i].path, rows[i].is_dir) != rows[i].skipped)
            fail_msg("row %zu: '%s' and '%s'", i, rows[i].patterns, rows[i].path);
        gitignore_free(g);
    }
}

static void test_nested(void **state)
{
    struct gitignore *g = gitignore_new();
    (void)state;
    gitignore_add(g, "", "*.log\n/top\n", 11);
    size_t top = gitignore_count(g);
    assert_int_equal(top, 2);
    gitignore_add(g, "a", "!x.log\n/only\n", 13);
    assert_false(gitignore_skips(g, "a/x.log", false)); /* the nearer file wins */
    assert_false(gitignore_skips(g, "a/b/x.log", false));
    assert_true(gitignore_skips(g, "a/y.log", false));
    assert_true(gitignore_skips(g, "ab/x.log", false)); /* another directory */
    assert_true(gitignore_skips(g, "a/only", true));
    assert_false(gitignore_skips(g, "only", true));
    assert_false(gitignore_skips(g, "a/b/only", true));
    assert_false(gitignore_skips(g, "a/top", true));
    gitignore_cut(g, top);
    assert_true(gitignore_skips(g, "a/x.log", false));
    gitignore_free(g);
    gitignore_free(NULL);
}

/* What would take for ever if every '*' went back to every place. */
static void test_many_stars(void **state)
{
    char pattern[201], path[2001];
    struct gitignore *g = gitignore_new();
    (void)state;
    for (size_t i = 0; i < 200; i++)
        pattern[i] = i % 2 ? 'a' : '*';
    pattern[199] = 'b';
    pattern[200] = 0;
    memset(path, 'a', 2000);
    path[2000] = 0;
    gitignore_add(g, "", pattern, 200);
    assert_false(gitignore_skips(g, path, false));
    path[1999] = 'b';
    assert_true(gitignore_skips(g, path, false));
    gitignore_free(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows), cmocka_unit_test(test_nested),
                                       cmocka_unit_test(test_many_stars)};
    return cmocka_run_group_tests_name("core/gitignore", tests, NULL, NULL);
}
