/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.c - removing what we made below the shared root; see fsroot.h.
 *
 * Users own directories on the way: a link that one of them puts there must not lead us to remove
 * what is another's, so the way down follows none. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"
#include "fsroot/beneath.h"
#include "fsroot/dirtree.h"
#include "fsroot/fsroot.h"

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
    _cleanup_(closep) int top = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
    _cleanup_(closep) int dir =
        top < 0 ? -errno : beneath_open(top, below, O_RDONLY | O_DIRECTORY, 0);
    if (dir == -ENOENT)
        return 0;
    if (dir < 0)
        return err_set(err, dir, "the directory of '%s' cannot be opened: %s", path,
                       strerror(-dir));
    return dirtree_remove_at(dir, slash + 1, err);
}
