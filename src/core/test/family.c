/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that came of one another: their order, and what lists of parents that lie come to. */
#include "core/job/family.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "base/text.h"
#include "base/unit.h"

enum { MANY = 20000 };

/* What holds of every order: each once, behind its parent, one deeper than that one. */
static void check_places(const struct family_place *p, size_t n)
{
    size_t *where = xcalloc(n + 1, sizeof(*where));
    for (size_t i = 0; i < n; i++) {
        assert_true(p[i].member < n);
        assert_int_equal(where[p[i].member], 0);
        where[p[i].member] = i + 1;
        assert_int_equal(p[i].parent == FAMILY_NOBODY, p[i].depth == 0);
        if (p[i].parent == FAMILY_NOBODY)
            continue;
        assert_true(where[p[i].parent] > 0);
        assert_int_equal(p[where[p[i].parent] - 1].depth + 1, p[i].depth);
    }
    free(where);
}

/* "a b:a c:b" to "a0 b1 c2". */
static void check(const char *text, const char *expected)
{
    struct family_member v[16] = {0};
    struct family_place p[16];
    struct buf got = BUF_INIT(4096);
    _cleanup_(freep) char *words = xstrdup(text);
    size_t n = 0;
    for (char *w = words, *end; *w; w = end) {
        size_t len = strcspn(w, " ");
        end = w + len + (w[len] == ' ');
        w[len] = 0;
        char *colon = strchr(w, ':');
        if (colon)
            *colon = 0;
        v[n++] = (struct family_member){w, colon ? colon + 1 : NULL};
    }
    family_order(v, n, p);
    check_places(p, n);
    for (size_t i = 0; i < n; i++)
        (void)buf_addf(&got, "%s%s%d", i ? " " : "", v[p[i].member].id, p[i].depth);
    assert_string_equal(buf_str(&got), expected);
    buf_release(&got);
}

static void test_order(void **state)
{
    (void)state;
    check("", "");
    check("a", "a0");
    check("a b:a c:b d:a", "a0 b1 c2 d1");
    check("d:a c:b b:a a", "a0 d1 b1 c2");
    check("a b:gone c:b", "a0 b0 c1");
    check("a b:a a:b", "a0 b1 a2"); /* one id twice: the first is it */
}

static void test_circles_are_cut(void **state)
{
    (void)state;
    check("a:a", "a0");
    check("a:b b:a", "a0 b1");
    check("x a:c b:a c:b d:c e:x", "x0 e1 a0 b1 c2 d3");
}

static void test_a_hostile_depth(void **state)
{
    struct family_member *v = xcalloc(MANY, sizeof(*v));
    struct family_place *p = xcalloc(MANY, sizeof(*p));
    char(*ids)[16] = xcalloc(MANY, sizeof(*ids));
    (void)state;
    for (size_t i = 0; i < MANY; i++) {
        text_printf(ids[i], "j%zu", i);
        v[i] = (struct family_member){ids[i], i ? ids[i - 1] : NULL};
    }
    family_order(v, MANY, p);
    check_places(p, MANY);
    assert_int_equal(p[MANY - 1].depth, MANY - 1);
    for (size_t i = 1; i < MANY; i++) /* and as broad */
        v[i].parent = ids[0];
    family_order(v, MANY, p);
    check_places(p, MANY);
    assert_int_equal(p[MANY - 1].depth, 1);
    v[0].parent = ids[MANY - 1]; /* and round */
    family_order(v, MANY, p);
    check_places(p, MANY);
    free(v);
    free(p);
    free(ids);
}

static void test_any_parents(void **state)
{
    enum { N = 40, ROUNDS = 500 };
    struct family_member v[N];
    struct family_place p[N];
    char ids[N][8];
    unsigned seed = 7;
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < N; i++) {
            seed = seed * 1664525 + 1013904223;
            text_printf(ids[i], "%zu", i);
            v[i] = (struct family_member){ids[i], (seed >> 16) % 5 ? ids[(seed >> 18) % N] : NULL};
        }
        family_order(v, N, p);
        check_places(p, N);
    }
}

static void test_words(void **state)
{
    (void)state;
    for (enum family_how how = FAMILY_RETRY; how < FAMILY_HOWS; how++)
        assert_int_equal(family_how_from_string(family_how_words[how]), how);
    assert_int_equal(family_how_from_string(""), FAMILY_NONE);
    assert_int_equal(family_how_from_string("adopted"), FAMILY_NONE);
    assert_int_equal(family_how_from_string(NULL), FAMILY_NONE);
}

static void test_notes(void **state)
{
    char longest[FAMILY_NOTE_MAX + 2];
    (void)state;
    memset(longest, 'x', sizeof(longest));
    longest[FAMILY_NOTE_MAX] = 0;
    assert_true(family_is_note(longest));
    longest[FAMILY_NOTE_MAX] = 'x';
    longest[FAMILY_NOTE_MAX + 1] = 0;
    assert_false(family_is_note(longest));
    assert_true(family_is_note("学习率减半 <b>bold</b> & \"quotes\""));
    assert_false(family_is_note("two\nlines"));
    assert_false(family_is_note("two\xe2\x80\xa8lines"));
    assert_false(family_is_note("a\x1b[31m"));
    assert_false(family_is_note("\xff\xfe"));
}

/* What is given as a note -> what it is, NULL where there is none; "!" and a code: refused. */
static void check_read(const char *json, const char *expected)
{
    _cleanup_(json_unrefp) json_t *given = json ? json_loads(json, JSON_DECODE_ANY, NULL) : NULL;
    const char *note = "untouched";
    struct err err = {0};
    int r = family_read_note(given, &note, &err);
    if (!expected || *expected != '!') {
        assert_int_equal(r, 0);
        assert_int_equal(note == NULL, expected == NULL);
        assert_string_equal(str_or(note, ""), str_or(expected, ""));
        return;
    }
    assert_int_equal(r, ERR_BAD_REQUEST);
    assert_string_equal(err.message, expected + 1);
    assert_string_equal(note, "untouched");
}

static void test_read_note(void **state)
{
    (void)state;
    check_read(NULL, NULL);
    check_read("null", NULL);
    check_read("\"\"", NULL);
    check_read("\"why\"", "why");
    check_read("7", "!no_text_member");
    check_read("false", "!no_text_member");
    check_read("[\"why\"]", "!no_text_member");
    check_read("\"two\\nlines\"", "!bad_note");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order),       cmocka_unit_test(test_circles_are_cut),
        cmocka_unit_test(test_words),       cmocka_unit_test(test_a_hostile_depth),
        cmocka_unit_test(test_any_parents), cmocka_unit_test(test_notes),
        cmocka_unit_test(test_read_note),
    };
    return cmocka_run_group_tests_name("core/family", tests, NULL, NULL);
}
