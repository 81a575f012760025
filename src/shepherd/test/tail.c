/* SPDX-License-Identifier: Apache-2.0 */
/* What Ray is given: the first bytes, the last bytes, never too many and never blocking. */
#define _GNU_SOURCE
#include "shepherd/attempt/tail.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/unit.h"

/* What was written to fd since the last time. */
static void take(int fd, struct buf *out)
{
    char part[4096];
    ssize_t n;
    buf_reset(out);
    assert_true(lseek(fd, 0, SEEK_SET) == 0);
    while ((n = read(fd, part, sizeof(part))) > 0)
        assert_int_equal(buf_add(out, part, (size_t)n), 0);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_true(lseek(fd, 0, SEEK_SET) == 0);
}

static void use_up_the_first(struct tail *t, int fd, struct buf *out)
{
    _cleanup_(freep) char *first = xmalloc(TAIL_FIRST);
    memset(first, 'f', TAIL_FIRST);
    tail_add(t, first, TAIL_FIRST);
    take(fd, out);
    assert_int_equal(out->len, TAIL_FIRST);
}

static void test_first_then_a_part_then_the_last(void **state)
{
    (void)state;
    _cleanup_(closep) int fd = memfd_create("tail", MFD_CLOEXEC);
    _cleanup_(buf_release) struct buf out = BUF_INIT(1 << 20);
    struct tail t;
    tail_init(&t, fd, "/the/log");
    use_up_the_first(&t, fd, &out);

    tail_add(&t, "small\n", 6); /* waits for its time, then comes whole */
    take(fd, &out);
    assert_int_equal(out.len, 0);
    tail_tick(&t, 10 * USEC_SEC);
    take(fd, &out);
    assert_string_equal(buf_str(&out), "small\n");

    for (int i = 0; i < 10000; i++)
        tail_add(&t, "0123456789abcde\n", 16);
    tail_tick(&t, 10 * USEC_SEC + 1); /* too early */
    take(fd, &out);
    assert_int_equal(out.len, 0);
    tail_tick(&t, 11 * USEC_SEC);
    take(fd, &out);
    assert_true(out.len <= TAIL_PER_SECOND + 200);
    assert_non_null(strstr(buf_str(&out), "bytes left out here: the whole output is in '/the/log'\n"
                                          "0123456789abcde\n"));

    for (int i = 0; i < 10000; i++)
        tail_add(&t, "0123456789abcde\n", 16);
    tail_add(&t, "the end", 7);
    tail_finish(&t);
    take(fd, &out);
    assert_true(out.len > TAIL_LAST / 2 && out.len <= TAIL_LAST + 200);
    assert_string_equal(buf_str(&out) + out.len - 23, "0123456789abcde\nthe end");
}

static void test_one_big_piece(void **state)
{
    (void)state;
    _cleanup_(closep) int fd = memfd_create("tail", MFD_CLOEXEC);
    _cleanup_(buf_release) struct buf out = BUF_INIT(1 << 20);
    size_t n = 1 << 20;
    _cleanup_(freep) char *big = xmalloc(n);
    struct tail t;
    memset(big, 'x', n);
    big[n - 1] = 'E';
    tail_init(&t, fd, "/the/log");
    tail_add(&t, big, n);
    tail_finish(&t);
    take(fd, &out);
    assert_non_null(strstr(buf_str(&out), "argus-shepherd: 966656 bytes left out here"));
    assert_int_equal(buf_str(&out)[out.len - 1], 'E');
}

static void test_a_full_pipe_is_not_waited_for(void **state)
{
    (void)state;
    int p[2];
    char part[4096] = {0};
    struct tail t;
    assert_int_equal(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
    while (write(p[1], part, sizeof(part)) > 0)
        ;
    assert_int_equal(fcntl(p[1], F_SETFL, 0), 0); /* from here on a write would block for ever */
    tail_init(&t, p[1], "/the/log");
    tail_add(&t, part, sizeof(part));
    tail_say(&t, "%s", "hello");
    close(p[0]);
    close(p[1]);
}

static void test_our_own_lines_wait_for_a_slow_reader(void **state)
{
    (void)state;
    int p[2];
    char part[4096] = {0};
    _cleanup_(buf_release) struct buf out = BUF_INIT(1 << 20);
    struct tail t;
    assert_int_equal(pipe2(p, O_CLOEXEC | O_NONBLOCK), 0);
    while (write(p[1], part, sizeof(part)) > 0)
        ;
    tail_init(&t, p[1], "/the/log");
    tail_say(&t, "%s", "first");
    tail_add(&t, "lost", 4);
    for (int i = 0; i < 1000; i++)
        tail_say(&t, "%s", "too many");
    assert_true(t.said_n <= TAIL_SAID);
    while (read(p[0], part, sizeof(part)) > 0)
        ;
    tail_add(&t, "newer\n", 6);
    ssize_t n;
    while ((n = read(p[0], part, sizeof(part))) > 0)
        assert_int_equal(buf_add(&out, part, (size_t)n), 0);
    assert_memory_equal(buf_str(&out), "argus-shepherd: first\nargus-shepherd: too many\n", 47);
    assert_string_equal(buf_str(&out) + out.len - 31, "argus-shepherd: too many\nnewer\n");
    assert_null(strstr(buf_str(&out), "lost"));
    close(p[0]);
    close(p[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_first_then_a_part_then_the_last),
        cmocka_unit_test(test_one_big_piece),
        cmocka_unit_test(test_a_full_pipe_is_not_waited_for),
        cmocka_unit_test(test_our_own_lines_wait_for_a_slow_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
