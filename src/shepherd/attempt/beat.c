/* SPDX-License-Identifier: Apache-2.0 */
/* beat.c - writes the sign of life; see beat.h. */
#define _GNU_SOURCE
#include "shepherd/attempt/beat.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"

enum { BEAT_MAX = 4096 };

static void beat_to_json(const struct beat *b, struct buf *out)
{
    struct jout j = jout_begin(out);
    jout_open(&j, NULL, '{');
    jout_str(&j, "job", b->job);
    jout_int(&j, "attempt", b->attempt);
    jout_int(&j, "seq", (int64_t)b->seq);
    jout_time(&j, "at", b->at);
    jout_str(&j, "state", b->state);
    jout_int(&j, "pid", b->pid);
    jout_int(&j, "start_ticks", (int64_t)b->start_ticks);
    jout_int(&j, "shepherd_pid", getpid());
    jout_str(&j, "node", b->node);
    jout_str(&j, "ip", b->ip[0] ? b->ip : NULL);
    jout_int(&j, "log_bytes", (int64_t)b->log_bytes);
    jout_int(&j, "dropped_bytes", (int64_t)b->dropped_bytes);
    jout_int(&j, "waiting_bytes", (int64_t)b->waiting_bytes);
    jout_close(&j, '}');
    (void)buf_addc(out, '\n'); /* overflow: out->failed */
}

/* Blanks to the old length, and one write: the file's block is there already. */
static int overwrite(const char *path, struct buf *text)
{
    struct stat st;
    _cleanup_(closep) int fd = open(path, O_WRONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0 || fstat(fd, &st) < 0)
        return -errno;
    while (text->len < (size_t)st.st_size && !text->failed)
        (void)buf_addc(text, ' '); /* overflow: text->failed */
    ssize_t n = pwrite(fd, buf_str(text), text->len, 0);
    return n == (ssize_t)text->len ? 0 : -ENOSPC;
}

int beat_write(const char *path, const struct beat *b, struct err *err)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(BEAT_MAX);
    beat_to_json(b, &text);
    if (text.failed)
        return err_set(err, -EMSGSIZE, "'%s' would be larger than %d bytes", path, BEAT_MAX);
    int r = file_write(path, buf_str(&text), text.len, 0644, 0, err);
    if (r == -ENOSPC || r == -EDQUOT)
        r = overwrite(path, &text) == 0 ? 0 : r;
    return r;
}
