/* SPDX-License-Identifier: Apache-2.0 */
/* veil.c - the search of Wu and Manber over a stream; see veil.h.
 *
 * All forms of all values are patterns; a window is as long as the shortest one. The last two
 * bytes of a window tell how far the next possible match is, mostly a whole window, so that
 * few bytes of a log are looked at. At a place where a match can end, every pattern with these
 * two bytes there is compared in full: the longest one wins. A pattern that agrees up to the
 * end of what came is waited for. */
#include "shepherd/host/veil.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"

#define STARS "***"

enum { WINDOW_MAX = 128, LINE_MIN = 16, LINES_MAX = 256, FORM_MAX = 64 << 20, BLOCKS = 1 << 16 };

struct pattern {
    char *p;
    size_t n;
    size_t next; /* the next one + 1 whose window ends alike; 0: none */
};

struct veil {
    struct pattern *v;
    size_t n, cap;
    size_t window, longest;
    uint8_t shift[BLOCKS]; /* by the last two bytes of a window: how far to go; 0: compare */
    size_t head[BLOCKS];   /* the first pattern + 1 */
    char *held, *out;      /* room for what waits and a piece; for what is shown of both */
    size_t n_held, room;
};

/* ---- the forms of a value ---- */

static void add_pattern(struct veil *v, const char *p, size_t n)
{
    if (n < VEIL_MIN)
        return;
    for (size_t i = 0; i < v->n; i++)
        if (v->v[i].n == n && !memcmp(v->v[i].p, p, n))
            return;
    if (v->n == v->cap) {
        v->cap = v->cap ? v->cap * 2 : 16;
        v->v = xrealloc(v->v, v->cap, sizeof(*v->v));
    }
    v->v[v->n++] = (struct pattern){.p = xstrndup(p, n), .n = n};
}

static void veil_add_text(struct veil *v, const struct buf *b)
{
    if (!b->failed)
        add_pattern(v, buf_str(b), b->len);
}

/* Overflow of a form leaves it out: no value is that long. */
static void add_url(struct veil *v, const char *s, const char *open, enum buf_hex hex)
{
    _cleanup_(buf_release) struct buf b = BUF_INIT(FORM_MAX);
    buf_add_escaped(&b, s, open, hex);
    veil_add_text(v, &b);
}

/* Adds the value in the spellings of JSON, of the shell's single quotes and of Python's repr(). */
static void veil_add_quoted(struct veil *v, const char *s)
{
    static const char special[] = "\\\n\r\t'", letters[] = "\\nrt'";
    _cleanup_(buf_release) struct buf json = BUF_INIT(FORM_MAX);
    _cleanup_(buf_release) struct buf shell = BUF_INIT(FORM_MAX);
    _cleanup_(buf_release) struct buf repr = BUF_INIT(FORM_MAX);
    _cleanup_(buf_release) struct buf both = BUF_INIT(FORM_MAX); /* it has quotes of both kinds */
    struct jout j = jout_begin(&json);
    jout_str(&j, NULL, s);
    if (!json.failed && json.len > 2)
        add_pattern(v, json.data + 1, json.len - 2);
    for (; *s; s++) {
        const char *at = strchr(special, *s);
        (void)(*s == '\'' ? buf_adds(&shell, "'\\''") : buf_addc(&shell, *s));
        (void)(at ? buf_addf(&both, "\\%c", letters[at - special]) : buf_addc(&both, *s));
        (void)(at && *s != '\'' ? buf_addf(&repr, "\\%c", letters[at - special])
                                : buf_addc(&repr, *s));
    }
    veil_add_text(v, &shell);
    veil_add_text(v, &repr);
    veil_add_text(v, &both);
}

