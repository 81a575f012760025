/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of pipe.h, pipe_expr.h and pipe_text.h: what is read, and what each mistake is told. */
#include "core/pipe/pipe.h"

#include <stdlib.h>
#include <string.h>

#include "base/doc/conf.h"
#include "base/str.h"
#include "core/pipe/pipe_text.h"

#include "pipe_made.h"

static const char PIPE[] =
    "name: sft-to-model\n"
    "params:\n"
    "  lr: {type: number, default: 1e-5}\n"
    "  model: {required: true}\n"
    "steps:\n"
    "  publish:\n"
    "    uses: publish\n"
    "    needs: [good]\n"
    "    with: {name: m, source: '${{ steps.train.checkpoint.best_path }}'}\n"
    "  good:\n"
    "    uses: check\n"
    "    with: {that: \"${{ steps.eval.metrics['val/acc'] >= 0.6 }}\"}\n"
    "  eval:\n"
    "    matrix: {t: [0, 0.7]}\n"
    "    with: {workload: eval, overrides: ['t=${{ matrix.t }}'],\n"
    "           resume: '${{ steps.train.checkpoint.latest }}'}\n"
    "  train:\n"
    "    retry: {limit: 2, backoff: 1m}\n"
    "    with: {preset: sft-0.5b, lr: '${{ params.lr }}'}\n";

static int place_of(const struct pipe *p, const char *step)
{
    for (size_t i = 0; i < p->n_steps; i++)
        if (str_eq(p->steps[p->order[i]].name, step))
            return (int)i;
    fail_msg("no step '%s'", step);
    return -1;
}

static void test_read(void **state)
{
    struct pipe *p = pipe_made(PIPE);
    (void)state;
    assert_string_equal(p->name, "sft-to-model");
    assert_int_equal(p->n_steps, 4);
    assert_true(place_of(p, "train") < place_of(p, "eval"));
    assert_true(place_of(p, "eval") < place_of(p, "good"));
    assert_true(place_of(p, "good") < place_of(p, "publish"));
    const struct pipe_step *publish = pipe_find_step(p, "publish");
    assert_int_equal(publish->n_before, 2); /* by its needs, and by its reference */
    assert_int_equal(pipe_find_step(p, "eval")->n_items, 2);
    assert_int_equal(pipe_find_step(p, "train")->retry_backoff, 60 * USEC_SEC);
    assert_null(pipe_find_step(p, "nothing"));
    pipe_free(p);
}

#define STEPS(text) "name: p\nparams: {n: {type: integer}}\nsteps:\n" text
#define WITH(text) STEPS("  a: {with: {workload: ray}}\n  b:\n    with: {x: \"" text "\"}\n")
#define IF(text) STEPS("  a: {with: {}}\n  b:\n    if: \"" text "\"\n    with: {}\n")

