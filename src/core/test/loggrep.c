/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of loggrep.h: lines and not texts match, bad and costly patterns are met. */
#include "core/metric/loggrep.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/unit.h"

struct hits {
    struct buf out;
    size_t most;
};

static bool on_hit(size_t offset, const char *line, size_t n, void *arg)
{
    struct hits *h = arg;
    (void)buf_addf(&h->out, "%zu:%.*s|", offset, (int)n, line);
    return !h->most || --h->most;
}

/* "offset:line|" of each hit. */
static void scan(const char *pattern, const char *text, const char *want)
{
    struct loggrep *g = NULL;
    struct hits h = {.out = BUF_INIT(1 << 16)};
    assert_int_equal(loggrep_new(pattern, &g, NULL), 0);
    assert_int_equal(loggrep_scan(g, text, strlen(text), on_hit, &h), strlen(text));
    assert_string_equal(buf_str(&h.out), want);
    buf_release(&h.out);
    loggrep_free(g);
}

static void test_lines(void **state)
{
    (void)state;
    scan("b", "abc\nxyz\nb\nlast b", "0:abc|8:b|10:last b|");
    scan("^b", "abc\nb1\n\nb2\n", "4:b1|8:b2|");
    scan("c$", "abc\nb1c\nx", "0:abc|4:b1c|");
    scan("^$", "a\n\nb\n", "2:|");
    scan("(?i)error|fail", "an Error\nok\nit failed\n", "0:an Error|12:it failed|");
    scan("x", "", "");
    scan("x*", "a\nb", "0:a|2:b|");
    scan("a\\sb", "a\nb\na b\n", "4:a b|"); /* not over a line's end */
    scan("a[^x]*d", "a1\n2d\nabcd\n", "6:abcd|");
    scan("\\Ab", "ab\nba\n", "3:ba|");
    scan("b\\z", "ab\nba\nb", "0:ab|6:b|");
    scan("a(?!\\n)", "a\n", "0:a|"); /* a line has no end */
}

static void test_enough(void **state)
{
    struct loggrep *g = NULL;
    struct hits h = {.out = BUF_INIT(1000), .most = 2};
    (void)state;
    assert_int_equal(loggrep_new("a", &g, NULL), 0);
    assert_int_equal(loggrep_scan(g, "a1\na2\na3\n", 9, on_hit, &h), 6);
    assert_string_equal(buf_str(&h.out), "0:a1|3:a2|");
    buf_release(&h.out);
    loggrep_free(g);
}

static void test_bad_patterns(void **state)
{
    struct loggrep *g = NULL;
    struct err err = {0};
    char long_one[LOGGREP_PATTERN_MAX + 2];
    (void)state;
    assert_int_equal(loggrep_new("a(b", &g, &err), ERR_BAD_REQUEST);
    assert_non_null(strstr(err.text, "'a(b' is not a valid regular expression: "));
    assert_int_equal(loggrep_new("", &g, &err), ERR_BAD_REQUEST);
    memset(long_one, 'a', sizeof(long_one));
    long_one[sizeof(long_one) - 1] = 0;
    assert_int_equal(loggrep_new(long_one, &g, &err), ERR_BAD_REQUEST);
    assert_null(g);
}

/* Exponential on its lines; the others are found all the same. */
static void test_nested_patterns(void **state)
{
    char pattern[256] = "";
    struct loggrep *g = NULL;
    struct err err = {0};
    (void)state;
    for (int depth = 0; depth < 51; depth++)
        (void)snprintf(pattern + strlen(pattern), sizeof(pattern) - strlen(pattern), "(");
    (void)snprintf(pattern + strlen(pattern), sizeof(pattern) - strlen(pattern), "a");
    for (int depth = 0; depth < 51; depth++)
        (void)snprintf(pattern + strlen(pattern), sizeof(pattern) - strlen(pattern), ")");
    assert_int_equal(loggrep_new(pattern, &g, &err), ERR_BAD_REQUEST);
    assert_non_null(strstr(err.text, "parentheses are too deeply nested"));
    pattern[strlen(pattern) - 1] = 0;
    assert_int_equal(loggrep_new(pattern + 1, &g, NULL), 0); /* one less */
    loggrep_free(g);
}

static void test_costly_patterns(void **state)
{
    struct buf text = BUF_INIT(1 << 20);
    struct loggrep *g = NULL;
    struct hits h = {.out = BUF_INIT(1 << 16)};
    (void)state;
    for (int i = 0; i < 50; i++)
        (void)buf_adds(&text, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!\n");
    (void)buf_adds(&text, "aab\n");
    assert_int_equal(loggrep_new("(a+)+(b|c)$", &g, NULL), 0);
    assert_int_equal(loggrep_scan(g, buf_str(&text), text.len, on_hit, &h), text.len);
    assert_non_null(strstr(buf_str(&h.out), ":aab|"));
    buf_release(&h.out);
    buf_release(&text);
    loggrep_free(g);
}

static bool loggrep_test_is_late(void *arg)
{
    ++*(int *)arg;
    return true;
}

/* PCRE2 counts none of these steps: below its limits the long line takes many seconds. */
static void test_steps_that_are_not_counted(void **state)
{
    enum { LONG = 100000 };
    struct buf text = BUF_INIT(1 << 20);
    struct loggrep *g = NULL;
    struct hits h = {.out = BUF_INIT(1 << 20)};
    int looks = 0;
    (void)state;
    for (int i = 0; i < LONG; i++)
        (void)buf_addc(&text, 'a');
    (void)buf_adds(&text, "x\naax\n");
    assert_int_equal(loggrep_new("a{0,65000}?[xy]", &g, NULL), 0);
    assert_int_equal(loggrep_scan(g, buf_str(&text), text.len, on_hit, &h), text.len);
    assert_string_equal(buf_str(&h.out), "100002:aax|");
    buf_reset(&h.out);
    loggrep_until(g, loggrep_test_is_late, &looks);
    assert_int_equal(loggrep_scan(g, buf_str(&text), text.len, on_hit, &h), LONG + 2);
    assert_true(looks > 0);
    assert_int_equal(h.out.len, 0);
    loggrep_free(g);
    assert_int_equal(loggrep_new("a+[xy]$", &g, NULL), 0); /* a long line is no attack */
    assert_true(loggrep_matches(g, buf_str(&text), LONG + 1));
    loggrep_free(g);
    buf_release(&h.out);
    buf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),           cmocka_unit_test(test_enough),
        cmocka_unit_test(test_bad_patterns),    cmocka_unit_test(test_nested_patterns),
        cmocka_unit_test(test_costly_patterns), cmocka_unit_test(test_steps_that_are_not_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
