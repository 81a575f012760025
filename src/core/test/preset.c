/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of preset.h. Those that are shipped are filled with their examples and made into command
 * lines of the oldest and the newest verl. */
#include "core/preset/preset.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "base/str.h"

#include "cmdline_make.h"

#include "base/unit.h"
#include "base/unit_message.h"

static const char PRESET[] =
    "description: small\n"
    "holes:\n"
    "  model_id: {type: model, required: true, example: o/m, description: the model}\n"
    "  data: {type: data, required: true}\n"
    "  lr: {type: number, default: 1e-6}\n"
    "  pool: {type: text}\n"
    "  batch: {type: integer}\n"
    "spec:\n"
    "  workload: grpo\n"
    "  nnodes: 2\n"
    "  n_gpus_per_node: 4\n"
    "  model_id: ${hole:model_id}\n"
    "  train_file: ${hole:data}\n"
    "  val_file: ${SHARED_ROOT}/val.parquet\n"
    "  pool: ${hole:pool}\n"
    "  env: {A: '1', LR: '${hole:lr}'}\n"
    "  overrides:\n"
    "    - actor_rollout_ref.actor.optim.lr=${hole:lr}\n"
    "    - data.train_batch_size=${hole:batch}\n";

static struct preset *parse(const char *text)
{
    struct problems ps = {0};
    struct preset *p = NULL;
    int r = preset_parse(text, strlen(text), &p, &ps);
    for (size_t i = 0; i < ps.n; i++)
        print_message("%s: %s\n", ps.v[i].field, unit_problem(&ps.v[i]));
    assert_int_equal(r, 0);
    problems_release(&ps);
    return p;
}

/* The filled spec as text, or the first problem. */
static int fill(const struct preset *p, const char *given, struct buf *out, struct problems *ps)
{
    struct doc *d = NULL;
    struct problems none = {0};
    assert_int_equal(doc_parse(given, strlen(given), true, &d, &none), 0);
    int r = preset_fill(p, "small", doc_root(d), out, ps);
    doc_free(d);
    problems_release(&none);
    return r;
}

static void filled_is(const char *given, const char *expected)
{
    struct preset *p = parse(PRESET);
    struct buf out = BUF_INIT(1 << 16);
    struct problems ps = {0};
    assert_int_equal(fill(p, given, &out, &ps), 0);
    assert_string_equal(buf_str(&out), expected);
    problems_release(&ps);
    buf_release(&out);
    preset_free(p);
}

static void fills_its_holes(void **state)
{
    (void)state;
    filled_is("preset: small\nmodel_id: a/b\ndata: [x, y]\n",
              "{\"workload\":\"grpo\",\"nnodes\":2,\"n_gpus_per_node\":4,\"model_id\":\"a/b\","
              "\"train_file\":[\"x\",\"y\"],\"val_file\":\"${SHARED_ROOT}/val.parquet\","
              "\"env\":{\"A\":\"1\",\"LR\":1e-6},"
              "\"overrides\":[\"actor_rollout_ref.actor.optim.lr=1e-6\"]}");
}

static void given_keys_go_before_its_own(void **state)
{
    (void)state;
    filled_is("model_id: a/b\ndata: x\nlr: 3e-7\nbatch: 8\nnnodes: 1\ntimeout: 2h\n"
              "env: {A: '2'}\noverrides: [trainer.seed=1]\n",
              "{\"workload\":\"grpo\",\"nnodes\":1,\"n_gpus_per_node\":4,\"model_id\":\"a/b\","
              "\"train_file\":\"x\",\"val_file\":\"${SHARED_ROOT}/val.parquet\","
              "\"env\":{\"LR\":3e-7,\"A\":\"2\"},"
              "\"overrides\":[\"actor_rollout_ref.actor.optim.lr=3e-7\","
              "\"data.train_batch_size=8\",\"trainer.seed=1\"],\"timeout\":\"2h\"}");
}

static void refuses(const char *given, const char *field, const char *words)
{
    struct preset *p = parse(PRESET);
    struct buf out = BUF_INIT(1 << 16);
    struct problems ps = {0};
    assert_int_equal(fill(p, given, &out, &ps), ERR_BAD_SPEC);
    assert_int_equal(ps.errors, 1);
    assert_string_equal(ps.v[0].field, field);
    if (!strstr(unit_problem(&ps.v[0]), words))
        fail_msg("'%s' is not in '%s'", words, unit_problem(&ps.v[0]));
    problems_release(&ps);
    buf_release(&out);
    preset_free(p);
}

static void says_what_is_wrong_with_what_is_given(void **state)
{
    (void)state;
    refuses("nnodes: 1\n", "preset",
            "needs a value for: model_id, data; its holes are: model_id (required), data "
            "(required), lr, pool, batch");
    refuses("model_id: a\ndata: x\nmodl_id: b\n", "modl_id",
            "neither a hole of preset 'small' nor");
    refuses("model_id: a\ndata: x\nlr: much\n", "lr", "takes a number, not 'much'");
    refuses("model_id: a\ndata: x\nbatch: 1.5\n", "batch", "takes a whole number");
    refuses("model_id: [a]\ndata: x\n", "model_id", "takes a model, not 'a list'");
    refuses("model_id: null\ndata: x\n", "preset", "needs a value for: model_id;");
}

