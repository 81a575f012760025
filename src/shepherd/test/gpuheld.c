/* SPDX-License-Identifier: Apache-2.0 */
/* gpuheld.c - GPUs are the attempt's only where all of them are known. */
#include "shepherd/scout/gpuheld.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/unit.h"

#define NODES "\"nodes\": [{\"name\": \"a\"}, {\"name\": \"b\"}]}"

static void test_how_many_are_leased(void **state)
{
    (void)state;
    static const struct {
        const char *lease, *node;
        double gpus;
    } rows[] = {
        {"{\"gpus\": 2, \"driver_gpus\": 0, " NODES, "a", 2},
        {"{\"gpus\": 2, \"driver_gpus\": 1, " NODES, "a", 3}, /* the driver's node */
        {"{\"gpus\": 2, \"driver_gpus\": 1, " NODES, "b", 2},
        {"{\"gpus\": 0, \"driver_gpus\": 4, " NODES, "a", 4}, /* torchrun in the driver */
        {"{\"gpus\": 0.5, \"driver_gpus\": 0, " NODES, "b", 0.5},
        {"{\"gpus\": 0, \"driver_gpus\": 0, " NODES, "a", 0},
        {"{\"gpus\": 2, \"driver_gpus\": 0, " NODES, "c", -1}, /* not of the lease */
        {"{\"gpus\": 2, " NODES, "a", -1},                     /* of an older argusd */
        {"{\"driver_gpus\": 0, " NODES, "a", -1},
        {"{\"gpus\": -1, \"driver_gpus\": 4, " NODES, "a", -1},
        {"{\"gpus\": 2, \"driver_gpus\": 0, \"nodes\": 7}", "a", -1},
        {"{\"gpus\": 2, \"driver_gpus\": 0, \"nodes\": [7, {}]}", "a", -1},
        {"[]", "a", -1},
        {"{", "a", -1},
        {"", "a", -1},
        {NULL, "a", -1},
    };
    for (size_t i = 0; i < array_len(rows); i++) {
        double gpus = gpuheld_leased(rows[i].lease, rows[i].node);
        if (gpus != rows[i].gpus)
            print_error("row %zu: %g\n", i, gpus);
        assert_true(gpus == rows[i].gpus);
    }
}

static void held_card(struct gpu_sample *book, const char *pci, bool is_ours)
{
    struct gpu_card *c = &book->v[book->n++];
    gpu_card_init(c);
    text_copy(c->pci, pci);
    c->is_ours = is_ours;
}

static void test_which_are_held(void **state)
{
    (void)state;
    uint64_t at[2] = {7, 7};
    _cleanup_(freep) struct gpu_sample *book = xcalloc(1, sizeof(*book));
    assert_int_equal(gpuheld_find(book, 0, at, 2), 0); /* nothing is leased */
    assert_int_equal(gpuheld_find(book, 1, at, 2), -1);
    held_card(book, "00000000:3B:00.0", false);
    held_card(book, "00000000:C1:00.0", true);
    held_card(book, "", false); /* another's, of which nothing has to be known */
    assert_int_equal(gpuheld_find(book, -1, at, 2), -1);
    assert_int_equal(gpuheld_find(book, 2, at, 2), -1); /* the other one was not seen yet */
    assert_int_equal(at[0], 7);
    assert_int_equal(gpuheld_find(book, 0.5, at, 2), 1);
    assert_int_equal(gpuheld_find(book, 1, at, 2), 1);
    assert_int_equal(at[0], 0xc100);
    assert_int_equal(at[1], 7);
    held_card(book, "00000000:DB:00.0", true);
    assert_int_equal(gpuheld_find(book, 2, at, 2), 2);
    assert_int_equal(at[1], 0xdb00);
    assert_int_equal(gpuheld_find(book, 1, at, 2), 2); /* it uses more than it has: all of them */
    assert_int_equal(gpuheld_find(book, 2, at, 1), -1);
    held_card(book, "", true); /* one whose address is not known: none is */
    assert_int_equal(gpuheld_find(book, 2, at, 2), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_how_many_are_leased),
        cmocka_unit_test(test_which_are_held),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