static const struct {
    const char *text, *code, *field;
    int line;
} mistakes[] = {
    {"steps: {a: {with: {}}}", "key_missing", "name", 0},
    {"name: P\nsteps: {a: {with: {}}}", "pipe_name", "name", 0},
    {"name: p\nsteps: {A: {with: {}}}", "pipe_name", "steps", 2},
    {"name: p\nsteps: []\n", "pipe_not_mapping", "steps", 2},
    {STEPS("  a: {}\n"), "key_missing", "steps.a.with", 0},
    {STEPS("  a: {uses: cook, with: {}}\n"), "not_one_of", "steps.a.uses", 4},
    {STEPS("  a: {with: {}, need: [b]}\n"), "unknown_key", "steps.a.need", 4},
    {STEPS("  a: {with: {}, needs: [b]}\n"), "pipe_step_unknown", "steps.a.needs", 4},
    {STEPS("  a: {with: {}, needs: [a]}\n"), "pipe_circle", "steps.a", 4},
    {STEPS(
         "  a: {with: {}, needs: [c]}\n  b: {with: {}, needs: [a]}\n  c: {with: {}, needs: [b]}\n"),
     "pipe_circle", "steps.a", 4},
    {STEPS("  a: {with: {}, matrix: {x: 1}}\n"), "pipe_matrix_list", "steps.a.matrix", 4},
    {STEPS("  a: {with: {}, retry: {limit: 11}}\n"), "outside_bounds", "steps.a.retry.limit", 4},
    {STEPS("  a: {uses: check, with: {}}\n"), "pipe_with_missing", "steps.a.with", 4},
    {STEPS("  a: {uses: check, with: {that: x, and: y}}\n"), "pipe_with_key", "steps.a.with", 4},
    {STEPS("  a: {uses: deploy, with: {model: m}}\n"), "pipe_with_missing", "steps.a.with", 4},
    {STEPS("  a: {uses: deploy, with: {name: x, replica: 2}}\n"), "pipe_with_key", "steps.a.with",
     4},
    {STEPS("  a: {uses: deploy, with: {name: x, model_path: y}}\n"), "pipe_with_key",
     "steps.a.with", 4},
    {STEPS("  a: {uses: check, with: x}\n"), "pipe_with_mapping", "steps.a.with", 4},
    {"name: p\nparams: {n: {type: integer, default: 1.5}}\nsteps: {a: {with: {}}}\n",
     "pipe_param_type", "params.n.default", 2},
    {WITH("${{ steps.a.job"), "pipe_not_closed", "steps.b.with", 6},
    {WITH("${{ }}"), "expr_value", "steps.b.with", 6},
    {WITH("${{ params.n + 1 }}"), "pipe_expr_word", "steps.b.with", 6},
    {WITH("${{ (params.n }}"), "expr_bracket", "steps.b.with", 6},
    {WITH("${{ params.n == 'x }}"), "pipe_not_closed", "steps.b.with", 6},
    {WITH("${{ params. }}"), "pipe_ref_form", "steps.b.with", 6},
    {WITH("${{ params.m }}"), "pipe_ref_unknown", "steps.b.with", 6},
    {WITH("${{ matrix.m }}"), "pipe_ref_unknown", "steps.b.with", 6},
    {WITH("${{ secrets.m }}"), "pipe_ref_unknown", "steps.b.with", 6},
    {WITH("${{ steps.aa.job }}"), "pipe_step_unknown", "steps.b.with", 6},
    {WITH("${{ steps.b.job }}"), "pipe_circle", "steps.b", 5},
    {WITH("${{ steps.a }}"), "pipe_ref_step", "steps.b.with", 6},
    {WITH("${{ steps.a.model }}"), "pipe_ref_step", "steps.b.with", 6},
    {WITH("${{ steps.a.metrics }}"), "pipe_ref_step", "steps.b.with", 6},
    {IF("steps.a.state = 'x'"), "pipe_expr_word", "steps.b.if", 6},
    {IF("!!!!!!!!!!!!!!!!!!true"), "expr_deep", "steps.b.if", 6},
};

static void test_mistakes(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_len(mistakes); i++) {
        struct problems ps = {0};
        struct pipe *p = NULL;
        if (pipe_read(mistakes[i].text, strlen(mistakes[i].text), &p, &ps) != ERR_BAD_SPEC)
            fail_msg("this was read:\n%s", mistakes[i].text);
        const struct problem *first = problems_first(&ps);
        if (!str_eq(first->code, mistakes[i].code) || !str_eq(first->field, mistakes[i].field) ||
            first->line != mistakes[i].line)
            fail_msg("%zu: line %d, %s: %s; in place of line %d, %s: %s", i, first->line,
                     first->field, unit_problem(first), mistakes[i].line, mistakes[i].field,
                     mistakes[i].code);
        problems_release(&ps);
    }
}

/* ---- expressions ---- */

static json_t *find_value(const struct pipe_ref *ref, void *arg)
{
    const json_t *v = arg;
    for (int i = 0; v && i < ref->n; i++)
        v = json_object_get(v, ref->part[i]);
    return json_incref((json_t *)(uintptr_t)v);
}

static const char VALUES[] = "{\"params\":{\"n\":3,\"s\":\"abc\",\"t\":true,\"none\":null},"
                             "\"m\":{\"acc\":[0.7,0.8],\"a/b@1\":0.5,\"l\":[]}}";

static const struct {
    const char *text, *value;
    bool failed;
} values[] = {
    {"params.n", "3", false},
    {"params.n >= 3 && params.s == 'abc'", "true", false},
    {"params.n < 3 || params.t", "true", false},
    {"!params.t", "false", false},
    {"params.none", "null", false},
    {"params.none == null", "true", false},
    {"params.none > 1", "false", false},
    {"params.s != 'abc'", "false", false},
    {"params.s < 'b'", "true", false},
    {"params.s == 3", "false", false},
    {"params.s != 3", "true", false},
    {"m['a/b@1'] == 0.5", "true", false},
    {"m.a/b@1", "0.5", false},
    {"m.acc > 0.6", "true", false},
    {"m.acc > 0.75", "false", false},
    {"0.9 > m.acc", "true", false},
    {"m.l > 0", "false", false},
    {"1 < 2 && (false || !false)", "true", false},
    {"-1.5e1 == -15", "true", false},
    {"success()", "true", false},
    {"success()", "false", true},
    {"failure()", "true", true},
    {"always() && failure()", "false", false},
    {"'it}}s'", "\"it}}s\"", false},
};

