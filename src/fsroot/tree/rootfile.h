/* SPDX-License-Identifier: Apache-2.0 */
/* rootfile.h - one file on the shared root, by its path: rootdir.h for callers with one thing to
 * do.
 *
 * Each call opens the directory in which the file stands, does one thing in it, and closes it. What
 * rootdir.h says of paths, links and failures holds here. */
#pragma once
#include "fsroot/tree/rootdir.h"

must_check int rootfile_read(const char *root, const char *path, struct buf *out, struct err *err);
/* make: as in rootdir_open(). */
must_check int rootfile_write(const char *root,
                              const char *path,
                              mode_t make,
                              const void *p,
                              size_t n,
                              mode_t mode,
                              unsigned flags,
                              struct err *err);
must_check int rootfile_symlink(const char *root,
                                const char *path,
                                mode_t make,
                                const char *text,
                                struct err *err);
/* A regular file for reading: a descriptor. */
must_check int rootfile_open(const char *root, const char *path, struct err *err);
/* rootfile_open() of a file whose size is known from elsewhere. -EMSGSIZE: it is larger, somebody
 * made it so. */
must_check int rootfile_open_within(const char *root,
                                    const char *path,
                                    uint64_t bytes,
                                    struct err *err);
/* The directory, and those above it. */
must_check int rootfile_mkdirs(const char *root, const char *path, mode_t mode, struct err *err);
/* The names in a directory; closedir() it. */
must_check int rootfile_list(const char *root, const char *path, DIR **ret, struct err *err);
must_check int rootfile_append(const char *root,
                               const char *path,
                               const void *p,
                               size_t n,
                               struct err *err);
/* Whether anything has this name, in *ret: false too where a directory on the way is missing. A
 * failure says nothing about that: the root itself is gone, a handle is stale, a link is in the
 * way. */
must_check int rootfile_look_for(const char *root, const char *path, bool *ret, struct err *err);
/* The thing itself, a link too. 0 or a negative errno, without a sentence. */
must_check int rootfile_look(const char *root, const char *path, struct stat *ret);

/* Opens what users name, by links too, as long as they stay on the root; absolute links may lead
 * there as well. open_flags as for beneath_open(). A descriptor; -EXDEV: it leads off the root. */
must_check int rootfile_open_followed(const char *root,
                                      const char *path,
                                      int open_flags,
                                      struct err *err);
