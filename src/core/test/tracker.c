/* SPDX-License-Identifier: Apache-2.0 */
/* Trackers of a spec: which there are, what verl's loggers are told, MLflow's names of metrics. */
#include "core/spec/tracker.h"

#include "base/unit.h"

#include <stdlib.h>
#include <string.h>

static const struct tracker_place place = {.job = "j",
                                           .job_dir = "/s/jobs/j",
                                           .attempt_dir = "/s/jobs/j/attempts/2",
                                           .attempt = 2};

static void kinds_of_a_spec(void **state)
{
    enum tracker_kind kinds[2];
    struct spec s = {.workload = WORKLOAD_GRPO};
    (void)state;
    assert_int_equal(tracker_of_spec(&s, kinds), 0);
    s.wandb_enabled = true;
    s.tracking_backend = xstrdup("tensorboard");
    assert_int_equal(tracker_of_spec(&s, kinds), 2);
    assert_int_equal(kinds[0], TRACKER_WANDB);
    assert_int_equal(kinds[1], TRACKER_TENSORBOARD);
    s.workload = WORKLOAD_MERGE; /* no training: it has no logger */
    assert_int_equal(tracker_of_spec(&s, kinds), 0);
    s.workload = WORKLOAD_RAY;
    assert_int_equal(tracker_of_spec(&s, kinds), 2);
    free(s.tracking_backend);
}

static void names_of_a_run(void **state)
{
    char project[] = "p", other[] = "o", own[] = "mine", backend[] = "mlflow";
    struct spec s = {.project = own, .tracking_project = other, .tracking_backend = backend};
    (void)state;
    assert_string_equal(tracker_project(&s), "o");
    assert_null(tracker_run_name(&s));
    s.wandb_project = project;
    assert_string_equal(tracker_project(&s), "o"); /* not enabled */
    s.wandb_enabled = true;
    assert_string_equal(tracker_project(&s), "p");
    s = (struct spec){.project = own};
    assert_string_equal(tracker_project(&s), "mine");
}

static void no_wait_is_without_a_limit(void **state)
{
    static const char *const limits[] = {"WANDB_INIT_TIMEOUT", "WANDB_FINISH_TIMEOUT",
                                         "MLFLOW_HTTP_REQUEST_MAX_RETRIES",
                                         "MLFLOW_HTTP_REQUEST_TIMEOUT"};
    struct pairs env = {0};
    struct spec s = {.wandb_enabled = true};
    struct tracker w = {TRACKER_WANDB, TRACKER_ONLINE, "http://w", NULL};
    struct tracker m = {TRACKER_MLFLOW, TRACKER_ONLINE, "http://m", "abc"};
    (void)state;
    pairs_set(&env, "WANDB_TAGS", "own"); /* a job's own word stays */
    tracker_env(&s, &w, &place, &env);
    tracker_env(&s, &m, &place, &env);
    for (size_t i = 0; i < array_len(limits); i++)
        assert_non_null(pairs_find(&env, limits[i]));
    assert_string_equal(pairs_find(&env, "WANDB_TAGS"), "own");
    assert_string_equal(pairs_find(&env, "WANDB_RUN_ID"), "j-2");
    assert_string_equal(pairs_find(&env, "WANDB_RUN_GROUP"), "j");
    assert_string_equal(pairs_find(&env, "WANDB_MODE"), "online");
    assert_string_equal(pairs_find(&env, "MLFLOW_RUN_ID"), "abc");
    assert_string_equal(pairs_find(&env, "MLFLOW_RUN_CONTEXT"),
                        "{\"argus.job\":\"j\",\"argus.run\":\"j-2\"}");
    pairs_release(&env);
}

