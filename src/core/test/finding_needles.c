/* SPDX-License-Identifier: Apache-2.0 */
/* Needles in hay, at every place and in any case; and what a pattern must contain. */
#include <string.h>

#include "base/buf.h"
#include "base/unit.h"
#include "core/finding/rules/finding_needles.h"
#include "core/finding/rules/finding_pattern.h"

static void every_place(void **state)
{
    struct needles *n = needles_new();
    (void)state;
    assert_int_equal(needles_add(n, "Error:", 6), 0);
    assert_int_equal(needles_add(n, "out of memory", 13), 1);
    assert_int_equal(needles_add(n, "ERROR:", 6), 0);
    needles_build(n);
    for (size_t at = 0; at + 13 <= 64; at++) {
        char hay[64];
        uint64_t found[1] = {0};
        memset(hay, ' ', sizeof(hay));
        assert_int_equal(needles_find(n, hay, sizeof(hay)), sizeof(hay));
        memcpy(hay + at, at % 2 ? "OUT of Memory" : "out of memory", 13);
        assert_int_equal(needles_find(n, hay, sizeof(hay)), at);
        needles_all(n, hay, 0, sizeof(hay), found);
        assert_int_equal(found[0], 2);
        assert_int_equal(needles_find(n, hay, at + 12), at + 12);
    }
    needles_free(n);
}

static const struct {
    const char *pattern, *needles; /* parted by |; NULL: none can be read off */
} rows[] = {
    {"hello", "hello"},
    {"hello|world", "hello|world"},
    {"^hello\\b.*world!", "world!"},
    {"wxy+z world", "z world"},
    {"hello?s", NULL},
    {"colou?r of", "r of"},
    {"(?:hello|world) x", "hello|world"},
    {"(?:hello|world)? x", NULL},
    {"(?:hi|world)", NULL},
    {"[Hh]ello there", "ello there"},
    {"a\\.b\\.c\\.d", "a.b.c.d"},
    {"(?i)hello", "hello"},
    {"abc", NULL},
    {"hello|x", NULL},
    {"(?!hello)there it is", "there it is"},
    {"[]abc]hello", "hello"},
    {"x{0,3}hello", "hello"},
    {"", NULL},
    {"(((((((((((((hello", NULL},
};

static void patterns(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct strv v = {0};
        struct err err = {0};
        struct buf all = BUF_INIT(1000);
        int r = pattern_needles(rows[i].pattern, &v, &err);
        for (size_t k = 0; k < v.n; k++)
            (void)buf_addf(&all, "%s%s", k ? "|" : "", v.v[k]);
        if (rows[i].needles && strlen(rows[i].needles) >= NEEDLE_MIN) {
            assert_int_equal(r, 0);
            assert_string_equal(buf_str(&all), rows[i].needles);
        } else {
            assert_true(r < 0);
            assert_true(err.text[0]);
        }
        strv_release(&v);
        buf_release(&all);
    }
}

static const struct {
    const char *pattern;
    size_t n;               /* alternatives */
    const char *fit, *miss; /* lines in lower case that have what one of them needs, and not */
} branch_rows[] = {
    {"hello", 1, "well, hello", "hell"},
    {"hello|[Ww]orld!", 2, "a world!", "a word!"},
    {"(?i)Hello .{0,9}(?:big|small) world", 1, "hello big world", "hello odd world"},
    {"[Tt]oken .*too (?:long|[Ss]hort)", 1, "token is too short", "token is too wide"},
    {"colou?r (?:is|was) bad", 1, "color is bad", "a shape is bad"},
    {"a(?:b|c)?d|[|]x|\\|yes\\(no", 3, "anything", NULL},
    {"(?!token)limit (?:reached|x)", 1, "limit x", "reached"},
    {"[Nn]o (?:pulse|sign) of", 1, "no pulse of", "no such of"},
    {"[Ee]rror[ ]code", 1, "error code", "error_code"},
    {"", 1, "", NULL},
};

static bool fits(const struct pattern_branch *v, size_t n, const char *line)
{
    for (size_t i = 0; i < n; i++)
        if (pattern_branch_fits(&v[i], line, strlen(line)))
            return true;
    return false;
}

static void branches(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(branch_rows) / sizeof(branch_rows[0]); i++) {
        size_t n;
        struct pattern_branch *v = pattern_branches(branch_rows[i].pattern, &n);
        assert_int_equal(n, branch_rows[i].n);
        assert_true(fits(v, n, branch_rows[i].fit));
        if (branch_rows[i].miss)
            assert_false(fits(v, n, branch_rows[i].miss));
        pattern_branches_free(v, n);
    }
}

/* What is looked for is what logs have least often. */
static void rarest(void **state)
{
    static const struct {
        const char *pattern, *needles;
    } table[] = {
        {"NCCL INFO .{0,60}zebra", "zebra"},
        {"[Nn]o (?:pulse|sign) from", "No pulse|No sign"},
        {"worker (?:zebra|quagga)", "worker zebra|worker quagga"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
        size_t n;
        struct pattern_branch *v = pattern_branches(table[i].pattern, &n);
        struct buf all = BUF_INIT(1000);
        assert_int_equal(n, 1);
        for (size_t k = 0; k < v[0].needles.n; k++)
            assert_int_equal(buf_addf(&all, "%s%s", k ? "|" : "", v[0].needles.v[k]), 0);
        assert_string_equal(buf_str(&all), table[i].needles);
        buf_release(&all);
        pattern_branches_free(v, n);
    }
    assert_true(needle_rarity("zebra", 5) > needle_rarity("worker", 6));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rarest),
        cmocka_unit_test(every_place),
        cmocka_unit_test(patterns),
        cmocka_unit_test(branches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
