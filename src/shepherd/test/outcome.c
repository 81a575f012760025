/* SPDX-License-Identifier: Apache-2.0 */
/* exit.json: the words, and what fsroot reads of it. */
#define _GNU_SOURCE
#include "shepherd/attempt/outcome.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/unit_dir.h"
#include "fsroot/attempt/witness.h"
#include "fsroot/tree/paths.h"

static struct outcome example(enum cause cause, int code, int sig)
{
    return (struct outcome){.job = xstrdup("j1"),
                            .attempt = 1,
                            .cause = cause,
                            .code = code,
                            .signal = sig,
                            .started = 1000 * USEC_SEC,
                            .ended = 2000 * USEC_SEC,
                            .max_rss_bytes = 4096,
                            .user_s = 1.5,
                            .log_bytes = 77,
                            .oom_kills = -1,
                            .own_kills = -1,
                            .memory_max = -1,
                            .memory_peak = -1,
                            .node = xstrdup("n1"),
                            .pid = 12};
}

static void assert_told(struct outcome o, const char *want, int status)
{
    outcome_tell(&o);
    assert_string_equal(o.sentence, want);
    assert_int_equal(outcome_exit_status(&o), status);
    outcome_release(&o);
}

static void test_sentences(void **state)
{
    (void)state;
    assert_told(example(CAUSE_EXIT, 3, 0), "the command ended with exit code 3", 3);
    assert_told(example(CAUSE_SIGNAL, -1, SIGKILL), "the command was killed by SIGKILL", 137);
    assert_told(example(CAUSE_SIGNAL, -1, SIGRTMIN + 2), "the command was killed by SIGRTMIN+2",
                128 + SIGRTMIN + 2);
    struct outcome o = example(CAUSE_STOPPED, 0, 0);
    o.stop_reason = xstrdup("why");
    assert_told(o, "stopped (why): the command ended with exit code 0", 0);
    o = example(CAUSE_MISMATCH, 0, 0);
    o.mismatch = xstrdup("proof_no_verl{\"expected\":\"/v\",\"process\":\"driver\",\"pid\":7,"
                         "\"node\":\"w1\"}");
    assert_told(o,
                "verl was not found, neither in '/v' nor elsewhere (driver process 7 on w1); the "
                "command ended with exit code 0",
                92);
    o = example(CAUSE_SIGNAL, -1, SIGKILL);
    o.oom_kills = 3;
    o.own_kills = 2;
    o.is_unsure = true;
    o.strays = 3;
    o.dropped_bytes = 4;
    assert_told(o,
                "the command was killed by SIGKILL; meanwhile the kernel killed 2 times for memory "
                "in its cgroup, which other jobs share: it is not certain whose processes they "
                "were; 3 processes it left behind were ended; 4 bytes of its output are missing in "
                "the log",
                137);
    o = example(CAUSE_SIGNAL, -1, SIGKILL);
    o.own_kills = 1;
    assert_told(o,
                "the command was killed by SIGKILL; the kernel killed 1 of its processes for "
                "memory",
                137);
    o = example(CAUSE_STOPPED_BEFORE_START, -1, 0);
    assert_told(o, "stopped before the command was started: no reason was given", 0);
    o = example(CAUSE_START_FAILED, -1, 0);
    o.why = xstrdup("shepherd_no_pipe{\"why\":\"full\"}");
    assert_told(o, "cannot make a pipe: full", SHEPHERD_START_FAILED);
}

/* Each cause, with the reserve and without, through the reader that argusd uses. */
static void test_fsroot_reads_it(void **state)
{
    const enum cause causes[] = {
#define X(e, w) e,
        CAUSE_TABLE(X)
#undef X
    };
    for (size_t i = 0; i < 2 * array_len(causes); i++) {
        struct fsroot_exit e;
        int k = (int)i + 1;
        _cleanup_(freep) char *dir = fsroot_attempt_dir(*state, "j1", k, NULL);
        assert_int_equal(file_mkdirs(dir, 0755, NULL), 0);
        _cleanup_(outcome_release) struct outcome o = example(causes[i / 2], 3, 0);
        _cleanup_(closep) int reserve = i % 2 ? outcome_reserve(dir) : -1;
        assert_true((reserve >= 0) == i % 2);
        o.why = xstrdup("shepherd_no_pipe{\"why\":\"full\"}");
        o.mismatch = xstrdup("proof_no_verl{\"expected\":\"/v\"}");
        outcome_tell(&o);
        assert_int_equal(outcome_write(dir, reserve, &o, NULL), 0);
        fsroot_exit_read(*state, "j1", k, &e);
        assert_int_equal(e.seen, FSROOT_PRESENT);
        assert_string_equal(e.cause, cause_to_string(causes[i / 2]));
        assert_int_equal(e.code, 3);
        assert_int_equal(e.started, 1000 * USEC_SEC);
        assert_int_equal(e.ended, 2000 * USEC_SEC);
        assert_int_equal(e.log_bytes, 77);
        assert_int_equal(e.pid, 12);
        assert_int_equal(e.oom_kills, -1);
        assert_string_equal(e.sentence, o.sentence);
        assert_string_equal(e.says, o.cause == CAUSE_MISMATCH       ? o.mismatch
                                    : o.cause == CAUSE_START_FAILED ? o.why
                                                                    : "");
    }
}

static void test_a_kill_for_memory_is_read(void **state)
{
    struct fsroot_exit e;
    _cleanup_(freep) char *dir = fsroot_attempt_dir(*state, "j1", 1, NULL);
    assert_int_equal(file_mkdirs(dir, 0755, NULL), 0);
    _cleanup_(outcome_release) struct outcome o = example(CAUSE_SIGNAL, -1, SIGKILL);
    o.own_kills = 2;
    o.is_unsure = true;
    o.oom_line = xstrdup("Killed process 17 (python3)");
    o.memory_max = 1 << 20;
    outcome_tell(&o);
    assert_int_equal(outcome_write(dir, -1, &o, NULL), 0);
    fsroot_exit_read(*state, "j1", 1, &e);
    assert_int_equal(e.oom_kills, 2);
    assert_true(e.oom_unsure);
    assert_string_equal(e.oom_line, o.oom_line);
}

static void test_reserve_that_was_taken_away(void **state)
{
    struct fsroot_exit e;
    _cleanup_(freep) char *dir = fsroot_attempt_dir(*state, "j1", 1, NULL);
    _cleanup_(freep) char *file = xasprintf("%s/.exit.json.new", dir);
    assert_int_equal(file_mkdirs(dir, 0755, NULL), 0);
    _cleanup_(outcome_release) struct outcome o = example(CAUSE_EXIT, 0, 0);
    _cleanup_(closep) int reserve = outcome_reserve(dir);
    assert_int_equal(unlink(file), 0);
    outcome_tell(&o);
    assert_int_equal(outcome_write(dir, reserve, &o, NULL), 0);
    fsroot_exit_read(*state, "j1", 1, &e);
    assert_int_equal(e.seen, FSROOT_PRESENT);
    assert_int_equal(outcome_write("/no/such", -1, &o, NULL), -ENOENT);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, root_setup, root_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sentences),
        IN_DIR(test_fsroot_reads_it),
        IN_DIR(test_a_kill_for_memory_is_read),
        IN_DIR(test_reserve_that_was_taken_away),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
