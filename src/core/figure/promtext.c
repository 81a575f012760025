/* SPDX-License-Identifier: Apache-2.0 */
/* promtext.c - reads Prometheus' text form; see promtext.h.
 *
 *   name{key="value",key="value"} 1.5e+06 1700000000000
 *
 * Everything is read within one line, and no line is read beyond its end. */
#include "core/figure/promtext.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct cursor {
    const char *p, *end; /* of the line */
};

struct promtext promtext_begin(const char *text, size_t n)
{
    return (struct promtext){.text = text, .end = text + n};
}

static void promtext_skip_blanks(struct cursor *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\t'))
        c->p++;
}

static bool promtext_take(struct cursor *c, char wanted)
{
    promtext_skip_blanks(c);
    if (c->p == c->end || *c->p != wanted)
        return false;
    c->p++;
    return true;
}

static struct promtext_piece promtext_word(struct cursor *c)
{
    promtext_skip_blanks(c);
    const char *from = c->p;
    while (c->p < c->end && (isalnum((unsigned char)*c->p) || *c->p == '_' || *c->p == ':'))
        c->p++;
    return (struct promtext_piece){from, (size_t)(c->p - from)};
}

/* Up to the quote that ends it, which no backslash precedes. */
static bool promtext_quoted(struct cursor *c, struct promtext_piece *ret)
{
    if (!promtext_take(c, '"'))
        return false;
    const char *from = c->p;
    while (c->p < c->end && *c->p != '"')
        c->p += *c->p == '\\' && c->p + 1 < c->end ? 2 : 1;
    if (c->p >= c->end)
        return false;
    *ret = (struct promtext_piece){from, (size_t)(c->p++ - from)};
    return true;
}

static bool promtext_labels(struct promtext *t, struct cursor *c)
{
    if (!promtext_take(c, '{'))
        return true;
    while (!promtext_take(c, '}')) {
        if (t->n_labels == PROMTEXT_LABELS_MAX)
            return false;
        struct promtext_piece key = promtext_word(c);
        if (!key.n || !promtext_take(c, '=') || !promtext_quoted(c, &t->labels[t->n_labels].value))
            return false;
        t->labels[t->n_labels++].key = key;
        if (!promtext_take(c, ',') && (c->p == c->end || *c->p != '}'))
            return false;
    }
    return true;
}

/* strtod() wants an end, and numbers are short. */
static bool promtext_number(struct cursor *c, double *ret)
{
    char text[64], *end;
    promtext_skip_blanks(c);
    const char *from = c->p;
    while (c->p < c->end && *c->p != ' ' && *c->p != '\t')
        c->p++;
    size_t n = (size_t)(c->p - from);
    if (!n || n >= sizeof(text))
        return false;
    memcpy(text, from, n);
    text[n] = 0;
    *ret = strtod(text, &end);
    return !*end;
}

static bool promtext_read_line(struct promtext *t, struct cursor c)
{
    double stamp;
    t->n_labels = 0;
    t->name = promtext_word(&c);
    if (!t->name.n || isdigit((unsigned char)*t->name.p) || !promtext_labels(t, &c) ||
        !promtext_number(&c, &t->value))
        return false;
    promtext_skip_blanks(&c);
    if (c.p == c.end)
        return true;
    if (!promtext_number(&c, &stamp))
        return false;
    promtext_skip_blanks(&c);
    return c.p == c.end;
}

bool promtext_next(struct promtext *t)
{
    while (t->text < t->end) {
        const char *from = t->text;
        const char *end = memchr(from, '\n', (size_t)(t->end - from));
        t->text = end ? end + 1 : t->end;
        struct cursor c = {from, end ? end : t->end};
        if (c.end > c.p && c.end[-1] == '\r')
            c.end--;
        promtext_skip_blanks(&c);
        if (c.p == c.end || *c.p == '#')
            continue;
        t->lines++;
        if (c.end - c.p <= PROMTEXT_LINE_MAX && promtext_read_line(t, c))
            return true;
        t->bad++;
    }
    return false;
}

struct promtext_piece promtext_label(const struct promtext *t, const char *key)
{
    for (size_t i = 0; i < t->n_labels; i++)
        if (promtext_piece_is(t->labels[i].key, key))
            return t->labels[i].value;
    return (struct promtext_piece){"", 0};
}

bool promtext_piece_is(struct promtext_piece piece, const char *word)
{
    return strlen(word) == piece.n && !memcmp(piece.p, word, piece.n);
}
