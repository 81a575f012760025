/* SPDX-License-Identifier: Apache-2.0 */
/* finding_stream.c - the traceback that each process is printing.
 *
 * Ranks write into one log, so each has a stream of its own. Of a traceback only the exception
 * says what happened; its places say what was being done, its lines of code nothing. They are
 * told apart by their indent: that of the head is the exception's, places have two more, code
 * four. What was pasted without indents is told by the place before it. */
#include <ctype.h>
#include <string.h>

#include "base/mem.h"
#include "core/finding/read/finding_finder.h"

struct stream *finder_stream(struct finder *f, uint64_t key)
{
    struct stream *oldest = &f->streams[0];
    for (size_t i = 0; i < f->n_streams; i++) {
        if (f->streams[i].key == key)
            return &f->streams[i];
        if (f->streams[i].used < oldest->used)
            oldest = &f->streams[i];
    }
    struct stream *s = f->n_streams < STREAMS_MAX ? &f->streams[f->n_streams++] : oldest;
    finding_event_release(&s->frame);
    *s = (struct stream){.key = key};
    return s;
}

void stream_reset(struct stream *s)
{
    finding_event_release(&s->frame);
    s->has_frame = false;
    s->open = false;
    s->ignored = false;
    s->indent = 0;
    s->flat = 0;
    s->last = NULL;
}

static bool part_starts(struct text_part p, const char *word)
{
    size_t n = strlen(word);
    return p.n >= n && !memcmp(p.s, word, n);
}

static bool part_has(struct text_part p, const char *word)
{
    return memmem(p.s, p.n, word, strlen(word));
}

/* A place whose beginning was cut off: it is all that the line has, so it is no message that tells
 * one. */
static bool is_cut_place(struct text_part p)
{
    static const char mark[] = ".py\", line ", in[] = ", in ";
    const char *at = memmem(p.s, p.n, mark, sizeof(mark) - 1), *end = p.s + p.n;
    if (!at || memchr(p.s, ' ', (size_t)(at - p.s)))
        return false;
    for (at += sizeof(mark) - 1; at < end && isdigit((unsigned char)*at);)
        at++;
    if ((size_t)(end - at) >= sizeof(in) - 1 && !memcmp(at, in, sizeof(in) - 1))
        at += sizeof(in) - 1;
    return !memchr(at, ' ', (size_t)(end - at));
}

static bool is_place(struct text_part p)
{
    return part_starts(p, "File \"") || part_starts(p, "File \xe2\x80\x9c") || is_cut_place(p);
}

/* "KeyError: 'x'", "a.b.Closed", "a.TaskError(KeyError): x": a name that begins large, alone or
 * before a colon. Sure: it is called an error, too. */
static bool is_exception(struct text_part p, bool sure)
{
    static const char *const ends[] = {"Error", "Exception"};
    size_t n = 0, last = 0;
    bool said = !sure;
    for (; n < p.n && (isalnum((unsigned char)p.s[n]) || strchr("._()", p.s[n])); n++)
        if (p.s[n] == '.')
            last = n + 1;
    bool ended = n == p.n || (p.s[n] == ':' && (n + 1 == p.n || p.s[n + 1] == ' '));
    for (size_t i = 0; i < array_len(ends); i++) {
        size_t k = strlen(ends[i]);
        said = said || (n >= k && !memcmp(p.s + n - k, ends[i], k));
    }
    return n && ended && said && last < n && isupper((unsigned char)p.s[last]);
}

static bool starts_with_any(struct text_part p, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (part_starts(p, words[i]))
            return true;
    return false;
}

/* Nothing else begins like this. */
static bool is_surely_code(const struct stream *s, struct text_part p)
{
    static const char *const starts[] = {"f\"", "f'"};
    return is_place(p) || (s->open && starts_with_any(p, starts, array_len(starts))) ||
           (part_starts(p, "raise ") && memchr(p.s, '(', p.n));
}

bool stream_at_place(const struct finding_text *t)
{
    return is_place(t->body) || (t->boxed && part_has(t->body, ".py:"));
}

bool stream_is_code(const struct stream *s, const struct finding_text *t, uint64_t line)
{
    static const char *const starts[] = {"raise ", "return ", "assert ", "self.", "except "};
    if (t->boxed)
        return t->body.n && (isdigit((unsigned char)t->body.s[0]) || part_has(t->body, ".py:"));
    if (is_surely_code(s, t->body))
        return true;
    if (s->open && s->flat && s->flat + 1 == line && !is_exception(t->body, false))
        return true;
    if (t->indent < 2 || is_exception(t->body, true))
        return false;
    return s->open ? t->indent >= s->indent + 2
                   : starts_with_any(t->body, starts, array_len(starts));
}

void stream_place(struct stream *s, const struct finding_text *t, uint64_t line)
{
    if (t->boxed || !part_starts(t->body, "File "))
        return;
    s->flat = t->indent < 2 ? line : 0;
    s->indent = t->indent < 2 ? t->indent : t->indent - 2;
}
