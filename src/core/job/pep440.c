/* SPDX-License-Identifier: Apache-2.0 */
/* pep440.c - see pep440.h. A text is read from left to right by small steps, each of which either
 * moves on or leaves the place as it was. */
#include "core/job/pep440.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/message.h"
#include "base/str.h"
#include "base/text.h"

enum { NUMBER_DIGITS_MAX = 9, SPECIFIER_MAX = 100 };

/* ---- reading ---- */

static bool read_number(const char **p, long *ret)
{
    size_t n = strspn(*p, "0123456789");
    if (!n || n > NUMBER_DIGITS_MAX)
        return false;
    *ret = strtol(*p, NULL, 10);
    *p += n;
    return true;
}

static const char *after_separator(const char *p)
{
    return *p && strchr(".-_", *p) ? p + 1 : p;
}

/* One of the words, with or without a separator before it. Its place in words, or -1. */
static int read_word(const char **p, const char *const *words)
{
    const char *at = after_separator(*p);
    for (int i = 0; words[i]; i++) {
        size_t n = strlen(words[i]);
        if (!strncasecmp(at, words[i], n) && !isalpha((unsigned char)at[n])) {
            *p = at + n;
            return i;
        }
    }
    return -1;
}

/* A number that may be left out. */
static long read_number_after(const char **p)
{
    const char *at = after_separator(*p);
    long n = 0;
    if (read_number(&at, &n))
        *p = at;
    return n;
}

static bool read_release(const char **p, struct pep440 *v)
{
    const char *bang = strchr(*p, '!');
    if (bang && (!read_number(p, &v->epoch) || *(*p)++ != '!'))
        return false;
    while (v->n < PEP440_RELEASE_MAX && read_number(p, &v->release[v->n])) {
        v->n++;
        if (**p != '.' || !isdigit((unsigned char)(*p)[1]))
            return true;
        (*p)++;
    }
    return false;
}

static void read_phase(const char **p, struct pep440 *v)
{
    static const char *const words[] = {"alpha", "a",  "beta", "b", "preview",
                                        "pre",   "rc", "c",    NULL};
    int i = read_word(p, words);
    v->phase = i < 0 ? PEP440_FINAL : i < 2 ? PEP440_ALPHA : i < 4 ? PEP440_BETA : PEP440_CANDIDATE;
    v->phase_number = i < 0 ? 0 : read_number_after(p);
}

static void read_post(const char **p, struct pep440 *v)
{
    static const char *const words[] = {"post", "rev", "r", NULL};
    if (**p == '-' && isdigit((unsigned char)(*p)[1])) { /* "1.0-1" */
        (*p)++;
        v->post = read_number_after(p);
    } else if (read_word(p, words) >= 0) {
        v->post = read_number_after(p);
    }
}

static void read_dev(const char **p, struct pep440 *v)
{
    static const char *const words[] = {"dev", NULL};
    if (read_word(p, words) >= 0)
        v->dev = read_number_after(p);
}

