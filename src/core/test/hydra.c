/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of hydra.h: known texts, and every byte string of a small alphabet read
 * back by a second, independent reading of both grammars. The real Hydra reads
 * the same in tests/daemon/test_hydra_quoting.py. */
#include "core/verl/hydra.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/unit.h"

static char *quoted(const char *value)
{
    struct buf b = BUF_INIT(1 << 20);
    struct err err = {0};
    assert_int_equal(hydra_quote(&b, value, &err), 0);
    return buf_take(&b);
}

static void known_texts(void **state)
{
    static const struct {
        const char *value, *quoted;
    } rows[] = {
        {"/a/b-c.d", "/a/b-c.d"},
        {"", "''"},
        {"gsm8k", "gsm8k"},
        {"12", "'12'"},
        {"null", "'null'"},
        {"True", "'True'"},
        {"NaN", "'NaN'"},
        {"a b", "'a b'"},
        {" a", "' a'"},
        {"a=b", "'a=b'"},
        {"it's", "'it\\'s'"},
        {"say \"hi\"", "'say \"hi\"'"},
        {"a\\b", "'a\\b'"},
        {"a\\", "'a\\\\'"},
        {"a\\'b", "'a\\\\\\'b'"},
        {"${x}", "'\\${x}'"},
        {"\\${x}", "'\\\\\\${x}'"},
        {"$x", "'$x'"},
        {"[1,2]", "'[1,2]'"},
        {"{a: 1}", "'{a: 1}'"},
        {"a\nb\tc", "'a\nb\tc'"},
        {"é", "'é'"},
    };
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++) {
        char *q = quoted(rows[i].value);
        assert_string_equal(q, rows[i].quoted);
        free(q);
    }
}

static void lists(void **state)
{
    (void)state;
    struct strv sv = {0}, argv = {0};
    struct err err = {0};
    assert_int_equal(hydra_add_list(&argv, "none", &sv, &err), 0);
    strv_add(&sv, "console");
    strv_add(&sv, "it's");
    assert_int_equal(hydra_add_list(&argv, "trainer.logger", &sv, &err), 0);
    assert_string_equal(argv.v[0], "none=[]");
    assert_string_equal(argv.v[1], "trainer.logger=['console','it\\'s']");
    strv_release(&sv);
    strv_release(&argv);
}

static void refuses_what_cannot_be_said(void **state)
{
    static const char *const bad[] = {
        "???", "\xff", "a\xc3", "\xc0\x80", "\xed\xa0\x80", "\xf5\x80\x80\x80", "\x80", "\xe2\x82"};
    (void)state;
    for (size_t i = 0; i < array_len(bad); i++) {
        struct buf b = BUF_INIT(100);
        struct strv argv = {0};
        struct err err = {0};
        assert_int_equal(buf_adds(&b, "before"), 0);
        assert_int_equal(hydra_quote(&b, bad[i], &err), -EINVAL);
        assert_string_equal(buf_str(&b), "before");
        assert_int_equal(hydra_add(&argv, "some.key", bad[i], &err), -EINVAL);
        assert_non_null(strstr(err.text, "some.key"));
        assert_int_equal(argv.n, 0);
        buf_release(&b);
    }
}

static void too_long_leaves_the_buffer(void **state)
{
    (void)state;
    struct buf b = BUF_INIT(8);
    struct strv two = {0};
    struct err err = {0};
    strv_add(&two, "a");
    strv_add(&two, "1234567");
    assert_int_equal(buf_adds(&b, "xy"), 0);
    assert_int_equal(hydra_quote(&b, "12 4567", &err), -EMSGSIZE);
    assert_string_equal(buf_str(&b), "xy");
    buf_reset(&b);
    assert_int_equal(hydra_quote_list(&b, &two, &err), -EMSGSIZE);
    assert_string_equal(buf_str(&b), "");
    buf_release(&b);
    strv_release(&two);
}

/* ---- reading back ---- */

/* Hydra: the text between quotes; the closing quote must be the last byte. */
static void unquote(const char *q, char *out)
{
    size_t n = strlen(q);
    assert_true(n >= 2 && q[0] == '\'' && q[n - 1] == '\'');
    for (size_t i = 1; i < n - 1;) {
        size_t k = 0;
        while (q[i + k] == '\\')
            k++;
        bool before_quote = q[i + k] == '\'';
        bool closing = before_quote && i + k == n - 1;
        if (before_quote)
            assert_int_equal(k % 2, closing ? 0 : 1); /* else the text would end here, or go on */
        for (size_t j = 0; j < (before_quote ? k / 2 : k); j++)
            *out++ = '\\';
        i += k;
        if (i < n - 1)
            *out++ = q[i++];
    }
    *out = 0;
}

/* OmegaConf: no live interpolation may be left. */
static void uninterpolate(const char *s, char *out)
{
    while (*s) {
        size_t k = 0;
        while (s[k] == '\\')
            k++;
        bool inter = s[k] == '$' && s[k + 1] == '{';
        if (inter)
            assert_int_equal(k % 2, 1);
        for (size_t j = 0; j < (inter ? k / 2 : k); j++)
            *out++ = '\\';
        s += k;
        if (*s)
            *out++ = *s++;
    }
    *out = 0;
}

static void reads_back(const char *value)
{
    char one[256], two[256];
    char *q = quoted(value);
    if (q[0] == '\'') {
        unquote(q, one);
        uninterpolate(one, two);
        assert_string_equal(two, value);
    } else {
        assert_string_equal(q, value);
    }
    free(q);
}

static void every_short_text_reads_back(void **state)
{
    static const char alphabet[] = "\\'\"${}a =";
    enum { N = sizeof(alphabet) - 1, LENGTH = 5 };
    (void)state;
    size_t total = 1;
    for (size_t len = 0; len <= LENGTH; len++, total *= N)
        for (size_t i = 0; i < total; i++) {
            char value[LENGTH + 1] = "";
            size_t x = i;
            for (size_t j = 0; j < len; j++, x /= N)
                value[j] = alphabet[x % N];
            reads_back(value);
        }
}

static void every_ascii_byte_reads_back(void **state)
{
    (void)state;
    for (char c = 1; c < 127; c++) {
        char value[] = {c, 'x', c, 0};
        reads_back(value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_texts),
        cmocka_unit_test(lists),
        cmocka_unit_test(refuses_what_cannot_be_said),
        cmocka_unit_test(too_long_leaves_the_buffer),
        cmocka_unit_test(every_short_text_reads_back),
        cmocka_unit_test(every_ascii_byte_reads_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
