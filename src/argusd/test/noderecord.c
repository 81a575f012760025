/* SPDX-License-Identifier: Apache-2.0 */
/* A node goes into the store and comes back the same; what cannot be one is refused. */
#include "argusd/machines/noderecord.h"

#include <stdio.h>
#include <string.h>

#include "base/doc/doc.h"
#include "base/str.h"
#include "base/unit.h"

static const char SPEC[] = "{name: n1, host: h, labels: [a, network=x], gpu_count: 4, env: {K: v}}";

static struct node_row *whole_row(void)
{
    struct problems ps = {0};
    struct doc *d = NULL;
    struct node_row *n = node_row_new();
    assert_int_equal(doc_parse(SPEC, strlen(SPEC), false, &d, &ps), 0);
    assert_int_equal(nodespec_read(doc_root(d), "", &n->spec, &ps), 0);
    doc_free(d);
    problems_release(&ps);
    n->seq = 7;
    n->want = NODE_WANT_DRAINED;
    n->state = NODE_DRAINING;
    n->step = NODE_STEP_IN;
    n->added_at = 1700000000 * USEC_SEC;
    n->since = n->added_at + USEC_SEC;
    n->reason = (struct node_reason){"draining", "a text with \"quotes\"", "a fix"};
    (void)snprintf(n->sick, sizeof(n->sick), "%s", "no GPU answers");
    n->sick_since = n->since;
    n->net = NODE_NET_BAD;
    (void)snprintf(n->net_code, sizeof(n->net_code), "%s", "net_slow");
    (void)snprintf(n->net_text, sizeof(n->net_text), "%s", "{\"a\":\"n1\"}");
    (void)snprintf(n->added_by, sizeof(n->added_by), "%s", "ann");
    n->ssh_away = n->may_run = n->drain_due = n->stop_foreign = true;
    (void)snprintf(n->remedies, sizeof(n->remedies), "%s", "raylet@1700000000");
    n->tries = 3;
    n->place = 2;
    (void)snprintf(n->session, sizeof(n->session), "%s", "session_1");
    (void)snprintf(n->host_key, sizeof(n->host_key), "%s", "SHA256:x");
    (void)snprintf(n->address, sizeof(n->address), "%s", "10.0.0.1");
    n->drain_within = 5 * USEC_MIN;
    n->drain_watch = (struct stopwatch){.spent = 1, .running = true, .wall = 2, .boot = 3};
    (void)snprintf(n->drain_watch.boot_id, sizeof(n->drain_watch.boot_id), "%s", "b");
    n->then = NODE_THEN_RESTART;
    (void)snprintf(n->facts.ray, sizeof(n->facts.ray), "%s", "2.51.1");
    n->facts.gpus = 4;
    n->facts.cpus = 8;
    n->facts.memory_bytes = 1ULL << 40;
    n->facts.skew = -5;
    n->facts.at = n->since;
    return n;
}

static void test_there_and_back(void **state)
{
    (void)state;
    struct node_row *n = whole_row(), *back = NULL;
    struct buf a = BUF_INIT(NODERECORD_MAX), b = BUF_INIT(NODERECORD_MAX);
    struct err err = {0};
    noderecord_write(n, &a);
    assert_int_equal(noderecord_read(buf_str(&a), &back, &err), 0);
    noderecord_write(back, &b);
    assert_string_equal(buf_str(&a), buf_str(&b));
    assert_true(nodespec_equal(&n->spec, &back->spec));
    assert_int_equal(back->facts.memory_bytes, 1ULL << 40);
    assert_int_equal(back->drain_within, 5 * USEC_MIN);
    assert_true(back->stop_foreign);
    assert_int_equal(back->drain_watch.boot, 3);
    assert_string_equal(back->sick, n->sick);
    assert_int_equal(back->net, NODE_NET_BAD);
    assert_string_equal(back->net_text, n->net_text);
    assert_string_equal(back->added_by, "ann");
    assert_string_equal(back->remedies, "raylet@1700000000");
    buf_release(&a);
    buf_release(&b);
    node_row_free(n);
    node_row_free(back);
}

/* Times were texts, and spans numbers. */
static void test_one_of_the_version_before(void **state)
{
    (void)state;
    static const char text[] =
        "{\"spec\":{\"name\":\"n1\",\"host\":\"h\"},\"seq\":3,\"want\":\"drained\","
        "\"state\":\"draining\",\"step\":\"in\",\"added_at\":\"2026-01-31T12:00:00.000Z\","
        "\"since\":\"2026-01-31T12:00:01.500Z\",\"code\":\"draining\",\"text\":\"t\",\"fix\":\"\","
        "\"sick\":\"\",\"sick_since\":null,\"ssh_away\":false,\"may_run\":true,\"tries\":2,"
        "\"place\":1,\"session\":\"s\",\"host_key\":\"k\",\"address\":\"10.0.0.1\","
        "\"drain_within\":300000000,\"drain_watch\":{\"spent\":1,\"running\":true,\"wall\":2,"
        "\"boot\":3,\"boot_id\":\"b\"},\"then\":\"stop\",\"drain_due\":true,\"downed\":false,"
        "\"forced\":false,\"facts\":{\"ray\":\"2.51.1\",\"gpus\":4,\"cpus\":8.0,"
        "\"memory_bytes\":1024,\"disk_free_bytes\":5,\"shm_free_bytes\":6,\"skew_usec\":-7,"
        "\"at\":\"2026-01-31T12:00:00.000Z\"}}";
    struct node_row *n = NULL;
    struct err err = {0};
    assert_int_equal(noderecord_read(text, &n, &err), 0);
    assert_int_equal(n->added_at, 1769860800 * USEC_SEC);
    assert_int_equal(n->since - n->added_at, 1500 * USEC_MS);
    assert_int_equal(n->drain_within, 5 * USEC_MIN);
    assert_true(n->drain_watch.running && n->drain_due && n->may_run);
    assert_int_equal(n->drain_watch.wall, 2);
    assert_int_equal(n->then, NODE_THEN_STOP);
    assert_int_equal(n->net, NODE_NET_FREE);
    assert_int_equal(n->tries, 2);
    assert_string_equal(n->address, "10.0.0.1");
    assert_string_equal(n->facts.ray, "2.51.1");
    assert_int_equal(n->facts.gpus, 4);
    assert_int_equal(n->facts.skew, -7);
    assert_int_equal(n->facts.at, n->added_at);
    node_row_free(n);
}

static void test_what_is_no_node(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "", "[]", "{}", "{\"spec\":{\"name\":\"n\",\"host\":\"h\"}}",
        ("{\"spec\":{\"name\":\"n\",\"host\":\"h\"},\"want\":\"up\",\"state\":\"online\","
         "\"step\":\"out\",\"added_at\":\"2026-01-31T12:00:00Z\"}")};
    for (size_t i = 0; i < array_len(texts); i++) {
        struct node_row *n = NULL;
        struct err err = {0};
        assert_true(noderecord_read(texts[i], &n, &err) < 0);
        assert_null(n);
        assert_true(*err.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_and_back),
        cmocka_unit_test(test_one_of_the_version_before),
        cmocka_unit_test(test_what_is_no_node),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
