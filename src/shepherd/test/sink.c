/* SPDX-License-Identifier: Apache-2.0 */
/* The log: made once, goes on in further files, and its errors are told. */
#define _GNU_SOURCE
#include "shepherd/attempt/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/unit.h"
#include "base/unit_dir.h"
#include "shepherd/test/full.h"

static char *log_in(void **state)
{
    return xasprintf("%s/log", (const char *)*state);
}

static void must_write(struct sink *s, const char *text)
{
    size_t done;
    assert_int_equal(sink_write(s, text, strlen(text), &done), 0);
    assert_int_equal(done, strlen(text));
}

static void must_hold(const char *path, const char *offset, const char *text)
{
    _cleanup_(freep) char *name = xasprintf("%s%s", path, offset);
    _cleanup_(buf_release) struct buf got = BUF_INIT(1 << 20);
    assert_int_equal(file_read(name, &got, NULL), 0);
    assert_string_equal(buf_str(&got), text);
}

static bool is_there(const char *path, const char *offset)
{
    _cleanup_(freep) char *name = xasprintf("%s%s", path, offset);
    return file_is_there(name);
}

static void test_made_once(void **state)
{
    _cleanup_(freep) char *path = log_in(state);
    struct sink *s = NULL, *t = NULL;
    assert_int_equal(sink_open(path, &s, NULL), 0);
    assert_int_equal(sink_open(path, &t, NULL), -EEXIST);
    assert_null(t);
    must_write(s, "a\nb");
    sink_flush(s);
    assert_int_equal(sink_bytes(s), 3);
    assert_int_equal(sink_finish(s, NULL), 0);
    sink_free(s);
    must_hold(path, "", "a\nb");
}

static void test_device_that_is_full(void **state)
{
    (void)state;
    size_t done;
    struct sink *s = sink_new(open("/dev/full", O_WRONLY | O_CLOEXEC), "/dev/full");
    assert_int_equal(sink_write(s, "abc", 3, &done), -ENOSPC);
    assert_int_equal(done, 0);
    assert_int_equal(sink_bytes(s), 0);
    sink_free(s);
}

static void test_the_rest_can_be_given_again(void **state)
{
    _cleanup_(freep) char *path = log_in(state);
    struct sink *s = NULL;
    size_t done;
    assert_int_equal(sink_open(path, &s, NULL), 0);
    limit_files(5);
    assert_int_equal(sink_write(s, "0123456789", 10, &done), -EFBIG);
    assert_int_equal(done, 5);
    limit_files(RLIM_INFINITY);
    must_write(s, "56789");
    assert_int_equal(sink_bytes(s), 10);
    sink_free(s);
    must_hold(path, "", "0123456789");
}

static void test_files_end_with_a_line(void **state)
{
    _cleanup_(freep) char *path = log_in(state);
    struct sink *s = NULL;
    assert_int_equal(sink_open(path, &s, NULL), 0);
    sink_limit(s, 10, 0);
    must_write(s, "12345\n");
    must_write(s, "789012\nabc\ndef\n");
    must_write(s, "a line too long for one file!!");
    must_write(s, "!\n");
    assert_int_equal(sink_bytes(s), 53);
    sink_free(s);
    must_hold(path, "", "12345\n");
    must_hold(path, ".6", "789012\n");
    must_hold(path, ".13", "abc\ndef\n");
    must_hold(path, ".21", "a line too");
    must_hold(path, ".31", " long for ");
    must_hold(path, ".41", "one file!!!\n");
}

static void test_the_oldest_but_the_first_go(void **state)
{
    _cleanup_(freep) char *path = log_in(state);
    struct sink *s = NULL;
    assert_int_equal(sink_open(path, &s, NULL), 0);
    sink_limit(s, 1 << 20, 4000);
    char line[1001];
    for (int i = 0; i < 4; i++) {
        (void)snprintf(line, sizeof(line), "%999d\n", i);
        must_write(s, line);
    }
    assert_true(is_there(path, ".1000") && is_there(path, ".3000") && sink_removed(s) == 0);
    for (int i = 4; i < 9; i++) {
        (void)snprintf(line, sizeof(line), "%999d\n", i);
        must_write(s, line);
    }
    assert_int_equal(sink_bytes(s), 9000);
    assert_int_equal(sink_removed(s), 5000);
    sink_free(s);
    assert_true(is_there(path, "") && is_there(path, ".6000") && is_there(path, ".8000"));
    assert_false(is_there(path, ".1000") || is_there(path, ".5000"));
    /* it ends where the next one begins, and there is one such file */
    must_hold(path, ".5898",
              "[argus] 5000 bytes of output dropped here: the log may hold 4000 bytes, its first "
              "and its newest stay\n");
    assert_false(is_there(path, ".4898"));
}

