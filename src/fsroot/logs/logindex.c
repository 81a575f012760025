/* SPDX-License-Identifier: Apache-2.0 */
/* logindex.c - skips the parts of a log that cannot match; see logindex.h.
 *
 * Only a record that excludes its part of the log moves the reader on; all else is read because
 * nothing says that it need not be. Where it stands in the index never goes back, and no call reads
 * more of it than some MiB: log and index are the job's, and as long as it likes. */
#define _GNU_SOURCE
#include "fsroot/logs/logindex.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "fsroot/logs/logindex_file.h"
#include "fsroot/logs/logread.h"
#include "fsroot/logs/trigrams.h"

enum {
    AHEAD = 64,             /* records of groups that the system is asked for in advance */
    LOOKS_MAX = 1024,       /* records that one call looks at */
    SILENT_MAX = 4096,      /* records in a row that say nothing: no more is looked at */
    NEEDED_BYTES = 8 << 20, /* of the log, before the index is asked what is behind them */
};

enum verdict {
    SILENT,   /* the record was never written, or only half of it */
    CHANGED,  /* the bytes of the log that it tells of are not there as they were */
    NEEDED,   /* there may be a line that matches, */
    EXCLUDED, /* or there is none */
};

struct wanted {
    uint32_t *v;
    size_t n;
};

struct logindex_ask {
    struct wanted *v; /* one of these */
    size_t n;
};

struct logindex {
    const struct logindex_ask *ask;
    int fd;
    uint32_t first;
    struct logread_file *files; /* of the log, as they were when it was opened */
    size_t n_files;
    uint64_t i, n;                 /* blocks: the next, all that there may be records of */
    uint64_t silent;               /* records in a row that said nothing */
    uint64_t group_of, blocks_of;  /* groups that these are of: */
    struct logindex_record *group; /* its record */
    uint8_t *blocks;               /* records of its blocks; NULL: none were needed yet */
    uint64_t ahead;                /* groups that the system was asked for */
};

/* ---- what is looked for ---- */

static void want(struct wanted *w, const char *text)
{
    size_t n = strlen(text);
    w->v = xrealloc(w->v, w->n + n - 2, sizeof(*w->v));
    trigrams_of(text, n, w->v + w->n);
    w->n += n - 2;
}

struct logindex_ask *logindex_ask_new(const struct grepneeds *needs)
{
    if (!needs->n)
        return NULL;
    struct logindex_ask *a = xcalloc(1, sizeof(*a));
    a->n = needs->n;
    a->v = xcalloc(needs->n, sizeof(*a->v));
    for (size_t i = 0; i < needs->n; i++)
        for (size_t j = 0; j < needs->v[i].n; j++)
            want(&a->v[i], needs->v[i].v[j]);
    return a;
}

void logindex_ask_free(struct logindex_ask *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < a->n; i++)
        free(a->v[i].v);
    free(a->v);
    free(a);
}

static bool has_all(const struct wanted *w, const uint8_t *filter, size_t n)
{
    for (size_t i = 0; i < w->n; i++)
        if (!trigrams_filter_has(filter, n, w->v[i]))
            return false;
    return true;
}

static bool may_have(const struct logindex_ask *a, const struct logindex_record *r, size_t n)
{
    for (size_t i = 0; i < a->n; i++)
        if (has_all(&a->v[i], r->filter, n - sizeof(*r)))
            return true;
    return false;
}

/* ---- opening ---- */

static uint64_t logindex_end_of(const struct logread_file *f, size_t n)
{
    return n ? f[n - 1].begin + f[n - 1].bytes : 0;
}

static bool read_first(const char *root,
                       const char *job,
                       int attempt,
                       const char *name,
                       uint32_t *ret)
{
    char text[LOGINDEX_FIRST];
    struct logread_part p;
    if (logread_at(root, job, attempt, name, 0, text, sizeof(text), &p, NULL) < 0 || p.offset ||
        p.n < sizeof(text))
        return false;
    *ret = crc32_add(0, text, sizeof(text));
    return true;
}

/* So many records of blocks there may be in a file of this size, and of a log that ends there. */
static uint64_t blocks_in(uint64_t size, uint64_t end)
{
    uint64_t groups = size / LOGINDEX_GROUP_BYTES, rest = size % LOGINDEX_GROUP_BYTES;
    uint64_t n =
        groups * LOGINDEX_GROUP +
        (rest > LOGINDEX_GROUP_RECORD ? (rest - LOGINDEX_GROUP_RECORD) / LOGINDEX_BLOCK_RECORD : 0);
    return n < end / LOGINDEX_BLOCK + 1 ? n : end / LOGINDEX_BLOCK + 1;
}

struct logindex *logindex_open(const char *root,
                               const char *job,
                               int attempt,
                               const char *name,
                               const struct logindex_ask *ask)
{
    struct logread_file *files = NULL;
    struct stat st;
    size_t n = 0;
    uint32_t first = 0;
    int fd = -1;
    if (logread_files(root, job, attempt, name, &files, &n, NULL) == 0 &&
        logindex_end_of(files, n) >= LOGINDEX_LEAST)
        fd = logread_open_beside(root, job, attempt, name, LOGINDEX_SUFFIX);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
        !read_first(root, job, attempt, name, &first)) {
        free(files);
        closep(&fd);
        return NULL;
    }
    struct logindex *x = xcalloc(1, sizeof(*x));
    *x = (struct logindex){.ask = ask,
                           .fd = fd,
                           .first = first,
                           .files = files,
                           .n_files = n,
                           .n = blocks_in((uint64_t)st.st_size, logindex_end_of(files, n)),
                           .group_of = UINT64_MAX,
                           .blocks_of = UINT64_MAX,
                           .group = xcalloc(1, LOGINDEX_GROUP_RECORD)};
    (void)posix_fadvise(x->fd, 0, 0, POSIX_FADV_RANDOM); /* only speed */
    return x;
}

