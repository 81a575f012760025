/* SPDX-License-Identifier: Apache-2.0 */
/* peek.h - what another process has in its own memory: its environment and its command line.
 *
 * The kernel takes the other's lock of memory to read it, which one that hangs on a file system or
 * in a driver can hold for hours. So a thread reads, and who asks waits for a limit at most, for
 * half as long with each other process that hangs, but never so short that a busy machine is taken
 * for one that hangs: less than five seconds for all of them together, since one that hangs is not
 * asked again before its thread is back. Any thread may ask. */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/clock.h"

#define PEEK_LIMIT (2 * USEC_SEC)
#define PEEK_FLOOR (250 * USEC_MS)
enum { PEEK_HUNG_MAX = 8 }; /* with this many hanging processes no further one is asked */

struct peek;

/* The file of a process; as process_read(), which NULL stands for. */
typedef bool peek_read_f(pid_t pid, const char *file, struct buf *out);

struct peek *peek_new(peek_read_f *read, usec_t limit);
/* Threads that hang are left behind. NULL is fine. */
void peek_free(struct peek *p);
void peek_freep(struct peek **p);

/* For how long one is waited for while so many others hang. */
usec_t peek_patience(usec_t limit, size_t hung);

/* Appends /proc/<pid>/<file>. -ENOENT: it cannot be read, for instance because the process is
 * ending; -ETIME: the process hangs, and may be asked again later. */
must_check int peek_file(struct peek *p, pid_t pid, const char *file, struct buf *out);

/* Below, the same codes, -ENOENT also where there is none yet. A variable of the environment that
 * it was started with into *ret, yours; -ENODATA: it has none of this name. */
must_check int peek_env(struct peek *p, pid_t pid, const char *name, char **ret);
/* 1 or 0: whether that environment has this "NAME=value". */
must_check int peek_has_env(struct peek *p, pid_t pid, const char *setting);
/* The first word of its command line that begins with this prefix, without it. NULL: none. Yours.
 */
char *peek_word(struct peek *p, pid_t pid, const char *prefix);
/* The process's command line as one line of at most max bytes, "" when there is none. The caller
 * frees it. */
char *peek_line(struct peek *p, pid_t pid, size_t max);
