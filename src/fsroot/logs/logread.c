/* SPDX-License-Identifier: Apache-2.0 */
/* logread.c - reads a log across its segments; see logread.h.
 *
 * The directory is listed for each call: segments come and go while one reads. A segment that goes
 * between the listing and its opening is a gap. Files of a job are outside bytes: no link below its
 * directory is followed. */
#define _GNU_SOURCE
#include "fsroot/logs/logread.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/message.h"
#include "base/str.h"
#include "fsroot/attempt/witness.h"
#include "fsroot/tree/paths.h"

struct segments {
    char *dir;        /* for sentences */
    DIR *open;        /* the same */
    const char *name; /* of the first, in dir; borrowed */
    uint64_t *begin;
    size_t n;
};

static void segments_release(struct segments *s)
{
    if (s->open)
        (void)closedir(s->open); /* only read */
    free(s->dir);
    free(s->begin);
}

static int by_begin(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* "driver.log" and "driver.log.<decimal>"; an index or a copy beside them is none. */
static bool is_segment(const struct segments *s, const char *file, uint64_t *ret_begin)
{
    size_t len = strlen(s->name);
    int64_t begin = 0;
    if (strncmp(file, s->name, len) != 0)
        return false;
    if (file[len] == '.' && (file[len + 1] < '1' || file[len + 1] > '9' ||
                             str_to_int(file + len + 1, 1, INT64_MAX, &begin, NULL) < 0))
        return false;
    *ret_begin = (uint64_t)begin;
    return file[len] == '.' || !file[len];
}

/* In order; of too many the first one stays and the newest. */
static void sort_and_drop(struct segments *s)
{
    if (s->n > 1)
        qsort(s->begin, s->n, sizeof(*s->begin), by_begin);
    size_t drop = s->n > LOGREAD_SEGMENTS_MAX ? s->n - LOGREAD_SEGMENTS_MAX : 0;
    size_t keep = s->n && !s->begin[0];
    s->n -= drop;
    memmove(s->begin + keep, s->begin + keep + drop, (s->n - keep) * sizeof(*s->begin));
}

static int logread_list(struct segments *s, struct err *err)
{
    enum { ROOM = 2 * LOGREAD_SEGMENTS_MAX };
    s->begin = xcalloc(ROOM, sizeof(*s->begin));
    for (const struct dirent *e; (e = readdir(s->open));) {
        if (!is_segment(s, e->d_name, &s->begin[s->n]))
            continue;
        if (++s->n == ROOM)
            sort_and_drop(s);
    }
    sort_and_drop(s);
    return s->n ? 0
                : message_refuse(err, -ENOENT, "no_log_in",
                                 MESSAGE_ARGS(MESSAGE_STR("path", s->dir)));
}

/* The file name of segment i in s->dir. */
static char *segment_name(const struct segments *s, size_t i)
{
    return s->begin[i] ? xasprintf("%s.%llu", s->name, (unsigned long long)s->begin[i])
                       : xstrdup(s->name);
}

/* From offset `at` of the stream. A segment that is longer than the next one's name says is read up
 * to there. -ENOENT: it has gone. */
static int read_segment(const struct segments *s,
                        size_t i,
                        uint64_t at,
                        char *buf,
                        size_t n,
                        size_t *ret_n,
                        struct err *err)
{
    uint64_t stop = i + 1 < s->n ? s->begin[i + 1] : INT64_MAX;
    _cleanup_(freep) char *name = segment_name(s, i);
    _cleanup_(closep) int fd = file_open_regular(dirfd(s->open), name, O_RDONLY);
    int r = fd < 0 ? fd : 0;
    if (r == 0)
        r = file_read_at(fd, at - s->begin[i], buf, stop - at < n ? (size_t)(stop - at) : n, ret_n);
    return r < 0
               ? message_refuse(err, r, "disk_no_read_in",
                                MESSAGE_ARGS(MESSAGE_STR("dir", s->dir), MESSAGE_STR("name", name),
                                             MESSAGE_STR("why", strerror(-r))))
               : 0;
}

/* The present size of segment i; 0: it has gone. */
static uint64_t segment_bytes(const struct segments *s, size_t i)
{
    _cleanup_(freep) char *name = segment_name(s, i);
    struct stat st;
    return fstatat(dirfd(s->open), name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? (uint64_t)st.st_size : 0;
}

/* Where the newest segment ends now. */
static uint64_t stream_end(const struct segments *s)
{
    return s->begin[s->n - 1] + segment_bytes(s, s->n - 1);
}

static int logread_read_part(const struct segments *s,
                             uint64_t offset,
                             char *buf,
                             size_t n,
                             struct logread_part *ret,
                             struct err *err)
{
    struct logread_part p = {.offset = offset, .end = stream_end(s), .files = s->n};
    size_t i = 0;
    while (i + 1 < s->n && s->begin[i + 1] <= offset)
        i++;
    for (; i < s->n; i++) {
        uint64_t next = p.offset + p.n, at = next > s->begin[i] ? next : s->begin[i];
        size_t more = 0;
        if (p.n && at != next)
            break; /* a gap: the next part begins behind it */
        int r = read_segment(s, i, at, buf + p.n, n - p.n, &more, err);
        if (r < 0 && r != -ENOENT)
            return r;
        if (!p.n)
            p.offset = at;
        p.n += more;
        if (p.n == n)
            break;
    }
    if (p.n && p.offset + p.n > p.end)
        p.end = p.offset + p.n; /* it has grown since */
    *ret = p;
    return 0;
}

/* name: of the first, in the attempt's directory; borrowed. */
static int open_segments(const char *root,
                         const char *job,
                         int attempt,
                         const char *name,
                         struct segments *s,
                         struct err *err)
{
    const char *slash = strrchr(name, '/');
    s->name = slash ? slash + 1 : name;
    if (!fsroot_is_name(job))
        return message_refuse(err, -EINVAL, "no_job_dir", MESSAGE_ARGS(MESSAGE_STR("name", job)));
    _cleanup_(freep) char *sub = slash ? xstrndup(name, (size_t)(slash - name)) : NULL;
    s->dir = fsroot_attempt_dir(root, job, attempt, sub);
    int r = fsroot_attempt_opendir(root, job, attempt, sub, &s->open);
    return r < 0 ? message_refuse(
                       err, r, "disk_no_read_it",
                       MESSAGE_ARGS(MESSAGE_STR("path", s->dir), MESSAGE_STR("why", strerror(-r))))
                 : logread_list(s, err);
}

int logread_at(const char *root,
               const char *job,
               int attempt,
               const char *name,
               uint64_t offset,
               void *buf,
               size_t n,
               struct logread_part *ret,
               struct err *err)
{
    _cleanup_(segments_release) struct segments s = {0};
    if (offset > INT64_MAX)
        return message_refuse(err, -EINVAL, "log_no_offset",
                              MESSAGE_ARGS(MESSAGE_STR("name", job)));
    int r = open_segments(root, job, attempt, name, &s, err);
    return r < 0 || !s.begin ? r : logread_read_part(&s, offset, buf, n, ret, err);
}

int logread_open_beside(const char *root,
                        const char *job,
                        int attempt,
                        const char *name,
                        const char *suffix)
{
    const char *slash = strrchr(name, '/');
    _cleanup_(freep) char *sub = slash ? xstrndup(name, (size_t)(slash - name)) : NULL;
    _cleanup_(freep) char *file = xasprintf("%s%s", slash ? slash + 1 : name, suffix);
    DIR *dir = NULL;
    if (fsroot_attempt_opendir(root, job, attempt, sub, &dir) < 0 || !dir)
        return -1;
    int fd = file_open_regular(dirfd(dir), file, O_RDONLY);
    (void)closedir(dir); /* it was only read */
    return fd;
}

int logread_files(const char *root,
                  const char *job,
                  int attempt,
                  const char *name,
                  struct logread_file **ret,
                  size_t *ret_n,
                  struct err *err)
{
    _cleanup_(segments_release) struct segments s = {0};
    int r = open_segments(root, job, attempt, name, &s, err);
    if (r < 0 || !s.begin)
        return r;
    struct logread_file *v = xcalloc(s.n, sizeof(*v));
    for (size_t i = 0; i < s.n; i++)
        v[i] = (struct logread_file){.begin = s.begin[i], .bytes = segment_bytes(&s, i)};
    *ret = v;
    *ret_n = s.n;
    return 0;
}
