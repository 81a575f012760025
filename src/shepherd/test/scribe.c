/* SPDX-License-Identifier: Apache-2.0 */
/* The scribe: what comes is in the log, in order, and the root's troubles stop nobody. A pipe that
 * nobody reads is a root that does not answer. */
#define _GNU_SOURCE
#include "shepherd/attempt/scribe.h"

#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/unit_dir.h"
#include "shepherd/test/full.h"

static char JOB[] = "j";

static struct launch launch_of(uint64_t rate, uint64_t spool)
{
    struct launch l = {.job = JOB, .attempt = 1, .beat = USEC_SEC, .logs = launch_logs_default()};
    l.logs.rate = rate;
    l.logs.spool = spool;
    l.logs.patience = 60 * USEC_SEC;
    return l;
}

static struct scribe *start(const char *dir, const struct launch *l, struct sink *sink)
{
    struct scribe *s = NULL;
    struct scribe_spec spec = {.dir = dir, .launch = l, .node = "n", .ip = "", .sink = sink};
    assert_int_equal(scribe_start(&spec, &s, NULL), 0);
    return s;
}

static struct scribe_end finish(struct scribe *s)
{
    struct scribe_end e;
    scribe_close(s);
    while (!scribe_is_done(s, clock_mono()))
        (void)poll(NULL, 0, 1);
    scribe_finish(s, &e);
    return e;
}

static void test_all_of_it_is_there(void **state)
{
    const char *dir = *state;
    _cleanup_(freep) char *path = xasprintf("%s/log", dir);
    struct launch l = launch_of(0, 1 << 20);
    struct sink *sink = NULL;
    assert_int_equal(sink_open(path, &sink, NULL), 0);
    struct scribe *s = start(dir, &l, sink);
    scribe_beat(s, "running", 7, 8);
    scribe_add(s, "one\n", 4, 1);
    scribe_add(s, "two\n", 4, 2);
    struct scribe_end e = finish(s);
    assert_true(e.log_bytes == 8 && e.dropped == 0 && !e.log_error && !e.is_stuck);
    sink_free(sink);
    assert_text(dir, "log", "one\ntwo\n");
    _cleanup_(freep) char *beat = get(dir, "beat");
    assert_non_null(strstr(beat, "\"state\":\"running\",\"pid\":7,\"start_ticks\":8"));
}

static void test_what_asks_for_the_end(void **state)
{
    const char *dir = *state;
    char *reason = NULL;
    struct launch l = launch_of(0, 0);
    struct sink *sink = sink_new(open("/dev/null", O_WRONLY | O_CLOEXEC), "/dev/null");
    put(dir, "stop", "enough\nof it");
    struct scribe *s = start(dir, &l, sink);
    while (!(reason = scribe_take_stop(s)))
        (void)poll(NULL, 0, 1);
    assert_string_equal(reason, "enough");
    free(reason);
    free(scribe_take_mismatch(s));
    (void)finish(s);
    sink_free(sink);
}

static void read_all(int fd, uint64_t *n, char *last)
{
    char some[65536];
    ssize_t k;
    while ((k = read(fd, some, sizeof(some))) > 0) {
        *n += (uint64_t)k;
        *last = some[k - 1];
    }
}

static void read_text(int fd, struct buf *text)
{
    char some[65536];
    ssize_t k;
    while ((k = read(fd, some, sizeof(some))) > 0)
        assert_int_equal(buf_add(text, some, (size_t)k), 0);
}

/* More than the spool holds, while the root hangs: the oldest and the newest come. */
static void test_a_root_that_does_not_answer(void **state)
{
    const char *dir = *state;
    enum { PIECES = 200, PIECE = 100000 };
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    struct launch l = launch_of(0, 8 << 20);
    struct sink *sink = sink_new(ends[1], "log");
    struct scribe *s = start(dir, &l, sink);
    _cleanup_(freep) char *piece = xmalloc(PIECE);
    memset(piece, 'x', PIECE);
    for (int i = 0; i < PIECES; i++) {
        piece[PIECE - 2] = (char)('a' + i % 26);
        piece[PIECE - 1] = '\n';
        scribe_add(s, piece, PIECE, clock_mono()); /* comes back, whatever the root does */
    }
    scribe_add(s, "the end!", 8, clock_mono());
    scribe_close(s);
    uint64_t got = 0;
    char last = 0;
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    while (!scribe_is_done(s, clock_mono()))
        read_all(ends[0], &got, &last);
    read_all(ends[0], &got, &last);
    struct scribe_end e;
    scribe_finish(s, &e);
    assert_false(e.is_stuck);
    assert_int_equal(got, e.log_bytes);
    assert_int_equal(last, '!');
    assert_true(e.dropped > 5 << 20 && e.dropped < 12 << 20);
    assert_true(e.log_bytes + e.dropped > PIECES * (uint64_t)PIECE);
    free(e.log_error);
    sink_free(sink);
    closep(&ends[0]);
}

