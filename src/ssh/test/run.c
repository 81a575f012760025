/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of run.c: real programs on a loop; every handle is gone in the end. */
#include "ssh/run.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/unit.h"

struct world {
    uv_loop_t loop;
    int ends, heard;
    struct run_end end;
    struct buf out, errs;
    struct run *r;
    bool cancels; /* when something is heard */
};

static void on_heard(const struct buf *out, void *arg)
{
    struct world *w = arg;
    assert_true(out->len > 0);
    w->heard++;
    if (w->cancels)
        run_free(w->r);
}

static void on_ended(const struct run_end *end, void *arg)
{
    struct world *w = arg;
    w->ends++;
    w->end = *end;
    assert_int_equal(buf_add(&w->out, buf_str(end->out), end->out->len), 0);
    assert_int_equal(buf_add(&w->errs, buf_str(end->errs), end->errs->len), 0);
}

static const struct run_ops ops = {.heard = on_heard, .ended = on_ended};

static void begin(struct world *w, const char *script, const char *input, usec_t limit)
{
    const char *argv[] = {"/bin/sh", "-c", script, NULL};
    struct buf in = BUF_INIT(8 << 20);
    assert_int_equal(buf_adds(&in, input), 0);
    w->r = run_start(&w->loop, argv, NULL, &in, limit, &ops, w);
}

static void finish(struct world *w)
{
    assert_int_equal(uv_run(&w->loop, UV_RUN_DEFAULT), 0);
}

static int setup(void **state)
{
    struct world *w = xcalloc(1, sizeof(*w));
    buf_init(&w->out, 8 << 20);
    buf_init(&w->errs, 8 << 20);
    *state = w;
    return uv_loop_init(&w->loop);
}

static int teardown(void **state)
{
    struct world *w = *state;
    int r = uv_loop_close(&w->loop); /* -EBUSY if a handle is left */
    buf_release(&w->out);
    buf_release(&w->errs);
    free(w);
    return r;
}

static void test_everything_that_it_says(void **state)
{
    struct world *w = *state;
    begin(w, "cat; echo complaint >&2; exit 7", "fed", USEC_MIN);
    assert_int_equal(w->ends, 0);
    finish(w);
    assert_int_equal(w->ends, 1);
    assert_int_equal(w->end.status, 7);
    assert_string_equal(buf_str(&w->out), "fed");
    assert_string_equal(buf_str(&w->errs), "complaint\n");
    assert_true(w->heard > 0 && !w->end.is_late && !w->end.is_loud);
}

static void test_input_larger_than_any_pipe(void **state)
{
    struct world *w = *state;
    struct buf big = BUF_INIT(4 << 20);
    while (big.len < 3 << 20)
        assert_int_equal(buf_adds(&big, "0123456789abcdef"), 0);
    begin(w, "wc -c", buf_str(&big), USEC_MIN);
    finish(w);
    int64_t n = 0;
    char *text = buf_take(&w->out);
    text[strcspn(text, "\n")] = 0;
    assert_int_equal(str_to_int(text + strspn(text, " "), 0, 1 << 30, &n, NULL), 0);
    assert_int_equal(n, big.len);
    free(text);
    buf_release(&big);
}

static void test_input_that_nobody_reads(void **state)
{
    struct world *w = *state;
    struct buf big = BUF_INIT(4 << 20);
    while (big.len < 3 << 20)
        assert_int_equal(buf_adds(&big, "0123456789abcdef"), 0);
    begin(w, "exec <&-; echo done", buf_str(&big), USEC_MIN);
    finish(w);
    assert_string_equal(buf_str(&w->out), "done\n");
    buf_release(&big);
}

static void test_too_much_output(void **state)
{
    struct world *w = *state;
    begin(w, "yes", "", USEC_MIN);
    finish(w);
    assert_true(w->end.is_loud);
    assert_int_equal(w->end.status, -SIGKILL);
    assert_true(w->out.len <= RUN_OUT_MAX);
}

static void test_complaints_are_only_cut(void **state)
{
    struct world *w = *state;
    begin(w, "head -c 300000 /dev/zero >&2; echo done", "", USEC_MIN);
    finish(w);
    assert_int_equal(w->end.status, 0);
    assert_string_equal(buf_str(&w->out), "done\n");
    assert_true(w->errs.len <= RUN_ERR_MAX);
}

static void test_deadline(void **state)
{
    struct world *w = *state;
    begin(w, "echo first; sleep 600; echo never", "", 200 * USEC_MS);
    finish(w);
    assert_true(w->end.is_late);
    assert_int_equal(w->end.status, -SIGKILL);
    assert_string_equal(buf_str(&w->out), "first\n");
}

static void test_who_inherits_the_output_is_not_waited_for(void **state)
{
    struct world *w = *state;
    begin(w, "sleep 600 & echo $!", "", USEC_MIN);
    finish(w);
    int64_t pid = 0;
    assert_int_equal(w->end.status, 0);
    char *text = buf_take(&w->out);
    text[strcspn(text, "\n")] = 0;
    assert_int_equal(str_to_int(text, 2, 1 << 30, &pid, NULL), 0);
    assert_int_equal(kill((pid_t)pid, SIGKILL), 0); /* it is still there */
    free(text);
}

static void test_no_such_program(void **state)
{
    struct world *w = *state;
    const char *argv[] = {"/no/such/program", NULL};
    struct buf in = BUF_INIT(0);
    (void)run_start(&w->loop, argv, NULL, &in, USEC_MIN, &ops, w); /* it ends by itself */
    assert_int_equal(w->ends, 0);
    finish(w);
    assert_int_equal(w->ends, 1);
    assert_int_equal(w->end.err.code, -ENOENT);
}

static void test_freed_at_once(void **state)
{
    struct world *w = *state;
    begin(w, "sleep 600", "never read", USEC_MIN);
    run_free(w->r);
    finish(w);
    assert_int_equal(w->ends, 0);
}

static void test_freed_while_it_speaks(void **state)
{
    struct world *w = *state;
    w->cancels = true;
    begin(w, "echo word; sleep 600", "", USEC_MIN);
    finish(w);
    assert_int_equal(w->ends, 0);
    assert_int_equal(w->heard, 1);
}

static void test_freed_before_it_failed(void **state)
{
    struct world *w = *state;
    const char *argv[] = {"/no/such/program", NULL};
    struct buf in = BUF_INIT(0);
    run_free(run_start(&w->loop, argv, NULL, &in, USEC_MIN, &ops, w));
    finish(w);
    assert_int_equal(w->ends, 0);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(test_everything_that_it_says),
        T(test_input_larger_than_any_pipe),
        T(test_input_that_nobody_reads),
        T(test_too_much_output),
        T(test_complaints_are_only_cut),
        T(test_deadline),
        T(test_who_inherits_the_output_is_not_waited_for),
        T(test_no_such_program),
        T(test_freed_at_once),
        T(test_freed_while_it_speaks),
        T(test_freed_before_it_failed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
