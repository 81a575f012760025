/* SPDX-License-Identifier: Apache-2.0 */
/* namerank.c - tests of names against a text: how well each fits, the best few of a kind, and the
 * turns of the kinds. */
#include "base/order/namerank.h"

#include "base/buf.h"
#include "base/mem.h"
#include "base/unit.h"

static void test_how_well_a_name_fits(void **state)
{
    static const struct {
        const char *name, *text;
        enum namerank rank;
    } cases[] = {
        {"gsm8k", "gsm8k", NAMERANK_WHOLE},
        {"GSM8K@2", "gsm8k", NAMERANK_WHOLE},
        {"gsm8k@2", "gsm8k@2", NAMERANK_WHOLE},
        {"gsm8k@21", "gsm8k@2", NAMERANK_BEGINS},
        {"gsm8k-math", "gsm", NAMERANK_BEGINS},
        {"gsm8k-math", "MATH", NAMERANK_WORD},
        {"aftermath of math", "math", NAMERANK_WORD}, /* its best place counts */
        {"aftermath", "math", NAMERANK_INSIDE},
        {"\xe6\x95\xb0\xe5\xad\xa6", "\xe5\xad\xa6", NAMERANK_INSIDE},
        {"run 1", " 1", NAMERANK_INSIDE},
        {"math", "maths", NAMERANK_NONE},
        {"math", "", NAMERANK_NONE},
        {"", "m", NAMERANK_NONE},
        {NULL, "m", NAMERANK_NONE},
    };
    (void)state;
    for (size_t i = 0; i < array_len(cases); i++)
        assert_int_equal(namerank_of(cases[i].name, cases[i].text), cases[i].rank);
}

static void put(struct namerank_list *list,
                unsigned kind,
                enum namerank rank,
                uint64_t behind,
                const char *name)
{
    const struct namerank_hit hit = {
        .rank = rank, .kind = kind, .behind = behind, .id = name, .name = name};
    namerank_add(list, 3, &hit);
}

static void assert_names(const struct namerank_list *list, const char *names)
{
    struct buf all = BUF_INIT(256);
    for (size_t i = 0; i < list->n; i++)
        (void)buf_addf(&all, "%s%s", i ? " " : "", list->v[i].name); /* it fits */
    assert_string_equal(buf_str(&all), names);
    buf_release(&all);
}

/* What does not fit, or not well enough, is not kept. */
static void test_the_best_of_a_kind(void **state)
{
    struct namerank_list list = {0};
    (void)state;
    put(&list, 0, NAMERANK_NONE, 0, "none");
    assert_names(&list, "");
    put(&list, 0, NAMERANK_INSIDE, 0, "c");
    put(&list, 0, NAMERANK_INSIDE, 0, "B");
    put(&list, 0, NAMERANK_INSIDE, 0, "a");
    assert_names(&list, "a B c");
    put(&list, 0, NAMERANK_BESIDE, 0, "aa");
    assert_names(&list, "a B c");
    put(&list, 0, NAMERANK_WHOLE, 9, "z");
    put(&list, 0, NAMERANK_WHOLE, 2, "newer");
    assert_names(&list, "newer z a");
    namerank_release(&list);
    assert_int_equal(list.n, 0);
}

/* A hundred jobs that begin so do not hide the one model that does, nor what fits better. */
static void test_kinds_take_turns(void **state)
{
    struct namerank_list lists[3] = {{0}}, all = {0};
    (void)state;
    put(&lists[0], 0, NAMERANK_BEGINS, 1, "job1");
    put(&lists[0], 0, NAMERANK_BEGINS, 2, "job2");
    put(&lists[0], 0, NAMERANK_BEGINS, 3, "job3");
    put(&lists[1], 1, NAMERANK_WHOLE, 0, "user");
    put(&lists[1], 1, NAMERANK_INSIDE, 0, "inside");
    put(&lists[2], 2, NAMERANK_BEGINS, 0, "model");
    namerank_join(lists, array_len(lists), 5, &all);
    assert_names(&all, "user job1 model job2 job3");
    for (size_t i = 0; i < array_len(lists); i++)
        assert_int_equal(lists[i].n, 0);
    namerank_release(&all);
    namerank_join(lists, array_len(lists), 5, &all); /* of nothing */
    assert_names(&all, "");
    namerank_release(&all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_how_well_a_name_fits),
        cmocka_unit_test(test_the_best_of_a_kind),
        cmocka_unit_test(test_kinds_take_turns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
