/* SPDX-License-Identifier: Apache-2.0 */
/* filehash.c - opens a file and hashes its content; see filehash.h. A user who can write there may
 * put a pipe or a device in the file's place, or a sparse file of terabytes. */
#define _GNU_SOURCE
#include "base/digest/filehash.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/message.h"

enum { READ_BYTES = 128 << 10 };

static int filehash_no_read(const char *name, int error, struct err *err)
{
    return message_refuse(
        err, -error, "disk_no_read",
        MESSAGE_ARGS(MESSAGE_STR("path", name), MESSAGE_STR("why", strerror(error))));
}

static int filehash_other_size(const char *name, uint64_t size, struct err *err)
{
    return message_refuse(err, -EMSGSIZE, "file_other_size",
                          MESSAGE_ARGS(MESSAGE_STR("path", name), MESSAGE_NUM("bytes", size)));
}

int filehash_at(int fd,
                const char *name,
                uint64_t size,
                unsigned char ret_hash[static HASH_BYTES],
                struct err *err)
{
    struct hash_running h;
    struct stat st;
    _cleanup_(closep) int in = file_open_regular(fd, name, O_RDONLY);
    if (in == -EINVAL)
        return message_refuse(err, -EINVAL, "file_not_regular",
                              MESSAGE_ARGS(MESSAGE_STR("path", name)));
    if (in < 0 || fstat(in, &st) < 0)
        return filehash_no_read(name, in < 0 ? -in : errno, err);
    if ((uint64_t)st.st_size != size)
        return filehash_other_size(name, size, err);
    _cleanup_(freep) char *bytes = xmalloc(READ_BYTES);
    hash_begin(&h);
    for (uint64_t at = 0; at < size;) {
        size_t n = 0, want = size - at < READ_BYTES ? (size_t)(size - at) : READ_BYTES;
        int r = file_read_at(in, at, bytes, want, &n);
        if (r < 0)
            return filehash_no_read(name, -r, err);
        if (!n) /* it got shorter meanwhile */
            return filehash_other_size(name, size, err);
        hash_add(&h, bytes, n);
        at += n;
    }
    hash_end(&h, ret_hash);
    return 0;
}
