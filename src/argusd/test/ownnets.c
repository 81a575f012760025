/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of ownnets.c: which networks a new configuration names. */
#include "argusd/run/ownnets.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "base/unit.h"
#include "ray/reach.h"

static void ownnets_put(struct strv *to, const char *address, const char *mask)
{
    struct sockaddr_in6 six[2] = {{.sin6_family = AF_INET6}, {.sin6_family = AF_INET6}};
    struct sockaddr_in four[2] = {{.sin_family = AF_INET}, {.sin_family = AF_INET}};
    if (strchr(address, ':')) {
        assert_int_equal(inet_pton(AF_INET6, address, &six[0].sin6_addr), 1);
        assert_int_equal(inet_pton(AF_INET6, mask, &six[1].sin6_addr), 1);
        ownnets_add(to, (struct sockaddr *)&six[0], (struct sockaddr *)&six[1]);
    } else {
        assert_int_equal(inet_pton(AF_INET, address, &four[0].sin_addr), 1);
        assert_int_equal(inet_pton(AF_INET, mask, &four[1].sin_addr), 1);
        ownnets_add(to, (struct sockaddr *)&four[0], (struct sockaddr *)&four[1]);
    }
}

static void networks_of_interfaces(void **state)
{
    struct strv v = {0};
    (void)state;
    ownnets_put(&v, "10.1.2.3", "255.255.254.0");
    ownnets_put(&v, "10.1.3.200", "255.255.254.0"); /* the same one */
    ownnets_put(&v, "172.17.0.1", "255.255.0.0");
    ownnets_put(&v, "192.168.7.9", "255.255.255.255");
    ownnets_put(&v, "fd00:1::77", "ffff:ffff:ffff:ffff::");
    assert_int_equal(v.n, 4);
    assert_string_equal(v.v[0], "10.1.2.0/23");
    assert_string_equal(v.v[1], "172.17.0.0/16");
    assert_string_equal(v.v[2], "192.168.7.9/32");
    assert_string_equal(v.v[3], "fd00:1::/64");
    for (size_t i = 0; i < v.n; i++)
        assert_int_equal(reach_check_network(v.v[i], NULL), 0);
    strv_release(&v);
}

static void networks_that_are_nobodys(void **state)
{
    struct strv v = {0};
    (void)state;
    ownnets_put(&v, "127.0.0.1", "255.0.0.0");
    ownnets_put(&v, "::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff");
    ownnets_put(&v, "169.254.3.4", "255.255.0.0");
    ownnets_put(&v, "fe80::5054:ff:fe12:3456", "ffff:ffff:ffff:ffff::");
    ownnets_put(&v, "10.0.0.1", "0.0.0.0"); /* all the world */
    assert_int_equal(v.n, 0);
    strv_release(&v);
}

static void networks_have_a_ceiling(void **state)
{
    struct strv v = {0};
    char address[32];
    (void)state;
    for (int i = 0; i < 2 * OWNNETS_MAX; i++) {
        (void)snprintf(address, sizeof(address), "10.%d.0.1", i);
        ownnets_put(&v, address, "255.255.0.0");
    }
    assert_int_equal(v.n, OWNNETS_MAX);
    strv_release(&v);
}

static void loopback_is_the_last_resort(void **state)
{
    struct strv here = {0}, away = {0};
    (void)state;
    ownnets_find(true, &here);
    ownnets_find(false, &away);
    assert_true(here.n > 0);
    assert_false(reach_is_within(&away, "127.0.0.1"));
    assert_int_equal(reach_is_within(&here, "127.0.0.1"), away.n == 0);
    strv_release(&here);
    strv_release(&away);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(networks_of_interfaces),
        cmocka_unit_test(networks_that_are_nobodys),
        cmocka_unit_test(networks_have_a_ceiling),
        cmocka_unit_test(loopback_is_the_last_resort),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
