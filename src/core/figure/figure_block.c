/* SPDX-License-Identifier: Apache-2.0 */
/* figure_block.c - records of figures; see figure_block.h.
 *
 *   u32 length · u32 CRC · [kind, number of GPUs, begins anew] · slot · tokens
 *
 * A token is a variable-length number whose two lowest bits say what the rest is: a difference
 * (zigzag), a run of values that stay, or a run of values that nobody told; a reader refuses the
 * fourth, which is free. The two u32 are little-endian.
 *
 * The kind says which figures there are. Files of before the RDMA figures have the node's first
 * OLD_NODE_FIGURES alone; they are read, and never written. */
#include "core/figure/figure_block.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest/crc.h"

enum token { TOKEN_CHANGE, TOKEN_SAME, TOKEN_UNTOLD };
enum { HEAD_BYTES = 8, ROLL_PARTS = 4 };
enum { KIND_SAMPLES = 'S', KIND_ROLLUP = 'R', OLD_SAMPLES = 's', OLD_ROLLUP = 'r' };
enum { OLD_NODE_FIGURES = 12 };

/* ---- tokens ---- */

static void block_number(struct buf *out, uint64_t v)
{
    for (; v >= 0x80; v >>= 7)
        (void)buf_addc(out, (char)(v | 0x80)); /* out->failed tells */
    (void)buf_addc(out, (char)v);
}

struct block_writer {
    struct buf *out;
    enum token kind; /* of the run that is open */
    uint64_t run;
};

static void block_end_run(struct block_writer *w)
{
    if (w->run)
        block_number(w->out, w->run << 2 | w->kind);
    w->run = 0;
}

static void block_run(struct block_writer *w, enum token kind)
{
    if (w->kind != kind)
        block_end_run(w);
    w->kind = kind;
    w->run++;
}

/* v beside *last, which it becomes; what nobody told changes nothing. */
static void block_put(struct block_writer *w, int32_t v, int32_t *last)
{
    int64_t d = (int64_t)v - *last;
    if (v == FIGURE_UNTOLD) {
        block_run(w, TOKEN_UNTOLD);
        return;
    }
    *last = v;
    if (!d) {
        block_run(w, TOKEN_SAME);
        return;
    }
    block_end_run(w);
    block_number(w->out, ((uint64_t)d << 1 ^ (uint64_t)(d >> 63)) << 2 | TOKEN_CHANGE);
}

struct block_reader {
    const unsigned char *p, *end;
    enum token kind;
    uint64_t run;
    bool is_old; /* of before the RDMA figures */
    bool is_bad;
};

static uint64_t block_take(struct block_reader *r)
{
    uint64_t v = 0;
    for (int shift = 0; shift < 63 && r->p < r->end; shift += 7) {
        unsigned char c = *r->p++;
        v |= (uint64_t)(c & 0x7f) << shift;
        if (c < 0x80)
            return v;
    }
    r->is_bad = true;
    return 0;
}

static int32_t block_change(struct block_reader *r, uint64_t coded, int32_t *last)
{
    int64_t d = (int64_t)(coded >> 1) ^ -(int64_t)(coded & 1);
    int64_t v = d + *last;
    if (d > UINT32_MAX || d < -(int64_t)UINT32_MAX || v > INT32_MAX || v <= INT32_MIN)
        r->is_bad = true;
    else
        *last = (int32_t)v;
    return *last;
}

static int32_t block_get(struct block_reader *r, int32_t *last)
{
    if (!r->run) {
        uint64_t token = block_take(r);
        r->kind = (enum token)(token & 3);
        if (r->kind == TOKEN_CHANGE)
            return block_change(r, token >> 2, last);
        r->run = token >> 2;
        r->is_bad |= r->kind > TOKEN_UNTOLD || !r->run;
    }
    if (r->is_bad)
        return FIGURE_UNTOLD;
    r->run--;
    return r->kind == TOKEN_SAME ? *last : FIGURE_UNTOLD;
}

/* The next value of a column; one that the record does not have was not told. */
static int32_t block_get_of(struct block_reader *r, size_t column, int32_t *last)
{
    bool has = !r->is_old || column < OLD_NODE_FIGURES || column >= FIGURE_NODE_FIGURES;
    return has ? block_get(r, last) : FIGURE_UNTOLD;
}

/* ---- records ---- */

static void block_begin(struct figure_before *before, int n_gpus)
{
    size_t columns = figure_columns(n_gpus);
    before->is_begun = true;
    before->n_gpus = n_gpus;
    before->last = xrealloc(before->last, columns, sizeof(*before->last));
    memset(before->last, 0, columns * sizeof(*before->last));
}

void figure_before_release(struct figure_before *before)
{
    free(before->last);
    *before = (struct figure_before){0};
}

static void block_u32(unsigned char *to, uint32_t v)
{
    for (int i = 0; i < 4; i++)
        to[i] = (unsigned char)(v >> 8 * i);
}

