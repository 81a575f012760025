/* SPDX-License-Identifier: Apache-2.0 */
/* rootdir.c - a directory on the shared root, held open; see rootdir.h.
 *
 * A file that is written has the name ".<name>.<thread>.tmp" until it is whole. Whatever a crash or
 * a job left under that name is removed and never opened: only what we have just made is written.
 */
#define _GNU_SOURCE
#include "fsroot/tree/rootdir.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "fsroot/tree/beneath.h"

enum { NAME_BYTES_MAX = 255, OPEN_DIR = O_RDONLY | O_DIRECTORY };

void rootdir_release(struct rootdir *d)
{
    closep(&d->fd);
    freep(&d->path);
}

static int rootdir_fail(struct err *err,
                        int r,
                        const char *what,
                        const struct rootdir *d,
                        const char *name)
{
    if (r == -ELOOP || r == -EXDEV)
        return message_refuse(err, -ELOOP, "root_link_in_the_way",
                              MESSAGE_ARGS(MESSAGE_STR("verb", what), MESSAGE_STR("dir", d->path),
                                           MESSAGE_STR("name", name)));
    return message_refuse(err, r, "root_cannot",
                          MESSAGE_ARGS(MESSAGE_STR("verb", what), MESSAGE_STR("dir", d->path),
                                       MESSAGE_STR("name", name),
                                       MESSAGE_STR("why", strerror(-r))));
}

/* So that no name leaves the directory. */
static int rootdir_check_name(const struct rootdir *d, const char *name, struct err *err)
{
    if (*name && !strchr(name, '/') && !str_eq(name, ".") && !str_eq(name, ".."))
        return 0;
    return message_refuse(err, -EINVAL, "bad_dir_name",
                          MESSAGE_ARGS(MESSAGE_STR("name", name), MESSAGE_STR("dir", d->path)));
}

/* ESTALE says that the name was looked up in an old cache: the second try asks the server. */
static int open_below(int dir, const char *below, int flags)
{
    int fd = beneath_open(dir, below, flags, 0);
    return fd == -ESTALE ? beneath_open(dir, below, flags, 0) : fd;
}

/* ---- opening ---- */

/* Opens one name, after making it where it is missing; a negative errno or the descriptor. */
static int make_or_open(int dir, const char *name, mode_t mode)
{
    int fd = open_below(dir, name, OPEN_DIR);
    if (fd != -ENOENT)
        return fd;
    bool made = mkdirat(dir, name, mode) == 0;
    if (!made && errno != EEXIST)
        return -errno;
    fd = open_below(dir, name, OPEN_DIR);
    if (fd >= 0 && made && fchmod(fd, mode) < 0) { /* the umask must not decide */
        int error = errno;
        (void)close(fd); /* it was only opened */
        return -error;
    }
    return fd;
}

/* The directories of the path, one below the other. */
static int open_making(int dir, const char *below, mode_t mode)
{
    int fd = open_below(dir, ".", OPEN_DIR);
    for (const char *s = below + strspn(below, "/"); fd >= 0 && *s; s += strspn(s, "/")) {
        size_t n = strcspn(s, "/");
        _cleanup_(freep) char *name = xstrndup(s, n);
        _cleanup_(closep) int above = fd;
        fd = str_eq(name, "..") ? -EXDEV : make_or_open(above, name, mode);
        s += n;
    }
    return fd;
}

static int open_dir(int dir, const char *below, mode_t make)
{
    int fd = open_below(dir, below, OPEN_DIR);
    return fd == -ENOENT && make ? open_making(dir, below, make) : fd;
}

/* fd and path are taken. */
static int rootdir_keep(int fd, char *path, struct rootdir *ret)
{
    *ret = (struct rootdir){.fd = fd, .path = path};
    return 0;
}

int rootdir_open_in(const struct rootdir *d,
                    const char *below,
                    mode_t make,
                    struct rootdir *ret,
                    struct err *err)
{
    int fd = open_dir(d->fd, below, make);
    if (fd < 0)
        return rootdir_fail(err, fd, "open", d, below);
    return rootdir_keep(fd, xasprintf("%s/%s", d->path, below), ret);
}

const char *rootdir_below(const char *root, const char *path)
{
    size_t n = strlen(root);
    if (*path != '/')
        return path;
    while (n > 1 && root[n - 1] == '/')
        n--;
    if (n == 1)
        n = 0; /* the root is "/" */
    if (strncmp(path, root, n) != 0 || (path[n] && path[n] != '/'))
        return NULL;
    path += n;
    return path + strspn(path, "/");
}

