/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of metricfile.h: what attempts write, read piece by piece, merged, and read again. */
#define _GNU_SOURCE
#include "fsroot/logs/metricfile.h"

#include <errno.h>
#include <fcntl.h>

#include "base/test/unit_look.h"
#include "base/unit_dir.h"

#define LOG1 "jobs/j/attempts/1/logs/driver.log"
#define FILE1 "jobs/j/attempts/1/metrics.jsonl"
#define FILE2 "jobs/j/attempts/2/metrics.jsonl"
#define MERGED "jobs/j/metrics/metrics.jsonl"

static int setup(void **state)
{
    int r = root_setup(state);
    put(*state, "jobs/j/metrics/x", "");
    put(*state, "jobs/j/attempts/1/logs/x", "");
    put(*state, "jobs/j/attempts/2/logs/x", "");
    return r;
}

static void append(const char *root, const char *name, const char *text)
{
    _cleanup_(freep) char *path = xasprintf("%s/%s", root, name);
    FILE *f = fopen(path, "ae");
    assert_non_null(f);
    assert_true(fputs(text, f) >= 0);
    assert_int_equal(fclose(f), 0);
}

/* Until there is no more; how many records came. */
static size_t pass(struct metric_reader *r, int attempt, bool ended)
{
    struct metric_pass p;
    size_t n = 0;
    do {
        assert_int_equal(metric_reader_pass(r, attempt, ended, 5 * USEC_SEC, &p, NULL), 0);
        n += p.records;
    } while (p.more);
    return n;
}

static size_t lines_of(const char *root, const char *name)
{
    _cleanup_(freep) char *text = get(root, name);
    size_t n = 0;
    for (const char *p = text; p && (p = strchr(p, '\n')); p++)
        n++;
    return n;
}

static int64_t step_of(const struct metric_reader *r)
{
    return metric_watch_step(metric_reader_watch(r));
}

static void follows_the_log(void **state)
{
    const char *root = *state;
    struct metric_reader *r = metric_reader_new(root, "j");
    assert_int_equal(pass(r, 1, false), 0); /* nothing is there */
    append(root, LOG1, "Total training steps: 9\nnoise\nstep:1 - a:1\nstep:2 - ");
    assert_int_equal(pass(r, 1, false), 1);
    assert_int_equal(pass(r, 1, false), 0);
    append(root, LOG1, "a:2\nstep:3 - a:3");
    assert_int_equal(pass(r, 1, false), 1);
    assert_int_equal(step_of(r), 2);
    assert_int_equal(pass(r, 1, true), 1); /* the end: a line without one */
    assert_int_equal(step_of(r), 3);
    assert_int_equal(metric_watch_total(metric_reader_watch(r)), 9);
    assert_int_equal(lines_of(root, MERGED), 3);
    metric_reader_free(r);
}

/* Another source: steps up to the last one that it has, each even one. */
struct others {
    int64_t has;
    struct buf asked;
};

static bool next_other(int64_t after, int64_t last, struct metric_record *ret, void *arg)
{
    struct others *o = arg;
    int64_t step = after + 1 + (after + 1) % 2;
    if (step > last || step > o->has)
        return false;
    *ret = (struct metric_record){.step = step, .v = xcalloc(1, sizeof(*ret->v)), .n = 1};
    ret->v[0] = (struct metric_value){xstrdup("samples/x"), (double)step / 100};
    (void)buf_addf(&o->asked, "%lld ", (long long)step);
    return true;
}

static struct metric_reader *with_others(const char *root, struct others *o)
{
    struct metric_reader *r = metric_reader_new(root, "j");
    metric_reader_set_more(r, next_other, o);
    return r;
}

