/* SPDX-License-Identifier: Apache-2.0 */
/* A writer is killed with SIGKILL at some moment, again and again on the same store:
 * everything that it reported as durable is there, in order and without a hole. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store/test/bed.h"

#include <cmocka.h>

enum { ROUNDS = 20, JOBS_PER_TURN = 3 };

/* In the child: three jobs a turn with their event, and each durable batch told through
 * the pipe, until the end comes. */
static _Noreturn void write_for_ever(struct bed *b, int64_t seq, int out)
{
    if (uv_loop_fork(&b->loop) < 0)
        _exit(3);
    bed_open(b, NULL);
    for (;;) {
        struct bed_text t;
        for (int i = 0; i < JOBS_PER_TURN; i++, seq++) {
            struct store_job job = bed_job(seq, &t);
            store_put_job(b->s, &job);
            store_put_event(b->s, &(struct store_event){.seq = seq, .job_seq = seq, .kind = "new"});
        }
        bed_settle(b);
        if (write(out, &seq, sizeof(seq)) != sizeof(seq))
            _exit(1);
    }
}

/* One life of the writer: killed after `reports` were read. Returns the first seq that
 * was not reported. */
static int64_t live_and_die(struct bed *b, int64_t next, int reports)
{
    int ends[2], status = 0;
    int64_t told = next;
    assert_int_equal(pipe(ends), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        (void)close(ends[0]);
        write_for_ever(b, next, ends[1]);
    }
    (void)close(ends[1]);
    for (int i = 0; i < reports; i++)
        assert_int_equal(read(ends[0], &told, sizeof(told)), sizeof(told));
    assert_int_equal(kill(pid, SIGKILL), 0);
    /* What was written before the kill counts too. */
    while (read(ends[0], &next, sizeof(next)) == sizeof(next))
        told = next;
    (void)close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    return told;
}

/* The jobs without a hole, whole turns only, each with its event. */
static int64_t count_jobs(struct bed *b)
{
    struct store_job_query q = {.limit = STORE_PAGE_MAX};
    char *cursor = NULL;
    int64_t n = 0, highest = 0;
    struct bed_answer a;
    do {
        q.cursor = cursor;
        bed_list(b, &q, &a);
        assert_int_equal(a.err.code, 0);
        for (size_t i = 0; i < a.njobs; i++) {
            highest = highest ? highest : a.job_seqs[i];
            assert_int_equal(a.job_seqs[i], highest - n);
            n++;
        }
        set_str(&cursor, a.next);
        bed_answer_release(&a);
    } while (cursor);
    assert_int_equal(n, highest);
    assert_int_equal(n % JOBS_PER_TURN, 0);
    bed_events(b, &(struct store_event_query){.limit = 1, .newest_first = true}, &a);
    assert_int_equal(a.nevents ? a.event_seqs[0] : 0, highest);
    bed_answer_release(&a);
    return n;
}

static void test_killed_again_and_again(void **state)
{
    struct bed b;
    int64_t next = 1;
    (void)state;
    bed_init(&b, BED_CLOSED);
    for (int round = 0; round < ROUNDS; round++) {
        int64_t told = live_and_die(&b, next, round * 3);
        bed_open(&b, NULL);
        next = count_jobs(&b) + 1;
        assert_true(next >= told);
        bed_close(&b);
    }
    assert_true(next > ROUNDS);
    bed_release(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_killed_again_and_again),
    };

    return cmocka_run_group_tests_name("store/crash", tests, NULL, NULL);
}
