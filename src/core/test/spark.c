/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of spark.h. */
#include "core/training/spark.h"

#include <math.h>
#include <string.h>

#include "base/unit.h"

#define LOW "\xe2\x96\x81"
#define HALF "\xe2\x96\x85"
#define HIGH "\xe2\x96\x88"
#define NO_NUMBER "\xc3\x97"

static const char *spark_of(size_t n, const double *v)
{
    static char out[SPARK_TEXT_MAX];
    struct spark s = {0};
    for (size_t i = 0; i < n; i++)
        spark_add(&s, v[i]);
    return spark_text(&s, out);
}

static void shows_the_shape(void **state)
{
    (void)state;
    assert_string_equal(spark_of(0, NULL), "");
    assert_string_equal(spark_of(1, (double[]){3}), "");
    assert_string_equal(spark_of(2, (double[]){3, 3}), LOW LOW);
    assert_string_equal(spark_of(3, (double[]){0, 8, 4}), LOW HIGH HALF);
    assert_string_equal(spark_of(3, (double[]){1, NAN, 2}), LOW NO_NUMBER HIGH);
    assert_string_equal(spark_of(2, (double[]){NAN, INFINITY}), NO_NUMBER NO_NUMBER);
    assert_string_equal(spark_of(3, (double[]){-1.7e308, 1.7e308, 0}), LOW HIGH HALF);
    assert_string_equal(spark_of(2, (double[]){0, 5e-324}), LOW LOW); /* too near to tell apart */
}

static size_t points(const char *text)
{
    size_t n = 0;
    for (; *text; text++)
        n += (*text & 0xc0) != 0x80;
    return n;
}

/* However many there are: it begins with the first value and ends with the newest. */
static void spans_all_values(void **state)
{
    struct spark s = {0};
    char out[SPARK_TEXT_MAX];
    (void)state;
    for (int i = 0; i < 100000; i++) {
        spark_add(&s, i);
        (void)spark_text(&s, out);
        if (i < 1)
            continue;
        size_t n = points(out);
        assert_true(n >= 2 && n <= SPARK_POINTS + 1);
        assert_true(i < SPARK_POINTS || n >= SPARK_POINTS / 2);
        assert_memory_equal(out, LOW, 3);
        assert_string_equal(out + strlen(out) - 3, HIGH);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shows_the_shape),
        cmocka_unit_test(spans_all_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
