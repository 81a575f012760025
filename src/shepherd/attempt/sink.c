/* SPDX-License-Identifier: Apache-2.0 */
/* sink.c - writes driver.log and the files that follow it; see sink.h.
 *
 * Order of a change of files: the old one is on disk and closed before the new one has a name, so
 * that whoever sees the new one finds the old one whole. */
#define _GNU_SOURCE
#include "shepherd/attempt/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/message.h"
#include "fsroot/logs/logindexer.h"
#include "fsroot/logs/logtimes.h"

#define SINK_ASIDE ".found"    /* what had the name of a file of the log */
#define ZFS_MAGIC 0x2fc12fc1UL /* the kernel's headers know it not */
enum { GAP_LINE = 200, TOTAL_FILES = 4, LINE_SLACK = 64 << 10 };

/* One file of the log: bytes [begin, end) of the whole log. */
struct segment {
    uint64_t begin, end;
};

struct sink {
    int fd;
    char *path;
    bool is_remote;      /* others see what was written only after a flush */
    bool is_line_broken; /* the last byte was no newline */
    bool is_suspect;     /* the descriptor may have lost its file */
    bool
        has_lost; /* written data may not have reached the disk, and no later call will report it */
    uint64_t segment_max, total_max;
    struct segment first; /* never removed */
    struct segment *v;    /* the later ones, the newest last */
    size_t n, cap;
    uint64_t gap; /* where the small file that tells of removed ones begins; 0: none */
    uint64_t flushed, removed;
    struct logindexer *index; /* NULL: none; then there are no times either */
    struct logtimes *times;
    bool is_late;
};

bool sink_is_local(int fd)
{
    struct statfs fs;
    if (fstatfs(fd, &fs) < 0)
        return false;
    switch ((unsigned long)fs.f_type) {
    case EXT4_SUPER_MAGIC:
    case XFS_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case TMPFS_MAGIC:
    case OVERLAYFS_SUPER_MAGIC:
    case F2FS_SUPER_MAGIC:
    case ZFS_MAGIC:
        return true;
    default:
        return false;
    }
}

struct sink *sink_new(int fd, const char *path)
{
    struct sink *s = xcalloc(1, sizeof(*s));
    s->fd = fd;
    s->path = xstrdup(path);
    s->is_remote = !sink_is_local(fd);
    return s;
}

int sink_open(const char *path, struct sink **ret, struct err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0)
        return message_refuse(err, -errno, "file_cannot",
                              MESSAGE_ARGS(MESSAGE_STR("verb", "create"), MESSAGE_STR("path", path),
                                           MESSAGE_STR("why", strerror(errno))));
    *ret = sink_new(fd, path);
    (*ret)->index = logindexer_new(path);
    (*ret)->times = logtimes_new(path);
    return 0;
}

void sink_free(struct sink *s)
{
    if (!s)
        return;
    closep(&s->fd);
    logindexer_free(s->index);
    logtimes_free(s->times);
    free(s->path);
    free(s->v);
    free(s);
}

void sink_limit(struct sink *s, uint64_t segment, uint64_t total)
{
    bool is_too_large = segment > total / TOTAL_FILES || !segment;
    s->segment_max = total && is_too_large ? total / TOTAL_FILES : segment;
    s->total_max = total;
}

/* ---- files ---- */

static struct segment *current(struct sink *s)
{
    return s->n ? &s->v[s->n - 1] : &s->first;
}

static char *sink_segment_path(const struct sink *s, uint64_t begin)
{
    return begin ? xasprintf("%s.%" PRIu64, s->path, begin) : xstrdup(s->path);
}

static void add_segment(struct sink *s, uint64_t begin)
{
    if (s->n == s->cap) {
        s->cap = s->cap ? s->cap * 2 : 8;
        s->v = xrealloc(s->v, s->cap, sizeof(*s->v));
    }
    s->v[s->n++] = (struct segment){.begin = begin, .end = begin};
}

static void sink_remove_file(const struct sink *s, uint64_t begin)
{
    _cleanup_(freep) char *path = sink_segment_path(s, begin);
    (void)unlink(path); /* one that stays costs space and is read */
}

/* The small file right in front of the oldest later one. A failure costs the line only. */
static void sink_tell_gap(struct sink *s)
{
    char line[GAP_LINE];
    uint64_t to = s->v[0].begin;
    int n = snprintf(line, sizeof(line),
                     "[argus] %" PRIu64 " bytes of output dropped here: the log may hold %" PRIu64
                     " bytes, its first and its newest stay\n",
                     to - s->first.end, s->total_max); /* fits */
    s->gap = to - (uint64_t)n;
    _cleanup_(freep) char *path = sink_segment_path(s, s->gap);
    if (file_write(path, line, (size_t)n, 0644, 0, NULL) < 0)
        s->gap = 0;
}

/* Room for one more whole file. The one that is written to stays. */
static void sink_make_room(struct sink *s)
{
    uint64_t kept = s->first.end + s->segment_max;
    size_t drop = 0;
    for (size_t i = 0; i < s->n; i++)
        kept += s->v[i].end - s->v[i].begin;
    for (; s->total_max && kept > s->total_max && drop + 1 < s->n; drop++) {
        uint64_t n = s->v[drop].end - s->v[drop].begin;
        sink_remove_file(s, s->v[drop].begin);
        s->removed += n;
        kept -= n;
    }
    if (!drop)
        return;
    if (s->gap)
        sink_remove_file(s, s->gap);
    s->n -= drop;
    memmove(s->v, s->v + drop, s->n * sizeof(*s->v));
    sink_tell_gap(s);
}

/* An existing empty file is ours: a failed try left it. A file with content is not ours and is
 * renamed, because under this name it would be read as part of the log. */
