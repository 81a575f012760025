/* SPDX-License-Identifier: Apache-2.0 */
/* rootdir.h - a directory on the shared root, held open: the one way in which argusd touches the
 * root.
 *
 * Every job can rename, replace and link anything on the root, with the rights of argusd. So
 * nothing there is named by a path that the kernel resolves: a directory is opened below the root
 * by no link at all, and what is in it is then named by one name below the descriptor, which is not
 * followed either. A swap at any moment costs a failure, or hits another place on the root, and
 * never one outside.
 *
 *   _cleanup_(rootdir_release) struct rootdir dir = ROOTDIR_NONE;
 *   int r = rootdir_open(root, "jobs/j1/config", 0755, &dir, err);
 *   if (r == 0)
 *       r = rootdir_write(&dir, "jobspec.yaml", text, n, 0644, 0, err);
 *
 * `root` is the configured shared_root; links on the way to it are its owner's and are followed. A
 * path is below the root, or begins with it. A name has no slash, and is not "." or "..". Failures
 * are one sentence with the path and a negative errno: -ENOENT also when a directory on the way is
 * missing, -ELOOP where a link is in the way, -EINVAL for what is no regular file. All blocks. */
#pragma once
#include <dirent.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/file.h"

struct rootdir {
    int fd;     /* for reading; -1: none. Yours for the *at() calls that are not here */
    char *path; /* for sentences only: by now it may lead elsewhere */
};
#define ROOTDIR_NONE                                                                               \
    {                                                                                              \
        .fd = -1                                                                                   \
    }
void rootdir_release(struct rootdir *d);

/* ---- opening ---- */

/* What is left of the path without the root in front: a part of path, "" for the root itself. NULL:
 * it is elsewhere. Pure. */
const char *rootdir_below(const char *root, const char *path);
/* make: the mode of directories that are made where they are missing (no umask), 0: none is. */
must_check int rootdir_open(const char *root,
                            const char *path,
                            mode_t make,
                            struct rootdir *ret,
                            struct err *err);
/* The same below a directory that is open. below: "a/b", or "." */
must_check int rootdir_open_in(const struct rootdir *d,
                               const char *below,
                               mode_t make,
                               struct rootdir *ret,
                               struct err *err);
/* The directory in which the last name of the path stands, and that name (a part of path). */
must_check int rootdir_open_above(const char *root,
                                  const char *path,
                                  mode_t make,
                                  struct rootdir *ret,
                                  const char **ret_name,
                                  struct err *err);
/* Makes and opens a directory that is not there yet: -EEXIST when anything has this name. */
must_check int rootdir_make_new(const struct rootdir *d,
                                const char *name,
                                mode_t mode,
                                struct rootdir *ret,
                                struct err *err);

/* ---- what users name: by links that stay below d ---- */

/* Opens it, and tells where it really is: *ret_real, to be freed, is a path below d without links.
 * An absolute link stays below d if it begins with d's path. open_flags as for beneath_open(). A
 * descriptor or a negative errno without a sentence; -EXDEV: it leads out, and *ret_real is the
 * text of the link that does. ret_real may be NULL. */
must_check int rootdir_open_followed(const struct rootdir *d,
                                     const char *below,
                                     int open_flags,
                                     char **ret_real);
/* Whether the failure, a negative errno, of opening what a user names tells what is there: nothing,
 * or nothing that argusd may follow, open or read. All others say nothing about it. Pure. */
bool rootdir_is_answer(int r);
/* Only where it really is, with *ret as above. It is to be opened by no link. */
must_check int rootdir_resolve(const struct rootdir *d, const char *below, char **ret);

/* ---- looking and reading ---- */

/* Whether anything, a broken link as well, has this name, in *ret. A failure says nothing about
 * that (file_is_absence()). */
must_check int rootdir_look_for(const struct rootdir *d,
                                const char *name,
                                bool *ret,
                                struct err *err);
/* The thing itself, a link too. 0 or a negative errno, without a sentence. */
must_check int rootdir_look(const struct rootdir *d, const char *name, struct stat *ret);
/* Its names, from the first; closedir() it. */
must_check int rootdir_list(const struct rootdir *d, DIR **ret, struct err *err);
/* A regular file for reading, by "a/b/name" below d: a descriptor. */
must_check int rootdir_open_file(const struct rootdir *d, const char *below, struct err *err);
/* Appends that file to out. -EMSGSIZE past the ceiling of out. */
must_check int rootdir_read(const struct rootdir *d,
                            const char *below,
                            struct buf *out,
                            struct err *err);

/* ---- changing, one name below ---- */

/* A regular file with these open() flags (O_WRONLY, O_RDWR, O_CREAT, O_EXCL, O_APPEND): a
 * descriptor. mode: of a file that is made. */
must_check int rootdir_open_for(const struct rootdir *d,
                                const char *name,
                                int open_flags,
                                mode_t mode,
                                struct err *err);

/* Replaces the file in one step; file.h has the flags. The mode is exact (no umask). */
must_check int rootdir_write(const struct rootdir *d,
                             const char *name,
                             const void *p,
                             size_t n,
                             mode_t mode,
                             unsigned flags,
                             struct err *err);
/* At the end of the file, which is made (0644) where it is missing. */
must_check int rootdir_append(const struct rootdir *d,
                              const char *name,
                              const void *p,
                              size_t n,
                              struct err *err);
/* Replaces name by a symbolic link with this text, in one step. */
must_check int rootdir_symlink(const struct rootdir *d,
                               const char *name,
                               const char *text,
                               struct err *err);
/* A second name of the same file. */
must_check int rootdir_link(const struct rootdir *from,
                            const char *name,
                            const struct rootdir *to,
                            const char *to_name,
                            struct err *err);
enum rootdir_rename_flags {
    ROOTDIR_NEW = 1 << 0, /* -EEXIST where something has the new name */
};
must_check int rootdir_rename(const struct rootdir *from,
                              const char *name,
                              const struct rootdir *to,
                              const char *to_name,
                              unsigned flags,
                              struct err *err);
/* The mode of a regular file that has this one name only. */
int rootdir_chmod(const struct rootdir *d, const char *name, mode_t mode, struct err *err);
/* A file or a link. Nothing there is fine. Trees: dirtree_remove_at(d->fd, …). */
int rootdir_unlink(const struct rootdir *d, const char *name, struct err *err);
