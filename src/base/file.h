/* SPDX-License-Identifier: Apache-2.0 */
/* file.h - whole small files on a file system that may be slow, stale, full or gone.
 *
 * Reading has a ceiling and tells absent from unreadable. Writing is by another
 * name and rename, so that a reader sees the old or the new text and nothing
 * between. Every call may block: argusd calls them
 * at its start and in its worker pool only. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"

enum file_write_flags {
    FILE_SYNC = 1 << 0, /* fsync the file and its directory: it survives a power cut */
};

/* Append the file to out. -ENOENT (also when a directory on the way is missing),
 * -EMSGSIZE past the ceiling of out, -EINVAL for what is no regular file, else
 * what the system said; the sentence has the path. */
must_check int file_read(const char *path, struct buf *out, struct err *err);

/* file_read() of a file that is open, from where it stands; path is for sentences only. */
must_check int file_read_open(int fd, const char *path, struct buf *out, struct err *err);
/* The regular file `name` in the directory dir, with these open() flags (O_CREAT is not for here).
 * It is looked at before it is opened, since opening alone can wait (a FIFO) or do something (a
 * device, a watchdog). No link is followed. A descriptor or a negative errno; -EINVAL: it is no
 * regular file, -ELOOP: a link. */
must_check int file_open_regular(int dir, const char *name, int open_flags);
/* What an O_PATH descriptor stands for, opened; seen stays the caller's. -EINVAL: neither a regular
 * file nor a directory, -ELOOP: a link. */
must_check int file_reopen(int seen, int open_flags);
/* file_read() for a name from a command line: "-" is standard input, and a pipe is read to its
 * end. It blocks for as long as the writer of the pipe likes. */
must_check int file_read_input(const char *path, struct buf *out, struct err *err);

/* Replace path by these bytes, atomically. The mode is exact (no umask). */
must_check int file_write(const char *path,
                          const void *p,
                          size_t n,
                          mode_t mode,
                          unsigned flags,
                          struct err *err);
/* file_write() for a file that only its owner may read (0600, synced); missing directories are
 * made 0700. */
must_check int file_write_private(const char *path, const void *p, size_t n, struct err *err);
/* All n bytes to fd, or a negative errno. */
must_check int file_write_all(int fd, const void *p, size_t n);
/* file_write_all() at this offset. */
must_check int file_write_at(int fd, uint64_t at, const void *p, size_t n);
/* Reads n bytes of fd from this offset, fewer only at its end or on failure. 0 or a negative
 * errno; *ret_n is how many bytes were read in both cases, for callers that take whatever can be
 * read. */
int file_read_at(int fd, uint64_t at, void *to, size_t n, size_t *ret_n);
/* Make what was done to names in this directory survive a power cut. 0 or a negative errno. */
must_check int file_sync_directory(const char *dir);

/* Makes the directory and those above it; an existing directory is left unchanged. */
must_check int file_mkdirs(const char *path, mode_t mode, struct err *err);

/* f with each name in the directory but "." and "..", in no order, for as long as it says true.
 * dir: the directory itself. One that is not there or cannot be read has none. */
typedef bool (*file_name_f)(int dir, const char *name, void *arg);
void file_each_name(const char *path, file_name_f f, void *arg);

/* Whether a failed look, a negative errno, says that nothing has the name: the name is missing, or
 * a directory on the way to it. Every other failure (a stale handle, no descriptor left, no right)
 * says nothing about that, and must not be taken for absence. Pure. */
bool file_is_absence(int r);
/* Whether a file, directory or (even broken) link has this name, in *ret. A negative errno: that
 * could not be found out. */
must_check int file_look_for(const char *path, bool *ret, struct err *err);