static int make_file(const char *path)
{
    struct stat st;
    const int flags = O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    int fd = open(path, flags | O_CREAT | O_EXCL, 0644);
    if (fd >= 0 || errno != EEXIST)
        return fd >= 0 ? fd : -errno;
    fd = open(path, flags);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && !st.st_size)
        return fd;
    closep(&fd);
    _cleanup_(freep) char *aside = xasprintf("%s" SINK_ASIDE, path);
    if (rename(path, aside) < 0)
        return -EEXIST;
    fd = open(path, flags | O_CREAT | O_EXCL, 0644);
    return fd >= 0 ? fd : -errno;
}

/* An error of it is told once: a later call can say that all is well. */
static int sync_file(struct sink *s)
{
    if (fsync(s->fd) == 0 || errno == EINVAL) /* EINVAL: a device needs it not */
        return 0;
    s->has_lost = true;
    return -errno;
}

/* The next file; the one before is synced unless it is lost anyway. */
static int next_segment(struct sink *s, bool do_sync)
{
    uint64_t begin = current(s)->end;
    int r = do_sync ? sync_file(s) : 0;
    if (r < 0)
        return r;
    _cleanup_(freep) char *path = sink_segment_path(s, begin);
    int fd = make_file(path);
    if (fd < 0)
        return fd;
    closep(&s->fd);
    s->fd = fd;
    sink_make_room(s);
    add_segment(s, begin);
    return 0;
}

/* True: it holds what was written to it, and no more: what a write that failed has left there is
 * written again. */
static bool is_whole(const struct segment *c, int fd)
{
    struct stat st;
    uint64_t n = c->end - c->begin;
    return fstat(fd, &st) == 0 && (uint64_t)st.st_size >= n &&
           ((uint64_t)st.st_size == n || ftruncate(fd, (off_t)n) == 0);
}

/* By its name: the same file once more, or, where that is gone or has lost bytes, a new one. */
static int find_again(struct sink *s)
{
    const struct segment *c = current(s);
    _cleanup_(freep) char *path = sink_segment_path(s, c->begin);
    int fd = open(path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 && errno != ENOENT)
        return -errno;
    if (fd >= 0 && is_whole(c, fd)) {
        closep(&s->fd);
        s->fd = fd;
        return 0;
    }
    closep(&fd);
    if (c->end == c->begin)
        return -ESTALE;
    s->has_lost = true;
    return next_segment(s, false);
}

/* ---- writing ---- */

static bool is_lost(int r)
{
    return r == -ESTALE || r == -EIO || r == -ENOTCONN || r == -ENODEV || r == -EBADF;
}

/* How many of these n bytes the file takes: it ends with a line if one ends near its ceiling. */
static size_t room_for(struct sink *s, const char *p, size_t n)
{
    uint64_t used = current(s)->end - current(s)->begin;
    uint64_t left = !s->segment_max ? n : s->segment_max > used ? s->segment_max - used : 0;
    if (n <= left)
        return n;
    const char *line = left ? memrchr(p, '\n', (size_t)left) : NULL;
    if (!line && used && !s->is_line_broken)
        return 0;
    if (!line)
        line = memchr(p, '\n', n < left + LINE_SLACK ? n : (size_t)left + LINE_SLACK);
    return line ? (size_t)(line + 1 - p) : (size_t)left;
}

/* What did get out is counted. */
static int sink_put(struct sink *s, const char *p, size_t n, size_t *done)
{
    ssize_t k = write(s->fd, p, n);
    if (k < 0)
        return errno == EINTR ? 0 : -errno;
    if (k)
        s->is_line_broken = p[k - 1] != '\n';
    current(s)->end += (uint64_t)k;
    *done += (size_t)k;
    return 0;
}

int sink_write(struct sink *s, const char *p, size_t n, size_t *ret_done)
{
    size_t done = 0;
    int r = s->is_suspect ? find_again(s) : 0;
    while (done < n && r == 0) {
        size_t now = room_for(s, p + done, n - done);
        r = now ? sink_put(s, p + done, now, &done) : next_segment(s, true);
    }
    s->is_suspect = is_lost(r) || (s->is_suspect && r < 0);
    if (done && s->index) {
        usec_t wall = clock_wall();
        logindexer_add(s->index, sink_bytes(s) - done, p, done, wall, s->is_late);
        logtimes_add(s->times, p, done, wall);
    }
    *ret_done = done;
    return r;
}

void sink_hurry(struct sink *s, bool is_late)
{
    s->is_late = is_late;
}

void sink_flush(struct sink *s)
{
    if (s->times)
        logtimes_idle(s->times, clock_wall());
    if (!s->is_remote || s->flushed == sink_bytes(s))
        return;
    s->flushed = sink_bytes(s);
    (void)sync_file_range(s->fd, 0, 0, SYNC_FILE_RANGE_WRITE); /* a later one may succeed */
}

int sink_finish(struct sink *s, struct err *err)
{
    if (s->index) {
        logindexer_finish(s->index, clock_wall());
        logtimes_finish(s->times);
    }
    int r = sync_file(s);
    if (r < 0)
        return err_set(err, r, "the end of '%s' may be missing: %s", s->path, strerror(-r));
    return s->has_lost
               ? err_set(err, -EIO, "parts of '%s' may be missing: its disk failed", s->path)
               : 0;
}

const char *sink_path(const struct sink *s)
{
    return s->path;
}

uint64_t sink_bytes(const struct sink *s)
{
    return s->n ? s->v[s->n - 1].end : s->first.end;
}

uint64_t sink_removed(const struct sink *s)
{
    return s->removed;
}
