/* SPDX-License-Identifier: Apache-2.0 */
/* The directory of a job: every file and link of it, twice the same, and no secret. */
#define _GNU_SOURCE
#include <errno.h>

#include "base/test/unit_look.h"
#include "base/unit_dir.h"
#include "fsroot/attempt/attempt.h"
#include "fsroot/attempt/jobdir.h"
#include "fsroot/attempt/launch.h"
#include "fsroot/attempt/secrets.h"

struct example {
    struct strv argv;
    struct pairs env, secrets;
    struct fsroot_attempt a;
};

static void example_release(struct example *e)
{
    strv_release(&e->argv);
    pairs_release(&e->env);
    pairs_release(&e->secrets);
}

static void example_init(struct example *e, const char *root, int attempt)
{
    *e = (struct example){0};
    strv_add(&e->argv, "python3");
    strv_add(&e->argv, "data.prompt_key=prompt");
    strv_add(&e->argv, "x=\xff");
    pairs_set(&e->env, "NCCL_DEBUG", "WARN");
    pairs_set(&e->env, "MY_TOKEN", "tok-12345");
    pairs_set(&e->secrets, "WANDB_API_KEY", "wandb-98765");
    e->a = (struct fsroot_attempt){
        .root = root,
        .job = "j1",
        .attempt = attempt,
        .argv = &e->argv,
        .env = &e->env,
        .secrets = &e->secrets,
        .pythonpath_prefix = "/hook:/code",
        .stop_grace = 60 * USEC_SEC,
        .ray_config = "shared_root: /private\nkey: tok-12345\n",
        .jobspec = "workload: ray\nenv: {MY_TOKEN: tok-12345}\nsecrets: [WANDB_API_KEY]\n",
        .submit_cmd = "ray job submit -- x wandb-98765\n",
        .submit_payload = "{\"runtime_env\":{\"env_vars\":{\"MY_TOKEN\":\"tok-12345\"}}}",
    };
}

static void test_files(void **state)
{
    _cleanup_(example_release) struct example e;
    const char *root = *state;
    struct err err = {0};
    example_init(&e, root, 1);
    for (int twice = 0; twice < 2; twice++) {
        assert_int_equal(fsroot_attempt_write(&e.a, &err), 0);
        assert_text(root, "jobs/j1/config/ray_config.yaml", "shared_root: /private\nkey: ***\n");
        assert_text(root, "jobs/j1/config/jobspec.yaml",
                    "workload: ray\nenv: {MY_TOKEN: \"***\"}\nsecrets: [WANDB_API_KEY]\n");
        assert_text(root, "jobs/j1/config/submit_cmd.txt", "ray job submit -- x ***\n");
        assert_text(root, "jobs/j1/config/submit_payload.json",
                    "{\"runtime_env\":{\"env_vars\":{\"MY_TOKEN\":\"***\"}}}");
        assert_text(root, "jobs/j1/config/argv.json",
                    "[\"python3\",\"data.prompt_key=prompt\",{\"hex\":\"783dff\"}]\n");
        assert_text(root, "jobs/j1/config/env.json",
                    "{\"NCCL_DEBUG\":\"WARN\",\"MY_TOKEN\":\"***\",\"WANDB_API_KEY\":\"***\","
                    "\"PYTHONPATH\":\"/hook:/code:${PYTHONPATH}\"}\n");
        assert_int_equal(mode_of(root, "jobs/j1/attempts/1/.secrets.json"), 0600);
        assert_int_equal(mode_of(root, "jobs/j1/attempts/1/launch.json"), 0644);
    }
    const char *const dirs[] = {"checkpoints",      "metrics",          "attempts/1/logs",
                                "attempts/1/debug", "attempts/1/proof", "attempts/1/scene"};
    for (size_t i = 0; i < array_len(dirs); i++) {
        _cleanup_(freep) char *dir = xasprintf("jobs/j1/%s", dirs[i]);
        assert_int_equal(mode_of(root, dir), 0755);
    }
}