/* Each step once, when a newer one was told; over a restart, and over an attempt that goes back. */
static void takes_more_of_its_steps(void **state)
{
    const char *root = *state;
    struct others o = {.has = 3, .asked = BUF_INIT(1 << 10)};
    struct metric_reader *r = with_others(root, &o);
    append(root, LOG1, "step:1 - a:1\nstep:2 - a:2\n");
    assert_int_equal(pass(r, 1, false), 2); /* step 2 may not be whole yet */
    append(root, LOG1, "step:3 - a:3\nstep:4 - a:4\nstep:5 - a:5\n");
    assert_int_equal(pass(r, 1, false), 4);
    o.has = 9;
    metric_reader_free(r);
    r = with_others(root, &o);
    assert_int_equal(pass(r, 1, false), 1);
    assert_string_equal(buf_str(&o.asked), "2 4 ");
    assert_int_equal(step_of(r), 5);
    /* The second attempt begins at step 3: that one's and step 4's are told again. */
    append(root, FILE2, "{\"step\":3,\"data\":{\"a\":3}}\n");
    assert_int_equal(pass(r, 2, false), 1);
    append(root, FILE2, "{\"step\":4,\"data\":{\"a\":4}}\n");
    assert_int_equal(pass(r, 2, false), 1);
    assert_int_equal(pass(r, 2, true), 1);
    assert_string_equal(buf_str(&o.asked), "2 4 4 ");
    _cleanup_(freep) char *merged = get(root, MERGED);
    const char *made = strstr(merged, "\"is_made\":true");
    assert_non_null(made);
    assert_int_equal(lines_of(root, MERGED), 10);
    assert_non_null(strstr(merged, "\"superseded\":true"));
    metric_reader_free(r);
    buf_release(&o.asked);
}

/* What a job writes is never of another source. */
static void a_line_that_says_it_was_made(void **state)
{
    const char *root = *state;
    struct metric_reader *r = metric_reader_new(root, "j");
    append(root, FILE1, "{\"step\":1,\"is_made\":true,\"data\":{\"a\":1}}\n");
    assert_int_equal(pass(r, 1, false), 1);
    metric_reader_free(r);
    r = metric_reader_new(root, "j");
    append(root, FILE1, "{\"step\":2,\"data\":{\"a\":2}}\n");
    assert_int_equal(pass(r, 1, false), 1);
    _cleanup_(freep) char *merged = get(root, MERGED);
    assert_null(strstr(merged, "is_made"));
    assert_int_equal(lines_of(root, MERGED), 2);
    metric_reader_free(r);
}

static void a_plain_line_tells_the_total(void **state)
{
    const char *root = *state;
    struct metric_reader *r = metric_reader_new(root, "j");
    append(root, LOG1,
           "{\"step\": 1, \"total_steps\": 12, \"loss\": 2}\n{\"step\": 2, \"loss\": 1}\n");
    assert_int_equal(pass(r, 1, true), 2);
    assert_int_equal(metric_watch_total(metric_reader_watch(r)), 12);
    metric_reader_free(r);
}

static void the_file_goes_before_the_log(void **state)
{
    const char *root = *state;
    struct metric_reader *r = metric_reader_new(root, "j");
    put(root, FILE1, "{\"step\":1,\"data\":{\"a\":1}}\n");
    put(root, LOG1, "Total training steps: 4\nstep:1 - a:1\n");
    assert_int_equal(pass(r, 1, false), 1);
    append(root, LOG1, "step:2 - a:2\n");
    assert_int_equal(pass(r, 1, false), 0);
    append(root, FILE1, "{\"step\":2,\"data\":{\"a\":2}}\n{\"step\":3,\"da");
    assert_int_equal(pass(r, 1, true), 1); /* what is torn is no record */
    assert_int_equal(metric_watch_total(metric_reader_watch(r)), 4);
    metric_reader_free(r);
}

static void goes_on_after_a_restart(void **state)
{
    const char *root = *state;
    struct metric_reader *r = metric_reader_new(root, "j");
    put(root, LOG1, "Total training steps: 4\n");
    put(root, FILE1, "{\"step\":1,\"data\":{\"a\":1}}\n");
    assert_int_equal(pass(r, 1, false), 1);
    metric_reader_free(r);
    append(root, FILE1, "{\"step\":2,\"data\":{\"a\":2}}\n");
    append(root, MERGED, "{\"step\":2,\"attempt\":1,\"off"); /* it died while it wrote */
    r = metric_reader_new(root, "j");
    assert_int_equal(pass(r, 1, false), 1);
    assert_int_equal(step_of(r), 2);
    assert_int_equal(lines_of(root, MERGED), 2);
    _cleanup_(freep) char *text = get(root, MERGED);
    assert_string_equal(text, "{\"step\":1,\"attempt\":1,\"at\":5000000,\"offset\":26,\"total\":4,"
                              "\"data\":{\"a\":1}}\n"
                              "{\"step\":2,\"attempt\":1,\"at\":5000000,\"offset\":52,\"total\":4,"
                              "\"data\":{\"a\":2}}\n");
    metric_reader_free(r);
}

