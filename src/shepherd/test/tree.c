/* SPDX-License-Identifier: Apache-2.0 */
/* Descendants are found whatever they did; nobody else is. */
#define _GNU_SOURCE
#include "shepherd/attempt/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/unit.h"

/* Ends when nobody below us is left. */
static int reap_all(void)
{
    int n = 0;
    while (waitpid(-1, NULL, 0) > 0)
        n++;
    assert_int_equal(errno, ECHILD);
    return n;
}

/* A process that is `depth` forks away, those between have ended, each in a session of its own.
 * It says that it is there by one byte. */
static void start_hidden(int depth, int say)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid)
        return;
    for (int i = 0; i < depth; i++) {
        (void)setsid();
        if (fork() > 0)
            _exit(0);
    }
    if (write(say, "x", 1) == 1)
        for (;;)
            (void)pause();
    _exit(1);
}

static void test_all_are_reached(void **state)
{
    (void)state;
    int p[2];
    char c;
    assert_int_equal(tree_adopt(NULL), 0);
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    for (int depth = 0; depth < 4; depth++)
        start_hidden(depth, p[1]);
    for (int i = 0; i < 4; i++)
        assert_int_equal(read(p[0], &c, 1), 1);
    size_t sent = tree_signal(getpid(), SIGKILL);
    /* The three in between are zombies of ours or gone; only the four are there to be reached. */
    assert_true(sent >= 4);
    assert_true(reap_all() >= 4);
    assert_int_equal(tree_signal(getpid(), SIGKILL), 0);
    close(p[0]);
    close(p[1]);
}

static void test_zombies_are_gone(void **state)
{
    (void)state;
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    siginfo_t si;
    assert_int_equal(waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT), 0);
    assert_int_equal(tree_signal(getpid(), SIGTERM), 0);
    assert_true(tree_start_ticks(pid) > 0);
    assert_int_equal(reap_all(), 1);
    assert_int_equal(tree_start_ticks(pid), 0);
}

static void test_others_are_left_alone(void **state)
{
    (void)state;
    int p[2];
    char c;
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    start_hidden(0, p[1]);
    assert_int_equal(read(p[0], &c, 1), 1);
    pid_t other = fork(); /* the root of an empty tree */
    if (other == 0)
        for (;;)
            (void)pause();
    assert_int_equal(tree_signal(other, SIGKILL), 0);
    assert_int_equal(tree_signal(getpid(), 0), 2); /* both are there still */
    assert_int_equal(tree_signal(getpid(), SIGKILL), 2);
    assert_int_equal(reap_all(), 2);
    close(p[0]);
    close(p[1]);
}

static void test_odd_names(void **state)
{
    (void)state;
    int p[2];
    char c;
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        _cleanup_(closep) int fd = open("/proc/self/comm", O_WRONLY | O_CLOEXEC);
        if (write(fd, ") Z 1 2 (", 9) == 9 && write(p[1], "x", 1) == 1)
            for (;;)
                (void)pause();
        _exit(1);
    }
    assert_int_equal(read(p[0], &c, 1), 1);
    assert_int_equal(tree_signal(getpid(), SIGKILL), 1);
    assert_int_equal(reap_all(), 1);
    close(p[0]);
    close(p[1]);
}

/* A child with these for its input and output that says it is there, and waits. */
static pid_t start_in_pipe(int in, int out, int say)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid)
        return pid;
    if (dup2(in, 0) == 0 && dup2(out, 1) == 1 && write(say, "x", 1) == 1)
        for (;;)
            (void)pause();
    _exit(1);
}

static void test_readers_are_left_to_the_last(void **state)
{
    (void)state;
    int p[2], ab[2], bc[2];
    char c;
    struct tree_readers readers = {0};
    _cleanup_(closep) int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    assert_int_equal(pipe2(ab, O_CLOEXEC), 0);
    assert_int_equal(pipe2(bc, O_CLOEXEC), 0);
    pid_t a = start_in_pipe(null, ab[1], p[1]);
    pid_t b = start_in_pipe(ab[0], bc[1], p[1]);
    (void)start_in_pipe(bc[0], null, p[1]);
    pid_t last = start_in_pipe(p[0], null, p[1]); /* what it reads only its parent writes */
    for (int i = 0; i < 4; i++)
        assert_int_equal(read(p[0], &c, 1), 1);
    tree_find_readers(getpid(), &readers);
    assert_int_equal(readers.n, 2);
    assert_int_equal(tree_signal_but(getpid(), &readers, 0), 2);
    assert_int_equal(tree_signal_but(getpid(), &readers, SIGKILL), 2);
    assert_int_equal(waitpid(a, NULL, 0), a);
    assert_int_equal(waitpid(last, NULL, 0), last);
    tree_find_readers(getpid(), &readers);
    assert_int_equal(readers.n, 1); /* nobody writes to the second any more */
    assert_int_equal(tree_signal_but(getpid(), &readers, SIGKILL), 1);
    assert_int_equal(waitpid(b, NULL, 0), b);
    tree_readers_release(&readers);
    assert_int_equal(tree_signal_but(getpid(), &readers, SIGKILL), 1);
    assert_int_equal(reap_all(), 1);
    int all[] = {p[0], p[1], ab[0], ab[1], bc[0], bc[1]};
    for (size_t i = 0; i < array_len(all); i++)
        close(all[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_are_reached),
        cmocka_unit_test(test_zombies_are_gone),
        cmocka_unit_test(test_others_are_left_alone),
        cmocka_unit_test(test_odd_names),
        cmocka_unit_test(test_readers_are_left_to_the_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
