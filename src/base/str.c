/* SPDX-License-Identifier: Apache-2.0 */
/* str.c - small questions about text; see str.h. */
#define _GNU_SOURCE
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"

char *str_with_port(const char *address, int port)
{
    bool is_v6 = strchr(address, ':') != NULL;
    return xasprintf("%s%s%s:%d", is_v6 ? "[" : "", address, is_v6 ? "]" : "", port);
}

bool str_eq(const char *a, const char *b)
{
    return a == b || (a && b && !strcmp(a, b));
}

bool str_starts(const char *s, const char *prefix)
{
    return !strncmp(s, prefix, strlen(prefix));
}

bool str_ends(const char *s, const char *suffix)
{
    size_t n = strlen(s), m = strlen(suffix);
    return n >= m && !memcmp(s + n - m, suffix, m);
}

uint32_t str_mark(const char *s, size_t most)
{
    uint32_t h = 2166136261U;
    for (size_t i = 0; i < most && s[i]; i++)
        h = (h ^ (unsigned char)s[i]) * 16777619U;
    return h;
}

int str_to_int(const char *s, int64_t min, int64_t max, int64_t *ret, struct err *err)
{
    char *end;
    errno = 0;
    long long v = strtoll(s, &end, 10);
    if (errno || end == s || *end || isspace((unsigned char)*s))
        return message_refuse(err, -EINVAL, "not_whole", MESSAGE_ARGS(MESSAGE_STR("text", s)));
    if (v < min || v > max)
        return message_refuse(
            err, -EINVAL, "outside_bounds",
            MESSAGE_ARGS(MESSAGE_STR("text", s), MESSAGE_NUM("min", min), MESSAGE_NUM("max", max)));
    *ret = v;
    return 0;
}

int str_to_real(const char *s, double *ret, struct err *err)
{
    char *end;
    double v = strtod(s, &end);
    if (end == s || *end || !isfinite(v) || isspace((unsigned char)*s))
        return message_refuse(err, -EINVAL, "not_number", MESSAGE_ARGS(MESSAGE_STR("text", s)));
    *ret = v;
    return 0;
}

int size_from_string(const char *s, uint64_t *ret_bytes, struct err *err)
{
    static const struct {
        const char *unit;
        uint64_t bytes;
    } units[] = {{"", 1},
                 {"B", 1},
                 {"KiB", 1ULL << 10},
                 {"MiB", 1ULL << 20},
                 {"GiB", 1ULL << 30},
                 {"TiB", 1ULL << 40},
                 {"KB", 1000},
                 {"MB", 1000000},
                 {"GB", 1000000000},
                 {"TB", 1000000000000}};
    char *end;
    errno = 0;
    unsigned long long n = strtoull(s, &end, 10);
    if (end != s && !errno && isdigit((unsigned char)*s))
        for (size_t i = 0; i < array_len(units); i++)
            if (!strcmp(end, units[i].unit) && n <= UINT64_MAX / units[i].bytes) {
                *ret_bytes = n * units[i].bytes;
                return 0;
            }
    return message_refuse(err, -EINVAL, "not_size", MESSAGE_ARGS(MESSAGE_STR("text", s)));
}

