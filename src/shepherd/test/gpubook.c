/* SPDX-License-Identifier: Apache-2.0 */
/* gpubook.c - what is added up: shares are never more than the whole, and nothing is lost or
 * doubled. */
#include "shepherd/scout/gpubook.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "base/unit.h"

/* Even pids are ours. */
static enum gpubook_is book_is(int pid, void *arg)
{
    int *asked = arg;
    (*asked)++;
    return pid % 2 ? GPUBOOK_STRANGER : GPUBOOK_OURS;
}

static double book_rank(int pid, void *arg)
{
    (void)arg;
    return pid / 2.0;
}

static struct gpu_card *sample_card(struct gpu_sample *s, const char *uuid, double util)
{
    struct gpu_card *c = &s->v[s->n];
    gpu_card_init(c);
    c->index = (int)s->n++;
    text_copy(c->uuid, uuid);
    c->util = util;
    c->power_watts = 100;
    return c;
}

static void card_process(struct gpu_card *c, int pid, double util, double mem)
{
    c->v[c->n++] = (struct gpu_process){
        .pid = pid, .util = util, .mem_bytes = mem, .mem_peak_bytes = -1, .rank = -1};
}

static void near(double a, double b)
{
    assert_true(fabs(a - b) < 1e-9);
}

static void test_sums(void **state)
{
    (void)state;
    int asked = 0;
    const struct gpubook_who who = {book_is, book_rank, &asked};
    _cleanup_(freep) struct gpu_sample *now = xcalloc(1, sizeof(*now)),
                                       *book = xcalloc(1, sizeof(*book));
    struct gpu_card *c = sample_card(now, "GPU-a", 0.6);
    card_process(c, 2, 0.5, 1000);
    card_process(c, 3, 0.5, 500); /* together more than the GPU worked: both are cut alike */
    sample_card(now, "GPU-b", 0);
    gpubook_add(book, now, 0, &who);
    assert_int_equal(book->n, 2);
    near(book->v[0].watched_s, 0);
    assert_true(book->v[0].is_ours && !book->v[1].is_ours);
    near(book->v[0].v[0].rank, 1);
    now->v[0].v[0].mem_bytes = 700;
    gpubook_add(book, now, 10 * USEC_SEC, &who);
    gpubook_add(book, now, USEC_HOUR, &who); /* the machine slept: a minute counts */
    near(book->v[0].watched_s, 70);
    near(book->v[0].busy_s, 42);
    near(book->v[0].v[0].busy_s, 21);
    near(book->v[0].v[1].busy_s, 21);
    near(book->v[0].v[0].mem_peak_bytes, 1000);
    near(book->v[0].v[0].mem_bytes, 700);
    near(book->v[0].used_joules, 7000);
    near(book->v[1].busy_s, 0);
    near(book->v[1].watched_s, 70);
}

static void test_counter_of_energy(void **state)
{
    (void)state;
    int asked = 0;
    const struct gpubook_who who = {book_is, book_rank, &asked};
    _cleanup_(freep) struct gpu_sample *now = xcalloc(1, sizeof(*now)),
                                       *book = xcalloc(1, sizeof(*book));
    sample_card(now, "GPU-a", 1)->energy_joules = 5000;
    gpubook_add(book, now, 0, &who);
    now->v[0].energy_joules = 6500;
    gpubook_add(book, now, 10 * USEC_SEC, &who);
    near(book->v[0].used_joules, 1500);
    now->v[0].energy_joules = 10; /* the driver was loaded anew: what it draws counts */
    gpubook_add(book, now, 10 * USEC_SEC, &who);
    near(book->v[0].used_joules, 2500);
}

static void test_one_process_of_which_nothing_is_told(void **state)
{
    (void)state;
    int asked = 0;
    const struct gpubook_who who = {book_is, book_rank, &asked};
    _cleanup_(freep) struct gpu_sample *now = xcalloc(1, sizeof(*now)),
                                       *book = xcalloc(1, sizeof(*book));
    card_process(sample_card(now, "GPU-a", 0.5), 4, -1, -1);
    gpubook_add(book, now, 10 * USEC_SEC, &who);
    near(book->v[0].v[0].busy_s, 5);
    now->v[0].n = 0;
    now->v[0].xid = 79;
    gpubook_add(book, now, 10 * USEC_SEC, &who);
    now->v[0].xid = 0;
    gpubook_add(book, now, 10 * USEC_SEC, &who);
    assert_false(book->v[0].v[0].lives);
    near(book->v[0].v[0].busy_s, 5);
    near(book->v[0].xid, 79);
    assert_int_equal(asked, 1); /* whose it is was known from then on */
}

