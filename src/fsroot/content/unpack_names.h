/* SPDX-License-Identifier: Apache-2.0 */
/* unpack_names.h - the names of an archive: which stand in each other's way. For unpack.c only. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

enum unpack_kind { UNPACK_FILE, UNPACK_LINK, UNPACK_DIRECTORY };

struct unpack_names;
struct unpack_names *unpack_names_new(void);
void unpack_names_free(struct unpack_names *un);

/* A checked path, with the directories above it. ERR_REFUSED: it was there, as itself or in
 * another spelling, or one of those above it is no directory. */
must_check int unpack_names_add(struct unpack_names *un,
                                const char *path,
                                enum unpack_kind kind,
                                struct err *err);
/* Succeeds if the name was added as this kind and is used for the first time. */
must_check int unpack_names_check(struct unpack_names *un,
                                  const char *path,
                                  enum unpack_kind kind,
                                  struct err *err);
/* Files and links. */
size_t unpack_names_files(const struct unpack_names *un);
/* Bytes of "name/", when everything lies in one directory that is no package of Python; else 0. */
size_t unpack_names_common(const struct unpack_names *un);

/* The link at path, below the directory tree, followed as far as it leads, stays below it. */
must_check int unpack_check_link(int tree, const char *path, struct err *err);
