/* SPDX-License-Identifier: Apache-2.0 */
/* torchzip.c - the directory of a file that torch.save() wrote; see torchzip.h. A field of
 * 0xffffffff means that the true one is in zip64's. */
#include "core/check/torchzip.h"

#include <errno.h>
#include <stdbool.h>

#include "base/message.h"

enum {
    END_SIGN = 0x06054b50,
    END64_SIGN = 0x06064b50,
    LOCATOR_SIGN = 0x07064b50,
    MEMBER_SIGN = 0x02014b50,
    LOCAL_SIGN = 0x04034b50,
    END_BYTES = 22,
    END64_BYTES = 56,
    LOCATOR_BYTES = 20,
    MEMBER_BYTES = 46,
    ZIP64_ID = 1,
};
static const uint64_t IN_ZIP64 = 0xffffffffU;

static uint32_t u16(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static uint32_t u32(const unsigned char *p)
{
    return u16(p) | u16(p + 2) << 16;
}

static uint64_t u64(const unsigned char *p)
{
    return u32(p) | (uint64_t)u32(p + 4) << 32;
}

/* ---- the end ---- */

/* The offset of the last signature whose comment reaches the end of the file; n: there is none. */
static size_t find_sign(const unsigned char *tail, size_t n)
{
    for (size_t at = n >= END_BYTES ? n - END_BYTES + 1 : 0; at > 0; at--)
        if (u32(tail + at - 1) == END_SIGN && at - 1 + END_BYTES + u16(tail + at - 1 + 20) == n)
            return at - 1;
    return n;
}

/* The zip64 record, where one stands right before its locator: so does torch write it. */
static const unsigned char *find_end64(const unsigned char *tail, size_t end_at)
{
    if (end_at < LOCATOR_BYTES + END64_BYTES)
        return NULL;
    const unsigned char *locator = tail + end_at - LOCATOR_BYTES;
    const unsigned char *end64 = locator - END64_BYTES;
    return u32(locator) == LOCATOR_SIGN && u32(end64) == END64_SIGN ? end64 : NULL;
}

int torchzip_find_end(const unsigned char *tail,
                      size_t n,
                      uint64_t file_bytes,
                      struct torchzip_end *ret,
                      struct err *err)
{
    size_t at = find_sign(tail, n);
    if (at == n || n > file_bytes)
        return message_refuse(err, -EINVAL, "zip_no_end", MESSAGE_NO_ARGS);
    const unsigned char *end64 = find_end64(tail, at);
    struct torchzip_end e = {.members = u16(tail + at + 10),
                             .dir_bytes = u32(tail + at + 12),
                             .dir_at = u32(tail + at + 16)};
    uint64_t limit = file_bytes - n + at;
    if (end64) {
        e = (struct torchzip_end){
            .members = u64(end64 + 32), .dir_bytes = u64(end64 + 40), .dir_at = u64(end64 + 48)};
        limit -= LOCATOR_BYTES + END64_BYTES;
    }
    if (e.dir_bytes > limit || e.dir_at > limit - e.dir_bytes)
        return message_refuse(err, -EINVAL, "zip_directory_outside", MESSAGE_NO_ARGS);
    if (e.dir_bytes > TORCHZIP_DIR_MAX)
        return message_refuse(err, -EINVAL, "zip_directory_large", MESSAGE_NO_ARGS);
    if (!e.members || e.members > e.dir_bytes / MEMBER_BYTES)
        return message_refuse(err, -EINVAL, "zip_directory_short", MESSAGE_NO_ARGS);
    *ret = e;
    return 0;
}

/* ---- members ---- */

/* The fields that are not in the header, in this order, as far as they were left out. */
static bool read_zip64(const unsigned char *extra, size_t n, uint64_t *fields[3])
{
    for (size_t at = 0; at + 4 <= n;) {
        size_t len = u16(extra + at + 2), pos = at + 4;
        if (len > n - at - 4)
            return false;
        if (u16(extra + at) != ZIP64_ID) {
            at += 4 + len;
            continue;
        }
        for (int k = 0; k < 3; k++) {
            if (*fields[k] != IN_ZIP64)
                continue;
            if (pos + 8 > at + 4 + len)
                return false;
            *fields[k] = u64(extra + pos);
            pos += 8;
        }
        return true;
    }
    return true;
}

int torchzip_next(const unsigned char *dir,
                  const struct torchzip_end *end,
                  size_t *pos,
                  struct torchzip_member *ret,
                  struct err *err)
{
    size_t left = (size_t)end->dir_bytes - *pos;
    if (!left)
        return 0;
    const unsigned char *p = dir + *pos;
    if (left < MEMBER_BYTES || u32(p) != MEMBER_SIGN)
        return message_refuse(err, -EINVAL, "zip_directory_broken", MESSAGE_NO_ARGS);
    size_t name = u16(p + 28), extra = u16(p + 30), comment = u16(p + 32);
    uint64_t packed = u32(p + 20), bytes = u32(p + 24), at = u32(p + 42);
    if (name + extra + comment > left - MEMBER_BYTES)
        return message_refuse(err, -EINVAL, "zip_directory_broken", MESSAGE_NO_ARGS);
    uint64_t *fields[] = {&bytes, &packed, &at};
    if (!read_zip64(p + MEMBER_BYTES + name, extra, fields))
        return message_refuse(err, -EINVAL, "zip_directory_broken", MESSAGE_NO_ARGS);
    if (u16(p + 10) != 0 || packed != bytes)
        return message_refuse(err, -EINVAL, "zip_packed", MESSAGE_NO_ARGS);
    if (bytes > end->dir_at || at > end->dir_at - bytes)
        return message_refuse(err, -EINVAL, "zip_member_outside", MESSAGE_NO_ARGS);
    *ret = (struct torchzip_member){.name = (const char *)p + MEMBER_BYTES,
                                    .name_len = name,
                                    .at = at,
                                    .bytes = bytes,
                                    .crc = u32(p + 16)};
    *pos += MEMBER_BYTES + name + extra + comment;
    return 1;
}

int torchzip_data_at(const unsigned char local[static TORCHZIP_LOCAL_BYTES],
                     const struct torchzip_member *m,
                     const struct torchzip_end *end,
                     uint64_t *ret,
                     struct err *err)
{
    uint64_t before = (uint64_t)TORCHZIP_LOCAL_BYTES + u16(local + 26) + u16(local + 28);
    if (u32(local) != LOCAL_SIGN || m->at > end->dir_at || before > end->dir_at - m->at ||
        m->bytes > end->dir_at - m->at - before)
        return message_refuse(err, -EINVAL, "zip_member_moved", MESSAGE_NO_ARGS);
    *ret = m->at + before;
    return 0;
}