static void test_processes_of_which_nothing_is_told(void **state)
{
    (void)state;
    int asked = 0;
    const struct gpubook_who who = {book_is, book_rank, &asked};
    _cleanup_(freep) struct gpu_sample *now = xcalloc(1, sizeof(*now)),
                                       *book = xcalloc(1, sizeof(*book));
    struct gpu_card *c = sample_card(now, "GPU-a", 0.8);
    card_process(c, 4, -1, -1);
    card_process(c, 6, -1, -1);
    gpubook_add(book, now, 10 * USEC_SEC, &who);
    near(book->v[0].v[0].busy_s, 4);
    near(book->v[0].v[1].busy_s, 4);
    c->v[0].util = 0.8; /* of one it is told: the other one did nothing */
    gpubook_add(book, now, 10 * USEC_SEC, &who);
    near(book->v[0].v[0].busy_s, 12);
    near(book->v[0].v[1].busy_s, 4);
}

static void test_an_address_stays(void **state)
{
    (void)state;
    int asked = 0;
    const struct gpubook_who who = {book_is, book_rank, &asked};
    _cleanup_(freep) struct gpu_sample *now = xcalloc(1, sizeof(*now)),
                                       *book = xcalloc(1, sizeof(*book));
    struct gpu_card *c = sample_card(now, "GPU-a", 0.5);
    text_copy(c->pci, "00000000:3B:00.0");
    gpubook_add(book, now, 0, &who);
    c->pci[0] = 0; /* it fell off the bus */
    gpubook_add(book, now, 0, &who);
    assert_int_equal(book->n, 1);
    assert_string_equal(book->v[0].pci, "00000000:3B:00.0");
}

static enum gpubook_is book_is_as_told(int pid, void *arg)
{
    (void)pid;
    return *(enum gpubook_is *)arg;
}

/* It is asked anew at each sample, until it is ours. */
static void test_a_process_of_another_job(void **state)
{
    (void)state;
    enum gpubook_is is = GPUBOOK_UNKNOWN;
    const struct gpubook_who who = {book_is_as_told, book_rank, &is};
    _cleanup_(freep) struct gpu_sample *now = xcalloc(1, sizeof(*now)),
                                       *book = xcalloc(1, sizeof(*book));
    const struct gpu_process *p = &book->v[0].v[0];
    card_process(sample_card(now, "GPU-a", 0.8), 4, 0.8, -1);
    gpubook_add(book, now, 0, &who);
    assert_false(p->is_anothers || p->is_ours);
    is = GPUBOOK_ANOTHERS;
    gpubook_add(book, now, 0, &who);
    assert_true(p->is_anothers && !p->is_ours);
    is = GPUBOOK_OURS;
    gpubook_add(book, now, 0, &who);
    assert_true(p->is_ours && !p->is_anothers && book->v[0].is_ours);
}

static void test_many_processes(void **state)
{
    (void)state;
    int asked = 0;
    const struct gpubook_who who = {book_is, book_rank, &asked};
    _cleanup_(freep) struct gpu_sample *now = xcalloc(1, sizeof(*now)),
                                       *book = xcalloc(1, sizeof(*book));
    struct gpu_card *c = sample_card(now, "GPU-a", 0.5);
    card_process(c, 2, 0.5, 1);
    for (int pid = 5; pid < 500; pid += 2) {
        c->n = 1;
        card_process(c, pid, 0, 1);
        gpubook_add(book, now, USEC_SEC, &who);
    }
    assert_int_equal(book->v[0].n, GPU_PROCESSES_MAX);
    assert_int_equal(book->v[0].v[0].pid, 2);
    bool is_newest_there = false;
    for (size_t i = 0; i < book->v[0].n; i++)
        is_newest_there |= book->v[0].v[i].pid == 499;
    assert_true(is_newest_there);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_counter_of_energy),
        cmocka_unit_test(test_one_process_of_which_nothing_is_told),
        cmocka_unit_test(test_processes_of_which_nothing_is_told),
        cmocka_unit_test(test_a_process_of_another_job),
        cmocka_unit_test(test_many_processes),
        cmocka_unit_test(test_an_address_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
