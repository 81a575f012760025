/* SPDX-License-Identifier: Apache-2.0 */
/* The judgement table: nothing is declared dead by one witness alone. */
#include "core/job/witness.h"

#include "base/unit.h"

#define S(n) ((n)*USEC_SEC)

static const struct {
    struct witness w;
    enum witness_verdict verdict;
} rows[] = {
    /* the exit file is the surest word, whatever Ray says */
    {{.ray = WITNESS_RAY_RUNNING, .files = WITNESS_FILES_EXIT}, WITNESS_EXITED},
    {{.ray = WITNESS_RAY_BLIND, .files = WITNESS_FILES_EXIT}, WITNESS_EXITED},
    /* starting */
    {{.ray = WITNESS_RAY_PENDING,
      .ray_for = S(800),
      .files = WITNESS_FILES_NONE,
      .files_for = S(800)},
     WITNESS_WAIT},
    /* Ray says that it runs before anything of ours does: only its shepherd knows */
    {{.ray = WITNESS_RAY_RUNNING, .files = WITNESS_FILES_NONE}, WITNESS_WAIT},
    {{.ray = WITNESS_RAY_RUNNING,
      .ray_for = S(9000),
      .files = WITNESS_FILES_NONE,
      .files_for = S(9000)},
     WITNESS_WAIT},
    {{.ray = WITNESS_RAY_RUNNING, .files = WITNESS_FILES_BLIND, .files_for = S(5)}, WITNESS_WAIT},
    {{.ray = WITNESS_RAY_RUNNING, .files = WITNESS_FILES_BLIND, .files_for = S(50)},
     WITNESS_UNKNOWN},
    {{.ray = WITNESS_RAY_RUNNING, .files = WITNESS_FILES_BEAT, .beat_age = S(1)}, WITNESS_STARTED},
    {{.ray = WITNESS_RAY_RUNNING, .files = WITNESS_FILES_BEAT, .beat_age = S(50)}, WITNESS_UNKNOWN},
    /* Ray missed the death of its supervisor, and says so when it is asked */
    {{.ray = WITNESS_RAY_RUNNING,
      .files = WITNESS_FILES_BEAT,
      .beat_age = S(70),
      .was_running = true,
      .is_unwatched = true},
     WITNESS_LOST},
    {{.ray = WITNESS_RAY_RUNNING,
      .files = WITNESS_FILES_BEAT,
      .beat_age = S(1),
      .is_unwatched = true},
     WITNESS_STARTED},
    {{.ray = WITNESS_RAY_RUNNING,
      .files = WITNESS_FILES_BLIND,
      .files_for = S(70),
      .was_running = true,
      .is_unwatched = true},
     WITNESS_UNKNOWN},
    {{.ray = WITNESS_RAY_RUNNING,
      .was_running = true,
      .files = WITNESS_FILES_NONE,
      .files_for = S(50)},
     WITNESS_UNKNOWN},
    {{.ray = WITNESS_RAY_PENDING, .files = WITNESS_FILES_BEAT}, WITNESS_STARTED},
    /* Ray alone says dead: wait for the shepherd's silence */
    {{.ray = WITNESS_RAY_OVER, .ray_for = S(20), .files = WITNESS_FILES_BEAT, .beat_age = S(5)},
     WITNESS_WAIT},
    {{.ray = WITNESS_RAY_OVER, .ray_for = S(60), .files = WITNESS_FILES_BEAT, .beat_age = S(5)},
     WITNESS_UNKNOWN},
    {{.ray = WITNESS_RAY_OVER, .ray_for = S(60), .files = WITNESS_FILES_BEAT, .beat_age = S(31)},
     WITNESS_LOST},
    {{.ray = WITNESS_RAY_OVER, .ray_for = S(5), .files = WITNESS_FILES_NONE, .files_for = S(50)},
     WITNESS_WAIT},
    {{.ray = WITNESS_RAY_OVER, .ray_for = S(15), .files = WITNESS_FILES_NONE, .files_for = S(50)},
     WITNESS_LOST},
    {{.ray = WITNESS_RAY_OVER, .ray_for = S(15), .files = WITNESS_FILES_BLIND}, WITNESS_WAIT},
    {{.ray = WITNESS_RAY_OVER,
      .ray_for = S(900),
      .files = WITNESS_FILES_BLIND,
      .files_for = S(900)},
     WITNESS_UNKNOWN},
    /* a head that lost its memory */
    {{.ray = WITNESS_RAY_ABSENT, .ray_for = S(15), .files = WITNESS_FILES_NONE, .files_for = S(15)},
     WITNESS_NEVER},
    {{.ray = WITNESS_RAY_ABSENT,
      .ray_for = S(15),
      .files = WITNESS_FILES_NONE,
      .files_for = S(15),
      .was_running = true},
     WITNESS_LOST},
    {{.ray = WITNESS_RAY_ABSENT, .ray_for = S(100), .files = WITNESS_FILES_BEAT, .beat_age = S(1)},
     WITNESS_UNKNOWN},
    {{.ray = WITNESS_RAY_ABSENT, .ray_for = S(100), .files = WITNESS_FILES_BEAT, .beat_age = S(40)},
     WITNESS_LOST},
    /* nobody answers */
    {{.ray = WITNESS_RAY_BLIND, .ray_for = S(10), .files = WITNESS_FILES_BEAT, .beat_age = S(1)},
     WITNESS_STARTED},
    {{.ray = WITNESS_RAY_BLIND, .ray_for = S(50), .files = WITNESS_FILES_BEAT, .beat_age = S(1)},
     WITNESS_UNKNOWN},
    {{.ray = WITNESS_RAY_BLIND,
      .ray_for = S(9000),
      .files = WITNESS_FILES_BEAT,
      .beat_age = S(9000)},
     WITNESS_UNKNOWN},
    {{.ray = WITNESS_RAY_BLIND, .ray_for = S(10), .files = WITNESS_FILES_NONE}, WITNESS_WAIT},
    {{.ray = WITNESS_RAY_RUNNING,
      .was_running = true,
      .files = WITNESS_FILES_BEAT,
      .beat_age = S(100)},
     WITNESS_UNKNOWN},
    /* the head is gone: told soon, and the end of the beat is the second word */
    {{.ray = WITNESS_RAY_GONE,
      .ray_for = S(5),
      .was_running = true,
      .files = WITNESS_FILES_BEAT,
      .beat_age = S(100)},
     WITNESS_UNKNOWN},
    {{.ray = WITNESS_RAY_GONE,
      .ray_for = S(11),
      .was_running = true,
      .files = WITNESS_FILES_BEAT,
      .beat_age = S(29)},
     WITNESS_UNKNOWN},
    {{.ray = WITNESS_RAY_GONE,
      .ray_for = S(11),
      .was_running = true,
      .files = WITNESS_FILES_BEAT,
      .beat_age = S(31)},
     WITNESS_LOST},
    {{.ray = WITNESS_RAY_GONE,
      .ray_for = S(9000),
      .was_running = true,
      .files = WITNESS_FILES_BLIND,
      .files_for = S(9000),
      .beat_age = S(9000)},
     WITNESS_UNKNOWN},
    {{.ray = WITNESS_RAY_GONE, .ray_for = S(60), .files = WITNESS_FILES_NONE, .files_for = S(60)},
     WITNESS_UNKNOWN},
    /* the root was away, and the shepherd's machine may find it again later than ours */
    {{.ray = WITNESS_RAY_GONE,
      .ray_for = S(150),
      .was_running = true,
      .files = WITNESS_FILES_BEAT,
      .beat_age = S(119),
      .was_blind = S(120)},
     WITNESS_UNKNOWN},
    {{.ray = WITNESS_RAY_GONE,
      .ray_for = S(150),
      .was_running = true,
      .files = WITNESS_FILES_BEAT,
      .beat_age = S(120),
      .was_blind = S(120)},
     WITNESS_LOST},
    {{.ray = WITNESS_RAY_OVER,
      .ray_for = S(900),
      .files = WITNESS_FILES_BEAT,
      .beat_age = WITNESS_ROOT_RETRY,
      .was_blind = S(36000)},
     WITNESS_LOST},
    {{.ray = WITNESS_RAY_ABSENT,
      .ray_for = S(15),
      .files = WITNESS_FILES_BEAT,
      .beat_age = S(29),
      .was_blind = S(1)},
     WITNESS_WAIT},
    /* told to stop, and nothing is heard of it any more */
    {{.ray = WITNESS_RAY_BLIND,
      .ray_for = WITNESS_FORLORN,
      .files = WITNESS_FILES_BEAT,
      .beat_age = WITNESS_FORLORN,
      .is_stopping = true},
     WITNESS_LOST},
    {{.ray = WITNESS_RAY_BLIND,
      .ray_for = WITNESS_FORLORN - 1,
      .files = WITNESS_FILES_BEAT,
      .beat_age = WITNESS_FORLORN,
      .is_stopping = true},
     WITNESS_UNKNOWN},
    {{.ray = WITNESS_RAY_BLIND,
      .ray_for = S(9000),
      .files = WITNESS_FILES_NONE,
      .files_for = S(9000),
      .is_stopping = true},
     WITNESS_LOST},
    {{.ray = WITNESS_RAY_BLIND,
      .ray_for = S(9000),
      .files = WITNESS_FILES_BLIND,
      .files_for = S(9000),
      .beat_age = S(9000),
      .is_stopping = true},
     WITNESS_UNKNOWN},
};

