/* SPDX-License-Identifier: Apache-2.0 */
/* text.c - width, cutting and cleaning of UTF-8; see text.h.
 *
 * The ranges are those of Unicode's EastAsianWidth W and F and of the combining
 * marks that one meets in names; wcwidth() is of no use because it answers for
 * the locale, which is "C" in most containers. */
#include "argus/show/text.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct range {
    uint32_t first, last;
};

static const struct range WIDE[] = {
    {0x1100, 0x115f},   {0x231a, 0x231b},   {0x23e9, 0x23ec},   {0x2614, 0x2615},
    {0x26a1, 0x26a1},   {0x2705, 0x2705},   {0x274c, 0x274c},   {0x2e80, 0x303e},
    {0x3041, 0x33ff},   {0x3400, 0x4dbf},   {0x4e00, 0x9fff},   {0xa000, 0xa4cf},
    {0xa960, 0xa97f},   {0xac00, 0xd7a3},   {0xf900, 0xfaff},   {0xfe10, 0xfe19},
    {0xfe30, 0xfe6f},   {0xff01, 0xff60},   {0xffe0, 0xffe6},   {0x1f300, 0x1f64f},
    {0x1f680, 0x1f6ff}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd},
};

static const struct range NARROWEST[] = {
    {0x0300, 0x036f}, {0x0483, 0x0489}, {0x0591, 0x05bd}, {0x0610, 0x061a}, {0x064b, 0x065f},
    {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x2064},
    {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfe20, 0xfe2f}, {0xfeff, 0xfeff}, {0xe0100, 0xe01ef},
};

static bool in_ranges(uint32_t cp, const struct range *r, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (cp >= r[i].first && cp <= r[i].last)
            return true;
    return false;
}

static int text_width_of(uint32_t cp)
{
    if (in_ranges(cp, NARROWEST, array_len(NARROWEST)))
        return 0;
    return in_ranges(cp, WIDE, array_len(WIDE)) ? 2 : 1;
}

size_t text_next(const char *s, size_t n, uint32_t *ret_cp)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    unsigned char c = (unsigned char)*s;
    size_t len = c < 0x80 ? 1 : (c & 0xe0) == 0xc0 ? 2 : (c & 0xf0) == 0xe0 ? 3 : 4;
    *ret_cp = 0xfffd;
    if (c < 0x80) {
        *ret_cp = c;
        return 1;
    }
    if (c < 0xc2 || c > 0xf4 || len > n)
        return 1;
    uint32_t cp = c & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if (((unsigned char)s[i] & 0xc0) != 0x80)
            return 1;
        cp = cp << 6 | ((unsigned char)s[i] & 0x3f);
    }
    if (cp < least[len] || cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
        return 1;
    *ret_cp = cp;
    return len;
}

int text_width(const char *s)
{
    int width = 0;
    size_t n = strlen(s);
    uint32_t cp;
    for (size_t used; n; s += used, n -= used) {
        used = text_next(s, n, &cp);
        width += text_width_of(cp);
    }
    return width;
}

/* Marks of direction: text that stands behind them is shown where it does not stand. */
static bool text_is_direction(uint32_t cp)
{
    return cp == 0x061c || cp == 0x200e || cp == 0x200f || (cp >= 0x202a && cp <= 0x202e) ||
           (cp >= 0x2066 && cp <= 0x2069);
}

void text_clean(struct buf *out, const char *s)
{
    size_t n = strlen(s);
    uint32_t cp;
    for (size_t used; n; s += used, n -= used) {
        used = text_next(s, n, &cp);
        if (cp == '\t' || cp == '\n' || cp == '\r')
            (void)buf_addc(out, ' '); /* a full buffer keeps `failed` */
        else if (cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || cp == 0xfffd || text_is_direction(cp))
            (void)buf_addc(out, '?');
        else
            (void)buf_add(out, s, used);
    }
}

void text_cut(struct buf *out, const char *s, int width)
{
    if (text_width(s) <= width) {
        (void)buf_adds(out, s); /* a full buffer keeps `failed` */
        return;
    }
    size_t n = strlen(s);
    int room = width - 1;
    uint32_t cp;
    for (size_t used; n; s += used, n -= used) {
        used = text_next(s, n, &cp);
        room -= text_width_of(cp);
        if (room < 0)
            break;
        (void)buf_add(out, s, used);
    }
    if (width > 0)
        (void)buf_adds(out, "…");
}

/* The longest end of s that fits the width. */
static const char *text_end_of(const char *s, int width)
{
    uint32_t cp;
    for (int left = text_width(s); left > width; left -= text_width_of(cp))
        s += text_next(s, strlen(s), &cp);
    return s;
}

void text_cut_middle(struct buf *out, const char *s, int width)
{
    int tail = text_width(s) > width ? (width - 1) / 2 : 0;
    text_cut(out, s, width - tail);
    if (tail > 0)
        (void)buf_adds(out, text_end_of(s, tail)); /* a full buffer keeps `failed` */
}

void text_wrap(struct buf *out, const char *s, int width, int indent)
{
    int column = indent;
    bool fresh = true;
    for (; *s; s += strspn(s, " ")) {
        size_t n = strcspn(s, " ");
        char *word = xstrndup(s, n);
        int w = text_width(word);
        if (!fresh && column + 1 + w > width) {
            (void)buf_addf(out, "\n%*s", indent, ""); /* a full buffer keeps `failed` */
            column = indent;
            fresh = true;
        }
        (void)buf_addf(out, "%s%s", fresh ? "" : " ", word);
        column += w + !fresh;
        fresh = false;
        free(word);
        s += n;
    }
}
