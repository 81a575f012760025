/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of argusd/ground/events_chain.h: what was done to a row is found, and where. */
#include "argusd/ground/events_chain.h"

#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include "base/digest/hash.h"
#include "base/mem.h"
#include "base/str.h"

#include <cmocka.h>

enum { ROWS = 9 };

struct chain {
    struct store_event rows[ROWS];
    unsigned char hashes[ROWS][STORE_HASH_BYTES];
};

/* Rows 1 … ROWS, the first `bare` of them from before there was a chain. */
static void make(struct chain *c, size_t bare)
{
    unsigned char prev[STORE_HASH_BYTES] = {0};
    for (size_t i = 0; i < ROWS; i++) {
        c->rows[i] = (struct store_event){.seq = (int64_t)i + 1,
                                          .at = 1000 + i,
                                          .job_seq = (int64_t)i % 3,
                                          .kind = "state",
                                          .actor = i % 2 ? "ann" : "argusd",
                                          .from_state = i % 2 ? "QUEUED" : NULL,
                                          .text = "x",
                                          .data = i % 3 ? "{}" : NULL,
                                          .object = "node/n1"};
        if (i < bare)
            continue;
        events_chain(prev, &c->rows[i], prev);
        memcpy(c->hashes[i], prev, sizeof(prev));
        c->rows[i].hash = c->hashes[i];
    }
}

static struct events_check check(const struct store_event *rows, size_t n)
{
    struct events_check k = {0};
    for (size_t i = 0; i < n; i++)
        events_check_add(&k, &rows[i]);
    return k;
}

/* What is hashed is part of each store: short and long texts one behind the other, with their
 * lengths. */
static void test_form(void **state)
{
    unsigned char hash[STORE_HASH_BYTES];
    char data[251], text[701], hex[HASH_HEX];
    (void)state;
    memset(text, 'y', 700);
    memset(data, 'z', 250);
    text[700] = data[250] = 0;
    for (size_t i = 0; i < sizeof(hash); i++)
        hash[i] = (unsigned char)i;
    const struct store_event row = {.seq = 7,
                                    .at = 1000,
                                    .job_seq = 3,
                                    .kind = "state",
                                    .actor = "ann",
                                    .from_state = "QUEUED",
                                    .reason_code = "",
                                    .text = text,
                                    .data = data,
                                    .object = "node/n1"};
    events_chain(hash, &row, hash);
    assert_string_equal(str_hex(hash, sizeof(hash), hex),
                        "876fc1136a9529c2a3c3d9dababd8931c3e9c7e9b659b522f44613e9fcf512c6");
}

static void test_whole(void **state)
{
    struct chain c;
    struct events_check k;
    (void)state;
    for (size_t bare = 0; bare <= ROWS; bare++) {
        make(&c, bare);
        k = check(c.rows, ROWS);
        assert_int_equal(k.broken_seq, 0);
        assert_int_equal(k.count, ROWS);
        assert_int_equal(k.chained, ROWS - bare);
        assert_int_equal(k.last_seq, ROWS);
        if (bare < ROWS)
            assert_memory_equal(k.hash, c.hashes[ROWS - 1], sizeof(k.hash));
    }
}

static void test_each_member_counts(void **state)
{
    const struct store_event same = {.seq = 1, .kind = "a", .actor = "b"};
    const struct store_event others[] = {
        {.seq = 2, .kind = "a", .actor = "b"},
        {.seq = 1, .at = 1, .kind = "a", .actor = "b"},
        {.seq = 1, .job_seq = 1, .kind = "a", .actor = "b"},
        {.seq = 1, .kind = "ab"},
        {.seq = 1, .kind = "ab", .actor = ""},
        {.seq = 1, .actor = "a", .from_state = "b"},
        {.seq = 1, .kind = "a", .actor = "b", .from_state = ""},
        {.seq = 1, .kind = "a", .actor = "b", .to_state = ""},
        {.seq = 1, .kind = "a", .actor = "b", .reason_code = ""},
        {.seq = 1, .kind = "a", .actor = "b", .text = ""},
        {.seq = 1, .kind = "a", .actor = "b", .data = ""},
        {.seq = 1, .kind = "a", .actor = "b", .object = ""},
    };
    unsigned char zeros[STORE_HASH_BYTES] = {0}, first[STORE_HASH_BYTES], h[STORE_HASH_BYTES];
    (void)state;
    events_chain(zeros, &same, first);
    events_chain(zeros, &same, h);
    assert_memory_equal(first, h, sizeof(h));
    for (size_t i = 0; i < array_len(others); i++) {
        events_chain(zeros, &others[i], h);
        assert_memory_not_equal(first, h, sizeof(h));
    }
    events_chain(first, &same, h);
    assert_memory_not_equal(first, h, sizeof(h));
}

static void test_changed(void **state)
{
    struct chain c;
    (void)state;
    for (size_t i = 0; i < ROWS; i++) {
        make(&c, 0);
        c.rows[i].actor = "eve";
        assert_int_equal(check(c.rows, ROWS).broken_seq, i + 1);
        assert_non_null(check(c.rows, ROWS).why);
        /* With a hash made anew for it: the next one tells. */
        events_chain(i ? c.hashes[i - 1] : (unsigned char[STORE_HASH_BYTES]){0}, &c.rows[i],
                     c.hashes[i]);
        assert_int_equal(check(c.rows, ROWS).broken_seq, i + 1 < ROWS ? i + 2 : 0);
        c.rows[i].hash = NULL;
        assert_int_equal(check(c.rows, ROWS).broken_seq, i ? i + 1 : 2);
    }
}

static void test_removed_and_moved(void **state)
{
    struct chain c;
    (void)state;
    for (size_t i = 0; i + 1 < ROWS; i++) {
        make(&c, 0);
        memmove(&c.rows[i], &c.rows[i + 1], (ROWS - i - 1) * sizeof(c.rows[0]));
        assert_int_equal(check(c.rows, ROWS - 1).broken_seq, i + 2);
        make(&c, 0);
        c.rows[i].seq = (int64_t)i + 2; /* they changed places */
        c.rows[i + 1].seq = (int64_t)i + 1;
        struct store_event t = c.rows[i];
        c.rows[i] = c.rows[i + 1];
        c.rows[i + 1] = t;
        assert_int_equal(check(c.rows, ROWS).broken_seq, i + 1);
    }
}

static void test_cut_off(void **state)
{
    struct events_check k = {.has_expected = true};
    struct chain c;
    (void)state;
    make(&c, 2);
    memcpy(k.expected, c.hashes[ROWS - 3], sizeof(k.expected));
    for (size_t i = 0; i < ROWS - 3; i++)
        events_check_add(&k, &c.rows[i]);
    assert_int_equal(k.broken_seq, 0);
    assert_int_equal(k.expected_seq, 0);
    events_check_add(&k, &c.rows[ROWS - 3]);
    assert_int_equal(k.expected_seq, ROWS - 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_form),
        cmocka_unit_test(test_whole),
        cmocka_unit_test(test_each_member_counts),
        cmocka_unit_test(test_changed),
        cmocka_unit_test(test_removed_and_moved),
        cmocka_unit_test(test_cut_off),
    };
    hash_init();
    return cmocka_run_group_tests_name("argusd/events_chain", tests, NULL, NULL);
}
