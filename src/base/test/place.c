/* SPDX-License-Identifier: Apache-2.0 */
/* place.c - tests of places in sorted arrays: before, between, among equals, behind, in none. */
#include "base/order/place.h"

#include "base/mem.h"
#include "base/unit.h"

static int by_value(const void *key, const void *element)
{
    const int *a = key, *b = element;
    return *a < *b ? -1 : *a > *b;
}

static void test_places(void **state)
{
    static const int v[] = {1, 3, 3, 3, 7};
    static const size_t places[] = {0, 0, 1, 1, 4, 4, 4, 4, 5};
    (void)state;
    for (size_t i = 0; i < array_len(places); i++) {
        int key = (int)i;
        assert_int_equal(place_of(&key, v, array_len(v), sizeof(v[0]), by_value), places[i]);
    }
    assert_int_equal(place_of(v, NULL, 0, sizeof(v[0]), by_value), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_places)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
