/* SPDX-License-Identifier: Apache-2.0 */
/* remote_write.c - see remote_write.h.
 *
 *   WriteRequest { repeated TimeSeries 1 }    TimeSeries { repeated Label 1; repeated Sample 2 }
 *   Label { string name 1; string value 2 }   Sample { double value 1; int64 ms 2 }
 *
 * in one snappy block whose chunks are all literals: a page of some 100 kB each 15 s is not worth a
 * library that makes it smaller. */
#include "core/figure/remote_write.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/figure/promtext.h"

enum {
    WRITE_LABELS = PROMTEXT_LABELS_MAX + REMOTE_WRITE_LABELS + 1,
    WRITE_SERIES_MAX = 64 << 10, /* bytes of one: a line has PROMTEXT_LINE_MAX at most */
    PROTO_BYTES = 2,             /* wire types of protobuf */
    PROTO_DOUBLE = 1,
    SNAPPY_CHUNK = 65536,
    SNAPPY_LITERAL = 61 << 2, /* with a length of two bytes */
};

struct write_label {
    struct promtext_piece name, value;
    bool is_escaped; /* the value, as in a page */
};

/* ---- protobuf and snappy ---- */

static void write_varint(struct buf *b, uint64_t v)
{
    for (; v > 127; v >>= 7)
        (void)buf_addc(b, (char)(v | 128)); /* overflow: b->failed, here and below */
    (void)buf_addc(b, (char)v);
}

static void write_bytes(struct buf *b, unsigned field, const char *p, size_t n)
{
    write_varint(b, field << 3 | PROTO_BYTES);
    write_varint(b, n);
    (void)buf_add(b, p, n);
}

static void write_sample(struct buf *series, double value, int64_t ms)
{
    unsigned char bytes[8];
    uint64_t bits;
    struct buf b = BUF_INIT(32);
    memcpy(&bits, &value, sizeof(bits));
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(bits >> 8 * i);
    write_varint(&b, 1 << 3 | PROTO_DOUBLE);
    (void)buf_add(&b, bytes, sizeof(bytes));
    write_varint(&b, 2 << 3);
    write_varint(&b, (uint64_t)ms);
    write_bytes(series, 2, buf_str(&b), b.len);
    buf_release(&b);
}

static void write_snappy(struct buf *out, const char *p, size_t n)
{
    write_varint(out, n);
    for (size_t k; n; p += k, n -= k) {
        k = n < SNAPPY_CHUNK ? n : SNAPPY_CHUNK;
        const unsigned char head[] = {SNAPPY_LITERAL, (k - 1) & 255, (unsigned char)((k - 1) >> 8)};
        (void)buf_add(out, head, sizeof(head));
        (void)buf_add(out, p, k);
    }
}

/* ---- one series ---- */

static int write_piece_order(struct promtext_piece a, struct promtext_piece b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int order = n ? memcmp(a.p, b.p, n) : 0;
    return order ? order : (a.n > b.n) - (a.n < b.n);
}

static int write_label_order(const void *a, const void *b)
{
    const struct write_label *x = a, *y = b;
    return write_piece_order(x->name, y->name);
}

static void write_value(struct buf *b, const struct write_label *l)
{
    for (size_t i = 0; i < l->value.n; i++) {
        char c = l->value.p[i];
        if (l->is_escaped && c == '\\' && i + 1 < l->value.n)
            c = l->value.p[++i] == 'n' ? '\n' : l->value.p[i];
        (void)buf_addc(b, c);
    }
}

static void write_label(struct buf *series, const struct write_label *l)
{
    struct buf label = BUF_INIT(WRITE_SERIES_MAX), value = BUF_INIT(WRITE_SERIES_MAX);
    write_value(&value, l);
    write_bytes(&label, 1, l->name.p, l->name.n);
    write_bytes(&label, 2, buf_str(&value), value.len);
    if (value.len) /* an empty label is none */
        write_bytes(series, 1, buf_str(&label), label.len);
    series->failed |= label.failed || value.failed;
    buf_release(&label);
    buf_release(&value);
}

static struct promtext_piece write_piece(const char *text)
{
    return (struct promtext_piece){text, strlen(text)};
}

static bool write_is_given(const struct remote_write *of, struct promtext_piece name)
{
    for (size_t i = 0; i < of->n_labels; i++)
        if (promtext_piece_is(name, of->labels[i].name))
            return true;
    return false;
}

