/* SPDX-License-Identifier: Apache-2.0 */
/* The spool: order, ceilings, and a disk that is full. */
#define _GNU_SOURCE
#include "shepherd/attempt/spool.h"

#include <stdlib.h>
#include <string.h>

#include "base/unit.h"
#include "shepherd/test/full.h"

/* Bytes by their place in the stream, so that a swap or a hole shows. */
static char byte_at(uint64_t place)
{
    return (char)(place * 131 + place / 251 * 7);
}

static bool add(struct spool *s, uint64_t *place, size_t n)
{
    _cleanup_(freep) char *p = xmalloc(n);
    for (size_t i = 0; i < n; i++)
        p[i] = byte_at(*place + i);
    if (!spool_add(s, p, n))
        return false;
    *place += n;
    return true;
}

/* At most n, as they come. */
static void take(struct spool *s, uint64_t *place, size_t n)
{
    while (n) {
        const char *p = NULL;
        int64_t k = spool_peek(s, &p);
        assert_true(k >= 0);
        if (!k)
            return;
        size_t now = (uint64_t)k < n ? (size_t)k : n;
        for (size_t i = 0; i < now; i++)
            if (p[i] != byte_at(*place + i))
                fail_msg("byte %llu is wrong", (unsigned long long)(*place + i));
        spool_remove(s, now);
        *place += now;
        n -= now;
    }
}

static void test_order_over_memory_and_file(void **state)
{
    (void)state;
    uint64_t in = 0, out = 0;
    unsigned seed = 7;
    struct spool *s = spool_new(1000, 5000, "/tmp");
    bool was_filed = false;
    for (int i = 0; i < 20000; i++) {
        (void)add(s, &in, 1 + (size_t)rand_r(&seed) % 700); /* refused when it is full */
        assert_true(spool_bytes(s) == in - out && spool_filed(s) <= 10000); /* a piece too */
        was_filed |= spool_filed(s) > 0;
        take(s, &out, (size_t)rand_r(&seed) % 800);
    }
    take(s, &out, SIZE_MAX);
    assert_true(was_filed && in == out && spool_bytes(s) == 0);
    assert_string_equal(spool_trouble(s), "");
    spool_free(s);
}

static void test_what_does_not_fit_is_refused_whole(void **state)
{
    (void)state;
    uint64_t in = 0, out = 0;
    struct spool *s = spool_new(100, 0, "/nowhere");
    assert_true(add(s, &in, 60) && !add(s, &in, 41) && add(s, &in, 40));
    assert_true(!spool_fits(s, 1) && spool_bytes(s) == 100);
    take(s, &out, 10);
    assert_true(spool_fits(s, 10) && !spool_fits(s, 11));
    assert_true(spool_discard(s) == 90 && spool_bytes(s) == 0);
    spool_free(s);
}

static void test_no_directory(void **state)
{
    (void)state;
    uint64_t in = 0, out = 0;
    struct spool *s = spool_new(100, 1000, "/no/such");
    assert_true(add(s, &in, 100));
    assert_true(spool_fits(s, 50) && !add(s, &in, 50)); /* then it is known */
    assert_string_equal(spool_trouble(s), "No such file or directory");
    assert_false(spool_fits(s, 50));
    take(s, &out, 60);
    assert_true(add(s, &in, 50));
    take(s, &out, 1000);
    assert_int_equal(in, out);
    spool_free(s);
}

static void test_its_own_disk_is_full(void **state)
{
    (void)state;
    uint64_t in = 0, out = 0;
    struct spool *s = spool_new(100, 100000, "/tmp");
    limit_files(1000);
    assert_true(add(s, &in, 100) && add(s, &in, 900) && !add(s, &in, 200));
    assert_string_equal(spool_trouble(s), "File too large");
    limit_files(RLIM_INFINITY);
    take(s, &out, 600); /* of the file, too: its bytes are still on the disk */
    assert_false(spool_fits(s, 1));
    take(s, &out, 100000);
    assert_int_equal(in, out);
    assert_true(add(s, &in, 50000)); /* empty again: the disk is tried anew */
    take(s, &out, 100000);
    assert_int_equal(in, out);
    spool_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_over_memory_and_file),
        cmocka_unit_test(test_what_does_not_fit_is_refused_whole),
        cmocka_unit_test(test_no_directory),
        cmocka_unit_test(test_its_own_disk_is_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