static void test_what_the_shepherd_reads(void **state)
{
    _cleanup_(example_release) struct example e;
    _cleanup_(launch_release) struct launch l = {0};
    example_init(&e, *state, 1);
    e.a.cwd = "/code here";
    assert_int_equal(fsroot_attempt_write(&e.a, NULL), 0);
    _cleanup_(freep) char *text = get(*state, "jobs/j1/attempts/1/launch.json");
    _cleanup_(freep) char *secrets = get(*state, "jobs/j1/attempts/1/.secrets.json");
    assert_int_equal(launch_from_json(text, strlen(text), &l, NULL), 0);
    assert_null(strstr(text, "tok-12345"));
    assert_null(strstr(text, "wandb-98765"));
    assert_null(pairs_find(&l.env, "MY_TOKEN"));
    assert_string_equal(l.secrets, ".secrets.json");
    assert_int_equal(launch_secrets_add(&l, secrets, strlen(secrets), NULL), 0);
    assert_string_equal(pairs_find(&l.env, "MY_TOKEN"), "tok-12345");
    assert_string_equal(pairs_find(&l.env, "WANDB_API_KEY"), "wandb-98765");
    assert_string_equal(pairs_find(&l.env, "NCCL_DEBUG"), "WARN");
    assert_string_equal(l.argv.v[2], "x=\xff");
    assert_string_equal(l.cwd, "/code here");
    assert_string_equal(l.pythonpath_prefix, "/hook:/code");
    assert_int_equal(l.stop_grace, 60 * USEC_SEC);
    assert_int_equal(l.beat, 5 * USEC_SEC);
}

static void test_secret_in_the_arguments(void **state)
{
    _cleanup_(example_release) struct example e;
    _cleanup_(launch_release) struct launch l = {0};
    example_init(&e, *state, 1);
    strv_add(&e.argv, "trainer.key=wandb-98765");
    e.a.ray_id = "j1";
    assert_int_equal(fsroot_attempt_write(&e.a, NULL), 0);
    _cleanup_(freep) char *text = get(*state, "jobs/j1/attempts/1/launch.json");
    _cleanup_(freep) char *secrets = get(*state, "jobs/j1/attempts/1/.secrets.json");
    assert_int_equal(launch_from_json(text, strlen(text), &l, NULL), 0);
    assert_string_equal(l.argv.v[3], "trainer.key=***");
    assert_int_equal(launch_secrets_add(&l, secrets, strlen(secrets), NULL), 0);
    assert_string_equal(l.argv.v[3], "trainer.key=wandb-98765");
    assert_text(*state, "argus/secrets/j1",
                "{\"MY_TOKEN\":\"tok-12345\",\"WANDB_API_KEY\":\"wandb-98765\","
                "\"\":[\"wandb-98765\"]}");
}

/* Two files, of the shepherd and of Ray's workers, and what a crash can leave of them. */
static void test_secrets_of_workers(void **state)
{
    _cleanup_(example_release) struct example e;
    _cleanup_(launch_release) struct launch l = {0};
    _cleanup_(strv_release) struct strv names = {0};
    example_init(&e, *state, 2);
    e.a.ray_id = "j1-a2";
    assert_int_equal(fsroot_secrets_list(*state, &names, NULL), 0);
    assert_int_equal(names.n, 0);
    assert_int_equal(fsroot_attempt_write(&e.a, NULL), 0);
    _cleanup_(freep) char *text = get(*state, "jobs/j1/attempts/2/launch.json");
    assert_int_equal(launch_from_json(text, strlen(text), &l, NULL), 0);
    _cleanup_(freep) char *path = fsroot_secrets_path(*state, "j1-a2");
    assert_string_equal(l.worker_secrets, path);
    assert_text(*state, "argus/secrets/j1-a2",
                "{\"MY_TOKEN\":\"tok-12345\",\"WANDB_API_KEY\":\"wandb-98765\"}");
    assert_int_equal(mode_of(*state, "argus/secrets/j1-a2"), 0600);
    assert_int_equal(mode_of(*state, "argus/secrets"), 0700);
    put(*state, "argus/secrets/.j1-a2.77.tmp", "x");
    put(*state, "argus/secrets/.j1-a2.b.77.tmp", "x"); /* of the job 'j1-a2.b' */
    put(*state, "jobs/j1/attempts/2/..secrets.json.77.tmp", "x");
    assert_int_equal(fsroot_secrets_list(*state, &names, NULL), 0);
    assert_int_equal(names.n, 3);
    assert_true(strv_has(&names, "j1-a2") && strv_has(&names, "j1-a2.b"));
    assert_int_equal(fsroot_secrets_remove(*state, "j1-a2", NULL), 0);
    assert_null(get(*state, "argus/secrets/j1-a2"));
    assert_null(get(*state, "argus/secrets/.j1-a2.77.tmp"));
    assert_null(get(*state, "jobs/j1/attempts/2/..secrets.json.77.tmp"));
    assert_null(get(*state, "jobs/j1/attempts/2/.secrets.json"));
    assert_text(*state, "argus/secrets/.j1-a2.b.77.tmp", "x");
    assert_int_equal(fsroot_secrets_remove(*state, "j1-a2", NULL), 0);
    assert_int_equal(fsroot_secrets_remove(*state, "../x", NULL), -EINVAL);
}

