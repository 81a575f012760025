/* SPDX-License-Identifier: Apache-2.0 */
/* beneath.h - opens a path below a directory without ever leaving that directory: not by "..",
 * not by a link, not by a directory that is swapped meanwhile. Blocking. */
#pragma once
#include "base/mem.h"

enum beneath_flags {
    BENEATH_FOLLOW = 1 << 0,     /* links that stay below dir are followed; else none is */
    BENEATH_NO_OPENAT2 = 1 << 1, /* for tests: as on a kernel without it */
};

/* With these open() flags; O_CLOEXEC, and O_NONBLOCK where something is opened, are always among
 * them, O_CREAT is not for here. A FIFO, a device or a socket is seen and never opened. A
 * descriptor or a negative errno: -EXDEV it leads out, -ELOOP in a circle, or by a link where none
 * is followed, -EINVAL it is neither a regular file nor a directory. */
must_check int beneath_open(int dir, const char *path, int open_flags, unsigned flags);

/* What the text of an absolute link names below dir, a part of text; NULL: nothing. */
typedef const char *(*beneath_own_f)(const char *text, const void *arg);
/* Where a path ends once all links on the way are followed, in *ret, which is to be freed: a path
 * below dir by no link, "" for dir itself. Nothing outside of dir is looked at. -EXDEV: it leads
 * out, and *ret is the text of the link that does; other failures leave *ret untouched. A swap may
 * have made it untrue by now: it is for beneath_open() without BENEATH_FOLLOW. own NULL: no
 * absolute link stays below dir. */
must_check int beneath_resolve(int dir,
                               const char *path,
                               beneath_own_f own,
                               const void *arg,
                               char **ret);
