/* SPDX-License-Identifier: Apache-2.0 */
/* logtimes_find.c - the reader of logtimes.h. The file is outside bytes: a mark that is none, or
 * that lies behind the log's end, says nothing. */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "fsroot/logs/logread.h"
#include "fsroot/logs/logtimes.h"
#include "fsroot/logs/logtimes_file.h"

/* The mark says that what lies before it is old enough. */
static bool is_old(int fd, uint64_t i, usec_t since, uint64_t *ret_offset)
{
    struct logtimes_mark m;
    size_t n = 0;
    if (file_read_at(fd, i * sizeof(m), &m, sizeof(m), &n) < 0 || n < sizeof(m) ||
        m.magic != LOGTIMES_MAGIC || m.crc != logtimes_crc(&m) || m.by > since)
        return false;
    *ret_offset = m.offset;
    return true;
}

uint64_t logtimes_find(const char *root,
                       const char *job,
                       int attempt,
                       const char *name,
                       usec_t since)
{
    struct stat st;
    struct logread_part log;
    char none;
    uint64_t offset = 0, low = 0, high;
    _cleanup_(closep) int fd = logread_open_beside(root, job, attempt, name, LOGTIMES_SUFFIX);
    if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
        return 0;
    for (high = (uint64_t)st.st_size / sizeof(struct logtimes_mark); low < high;) {
        uint64_t middle = low + (high - low) / 2;
        if (is_old(fd, middle, since, &offset))
            low = middle + 1;
        else
            high = middle;
    }
    if (logread_at(root, job, attempt, name, 0, &none, 1, &log, NULL) < 0 || offset > log.end)
        return 0;
    return offset;
}
