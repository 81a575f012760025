/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of curve.h. */
#include "argus/show/curve.h"

#include <string.h>

#include "base/unit.h"

#define NOW (1800000000 * USEC_SEC) /* 2027-01-15T08:00:00Z */

static json_t *json(const char *text)
{
    json_t *o = NULL;
    assert_int_equal(json_parse(text, strlen(text), 1 << 16, &o, NULL), 0);
    return o;
}

static void assert_spark(const char *values, int width, const char *want)
{
    _cleanup_(json_unrefp) json_t *v = json(values);
    struct buf out = BUF_INIT(1024);
    curve_spark(&out, v, width);
    assert_string_equal(buf_str(&out), want);
    buf_release(&out);
}

static void sparks(void **state)
{
    (void)state;
    assert_spark("[0,1,2,3,4,5,6,7]", 20, "▁▂▃▄▅▆▇█");
    assert_spark("[0,1,2,3,4,5,6,7]", 2, "▁█");
    assert_spark("[5,5,5]", 8, "▁▁▁");
    assert_spark("[-1,1]", 8, "▁█");
    assert_spark("[]", 8, "");
    assert_spark("[1,2]", 0, "");
    struct buf out = BUF_INIT(16);
    curve_spark(&out, NULL, 8);
    assert_string_equal(buf_str(&out), "");
    buf_release(&out);
}

static void progress(void **state)
{
    (void)state;
    struct when w = {.now = NOW};
    _cleanup_(json_unrefp) json_t *m = json(
        "{\"step\":12,\"total_steps\":30,\"progress\":0.4,\"eta\":\"2027-01-15T08:02:00.000Z\","
        "\"step_seconds\":3.21,\"tokens_per_s\":1200,\"mfu\":0.412}");
    _cleanup_(freep) char *text = curve_progress(m, &w);
    assert_string_equal(text,
                        "step 12 of 30 (40%), ends in 2m, 3.21s per step, 1200 tokens/s, MFU 0.41");
    _cleanup_(json_unrefp) json_t *little = json("{\"step\":3,\"total_steps\":null,\"eta\":null,"
                                                 "\"progress\":null,\"mfu\":null}");
    _cleanup_(freep) char *less = curve_progress(little, &w);
    assert_string_equal(less, "step 3");
    _cleanup_(freep) char *none = curve_progress(NULL, &w);
    assert_string_equal(none, "");
}

static void lines(void **state)
{
    (void)state;
    _cleanup_(json_unrefp) json_t *c =
        json("{\"key\":\"critic/score/mean\",\"value\":0.5,\"min\":0.1,"
             "\"max\":0.5,\"spark\":[0.1,0.2,0.5]}");
    _cleanup_(freep) char *text = curve_line(c, 68);
    assert_string_equal(text, "critic/score/mean 0.5 ▁▃█ 0.1 to 0.5");
    _cleanup_(json_unrefp) json_t *bad = json("{\"key\":\"loss\",\"value\":null,\"spark\":[]}");
    _cleanup_(freep) char *nan = curve_line(bad, 0);
    assert_string_equal(nan, "loss nan");
    _cleanup_(freep) char *none = curve_line(NULL, 80);
    assert_string_equal(none, "");
}

static void trouble(void **state)
{
    (void)state;
    _cleanup_(json_unrefp) json_t *bad =
        json("{\"not_finite\":{\"key\":\"actor/pg_loss\",\"step\":7}}");
    _cleanup_(json_unrefp) json_t *fallen =
        json("{\"not_finite\":null,\"collapse\":{\"step\":9,\"best\":0.7,\"now\":0.1}}");
    _cleanup_(freep) char *a = curve_trouble(bad, MESSAGE_ENGLISH),
                          *b = curve_trouble(fallen, MESSAGE_ENGLISH);
    _cleanup_(freep) char *c = curve_trouble(NULL, MESSAGE_ENGLISH);
    assert_string_equal(a, "actor/pg_loss is not a number since step 7");
    assert_string_equal(b, "the reward fell back: 0.7 at best, 0.1 at step 9");
    assert_string_equal(c, "");
    _cleanup_(json_unrefp) json_t *odd =
        json("{\"unread\":{\"key\":\"grad\",\"step\":4,\"values\":2}}");
    _cleanup_(freep) char *d = curve_trouble(odd, MESSAGE_ENGLISH);
    assert_string_equal(d, "2 metrics could not be read as numbers, the first: grad at step 4");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sparks),
        cmocka_unit_test(progress),
        cmocka_unit_test(lines),
        cmocka_unit_test(trouble),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
