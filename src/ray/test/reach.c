/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of reach.c: which addresses may be called, by who named them. */
#include "ray/reach.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "base/unit.h"

static bool allows(enum reach how, const struct strv *networks, const char *text)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
        return reach_allows(how, networks, (struct sockaddr *)&v4);
    assert_int_equal(inet_pton(AF_INET6, text, &v6.sin6_addr), 1);
    return reach_allows(how, networks, (struct sockaddr *)&v6);
}

static void test_who_may_name_what(void **state)
{
    static const struct {
        const char *address;
        bool named, machines, outside;
    } rows[] = {
        {"93.184.216.34", true, true, true},
        {"2606:2800:220:1::1", true, true, true},
        {"10.1.2.3", true, true, false},
        {"172.16.0.1", true, true, false},
        {"172.32.0.1", true, true, true},
        {"192.168.1.1", true, true, false},
        {"100.64.0.1", true, true, false},
        {"fd12::1", true, true, false},
        {"127.0.0.1", true, false, false},
        {"127.9.9.9", true, false, false},
        {"::1", true, false, false},
        {"::ffff:127.0.0.1", true, false, false},
        {"::ffff:10.0.0.1", true, true, false},
        {"64:ff9b::7f00:1", true, false, false},
        {"2002:7f00:1::", true, false, false},
        {"::127.0.0.1", true, false, false},
        {"169.254.169.254", false, false, false},
        {"::ffff:169.254.169.254", false, false, false},
        {"64:ff9b::a9fe:a9fe", false, false, false},
        {"fe80::1", false, false, false},
        {"100.100.100.200", false, false, false},
        {"fd00:ec2::254", false, false, false},
        {"0.0.0.0", false, false, false},
        {"::", false, false, false},
        {"224.0.0.1", false, false, false},
        {"255.255.255.255", false, false, false},
        {"ff02::1", false, false, false},
    };
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++) {
        const char *a = rows[i].address;
        if (!allows(REACH_ANYWHERE, NULL, a) || allows(REACH_NAMED, NULL, a) != rows[i].named ||
            allows(REACH_MACHINES, NULL, a) != rows[i].machines ||
            allows(REACH_OUTSIDE, NULL, a) != rows[i].outside)
            fail_msg("%s is judged wrongly", a);
    }
}

static void test_listed_networks(void **state)
{
    struct strv listed = {0};
    struct err err = {0};
    (void)state;
    strv_add(&listed, "10.1.0.0/17");
    strv_add(&listed, "fd00:ec2::254");
    assert_true(allows(REACH_OUTSIDE, &listed, "10.1.127.255"));
    assert_false(allows(REACH_OUTSIDE, &listed, "10.1.128.0"));
    assert_true(allows(REACH_OUTSIDE, &listed, "::ffff:10.1.2.3"));
    assert_true(allows(REACH_NAMED, &listed, "fd00:ec2::254"));
    assert_false(allows(REACH_OUTSIDE, &listed, "127.0.0.1"));
    strv_release(&listed);
    static const char *const good[] = {"0.0.0.0/0", "::/0", "10.0.0.1", "::1", "10.0.0.0/32"};
    static const char *const bad[] = {"",  "/8",        "10.0.0.0/33", "10.0.0/8",   "::/129",
                                      "x", "10.0.0.0/", "10.0.0.0/8 ", "10.0.0.0/-1"};
    for (size_t i = 0; i < array_len(good); i++)
        assert_int_equal(reach_check_network(good[i], NULL), 0);
    for (size_t i = 0; i < array_len(bad); i++)
        assert_int_equal(reach_check_network(bad[i], &err), ERR_BAD_REQUEST);
}

/* What may be pasted into a URL. */
static void test_addresses(void **state)
{
    (void)state;
    assert_true(reach_allows_text(REACH_ANYWHERE, NULL, "10.0.0.1"));
    assert_true(reach_allows_text(REACH_ANYWHERE, NULL, "fd00::1"));
    static const char *const bad[] = {"",
                                      "127.0.0.1/latest/meta-data?x=",
                                      "127.0.0.1 ",
                                      "1",
                                      "host",
                                      "[::1]",
                                      "10.0.0.1:80",
                                      "0x7f.1",
                                      "127.1",
                                      "::1%lo",
                                      "a@10.0.0.1"};
    for (size_t i = 0; i < array_len(bad); i++)
        assert_false(reach_allows_text(REACH_ANYWHERE, NULL, bad[i]));
}

static void test_one_address_by_two_texts(void **state)
{
    struct strv listed = {0};
    (void)state;
    assert_true(reach_is_same("10.0.0.1", "10.0.0.1"));
    assert_true(reach_is_same("10.0.0.1", "::ffff:10.0.0.1"));
    assert_true(reach_is_same("fd00::1", "FD00:0::1"));
    assert_false(reach_is_same("10.0.0.1", "10.0.0.11"));
    assert_false(reach_is_same("10.0.0.1", "10.0.0.1/"));
    assert_false(reach_is_same("", ""));
    assert_false(reach_is_same("host", "host"));
    assert_true(reach_is_address("10.0.0.1") && reach_is_address("fd00::1"));
    assert_false(reach_is_address("10.0.0.1/") || reach_is_address("host") || reach_is_address(""));
    assert_false(reach_is_within(NULL, "10.1.2.3"));
    strv_add(&listed, "10.1.0.0/16");
    assert_true(reach_is_within(&listed, "10.1.2.3"));
    assert_true(reach_is_within(&listed, "::ffff:10.1.2.3"));
    assert_false(reach_is_within(&listed, "10.2.2.3"));
    assert_false(reach_is_within(&listed, "10.1.2.3/x"));
    strv_release(&listed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_may_name_what),
        cmocka_unit_test(test_listed_networks),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_one_address_by_two_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