static void test_values(void **state)
{
    _cleanup_(json_unrefp) json_t *all = json_loads(VALUES, 0, NULL);
    (void)state;
    for (size_t i = 0; i < array_len(values); i++) {
        struct pipe_expr *e = NULL;
        struct err err = {0};
        struct pipe_scope scope = {.find = find_value, .arg = all, .failed = values[i].failed};
        if (pipe_expr_parse(values[i].text, strlen(values[i].text), &e, &err) < 0)
            fail_msg("'%s': %s", values[i].text, err.text);
        _cleanup_(json_unrefp) json_t *v = pipe_expr_value(e, &scope);
        char *text = json_dumps(v, JSON_ENCODE_ANY);
        if (!str_eq(text, values[i].value))
            fail_msg("'%s' is %s, not %s", values[i].text, text, values[i].value);
        free(text);
        pipe_expr_free(e);
    }
}

static const struct {
    const char *yaml, *filled; /* NULL: refused with */
    const char *code;
} filled[] = {
    {"{a: 1, b: '1', c: true, d: [x, null]}", "{\"a\":1,\"b\":\"1\",\"c\":true,\"d\":[\"x\",null]}",
     NULL},
    {"{a: '${{ params.n }}'}", "{\"a\":3}", NULL},
    {"{a: 'n=${{ params.n }}, ${{ params.t }} ${{params.s}}'}", "{\"a\":\"n=3, true abc\"}", NULL},
    {"{a: '${{ params.none }}', b: 2}", "{\"b\":2}", NULL},
    {"{a: ['${{ params.none }}', 2]}", "{\"a\":[2]}", NULL},
    {"{a: '${{ m.acc }}'}", "{\"a\":[0.7,0.8]}", NULL},
    {"{a: '$${{ params.n }} ${HOME}'}", "{\"a\":\"${{ params.n }} ${HOME}\"}", NULL},
    {"{a: 'x${{ params.none }}'}", NULL, "pipe_no_value"},
    {"{a: [1, {b: 'x${{ m.acc }}'}]}", NULL, "pipe_not_text"},
};

static void test_fill(void **state)
{
    _cleanup_(json_unrefp) json_t *all = json_loads(VALUES, 0, NULL);
    struct pipe_scope scope = {.find = find_value, .arg = all};
    (void)state;
    for (size_t i = 0; i < array_len(filled); i++) {
        struct doc *d = NULL;
        struct problems ps = {0};
        struct err err = {0};
        struct buf out = BUF_INIT(1000);
        struct jout j = jout_begin(&out);
        const struct node *at = NULL;
        assert_int_equal(doc_parse(filled[i].yaml, strlen(filled[i].yaml), true, &d, &ps), 0);
        int r = pipe_text_fill(doc_root(d), &scope, &j, &at, &err);
        if (filled[i].filled) {
            assert_int_equal(r, 0);
            assert_string_equal(buf_str(&out), filled[i].filled);
        } else {
            assert_int_equal(r, ERR_REFUSED);
            assert_string_equal(err.message, filled[i].code);
            assert_non_null(at);
        }
        buf_release(&out);
        doc_free(d);
    }
}

/* ---- parameters ---- */

static void test_params(void **state)
{
    struct pipe *p = pipe_made(PIPE);
    (void)state;
    const struct {
        const char *given, *all, *code;
    } cases[] = {
        {"{\"model\":\"m\"}", "{\"lr\":1e-5,\"model\":\"m\"}", NULL},
        {"{\"model\":\"m\",\"lr\":\"2\"}", "{\"lr\":2.0,\"model\":\"m\"}", NULL},
        {"{\"model\":7,\"lr\":3}", "{\"lr\":3.0,\"model\":\"7\"}", NULL},
        {"{}", NULL, "pipe_param_missing"},
        {"{\"model\":\"m\",\"lr\":\"fast\"}", NULL, "pipe_param_type"},
        {"{\"model\":\"m\",\"rl\":1}", NULL, "pipe_param_unknown"},
        {"{\"model\":[]}", NULL, "pipe_param_type"},
    };
    for (size_t i = 0; i < array_len(cases); i++) {
        _cleanup_(json_unrefp) json_t *given = json_loads(cases[i].given, 0, NULL);
        _cleanup_(json_unrefp) json_t *all = NULL, *wanted = NULL;
        struct problems ps = {0};
        int r = pipe_fill_params(p, given, &all, &ps);
        if (cases[i].all) {
            assert_int_equal(r, 0);
            wanted = json_loads(cases[i].all, 0, NULL);
            assert_true(json_equal(all, wanted));
        } else {
            assert_int_equal(r, ERR_BAD_SPEC);
            assert_string_equal(problems_first(&ps)->code, cases[i].code);
        }
        problems_release(&ps);
    }
    pipe_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read), cmocka_unit_test(test_mistakes), cmocka_unit_test(test_values),
        cmocka_unit_test(test_fill), cmocka_unit_test(test_params),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
