/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of sample.h and sample_order.h. */
#include "core/sample/sample.h"

#include <math.h>
#include <string.h>

#include "base/str.h"
#include "core/sample/sample_order.h"

#include "base/unit.h"

static bool read_line(const char *line, struct sample *ret)
{
    return sample_read(line, strlen(line), ret);
}

static bool text_is(struct sample_value v, const char *want)
{
    struct buf out = BUF_INIT(1000);
    sample_text(v, &out);
    bool is = !strcmp(buf_str(&out), want);
    if (!is)
        print_error("'%s' and not '%s'\n", buf_str(&out), want);
    buf_release(&out);
    return is;
}

static void lines_of_verl(void **state)
{
    struct sample s;
    (void)state;
    assert_true(
        read_line("{\"input\": \"2+2=\", \"output\": \"a \\\"4\\\"\\n\\u00e9\\ud83d\\ude00\", "
                  "\"gts\": \"4\", \"score\": 1.5, \"step\": 3, \"acc\": true, "
                  "\"uid\": \"1f-2_0_1\", \"more\": {\"a\": [1, \"}\"]}, \"request_id\": 7}\n",
                  &s));
    assert_true(text_is(s.input, "2+2="));
    assert_true(text_is(s.output, "a \"4\"\n\xc3\xa9\xf0\x9f\x98\x80"));
    assert_true(text_is(s.gts, "4"));
    assert_true(text_is(s.request_id, "7"));
    assert_true(s.score > 1.4 && s.score < 1.6);
    assert_int_equal(s.step, 3);
    assert_int_equal(s.n_parts, 2);
    assert_true(text_is(s.parts[1].key, "more"));
    assert_true(text_is(s.parts[1].value, "{\"a\": [1, \"}\"]}"));
    double v = 0;
    assert_true(sample_number(s.parts[0].value, &v) && v > 0.9);
    assert_false(sample_number(s.parts[1].value, &v));
}

static void odd_values(void **state)
{
    static const char *const no_score[] = {"NaN",   "Infinity", "-Infinity", "null",
                                           "\"1\"", "[1]",      "1e999",     "-"};
    struct sample s;
    (void)state;
    for (size_t i = 0; i < array_len(no_score); i++) {
        _cleanup_(freep) char *line = xasprintf("{\"input\":\"a\",\"score\":%s}", no_score[i]);
        assert_true(read_line(line, &s));
        assert_true(isnan(s.score));
    }
    assert_true(read_line("{\"output\":\"\\ud800x\\u12\\q\",\"step\":-1}", &s));
    assert_true(text_is(s.output, "\xef\xbf\xbdx\\u12q"));
    assert_int_equal(s.step, -1);
    struct buf many = BUF_INIT(4000);
    (void)buf_adds(&many, "{\"input\":\"\"");
    for (int i = 0; i < 40; i++)
        (void)buf_addf(&many, ",\"k%d\":%d", i, i);
    (void)buf_adds(&many, "}");
    assert_true(sample_read(many.data, many.len, &s));
    assert_int_equal(s.n_parts, SAMPLE_PARTS_MAX);
    assert_int_equal(s.n_more, 8);
    buf_release(&many);
}

static void what_is_no_sample(void **state)
{
    static const char *const lines[] = {
        "",
        "7",
        "[]",
        "{}",
        "{\"score\": 1}",
        "{\"input\": \"a\"",
        "{\"input\": \"a}",
        "{\"input\" \"a\"}",
        "{\"input\":}",
        "{\"input\":\"a\"} x",
        "{\"input\":\"a\",}",
        "{input:1}",
        "{\"input\":\"a\\",
        "\0",
        "{\"input\":[1}",
        "{\"input\":\"a\"}{\"input\":\"b\"}",
    };
    struct sample s = {.step = 77};
    (void)state;
    for (size_t i = 0; i < array_len(lines); i++)
        assert_false(read_line(lines[i], &s));
    assert_int_equal(s.step, 77);
}

static void prompts_and_groups(void **state)
{
    struct sample a, b, c;
    (void)state;
    assert_true(read_line("{\"input\":\"p\",\"output\":\"1\",\"uid\":\"x-y_0_0\"}", &a));
    assert_true(read_line("{\"input\":\"p\",\"output\":\"2\",\"uid\":\"x-y_12_3\"}", &b));
    assert_true(read_line("{\"input\":\"p\",\"output\":\"3\",\"uid\":\"z_0_0\"}", &c));
    assert_true(sample_prompt(&a) == sample_prompt(&c));
    assert_true(sample_group(&a) == sample_group(&b));
    assert_true(sample_group(&a) != sample_group(&c));
    static const char *const no_parts[] = {"\"\"",    "\"x\"", "\"_0_0\"", "\"x_0\"",
                                           "\"0_0\"", "7",     "\"x_a_0\""};
    for (size_t i = 0; i < array_len(no_parts); i++) {
        _cleanup_(freep) char *line = xasprintf("{\"input\":\"p\",\"uid\":%s}", no_parts[i]);
        assert_true(read_line(line, &c));
        assert_true(sample_group(&c) == sample_prompt(&a));
    }
}