static void test_no_secrets(void **state)
{
    _cleanup_(example_release) struct example e;
    example_init(&e, *state, 1);
    e.a.ray_id = "j1";
    assert_int_equal(fsroot_attempt_write(&e.a, NULL), 0);
    e.a.env = e.a.secrets = NULL;
    assert_int_equal(fsroot_attempt_write(&e.a, NULL), 0); /* takes the old file away */
    assert_null(get(*state, "jobs/j1/attempts/1/.secrets.json"));
    assert_null(get(*state, "argus/secrets/j1"));
    assert_text(*state, "jobs/j1/config/env.json",
                "{\"PYTHONPATH\":\"/hook:/code:${PYTHONPATH}\"}\n");
}

static void test_started_is_left_alone(void **state)
{
    _cleanup_(example_release) struct example e;
    struct err err;
    example_init(&e, *state, 1);
    assert_int_equal(fsroot_attempt_write(&e.a, &err), 0);
    put(*state, "jobs/j1/attempts/1/logs/driver.log", "out\n");
    put(*state, "jobs/j1/attempts/1/launch.json", "as it was");
    assert_int_equal(fsroot_attempt_write(&e.a, &err), -EEXIST);
    assert_non_null(strstr(err.text, "attempt 1 of job 'j1' has started already"));
    assert_text(*state, "jobs/j1/attempts/1/launch.json", "as it was");
    assert_text(*state, "jobs/j1/logs/driver.log", "out\n");
    e.a.attempt = 2; /* the links go to the newest */
    assert_int_equal(fsroot_attempt_write(&e.a, &err), 0);
    assert_null(get(*state, "jobs/j1/logs/driver.log"));
    put(*state, "jobs/j1/attempts/2/logs/driver.log", "second\n");
    assert_text(*state, "jobs/j1/logs/driver.log", "second\n");
    assert_text(*state, "jobs/j1/attempts/1/logs/driver.log", "out\n");
}

static void test_links_are_relative(void **state)
{
    _cleanup_(example_release) struct example e;
    example_init(&e, *state, 3);
    assert_int_equal(fsroot_attempt_write(&e.a, NULL), 0);
    static const char *const rows[][2] = {
        {"config/submit_payload.json", "../attempts/3/submit_payload.json"},
        {"config/argv.json", "../attempts/3/argv.json"},
        {"config/env.json", "../attempts/3/env.json"},
        {"logs/driver.log", "../attempts/3/logs/driver.log"},
        {"debug/ray_status_pre.txt", "../attempts/3/debug/ray_status_pre.txt"},
        {"debug/ray_job_list_post.txt", "../attempts/3/debug/ray_job_list_post.txt"},
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        char target[256] = {0};
        _cleanup_(freep) char *path = xasprintf("%s/jobs/j1/%s", (char *)*state, rows[i][0]);
        assert_true(readlink(path, target, sizeof(target) - 1) > 0);
        assert_string_equal(target, rows[i][1]);
    }
}

static void test_what_comes_later(void **state)
{
    _cleanup_(example_release) struct example e;
    struct err err;
    example_init(&e, *state, 1);
    assert_int_equal(fsroot_attempt_write(&e.a, NULL), 0);
    assert_int_equal(fsroot_meta_write(*state, "j1", "{\"a\":1}", NULL), 0);
    assert_text(*state, "jobs/j1/meta.json", "{\"a\":1}");
    assert_int_equal(fsroot_debug_write(*state, "j1", 1, "ray_status_pre.txt", "ok\n", NULL), 0);
    assert_text(*state, "jobs/j1/debug/ray_status_pre.txt", "ok\n");
    assert_int_equal(fsroot_debug_write(*state, "j1", 1, "../x", "ok\n", &err), -EINVAL);
    assert_int_equal(fsroot_submit_out_add(*state, "j1", "one\n", NULL), 0);
    assert_int_equal(fsroot_submit_out_add(*state, "j1", "two\n", NULL), 0);
    assert_text(*state, "jobs/j1/logs/submit.out", "one\ntwo\n");
    assert_int_equal(fsroot_stop_write(*state, "j1", 1, "first", NULL), 0);
    assert_int_equal(fsroot_stop_write(*state, "j1", 1, "second", NULL), 0);
    assert_text(*state, "jobs/j1/attempts/1/stop", "first");
    assert_int_equal(fsroot_stop_write(*state, "none", 1, "x", &err), -ENOENT);
    assert_int_equal(fsroot_meta_write(*state, "../j1", "{}", &err), -EINVAL);
}

static void test_bad_names(void **state)
{
    _cleanup_(example_release) struct example e;
    struct err err;
    example_init(&e, *state, 0);
    assert_int_equal(fsroot_attempt_write(&e.a, &err), -EINVAL);
    e.a.attempt = 1;
    e.a.job = "../up";
    assert_int_equal(fsroot_attempt_write(&e.a, &err), -EINVAL);
    e.a.job = "j1";
    strv_release(&e.argv);
    assert_int_equal(fsroot_attempt_write(&e.a, &err), -EINVAL);
    assert_string_equal(err.text, "job 'j1' has no command");
}

