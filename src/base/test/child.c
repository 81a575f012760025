/* SPDX-License-Identifier: Apache-2.0 */
/* Unit tests of child.c: real programs, started and waited for. */
#define _GNU_SOURCE
#include "base/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/unit.h"

/* Runs it to the end with its output in out; returns the wait status. */
static int run(struct child_spec *spec, struct buf *out)
{
    int p[2], status;
    struct child c;
    struct err err = {0};
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    spec->in = spec->err = -1;
    spec->out = p[1];
    if (child_start(spec, &c, &err) < 0)
        fail_msg("%s", err.text);
    close(p[1]);
    char part[4096];
    ssize_t n;
    while ((n = read(p[0], part, sizeof(part))) > 0)
        assert_int_equal(buf_add(out, part, (size_t)n), 0);
    close(p[0]);
    assert_int_equal(waitpid(c.pid, &status, 0), c.pid);
    if (c.pidfd >= 0)
        close(c.pidfd);
    return status;
}

static int start_error(struct child_spec *spec, struct err *err)
{
    struct child c;
    spec->in = spec->out = spec->err = -1;
    int r = child_start(spec, &c, err);
    assert_true(r < 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nothing is left behind */
    return r;
}

static void test_every_byte(void **state)
{
    (void)state;
    char bytes[256];
    for (int i = 0; i < 255; i++)
        bytes[i] = (char)(i + 1);
    bytes[255] = 0;
    _cleanup_(pairs_release) struct pairs env = {0};
    pairs_set(&env, "X", bytes);
    const char *argv[] = {"/bin/sh", "-c", "printf %s \"$1$X\"", "sh", bytes, NULL};
    struct child_spec spec = {.argv = argv, .env = &env};
    _cleanup_(buf_release) struct buf out = BUF_INIT(4096);
    assert_int_equal(run(&spec, &out), 0);
    assert_int_equal(out.len, 510);
    assert_memory_equal(out.data, bytes, 255);
    assert_memory_equal(out.data + 255, bytes, 255);
}

static void test_environment_is_whole(void **state)
{
    (void)state;
    _cleanup_(pairs_release) struct pairs env = {0};
    pairs_set(&env, "PATH", "/usr/bin:/bin");
    pairs_set(&env, "A", "1");
    const char *argv[] = {"env", NULL};
    struct child_spec spec = {.argv = argv, .env = &env};
    _cleanup_(buf_release) struct buf out = BUF_INIT(4096);
    assert_int_equal(run(&spec, &out), 0);
    assert_string_equal(buf_str(&out), "PATH=/usr/bin:/bin\nA=1\n");
}

static void test_files_are_closed(void **state)
{
    (void)state;
    int leak = dup(1); /* without close-on-exec */
    const char *argv[] = {"/bin/sh", "-c", "ls /proc/self/fd | sort -n | tr '\\n' ' '", NULL};
    struct child_spec spec = {.argv = argv};
    _cleanup_(buf_release) struct buf out = BUF_INIT(4096);
    assert_int_equal(run(&spec, &out), 0);
    assert_string_equal(buf_str(&out), "0 1 2 3 "); /* 3 is what ls opened */
    close(leak);
}

static void test_signals_are_default(void **state)
{
    (void)state;
    struct sigaction ignore = {.sa_handler = SIG_IGN}, old;
    sigset_t usr, old_mask;
    sigemptyset(&usr);
    sigaddset(&usr, SIGUSR1);
    sigaction(SIGPIPE, &ignore, &old);
    sigprocmask(SIG_BLOCK, &usr, &old_mask);
    const char *argv[] = {"/bin/sh", "-c", "grep -E 'Sig(Blk|Ign)' /proc/self/status", NULL};
    struct child_spec spec = {.argv = argv};
    _cleanup_(buf_release) struct buf out = BUF_INIT(4096);
    assert_int_equal(run(&spec, &out), 0);
    sigset_t now;
    sigprocmask(SIG_SETMASK, &old_mask, &now);
    sigaction(SIGPIPE, &old, NULL);
    assert_true(sigismember(&now, SIGUSR1)); /* ours is as it was */
    assert_string_equal(buf_str(&out), "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n");
}

static void test_session_and_cwd(void **state)
{
    (void)state;
    const char *argv[] = {"/bin/sh", "-c",
                          "read -r a b c d e f g </proc/$$/stat; "
                          "echo $((a == e)) $((a == f)); pwd",
                          NULL};
    struct child_spec spec = {.argv = argv, .cwd = "/usr", .flags = CHILD_NEW_SESSION};
    _cleanup_(buf_release) struct buf out = BUF_INIT(4096);
    assert_int_equal(run(&spec, &out), 0);
    assert_string_equal(buf_str(&out), "1 1\n/usr\n");
}

static void test_exit_and_signal(void **state)
{
    (void)state;
    const char *argv[] = {"/bin/sh", "-c", "exit 7", NULL};
    struct child_spec spec = {.argv = argv};
    _cleanup_(buf_release) struct buf out = BUF_INIT(64);
    int status = run(&spec, &out);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 7);
    argv[2] = "kill -KILL $$";
    status = run(&spec, &out);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
}

