/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of logindex.h with logindexer.h: a search finds the same with an index as without, whatever
 * has become of log and index, and reads far less where both are whole. */
#define _GNU_SOURCE
#include "fsroot/logs/logindex.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/unit_dir.h"
#include "fsroot/attempt/launch.h"
#include "fsroot/logs/logindex_file.h"
#include "fsroot/logs/logindexer.h"
#include "fsroot/logs/logsearch.h"

#define DIR_OF_LOG "jobs/j/attempts/1/logs"

/* 0 to n - 1. */
static size_t dice(size_t n)
{
    static uint64_t s = 88172645463325252ULL;
    s ^= s << 13;
    s ^= s >> 7;
    s ^= s << 17;
    return (size_t)(s >> 11) % n;
}

struct found {
    struct buf out;
    size_t n, most;
};

static bool on_hit(const struct logsearch_hit *hit, void *arg)
{
    struct found *f = arg;
    (void)buf_addf(&f->out, "%d:%.*s|", (int)hit->offset, (int)hit->n, hit->line);
    return !f->most || ++f->n % f->most;
}

/* Hits as text, yours. most: of one run. */
static char *search(const char *root,
                    const char *pattern,
                    bool is_indexed,
                    size_t most,
                    uint64_t *ret)
{
    static char job[] = "j";
    const struct logsearch_target target = {job, 1, 1};
    struct found f = {.out = BUF_INIT(8 << 20), .most = most};
    struct grepneeds needs;
    grepneeds_read(pattern, &needs);
    struct logindex_ask *ask = is_indexed ? logindex_ask_new(&needs) : NULL;
    struct logsearch s = {.root = root,
                          .ask = ask,
                          .targets = &target,
                          .n_targets = 1,
                          .sources = LOGSEARCH_DRIVER,
                          .most_bytes = UINT64_MAX,
                          .on_hit = on_hit,
                          .arg = &f};
    assert_int_equal(loggrep_new(pattern, &s.grep, NULL), 0);
    do
        logsearch_run(&s);
    while (s.at < s.n_targets);
    *ret = s.skipped;
    loggrep_free(s.grep);
    logindex_ask_free(ask);
    grepneeds_release(&needs);
    assert_false(f.out.failed);
    return buf_take(&f.out);
}

/* The same hits both ways; returns the bytes that were not read. */
static uint64_t same(const char *root, const char *pattern)
{
    uint64_t none, skipped = 0;
    _cleanup_(freep) char *want = search(root, pattern, false, 0, &none);
    for (size_t most = 0; most < 3; most++) {
        _cleanup_(freep) char *got = search(root, pattern, true, most, &skipped);
        assert_true(!strcmp(got, want)); /* long texts */
    }
    assert_true(none == 0);
    return skipped;
}

/* n bytes of lines; "needle <k>" every `each`-th. */
static void make_log(struct buf *to, size_t n, int each)
{
    static const char *const words[] = {"step", "loss", "actor/entropy", "timing_s/gen",
                                        "INFO", "rank", "[36m(pid=",     "tokens"};
    for (int i = 1; to->len < n; i++) {
        for (size_t k = dice(9) + 1; k > 0; k--)
            (void)buf_addf(to, "%s:%d.%03d ", words[dice(array_len(words))], i, (int)dice(999));
        (void)buf_addf(to, i % each ? "\n" : "needle %d\n", i);
    }
}

/* The log and its index, told in pieces; late: one block of so many is left out; 0: none. */
static void write_log(const char *root, const struct buf *log, size_t late)
{
    _cleanup_(freep) char *path = xasprintf("%s/jobs/j/attempts/1/" ATTEMPT_LOG, root);
    put(root, DIR_OF_LOG "/driver.log", buf_str(log));
    struct logindexer *x = logindexer_new(path);
    for (size_t at = 0; at < log->len;) {
        size_t n = 1 + dice(100 << 10);
        n = n < log->len - at ? n : log->len - at;
        logindexer_add(x, at, buf_str(log) + at, n, 1, late && !dice(late));
        at += n;
    }
    logindexer_finish(x, 2);
    logindexer_free(x);
}

