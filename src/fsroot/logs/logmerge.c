/* SPDX-License-Identifier: Apache-2.0 */
/* logmerge.c - see logmerge.h.
 *
 * Places are "<key><offset>-<key><offset>…" in hex, where a key is the CRC of a log's name in eight
 * digits: of two names with one key the second is left out, so no log is read at another's place.
 */
#define _GNU_SOURCE
#include "fsroot/logs/logmerge.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/digest/crc.h"
#include "base/str.h"
#include "base/text.h"
#include "fsroot/attempt/launch.h"
#include "fsroot/logs/logread.h"

enum {
    LOOK_BYTES = 256 << 10, /* of all logs together, */
    LEAST_BYTES = 4 << 10,  /* and of one, however many there are */
    KEY_DIGITS = 8,
    OFFSET_DIGITS_MAX = 16,
    GAPS_MAX = 16, /* in the end of a log that a first look reads */
    STAMP_DIGITS = 5,
    STAMP_WITHIN = 48, /* bytes of a line's begin in which its time stands */
    COLOUR_WITHIN = 16,
    PREFIX_WITHIN = 160, /* Ray's: a name may be long */
};

void logmerge_release(struct logmerge *m)
{
    for (size_t i = 0; i < m->n_sources; i++)
        free(m->sources[i].chunk);
    free(m->sources);
    free(m->lines);
    loglist_release(&m->files);
    *m = (struct logmerge){0};
}

/* ---- places ---- */

bool logmerge_are_places(const char *text)
{
    if (strlen(text) > LOGMERGE_PLACES_MAX)
        return false;
    for (const char *p = text; *p;) {
        size_t n = strspn(p, "0123456789abcdef");
        if (n <= KEY_DIGITS || n > KEY_DIGITS + OFFSET_DIGITS_MAX)
            return false;
        p += n;
        if (*p && (*p != '-' || !p[1]))
            return false;
        p += *p == '-';
    }
    return true;
}

char *logmerge_places(const struct logmerge *m)
{
    struct buf out = BUF_INIT(LOGMERGE_PLACES_MAX);
    for (size_t i = 0; i < m->n_sources; i++)
        (void)buf_addf(&out, "%s%08" PRIx32 "%" PRIx64, i ? "-" : "", m->sources[i].key,
                       m->sources[i].next); /* all of them fit: 128 times 25 bytes */
    return buf_take(&out);
}

/* False: the log was no source of that look. */
static bool places_find(const char *places, uint32_t key, uint64_t *ret)
{
    char digits[KEY_DIGITS + 1];
    text_printf(digits, "%08" PRIx32, key);
    for (const char *p = places; p && *p;) {
        if (!strncmp(p, digits, KEY_DIGITS)) {
            *ret = strtoull(p + KEY_DIGITS, NULL, 16); /* its form was checked */
            return true;
        }
        p = strchr(p, '-');
        p += p ? 1 : 0;
    }
    return false;
}

/* ---- which logs ---- */

static char *logmerge_path(const struct loglist_file *f)
{
    _cleanup_(freep) char *name = f ? loglist_name(f) : NULL;
    return f ? loglist_path(LOGLIST_WORKER, name) : xstrdup(ATTEMPT_LOG);
}

static uint64_t driver_bytes(const struct logmerge_ask *ask)
{
    struct logread_part part = {0};
    char none;
    int r = logread_at(ask->root, ask->job, ask->attempt, ATTEMPT_LOG, 0, &none, 1, &part, NULL);
    return r < 0 ? 0 : part.end; /* there is none yet */
}

/* f NULL: the driver's. */
static struct logmerge_source source_of(const struct logmerge_ask *ask,
                                        const struct loglist_file *f)
{
    _cleanup_(freep) char *path = logmerge_path(f);
    struct logmerge_source s = {.file = f, .bytes = f ? f->bytes : driver_bytes(ask)};
    s.key = path ? crc32_add(0, path, strlen(path)) : 0;
    return s;
}

enum { TURN_KNOWN, TURN_RANKED, TURN_OTHER, TURNS };

