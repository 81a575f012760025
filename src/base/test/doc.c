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

/* A number keeps its shortest spelling on its way through JSON. */
static void test_json_numbers(void **state)
{
    static const char text[] = "{\"a\": 1.0000000000000001e-5, \"b\": 0.1, \"c\": 1e-06, \"d\": "
                               "0.30000000000000004, \"e\": 3.0, \"f\": 9.9999999999999995e-7}";
    static const char *const wanted[] = {"1e-05", "0.1",  "1e-06", "0.30000000000000004",
                                         "3",     "1e-06"};
    struct doc *d = parse(text, false);
    size_t i = 0;
    (void)state;
    for (const struct node *n = doc_root(d)->first; n; n = n->next)
        assert_string_equal(n->text, wanted[i++]);
    doc_free(d);
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

/* What an editor or a colleague leaves in a file is told with its place and a way out. */
static void test_mistakes_are_named(void **state)
{
    static const struct {
        const char *text;
        int line;
        const char *part;
    } rows[] = {
        {"run: echo {\"a\": 1}\n", 1, "holds ': '"},
        {"a: note: this\n", 1, "holds ': '"},
        {"a:\n\tb: 1\n", 2, "tab"},
        {"a: 1\nb: \"x\nc: 1\n", 2, "no end"},
        {"a: 'x\nb: 1\n", 1, "no end"},
        {"a: 'it's'\n", 1, "behind the end"},
        {"a: @x\n", 1, "character that means"},
        {"a: `x`\n", 1, "character that means"},
        {"a: %x\n", 1, "character that means"},
        {"a: *.py\n", 1, "aliases"},
        {"a: >=2.0\n", 1, "character that means"},
        {"a: - b\n", 1, "on the line of its key"},
        {"a: 1\nb\nc: 2\n", 2, "no 'key: value'"},
        {"a:\n-b=1\nc: 1\n", 2, "no 'key: value'"},
        {"a: [1, 2\nb: 3\n", 3, "brackets"},
        {"{\"a\": 1 \"b\": 2}\n", 1, "brackets"},
        {"a: ]\n", 1, "brackets"},
        {"a:\n  b: 1\n c: 2\n", 3, "indentation"},
        {"a:\n  - b\n  -c\n", 3, "indentation"},
        {"a: 1\n- b\n", 2, "indentation"},
        {"a: !x!y z\n", 1, "begins with '!'"},
        {"a: \"C:\\Users\"\n", 1, "escape"},
    };
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++)
        refuse(rows[i].text, strlen(rows[i].text), rows[i].line, rows[i].part);
}

static void test_tags(void **state)
{
    static const char text[] = "a: !!str 7\nb: !!int \"3\"\nc: !!float 1.5\nd: !!bool 'true'\n"
                               "e: !!null ''\nf: !!map {x: !!seq [1]}\ng: ! 8\n!!str h: 1\n";
    (void)state;
    struct doc *d = parse(text, true);
    struct buf out = BUF_INIT(1000);
    struct jout j = jout_begin(&out);
    node_to_json(doc_root(d), &j, NULL);
    assert_string_equal(buf_str(&out), "{\"a\":\"7\",\"b\":3,\"c\":1.5,\"d\":true,\"e\":null,"
                                       "\"f\":{\"x\":[1]},\"g\":\"8\",\"h\":1}");
    buf_release(&out);
    doc_free(d);
    static const struct {
        const char *text;
        int line;
        const char *part;
    } rows[] = {
        {"a: 1\nb: !env HOME\n", 2, "tag '!env'"},
        {"b: !!binary aGk=\n", 1, "tag '!!binary'"},
        {"a: !!python/tuple [1]\n", 1, "is not known"},
        {"a: !Ref {b: 1}\n", 1, "tag '!Ref'"},
        {"!x a: 1\n", 1, "tag '!x'"},
        {"a: !!int x\n", 1, "not what its tag"},
        {"a: !!map [1]\n", 1, "not what its tag"},
        {"a: !!seq 1\n", 1, "not what its tag"},
    };
    for (size_t i = 0; i < array_len(rows); i++)
        refuse(rows[i].text, strlen(rows[i].text), rows[i].line, rows[i].part);
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

struct many {
    const char *open, *before, *behind, *close; /* around all keys, and around each */
    int line;                                   /* of the first key that is too many */
};

static char *many_keys(const struct many *m, int n)
{
    struct buf text = BUF_INIT(DOC_MAX_BYTES);
    (void)buf_adds(&text, m->open);
    for (int i = 0; i < n; i++)
        (void)buf_addf(&text, "%sk%d%s", m->before, i, m->behind);
    (void)buf_adds(&text, m->close);
    assert_false(text.failed);
    return buf_take(&text);
}

/* In each of the three ways in which a text is read. */
static void test_too_many_keys(void **state)
{
    static const struct many forms[] = {{"", "", ": 1\n", "", DOC_MAX_KEYS + 1},
                                        {"env:\n", "  ", ": 1\n", "", DOC_MAX_KEYS + 2},
                                        {"{", "\"", "\": 1, ", "\"z\": 1}", 1},
                                        {"{a: [{", "", ": '1', ", "z: 1}]}", 1}};
    (void)state;
    for (size_t i = 0; i < array_len(forms); i++) {
        int most_n = DOC_MAX_KEYS - (*forms[i].close ? 1 : 0); /* z is one, too */
        _cleanup_(freep) char *most = many_keys(&forms[i], most_n);
        _cleanup_(freep) char *more = many_keys(&forms[i], most_n + 1);
        for (int places = 0; places < 2; places++)
            doc_free(parse(most, places));
        refuse(more, strlen(more), forms[i].line, "too many keys");
        struct problems ps = {0};
        struct doc *d = NULL;
        assert_true(doc_parse(more, strlen(more), false, &d, &ps) < 0);
        problems_release(&ps);
    }
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
        cmocka_unit_test(test_places),         cmocka_unit_test(test_json_with_and_without_places),
        cmocka_unit_test(test_json_numbers),   cmocka_unit_test(test_quoted_texts),
        cmocka_unit_test(test_scalar_types),   cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_too_many_nodes), cmocka_unit_test(test_too_many_keys),
        cmocka_unit_test(test_plain_texts),    cmocka_unit_test(test_mistakes_are_named),
        cmocka_unit_test(test_tags),           cmocka_unit_test(test_empty_is_a_mapping)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
