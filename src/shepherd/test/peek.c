/* SPDX-License-Identifier: Apache-2.0 */
/* A process that hangs is waited for once, and asked again when its thread is back. */
#define _GNU_SOURCE
#include "shepherd/host/peek.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/unit.h"

#define SHORT (100 * USEC_MS)
#define FOREVER (3600 * USEC_SEC) /* of what does not hang, however busy the machine is */

static pthread_mutex_t the_lock = PTHREAD_MUTEX_INITIALIZER; /* of memory, of all that hang */

/* Odd ones hang for as long as the lock is held. */
static bool read_some(pid_t pid, const char *file, struct buf *out)
{
    static const char text[] = "RANK=3\0EMPTY=\0MORE=a b\0";
    if (pid % 2) {
        pthread_mutex_lock(&the_lock);
        pthread_mutex_unlock(&the_lock);
    }
    size_t n = sizeof(text) - 1 < out->max ? sizeof(text) - 1 : out->max;
    return !strcmp(file, "environ") && buf_add(out, text, n) == 0;
}

static void test_who_hangs_holds_nobody(void **state)
{
    (void)state;
    struct peek *p = peek_new(read_some, SHORT);
    char *rank = NULL;
    pthread_mutex_lock(&the_lock);
    for (pid_t pid = 1; pid < 100; pid += 2)
        assert_int_equal(peek_has_env(p, pid, "RANK=3"), -ETIME);
    assert_int_equal(peek_has_env(p, 2, "RANK=3"), -ETIME); /* too many hang */
    pthread_mutex_unlock(&the_lock);
    while (peek_env(p, 1, "RANK", &rank) == -ETIME)
        (void)sched_yield();
    assert_string_equal(rank, "3");
    free(rank);
    peek_free(p);
}

static void test_others_are_asked_meanwhile(void **state)
{
    (void)state;
    struct peek *p = peek_new(read_some, SHORT);
    pthread_mutex_lock(&the_lock);
    assert_int_equal(peek_has_env(p, 1, "RANK=3"), -ETIME);
    while (peek_has_env(p, 2, "RANK=3") != 1)
        (void)sched_yield();
    peek_free(p); /* its thread is left behind, and frees what is its */
    pthread_mutex_unlock(&the_lock);
}

static void test_patience(void **state)
{
    (void)state;
    usec_t all = 0;
    assert_int_equal(peek_patience(PEEK_LIMIT, 0), PEEK_LIMIT);
    assert_int_equal(peek_patience(PEEK_LIMIT, 1), PEEK_LIMIT / 2);
    assert_int_equal(peek_patience(SHORT, 0), SHORT);
    assert_int_equal(peek_patience(SHORT, PEEK_HUNG_MAX), SHORT);
    for (size_t hung = 0; hung < PEEK_HUNG_MAX; hung++) {
        assert_true(peek_patience(PEEK_LIMIT, hung) >= PEEK_FLOOR);
        all += peek_patience(PEEK_LIMIT, hung);
    }
    assert_true(all < 5 * USEC_SEC);
}

static void test_what_it_says(void **state)
{
    (void)state;
    struct peek *p = peek_new(read_some, FOREVER);
    struct buf out = BUF_INIT(9);
    char *value = NULL;
    assert_int_equal(peek_has_env(p, 2, "RANK=3"), 1);
    assert_int_equal(peek_has_env(p, 2, "RANK="), 0);
    assert_int_equal(peek_env(p, 2, "RAN", &value), -ENODATA);
    assert_null(value);
    assert_int_equal(peek_env(p, 2, "EMPTY", &value), 0);
    assert_string_equal(value, "");
    free(value);
    assert_int_equal(buf_adds(&out, "12345"), 0);
    assert_int_equal(peek_file(p, 2, "environ", &out), 0);
    assert_string_equal(buf_str(&out), "12345RANK");
    assert_int_equal(peek_file(p, 2, "nothing", &out), -ENOENT);
    buf_release(&out);
    peek_free(p);
}

static void test_of_the_kernel(void **state)
{
    (void)state;
    struct peek *p = peek_new(NULL, FOREVER);
    char *value = NULL, *line = peek_line(p, getpid(), 200);
    assert_non_null(strstr(line, "test_shepherd_peek"));
    assert_int_equal(peek_env(p, getpid(), "PATH", &value), 0);
    assert_int_equal(peek_has_env(p, 0x7fffffff, "A=b"), -ENOENT);
    free(line);
    free(value);
    peek_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_hangs_holds_nobody),
        cmocka_unit_test(test_others_are_asked_meanwhile),
        cmocka_unit_test(test_patience),
        cmocka_unit_test(test_what_it_says),
        cmocka_unit_test(test_of_the_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
