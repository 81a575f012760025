/* SPDX-License-Identifier: Apache-2.0 */
/* The log: made once, and a log that cannot be written stops nobody. */
#define _GNU_SOURCE
#include "shepherd/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "base/unit.h"

static int setup(void **state)
{
    char *dir = xstrdup("/tmp/argus-sink-XXXXXX");
    *state = mkdtemp(dir) ? xasprintf("%s/log", dir) : NULL;
    free(dir);
    return *state ? 0 : -1;
}

static int teardown(void **state)
{
    char *path = *state;
    (void)unlink(path);
    *strrchr(path, '/') = 0;
    int r = rmdir(path);
    free(path);
    return r;
}

static void test_made_once(void **state)
{
    struct sink *s = NULL, *t = NULL;
    assert_int_equal(sink_open(*state, &s, NULL), 0);
    assert_int_equal(sink_open(*state, &t, NULL), -EEXIST);
    assert_null(t);
    assert_int_equal(sink_add(s, "a\nb", 3, 0), 0);
    sink_flush(s);
    assert_int_equal(sink_bytes(s), 3);
    assert_int_equal(sink_finish(s, NULL), 0);
    sink_free(s);
    _cleanup_(buf_release) struct buf text = BUF_INIT(100);
    assert_int_equal(file_read(*state, &text, NULL), 0);
    assert_string_equal(buf_str(&text), "a\nb");
}

static void test_device_that_is_full(void **state)
{
    (void)state;
    struct err err;
    struct sink *s = sink_new(open("/dev/full", O_WRONLY | O_CLOEXEC), "/dev/full");
    assert_int_equal(sink_add(s, "abc", 3, 0), 1); /* has just begun */
    assert_int_equal(sink_add(s, "abc", 3, 1), 0);
    assert_int_equal(sink_add(s, "abc", 3, 10 * USEC_SEC), 0); /* tried again, still full */
    assert_int_equal(sink_bytes(s), 0);
    assert_int_equal(sink_dropped(s), 9);
    assert_string_equal(sink_trouble(s), "No space left on device");
    assert_int_equal(sink_finish(s, &err), -ENOSPC);
    assert_non_null(strstr(err.text, "the end of '/dev/full' may be missing"));
    sink_free(s);
}

/* A limit on the file's size stands for a disk that is full and then is not. */
static void limit(rlim_t bytes)
{
    struct rlimit lim;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &lim), 0);
    lim.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &lim), 0);
}

static void test_goes_on_when_there_is_space_again(void **state)
{
    struct sigaction ignore = {.sa_handler = SIG_IGN}, old;
    struct sink *s = NULL;
    assert_int_equal(sigaction(SIGXFSZ, &ignore, &old), 0);
    assert_int_equal(sink_open(*state, &s, NULL), 0);
    limit(5);
    assert_int_equal(sink_add(s, "0123456789", 10, 0), 1);
    assert_int_equal(sink_bytes(s), 5);
    limit(RLIM_INFINITY);
    assert_int_equal(sink_add(s, "soon", 4, USEC_SEC / 2), 0); /* not tried before its time */
    assert_int_equal(sink_add(s, "later\n", 6, USEC_SEC), 0);
    assert_int_equal(sink_add(s, "end\n", 4, USEC_SEC), 0);
    assert_int_equal(sink_dropped(s), 9);
    assert_int_equal(sink_finish(s, NULL), 0);
    _cleanup_(buf_release) struct buf text = BUF_INIT(1000);
    assert_int_equal(file_read(*state, &text, NULL), 0);
    assert_string_equal(buf_str(&text),
                        "01234\nargus-shepherd: 9 bytes of output are missing here: "
                        "File too large\nlater\nend\n");
    assert_int_equal(sink_bytes(s), text.len);
    sink_free(s);
    assert_int_equal(sigaction(SIGXFSZ, &old, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_made_once, setup, teardown),
        cmocka_unit_test(test_device_that_is_full),
        cmocka_unit_test_setup_teardown(test_goes_on_when_there_is_space_again, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
