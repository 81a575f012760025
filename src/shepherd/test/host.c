/* SPDX-License-Identifier: Apache-2.0 */
/* What is said about the machine, and what is not said when it is not known. */
#include "shepherd/host/host.h"

#include <string.h>

#include "base/mem.h"
#include "base/unit_dir.h"

static void test_counts(void **state)
{
    (void)state;
    const char *text = "low 0\noom 1\noom_kill 42\noom_group_kill 7\n";
    assert_int_equal(host_find_count(text, "oom_kill"), 42);
    assert_int_equal(host_find_count(text, "oom"), 1);
    assert_int_equal(host_find_count(text, "low"), 0);
    assert_int_equal(host_find_count(text, "kill"), -1);
    assert_int_equal(host_find_count("", "oom"), -1);
    assert_int_equal(host_find_count("oom", "oom"), -1);
}

static void test_name(void **state)
{
    (void)state;
    char name[HOST_NAME_MAX_BYTES];
    host_name(name);
    assert_true(name[0]);
}

static void test_ip(void **state)
{
    (void)state;
    char ip[HOST_IP_MAX_BYTES];
    host_ip("127.0.0.1:6379", ip);
    assert_string_equal(ip, "127.0.0.1");
    const char *const bad[] = {NULL, "", "auto", "127.0.0.1", "127.0.0.1:x", "no.such.name:80",
                               ":1"};
    for (size_t i = 0; i < array_len(bad); i++) {
        host_ip(bad[i], ip);
        assert_string_equal(ip, "");
    }
}

static void assert_memory(const char *table, const char *mount, struct host_memory want)
{
    struct host_memory got;
    host_memory_of(table, mount, &got);
    assert_int_equal(got.oom_kills, want.oom_kills);
    assert_int_equal(got.max_bytes, want.max_bytes);
    assert_int_equal(got.peak_bytes, want.peak_bytes);
}

static void test_groups_of_version_2(void **state)
{
    const char *mount = *state, *none = "0::/none\n";
    assert_memory("0::/a/b\n", mount, (struct host_memory){-1, -1, -1});
    put(mount, "a/memory.max", "1000\n");
    put(mount, "a/b/memory.events", "low 0\noom 2\noom_kill 3\noom_group_kill 0\n");
    put(mount, "a/b/memory.max", "max\n");
    put(mount, "a/b/memory.peak", "900\n");
    assert_memory("0::/a/b\n", mount, (struct host_memory){3, 1000, 900}); /* a limit from above */
    put(mount, "a/b/memory.max", "2000\n");
    assert_memory("0::/a/b\n", mount, (struct host_memory){3, 1000, 900});
    assert_memory(none, mount, (struct host_memory){-1, -1, -1});
    put(mount, "memory.events", "oom_kill 7\n"); /* a container: the mount is our own group */
    put(mount, "memory.max", "500\n");
    assert_memory(none, mount, (struct host_memory){7, 500, -1});
    assert_memory("0::/\n", mount, (struct host_memory){7, 500, -1});
    put(mount, "memory.max", "nonsense\n");
    assert_memory("", mount, (struct host_memory){-1, -1, -1});
}

static void test_groups_of_version_1(void **state)
{
    const char *mount = *state, *table = "4:memory:/p/q\n3:cpuset:/\n0::/\n";
    put(mount, "memory/p/q/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n");
    put(mount, "memory/p/q/memory.limit_in_bytes", "9223372036854771712\n"); /* no limit */
    put(mount, "memory/p/q/memory.max_usage_in_bytes", "59998208\n");
    assert_memory(table, mount, (struct host_memory){1, -1, 59998208});
    put(mount, "memory/p/memory.limit_in_bytes", "60000000\n");
    assert_memory(table, mount, (struct host_memory){1, 60000000, 59998208});
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts), cmocka_unit_test(test_name), cmocka_unit_test(test_ip),
        cmocka_unit_test_setup_teardown(test_groups_of_version_2, root_setup, root_teardown),
        cmocka_unit_test_setup_teardown(test_groups_of_version_1, root_setup, root_teardown)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