static void says_what_is_wrong_with_a_preset(void **state)
{
    static const struct {
        const char *text, *words;
    } rows[] = {
        {"spec: {workload: ray, entrypoint: '${hole:x}'}", "no hole 'x'; the holes are: none"},
        {"holes: {x: {}}\nspec: {workload: ray, entrypoint: a}", "'x' stands nowhere"},
        {"holes: {x: {type: int}}\nspec: {workload: ray, entrypoint: '${hole:x}'}",
         "'int' is not one of text, integer"},
        {"holes: {X: {}}\nspec: {workload: ray, entrypoint: '${hole:X}'}", "the name of a hole"},
        {"holes: {x: {type: integer, default: a}}\nspec: {workload: ray, entrypoint: '${hole:x}'}",
         "must be a whole number and is 'a'"},
        {"holes: {x: {required: true, default: a}}\nspec: {workload: ray, entrypoint: '${hole:x}'}",
         "required and has a default"},
        {"holes: [x]\nspec: {workload: ray, entrypoint: a}", "must be a mapping"},
        {"spec: {workload: ray, entrypoint: a, preset: b}", "made of another preset"},
        {"spec: {workload: ray, entrypint: a}", "unknown key 'entrypint'"},
        {"spec: 5", "must be a mapping"},
        {"specs: {}", "'spec' is missing"},
        {"- a", "where a mapping is expected"},
        {"a: [", ""},
    };
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++) {
        struct problems ps = {0};
        struct preset *p = NULL;
        assert_int_equal(preset_parse(rows[i].text, strlen(rows[i].text), &p, &ps), ERR_BAD_SPEC);
        assert_null(p);
        bool found = false;
        for (size_t k = 0; k < ps.n; k++)
            found = found || strstr(unit_problem(&ps.v[k]), rows[i].words);
        if (!found)
            fail_msg("'%s' is not said of '%s', but '%s'", rows[i].words, rows[i].text,
                     ps.n ? unit_problem(&ps.v[0]) : "");
        problems_release(&ps);
    }
}

static void tells_of_itself(void **state)
{
    (void)state;
    struct preset *p = parse(PRESET);
    struct buf out = BUF_INIT(1 << 16);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '{');
    preset_put_holes(p, &j, "holes");
    jout_close(&j, '}');
    assert_non_null(strstr(buf_str(&out), "{\"name\":\"lr\",\"type\":\"number\",\"required\":false,"
                                          "\"default\":1e-6,\"example\":null,"
                                          "\"description\":\"\"}"));
    assert_string_equal(preset_description(p), "small");
    assert_string_equal(preset_workload(p), "grpo");
    buf_release(&out);
    preset_free(p);
}

static void names(void **state)
{
    (void)state;
    assert_int_equal(preset_check_name("grpo-0.5b", NULL), 0);
    assert_int_equal(preset_check_name("", NULL), ERR_BAD_SPEC);
    assert_int_equal(preset_check_name("a/b", NULL), ERR_BAD_SPEC);
    assert_int_equal(preset_check_name("A", NULL), ERR_BAD_SPEC);
}

/* ---- those that are shipped ---- */

static void expands(const char *name, const char *spec, const char *verl)
{
    const struct make_place place = {.root = "/shared"};
    struct made m;
    int r = make_cmdline(spec, verl, &place, &m);
    for (size_t i = 0; i < m.ps.n; i++)
        print_message("%s, verl %s: %s: %s\n", name, verl, m.ps.v[i].field,
                      unit_problem(&m.ps.v[i]));
    assert_int_equal(r, 0);
    assert_int_equal(m.ps.n, 0);
    assert_true(m.cmd.argv.n > 3);
    made_release(&m);
}

static void shipped_one(const char *name)
{
    struct buf path = BUF_INIT(4096), text = BUF_INIT(PRESET_MAX_BYTES),
               out = BUF_INIT(DOC_MAX_BYTES);
    struct problems ps = {0};
    (void)buf_addf(&path, "%s/%s", PRESETS_DIR, name);
    assert_int_equal(file_read(buf_str(&path), &text, NULL), 0);
    struct preset *p = parse(buf_str(&text));
    assert_true(*preset_description(p) && preset_workload(p));
    assert_int_equal(preset_sample(p, &out, &ps), 0);
    expands(name, buf_str(&out), "0.5.0");
    expands(name, buf_str(&out), "0.9.1");
    preset_free(p);
    buf_release(&path);
    buf_release(&text);
    buf_release(&out);
    problems_release(&ps);
}

static void shipped_ones_expand(void **state)
{
    int n = 0;
    (void)state;
    DIR *dir = opendir(PRESETS_DIR);
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));)
        if (str_ends(e->d_name, ".yaml")) {
            shipped_one(e->d_name);
            n++;
        }
    (void)closedir(dir);
    assert_true(n >= 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fills_its_holes),
        cmocka_unit_test(given_keys_go_before_its_own),
        cmocka_unit_test(says_what_is_wrong_with_what_is_given),
        cmocka_unit_test(says_what_is_wrong_with_a_preset),
        cmocka_unit_test(tells_of_itself),
        cmocka_unit_test(names),
        cmocka_unit_test(shipped_ones_expand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
