/* SPDX-License-Identifier: Apache-2.0 */
/* What a check of the network may have written, and when a pair, a machine or nobody is named. */
#include "core/job/netcheck.h"

#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "base/unit.h"

static struct strv names(const char *list)
{
    struct strv v = {0};
    for (; *list; list++)
        strv_addf(&v, "%c", *list);
    return v;
}

static int take(const char *text, const char *list, struct netcheck_found *ret)
{
    _cleanup_(strv_release) struct strv nodes = names(list);
    *ret = (struct netcheck_found){0};
    return netcheck_found_read(text, strlen(text), &nodes, ret, NULL);
}

static double of_100(const struct netcheck_pair *p, void *arg)
{
    const char *without = arg;
    return without && strstr(without, p->a) && strstr(without, p->b) ? 0 : 100;
}

#define HEAD "{\"backend\":\"gloo\",\"pairs\":["
#define PAIR(a, b, mbps) "{\"a\":\"" a "\",\"b\":\"" b "\",\"mbps\":" mbps ",\"usec\":10}"
#define TAIL                                                                                       \
    "],\"sizes\":[{\"bytes\":1024,\"algo_mbps\":1,\"bus_mbps\":1.5,\"usec\":9}],\"missed\":[]}"
#define THREE(ab, ac, bc) HEAD PAIR("b", "a", ab) "," PAIR("a", "c", ac) "," PAIR("b", "c", bc) TAIL

static void said(const struct netcheck_trouble *t, const char *text)
{
    char s[400];
    message_to_string(t->code, t->text, true, s, sizeof(s));
    assert_string_equal(s, text);
}

static void test_read(void **state)
{
    (void)state;
    struct netcheck_found f;
    assert_int_equal(take(THREE("90", "80", "70"), "abc", &f), 0);
    const struct netcheck_pair *p = f.pairs.v;
    assert_string_equal(p[0].a, "a"); /* in the order of names */
    assert_string_equal(p[0].b, "b");
    assert_true(p[0].mbps == 90);
    assert_int_equal(f.sizes.n, 1);
    netcheck_found_release(&f);
    static const char *const bad[] = {
        "",
        "[]",
        "{}",
        HEAD TAIL,
        HEAD PAIR("a", "b", "9") TAIL,
        THREE("9", "9", "0"),
        THREE("9", "9", "-1"),
        THREE("9", "9", "1e10"),
        THREE("9", "9", "\"9\""),
        HEAD PAIR("a", "b", "9") "," PAIR("a", "c", "9") "," PAIR("c", "a", "9") TAIL,
        HEAD PAIR("a", "b", "9") "," PAIR("a", "c", "9") "," PAIR("b", "x", "9") TAIL,
        HEAD PAIR("a", "b", "9") "," PAIR("a", "c", "9") "," PAIR("b", "b", "9") TAIL,
        "{\"backend\":\"\",\"pairs\":[],\"missed\":[{\"node\":\"x\",\"by\":[\"a\"]}]}",
        "{\"backend\":\"\",\"pairs\":[],\"missed\":[{\"node\":\"a\",\"by\":[]}]}"};
    for (size_t i = 0; i < array_len(bad); i++)
        assert_int_equal(take(bad[i], "abc", &f), ERR_BAD_REQUEST);
}

static void test_against_the_baseline(void **state)
{
    (void)state;
    struct netcheck_found f;
    struct netcheck_trouble t[4];
    assert_int_equal(take(THREE("80", "79.9", "200"), "abc", &f), 0);
    assert_int_equal(netcheck_judge(&f, of_100, NULL, t, 4), 1);
    said(&t[0], "between 'a' and 'c' there are 80 Mbit/s, 79 % of the baseline (100)");
    assert_int_equal(netcheck_judge(&f, NULL, NULL, t, 4), 0); /* it becomes the baseline */
    netcheck_found_release(&f);
}

static void test_without_a_baseline(void **state)
{
    (void)state;
    struct netcheck_found f;
    struct netcheck_trouble t[4];
    char all[] = "abc";
    assert_int_equal(take(THREE("900", "40", "41"), "abc", &f), 0);
    assert_int_equal(netcheck_judge(&f, of_100, all, t, 4), 1);
    said(&t[0], "'c' reaches 41 Mbit/s at best, 4 % of the median of the nodes (900)");
    netcheck_found_release(&f);
    assert_int_equal(take(THREE("900", "910", "890"), "abc", &f), 0);
    assert_int_equal(netcheck_judge(&f, of_100, all, t, 4), 0);
    netcheck_found_release(&f);
    assert_int_equal(take(HEAD PAIR("a", "b", "40") TAIL, "ab", &f), 0);
    assert_int_equal(netcheck_judge(&f, of_100, all, t, 4), 0); /* of two nobody knows which */
    netcheck_found_release(&f);
}

static void test_who_is_not_reached(void **state)
{
    (void)state;
    struct netcheck_found f;
    struct netcheck_trouble t[1];
    assert_int_equal(take("{\"backend\":\"\",\"pairs\":[],\"sizes\":[],\"missed\":[{\"node\":\"c\","
                          "\"by\":[\"a\",\"b\"]},{\"node\":\"a\",\"by\":[\"b\"]}]}",
                          "abc", &f),
                     0);
    assert_int_equal(netcheck_judge(&f, NULL, NULL, t, 1), 2);
    said(&t[0], "'c' is not reached by a, b");
    netcheck_found_release(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read),
        cmocka_unit_test(test_against_the_baseline),
        cmocka_unit_test(test_without_a_baseline),
        cmocka_unit_test(test_who_is_not_reached),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