static void test_nowhere_to_write(void **state)
{
    _cleanup_(example_release) struct example e;
    struct err err;
    example_init(&e, *state, 1);
    put(*state, "jobs", "a file in the way");
    assert_int_equal(fsroot_attempt_write(&e.a, &err), -ENOTDIR);
    assert_non_null(strstr(err.text, "/jobs"));
}

#define with_root(f) cmocka_unit_test_setup_teardown(f, root_setup, root_teardown)

/* An attempt that may have started is not written again, and the reason that may be there stays. */
static void test_a_failed_look_starts_nothing(void **state)
{
    static const char *const ways[] = {"driver.log", "logs"}, *const ends[] = {"exit.json", "1"};
    _cleanup_(example_release) struct example e;
    const char *root = *state;
    struct err err;
    example_init(&e, root, 1);
    assert_int_equal(fsroot_attempt_write(&e.a, &err), 0);
    put(root, "jobs/j1/attempts/1/logs/driver.log", "out\n");
    put(root, "jobs/j1/attempts/1/exit.json", "{}");
    put(root, "jobs/j1/attempts/1/launch.json", "as it was");
    put(root, "jobs/j1/attempts/1/stop", "first");
    for (size_t i = 0; i < array_len(look_errors); i++) {
        for (size_t k = 0; k < array_len(ways); k++) {
            look_broken = (struct look_broken){ways[k], look_errors[i], 0, false};
            assert_int_equal(fsroot_attempt_write(&e.a, &err), -look_errors[i]);
        }
        look_broken = (struct look_broken){"stop", look_errors[i], 0, false};
        assert_int_equal(fsroot_stop_write(root, "j1", 1, "second", &err), -look_errors[i]);
    }
    look_broken = (struct look_broken){0};
    _cleanup_(freep) char *log = xasprintf("%s/jobs/j1/attempts/1/logs/driver.log", root);
    assert_int_equal(unlink(log), 0); /* its end alone is left */
    for (size_t i = 0; i < array_len(look_errors); i++)
        for (size_t k = 0; k < array_len(ends); k++) {
            look_broken = (struct look_broken){ends[k], look_errors[i], 0, false};
            assert_int_equal(fsroot_attempt_write(&e.a, &err), -look_errors[i]);
        }
    look_broken = (struct look_broken){0};
    assert_text(root, "jobs/j1/attempts/1/launch.json", "as it was");
    assert_text(root, "jobs/j1/attempts/1/stop", "first");
    assert_int_equal(fsroot_attempt_write(&e.a, &err), -EEXIST);
}

static void test_a_failed_look_is_no_other_job(void **state)
{
    const char *root = *state;
    _cleanup_(strv_release) struct strv jobs = {0};
    enum fsroot_seen seen[2];
    struct err err;
    strv_add(&jobs, "mine");
    strv_add(&jobs, "none");
    put(root, "jobs/x", "");
    assert_int_equal(fsroot_job_make(root, "mine", &err), 0);
    for (size_t i = 0; i < array_len(look_errors); i++) {
        look_broken = (struct look_broken){"mine", look_errors[i], 0, false};
        assert_int_equal(fsroot_job_make(root, "mine", &err), -look_errors[i]);
        fsroot_jobs_are_there(root, &jobs, seen);
        assert_true(seen[0] == FSROOT_UNREADABLE && seen[1] == FSROOT_ABSENT);
        look_broken.name = "jobs";
        fsroot_jobs_are_there(root, &jobs, seen);
        assert_true(seen[0] == FSROOT_UNREADABLE && seen[1] == FSROOT_UNREADABLE);
    }
    look_broken = (struct look_broken){0};
    assert_int_equal(fsroot_job_make(root, "mine", &err), 0); /* empty, and ours */
    put(root, "jobs/mine/a", "");
    assert_int_equal(fsroot_job_make(root, "mine", &err), ERR_CONFLICT);
    fsroot_jobs_are_there(root, &jobs, seen);
    assert_true(seen[0] == FSROOT_PRESENT && seen[1] == FSROOT_ABSENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_failed_look_starts_nothing, root_setup,
                                        root_teardown),
        cmocka_unit_test_setup_teardown(test_a_failed_look_is_no_other_job, root_setup,
                                        root_teardown),
        with_root(test_files),
        with_root(test_what_the_shepherd_reads),
        with_root(test_secret_in_the_arguments),
        with_root(test_secrets_of_workers),
        with_root(test_no_secrets),
        with_root(test_started_is_left_alone),
        with_root(test_links_are_relative),
        with_root(test_what_comes_later),
        with_root(test_bad_names),
        with_root(test_nowhere_to_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
