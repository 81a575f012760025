/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of metric_table.h. */
#include "core/metric/metric_table.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"
#include "base/unit.h"

static void add(struct metric_table *t, int64_t step, const char *key, double value)
{
    char name[32];
    (void)snprintf(name, sizeof(name), "%s", key);
    struct metric_value v = {.name = name, .value = value};
    const struct metric_record r = {.step = step, .v = &v, .n = 1};
    metric_table_add(t, &r);
    assert_null(metric_table_check(t));
}

static struct metric_point whole(const struct metric_table *t, const char *key)
{
    struct metric_point p;
    size_t k = metric_table_find(t, key);
    assert_true(metric_table_range(t, k, 0, metric_table_points(t), &p));
    return p;
}

static void keeps_each_step(void **state)
{
    (void)state;
    struct metric_table *t = metric_table_new(8);
    struct metric_point p;
    for (int i = 1; i <= 8; i++)
        add(t, i, "a", i * 10);
    add(t, 8, "b", 1); /* the same point */
    assert_int_equal(metric_table_points(t), 8);
    assert_int_equal(metric_table_keys(t), 2);
    assert_int_equal(metric_table_find(t, "c"), 2);
    assert_true(metric_table_range(t, 0, 3, 4, &p));
    assert_true(p.first == 4 && p.last == 4 && p.value > 39.5 && p.value < 40.5);
    assert_false(metric_table_range(t, 1, 0, 7, &p)); /* b came late */
    assert_true(metric_table_range(t, 1, 7, 8, &p));
    assert_int_equal(metric_table_after(t, 0), 0);
    assert_int_equal(metric_table_after(t, 6), 6);
    assert_int_equal(metric_table_after(t, 8), 8);
    metric_table_free(t);
}

static void no_peak_is_lost(void **state)
{
    (void)state;
    struct metric_table *t = metric_table_new(16);
    int64_t step;
    for (int i = 1; i <= 10000; i++)
        add(t, i, "a", i == 777 ? 1e6 : i == 4321 ? -1e6 : 0.5);
    assert_true(metric_table_points(t) <= 16 && metric_table_points(t) > 7);
    struct metric_point p = whole(t, "a");
    assert_true(p.first == 1 && p.last == 10000);
    assert_true(p.min < -9e5 && p.max > 9e5);
    assert_true(metric_table_latest(t, 0, &step) > 0.4 && step == 10000);
    metric_table_free(t);
}

static void the_last_value_of_a_step_wins(void **state)
{
    (void)state;
    struct metric_table *t = metric_table_new(4);
    add(t, 5, "a", 100);
    add(t, 5, "a", 1);
    struct metric_point p = whole(t, "a");
    assert_true(p.value < 2 && p.max < 2 && p.min > 0);
    add(t, 3, "a", 7); /* out of order: into the nearest */
    add(t, 5, "a", NAN);
    assert_true(whole(t, "a").max > 6);
    int64_t step;
    assert_true(isnan(metric_table_latest(t, 0, &step)));
    metric_table_free(t);
}

static void a_point_has_its_newest_moment(void **state)
{
    (void)state;
    struct metric_table *t = metric_table_new(4);
    char name[] = "a";
    struct metric_value v = {.name = name, .value = 1};
    struct metric_point p;
    for (int i = 1; i <= 8; i++) {
        const struct metric_record r = {
            .step = i, .v = &v, .n = 1, .at = i == 3 ? 0 : (usec_t)i * 100};
        metric_table_add(t, &r);
    }
    assert_int_equal(metric_table_points(t), 4); /* each covers two steps */
    assert_true(metric_table_range(t, 0, 0, 1, &p));
    assert_int_equal(p.at, 200);
    assert_true(metric_table_range(t, 0, 1, 2, &p)); /* of step 3 no moment is known */
    assert_int_equal(p.at, 400);
    assert_true(metric_table_range(t, 0, 0, 4, &p));
    assert_int_equal(p.at, 800);
    metric_table_free(t);
}

static void ceilings_hold(void **state)
{
    (void)state;
    struct metric_table *t = metric_table_new(2);
    char key[32];
    for (int i = 0; i < METRIC_KEYS_MAX + 5; i++) {
        (void)snprintf(key, sizeof(key), "key%d", i);
        add(t, i, key, i);
    }
    assert_int_equal(metric_table_keys(t), METRIC_KEYS_MAX);
    assert_int_equal(metric_table_left_out(t), 5);
    assert_true(metric_table_points(t) <= 2);
    for (int i = 0; i < METRIC_KEYS_MAX; i++) {
        (void)snprintf(key, sizeof(key), "key%d", i);
        assert_int_equal(metric_table_find(t, key), i);
    }
    const struct metric_record odd = {.step = -1, .n = 0};
    metric_table_add(t, &odd);
    assert_null(metric_table_check(t));
    metric_table_free(t);
}

