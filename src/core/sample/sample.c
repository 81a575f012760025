/* SPDX-License-Identifier: Apache-2.0 */
/* sample.c - see sample.h. One pass, forward: a value is passed over by counting brackets outside
 * of strings, so depth costs nothing. */
#include "core/sample/sample.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/hash.h"
#include "base/mem.h"

enum { SAMPLE_NUMBER_MAX = 64, GRAM = 4, GRAMS_LEAST = 8, LONG_WORD = 24 };

struct sample_scan {
    const char *p, *end;
};

static void sample_skip_blanks(struct sample_scan *s)
{
    while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\r' || *s->p == '\n'))
        s->p++;
}

static bool sample_take(struct sample_scan *s, char c)
{
    sample_skip_blanks(s);
    bool is = s->p < s->end && *s->p == c;
    s->p += is;
    return is;
}

/* From a quote to behind the one that closes it. */
static bool sample_skip_string(struct sample_scan *s)
{
    for (s->p++; s->p < s->end; s->p++) {
        if (*s->p == '"') {
            s->p++;
            return true;
        }
        s->p += *s->p == '\\' && s->p + 1 < s->end;
    }
    return false;
}

/* To the comma or bracket behind the value that begins here. */
static bool sample_skip_value(struct sample_scan *s)
{
    size_t depth = 0;
    while (s->p < s->end) {
        char c = *s->p;
        if (c == '"') {
            if (!sample_skip_string(s))
                return false;
            continue;
        }
        if (!depth && (c == ',' || c == '}' || c == ']'))
            return true;
        if (c == '{' || c == '[')
            depth++;
        else if (c == '}' || c == ']')
            depth--;
        s->p++;
    }
    return false;
}

static bool sample_take_value(struct sample_scan *s, struct sample_value *ret)
{
    sample_skip_blanks(s);
    const char *begin = s->p;
    if (!sample_skip_value(s))
        return false;
    const char *end = s->p;
    while (end > begin && strchr(" \t\r\n", end[-1]) && end[-1])
        end--;
    *ret = (struct sample_value){begin, (size_t)(end - begin)};
    return end > begin;
}

static bool sample_is(struct sample_value key, const char *name)
{
    return key.n == strlen(name) + 2 && !memcmp(key.p + 1, name, key.n - 2);
}

static void sample_take_step(struct sample *s, struct sample_value v)
{
    double step;
    if (sample_number(v, &step) && step >= 0 && step < 1e15)
        s->step = (int64_t)step;
}

static void sample_put(struct sample *s, struct sample_value key, struct sample_value v)
{
    const struct {
        const char *name;
        struct sample_value *to;
    } known[] = {{"input", &s->input},
                 {"output", &s->output},
                 {"gts", &s->gts},
                 {"uid", &s->uid},
                 {"request_id", &s->request_id}};
    for (size_t i = 0; i < array_len(known); i++)
        if (sample_is(key, known[i].name)) {
            *known[i].to = v;
            return;
        }
    if (sample_is(key, "score"))
        (void)sample_number(v, &s->score); /* it stays NaN */
    else if (sample_is(key, "step"))
        sample_take_step(s, v);
    else if (s->n_parts < SAMPLE_PARTS_MAX)
        s->parts[s->n_parts++] = (struct sample_part){key, v};
    else
        s->n_more++;
}

bool sample_read(const char *line, size_t n, struct sample *ret)
{
    struct sample_scan s = {line, line + n};
    struct sample found = {.score = NAN, .step = -1};
    if (n > SAMPLE_LINE_MAX || !sample_take(&s, '{'))
        return false;
    do {
        struct sample_value key, value;
        sample_skip_blanks(&s);
        const char *begin = s.p;
        if (s.p == s.end || *s.p != '"' || !sample_skip_string(&s))
            return false;
        key = (struct sample_value){begin, (size_t)(s.p - begin)};
        if (!sample_take(&s, ':') || !sample_take_value(&s, &value))
            return false;
        sample_put(&found, key, value);
    } while (sample_take(&s, ','));
    if (!sample_take(&s, '}') || !(found.input.n || found.output.n))
        return false;
    sample_skip_blanks(&s);
    if (s.p != s.end)
        return false;
    *ret = found;
    return true;
}

/* ---- values ---- */

bool sample_number(struct sample_value v, double *ret)
{
    char text[SAMPLE_NUMBER_MAX], *end;
    if (v.n == 4 && !memcmp(v.p, "true", 4)) {
        *ret = 1;
        return true;
    }
    if (v.n == 5 && !memcmp(v.p, "false", 5)) {
        *ret = 0;
        return true;
    }
    if (!v.n || v.n >= sizeof(text) || !(*v.p == '-' || (*v.p >= '0' && *v.p <= '9')))
        return false;
    memcpy(text, v.p, v.n);
    text[v.n] = 0;
    double value = strtod(text, &end);
    if (end != text + v.n || !isfinite(value))
        return false;
    *ret = value;
    return true;
}

static int sample_hex(const char *p, const char *end)
{
    int v = 0;
    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = p[i], lower = (char)(c | 0x20);
        if (c >= '0' && c <= '9')
            v = v * 16 + (c - '0');
        else if (lower >= 'a' && lower <= 'f')
            v = v * 16 + (lower - 'a' + 10);
        else
            return -1;
    }
    return v;
}

/* Behind "\u": one character, of two halves where the second one follows. How many bytes it took.
 */
