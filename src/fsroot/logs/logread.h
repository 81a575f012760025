/* SPDX-License-Identifier: Apache-2.0 */
/* logread.h - a log of an attempt as one stream of bytes, whatever number of files it is kept in.
 *
 * A log that outgrows its ceiling is a sequence of segments: driver.log begins at offset 0, each
 * driver.log.<offset> at the offset that its name says, and so for the logs of workers. What was
 * dropped lies between two segments and reads as a gap: the offsets there have no bytes, and
 * reading goes on behind it. All offsets that a client sees count bytes of the stream, so they stay
 * true whatever is dropped. Blocking. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/mem.h"

enum { LOGREAD_SEGMENTS_MAX = 4096 };

struct logread_part {
    uint64_t offset; /* of the first byte read: behind the one asked for where a gap was skipped */
    size_t n;        /* bytes without a gap between them; 0: there is no more now */
    uint64_t end;    /* of the stream, as it is now */
    size_t files;    /* that it is kept in */
};

/* There is more behind this part that does not join it, although the reader had room. */
static inline bool logread_is_torn(const struct logread_part *p, size_t asked)
{
    return p->n < asked && p->offset + p->n < p->end;
}

/* Up to n bytes from offset, or from the first byte behind it that there is. name: of the first
 * segment, in the attempt's directory, such as ATTEMPT_LOG. -ENOENT: there is no log yet; -EINVAL:
 * no such offset, or a file that is no plain one. */
must_check int logread_at(const char *root,
                          const char *job,
                          int attempt,
                          const char *name,
                          uint64_t offset,
                          void *buf,
                          size_t n,
                          struct logread_part *ret,
                          struct err *err);

/* The file beside the log that has its name and this suffix, to read: yours, or -1. It may be
 * anything that the job put there. */
must_check int logread_open_beside(const char *root,
                                   const char *job,
                                   int attempt,
                                   const char *name,
                                   const char *suffix);

/* One of the files that a log is kept in: the bytes [begin, begin + bytes) of the whole log. */
struct logread_file {
    uint64_t begin, bytes;
};
/* The files that a log consists of now, in order; the caller frees them. -ENOENT: there is no
 * log yet. */
must_check int logread_files(const char *root,
                             const char *job,
                             int attempt,
                             const char *name,
                             struct logread_file **ret,
                             size_t *ret_n,
                             struct err *err);
