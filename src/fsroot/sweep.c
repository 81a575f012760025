/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.c - removing what we made below the shared root; see fsroot.h.
 *
 * Users own directories on the way: a link that one of them puts there must not lead us to remove
 * what is another's, so the way down follows none. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/str.h"
#include "fsroot/dirtree.h"
#include "fsroot/fsroot.h"

static int open_beneath(const char *root, const char *below)
{
    struct open_how how = {.flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS};
    _cleanup_(closep) int top = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    return top < 0 ? -1 : (int)syscall(SYS_openat2, top, below, &how, sizeof(how));
}

int fsroot_sweep(const char *root, const char *path, struct err *err)
{
    size_t n = strlen(root);
    if (strncmp(path, root, n) != 0 || path[n] != '/' || str_ends(path, "/"))
        return err_set(err, -EINVAL, "'%s' is not below the shared root '%s'", path, root);
    _cleanup_(freep) char *below = xstrdup(path + n + 1);
    char *slash = strrchr(below, '/');
    if (!slash || !strcmp(slash + 1, ".") || !strcmp(slash + 1, ".."))
        return err_set(err, -EINVAL, "'%s' is not ours to remove", path);
    *slash = 0;
    _cleanup_(closep) int dir = open_beneath(root, below);
    if (dir < 0 && errno == ENOENT)
        return 0;
    if (dir < 0)
        return err_set(err, -errno, "the directory of '%s' cannot be opened: %s", path,
                       strerror(errno));
    return dirtree_remove_at(dir, slash + 1, err);
}
