/* SPDX-License-Identifier: Apache-2.0 */
/* Samples in memory: each column keeps what its figure can be in as few bytes as that takes, and no
 * sample touches another one. */
#include <math.h>
#include <stdlib.h>

#include "argusd/figures/figures_state.h"
#include "base/text.h"
#include "base/unit.h"

enum { GPUS = 3, FIRST = 1000 };

/* The most that each figure of a GPU is expected to be, in its steps. */
static const int64_t most_of[] = {
    [FIGURE_GPU_UTIL] = 100,          [FIGURE_GPU_MEM_USED] = 4 << 20, /* MiB */
    [FIGURE_GPU_MEM_TOTAL] = 4 << 20, [FIGURE_GPU_POWER] = 20000,
    [FIGURE_GPU_TEMPERATURE] = 200,   [FIGURE_GPU_XID] = 9999,
    [FIGURE_GPU_ECC] = 1 << 20,
};

static int64_t value_of(size_t column, int64_t slot)
{
    int64_t most = column < FIGURE_NODE_FIGURES ? INT32_MAX : most_of[figure_of_column(column)];
    return slot % 3 == 0 ? most : (int64_t)(column * 31 + (size_t)slot * 7) % (most + 1);
}

static void fill_slots(struct figures_node *n, int gpus, int64_t from, int64_t to)
{
    for (int64_t slot = from; slot < to; slot++) {
        figures_make_room(n, gpus, slot);
        for (size_t c = 0; c < figure_columns(gpus); c++)
            figures_set(n, c, slot, value_of(c, slot));
    }
}

static void check_slots(const struct figures_node *n, int gpus, int64_t from, int64_t to)
{
    for (int64_t slot = from; slot < to; slot++)
        for (size_t c = 0; c < figure_columns(gpus); c++)
            assert_int_equal(figures_cell(n, c, slot), value_of(c, slot));
}

static void test_each_keeps_what_it_can_be(void **state)
{
    struct figures_node *n = xcalloc(1, sizeof(*n));
    (void)state;
    fill_slots(n, GPUS, FIRST, FIRST + FIGURES_SHORT);
    check_slots(n, GPUS, FIRST, FIRST + FIGURES_SHORT);
    fill_slots(n, GPUS, FIRST + FIGURES_SHORT, FIRST + FIGURES_SHORT + 5); /* over the oldest */
    check_slots(n, GPUS, FIRST + 5, FIRST + FIGURES_SHORT + 5);
    figures_node_free(n);
}

static void test_a_gpu_more_leaves_the_others(void **state)
{
    struct figures_node *n = xcalloc(1, sizeof(*n));
    (void)state;
    fill_slots(n, 1, FIRST, FIRST + 10);
    fill_slots(n, GPUS, FIRST + 10, FIRST + 11);
    check_slots(n, 1, FIRST, FIRST + 10);
    check_slots(n, GPUS, FIRST + 10, FIRST + 11);
    for (size_t c = figure_columns(1); c < figure_columns(GPUS); c++)
        assert_int_equal(figures_cell(n, c, FIRST + 9), FIGURE_UNTOLD);
    figures_node_free(n);
}

static void test_what_does_not_fit_is_untold(void **state)
{
    struct figures_node *n = xcalloc(1, sizeof(*n));
    static const int64_t odd[] = {FIGURE_NONE, INT64_MAX, INT64_C(1) << 40, -(INT64_C(1) << 40)};
    (void)state;
    figures_make_room(n, GPUS, FIRST);
    for (size_t c = 0; c < figure_columns(GPUS); c++) {
        for (size_t i = 0; i < array_len(odd); i++) {
            figures_set(n, c, FIRST, odd[i]);
            assert_int_equal(figures_cell(n, c, FIRST), FIGURE_UNTOLD);
        }
        figures_set(n, c, FIRST, -1);
        assert_int_equal(figures_cell(n, c, FIRST), -1);
    }
    figures_node_free(n);
}

