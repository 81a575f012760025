/* SPDX-License-Identifier: Apache-2.0 */
/* file.c - whole small files by rename; see file.h.
 *
 * The temporary name carries the thread's id, so that two threads of argusd's
 * pool that write the same file do not write into each other; a crash leaves at
 * most one such file, and the next writer with that id takes it over. */
#define _GNU_SOURCE
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/message.h"
#include "base/text.h"

static int file_fail(struct err *err, int error, const char *what, const char *path)
{
    return message_refuse(err, -error, "file_cannot",
                          MESSAGE_ARGS(MESSAGE_STR("verb", what), MESSAGE_STR("path", path),
                                       MESSAGE_STR("why", strerror(error))));
}

/* ESTALE says that the name was looked up in an old cache: the second try asks the server. */
static int open_again(const char *path, int flags)
{
    int fd = open(path, flags | O_CLOEXEC);
    return fd < 0 && errno == ESTALE ? open(path, flags | O_CLOEXEC) : fd;
}

static int file_read_all(int fd, struct buf *out, const char *path, struct err *err)
{
    char part[16384];
    for (;;) {
        ssize_t n = read(fd, part, sizeof(part));
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return file_fail(err, errno, "read", path);
        if (n == 0)
            return 0;
        if (buf_add(out, part, (size_t)n) < 0)
            return message_refuse(
                err, -EMSGSIZE, "file_larger",
                MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_NUM("most", out->max)));
    }
}

int file_read_open(int fd, const char *path, struct buf *out, struct err *err)
{
    struct stat st;
    if (fstat(fd, &st) < 0)
        return file_fail(err, errno, "look at", path);
    if (!S_ISREG(st.st_mode))
        return message_refuse(err, -EINVAL, "file_no_regular",
                              MESSAGE_ARGS(MESSAGE_STR("path", path)));
    return file_read_all(fd, out, path, err);
}