static bool read_local(const char **p, struct pep440 *v)
{
    if (**p != '+')
        return true;
    size_t n = strspn(++*p, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_");
    if (!n || n >= sizeof(v->local))
        return false;
    for (size_t i = 0; i < n; i++) {
        int c = tolower((unsigned char)(*p)[i]);
        v->local[i] = (char)(c == '-' || c == '_' ? '.' : c);
    }
    *p += n;
    return true;
}

bool pep440_read(const char *text, struct pep440 *ret)
{
    struct pep440 v = {.post = -1, .dev = -1};
    const char *p = text + strspn(text, " \t");
    if (*p == 'v' || *p == 'V')
        p++;
    if (!read_release(&p, &v))
        return false;
    read_phase(&p, &v);
    read_post(&p, &v);
    read_dev(&p, &v);
    if (!read_local(&p, &v) || p[strspn(p, " \t\r\n")])
        return false;
    *ret = v;
    return true;
}

/* ---- order ---- */

static int by_number(long a, long b)
{
    return a < b ? -1 : a > b;
}

static int compare_release(const struct pep440 *a, const struct pep440 *b)
{
    int c = by_number(a->epoch, b->epoch);
    for (int i = 0; c == 0 && i < PEP440_RELEASE_MAX; i++)
        c = by_number(a->release[i], b->release[i]);
    return c;
}

/* "1.0.dev1" comes before "1.0a1". */
static long phase_rank(const struct pep440 *v)
{
    return v->phase == PEP440_FINAL && v->post < 0 && v->dev >= 0 ? -1 : (long)v->phase;
}

/* Parts by dots: numbers after words, more parts after fewer. */
static int compare_local(const char *a, const char *b)
{
    int c = by_number(*a != 0, *b != 0);
    while (c == 0 && *a && *b) {
        size_t n = strcspn(a, "."), m = strcspn(b, ".");
        bool an = strspn(a, "0123456789") == n, bn = strspn(b, "0123456789") == m;
        if (an && bn)
            c = by_number(strtol(a, NULL, 10), strtol(b, NULL, 10));
        else if (an != bn)
            c = an ? 1 : -1;
        else
            c = strncmp(a, b, n < m ? n : m) ? strncmp(a, b, n < m ? n : m)
                                             : by_number((long)n, (long)m);
        a += n + (a[n] == '.');
        b += m + (b[m] == '.');
    }
    return c ? c : by_number(*a != 0, *b != 0);
}

static int compare_public(const struct pep440 *a, const struct pep440 *b)
{
    int c = compare_release(a, b);
    if (c == 0)
        c = by_number(phase_rank(a), phase_rank(b));
    if (c == 0)
        c = by_number(a->phase_number, b->phase_number);
    if (c == 0)
        c = by_number(a->post, b->post);
    if (c == 0) /* a development release comes before the others */
        c = by_number(a->dev < 0, b->dev < 0);
    return c ? c : by_number(a->dev, b->dev);
}

int pep440_compare(const struct pep440 *a, const struct pep440 *b)
{
    int c = compare_public(a, b);
    return c ? c : compare_local(a->local, b->local);
}

/* ---- specifiers ---- */

enum pep440_operator {
    OP_SAME_TEXT,
    OP_COMPATIBLE,
    OP_EQUAL,
    OP_NOT,
    OP_MOST,
    OP_LEAST,
    OP_BELOW,
    OP_ABOVE,
    OP_END
};
static const char *const operators[] = {"===", "~=", "==", "!=", "<=", ">=", "<", ">"};

struct pep440_clause {
    enum pep440_operator op;
    struct pep440 v;
    bool wildcard;
    char text[SPECIFIER_MAX];
};

static bool read_wildcard(struct pep440_clause *c)
{
    size_t n = strlen(c->text);
    c->wildcard = n > 2 && !strcmp(c->text + n - 2, ".*");
    if (c->wildcard)
        c->text[n - 2] = 0;
    return !c->wildcard || c->op == OP_EQUAL || c->op == OP_NOT;
}

static bool clause_is_whole(const struct pep440_clause *c)
{
    bool is_plain = c->v.phase == PEP440_FINAL && c->v.post < 0 && c->v.dev < 0 && !*c->v.local;
    if (c->wildcard)
        return is_plain;
    if (c->op == OP_COMPATIBLE)
        return c->v.n >= 2 && !*c->v.local;
    return c->op == OP_EQUAL || c->op == OP_NOT || !*c->v.local;
}

/* What is behind the operator, without the blanks around it. */
static bool clause_split(const char *item, size_t n, struct pep440_clause *c)
{
    size_t skip = strspn(item, " \t");
    while (c->op < OP_END && strncmp(item + skip, operators[c->op], strlen(operators[c->op])) != 0)
        c->op++;
    if (c->op == OP_END || n >= sizeof(c->text))
        return false;
    skip += strlen(operators[c->op]);
    skip += strspn(item + skip, " \t");
    while (n > skip && isspace((unsigned char)item[n - 1]))
        n--;
    text_printf(c->text, "%.*s", (int)(n > skip ? n - skip : 0), item + skip);
    return *c->text != 0;
}

/* One item of a list, " >= 2.4 ". */
static bool clause_read(const char *item, size_t n, struct pep440_clause *ret)
{
    struct pep440_clause c = {.op = OP_SAME_TEXT};
    bool good = clause_split(item, n, &c);
    if (good && c.op != OP_SAME_TEXT)
        good = read_wildcard(&c) && pep440_read(c.text, &c.v) && clause_is_whole(&c);
    if (good)
        *ret = c;
    return good;
}

/* The first n numbers are the same. */
static bool has_prefix(const struct pep440 *v, const struct pep440 *of, int n)
{
    bool same = v->epoch == of->epoch;
    for (int i = 0; same && i < n; i++)
        same = v->release[i] == of->release[i];
    return same;
}

static bool is_pre(const struct pep440 *v)
{
    return v->phase != PEP440_FINAL || v->dev >= 0;
}

static bool clause_equals(const struct pep440_clause *c, const struct pep440 *v)
{
    if (c->wildcard)
        return has_prefix(v, &c->v, c->v.n);
    return *c->v.local ? pep440_compare(v, &c->v) == 0 : compare_public(v, &c->v) == 0;
}

/* "<2.0" leaves 2.0rc1 out, ">2.0" leaves 2.0.post1 and 2.0+cu121 out, unless they say so. */
static bool clause_orders(const struct pep440_clause *c, const struct pep440 *v)
{
    bool same_base = compare_release(v, &c->v) == 0;
    if (c->op == OP_BELOW)
        return compare_public(v, &c->v) < 0 && !(same_base && is_pre(v) && !is_pre(&c->v));
    return compare_public(v, &c->v) > 0 && !(same_base && v->post >= 0 && c->v.post < 0);
}

static bool clause_holds(const struct pep440_clause *c, const struct pep440 *v)
{
    struct pep440 same;
    switch (c->op) {
    case OP_SAME_TEXT:
        return pep440_read(c->text, &same) && pep440_compare(v, &same) == 0;
    case OP_COMPATIBLE:
        return compare_public(v, &c->v) >= 0 && has_prefix(v, &c->v, c->v.n - 1);
    case OP_EQUAL:
        return clause_equals(c, v);
    case OP_NOT:
        return !clause_equals(c, v);
    case OP_MOST:
        return compare_public(v, &c->v) <= 0;
    case OP_LEAST:
        return compare_public(v, &c->v) >= 0;
    case OP_BELOW:
    case OP_ABOVE:
        return clause_orders(c, v);
    case OP_END:
        break;
    }
    return true;
}

/* The next item of a list by commas; false at its end. */
static bool next_item(const char **list, const char **ret, size_t *ret_n)
{
    *list += strspn(*list, ", \t");
    *ret = *list;
    *ret_n = strcspn(*list, ",");
    *list += *ret_n;
    return *ret_n > 0;
}

static int pep440_refuse(const char *item, size_t n, struct err *err)
{
    _cleanup_(freep) char *text = xstrndup(item, n);
    return message_refuse(err, ERR_BAD_SPEC, "bad_specifier",
                          MESSAGE_ARGS(MESSAGE_STR("item", text)));
}

int pep440_check(const char *specifiers, struct err *err)
{
    struct pep440_clause c;
    const char *item;
    size_t n;
    while (next_item(&specifiers, &item, &n))
        if (!clause_read(item, n, &c))
            return pep440_refuse(item, n < SPECIFIER_MAX ? n : SPECIFIER_MAX, err);
    return 0;
}

bool pep440_satisfies(const struct pep440 *version, const char *specifiers)
{
    struct pep440_clause c;
    const char *item;
    size_t n;
    while (next_item(&specifiers, &item, &n))
        if (clause_read(item, n, &c) && !clause_holds(&c, version))
            return false;
    return true;
}