static uint32_t block_from_u32(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* A rollup has its means first: they stay or change a little; what is around them is mostly 0. */
static int32_t *block_roll_part(struct figure_roll *roll, int part)
{
    int32_t *parts[ROLL_PARTS] = {&roll->mean, &roll->max, &roll->min, &roll->n};
    return parts[part];
}

static void block_put_rolls(struct block_writer *w,
                            const struct figure_record *r,
                            struct figure_before *before)
{
    size_t columns = figure_columns(r->n_gpus);
    int32_t count = FIGURE_ROLL;
    for (int part = 0; part < ROLL_PARTS; part++)
        for (size_t c = 0; c < columns; c++) {
            struct figure_roll roll = r->rolls[c];
            int32_t v = *block_roll_part(&roll, part), mean = roll.mean;
            if (!roll.n)
                block_run(w, TOKEN_UNTOLD);
            else
                block_put(w, v, part == 0 ? &before->last[c] : part == 3 ? &count : &mean);
        }
}

int figure_record_put(const struct figure_record *r, struct figure_before *before, struct buf *out)
{
    size_t from = out->len, columns = figure_columns(r->n_gpus);
    static const char head[HEAD_BYTES];
    bool anew = !before->is_begun || before->n_gpus != r->n_gpus;
    if (anew)
        block_begin(before, r->n_gpus);
    (void)buf_add(out, head, sizeof(head)); /* out->failed tells */
    (void)buf_addc(out, r->is_rollup ? KIND_ROLLUP : KIND_SAMPLES);
    (void)buf_addc(out, (char)r->n_gpus);
    (void)buf_addc(out, (char)anew);
    block_number(out, (uint64_t)r->slot);
    struct block_writer w = {.out = out};
    if (r->is_rollup)
        block_put_rolls(&w, r, before);
    else
        for (size_t c = 0; c < columns; c++)
            for (int i = 0; i < FIGURE_ROLL; i++)
                block_put(&w, r->samples[c][i], &before->last[c]);
    block_end_run(&w);
    if (out->failed) {
        before->is_begun = false;
        return -EMSGSIZE;
    }
    unsigned char *p = (unsigned char *)out->data + from;
    size_t n = out->len - from - HEAD_BYTES;
    block_u32(p, (uint32_t)n);
    block_u32(p + 4, crc32_add(0, p + HEAD_BYTES, n));
    return 0;
}

static void block_get_rolls(struct block_reader *b,
                            struct figure_record *ret,
                            struct figure_before *before)
{
    size_t columns = figure_columns(ret->n_gpus);
    int32_t count = FIGURE_ROLL;
    for (int part = 0; part < ROLL_PARTS; part++)
        for (size_t c = 0; c < columns; c++) {
            int32_t mean = part ? ret->rolls[c].mean : 0;
            int32_t *last = part == 0 ? &before->last[c] : part == 3 ? &count : &mean;
            int32_t v = block_get_of(b, c, last);
            *block_roll_part(&ret->rolls[c], part) = v == FIGURE_UNTOLD && part == 3 ? 0 : v;
        }
}

/* False: it is none of ours. */
static bool block_take_kind(struct block_reader *b, bool *ret_is_rollup)
{
    int kind = *b->p++;
    b->is_old = kind == OLD_SAMPLES || kind == OLD_ROLLUP;
    *ret_is_rollup = kind == KIND_ROLLUP || kind == OLD_ROLLUP;
    return b->is_old || *ret_is_rollup || kind == KIND_SAMPLES;
}

static int block_read(struct block_reader *b,
                      struct figure_before *before,
                      struct figure_record *ret)
{
    bool is_rollup;
    if (b->end - b->p < 3 || !block_take_kind(b, &is_rollup))
        return -EBADMSG;
    int n_gpus = *b->p++;
    bool anew = *b->p++;
    if (n_gpus > FIGURE_GPUS_MAX || (!anew && (!before->is_begun || before->n_gpus != n_gpus)))
        return -EBADMSG;
    if (anew)
        block_begin(before, n_gpus);
    ret->is_rollup = is_rollup;
    ret->n_gpus = n_gpus;
    ret->slot = (int64_t)block_take(b);
    if (ret->is_rollup)
        block_get_rolls(b, ret, before);
    else
        for (size_t c = 0; c < figure_columns(n_gpus); c++)
            for (int i = 0; i < FIGURE_ROLL; i++)
                ret->samples[c][i] = block_get_of(b, c, &before->last[c]);
    return b->is_bad || b->run || b->p != b->end ? -EBADMSG : 1;
}

int figure_record_get(const unsigned char *p,
                      size_t n,
                      size_t *at,
                      struct figure_before *before,
                      struct figure_record *ret)
{
    size_t left = n - *at;
    if (!left)
        return 0;
    if (left < HEAD_BYTES)
        return -EBADMSG;
    const unsigned char *from = p + *at;
    uint32_t length = block_from_u32(from);
    if (length > FIGURE_RECORD_MAX || length > left - HEAD_BYTES ||
        crc32_add(0, from + HEAD_BYTES, length) != block_from_u32(from + 4))
        return -EBADMSG;
    struct block_reader b = {.p = from + HEAD_BYTES, .end = from + HEAD_BYTES + length};
    int r = block_read(&b, before, ret);
    if (r > 0)
        *at += HEAD_BYTES + length;
    return r;
}

struct figure_roll figure_roll_of(const int32_t *v, size_t n)
{
    struct figure_roll roll = {FIGURE_UNTOLD, FIGURE_UNTOLD, FIGURE_UNTOLD, 0};
    int64_t sum = 0;
    for (size_t i = 0; i < n; i++) {
        if (v[i] == FIGURE_UNTOLD)
            continue;
        roll.max = !roll.n || v[i] > roll.max ? v[i] : roll.max;
        roll.min = !roll.n || v[i] < roll.min ? v[i] : roll.min;
        sum += v[i];
        roll.n++;
    }
    if (roll.n)
        roll.mean = (int32_t)((sum + (sum < 0 ? -roll.n : roll.n) / 2) / roll.n);
    return roll;
}
