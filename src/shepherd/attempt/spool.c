/* SPDX-License-Identifier: Apache-2.0 */
/* spool.c - a ring in memory and a ring in a file behind it; see spool.h.
 *
 * While the file holds anything all that comes goes there, so that the order stays: memory is
 * older than the file, always. A place in either ring is a count since the beginning. */
#define _GNU_SOURCE
#include "shepherd/attempt/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"

enum { PIECE = 1 << 20 };

struct ring {
    uint64_t from, to; /* bytes [from, to) are in it */
    uint64_t max;
    uint64_t now_max; /* 0 while its disk is full: what is read of a file stays on the disk */
};

struct spool {
    struct ring memory, file;
    char *bytes; /* of memory */
    char *dir;
    int fd;      /* -1: no file */
    char *piece; /* what was read of the file, and how much of that is not removed */
    size_t piece_from, piece_n;
    char trouble[256];
};

struct spool *spool_new(size_t memory, uint64_t file_max, const char *dir)
{
    struct spool *s = xcalloc(1, sizeof(*s));
    s->memory = (struct ring){.max = memory, .now_max = memory};
    s->file = (struct ring){.max = file_max, .now_max = file_max};
    s->bytes = xmalloc(memory);
    s->dir = xstrdup(dir);
    s->fd = -1;
    return s;
}

void spool_free(struct spool *s)
{
    if (!s)
        return;
    closep(&s->fd);
    free(s->bytes);
    free(s->dir);
    free(s->piece);
    free(s);
}

static uint64_t held(const struct ring *r)
{
    return r->to - r->from;
}

/* How many of n bytes at this place lie together. */
static size_t together(const struct ring *r, uint64_t place, uint64_t n)
{
    uint64_t left = r->max - place % r->max;
    return (size_t)(n < left ? n : left);
}

static uint64_t spool_room(const struct ring *r)
{
    return r->now_max > held(r) ? r->now_max - held(r) : 0;
}

static bool is_filing(const struct spool *s)
{
    return held(&s->file) || s->piece_n;
}

/* ---- the file ---- */

static int file_open(struct spool *s)
{
    if (s->fd >= 0)
        return 0;
    s->fd = open(s->dir, O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    if (s->fd >= 0)
        return 0;
    _cleanup_(freep) char *name = xasprintf("%s/argus-spool-XXXXXX", s->dir);
    s->fd = mkostemp(name, O_CLOEXEC); /* where files without a name are not known; 0600 */
    if (s->fd < 0)
        return -errno;
    return unlink(name) < 0 ? -errno : 0;
}

static int file_put(struct spool *s, const char *p, size_t n)
{
    int r = file_open(s);
    for (size_t done = 0; done < n && r == 0;) {
        uint64_t place = s->file.to + done;
        ssize_t k = pwrite(s->fd, p + done, together(&s->file, place, n - done),
                           (off_t)(place % s->file.max));
        if (k > 0)
            done += (size_t)k;
        else
            r = k == 0 ? -ENOSPC : errno == EINTR ? 0 : -errno;
    }
    return r;
}

static bool file_add(struct spool *s, const char *p, size_t n)
{
    if (n > spool_room(&s->file))
        return false;
    int r = file_put(s, p, n);
    if (r < 0) {
        s->file.now_max = 0; /* until all of it is given back */
        text_copy(s->trouble, strerror(-r));
        return false;
    }
    s->file.to += n;
    return true;
}

/* The next piece, out of the file. */
static int file_next(struct spool *s)
{
    if (!s->piece)
        s->piece = xmalloc(PIECE);
    uint64_t all = held(&s->file);
    size_t n = together(&s->file, s->file.from, all < PIECE ? all : PIECE);
    ssize_t k;
    do
        k = pread(s->fd, s->piece, n, (off_t)(s->file.from % s->file.max));
    while (k < 0 && errno == EINTR);
    if (k <= 0)
        return k < 0 ? -errno : -EIO;
    s->piece_from = 0;
    s->piece_n = (size_t)k;
    s->file.from += (size_t)k;
    return 0;
}

static void file_give_back(struct spool *s)
{
    s->file.from = s->file.to = 0;
    s->file.now_max = s->file.max; /* try again when it is needed again */
    if (s->fd >= 0 && ftruncate(s->fd, 0) < 0)
        closep(&s->fd); /* that gives it back too; sets -1 */
}

/* ---- both ---- */

bool spool_fits(const struct spool *s, uint64_t n)
{
    return (!is_filing(s) && n <= spool_room(&s->memory)) || n <= spool_room(&s->file);
}

bool spool_add(struct spool *s, const char *p, size_t n)
{
    if (is_filing(s) || n > spool_room(&s->memory))
        return file_add(s, p, n);
    size_t first = together(&s->memory, s->memory.to, n);
    memcpy(s->bytes + s->memory.to % s->memory.max, p, first);
    memcpy(s->bytes, p + first, n - first);
    s->memory.to += n;
    return true;
}

int64_t spool_peek(struct spool *s, const char **ret)
{
    if (held(&s->memory)) {
        *ret = s->bytes + s->memory.from % s->memory.max;
        size_t n = together(&s->memory, s->memory.from, held(&s->memory));
        return (int64_t)(n < PIECE ? n : PIECE);
    }
    if (!s->piece_n && held(&s->file)) {
        int r = file_next(s);
        if (r < 0)
            return r;
    }
    *ret = s->piece + s->piece_from;
    return (int64_t)s->piece_n;
}

void spool_remove(struct spool *s, size_t n)
{
    if (held(&s->memory)) {
        s->memory.from += n;
        if (!held(&s->memory)) /* from its beginning: a trickle then touches few pages */
            s->memory.from = s->memory.to = 0;
        if (!spool_bytes(s))
            s->file.now_max = s->file.max;
        return;
    }
    s->piece_from += n;
    s->piece_n -= n;
    if (!is_filing(s))
        file_give_back(s);
}

uint64_t spool_discard(struct spool *s)
{
    uint64_t n = spool_bytes(s);
    s->memory.from = s->memory.to = 0;
    s->piece_n = 0;
    file_give_back(s);
    return n;
}

uint64_t spool_bytes(const struct spool *s)
{
    return held(&s->memory) + spool_filed(s);
}

uint64_t spool_filed(const struct spool *s)
{
    return held(&s->file) + s->piece_n;
}

const char *spool_trouble(const struct spool *s)
{
    return s->trouble;
}
