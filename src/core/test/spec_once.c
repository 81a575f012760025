/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of spec.h: one mistake is told once. */
#include "core/spec/spec.h"

#include <string.h>

#include "base/doc/doc.h"

#include "base/unit.h"
#include "base/unit_message.h"

#define PPO                                                                                        \
    "workload: ppo\nn_gpus_per_node: 4\nmodel_id: o/m\ntrain_file: /s/a.parquet\n"                 \
    "val_file: /s/b.parquet\n"

static int read_spec(const char *yaml, struct spec *ret, struct problems *ps)
{
    struct doc *doc = NULL;
    assert_int_equal(doc_parse(yaml, strlen(yaml), true, &doc, ps), 0);
    int r = spec_read(doc_root(doc), NULL, ret, ps);
    doc_free(doc);
    return r;
}

/* "a.b: value", as nested mappings: "a: {b: value}". */
static char *keys_to_yaml(const char *name, const char *value)
{
    struct buf b = BUF_INIT(1000);
    size_t depth = 0;
    (void)buf_adds(&b, PPO);
    for (const char *dot; (dot = strchr(name, '.')); name = dot + 1, depth++)
        (void)buf_addf(&b, "%.*s: {", (int)(dot - name), name);
    (void)buf_addf(&b, "%s: %s", name, value);
    while (depth-- > 0)
        (void)buf_adds(&b, "}");
    (void)buf_adds(&b, "\n");
    return buf_take(&b);
}

/* A warning may stand beside it, of a key that asks for another one. */
static void one_problem(const char *yaml, const char *code)
{
    struct problems ps = {0};
    struct spec spec;
    assert_int_equal(read_spec(yaml, &spec, &ps), ERR_BAD_SPEC);
    if (ps.errors != 1 || !strstr(unit_problem(&ps.v[0]), code)) {
        struct buf b = BUF_INIT(10000);
        problems_to_text(&ps, "spec", MESSAGE_ENGLISH, &b);
        fail_msg("%s\nwanted '%s' alone, got:\n%s", yaml, code, buf_str(&b));
    }
    spec_release(&spec);
    problems_release(&ps);
}

/* Whatever is wrong with a key, it is told once: neither its other rules nor what holds without it
 * speak beside that. */
static void a_wrong_key_is_one_problem(void **state)
{
    static const char *const basic[] = {"workload", "n_gpus_per_node", "model_id", "train_file",
                                        "val_file"};
    (void)state;
    for (size_t i = 0; i < spec_table.n; i++) {
        const struct field *k = &spec_table.rows[i];
        bool is_there = false;
        for (size_t n = 0; n < array_len(basic); n++)
            is_there = is_there || !strcmp(basic[n], k->name);
        _cleanup_(freep) char *odd = xasprintf("%s_qx", k->name);
        _cleanup_(freep) char *unknown = keys_to_yaml(odd, "7");
        one_problem(unknown, "unknown_key");
        if (is_there || k->type == FIELD_NODE)
            continue;
        bool is_pairs = k->type == FIELD_PAIRS, is_map = is_pairs || k->type == FIELD_JSON;
        _cleanup_(freep) char *wrong = keys_to_yaml(k->name, is_map ? "7" : "{a: b}");
        one_problem(wrong, is_pairs ? "pairs_form" : is_map ? "mapping_expected" : "not_single");
    }
}

static void what_argusd_judges_is_left_to_it(void **state)
{
    struct problems ps = {0};
    struct spec spec;
    (void)state;
    assert_int_equal(read_spec(PPO "after: [Not An Id]\ncluster: elsewhere\n", &spec, &ps), 0);
    assert_int_equal(ps.n, 0);
    spec_release(&spec);
    problems_release(&ps);
}

static void too_many_overrides_are_one_problem(void **state)
{
    struct buf b = BUF_INIT(64 << 10);
    struct problems ps = {0};
    struct spec spec;
    (void)state;
    (void)buf_adds(&b, PPO "overrides:\n");
    for (int i = 0; i < SPEC_OVERRIDES_MAX; i++)
        (void)buf_addf(&b, "  - +a.k%d=1\n", i);
    assert_int_equal(read_spec(buf_str(&b), &spec, &ps), 0);
    spec_release(&spec);
    problems_release(&ps);
    (void)buf_adds(&b, "  - +a.more=1\n");
    assert_false(b.failed);
    one_problem(buf_str(&b), "overrides are more than");
    buf_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_wrong_key_is_one_problem),
                                       cmocka_unit_test(what_argusd_judges_is_left_to_it),
                                       cmocka_unit_test(too_many_overrides_are_one_problem)};
    return cmocka_run_group_tests_name("core/spec_once", tests, NULL, NULL);
}
