/* SPDX-License-Identifier: Apache-2.0 */
/* Ray's replies: real shapes are read, hostile ones are refused whole, and nothing
 * that is unclear is ever read as "failed" or "gone". */
#include "ray/parse.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/unit.h"

#define JOB_A                                                                                      \
    "{\"type\":\"SUBMISSION\",\"job_id\":\"02000000\",\"submission_id\":\"a-1\","                  \
    "\"driver_info\":{\"id\":\"02000000\",\"node_ip_address\":\"10.99.0.2\",\"pid\":\"2024\"},"    \
    "\"status\":\"RUNNING\",\"entrypoint\":\"sh x\",\"message\":\"Job is currently running.\","    \
    "\"error_type\":null,\"start_time\":1795231388935,\"end_time\":null,"                          \
    "\"metadata\":{\"argus\":\"m1\",\"n\":3},\"runtime_env\":null,"                                \
    "\"driver_agent_http_address\":\"http://10.99.0.2:52365\",\"driver_node_id\":\"815\","         \
    "\"driver_exit_code\":null}"

#define ENVELOPE(total, kept, list)                                                                \
    "{\"result\":true,\"msg\":\"\",\"data\":{\"result\":{\"total\":" total                         \
    ",\"num_after_truncation\":" total ",\"num_filtered\":" kept ",\"result\":[" list              \
    "],\"partial_failure_warning\":\"\",\"warnings\":null}}}"

static void test_version(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int major, minor, patch;
        unsigned supports;
    } rows[] = {
        {"2.51.1", 2, 51, 1, RAY_SUPPORTS_LABELS},
        {"2.48.0", 2, 48, 0, 0},
        {"2.52.0", 2, 52, 0, RAY_SUPPORTS_LABELS | RAY_SUPPORTS_TOKEN},
        {"2.60.0", 2, 60, 0,
         RAY_SUPPORTS_LABELS | RAY_SUPPORTS_TOKEN | RAY_SUPPORTS_ENTRYPOINT_LABELS},
        {"3.0.0.dev0", 3, 0, 0,
         RAY_SUPPORTS_LABELS | RAY_SUPPORTS_TOKEN | RAY_SUPPORTS_ENTRYPOINT_LABELS},
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        char *text = xasprintf("{\"ray_version\":\"%s\",\"session_name\":\"s1\"}", rows[i].text);
        struct ray_version v;
        assert_int_equal(ray_parse_version(text, strlen(text), &v, NULL), 0);
        assert_string_equal(v.text, rows[i].text);
        assert_int_equal(v.major, rows[i].major);
        assert_int_equal(v.minor, rows[i].minor);
        assert_int_equal(v.patch, rows[i].patch);
        assert_int_equal(v.supports, rows[i].supports);
        ray_version_release(&v);
        free(text);
    }
}

static void test_version_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "{\"ray_version\":\"2.51.1\"}",
        "{\"ray_version\":\"2\",\"session_name\":\"s\"}",
        "{\"ray_version\":\"x\",\"session_name\":\"s\"}",
        "{\"ray_version\":2.51,\"session_name\":\"s\"}",
        "{\"ray_version\":\"2.51.1\",\"session_name\":7}",
    };
    for (size_t i = 0; i < array_len(bad); i++) {
        struct ray_version v;
        assert_int_equal(ray_parse_version(bad[i], strlen(bad[i]), &v, NULL), ERR_BAD_REQUEST);
    }
}

static void test_job(void **state)
{
    (void)state;
    struct ray_job job;
    assert_int_equal(ray_parse_job(JOB_A, strlen(JOB_A), &job, NULL), 0);
    assert_true(job.is_submission);
    assert_string_equal(job.submission_id, "a-1");
    assert_int_equal(job.status, RAY_JOB_RUNNING);
    assert_int_equal(job.start, 1795231388935ull * USEC_MS);
    assert_int_equal(job.end, 0);
    assert_string_equal(job.driver_ip, "10.99.0.2");
    assert_int_equal(job.driver_pid, 2024); /* a text in the reply */
    assert_string_equal(job.driver_node_id, "815");
    assert_false(job.has_exit_code);
    assert_null(job.error_type);
    assert_string_equal(pairs_find(&job.metadata, "argus"), "m1");
    assert_null(pairs_find(&job.metadata, "n")); /* no text: not metadata */
    ray_job_release(&job);
}