/* The log ends while the spool is full: the line and the newest come once there is room. */
static void test_the_spools_disk_is_full(void **state)
{
    const char *dir = *state;
    enum { PIECES = 100, PIECE = 100000 };
    int ends[2];
    limit_files(1 << 20);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    struct launch l = launch_of(0, 1 << 30);
    struct sink *sink = sink_new(ends[1], "log");
    struct scribe *s = start(dir, &l, sink);
    _cleanup_(freep) char *piece = xmalloc(PIECE);
    memset(piece, 'x', PIECE);
    piece[PIECE - 1] = '\n';
    for (int i = 0; i < PIECES; i++)
        scribe_add(s, piece, PIECE, clock_mono());
    scribe_add(s, "the end!\n", 9, clock_mono());
    scribe_close(s);
    _cleanup_(buf_release) struct buf text = BUF_INIT(2 * PIECES * PIECE);
    assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
    while (!scribe_is_done(s, clock_mono()))
        read_text(ends[0], &text);
    read_text(ends[0], &text);
    struct scribe_end e;
    scribe_finish(s, &e);
    const char *told = strstr(buf_str(&text), "\n[argus] ");
    assert_non_null(told);
    assert_int_equal(strtoull(told + 9, NULL, 10), e.dropped);
    assert_non_null(strstr(told, "is full: File too large\n"));
    assert_string_equal(text.data + text.len - 11, "x\nthe end!\n");
    const char *after = strchr(told + 1, '\n') + 1;
    assert_true(text.len - (size_t)(after - text.data) > 900000);
    assert_int_equal(e.log_bytes, text.len);
    assert_int_equal(e.log_bytes + e.dropped - (size_t)(after - told - 1), PIECES * PIECE + 9);
    free(e.log_error);
    sink_free(sink);
    closep(&ends[0]);
    limit_files(RLIM_INFINITY);
}

static void test_a_flood_has_one_line_for_the_rest(void **state)
{
    const char *dir = *state;
    _cleanup_(freep) char *path = xasprintf("%s/log", dir);
    struct launch l = launch_of(1000, 1 << 20);
    struct sink *sink = NULL;
    assert_int_equal(sink_open(path, &sink, NULL), 0);
    struct scribe *s = start(dir, &l, sink);
    _cleanup_(freep) char *lines = xmalloc(3 << 20);
    for (int i = 0; i < 3 << 20; i++)
        lines[i] = i % 64 == 63 ? '\n' : 'x';
    scribe_add(s, "begin\n", 6, USEC_SEC);
    for (int i = 0; i < 3 << 20; i += 4096)
        scribe_add(s, lines + i, 4096, USEC_SEC);
    scribe_add(s, "end\n", 4, USEC_SEC);
    struct scribe_end e = finish(s);
    sink_free(sink);
    _cleanup_(buf_release) struct buf text = BUF_INIT(4 << 20);
    assert_int_equal(file_read(path, &text, NULL), 0);
    const char *told = strstr(buf_str(&text), "\n[argus] ");
    assert_non_null(told);
    assert_null(strstr(told + 2, "[argus]"));
    assert_int_equal(strtoull(told + 9, NULL, 10), e.dropped);
    assert_memory_equal(text.data + text.len - 6, "x\nend\n", 6);
    assert_memory_equal(text.data, "begin\nxxx", 9);
    assert_int_equal(text.len, e.log_bytes);
    const char *after = strchr(told + 1, '\n') + 1;
    assert_int_equal(e.log_bytes + e.dropped - (size_t)(after - told - 1), 10 + (3 << 20));
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, root_setup, root_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIR(test_all_of_it_is_there),
        IN_DIR(test_what_asks_for_the_end),
        IN_DIR(test_a_root_that_does_not_answer),
        IN_DIR(test_the_spools_disk_is_full),
        IN_DIR(test_a_flood_has_one_line_for_the_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