static double repeats(const char *text)
{
    return sample_repeats(text, strlen(text));
}

static void repetition(void **state)
{
    (void)state;
    assert_true(repeats("") <= 0);
    assert_true(repeats("too short to be told of") <= 0);
    assert_true(
        repeats("one two three four five six seven eight nine ten eleven twelve thirteen") <= 0);
    assert_true(repeats("so it is so it is so it is so it is so it is so it is so it is") > 0.7);
    struct buf marks = BUF_INIT(1 << 20);
    for (int i = 0; i < 100000; i++)
        (void)buf_addc(&marks, '!');
    assert_true(sample_repeats(marks.data, marks.len) > 0.99);
    buf_reset(&marks);
    for (int i = 0; i < 20; i++) /* no blank in it, three bytes a letter */
        (void)buf_adds(&marks, "\xe5\x9b\x9e\xe7\xad\x94\xe6\x98\xaf");
    assert_true(sample_repeats(marks.data, marks.len) > 0.9);
    buf_release(&marks);
}

/* ---- order ---- */

static void sums_and_flat_groups(void **state)
{
    const struct sample_place v[] = {
        {.group = 2, .score = 1},   {.group = 1, .score = 0},   {.group = 2, .score = 1},
        {.group = 1, .score = 1},   {.group = 3, .score = NAN}, {.group = 4, .score = -3},
        {.group = 1, .score = NAN},
    };
    struct sample_sum sum;
    (void)state;
    sample_order_sum(v, array_len(v), &sum);
    assert_int_equal(sum.scored, 5);
    assert_int_equal(sum.groups, 2);
    assert_int_equal(sum.flat, 1);
    assert_true(fabs(sum.mean) < 1e-9 && sum.least < -2.9 && sum.most > 0.9);
    sample_order_sum(NULL, 0, &sum);
    assert_true(isnan(sum.mean) && sum.scored == 0);
}

static void orders(void **state)
{
    struct sample_place v[] = {{.offset = 0, .score = 1},
                               {.offset = 10, .score = NAN},
                               {.offset = 20, .score = -1},
                               {.offset = 30, .score = 1}};
    (void)state;
    assert_int_equal(sample_order_sort(SAMPLE_WORST, v, 4), 3);
    assert_int_equal(v[0].offset, 20);
    assert_int_equal(v[1].offset, 0);
    assert_int_equal(sample_order_sort(SAMPLE_BEST, v, 4), 3);
    assert_int_equal(v[0].offset, 0);
    assert_int_equal(v[1].offset, 30);
    assert_int_equal(sample_order_sort(SAMPLE_AS_DUMPED, v, 4), 4);
    assert_int_equal(v[1].offset, 10);
}

static void changes_of_a_prompt(void **state)
{
    struct sample_place now[] = {{.prompt = 1, .score = 1, .offset = 0},
                                 {.prompt = 2, .score = 0, .offset = 1},
                                 {.prompt = 1, .score = 0, .offset = 2},
                                 {.prompt = 3, .score = 1, .offset = 3},
                                 {.prompt = 4, .score = NAN, .offset = 4}};
    struct sample_place before[] = {
        {.prompt = 4, .score = 1}, {.prompt = 2, .score = 1}, {.prompt = 1, .score = 0.25}};
    (void)state;
    sample_order_compare(now, array_len(now), before, array_len(before));
    assert_int_equal(sample_order_sort(SAMPLE_CHANGED, now, array_len(now)), 3);
    assert_int_equal(now[0].prompt, 2);
    assert_true(now[0].change < -0.9 && now[1].change > 0.24 && now[1].change < 0.26);
    assert_int_equal(now[1].offset, 0);
    assert_int_equal(now[2].offset, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_of_verl),
        cmocka_unit_test(odd_values),
        cmocka_unit_test(what_is_no_sample),
        cmocka_unit_test(prompts_and_groups),
        cmocka_unit_test(repetition),
        cmocka_unit_test(sums_and_flat_groups),
        cmocka_unit_test(orders),
        cmocka_unit_test(changes_of_a_prompt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