static void test_job_of_odd_types(void **state)
{
    (void)state;
    static const char odd[] =
        "{\"type\":\"SUBMISSION\",\"submission_id\":\"a\",\"job_id\":7,\"status\":[\"FAILED\"],"
        "\"driver_info\":\"none\",\"metadata\":[],\"start_time\":\"1795231388935\","
        "\"end_time\":-4,\"driver_exit_code\":\"137\",\"message\":{},\"entrypoint\":null,"
        "\"unheard\":{\"of\":18446744073709551615}}";
    struct ray_job job;
    assert_int_equal(ray_parse_job(odd, strlen(odd), &job, NULL), 0);
    assert_int_equal(job.status, RAY_JOB_UNKNOWN);
    assert_false(ray_job_status_is_terminal(job.status));
    assert_int_equal(job.start, 1795231388935ull * USEC_MS);
    assert_int_equal(job.end, 0);
    assert_true(job.has_exit_code);
    assert_int_equal(job.exit_code, 137);
    assert_null(job.message);
    assert_null(job.job_id);
    assert_null(job.driver_ip);
    ray_job_release(&job);
}

static void test_log_bytes_do_no_harm(void **state)
{
    (void)state;
    static const char text[] = "{\"type\":\"SUBMISSION\",\"submission_id\":\"a\",\"status\":"
                               "\"FAILED\",\"message\":\"x\xff\\udcff\\u0000y\x01z\"}";
    struct ray_job job;
    assert_int_equal(ray_parse_job(text, sizeof(text) - 1, &job, NULL), 0);
    assert_string_equal(job.message, "x\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdy z");
    ray_job_release(&job);
}

static void test_jobs_are_sorted(void **state)
{
    (void)state;
    static const char text[] =
        "[{\"type\":\"SUBMISSION\",\"submission_id\":\"b\"},"
        "{\"type\":\"DRIVER\",\"job_id\":\"03000000\",\"status\":\"RUNNING\"}," JOB_A "]";
    struct ray_jobs jobs;
    assert_int_equal(ray_parse_jobs(text, strlen(text), &jobs, NULL), 0);
    assert_int_equal(jobs.n, 3);
    assert_false(jobs.v[0].is_submission);
    assert_string_equal(jobs.v[0].job_id, "03000000");
    assert_string_equal(jobs.v[1].submission_id, "a-1");
    assert_string_equal(jobs.v[2].submission_id, "b");
    assert_int_equal(jobs.v[2].status, RAY_JOB_UNKNOWN);
    ray_jobs_release(&jobs);
    assert_int_equal(ray_parse_jobs("[]", 2, &jobs, NULL), 0);
    assert_int_equal(jobs.n, 0);
    ray_jobs_release(&jobs);
}

/* One bad entry spoils the list: left out, its job would look gone. */
static void test_jobs_refused_whole(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "[" JOB_A ",{}]",
        "[" JOB_A ",{\"type\":\"SUBMISSION\",\"submission_id\":\"\"}]",
        "[" JOB_A ",{\"type\":\"SUBMISSION\",\"submission_id\":5}]",
        "[" JOB_A ",{\"type\":\"DRIVER\",\"submission_id\":\"a\"}]",
        "[" JOB_A ",{\"type\":\"NEW_KIND\",\"submission_id\":\"a\"}]",
        "[" JOB_A ",null]",
        "[" JOB_A ",\"a\"]",
        "[" JOB_A "",
        "[" JOB_A "] x",
        JOB_A,
        "{}",
        "",
        " \n",
        "null",
        "500 Internal Server Error\n\nServer got itself in trouble",
        "<!doctype html>",
    };
    for (size_t i = 0; i < array_len(bad); i++) {
        struct ray_jobs jobs;
        struct err err = {0};
        assert_int_equal(ray_parse_jobs(bad[i], strlen(bad[i]), &jobs, &err), ERR_BAD_REQUEST);
        assert_true(strlen(err.text) > 10);
    }
}

#define NODE(id, ip, state)                                                                        \
    "{\"node_id\":\"" id "\",\"node_ip\":\"" ip "\",\"is_head_node\":false,\"state\":\"" state     \
    "\",\"state_message\":null,\"node_name\":\"" ip "\",\"resources_total\":{\"CPU\":4.0,"         \
    "\"GPU\":\"4\",\"argus_node_x\":1000,\"bad\":[],\"neg\":-1},\"labels\":{\"zone\":\"a\"}}"

