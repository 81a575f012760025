/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of advise.h: each rule speaks where its facts are, and is silent elsewhere. */
#include "core/past/advise.h"

#include <string.h>

#include "base/unit.h"

static void advises(const struct advise_in *in, const char *words)
{
    struct buf out = BUF_INIT(1 << 16);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '[');
    advise_put(in, &j);
    jout_close(&j, ']');
    if (!*words)
        assert_string_equal(buf_str(&out), "[]");
    else if (!strstr(buf_str(&out), words))
        fail_msg("'%s' is not in %s", words, buf_str(&out));
    buf_release(&out);
}

static void a_timeout_that_says_something(void **state)
{
    struct spec s = {.nnodes = 1};
    struct demand d = {.nnodes = 1};
    struct advise_in in = {.spec = &s, .demand = &d, .fits_pool = true};
    (void)state;
    advises(&in, "");
    in.p50 = 30 * USEC_MIN;
    in.p90 = 61 * USEC_MIN;
    advises(&in, "{\"key\":\"timeout\",\"value\":\"1h40m\",\"text\":\"nine of ten runs");
    s.timeout = 2 * USEC_HOUR;
    advises(&in, "");
    s.timeout = 24 * USEC_HOUR;
    advises(&in, "far below its timeout of");
    in.p90 = 5 * USEC_HOUR;
    s.timeout = 48 * USEC_HOUR;
    advises(&in, "\"value\":\"8h\"");
}

static void a_size_that_its_pool_has(void **state)
{
    struct spec s = {.nnodes = 8};
    struct demand d = {.nnodes = 8};
    struct advise_in in = {.spec = &s, .demand = &d, .largest = 3};
    (void)state;
    advises(&in, "{\"key\":\"nnodes\",\"value\":\"3\"");
    in.largest = 0;
    advises(&in, "");
    in.largest = 8;
    in.fits_pool = true;
    advises(&in, "");
}

static void checkpoints_not_too_often(void **state)
{
    struct spec s = {.nnodes = 1, .save_freq = 1};
    struct demand d = {.nnodes = 1};
    struct advise_in in = {.spec = &s, .demand = &d, .fits_pool = true};
    (void)state;
    advises(&in, "");
    in.checkpoint_bytes = 90000000000;
    advises(&in, "{\"key\":\"save_freq\",\"value\":\"10\"");
    s.checkpoint_none = true;
    advises(&in, "");
    s.checkpoint_none = false;
    s.save_freq = 20;
    advises(&in, "");
}

static void no_more_checkpoints_than_fit(void **state)
{
    struct spec s = {.nnodes = 1, .save_freq = 20, .total_training_steps = 100};
    struct demand d = {.nnodes = 1};
    struct advise_in in = {.spec = &s, .demand = &d, .fits_pool = true};
    (void)state;
    in.checkpoint_bytes = 1 << 30;
    advises(&in, "");
    in.free_bytes = (uint64_t)5 << 30;
    advises(&in, "");
    in.free_bytes = ((uint64_t)5 << 30) - 1;
    advises(&in, "{\"key\":\"checkpoint.keep_last\",\"value\":\"3\",\"text\":\"all of its 5");
    s.keep_last = 3;
    advises(&in, "");
    s.keep_last = 0;
    in.free_bytes = 1 << 30;
    advises(&in, "");
}

