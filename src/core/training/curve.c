/* SPDX-License-Identifier: Apache-2.0 */
/* curve.c - see curve.h. A picture is drawn as one byte a pixel, and packed as four pixels a byte.
 * Its data are stored blocks of deflate: with four colours they are small enough as they are. */
#include "core/training/curve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/crc.h"
#include "base/str.h"
#include "base/text.h"

/* ---- as text and JSON ---- */

void curve_to_text(const struct curve *c, struct buf *out)
{
    (void)buf_addf(out, "%.5g", isfinite(c->limit) ? c->limit : (double)NAN);
    for (size_t i = 0; i < c->n; i++)
        (void)buf_addf(out, " %.5g", isfinite(c->v[i]) ? c->v[i] : (double)NAN);
    (void)buf_addf(out, ": %s", c->metric); /* overflow: out->failed, here and above */
}

bool curve_from_text(const char *text, struct curve *ret)
{
    struct curve c = {.limit = NAN};
    const char *colon = strstr(str_or(text, ""), ": ");
    char *end;
    if (!colon)
        return false;
    c.metric = colon + 2;
    c.limit = strtod(text, &end);
    while (end < colon && *end == ' ' && c.n < CURVE_POINTS) {
        const char *from = end + 1;
        c.v[c.n++] = strtod(from, &end);
        if (end == from)
            return false;
    }
    if (end != colon || c.n < 2)
        return false;
    *ret = c;
    return true;
}

bool curve_from_json(const json_t *o, struct curve *ret)
{
    const json_t *points = json_get_array(o, "points");
    *ret = (struct curve){.metric = json_get_str(o, "metric", ""),
                          .limit = json_get_real(o, "limit", (double)NAN)};
    for (; ret->n < json_array_size(points) && ret->n < CURVE_POINTS; ret->n++) {
        const json_t *v = json_array_get(points, ret->n);
        ret->v[ret->n] = json_is_number(v) ? json_number_value(v) : (double)NAN;
    }
    return ret->n > 1;
}

/* ---- the drawing ---- */

enum pixel { PIXEL_PAPER, PIXEL_GRID, PIXEL_LINE, PIXEL_LIMIT };
static const unsigned char palette[] = {255, 255, 255, 208, 212, 218, 37, 99, 235, 220, 38, 38};

enum {
    LEFT = 84, /* for ten letters */
    RIGHT = CURVE_WIDTH - 8,
    TOP = 12,
    BOTTOM = CURVE_HEIGHT - 12,
    LETTER_WIDE = 3,
    LETTER_HIGH = 5,
    LETTER_SCALE = 2,
    DASH = 6
};

struct drawing {
    unsigned char at[CURVE_HEIGHT][CURVE_WIDTH]; /* enum pixel */
};

static void draw_dot(struct drawing *d, int x, int y, enum pixel p)
{
    if (x >= 0 && x < CURVE_WIDTH && y >= 0 && y < CURVE_HEIGHT)
        d->at[y][x] = (unsigned char)p;
}

static void draw_box(struct drawing *d, int x, int y, int wide, int high, enum pixel p)
{
    for (int i = 0; i < high; i++)
        for (int k = 0; k < wide; k++)
            draw_dot(d, x + k, y + i, p);
}

/* Five rows of three dots; a row is a digit of the octal number. */
static int letter_dots(char c)
{
    static const char letters[] = "0123456789-.+e";
    static const int dots[] = {075557, 026227, 071747, 071717, 055711, 074717, 074757,
                               071111, 075757, 075717, 000700, 000002, 002720, 007747};
    const char *at = c ? strchr(letters, c) : NULL;
    return at ? dots[at - letters] : 0;
}

/* The number, its right end left of the curve. */
static void draw_number(struct drawing *d, int y, double value)
{
    char text[16];
    text_printf(text, "%.3g", value);
    int step = (LETTER_WIDE + 1) * LETTER_SCALE, x = LEFT - 4 - (int)strlen(text) * step;
    for (const char *s = text; *s; s++, x += step)
        for (int bit = 0; bit < LETTER_WIDE * LETTER_HIGH; bit++)
            if (letter_dots(*s) >> (LETTER_WIDE * LETTER_HIGH - 1 - bit) & 1)
                draw_box(d, x + bit % LETTER_WIDE * LETTER_SCALE,
                         y + bit / LETTER_WIDE * LETTER_SCALE, LETTER_SCALE, LETTER_SCALE,
                         PIXEL_LINE);
}

/* What the picture spans: all values, and the limit so that it is in sight. */
struct curve_span {
    double least, most;
};

static void span_take(struct curve_span *s, double value)
{
    if (!isfinite(value))
        return;
    s->least = fmin(s->least, value);
    s->most = fmax(s->most, value);
}

/* A level that is no number, or of no span, is in the middle. */
static int span_y(const struct curve_span *s, double value)
{
    double share = (value / 2 - s->least / 2) / (s->most / 2 - s->least / 2);
    if (!isfinite(share))
        share = 0.5;
    return BOTTOM - (int)(share * (BOTTOM - TOP) + 0.5);
}

static int curve_x(const struct curve *c, size_t i)
{
    return LEFT + (int)((RIGHT - LEFT) * i / (c->n - 1));
}

