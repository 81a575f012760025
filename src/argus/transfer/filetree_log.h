/* SPDX-License-Identifier: Apache-2.0 */
/* filetree_log.h - what an interrupted put of a directory has brought already. For filetree.c only.
 *
 * A file below $XDG_CACHE_HOME/argus, one per server, source and goal; it goes when all is done.
 * Where there is no place for it nothing is remembered. */
#pragma once
#include <stdbool.h>
#include <sys/stat.h>

struct filetree_log;
struct filetree_log *filetree_log_open(const char *server, const char *from, const char *to);
/* It was brought, and looks the same still. */
bool filetree_log_has(const struct filetree_log *l, const char *path, const struct stat *st);
void filetree_log_add(struct filetree_log *l, const char *path, const struct stat *st);
/* all: everything was brought, it is of no use any more. */
void filetree_log_close(struct filetree_log *l, bool all);
