/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of smoke.h. */
#include "core/spec/smoke.h"

#include <string.h>

#include "core/spec/spec.h"

#include "base/unit.h"

static void small(const char *yaml, struct spec *ret)
{
    struct doc *d = NULL;
    struct problems ps = {0};
    struct buf out = BUF_INIT(1 << 16);
    assert_int_equal(doc_parse(yaml, strlen(yaml), true, &d, &ps), 0);
    smoke_spec(doc_root(d), &out);
    doc_free(d);
    assert_int_equal(doc_parse(buf_str(&out), out.len, false, &d, &ps), 0);
    assert_int_equal(spec_read(doc_root(d), NULL, ret, &ps), 0);
    doc_free(d);
    buf_release(&out);
    problems_release(&ps);
}

static void makes_training_small(void **state)
{
    (void)state;
    struct spec s = {0};
    small("workload: grpo\nname: big\nnnodes: 8\nn_gpus_per_node: 8\nmodel_id: o/m\n"
          "train_file: /s/a\nval_file: /s/b\ntotal_epochs: 30\nsave_freq: 10\ntest_freq: 5\n"
          "checkpoint: {keep_last: 9}\nrestart: {max: 3}\nresume: auto\n"
          "eval_on_save: {n_gpus_per_node: 1}\n"
          "overrides: [data.train_batch_size=64, +trainer.save_freq=3, "
          "actor_rollout_ref.rollout.tensor_model_parallel_size=8]\n",
          &s);
    assert_int_equal(s.nnodes, 1);
    assert_true(s.gpus_per_node == 1);
    assert_int_equal(s.total_training_steps, SMOKE_STEPS);
    assert_int_equal(s.test_freq, -1);
    assert_true(s.checkpoint_none && s.resume_mode == SPEC_RESUME_NEVER);
    assert_int_equal(s.restart_max, 0);
    assert_string_equal(s.name, "big");
    assert_int_equal(s.overrides.n, 2);
    assert_string_equal(s.overrides.v[0], "data.train_batch_size=64");
    assert_string_equal(s.overrides.v[1], "actor_rollout_ref.rollout.tensor_model_parallel_size=1");
    spec_release(&s);
}

static void leaves_others_as_they_are(void **state)
{
    (void)state;
    struct spec s = {0};
    small("workload: ray\nentrypoint: [a]\nnnodes: 3\nn_gpus_per_node: 0.5\n", &s);
    assert_int_equal(s.nnodes, 1);
    assert_true(s.gpus_per_node == 0.5);
    assert_int_equal(s.total_training_steps, 0);
    spec_release(&s);
    small("workload: ray\nentrypoint: a b\n", &s);
    assert_true(s.gpus_per_node == 0 && s.entrypoint_is_shell);
    spec_release(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(makes_training_small),
        cmocka_unit_test(leaves_others_as_they_are),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