static int open_root(const char *root, struct rootdir *ret, struct err *err)
{
    int fd = open(root, OPEN_DIR | O_CLOEXEC);
    if (fd < 0)
        return message_refuse(
            err, errno == ENOENT ? -EIO : -errno, "root_no_open",
            MESSAGE_ARGS(MESSAGE_STR("root", root), MESSAGE_STR("why", strerror(errno))));
    return rootdir_keep(fd, xstrdup(root), ret);
}

int rootdir_open(const char *root,
                 const char *path,
                 mode_t make,
                 struct rootdir *ret,
                 struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir top = ROOTDIR_NONE;
    const char *below = rootdir_below(root, path);
    if (!below)
        return message_refuse(err, -EXDEV, "root_not_below",
                              MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_STR("root", root)));
    int r = open_root(root, *below ? &top : ret, err);
    return r < 0 || !*below ? r : rootdir_open_in(&top, below, make, ret, err);
}

int rootdir_open_above(const char *root,
                       const char *path,
                       mode_t make,
                       struct rootdir *ret,
                       const char **ret_name,
                       struct err *err)
{
    const char *below = rootdir_below(root, path);
    if (!below || !*below)
        return message_refuse(err, -EXDEV, "root_not_below",
                              MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_STR("root", root)));
    const char *slash = strrchr(below, '/');
    _cleanup_(freep) char *dir = slash ? xstrndup(below, (size_t)(slash - below)) : xstrdup("");
    int r = rootdir_open(root, dir, make, ret, err);
    if (r < 0)
        return r;
    *ret_name = slash ? slash + 1 : below;
    return 0;
}

int rootdir_make_new(const struct rootdir *d,
                     const char *name,
                     mode_t mode,
                     struct rootdir *ret,
                     struct err *err)
{
    int r = rootdir_check_name(d, name, err);
    if (r < 0)
        return r;
    if (mkdirat(d->fd, name, mode) < 0)
        return rootdir_fail(err, -errno, "make the directory", d, name);
    int fd = open_below(d->fd, name, OPEN_DIR);
    if (fd >= 0 && fchmod(fd, mode) < 0) {
        r = -errno;
        (void)close(fd); /* it was only opened */
        fd = r;
    }
    if (fd < 0)
        return rootdir_fail(err, fd, "make the directory", d, name);
    return rootdir_keep(fd, xasprintf("%s/%s", d->path, name), ret);
}

/* ---- looking and reading ---- */

int rootdir_look(const struct rootdir *d, const char *name, struct stat *ret)
{
    if (rootdir_check_name(d, name, NULL) < 0)
        return -EINVAL;
    int r = fstatat(d->fd, name, ret, AT_SYMLINK_NOFOLLOW);
    if (r < 0 && errno == ESTALE)
        r = fstatat(d->fd, name, ret, AT_SYMLINK_NOFOLLOW);
    return r < 0 ? -errno : 0;
}

int rootdir_look_for(const struct rootdir *d, const char *name, bool *ret, struct err *err)
{
    struct stat st;
    int r = rootdir_look(d, name, &st);
    if (r < 0 && !file_is_absence(r))
        return rootdir_fail(err, r, "look at", d, name);
    *ret = r == 0;
    return 0;
}

int rootdir_list(const struct rootdir *d, DIR **ret, struct err *err)
{
    int fd = open_below(d->fd, ".", OPEN_DIR); /* its own place in the listing */
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        int r = fd < 0 ? fd : -errno;
        closep(&fd);
        return message_refuse(
            err, r, "disk_no_list",
            MESSAGE_ARGS(MESSAGE_STR("path", d->path), MESSAGE_STR("why", strerror(-r))));
    }
    *ret = dir;
    return 0;
}

int rootdir_open_file(const struct rootdir *d, const char *below, struct err *err)
{
    struct stat st;
    int fd = open_below(d->fd, below, O_RDONLY);
    if (fd < 0 && fd != -EINVAL)
        return rootdir_fail(err, fd == -ENOTDIR ? -ENOENT : fd, "open", d, below);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode))
        return fd;
    closep(&fd);
    return message_refuse(err, -EINVAL, "disk_no_regular",
                          MESSAGE_ARGS(MESSAGE_STR("dir", d->path), MESSAGE_STR("name", below)));
}

int rootdir_read(const struct rootdir *d, const char *below, struct buf *out, struct err *err)
{
    _cleanup_(closep) int fd = rootdir_open_file(d, below, err);
    if (fd < 0)
        return fd;
    _cleanup_(freep) char *path = xasprintf("%s/%s", d->path, below);
    return file_read_open(fd, path, out, err);
}

