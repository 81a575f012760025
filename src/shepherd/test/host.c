/* SPDX-License-Identifier: Apache-2.0 */
/* What is said about the machine, and what is not said when it is not known. */
#include "shepherd/host.h"

#include <string.h>

#include "base/mem.h"
#include "base/unit.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_counts), cmocka_unit_test(test_name),
                                       cmocka_unit_test(test_ip)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
