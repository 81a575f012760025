/* SPDX-License-Identifier: Apache-2.0 */
/* gpu_card.c - a sample is the same after it was written and read, and one that lies does no harm.
 */
#include "core/figure/gpu_card.h"

#include <math.h>
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
    text_copy(s->v[1].pci, "00000000:3B:00.0");
    s->v[1].util = 0.25;
    s->v[1].busy_s = 7.5;
    s->v[1].is_ours = true;
    s->v[1].n = 1;
    s->v[1].v[0] = (struct gpu_process){.pid = 42,
                                        .util = 0.25,
                                        .mem_bytes = -1,
                                        .mem_peak_bytes = 1024,
                                        .is_ours = true,
                                        .is_anothers = true,
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
        assert_string_equal(back->v[1].pci, "00000000:3B:00.0");
        assert_true(back->v[1].util == 0.25);
        assert_int_equal(back->v[1].v[0].pid, 42);
        assert_true(back->v[1].v[0].mem_bytes < 0);
        assert_true(back->v[1].v[0].rank == (with_book ? 3 : -1));
        assert_int_equal(back->v[1].is_ours, with_book);
        assert_int_equal(back->v[1].v[0].is_anothers, with_book);
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

/* The attempt's part on a card with these uses of its process and of another job's; -1: not told.
 */
static double own_part(struct gpu_card *c, double ours, double other)
{
    bool is_shared = false;
    c->is_ours = true;
    c->n = 3;
    c->v[0] = (struct gpu_process){.util = ours, .is_ours = true, .lives = true};
    c->v[1] = (struct gpu_process){.util = other, .is_anothers = true, .lives = true};
    c->v[2] = (struct gpu_process){.util = 0.9, .is_anothers = true}; /* it is gone */
    double own = gpu_card_own(c, &is_shared);
    assert_true(is_shared);
    return own;
}

static void check_own_parts(struct gpu_card *c, double ours, double other, double want)
{
    double mine = own_part(c, ours, other), others = own_part(c, other, ours);
    assert_true(fabs(mine - want) < 1e-9);
    assert_true(fabs(mine + others - c->util) < 1e-9); /* nothing is lost, nothing told twice */
}

static void test_own_part(void **state)
{
    struct gpu_card c;
    bool is_shared = true;
    (void)state;
    gpu_card_init(&c);
    c.util = 0.8;
    check_own_parts(&c, 0, 0.8, 0);
    check_own_parts(&c, 0.6, 0.2, 0.6);
    check_own_parts(&c, 0.9, 0.3, 0.6); /* together more than the GPU worked: both are cut alike */
    check_own_parts(&c, 0.1, 0.3, 0.2); /* and less, where a process ended meanwhile */
    check_own_parts(&c, -1, 0.4, 0);    /* of one that rests the driver tells nothing */
    check_own_parts(&c, 0, 0, 0.4);
    assert_true(own_part(&c, -1, -1) < 0); /* of no process it is told, as in a container */
    (void)own_part(&c, 0, 0.8);
    c.v[0].lives = false; /* its process has left the GPU to the other one */
    assert_true(gpu_card_own(&c, &is_shared) == 0 && is_shared);
    c.v[0].lives = true;
    c.v[1].lives = false; /* it is alone: all that the GPU does is its work */
    assert_true(gpu_card_own(&c, &is_shared) == 0.8 && !is_shared);
    c.util = -1;
    assert_true(gpu_card_own(&c, &is_shared) < 0);
    c.util = 0.8;
    c.is_ours = false; /* none of its processes was ever there */
    assert_true(gpu_card_own(&c, &is_shared) < 0);
}

/* It may be the job's own, which was not seen as that: the job is not to be called idle. */
static void test_work_of_nobody_known(void **state)
{
    struct gpu_card c;
    bool is_shared = true;
    (void)state;
    gpu_card_init(&c);
    c.util = 0.8;
    (void)own_part(&c, 0, 0.8);
    c.v[1].is_anothers = false;
    assert_true(gpu_card_own(&c, &is_shared) == 0.8 && !is_shared);
    c.n = 4;
    c.v[3] = (struct gpu_process){.util = 0.8, .is_anothers = true, .lives = true};
    assert_true(fabs(gpu_card_own(&c, &is_shared) - 0.4) < 1e-9 && is_shared);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round),
        cmocka_unit_test(test_lies),
        cmocka_unit_test(test_ceilings),
        cmocka_unit_test(test_own_part),
        cmocka_unit_test(test_work_of_nobody_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