void logindex_close(struct logindex *x)
{
    if (!x)
        return;
    closep(&x->fd);
    free(x->files);
    free(x->group);
    free(x->blocks);
    free(x);
}

/* ---- records ---- */

/* All of it is in one file of the log: nothing was put between, nothing is lost. */
static bool is_in_one_file(const struct logindex *x, uint64_t begin, uint64_t end)
{
    for (size_t i = 0; i < x->n_files; i++) {
        const struct logread_file *f = &x->files[i];
        uint64_t stop = f->begin + f->bytes;
        if (i + 1 < x->n_files && stop > f[1].begin)
            stop = f[1].begin;
        if (begin >= f->begin && end <= stop)
            return true;
    }
    return false;
}

static enum verdict logindex_judge(const struct logindex *x,
                                   const struct logindex_record *r,
                                   size_t n)
{
    uint64_t kind = n == LOGINDEX_GROUP_RECORD ? LOGINDEX_IS_GROUP : 0;
    if (r->magic != LOGINDEX_MAGIC || r->flags != kind || r->first != x->first ||
        r->begin >= r->end || r->crc != logindex_crc(r, n))
        return SILENT;
    if (!is_in_one_file(x, r->begin, r->end))
        return CHANGED;
    return may_have(x->ask, r, n) ? NEEDED : EXCLUDED;
}

static void ask_ahead(struct logindex *x, uint64_t group)
{
    if (group < x->ahead)
        return;
    x->ahead = group + AHEAD;
    for (uint64_t i = group; i < x->ahead && i * LOGINDEX_GROUP < x->n; i++)
        (void)posix_fadvise(x->fd, (off_t)logindex_group_place(i), LOGINDEX_GROUP_RECORD,
                            POSIX_FADV_WILLNEED); /* only speed */
}

/* What cannot be read is zeros, which say nothing. */
static void read_records(const struct logindex *x, uint64_t place, void *to, size_t n)
{
    size_t got = 0;
    (void)file_read_at(x->fd, place, to, n, &got); /* got tells */
    memset((char *)to + got, 0, n - got);
}

static const struct logindex_record *group_record(struct logindex *x, uint64_t group)
{
    if (x->group_of != group) {
        ask_ahead(x, group);
        read_records(x, logindex_group_place(group), x->group, LOGINDEX_GROUP_RECORD);
        x->group_of = group;
    }
    return x->group;
}

static const struct logindex_record *block_record(struct logindex *x, uint64_t block)
{
    uint64_t group = block / LOGINDEX_GROUP;
    size_t n = (size_t)LOGINDEX_GROUP * LOGINDEX_BLOCK_RECORD;
    if (x->blocks_of != group) {
        x->blocks = x->blocks ? x->blocks : xmalloc(n);
        read_records(x, logindex_block_place(group * LOGINDEX_GROUP), x->blocks, n);
        x->blocks_of = group;
    }
    const void *r = x->blocks + block % LOGINDEX_GROUP * LOGINDEX_BLOCK_RECORD;
    return r;
}

/* The next record, of a whole group where that says all that there is to say from `at` on. */
static const struct logindex_record *next_record(struct logindex *x,
                                                 uint64_t at,
                                                 enum verdict *ret,
                                                 uint64_t *ret_blocks)
{
    *ret_blocks = LOGINDEX_GROUP;
    if (x->i % LOGINDEX_GROUP == 0) {
        const struct logindex_record *g = group_record(x, x->i / LOGINDEX_GROUP);
        *ret = logindex_judge(x, g, LOGINDEX_GROUP_RECORD);
        if (*ret == EXCLUDED || (*ret != SILENT && g->end <= at))
            return g;
    }
    *ret_blocks = 1;
    const struct logindex_record *b = block_record(x, x->i);
    *ret = logindex_judge(x, b, LOGINDEX_BLOCK_RECORD);
    x->silent = *ret == SILENT ? x->silent + 1 : 0;
    return b;
}

void logindex_next(struct logindex *x, uint64_t offset, uint64_t *ret_begin, uint64_t *ret_end)
{
    uint64_t at = offset, blocks = 0;
    int looks = 0;
    *ret_end = UINT64_MAX;
    for (; x->i < x->n && x->silent < SILENT_MAX; x->i += blocks) {
        enum verdict v = SILENT;
        if (looks++ == LOOKS_MAX) {
            *ret_end = at;
            break;
        }
        const struct logindex_record *r = next_record(x, at, &v, &blocks);
        if (v == SILENT || v == CHANGED || r->end <= at)
            continue;
        if (r->begin > at && (v == EXCLUDED || r->begin - at > NEEDED_BYTES)) {
            *ret_end = r->begin; /* nothing excludes the bytes before it */
            break;
        }
        if (v == EXCLUDED)
            at = r->end;
    }
    *ret_begin = at;
}
