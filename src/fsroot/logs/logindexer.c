/* SPDX-License-Identifier: Apache-2.0 */
/* logindexer.c - writes the index of a log; see logindexer.h.
 *
 * A group's record is written only when all its blocks have one. The file must be ours alone: if
 * a file of that name exists already, its writer is unknown and there is no index. */
#define _GNU_SOURCE
#include "fsroot/logs/logindexer.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "fsroot/logs/logindex_file.h"
#include "fsroot/logs/trigrams.h"

/* What a record is made of. */
struct part {
    struct trigrams has;
    uint64_t begin;
    uint64_t flags;
};

struct logindexer {
    char *path;
    int fd;
    bool is_made, is_off;
    uint64_t at, n_blocks; /* bytes of the log seen; blocks behind us */
    uint32_t first;        /* checksum of the log's first bytes, LOGINDEX_FIRST of them */
    bool is_line_broken;   /* the block before ended within a line */
    bool is_skipped;       /* this block is not looked at, */
    bool is_group_whole;   /* and so its group has no record */
    struct part block, group;
    uint64_t place[LOGINDEX_GROUP_RECORD / sizeof(uint64_t)]; /* of the record that is written */
};

struct logindexer *logindexer_new(const char *log)
{
    struct logindexer *x = xcalloc(1, sizeof(*x));
    x->path = xasprintf("%s" LOGINDEX_SUFFIX, log);
    x->fd = -1;
    x->is_group_whole = true;
    return x;
}

void logindexer_free(struct logindexer *x)
{
    if (!x)
        return;
    closep(&x->fd);
    free(x->path);
    free(x);
}

/* ---- the file ---- */

static bool logindexer_is_open(struct logindexer *x)
{
    if (x->fd < 0 && !x->is_off) {
        int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | (x->is_made ? 0 : O_EXCL);
        x->fd = open(x->path, flags, 0644);
        x->is_off = x->fd < 0 && errno == EEXIST;
        x->is_made |= x->fd >= 0;
    }
    return x->fd >= 0;
}

/* False: there is no such record, or a torn one. */
static bool write_record(struct logindexer *x, uint64_t place, const void *p, size_t n)
{
    if (!logindexer_is_open(x))
        return false;
    ssize_t k;
    do
        k = pwrite(x->fd, p, n, (off_t)place);
    while (k < 0 && errno == EINTR);
    if (k < 0 && errno != ENOSPC && errno != EDQUOT)
        closep(&x->fd); /* the server may know it no more: by its name the next time */
    return k == (ssize_t)n;
}

static bool logindexer_put(struct logindexer *x,
                           const struct part *part,
                           uint64_t place,
                           size_t size,
                           uint64_t flags,
                           usec_t wall)
{
    struct logindex_record *r = (struct logindex_record *)(void *)x->place;
    memset(r, 0, size);
    r->magic = LOGINDEX_MAGIC;
    r->first = x->first;
    r->begin = part->begin;
    r->end = x->at;
    r->written = wall;
    r->flags = part->flags | flags;
    trigrams_to_filter(&part->has, r->filter, size - sizeof(*r));
    r->crc = logindex_crc(r, size);
    return write_record(x, place, r, size);
}

/* ---- blocks ---- */

static void clear(struct part *p, uint64_t begin)
{
    trigrams_clear(&p->has);
    p->begin = begin;
    p->flags = 0;
}

static void end_group(struct logindexer *x, usec_t wall)
{
    uint64_t group = (x->n_blocks - 1) / LOGINDEX_GROUP;
    bool done = x->is_group_whole && logindexer_put(x, &x->group, logindex_group_place(group),
                                                    LOGINDEX_GROUP_RECORD, LOGINDEX_IS_GROUP, wall);
    (void)done; /* without it, the blocks of the group are looked at one by one */
    clear(&x->group, x->at);
    x->is_group_whole = true;
}

static void end_block(struct logindexer *x, bool is_line_broken, usec_t wall)
{
    x->block.flags = is_line_broken || x->is_line_broken ? LOGINDEX_IS_TORN : 0;
    bool done = !x->is_skipped && logindexer_put(x, &x->block, logindex_block_place(x->n_blocks),
                                                 LOGINDEX_BLOCK_RECORD, 0, wall);
    if (done)
        trigrams_join(&x->group.has, &x->block.has);
    x->group.flags |= x->block.flags;
    x->is_group_whole &= done;
    x->is_line_broken = is_line_broken;
    clear(&x->block, x->at);
    x->is_skipped = false;
    x->n_blocks++;
    if (x->n_blocks % LOGINDEX_GROUP == 0)
        end_group(x, wall);
}

/* How many of these belong to the block, which ends with a line where there is one in time. */
static size_t logindexer_take(const struct logindexer *x, const char *p, size_t n)
{
    uint64_t used = x->at - x->block.begin;
    if (used < LOGINDEX_BLOCK - 1)
        return n < LOGINDEX_BLOCK - 1 - used ? n : (size_t)(LOGINDEX_BLOCK - 1 - used);
    size_t most = n < LOGINDEX_BLOCK_MAX - used ? n : (size_t)(LOGINDEX_BLOCK_MAX - used);
    const char *line = memchr(p, '\n', most);
    return line ? (size_t)(line + 1 - p) : most;
}

static void add_first(struct logindexer *x, const char *p, size_t n)
{
    if (x->at < LOGINDEX_FIRST)
        x->first = crc32_add(x->first, p,
                             n < LOGINDEX_FIRST - x->at ? n : (size_t)(LOGINDEX_FIRST - x->at));
}

void logindexer_add(struct logindexer *x,
                    uint64_t offset,
                    const char *p,
                    size_t n,
                    usec_t wall,
                    bool is_late)
{
    if (offset != x->at) /* bytes that we were not told of */
        x->is_off = true;
    while (n && !x->is_off) {
        if (x->at == x->block.begin)
            x->is_skipped = is_late;
        size_t k = logindexer_take(x, p, n);
        if (!x->is_skipped)
            trigrams_add(&x->block.has, p, k);
        add_first(x, p, k);
        x->at += k;
        p += k;
        n -= k;
        uint64_t used = x->at - x->block.begin;
        if (used >= LOGINDEX_BLOCK && (p[-1] == '\n' || used == LOGINDEX_BLOCK_MAX))
            end_block(x, p[-1] != '\n', wall);
    }
}

void logindexer_finish(struct logindexer *x, usec_t wall)
{
    if (!x->is_off && x->at - x->block.begin >= LOGINDEX_LEAST)
        end_block(x, false, wall);
    if (!x->is_off && x->n_blocks % LOGINDEX_GROUP) {
        x->at = x->block.begin; /* what has no record is of no group */
        end_group(x, wall);
    }
    x->is_off = true;
}