/* A descriptor that takes nothing any more stands for one whose server forgot it. */
static struct sink *open_and_lose(const char *path)
{
    size_t done;
    int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    struct sink *s = sink_new(fd, path);
    must_write(s, "one\n");
    _cleanup_(closep) int none = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(dup2(none, fd), fd);
    assert_int_equal(sink_write(s, "two\n", 4, &done), -EBADF);
    return s;
}

static void test_a_file_that_was_lost_is_found_again(void **state)
{
    _cleanup_(freep) char *path = log_in(state);
    struct sink *s = open_and_lose(path);
    must_write(s, "two\n");
    sink_free(s);
    must_hold(path, "", "one\ntwo\n");
}

static void test_a_log_whose_file_is_gone_goes_on_in_the_next(void **state)
{
    _cleanup_(freep) char *path = log_in(state);
    struct sink *s = open_and_lose(path);
    assert_int_equal(unlink(path), 0);
    must_write(s, "two\n");
    sink_free(s);
    must_hold(path, ".4", "two\n");
    assert_false(is_there(path, ""));
}

/* Bytes of a write that said it failed are there all the same. */
static void test_what_a_failed_write_left_is_not_doubled(void **state)
{
    _cleanup_(freep) char *path = log_in(state);
    struct sink *s = open_and_lose(path);
    assert_int_equal(file_write(path, "one\ntw", 6, 0644, 0, NULL), 0);
    must_write(s, "two\n");
    assert_int_equal(sink_finish(s, NULL), 0);
    sink_free(s);
    must_hold(path, "", "one\ntwo\n");
}

static void test_bytes_that_were_lost_are_told_at_the_end(void **state)
{
    struct err err;
    _cleanup_(freep) char *path = log_in(state);
    struct sink *s = open_and_lose(path);
    assert_int_equal(truncate(path, 2), 0);
    must_write(s, "two\n");
    assert_int_equal(sink_finish(s, &err), -EIO);
    assert_non_null(strstr(err.text, "may be missing"));
    sink_free(s);
    must_hold(path, "", "on");
    must_hold(path, ".4", "two\n");
}

/* Made by a try that failed late: ours. One that holds something is somebody else's. */
static void test_the_next_file_is_there_already(void **state)
{
    _cleanup_(freep) char *path = log_in(state);
    _cleanup_(freep) char *empty = xasprintf("%s.4", path), *full = xasprintf("%s.8", path);
    struct sink *s = NULL;
    assert_int_equal(sink_open(path, &s, NULL), 0);
    sink_limit(s, 4, 0);
    assert_int_equal(file_write(empty, "", 0, 0644, 0, NULL), 0);
    assert_int_equal(file_write(full, "other", 5, 0644, 0, NULL), 0);
    must_write(s, "one\ntwo\nthr\n");
    assert_int_equal(sink_finish(s, NULL), 0);
    sink_free(s);
    must_hold(path, ".4", "two\n");
    must_hold(path, ".8", "thr\n");
    must_hold(path, ".8.found", "other");
}

static void test_a_directory_in_the_place_of_the_next_file(void **state)
{
    _cleanup_(freep) char *path = log_in(state);
    _cleanup_(freep) char *dir = xasprintf("%s.4/sub", path);
    struct sink *s = open_and_lose(path);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(file_mkdirs(dir, 0755, NULL), 0);
    must_write(s, "two\n");
    sink_free(s);
    must_hold(path, ".4", "two\n");
    assert_true(is_there(path, ".4.found/sub"));
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, root_setup, root_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIR(test_made_once),
        cmocka_unit_test(test_device_that_is_full),
        IN_DIR(test_the_rest_can_be_given_again),
        IN_DIR(test_files_end_with_a_line),
        IN_DIR(test_the_oldest_but_the_first_go),
        IN_DIR(test_a_file_that_was_lost_is_found_again),
        IN_DIR(test_a_log_whose_file_is_gone_goes_on_in_the_next),
        IN_DIR(test_what_a_failed_write_left_is_not_doubled),
        IN_DIR(test_bytes_that_were_lost_are_told_at_the_end),
        IN_DIR(test_the_next_file_is_there_already),
        IN_DIR(test_a_directory_in_the_place_of_the_next_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
