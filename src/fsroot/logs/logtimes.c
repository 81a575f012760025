/* SPDX-License-Identifier: Apache-2.0 */
/* logtimes.c - the writer of logtimes.h. A clock that is set back makes later marks claim less than
 * they could, never more. */
#define _GNU_SOURCE
#include "fsroot/logs/logtimes.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "fsroot/logs/logtimes_file.h"

#define EVERY (5 * USEC_SEC)

struct logtimes {
    char *path;
    int fd;
    bool is_made, is_off;
    uint64_t end, line; /* of the log: its bytes, and where its last line that is whole ends */
    usec_t written;     /* the last of them */
    uint64_t n_marks, marked;
    usec_t marked_at, by; /* of the last mark: when it was made, and what it says */
};

struct logtimes *logtimes_new(const char *log)
{
    struct logtimes *t = xcalloc(1, sizeof(*t));
    t->path = xasprintf("%s" LOGTIMES_SUFFIX, log);
    t->fd = -1;
    return t;
}

void logtimes_free(struct logtimes *t)
{
    if (!t)
        return;
    closep(&t->fd);
    free(t->path);
    free(t);
}

/* An existing file is not ours. */
static bool logtimes_is_open(struct logtimes *t)
{
    if (t->fd < 0 && !t->is_off) {
        int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | (t->is_made ? 0 : O_EXCL);
        t->fd = open(t->path, flags, 0644);
        t->is_off = t->fd < 0 && errno == EEXIST;
        t->is_made |= t->fd >= 0;
    }
    return t->fd >= 0;
}

/* A mark that cannot be written is made again later, at the same place. */
static void logtimes_mark(struct logtimes *t, usec_t wall)
{
    struct logtimes_mark m = {
        .by = t->written > t->by ? t->written : t->by, .offset = t->line, .magic = LOGTIMES_MAGIC};
    m.crc = logtimes_crc(&m);
    t->marked_at = wall;
    if (!logtimes_is_open(t))
        return;
    if (pwrite(t->fd, &m, sizeof(m), (off_t)(t->n_marks * sizeof(m))) != (ssize_t)sizeof(m)) {
        closep(&t->fd);
        return;
    }
    t->n_marks++;
    t->marked = t->line;
    t->by = m.by;
}

void logtimes_add(struct logtimes *t, const char *p, size_t n, usec_t wall)
{
    bool is_due = wall < t->marked_at || wall - t->marked_at >= EVERY;
    if (t->line > t->marked && is_due)
        logtimes_mark(t, wall);
    const char *line = memrchr(p, '\n', n);
    if (line)
        t->line = t->end + (uint64_t)(line + 1 - p);
    t->end += n;
    t->written = wall;
}

void logtimes_idle(struct logtimes *t, usec_t wall)
{
    bool is_due = wall < t->written || wall - t->written >= EVERY;
    if (t->line > t->marked && is_due)
        logtimes_mark(t, wall);
}

void logtimes_finish(struct logtimes *t)
{
    if (t->line > t->marked)
        logtimes_mark(t, t->written);
}
