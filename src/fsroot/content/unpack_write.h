/* SPDX-License-Identifier: Apache-2.0 */
/* unpack_write.h - the small files of an archive, made by several threads. For unpack.c only.
 *
 * One thread reads the archive and hands over what it read, in batches; a few others hash, create
 * and write. What waits has a ceiling (UNPACK_WRITE_SMALL times a few), then the reader waits.
 * Where no thread can be started the reader writes by itself. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "core/check/manifest.h"
#include "fsroot/content/unpack_way.h"

enum { UNPACK_WRITE_SMALL = 1 << 20 }; /* the largest file that is taken */

struct unpack_writers;
/* tree: a directory. Both are borrowed to the end; the
 * manifest's order must not change meanwhile, entries may be added. */
struct unpack_writers *unpack_writers_new(int tree, struct manifest *m);
/* Waits for what is under way. NULL is fine. */
void unpack_writers_free(struct unpack_writers *w);

/* Room for the content of the next file, at most UNPACK_WRITE_SMALL bytes; it may wait. What a
 * thread met meanwhile is said here. */
must_check int unpack_writers_room(struct unpack_writers *w,
                                   size_t size,
                                   char **ret,
                                   struct err *err);
/* The content is in that room: it is file `index` of the manifest, where its hash will stand. */
void unpack_writers_add(struct unpack_writers *w, size_t index);
/* Wait until all are written, with their hashes in the manifest. */
must_check int unpack_writers_end(struct unpack_writers *w, struct err *err);

/* ---- one file, also for callers that write it themselves ---- */

/* A new file below the tree, and the directories above it. */
must_check int unpack_create(struct unpack_way *way,
                             const char *path,
                             bool program,
                             int *ret,
                             struct err *err);
/* All is written: its time, and what closing says. fd is taken. */
must_check int unpack_close(int fd, const char *path, struct err *err);
must_check int unpack_create_link(struct unpack_way *way,
                                  const char *path,
                                  const char *target,
                                  struct err *err);
