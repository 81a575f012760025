/* SPDX-License-Identifier: Apache-2.0 */
/* filecall.h - files on the server: look, bring up, bring down, remove. Transfers go on after a
 * cut, with a growing pause, and show a progress bar. */
#pragma once
#include "argus/cli/cli.h"

enum filecall_flags {
    FILECALL_FORCE = 1 << 0,   /* replace what is there */
    FILECALL_PARENTS = 1 << 1, /* make the directories above it */
};

/* Up to limit entries of a directory, page by page, under "entries"; or what it is. path NULL:
 * where one may begin. *ret is a new reference. */
must_check int filecall_look(struct cli *cli,
                             const char *path,
                             int64_t limit,
                             json_t **ret,
                             struct err *err);

/* path on the server to the local file `to`; "-" is stdout. A part of an earlier call is gone on
 * with when the file is the same still. ERR_REFUSED: it is there and may not be replaced. */
must_check int filecall_get(struct cli *cli,
                            const char *path,
                            const char *to,
                            unsigned flags,
                            struct err *err);

/* The local file (or "-") to path on the server. *ret may be NULL; a new reference: what it is now.
 */
must_check int filecall_put(struct cli *cli,
                            const char *from,
                            const char *path,
                            unsigned flags,
                            json_t **ret,
                            struct err *err);

/* *ret_removed: how many files and directories. */
must_check int filecall_remove(struct cli *cli,
                               const char *path,
                               bool recursive,
                               int64_t *ret_removed,
                               struct err *err);

/* The last part of a path. Borrowed. */
const char *filecall_name(const char *path);
