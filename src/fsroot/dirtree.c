/* SPDX-License-Identifier: Apache-2.0 */
/* dirtree.c - see dirtree.h. Whoever can write to the shared root may change a tree while it is
 * walked: each step opens by name below a directory that is held open, and follows no link. */
#define _GNU_SOURCE
#include "fsroot/dirtree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DEPTH_MAX = 200 };

static int remove_at(int fd, const char *name, int depth, struct err *err);

static int remove_inside(int dir, const char *name, int depth, struct err *err)
{
    int r = 0;
    DIR *d = fdopendir(dir);
    if (!d) {
        r = err_set(err, -errno, "'%s' cannot be removed: %s", name, strerror(errno));
        (void)close(dir); /* nothing was written */
        return r;
    }
    for (struct dirent *e; r == 0 && (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            r = remove_at(dirfd(d), e->d_name, depth + 1, err);
    (void)closedir(d); /* it was only read */
    return r;
}

static int remove_at(int fd, const char *name, int depth, struct err *err)
{
    if (unlinkat(fd, name, 0) == 0 || errno == ENOENT)
        return 0;
    if (errno != EISDIR && errno != EPERM)
        return err_set(err, -errno, "'%s' cannot be removed: %s", name, strerror(errno));
    if (depth > DEPTH_MAX)
        return err_set(err, -ELOOP, "'%s' cannot be removed: it is too deep", name);
    int dir = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return err_set(err, -errno, "'%s' cannot be removed: %s", name, strerror(errno));
    (void)fchmod(dir, 0700); /* a tree that is locked; else removing says so */
    int r = remove_inside(dir, name, depth, err);
    if (r == 0 && unlinkat(fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
        r = err_set(err, -errno, "'%s' cannot be removed: %s", name, strerror(errno));
    return r;
}

int dirtree_remove_at(int fd, const char *name, struct err *err)
{
    return remove_at(fd, name, 0, err);
}

int dirtree_remove(const char *path, struct err *err)
{
    return remove_at(AT_FDCWD, path, 0, err);
}
