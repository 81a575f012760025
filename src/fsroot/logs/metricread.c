/* SPDX-License-Identifier: Apache-2.0 */
/* metricread.c - lines from a file or an attempt's log, from an offset on, cut and judged; see
 * metricread.h. */
#define _GNU_SOURCE
#include "fsroot/logs/metricread.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/message.h"
#include "base/str.h"
#include "fsroot/attempt/launch.h"
#include "fsroot/logs/logread.h"
#include "fsroot/tree/rootfile.h"

/* ---- bytes ---- */

static int metricread_read_at(const struct metricread_origin *from,
                              uint64_t offset,
                              char *to,
                              size_t n,
                              struct logread_part *ret)
{
    if (from->fd < 0)
        return logread_at(from->root, from->job, from->attempt, ATTEMPT_LOG, offset, to, n, ret,
                          NULL);
    *ret = (struct logread_part){.offset = offset};
    return file_read_at(from->fd, offset, to, n, &ret->n);
}

int metricread_size(int fd, uint64_t *ret)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return -errno;
    *ret = (uint64_t)st.st_size;
    return 0;
}

int metricread_open(const char *root, const char *path, uint64_t *ret_size)
{
    int fd = rootfile_open(root, path, NULL);
    int x = fd < 0 ? fd : metricread_size(fd, ret_size);
    if (x < 0)
        closep(&fd);
    return x < 0 ? x : fd;
}

char *metricread_merged_path(const char *root, const char *job)
{
    return xasprintf("%s/jobs/%s/metrics/" METRICREAD_MERGED, root, job);
}

/* ---- lines ---- */

static void metricread_take_line(const char *line,
                                 size_t n,
                                 uint64_t end,
                                 const struct metricread_sink *s)
{
    struct metric_record rec = {0};
    switch (metric_read_line(line, n, &rec)) {
    case METRIC_RECORD:
        s->record(&rec, end, s->arg);
        break;
    case METRIC_TOTAL:
        s->total(rec.step, true, s->arg);
        break;
    case METRIC_TOTAL_MAYBE:
        s->total(rec.step, false, s->arg);
        break;
    case METRIC_NOTHING:
        break;
    }
    metric_record_release(&rec);
}

/* What goes back with \r, as progress bars do, begins a line anew. */
static void metricread_take_pieces(const char *line,
                                   size_t n,
                                   uint64_t end,
                                   const struct metricread_sink *s)
{
    for (const char *p = line, *stop = line + n; p < stop;) {
        const char *back = memchr(p, '\r', (size_t)(stop - p));
        const char *to = back ? back : stop;
        if (metric_find(p, (size_t)(to - p)))
            metricread_take_line(p, (size_t)(to - p), end, s);
        p = to + 1;
    }
}

/* Whole lines; text ends with a line's end, or at the end of its file. base: its offset. */
static void metricread_take_lines(const char *text,
                                  size_t n,
                                  uint64_t base,
                                  const struct metricread_sink *s)
{
    const char *end = text + n, *p = text;
    while (p < end && (p = metric_find(p, (size_t)(end - p)))) {
        const char *before = memrchr(text, '\n', (size_t)(p - text));
        const char *from = before ? before + 1 : text;
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        const char *next = stop ? stop + 1 : end;
        metricread_take_pieces(from, (size_t)((stop ? stop : end) - from),
                               base + (uint64_t)(next - text), s);
        p = next;
    }
}

/* How many whole chunks from here on are of a hole, or 0: it is data, the log's, or the file system
 * does not say. */
static uint64_t metricread_hole(const struct metricread_origin *from, uint64_t offset)
{
    uint64_t size = 0, data;
    if (from->fd < 0 || metricread_size(from->fd, &size) < 0 || size <= offset)
        return 0;
    off_t at = lseek(from->fd, (off_t)offset, SEEK_DATA);
    if (at < 0 && errno != ENXIO)
        return 0;
    data = at < 0 ? size : (uint64_t)at; /* the hole goes to the end */
    return data > offset ? (data - offset) / METRICREAD_CHUNK : 0;
}

int metricread_chunk(const struct metricread_origin *from,
                     struct metricread_source *src,
                     char *chunk,
                     bool final,
                     const struct metricread_sink *s,
                     size_t *ret_used)
{
    struct logread_part part = {0};
    size_t begin = 0;
    uint64_t hole = metricread_hole(from, src->offset);
    src->offset += hole * METRICREAD_CHUNK;
    src->skipping = src->skipping || hole;
    int x = metricread_read_at(from, src->offset, chunk, METRICREAD_CHUNK, &part);
    *ret_used = 0;
    if (x < 0 || !part.n)
        return x;
    size_t n = part.n;
    uint64_t base = part.offset;
    src->read += n;
    src->skipping = src->skipping && base == src->offset;
    if (src->skipping) {
        const char *nl = memchr(chunk, '\n', n);
        src->skipping = !nl;
        begin = nl ? (size_t)(nl + 1 - chunk) : n;
    }
    const char *last = memrchr(chunk + begin, '\n', n - begin);
    size_t used = last ? (size_t)(last + 1 - chunk) : begin;
    if ((final && n < METRICREAD_CHUNK) || logread_is_torn(&part, METRICREAD_CHUNK))
        used = n;
    if (!used && n == METRICREAD_CHUNK) {
        src->skipping = true;
        used = n;
    } else {
        metricread_take_lines(chunk + begin, used - begin, base + begin, s);
    }
    src->offset = base + used;
    *ret_used = used;
    return 0;
}

/* ---- the merged file ---- */

static void ignore_total(int64_t steps, bool sure, void *arg)
{
    (void)steps;
    (void)sure;
    (void)arg;
}

int metricread_merged(const char *root,
                      const char *job,
                      uint64_t most,
                      void (*record)(struct metric_record *rec, uint64_t end, void *arg),
                      void *arg,
                      uint64_t *bytes,
                      struct err *err)
{
    _cleanup_(freep) char *path = metricread_merged_path(root, job);
    _cleanup_(freep) char *chunk = NULL;
    uint64_t size = 0;
    int x = metricread_open(root, path, &size);
    if (x == -ENOENT || x == -ELOOP)
        return 0;
    if (x < 0)
        return message_refuse(
            err, x, "disk_no_open_it",
            MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_STR("why", strerror(-x))));
    _cleanup_(closep) int fd = x;
    struct metricread_sink s = {.record = record, .total = ignore_total, .arg = arg};
    struct metricread_source src = {.offset = *bytes};
    struct metricread_origin from = {.fd = fd};
    size_t used = 1;
    chunk = xmalloc(METRICREAD_CHUNK);
    for (x = 0; x == 0 && used && src.offset < most;)
        x = metricread_chunk(&from, &src, chunk, false, &s, &used);
    *bytes = src.offset;
    return x < 0 ? message_refuse(
                       err, x, "disk_no_read_it",
                       MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_STR("why", strerror(-x))))
                 : 0;
}
