/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_card.c - a sample is the same after it was written and read, and one that lies does no harm.
 */
#include "core/figure/gpu_card.h"

#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/unit.h"

static struct gpu_sample *sample_make(void)
{
    struct gpu_sample *s = xcalloc(1, sizeof(*s));
    *s = (struct gpu_sample){.at = 1234567, .driver = "570.00", .n = 2};
    for (int i = 0; i < 2; i++) {
        gpu_card_init(&s->v[i]);
        s->v[i].index = i;
    }
    text_copy(s->v[1].uuid, "GPU-1");
    s->v[1].util = 0.25;
    s->v[1].busy_s = 7.5;
    s->v[1].is_ours = true;
    s->v[1].n = 1;
    s->v[1].v[0] = (struct gpu_process){.pid = 42,
                                        .util = 0.25,
                                        .mem_bytes = -1,
                                        .mem_peak_bytes = 1024,
                                        .is_ours = true,
                                        .lives = true,
                                        .rank = 3,
                                        .busy_s = 7.5};
    return s;
}

static void test_round(void **state)
{
    (void)state;
    _cleanup_(freep) struct gpu_sample *s = sample_make(), *back = xcalloc(1, sizeof(*back));
    for (int with_book = 0; with_book < 2; with_book++) {
        struct buf out = BUF_INIT(GPU_BOOK_MAX_BYTES);
        gpu_sample_put(s, &out, with_book);
        assert_true(gpu_sample_read(buf_str(&out), out.len, back));
        assert_int_equal(back->at, 1234567);
        assert_string_equal(back->driver, "570.00");
        assert_int_equal(back->n, 2);
        assert_true(back->v[0].util < 0 && back->v[0].temperature_celsius < 0);
        assert_string_equal(back->v[1].uuid, "GPU-1");
        assert_true(back->v[1].util == 0.25);
        assert_int_equal(back->v[1].v[0].pid, 42);
        assert_true(back->v[1].v[0].mem_bytes < 0);
        assert_true(back->v[1].v[0].rank == (with_book ? 3 : -1));
        assert_int_equal(back->v[1].is_ours, with_book);
        assert_true(back->v[1].busy_s == (with_book ? 7.5 : 0));
        buf_release(&out);
    }
}

static void test_lies(void **state)
{
    (void)state;
    static const char *const none[] = {"", "[]", "7", "{\"gpus\": [", "\"gpus\""};
    _cleanup_(freep) struct gpu_sample *s = xcalloc(1, sizeof(*s));
    for (size_t i = 0; i < array_len(none); i++)
        assert_false(gpu_sample_read(none[i], strlen(none[i]), s));
    static const char lie[] =
        "{\"at\": -5, \"trouble\": \"\\u001b[31m\", \"gpus\": [7, {}, {\"index\": 64}, {\"index\": -1},"
        " {\"index\": 3, \"util\": 1e300, \"mem_used_bytes\": -7, \"uuid\": 5, \"processes\": 7},"
        " {\"index\": 4, \"util\": \"x\", \"processes\": [1, {\"pid\": \"no\", \"busy_s\": -1}]}]}";
    assert_true(gpu_sample_read(lie, strlen(lie), s));
    assert_int_equal(s->at, 0);
    assert_string_equal(s->trouble, "?[31m");
    assert_int_equal(s->n, 2);
    assert_true(s->v[0].util < 0 && s->v[0].mem_used_bytes < 0);
    assert_string_equal(s->v[0].uuid, "");
    assert_int_equal(s->v[0].n, 0);
    assert_int_equal(s->v[1].n, 1);
    assert_true(s->v[1].v[0].busy_s <= 0);
}

static void test_ceilings(void **state)
{
    (void)state;
    _cleanup_(freep) struct gpu_sample *s = xcalloc(1, sizeof(*s));
    struct buf text = BUF_INIT(GPU_BOOK_MAX_BYTES);
    (void)buf_adds(&text, "{\"gpus\": [");
    for (int i = 0; i < 100; i++)
        (void)buf_addf(&text, "%s{\"index\": %d, \"processes\": [", i ? "," : "", i % 64);
    buf_reset(&text);
    (void)buf_adds(&text, "{\"gpus\": [");
    for (int i = 0; i < 200; i++)
        (void)buf_addf(&text, "%s{\"index\": %d}", i ? "," : "", i % 64);
    (void)buf_adds(&text, ", {\"index\": 0}]}");
    assert_true(gpu_sample_read(buf_str(&text), text.len, s));
    assert_int_equal(s->n, FIGURE_GPUS_MAX);
    buf_reset(&text);
    (void)buf_adds(&text, "{\"gpus\": [{\"index\": 0, \"processes\": [");
    for (int i = 0; i < 200; i++)
        (void)buf_addf(&text, "%s{\"pid\": %d}", i ? "," : "", i);
    (void)buf_adds(&text, "]}]}");
    assert_true(gpu_sample_read(buf_str(&text), text.len, s));
    assert_int_equal(s->v[0].n, GPU_PROCESSES_MAX);
    buf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round),
        cmocka_unit_test(test_lies),
        cmocka_unit_test(test_ceilings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
