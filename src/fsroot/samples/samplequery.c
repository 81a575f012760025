/* SPDX-License-Identifier: Apache-2.0 */
/* samplequery.c - see samplequery.h. Of a step the index says which samples and in which order;
 * only the lines that are told, or searched, are read. */
#include "fsroot/samples/samplequery.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

/* ---- which samples of a step ---- */

static bool samplequery_wants(const struct samplequery *q, const struct sample_place *p)
{
    if (q->has_prompt && p->prompt != q->prompt && p->group != q->prompt)
        return false;
    if (isnan(q->least) && isnan(q->most))
        return true;
    return !isnan(p->score) && !(p->score < q->least) && !(p->score > q->most);
}

/* Those that are asked for, in their order; how many, and *ret is yours. */
static size_t samplequery_select(struct samplequery *q,
                                 const struct sampleindex_dump *d,
                                 struct sample_place **ret)
{
    struct sample_place *v = NULL, *before = NULL;
    const struct sampleindex_dump *since = NULL;
    size_t n = 0;
    if (sampleindex_places(q->index, d, &v, NULL) < 0) {
        q->changed++;
        return 0;
    }
    if (q->order == SAMPLE_CHANGED)
        since = sampleindex_find(q->index, q->kind, q->since);
    if (since && sampleindex_places(q->index, since, &before, NULL) == 0)
        sample_order_compare(v, d->n, before, since->n);
    free(before);
    for (size_t i = 0; i < d->n; i++)
        if (samplequery_wants(q, &v[i]))
            v[n++] = v[i];
    *ret = v;
    return sample_order_sort(q->order, v, n);
}

/* ---- their lines ---- */

struct samplequery_lines {
    struct samplequery *q;
    int fd;
    size_t n; /* samples of the step that are asked for */
    struct buf raw, masked, text;
};

/* The line in `raw`, without what is secret. False: it cannot be read. */
static bool samplequery_line(struct samplequery_lines *l,
                             const struct sample_place *p,
                             struct sample *ret)
{
    size_t got = 0;
    buf_reset(&l->raw);
    buf_reset(&l->masked);
    char *room = buf_room(&l->raw, p->bytes);
    if (!room || file_read_at(l->fd, p->offset, room, p->bytes, &got) < 0 || got != p->bytes)
        return false;
    buf_wrote(&l->raw, got);
    const struct buf *line = &l->raw;
    if (l->q->mask && l->q->mask->values.n) {
        mask_json(l->q->mask, buf_str(&l->raw), &l->masked);
        line = &l->masked;
    }
    return !line->failed && sample_read(buf_str(line), line->len, ret);
}

static bool samplequery_text_matches(struct samplequery_lines *l, struct sample_value v)
{
    buf_reset(&l->text);
    sample_text(v, &l->text);
    const char *text = buf_str(&l->text), *end = text + l->text.len;
    while (text < end) { /* line by line, as everywhere */
        const char *eol = memchr(text, '\n', (size_t)(end - text));
        const char *stop = eol ? eol : end;
        if (loggrep_matches(l->q->grep, text, (size_t)(stop - text)))
            return true;
        text = stop + 1;
    }
    return false;
}

/* False: it is not told, or cannot be read. */
static bool samplequery_fits(struct samplequery_lines *l,
                             const struct sample_place *p,
                             struct sample *ret)
{
    return samplequery_line(l, p, ret) &&
           (!l->q->grep || samplequery_text_matches(l, ret->output) ||
            samplequery_text_matches(l, ret->input));
}

/* False: the page is at its end; q->at is the next rank. */
static bool samplequery_tell(struct samplequery_lines *l,
                             const struct sampleindex_dump *d,
                             const struct sample_place *v)
{
    struct samplequery *q = l->q;
    for (const uint64_t first = q->at; q->at < l->n; q->at++) {
        struct sample s;
        const struct samplequery_hit hit = {d->file.step, q->at, &v[q->at], &s};
        if (q->at > first && q->is_late(q->arg))
            return false;
        if (!samplequery_fits(l, hit.place, &s)) {
            if (q->at > first && q->is_late(q->arg))
                return false; /* perhaps there was no time to find it: once more in the next page */
            continue;
        }
        if (!q->each(&hit, q->arg)) {
            q->at++;
            return false;
        }
    }
    return true;
}

/* ---- the steps ---- */

static bool samplequery_step(struct samplequery_lines *l, const struct sampleindex_dump *d)
{
    struct sample_place *v = NULL;
    bool goes_on = true;
    l->n = samplequery_select(l->q, d, &v);
    if (l->n) {
        l->fd = sampledump_open(l->q->root, l->q->job, &d->file, NULL);
        l->q->changed += l->fd < 0;
        goes_on = l->fd < 0 || samplequery_tell(l, d, v);
        closep(&l->fd);
        l->fd = -1;
    }
    free(v);
    return goes_on;
}

/* The first step of the page, and how many are looked at from there on. */
static size_t samplequery_first(const struct samplequery *q, size_t *ret_end)
{
    const struct sampleindex *x = q->index;
    size_t first = 0, end;
    while (first < x->n && x->v[first].file.kind != (int)q->kind)
        first++;
    for (end = first; end < x->n && x->v[end].file.kind == (int)q->kind;)
        end++;
    int64_t wanted = q->at_step >= 0 ? q->at_step : q->step;
    while (wanted >= 0 && first < end && x->v[first].file.step > wanted)
        first++;
    if (q->step >= 0 && first < end && x->v[first].file.step != q->step)
        end = first;
    else if (!q->all_steps && first < end)
        end = first + 1;
    *ret_end = end;
    return first;
}

void samplequery_run(struct samplequery *q)
{
    struct samplequery_lines l = {.q = q,
                                  .fd = -1,
                                  .raw = BUF_INIT(SAMPLE_LINE_MAX),
                                  .masked = BUF_INIT(2 * SAMPLE_LINE_MAX),
                                  .text = BUF_INIT(2 * SAMPLE_LINE_MAX)};
    size_t end, i = samplequery_first(q, &end);
    if (i < end && q->at_step >= 0 && q->index->v[i].file.step != q->at_step)
        q->at = 0; /* that step has gone meanwhile */
    q->has_more = false;
    if (q->grep)
        loggrep_until(q->grep, q->is_late, q->arg);
    for (const size_t first = i; i < end; i++, q->at = 0) {
        q->at_step = q->index->v[i].file.step;
        q->has_more = i > first && q->is_late(q->arg);
        if (q->has_more)
            break;
        if (samplequery_step(&l, &q->index->v[i]))
            continue;
        bool is_over = q->at >= l.n;
        q->has_more = !is_over || i + 1 < end;
        if (!is_over || i + 1 == end)
            break;
        q->at_step = q->index->v[i + 1].file.step;
        q->at = 0;
        break;
    }
    buf_release(&l.raw);
    buf_release(&l.masked);
    buf_release(&l.text);
}
