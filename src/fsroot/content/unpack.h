/* SPDX-License-Identifier: Apache-2.0 */
/* unpack.h - an archive that somebody sent, as a tree of plain files, programs and links.
 *
 * A zip, or a tar as it is or by gzip, xz or zstd. All headers are read and judged before the
 * first byte is written, so that a bomb or a bad name costs nothing; what a header hides from
 * that look is met while writing. Refused, each with one sentence that names the entry: names that
 * snapshot_check_path() refuses, two that differ in case or composition alone, links out of the
 * tree, hard links, devices, pipes, setuid and setgid, sparse and encrypted files, too much of
 * anything, one that takes more than 128 MiB of memory to unpack, a zip by another method than
 * deflate, and an archive that is cut off or damaged. What lies in a directory .git is left out.
 *
 * An archive with one directory at its top that is no Python package (as forges pack them) is
 * unpacked without it, if `strip` allows that. Blocking, and nothing here is global. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "core/check/manifest.h"

struct unpack_limits {
    uint64_t bytes;   /* of all files */
    size_t entries;   /* at most MANIFEST_ENTRIES_MAX */
    unsigned ratio;   /* unpacked bytes per byte of the archive, checked beyond 64 MiB */
    const char *over; /* what is said when there are more bytes, as message_keep() keeps it;
 NULL: that of a fixed ceiling */
};
extern const struct unpack_limits unpack_default_limits;

/* Unpacks into the empty directory `tree`. What others do to it meanwhile may spoil what is in it,
 * and leads to no place outside of it. Files are 0444 or 0555 and all their times DIRTREE_MTIME;
 * directories are left writable. archive: a seekable descriptor, read from its beginning, borrowed.
 * ret (sorted) is to be released in both cases. ERR_REFUSED, or the system's error; then `tree`
 * holds a part, which is the caller's to remove. */
must_check int unpack_archive(int archive,
                              int tree,
                              bool strip,
                              const struct unpack_limits *limits,
                              struct manifest *ret,
                              struct err *err);
