/* SPDX-License-Identifier: Apache-2.0 */
/* logtimes_file.h - the marks of logtimes.h as they are on disk: little-endian, one after the
 * other; times and offsets never go back. */
#pragma once
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "base/digest/crc.h"

#define LOGTIMES_SUFFIX ".times"

struct logtimes_mark {
    uint64_t by, offset;
    uint32_t magic, crc; /* of all before it */
};
static_assert(sizeof(struct logtimes_mark) == 24, "as it is on disk");
enum { LOGTIMES_MAGIC = 0x31747841 }; /* "Axt1" */

static inline uint32_t logtimes_crc(const struct logtimes_mark *m)
{
    return crc32_add(0, m, offsetof(struct logtimes_mark, crc));
}
