/* SPDX-License-Identifier: Apache-2.0 */
/* finding_pattern.c - see finding_pattern.h.
 *
 * Each alternative needs a text of its own: its longest run of literal bytes, or, where no run
 * is long enough, the set of one of its groups that is not optional. Anything that is not
 * understood ends a run, so the answer is safe, at worst none. */
#include "core/finding_pattern.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "core/finding_needles.h"

enum { DEPTH_MAX = 8 };

struct walk {
    const char *p, *end;
};

/* One alternative while it is read. */
struct branch {
    char run[NEEDLE_MAX + 1], best[NEEDLE_MAX + 1];
    size_t n, n_best;
    struct strv group; /* of the first group that will do */
    bool has_group;
};

static void end_run(struct branch *b)
{
    if (b->n > b->n_best) {
        memcpy(b->best, b->run, b->n);
        b->n_best = b->n;
    }
    b->n = 0;
}

static void add_byte(struct branch *b, char c)
{
    if (b->n == NEEDLE_MAX)
        end_run(b);
    b->run[b->n++] = c;
}

/* Behind the class that begins at p. */
static const char *skip_class(const char *p, const char *end)
{
    p++;
    p += p < end && *p == '^';
    p += p < end && *p == ']';
    while (p < end && *p != ']')
        p += *p == '\\' ? 2 : 1;
    return p < end ? p + 1 : end;
}

/* The bracket that closes the group at p. */
static const char *close_of(const char *p, const char *end)
{
    int depth = 0;
    while (p < end) {
        if (*p == '[') {
            p = skip_class(p, end);
            continue;
        }
        if (*p == '(')
            depth++;
        if (*p == ')' && --depth == 0)
            return p;
        p += *p == '\\' ? 2 : 1;
    }
    return end;
}

/* 0: once or more; 1: may be missing. Goes behind the quantifier; *ret_many: more than once. */
static bool take_quantifier(struct walk *w, bool *ret_any)
{
    bool may_miss = false;
    *ret_any = w->p < w->end && strchr("?*+{", *w->p);
    if (!*ret_any)
        return false;
    may_miss =
        *w->p == '?' || *w->p == '*' || (*w->p == '{' && w->p + 1 < w->end && w->p[1] == '0');
    if (*w->p == '{')
        while (w->p < w->end && *w->p != '}')
            w->p++;
    w->p++;
    if (w->p < w->end && (*w->p == '?' || *w->p == '+'))
        w->p++;
    return may_miss;
}

static bool read_set(struct walk w, int depth, struct strv *ret);

static void read_group(struct walk *w, struct branch *b, int depth)
{
    const char *close = close_of(w->p, w->end);
    struct walk in = {w->p + 1, close};
    bool plain = true;
    if (in.p < in.end && *in.p == '?') {
        plain = in.p + 1 < in.end && in.p[1] == ':';
        in.p += 2;
    }
    w->p = close < w->end ? close + 1 : w->end;
    bool any, may_miss = take_quantifier(w, &any);
    end_run(b);
    struct strv set = {0};
    if (plain && !may_miss && !b->has_group && depth < DEPTH_MAX && read_set(in, depth + 1, &set)) {
        b->group = set;
        b->has_group = true;
        return;
    }
    strv_release(&set);
}

/* One element that is a byte; false: it is none, and stepped over. */
static bool read_byte(struct walk *w, char *ret)
{
    char c = *w->p;
    if (c == '[') {
        w->p = skip_class(w->p, w->end);
        return false;
    }
    if (c == '\\' && w->p + 1 < w->end) {
        *ret = w->p[1];
        w->p += 2;
        return !isalnum((unsigned char)*ret);
    }
    w->p++;
    *ret = c;
    return c != '.' && c != '^' && c != '$';
}

static void read_element(struct walk *w, struct branch *b, int depth)
{
    char c;
    if (*w->p == '(') {
        read_group(w, b, depth);
        return;
    }
    bool is_byte = read_byte(w, &c), any, may_miss = take_quantifier(w, &any);
    if (is_byte && !may_miss)
        add_byte(b, c);
    if (!is_byte || any)
        end_run(b);
}

/* Its set goes to ret; false: it has none. */
static bool end_branch(struct branch *b, struct strv *ret)
{
    end_run(b);
    b->best[b->n_best] = '\0';
    bool good = b->n_best >= NEEDLE_MIN || b->has_group;
    if (b->n_best >= NEEDLE_MIN)
        strv_add(ret, b->best);
    else if (b->has_group)
        for (size_t i = 0; i < b->group.n; i++)
            strv_add(ret, b->group.v[i]);
    strv_release(&b->group);
    *b = (struct branch){0};
    return good;
}

static bool read_set(struct walk w, int depth, struct strv *ret)
{
    struct branch b = {0};
    bool good = true;
    while (w.p < w.end) {
        if (*w.p == '|') {
            good = end_branch(&b, ret) && good;
            w.p++;
            continue;
        }
        read_element(&w, &b, depth);
    }
    return end_branch(&b, ret) && good;
}

int pattern_needles(const char *pattern, struct strv *ret, struct err *err)
{
    struct walk w = {pattern, pattern + strlen(pattern)};
    if (!strncmp(w.p, "(?i)", 4))
        w.p += 4;
    struct strv set = {0};
    if (!read_set(w, 0, &set)) {
        strv_release(&set);
        return err_set(err, ERR_BAD_SPEC,
                       "every alternative needs %d plain bytes in a row, or 'find' must list some",
                       NEEDLE_MIN);
    }
    strv_release(ret);
    *ret = set;
    return 0;
}
