/* SPDX-License-Identifier: Apache-2.0 */
/* The ports of several raylets on one host never meet, and bad ranges are refused by name. */
#include "core/job/ports.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/unit.h"

static void test_raylets_of_a_host_are_apart(void **state)
{
    (void)state;
    static bool used[65536];
    struct pairs none = {0};
    struct ports p;
    const char *key = NULL;
    assert_int_equal(ports_read(&none, &p, &key, NULL), 0);
    for (int place = 0; place < PORTS_RAYLETS_MAX; place++)
        for (int k = 0; k < PORTS_COUNT; k++) {
            if (!ports_row((enum ports_key)k)->on_node || k == PORTS_NOTEBOOK)
                continue; /* notebooks of one host take theirs from one range */
            struct ports_range r = ports_at(&p, (enum ports_key)k, place);
            assert_true(r.first >= p.v[k].first && r.last <= p.v[k].last && r.first <= r.last);
            for (int port = r.first; port <= r.last; port++) {
                assert_false(used[port]);
                used[port] = true;
                assert_true(port < 32768); /* the kernel gives the others out */
            }
        }
}

static void test_options(void **state)
{
    (void)state;
    struct pairs given = {0}, options = {0};
    struct ports p;
    const char *key = NULL;
    int needed[PORTS_COUNT];
    pairs_set(&given, "worker", "21000-21799");
    pairs_set(&given, "gcs", "7000");
    assert_int_equal(ports_read(&given, &p, &key, NULL), 0);
    ports_options(&p, 1, false, &options);
    assert_string_equal(pairs_find(&options, "node-manager-port"), "9501");
    assert_string_equal(pairs_find(&options, "min-worker-port"), "21100");
    assert_string_equal(pairs_find(&options, "max-worker-port"), "21199");
    assert_null(pairs_find(&options, "port"));
    ports_options(&p, 0, true, &options);
    assert_string_equal(pairs_find(&options, "port"), "7000");
    assert_true(ports_needed(&p, 0, true, needed) > ports_needed(&p, 0, false, needed));
    pairs_release(&given);
    pairs_release(&options);
}

static void test_what_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *key, *value, *says;
    } cases[] = {
        {"workers", "20000-29999", "\"near\":\"worker\""},
        {"metrics", "9400", "needs 8"},
        {"metrics", "x", "neither a port"},
        {"metrics", "9500-9400", "neither"},
        {"gcs", "0", "neither"},
        {"gcs", "65536", "neither"},
        {"gcs", "9450", "meet"},
        {"worker", "20000-20100", "needs 400"},
    };
    for (size_t i = 0; i < array_len(cases); i++) {
        struct pairs given = {0};
        struct ports p;
        const char *key = NULL;
        struct err err = {0};
        pairs_set(&given, cases[i].key, cases[i].value);
        assert_int_equal(ports_read(&given, &p, &key, &err), ERR_BAD_SPEC);
        if (!strstr(err.text, cases[i].says) && !strstr(err.args, cases[i].says))
            fail_msg("'%s: %s' says '%s'", cases[i].key, cases[i].value, err.text);
        assert_non_null(key);
        assert_int_equal(p.v[PORTS_GCS].first, 6379); /* whole all the same */
        pairs_release(&given);
    }
}

static void test_the_page_has_every_key(void **state)
{
    (void)state;
    struct buf out = BUF_INIT(1 << 16);
    ports_page(&out);
    for (int k = 0; k < PORTS_COUNT; k++) {
        char cell[64];
        (void)snprintf(cell, sizeof(cell), "| `%s` |", ports_row((enum ports_key)k)->key);
        assert_non_null(strstr(buf_str(&out), cell));
    }
    assert_false(out.failed);
    buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_raylets_of_a_host_are_apart),
        cmocka_unit_test(test_options),
        cmocka_unit_test(test_what_is_refused),
        cmocka_unit_test(test_the_page_has_every_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
