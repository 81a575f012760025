/* SPDX-License-Identifier: Apache-2.0 */
/* trace.c - the reader of trace.h: one walk over the text, one field at a time, then one
 * sort. Invariant afterwards: rows of a pool lie together, oldest first. */
#include "core/past/trace.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/message.h"
#include "base/str.h"

enum { FIELD_MAX = 128, COLUMNS_MAX = 256 };
static const double SECONDS_MAX = 253402300799.0; /* the end of year 9999 */
static const double DURATION_MAX = 1e9;           /* 31 years */

enum column { COLUMN_SUBMIT, COLUMN_DURATION, COLUMN_GPUS, COLUMN_POOL, COLUMN_COUNT };
static const char *const COLUMN_NAMES[] = {"submit_time", "duration_s", "num_gpus", "cluster"};

struct reader {
    const char *name; /* of the file, for errors */
    const char *p, *end;
    unsigned line;
    unsigned fields;         /* per line, from the header */
    int place[COLUMN_COUNT]; /* of each column; -1 = absent */
    char field[COLUMN_COUNT][FIELD_MAX];
    struct map *pools; /* name -> index + 1 */
    struct trace *t;
    size_t cap, cap_pools;
    struct err *err;
};

/* why: a code without arguments. */
static int bad(const struct reader *r, const char *why, const char *text)
{
    char shown[48];
    size_t n = 0;
    for (; text[n] && n < sizeof(shown) - 1; n++)
        shown[n] = text[n] >= 32 && text[n] < 127 ? text[n] : '?';
    shown[n] = 0;
    return message_refuse(r->err, ERR_BAD_SPEC, "trace_bad_field",
                          MESSAGE_ARGS(MESSAGE_STR("trace", r->name), MESSAGE_NUM("line", r->line),
                                       MESSAGE_OF("why", message_code(why), "{}"),
                                       MESSAGE_STR("text", shown)));
}

static int bad_line(const struct reader *r, const char *why)
{
    return message_refuse(r->err, ERR_BAD_SPEC, "trace_bad_line",
                          MESSAGE_ARGS(MESSAGE_STR("trace", r->name), MESSAGE_NUM("line", r->line),
                                       MESSAGE_OF("why", message_code(why), "{}")));
}

/* ---- fields ---- */

static bool at_line_end(const struct reader *r)
{
    return r->p == r->end || *r->p == '\n' ||
           (*r->p == '\r' && (r->p + 1 == r->end || r->p[1] == '\n'));
}

struct cell {
    char *text; /* FIELD_MAX bytes */
    size_t n;
    bool too_long;
};

static void trace_put(struct cell *f, char c)
{
    if (f->n + 1 < FIELD_MAX)
        f->text[f->n++] = c;
    else
        f->too_long = true;
}

/* From behind the opening quote to behind the closing one; a doubled quote is one. */
static bool take_quoted(struct reader *r, struct cell *f)
{
    for (; r->p < r->end && *r->p != '\n'; r->p++) {
        if (*r->p == '"') {
            r->p++;
            if (r->p == r->end || *r->p != '"')
                return true;
        }
        trace_put(f, *r->p);
    }
    return false;
}

/* The field at p without its quotes, p behind it (at a comma or the line's end). */
static int take_field(struct reader *r, char out[static FIELD_MAX])
{
    struct cell f = {.text = out};
    if (r->p < r->end && *r->p == '"') {
        r->p++;
        if (!take_quoted(r, &f))
            return bad_line(r, "trace_quote");
    }
    for (; !at_line_end(r) && *r->p != ','; r->p++)
        trace_put(&f, *r->p);
    if (memchr(out, 0, f.n))
        return bad_line(r, "trace_nul");
    while (f.n && out[f.n - 1] == ' ')
        f.n--;
    out[f.n] = 0;
    return f.too_long ? bad(r, "trace_long_field", out) : 0;
}

static void skip_line_end(struct reader *r)
{
    r->p += r->p < r->end && *r->p == '\r';
    r->p += r->p < r->end && *r->p == '\n';
}

/* ---- values ---- */

/* Numbers from s where the pattern has digits (a run is one number), else its very bytes. The
 * place behind, or NULL. */
static const char *trace_read_numbers(const char *s, const char *pattern, int *ret)
{
    bool inside = false;
    ret--;
    for (; *pattern; pattern++, s++) {
        if (*pattern != '0' && *s != *pattern)
            return NULL;
        if (*pattern == '0' && (*s < '0' || *s > '9'))
            return NULL;
        if (*pattern == '0') {
            ret += !inside;
            *ret = (inside ? *ret * 10 : 0) + (*s - '0');
        }
        inside = *pattern == '0';
    }
    return s;
}

/* Days since 1970 of a date of the Gregorian calendar; years begin in March. */
static int64_t days_of(int year, int month, int day)
{
    int64_t y = year - (month <= 2);
    int64_t era = y / 400, of_era = y - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static bool is_day(int year, int month, int day)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (year < 1970 || month < 1 || month > 12 || day < 1)
        return false;
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return day <= days[month - 1] + (month == 2 && leap);
}

