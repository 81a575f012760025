/* SPDX-License-Identifier: Apache-2.0 */
/* file.c - reading whole and writing atomically; see file.h. */
#include "argus/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"

int file_read(const char *path, struct buf *out, struct err *err)
{
    bool is_stdin = str_eq(path, "-");
    _cleanup_(closep) int owned = is_stdin ? -1 : open(path, O_RDONLY | O_CLOEXEC);
    int fd = is_stdin ? STDIN_FILENO : owned;
    if (fd < 0)
        return err_set(err, -errno, "cannot read '%s': %s", path, strerror(errno));
    char piece[1 << 14];
    for (;;) {
        ssize_t n = read(fd, piece, sizeof(piece));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return err_set(err, -errno, "cannot read '%s': %s", path, strerror(errno));
        if (!n)
            return 0;
        if (buf_add(out, piece, (size_t)n) < 0)
            return err_set(err, ERR_TOO_LARGE, "'%s' is larger than %zu bytes", path, out->max);
    }
}

static int make_directories(char *path, struct err *err)
{
    for (char *p = path + 1; (p = strchr(p, '/')); p++) {
        *p = 0;
        int r = mkdir(path, 0700);
        int code = errno;
        *p = '/';
        if (r < 0 && code != EEXIST)
            return err_set(err, -code, "cannot make the directory of '%s': %s", path,
                           strerror(code));
    }
    return 0;
}

static int write_all(int fd, const char *data, size_t len)
{
    while (len) {
        ssize_t n = write(fd, data, len);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        data += n;
        len -= (size_t)n;
    }
    return fsync(fd) < 0 ? -errno : 0;
}

int file_write_private(const char *path, const char *data, size_t len, struct err *err)
{
    _cleanup_(freep) char *temporary = xasprintf("%s.XXXXXX", path);
    int r = make_directories(temporary, err);
    if (r < 0)
        return r;
    int fd = mkostemp(temporary, O_CLOEXEC); /* 0600 by itself */
    if (fd < 0)
        return err_set(err, -errno, "cannot write '%s': %s", path, strerror(errno));
    r = write_all(fd, data, len);
    if (close(fd) < 0 && r >= 0)
        r = -errno;
    if (r >= 0 && rename(temporary, path) < 0)
        r = -errno;
    if (r < 0) {
        (void)unlink(temporary); /* may be gone already */
        return err_set(err, r, "cannot write '%s': %s", path, strerror(-r));
    }
    return 0;
}
