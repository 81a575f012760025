/* SPDX-License-Identifier: Apache-2.0 */
/* In what two specs differ: what is told, what is the same in another spelling, what is hidden. */
#include "core/spec/specdiff.h"

#include <stdlib.h>

#include "base/json.h"
#include "base/unit.h"
#include "core/spec/respec.h"

static void check(const char *old, const char *new, const char *expected)
{
    struct speckeys *a = speckeys_new(old), *b = speckeys_new(new);
    struct buf changes = BUF_INIT(RESPEC_CHANGES_MAX);
    assert_non_null(a);
    assert_non_null(b);
    int n = speckeys_diff(a, b, &changes);
    json_t *told = json_loads(buf_str(&changes), 0, NULL);
    assert_int_equal(n, json_array_size(told));
    assert_string_equal(buf_str(&changes), expected);
    json_decref(told);
    buf_release(&changes);
    speckeys_free(a);
    speckeys_free(b);
}

static void test_what_differs(void **state)
{
    (void)state;
    check("nnodes: 1\npool: a\n", "pool: b\nname: x\n",
          "[{\"key\":\"name\",\"old\":null,\"new\":\"x\"},"
          "{\"key\":\"nnodes\",\"old\":\"1\",\"new\":null},"
          "{\"key\":\"pool\",\"old\":\"a\",\"new\":\"b\"}]");
    check("overrides: [a.b=8, d=x, a.b=9]\n", "overrides: [a.b=4, e=]\n",
          "[{\"key\":\"overrides.a.b\",\"old\":\"9\",\"new\":\"4\"},"
          "{\"key\":\"overrides.d\",\"old\":\"x\",\"new\":null},"
          "{\"key\":\"overrides.e\",\"old\":null,\"new\":\"\"}]");
    check("env: {A: 1.0}\n", "env: {A: 1}\n",
          "[{\"key\":\"env.A\",\"old\":\"1.0\",\"new\":\"1\"}]");
    check("entrypoint: [a, b]\n", "entrypoint: [a, c]\n",
          "[{\"key\":\"entrypoint\",\"old\":\"[\\\"a\\\",\\\"b\\\"]\","
          "\"new\":\"[\\\"a\\\",\\\"c\\\"]\"}]");
}

static void test_what_is_the_same(void **state)
{
    (void)state;
    check("submission_id: one\nnnodes: 2\n", "nnodes: 2\nsubmission_id: two\n", "[]");
    check("overrides: [+a=1]\npool: null\n", "{\"overrides\":[\"a=1\"]}", "[]");
    check("env: {A: 1.10, B: true}\n", "{\"env\":{\"B\":\"true\",\"A\":\"1.10\"}}", "[]");
    check("lr: 0.000001\nname: '12'\n", "{\"lr\":1e-6,\"name\":\"12\"}", "[]");
    check("restart: {max: 2, backoff: 30s}\n", "restart: {backoff: 30s, max: 2}\n", "[]");
}

/* What a retry writes differs in nothing but what it changes. */
static void test_a_retry(void **state)
{
    static const char old[] = "workload: grpo # mine\nenv: {A: 1.10}\nn: 1.5\noverrides: [x=1e-6]\n"
                              "list: [1, '2', true, null]\ntimeout: 2h\n";
    _cleanup_(json_unrefp) json_t *patch = json_pack("{s:i}", "nnodes", 2);
    struct respec how = {.patch = patch};
    struct buf out = BUF_INIT(DOC_MAX_BYTES), changes = BUF_INIT(RESPEC_CHANGES_MAX);
    (void)state;
    assert_int_equal(respec_text(old, &how, &out, &changes, NULL), 1);
    check(old, buf_str(&out), "[{\"key\":\"nnodes\",\"old\":null,\"new\":\"2\"}]");
    buf_release(&out);
    buf_release(&changes);
}

static void test_secrets(void **state)
{
    (void)state;
    check("env: {API_KEY: one}\n", "env: {API_KEY: two}\n",
          "[{\"key\":\"env.API_KEY\",\"old\":\"***\",\"new\":\"***\"}]");
}

static void test_what_is_no_spec(void **state)
{
    (void)state;
    assert_null(speckeys_new("- a\n"));
    assert_null(speckeys_new("a: [\n"));
    assert_null(speckeys_new("# sealed with a key that is not here any more\n"));
    speckeys_free(NULL);
}

/* The key of each stands behind those above it: twenty of half a MiB are too many. */
static void test_keys_too_long(void **state)
{
    enum { LONG = 500000, BELOW = 20 };
    struct buf text = BUF_INIT(DOC_MAX_BYTES);
    (void)state;
    (void)buf_adds(&text, "{\"");
    for (int i = 0; i < LONG; i++)
        (void)buf_addc(&text, 'k');
    (void)buf_adds(&text, "\":{\"a\":1");
    struct buf few = BUF_INIT(DOC_MAX_BYTES);
    (void)buf_addf(&few, "%s}}", buf_str(&text));
    for (int i = 0; i < BELOW; i++)
        (void)buf_addf(&text, ",\"b%d\":1", i);
    (void)buf_adds(&text, "}}");
    assert_false(text.failed || few.failed);
    struct speckeys *k = speckeys_new(buf_str(&few));
    assert_non_null(k);
    assert_null(speckeys_new(buf_str(&text)));
    speckeys_free(k);
    buf_release(&few);
    buf_release(&text);
}

static void test_too_much_to_tell(void **state)
{
    struct speckeys *a = speckeys_new("a: 1\nb: 2\nc: 3\n"), *b = speckeys_new("d: 4\n");
    struct buf changes = BUF_INIT(60);
    (void)state;
    (void)speckeys_diff(a, b, &changes);
    assert_true(changes.failed);
    buf_release(&changes);
    speckeys_free(a);
    speckeys_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_differs),     cmocka_unit_test(test_a_retry),
        cmocka_unit_test(test_what_is_the_same), cmocka_unit_test(test_secrets),
        cmocka_unit_test(test_what_is_no_spec),  cmocka_unit_test(test_keys_too_long),
        cmocka_unit_test(test_too_much_to_tell),
    };
    return cmocka_run_group_tests_name("core/specdiff", tests, NULL, NULL);
}