static void base64(const unsigned char *p, size_t n, const char *last, struct buf *out)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
    for (; n; p += n < 3 ? n : 3, n -= n < 3 ? n : 3) {
        unsigned long group =
            (unsigned long)p[0] << 16 | (n > 1 ? (unsigned long)p[1] << 8 : 0) | (n > 2 ? p[2] : 0);
        for (size_t i = 0; i < 4; i++) {
            size_t d = group >> (18 - 6 * i) & 63;
            (void)buf_addc(out, i > n ? '=' : d < 62 ? digits[d] : last[d - 62]);
        }
    }
}

/* Whole, and the groups that are the same whatever stands around it. */
static void add_base64(struct veil *v, const char *s, const char *last)
{
    size_t n = strlen(s);
    _cleanup_(buf_release) struct buf b = BUF_INIT(FORM_MAX);
    base64((const unsigned char *)s, n, last, &b);
    veil_add_text(v, &b);
    for (size_t skip = 0; skip < 3 && skip < n; skip++) {
        buf_reset(&b);
        base64((const unsigned char *)s + skip, (n - skip) / 3 * 3, last, &b);
        veil_add_text(v, &b);
    }
}

static void veil_add_lines(struct veil *v, const char *s)
{
    for (int i = 0; i < LINES_MAX && *s; i++) {
        size_t n = strcspn(s, "\r\n");
        if (n >= LINE_MIN)
            add_pattern(v, s, n);
        s += n;
        s += strspn(s, "\r\n");
    }
}

static void veil_add_value(struct veil *v, const char *text)
{
    text += strspn(text, " \t\r\n"); /* programs print it without */
    size_t n = strlen(text);
    while (n && strchr(" \t\r\n", text[n - 1]))
        n--;
    if (n < VEIL_MIN)
        return;
    _cleanup_(freep) char *s = xstrndup(text, n);
    add_pattern(v, s, n);
    veil_add_quoted(v, s);
    add_url(v, s, "_.-~", BUF_HEX_UPPER);
    add_url(v, s, "_.-~", BUF_HEX_LOWER);
    add_url(v, s, "_.-~/", BUF_HEX_UPPER);
    add_base64(v, s, "+/");
    add_base64(v, s, "-_");
    veil_add_lines(v, s);
}

/* ---- the tables ---- */

static size_t block(const char *p)
{
    return (size_t)(unsigned char)p[0] << 8 | (unsigned char)p[1];
}

static void fill_tables(struct veil *v)
{
    v->window = WINDOW_MAX;
    for (size_t i = 0; i < v->n; i++) {
        v->window = v->v[i].n < v->window ? v->v[i].n : v->window;
        v->longest = v->v[i].n > v->longest ? v->v[i].n : v->longest;
    }
    memset(v->shift, (int)v->window - 1, sizeof(v->shift));
    for (size_t i = 0; i < v->n; i++) {
        struct pattern *p = &v->v[i];
        for (size_t k = 0; k + 2 <= v->window; k++) {
            uint8_t *shift = &v->shift[block(p->p + k)], far = (uint8_t)(v->window - 2 - k);
            *shift = *shift < far ? *shift : far;
        }
        size_t *head = &v->head[block(p->p + v->window - 2)];
        p->next = *head;
        *head = i + 1;
    }
}

struct veil *veil_new(const struct strv *values)
{
    struct veil *v = xcalloc(1, sizeof(*v));
    for (size_t i = 0; i < values->n; i++)
        veil_add_value(v, values->v[i]);
    if (!v->n) {
        veil_free(v);
        return NULL;
    }
    fill_tables(v);
    return v;
}

void veil_free(struct veil *v)
{
    if (!v)
        return;
    for (size_t i = 0; i < v->n; i++) {
        explicit_bzero(v->v[i].p, v->v[i].n);
        free(v->v[i].p);
    }
    free(v->v);
    free(v->held);
    free(v->out);
    free(v);
}

/* ---- the search ---- */

/* What a look at one place says. */
struct found {
    size_t n;       /* of the longest pattern that stands here; 0: none */
    bool is_partly; /* a longer one agrees up to the end of the text */
};