/* All labels of the sample, in order. 0: it has one twice. */
static size_t write_labels(const struct remote_write *of,
                           const struct promtext *t,
                           struct write_label *ret)
{
    size_t n = 0;
    ret[n++] = (struct write_label){write_piece("__name__"), t->name, false};
    for (size_t i = 0; i < of->n_labels && i < REMOTE_WRITE_LABELS; i++)
        ret[n++] = (struct write_label){write_piece(of->labels[i].name),
                                        write_piece(of->labels[i].value), false};
    for (size_t i = 0; i < t->n_labels; i++)
        if (!write_is_given(of, t->labels[i].key))
            ret[n++] = (struct write_label){t->labels[i].key, t->labels[i].value, true};
    qsort(ret, n, sizeof(*ret), write_label_order);
    for (size_t i = 1; i < n; i++)
        if (!write_label_order(&ret[i - 1], &ret[i]))
            return 0;
    return n;
}

static void write_series(const struct remote_write *of,
                         const struct promtext *t,
                         double value,
                         struct buf *request)
{
    struct write_label labels[WRITE_LABELS];
    struct buf series = BUF_INIT(WRITE_SERIES_MAX);
    size_t n = write_labels(of, t, labels);
    for (size_t i = 0; i < n; i++)
        write_label(&series, &labels[i]);
    write_sample(&series, value, of->at_ms);
    if (n && !series.failed)
        write_bytes(request, 1, buf_str(&series), series.len);
    buf_release(&series);
}

/* ---- what has gone ---- */

/* Its name and labels, as they stand in the page. */
static struct promtext_piece write_key(const struct promtext *t)
{
    const char *end = t->name.p + t->name.n;
    if (t->n_labels)
        end = t->labels[t->n_labels - 1].value.p + t->labels[t->n_labels - 1].value.n;
    return (struct promtext_piece){t->name.p, (size_t)(end - t->name.p)};
}

static int write_key_order(const void *a, const void *b)
{
    const struct promtext_piece *x = a, *y = b;
    return write_piece_order(*x, *y);
}

/* free() it. In order. */
static struct promtext_piece *write_keys(const char *page, size_t *ret_n)
{
    struct promtext t = promtext_begin(page, strlen(page));
    struct promtext_piece *v = NULL;
    size_t n = 0, room = 0;
    while (promtext_next(&t)) {
        if (n == room)
            v = xrealloc(v, room = room ? 2 * room : 256, sizeof(*v));
        v[n++] = write_key(&t);
    }
    if (n)
        qsort(v, n, sizeof(*v), write_key_order);
    *ret_n = n;
    return v;
}

/* Prometheus' own number for "no more samples": one of the many that are not a number. */
static double write_stale(void)
{
    const uint64_t bits = 0x7ff0000000000002;
    double value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

/* All of them or none. */
static void write_gone(const struct remote_write *of, struct buf *request)
{
    struct buf gone = BUF_INIT(request->max - request->len);
    size_t n;
    struct promtext_piece *now = write_keys(of->page, &n);
    struct promtext t = promtext_begin(of->before, strlen(of->before));
    while (promtext_next(&t)) {
        struct promtext_piece key = write_key(&t);
        if (!n || !bsearch(&key, now, n, sizeof(*now), write_key_order))
            write_series(of, &t, write_stale(), &gone);
    }
    if (!gone.failed)
        (void)buf_add(request, buf_str(&gone), gone.len); /* it has room for that much */
    buf_release(&gone);
    free(now);
}

int64_t remote_write_time(int64_t now_ms, int64_t last_ms)
{
    return now_ms > last_ms ? now_ms : last_ms + 1;
}

/* How long a request may be whose snappy block fits into n bytes. */
static size_t write_room(size_t n)
{
    size_t around = 10 + 3 * (n / SNAPPY_CHUNK + 1); /* its length, and the head of each chunk */
    return n > around ? n - around : 0;
}

int remote_write_body(const struct remote_write *of, struct buf *out, struct err *err)
{
    struct buf request = BUF_INIT(write_room(out->max - out->len));
    struct promtext t = promtext_begin(of->page, strlen(of->page));
    while (promtext_next(&t))
        write_series(of, &t, t.value, &request);
    if (of->before)
        write_gone(of, &request);
    write_snappy(out, buf_str(&request), request.len);
    out->failed |= request.failed;
    buf_release(&request);
    if (out->failed)
        return err_set(err, -EMSGSIZE, "the page has more than %zu bytes as a request", out->max);
    return 0;
}
