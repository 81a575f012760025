/* SPDX-License-Identifier: Apache-2.0 */
/* unpack_xz.h - what is in an xz file, for unpack.c only.
 *
 * An xz file names the memory that unpacking it takes, up to 4 GiB in each of its blocks, and
 * libarchive gives that without asking. So xz files are read here, with a ceiling. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

/* xz -9 takes 65 MiB. */
enum { UNPACK_MEMORY_MAX = 128 << 20 };

struct unpack_xz;

bool unpack_xz_is_one(int fd);
/* Reads the descriptor, which is borrowed, from its beginning, wherever it stands. */
struct unpack_xz *unpack_xz_new(int fd);
void unpack_xz_free(struct unpack_xz *x); /* NULL is fine */
/* Some of the next bytes, which are borrowed until the next call; *ret_n = 0 at the end.
 * ERR_REFUSED, or the system's error. */
must_check int unpack_xz_read(struct unpack_xz *x,
                              const void **ret,
                              size_t *ret_n,
                              struct err *err);