static void marks_what_is_run_again(void **state)
{
    const char *root = *state;
    struct metric_reader *r = metric_reader_new(root, "j");
    struct metric_curves *c = metric_curves_new(root, "j", 8);
    struct metric_point p;
    size_t n_voids;
    put(root, FILE1,
        "{\"step\":1,\"data\":{\"a\":1}}\n{\"step\":2,\"data\":{\"a\":2}}\n"
        "{\"step\":3,\"data\":{\"a\":3}}\n{\"step\":4,\"data\":{\"a\":4}}\n");
    assert_int_equal(pass(r, 1, false), 4);
    assert_int_equal(metric_curves_update(c, NULL), 0); /* it follows what is written anew */
    assert_int_equal(metric_table_points(metric_curves_table(c)), 4);
    append(root, FILE1, "{\"step\":5,\"data\":{\"a\":5}}"); /* seen only once it is over */
    put(root, FILE2,
        "{\"step\":2,\"data\":{\"val-core/x\":0.5}}\n{\"step\":3,\"data\":{\"a\":30}}\n");
    assert_int_equal(pass(r, 2, false), 3);
    assert_int_equal(step_of(r), 3);
    assert_int_equal(metric_curves_update(c, NULL), 0);
    const struct metric_void *v = metric_curves_voids(c, &n_voids);
    assert_int_equal(n_voids, 1);
    assert_int_equal(v->attempt, 1);
    assert_int_equal(v->first, 3);
    assert_int_equal(v->last, 5);
    const struct metric_table *old = metric_curves_void_table(c, 0);
    assert_int_equal(metric_table_points(old), 3);
    assert_true(metric_table_range(old, metric_table_find(old, "a"), 0, 1, &p));
    assert_true(p.last == 3 && p.value == 3);
    const struct metric_table *t = metric_curves_table(c);
    assert_int_equal(metric_table_points(t), 3);
    assert_true(metric_table_range(t, 0, 2, 3, &p) && p.value > 29.5);
    assert_true(metric_table_range(t, 0, 1, 2, &p) && p.value < 2.5); /* it was not run again */
    assert_int_equal(lines_of(root, MERGED), 7);
    metric_reader_free(r);
    r = metric_reader_new(root, "j"); /* a restart sees the same */
    assert_int_equal(pass(r, 2, false), 0);
    assert_int_equal(step_of(r), 3);
    append(root, FILE2, "{\"step\":4,\"data\":{\"a\":40}}\n");
    assert_int_equal(pass(r, 2, false), 1);
    assert_int_equal(lines_of(root, MERGED), 8);
    assert_int_equal(metric_curves_update(c, NULL), 0);
    assert_int_equal(metric_table_points(metric_curves_table(c)), 4);
    metric_curves_free(c);
    metric_reader_free(r);
}

static void lines_that_are_too_long(void **state)
{
    const char *root = *state;
    struct metric_reader *r = metric_reader_new(root, "j");
    size_t n = 3 * (size_t)METRIC_LINE_MAX;
    _cleanup_(freep) char *flood = xcalloc(n + 1, 1);
    for (size_t i = 0; i < n; i++)
        flood[i] = "step:9 - a:1 - "[i % 15];
    append(root, LOG1, "step:1 - a:1\n");
    append(root, LOG1, flood);
    assert_int_equal(pass(r, 1, false), 1);
    append(root, LOG1, "\nstep:2 - a:2\n");
    assert_int_equal(pass(r, 1, false), 1);
    assert_int_equal(step_of(r), 2);
    metric_reader_free(r);
}

static void a_great_log_takes_several_passes(void **state)
{
    const char *root = *state;
    struct metric_reader *r = metric_reader_new(root, "j");
    struct metric_pass p;
    struct buf text = BUF_INIT(32 << 20);
    for (int i = 1; i <= 20; i++) {
        (void)buf_addf(&text, "step:%d - a:1\n", i); /* it fits */
        for (int k = 0; k < 20000; k++)
            (void)buf_adds(&text, "a line of noise that nobody wants to see, ever\n");
    }
    put(root, LOG1, buf_str(&text));
    buf_release(&text);
    assert_int_equal(metric_reader_pass(r, 1, false, 0, &p, NULL), 0);
    assert_true(p.more && p.records && p.records < 20);
    assert_int_equal(pass(r, 1, false), 20 - p.records);
    metric_reader_free(r);
}

