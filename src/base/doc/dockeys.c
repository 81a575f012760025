/* SPDX-License-Identifier: Apache-2.0 */
/* dockeys.c - a walk over the tokens of a YAML text, as far as '?' needs it; see dockeys.h.
 *
 * A token begins after blanks or after an indicator (- : ? [ ] { } ,). What begins there is a
 * comment, a quoted text, a block text, a plain text or a name (&anchor, *alias, !tag), and each is
 * walked over as a whole. How far block texts and plain texts reach is a matter of indentation:
 * `open` holds the columns of the keys and dashes that the place lies in. */
#include "base/doc/dockeys.h"

#include <string.h>

enum { OPEN_MAX = 64 }; /* deeper than DOC_MAX_DEPTH: what is lost makes texts shorter, no longer */

struct dockeys {
    const char *s;
    size_t n, at;
    size_t line_from; /* where this line begins */
    int line;
    int flow; /* brackets and braces that are open */
    bool after_key;
    bool in_doubt; /* libfyaml refuses what was seen, or reads it in its own way */
    int open[OPEN_MAX], n_open;
    int open_line; /* of the newest */
    int name_line; /* of the last &anchor, *alias or !tag */
};

static bool dockeys_is_blank(const struct dockeys *k, size_t at)
{
    return at >= k->n || strchr(" \t\r\n", k->s[at]);
}

static int dockeys_column(const struct dockeys *k, size_t at)
{
    return (int)(at - k->line_from);
}

static void dockeys_new_line(struct dockeys *k)
{
    k->at++;
    k->line++;
    k->line_from = k->at;
}

static void dockeys_to_line_end(struct dockeys *k)
{
    while (k->at < k->n && k->s[k->at] != '\n')
        k->at++;
}

/* A key or dash at this column: what lies further in has ended. */
static void dockeys_open(struct dockeys *k, int column)
{
    while (k->n_open > 0 && k->open[k->n_open - 1] >= column)
        k->n_open--;
    if (k->n_open < OPEN_MAX)
        k->open[k->n_open++] = column;
    k->open_line = k->line;
}

/* The column that what continues a text at this column must lie beyond. */
static int dockeys_parent(const struct dockeys *k, int column)
{
    int i = k->n_open;
    while (i > 0 && k->open[i - 1] >= column)
        i--;
    return i > 0 ? k->open[i - 1] : -1;
}

/* Does this ':' part a key from its value? */
static bool dockeys_is_colon(const struct dockeys *k, size_t at)
{
    return k->s[at] == ':' &&
           (dockeys_is_blank(k, at + 1) || (k->flow && strchr(",[]{}", k->s[at + 1])));
}

/* "---" or "..." alone at the left edge. */
static bool dockeys_is_marker(const struct dockeys *k, size_t at)
{
    return at + 3 <= k->n && (!memcmp(k->s + at, "---", 3) || !memcmp(k->s + at, "...", 3)) &&
           dockeys_is_blank(k, at + 3);
}

static void dockeys_skip_quoted(struct dockeys *k)
{
    const char quote = k->s[k->at++];
    while (k->at < k->n) {
        char c = k->s[k->at];
        if (c == '\n') {
            dockeys_new_line(k);
            if (dockeys_is_marker(k, k->at))
                return;
            continue;
        }
        k->at++;
        if (c == '\\' && quote == '"' && k->at < k->n && k->s[k->at] != '\n')
            k->at++;
        if (c != quote)
            continue;
        if (quote == '"' || k->at >= k->n || k->s[k->at] != '\'')
            return;
        k->at++;
    }
}

/* ---- block texts ---- */

