/* SPDX-License-Identifier: Apache-2.0 */
/* gitignore.c - the patterns of .gitignore files; see gitignore.h. The matcher goes back to the
 * last '*' or the last "**" only: for what follows a wildcard the first place that fits is as
 * good as any later one. */
#include "core/check/gitignore.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { PATTERN_MAX = 4096 };

struct pattern {
    char *dir, *text;
    bool is_negated, is_dir_only, is_anchored;
};

struct gitignore {
    struct pattern *v;
    size_t n, cap;
};

struct gitignore *gitignore_new(void)
{
    return xcalloc(1, sizeof(struct gitignore));
}

void gitignore_free(struct gitignore *g)
{
    if (!g)
        return;
    gitignore_cut(g, 0);
    free(g->v);
    free(g);
}

size_t gitignore_count(const struct gitignore *g)
{
    return g->n;
}

void gitignore_cut(struct gitignore *g, size_t count)
{
    while (g->n > count) {
        g->n--;
        free(g->v[g->n].dir);
        free(g->v[g->n].text);
    }
}

/* ---- reading ---- */

/* Blanks at the end count only behind a backslash. */
static size_t without_blanks(const char *s, size_t n)
{
    while (n && s[n - 1] == ' ' && !(n > 1 && s[n - 2] == '\\'))
        n--;
    return n;
}

static void add_line(struct gitignore *g, const char *dir, const char *s, size_t n)
{
    struct pattern p = {0};
    if (n && s[n - 1] == '\r')
        n--;
    n = without_blanks(s, n);
    if (!n || *s == '#' || n > PATTERN_MAX)
        return;
    if (*s == '!') {
        p.is_negated = true;
        s++;
        n--;
    }
    if (n && s[n - 1] == '/') {
        p.is_dir_only = true;
        n--;
    }
    p.is_anchored = memchr(s, '/', n) != NULL;
    if (n && *s == '/') {
        s++;
        n--;
    }
    if (!n)
        return;
    p.dir = xstrdup(dir);
    p.text = xstrndup(s, n);
    if (g->n == g->cap) {
        g->cap = g->cap ? g->cap * 2 : 16;
        g->v = xrealloc(g->v, g->cap, sizeof(*g->v));
    }
    g->v[g->n++] = p;
}

void gitignore_add(struct gitignore *g, const char *dir, const char *text, size_t n)
{
    if (n >= 3 && !memcmp(text, "\xef\xbb\xbf", 3)) { /* an editor's mark of UTF-8 */
        text += 3;
        n -= 3;
    }
    while (n) {
        const char *end = memchr(text, '\n', n);
        size_t len = end ? (size_t)(end - text) : n;
        if (!memchr(text, 0, len))
            add_line(g, dir, text, len);
        len += end != NULL;
        text += len;
        n -= len;
    }
}

/* ---- matching ---- */

static bool in_class(const char *name, size_t n, int c)
{
    static const struct {
        const char *name;
        int (*is)(int);
    } classes[] = {{"alnum", isalnum}, {"alpha", isalpha}, {"blank", isblank},
                   {"cntrl", iscntrl}, {"digit", isdigit}, {"graph", isgraph},
                   {"lower", islower}, {"print", isprint}, {"punct", ispunct},
                   {"space", isspace}, {"upper", isupper}, {"xdigit", isxdigit}};
    for (size_t i = 0; i < array_len(classes); i++)
        if (strlen(classes[i].name) == n && !memcmp(classes[i].name, name, n))
            return classes[i].is(c) != 0;
    return false;
}

/* Matches one item of a bracket at *p, which is moved behind it: a class, a range or a
 * character. */
static bool item_has(const char **p, unsigned char c)
{
    const char *s = *p, *end = s[0] == '[' && s[1] == ':' ? strstr(s + 2, ":]") : NULL;
    if (end) {
        *p = end + 2;
        return in_class(s + 2, (size_t)(end - s - 2), c);
    }
    if (*s == '\\' && s[1])
        s++;
    unsigned char first = (unsigned char)*s++, last = first;
    if (s[0] == '-' && s[1] && s[1] != ']') {
        s++;
        if (*s == '\\' && s[1])
            s++;
        last = (unsigned char)*s++;
    }
    *p = s;
    return c >= first && c <= last;
}

/* The bracket at p against c; NULL: no, or it never ends. Else what follows it. */
static const char *match_bracket(const char *p, unsigned char c)
{
    bool found = false, negated = p[1] == '!' || p[1] == '^';
    const char *s = p + 1 + negated;
    do {
        if (!*s)
            return NULL;
        found |= item_has(&s, c);
    } while (*s != ']');
    return found != negated && c != '/' ? s + 1 : NULL;
}

/* Matches one character of the pattern against c; NULL, or the rest of the pattern. */
static const char *match_one(const char *p, char c)
{
    switch (*p) {
    case 0:
        return NULL;
    case '?':
        return c != '/' ? p + 1 : NULL;
    case '[':
        return match_bracket(p, (unsigned char)c);
    case '\\':
        return p[1] && p[1] == c ? p + 2 : NULL;
    default:
        return *p == c ? p + 1 : NULL;
    }
}

/* Where to go back to: a place in the pattern behind a wildcard, and what it has taken so far. */
struct retry {
    const char *p, *s;
};

static bool retry_star(struct retry *star, const char **p, const char **s)
{
    if (!star->p || !*star->s || *star->s == '/')
        return false;
    *s = ++star->s;
    *p = star->p;
    return true;
}

static bool retry_deep(struct retry *deep, struct retry *star, const char **p, const char **s)
{
    const char *slash = deep->p ? strchr(deep->s, '/') : NULL;
    if (!slash)
        return false;
    *s = deep->s = slash + 1;
    *p = deep->p;
    star->p = NULL;
    return true;
}

static bool gitignore_match(const char *pattern, const char *s)
{
    struct retry star = {0}, deep = {0};
    const char *p = pattern;
    for (;;) {
        bool begins = p == pattern || p[-1] == '/';
        if (begins && !strcmp(p, "**"))
            return *s != 0;
        if (begins && !strncmp(p, "**/", 3)) {
            p += 3;
            deep = (struct retry){p, s};
            star.p = NULL;
            continue;
        }
        if (*p == '*') {
            p += strspn(p, "*");
            star = (struct retry){p, s};
            continue;
        }
        if (!*s)
            return !*p;
        const char *next = match_one(p, *s);
        if (next) {
            p = next;
            s++;
        } else if (!retry_star(&star, &p, &s) && !retry_deep(&deep, &star, &p, &s)) {
            return false;
        }
    }
}

static bool applies(const struct pattern *p, const char *path, bool is_dir)
{
    size_t n = strlen(p->dir);
    if (p->is_dir_only && !is_dir)
        return false;
    if (n && (strncmp(path, p->dir, n) != 0 || path[n] != '/'))
        return false;
    const char *rest = n ? path + n + 1 : path;
    if (!p->is_anchored) {
        const char *slash = strrchr(rest, '/');
        rest = slash ? slash + 1 : rest;
    }
    return gitignore_match(p->text, rest);
}

bool gitignore_skips(const struct gitignore *g, const char *path, bool is_dir)
{
    for (size_t i = g->n; i-- > 0;)
        if (applies(&g->v[i], path, is_dir))
            return !g->v[i].is_negated;
    return false;
}