/* What was measured goes before what is usual, and is silent where it agrees. */
static void what_runs_like_it_had(void **state)
{
    struct spec s = {.nnodes = 1, .save_freq = 5};
    struct demand d = {.nnodes = 1};
    char project[] = "", alike[] = "a", work[] = "w", id[] = "old",
         key[] = "x.micro_batch_size_per_gpu";
    struct past_line line = {.alike = alike, .work = work, .save_freq = 5, .n = 1};
    line.sizes[0] = (struct past_size){.key = key, .value = 8};
    struct past_run runs[] = {{.id = id, .project = project, .line = line, .end = PAST_DIED},
                              {.id = id, .project = project, .line = line, .end = PAST_WORKED}};
    runs[0].told =
        (struct goodput_attempt){.steps = 1000, .good_s = 60000, .saves = 10, .save_s = 400};
    runs[0].held_s = 70000;
    runs[0].failures = 1;
    runs[1].line.sizes[0].value = 4;
    struct past past = {.v = runs, .n = 2};
    struct advise_in in = {.spec = &s,
                           .demand = &d,
                           .fits_pool = true,
                           .checkpoint_bytes = 90000000000,
                           .past = &past,
                           .line = &line};
    (void)state;
    advises(&in, "{\"key\":\"overrides.x.micro_batch_size_per_gpu\",\"value\":\"4\"");
    advises(&in, "{\"key\":\"save_freq\",\"value\":\"39\",\"text\":\"in 1 run like it");
    char save[] = "trainer.save_freq=5", *overrides[] = {save};
    s.overrides = (struct strv){.v = overrides, .n = 1};
    advises(&in, "{\"key\":\"overrides.trainer.save_freq\"");
    s.overrides = (struct strv){0};
    past.n = 1;
    line.save_freq = 39; /* as good as 39 */
    advises(&in, "");
    past.n = 0;
    advises(&in, "{\"key\":\"save_freq\",\"value\":\"10\"");
}

static void hints(const struct sched_hint *h, const char *expected)
{
    struct buf out = BUF_INIT(4096);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '[');
    advise_put_hint(h, &j);
    jout_close(&j, ']');
    assert_string_equal(buf_str(&out), expected);
    buf_release(&out);
}

/* The scheduler's hint is silent where its key has a value already. */
static void a_hint_beside_other_advice(void **state)
{
    struct spec s = {.nnodes = 4};
    struct demand d = {.nnodes = 4};
    struct sched_hint shape = {.kind = SCHED_HINT_SHAPE, .nnodes = 2, .n_gpus_per_node = 4};
    struct sched_hint timeout = {.kind = SCHED_HINT_TIMEOUT, .limit = USEC_HOUR};
    struct advise_in in = {.spec = &s, .demand = &d, .fits_pool = true, .hint = &shape};
    (void)state;
    advises(&in, "{\"key\":\"nnodes\",\"value\":\"2\"");
    in.hint = &timeout;
    advises(&in, "{\"key\":\"timeout\",\"value\":\"1h\"");
    in.p50 = 30 * USEC_MIN;
    in.p90 = 61 * USEC_MIN;
    struct buf out = BUF_INIT(1 << 16);
    struct jout j = jout_begin(&out);
    jout_open(&j, NULL, '[');
    advise_put(&in, &j);
    assert_non_null(strstr(buf_str(&out), "nine of ten runs"));
    assert_null(strstr(buf_str(&out), "would start now"));
    buf_release(&out);
}

static void what_starts_it_now(void **state)
{
    struct sched_hint h = {.kind = SCHED_HINT_POOL, .pool = "a6000"};
    (void)state;
    hints(
        &h,
        "[{\"key\":\"pool\",\"value\":\"a6000\",\"text\":\"it would start now in this pool; as it "
        "is it waits\"}]");
    h = (struct sched_hint){.kind = SCHED_HINT_SHAPE, .nnodes = 2, .n_gpus_per_node = 4};
    hints(
        &h,
        "[{\"key\":\"nnodes\",\"value\":\"2\",\"text\":\"it would start now on 2 nodes with 4 GPUs "
        "each; as it is it waits\"},{\"key\":\"n_gpus_per_node\",\"value\":\"4\",\"text\":"
        "\"together with nnodes: 2\"}]");
    h = (struct sched_hint){.kind = SCHED_HINT_TIMEOUT, .limit = USEC_HOUR};
    hints(&h,
          "[{\"key\":\"timeout\",\"value\":\"1h\",\"text\":\"with a timeout of at most 1h it would "
          "delay no other job and start now\"}]");
    h = (struct sched_hint){.kind = SCHED_HINT_PRIORITY, .priority = 60};
    hints(&h, "[]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_timeout_that_says_something),
        cmocka_unit_test(a_size_that_its_pool_has),
        cmocka_unit_test(checkpoints_not_too_often),
        cmocka_unit_test(no_more_checkpoints_than_fit),
        cmocka_unit_test(what_runs_like_it_had),
        cmocka_unit_test(a_hint_beside_other_advice),
        cmocka_unit_test(what_starts_it_now),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