static void test_reads_little(void **state)
{
    enum { N = 17 << 20 };
    struct buf log = BUF_INIT(N + (1 << 20));
    make_log(&log, N, 80000);
    write_log(*state, &log, 0);
    assert_true(same(*state, "(?i)NEEDLE [0-9]+$|nowhere") > N / 10 * 8);
    assert_true(same(*state, "nowhere") > N - LOGINDEX_LEAST);
    struct stat st;
    _cleanup_(freep) char *path = xasprintf("%s/" DIR_OF_LOG "/driver.log.idx", (char *)*state);
    assert_int_equal(stat(path, &st), 0);
    assert_true(st.st_size < N / 50);
    buf_release(&log);
}

static void test_some_blocks_are_left_out(void **state)
{
    struct buf log = BUF_INIT(8 << 20);
    make_log(&log, 3 << 20, 3000);
    write_log(*state, &log, 3);
    (void)same(*state, "needle 9000$");
    assert_true(same(*state, "nowhere") > 1 << 19);
    buf_release(&log);
}

/* What stands at the borders of blocks, and lines of any length. */
static void test_long_lines(void **state)
{
    struct buf log = BUF_INIT(16 << 20);
    for (int i = 0; i < 24; i++) {
        size_t n = dice(i % 3 ? 100 << 10 : 900 << 10);
        for (size_t k = 0; k < n; k++)
            (void)buf_addc(&log, "abcdefgh "[dice(9)]);
        (void)buf_adds(&log, i % 5 ? "\n" : "needle");
    }
    write_log(*state, &log, 0);
    (void)same(*state, "needle");
    (void)same(*state, "hhh.*needle");
    buf_release(&log);
}

static void change(const char *root, const char *name, int64_t at, char c)
{
    _cleanup_(freep) char *path = xasprintf("%s/" DIR_OF_LOG "/%s", root, name);
    _cleanup_(closep) int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pwrite(fd, &c, 1, (off_t)at), 1);
}

static void shorten(const char *root, const char *name, int64_t n)
{
    _cleanup_(freep) char *path = xasprintf("%s/" DIR_OF_LOG "/%s", root, name);
    assert_int_equal(truncate(path, (off_t)n), 0);
}

static void append(const char *root, const char *text)
{
    _cleanup_(freep) char *path = xasprintf("%s/" DIR_OF_LOG "/driver.log", root);
    _cleanup_(closep) int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(file_write_all(fd, text, strlen(text)), 0);
}

static void test_what_became_of_them(void **state)
{
    struct buf log = BUF_INIT(24 << 20);
    make_log(&log, 4 << 20, 7000);
    write_log(*state, &log, 0);
    uint64_t whole = same(*state, "needle 7000$");
    assert_true(whole > 2 << 20);

    append(*state, "more, and a needle 7000\n"); /* the log is longer */
    assert_true(same(*state, "needle 7000$") == whole);
    for (int i = 0; i < 40; i++) /* torn records */
        change(*state, "driver.log.idx", (int64_t)dice(60 << 10), (char)dice(256));
    assert_true(same(*state, "needle 7000$") < whole);
    for (int64_t n = 70000; n > 0; n -= 21111) {
        shorten(*state, "driver.log.idx", n);
        (void)same(*state, "needle 7000$");
    }
    shorten(*state, "driver.log.idx", 0);
    assert_true(same(*state, "ne.d.le") == 0);
    buf_release(&log);
}

static void test_of_another_log(void **state)
{
    struct buf log = BUF_INIT(4 << 20), other = BUF_INIT(4 << 20);
    make_log(&log, 3 << 20, 7000);
    make_log(&other, 3 << 20, 500);
    write_log(*state, &log, 0);
    put(*state, DIR_OF_LOG "/driver.log", buf_str(&other));
    assert_true(same(*state, "ne.d.le") == 0);
    put(*state, DIR_OF_LOG "/driver.log", "needle\n");
    assert_true(same(*state, "ne.d.le") == 0);
    buf_release(&log);
    buf_release(&other);
}

