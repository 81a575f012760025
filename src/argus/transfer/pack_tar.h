/* SPDX-License-Identifier: Apache-2.0 */
/* pack_tar.h - a tar of manifest entries, the plainest there is: ustar headers, and a pax header
 * before those whose name, target or size does not fit. For pack.c only. */
#pragma once
#include "base/err.h"
#include "core/check/manifest.h"

enum { PACK_TAR_PIECE = 128 << 10 };

struct pack_tar;
/* Files are read below the directory `from`, the archive goes to `to`: both borrowed. */
struct pack_tar *pack_tar_new(int from, int to);
void pack_tar_free(struct pack_tar *t); /* NULL is fine */
/* ERR_REFUSED: the file has not the size any more that the entry says. */
must_check int pack_tar_add(struct pack_tar *t, const struct manifest_entry *e, struct err *err);
/* A file whose content is here: e->size bytes, at most PACK_TAR_PIECE. */
must_check int pack_tar_add_bytes(struct pack_tar *t,
                                  const struct manifest_entry *e,
                                  const void *bytes,
                                  struct err *err);
must_check int pack_tar_end(struct pack_tar *t, struct err *err);