static void test_nodes(void **state)
{
    (void)state;
    static const char text[] =
        ENVELOPE("2", "2", NODE("b", "10.0.0.3", "DEAD") "," NODE("a", "10.0.0.2", "ALIVE"));
    struct ray_nodes nodes;
    assert_int_equal(ray_parse_nodes(text, strlen(text), &nodes, NULL), 0);
    assert_int_equal(nodes.n, 2);
    assert_string_equal(nodes.v[0].ip, "10.0.0.2");
    assert_true(nodes.v[0].is_alive);
    assert_false(nodes.v[1].is_alive);
    assert_true(ray_amounts_find(&nodes.v[0].resources, "GPU") == 4);
    assert_true(ray_amounts_find(&nodes.v[0].resources, "argus_node_x") == 1000);
    assert_int_equal(nodes.v[0].resources.n, 3);
    assert_string_equal(pairs_find(&nodes.v[0].labels, "zone"), "a");
    ray_nodes_release(&nodes);
}

static void test_nodes_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {
        ENVELOPE("3", "2", NODE("a", "10.0.0.2", "ALIVE")), /* fewer than it says */
        ENVELOPE("1", "1", NODE("a", "10.0.0.2", "SLEEPY")),
        ENVELOPE("1", "1", NODE("", "10.0.0.2", "ALIVE")),
        ENVELOPE("1", "1", NODE("a", "", "ALIVE")),
        "{\"result\":false,\"msg\":\"Given limit\",\"data\":{\"result\":null}}",
        "{\"result\":true,\"data\":{\"result\":{\"result\":[]}}}", /* no counters */
        "{\"result\":true,\"data\":{\"result\":[]}}",
        "{\"result\":true,\"data\":[]}",
        "{\"data\":{\"result\":{\"total\":0,\"result\":[]}}}",
        "[]",
    };
    for (size_t i = 0; i < array_len(bad); i++) {
        struct ray_nodes nodes;
        assert_int_equal(ray_parse_nodes(bad[i], strlen(bad[i]), &nodes, NULL), ERR_BAD_REQUEST);
    }
}

static void test_metrics_port(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int code, port;
    } rows[] = {
        {"{\"data\":{\"detail\":{\"raylet\":{\"nodeId\":\"ab\",\"metricsExportPort\":35723}}}}", 0,
         35723},
        {"{\"data\":{\"detail\":{\"raylet\":{\"nodeId\":\"cd\",\"metricsExportPort\":35723}}}}",
         ERR_NOT_FOUND, 0},
        {"{\"data\":{\"detail\":{\"raylet\":{\"nodeId\":\"ab\",\"metricsExportPort\":65536}}}}",
         ERR_NOT_FOUND, 0},
        {"{\"data\":{\"detail\":{}}}", ERR_NOT_FOUND, 0},
        {"[]", ERR_BAD_REQUEST, 0},
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        int port = 0;
        assert_int_equal(
            ray_parse_metrics_port(rows[i].text, strlen(rows[i].text), "ab", &port, NULL),
            rows[i].code);
        assert_int_equal(port, rows[i].port);
    }
}

static void test_usages(void **state)
{
    (void)state;
    static const char text[] =
        "{\"result\":true,\"data\":{\"clusterStatus\":{\"time\":1795231404.5,"
        "\"loadMetricsReport\":{\"usageByNode\":{"
        "\"b\":{\"CPU\":[1.0,4.0],\"GPU\":[2.0,4.0],\"GPUGroup0Ab\":[2,2]},"
        "\"a\":{\"CPU\":\"x\",\"GPU\":[1]},\"c\":7}}}}}";
    struct ray_usages usages;
    assert_int_equal(ray_parse_usages(text, strlen(text), &usages, NULL), 0);
    assert_int_equal(usages.n, 3);
    assert_int_equal(usages.time, 1795231404500000ull);
    assert_string_equal(usages.v[1].node_id, "b");
    assert_true(usages.v[1].gpus_used == 2 && usages.v[1].gpus_total == 4);
    assert_true(usages.v[0].cpus_total == 0 && usages.v[0].gpus_used == 1);
    ray_usages_release(&usages);
    static const char *const bad[] = {
        "{\"data\":{\"clusterStatus\":null}}",
        "{\"data\":{\"clusterStatus\":{\"loadMetricsReport\":{\"usageByNode\":[]}}}}",
        "{}",
    };
    for (size_t i = 0; i < array_len(bad); i++)
        assert_int_equal(ray_parse_usages(bad[i], strlen(bad[i]), &usages, NULL), ERR_BAD_REQUEST);
}

