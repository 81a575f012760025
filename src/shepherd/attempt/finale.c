/* SPDX-License-Identifier: Apache-2.0 */
/* finale.c - see finale.h. A training that goes on after an exception says far more than a few
 * lines; what Python itself ignores while it ends ("Exception ignored in") is no failure. */
#define _GNU_SOURCE
#include "shepherd/attempt/finale.h"

#include <ctype.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

enum { LINES_BEHIND = 6, PREFIX_MAX = 120 };

static const char HEAD[] = "Traceback (most recent call last):";

void finale_add(struct finale *f, const char *p, size_t n)
{
    if (n > FINALE_BYTES) {
        p += n - FINALE_BYTES;
        n = FINALE_BYTES;
    }
    if (f->n + n > sizeof(f->newest)) {
        size_t keep = FINALE_BYTES;
        memmove(f->newest, f->newest + f->n - keep, keep);
        f->n = keep;
    }
    memcpy(f->newest + f->n, p, n);
    f->n += n;
}

/* A line without its end, which is \n or the \r of a progress bar; *p goes behind it. */
static bool finale_next(const char **p, const char *end, const char **ret, size_t *ret_n)
{
    if (*p >= end)
        return false;
    const char *q = *p;
    while (q < end && *q != '\n' && *q != '\r')
        q++;
    *ret = *p;
    *ret_n = (size_t)(q - *p);
    *p = q + (q < end);
    return true;
}

/* The last of what there is; NULL: none. */
static const char *finale_last(const char *p, size_t n, const char *word, size_t k)
{
    const char *found = NULL;
    for (const char *end = p + n, *at = p; (at = memmem(at, (size_t)(end - at), word, k)); at++)
        found = at;
    return found;
}

static bool finale_is_exception(const char *p, size_t n)
{
    size_t k = 0, last = 0;
    for (; k < n && (isalnum((unsigned char)p[k]) || p[k] == '_' || p[k] == '.'); k++)
        last = p[k] == '.' ? k + 1 : last;
    bool is_named = k > last && isupper((unsigned char)p[last]);
    return is_named && (k == n || (p[k] == ':' && (k + 1 == n || p[k + 1] == ' ')));
}

static void finale_copy(char line[static FINALE_LINE_MAX], const char *p, size_t n)
{
    text_printf_to(line, FINALE_LINE_MAX, "%.*s", (int)(n < FINALE_LINE_MAX ? n : FINALE_LINE_MAX),
                   p);
}

/* Where the line of the head begins; NULL: too much stands before the head, or the line before
 * says that the exception was ignored. */
static const char *finale_head_line(const char *begin, const char *head)
{
    const char *first = head;
    while (first > begin && first[-1] != '\n' && first[-1] != '\r')
        first--;
    const char *before = first - (first > begin);
    while (before > begin && before[-1] != '\n')
        before--;
    bool counts = (size_t)(head - first) <= PREFIX_MAX &&
                  !memmem(before, (size_t)(first - before), " ignored ", 9);
    return counts ? first : NULL;
}

/* What stands before a head in its line also stands before each line of that traceback. */
static bool finale_raised(const char *begin, const char *end, char line[static FINALE_LINE_MAX])
{
    const char *head = finale_last(begin, (size_t)(end - begin), HEAD, sizeof(HEAD) - 1);
    const char *first = head ? finale_head_line(begin, head) : NULL;
    if (!first)
        return false;
    size_t prefix = (size_t)(head - first), n, behind = 0;
    const char *p = head + sizeof(HEAD) - 1, *s;
    const char *found = NULL;
    size_t found_n = 0;
    for (p += p < end; finale_next(&p, end, &s, &n);) {
        bool is_same = n >= prefix && !memcmp(s, first, prefix);
        if (found) {
            behind += n > 0;
        } else if (is_same && n > prefix && s[prefix] != ' ') {
            if (!finale_is_exception(s + prefix, n - prefix))
                return false;
            found = s + prefix;
            found_n = n - prefix;
        }
    }
    if (!found || behind > LINES_BEHIND)
        return false;
    finale_copy(line, found, found_n);
    return true;
}

/* Words with which a shell ends a line about a command that did not run, or ran badly. */
static bool finale_is_of_shell(const char *p, size_t n)
{
    static const char *const ends[] = {": command not found",
                                       ": not found",
                                       ": Permission denied",
                                       ": No such file or directory",
                                       ": bad interpreter: No such file or directory",
                                       "Segmentation fault",
                                       " Killed",
                                       ": Is a directory",
                                       ": Exec format error"};
    if (memmem(p, n, "(core dumped)", 13))
        return true;
    for (size_t i = 0; i < array_len(ends); i++) {
        size_t k = strlen(ends[i]);
        if (n >= k && !memcmp(p + n - k, ends[i], k))
            return memmem(p, n, "sh: ", 4) || memmem(p, n, ".sh:", 4) || strchr("(S K", ends[i][0]);
    }
    return false;
}

bool finale_says_failure(const struct finale *f, char line[static FINALE_LINE_MAX])
{
    const char *begin = f->newest, *end = begin + f->n, *p = begin, *s, *last = NULL;
    size_t n, last_n = 0;
    if (finale_raised(begin, end, line))
        return true;
    while (finale_next(&p, end, &s, &n))
        if (n) {
            last = s;
            last_n = n;
        }
    if (!last || !finale_is_of_shell(last, last_n))
        return false;
    finale_copy(line, last, last_n);
    return true;
}
