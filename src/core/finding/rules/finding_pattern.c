/* SPDX-License-Identifier: Apache-2.0 */
/* finding_pattern.c - see finding_pattern.h.
 *
 * Each alternative needs a text of its own: its longest run of literal bytes, or, where no run
 * is long enough, the set of one of its groups that is not optional. Of a branch it is what logs
 * have least often: a run, a group's set, or what stands before a group with the beginnings of
 * all that is in it ("No " and "response", "output"); and [Xx] is a byte, for texts are looked
 * for in any case. Anything that is not understood ends a run, so the answer is safe, at worst
 * none. */
#include "core/finding/rules/finding_pattern.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "core/finding/rules/finding_needles.h"

enum { DEPTH_MAX = 8 };

struct walk {
    const char *p, *end;
    size_t least; /* bytes of a text that counts */
    bool rare;    /* the rarest run, not the longest */
};

/* One alternative while it is read. */
struct branch {
    char run[NEEDLE_MAX + 1], best[NEEDLE_MAX + 1];
    size_t n, n_best;
    struct strv group; /* of the group that will do best, or of the first one */
    unsigned rarity;   /* of the group */
    bool has_group, rare;
};

static void end_run(struct branch *b)
{
    bool better = b->n > b->n_best;
    if (b->rare && b->n >= NEEDLE_MIN && b->n_best >= NEEDLE_MIN)
        better = needle_rarity(b->run, b->n) > needle_rarity(b->best, b->n_best);
    if (better) {
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

/* The rarity of the most common text of the set. */
static unsigned set_rarity(const struct strv *set)
{
    unsigned least = ~0U;
    for (size_t i = 0; i < set->n; i++) {
        size_t n = strlen(set->v[i]);
        unsigned r = n < NEEDLE_MIN ? 1 : needle_rarity(set->v[i], n);
        least = r < least ? r : least;
    }
    return set->n ? least : 0;
}

/* A set becomes the branch's group if it is rarer than the one that it has; taken. */
static void offer_group(struct branch *b, struct strv *set)
{
    unsigned rarity = set_rarity(set);
    bool better = b->rare ? rarity > b->rarity : !b->has_group;
    struct strv *out = better ? &b->group : set;
    strv_release(out);
    *out = (struct strv){0};
    if (!better)
        return;
    b->group = *set;
    b->rarity = rarity;
    b->has_group = true;
}

static bool read_byte(struct walk *w, char *ret);
static const char *branch_end(const char *p, const char *end);

/* The run before a group with what each alternative begins with; in is inside of the brackets. */
static void offer_joined(struct walk in, struct branch *b)
{
    struct strv set = {0};
    size_t least = NEEDLE_MAX;
    for (const char *p = in.p; p <= in.end; p++) {
        const char *end = branch_end(p, in.end);
        struct walk one = {p, end, in.least, in.rare};
        char text[NEEDLE_MAX + 1];
        size_t n = b->n < NEEDLE_MAX ? b->n : NEEDLE_MAX;
        memcpy(text, b->run + b->n - n, n);
        while (one.p < end && n < NEEDLE_MAX && *one.p != '(') {
            char c;
            if (!read_byte(&one, &c) || (one.p < end && strchr("?*+{", *one.p)))
                break;
            text[n++] = c;
        }
        text[n] = '\0';
        strv_add(&set, text);
        least = n < least ? n : least;
        p = end;
    }
    if (least >= NEEDLE_MIN)
        offer_group(b, &set);
    else
        strv_release(&set);
}

/* Behind the "?:" of a group; false: it is of another kind, that says nothing of its text. */
static bool step_in(struct walk *in)
{
    if (in->p >= in->end || *in->p != '?')
        return true;
    bool plain = in->p + 1 < in->end && in->p[1] == ':';
    in->p += 2;
    return plain;
}

static void read_group(struct walk *w, struct branch *b, int depth)
{
    const char *close = close_of(w->p, w->end);
    struct walk in = {w->p + 1, close, w->least, w->rare};
    bool plain = step_in(&in);
    w->p = close < w->end ? close + 1 : w->end;
    bool any, may_miss = take_quantifier(w, &any);
    if (plain && !may_miss && b->rare && b->n && w->least >= NEEDLE_MIN)
        offer_joined(in, b);
    end_run(b);
    struct strv set = {0};
    if (plain && !may_miss && (b->rare || !b->has_group) && depth < DEPTH_MAX &&
        read_set(in, depth + 1, &set))
        offer_group(b, &set);
    else
        strv_release(&set);
}

/* The byte that the class at p stands for in any case, "[Ee]" or "[ ]"; '\0': for more. */
static char class_byte(const char *p, const char *close)
{
    bool one = close - p == 3 && p[1] != '^' && p[1] != '\\';
    bool both = close - p == 4 && isalpha((unsigned char)p[1]) && (p[1] ^ p[2]) == 0x20;
    return one || both ? p[1] : '\0';
}

/* One element that is a byte; false: it is none, and stepped over. */
static bool read_byte(struct walk *w, char *ret)
{
    char c = *w->p;
    if (c == '[') {
        const char *from = w->p;
        w->p = skip_class(w->p, w->end);
        *ret = class_byte(from, w->p);
        return *ret && w->rare;
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
static bool end_branch(struct branch *b, size_t least, struct strv *ret)
{
    end_run(b);
    b->best[b->n_best] = '\0';
    bool good = b->n_best >= least || b->has_group;
    bool by_run = b->n_best >= least;
    if (by_run && b->rare && least >= NEEDLE_MIN && b->has_group)
        by_run = needle_rarity(b->best, b->n_best) >= b->rarity;
    if (by_run)
        strv_add(ret, b->best);
    else if (b->has_group)
        for (size_t i = 0; i < b->group.n; i++)
            strv_add(ret, b->group.v[i]);
    strv_release(&b->group);
    *b = (struct branch){.rare = b->rare};
    return good;
}

static bool read_set(struct walk w, int depth, struct strv *ret)
{
    struct branch b = {.rare = w.rare};
    bool good = true;
    while (w.p < w.end) {
        if (*w.p == '|') {
            good = end_branch(&b, w.least, ret) && good;
            w.p++;
            continue;
        }
        read_element(&w, &b, depth);
    }
    return end_branch(&b, w.least, ret) && good;
}

static struct walk walk_of(const char *pattern)
{
    struct walk w = {pattern, pattern + strlen(pattern), NEEDLE_MIN, false};
    if (!strncmp(w.p, "(?i)", 4))
        w.p += 4;
    return w;
}

/* Behind the alternative that begins at p. */
static const char *branch_end(const char *p, const char *end)
{
    while (p < end && *p != '|')
        p = *p == '('    ? close_of(p, end) + 1
            : *p == '['  ? skip_class(p, end)
            : *p == '\\' ? p + 2
                         : p + 1;
    return p < end ? p : end;
}

/* A text to the clause that is being made. */
static void add_lower(struct strv *clauses, const char *text, size_t n)
{
    char lower[NEEDLE_MAX + 1];
    for (size_t i = 0; i < n; i++)
        lower[i] = (char)(text[i] >= 'A' && text[i] <= 'Z' ? text[i] | 0x20 : text[i]);
    lower[n] = '\0';
    strv_add(clauses, lower);
}

/* What was read since the last clause. */
static void add_clause(struct branch *b, struct strv *clauses)
{
    if (b->n >= PATTERN_CLAUSE_MIN) {
        add_lower(clauses, b->run, b->n);
        strv_add(clauses, "");
    }
    b->n = 0;
    for (size_t i = 0; b->has_group && i < b->group.n; i++)
        add_lower(clauses, b->group.v[i], strlen(b->group.v[i]));
    if (b->has_group)
        strv_add(clauses, "");
    strv_release(&b->group);
    b->group = (struct strv){0};
    b->has_group = false;
    b->rarity = 0;
}

static void read_clauses(struct walk w, struct strv *clauses)
{
    struct branch b = {.rare = true};
    w.least = PATTERN_CLAUSE_MIN;
    while (w.p < w.end) {
        char c;
        if (*w.p == '(') {
            add_clause(&b, clauses);
            read_group(&w, &b, 0);
            add_clause(&b, clauses);
            continue;
        }
        bool is_byte = read_byte(&w, &c), any, may_miss = take_quantifier(&w, &any);
        if (b.n == NEEDLE_MAX)
            add_clause(&b, clauses);
        if (is_byte && !may_miss)
            b.run[b.n++] = c;
        if (!is_byte || any)
            add_clause(&b, clauses);
    }
    add_clause(&b, clauses);
}

/* True if a pattern says nothing of a digit but that it is one. */
static bool finding_pattern_is_blind(const char *p)
{
    for (; *p; p++) {
        if (p[0] == '{') {
            p += strcspn(p, "}");
            p -= !*p;
        } else if (!strncmp(p, "0-9", 3)) {
            p += 2;
        } else if (*p >= '0' && *p <= '9') {
            return false; /* that one, or what a number means to PCRE2 */
        }
    }
    return true;
}

struct pattern_branch *pattern_branches(const char *pattern, size_t *ret_n)
{
    struct walk w = walk_of(pattern);
    const char *fold = w.p > pattern ? "(?i)" : "";
    struct pattern_branch *v = NULL;
    for (*ret_n = 0; w.p <= w.end; w.p++) {
        struct walk one = {w.p, branch_end(w.p, w.end), w.least, true};
        v = xrealloc(v, *ret_n + 1, sizeof(*v));
        struct pattern_branch *b = &v[(*ret_n)++];
        *b = (struct pattern_branch){.text =
                                         xasprintf("%s%.*s", fold, (int)(one.end - one.p), one.p)};
        if (!read_set(one, 0, &b->needles)) {
            strv_release(&b->needles);
            b->needles = (struct strv){0};
        }
        read_clauses(one, &b->clauses);
        b->lens = xcalloc(b->clauses.n + 1, 1);
        for (size_t i = 0; i < b->clauses.n; i++)
            b->lens[i] = (unsigned char)strlen(b->clauses.v[i]); /* NEEDLE_MAX at most */
        b->blind = finding_pattern_is_blind(b->text);
        w.p = one.end;
    }
    return v;
}

struct pattern_branch *pattern_whole(const char *pattern, size_t *ret_n)
{
    struct pattern_branch *v = xcalloc(1, sizeof(*v));
    v->text = xstrdup(pattern);
    v->lens = xcalloc(1, 1);
    *ret_n = 1;
    return v;
}

enum pattern_weave pattern_weave(const char *pattern)
{
    enum pattern_weave w = PATTERN_PLAIN, more;
    for (const char *p = walk_of(pattern).p; *p; p++) {
        more = PATTERN_PLAIN;
        if (*p == '\\' && p[1])
            more = *++p == 'Q'                 ? PATTERN_QUOTES
                   : strchr("123456789gk", *p) ? PATTERN_REFERS
                                               : PATTERN_PLAIN;
        else if (p[0] == '(' && p[1] == '?' && p[2] && !strchr(":=!<>", p[2]))
            more = strchr("imsxnJU^-", p[2]) ? PATTERN_OPTIONS : PATTERN_REFERS;
        w = more > w ? more : w;
    }
    return w;
}

void pattern_branches_free(struct pattern_branch *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        strv_release(&v[i].needles);
        strv_release(&v[i].clauses);
        free(v[i].lens);
        free(v[i].text);
    }
    free(v);
}

/* As memmem(), which is slow to begin: where the first and the last byte stand so far apart, the
 * rest is compared. */
static bool has_text(const char *p, size_t n, const char *text, size_t len)
{
    enum { WIDE = 16 };
    typedef unsigned char bytes __attribute__((vector_size(WIDE)));
    typedef uint64_t words __attribute__((vector_size(WIDE)));
    const bytes first = (bytes){0} + (unsigned char)text[0],
                last = (bytes){0} + (unsigned char)text[len - 1];
    size_t i = 0, end = n < len ? 0 : n - len + 1; /* of the places where it may begin */
    while (i < end) {
        bytes head, tail;
        words both = {1};
        if (i + WIDE <= end) {
            memcpy(&head, p + i, WIDE);
            memcpy(&tail, p + i + len - 1, WIDE);
            both = (words)((head == first) & (tail == last));
        }
        for (size_t k = i; (both[0] | both[1]) && k < i + WIDE && k < end; k++)
            if (p[k] == text[0] && !memcmp(p + k, text, len))
                return true;
        i += WIDE;
    }
    return false;
}

bool pattern_branch_fits(const struct pattern_branch *b, const char *text, size_t n)
{
    bool has = false;
    for (size_t i = 0; i < b->clauses.n; i++) {
        size_t len = b->lens[i];
        if (!len && !has)
            return false;
        has = len && (has || has_text(text, n, b->clauses.v[i], len));
    }
    return true;
}

int pattern_needles(const char *pattern, struct strv *ret, struct err *err)
{
    struct walk w = walk_of(pattern);
    struct strv set = {0};
    if (!read_set(w, 0, &set)) {
        strv_release(&set);
        return message_refuse(err, ERR_BAD_SPEC, "rule_needles",
                              MESSAGE_ARGS(MESSAGE_NUM("bytes", NEEDLE_MIN)));
    }
    strv_release(ret);
    *ret = set;
    return 0;
}
