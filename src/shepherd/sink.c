/* SPDX-License-Identifier: Apache-2.0 */
/* sink.c - writes driver.log and survives a log that cannot be written; see sink.h. */
#define _GNU_SOURCE
#include "shepherd/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

struct sink {
    int fd;
    char *path;
    bool is_remote; /* others see what was written only after a flush */
    bool is_failing;
    bool is_line_broken; /* the last byte written was no newline */
    usec_t retry;        /* while failing: not before */
    uint64_t bytes, flushed;
    uint64_t dropped, dropped_untold; /* untold: no line in the log says so yet */
    char trouble[256];
};

/* On these every reader is on this machine and sees a write at once. */
static bool is_local(int fd)
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
    s->is_remote = !is_local(fd);
    return s;
}

int sink_open(const char *path, struct sink **ret, struct err *err)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0)
        return err_set(err, -errno, "cannot create '%s': %s", path, strerror(errno));
    *ret = sink_new(fd, path);
    return 0;
}

void sink_free(struct sink *s)
{
    if (!s)
        return;
    closep(&s->fd);
    free(s->path);
    free(s);
}

/* All n bytes or a negative errno; what did get out is counted. */
static int put(struct sink *s, const char *p, size_t n, size_t *ret_done)
{
    size_t done = 0;
    int r = 0;
    while (done < n && r == 0) {
        ssize_t k = write(s->fd, p + done, n - done);
        if (k < 0)
            r = errno == EINTR ? 0 : -errno;
        else
            done += (size_t)k;
    }
    if (done)
        s->is_line_broken = p[done - 1] != '\n';
    s->bytes += done;
    *ret_done = done;
    return r;
}

static void drop(struct sink *s, size_t n)
{
    s->dropped += n;
    s->dropped_untold += n;
}

/* The line that stands for what is missing at this place. */
static int tell_dropped(struct sink *s)
{
    char line[400];
    size_t done;
    if (!s->dropped_untold)
        return 0;
    int n = snprintf(line, sizeof(line),
                     "%sargus-shepherd: %" PRIu64 " bytes of output are missing here: %s\n",
                     s->is_line_broken ? "\n" : "", s->dropped_untold, s->trouble);
    int r = put(s, line, (size_t)n, &done);
    if (r == 0)
        s->dropped_untold = 0;
    return r;
}

int sink_add(struct sink *s, const char *p, size_t n, usec_t mono)
{
    size_t done = 0;
    if (s->is_failing && mono < s->retry) {
        drop(s, n);
        return 0;
    }
    int r = tell_dropped(s);
    if (r == 0)
        r = put(s, p, n, &done);
    bool has_begun = r < 0 && !s->is_failing;
    s->is_failing = r < 0;
    if (r < 0) {
        s->retry = mono + USEC_SEC;
        (void)snprintf(s->trouble, sizeof(s->trouble), "%s", strerror(-r)); /* short */
        drop(s, n - done);
    }
    return has_begun;
}

void sink_flush(struct sink *s)
{
    if (!s->is_remote || s->flushed == s->bytes)
        return;
    s->flushed = s->bytes;
    (void)sync_file_range(s->fd, 0, 0, SYNC_FILE_RANGE_WRITE); /* a later one may succeed */
}

int sink_finish(struct sink *s, struct err *err)
{
    int r = tell_dropped(s);
    /* EINVAL: what cannot be synced (a device) needs it not. */
    if (fsync(s->fd) < 0 && errno != EINVAL && r == 0)
        r = -errno;
    return r < 0 ? err_set(err, r, "the end of '%s' may be missing: %s", s->path, strerror(-r)) : 0;
}

const char *sink_path(const struct sink *s)
{
    return s->path;
}

uint64_t sink_bytes(const struct sink *s)
{
    return s->bytes;
}

uint64_t sink_dropped(const struct sink *s)
{
    return s->dropped;
}

const char *sink_trouble(const struct sink *s)
{
    return s->trouble;
}
