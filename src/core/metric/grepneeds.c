/* SPDX-License-Identifier: Apache-2.0 */
/* grepneeds.c - the bytes that each match of a pattern must contain; see grepneeds.h.
 *
 * Only what stands outside of all groups is read: runs of plain bytes between whatever else there
 * is. A byte that a quantifier may leave out ends the run in front of it. Constructs that change
 * what other bytes mean (\Q, comments, options but for i, verbs) or that need not be there (looks
 * around, references) make the whole pattern one of which nothing is said. */
#include "core/metric/grepneeds.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "core/metric/loggrep.h"

struct reading {
    const char *p;
    struct grepneeds *to;
    struct strv now;                   /* of the alternative that is read */
    char run[LOGGREP_PATTERN_MAX + 1]; /* which is longer than any run of it */
    size_t n;
};

static void grepneeds_end_run(struct reading *r)
{
    r->run[r->n] = '\0';
    if (r->n >= GREPNEEDS_LEAST)
        strv_add(&r->now, r->run);
    r->n = 0;
}

/* False: this one needs nothing. */
static bool end_alternative(struct reading *r)
{
    struct grepneeds *to = r->to;
    grepneeds_end_run(r);
    if (!r->now.n)
        return false;
    to->v = xrealloc(to->v, to->n + 1, sizeof(*to->v));
    to->v[to->n++] = r->now;
    r->now = (struct strv){0};
    return true;
}

/* Behind the byte, escape or named class at p, within a class; NULL: not understood. */
static const char *skip_member(const char *p)
{
    if (*p == '\\') /* some change which bracket ends the class */
        return p[1] && !strchr("QEc", p[1]) ? p + 2 : NULL;
    if (*p == '[' && (p[1] == '.' || p[1] == '='))
        return NULL;
    if (*p != '[' || p[1] != ':')
        return p + 1;
    p += 2 + (p[2] == '^');
    p += strspn(p, "abcdefghijklmnopqrstuvwxyz");
    return p[0] == ':' && p[1] == ']' ? p + 2 : NULL;
}

/* Behind the class at p; NULL: not understood. */
static const char *grepneeds_skip_class(const char *p)
{
    p += p[1] == '^' ? 2 : 1;
    p += *p == ']';
    while (p && *p && *p != ']')
        p = skip_member(p);
    return p && *p ? p + 1 : NULL;
}

/* What stands behind an opening bracket says only that, or that case does not count. */
static bool is_plain_group(const char *p)
{
    return *p != '*' && (*p != '?' || p[1] == ':' || str_starts(p, "?i)") || str_starts(p, "?i:"));
}

/* \Q and the like may be anywhere, and make brackets mean nothing. */
static bool is_plain_escape(char c)
{
    return c && (ispunct((unsigned char)c) || strchr("dDwWsSbBhHvVRKAzZGtnrfea ", c));
}

/* Behind the bracket that closes the group at p. */
static const char *skip_group(const char *p)
{
    int depth = 0;
    while (p && *p) {
        if (*p == '[') {
            p = grepneeds_skip_class(p);
            continue;
        }
        if (*p == '(' && !is_plain_group(p + 1))
            return NULL;
        if (*p == '\\' && !is_plain_escape(p[1]))
            return NULL;
        depth += *p == '(' ? 1 : *p == ')' ? -1 : 0;
        if (!depth)
            return p + 1;
        p += *p == '\\' ? 2 : 1;
    }
    return NULL;
}

/* The byte before it may be missing, or be there more than once. */
static void grepneeds_take_quantifier(struct reading *r)
{
    if (*r->p != '+' && r->n)
        r->n--;
    grepneeds_end_run(r);
    bool is_brace = *r->p++ == '{';
    const char *close = r->p + strspn(r->p, "0123456789, ");
    if (is_brace && *close == '}') /* else it is a byte as others are */
        r->p = close + 1;
}

static bool take_escape(struct reading *r)
{
    char c = r->p[1];
    if (!is_plain_escape(c))
        return false;
    if (ispunct((unsigned char)c) || c == ' ')
        r->run[r->n++] = c;
    else
        grepneeds_end_run(r);
    r->p += 2;
    return true;
}

static bool grepneeds_take_one(struct reading *r)
{
    switch (*r->p) {
    case '|':
        r->p++;
        return end_alternative(r);
    case '(':
        grepneeds_end_run(r);
        r->p = skip_group(r->p);
        return r->p != NULL;
    case '[':
        grepneeds_end_run(r);
        r->p = grepneeds_skip_class(r->p);
        return r->p != NULL;
    case '?':
    case '*':
    case '+':
    case '{':
        grepneeds_take_quantifier(r);
        return true;
    case '\\':
        return take_escape(r);
    case '.':
    case '^':
    case '$':
    case '\n':
        grepneeds_end_run(r);
        r->p++;
        return true;
    default:
        r->run[r->n++] = *r->p++;
        return true;
    }
}

void grepneeds_read(const char *pattern, struct grepneeds *ret)
{
    struct reading r = {.p = pattern, .to = ret};
    bool is_known = strlen(pattern) <= LOGGREP_PATTERN_MAX;
    *ret = (struct grepneeds){0};
    while (is_known && *r.p)
        is_known = grepneeds_take_one(&r);
    if (!is_known || !end_alternative(&r))
        grepneeds_release(ret);
    strv_release(&r.now);
}

void grepneeds_release(struct grepneeds *n)
{
    for (size_t i = 0; i < n->n; i++)
        strv_release(&n->v[i]);
    free(n->v);
    *n = (struct grepneeds){0};
}
