/* SPDX-License-Identifier: Apache-2.0 */
/* pack.h - a directory as a snapshot: what is in it, its hash, and a tar of it.
 *
 * In a work tree of git that is what `git ls-files -co --exclude-standard` lists, elsewhere what
 * no .gitignore leaves out; never .git itself. What was hashed is remembered by size, times and
 * inode (as git's index does) in $XDG_CACHE_HOME/argus, so that looking again at a tree that did
 * not change reads no file. */
#pragma once
#include "base/err.h"
#include "core/manifest.h"

/* ret is to be released on success. ERR_REFUSED: a name or kind of file that no snapshot takes;
 * ERR_USAGE: no directory. */
must_check int pack_look(const char *dir, struct manifest *ret, struct err *err);
/* The files of m as a tar, from where fd stands. ERR_REFUSED: one has changed meanwhile. */
must_check int pack_write(const char *dir, const struct manifest *m, int fd, struct err *err);
