/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt_value.c - the metric of a checkpoint's step; see ckpt.h. Only lines that name the step are
 * read as records, and of a long file only its end. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "core/metric.h"
#include "fsroot/beneath.h"
#include "fsroot/ckpt.h"
#include "fsroot/fsroot.h"

enum { TAIL_MAX = 64 << 20 };

struct mean {
    double sum;
    size_t n;
};

static void take_line(const char *line,
                      size_t n,
                      int64_t step,
                      const char *pattern,
                      struct mean *ret)
{
    struct metric_record m = {0};
    struct mean found = {0};
    if (metric_read_line(line, n, &m) == METRIC_RECORD && m.step == step && !m.superseded)
        for (size_t i = 0; i < m.n; i++)
            if (str_glob(pattern, m.v[i].name) && isfinite(m.v[i].value)) {
                found.sum += m.v[i].value;
                found.n++;
            }
    metric_record_release(&m);
    if (found.n)
        *ret = found; /* the newest record of the step that has it */
}

/* All of it, or its end. Bytes in *ret (yours), how many; 0: none. */
static size_t read_end(int fd, char **ret)
{
    struct stat st;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0)
        return 0;
    off_t from = st.st_size > TAIL_MAX ? st.st_size - TAIL_MAX : 0;
    size_t want = (size_t)(st.st_size - from), got;
    *ret = xmalloc(want);
    (void)file_read_at(fd, (uint64_t)from, *ret, want, &got); /* what can be read */
    return got;
}

bool ckpt_value(const char *root, const char *job, const char *pattern, int64_t step, double *ret)
{
    char word[48];
    struct mean found = {0};
    _cleanup_(freep) char *text = NULL;
    if (!fsroot_is_name(job))
        return false;
    _cleanup_(freep) char *dir = fsroot_job_dir(root, job);
    _cleanup_(closep) int top = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
    _cleanup_(closep) int fd =
        top < 0 ? -1 : beneath_open(top, "metrics/metrics.jsonl", O_RDONLY, 0);
    size_t n = fd < 0 ? 0 : read_end(fd, &text);
    (void)snprintf(word, sizeof(word), "\"step\":%" PRId64 ",", step); /* fits */
    for (const char *p = text, *end = text + n; n && p < end;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        size_t len = (size_t)((stop ? stop : end) - p);
        if (len <= METRIC_LINE_MAX && memmem(p, len, word, strlen(word)))
            take_line(p, len, step, pattern, &found);
        p += len + 1;
    }
    if (!found.n)
        return false;
    *ret = found.sum / (double)found.n;
    return true;
}
