/* SPDX-License-Identifier: Apache-2.0 */
/* The short way of reading common specs gives the very tree that libfyaml gives. "..." behind
 * a text ends the document and sends it to libfyaml, which then is the measure. */
#include "base/doc/doclines.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/unit.h"

static void expect_same(const struct node *a, const struct node *b)
{
    for (; a && b; a = a->next, b = b->next) {
        assert_int_equal(a->kind, b->kind);
        assert_int_equal(a->n, b->n);
        assert_int_equal(a->line, b->line);
        assert_int_equal(a->column, b->column);
        assert_int_equal(a->key_line, b->key_line);
        assert_int_equal(a->key_column, b->key_column);
        assert_true(str_eq(a->key, b->key));
        assert_true(a->kind != NODE_SCALAR || (a->plain == b->plain && str_eq(a->text, b->text)));
        expect_same(a->first, b->first);
    }
    assert_true(!a && !b);
}

/* True if the short way reads it; then libfyaml must give the same. */
static bool is_short(const char *text)
{
    _cleanup_(freep) char *ended = xasprintf("%s\n...\n", text);
    _cleanup_(doc_freep) struct doc *owner = NULL;
    _cleanup_(doc_freep) struct doc *d = NULL;
    struct problems ps = {0};
    struct node *root = NULL;
    assert_int_equal(doc_parse("", 0, true, &owner, &ps), 0);
    if (!doclines_read(text, strlen(text), owner, &root)) {
        assert_null(root);
        return false;
    }
    /* Only doc.c looks for "? " before it knows what is plain text. */
    bool stricter = doc_parse(ended, strlen(ended), true, &d, &ps) < 0 && strstr(text, "?");
    if (!stricter) {
        assert_int_equal(ps.n, 0);
        expect_same(root, doc_root(d));
    }
    problems_release(&ps);
    return true;
}

static void test_common_specs(void **state)
{
    (void)state;
    assert_true(is_short("workload: grpo\nname: gsm8k  baseline \n\n# note\nnnodes: 2\n"
                         "train_file: ${SHARED_ROOT}/a.parquet\noverrides:\n  - a.b=1\n"
                         "  # of these\n  - c=-1\nuri: http://x:80/y#z\nlast: -3"));
    assert_true(is_short("a:\n - x\nb:\n     - y\n     - z"));
    assert_true(is_short("a: is it so ? yes\n"));
    assert_true(is_short("workload: ray\nentrypoint: [python, \"${X}/t.py\", --steps, \"30\" ]\n"
                         "env:\n  MODE: bench\n  # why\n  A_B: /x y\nnnodes: 2\n"));
    assert_true(is_short("a: [-x,--y, 1 2 , a:b,\"\", \": #[,]{}'\"]   \nb: 1"));
    assert_true(is_short("a:\n    b: c\n    d: -1\ne: f"));
}

static void test_left_to_libfyaml(void **state)
{
    static const char *const texts[] = {"",
                                        "a: 1 # why\n",
                                        "b: 'q'\n",
                                        "a: one\n  two\n",
                                        "b: {c: d}\n",
                                        "a:\nb: 1\n",
                                        "a:\n  - x\n  -y",
                                        "a:\n  - x\n - y\n",
                                        "a: 1\na: 2\n",
                                        "a: b: c\n",
                                        "a: x\n- y\n",
                                        "a: é\n",
                                        "a:\t1\n",
                                        "a: 1\r\n",
                                        "---\na: 1\n",
                                        "a: *x\n",
                                        "a: |\n  x\n",
                                        "a: 1\n...\n",
                                        "? a\n",
                                        "a :1\n",
                                        "a: []\n",
                                        "a: [x\n",
                                        "a: [x,\n y]\n",
                                        "a: [x, ]\n",
                                        "a: [, x]\n",
                                        "a: [x] y\n",
                                        "a: [x] # why\n",
                                        "a: [[x]]\n",
                                        "a: [{x: y}]\n",
                                        "a: [x: y]\n",
                                        "a: [x:]\n",
                                        "a: ['x']\n",
                                        "a: [\"x\\n\"]\n",
                                        "a: [\"x\"y]\n",
                                        "a: [x\"y\"]\n",
                                        "a: [${X}]\n",
                                        "a:\n  b: c\n  b: d\n",
                                        "a:\n  b: c\n   d: e\n",
                                        "a:\n  b: c\n d: e\n",
                                        "a:\n  b:\n",
                                        "a:\n  b:\n    c: d\n",
                                        "a:\n  b: [c]\n",
                                        "a:\n  b: c\n  - d\n",
                                        "a:\n  - b\n  c: d\n",
                                        "a:\n  x\n",
                                        "a: b\n  c: d\n"};
    (void)state;
    for (size_t i = 0; i < array_len(texts); i++)
        assert_false(is_short(texts[i]));
}

static const char *const pieces[] = {"k: v w\n",
                                     "m:\n  - v\n",
                                     "n: ${X}/y\n",
                                     "o:\n - -1\n - b\n",
                                     "# c\n",
                                     "a: ",
                                     "b: ",
                                     "c:",
                                     "d:\n",
                                     "e:\n  - ",
                                     "  - ",
                                     " - ",
                                     "- ",
                                     "x",
                                     "x y",
                                     "/p/q",
                                     "${A}",
                                     "1",
                                     "-1",
                                     "a:b",
                                     "a: b",
                                     " #c",
                                     "#c",
                                     "\n",
                                     "\n",
                                     "\n",
                                     "\n",
                                     "'q'",
                                     "[1]",
                                     "\t",
                                     "é",
                                     "?",
                                     "*a",
                                     "|",
                                     "\r\n",
                                     "---",
                                     "  ",
                                     "\n\n",
                                     "=",
                                     "{a: b}",
                                     "[",
                                     "]",
                                     ", ",
                                     "[x, y]",
                                     "\"",
                                     "\"q r\"",
                                     "  f: g\n",
                                     "  h: ",
                                     "g:\n  h: i\n",
                                     " p: q\n",
                                     "l: [",
                                     "]\n"};

static void test_random_texts(void **state)
{
    unsigned rng = 7;
    size_t good = 0;
    (void)state;
    for (unsigned i = 0; i < 8000; i++) {
        _cleanup_(buf_release) struct buf text = BUF_INIT(256);
        for (unsigned n = 1 + i % 12; n > 0; n--) {
            rng = rng * 1664525 + 1013904223;
            assert_int_equal(buf_adds(&text, pieces[(rng >> 16) % array_len(pieces)]), 0);
        }
        good += is_short(buf_str(&text));
    }
    assert_true(good > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_common_specs),
                                       cmocka_unit_test(test_left_to_libfyaml),
                                       cmocka_unit_test(test_random_texts)};
    return cmocka_run_group_tests_name("base/doclines", tests, NULL, NULL);
}