/* ---- by links that stay below ---- */

/* For an absolute link: by the path that the directory is known by, or by its real one. */
static const char *below_either(const char *text, const void *arg)
{
    const struct rootdir *d = arg;
    char proc[32], real[4096];
    const char *below = rootdir_below(d->path, text);
    if (below)
        return below;
    text_printf(proc, "/proc/self/fd/%d", d->fd);
    ssize_t n = readlink(proc, real, sizeof(real) - 1);
    if (n <= 0)
        return NULL;
    real[n] = 0;
    return rootdir_below(real, text);
}

int rootdir_resolve(const struct rootdir *d, const char *below, char **ret)
{
    return beneath_resolve(d->fd, below, below_either, d, ret);
}

static int open_where_it_ends(const struct rootdir *d,
                              const char *below,
                              int open_flags,
                              char **ret_real)
{
    _cleanup_(freep) char *real = NULL;
    int fd = rootdir_resolve(d, below, &real);
    if (fd == 0)
        fd = open_below(d->fd, *real ? real : ".", open_flags);
    if (ret_real && (fd >= 0 || fd == -EXDEV)) {
        *ret_real = real;
        real = NULL;
    }
    return fd;
}

int rootdir_open_followed(const struct rootdir *d,
                          const char *below,
                          int open_flags,
                          char **ret_real)
{
    int fd = open_below(d->fd, *below ? below : ".", open_flags);
    if (ret_real && (fd >= 0 || fd == -EXDEV)) /* it leads out by itself, or is what it says */
        *ret_real = xstrdup(below);
    for (int k = 0; k < 2 && fd == -ELOOP; k++) /* twice: it was moved meanwhile */
        fd = open_where_it_ends(d, below, open_flags, ret_real);
    return fd;
}

bool rootdir_is_answer(int r)
{
    static const int answers[] = {ENOENT, ENOTDIR,      ELOOP,  EXDEV,    EACCES,
                                  EPERM,  ENAMETOOLONG, EINVAL, EMSGSIZE, ENXIO};
    for (size_t i = 0; i < array_len(answers); i++)
        if (r == -answers[i])
            return true;
    return false;
}

/* ---- changing ---- */

