/* SPDX-License-Identifier: Apache-2.0 */
/* The set never forgets an id, counts each once, and says no to those it never saw. */
#include "argusd/ground/idset.h"

#include <stdio.h>

#include "base/unit.h"

static const unsigned char seed[16] = {7, 1, 3};

static void test_many_ids(void **state)
{
    (void)state;
    enum { IDS = 20000 };
    struct idset *s = idset_new(seed);
    char id[32];
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < IDS; i++) {
            (void)snprintf(id, sizeof(id), "train-%d", i);
            idset_add(s, id);
        }
    assert_int_equal(idset_count(s), IDS);
    for (int i = 0; i < 2 * IDS; i++) {
        (void)snprintf(id, sizeof(id), "train-%d", i);
        assert_int_equal(idset_has(s, id), i < IDS);
    }
    idset_free(s);
}

static void test_empty(void **state)
{
    (void)state;
    struct idset *s = idset_new(seed);
    assert_false(idset_has(s, ""));
    assert_false(idset_has(s, "a"));
    assert_int_equal(idset_count(s), 0);
    idset_free(s);
    idset_free(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_ids),
        cmocka_unit_test(test_empty),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
