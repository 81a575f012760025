/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of grepneeds.h: what is read off a pattern, and never more than a line must hold. */
#include "core/metric/grepneeds.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/unit.h"
#include "core/metric/loggrep.h"

/* "a+b|c": a and b, or c; "": nothing. */
static void needs(const char *pattern, const char *want)
{
    struct grepneeds n;
    struct buf out = BUF_INIT(4096);
    grepneeds_read(pattern, &n);
    for (size_t i = 0; i < n.n; i++)
        for (size_t j = 0; j < n.v[i].n; j++)
            (void)buf_addf(&out, "%s%s", j ? "+" : i ? "|" : "", n.v[i].v[j]);
    assert_string_equal(buf_str(&out), want);
    buf_release(&out);
    grepneeds_release(&n);
}

static void test_what_is_read(void **state)
{
    (void)state;
    needs("CUDA out of memory", "CUDA out of memory");
    needs("OOM|out of memory", "OOM|out of memory");
    needs("rank \\d+ died: .*killed$", "rank + died: +killed");
    needs("step:\\[12\\]", "step:[12]");
    needs("(?i)nccl.*time(d )?out", "nccl+time+out");
    needs("(error|fail)ed to open", "ed to open");
    needs("abcd?efg*hij+kl+", "abc+hij");
    needs("abcd{2}efgh{3", "abc+efg");
    needs("x[]abc[:alpha:]\\]]yzz", "yzz");
    needs("a\\.b\\ c", "a.b c");
    needs("^\\s*Traceback\\b", "Traceback");
}

static void test_what_says_nothing(void **state)
{
    const char *const none[] = {
        "ab",           "abc|de",         "(abc)",          "",
        "[a-z]+",       "abc\\Q(\\Edef",  "abc(?x) d e f",  "(?=abc)x",
        "abc(?!def)",   "(abc)\\1 def",   "abc\\x41def",    "(*CRLF)abc",
        "abc(?#d(e)fg", "abc([[.a.]])de", "abc\\p{Lu}def",  "|abc",
        "abcdef|",      "abc(d(?<=e)f)",  "abc\\N{U+41}de", "abc\\o{101}def"};
    (void)state;
    for (size_t i = 0; i < array_len(none); i++)
        needs(none[i], "");
}

/* \E, \Q and \c change which bracket ends a class: each of these lines matches. */
static void test_odd_classes(void **state)
{
    static const char *const all[][2] = {{"[\\E]abc]xyz", "cxyz"},
                                         {"[^\\E]abc]xyz", "dxyz"},
                                         {"[\\Qa]foo[\\E]bar", "fbar"},
                                         {"[\\c]]zoo", "\x1dzoo"},
                                         {"([\\E])])wxyz|uvw", ")wxyz"}};
    (void)state;
    for (size_t i = 0; i < array_len(all); i++) {
        struct loggrep *g = NULL;
        assert_int_equal(loggrep_new(all[i][0], &g, NULL), 0);
        assert_true(loggrep_matches(g, all[i][1], strlen(all[i][1])));
        needs(all[i][0], "");
        loggrep_free(g);
    }
}

static bool holds(const char *line, const char *text)
{
    size_t n = strlen(text);
    for (; strlen(line) >= n; line++) {
        size_t i = 0;
        while (i < n && tolower((unsigned char)line[i]) == tolower((unsigned char)text[i]))
            i++;
        if (i == n)
            return true;
    }
    return false;
}

static bool may_match(const struct grepneeds *n, const char *line)
{
    bool fits = !n->n;
    for (size_t i = 0; i < n->n && !fits; i++) {
        fits = true;
        for (size_t j = 0; j < n->v[i].n; j++)
            fits &= holds(line, n->v[i].v[j]);
    }
    return fits;
}

/* 0 to n - 1. */
static size_t dice(size_t n)
{
    static uint64_t s = 88172645463325252ULL;
    s ^= s << 13;
    s ^= s >> 7;
    s ^= s << 17;
    return (size_t)(s >> 11) % n;
}

static void random_text(struct buf *to, const char *const *parts, size_t n_parts, size_t n)
{
    buf_reset(to);
    for (size_t i = 0; i < n; i++)
        (void)buf_adds(to, parts[dice(n_parts)]);
}

/* Whatever the pattern: a line that matches is one that may match. */
static void test_a_match_has_what_is_needed(void **state)
{
    static const char *const of_pattern[] = {
        "a",     "b",    "c",      "abc",  "bca", "C",       "?",    "*",   "+",     "{2}",
        "{0,1}", "|",    "(",      ")",    "(?:", "[ab]",    "[^c]", ".",   "\\b",   "\\w",
        "\\.",   "(?i)", "^",      "$",    "(?=", "\\1",     "\\Q",  "\\E", "{",     "}",
        "[]a]",  "]",    "[",      "(?x)", " ",   "#",       "\\",   "x41", "\\x61", "??",
        "+?",    "(?i:", "(?<!a)", "{,2}", "(?|", "(?(1)a)", "\\K",  "(?>", "[\\E"};
    static const char *const of_line[] = {"a", "b", "c", "abc", "bca", "C",
                                          "A", " ", ".", "{",   "#"};
    size_t n_matches = 0;
    struct buf pattern = BUF_INIT(200), line = BUF_INIT(200);
    (void)state;
    for (int i = 0; i < 40000; i++) {
        struct loggrep *g = NULL;
        struct grepneeds needs;
        random_text(&pattern, of_pattern, array_len(of_pattern), 1 + dice(9));
        if (loggrep_new(buf_str(&pattern), &g, NULL) < 0)
            continue;
        grepneeds_read(buf_str(&pattern), &needs);
        for (int k = 0; k < 20 && needs.n; k++) {
            random_text(&line, of_line, array_len(of_line), dice(8));
            bool matches = loggrep_matches(g, buf_str(&line), line.len);
            n_matches += matches;
            if (matches && !may_match(&needs, buf_str(&line)))
                fail_msg("'%s' matches '%s' and needs more", buf_str(&pattern), buf_str(&line));
        }
        grepneeds_release(&needs);
        loggrep_free(g);
    }
    buf_release(&pattern);
    buf_release(&line);
    assert_true(n_matches > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_read), cmocka_unit_test(test_what_says_nothing),
        cmocka_unit_test(test_odd_classes), cmocka_unit_test(test_a_match_has_what_is_needed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
