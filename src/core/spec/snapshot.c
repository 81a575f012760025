/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot.c - see snapshot.h.
 *
 * Composed form without a table of Unicode: what could be composed with the character before it
 * (combining marks, Hangul jamo, kana marks) and what has another canonical form (the Angstrom
 * sign, CJK compatibility) is refused, so that of names that mean the same text one passes at
 * most. */
#include "core/spec/snapshot.h"

#include <ctype.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"

/* ---- references ---- */

static bool snapshot_is_word(const char *s, size_t n, bool upper, const char *more)
{
    if (!n || n > SNAPSHOT_NAME_MAX)
        return false;
    for (size_t i = 0; i < n; i++) {
        char c = s[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                     (upper && c >= 'A' && c <= 'Z') || (i > 0 && strchr(more, c));
        if (!plain)
            return false;
    }
    return true;
}

int snapshot_check_ref(const char *ref, struct err *err)
{
    char shown[SNAPSHOT_SHOWN];
    const char *at = strchr(ref, '@');
    if (at && snapshot_is_word(ref, (size_t)(at - ref), false, "_.-") &&
        snapshot_is_word(at + 1, strlen(at + 1), true, "_.+-"))
        return 0;
    return message_refuse(err, ERR_BAD_REQUEST, "bad_snapshot_ref",
                          MESSAGE_ARGS(MESSAGE_STR("ref", snapshot_show(ref, shown)),
                                       MESSAGE_NUM("most", SNAPSHOT_NAME_MAX)));
}

bool snapshot_is_ref(const char *text)
{
    return strchr(text, '@') && !strchr(text, '/') && !strchr("~$.", *text);
}

const char *snapshot_derive_name(const char *path, char ret[static SNAPSHOT_DERIVED_MAX + 1])
{
    const char *slash = strrchr(path, '/'), *last = slash ? slash + 1 : path;
    size_t n = 0;
    for (const char *s = last; *s && n < SNAPSHOT_DERIVED_MAX; s++) {
        bool plain = isalnum((unsigned char)*s) && (unsigned char)*s < 0x80;
        if (plain)
            ret[n++] = (char)tolower((unsigned char)*s);
        else if (n)
            ret[n++] = strchr("_.-", *s) ? *s : '-';
    }
    ret[n] = 0;
    if (!n)
        memcpy(ret, "code", sizeof("code"));
    return ret;
}

/* ---- characters ---- */

struct span {
    uint32_t first, last;
};

static bool is_in(const struct span *v, size_t n, uint32_t c)
{
    for (size_t i = 0; i < n; i++)
        if (c >= v[i].first && c <= v[i].last)
            return true;
    return false;
}

/* Neither seen nor harmless: control, direction, zero width, tags, no characters at all. */
static const struct span hidden[] = {
    {0x00, 0x1f},     {0x7f, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},     {0x115f, 0x1160},
    {0x17b4, 0x17b5}, {0x180b, 0x180f}, {0x200b, 0x200f}, {0x2028, 0x202e},   {0x2060, 0x206f},
    {0x3164, 0x3164}, {0xfe00, 0xfe0f}, {0xfeff, 0xfeff}, {0xffa0, 0xffa0},   {0xfff0, 0xfffb},
    {0xfffe, 0xffff}, {0xe000, 0xf8ff}, {0xd800, 0xdfff}, {0xe0000, 0x10ffff}};
/* Has, or makes with its neighbour, another canonical form. */
static const struct span decomposed[] = {
    {0x300, 0x36f},   {0x374, 0x374},     {0x37e, 0x37e},   {0x387, 0x387},   {0x1100, 0x11ff},
    {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff},   {0x1f71, 0x1f71}, {0x1f73, 0x1f73}, {0x1f75, 0x1f75},
    {0x1f77, 0x1f77}, {0x1f79, 0x1f79},   {0x1f7b, 0x1f7b}, {0x1f7d, 0x1f7d}, {0x2000, 0x2001},
    {0x20d0, 0x20ff}, {0x2126, 0x2126},   {0x212a, 0x212b}, {0x2329, 0x232a}, {0x3099, 0x309a},
    {0xf900, 0xfaff}, {0x2f800, 0x2fa1f}, {0xfe20, 0xfe2f}};
/* Read as '/', '\\', '.', ':' or a blank. */
static const struct span look_alike[] = {
    {0xa0, 0xa0},     {0x1680, 0x1680}, {0x2002, 0x200a}, {0x2024, 0x2025}, {0x202f, 0x202f},
    {0x2044, 0x2044}, {0x205f, 0x205f}, {0x2215, 0x2216}, {0x2236, 0x2236}, {0x29f5, 0x29f9},
    {0x3000, 0x3000}, {0xa789, 0xa789}, {0xfe52, 0xfe52}, {0xfe68, 0xfe68}, {0xff01, 0xff5e}};
static const struct span cyrillic[] = {{0x400, 0x52f}, {0x1c80, 0x1c8f}};
/* Those that have a Latin twin: micro and the rest stay free. */
static const struct span greek[] = {{0x391, 0x392}, {0x395, 0x397}, {0x399, 0x39a}, {0x39c, 0x39d},
                                    {0x39f, 0x39f}, {0x3a1, 0x3a1}, {0x3a4, 0x3a5}, {0x3a7, 0x3a7},
                                    {0x3bd, 0x3bd}, {0x3bf, 0x3bf}, {0x3c1, 0x3c1}};
#define IS_IN(table, c) is_in(table, array_len(table), c)

/* One valid sequence of n bytes. */
static uint32_t decode(const char *s, size_t n)
{
    const unsigned char *p = (const unsigned char *)s;
    if (n == 1)
        return p[0];
    uint32_t c = p[0] & (0xffU >> (n + 1));
    for (size_t i = 1; i < n; i++)
        c = c << 6 | (p[i] & 0x3f);
    return c;
}

const char *snapshot_show(const char *text, char ret[static SNAPSHOT_SHOWN])
{
    size_t n = 0;
    for (const unsigned char *s = (const unsigned char *)text; *s; s++) {
        if (n + 8 >= SNAPSHOT_SHOWN) {
            memcpy(ret + n, "...", 3);
            n += 3;
            break;
        }
        if (*s >= 0x20 && *s < 0x7f)
            ret[n++] = (char)*s;
        else
            n += (size_t)snprintf(ret + n, 5, "\\x%02x", *s);
    }
    ret[n] = 0;
    return ret;
}

static int snapshot_refuse(struct err *err, const char *path, const char *code)
{
    char shown[SNAPSHOT_SHOWN];
    return message_refuse(err, ERR_REFUSED, code,
                          MESSAGE_ARGS(MESSAGE_STR("path", snapshot_show(path, shown))));
}

/* ---- paths ---- */

static const char *why_not_character(uint32_t c)
{
    if (c < 0x80)
        return c == '\\' ? "name_backslash" : c < 0x20 || c == 0x7f ? "name_control" : NULL;
    if (IS_IN(hidden, c))
        return "name_invisible";
    if (IS_IN(decomposed, c))
        return "name_not_nfc";
    return IS_IN(look_alike, c) ? "name_look_alike" : NULL;
}

/* NULL, or the code of what is wrong with the n bytes of one name. */
static const char *why_not_part(const char *s, size_t n)
{
    bool latin = false, other = false;
    if (n > SNAPSHOT_PART_MAX)
        return "name_part_long";
    if ((n == 1 && *s == '.') || (n == 2 && !memcmp(s, "..", 2)))
        return "name_dots";
    for (size_t i = 0, k; i < n; i += k) {
        k = str_utf8_length(s + i, n - i);
        if (!k)
            return "name_not_utf8";
        uint32_t c = decode(s + i, k);
        const char *why = why_not_character(c);
        if (why)
            return why;
        latin |= c < 0x80 && isalpha((int)c);
        other |= IS_IN(cyrillic, c) || IS_IN(greek, c);
    }
    return latin && other ? "name_mixed" : NULL;
}

int snapshot_check_path(const char *path, struct err *err)
{
    size_t depth = 0;
    if (!*path)
        return snapshot_refuse(err, path, "name_empty");
    if (*path == '/' || (isalpha((unsigned char)*path) && path[1] == ':'))
        return snapshot_refuse(err, path, "name_absolute");
    if (strlen(path) > SNAPSHOT_PATH_MAX)
        return snapshot_refuse(err, path, "name_long");
    for (const char *s = path;;) {
        size_t n = strcspn(s, "/");
        if (!n)
            return snapshot_refuse(err, path, "name_part_empty");
        const char *why = why_not_part(s, n);
        if (why)
            return snapshot_refuse(err, path, why);
        if (++depth > SNAPSHOT_DEPTH_MAX)
            return snapshot_refuse(err, path, "name_deep");
        if (!s[n])
            return 0;
        s += n + 1;
    }
}

int snapshot_check_link(const char *path, const char *target, struct err *err)
{
    char shown[SNAPSHOT_SHOWN], to[SNAPSHOT_SHOWN];
    long depth = 0;
    bool out = *target == '/' || !*target || strlen(target) > SNAPSHOT_PATH_MAX;
    for (const char *s = path; *s; s++)
        depth += *s == '/';
    for (const char *s = target; *s && !out; s += strspn(s, "/")) {
        size_t n = strcspn(s, "/");
        if (n == 2 && !memcmp(s, "..", 2))
            depth--;
        else if (!(n == 1 && *s == '.'))
            depth++;
        out = depth < 0;
        s += n;
    }
    if (out)
        return message_refuse(err, ERR_REFUSED, "link_leads_out",
                              MESSAGE_ARGS(MESSAGE_STR("path", snapshot_show(path, shown)),
                                           MESSAGE_STR("target", snapshot_show(target, to))));
    for (const unsigned char *s = (const unsigned char *)target; *s; s++)
        if (*s < 0x20 || *s == 0x7f || *s == '\\')
            return message_refuse(err, ERR_REFUSED, "link_bad_target",
                                  MESSAGE_ARGS(MESSAGE_STR("path", snapshot_show(path, shown))));
    return 0;
}

/* ---- comparison ---- */

/* Where upper and lower case are regular: Latin, Greek, Cyrillic. How far apart they are; 1 means
 * in pairs, of which the upper one is even, or odd. */
static const struct {
    struct span upper;
    uint32_t apart, odd;
} cases[] = {{{'A', 'Z'}, 32, 0},     {{0xc0, 0xd6}, 32, 0},   {{0xd8, 0xde}, 32, 0},
             {{0x100, 0x138}, 1, 0},  {{0x139, 0x148}, 1, 1},  {{0x14a, 0x178}, 1, 0},
             {{0x179, 0x17e}, 1, 1},  {{0x391, 0x3a9}, 32, 0}, {{0x400, 0x40f}, 80, 0},
             {{0x410, 0x42f}, 32, 0}, {{0x460, 0x481}, 1, 0},  {{0x48a, 0x4bf}, 1, 0},
             {{0x4c1, 0x4ce}, 1, 1},  {{0x4d0, 0x52f}, 1, 0},  {{0x1e00, 0x1eff}, 1, 0}};

static uint32_t snapshot_lower(uint32_t c)
{
    for (size_t i = 0; i < array_len(cases); i++)
        if (c >= cases[i].upper.first && c <= cases[i].upper.last)
            return cases[i].apart > 1 || (c & 1) == cases[i].odd ? c + cases[i].apart : c;
    return c;
}

static void put_utf8(struct buf *out, uint32_t c)
{
    char s[4];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; c >>= 6)
        s[i] = (char)(0x80 | (c & 0x3f));
    s[0] = (char)(n == 1 ? c : (0xf00U >> n & 0xff) | c);
    (void)buf_add(out, s, n); /* no longer than the path by more than half: the owner's ceiling */
}

void snapshot_fold(struct buf *out, const char *path)
{
    for (size_t n = strlen(path), k; n; n -= k, path += k) {
        k = str_utf8_length(path, n);
        put_utf8(out, k ? snapshot_lower(decode(path, k)) : (uint32_t)(unsigned char)*path);
        k = k ? k : 1;
    }
}