static void files_of_each_attempt(void **state)
{
    struct pairs env = {0};
    struct spec s = {0};
    struct tracker t = {TRACKER_TENSORBOARD, TRACKER_OFFLINE, NULL, NULL};
    struct tracker w = {TRACKER_WANDB, TRACKER_OFFLINE, NULL, NULL};
    struct tracker l = {TRACKER_SWANLAB, TRACKER_OFFLINE, NULL, NULL};
    (void)state;
    tracker_env(&s, &t, &place, &env);
    tracker_env(&s, &w, &place, &env);
    tracker_env(&s, &l, &place, &env);
    assert_string_equal(pairs_find(&env, "SWANLAB_LOG_DIR"), "/s/jobs/j/metrics/swanlab/j-2");
    assert_string_equal(pairs_find(&env, "SWANLAB_MODE"), "offline");
    assert_string_equal(pairs_find(&env, "SWANLAB_RUN_ID"), "j-2");
    assert_string_equal(pairs_find(&env, "SWANLAB_GROUP"), "j");
    assert_string_equal(pairs_find(&env, "SWANLAB_TERMINAL_PROXY_TYPE"), "none");
    assert_string_equal(pairs_find(&env, "TENSORBOARD_DIR"), "/s/jobs/j/metrics/tensorboard/j-2");
    assert_string_equal(pairs_find(&env, "WANDB_DIR"), place.attempt_dir);
    assert_string_equal(pairs_find(&env, "WANDB_MODE"), "offline");
    assert_null(pairs_find(&env, "WANDB_BASE_URL"));
    assert_null(pairs_find(&env, "WANDB_RESUME"));
    pairs_release(&env);
}

static void swanlab_takes_no_long_id(void **state)
{
    struct pairs env = {0};
    struct spec s = {0};
    struct tracker l = {TRACKER_SWANLAB, TRACKER_ONLINE, "http://h", NULL};
    char id[SPEC_ID_MAX + 1] = "";
    struct tracker_place at = {.job = id, .job_dir = "/s", .attempt_dir = "/s/a", .attempt = 10};
    (void)state;
    memset(id, 'a', 61); /* with "-10" as long as it may be */
    tracker_env(&s, &l, &at, &env);
    assert_int_equal(strlen(pairs_find(&env, "SWANLAB_RUN_ID")), 64);
    pairs_release(&env);
    memset(id, 'a', 62);
    tracker_env(&s, &l, &at, &env);
    assert_null(pairs_find(&env, "SWANLAB_RUN_ID"));
    assert_null(pairs_find(&env, "SWANLAB_RESUME"));
    assert_string_equal(pairs_find(&env, "SWANLAB_GROUP"), id);
    pairs_release(&env);
}

static void addresses(void **state)
{
    (void)state;
    assert_true(tracker_is_url("http://mlflow:5000"));
    assert_true(tracker_is_url("https://h/a/b"));
    assert_false(tracker_is_url("file:///etc"));
    assert_false(tracker_is_url("http://h/?x=1"));
    assert_false(tracker_is_url("http://h/#x"));
    assert_false(tracker_is_url("http://me:secret@h/"));
    assert_false(tracker_is_url("http://h/\r\nX: y"));
}

static void keys_of_mlflow(void **state)
{
    static const char *const both[][2] = {{"val-core/toy/acc/mean@1", "val-core/toy/acc/mean_at_1"},
                                          {"a//b", "a/b"},
                                          {"p(99)%", "p_99__"},
                                          {"a.b-c d:e_f", "a.b-c d:e_f"},
                                          {"", ""}};
    char got[64], cut[8];
    (void)state;
    for (size_t i = 0; i < array_len(both); i++) {
        tracker_mlflow_key(both[i][0], got, sizeof(got));
        assert_string_equal(got, both[i][1]);
    }
    tracker_mlflow_key("0123456789", cut, sizeof(cut));
    assert_true(strlen(cut) < sizeof(cut));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kinds_of_a_spec),
        cmocka_unit_test(names_of_a_run),
        cmocka_unit_test(no_wait_is_without_a_limit),
        cmocka_unit_test(files_of_each_attempt),
        cmocka_unit_test(swanlab_takes_no_long_id),
        cmocka_unit_test(addresses),
        cmocka_unit_test(keys_of_mlflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
