/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of serve_look.h: answers in the form of Ray Serve 2.60, and answers that are none. */
#include "core/serve/serve_look.h"

#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/unit.h"

/* One application of ours whose second replica still starts, one that a program made, two proxies.
 */
static const char ANSWER[] =
    "{\"controller_info\":{\"node_id\":\"n0\"},\"proxy_location\":\"EveryNode\","
    "\"http_options\":{\"host\":\"0.0.0.0\",\"port\":8000},"
    "\"proxies\":{\"n0\":{\"node_id\":\"n0\",\"node_ip\":\"10.0.0.1\",\"status\":\"HEALTHY\"},"
    "\"n1\":{\"node_ip\":\"10.0.0.2\",\"status\":\"STARTING\"}},"
    "\"applications\":{\"sums-v1\":{\"name\":\"sums-v1\",\"route_prefix\":\"/s/sums-v1\",\"status\":\"RUNNING\","
    "\"message\":\"\",\"source\":\"declarative\",\"deployed_app_config\":{\"name\":\"sums-v1\",\"x\":1},"
    "\"deployments\":{\"Engine\":{\"status\":\"HEALTHY\",\"target_num_replicas\":2,\"replicas\":["
    "{\"node_id\":\"n1\",\"node_ip\":\"10.0.0.2\",\"replica_id\":\"r1\",\"state\":\"RUNNING\",\"pid\":7,"
    "\"log_file_path\":\"/serve/replica_sums-v1_Engine_r1.log\"},{\"replica_id\":\"r2\",\"state\":\"STARTING\"}]}}},"
    "\"lens\":{\"name\":\"lens\",\"route_prefix\":\"/lens\",\"status\":\"SINGING\",\"source\":\"imperative\","
    "\"deployed_app_config\":null,\"deployments\":{}}}}";

static void test_an_answer(void **state)
{
    struct serve_look l;
    (void)state;
    assert_int_equal(serve_look_read(ANSWER, strlen(ANSWER), &l, NULL), 0);
    assert_true(l.is_there && l.port == 8000);
    assert_int_equal(l.n_apps, 2);
    const struct serve_seen *lens = serve_look_find(&l, "lens"),
                            *sums = serve_look_find(&l, "sums-v1");
    assert_true(lens->imperative && !lens->config && lens->status == SERVE_STATUS_UNKNOWN);
    assert_true(!sums->imperative && sums->wanted == 2 && sums->running == 1);
    assert_string_equal(sums->v[0].node_id, "n1");
    assert_null(sums->v[1].node_ip);
    assert_null(serve_look_find(&l, "other"));
    assert_true(serve_look_proxy(&l, "n0")->is_healthy);
    assert_false(serve_look_proxy(&l, "n1")->is_healthy);
    _cleanup_(json_unrefp) json_t *sent = json_loads("{\"x\":1}", 0, NULL);
    struct serve_seen ready = *sums;
    assert_false(serve_seen_is_ready(sums, sent)); /* a replica is missing */
    ready.running = 2;
    assert_true(serve_seen_is_ready(&ready, sent));
    _cleanup_(json_unrefp) json_t *other = json_loads("{\"x\":2}", 0, NULL);
    assert_false(serve_seen_is_ready(&ready, other)); /* an older list is still there */
    assert_true(serve_seen_goes_on(&ready, sent));
    assert_false(serve_seen_goes_on(&ready, other));
    ready.status = SERVE_STATUS_DEPLOYING; /* a list was put, in which it is as before */
    ready.wanted = ready.running = 0;
    assert_true(serve_seen_goes_on(&ready, sent));
    ready.wanted = 1; /* its only replica is gone */
    assert_false(serve_seen_goes_on(&ready, sent));
    ready.wanted = 0;
    ready.status = SERVE_STATUS_RUNNING;
    assert_false(serve_seen_is_ready(&ready, sent)); /* it is being built */
    serve_look_release(&l);
}

static void test_no_serve_and_no_answer(void **state)
{
    static const char none[] =
        "{\"controller_info\":{},\"proxies\":{},\"applications\":{},\"target_capacity\":null}";
    static const char *const bad[] = {"", "[]", "{}", "{\"applications\":[]}", "not json"};
    struct serve_look l;
    (void)state;
    assert_int_equal(serve_look_read(none, strlen(none), &l, NULL), 0);
    assert_false(l.is_there);
    serve_look_release(&l);
    for (size_t i = 0; i < array_len(bad); i++)
        assert_true(serve_look_read(bad[i], strlen(bad[i]), &l, NULL) < 0);
    static const char odd[] =
        "{\"applications\":{\"a\":1,\"b\":{\"deployments\":{\"D\":{\"replicas\":[1,null]}}}},"
        "\"proxies\":[],\"http_options\":{\"port\":\"8000\"}}";
    assert_int_equal(serve_look_read(odd, strlen(odd), &l, NULL), 0);
    assert_int_equal(l.n_apps, 1);
    serve_look_release(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_answer),
        cmocka_unit_test(test_no_serve_and_no_answer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
