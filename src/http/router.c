/* SPDX-License-Identifier: Apache-2.0 */
/* router.c - finds the row of a method and path; see router.h. Rows are sorted once by number of
 * segments, then literals before names; a request looks at the rows of its own length only. Rows
 * of one pattern lie side by side, so that the first pattern that matches decides which methods
 * there are. Patterns that end in a star stand behind all others, the longest first. */
#include "http/router.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/text.h"

struct segment {
    const char *text; /* literal, or the name in "{name}" */
    size_t len;
    const char *verb; /* what follows "}" with its ':', "" if nothing */
    size_t verb_len;
    bool is_param;
};

struct row {
    const struct http_route *route;
    size_t n;     /* segments, without the star */
    bool is_tail; /* it ends in a star */
    struct segment segments[ROUTER_SEGMENTS_MAX];
};

struct router {
    struct row *rows;
    size_t n;
    size_t first[ROUTER_SEGMENTS_MAX + 2]; /* rows of k segments: [first[k], first[k + 1]); from the
                                              last on there are those with a star */
};

static int parse_segment(const char *s, size_t len, struct segment *ret)
{
    *ret = (struct segment){.text = s, .len = len, .verb = ""};
    if (!len || *s != '{')
        return len && !memchr(s, '}', len) && !memchr(s, '*', len) ? 0 : -EINVAL;
    const char *end = memchr(s, '}', len);
    if (!end || end == s + 1 || end - s > ROUTER_NAME_MAX)
        return -EINVAL;
    ret->is_param = true;
    ret->text = s + 1;
    ret->len = (size_t)(end - s) - 1;
    ret->verb = end + 1;
    ret->verb_len = (size_t)(s + len - end) - 1;
    return ret->verb_len && (*ret->verb != ':' || ret->verb_len < 2) ? -EINVAL : 0;
}

static bool is_star(const char *segment)
{
    return segment[0] == '*' && !segment[1];
}

static int parse_row(const struct http_route *route, struct row *ret, struct err *err)
{
    *ret = (struct row){.route = route};
    const char *p = route->pattern;
    size_t params = 0;
    bool good = p && *p == '/' && route->method && route->handle;
    while (good && *p == '/') {
        p++;
        size_t len = strcspn(p, "/");
        if (!len && !*p && !ret->n)
            break; /* "/" has no segments */
        ret->is_tail = is_star(p);
        if (ret->is_tail && ret->n)
            break; /* it is the last one, and not the only one */
        good = ret->n < ROUTER_SEGMENTS_MAX && parse_segment(p, len, &ret->segments[ret->n]) == 0;
        if (good)
            params += ret->segments[ret->n++].is_param;
        p += len;
    }
    if (!good || params > ROUTER_PARAMS_MAX)
        return err_set(err, ERR_USAGE, "bad row '%s %s' in the route table",
                       str_or(route->method, ""), str_or(route->pattern, ""));
    return 0;
}

/* Literals first, then names with a verb, then bare names; equal patterns side by side. */
static int compare_segments(const struct segment *a, const struct segment *b)
{
    int rank_a = a->is_param + (a->is_param && !a->verb_len);
    int rank_b = b->is_param + (b->is_param && !b->verb_len);
    if (rank_a != rank_b)
        return rank_a - rank_b;
    const char *text_a = a->is_param ? a->verb : a->text, *text_b = b->is_param ? b->verb : b->text;
    size_t n_a = a->is_param ? a->verb_len : a->len, n_b = b->is_param ? b->verb_len : b->len;
    int c = memcmp(text_a, text_b, n_a < n_b ? n_a : n_b);
    return c ? c : (n_a > n_b) - (n_a < n_b);
}

static int compare_patterns(const struct row *a, const struct row *b)
{
    if (a->is_tail != b->is_tail)
        return a->is_tail ? 1 : -1;
    if (a->n != b->n)
        return (a->n < b->n) != a->is_tail ? -1 : 1;
    for (size_t i = 0; i < a->n; i++) {
        int c = compare_segments(&a->segments[i], &b->segments[i]);
        if (c)
            return c;
    }
    return 0;
}

static int compare_rows(const void *a, const void *b)
{
    const struct row *x = a, *y = b;
    int c = compare_patterns(x, y);
    return c ? c : strcmp(x->route->method, y->route->method);
}

static int index_rows(struct router *r, struct err *err)
{
    xsort(r->rows, r->n, sizeof(*r->rows), compare_rows);
    for (size_t i = 1; i < r->n; i++)
        if (compare_rows(&r->rows[i - 1], &r->rows[i]) == 0)
            return err_set(err, ERR_USAGE, "row '%s %s' stands twice in the route table",
                           r->rows[i].route->method, r->rows[i].route->pattern);
    for (size_t k = 0, i = 0; k < array_len(r->first); k++) {
        while (i < r->n && !r->rows[i].is_tail && r->rows[i].n < k)
            i++;
        r->first[k] = i;
    }
    return 0;
}

int router_open(const struct http_route *routes, size_t n, struct router **ret, struct err *err)
{
    struct router *r = xcalloc(1, sizeof(*r));
    r->rows = xcalloc(n ? n : 1, sizeof(*r->rows));
    r->n = n;
    int e = 0;
    for (size_t i = 0; i < n && e == 0; i++)
        e = parse_row(&routes[i], &r->rows[i], err);
    if (e == 0)
        e = index_rows(r, err);
    if (e < 0) {
        router_free(r);
        return e;
    }
    *ret = r;
    return 0;
}

