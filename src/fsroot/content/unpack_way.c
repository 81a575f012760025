/* SPDX-License-Identifier: Apache-2.0 */
/* unpack_way.c - see unpack_way.h. Each directory is made and opened by one name below a descriptor
 * that is held, so that one that is swapped for a link in between is an error and no way out. */
#define _GNU_SOURCE
#include "fsroot/content/unpack_way.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "fsroot/tree/beneath.h"

void unpack_way_release(struct unpack_way *w)
{
    closep(&w->fd);
    w->fd = -1;
    freep(&w->dir);
}

/* Every directory of the path, from the tree on. A descriptor or a negative errno. */
static int make_way(int tree, const char *dir)
{
    _cleanup_(freep) char *left = xstrdup(dir);
    int at = fcntl(tree, F_DUPFD_CLOEXEC, 0);
    for (char *name = left, *end; at >= 0 && *name; name = end) {
        end = name + strcspn(name, "/");
        if (*end)
            *end++ = 0;
        int next = mkdirat(at, name, 0755) < 0 && errno != EEXIST
                       ? -errno
                       : beneath_open(at, name, O_PATH | O_DIRECTORY, 0);
        (void)close(at); /* a directory: nothing can be lost */
        at = next;
        if (at < 0)
            return at;
    }
    return at < 0 ? -errno : at;
}

int unpack_way_enter(struct unpack_way *w, const char *path, bool make, const char **ret_name)
{
    const char *slash = strrchr(path, '/');
    *ret_name = slash ? slash + 1 : path;
    if (!slash)
        return w->tree;
    size_t n = (size_t)(slash - path);
    if (w->dir && !strncmp(w->dir, path, n) && !w->dir[n])
        return w->fd;
    _cleanup_(freep) char *dir = xstrndup(path, n);
    int fd = beneath_open(w->tree, dir, O_PATH | O_DIRECTORY, 0);
    if (fd == -ENOENT && make)
        fd = make_way(w->tree, dir);
    if (fd < 0)
        return fd;
    unpack_way_release(w);
    w->fd = fd;
    w->dir = dir;
    dir = NULL;
    return fd;
}
