/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of sample_effect.h: made steps whose scores follow the prompt, the answer, both or nothing.
 */
#include "core/sample/sample_effect.h"

#include <math.h>
#include <string.h>

#include "base/unit.h"

enum { GROUPS = 8, EACH = 8, ALL = GROUPS * EACH, STEPS = 200 };

static uint64_t state_of_die = 88172645463325252ULL;

static double die(void)
{
    state_of_die ^= state_of_die << 13;
    state_of_die ^= state_of_die >> 7;
    state_of_die ^= state_of_die << 17;
    return (double)(state_of_die >> 11) / 9007199254740992.0;
}

/* A step: answers of random letters, and the score of each by these weights. */
static struct sample_effect step_of(double by_prompt, double by_answer, double by_die)
{
    struct sample_place v[ALL];
    struct sample_effect e;
    for (size_t i = 0; i < ALL; i++) {
        char text[24];
        size_t n = 8 + (size_t)(die() * 16), first = 0;
        for (size_t k = 0; k < n; k++) {
            text[k] = (char)('a' + (int)(die() * 26));
            first += text[k] < 'n';
        }
        v[i] = (struct sample_place){.group = 1 + i / EACH};
        v[i].score = by_prompt * (double)(i / EACH) / GROUPS +
                     by_answer * (double)first / (double)n + by_die * (die() < 0.5);
        sample_traits(text, n, v[i].traits);
    }
    sample_order_by_group(v, ALL);
    sample_effect(v, ALL, &e);
    return e;
}

static struct sample_effect mean_of(double by_prompt, double by_answer, double by_die)
{
    struct sample_effect sum = {0};
    for (int i = 0; i < STEPS; i++) {
        struct sample_effect e = step_of(by_prompt, by_answer, by_die);
        sum.by_prompt += e.by_prompt / STEPS;
        sum.by_answer += e.by_answer / STEPS;
    }
    return sum;
}

static void what_scores_follow(void **state)
{
    (void)state;
    struct sample_effect none = mean_of(0, 0, 1), prompt = mean_of(1, 0, 0.5),
                         answer = mean_of(0, 1, 0.05), both = mean_of(1, 1, 0.2);
    assert_true(fabs(none.by_prompt) < 0.02 && fabs(none.by_answer) < 0.03);
    assert_true(prompt.by_prompt > 0.4 && fabs(prompt.by_answer) < 0.03);
    assert_true(fabs(answer.by_prompt) < 0.03 && answer.by_answer > 0.2);
    assert_true(both.by_prompt > 0.4 && both.by_answer > 0.05);
}

/* Scores that all are the same, too few answers, one group, texts that do not differ. */
static void what_tells_nothing(void **state)
{
    struct sample_effect e;
    struct sample_place v[ALL];
    (void)state;
    for (size_t i = 0; i < ALL; i++)
        v[i] = (struct sample_place){.group = 1, .score = 0.5};
    sample_effect(v, ALL, &e);
    assert_true(isnan(e.by_prompt) && isnan(e.by_answer));
    sample_effect(v, 0, &e);
    assert_true(isnan(e.by_prompt) && isnan(e.by_answer));
    for (size_t i = 0; i < ALL; i++)
        v[i].score = (double)(i % 2);
    sample_order_by_group(v, ALL);
    sample_effect(v, ALL, &e);
    assert_true(isnan(e.by_prompt) && fabs(e.by_answer) < 1e-6);
    sample_effect(v, 4, &e);
    assert_true(isnan(e.by_prompt) && isnan(e.by_answer));
    for (size_t i = 0; i < ALL; i++)
        v[i] = (struct sample_place){.group = i, .score = (double)i}; /* one answer each */
    sample_effect(v, ALL, &e);
    assert_true(isnan(e.by_prompt) && isnan(e.by_answer));
}

static void traits(void **state)
{
    uint8_t a[SAMPLE_TRAITS], b[SAMPLE_TRAITS];
    (void)state;
    sample_traits("", 0, a);
    for (size_t i = 0; i < SAMPLE_TRAITS; i++)
        assert_int_equal(a[i], 0);
    sample_traits("aaaa", 4, a);
    sample_traits("aaaaaaaa", 8, b);
    assert_true(b[0] > a[0]);
    assert_memory_equal(a + 1, b + 1, SAMPLE_TRAITS - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_scores_follow),
        cmocka_unit_test(what_tells_nothing),
        cmocka_unit_test(traits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
