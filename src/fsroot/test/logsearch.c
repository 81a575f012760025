/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of logsearch.h: over logs and attempts, in pieces that join without loss. */
#include "fsroot/logs/logsearch.h"

#include <stdio.h>
#include <string.h>

#include "base/unit_dir.h"

struct found {
    struct buf out;
    size_t most, n;
    unsigned looks; /* at the clock, in one run */
};

static bool on_hit(const struct logsearch_hit *hit, void *arg)
{
    struct found *f = arg;
    (void)buf_addf(&f->out, "%s/%d", hit->job, hit->k);
    if (hit->file)
        (void)buf_addf(&f->out, "/%s/%s", hit->file->node, hit->file->name);
    (void)buf_addf(&f->out, ":%d:%.*s|", (int)hit->offset, (int)hit->n, hit->line);
    return !f->most || ++f->n % f->most;
}

/* most: hits of each run; 0: all in one. */
static void search_in(const char *root,
                      const char *pattern,
                      unsigned sources,
                      size_t most,
                      const char *want)
{
    static char a[] = "a", b[] = "b", c[] = "none";
    const struct logsearch_target targets[] = {{a, 2, 1}, {c, 1, 1}, {c, 0, 1}, {b, 1, 1}};
    struct found f = {.out = BUF_INIT(1 << 16), .most = most};
    struct logsearch s = {.root = root,
                          .targets = targets,
                          .n_targets = 4,
                          .sources = sources,
                          .most_bytes = UINT64_MAX,
                          .on_hit = on_hit,
                          .arg = &f};
    assert_int_equal(loggrep_new(pattern, &s.grep, NULL), 0);
    do
        logsearch_run(&s);
    while (s.at < s.n_targets);
    assert_string_equal(buf_str(&f.out), want);
    buf_release(&f.out);
    loggrep_free(s.grep);
}

static void search(const char *root, const char *pattern, size_t most, const char *want)
{
    search_in(root, pattern, LOGSEARCH_DRIVER, most, want);
}

static void fill(const char *root)
{
    put(root, "jobs/a/attempts/1/logs/driver.log", "old error\nfine\n");
    put(root, "jobs/a/attempts/2/logs/driver.log", "error 1\nx\nerror 2\n");
    put(root, "jobs/a/attempts/2/logs/driver.log.100", "error 3");
    put(root, "jobs/b/attempts/1/logs/driver.log", "\n\nno end error");
}

static void test_all(void **state)
{
    const char *want =
        "a/2:0:error 1|a/2:10:error 2|a/2:100:error 3|a/1:0:old error|b/1:2:no end error|";
    fill(*state);
    for (size_t most = 0; most < 7; most++)
        search(*state, "error", most, want);
    search(*state, "^x$", 1, "a/2:8:x|");
    search(*state, "nowhere", 0, "");
}

static void test_workers(void **state)
{
    const char *const workers =
        "a/2/n1/worker-a-1-5.out:2:error w|a/2/n2/worker-b-1-6.err:0:error x|";
    const char *const rest = "b/1/n1/worker-c-1-7.out:0:error y|";
    fill(*state);
    put(*state, "jobs/a/attempts/2/logs/workers/n1/worker-a-1-5.out", "1\nerror w\nno\n");
    put(*state, "jobs/a/attempts/2/logs/workers/n1/notes.txt", "error\n");
    put(*state, "jobs/a/attempts/2/logs/workers/n2/worker-b-1-6.err", "error x");
    put(*state, "jobs/b/attempts/1/logs/workers/n1/worker-c-1-7.out", "error y\n");
    _cleanup_(freep) char *of_workers = xasprintf("%s%s", workers, rest);
    _cleanup_(freep) char *of_all = xasprintf(
        "a/2:0:error 1|a/2:10:error 2|a/2:100:error 3|%sa/1:0:old error|b/1:2:no end error|%s",
        workers, rest);
    for (size_t most = 0; most < 4; most++) {
        search_in(*state, "error", LOGSEARCH_WORKERS, most, of_workers);
        search_in(*state, "error", LOGSEARCH_DRIVER | LOGSEARCH_WORKERS, most, of_all);
    }
}

static bool on_any(const struct logsearch_hit *hit, void *arg)
{
    struct found *f = arg;
    (void)buf_addf(&f->out, "%d|", (int)hit->offset);
    return true;
}