static void veil_compare(const struct pattern *p, const char *s, size_t left, struct found *ret)
{
    if (p->n <= ret->n || memcmp(p->p, s, p->n < left ? p->n : left) != 0)
        return;
    if (p->n <= left)
        ret->n = p->n;
    else
        ret->is_partly = true;
}

/* Finds a value at the end of the text, where fewer bytes are left than a window has. */
static struct found look_near_end(const struct veil *v, const char *s, size_t left)
{
    struct found f = {0};
    for (size_t i = 0; i < v->n; i++)
        veil_compare(&v->v[i], s, left, &f);
    return f;
}

static struct found veil_look(const struct veil *v, const char *s, size_t left)
{
    struct found f = {0};
    for (size_t i = v->head[block(s + v->window - 2)]; i; i = v->v[i - 1].next)
        veil_compare(&v->v[i - 1], s, left, &f);
    return f;
}

/* A piece of text that is searched, and what is shown of it. */
struct pass {
    const char *s;
    size_t n, at, shown; /* at: searched so far; shown: copied so far */
    char *out;
    size_t n_out;
    bool is_last;
};

static void veil_show(struct pass *p, size_t end)
{
    memcpy(p->out + p->n_out, p->s + p->shown, end - p->shown);
    p->n_out += end - p->shown;
    p->shown = end;
}

/* At a place where something may begin. False: it must wait there. */
static bool decide(struct pass *p, struct found f)
{
    size_t left = p->n - p->at;
    if (f.is_partly && !p->is_last)
        return false;
    if (f.is_partly && left >= VEIL_MIN)
        f.n = left;
    if (!f.n) {
        p->at++;
        return true;
    }
    veil_show(p, p->at);
    memcpy(p->out + p->n_out, STARS, sizeof(STARS) - 1); /* a pattern is longer */
    p->n_out += sizeof(STARS) - 1;
    p->at += f.n;
    p->shown = p->at;
    return true;
}

/* Up to where it is decided. */
static void search(const struct veil *v, struct pass *p)
{
    while (p->at + v->window <= p->n) {
        size_t skip = v->shift[block(p->s + p->at + v->window - 2)];
        if (skip)
            p->at += skip;
        else if (!decide(p, veil_look(v, p->s + p->at, p->n - p->at)))
            return;
    }
    while (p->at < p->n)
        if (!decide(p, look_near_end(v, p->s + p->at, p->n - p->at)))
            return;
}

static void veil_make_room(struct veil *v, size_t n)
{
    if (v->room >= n)
        return;
    v->room = n;
    v->held = xrealloc(v->held, n, 1);
    v->out = xrealloc(v->out, n, 1);
}

static size_t veil_pass_piece(struct veil *v,
                              const char *s,
                              size_t n,
                              bool is_last,
                              const char **ret)
{
    struct pass p = {.s = s, .n = n, .out = v->out, .is_last = is_last};
    search(v, &p);
    size_t end = p.at < n ? p.at : n; /* a skip may lead behind the end */
    if (s != v->held && !p.shown)
        *ret = s; /* as it came */
    else
        veil_show(&p, end);
    size_t n_shown = *ret == s ? end : p.n_out;
    v->n_held = n - end;
    memmove(v->held, s + end, v->n_held);
    return n_shown;
}

size_t veil_pass(struct veil *v, const char *p, size_t n, const char **ret)
{
    veil_make_room(v, v->longest + n);
    *ret = v->out;
    if (!v->n_held)
        return veil_pass_piece(v, p, n, false, ret);
    memcpy(v->held + v->n_held, p, n);
    return veil_pass_piece(v, v->held, v->n_held + n, false, ret);
}

size_t veil_finish(struct veil *v, const char **ret)
{
    veil_make_room(v, v->longest);
    *ret = v->out;
    return veil_pass_piece(v, v->held, v->n_held, true, ret);
}

size_t veil_hand_back(struct veil *v)
{
    size_t n = v->n_held;
    v->n_held = 0;
    return n;
}
