/* SPDX-License-Identifier: Apache-2.0 */
/* filetree.h - whole directories between here and the server, file by file.
 *
 * Each file comes and goes as filecall.h does it. A call that ended early is made again and goes
 * on: what it brought and nobody changed since is not brought again. Directories and plain files
 * are taken; links, devices and names that cannot be written there are told and left out. */
#pragma once
#include "argus/transfer/filecall.h"

struct filetree_done {
    uint64_t files, bytes; /* brought now */
    uint64_t before;       /* files that an earlier call had brought */
    uint64_t left_out;
};

/* The directory path on the server becomes the directory `to` here; what is in it already stays.
 * The files have the times that they have there. flags: FILECALL_FORCE. */
must_check int filetree_get(struct cli *cli,
                            const char *path,
                            const char *to,
                            unsigned flags,
                            struct filetree_done *ret,
                            struct err *err);
/* The directory `from` here becomes the directory path there. */
must_check int filetree_put(struct cli *cli,
                            const char *from,
                            const char *path,
                            unsigned flags,
                            struct filetree_done *ret,
                            struct err *err);
/* One line of talk, also after a failure. */
void filetree_tell(struct cli *cli, const struct filetree_done *done);
