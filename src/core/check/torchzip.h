/* SPDX-License-Identifier: Apache-2.0 */
/* torchzip.h - the directory of a zip file as torch.save writes it: stored members, zip64 or not.
 *
 * All bytes are outside bytes: whatever they say is held against the length of the file. Pure. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum {
    TORCHZIP_TAIL_MAX = 22 + 20 + 56 + 65535, /* of the file: its end lies in there */
    TORCHZIP_DIR_MAX = 64 << 20,
    TORCHZIP_LOCAL_BYTES = 30,
};

struct torchzip_end {
    uint64_t dir_at, dir_bytes, members;
};

/* tail: the last n bytes of a file of so many. -EINVAL with a sentence. */
must_check int torchzip_find_end(const unsigned char *tail,
                                 size_t n,
                                 uint64_t file_bytes,
                                 struct torchzip_end *ret,
                                 struct err *err);

struct torchzip_member {
    const char *name; /* borrowed from the directory, not terminated */
    size_t name_len;
    uint64_t at;    /* of its local header */
    uint64_t bytes; /* as they lie in the file */
    uint32_t crc;
};

/* The member at *pos of the directory, *pos goes to the next. 1, 0 at the end, -EINVAL. */
must_check int torchzip_next(const unsigned char *dir,
                             const struct torchzip_end *end,
                             size_t *pos,
                             struct torchzip_member *ret,
                             struct err *err);
/* Where its bytes begin, by its local header. -EINVAL: they do not lie before the directory. */
must_check int torchzip_data_at(const unsigned char local[static TORCHZIP_LOCAL_BYTES],
                                const struct torchzip_member *m,
                                const struct torchzip_end *end,
                                uint64_t *ret,
                                struct err *err);