/* Searches one log alone, and tells where its last whole line ends. */
static void search_one(const char *root,
                       unsigned sources,
                       const char *only,
                       uint64_t whole,
                       const char *want)
{
    static char a[] = "a";
    const struct logsearch_target target = {a, 2, 2};
    struct found f = {.out = BUF_INIT(1 << 16)};
    struct logsearch s = {.root = root,
                          .targets = &target,
                          .n_targets = 1,
                          .sources = sources,
                          .only = only,
                          .most_bytes = UINT64_MAX,
                          .on_hit = on_any,
                          .arg = &f};
    assert_int_equal(loggrep_new("error", &s.grep, NULL), 0);
    logsearch_run(&s);
    assert_int_equal(s.at, 1);
    assert_string_equal(buf_str(&f.out), want);
    assert_int_equal(s.whole, whole);
    buf_release(&f.out);
    loggrep_free(s.grep);
}

static void test_one_log(void **state)
{
    const char *root = *state;
    put(root, "jobs/a/attempts/2/logs/driver.log", "error 1\nx\nerror 2");
    put(root, "jobs/a/attempts/2/logs/workers/n1/worker-a-1-5.out", "error\nno\n");
    put(root, "jobs/a/attempts/2/logs/workers/n1/worker-b-1-6.out", "an error");
    put(root, "jobs/a/attempts/2/scene/n1/kernel.txt", "1\nerror s\n");
    put(root, "jobs/a/attempts/2/scene/ray_nodes.json", "error of all\n");
    search_one(root, LOGSEARCH_DRIVER, NULL, 10, "0|10|");
    search_one(root, LOGSEARCH_WORKERS, "n1/worker-a-1-5.out", 9, "0|");
    search_one(root, LOGSEARCH_WORKERS, "n1/worker-b-1-6.out", 0, "0|");
    search_one(root, LOGSEARCH_WORKERS, "n1/worker-c-1-7.out", 0, "");
    search_one(root, LOGSEARCH_SCENE, "n1/kernel.txt", 10, "2|");
    search_one(root, LOGSEARCH_SCENE, "ray_nodes.json", 13, "0|");
    search_one(root, LOGSEARCH_SCENE, NULL, 10, "0|2|");
}

/* Lines over the ends of chunks, a line longer than a chunk, and a ceiling on bytes. */
static void test_long_logs(void **state)
{
    struct buf log = BUF_INIT(8 << 20), want = BUF_INIT(1 << 16);
    for (int i = 0; i < 60000; i++) {
        if (i % 5000 == 77)
            (void)buf_addf(&want, "b/1:%zu:needle %d|", log.len, i);
        (void)buf_addf(&log, i % 5000 == 77 ? "needle %d\n" : "this is only hay, line %d\n", i);
        if (i == 30000)
            for (int k = 0; k < 700000; k++)
                (void)buf_addc(&log, k % 100 ? 'x' : ' ');
    }
    put(*state, "jobs/b/attempts/1/logs/driver.log", buf_str(&log));
    for (size_t most = 0; most < 3; most++)
        search(*state, "needle", most, buf_str(&want));
    buf_release(&log);
    buf_release(&want);
}

/* There is time to begin with a piece, and none to end it. */
static bool logsearch_test_is_late(void *arg)
{
    struct found *f = arg;
    return f->looks++ > 0;
}

/* A line that would hold the search is passed over; what stands behind it comes in the next run. */
static void test_late_within_a_piece(void **state)
{
    enum { LONG = 100000 };
    static char c[] = "c";
    const struct logsearch_target target = {c, 1, 1};
    struct found f = {.out = BUF_INIT(1 << 16)};
    struct buf log = BUF_INIT(1 << 20);
    struct logsearch s = {.root = *state,
                          .targets = &target,
                          .n_targets = 1,
                          .sources = LOGSEARCH_DRIVER,
                          .most_bytes = UINT64_MAX,
                          .is_late = logsearch_test_is_late,
                          .on_hit = on_hit,
                          .arg = &f};
    for (int i = 0; i < LONG; i++)
        (void)buf_addc(&log, 'a');
    (void)buf_adds(&log, "\naaZ\n");
    put(*state, "jobs/c/attempts/1/logs/driver.log", buf_str(&log));
    assert_int_equal(loggrep_new("a{1,65000}?[XZ]", &s.grep, NULL), 0);
    logsearch_run(&s);
    assert_int_equal(s.at, 0);
    assert_int_equal(s.offset, LONG + 1);
    assert_int_equal(s.whole, LONG + 1);
    assert_int_equal(f.out.len, 0);
    while (s.at < s.n_targets) {
        f.looks = 0;
        logsearch_run(&s);
    }
    assert_string_equal(buf_str(&f.out), "c/1:100001:aaZ|");
    loggrep_free(s.grep);
    buf_release(&log);
    buf_release(&f.out);
}

#define with_root(f) cmocka_unit_test_setup_teardown(f, root_setup, root_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {with_root(test_all), with_root(test_workers),
                                       with_root(test_one_log), with_root(test_long_logs),
                                       with_root(test_late_within_a_piece)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
