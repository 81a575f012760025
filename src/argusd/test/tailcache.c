/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of tailcache.h: what is kept, joined, found from the middle on, and dropped. */
#include "argusd/logs/tailcache.h"

#include <string.h>

#include "base/unit.h"

static void find(struct tailcache *c, uint64_t offset, uint64_t at, const char *want)
{
    struct tailchunk k;
    assert_true(tailcache_find(c, offset, &k));
    assert_int_equal(k.at, at);
    assert_int_equal(k.n, strlen(want));
    assert_memory_equal(k.bytes, want, k.n);
}

static void test_lines_join(void **state)
{
    struct tailcache c = {0};
    struct tailchunk none;
    (void)state;
    tailcache_add(&c, 0, 0, "one\n", 4, 8);
    tailcache_add(&c, 4, 4, "two\n", 4, 8);
    assert_int_equal(c.n, 1);
    find(&c, 0, 0, "one\ntwo\n");
    find(&c, 4, 4, "two\n");
    assert_false(tailcache_find(&c, 8, &none));
    tailcache_add(&c, 8, 100, "far\n", 4, 8); /* behind a gap */
    find(&c, 8, 100, "far\n");
    find(&c, 50, 100, "far\n");
    find(&c, 101, 101, "ar\n");
    assert_false(tailcache_find(&c, 104, &none));
    assert_int_equal(c.bytes, 12);
    tailcache_forget(&c, 8);
    assert_int_equal(c.bytes, 4);
    tailcache_release(&c);
    assert_int_equal(c.bytes, 0);
}

static void test_what_was_used_stays(void **state)
{
    struct tailcache c = {0};
    struct tailchunk k;
    (void)state;
    for (uint64_t i = 0; i < 40; i++) {
        tailcache_add(&c, i * 1000, i * 1000, "x", 1, 4);
        find(&c, 0, 0, "x");
        assert_true(c.n <= 4);
    }
    find(&c, 39000, 39000, "x");
    assert_false(tailcache_find(&c, 30000, &k));
    tailcache_add(&c, 7, 7, "y", 1, 1); /* told to keep no more than one */
    assert_int_equal(c.n, 1);
    find(&c, 7, 7, "y");
    tailcache_release(&c);
}

static void test_a_full_chunk_is_not_joined(void **state)
{
    static char full[TAILCACHE_CHUNK];
    struct tailcache c = {0};
    (void)state;
    for (uint64_t i = 0; i < 100; i++)
        tailcache_add(&c, i * TAILCACHE_CHUNK, i * TAILCACHE_CHUNK, full, sizeof(full),
                      TAILCACHE_CHUNKS);
    assert_int_equal(c.n, TAILCACHE_CHUNKS);
    assert_int_equal(c.bytes, TAILCACHE_CHUNKS * TAILCACHE_CHUNK);
    tailcache_release(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_join),
        cmocka_unit_test(test_what_was_used_stays),
        cmocka_unit_test(test_a_full_chunk_is_not_joined),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
