/* SPDX-License-Identifier: Apache-2.0 */
/* answer.c - lines of a script's answer; see answer.h. */
#include "ssh/answer.h"

#include <ctype.h>
#include <string.h>

#include "base/str.h"
#include "base/text.h"

struct answer answer_of(const char *text, size_t len)
{
    return (struct answer){.p = text, .end = text + len};
}

static bool ssh_answer_read_key(struct answer *a, const char *line, size_t len)
{
    const char *equals = memchr(line, '=', len);
    size_t n = equals ? (size_t)(equals - line) : 0;
    if (n == 0 || n >= sizeof(a->key))
        return false;
    for (size_t i = 0; i < n; i++)
        if (!isupper((unsigned char)line[i]) && !isdigit((unsigned char)line[i]) && line[i] != '_')
            return false;
    memcpy(a->key, line, n);
    a->key[n] = 0;
    return true;
}

static void ssh_answer_read_value(struct answer *a, const char *value, size_t len)
{
    size_t n = 0;
    while (len && isspace((unsigned char)value[len - 1]))
        len--;
    while (n < len && n < sizeof(a->value) - 1) {
        unsigned char c = (unsigned char)value[n];
        size_t wide = c < 0x80 ? 1 : str_utf8_length(value + n, len - n);
        bool is_whole = wide && n + wide <= sizeof(a->value) - 1;
        if (c < 0x20 || c == 0x7f || !is_whole)
            a->value[n++] = c == '\t' ? ' ' : '?';
        else
            for (; wide; wide--, n++)
                a->value[n] = value[n];
    }
    a->value[n] = 0;
}

bool answer_next(struct answer *a)
{
    while (a->p < a->end) {
        const char *line = a->p, *nl = memchr(line, '\n', (size_t)(a->end - line));
        size_t len = (size_t)((nl ? nl : a->end) - line);
        a->p = nl ? nl + 1 : a->end;
        if (!ssh_answer_read_key(a, line, len))
            continue;
        size_t skip = strlen(a->key) + 1;
        ssh_answer_read_value(a, line + skip, len - skip);
        return true;
    }
    return false;
}

bool answer_is(const struct answer *a, const char *key)
{
    return !strcmp(a->key, key);
}

void answer_word(const char **rest, char *ret, size_t size)
{
    const char *p = *rest + strspn(*rest, " ");
    size_t n = strcspn(p, " ");
    text_printf_to(ret, size, "%.*s", (int)n, p);
    *rest = p + n + strspn(p + n, " ");
}

uint64_t answer_number(const char **rest, uint64_t max, uint64_t dflt)
{
    char word[24];
    int64_t v = 0;
    answer_word(rest, word, sizeof(word));
    return str_to_int(word, 0, max > INT64_MAX ? INT64_MAX : (int64_t)max, &v, NULL) < 0
               ? dflt
               : (uint64_t)v;
}

void answer_text(const char *rest, char *ret, size_t size)
{
    text_copy_to(ret, size, rest);
}
