/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of secondbook.c: what one user's jobs may ask for, and that hours and days end. */
#include "argusd/agent/secondbook.h"

#include "base/unit.h"

static const usec_t NOW = 1796000000 * USEC_SEC;
static const struct secondbook_most MOST = {.questions = 5, .tokens = 1000};

static void a_part_of_the_questions_is_of_others(void **state)
{
    struct secondbook b = {0};
    (void)state;
    secondbook_turn(&b, NOW);
    for (int i = 0; i < 3; i++) {
        assert_true(secondbook_may(&b, &MOST, "alice"));
        secondbook_ask(&b, "alice");
    }
    assert_false(secondbook_may(&b, &MOST, "alice"));
    assert_true(secondbook_may(&b, &MOST, "bob"));
    assert_true(secondbook_may(&b, &MOST, NULL));
    secondbook_ask(&b, "bob");
    secondbook_ask(&b, "carol");
    assert_false(secondbook_may(&b, &MOST, "dave")); /* all are asked */
    assert_false(secondbook_may(&b, &MOST, NULL));
    secondbook_turn(&b, NOW + USEC_HOUR - 1);
    assert_false(secondbook_may(&b, &MOST, NULL));
    secondbook_turn(&b, NOW + USEC_HOUR);
    assert_true(secondbook_may(&b, &MOST, "alice"));
    secondbook_release(&b);
}

static void a_quarter_of_the_tokens_is_of_others(void **state)
{
    struct secondbook b = {0};
    (void)state;
    secondbook_turn(&b, NOW);
    secondbook_spend(&b, "alice", 749);
    assert_true(secondbook_may(&b, &MOST, "alice"));
    secondbook_spend(&b, "alice", 1);
    secondbook_turn(&b, NOW + USEC_HOUR); /* tokens are of the day */
    assert_false(secondbook_may(&b, &MOST, "alice"));
    assert_true(secondbook_may(&b, &MOST, "bob"));
    secondbook_spend(&b, "bob", 250);
    assert_false(secondbook_may(&b, &MOST, "carol"));
    secondbook_turn(&b, NOW + USEC_DAY);
    assert_true(secondbook_may(&b, &MOST, "alice"));
    assert_int_equal(b.users.n, 0);
    secondbook_release(&b);
}

/* The questions of the hour in which the day ends are not forgotten with it. */
static void a_day_ends_within_an_hour(void **state)
{
    const usec_t half = USEC_HOUR / 2;
    struct secondbook b = {0};
    (void)state;
    secondbook_turn(&b, NOW);
    secondbook_spend(&b, "bob", 10);
    secondbook_turn(&b, NOW + USEC_DAY - half);
    for (int i = 0; i < 3; i++)
        secondbook_ask(&b, "alice");
    secondbook_spend(&b, "alice", 800);
    secondbook_turn(&b, NOW + USEC_DAY);
    assert_false(secondbook_may(&b, &MOST, "alice"));
    assert_true(secondbook_may(&b, &MOST, "bob"));
    assert_int_equal(b.users.n, 1); /* bob asked nothing in this hour */
    secondbook_turn(&b, NOW + USEC_DAY + half);
    assert_true(secondbook_may(&b, &MOST, "alice"));
    secondbook_release(&b);
}

static void one_question_is_there_for_everybody(void **state)
{
    static const struct secondbook_most one = {.questions = 1, .tokens = 1000};
    struct secondbook b = {0};
    (void)state;
    secondbook_turn(&b, NOW);
    assert_true(secondbook_may(&b, &one, "alice"));
    secondbook_ask(&b, "alice");
    assert_false(secondbook_may(&b, &one, "bob"));
    secondbook_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_part_of_the_questions_is_of_others),
        cmocka_unit_test(a_quarter_of_the_tokens_is_of_others),
        cmocka_unit_test(a_day_ends_within_an_hour),
        cmocka_unit_test(one_question_is_there_for_everybody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