/* *s gets its place in the log. */
static int turn_of(const struct logmerge_ask *ask, struct logmerge_source *s)
{
    if (places_find(ask->places, s->key, &s->next))
        return TURN_KNOWN;
    return !s->file || s->file->rank >= 0 ? TURN_RANKED : TURN_OTHER;
}

static bool has_key(const struct logmerge *m, uint32_t key)
{
    for (size_t i = 0; i < m->n_sources; i++)
        if (m->sources[i].key == key)
            return true;
    return false;
}

static void choose_sources(const struct logmerge_ask *ask, struct logmerge *m)
{
    size_t n = 0;
    struct logmerge_source *all = xcalloc(m->files.n + 1, sizeof(*all));
    if (ask->has_driver)
        all[n++] = source_of(ask, NULL);
    for (size_t i = 0; i < m->files.n; i++)
        if (m->files.v[i].bytes)
            all[n++] = source_of(ask, &m->files.v[i]);
    m->sources = xcalloc(LOGMERGE_SOURCES_MAX, sizeof(*m->sources));
    for (int turn = 0; turn < TURNS; turn++)
        for (size_t i = 0; i < n; i++) {
            if (turn_of(ask, &all[i]) != turn || !all[i].bytes)
                continue;
            if (m->n_sources < LOGMERGE_SOURCES_MAX && !has_key(m, all[i].key))
                m->sources[m->n_sources++] = all[i];
            else
                m->left_out++;
        }
    m->left_out += m->files.is_cut;
    free(all);
}

/* ---- lines of one log ---- */

/* The first five digits behind the point or comma of a time, as many zeros where there are none. */
static uint64_t stamp_parts(const char *p, size_t n)
{
    uint64_t parts = 0;
    bool goes_on = n && (p[0] == '.' || p[0] == ',');
    for (size_t i = 1; i <= STAMP_DIGITS; i++) {
        goes_on = goes_on && i < n && isdigit((unsigned char)p[i]);
        parts = parts * 10 + (goes_on ? (uint64_t)(p[i] - '0') : 0);
    }
    return parts;
}

/* The time that stands there, as a number that grows with it: 14 digits and those of its parts,
 * which fit into 64 bits. 0: none. */
static uint64_t stamp_at(const char *p, size_t n)
{
    static const char SHAPE[] = "dddd-dd-dd dd:dd:dd";
    const size_t len = sizeof(SHAPE) - 1;
    uint64_t stamp = 0;
    if (n < len)
        return 0;
    for (size_t i = 0; i < len; i++) {
        bool is_digit = isdigit((unsigned char)p[i]);
        bool fits =
            SHAPE[i] == 'd' ? is_digit : p[i] == SHAPE[i] || (SHAPE[i] == ' ' && p[i] == 'T');
        if (!fits)
            return 0;
        stamp = is_digit ? stamp * 10 + (uint64_t)(p[i] - '0') : stamp;
    }
    return stamp * 100000 + stamp_parts(p + len, n - len);
}

static uint64_t logmerge_stamp(const char *p, size_t n)
{
    uint64_t stamp = 0;
    for (size_t i = 0; i < STAMP_WITHIN && i < n && !stamp; i++)
        stamp = stamp_at(p + i, n - i);
    return stamp;
}

struct logmerge_split {
    const struct logmerge_ask *ask;
    const struct logmerge *m;
    struct logmerge_source *s;
    struct logread_part part;
    size_t most; /* lines */
    struct logmerge_line *lines;
    size_t n;  /* of them */
    size_t at; /* bytes of the part that were taken */
};

/* How many bytes the line at `at` has, with its end; 0: its end is not there yet. */
static size_t line_bytes(const struct logmerge_split *x)
{
    const char *p = x->s->chunk + x->at;
    size_t left = x->part.n - x->at;
    const char *lf = memchr(p, '\n', left);
    bool goes_on = x->part.offset + x->part.n < x->part.end;
    if (lf)
        return (size_t)(lf - p) + 1;
    /* Longer than the share, or before a gap: its rest is a line of its own. */
    return goes_on ? (x->at ? 0 : left) : (x->ask->is_over ? left : 0);
}