static void what_is_no_file_is_passed_over(void **state)
{
    const char *root = *state;
    struct metric_reader *r = metric_reader_new(root, "j");
    _cleanup_(freep) char *merged = xasprintf("%s/" MERGED, root);
    _cleanup_(freep) char *file = xasprintf("%s/" FILE1, root);
    assert_int_equal(symlink("/etc/passwd", file), 0);
    assert_int_equal(symlink("../attempts/1/metrics.jsonl", merged), 0); /* of an older argusd */
    put(root, LOG1, "step:1 - a:1\n");
    assert_int_equal(pass(r, 1, false), 1);
    assert_int_equal(lines_of(root, MERGED), 1);
    metric_reader_free(r);
    struct metric_curves *none = metric_curves_new(root, "none", 8);
    struct metric_curves *odd = metric_curves_new(root, "../x", 8);
    assert_int_equal(metric_curves_update(none, NULL), 0);
    assert_int_equal(metric_curves_update(odd, NULL), -EINVAL);
    assert_int_equal(metric_table_points(metric_curves_table(none)), 0);
    metric_curves_free(none);
    metric_curves_free(odd);
}

/* As if a file took the inode of the one before, at a size that could be its own. */
static void a_file_in_the_place_of_another(void **state)
{
    const char *root = *state;
    struct metric_curves *c = metric_curves_new(root, "j", 8);
    put(root, MERGED,
        "{\"step\":1,\"attempt\":1,\"data\":{\"a\":1}}\n"
        "{\"step\":2,\"attempt\":1,\"data\":{\"a\":2}}\n");
    assert_int_equal(metric_curves_update(c, NULL), 0);
    _cleanup_(freep) char *path = xasprintf("%s/" MERGED, root);
    FILE *f = fopen(path, "r+e");
    assert_non_null(f);
    assert_true(fputs("{\"step\":1,\"attempt\":1,\"data\":{\"a\":1}}\n"
                      "{\"step\":2,\"attempt\":1,\"superseded\":true,\"data\":{\"a\":2}}\n"
                      "{\"step\":2,\"attempt\":2,\"data\":{\"a\":20}}\n",
                      f) >= 0);
    assert_int_equal(fclose(f), 0);
    assert_int_equal(metric_curves_update(c, NULL), 0);
    size_t n;
    (void)metric_curves_voids(c, &n);
    assert_int_equal(n, 1);
    assert_int_equal(metric_table_points(metric_curves_table(c)), 2);
    metric_curves_free(c);
}

static void what_cannot_be_written_is_written_later(void **state)
{
    const char *root = *state;
    struct metric_reader *r = metric_reader_new(root, "j");
    struct metric_pass p;
    struct err err;
    _cleanup_(freep) char *merged = xasprintf("%s/" MERGED, root);
    put(root, LOG1, "step:1 - a:1\n");
    assert_int_equal(mkdir(merged, 0700), 0);
    assert_true(metric_reader_pass(r, 1, false, 0, &p, &err) < 0);
    assert_non_null(strstr(err.text, "metrics.jsonl"));
    assert_int_equal(rmdir(merged), 0);
    append(root, LOG1, "step:2 - a:2\n");
    (void)pass(r, 1, false);
    assert_int_equal(lines_of(root, MERGED), 2);
    metric_reader_free(r);
}

/* Lines that lie over the border of two segments, and one that lost its end in a gap. */
static void a_log_of_many_files(void **state)
{
    const char *root = *state;
    struct metric_reader *r = metric_reader_new(root, "j");
    put(root, LOG1, "step:1 - a:1\nstep:2");
    assert_int_equal(pass(r, 1, false), 1);
    put(root, LOG1 ".19", " - a:2\nstep:3 - a:3\nstep:4 - a");
    assert_int_equal(pass(r, 1, false), 2);
    put(root, LOG1 ".900", "[argus] dropped\nstep:9 - a:9\n");
    assert_int_equal(pass(r, 1, false), 1);
    append(root, LOG1 ".900", "step:10 - a:10");
    assert_int_equal(pass(r, 1, true), 1);
    assert_int_equal(step_of(r), 10);
    metric_reader_free(r);
    r = metric_reader_new(root, "j"); /* the places in the merged file are those of the stream */
    assert_int_equal(pass(r, 1, true), 0);
    assert_int_equal(step_of(r), 10);
    assert_int_equal(lines_of(root, MERGED), 5);
    metric_reader_free(r);
}

