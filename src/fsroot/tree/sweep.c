/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.c - removing what we made below the shared root; see sweep.h.
 *
 * Users own directories on the way: a link that one of them puts there must not lead us to remove
 * what is another's, so the way down follows none. */
#include <errno.h>
#include <string.h>

#include "base/message.h"
#include "base/str.h"
#include "fsroot/tree/dirtree.h"
#include "fsroot/tree/rootdir.h"
#include "fsroot/tree/sweep.h"

int fsroot_sweep(const char *root, const char *path, struct err *err)
{
    const char *below = *path == '/' ? rootdir_below(root, path) : NULL;
    if (!below || str_ends(path, "/"))
        return message_refuse(err, -EINVAL, "root_not_below",
                              MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_STR("root", root)));
    const char *slash = strrchr(below, '/');
    if (!slash || str_eq(slash + 1, ".") || str_eq(slash + 1, ".."))
        return message_refuse(err, -EINVAL, "not_ours_to_remove",
                              MESSAGE_ARGS(MESSAGE_STR("path", path)));
    _cleanup_(rootdir_release) struct rootdir dir = ROOTDIR_NONE;
    const char *name = NULL;
    int r = rootdir_open_above(root, path, 0, &dir, &name, err);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    return dirtree_remove_at(dir.fd, name, err);
}