static void any_order_keeps_the_rules(void **state)
{
    (void)state;
    struct metric_table *t = metric_table_new(6);
    uint32_t x = 12345;
    for (int i = 0; i < 5000; i++) {
        x = x * 1664525 + 1013904223;
        char key[8] = {(char)('a' + (x >> 28) % 3), 0};
        add(t, (int64_t)(x >> 8) % 1000, key, (double)(x >> 16) - 3e4);
    }
    assert_true(metric_table_points(t) <= 6);
    metric_table_free(t);
}

/* A record of all keys from `first` on, each with this value. */
static void add_many(struct metric_table *t, int64_t step, int first, int keys, double value)
{
    struct metric_value *v = xcalloc((size_t)keys, sizeof(*v));
    for (int i = 0; i < keys; i++)
        v[i] = (struct metric_value){.name = xasprintf("k%d", first + i), .value = value};
    const struct metric_record r = {.step = step, .v = v, .n = (size_t)keys};
    metric_table_add(t, &r);
    assert_null(metric_table_check(t)); /* its memory has its bound */
    for (int i = 0; i < keys; i++)
        free(v[i].name);
    free(v);
}

static void more_keys_have_fewer_points(void **state)
{
    (void)state;
    struct metric_table *t = metric_table_new(64);
    add(t, 1, "a", 7e6);
    for (int i = 2; i <= 63; i++)
        add(t, i, "a", i == 40 ? -7e6 : i);
    add_many(t, 64, 0, METRIC_KEYS_WHOLE - 1, 1);
    assert_int_equal(metric_table_points(t), 64);
    add_many(t, 65, 0, 1500, 2);
    assert_int_equal(metric_table_keys(t), 1501);
    assert_int_equal(metric_table_left_out(t), 0);
    assert_true(metric_table_points(t) <= 16);
    struct metric_point p = whole(t, "a");
    assert_true(p.first == 1 && p.last == 65 && p.min < -6e6 && p.max > 6e6);
    for (int i = 66; i <= 130; i++) {
        add_many(t, i, 0, 1500, i);
        assert_true(metric_table_points(t) <= 16 && metric_table_points(t) > 7);
    }
    p = whole(t, "k0");
    assert_true(p.last == 130 && p.min < 1.5 && p.max > 129.5);
    metric_table_free(t);
}

/* Half a room may be odd, and the last point then stands for fewer records than the others. */
static void a_room_of_any_size_halves(void **state)
{
    (void)state;
    for (size_t room = 2; room < 24; room++) {
        struct metric_table *t = metric_table_new(room);
        for (int i = 1; i <= 100; i++)
            add(t, i, "a", i == 50 ? 1e6 : i);
        for (int keys = 400; keys <= METRIC_KEYS_MAX + 100; keys += 300) {
            add_many(t, 100 + keys, 0, keys, 1);
            struct metric_point p = whole(t, "a");
            assert_true(p.first == 1 && p.last == 100 + keys && p.max > 9e5 && p.min < 1.5);
        }
        metric_table_free(t);
    }
}

static void any_order_of_many_names_keeps_the_rules(void **state)
{
    enum { NAMES = METRIC_KEYS_MAX + 500 };
    (void)state;
    struct metric_table *t = metric_table_new(12);
    double *last = xcalloc(NAMES, sizeof(*last));
    size_t *number = xcalloc(NAMES, sizeof(*number)), keys = 0, left_out = 0; /* 0: none */
    uint32_t x = 99;
    for (int i = 0; i < 8000; i++) {
        x = x * 1664525 + 1013904223;
        size_t name = (x >> 8) % NAMES;
        _cleanup_(freep) char *key = xasprintf("%s%zu", name % 2 ? "layer/" : "", name);
        struct metric_value v = {.name = key, .value = (double)(x >> 16) - 3e4};
        const struct metric_record r = {.step = (int64_t)(x >> 20) % 500, .v = &v, .n = 1};
        metric_table_add(t, &r);
        if (!number[name] && keys < METRIC_KEYS_MAX)
            number[name] = ++keys;
        left_out += !number[name];
        last[name] = v.value;
        if (i % 100 == 0)
            assert_null(metric_table_check(t));
        int64_t step;
        size_t k = metric_table_find(t, key);
        assert_int_equal(k, number[name] ? number[name] - 1 : keys);
        if (number[name])
            assert_true(metric_table_latest(t, k, &step) - last[name] < 1e-9 && step == r.step);
    }
    assert_int_equal(metric_table_keys(t), METRIC_KEYS_MAX);
    assert_int_equal(metric_table_left_out(t), left_out);
    assert_true(left_out > 0);
    free(last);
    free(number);
    metric_table_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keeps_each_step),
        cmocka_unit_test(no_peak_is_lost),
        cmocka_unit_test(the_last_value_of_a_step_wins),
        cmocka_unit_test(a_point_has_its_newest_moment),
        cmocka_unit_test(ceilings_hold),
        cmocka_unit_test(any_order_keeps_the_rules),
        cmocka_unit_test(more_keys_have_fewer_points),
        cmocka_unit_test(a_room_of_any_size_halves),
        cmocka_unit_test(any_order_of_many_names_keeps_the_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