static void test_what_cannot_run(void **state)
{
    (void)state;
    struct err err;
    const char *argv[] = {"no-such-program-here", NULL};
    struct child_spec spec = {.argv = argv};
    assert_int_equal(start_error(&spec, &err), -ENOENT);
    assert_string_equal(err.text, "program 'no-such-program-here' is not in PATH");
    argv[0] = "/nowhere/x";
    assert_int_equal(start_error(&spec, &err), -ENOENT);
    assert_string_equal(err.text, "cannot execute '/nowhere/x': No such file or directory");
    argv[0] = "/etc/passwd";
    assert_int_equal(start_error(&spec, &err), -EACCES);
    assert_string_equal(err.text, "cannot execute '/etc/passwd': Permission denied");
    argv[0] = "/bin/true";
    spec.cwd = "/nowhere";
    assert_int_equal(start_error(&spec, &err), -ENOENT);
    assert_string_equal(err.text,
                        "cannot enter the working directory '/nowhere': No such file or directory");
    argv[0] = "";
    assert_int_equal(start_error(&spec, &err), -EINVAL);
}

static void test_lost_interpreter(void **state)
{
    (void)state;
    char path[] = "/tmp/argus-child-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "#!/nowhere/sh\n", 14), 14);
    assert_int_equal(fchmod(fd, 0755), 0);
    close(fd);
    struct err err;
    const char *argv[] = {path, NULL};
    struct child_spec spec = {.argv = argv};
    int r = start_error(&spec, &err);
    unlink(path);
    assert_int_equal(r, -ENOENT);
    assert_non_null(strstr(err.text, "the interpreter that"));
}

static void test_dies_with_parent(void **state)
{
    (void)state;
    int p[2];
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    pid_t middle = fork();
    if (middle == 0) {
        const char *argv[] = {"cat", NULL};
        int never[2];
        struct child c;
        if (pipe2(never, O_CLOEXEC) < 0)
            _exit(1);
        struct child_spec spec = {
            .argv = argv, .in = never[0], .out = p[1], .err = -1, .flags = CHILD_DIE_WITH_PARENT};
        _exit(child_start(&spec, &c, NULL) < 0);
    }
    close(p[1]);
    int status;
    assert_int_equal(waitpid(middle, &status, 0), middle);
    assert_int_equal(status, 0);
    char c;
    assert_int_equal(read(p[0], &c, 1), 0); /* end of file: cat is gone too */
    close(p[0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_byte),       cmocka_unit_test(test_environment_is_whole),
        cmocka_unit_test(test_files_are_closed), cmocka_unit_test(test_signals_are_default),
        cmocka_unit_test(test_session_and_cwd),  cmocka_unit_test(test_exit_and_signal),
        cmocka_unit_test(test_what_cannot_run),  cmocka_unit_test(test_lost_interpreter),
        cmocka_unit_test(test_dies_with_parent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