/* Ray's page, which comes at the same time and says nothing of RDMA, takes nothing back. */
static void test_rdma_stays_beside_a_page(void **state)
{
    static const unsigned char seed[16];
    struct figures fs = {.nodes = map_new(seed)};
    struct figures_node *n = xcalloc(1, sizeof(*n));
    struct figure_page *page = xcalloc(1, sizeof(*page));
    const struct rdma_rate rate = {.received = 100 * 65536.0, .sent = 0};
    (void)state;
    (void)map_set(fs.nodes, "n1", n); /* there was none */
    assert_true(isnan(figures_now(&fs, "n1", FIGURE_RDMA_RECEIVED, -1)));
    figures_put_rdma(&fs, "n1", &rate);
    figures_put_rdma(&fs, "n2", &rate); /* nobody knows it */
    figure_page_init(page);
    page->v[FIGURE_NET_SENT] = 5;
    figures_put(n, figure_slot(clock_wall()), page);
    assert_true(figures_now(&fs, "n1", FIGURE_RDMA_RECEIVED, -1) == rate.received);
    assert_true(figures_now(&fs, "n1", FIGURE_RDMA_SENT, -1) == 0);
    assert_true(figures_now(&fs, "n1", FIGURE_NET_SENT, -1) == 5 * 65536.0);
    assert_true(isnan(figures_now(&fs, "n1", FIGURE_NET_RECEIVED, -1)));
    free(page);
    figures_node_free(n);
    map_free(fs.nodes);
}

/* GPU 0 of a node, and two jobs on it. */
struct shared_gpu {
    struct figures fs;
    struct figures_node *n;
    struct gang_node node;
    struct gpu_sample *book;
};

static void shared_open(struct shared_gpu *s)
{
    static const unsigned char seed[16];
    static char name[] = "n1";
    *s = (struct shared_gpu){.fs = {.nodes = map_new(seed)},
                             .n = xcalloc(1, sizeof(*s->n)),
                             .node = {.name = name, .gpus = 1},
                             .book = xcalloc(1, sizeof(*s->book))};
    (void)map_set(s->fs.nodes, name, s->n); /* there was none */
    s->book->n = 1;
    gpu_card_init(&s->book->v[0]);
}

static void shared_close(struct shared_gpu *s)
{
    figures_node_free(s->n);
    map_free(s->fs.nodes);
    free(s->book);
}

/* The book of a job beside whose process another one lives. The driver's word of the GPU comes
 * after it, so that the test does not mind when a slot ends between the two. */
static void shared_tell(struct shared_gpu *s, const char *job, double ours, double other)
{
    struct gpu_card *c = &s->book->v[0];
    c->util = ours + other;
    c->is_ours = true;
    c->n = 2;
    c->v[0] = (struct gpu_process){.util = ours, .is_ours = true, .lives = true};
    c->v[1] = (struct gpu_process){.util = other, .is_anothers = true, .lives = true};
    figures_put_parts(&s->fs, job, &s->node, s->book, true);
    figures_put_cards(&s->fs, s->node.name, s->book, s->node.gpus);
}

static void shared_check(const struct shared_gpu *s, const char *job, double use)
{
    struct gang gang = {.v = (struct gang_node *)(uintptr_t)&s->node, .n = 1};
    double of_gpu = figures_use(&s->fs, job, "n1", 0, USEC_MIN).last;
    double of_gang = figures_gang_use(&s->fs, job, &gang, USEC_MIN).last;
    assert_true(fabs(of_gpu - use) < 1e-9);
    assert_true(fabs(of_gang - use) < 1e-9);
}

static void test_jobs_that_share_a_gpu(void **state)
{
    struct shared_gpu s;
    (void)state;
    shared_open(&s);
    assert_int_equal(figures_use(&s.fs, "a", "n1", 0, USEC_MIN).n, 0);
    shared_tell(&s, "a", 0.8, 0);
    shared_check(&s, "a", 0.8);
    shared_check(&s, "b", 0.8); /* it has no book: nobody says that it shares this GPU */
    shared_tell(&s, "b", 0, 0.8);
    shared_check(&s, "b", 0);
    shared_tell(&s, "a", 0.5, 0.25);
    shared_tell(&s, "b", 0.25, 0.5);
    shared_check(&s, "a", 0.5);
    shared_check(&s, "b", 0.25);
    assert_true(fabs(figures_now(&s.fs, "n1", FIGURE_GPU_UTIL, 0) - 0.75) < 1e-9);
    assert_int_equal(s.n->n_parts, 2);
    shared_close(&s);
}