/* The log is kept in many files, some of which have gone, and a line tells of that. */
static void test_rotated(void **state)
{
    struct buf log = BUF_INIT(24 << 20);
    make_log(&log, 6 << 20, 7000);
    write_log(*state, &log, 0);
    const char *text = buf_str(&log), *cut = strchr(text + (1 << 20), '\n') + 1;
    const char *from = strchr(text + (3 << 20), '\n') + 1, *line = "needle was dropped\n";
    _cleanup_(freep) char *head = xstrndup(text, (size_t)(cut - text));
    put(*state, DIR_OF_LOG "/driver.log", head);
    _cleanup_(freep) char *tail = xasprintf(DIR_OF_LOG "/driver.log.%d", (int)(from - text));
    put(*state, tail, from);
    _cleanup_(freep) char *gap =
        xasprintf(DIR_OF_LOG "/driver.log.%d", (int)(from - text - (int)strlen(line)));
    put(*state, gap, line);
    uint64_t none;
    _cleanup_(freep) char *got = search(*state, "needle was dr", true, 0, &none);
    assert_non_null(strstr(got, "needle was dropped|"));
    assert_true(same(*state, "needle 7000$") > 2 << 20);
    assert_true(same(*state, "needle") > 0);
    buf_release(&log);
}

/* Asks until it says that all the rest is to be read; calls that took. told: end of each. */
static int ask_all(const char *root, const char *pattern, uint64_t *told, int most)
{
    struct grepneeds needs;
    grepneeds_read(pattern, &needs);
    struct logindex_ask *ask = logindex_ask_new(&needs);
    struct logindex *x = logindex_open(root, "j", 1, ATTEMPT_LOG, ask);
    assert_non_null(x);
    uint64_t begin = 0;
    int n = 0;
    do {
        assert_true(n < most);
        logindex_next(x, n ? told[n - 1] : 0, &begin, &told[n]);
    } while (told[n++] != UINT64_MAX);
    logindex_close(x);
    logindex_ask_free(ask);
    grepneeds_release(&needs);
    return n;
}

/* Both are the job's, and may be of any size. */
static void test_no_call_is_long(void **state)
{
    uint64_t told[9];
    struct buf log = BUF_INIT(4 << 20);
    make_log(&log, 1 << 20, 7000);
    write_log(*state, &log, 0);
    shorten(*state, "driver.log.idx", 1LL << 40);
    assert_int_equal(ask_all(*state, "nowhere", told, 9), 1);
    shorten(*state, "driver.log", 1LL << 40);
    assert_in_range(ask_all(*state, "nowhere", told, 9), 3, 9);
    assert_true(told[0] > LOGINDEX_BLOCK && told[0] <= log.len);
    buf_release(&log);
}

/* The first lines do not wait until all of the index was read. */
static void test_what_is_needed_comes_soon(void **state)
{
    uint64_t told[4];
    struct buf log = BUF_INIT(24 << 20);
    make_log(&log, 20 << 20, 7000);
    write_log(*state, &log, 0);
    assert_int_equal(ask_all(*state, "step", told, 4), 3);
    for (int i = 0; i < 2; i++) {
        assert_in_range(told[i] - (i ? told[0] : 0), 8 << 20, 9 << 20);
        assert_int_equal(buf_str(&log)[told[i] - 1], '\n');
    }
    (void)same(*state, "needle|step:70[0-9]*0 ");
    buf_release(&log);
}

#define with_root(f) cmocka_unit_test_setup_teardown(f, root_setup, root_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_root(test_reads_little),    with_root(test_some_blocks_are_left_out),
        with_root(test_long_lines),      with_root(test_what_became_of_them),
        with_root(test_of_another_log),  with_root(test_rotated),
        with_root(test_no_call_is_long), with_root(test_what_is_needed_comes_soon)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
