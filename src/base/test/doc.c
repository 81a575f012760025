/* SPDX-License-Identifier: Apache-2.0 */
/* Places, types and refusals of the YAML and JSON reader. */
#include "base/doc/doc.h"

#include <stdlib.h>
#include <string.h>

#include "base/unit.h"
#include "base/unit_message.h"

static struct doc *parse(const char *text, bool places)
{
    struct problems ps = {0};
    struct doc *d = NULL;
    assert_int_equal(doc_parse(text, strlen(text), places, &d, &ps), 0);
    assert_int_equal(ps.n, 0);
    return d;
}

static void test_places(void **state)
{
    (void)state;
    struct doc *d = parse("a: 1\nb:\n  - x\n  - {c: 'y z'}\n", true);
    const struct node *b = node_find(doc_root(d), "b");
    assert_int_equal(b->key_line, 2);
    assert_int_equal(b->key_column, 1);
    assert_int_equal(b->n, 2);
    const struct node *c = node_find(b->first->next, "c");
    assert_string_equal(c->text, "y z");
    assert_false(c->plain);
    assert_int_equal(c->line, 4);
    assert_int_equal(c->column, 9);
    assert_null(node_find(b, "c"));
    doc_free(d);
}

static void test_json_with_and_without_places(void **state)
{
    (void)state;
    static const char text[] = "{\"a\": [1, 1.5, true, null, \"1\"],\n \"b\": {}}";
    for (int places = 0; places < 2; places++) {
        struct doc *d = parse(text, places);
        struct buf out = BUF_INIT(1000);
        struct jout j = jout_begin(&out);
        node_to_json(doc_root(d), &j, NULL);
        assert_string_equal(buf_str(&out), "{\"a\":[1,1.5,true,null,\"1\"],\"b\":{}}");
        assert_int_equal(node_find(doc_root(d), "b")->key_line, places ? 2 : 0);
        buf_release(&out);
        doc_free(d);
    }
}

static void test_scalar_types(void **state)
{
    (void)state;
    struct doc *d = parse("[~, null, '', no, 0x10, 007, 1e-06, 1., .5, -3, \"true\", True]", true);
    struct buf out = BUF_INIT(1000);
    struct jout j = jout_begin(&out);
    node_to_json(doc_root(d), &j, NULL);
    assert_string_equal(buf_str(&out), "[null,null,\"\",\"no\",\"0x10\",\"007\",1e-06,\"1.\","
                                       "\".5\",-3,\"true\",true]");
    buf_release(&out);
    doc_free(d);
}

static void test_quoted_texts(void **state)
{
    (void)state;
    struct doc *d = parse("[' ''''b', \"a\\\n  b\\n\", 'one\n\n  two']", true);
    const struct node *n = doc_root(d)->first;
    assert_string_equal(n->text, " ''b");
    assert_string_equal(n->next->text, "ab\n");
    assert_string_equal(n->next->next->text, "one\ntwo");
    doc_free(d);
}

static void refuse(const char *text, size_t len, int line, const char *part)
{
    struct problems ps = {0};
    struct doc *d = NULL;
    assert_true(doc_parse(text, len, true, &d, &ps) < 0);
    assert_null(d);
    assert_int_equal(ps.n, 1);
    assert_int_equal(ps.v[0].line, line);
    assert_non_null(strstr(unit_problem(&ps.v[0]), part));
    problems_release(&ps);
}

static void test_refusals(void **state)
{
    (void)state;
    refuse("a: 1\na: 2\n", 10, 2, "twice");
    refuse("a: &x 1\nb: *x\n", 14, 2, "aliases");
    refuse("a: 1\n---\nb: 2\n", 14, 0, "several");
    refuse("a: b\0c\n", 7, 1, "NUL");
    refuse("a: 1\nb: \xff\n", 10, 2, "UTF-8");
    refuse("%\x1e\x15true\xee\x1a", 9, 1, "UTF-8"); /* libfyaml never ends on this */
    refuse("a: \"b\\0c\"\n", 10, 1, "NUL");
    refuse("a: \"\\ud83d\"\n", 12, 1, "escape");
    refuse("[a]: 1\n", 7, 1, "not a text");
    refuse("? k: \t: a", 9, 1, "begins with '? '"); /* libfyaml crashes on this */
    refuse("a: 1\n- ?\n", 9, 2, "begins with '? '");
    char deep[200] = "";
    memset(deep, '[', 100);
    refuse(deep, 100, 1, "nested");
    struct problems ps = {0};
    struct doc *d = NULL;
    assert_true(doc_parse("a: [1\nb: }", 10, true, &d, &ps) < 0);
    assert_int_equal(ps.n, 1);
    assert_true(ps.v[0].line >= 1);
    problems_release(&ps);
}

static void test_plain_texts(void **state)
{
    static const char text[] =
        "a: is it so ? yes  # no\nb: what?\nc: two\n  lines\nd: {e: ?f, g: é }\n";
    struct problems ps = {0};
    struct doc *d = NULL;
    (void)state;
    assert_int_equal(doc_parse(text, sizeof(text) - 1, true, &d, &ps), 0);
    const struct node *root = doc_root(d), *flow = node_find(root, "d");
    assert_string_equal(node_find(root, "a")->text, "is it so ? yes");
    assert_string_equal(node_find(root, "b")->text, "what?");
    assert_string_equal(node_find(root, "c")->text, "two lines");
    assert_string_equal(node_find(flow, "e")->text, "?f");
    assert_string_equal(node_find(flow, "g")->text, "é");
    assert_true(node_find(flow, "g")->plain);
    doc_free(d);
}

static void test_too_many_nodes(void **state)
{
    (void)state;
    size_t n = 3 * (DOC_MAX_NODES + 10);
    char *text = malloc(n + 2);
    text[0] = '[';
    for (size_t i = 1; i < n; i++)
        text[i] = "1, "[(i - 1) % 3];
    text[n] = ']';
    refuse(text, n + 1, 1, "too many");
    free(text);
}

static void test_empty_is_a_mapping(void **state)
{
    (void)state;
    static const char *const texts[] = {"", "\n", "# only a comment\n"};
    for (size_t i = 0; i < array_len(texts); i++) {
        struct doc *d = parse(texts[i], true);
        assert_int_equal(doc_root(d)->kind, NODE_MAP);
        assert_int_equal(doc_root(d)->n, 0);
        doc_free(d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),       cmocka_unit_test(test_json_with_and_without_places),
        cmocka_unit_test(test_quoted_texts), cmocka_unit_test(test_scalar_types),
        cmocka_unit_test(test_refusals),     cmocka_unit_test(test_too_many_nodes),
        cmocka_unit_test(test_plain_texts),  cmocka_unit_test(test_empty_is_a_mapping)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
