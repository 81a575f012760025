/* SPDX-License-Identifier: Apache-2.0 */
/* From what an attempt left to its finding: what is read, what is quoted, what is written. */
#include "argusd/evidence/diagnosis.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/unit_dir.h"
#include "core/finding/rules/finding_rules.h"

#define DIR "jobs/j/attempts/2/"
#define OOM "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB."

static struct finding_rules *rules;

static int setup(void **state)
{
    assert_int_equal(finding_rules_built_in(&rules, NULL), 0);
    return root_setup(state);
}

static int teardown(void **state)
{
    finding_rules_free(rules);
    return root_teardown(state);
}

static struct diagnosis ask(const char *root)
{
    return (struct diagnosis){.root = xstrdup(root),
                              .job = xstrdup("j"),
                              .k = 2,
                              .rules = rules,
                              .node = xstrdup("w1"),
                              .facts = {.exit_known = true, .exit_code = 1},
                              .at = 1770000000 * USEC_SEC};
}

static json_t *body(const struct diagnosis *d)
{
    json_t *o = json_loads(d->body, 0, NULL);
    assert_non_null(o);
    return o;
}

static void test_a_log(void **state)
{
    struct diagnosis d = ask(*state);
    put(*state, DIR "logs/driver.log", "step:1 - loss:0.5\n" OOM "\n");
    diagnosis_run(&d);
    assert_int_equal(d.found.class, FINDING_GPU_OOM);
    assert_int_equal(d.wrote.code, 0);
    assert_text(*state, DIR "finding.json", d.body);
    json_t *o = body(&d);
    const json_t *first = json_array_get(json_get_array(o, "evidence"), 0);
    assert_int_equal(json_get_int(o, "attempt", 0), 2);
    assert_string_equal(json_get_str(o, "node", ""), "w1");
    assert_non_null(strstr(json_get_str(o, "sentence", ""), "gpu_oom"));
    assert_int_equal(json_get_int(first, "offset", -1), 18);
    assert_string_equal(json_get_str(first, "source", ""), "logs/driver.log");
    json_decref(o);
    diagnosis_release(&d);
}

/* Ray prefixes lines with the address of where they come from. */
static void test_a_node_has_its_name(void **state)
{
    struct diagnosis d = ask(*state);
    put(*state, DIR "logs/driver.log", "(WorkerDict pid=12, ip=10.0.0.7) " OOM "\n");
    pairs_set(&d.names, "10.0.0.7", "w7");
    diagnosis_run(&d);
    assert_string_equal(d.found.node, "w7");
    assert_non_null(strstr(d.body, "\"node\":\"w7\""));
    assert_non_null(strstr(d.sentence, "on w7"));
    diagnosis_release(&d);
}

#define DIED                                                                                       \
    "(raylet) A worker died or was killed while executing a task by an unexpected system error. "  \
    "Worker PID: 1340 Exit\n"
#define WORKER "/worker-a1-02000000-1340.out"
#define RANKS "{\"worker-a1-02000000-1340.out\":{\"pid\":1340,\"actor\":\"WorkerDict\",\"rank\":3}}"

static void put_worker(const char *root, const char *node)
{
    _cleanup_(freep) char *log = xasprintf(DIR "logs/workers/%s" WORKER, node);
    _cleanup_(freep) char *ranks = xasprintf(DIR "logs/workers/%s/ranks.json", node);
    put(root, DIR "logs/driver.log", DIED);
    put(root, log, "");
    put(root, ranks, RANKS);
}

static void assert_process(struct diagnosis *d, const char *rank, const char *node)
{
    diagnosis_run(d);
    assert_int_equal(d->found.class, FINDING_ACTOR_DIED);
    assert_string_equal(str_or(d->found.rank, ""), rank);
    assert_string_equal(str_or(d->found.node, ""), node);
    diagnosis_release(d);
}

/* Ray leaves the address out for the driver's own node; pids of two nodes can be the same. */
static void test_a_process_without_an_address(void **state)
{
    struct diagnosis d = ask(*state);
    put_worker(*state, "w2");
    assert_process(&d, "", ""); /* the driver's node has copied nothing */
    d = ask(*state);
    freep(&d.node);
    assert_process(&d, "3", ""); /* by the only node that has */
    put_worker(*state, "w1");
    d = ask(*state);
    freep(&d.node);
    assert_process(&d, "", "");
    d = ask(*state);
    assert_process(&d, "3", "w1");
    d = ask(*state);
    pairs_set(&d.names, "10.0.0.7", "w7");
    d.all_named = true;
    assert_process(&d, "", ""); /* w1 is none of the job's */
}