int rootdir_open_for(const struct rootdir *d,
                     const char *name,
                     int open_flags,
                     mode_t mode,
                     struct err *err)
{
    int r = rootdir_check_name(d, name, err);
    if (r < 0)
        return r;
    int fd = -EEXIST;
    if (open_flags & O_CREAT) {
        fd = openat(d->fd, name, open_flags | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
        fd = fd < 0 ? -errno : fd;
    }
    if (fd == -EEXIST && !(open_flags & O_EXCL)) /* what has the name is looked at first */
        fd = file_open_regular(d->fd, name, open_flags & ~O_CREAT);
    return fd < 0 ? rootdir_fail(err, fd, "write", d, name) : fd;
}

/* ".<name>.<thread>.tmp", also of a name that has the greatest length. */
static char *rootdir_temporary(const char *name)
{
    return xasprintf(".%.*s.%d.tmp", NAME_BYTES_MAX - 20, name, (int)gettid());
}

/* A new file with this name, whatever had it goes. */
static int open_fresh(const struct rootdir *d, const char *name, mode_t mode)
{
    enum { FLAGS = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC };
    int fd = openat(d->fd, name, FLAGS | O_NOFOLLOW, mode);
    if (fd < 0 && errno == EEXIST && unlinkat(d->fd, name, 0) == 0)
        fd = openat(d->fd, name, FLAGS | O_NOFOLLOW, mode);
    return fd < 0 ? -errno : fd;
}

static int rootdir_fill(int fd, const void *p, size_t n, mode_t mode, unsigned flags)
{
    int r = fchmod(fd, mode) < 0 ? -errno : file_write_all(fd, p, n);
    if (r == 0 && (flags & FILE_SYNC) && fsync(fd) < 0)
        r = -errno;
    if (close(fd) < 0 && r == 0) /* NFS tells here that there was no space */
        r = -errno;
    return r;
}

int rootdir_write(const struct rootdir *d,
                  const char *name,
                  const void *p,
                  size_t n,
                  mode_t mode,
                  unsigned flags,
                  struct err *err)
{
    int r = rootdir_check_name(d, name, err);
    if (r < 0)
        return r;
    _cleanup_(freep) char *tmp = rootdir_temporary(name);
    int fd = open_fresh(d, tmp, mode);
    if (fd < 0)
        return rootdir_fail(err, fd, "write", d, name);
    r = rootdir_fill(fd, p, n, mode, flags);
    if (r == 0 && renameat(d->fd, tmp, d->fd, name) < 0)
        r = -errno;
    if (r < 0) {
        (void)unlinkat(d->fd, tmp, 0); /* what is left of it */
        return rootdir_fail(err, r, "write", d, name);
    }
    /* EINVAL: this file system has no need of it. */
    if ((flags & FILE_SYNC) && fsync(d->fd) < 0 && errno != EINVAL)
        return rootdir_fail(err, -errno, "sync the directory of", d, name);
    return 0;
}

int rootdir_append(const struct rootdir *d,
                   const char *name,
                   const void *p,
                   size_t n,
                   struct err *err)
{
    _cleanup_(closep) int fd = rootdir_open_for(d, name, O_WRONLY | O_CREAT | O_APPEND, 0644, err);
    int r = fd < 0 ? fd : file_write_all(fd, p, n);
    return fd >= 0 && r < 0 ? rootdir_fail(err, r, "write", d, name) : r;
}

int rootdir_symlink(const struct rootdir *d, const char *name, const char *text, struct err *err)
{
    char now[4096];
    int r = rootdir_check_name(d, name, err);
    if (r < 0)
        return r;
    ssize_t n = readlinkat(d->fd, name, now, sizeof(now));
    if (n == (ssize_t)strlen(text) && !memcmp(now, text, (size_t)n))
        return 0;
    _cleanup_(freep) char *tmp = rootdir_temporary(name);
    (void)unlinkat(d->fd, tmp, 0); /* a crash may have left it */
    if (symlinkat(text, d->fd, tmp) < 0)
        return rootdir_fail(err, -errno, "make the link", d, name);
    if (renameat(d->fd, tmp, d->fd, name) < 0) {
        r = -errno;
        (void)unlinkat(d->fd, tmp, 0); /* the failure is told */
        return rootdir_fail(err, r, "make the link", d, name);
    }
    return 0;
}

int rootdir_link(const struct rootdir *from,
                 const char *name,
                 const struct rootdir *to,
                 const char *to_name,
                 struct err *err)
{
    int r = rootdir_check_name(from, name, err);
    if (r == 0)
        r = rootdir_check_name(to, to_name, err);
    if (r == 0 && linkat(from->fd, name, to->fd, to_name, 0) < 0)
        r = rootdir_fail(err, -errno, "make the second name of a file,", to, to_name);
    return r;
}

/* A name that is not there yet, in one step. NFS knows no RENAME_NOREPLACE, but hard links. */
static int rename_to_new(int from, const char *name, int to, const char *to_name)
{
    if (renameat2(from, name, to, to_name, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    if (linkat(from, name, to, to_name, 0) < 0)
        return -errno;
    (void)unlinkat(from, name, 0); /* a second name of the same bytes: its directory goes */
    return 0;
}

int rootdir_rename(const struct rootdir *from,
                   const char *name,
                   const struct rootdir *to,
                   const char *to_name,
                   unsigned flags,
                   struct err *err)
{
    int r = rootdir_check_name(from, name, err);
    if (r == 0)
        r = rootdir_check_name(to, to_name, err);
    if (r < 0)
        return r;
    if (flags & ROOTDIR_NEW)
        r = rename_to_new(from->fd, name, to->fd, to_name);
    else
        r = renameat(from->fd, name, to->fd, to_name) < 0 ? -errno : 0;
    return r < 0 ? rootdir_fail(err, r, "rename to", to, to_name) : 0;
}

int rootdir_chmod(const struct rootdir *d, const char *name, mode_t mode, struct err *err)
{
    struct stat st;
    int r = rootdir_check_name(d, name, err);
    if (r < 0)
        return r;
    _cleanup_(closep) int fd = rootdir_open_file(d, name, err);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        return rootdir_fail(err, -errno, "look at", d, name);
    if (st.st_nlink != 1)
        return message_refuse(err, -EPERM, "disk_second_name",
                              MESSAGE_ARGS(MESSAGE_STR("dir", d->path), MESSAGE_STR("name", name)));
    return fchmod(fd, mode) < 0 ? rootdir_fail(err, -errno, "set the mode of", d, name) : 0;
}

int rootdir_unlink(const struct rootdir *d, const char *name, struct err *err)
{
    int r = rootdir_check_name(d, name, err);
    if (r == 0 && unlinkat(d->fd, name, 0) < 0 && errno != ENOENT)
        r = rootdir_fail(err, -errno, "remove", d, name);
    return r;
}