/* From one point to the next, without a gap where it is steep. */
static void draw_stroke(struct drawing *d, int x0, int y0, int x1, int y1)
{
    int before = y0;
    for (int x = x0; x <= x1; x++) {
        int y = x1 > x0 ? y0 + (y1 - y0) * (x - x0) / (x1 - x0) : y1;
        int top = y < before ? y : before, bottom = y < before ? before : y;
        draw_box(d, x, top, 2, bottom - top + 2, PIXEL_LINE);
        before = y;
    }
}

static void draw_curve(struct drawing *d, const struct curve *c)
{
    struct curve_span s = {INFINITY, -INFINITY};
    span_take(&s, c->limit);
    for (size_t i = 0; i < c->n; i++)
        span_take(&s, c->v[i]);
    draw_box(d, LEFT, TOP, RIGHT - LEFT, 1, PIXEL_GRID);
    draw_box(d, LEFT, BOTTOM, RIGHT - LEFT, 1, PIXEL_GRID);
    if (s.least > s.most || c->n < 2)
        return; /* no number at all */
    draw_number(d, TOP - LETTER_HIGH, s.most);
    if (s.least < s.most)
        draw_number(d, BOTTOM - LETTER_HIGH, s.least);
    for (int x = LEFT; isfinite(c->limit) && x < RIGHT; x += 2 * DASH)
        draw_box(d, x, span_y(&s, c->limit), DASH, 1, PIXEL_LIMIT);
    for (size_t i = 0; i < c->n; i++) {
        int x = curve_x(c, i), y = span_y(&s, c->v[i]);
        if (!isfinite(c->v[i]))
            continue;
        draw_box(d, x, y, 2, 2, PIXEL_LINE);
        if (i > 0 && isfinite(c->v[i - 1]))
            draw_stroke(d, curve_x(c, i - 1), span_y(&s, c->v[i - 1]), x, y);
    }
}

/* ---- as PNG ---- */

static void png_add_number(struct buf *out, uint32_t v)
{
    const unsigned char b[] = {(unsigned char)(v >> 24), (unsigned char)(v >> 16),
                               (unsigned char)(v >> 8), (unsigned char)v};
    (void)buf_add(out, b, sizeof(b)); /* overflow: out->failed, here and below */
}

/* name has four letters. */
static void png_add_chunk(struct buf *out, const char *name, const void *data, size_t n)
{
    png_add_number(out, (uint32_t)n);
    (void)buf_add(out, name, 4);
    (void)buf_add(out, data, n);
    png_add_number(out, crc32_add(crc32_add(0, name, 4), data, n));
}

static uint32_t adler32_of(const unsigned char *v, size_t n)
{
    uint32_t a = 1, b = 0;
    for (size_t i = 0; i < n; i++) {
        a = (a + v[i]) % 65521;
        b = (b + a) % 65521;
    }
    return b << 16 | a;
}

enum { ROW_BYTES = 1 + CURVE_WIDTH / 4, ALL_BYTES = ROW_BYTES * CURVE_HEIGHT };
static_assert(CURVE_WIDTH % 4 == 0, "a row ends with a byte");
static_assert(ALL_BYTES <= 65535, "one stored block holds all");
static_assert(ALL_BYTES + 256 <= CURVE_PNG_MAX, "the rest is small");

static void drawing_pack(const struct drawing *d, unsigned char out[static ALL_BYTES])
{
    memset(out, 0, ALL_BYTES); /* the first byte of a row: no filter */
    for (int y = 0; y < CURVE_HEIGHT; y++)
        for (int x = 0; x < CURVE_WIDTH; x++)
            out[y * ROW_BYTES + 1 + x / 4] |= (unsigned char)(d->at[y][x] << (6 - x % 4 * 2));
}

void curve_picture(const struct curve *c, struct buf *out)
{
    static const char signature[] = "\x89PNG\r\n\x1a\n";
    static const unsigned char head[] = {0,
                                         0,
                                         CURVE_WIDTH >> 8,
                                         CURVE_WIDTH & 255,
                                         0,
                                         0,
                                         CURVE_HEIGHT >> 8,
                                         CURVE_HEIGHT & 255,
                                         2 /* bits of a pixel */,
                                         3 /* of a palette */,
                                         0,
                                         0,
                                         0};
    static const unsigned char begin[] = {
        0x78,           0x01 /* zlib */,    1 /* the last block, stored */, ALL_BYTES & 255,
        ALL_BYTES >> 8, (~ALL_BYTES) & 255, (~ALL_BYTES) >> 8 & 255};
    struct drawing *d = xcalloc(1, sizeof(*d));
    unsigned char *all = xmalloc(ALL_BYTES);
    struct buf data = BUF_INIT(CURVE_PNG_MAX);
    draw_curve(d, c);
    drawing_pack(d, all);
    (void)buf_add(&data, begin, sizeof(begin));
    (void)buf_add(&data, all, ALL_BYTES);
    png_add_number(&data, adler32_of(all, ALL_BYTES));
    (void)buf_add(out, signature, sizeof(signature) - 1);
    png_add_chunk(out, "IHDR", head, sizeof(head));
    png_add_chunk(out, "PLTE", palette, sizeof(palette));
    png_add_chunk(out, "IDAT", data.data, data.len);
    png_add_chunk(out, "IEND", "", 0);
    buf_release(&data);
    free(all);
    free(d);
}