/* The process in "(WorkerDict pid=11, ip=10.0.0.2) text", with which Ray begins what it repeats of
 * a worker in the driver's log, coloured or not. -1: none. */
static int64_t repeated_pid(const char *p, size_t n)
{
    static const char word[] = "pid=";
    const size_t len = sizeof(word) - 1;
    const char *open = memchr(p, '(', n < COLOUR_WITHIN ? n : COLOUR_WITHIN), *end = p + n;
    if (!open || (open != p && *p != '\033'))
        return -1;
    size_t left = (size_t)(end - open);
    const char *at = memmem(open, left < PREFIX_WITHIN ? left : PREFIX_WITHIN, word, len);
    if (!at || (at[-1] != '(' && at[-1] != ' '))
        return -1;
    int64_t pid = 0;
    for (at += len; at < end && isdigit((unsigned char)*at) && pid < INT32_MAX; at++)
        pid = pid * 10 + (*at - '0');
    return at < end && (*at == ')' || *at == ',') ? pid : -1;
}

/* A line of the driver's log that stands in the log of its worker as well, which is a source. */
static bool is_repeated(const struct logmerge_split *x, const char *p, size_t n)
{
    int64_t pid = x->s->file ? -1 : repeated_pid(p, n);
    for (size_t i = 0; pid >= 0 && i < x->m->n_sources; i++)
        if (x->m->sources[i].file && x->m->sources[i].file->pid == pid)
            return true;
    return false;
}

/* A NUL becomes what is no text either: not every reader of JSON takes one. */
static void mask_nuls(char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!p[i])
            p[i] = '\xff';
}

static void take_line(struct logmerge_split *x, size_t n)
{
    char *p = x->s->chunk + x->at;
    size_t whole = p[n - 1] == '\n' ? n - 1 : n;
    uint64_t stamp = logmerge_stamp(p, whole);
    if (is_repeated(x, p, whole)) {
        x->at += n;
        return;
    }
    mask_nuls(p, whole);
    x->lines[x->n] = (struct logmerge_line){
        .offset = x->part.offset + x->at,
        .text = p,
        .n = whole < LOGMERGE_LINE_BYTES ? whole : LOGMERGE_LINE_BYTES,
        .is_cut = whole > LOGMERGE_LINE_BYTES,
        .stamp = stamp ? stamp : (x->n ? x->lines[x->n - 1].stamp : 0),
    };
    x->n++;
    x->at += n;
}

/* A first look begins with a whole line, and leaves the oldest ones out. */
static void begin_of_tail(struct logmerge_split *x, bool is_within)
{
    const char *end = x->s->chunk + x->part.n, *p = end;
    const char *lf = is_within ? memchr(x->s->chunk, '\n', x->part.n) : NULL;
    const char *first = lf ? lf + 1 : x->s->chunk;
    size_t lines = 0;
    if (p > first && p[-1] == '\n')
        p--;
    while (p > first && (p[-1] != '\n' || ++lines < x->most))
        p--;
    x->at = (size_t)(p - x->s->chunk);
}

/* True: there is more of it at once. */
static bool split_lines(struct logmerge_split *x)
{
    size_t n;
    while (x->at < x->part.n && x->n < x->most && (n = line_bytes(x)) > 0)
        take_line(x, n);
    x->s->next = x->part.offset + x->at;
    bool is_stuck = x->at < x->part.n && x->n < x->most && line_bytes(x) == 0;
    return x->at && x->s->next < x->part.end &&
           (!is_stuck || x->part.offset + x->part.n < x->part.end);
}

/* ---- a look ---- */

struct logmerge_share {
    size_t bytes, lines;
};

static struct logmerge_share share_of(const struct logmerge_ask *ask, const struct logmerge *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n_sources; i++)
        n += !ask->places || m->sources[i].next < m->sources[i].bytes;
    n = n ? n : 1;
    size_t bytes = LOOK_BYTES / n;
    return (struct logmerge_share){.bytes = bytes > LEAST_BYTES ? bytes : LEAST_BYTES,
                                   .lines = LOGMERGE_LINES_MAX / n};
}

