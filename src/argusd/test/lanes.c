/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of argusd/jobs/lanes.h. */
#include "argusd/jobs/lanes.h"

#include <stdlib.h>
#include <string.h>

#include "base/unit.h"

enum { SECOND = 1000000 };

/* A job that has held its slots since `began`. */
static void lane_job_begin(struct live *l, char *id, usec_t began)
{
    struct job *j = xcalloc(1, sizeof(*j));
    j->id = id;
    j->state = JOB_RUNNING;
    j->attempts = xcalloc(1, sizeof(*j->attempts));
    j->attempts->planned_at = began;
    j->n_attempts = 1;
    *l = (struct live){.job = j};
}

static void lane_job_end(struct live *l)
{
    for (size_t i = 0; l->kept && i < LIVE_SLOTS; i++)
        free(l->kept[i]);
    free(l->kept);
    free(l->job->attempts);
    free(l->job);
}

/* Does the page of all lanes have this text? */
static bool lanes_page_has(const struct lanes *ls, const char *text)
{
    struct buf out = BUF_INIT(1 << 20);
    struct expo e = {.out = &out, .prefix = "argus_"};
    const struct access_who who = {.user = "root", .role = ACCESS_ADMIN, .sees_all = true};
    lanes_put(ls, &who, &e);
    bool has = strstr(buf_str(&out), text) != NULL;
    buf_release(&out);
    return has;
}

static void lane_without_steps(void **state)
{
    (void)state;
    struct lanes *ls = lanes_new();
    struct live a;
    char id[] = "a";
    size_t pos = 0;
    lane_job_begin(&a, id, SECOND);
    assert_true(lanes_join(ls, &a));
    assert_true(lanes_join(ls, &a)); /* and stays where it is */
    assert_ptr_equal(lanes_next(ls, &pos), &a);
    assert_int_equal(pos, 1);
    assert_null(lanes_next(ls, &pos));
    assert_true(lanes_page_has(ls, "argus_job_lane_info{lane=\"1\",id=\"a\""));
    assert_false(lanes_page_has(ls, "argus_job_goodput_ratio{"));
    lanes_end(ls, &a, 101 * (usec_t)SECOND);
    lanes_end(ls, &a, 101 * (usec_t)SECOND); /* it has none any more */
    assert_true(lanes_page_has(ls, "argus_job_held_seconds_total 0\n"));
    assert_false(lanes_page_has(ls, "argus_job_lane_info{"));
    lane_job_end(&a);
    lanes_free(ls);
}

static void lane_with_steps(void **state)
{
    (void)state;
    struct lanes *ls = lanes_new();
    struct live a;
    char id[] = "a";
    lane_job_begin(&a, id, SECOND);
    lanes_set(ls, &a, 50, 101 * (usec_t)SECOND);
    assert_true(lanes_page_has(ls, "argus_job_goodput_ratio{lane=\"1\"} 0.5\n"));
    lanes_end(ls, &a, 201 * (usec_t)SECOND);
    assert_true(lanes_page_has(ls, "argus_job_useful_seconds_total 50\n"));
    assert_true(lanes_page_has(ls, "argus_job_held_seconds_total 200\n"));
    lane_job_end(&a);
    lanes_free(ls);
}

static void lanes_are_bounded(void **state)
{
    (void)state;
    struct lanes *ls = lanes_new();
    struct live *v = xcalloc(LANES_MAX + 1, sizeof(*v));
    char id[] = "j";
    size_t n = 0;
    for (size_t i = 0; i <= LANES_MAX; i++) {
        lane_job_begin(&v[i], id, SECOND);
        assert_int_equal(lanes_join(ls, &v[i]), i < LANES_MAX);
    }
    lanes_set(ls, &v[LANES_MAX], 1, 3 * (usec_t)SECOND); /* it has no lane: nothing is told */
    assert_false(lanes_page_has(ls, "argus_job_goodput_ratio{"));
    lanes_end(ls, &v[6], 3 * (usec_t)SECOND);
    assert_true(lanes_join(ls, &v[LANES_MAX])); /* the one that is free again */
    for (size_t pos = 0; lanes_next(ls, &pos); n++)
        assert_true(pos != 7 || n == 6);
    assert_int_equal(n, LANES_MAX);
    for (size_t i = 0; i <= LANES_MAX; i++) {
        lanes_end(ls, &v[i], 3 * (usec_t)SECOND);
        lane_job_end(&v[i]);
    }
    assert_false(lanes_page_has(ls, "argus_job_lane_info{"));
    free(v);
    lanes_free(ls);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(lane_without_steps),
                                       cmocka_unit_test(lane_with_steps),
                                       cmocka_unit_test(lanes_are_bounded)};
    return cmocka_run_group_tests_name("argusd/lanes", tests, NULL, NULL);
}
