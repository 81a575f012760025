/* SPDX-License-Identifier: Apache-2.0 */
/* From a spec to what restarts a job. */
#include "core/spec/restart.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/unit.h"
#include "base/unit_message.h"

static struct restart of(const char *text)
{
    struct problems ps = {0};
    struct doc *d = NULL;
    struct spec spec = {0};
    struct restart r;
    assert_int_equal(doc_parse(text, strlen(text), false, &d, &ps), 0);
    if (spec_read(doc_root(d), NULL, &spec, &ps) < 0)
        fail_msg("%s", ps.n ? unit_problem(&ps.v[0]) : "?");
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
         "nccl_timeout,nccl_network,gpu_hardware,node_lost,infra"},
        {RAY "restart: {max: 1, on: [unknown, host_oom]}\n", 1, true, "host_oom,unknown"},
        {RAY "restart: {max: 0, on: [unknown]}\n", 0, false, NULL},
        {TRAIN "restart: {max: 1, on: [infra]}\n", 1, true, "infra"},
        {TRAIN "restart: {max: 1, on: [infra]}\nresume: never\n", 1, false, "infra"},
        {TRAIN "restart: {max: 1, on: [infra]}\ncheckpoint: none\n", 1, false, "infra"},
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        struct restart r = of(rows[i].text);
        assert_int_equal(r.max, rows[i].max);
        assert_int_equal(r.preemptible, rows[i].preemptible);
        struct buf on = BUF_INIT(1024);
        restart_on_to_text(&r.on, &on);
        if (!str_eq(buf_str(&on), str_or(rows[i].on, "")))
            fail_msg("row %zu: on '%s'", i, buf_str(&on));
        buf_release(&on);
        restart_release(&r);
    }
}

static void test_when_one_is_due(void **state)
{
    (void)state;
    struct restart r = of(RAY "restart: {max: 2, on: [node_lost], backoff: 5s}\n");
    assert_true(restart_is_due(&r, FINDING_NODE_LOST, false));
    assert_int_equal(finding_class_from_string("node"), -1); /* no part of a word is one */
    assert_false(restart_is_due(&r, FINDING_UNKNOWN, false));
    assert_false(restart_is_due(&r, FINDING_NONE, false));
    restart_note_failure(&r, "w1");
    assert_int_equal(r.pause, 5 * USEC_SEC);
    assert_true(restart_is_due(&r, FINDING_NODE_LOST, false));
    restart_note_failure(&r, "");
    assert_string_equal(r.bad_nodes, "w1");
    assert_false(restart_is_due(&r, FINDING_NODE_LOST, false));
    restart_release(&r);
}

/* infra: Argus or Ray itself, and the loss of the head whatever it looks like. */
static void test_infra(void **state)
{
    (void)state;
    struct restart r = of(RAY "restart: {max: 9, on: [infra]}\n");
    assert_true(restart_is_due(&r, FINDING_PLATFORM, false));
    assert_true(restart_is_due(&r, FINDING_NODE_LOST, true));
    assert_true(restart_is_due(&r, FINDING_NONE, true));
    assert_false(restart_is_due(&r, FINDING_NODE_LOST, false));
    assert_false(restart_is_due(&r, FINDING_GPU_OOM, false));
    restart_release(&r);
    r = of(RAY "restart: {max: 9, on: [platform]}\n");
    assert_true(restart_is_due(&r, FINDING_PLATFORM, false));
    assert_false(restart_is_due(&r, FINDING_UNKNOWN, true));
    restart_release(&r);
}

static void test_whose_fault(void **state)
{
    (void)state;
    assert_true(finding_class_is(FINDING_NODE_LOST, FINDING_BLAMES_NODE));
    assert_true(finding_class_is(FINDING_GPU_HARDWARE, FINDING_BLAMES_NODE));
    assert_false(finding_class_is(FINDING_GPU_OOM, FINDING_BLAMES_NODE));
    assert_false(finding_class_is(FINDING_CONFIG_ERROR, FINDING_BLAMES_NODE));
    assert_false(finding_class_is(FINDING_NONE, FINDING_BLAMES_NODE));
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

/* The words of a newer Argus are kept, and nothing is done for them. */
static void test_words_of_a_newer_one(void **state)
{
    (void)state;
    struct restart r = {.max = 1};
    struct buf text = BUF_INIT(1024);
    restart_on_from_text("fan_broken,exit:9,node_lost,lease_breach,exit:x", &r.on);
    assert_string_equal(r.on.foreign, "fan_broken,lease_breach,exit:x");
    assert_true(restart_is_due(&r, FINDING_NODE_LOST, false));
    assert_false(restart_is_due(&r, FINDING_UNKNOWN, false));
    assert_false(restart_is_due(&r, FINDING_LEASE_BREACH, false));
    restart_on_to_text(&r.on, &text);
    assert_string_equal(buf_str(&text), "node_lost,exit:9,fan_broken,lease_breach,exit:x");
    buf_release(&text);
    restart_release(&r);
}

static void test_exit_codes(void **state)
{
    (void)state;
    struct restart r = {.max = 2};
    restart_on_from_text("node_lost,exit:75,exit:7", &r.on);
    assert_true(restart_is_due_by_code(&r, 75) && restart_is_due_by_code(&r, 7));
    assert_false(restart_is_due_by_code(&r, 5) || restart_is_due_by_code(&r, 0));
    assert_false(restart_is_due_by_code(&r, -1));
    assert_false(restart_is_due(&r, FINDING_USER_CODE_ERROR, false));
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
        cmocka_unit_test(test_words_of_a_newer_one),
        cmocka_unit_test(test_exit_codes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
