/* SPDX-License-Identifier: Apache-2.0 */
/* Tests of curve.h. */
#include "core/training/curve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/unit.h"

enum { LINE = 2, LIMIT = 3, ROW = 1 + CURVE_WIDTH / 4, IN_FRONT = 8 + 25 + 24 + 8 + 7 };

static void is_the_same_as_text(void **state)
{
    struct curve c = {.metric = "a: b c", .limit = NAN, .v = {1, NAN, -2.5e-7}, .n = 3}, back;
    struct buf out = BUF_INIT(CURVE_TEXT_MAX);
    (void)state;
    curve_to_text(&c, &out);
    assert_true(curve_from_text(buf_str(&out), &back));
    assert_string_equal(back.metric, "a: b c");
    assert_int_equal(back.n, 3);
    assert_true(isnan(back.limit) && isnan(back.v[1]));
    assert_true(fabs(back.v[2] + 2.5e-7) < 1e-12);
    buf_release(&out);
}

static void refuses_what_is_no_curve(void **state)
{
    static const char *const texts[] = {"", "x", ": m", "0.5 1: m", "0.5 1 x: m", "0.5 1 2  m"};
    struct curve c;
    struct buf many = BUF_INIT(CURVE_TEXT_MAX);
    (void)state;
    assert_false(curve_from_text(NULL, &c));
    for (size_t i = 0; i < array_len(texts); i++)
        if (curve_from_text(texts[i], &c))
            fail_msg("'%s' is taken", texts[i]);
    for (int i = 0; i < CURVE_POINTS + 2; i++)
        assert_int_equal(buf_adds(&many, "1 "), 0);
    assert_int_equal(buf_adds(&many, "1: m"), 0);
    assert_false(curve_from_text(buf_str(&many), &c));
    buf_release(&many);
    assert_false(curve_from_json(NULL, &c));
}

static int pixel_at(const struct buf *png, int x, int y)
{
    unsigned char b = (unsigned char)png->data[IN_FRONT + y * ROW + 1 + x / 4];
    return b >> (6 - x % 4 * 2) & 3;
}

/* The row of the lowest pixel of this colour in a column; -1: there is none. */
static int lowest(const struct buf *png, int x, int colour)
{
    for (int y = CURVE_HEIGHT - 1; y >= 0; y--)
        if (pixel_at(png, x, y) == colour)
            return y;
    return -1;
}

static size_t count_pixels(const struct buf *png, int colour)
{
    size_t n = 0;
    for (int y = 0; y < CURVE_HEIGHT; y++)
        for (int x = 0; x < CURVE_WIDTH; x++)
            n += pixel_at(png, x, y) == colour;
    return n;
}

static void draws_what_falls(void **state)
{
    struct curve c = {.metric = "m", .limit = 0.5, .v = {1, 1, 0}, .n = 3};
    struct buf png = BUF_INIT(CURVE_PNG_MAX), again = BUF_INIT(CURVE_PNG_MAX);
    (void)state;
    curve_picture(&c, &png);
    assert_false(png.failed);
    assert_memory_equal(png.data, "\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16);
    assert_memory_equal(png.data + png.len - 8, "IEND\xae\x42\x60\x82", 8);
    int first = lowest(&png, 90, LINE), middle = lowest(&png, 235, LINE);
    int last = lowest(&png, CURVE_WIDTH - 9, LINE);
    assert_true(first > 0 && abs(first - middle) <= 2);
    assert_true(last - first > CURVE_HEIGHT / 2);
    size_t red = count_pixels(&png, LIMIT);
    assert_true(red > 50);
    c.limit = NAN;
    curve_picture(&c, &again);
    assert_int_equal(count_pixels(&again, LIMIT), 0);
    buf_release(&png);
    buf_release(&again);
}

/* Whatever a job tells, it is a picture, and nothing is drawn outside of it. */
static void draws_whatever_comes(void **state)
{
    static const double odd[] = {NAN, INFINITY, -INFINITY, 0, -0.0, 1e308, -1e308, 5e-324, 3};
    (void)state;
    for (size_t i = 0; i < array_len(odd); i++)
        for (size_t k = 0; k < array_len(odd); k++) {
            struct curve c = {.metric = "m", .limit = odd[i], .v = {odd[k], odd[i], 2}, .n = 3};
            struct buf png = BUF_INIT(CURVE_PNG_MAX);
            curve_picture(&c, &png);
            assert_false(png.failed);
            assert_int_equal(png.len, IN_FRONT + ROW * CURVE_HEIGHT + 4 + 4 + 12);
            assert_true(count_pixels(&png, LINE) > 0);
            buf_release(&png);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(is_the_same_as_text),
        cmocka_unit_test(refuses_what_is_no_curve),
        cmocka_unit_test(draws_what_falls),
        cmocka_unit_test(draws_whatever_comes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