void router_free(struct router *r)
{
    if (!r)
        return;
    free(r->rows);
    free(r);
}

struct piece {
    const char *s;
    size_t len;
    const char *colon; /* the last ':' in it, or NULL */
};

/* The segments of a path; -1 if it has an empty one or too many. */
static int split_path(const char *path, struct piece pieces[static ROUTER_SEGMENTS_MAX])
{
    if (*path != '/')
        return -1;
    if (!path[1])
        return 0;
    int n = 0;
    while (*path == '/') {
        path++;
        size_t len = strcspn(path, "/");
        if (!len || n == ROUTER_SEGMENTS_MAX)
            return -1;
        pieces[n++] = (struct piece){path, len, memrchr(path, ':', len)};
        path += len;
    }
    return n;
}

static bool segment_matches(const struct segment *seg, const struct piece *p)
{
    assert(p->s); /* split_path() has filled as many as the row has */
    if (!seg->is_param)
        return seg->len == p->len && !memcmp(seg->text, p->s, p->len);
    if (!seg->verb_len)
        return !p->colon;
    size_t tail = p->colon ? (size_t)(p->s + p->len - p->colon) : 0;
    return tail == seg->verb_len && p->len > tail && !memcmp(p->colon, seg->verb, tail) &&
           !memchr(p->s, ':', p->len - tail);
}

static bool row_matches(const struct row *row, const struct piece *pieces)
{
    for (size_t i = 0; i < row->n; i++)
        if (!segment_matches(&row->segments[i], &pieces[i]))
            return false;
    return true;
}

/* The first segments fit, and a '/' follows them. */
static bool tail_matches(const struct row *row, const char *path, struct piece *pieces)
{
    for (size_t k = 0; k < row->n; k++) {
        size_t len = *path == '/' ? strcspn(path + 1, "/") : 0;
        if (!len)
            return false;
        pieces[k] = (struct piece){path + 1, len, memrchr(path + 1, ':', len)};
        path += len + 1;
    }
    return *path == '/' && row_matches(row, pieces);
}

/* The rows of the first pattern that matches: [*i, *end). False if there is none. */
static bool find_rows(const struct router *r,
                      const char *path,
                      struct piece *pieces,
                      size_t *i,
                      size_t *end)
{
    int n = split_path(path, pieces);
    size_t stop = n < 0 ? 0 : r->first[n + 1];
    for (*i = n < 0 ? 0 : r->first[n]; *i < stop; ++*i)
        if (row_matches(&r->rows[*i], pieces))
            break;
    if (*i >= stop) { /* what follows the star may be anything, also what is no path of ours */
        stop = r->n;
        for (*i = r->first[ROUTER_SEGMENTS_MAX + 1]; *i < stop; ++*i)
            if (tail_matches(&r->rows[*i], path, pieces))
                break;
    }
    *end = *i;
    while (*end < stop && compare_patterns(&r->rows[*i], &r->rows[*end]) == 0)
        ++*end;
    return *i < stop;
}

static void fill_params(const struct row *row, const struct piece *pieces, struct router_match *m)
{
    m->n_params = 0;
    m->tail = row->is_tail ? pieces[row->n - 1].s + pieces[row->n - 1].len : NULL;
    for (size_t i = 0; i < row->n; i++) {
        const struct segment *seg = &row->segments[i];
        if (!seg->is_param)
            continue;
        m->params[m->n_params++] = (struct router_param){.name = seg->text,
                                                         .name_len = seg->len,
                                                         .start = pieces[i].s,
                                                         .len = pieces[i].len - seg->verb_len};
    }
}

int router_find(const struct router *r,
                const char *method,
                const char *path,
                struct router_match *ret)
{
    struct piece pieces[ROUTER_SEGMENTS_MAX] = {0};
    size_t i, end;
    if (!find_rows(r, path, pieces, &i, &end))
        return ERR_NOT_FOUND;
    if (!strcmp(method, "HEAD"))
        method = "GET";
    for (; i < end; i++) {
        if (strcmp(r->rows[i].route->method, method) != 0)
            continue;
        ret->route = r->rows[i].route;
        fill_params(&r->rows[i], pieces, ret);
        return 0;
    }
    return ERR_METHOD;
}

const char *router_allow(const struct router *r,
                         const char *path,
                         char text[static ROUTER_ALLOW_MAX])
{
    struct piece pieces[ROUTER_SEGMENTS_MAX] = {0};
    size_t i, end;
    text[0] = 0;
    if (!find_rows(r, path, pieces, &i, &end))
        return text;
    _cleanup_(buf_release) struct buf out = BUF_INIT(ROUTER_ALLOW_MAX - sizeof("OPTIONS"));
    for (; i < end; i++) {
        buf_adds(&out, r->rows[i].route->method);
        buf_adds(&out, !strcmp(r->rows[i].route->method, "GET") ? ", HEAD, " : ", ");
    }
    text_printf_to(text, ROUTER_ALLOW_MAX, "%sOPTIONS", buf_str(&out));
    return text;
}
