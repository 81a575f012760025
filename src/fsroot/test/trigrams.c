/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of trigrams.h: what a text has is found again, in any case of letters, and little else. */
#include "fsroot/logs/trigrams.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/unit.h"

/* 0 to n - 1. */
static size_t dice(size_t n)
{
    static uint64_t s = 88172645463325252ULL;
    s ^= s << 13;
    s ^= s >> 7;
    s ^= s << 17;
    return (size_t)(s >> 11) % n;
}

static struct trigrams *set_of(const char *text, size_t n, size_t piece)
{
    struct trigrams *t = xcalloc(1, sizeof(*t));
    for (size_t at = 0; at < n; at += piece)
        trigrams_add(t, text + at, n - at < piece ? n - at : piece);
    return t;
}

static bool has(const uint8_t *filter, size_t size, const char *text, size_t n)
{
    uint32_t v[64];
    trigrams_of(text, n, v);
    for (size_t i = 0; i + 2 < n; i++)
        if (!trigrams_filter_has(filter, size, v[i]))
            return false;
    return true;
}

/* Any bytes, in any pieces: every part of the text is in its filter. */
static void test_never_misses(void **state)
{
    enum { N = 3000, SIZE = 4096 };
    (void)state;
    for (int round = 0; round < 50; round++) {
        char text[N], part[20];
        uint8_t filter[SIZE] = {0};
        for (size_t i = 0; i < N; i++)
            text[i] = (char)(round % 2 ? dice(256) : 32 + dice(95));
        struct trigrams *t = set_of(text, N, 1 + dice(100));
        trigrams_to_filter(t, filter, SIZE);
        for (int i = 0; i < 500; i++) {
            size_t n = 3 + dice(17), at = dice(N - n);
            for (size_t k = 0; k < n; k++) {
                unsigned char c = (unsigned char)text[at + k];
                part[k] = (char)(c < 128 && dice(2) ? toupper(c) : c < 128 ? tolower(c) : c);
            }
            assert_true(has(filter, SIZE, part, n));
        }
        free(t);
    }
}

static void test_tells_apart(void **state)
{
    static const char text[] = "step:12 - actor/pg_loss:0.013 - timing_s/gen:4.25 rank 7\n";
    static const char other[] = "another text of the same kind: killed by signal 9\n";
    uint8_t filter[512] = {0};
    (void)state;
    struct trigrams *t = set_of(text, sizeof(text) - 1, 7);
    struct trigrams *u = set_of(other, sizeof(other) - 1, 100);
    trigrams_to_filter(t, filter, sizeof(filter));
    assert_true(has(filter, sizeof(filter), "PG_LOSS", 7));
    assert_false(has(filter, sizeof(filter), "killed", 6));
    assert_false(has(filter, sizeof(filter), "pg-loss", 7));
    trigrams_join(t, u);
    trigrams_to_filter(t, filter, sizeof(filter));
    assert_true(has(filter, sizeof(filter), "killed", 6));
    assert_true(has(filter, sizeof(filter), "timing", 6));
    trigrams_clear(t);
    uint8_t none[512] = {0};
    trigrams_to_filter(t, none, sizeof(none));
    assert_false(has(none, sizeof(none), "timing", 6));
    free(t);
    free(u);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_never_misses),
                                       cmocka_unit_test(test_tells_apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
