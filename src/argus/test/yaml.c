/* SPDX-License-Identifier: Apache-2.0 */
/* JSON as YAML, read back by the reader that specs go through; and --set. */
#include "argus/show/yaml.h"

#include <string.h>

#include "argus/job/overlay.h"
#include "base/doc/doc.h"
#include "base/unit.h"

/* The YAML text as JSON values again. */
static json_t *read_back(const struct buf *text)
{
    struct problems ps = {0};
    struct doc *doc = NULL;
    struct buf b = BUF_INIT(1 << 16);
    json_t *v = NULL;
    int r = doc_parse(buf_str(text), text->len, true, &doc, &ps);
    assert_int_equal(r, 0);
    struct jout j = jout_begin(&b);
    node_to_json(doc_root(doc), &j, NULL);
    r = json_parse(buf_str(&b), b.len, b.max, &v, NULL);
    assert_int_equal(r, 0);
    buf_release(&b);
    doc_free(doc);
    problems_release(&ps);
    return v;
}

static void test_round_trip(void **state)
{
    (void)state;
    static const char *const cases[] = {
        "{\"a\":1,\"b\":[1,[2,[]],{\"c\":{\"d\":null}},{}],\"e\":{\"f\":[{\"g\":1,\"h\":[1]},2]}}",
        "{\"s\":[\"\",\"plain\",\"true\",\"No\",\"~\",\"1\",\"1.5\",\"0x1f\",\"- a\",\"a: b\",\"a "
        "#b\",\" a\","
        "\"a "
        "\",\"a\\nb\",\"#\",\"{\",\"é\",\"节点\",\"\\u0001\",\"'\\\"\\\\\",\"a,b\",\"null\",\".5\","
        "\"-\"]}",
        "{\"key with: odd\":1,\"1\":2,\"true\":3,\"\":4}",
        "{\"n\":[0,-1,9007199254740993,0.1,1e-6,1e300,true,false,null]}",
    };
    for (size_t i = 0; i < array_len(cases); i++) {
        struct buf text = BUF_INIT(1 << 16);
        json_t *v = json_loads(cases[i], 0, NULL);
        assert_non_null(v);
        yaml_add(&text, v);
        json_t *back = read_back(&text);
        if (!json_equal(v, back))
            fail_msg("not the same: %s", buf_str(&text));
        json_decref(v);
        json_decref(back);
        buf_release(&text);
    }
}

static const char SPEC[] = "# note\nnnodes: 1\nrestart:\n  max: 3\nversion: '1.0'\n";

static void test_overlay(void **state)
{
    (void)state;
    struct strv sets = {0};
    struct buf out = BUF_INIT(1 << 16);
    strv_add(&sets, "nnodes=2");
    strv_add(&sets, "restart.max=5");
    strv_add(&sets, "new.deep=[a, 1]");
    strv_add(&sets, "name=x=y");
    strv_add(&sets, "empty=");
    assert_int_equal(overlay_apply(SPEC, strlen(SPEC), &sets, &out, NULL), 0);
    json_t *got = read_back(&out);
    json_t *want = json_loads(
        "{\"nnodes\":2,\"restart\":{\"max\":5},\"version\":\"1.0\",\"new\":{\"deep\":[\"a\",1]},"
        "\"name\":\"x=y\",\"empty\":\"\"}",
        0, NULL);
    assert_true(json_equal(got, want));
    json_decref(got);
    json_decref(want);
    strv_release(&sets);
    buf_release(&out);
}

static void test_overlay_refuses(void **state)
{
    (void)state;
    static const char *const bad[] = {"nnodes", "=1", "a=[1", "a..=}"};
    for (size_t i = 0; i < array_len(bad); i++) {
        struct strv sets = {0};
        struct buf out = BUF_INIT(1 << 16);
        strv_add(&sets, bad[i]);
        assert_int_equal(overlay_apply(SPEC, strlen(SPEC), &sets, &out, NULL), ERR_USAGE);
        assert_int_equal(overlay_apply("- a", 3, &sets, &out, NULL), ERR_BAD_SPEC);
        assert_int_equal(out.len, 0);
        strv_release(&sets);
        buf_release(&out);
    }
}

static void test_places(void **state)
{
    (void)state;
    int line, column;
    overlay_place(SPEC, strlen(SPEC), "restart.max", &line, &column);
    assert_int_equal(line, 4);
    assert_int_equal(column, 3);
    overlay_place(SPEC, strlen(SPEC), "nowhere", &line, &column);
    assert_int_equal(line, 0);
    overlay_place("a: [", 4, "a", &line, &column);
    assert_int_equal(line, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_overlay),
        cmocka_unit_test(test_overlay_refuses),
        cmocka_unit_test(test_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
