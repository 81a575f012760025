/* SPDX-License-Identifier: Apache-2.0 */
/* samplefigures.c - see samplefigures.h. The index is opened anew once its file has another size or
 * is another file. */
#include "fsroot/samples/samplefigures.h"

#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/sample/sample_figures.h"
#include "fsroot/samples/sampleindex.h"

enum {
    BEFORE = 2,            /* steps whose prompts are known */
    SAMPLES_MAX = 1 << 17, /* of a step; of more only the sums of the index are told */
};

struct samplefigures {
    char *path;
    struct sampleindex index;
    bool is_open;
    uint64_t inode, bytes; /* as it was opened last */
    int64_t newest;        /* step of training that it had then */
    int64_t after, next;   /* the first step behind this one is that one, as far as it had */
};

struct samplefigures *samplefigures_new(const char *path)
{
    struct samplefigures *f = xcalloc(1, sizeof(*f));
    *f = (struct samplefigures){.path = xstrdup(path), .index = SAMPLEINDEX_NONE, .after = -1};
    return f;
}

void samplefigures_free(struct samplefigures *f)
{
    if (!f)
        return;
    sampleindex_release(&f->index);
    free(f->path);
    free(f);
}

/* Nothing of it stays in memory between two passes but what it had. */
static void samplefigures_let_go(struct samplefigures *f)
{
    sampleindex_release(&f->index);
    f->is_open = false;
}

static bool samplefigures_look(const struct samplefigures *f, struct stat *ret)
{
    return lstat(f->path, ret) == 0;
}

/* A writer takes the newest dump first: while it is at it the index has gaps. Below 0: there is no
 * index. */
static int samplefigures_lock(const struct samplefigures *f, bool *ret_has_writer)
{
    int lock = open(f->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    *ret_has_writer = lock >= 0 && flock(lock, LOCK_SH | LOCK_NB) < 0;
    return lock;
}

/* False: there is no index, or nothing of these steps is in it. */
static bool samplefigures_open(struct samplefigures *f, int64_t after, int64_t last)
{
    struct stat st;
    bool has_writer;
    if (!samplefigures_look(f, &st))
        return false;
    bool is_same = (uint64_t)st.st_ino == f->inode && (uint64_t)st.st_size == f->bytes;
    bool is_told = f->after == after && f->next > last;
    if (is_same && (f->newest <= after || is_told))
        return false;
    if (is_same && f->is_open)
        return true;
    samplefigures_let_go(f);
    _cleanup_(closep) int lock = samplefigures_lock(f, &has_writer);
    if (lock < 0 || has_writer || sampleindex_open(f->path, &f->index, NULL) < 0)
        return false;
    const struct sampleindex *x = &f->index;
    f->is_open = true;
    f->inode = (uint64_t)st.st_ino;
    f->bytes = (uint64_t)st.st_size;
    f->newest = x->n && x->v[0].file.kind == SAMPLE_ROLLOUT ? x->v[0].file.step : -1;
    return f->newest > after;
}

/* The place of the first step behind `after` among those of training, which stand first, the newest
 * before the older ones; false: there is none. */
static bool samplefigures_find(const struct sampleindex *x, int64_t after, size_t *ret)
{
    size_t low = 0, high = x->n; /* before low: behind `after` */
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (x->v[mid].file.kind == SAMPLE_ROLLOUT && x->v[mid].file.step > after)
            low = mid + 1;
        else
            high = mid;
    }
    *ret = low - 1;
    return low > 0;
}

/* The greatest score up to this dump; NaN where all that was seen is the same. */
static double samplefigures_best(const struct sampleindex *x, size_t at)
{
    double least = NAN, most = NAN;
    for (size_t i = at; i < x->n && x->v[i].file.kind == SAMPLE_ROLLOUT; i++) {
        least = fmin(least, x->v[i].sum.least);
        most = fmax(most, x->v[i].sum.most);
    }
    return most > least ? most : (double)NAN;
}

