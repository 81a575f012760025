/* SPDX-License-Identifier: Apache-2.0 */
/* gpurow.c - what a job used of its GPUs: the rows of a book, those that stay of earlier attempts,
 * and sums to which no attempt is lost. */
#include "argusd/figures/gpurow.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/unit.h"

/* The rows as they are kept. */
static json_t *kept_rows(const struct gpurow *v, size_t n)
{
    struct buf out = BUF_INIT(1 << 20);
    struct jout j = jout_begin(&out);
    json_t *rows = NULL;
    jout_open(&j, NULL, '[');
    for (size_t i = 0; i < n; i++)
        field_to_json(&gpurow_table, &v[i], FIELD_ALL, FIELD_ROW, &j, NULL);
    jout_close(&j, ']');
    assert_int_equal(json_parse(buf_str(&out), out.len, 1 << 20, &rows, NULL), 0);
    buf_release(&out);
    return rows;
}

/* What is kept at the end of this attempt, whose GPUs worked 10 s with 100 J each. */
static json_t *kept_after(json_t *before, int attempt, int gpus, size_t room)
{
    struct gpurow *v;
    size_t n = gpurow_earlier(before, attempt, room, &v);
    v = xrealloc(v, n + (size_t)gpus, sizeof(*v));
    for (int gpu = 0; gpu < gpus; gpu++, n++) {
        v[n] = (struct gpurow){.gpu = gpu,
                               .attempt = attempt,
                               .rank = -1,
                               .watched_s = 20,
                               .busy_s = 10,
                               .used_joules = 100,
                               .mem_peak_bytes = attempt};
        text_copy(v[n].node, "n1");
    }
    json_t *rows = kept_rows(v, n);
    json_decref(before);
    free(v);
    return rows;
}

static void check_sum(const json_t *rows, double joules)
{
    const struct gpurow sum = gpurow_sum(rows);
    assert_true(sum.used_joules == joules);
    assert_true(sum.busy_s == joules / 10);
    assert_true(sum.watched_s == joules / 5);
}

static void test_earlier_attempts_stay(void **state)
{
    json_t *rows = NULL;
    struct gpurow row;
    (void)state;
    for (int k = 1; k <= 20; k++) {
        rows = kept_after(rows, k, 2, GPUROW_ROWS_MAX);
        check_sum(rows, 200 * k);
        assert_true(gpurow_sum(rows).mem_peak_bytes == k);
        for (int old = 1; old <= k; old++)
            assert_int_equal(gpurow_find(rows, "n1", 1, old, &row), old > k - GPUROW_ATTEMPTS_MAX);
        assert_false(gpurow_find(rows, "n2", 1, k, &row));
        assert_false(gpurow_find(rows, "n1", 2, k, &row));
    }
    assert_int_equal(json_array_size(rows), 2 * GPUROW_ATTEMPTS_MAX + 1);
    json_decref(rows);
}

/* The attempt's own rows are written anew each time. */
static void test_an_attempt_replaces_its_own(void **state)
{
    (void)state;
    json_t *rows = kept_after(kept_after(NULL, 1, 2, 100), 2, 2, 100);
    rows = kept_after(rows, 2, 2, 100);
    assert_int_equal(json_array_size(rows), 4);
    check_sum(rows, 400);
    json_decref(rows);
}

static void test_what_has_no_room_is_in_the_sum(void **state)
{
    struct gpurow row;
    json_t *rows = NULL;
    (void)state;
    for (int k = 1; k <= 4; k++)
        rows = kept_after(rows, k, 10, 25);
    assert_int_equal(json_array_size(rows), 31);
    assert_false(gpurow_find(rows, "n1", 0, 1, &row));
    assert_true(gpurow_find(rows, "n1", 0, 2, &row));
    check_sum(rows, 4000);
    rows = kept_after(rows, 5, 1, 0);
    assert_int_equal(json_array_size(rows), 2);
    check_sum(rows, 4100);
    json_decref(rows);
}

static void test_of_nothing(void **state)
{
    struct gpurow *v, row;
    (void)state;
    assert_int_equal(gpurow_earlier(NULL, 3, 10, &v), 0);
    free(v);
    assert_false(gpurow_find(NULL, "n1", 0, 1, &row));
    row = gpurow_sum(NULL);
    assert_true(row.used_joules < 0 && row.busy_s < 0 && row.watched_s < 0);
}

/* A GPU on which none of its processes was seen is the job's where the lease has all of it. */
static void test_whose_work_it_is(void **state)
{
    struct gang_node node = {.name = (char[]){"n1"}, .gpus = 1 | 2};
    _cleanup_(freep) struct gpu_sample *book = xcalloc(1, sizeof(*book));
    struct gpurow rows[FIGURE_GPUS_MAX];
    (void)state;
    for (int i = 0; i < 3; i++) {
        gpu_card_init(&book->v[i]);
        book->v[i].index = i;
        book->v[i].watched_s = 100;
        book->v[i].busy_s = 50;
        book->v[i].used_joules = 1000;
    }
    book->n = 3;
    struct gpu_card *shared = &book->v[1];
    shared->is_ours = true;
    shared->n = 2;
    shared->v[0] = (struct gpu_process){.is_ours = true, .rank = 4, .busy_s = 10};
    shared->v[1] = (struct gpu_process){.rank = -1, .busy_s = 40};
    for (int has_part = 0; has_part < 2; has_part++) {
        assert_int_equal(gpurow_list(book, &node, 2, has_part, rows), 2);
        assert_true(rows[0].busy_s == (has_part ? -1 : 50));
        assert_true(rows[0].used_joules == (has_part ? -1 : 1000));
        assert_true(rows[0].watched_s == 100 && !rows[0].by_processes);
        assert_true(rows[1].busy_s == 10 && rows[1].used_joules == 200 && rows[1].rank == 4);
        assert_int_equal(rows[1].attempt, 2);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_earlier_attempts_stay),
        cmocka_unit_test(test_an_attempt_replaces_its_own),
        cmocka_unit_test(test_what_has_no_room_is_in_the_sum),
        cmocka_unit_test(test_of_nothing),
        cmocka_unit_test(test_whose_work_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