static size_t sample_add_escaped(const char *p, const char *end, struct buf *out)
{
    int c = sample_hex(p, end);
    if (c < 0) {
        (void)buf_adds(out, "\\u"); /* overflow: out->failed, here and below */
        return 0;
    }
    int low = c >= 0xd800 && c < 0xdc00 && end - p >= 10 && p[4] == '\\' && p[5] == 'u'
                  ? sample_hex(p + 6, end)
                  : -1;
    if (low >= 0xdc00 && low < 0xe000) {
        (void)buf_add_utf8(out,
                           0x10000 + ((uint32_t)(c - 0xd800) << 10) + (uint32_t)(low - 0xdc00));
        return 10;
    }
    (void)buf_add_utf8(out, c >= 0xd800 && c < 0xe000 ? 0xfffd : (uint32_t)c);
    return 4;
}

void sample_text(struct sample_value v, struct buf *out)
{
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    if (v.n < 2 || *v.p != '"') {
        (void)buf_add(out, v.p, v.n); /* overflow: out->failed, here and below */
        return;
    }
    for (const char *p = v.p + 1, *end = v.p + v.n - 1; p < end;) {
        const char *escape = memchr(p, '\\', (size_t)(end - p));
        (void)buf_add(out, p, (size_t)((escape ? escape : end) - p));
        if (!escape)
            return;
        p = escape + 2;
        if (p > end)
            return;
        const char *at = p[-1] ? strchr(from, p[-1]) : NULL;
        if (p[-1] == 'u')
            p += sample_add_escaped(p, end, out);
        else
            (void)buf_addc(out, at ? to[at - from] : p[-1]);
    }
}

/* ---- keys ---- */

/* A job that makes two prompts collide mixes them up for itself alone. */
static uint64_t sample_hash(const char *p, size_t n)
{
    static const unsigned char seed[16] = "argus samples 1";
    return hash_keyed(seed, p, n);
}

uint64_t sample_prompt(const struct sample *s)
{
    return sample_hash(s->input.p, s->input.n);
}

/* How many of the n bytes are before "_<number>" at their end; n: there is none. */
static size_t sample_cut_number(const char *p, size_t n)
{
    size_t at = n;
    while (at && p[at - 1] >= '0' && p[at - 1] <= '9')
        at--;
    return at && at < n && p[at - 1] == '_' ? at - 1 : n;
}

uint64_t sample_group(const struct sample *s)
{
    if (s->uid.n < 2 || *s->uid.p != '"')
        return sample_prompt(s);
    const char *uid = s->uid.p + 1;
    size_t n = s->uid.n - 2, once = sample_cut_number(uid, n), twice = sample_cut_number(uid, once);
    return once < n && twice < once && twice ? sample_hash(uid, twice) : sample_prompt(s);
}

/* ---- repetition ---- */

static bool sample_is_blank(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* From p on: the next word, or one character of a script that has no blanks: where the text has
 * words of more than LONG_WORD bytes. NULL: there is none. */
static const char *sample_next_unit(const char *p,
                                    const char *end,
                                    bool by_letter,
                                    const char **ret_end)
{
    while (p < end && sample_is_blank(*p))
        p++;
    if (p == end)
        return NULL;
    const char *q = p + 1;
    if (by_letter)
        while (q < end && ((unsigned char)*q & 0xc0) == 0x80)
            q++;
    else
        while (q < end && !sample_is_blank(*q))
            q++;
    *ret_end = q;
    return p;
}

static size_t sample_count_words(const char *p, const char *end)
{
    size_t n = 0;
    while (sample_next_unit(p, end, false, &p))
        n++;
    return n;
}

/* The keys of the units; how many. */
static size_t sample_units(const char *text, size_t n, bool by_letter, uint64_t *ret, size_t most)
{
    size_t count = 0;
    const char *end = text + n, *q = NULL;
    for (const char *p = text; count < most && (p = sample_next_unit(p, end, by_letter, &q)); p = q)
        ret[count++] = sample_hash(p, (size_t)(q - p));
    return count;
}

/* Whether the key is in the table already; now it is. Zero is no key. */
static bool sample_was_seen(uint64_t *table, size_t mask, uint64_t key)
{
    size_t i = (size_t)key & mask;
    for (key += !key; table[i]; i = (i + 1) & mask)
        if (table[i] == key)
            return true;
    table[i] = key;
    return false;
}

double sample_repeats(const char *text, size_t n)
{
    size_t words = sample_count_words(text, text + n), size = 64;
    bool by_letter = words && n / words > LONG_WORD;
    size_t most = by_letter ? n : words;
    most = most < SAMPLE_UNITS_MAX ? most : SAMPLE_UNITS_MAX;
    if (most < GRAM + GRAMS_LEAST)
        return 0;
    while (size < 2 * most)
        size *= 2;
    _cleanup_(freep) uint64_t *units = xcalloc(most + size, sizeof(*units));
    size_t count = sample_units(text, n, by_letter, units, most), repeated = 0;
    if (count < GRAM + GRAMS_LEAST)
        return 0;
    for (size_t i = 0; i + GRAM <= count; i++) {
        uint64_t key = 0;
        for (size_t k = 0; k < GRAM; k++)
            key = (key ^ units[i + k]) * 0x9e3779b97f4a7c15u;
        repeated += sample_was_seen(units + most, size - 1, key ^ key >> 32);
    }
    return (double)repeated / (double)(count - GRAM + 1);
}
