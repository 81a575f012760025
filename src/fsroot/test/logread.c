/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of logread.h: segments that join, gaps between them, and what is no segment. */
#include "fsroot/logs/logread.h"

#include <errno.h>
#include <fcntl.h>

#include "base/unit_dir.h"
#include "fsroot/attempt/launch.h"

#define LOG "jobs/j/attempts/1/logs/driver.log"

static struct logread_part part;
static char text[64];

/* What is read from this offset, with room for n bytes. */
static const char *from(const char *root, uint64_t offset, size_t n)
{
    assert_int_equal(logread_at(root, "j", 1, ATTEMPT_LOG, offset, text, n, &part, NULL), 0);
    text[part.n] = 0;
    return text;
}

static void test_one_file(void **state)
{
    part.n = 9;
    assert_int_equal(logread_at(*state, "j", 1, ATTEMPT_LOG, 0, text, 4, &part, NULL), -ENOENT);
    put(*state, "jobs/j/attempts/1/logs/other", "x");
    assert_int_equal(logread_at(*state, "j", 1, ATTEMPT_LOG, 0, text, 4, &part, NULL), -ENOENT);
    assert_int_equal(part.n, 9); /* untouched */
    put(*state, LOG, "0123456789");
    put(*state, LOG ".idx", "an index is no segment");
    put(*state, LOG ".07", "x");
    put(*state, LOG ".4x", "x");
    put(*state, LOG "s", "x");
    assert_string_equal(from(*state, 3, 4), "3456");
    assert_int_equal(part.offset, 3);
    assert_int_equal(part.end, 10);
    assert_int_equal(part.files, 1);
    assert_string_equal(from(*state, 8, 8), "89");
    assert_false(logread_is_torn(&part, 8));
    assert_string_equal(from(*state, 10, 8), "");
    assert_string_equal(from(*state, 1000, 8), "");
    assert_int_equal(part.offset, 1000);
    assert_int_equal(part.end, 10);
    assert_string_equal(from(*state, 0, 0), "");
    assert_int_equal(logread_at(*state, "j", 1, ATTEMPT_LOG, UINT64_MAX, text, 8, &part, NULL),
                     -EINVAL);
    assert_int_equal(logread_at(*state, "..", 1, ATTEMPT_LOG, 0, text, 8, &part, NULL), -EINVAL);
}

static void test_segments_join(void **state)
{
    put(*state, LOG, "01234");
    put(*state, LOG ".5", "56789");
    put(*state, LOG ".10", "abc");
    assert_string_equal(from(*state, 0, 60), "0123456789abc");
    assert_int_equal(part.end, 13);
    assert_int_equal(part.files, 3);
    assert_string_equal(from(*state, 4, 2), "45");
    assert_string_equal(from(*state, 5, 5), "56789");
    assert_string_equal(from(*state, 9, 60), "9abc");
    assert_false(logread_is_torn(&part, 60));
    assert_string_equal(from(*state, 13, 60), "");
    for (uint64_t at = 0; at < 13; at++) { /* wherever one stops, one goes on */
        char got[16] = {0};
        for (uint64_t i = at; i < 13; i++)
            got[i - at] = *from(*state, i, 1);
        assert_string_equal(got, &"0123456789abc"[at]);
    }
}

static void test_gap(void **state)
{
    put(*state, LOG, "01234");
    put(*state, LOG ".100", "after");
    assert_string_equal(from(*state, 0, 60), "01234");
    assert_int_equal(part.end, 105);
    assert_true(logread_is_torn(&part, 60));
    assert_string_equal(from(*state, 5, 60), "after");
    assert_int_equal(part.offset, 100);
    assert_false(logread_is_torn(&part, 60));
    assert_string_equal(from(*state, 50, 2), "af");
    assert_int_equal(part.offset, 100);
    assert_string_equal(from(*state, 102, 60), "ter");
    assert_int_equal(part.offset, 102);
}

/* A new segment that is still empty; one that is longer than the next one's name allows. */
/* The newest are what is asked for most; the first one is the beginning. */
static void test_more_segments_than_are_read(void **state)
{
    put(*state, LOG, "first");
    for (int i = 1; i <= 2 * LOGREAD_SEGMENTS_MAX + 10; i++) {
        _cleanup_(freep) char *name = xasprintf("%s/" LOG ".%d", (char *)*state, 10 * i);
        _cleanup_(closep) int fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
        assert_true(fd >= 0);
    }
    _cleanup_(freep) char *last = xasprintf(LOG ".%d", 10 * (2 * LOGREAD_SEGMENTS_MAX + 10));
    put(*state, last, "last");
    assert_string_equal(from(*state, 0, 8), "first");
    assert_int_equal(part.files, LOGREAD_SEGMENTS_MAX);
    assert_int_equal(part.end, 10 * (2 * LOGREAD_SEGMENTS_MAX + 10) + 4);
    assert_string_equal(from(*state, part.end - 4, 8), "last");
}

static void test_edges(void **state)
{
    put(*state, LOG, "01234xyz");
    put(*state, LOG ".5", "5");
    put(*state, LOG ".9", "");
    assert_string_equal(from(*state, 0, 60), "012345");
    assert_int_equal(part.end, 9);
    assert_string_equal(from(*state, 6, 60), "");
    assert_int_equal(part.offset, 9);
    assert_int_equal(part.end, 9);
}

static void test_other_logs(void **state)
{
    put(*state, "jobs/j/attempts/1/logs/workers/w1/a.out", "abc");
    put(*state, "jobs/j/attempts/1/logs/workers/w1/a.out.3", "def");
    put(*state, "jobs/j/attempts/1/logs/workers/w1/a.out2", "x");
    assert_int_equal(logread_at(*state, "j", 1, "logs/workers/w1/a.out", 1, text, 60, &part, NULL),
                     0);
    assert_memory_equal(text, "bcdef", 5);
    assert_int_equal(part.end, 6);
}

static void test_link_is_not_followed(void **state)
{
    _cleanup_(freep) char *path = xasprintf("%s/" LOG, (char *)*state);
    put(*state, "secret", "secret");
    put(*state, LOG ".3", "x");
    assert_int_equal(symlink("../../../../../secret", path), 0);
    assert_int_equal(logread_at(*state, "j", 1, ATTEMPT_LOG, 0, text, 8, &part, NULL), -ELOOP);
}

/* Nor one of a directory: a job could lead us to what only we can read. */
static void test_link_of_a_directory(void **state)
{
    _cleanup_(freep) char *path = xasprintf("%s/jobs/j/attempts/1/logs/workers/w2", (char *)*state);
    put(*state, "jobs/j/attempts/1/logs/workers/w1/a.out", "abc");
    put(*state, "elsewhere/a.out", "secret");
    assert_int_equal(symlink("../../../../../../elsewhere", path), 0);
    assert_int_equal(logread_at(*state, "j", 1, "logs/workers/w2/a.out", 0, text, 8, &part, NULL),
                     -ELOOP);
    assert_int_equal(
        logread_at(*state, "j", 1, "logs/workers/w1/a.out/b.out", 0, text, 8, &part, NULL), -ELOOP);
}

#define with_root(f) cmocka_unit_test_setup_teardown(f, root_setup, root_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        with_root(test_one_file),
        with_root(test_segments_join),
        with_root(test_gap),
        with_root(test_edges),
        with_root(test_more_segments_than_are_read),
        with_root(test_other_logs),
        with_root(test_link_is_not_followed),
        with_root(test_link_of_a_directory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
