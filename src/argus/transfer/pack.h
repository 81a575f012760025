/* SPDX-License-Identifier: Apache-2.0 */
/* pack.h - a directory as a snapshot: what is in it, its hash, and a tar of it.
 *
 * In a work tree of git that is what `git ls-files -co --exclude-standard` lists, elsewhere what
 * no .gitignore leaves out; never .git itself. What was hashed is remembered by size, times and
 * inode (as git's index does) in $XDG_CACHE_HOME/argus, so that looking again at a tree that did
 * not change reads no file. What is read to be hashed goes into the tar at once, while that is
 * not large: most files are opened one time. */
#pragma once
#include "base/err.h"
#include "core/check/manifest.h"

struct pack;
struct pack_tell;
/* Looks at all of it. most_bytes: a ceiling, 0 = none. ERR_REFUSED: above it, or names and kinds of
 * files that no snapshot takes, each of which is told first where there are several; ERR_USAGE: no
 * directory. */
must_check int pack_open(const char *dir,
                         uint64_t most_bytes,
                         const struct pack_tell *tell,
                         struct pack **ret,
                         struct err *err);
void pack_free(struct pack *p); /* NULL is fine */
/* Sorted; borrowed. */
const struct manifest *pack_manifest(const struct pack *p);
/* A nameless file with a tar of it, at its beginning: yours. Once. ERR_REFUSED: a file has changed
 * meanwhile. */
must_check int pack_write(struct pack *p, int *ret_fd, struct err *err);