/* The samples of the dumps from here on, `count` at most. */
static size_t samplefigures_places(const struct sampleindex *x,
                                   size_t from,
                                   size_t count,
                                   struct sample_place **ret)
{
    struct sample_place *all = NULL;
    size_t n = 0;
    for (size_t i = from; i < x->n && i < from + count; i++) {
        const struct sampleindex_dump *d = &x->v[i];
        struct sample_place *v = NULL;
        if (d->file.kind != SAMPLE_ROLLOUT || d->n > SAMPLES_MAX || !d->n ||
            sampleindex_places(x, d, &v, NULL) < 0)
            continue;
        all = xrealloc(all, n + (size_t)d->n, sizeof(*all));
        memcpy(all + n, v, (size_t)d->n * sizeof(*v));
        n += (size_t)d->n;
        free(v);
    }
    *ret = all;
    return n;
}

static void samplefigures_add(struct metric_record *r, enum sample_figure f, double value)
{
    if (isfinite(value))
        r->v[r->n++] = (struct metric_value){xstrdup(sample_figure_names[f]), value};
}

bool samplefigures_next(struct samplefigures *f,
                        int64_t after,
                        int64_t last,
                        struct metric_record *ret)
{
    size_t at;
    double figures[SAMPLE_FIGURES];
    if (!samplefigures_open(f, after, last) || !samplefigures_find(&f->index, after, &at)) {
        samplefigures_let_go(f);
        return false;
    }
    f->after = after;
    f->next = f->index.v[at].file.step;
    if (f->next > last) {
        samplefigures_let_go(f);
        return false;
    }
    const struct sampleindex_dump *d = &f->index.v[at];
    _cleanup_(freep) struct sample_place *v = NULL, *before = NULL;
    size_t n = samplefigures_places(&f->index, at, 1, &v);
    size_t n_before = n ? samplefigures_places(&f->index, at + 1, BEFORE, &before) : 0;
    sample_figures(v, n, samplefigures_best(&f->index, at), before, n_before, figures);
    if (!n && d->sum.groups)
        figures[SAMPLE_FLAT] = (double)d->sum.flat / (double)d->sum.groups;
    *ret =
        (struct metric_record){.step = d->file.step, .v = xcalloc(SAMPLE_FIGURES, sizeof(*ret->v))};
    for (size_t i = 0; i < SAMPLE_FIGURES; i++)
        samplefigures_add(ret, (enum sample_figure)i, figures[i]);
    return true;
}

/* ---- samples to look at ---- */

uint64_t samplefigures_stamp(const struct samplefigures *f)
{
    struct stat st;
    if (!samplefigures_look(f, &st))
        return 0;
    return ((uint64_t)st.st_ino << 40 ^ (uint64_t)st.st_size << 1) | 1;
}

void samplefigures_pick(const struct samplefigures *f,
                        enum sample_pick_by by,
                        const char *job,
                        int64_t step,
                        struct sample_picks *ret)
{
    struct sampleindex x = SAMPLEINDEX_NONE;
    _cleanup_(freep) struct sample_place *v = NULL;
    size_t at = 0, n;
    bool has_writer;
    _cleanup_(closep) int lock = samplefigures_lock(f, &has_writer);
    ret->n = 0;
    ret->is_last = false;
    if (lock < 0 || sampleindex_open(f->path, &x, NULL) < 0) {
        ret->stamp = 0;
        return;
    }
    /* What a writer has added by now is whole: an event is told once and does not wait for him. */
    ret->is_last =
        !has_writer && x.n && x.v[0].file.kind == SAMPLE_ROLLOUT && x.v[0].file.step >= step;
    while (at < x.n && x.v[at].file.kind == SAMPLE_ROLLOUT && x.v[at].file.step > step)
        at++;
    n = samplefigures_places(&x, at, 1, &v);
    if (n)
        sample_pick(by, job, x.v[at].file.step, v, n, ret);
    sampleindex_release(&x);
}
