/* SPDX-License-Identifier: Apache-2.0 */
/* figure_block.c - random records come back as they were written, from files that were cut or
 * damaged up to that place. */
#include "core/figure/figure_block.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/crc.h"
#include "base/unit.h"

static uint32_t block_dice = 12345;

static uint32_t roll_dice(uint32_t sides)
{
    block_dice = block_dice * 1664525u + 1013904223u;
    return (block_dice >> 8) % sides;
}

static int32_t any_value(void)
{
    switch (roll_dice(8)) {
    case 0:
        return FIGURE_UNTOLD;
    case 1:
        return INT32_MAX;
    case 2:
        return INT32_MIN + 1;
    case 3:
        return (int32_t)roll_dice(1u << 24) - (1 << 23);
    default:
        return (int32_t)roll_dice(3);
    }
}

static struct figure_record *any_record(int64_t slot, int n_gpus)
{
    struct figure_record *r = xcalloc(1, sizeof(*r));
    r->slot = slot;
    r->n_gpus = n_gpus;
    r->is_rollup = roll_dice(2);
    for (size_t c = 0; c < figure_columns(n_gpus); c++) {
        int32_t v[FIGURE_ROLL];
        for (int i = 0; i < FIGURE_ROLL; i++)
            v[i] = any_value();
        if (r->is_rollup)
            r->rolls[c] = figure_roll_of(v, FIGURE_ROLL);
        else
            memcpy(r->samples[c], v, sizeof(v));
    }
    return r;
}

static bool is_same(const struct figure_record *a, const struct figure_record *b)
{
    size_t columns = figure_columns(a->n_gpus);
    return a->is_rollup == b->is_rollup && a->slot == b->slot && a->n_gpus == b->n_gpus &&
           !memcmp(a->samples, b->samples,
                   a->is_rollup ? columns * sizeof(*a->rolls) : columns * sizeof(*a->samples));
}

enum { RECORDS = 40 };

/* A file of random records, and where each begins. */
static void fill_file(struct buf *file, struct figure_record **wrote, size_t *starts)
{
    struct figure_before before = {0};
    for (int i = 0; i < RECORDS; i++) {
        wrote[i] = any_record((int64_t)i * FIGURE_ROLL, (int)roll_dice(3) * 4);
        starts[i] = file->len;
        assert_int_equal(figure_record_put(wrote[i], &before, file), 0);
    }
    figure_before_release(&before);
}

/* How many records can be read, each the one that was written. */
static int count_good(const unsigned char *p, size_t n, struct figure_record **wrote, int *ret_end)
{
    struct figure_before before = {0};
    struct figure_record *got = xcalloc(1, sizeof(*got));
    size_t at = 0;
    int good = 0;
    while ((*ret_end = figure_record_get(p, n, &at, &before, got)) > 0)
        assert_true(is_same(got, wrote[good++]));
    figure_before_release(&before);
    free(got);
    return good;
}

static void test_back(void **state)
{
    (void)state;
    struct buf file = BUF_INIT(8 << 20);
    struct figure_record *wrote[RECORDS];
    size_t starts[RECORDS];
    int end;
    fill_file(&file, wrote, starts);
    const unsigned char *p = (const unsigned char *)file.data;
    assert_int_equal(count_good(p, file.len, wrote, &end), RECORDS);
    assert_int_equal(end, 0);
    /* Cut anywhere, all whole records before are good, and the end is told. */
    for (int i = 0; i < RECORDS; i++) {
        size_t length = (i + 1 < RECORDS ? starts[i + 1] : file.len) - starts[i];
        size_t cut = starts[i] + 1 + roll_dice((uint32_t)length - 1);
        assert_int_equal(count_good(p, cut, wrote, &end), i);
        assert_int_equal(end, -EBADMSG);
    }
    /* A byte that fell over is met. */
    for (int i = 0; i < RECORDS; i++) {
        file.data[starts[i] + 9] ^= 1;
        assert_int_equal(count_good(p, file.len, wrote, &end), i);
        assert_int_equal(end, -EBADMSG);
        file.data[starts[i] + 9] ^= 1;
    }
    for (int i = 0; i < RECORDS; i++)
        free(wrote[i]);
    buf_release(&file);
}