/* What there is from `from` on; of a first look what lies behind the last gap. */
static int read_part_of(struct logmerge_split *x, uint64_t from, size_t bytes)
{
    _cleanup_(freep) char *path = logmerge_path(x->s->file);
    const struct logmerge_ask *ask = x->ask;
    int r = path ? 0 : -ENOENT;
    bool again = true;
    for (int i = 0; again && r == 0 && i < GAPS_MAX; i++) {
        r = logread_at(ask->root, ask->job, ask->attempt, path, from, x->s->chunk, bytes, &x->part,
                       NULL);
        again = r == 0 && !ask->places && x->part.n && logread_is_torn(&x->part, bytes);
        from = again ? x->part.offset + x->part.n : from;
    }
    return r;
}

/* The new lines of one log, behind those of the logs before it. */
static void read_source(const struct logmerge_ask *ask,
                        struct logmerge *m,
                        struct logmerge_source *s,
                        const struct logmerge_share *share)
{
    bool is_first = !ask->places;
    uint64_t tail = s->bytes > share->bytes ? s->bytes - share->bytes : 0;
    uint64_t from = is_first ? tail : s->next;
    struct logmerge_split x = {
        .ask = ask, .m = m, .s = s, .most = share->lines, .lines = m->lines + m->n_lines};
    if (from >= s->bytes) { /* nothing new, or it was cut: it goes on from there */
        s->next = s->bytes;
        return;
    }
    s->chunk = xmalloc(share->bytes);
    if (read_part_of(&x, from, share->bytes) < 0) {
        s->next = from; /* it has gone, or is asked for again with the next look */
        m->left_out++;
        return;
    }
    if (is_first)
        begin_of_tail(&x, from > 0 && x.part.offset == from);
    else
        s->skipped = x.part.offset - from;
    s->first = m->n_lines;
    m->has_more |= split_lines(&x);
    s->n_lines = x.n;
    m->n_lines += x.n;
}

/* Has source a's next line to come before that of b? */
static bool comes_before(const struct logmerge *m,
                         const struct logmerge_source *a,
                         const struct logmerge_source *b)
{
    uint64_t p = m->lines[a->first + a->taken].stamp, q = m->lines[b->first + b->taken].stamp;
    return p != q ? p < q : a->taken * b->n_lines < b->taken * a->n_lines;
}

static void merge_lines(struct logmerge *m)
{
    struct logmerge_line *out = xcalloc(m->n_lines + 1, sizeof(*out));
    for (size_t n = 0; n < m->n_lines; n++) {
        struct logmerge_source *next = NULL;
        for (size_t i = 0; i < m->n_sources; i++) {
            struct logmerge_source *s = &m->sources[i];
            if (s->taken < s->n_lines && (!next || comes_before(m, s, next)))
                next = s;
        }
        if (!next)
            break; /* never: each line is of one of them */
        out[n] = m->lines[next->first + next->taken++];
        out[n].source = (size_t)(next - m->sources);
    }
    free(m->lines);
    m->lines = out;
}

int logmerge_look(const struct logmerge_ask *ask, struct logmerge *ret, struct err *err)
{
    struct logmerge m = {0};
    int r = loglist_read(ask->root, ask->job, ask->attempt, LOGLIST_WORKER, NULL, &m.files, err);
    if (r < 0) {
        logmerge_release(&m);
        return r;
    }
    choose_sources(ask, &m);
    const struct logmerge_share share = share_of(ask, &m);
    m.lines = xcalloc(LOGMERGE_LINES_MAX, sizeof(*m.lines));
    for (size_t i = 0; i < m.n_sources; i++)
        read_source(ask, &m, &m.sources[i], &share);
    merge_lines(&m);
    if (!ask->places && ask->tail >= 0 && m.n_lines > (size_t)ask->tail) {
        size_t over = m.n_lines - (size_t)ask->tail;
        m.n_lines -= over;
        memmove(m.lines, m.lines + over, m.n_lines * sizeof(*m.lines));
    }
    *ret = m;
    return 0;
}
