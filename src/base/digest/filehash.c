/* SPDX-License-Identifier: Apache-2.0 */
/* filehash.c - opens a file and hashes its content; see filehash.h. A user who can write there
 * may put a pipe or a device in the file's place: opening must neither wait nor have an effect
 * on it. */
#define _GNU_SOURCE
#include "base/digest/filehash.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/message.h"

enum { READ_BYTES = 128 << 10 };

int filehash_at(int fd,
                const char *name,
                unsigned char ret_hash[static HASH_BYTES],
                uint64_t *ret_size,
                struct err *err)
{
    struct stat st;
    struct hash_running h;
    _cleanup_(closep) int in =
        openat(fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (in < 0 || fstat(in, &st) < 0)
        return message_refuse(
            err, -errno, "disk_no_read",
            MESSAGE_ARGS(MESSAGE_STR("path", name), MESSAGE_STR("why", strerror(errno))));
    if (!S_ISREG(st.st_mode))
        return message_refuse(err, -EINVAL, "file_not_regular",
                              MESSAGE_ARGS(MESSAGE_STR("path", name)));
    _cleanup_(freep) char *bytes = xmalloc(READ_BYTES);
    uint64_t size = 0;
    hash_begin(&h);
    for (ssize_t n; (n = read(in, bytes, READ_BYTES)) != 0;) {
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return message_refuse(
                err, -errno, "disk_no_read",
                MESSAGE_ARGS(MESSAGE_STR("path", name), MESSAGE_STR("why", strerror(errno))));
        hash_add(&h, bytes, (size_t)n);
        size += (uint64_t)n;
    }
    hash_end(&h, ret_hash);
    *ret_size = size;
    return 0;
}