/* One that leases a part and whose processes were not seen may work: it is never told as idle. */
static void test_a_part_of_one_that_is_not_seen(void **state)
{
    struct shared_gpu s;
    (void)state;
    shared_open(&s);
    s.book->v[0].util = 0.8;
    figures_put_parts(&s.fs, "unseen", &s.node, s.book, true);
    figures_put_cards(&s.fs, "n1", s.book, 1);
    shared_check(&s, "unseen", 0.8); /* nobody has told of a part */
    shared_tell(&s, "a", 0.8, 0);
    s.book->v[0].is_ours = false;
    figures_put_parts(&s.fs, "unseen", &s.node, s.book, true);
    struct figures_window w = figures_use(&s.fs, "unseen", "n1", 0, FIGURE_EVERY);
    assert_true(w.n == 0 && w.of > 0);
    shared_tell(&s, "a", 0, 0); /* nobody works there: nor does this one */
    shared_check(&s, "unseen", 0);
    shared_close(&s);
}

/* A job writes its book itself. */
static void test_a_part_that_lies(void **state)
{
    struct shared_gpu s;
    (void)state;
    shared_open(&s);
    shared_tell(&s, "b", 0.25, 0.25);
    s.node.gpus = 2; /* of a GPU that is not leased nothing is believed */
    shared_tell(&s, "liar", 0.5, 0);
    assert_int_equal(s.n->n_parts, 1);
    s.node.gpus = 1;
    shared_tell(&s, "liar", 1, 0);
    shared_tell(&s, "b", 0.25, 0.25);
    shared_check(&s, "liar", 0.5); /* never more than the GPU does */
    shared_check(&s, "b", 0.25);
    for (int i = 0; i < 2 * FIGURES_PARTS_MAX; i++) {
        char job[16];
        text_printf(job, "j%d", i);
        shared_tell(&s, job, 0.5, 0);
    }
    assert_int_equal(s.n->n_parts, FIGURES_PARTS_MAX);
    shared_close(&s);
}

/* The GPUs' use says as much of a job that has its GPUs for itself. */
static void test_no_part_is_kept_without_need(void **state)
{
    struct shared_gpu s;
    (void)state;
    shared_open(&s);
    struct gpu_card *c = &s.book->v[0];
    c->util = 0.5;
    c->is_ours = true;
    c->n = 1;
    c->v[0] = (struct gpu_process){.util = 0.25, .is_ours = true, .lives = true};
    figures_put_parts(&s.fs, "a", &s.node, s.book, false);
    figures_put_cards(&s.fs, "n1", s.book, 1);
    assert_int_equal(s.n->n_parts, 0);
    shared_check(&s, "a", 0.5);
    c->n = 2;
    c->v[1] = (struct gpu_process){.util = 0.25, .lives = true}; /* of no job that is known */
    figures_put_parts(&s.fs, "a", &s.node, s.book, false);
    figures_put_cards(&s.fs, "n1", s.book, 1);
    assert_int_equal(s.n->n_parts, 0);
    shared_check(&s, "a", 0.5);
    c->v[1].is_anothers = true;
    figures_put_parts(&s.fs, "a", &s.node, s.book, false);
    figures_put_cards(&s.fs, "n1", s.book, 1);
    shared_check(&s, "a", 0.25);
    shared_check(&s, "next", 0.5); /* has it for itself from then on, whatever the last one told */
    figures_parts_sweep(s.n, s.n->newest + FIGURES_LONG / 2);
    assert_int_equal(s.n->n_parts, 1);
    figures_parts_sweep(s.n, s.n->newest + FIGURES_LONG + 1);
    assert_int_equal(s.n->n_parts, 0);
    shared_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_keeps_what_it_can_be),
        cmocka_unit_test(test_a_gpu_more_leaves_the_others),
        cmocka_unit_test(test_what_does_not_fit_is_untold),
        cmocka_unit_test(test_rdma_stays_beside_a_page),
        cmocka_unit_test(test_jobs_that_share_a_gpu),
        cmocka_unit_test(test_a_part_of_one_that_is_not_seen),
        cmocka_unit_test(test_a_part_that_lies),
        cmocka_unit_test(test_no_part_is_kept_without_need),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