#define ACTOR(id, state)                                                                           \
    "{\"actor_id\":\"" id "\",\"state\":\"" state "\",\"name\":\"n\",\"job_id\":\"02000000\","     \
    "\"node_id\":null,\"pid\":358,\"is_detached\":true,\"required_resources\":{\"GPU\":2.0},"      \
    "\"placement_group_id\":\"pg\"}"

static void test_actors(void **state)
{
    (void)state;
    static const char text[] = ENVELOPE("9", "4",
                                        ACTOR("c", "ALIVE") "," ACTOR("b", "DEAD") "," ACTOR(
                                            "a", "NEW_STATE") ",{"
                                                              "\"actor_id\":\"d\"}");
    struct ray_actors actors;
    assert_int_equal(ray_parse_actors(text, strlen(text), &actors, NULL), 0);
    assert_int_equal(actors.n, 3);
    assert_false(actors.is_partial);
    assert_int_equal(actors.v[0].state, RAY_ACTOR_UNKNOWN);
    assert_int_equal(actors.v[1].state, RAY_ACTOR_ALIVE);
    assert_true(actors.v[1].is_detached);
    assert_true(ray_amounts_find(&actors.v[1].resources, "GPU") == 2);
    ray_actors_release(&actors);
    static const char cut[] = ENVELOPE("20000", "1", "");
    assert_int_equal(ray_parse_actors(cut, strlen(cut), &actors, NULL), 0);
    assert_true(actors.is_partial); /* one was filtered in and none came */
    ray_actors_release(&actors);
    static const char bad[] = ENVELOPE("1", "1", "{\"state\":\"ALIVE\"}");
    assert_int_equal(ray_parse_actors(bad, strlen(bad), &actors, NULL), ERR_BAD_REQUEST);
}

static void test_groups(void **state)
{
    (void)state;
    static const char text[] = ENVELOPE(
        "2", "2",
        "{\"placement_group_id\":\"p2\",\"state\":\"REMOVED\"},"
        "{\"placement_group_id\":\"p1\",\"creator_job_id\":\"02000000\",\"state\":\"PENDING\","
        "\"is_detached\":false,\"stats\":{\"scheduling_state\":\"INFEASIBLE\","
        "\"scheduling_attempt\":\"750268\"},\"bundles\":[{\"node_id\":\"n\","
        "\"unit_resources\":{\"GPU\":2.0}},{\"node_id\":null,\"unit_resources\":7},null]}");
    struct ray_groups groups;
    assert_int_equal(ray_parse_groups(text, strlen(text), &groups, NULL), 0);
    assert_int_equal(groups.n, 1);
    assert_int_equal(groups.v[0].state, RAY_GROUP_PENDING);
    assert_string_equal(groups.v[0].scheduling_state, "INFEASIBLE");
    assert_int_equal(groups.v[0].scheduling_attempts, 750268);
    assert_int_equal(groups.v[0].n_bundles, 3);
    assert_string_equal(groups.v[0].bundles[0].node_id, "n");
    assert_true(ray_amounts_find(&groups.v[0].bundles[0].resources, "GPU") == 2);
    assert_null(groups.v[0].bundles[2].node_id);
    ray_groups_release(&groups);
}

static void test_small_answers(void **state)
{
    (void)state;
    bool flag = true;
    static const char no[] = "{\"stopped\":false}", odd[] = "{\"stopped\":1}";
    assert_int_equal(ray_parse_flag(no, strlen(no), "stopped", &flag, NULL), 0);
    assert_false(flag);
    assert_int_equal(ray_parse_flag(odd, strlen(odd), "stopped", &flag, NULL), ERR_BAD_REQUEST);
    assert_int_equal(ray_parse_flag(no, strlen(no), "deleted", &flag, NULL), ERR_BAD_REQUEST);
    char *id = NULL;
    static const char good[] = "{\"job_id\":\"a\",\"submission_id\":\"a\"}",
                      bad[] = "{\"job_id\":1}";
    assert_int_equal(ray_parse_submitted(good, strlen(good), &id, NULL), 0);
    assert_string_equal(id, "a");
    free(id);
    assert_int_equal(ray_parse_submitted(bad, strlen(bad), &id, NULL), ERR_BAD_REQUEST);
}

/* -- hostile ---------------------------------------------------------------------- */