static void test_no_log(void **state)
{
    struct diagnosis d = ask(*state);
    diagnosis_run(&d); /* not even a directory */
    assert_int_equal(d.found.class, FINDING_UNKNOWN);
    assert_true(d.wrote.code < 0 && d.body);
    diagnosis_release(&d);
}

static void test_the_middle_is_skipped(void **state)
{
    struct buf log = BUF_INIT(1 << 20);
    struct diagnosis d = ask(*state);
    for (int i = 0; i < 10000; i++)
        (void)buf_adds(&log, "all is well here\n");
    uint64_t at = log.len;
    (void)buf_adds(&log, OOM "\n");
    put(*state, DIR "logs/driver.log", buf_str(&log));
    d.head = d.tail = 1000;
    diagnosis_run(&d);
    assert_int_equal(d.found.class, FINDING_GPU_OOM);
    assert_int_equal(d.found.evidence[0].offset, at);
    assert_true(d.found.bytes <= 2000);
    json_t *o = body(&d);
    assert_int_equal(json_get_int(o, "skipped_bytes", 0), log.len - 2000);
    json_decref(o);
    buf_release(&log);
    diagnosis_release(&d);
}

/* Offsets count bytes of the stream, over what was dropped. */
static void test_a_log_of_many_files(void **state)
{
    struct diagnosis d = ask(*state);
    put(*state, DIR "logs/driver.log", "it begins\n");
    put(*state, DIR "logs/driver.log.10", "it goes on\n");
    put(*state, DIR "logs/driver.log.5000", "[argus] dropped\n" OOM "\n");
    diagnosis_run(&d);
    assert_int_equal(d.found.class, FINDING_GPU_OOM);
    assert_string_equal(d.found.evidence[0].source, "logs/driver.log");
    assert_int_equal(d.found.evidence[0].offset, 5016);
    assert_int_equal(d.found.evidence[0].line, 4);
    json_t *o = body(&d);
    assert_int_equal(json_get_int(o, "skipped_bytes", 0), 5000 - 21);
    json_decref(o);
    diagnosis_release(&d);
}

static void test_the_scene(void **state)
{
    struct diagnosis d = ask(*state);
    put(*state, DIR "logs/driver.log", "it ends\n");
    put(*state, DIR "logs/workers/w1/worker-1.err", OOM "\n");
    diagnosis_run(&d);
    assert_int_equal(d.found.class, FINDING_GPU_OOM);
    assert_string_equal(d.found.evidence[0].source, "logs/workers/w1/worker-1.err");
    diagnosis_release(&d);
}

static void test_what_is_known(void **state)
{
    struct diagnosis d = ask(*state);
    put(*state, DIR "logs/driver.log", OOM "\n");
    d.is_given = true;
    d.given = FINDING_PLATFORM;
    d.stopped_reason = xstrdup("the driver runs on the head");
    diagnosis_run(&d);
    assert_int_equal(d.found.class, FINDING_PLATFORM);
    assert_non_null(strstr(d.body, "the driver runs on the head"));
    diagnosis_release(&d);
    d = ask(*state);
    d.facts = (struct finding_facts){.stopped = true};
    d.stopped_reason = xstrdup("stopped by 'alice'");
    d.no_logs = true;
    diagnosis_run(&d);
    assert_int_equal(d.found.class, FINDING_PREEMPTED_OR_STOPPED);
    assert_int_equal(d.found.bytes, 0);
    diagnosis_release(&d);
    d = ask(*state);
    put(*state, DIR "logs/driver.log", "all is well\n");
    d.facts = (struct finding_facts){0};
    d.lost_node = xstrdup("w2");
    diagnosis_run(&d);
    assert_int_equal(d.found.class, FINDING_NODE_LOST);
    assert_non_null(strstr(d.body, "\"node\":\"w2\""));
    diagnosis_release(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_log, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_node_has_its_name, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_process_without_an_address, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_log, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_middle_is_skipped, setup, teardown),
        cmocka_unit_test_setup_teardown(test_a_log_of_many_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_the_scene, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_is_known, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
