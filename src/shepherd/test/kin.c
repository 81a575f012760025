/* SPDX-License-Identifier: Apache-2.0 */
/* Who is of an attempt is known by what it was started with, and stays known. */
#define _GNU_SOURCE
#include "shepherd/host/kin.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/unit.h"
#include "shepherd/host/host.h"
#include "shepherd/host/process.h"

#define FOREVER (3600 * USEC_SEC)

/* A process with this one setting in its environment, that lives until it is killed. */
static pid_t start(const char *setting)
{
    int p[2];
    char c;
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)execle("/bin/sleep", "sleep", "1000", NULL, (const char *const[]){setting, NULL});
        _exit(1);
    }
    (void)close(p[1]);
    assert_int_equal(read(p[0], &c, 1), 0); /* closed by the exec */
    (void)close(p[0]);
    return pid;
}

static void end(pid_t pid)
{
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* On a busy machine one look may not be enough. */
static void look_until_known(struct kin *k, pid_t pid)
{
    do
        kin_look(k);
    while (kin_ask(k, pid) == KIN_UNKNOWN);
}

static void test_who_is_ours(void **state)
{
    (void)state;
    struct kin *k = kin_new("/shared/jobs/j1/attempts/1");
    pid_t ours = start("ARGUS_ATTEMPT_DIR=/shared/jobs/j1/attempts/1");
    pid_t another = start("ARGUS_ATTEMPT_DIR=/shared/jobs/j1/attempts/12");
    assert_int_equal(kin_ask(k, ours), KIN_UNKNOWN);
    look_until_known(k, ours);
    look_until_known(k, another);
    look_until_known(k, getpid());
    for (int i = 0; i < 3; i++) {
        kin_look(k);
        assert_int_equal(kin_ask(k, ours), KIN_OURS);
        assert_int_equal(kin_ask(k, another), KIN_STRANGER);
        assert_int_equal(kin_ask(k, getpid()), KIN_STRANGER);
        assert_int_not_equal(kin_ask(k, 1), KIN_OURS);
    }
    end(ours);
    end(another);
    kin_look(k);
    assert_int_equal(kin_ask(k, ours), KIN_OURS); /* what the kernel said of it is read later */
    assert_int_equal(kin_ask(k, another), KIN_STRANGER);
    kin_add(k, another);
    assert_int_equal(kin_ask(k, another), KIN_OURS);
    kin_free(k);
}

/* Other jobs may run on the machine that runs the tests: all but these are not to be read. */
static pid_t readable[2];

static bool read_these(pid_t pid, const char *file, struct buf *out)
{
    for (size_t i = 0; i < array_len(readable); i++)
        if (pid == readable[i])
            return process_read(pid, file, out);
    return false;
}

static void test_neighbours(void **state)
{
    (void)state;
    _cleanup_(freep) char *group = host_memory_group(0);
    struct kin *k = kin_new_by("/shared/jobs/j1/attempts/2", read_these);
    pid_t ours = start("ARGUS_ATTEMPT_DIR=/shared/jobs/j1/attempts/2");
    pid_t another = start("ARGUS_ATTEMPT_DIR=/shared/jobs/j2/attempts/1");
    readable[0] = ours;
    kin_look(k);
    assert_false(kin_has_neighbours(k, 0)); /* it does not tell whose it is */
    readable[1] = another;
    while (group && !kin_has_neighbours(k, 0)) /* without groups nobody is in ours */
        kin_look(k);
    assert_int_equal(kin_has_neighbours(k, clock_mono()), group != NULL); /* it is there */
    look_until_known(k, another);
    assert_true(kin_is_anothers(k, another));
    assert_false(kin_is_anothers(k, ours) || kin_is_anothers(k, getpid()));
    assert_int_equal(kin_has_neighbours(k, clock_mono()), group != NULL);
    usec_t before = clock_mono();
    end(another);
    end(ours);
    kin_look(k);
    assert_int_equal(kin_has_neighbours(k, before),
                     group != NULL); /* what was killed then may have been its */
    assert_false(kin_has_neighbours(k, clock_mono() + 1));
    kin_free(k);
}

static void test_an_earlier_attempt_is_no_neighbour(void **state)
{
    (void)state;
    struct kin *k = kin_new_by("/shared/jobs/j1/attempts/12", read_these);
    pid_t earlier = start("ARGUS_ATTEMPT_DIR=/shared/jobs/j1/attempts/1");
    readable[0] = readable[1] = earlier;
    look_until_known(k, earlier);
    assert_int_equal(kin_ask(k, earlier), KIN_STRANGER);
    assert_false(kin_has_neighbours(k, 0));
    assert_false(kin_is_anothers(k, earlier));
    end(earlier);
    kin_free(k);
}

/* A shepherd that has yet to start its command. */
static void test_a_shepherd_of_another_attempt(void **state)
{
    (void)state;
    _cleanup_(freep) char *group = host_memory_group(0);
    struct kin *k = kin_new("/no/such/attempt");
    int p[2];
    char c;
    assert_int_equal(pipe2(p, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)prctl(PR_SET_NAME, "argus-shepherd");
        (void)close(p[1]);
        (void)!read(p[0], &c, 1); /* until the test is over */
        _exit(0);
    }
    kin_look(k);
    while (group && !kin_has_neighbours(k, 0)) /* without groups nobody is in ours */
        kin_look(k);
    assert_int_equal(kin_has_neighbours(k, 0), group != NULL);
    (void)close(p[0]);
    (void)close(p[1]);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    kin_free(k);
}

static void test_a_pid_comes_again(void **state)
{
    (void)state;
    struct kin *k = kin_new("/a");
    for (pid_t pid = getpid(), i = 1; i < 2000; i++) /* the next one's, whoever else forks */
        if (kill(pid + i, 0) < 0) /* where numbers began anew an ancestor of ours may be there */
            kin_add(k, pid + i);
    pid_t another = start("ARGUS_ATTEMPT_DIR=/b");
    look_until_known(k, another);
    assert_int_equal(kin_ask(k, another), KIN_STRANGER);
    end(another);
    kin_free(k);
}

static void test_children_of_ours(void **state)
{
    (void)state;
    struct kin *k = kin_new("/a");
    pid_t child = start("NOTHING=1");
    kin_add(k, getpid());
    kin_watch(k);
    while (kin_ask(k, child) != KIN_OURS)
        (void)sched_yield();
    end(child);
    kin_free(k);
}

static void test_a_look_that_is_waited_for(void **state)
{
    (void)state;
    struct kin *k = kin_new("/a");
    pid_t child = start("NOTHING=1");
    kin_add(k, getpid());
    kin_look_within(k, FOREVER);
    assert_int_equal(kin_ask(k, child), KIN_UNKNOWN); /* nobody looks */
    kin_watch(k);
    kin_look_within(k, 0); /* it may have looked */
    kin_look_within(k, FOREVER);
    assert_int_equal(kin_ask(k, child), KIN_OURS);
    pid_t later = start("NOTHING=1");
    kin_look_within(k, FOREVER);
    assert_int_equal(kin_ask(k, later), KIN_OURS);
    end(later);
    end(child);
    kin_free(k);
}

static void test_the_oldest_are_forgotten(void **state)
{
    (void)state;
    struct kin *k = kin_new("/a");
    for (pid_t pid = 1; pid <= KIN_MAX + 5; pid++)
        kin_add(k, pid);
    assert_int_equal(kin_ask(k, 5), KIN_UNKNOWN);
    assert_int_equal(kin_ask(k, 6), KIN_OURS);
    assert_int_equal(kin_ask(k, KIN_MAX + 5), KIN_OURS);
    kin_free(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_is_ours),
        cmocka_unit_test(test_neighbours),
        cmocka_unit_test(test_an_earlier_attempt_is_no_neighbour),
        cmocka_unit_test(test_a_shepherd_of_another_attempt),
        cmocka_unit_test(test_a_pid_comes_again),
        cmocka_unit_test(test_children_of_ours),
        cmocka_unit_test(test_a_look_that_is_waited_for),
        cmocka_unit_test(test_the_oldest_are_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
