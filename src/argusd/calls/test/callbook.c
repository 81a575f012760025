/* SPDX-License-Identifier: Apache-2.0 */
/* callbook.c - tests of requests and tokens that one may have in a minute. */
#include "argusd/calls/callbook.h"
#include "base/text.h"
#include "base/unit.h"

static const usec_t START = 1000 * USEC_SEC;

static void test_requests_of_a_minute(void **state)
{
    const struct callbook_limits l = {.requests = 60};
    struct callbook *b = callbook_new();
    usec_t wait = 0;
    (void)state;
    for (int i = 0; i < 60; i++)
        assert_int_equal(callbook_take(b, "chat", "ann", &l, START, &wait), CALLBOOK_GOES);
    assert_int_equal(callbook_take(b, "chat", "ann", &l, START, &wait), CALLBOOK_REQUESTS);
    assert_true(wait > USEC_SEC / 2 && wait <= USEC_SEC + 1);
    assert_int_equal(callbook_take(b, "chat", "bob", &l, START, &wait), CALLBOOK_GOES);
    assert_int_equal(callbook_take(b, "sums", "ann", &l, START, &wait), CALLBOOK_GOES);
    assert_int_equal(callbook_take(b, "chat", "ann", &l, START + wait, &wait), CALLBOOK_GOES);
    assert_int_equal(callbook_take(b, "chat", "ann", &l, START + wait, &wait), CALLBOOK_REQUESTS);
    for (int i = 0; i < 60; i++)
        assert_int_equal(callbook_take(b, "chat", "ann", &l, START + 3600 * USEC_SEC, &wait),
                         CALLBOOK_GOES);
    assert_int_equal(callbook_take(b, "chat", "ann", &l, START + 3600 * USEC_SEC, &wait),
                     CALLBOOK_REQUESTS);
    callbook_free(b);
}

static void test_tokens_are_paid_afterwards(void **state)
{
    const struct callbook_limits l = {.tokens = 600};
    struct callbook *b = callbook_new();
    usec_t wait = 0;
    (void)state;
    assert_int_equal(callbook_take(b, "chat", "ann", &l, START, &wait), CALLBOOK_GOES);
    callbook_add_tokens(b, "chat", "ann", 1200); /* 600 too many: a minute until there is one */
    callbook_add_tokens(b, "chat", "ann", -1);
    callbook_add_tokens(b, "chat", "nobody", 5);
    assert_int_equal(callbook_take(b, "chat", "ann", &l, START, &wait), CALLBOOK_TOKENS);
    assert_true(wait > 60 * USEC_SEC && wait < 61 * USEC_SEC);
    assert_int_equal(callbook_take(b, "chat", "ann", &l, START + wait / 2, &wait), CALLBOOK_TOKENS);
    assert_int_equal(callbook_take(b, "chat", "ann", &l, START + 61 * USEC_SEC, &wait),
                     CALLBOOK_GOES);
    callbook_free(b);
}

static void test_a_limit_that_is_new_begins_whole(void **state)
{
    const struct callbook_limits requests = {.requests = 5}, tokens = {.tokens = 8};
    struct callbook *b = callbook_new();
    usec_t wait = 0;
    (void)state;
    assert_int_equal(callbook_take(b, "chat", "ann", &requests, START, &wait), CALLBOOK_GOES);
    callbook_add_tokens(b, "chat", "ann", 1000); /* nobody counted them then */
    assert_int_equal(callbook_take(b, "chat", "ann", &tokens, START, &wait), CALLBOOK_GOES);
    callbook_add_tokens(b, "chat", "ann", 5);
    assert_int_equal(callbook_take(b, "chat", "ann", &tokens, START, &wait), CALLBOOK_GOES);
    callbook_add_tokens(b, "chat", "ann", 5);
    assert_int_equal(callbook_take(b, "chat", "ann", &tokens, START, &wait), CALLBOOK_TOKENS);
    callbook_free(b);
}

static void test_a_limit_that_is_lowered_holds_at_once(void **state)
{
    const struct callbook_limits many = {.requests = 1000}, few = {.requests = 2}, none = {0};
    struct callbook *b = callbook_new();
    usec_t wait = 0;
    (void)state;
    assert_int_equal(callbook_take(b, "chat", "ann", &many, START, &wait), CALLBOOK_GOES);
    assert_int_equal(callbook_take(b, "chat", "ann", &few, START, &wait), CALLBOOK_GOES);
    assert_int_equal(callbook_take(b, "chat", "ann", &few, START, &wait), CALLBOOK_GOES);
    assert_int_equal(callbook_take(b, "chat", "ann", &few, START, &wait), CALLBOOK_REQUESTS);
    assert_int_equal(callbook_take(b, "chat", "ann", &none, START, &wait), CALLBOOK_GOES);
    callbook_free(b);
}

/* Strangers come and go: who owes something is remembered. */
static void test_who_asked_nothing_is_forgotten(void **state)
{
    const struct callbook_limits l = {.tokens = 60};
    struct callbook *b = callbook_new();
    usec_t wait = 0, now = START;
    char user[32];
    (void)state;
    assert_int_equal(callbook_take(b, "chat", "ann", &l, now, &wait), CALLBOOK_GOES);
    callbook_add_tokens(b, "chat", "ann", 60 * 60 * 10); /* ten hours' worth */
    for (int i = 0; i < 5000; i++) {
        text_printf(user, "user-%d", i);
        now += USEC_SEC;
        assert_int_equal(callbook_take(b, "chat", user, &l, now, &wait), CALLBOOK_GOES);
    }
    assert_int_equal(callbook_take(b, "chat", "ann", &l, now, &wait), CALLBOOK_TOKENS);
    callbook_free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests_of_a_minute),
        cmocka_unit_test(test_tokens_are_paid_afterwards),
        cmocka_unit_test(test_a_limit_that_is_new_begins_whole),
        cmocka_unit_test(test_a_limit_that_is_lowered_holds_at_once),
        cmocka_unit_test(test_who_asked_nothing_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
