/* SPDX-License-Identifier: Apache-2.0 */
/* rootfile.c - one file on the shared root, by its path; see rootfile.h. */
#define _GNU_SOURCE
#include "fsroot/tree/rootfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/message.h"
#include "fsroot/tree/beneath.h"

int rootfile_read(const char *root, const char *path, struct buf *out, struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir top = ROOTDIR_NONE;
    const char *below = rootdir_below(root, path);
    int r =
        below ? rootdir_open(root, "", 0, &top, err)
              : message_refuse(err, -EXDEV, "root_not_below",
                               MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_STR("root", root)));
    return r < 0 ? r : rootdir_read(&top, below, out, err);
}

int rootfile_write(const char *root,
                   const char *path,
                   mode_t make,
                   const void *p,
                   size_t n,
                   mode_t mode,
                   unsigned flags,
                   struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir dir = ROOTDIR_NONE;
    const char *name = NULL;
    int r = rootdir_open_above(root, path, make, &dir, &name, err);
    return r < 0 ? r : rootdir_write(&dir, name, p, n, mode, flags, err);
}

int rootfile_symlink(const char *root,
                     const char *path,
                     mode_t make,
                     const char *text,
                     struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir dir = ROOTDIR_NONE;
    const char *name = NULL;
    int r = rootdir_open_above(root, path, make, &dir, &name, err);
    return r < 0 ? r : rootdir_symlink(&dir, name, text, err);
}

int rootfile_mkdirs(const char *root, const char *path, mode_t mode, struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir dir = ROOTDIR_NONE;
    return rootdir_open(root, path, mode, &dir, err);
}

int rootfile_list(const char *root, const char *path, DIR **ret, struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir dir = ROOTDIR_NONE;
    int r = rootdir_open(root, path, 0, &dir, err);
    return r < 0 ? r : rootdir_list(&dir, ret, err);
}

int rootfile_append(const char *root, const char *path, const void *p, size_t n, struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir dir = ROOTDIR_NONE;
    const char *name = NULL;
    int r = rootdir_open_above(root, path, 0, &dir, &name, err);
    return r < 0 ? r : rootdir_append(&dir, name, p, n, err);
}

int rootfile_look(const char *root, const char *path, struct stat *ret)
{
    _cleanup_(rootdir_release) struct rootdir dir = ROOTDIR_NONE;
    const char *name = NULL;
    int r = rootdir_open_above(root, path, 0, &dir, &name, NULL);
    return r < 0 ? r : rootdir_look(&dir, name, ret);
}

int rootfile_look_for(const char *root, const char *path, bool *ret, struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir dir = ROOTDIR_NONE;
    struct err why = {0};
    const char *name = NULL;
    int r = rootdir_open_above(root, path, 0, &dir, &name, &why);
    if (r == 0)
        return rootdir_look_for(&dir, name, ret, err);
    if (!file_is_absence(r))
        return err_copy(err, r, &why);
    *ret = false;
    return 0;
}

int rootfile_open(const char *root, const char *path, struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir dir = ROOTDIR_NONE;
    const char *name = NULL;
    int r = rootdir_open_above(root, path, 0, &dir, &name, err);
    return r < 0 ? r : rootdir_open_file(&dir, name, err);
}

int rootfile_open_within(const char *root, const char *path, uint64_t bytes, struct err *err)
{
    struct stat st;
    int fd = rootfile_open(root, path, err);
    if (fd < 0 || (fstat(fd, &st) == 0 && (uint64_t)st.st_size <= bytes))
        return fd;
    (void)close(fd); /* it was only opened */
    return message_refuse(err, -EMSGSIZE, "file_other_size",
                          MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_NUM("bytes", bytes)));
}

int rootfile_open_followed(const char *root, const char *path, int open_flags, struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir top = ROOTDIR_NONE;
    const char *below = rootdir_below(root, path);
    int r = below ? rootdir_open(root, "", 0, &top, err) : -EXDEV;
    if (below && r < 0)
        return r;
    int fd = below ? rootdir_open_followed(&top, below, open_flags, NULL) : -EXDEV;
    if (fd == -EXDEV)
        return message_refuse(err, fd, "path_leads_off", MESSAGE_ARGS(MESSAGE_STR("path", path)));
    return fd < 0 ? message_refuse(
                        err, fd, "disk_no_open_it",
                        MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_STR("why", strerror(-fd))))
                  : fd;
}
