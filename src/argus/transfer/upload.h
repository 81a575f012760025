/* SPDX-License-Identifier: Apache-2.0 */
/* upload.h - brings a file to the server as an upload, whatever the network does.
 *
 * Bytes go in parts; after a cut it goes on where the server says, with a growing pause; a call
 * for the same file after an end of this program goes on too. What came is compared by SHA-256.
 * A progress bar stands on stderr meanwhile. */
#pragma once
#include <stdint.h>

#include "argus/cli/cli.h"
#include "base/digest/hash.h"

struct upload_sent {
    char id[64]; /* to be named in the call that uses it */
    uint64_t bytes;
    char sha256[HASH_HEX];
};

/* path "-" or a pipe: read to its end into a nameless file first. name: what the upload is called,
 * NULL = the last part of path. ERR_USAGE: no regular file; ERR_UNREACHABLE: given up. */
must_check int upload_send(struct cli *cli,
                           const char *path,
                           const char *name,
                           struct upload_sent *ret,
                           struct err *err);
/* The call that was to use it failed for good: take it away. */
void upload_forget(struct cli *cli, const char *id);

/* ---- also for who has bytes of his own ---- */

/* The bytes of an open regular file. display: for the bar. */
must_check int upload_send_fd(struct cli *cli,
                              int fd,
                              const char *name,
                              const char *display,
                              struct upload_sent *ret,
                              struct err *err);
/* A nameless file below $TMPDIR or /tmp for bytes to be made or read here; else negative. */
must_check int upload_spool(struct err *err);
/* Such a file, at its begin, with the n bytes of head (read from it already) and all that `from`
 * gives until its end. */
must_check int upload_spool_input(int from, const char *head, size_t n, struct err *err);