static void test_table(void **state)
{
    (void)state;
    for (size_t i = 0; i < array_len(rows); i++)
        if (witness_judge(&rows[i].w) != rows[i].verdict)
            fail_msg("row %zu: verdict %d, not %d", i, witness_judge(&rows[i].w), rows[i].verdict);
}

/* Over every combination: LOST needs both, and blindness never ends a job that was not told to. */
static void test_never_lost_by_one_witness(void **state)
{
    (void)state;
    static const usec_t ages[] = {0, S(9), S(11), S(29), S(31), S(44), S(46), S(100000)};
    for (int ray = 0; ray <= WITNESS_RAY_GONE; ray++)
        for (int files = 0; files <= WITNESS_FILES_EXIT; files++)
            for (size_t i = 0; i < 512; i++)
                for (int run = 0; run < 8; run++) {
                    struct witness w = {.ray = (enum witness_ray)ray,
                                        .files = (enum witness_files)files,
                                        .ray_for = ages[i & 7],
                                        .files_for = ages[i >> 3 & 7],
                                        .beat_age = ages[i >> 6],
                                        .was_running = run & 1,
                                        .is_stopping = run & 2,
                                        .is_unwatched = run & 4};
                    enum witness_verdict v = witness_judge(&w);
                    bool gone = ray == WITNESS_RAY_GONE && files == WITNESS_FILES_BEAT;
                    bool stale = ray == WITNESS_RAY_RUNNING && w.is_unwatched;
                    bool over =
                        ray == WITNESS_RAY_OVER || ray == WITNESS_RAY_ABSENT || gone || stale;
                    bool beating = files == WITNESS_FILES_BEAT && w.beat_age < WITNESS_BEAT_STALE;
                    if (v == WITNESS_LOST || v == WITNESS_NEVER) {
                        assert_true(over || (w.is_stopping && w.ray_for > WITNESS_FORLORN));
                        assert_false(beating);
                        assert_int_not_equal(files, WITNESS_FILES_BLIND);
                    }
                    assert_true((v == WITNESS_EXITED) == (files == WITNESS_FILES_EXIT));
                }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_table),
                                       cmocka_unit_test(test_never_lost_by_one_witness)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
