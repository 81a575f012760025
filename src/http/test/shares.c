/* SPDX-License-Identifier: Apache-2.0 */
/* shares.c - tests of what one address and one user may have, and of the names of addresses. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "base/unit.h"
#include "http/shares.h"

static const char *name_of(const char *text, const struct strv *exempt, char ret[SHARE_NAME_MAX])
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } a = {0};
    if (inet_pton(AF_INET, text, &a.v4.sin_addr) == 1) {
        a.v4.sin_family = AF_INET;
    } else {
        assert_int_equal(inet_pton(AF_INET6, text, &a.v6.sin6_addr), 1);
        a.v6.sin6_family = AF_INET6;
    }
    shares_address(&a.any, exempt, ret);
    return ret;
}

static void test_a_share_ends_at_its_ceiling(void **state)
{
    struct shares *t = shares_new();
    (void)state;
    assert_true(shares_take(t, SHARE_STREAMS, "ann", 2));
    assert_true(shares_take(t, SHARE_STREAMS, "ann", 2));
    assert_false(shares_take(t, SHARE_STREAMS, "ann", 2));
    assert_true(shares_take(t, SHARE_POLLS, "ann", 2)); /* kinds are counted apart */
    assert_true(shares_take(t, SHARE_STREAMS, "bob", 2));
    shares_give(t, SHARE_STREAMS, "ann");
    assert_true(shares_take(t, SHARE_STREAMS, "ann", 2));
    assert_true(shares_take(t, SHARE_STREAMS, "ann", 0)); /* no limit */
    shares_free(t);
}

static void test_bytes_are_given_back(void **state)
{
    struct shares *t = shares_new();
    (void)state;
    assert_true(shares_take_bytes(t, "ann", 10, 16));
    assert_false(shares_take_bytes(t, "ann", 7, 16));
    assert_true(shares_take_bytes(t, "bob", 16, 16));
    shares_give_bytes(t, "ann", 10);
    assert_true(shares_take_bytes(t, "ann", 16, 16));
    shares_free(t);
}

static void test_names_of_addresses(void **state)
{
    struct strv exempt = {0};
    char a[SHARE_NAME_MAX], b[SHARE_NAME_MAX];
    (void)state;
    strv_add(&exempt, "127.0.0.1");
    strv_add(&exempt, "::1");
    assert_string_equal(name_of("127.0.0.1", NULL, a), "127.0.0.1");
    assert_string_equal(name_of("127.0.0.1", &exempt, a), "");
    assert_string_equal(name_of("127.0.0.2", &exempt, a), "127.0.0.2");
    assert_string_equal(name_of("::1", &exempt, a), "");
    assert_string_equal(name_of("::ffff:127.0.0.1", &exempt, a), "");
    assert_string_equal(name_of("::ffff:10.0.0.1", &exempt, a), "10.0.0.1");
    /* A machine has a whole /64 and may send from each address of it. */
    assert_string_equal(name_of("2001:db8:0:1::1", &exempt, a),
                        name_of("2001:db8:0:1:ff::2", &exempt, b));
    assert_string_not_equal(name_of("2001:db8:0:1::1", &exempt, a),
                            name_of("2001:db8:0:2::1", &exempt, b));
    strv_release(&exempt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_share_ends_at_its_ceiling),
        cmocka_unit_test(test_bytes_are_given_back),
        cmocka_unit_test(test_names_of_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
