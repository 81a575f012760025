/* SPDX-License-Identifier: Apache-2.0 */
/* unpack_way.h - from a path of a snapshot to the directory that holds it, below a tree on which
 * others may rename and link at any moment.
 *
 * The directory is opened by no link at all, and what is in it is then named by its last name
 * alone. The last directory stays open, since most paths follow one of the same directory. One
 * way belongs to one thread. */
#pragma once
#include <stdbool.h>

#include "base/err.h"

struct unpack_way {
    int tree;  /* borrowed */
    int fd;    /* of the last directory; O_PATH */
    char *dir; /* the last directory; NULL: none yet */
};
#define UNPACK_WAY(t)                                                                              \
    {                                                                                              \
        .tree = (t), .fd = -1                                                                      \
    }
void unpack_way_release(struct unpack_way *w);

/* The directory of the path, borrowed until the next call, and the last name of the path (a part of
 * it). make: directories that are missing are made. -ELOOP or -ENOTDIR: a link or a file is on the
 * way. A descriptor or a negative errno. */
must_check int unpack_way_enter(struct unpack_way *w,
                                const char *path,
                                bool make,
                                const char **ret_name);