/* What does not change costs next to nothing. */
static void test_small(void **state)
{
    (void)state;
    struct figure_record *r = xcalloc(1, sizeof(*r));
    struct figure_before before = {0};
    struct buf file = BUF_INIT(1 << 20);
    r->n_gpus = 8;
    for (size_t c = 0; c < figure_columns(8); c++)
        for (int i = 0; i < FIGURE_ROLL; i++)
            r->samples[c][i] = 81559;
    assert_int_equal(figure_record_put(r, &before, &file), 0);
    size_t first = file.len;
    assert_int_equal(figure_record_put(r, &before, &file), 0);
    assert_true(file.len - first < 20);
    /* No room: nothing is built upon, and the next one begins anew. */
    struct buf tiny = BUF_INIT(10);
    assert_int_equal(figure_record_put(r, &before, &tiny), -EMSGSIZE);
    assert_false(before.is_begun);
    buf_release(&tiny);
    buf_release(&file);
    figure_before_release(&before);
    free(r);
}

/* Appends a record as it was then. runs: its tokens. */
static void add_old_record(struct buf *file, unsigned char kind, const char *runs, size_t n)
{
    struct buf body = BUF_INIT(100);
    const unsigned char head[] = {kind, 0, 1, 40}; /* no GPU, begins anew, slot */
    assert_int_equal(buf_add(&body, head, sizeof(head)), 0);
    assert_int_equal(buf_add(&body, runs, n), 0);
    uint32_t words[] = {(uint32_t)body.len, crc32_add(0, body.data, body.len)};
    for (int i = 0; i < 2; i++)
        for (int shift = 0; shift < 32; shift += 8)
            assert_int_equal(buf_addc(file, (char)(words[i] >> shift)), 0);
    assert_int_equal(buf_add(file, body.data, body.len), 0);
    buf_release(&body);
}

/* Files of before the RDMA figures: what they have is read, what they lack nobody told, and records
 * of today follow in the same file. */
static void test_old_files(void **state)
{
    (void)state;
    /* 7, 19 times the same, 11 columns of 20 that nobody told; mean, max, min and n of a rollup. */
    static const char samples[] = "\x38\x4d\xf2\x06", rolls[] = "\x38\x2e\x05\x2e\x05\x2e\x05\x2e";
    struct buf file = BUF_INIT(1 << 20);
    struct figure_before writer = {0}, reader = {0};
    struct figure_record *r = xcalloc(1, sizeof(*r)), *wrote = any_record(60, 2);
    add_old_record(&file, 's', samples, sizeof(samples) - 1);
    add_old_record(&file, 'r', rolls, sizeof(rolls) - 1);
    assert_int_equal(figure_record_put(wrote, &writer, &file), 0);
    const unsigned char *p = (const unsigned char *)file.data;
    size_t at = 0;
    assert_int_equal(figure_record_get(p, file.len, &at, &reader, r), 1);
    assert_false(r->is_rollup);
    assert_int_equal(r->slot, 40);
    for (size_t c = 0; c < figure_columns(0); c++)
        for (int i = 0; i < FIGURE_ROLL; i++)
            assert_int_equal(r->samples[c][i], c ? FIGURE_UNTOLD : 7);
    assert_int_equal(figure_record_get(p, file.len, &at, &reader, r), 1);
    assert_true(r->is_rollup && r->rolls[0].mean == 7 && r->rolls[0].max == 7);
    assert_true(r->rolls[0].min == 7 && r->rolls[0].n == FIGURE_ROLL);
    for (size_t c = 1; c < figure_columns(0); c++)
        assert_true(r->rolls[c].n == 0 && r->rolls[c].mean == FIGURE_UNTOLD);
    assert_int_equal(figure_record_get(p, file.len, &at, &reader, r), 1);
    assert_true(is_same(r, wrote));
    figure_before_release(&writer);
    figure_before_release(&reader);
    buf_release(&file);
    free(wrote);
    free(r);
}

static void test_roll(void **state)
{
    (void)state;
    int32_t v[] = {4, FIGURE_UNTOLD, 1, 8};
    struct figure_roll roll = figure_roll_of(v, 4);
    assert_true(roll.n == 3 && roll.max == 8 && roll.min == 1 && roll.mean == 4);
    roll = figure_roll_of(v + 1, 1);
    assert_true(roll.n == 0 && roll.mean == FIGURE_UNTOLD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_back),
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_old_files),
        cmocka_unit_test(test_roll),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