/* Else the log is read in place of the file, and the file too from the next pass on. */
static void a_failed_look_is_no_missing_file(void **state)
{
    const char *root = *state;
    struct metric_reader *r = metric_reader_new(root, "j");
    struct metric_pass p;
    append(root, LOG1, "step:1 - a:1\nstep:2 - a:2\n");
    append(root, FILE1, "{\"step\": 1, \"data\": {\"a\": 1}}\n");
    for (size_t i = 0; i < array_len(look_errors); i++) {
        look_broken = (struct look_broken){"1", look_errors[i], 0, false}; /* its directory */
        assert_int_equal(metric_reader_pass(r, 1, false, 5 * USEC_SEC, &p, NULL), -look_errors[i]);
    }
    look_broken = (struct look_broken){0};
    assert_int_equal(pass(r, 1, false), 1);
    assert_int_equal(lines_of(root, MERGED), 1);
    metric_reader_free(r);
}

/* A terabyte of nothing is passed over, where the file system says so; else as far as the ceiling.
 */
static void holes_are_passed_over(void **state)
{
    const char *root = *state;
    struct metric_reader *r = metric_reader_new(root, "j");
    _cleanup_(freep) char *path = xasprintf("%s/" FILE1, root);
    append(root, FILE1, "{\"step\": 1, \"data\": {\"a\": 1}}\n");
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    bool tells = lseek(fd, 0, SEEK_HOLE) >= 0 && ftruncate(fd, 1LL << 40) == 0 &&
                 lseek(fd, 1LL << 30, SEEK_DATA) < 0;
    close(fd);
    metric_reader_set_most(r, 64 << 20);
    assert_int_equal(pass(r, 1, false), 1);
    append(root, FILE1, "\n{\"step\": 2, \"data\": {\"a\": 2}}\n");
    assert_int_equal(pass(r, 1, false), tells ? 1 : 0);
    assert_int_equal(step_of(r), tells ? 2 : 1);
    metric_reader_free(r);
}

static void an_attempt_has_a_ceiling(void **state)
{
    const char *root = *state;
    struct metric_reader *r = metric_reader_new(root, "j");
    struct metric_pass p;
    struct buf noise = BUF_INIT(8 << 20);
    while (noise.len < 6 << 20)
        (void)buf_adds(&noise, "a line of a log that tells nothing\n");
    append(root, LOG1, "step:1 - a:1\n");
    append(root, LOG1, buf_str(&noise));
    append(root, LOG1, "step:2 - a:2\n");
    metric_reader_set_most(r, 4 << 20);
    assert_int_equal(metric_reader_pass(r, 1, false, 5 * USEC_SEC, &p, NULL), 0);
    assert_true(p.is_cut && !p.more);
    assert_int_equal(step_of(r), 1);
    append(root, FILE2, "{\"step\": 2, \"data\": {\"a\": 2}}\n");
    assert_int_equal(pass(r, 2, false), 1); /* each attempt has its own */
    assert_int_equal(step_of(r), 2);
    metric_reader_free(r);
    buf_release(&noise);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_failed_look_is_no_missing_file, setup, root_teardown),
        cmocka_unit_test_setup_teardown(holes_are_passed_over, setup, root_teardown),
        cmocka_unit_test_setup_teardown(an_attempt_has_a_ceiling, setup, root_teardown),
        cmocka_unit_test_setup_teardown(follows_the_log, setup, root_teardown),
        cmocka_unit_test_setup_teardown(takes_more_of_its_steps, setup, root_teardown),
        cmocka_unit_test_setup_teardown(a_line_that_says_it_was_made, setup, root_teardown),
        cmocka_unit_test_setup_teardown(a_plain_line_tells_the_total, setup, root_teardown),
        cmocka_unit_test_setup_teardown(the_file_goes_before_the_log, setup, root_teardown),
        cmocka_unit_test_setup_teardown(goes_on_after_a_restart, setup, root_teardown),
        cmocka_unit_test_setup_teardown(marks_what_is_run_again, setup, root_teardown),
        cmocka_unit_test_setup_teardown(lines_that_are_too_long, setup, root_teardown),
        cmocka_unit_test_setup_teardown(a_great_log_takes_several_passes, setup, root_teardown),
        cmocka_unit_test_setup_teardown(what_is_no_file_is_passed_over, setup, root_teardown),
        cmocka_unit_test_setup_teardown(a_log_of_many_files, setup, root_teardown),
        cmocka_unit_test_setup_teardown(a_file_in_the_place_of_another, setup, root_teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_written_is_written_later, setup,
                                        root_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