/* "2017-09-07 03:58:57", with 'T' for the space, parts of a second and a 'Z' if one likes. */
static bool read_date(const char *s, usec_t *ret)
{
    int v[6];
    const char *rest = trace_read_numbers(s, "0000-00-00 00:00:00", v);
    if (!rest)
        rest = trace_read_numbers(s, "0000-00-00T00:00:00", v);
    if (!rest || !is_day(v[0], v[1], v[2]) || v[3] > 23 || v[4] > 59 || v[5] > 60)
        return false;
    int64_t seconds = days_of(v[0], v[1], v[2]) * 86400 + v[3] * 3600 + v[4] * 60 + v[5];
    usec_t at = (usec_t)seconds * USEC_SEC;
    if (*rest == '.') {
        usec_t unit = USEC_SEC / 10;
        for (rest++; *rest >= '0' && *rest <= '9'; rest++, unit /= 10)
            at += (usec_t)(*rest - '0') * unit;
    }
    *ret = at;
    return !*rest || str_eq(rest, "Z");
}

/* A span or time in seconds; what is no plain decimal number is refused (no hex, no 'nan'). */
static bool read_seconds(const char *s, double max, usec_t *ret)
{
    double v;
    if (strspn(s, "0123456789.eE+") != strlen(s) || str_to_real(s, &v, NULL) < 0 || v < 0 ||
        v > max)
        return false;
    *ret = (usec_t)(v * 1e6 + 0.5);
    return true;
}

static bool read_gpus(const char *s, int *ret)
{
    double v;
    if (strspn(s, "0123456789.") != strlen(s) || str_to_real(s, &v, NULL) < 0 || v > TRACE_MAX_GPUS)
        return false;
    *ret = (int)v;
    return *ret >= v; /* whole */
}

static int trace_find_pool(struct reader *r, const char *name, unsigned *ret)
{
    struct trace *t = r->t;
    if (t->n && str_eq(t->pools[t->rows[t->n - 1].pool].name, name)) {
        *ret = t->rows[t->n - 1].pool;
        return 0;
    }
    uintptr_t found = (uintptr_t)map_find(r->pools, name);
    if (!found) {
        if (!*name)
            return bad_line(r, "trace_no_cluster");
        if (strlen(name) > TRACE_MAX_NAME)
            return bad(r, "trace_cluster_name", name);
        if (t->n_pools == TRACE_MAX_POOLS)
            return bad(r, "trace_clusters", name);
        if (t->n_pools == r->cap_pools) {
            r->cap_pools = r->cap_pools ? 2 * r->cap_pools : 16;
            t->pools = xrealloc(t->pools, r->cap_pools, sizeof(*t->pools));
        }
        t->pools[t->n_pools] = (struct trace_pool){.name = xstrdup(name)};
        found = ++t->n_pools;
        (void)map_set(r->pools, name, (void *)found); /* it was not there */
    }
    *ret = (unsigned)(found - 1);
    return 0;
}

/* ---- lines ---- */

static int read_header(struct reader *r)
{
    char field[FIELD_MAX];
    for (int c = 0; c < COLUMN_COUNT; c++)
        r->place[c] = -1;
    if (r->end - r->p >= 3 && !memcmp(r->p, "\xef\xbb\xbf", 3))
        r->p += 3;
    for (;;) {
        int q = take_field(r, field);
        if (q < 0)
            return q;
        for (int c = 0; c < COLUMN_COUNT; c++) {
            if (!str_eq(field, COLUMN_NAMES[c]))
                continue;
            if (r->place[c] >= 0)
                return bad(r, "trace_twice", field);
            r->place[c] = (int)r->fields;
        }
        if (++r->fields == COLUMNS_MAX)
            return bad_line(r, "trace_columns");
        if (at_line_end(r))
            break;
        r->p++;
    }
    skip_line_end(r);
    for (int c = 0; c < COLUMN_POOL; c++)
        if (r->place[c] < 0)
            return message_refuse(r->err, ERR_BAD_SPEC, "trace_no_column",
                                  MESSAGE_ARGS(MESSAGE_STR("trace", r->name),
                                               MESSAGE_STR("column", COLUMN_NAMES[c])));
    return 0;
}

/* The fields of one line into r->field; fields that nobody asks for are dropped. */
static int split_line(struct reader *r)
{
    char other[FIELD_MAX];
    unsigned i = 0;
    for (;; i++) {
        char *out = other;
        for (int c = 0; c < COLUMN_COUNT; c++)
            if (r->place[c] == (int)i)
                out = r->field[c];
        int q = take_field(r, out);
        if (q < 0)
            return q;
        if (at_line_end(r))
            break;
        r->p++;
    }
    if (i + 1 != r->fields)
        return message_refuse(
            r->err, ERR_BAD_SPEC, "trace_fields",
            MESSAGE_ARGS(MESSAGE_STR("trace", r->name), MESSAGE_NUM("line", r->line),
                         MESSAGE_NUM("fields", i + 1), MESSAGE_NUM("named", r->fields)));
    return 0;
}

