/* SPDX-License-Identifier: Apache-2.0 */
/* dirtree.c - walks and removals of directory trees; see dirtree.h. Every user who can write to
 * the shared root may change a tree while it is walked: each step opens by name below a
 * directory that is held open, and follows no link. */
#define _GNU_SOURCE
#include "fsroot/tree/dirtree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/message.h"
#include "base/str.h"

/* PASSES: some file systems skip names while others are removed; the names that an NFS server
 * keeps for open files (.nfs…) cannot be removed. */
enum { DEPTH_MAX = 200, PASSES = 4 };

static int remove_at(struct dirtree_removal *x, int fd, const char *name, int depth);

static bool dirtree_is_dots(const char *name)
{
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

bool dirtree_is_bytecode(const char *path)
{
    return str_starts(path, DIRTREE_BYTECODE "/") || strstr(path, "/" DIRTREE_BYTECODE "/");
}

/* All that is in it now; *ret_n: how many there were. */
static int remove_once(struct dirtree_removal *x, DIR *d, int depth, size_t *ret_n)
{
    int r = 0;
    errno = 0;
    for (struct dirent *e; r == 0 && (e = readdir(d)); errno = 0) {
        if (dirtree_is_dots(e->d_name))
            continue;
        r = remove_at(x, dirfd(d), e->d_name, depth + 1);
        ++*ret_n;
    }
    return r < 0 ? r : -errno;
}

/* dir is taken. */
static int remove_inside(struct dirtree_removal *x, int dir, int depth)
{
    DIR *d = fdopendir(dir);
    if (!d) {
        int error = errno;
        (void)close(dir); /* nothing was written */
        return -error;
    }
    size_t n = 1;
    int r = 0;
    for (int k = 0; k < PASSES && n && r == 0; k++) {
        n = 0;
        rewinddir(d);
        r = remove_once(x, d, depth, &n);
    }
    (void)closedir(d); /* it was only read */
    return r;
}

static int dirtree_fail(struct dirtree_removal *x, const char *name, int r)
{
    if (!x->at)
        x->at = xstrdup(name);
    return r;
}

/* By errno. What went meanwhile is removed. */
static int fail_unless_gone(struct dirtree_removal *x, const char *name)
{
    return errno == ENOENT ? 0 : dirtree_fail(x, name, -errno);
}

static int remove_at(struct dirtree_removal *x, int fd, const char *name, int depth)
{
    int r = x->check ? x->check(fd, name, x->arg) : 0;
    if (r < 0)
        return dirtree_fail(x, name, r);
    if (unlinkat(fd, name, 0) == 0) {
        x->removed++;
        return 0;
    }
    if (errno != EISDIR && errno != EPERM)
        return fail_unless_gone(x, name);
    if (depth > DEPTH_MAX)
        return dirtree_fail(x, name, -E2BIG);
    int dir = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return fail_unless_gone(x, name);
    if (x->unlock)
        (void)fchmod(dir, 0700); /* else removing says so */
    r = remove_inside(x, dir, depth);
    if (r == 0 && unlinkat(fd, name, AT_REMOVEDIR) < 0)
        r = errno == ENOENT ? 0 : -errno;
    else if (r == 0)
        x->removed++;
    return r < 0 ? dirtree_fail(x, name, r) : 0;
}

int dirtree_remove_with(int fd, const char *name, struct dirtree_removal *x)
{
    return remove_at(x, fd, name, 0);
}

int dirtree_remove_at(int fd, const char *name, struct err *err)
{
    struct dirtree_removal x = {.unlock = true};
    int r = remove_at(&x, fd, name, 0);
    if (r < 0)
        (void)message_refuse(
            err, r, "disk_no_remove",
            MESSAGE_ARGS(MESSAGE_STR("path", str_or(x.at, name)),
                         MESSAGE_STR("why", r == -E2BIG ? "it is too deep"
                                                        : strerror(-r)))); /* only fills err */
    free(x.at);
    return r;
}

int dirtree_remove(const char *path, struct err *err)
{
    return dirtree_remove_at(AT_FDCWD, path, err);
}
