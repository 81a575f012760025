/* SPDX-License-Identifier: Apache-2.0 */
/* dirtree.h - what is done to whole trees of files: removing, and the time of what is kept.
 *
 * Links are never followed. Blocking. */
#pragma once
#include "base/err.h"

/* The mtime of every file of a snapshot: what was touched afterwards has another one. */
enum { DIRTREE_MTIME = 946684800 }; /* 2000-01-01 */

/* The name and everything below it, read-only directories too; fine if it is not there. */
int dirtree_remove(const char *path, struct err *err);
/* A name below fd. */
int dirtree_remove_at(int fd, const char *name, struct err *err);