/* The digit of the header at k->at, 0 without one; -1: it is no header. */
static int dockeys_block_digit(const struct dockeys *k)
{
    size_t at = k->at + 1;
    int digit = 0;
    for (; at < k->n && strchr("+-0123456789", k->s[at]); at++)
        if (k->s[at] >= '1' && k->s[at] <= '9')
            digit = k->s[at] - '0';
    if (!dockeys_is_blank(k, at))
        return -1;
    while (at < k->n && strchr(" \t\r", k->s[at]))
        at++;
    return at >= k->n || k->s[at] == '\n' || k->s[at] == '#' ? digit : -1;
}

/* Nothing but spaces before its end. A \r alone at the end of all is text. */
static bool dockeys_ends_at(const struct dockeys *k, size_t at)
{
    return at >= k->n || k->s[at] == '\n' || (k->s[at] == '\r' && at + 1 < k->n);
}

/* libfyaml does not let the text of a header that stands on a line of its own lie before it. */
static void dockeys_skip_block(struct dockeys *k, int digit)
{
    int column = dockeys_column(k, k->at), parent = dockeys_parent(k, column);
    if (parent >= 0 && k->open_line != k->line)
        parent = digit ? -1 : column - 1;
    int wanted = digit ? parent + digit : -1;
    dockeys_to_line_end(k);
    k->in_doubt |= parent < 0; /* of a text of the root libfyaml has its own idea */
    while (!k->in_doubt && k->at < k->n) {
        size_t from = k->at + 1, at = from;
        while (at < k->n && k->s[at] == ' ')
            at++;
        bool empty = dockeys_ends_at(k, at);
        int indent = (int)(at - from);
        if (!empty && wanted < 0) {
            wanted = indent > parent ? indent : parent + 1;
            k->in_doubt |= indent < wanted;
        }
        if (!empty && (indent < wanted || dockeys_is_marker(k, from)))
            return;
        dockeys_new_line(k);
        dockeys_to_line_end(k);
    }
}

/* ---- plain texts ---- */

/* Moves to where the plain text of this line ends; true if it was a key. */
static bool dockeys_plain_line(struct dockeys *k)
{
    for (; k->at < k->n && k->s[k->at] != '\n'; k->at++) {
        char c = k->s[k->at];
        bool after_blank = k->at > k->line_from && strchr(" \t", k->s[k->at - 1]);
        if (k->flow && strchr(",[]{}", c))
            return false;
        k->in_doubt |= k->flow && strchr("\"'", c); /* {"a":1} and {a"b:1} are read otherwise */
        if (dockeys_is_colon(k, k->at))
            return true;
        if (c == '#' && after_blank)
            return false;
    }
    return false;
}

/* Moves to the beginning of the text's next line if there is one. */
static bool dockeys_goes_on(struct dockeys *k, int parent)
{
    struct dockeys next = *k;
    while (next.at < next.n && next.s[next.at] == '\n') {
        dockeys_new_line(&next);
        while (next.at < next.n && strchr(" \t\r", next.s[next.at]))
            next.at++;
    }
    size_t spaces = next.line_from;
    while (spaces < next.n && next.s[spaces] == ' ')
        spaces++;
    bool goes_on =
        next.at < next.n && next.s[next.at] != '#' && next.at > k->at &&
        !dockeys_is_marker(&next, next.line_from) &&
        (k->flow ? !strchr(",[]{}:", next.s[next.at]) : (int)(spaces - next.line_from) > parent);
    if (goes_on)
        *k = next;
    return goes_on;
}

static void dockeys_skip_plain(struct dockeys *k)
{
    int column = dockeys_column(k, k->at), parent = dockeys_parent(k, column);
    bool directive = k->s[k->at] == '%' && column == 0, first = true;
    for (;;) {
        if (dockeys_plain_line(k)) {
            if (first && !k->flow)
                dockeys_open(k, column);
            k->after_key = true;
            k->in_doubt |= k->name_line == k->line;
            return;
        }
        if (directive || k->at >= k->n || k->s[k->at] != '\n' || !dockeys_goes_on(k, parent))
            return;
        k->in_doubt |= parent < 0 || (k->s[k->at] == '%' && k->at == k->line_from);
        if (k->in_doubt)
            return;
        first = false;
    }
}