static int trace_add_row(struct reader *r)
{
    struct trace *t = r->t;
    struct trace_row row = {.line = r->line};
    const char *at = r->field[COLUMN_SUBMIT];
    if (!read_date(at, &row.submit) && !read_seconds(at, SECONDS_MAX, &row.submit))
        return bad(r, "trace_submit_time", at);
    if (!read_seconds(r->field[COLUMN_DURATION], DURATION_MAX, &row.duration))
        return bad(r, "trace_duration", r->field[COLUMN_DURATION]);
    if (!read_gpus(r->field[COLUMN_GPUS], &row.gpus))
        return bad(r, "trace_num_gpus", r->field[COLUMN_GPUS]);
    int q = trace_find_pool(r, r->field[COLUMN_POOL], &row.pool);
    if (q < 0)
        return q;
    if (t->n == TRACE_MAX_ROWS)
        return bad_line(r, "trace_rows");
    if (t->n == r->cap) {
        r->cap = r->cap ? 2 * r->cap : 1024;
        t->rows = xrealloc(t->rows, r->cap, sizeof(*t->rows));
    }
    t->rows[t->n++] = row;
    return 0;
}

static int read_all(struct reader *r)
{
    if (r->p == r->end)
        return message_refuse(r->err, ERR_BAD_SPEC, "trace_empty",
                              MESSAGE_ARGS(MESSAGE_STR("trace", r->name)));
    int q = read_header(r);
    if (r->place[COLUMN_POOL] < 0)
        memcpy(r->field[COLUMN_POOL], "all", sizeof("all"));
    while (q == 0 && r->p < r->end) {
        r->line++;
        if (!at_line_end(r)) {
            q = split_line(r);
            if (q == 0)
                q = trace_add_row(r);
        }
        if (q == 0)
            skip_line_end(r);
    }
    if (q == 0 && !r->t->n)
        q = message_refuse(r->err, ERR_BAD_SPEC, "trace_no_rows",
                           MESSAGE_ARGS(MESSAGE_STR("trace", r->name)));
    return q;
}

/* ---- order ---- */

struct named {
    const char *name;
    unsigned was;
};

static int trace_by_name(const void *a, const void *b)
{
    return strcmp(((const struct named *)a)->name, ((const struct named *)b)->name);
}

static int by_pool_and_time(const void *a, const void *b)
{
    const struct trace_row *x = a, *y = b;
    if (x->pool != y->pool)
        return x->pool < y->pool ? -1 : 1;
    if (x->submit != y->submit)
        return x->submit < y->submit ? -1 : 1;
    return x->line < y->line ? -1 : 1;
}

static void sort_pools(struct trace *t)
{
    struct named *order = xcalloc(t->n_pools, sizeof(*order));
    unsigned *now = xcalloc(t->n_pools, sizeof(*now));
    struct trace_pool *pools = xcalloc(t->n_pools, sizeof(*pools));
    for (unsigned i = 0; i < t->n_pools; i++)
        order[i] = (struct named){t->pools[i].name, i};
    xsort(order, t->n_pools, sizeof(*order), trace_by_name);
    for (unsigned i = 0; i < t->n_pools; i++) {
        now[order[i].was] = i;
        pools[i] = t->pools[order[i].was];
    }
    for (size_t i = 0; i < t->n; i++)
        t->rows[i].pool = now[t->rows[i].pool];
    free(t->pools);
    t->pools = pools;
    free(order);
    free(now);
}

static void sort_rows(struct trace *t)
{
    sort_pools(t);
    if (t->n) /* never empty */
        xsort(t->rows, t->n, sizeof(*t->rows), by_pool_and_time);
    for (size_t i = 0; i < t->n; i++) {
        struct trace_pool *p = &t->pools[t->rows[i].pool];
        if (!p->n)
            p->first = i;
        p->n++;
    }
}

int trace_parse(const char *name, const char *text, size_t len, struct trace *ret, struct err *err)
{
    static const unsigned char seed[16] = "a trace's pools"; /* at most 1000 of them */
    struct trace t = {0};
    struct reader r = {.name = name,
                       .p = text,
                       .end = text + len,
                       .line = 1,
                       .t = &t,
                       .pools = map_new(seed),
                       .err = err};
    int q = read_all(&r);
    map_free(r.pools);
    if (q < 0) {
        trace_release(&t);
        return q;
    }
    sort_rows(&t);
    *ret = t;
    return 0;
}

void trace_release(struct trace *t)
{
    for (size_t i = 0; i < t->n_pools; i++)
        free(t->pools[i].name);
    free(t->pools);
    free(t->rows);
    *t = (struct trace){0};
}

usec_t trace_start(const struct trace *t)
{
    usec_t first = t->n ? t->rows[0].submit : 0;
    for (size_t i = 0; i < t->n; i++)
        first = t->rows[i].submit < first ? t->rows[i].submit : first;
    return first;
}

usec_t trace_span(const struct trace *t)
{
    usec_t first = trace_start(t), last = first, longest = USEC_SEC;
    for (size_t i = 0; i < t->n; i++) {
        last = t->rows[i].submit > last ? t->rows[i].submit : last;
        longest = t->rows[i].duration > longest ? t->rows[i].duration : longest;
    }
    return last > first ? last - first : longest;
}
