/* SPDX-License-Identifier: Apache-2.0 */
/* packtar.h - a tree of files as one tar with zstd, read by any tar, and back.
 *
 * Entries are those of packlist.h below one name: `tar xf` makes a directory of this name, and
 * beside it a file <name>.manifest with the text of the list. Modes, times, links, several names of
 * one file and holes are kept; owners are not. All blocks. */
#pragma once
#include "fsroot/archive/packlist.h"

/* Writes the gathered tree d to fd and fills in the hash of each file. ERR_CONFLICT: a file is not
 * the one that was gathered, or was written meanwhile. The caller syncs fd. */
must_check int packtar_write(const struct rootdir *d,
                             struct packlist *l,
                             const char *name,
                             int fd,
                             volatile int *stop,
                             struct err *err);

/* Reads fd from its beginning to its end into a list, with hashes. into: an empty directory that
 * gets all of it, or NULL: it is only read. Limits hold for what comes out of the archive, which
 * is read as outside bytes: ERR_REFUSED with a sentence. */
must_check int packtar_read(int fd,
                            const char *name,
                            const struct rootdir *into,
                            const struct packlist_limits *limits,
                            struct packlist *ret,
                            struct err *err);