/* Levenshtein distance with one row; words longer than the row are never near. */
static size_t distance(const char *a, const char *b)
{
    enum { MAX = 64 };
    size_t row[MAX + 1], n = strlen(a), m = strlen(b);
    if (n > MAX || m > MAX)
        return SIZE_MAX;
    for (size_t j = 0; j <= m; j++)
        row[j] = j;
    for (size_t i = 1; i <= n; i++) {
        size_t diag = row[0];
        row[0] = i;
        for (size_t j = 1; j <= m; j++) {
            size_t best =
                diag + (tolower((unsigned char)a[i - 1]) != tolower((unsigned char)b[j - 1]));
            diag = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[m];
}

const char *str_nearest(const char *s, const char *const *names, size_t n)
{
    const char *found = NULL;
    size_t len = strlen(s), best = len / 3 + 2; /* further than this is another word */
    for (size_t i = 0; i < n; i++) {
        size_t d = distance(s, names[i]);
        if (d < best && d < len) {
            best = d;
            found = names[i];
        }
    }
    return found;
}

bool str_glob(const char *pattern, const char *s)
{
    const char *star = NULL, *mark = NULL;
    while (*s) {
        if (*pattern == '*') {
            star = pattern++;
            mark = s;
        } else if (*pattern == '?' || *pattern == *s) {
            pattern++;
            s++;
        } else if (star) {
            pattern = star + 1;
            s = ++mark;
        } else {
            return false;
        }
    }
    while (*pattern == '*')
        pattern++;
    return !*pattern;
}

const char *str_item(const char **list, size_t *ret_len)
{
    const char *item = *list;
    if (!item || !*item)
        return NULL;
    *ret_len = strcspn(item, ",");
    *list = item + *ret_len + (item[*ret_len] == ',');
    return item;
}

static bool has_item(const char *list, const char *item, size_t len)
{
    size_t n;
    for (const char *it; (it = str_item(&list, &n));)
        if (n == len && !memcmp(it, item, n))
            return true;
    return false;
}

bool str_list_has(const char *list, const char *item)
{
    return has_item(list, item, strlen(item));
}

bool str_list_has_all(const char *list, const char *some)
{
    size_t n;
    for (const char *it; (it = str_item(&some, &n));)
        if (!has_item(list, it, n))
            return false;
    return true;
}

int str_shell_quote(struct buf *out, const char *s)
{
    static const char safe[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
    if (*s && !s[strspn(s, safe)])
        return buf_adds(out, s);
    int r = buf_addc(out, '\'');
    for (; *s && r == 0; s++)
        r = *s == '\'' ? buf_adds(out, "'\\''") : buf_addc(out, *s);
    return r < 0 ? r : buf_addc(out, '\'');
}

static size_t str_name_length(const char *s)
{
    size_t n = 0;
    while (isalnum((unsigned char)s[n]) || s[n] == '_')
        n++;
    return n;
}

static int refuse_variable(const char *name, struct err *err)
{
    _cleanup_(freep) char *text = xasprintf("${%s}", name);
    return message_refuse(err, -EINVAL, "variable_unknown",
                          MESSAGE_ARGS(MESSAGE_STR("text", text)));
}

int str_expand(struct buf *out, const char *text, str_look_up_f look_up, void *arg, struct err *err)
{
    int r = 0;
    while (*text && r == 0) {
        size_t plain = strcspn(text, "$");
        size_t n = !plain && text[1] == '{' ? str_name_length(text + 2) : 0;
        if (plain) {
            r = buf_add(out, text, plain);
            text += plain;
        } else if (n && n < 128 && text[2 + n] == '}') {
            char name[128];
            memcpy(name, text + 2, n);
            name[n] = 0;
            const char *value = look_up(name, arg);
            if (!value)
                return refuse_variable(name, err);
            r = buf_adds(out, value);
            text += n + 3;
        } else {
            r = buf_addc(out, *text++);
        }
    }
    return r < 0 ? message_refuse(err, r, "text_long_expanded", MESSAGE_NO_ARGS) : 0;
}

static bool secret_word_at(const char *s)
{
    static const char *const words[] = {"TOKEN",      "SECRET",     "PASSWORD",
                                        "PASSWD",     "CREDENTIAL", "APIKEY",
                                        "ACCESS_KEY", "API_KEY",    "PRIVATE_KEY"};
    for (size_t i = 0; i < array_len(words); i++)
        if ((*s & ~0x20) == *words[i] && !strncasecmp(s, words[i], strlen(words[i])))
            return true;
    return false;
}

bool str_is_secret_name(const char *name)
{
    for (const char *s = name; *s; s++)
        if (secret_word_at(s) && !strcasestr(name, "TOKENIZER") && !strcasestr(name, "TOKENS"))
            return true;
    size_t n = strlen(name);
    return (n >= 4 && !strcasecmp(name + n - 4, "_KEY")) ||
           (n >= 5 && (!strcasecmp(name + n - 5, "_PASS") || !strcasecmp(name + n - 5, "_AUTH")));
}

char *str_hex(const unsigned char *bytes, size_t n, char *out)
{
    static const char digits[] = "0123456789abcdef";
    for (size_t i = 0; i < n; i++) {
        out[2 * i] = digits[bytes[i] >> 4];
        out[2 * i + 1] = digits[bytes[i] & 15];
    }
    out[2 * n] = 0;
    return out;
}

/* The first byte and what it allows as the second; more follow as 80..BF. */
static const struct {
    unsigned char first, last, second_min, second_max, len;
} utf8_forms[] = {
    {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
    {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
    {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
};

bool str_has_control(const char *s)
{
    const unsigned char *p = (const unsigned char *)s;
    while (*p && *p >= ' ' && *p != 0x7f && (*p != 0xc2 || p[1] < 0x80 || p[1] >= 0xa0))
        p++;
    return *p;
}

static bool utf8_goes_on(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

size_t str_cut(const char *s, size_t most)
{
    size_t n = strnlen(s, most), back = 0;
    if (n < most)
        return n;
    while (back < n && back < 3 && utf8_goes_on(s[n - back]))
        back++;
    return utf8_goes_on(s[n - back]) ? n : n - back;
}

size_t str_utf8_length(const void *p, size_t n)
{
    const unsigned char *s = p;
    if (s[0] < 0x80)
        return 1;
    size_t i = 0;
    while (i < array_len(utf8_forms) && s[0] > utf8_forms[i].last)
        i++;
    if (i == array_len(utf8_forms) || s[0] < utf8_forms[i].first || n < utf8_forms[i].len)
        return 0;
    if (s[1] < utf8_forms[i].second_min || s[1] > utf8_forms[i].second_max)
        return 0;
    for (size_t k = 2; k < utf8_forms[i].len; k++)
        if ((s[k] & 0xc0) != 0x80)
            return 0;
    return utf8_forms[i].len;
}