/* All readers on one text: none may crash; what is filled is released. */
static void feed_all(const char *text, size_t len)
{
    struct ray_version version;
    struct ray_job job;
    struct ray_jobs jobs;
    struct ray_nodes nodes;
    struct ray_usages usages;
    struct ray_actors actors;
    struct ray_groups groups;
    if (ray_parse_version(text, len, &version, NULL) == 0)
        ray_version_release(&version);
    if (ray_parse_job(text, len, &job, NULL) == 0)
        ray_job_release(&job);
    if (ray_parse_jobs(text, len, &jobs, NULL) == 0)
        ray_jobs_release(&jobs);
    if (ray_parse_nodes(text, len, &nodes, NULL) == 0)
        ray_nodes_release(&nodes);
    if (ray_parse_usages(text, len, &usages, NULL) == 0)
        ray_usages_release(&usages);
    if (ray_parse_actors(text, len, &actors, NULL) == 0)
        ray_actors_release(&actors);
    if (ray_parse_groups(text, len, &groups, NULL) == 0)
        ray_groups_release(&groups);
}

/* Every prefix, and every byte replaced by each of some nasty ones. Copies on the
 * heap of the exact length, so that a read beyond the end is seen. */
static void test_mutations(void **state)
{
    (void)state;
    static const char *const seeds[] = {
        "[" JOB_A "]",
        JOB_A,
        ENVELOPE("1", "1", NODE("a", "1", "ALIVE")),
        ENVELOPE("1", "1", ACTOR("a", "ALIVE")),
    };
    static const char nasty[] = {'\0', '"', '\\', '{', '[', ']', '}', ',', ':', '9', '\xff', 'u'};
    for (size_t s = 0; s < array_len(seeds); s++) {
        size_t len = strlen(seeds[s]);
        for (size_t i = 0; i < len; i++) {
            char *cut = xmalloc(i + 1);
            memcpy(cut, seeds[s], i);
            feed_all(cut, i);
            free(cut);
            char *changed = xmalloc(len);
            memcpy(changed, seeds[s], len);
            changed[i] = nasty[(i + s) % sizeof(nasty)];
            feed_all(changed, len);
            free(changed);
        }
    }
}

static void test_deep_and_wide(void **state)
{
    (void)state;
    size_t n = 200000;
    char *deep = xmalloc(n);
    memset(deep, '[', n);
    feed_all(deep, n);
    free(deep);
    struct buf wide = BUF_INIT(16 << 20);
    assert_int_equal(buf_adds(&wide, "["), 0);
    for (int i = 0; i <= RAY_VALUES_MAX; i++)
        assert_int_equal(buf_adds(&wide, "0,"), 0);
    assert_int_equal(buf_adds(&wide, "0]"), 0);
    struct ray_jobs jobs;
    struct err err = {0};
    assert_int_equal(ray_parse_jobs(wide.data, wide.len, &jobs, &err), ERR_BAD_REQUEST);
    assert_non_null(strstr(err.text, "1000000 values"));
    buf_release(&wide);
}

static void test_many_names_are_cut(void **state)
{
    (void)state;
    struct buf text = BUF_INIT(1 << 20);
    assert_int_equal(
        buf_adds(&text, "{\"type\":\"SUBMISSION\",\"submission_id\":\"a\",\"metadata\":{"), 0);
    for (int i = 0; i < 3000; i++)
        assert_int_equal(buf_addf(&text, "\"k%d\":\"v\",", i), 0);
    assert_int_equal(buf_adds(&text, "\"last\":\"v\"}}"), 0);
    struct ray_job job;
    assert_int_equal(ray_parse_job(text.data, text.len, &job, NULL), 0);
    assert_int_equal(job.metadata.n, RAY_NAMES_MAX);
    ray_job_release(&job);
    buf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_version),
        cmocka_unit_test(test_version_refused),
        cmocka_unit_test(test_job),
        cmocka_unit_test(test_job_of_odd_types),
        cmocka_unit_test(test_log_bytes_do_no_harm),
        cmocka_unit_test(test_jobs_are_sorted),
        cmocka_unit_test(test_jobs_refused_whole),
        cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_nodes_refused),
        cmocka_unit_test(test_metrics_port),
        cmocka_unit_test(test_usages),
        cmocka_unit_test(test_actors),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_small_answers),
        cmocka_unit_test(test_mutations),
        cmocka_unit_test(test_deep_and_wide),
        cmocka_unit_test(test_many_names_are_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