int file_read(const char *path, struct buf *out, struct err *err)
{
    /* O_NONBLOCK: a FIFO put in a file's place must not hold us. */
    _cleanup_(closep) int fd = open_again(path, O_RDONLY | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return file_fail(err, errno == ENOTDIR ? ENOENT : errno, "open", path);
    return file_read_open(fd, path, out, err);
}

/* By its name in /proc, which leads to what the descriptor stands for and is no name that somebody
 * could put something else under. */
int file_reopen(int seen, int open_flags)
{
    char at[32];
    struct stat st;
    if (fstat(seen, &st) < 0)
        return -errno;
    if (S_ISLNK(st.st_mode))
        return -ELOOP;
    if (!S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode))
        return -EINVAL;
    text_printf(at, "/proc/self/fd/%d", seen);
    int fd = open(at, (open_flags & ~O_NOFOLLOW) | O_NONBLOCK | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

int file_open_regular(int dir, const char *name, int open_flags)
{
    struct stat st;
    _cleanup_(closep) int seen = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (seen < 0 || fstat(seen, &st) < 0)
        return -errno;
    return S_ISDIR(st.st_mode) ? -EINVAL : file_reopen(seen, open_flags);
}

int file_read_input(const char *path, struct buf *out, struct err *err)
{
    if (strcmp(path, "-") == 0)
        return file_read_all(STDIN_FILENO, out, path, err);
    _cleanup_(closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd < 0 ? file_fail(err, errno, "read", path) : file_read_all(fd, out, path, err);
}

int file_write_all(int fd, const void *p, size_t n)
{
    const char *s = p;
    while (n) {
        ssize_t k = write(fd, s, n);
        if (k < 0 && errno == EINTR)
            continue;
        if (k < 0)
            return -errno;
        s += k;
        n -= (size_t)k;
    }
    return 0;
}

int file_write_at(int fd, uint64_t at, const void *p, size_t n)
{
    for (size_t done = 0; done < n;) {
        ssize_t k = pwrite(fd, (const char *)p + done, n - done, (off_t)(at + done));
        if (k > 0)
            done += (size_t)k;
        else if (k == 0)
            return -ENOSPC; /* it would go on for ever */
        else if (errno != EINTR)
            return -errno;
    }
    return 0;
}

int file_read_at(int fd, uint64_t at, void *to, size_t n, size_t *ret_n)
{
    int r = 0;
    size_t have = 0;
    while (r == 0 && have < n) {
        ssize_t k = pread(fd, (char *)to + have, n - have, (off_t)(at + have));
        if (k == 0)
            break;
        if (k > 0)
            have += (size_t)k;
        else if (errno != EINTR)
            r = -errno;
    }
    *ret_n = have;
    return r;
}

/* "a/b/name" to "a/b/.name.<tid>.tmp". */
static char *temporary(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t dir = slash ? (size_t)(slash - path) + 1 : 0;
    return xasprintf("%.*s.%s.%d.tmp", (int)dir, path, path + dir, (int)gettid());
}

int file_sync_directory(const char *dir)
{
    _cleanup_(closep) int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    /* EINVAL: this file system has no need of it. */
    return fsync(fd) < 0 && errno != EINVAL ? -errno : 0;
}

static int sync_directory_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    _cleanup_(freep) char *dir =
        slash ? xstrndup(path, slash == path ? 1 : (size_t)(slash - path)) : xstrdup(".");
    return file_sync_directory(dir);
}

static int file_fill(const char *tmp, const void *p, size_t n, mode_t mode, unsigned flags)
{
    int fd = open(tmp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, mode);
    if (fd < 0)
        return -errno;
    int r = fchmod(fd, mode) < 0 ? -errno : 0;
    if (r == 0)
        r = file_write_all(fd, p, n);
    if (r == 0 && (flags & FILE_SYNC) && fsync(fd) < 0)
        r = -errno;
    if (close(fd) < 0 && r == 0) /* NFS tells here that there was no space */
        r = -errno;
    return r;
}

int file_write(const char *path,
               const void *p,
               size_t n,
               mode_t mode,
               unsigned flags,
               struct err *err)
{
    _cleanup_(freep) char *tmp = temporary(path);
    int r = file_fill(tmp, p, n, mode, flags);
    if (r == 0 && rename(tmp, path) < 0)
        r = -errno;
    if (r < 0) {
        (void)unlink(tmp); /* may not exist */
        return file_fail(err, -r, "write", path);
    }
    r = flags & FILE_SYNC ? sync_directory_of(path) : 0;
    return r < 0 ? file_fail(err, -r, "sync the directory of", path) : 0;
}

/* 0 also when it is there and a directory. */
static int file_make_one(const char *path, mode_t mode)
{
    if (mkdir(path, mode) == 0)
        return chmod(path, mode) < 0 ? -errno : 0; /* the umask must not decide */
    if (errno != EEXIST)
        return -errno;
    struct stat st;
    if (stat(path, &st) < 0)
        return -errno;
    return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

int file_mkdirs(const char *path, mode_t mode, struct err *err)
{
    int r = file_make_one(path, mode);
    if (r != -ENOENT)
        return r < 0 ? file_fail(err, -r, "make the directory", path) : 0;
    _cleanup_(freep) char *part = xstrdup(path);
    for (char *s = part + 1; (s = strchr(s, '/')); s++) {
        *s = 0;
        r = file_make_one(part, mode);
        if (r < 0)
            return file_fail(err, -r, "make the directory", part);
        *s = '/';
    }
    r = file_make_one(path, mode);
    return r < 0 ? file_fail(err, -r, "make the directory", path) : 0;
}

int file_write_private(const char *path, const void *p, size_t n, struct err *err)
{
    const char *slash = strrchr(path, '/');
    _cleanup_(freep) char *dir =
        slash && slash > path ? xstrndup(path, (size_t)(slash - path)) : NULL;
    int r = dir ? file_mkdirs(dir, 0700, err) : 0;
    return r < 0 ? r : file_write(path, p, n, 0600, FILE_SYNC, err);
}

bool file_is_absence(int r)
{
    return r == -ENOENT || r == -ENOTDIR;
}

int file_look_for(const char *path, bool *ret, struct err *err)
{
    struct stat st;
    int r = lstat(path, &st) < 0 ? -errno : 0;
    if (r == -ESTALE)
        r = lstat(path, &st) < 0 ? -errno : 0;
    if (r < 0 && !file_is_absence(r))
        return file_fail(err, -r, "look at", path);
    *ret = r == 0;
    return 0;
}

void file_each_name(const char *path, file_name_f f, void *arg)
{
    DIR *dir = opendir(path);
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            !f(dirfd(dir), e->d_name, arg))
            break;
    if (dir)
        (void)closedir(dir); /* it was only read */
}