/* ---- all ---- */

static void dockeys_skip_name(struct dockeys *k)
{
    k->name_line = k->line;
    while (!dockeys_is_blank(k, k->at) && !(k->flow && strchr(",[]{}", k->s[k->at])))
        k->at++;
}

static bool dockeys_is_indicator(const struct dockeys *k)
{
    char c = k->s[k->at];
    return strchr("[]{},", c) || (c == '-' && dockeys_is_blank(k, k->at + 1)) ||
           dockeys_is_colon(k, k->at) || (c == ':' && k->flow && k->after_key);
}

static void dockeys_step_indicator(struct dockeys *k)
{
    char c = k->s[k->at];
    if (c == '[' || c == '{')
        k->flow++;
    if ((c == ']' || c == '}') && k->flow)
        k->flow--;
    if (c == '-' && !k->flow)
        dockeys_open(k, dockeys_column(k, k->at));
    k->in_doubt |= c == ':' && !k->after_key;
    k->after_key = false;
    k->at++;
}

/* A quoted text may be a key as well: `"a b": …`. */
static void dockeys_step_quoted(struct dockeys *k)
{
    int column = dockeys_column(k, k->at), line = k->line;
    dockeys_skip_quoted(k);
    size_t at = k->at;
    while (at < k->n && strchr(" \t", k->s[at]))
        at++;
    k->after_key = at < k->n && k->s[at] == ':';
    if (k->after_key && line == k->line && !k->flow)
        dockeys_open(k, column);
}

static bool dockeys_is_comment(const struct dockeys *k)
{
    return k->s[k->at] == '#' && (k->at == k->line_from || strchr(" \t", k->s[k->at - 1]));
}

/* What begins at k->at, which is no blank. */
static void dockeys_step(struct dockeys *k)
{
    char c = k->s[k->at];
    int digit = strchr("|>", c) && !k->flow ? dockeys_block_digit(k) : -1;
    if (k->at == k->line_from && dockeys_is_marker(k, k->at)) {
        k->n_open = 0;
        k->in_doubt |= k->flow > 0;
        k->at += 3;
    } else if (dockeys_is_comment(k)) {
        dockeys_to_line_end(k);
    } else if (strchr("\"'", c)) {
        dockeys_step_quoted(k);
    } else if (digit >= 0) {
        dockeys_skip_block(k, digit);
    } else if (strchr("&*!", c)) {
        dockeys_skip_name(k);
    } else if (dockeys_is_indicator(k)) {
        dockeys_step_indicator(k);
    } else if (strchr(":%@`|>", c) && k->at != 0) {
        k->in_doubt = true;
    } else {
        dockeys_skip_plain(k);
    }
}

static bool dockeys_is_explicit(const struct dockeys *k)
{
    return k->s[k->at] == '?' && (dockeys_is_blank(k, k->at + 1) ||
                                  ((k->flow || k->in_doubt) && strchr(",[]{}", k->s[k->at + 1])));
}

bool dockeys_find(const char *text, size_t len, int *ret_line, int *ret_column)
{
    struct dockeys k = {.s = text, .n = len, .line = 1};
    if (len >= 3 && !memcmp(text, "\xef\xbb\xbf", 3))
        k.at = k.line_from = 3;
    while (k.at < len) {
        if (dockeys_is_explicit(&k)) {
            *ret_line = k.line;
            *ret_column = dockeys_column(&k, k.at) + 1;
            return true;
        }
        k.in_doubt |= text[k.at] == '\t' && k.at == k.line_from;
        if (text[k.at] == '\n')
            dockeys_new_line(&k);
        else if (k.in_doubt || strchr(" \t\r", text[k.at]))
            k.at++;
        else
            dockeys_step(&k);
    }
    return false;
}
