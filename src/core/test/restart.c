/* SPDX-License-Identifier: Apache-2.0 */
/* From a spec to what restarts a job. */
#include "core/restart.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/unit.h"

static struct restart of(const char *text)
{
    struct problems ps = {0};
    struct doc *d = NULL;
    struct spec spec = {0};
    struct restart r;
    assert_int_equal(doc_parse(text, strlen(text), false, &d, &ps), 0);
    if (spec_read(doc_root(d), NULL, &spec, &ps) < 0)
        fail_msg("%s", ps.n ? ps.v[0].text : "?");
    restart_from_spec(&spec, &r);
    spec_release(&spec);
    problems_release(&ps);
    doc_free(d);
    return r;
}

#define TRAIN                                                                                      \
    "workload: sft\nmodel_id: /m\ntrain_file: /t\nval_file: /v\ntotal_epochs: "                    \
    "1\nn_gpus_per_node: 1\n"
#define RAY "workload: ray\nentrypoint: 'true'\n"

static void test_what_a_spec_says(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int max;
        bool preemptible;
        const char *on;
    } rows[] = {
        {RAY, 0, false, NULL},
        {RAY "restart: {max: 2}\n", 2, true,
         "node_lost,nccl_network,nccl_timeout,gpu_hardware,infra"},
        {RAY "restart: {max: 1, on: [unknown, host_oom]}\n", 1, true, "unknown,host_oom"},
        {RAY "restart: {max: 0, on: [unknown]}\n", 0, false, NULL},
        {TRAIN "restart: {max: 1, on: [infra]}\n", 1, true, "infra"},
        {TRAIN "restart: {max: 1, on: [infra]}\nresume: never\n", 1, false, "infra"},
        {TRAIN "restart: {max: 1, on: [infra]}\ncheckpoint: none\n", 1, false, "infra"},
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        struct restart r = of(rows[i].text);
        assert_int_equal(r.max, rows[i].max);
        assert_int_equal(r.preemptible, rows[i].preemptible);
        if (!str_eq(r.on, rows[i].on))
            fail_msg("row %zu: on '%s'", i, str_or(r.on, "-"));
        restart_release(&r);
    }
}

static void test_when_one_is_due(void **state)
{
    (void)state;
    struct restart r = of(RAY "restart: {max: 2, on: [node_lost], backoff: 5s}\n");
    assert_true(restart_is_due(&r, "node_lost", false));
    assert_false(restart_is_due(&r, "node", false));
    assert_false(restart_is_due(&r, "unknown", false));
    assert_false(restart_is_due(&r, NULL, false));
    restart_note_failure(&r, "w1");
    assert_int_equal(r.pause, 5 * USEC_SEC);
    assert_true(restart_is_due(&r, "node_lost", false));
    restart_note_failure(&r, "");
    assert_string_equal(r.bad_nodes, "w1");
    assert_false(restart_is_due(&r, "node_lost", false));
    restart_release(&r);
}

/* infra: Argus or Ray itself, and the loss of the head whatever it looks like. */
static void test_infra(void **state)
{
    (void)state;
    struct restart r = of(RAY "restart: {max: 9, on: [infra]}\n");
    assert_true(restart_is_due(&r, "platform", false));
    assert_true(restart_is_due(&r, "node_lost", true));
    assert_true(restart_is_due(&r, NULL, true));
    assert_false(restart_is_due(&r, "node_lost", false));
    assert_false(restart_is_due(&r, "gpu_oom", false));
    restart_release(&r);
    r = of(RAY "restart: {max: 9, on: [platform]}\n");
    assert_true(restart_is_due(&r, "platform", false));
    assert_false(restart_is_due(&r, "unknown", true));
    restart_release(&r);
}

static void test_whose_fault(void **state)
{
    (void)state;
    assert_true(restart_blames_node("node_lost"));
    assert_true(restart_blames_node("gpu_hardware"));
    assert_false(restart_blames_node("gpu_oom"));
    assert_false(restart_blames_node("config_error"));
    assert_false(restart_blames_node(NULL));
}

static void test_bad_nodes_are_bounded(void **state)
{
    (void)state;
    struct restart r = of(RAY "restart: {max: 1000}\n");
    for (int i = 0; i < 1000; i++) {
        char name[64];
        (void)snprintf(name, sizeof(name), "a-node-with-a-name-%d", i);
        restart_note_failure(&r, name);
        restart_note_failure(&r, name);
        assert_true(str_list_has(r.bad_nodes, name));
        assert_true(str_list_has(r.bad_nodes, "a-node-with-a-name-0") || i > 20);
        assert_true(strlen(r.bad_nodes) < 2048);
    }
    restart_release(&r);
    r = of(RAY "restart: {max: 1, avoid_failed_nodes: false}\n");
    restart_note_failure(&r, "w1");
    assert_null(r.bad_nodes);
    restart_release(&r);
}

static void test_exit_codes(void **state)
{
    (void)state;
    struct restart r = {.max = 2, .on = xstrdup("node_lost,exit:75,exit:7")};
    assert_true(restart_is_due_by_code(&r, 75) && restart_is_due_by_code(&r, 7));
    assert_false(restart_is_due_by_code(&r, 5) || restart_is_due_by_code(&r, 0));
    assert_false(restart_is_due_by_code(&r, -1));
    assert_false(restart_is_due(&r, "user_code_error", false));
    r.failures = 2;
    assert_false(restart_is_due_by_code(&r, 75));
    restart_release(&r);
    assert_int_equal(restart_code_of("exit:255"), 255);
    assert_true(!restart_code_of("exit:0") && !restart_code_of("exit:256"));
    assert_true(!restart_code_of("exit:") && !restart_code_of("exit:x") && !restart_code_of("75"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_spec_says),
        cmocka_unit_test(test_when_one_is_due),
        cmocka_unit_test(test_infra),
        cmocka_unit_test(test_whose_fault),
        cmocka_unit_test(test_bad_nodes_are_bounded),
        cmocka_unit_test(test_exit_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
