/* SPDX-License-Identifier: Apache-2.0 */
/* unpack_xz.c - what is in an xz file; see unpack_xz.h. liblzma holds its ceiling of memory at
 * each block of each stream, before it takes any. */
#include "fsroot/content/unpack_xz.h"

#include <lzma.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/message.h"
#include "base/str.h"

enum { PART_BYTES = 128 << 10 };

struct unpack_xz {
    int fd;
    uint64_t at; /* of the file */
    bool is_read, is_over;
    lzma_stream stream;
    uint8_t in[PART_BYTES], out[PART_BYTES];
};

bool unpack_xz_is_one(int fd)
{
    static const char magic[6] = "\xfd"
                                 "7zXZ";
    char first[sizeof(magic)];
    size_t n = 0;
    return file_read_at(fd, 0, first, sizeof(first), &n) == 0 && n == sizeof(first) &&
           !memcmp(first, magic, sizeof(magic));
}

struct unpack_xz *unpack_xz_new(int fd)
{
    struct unpack_xz *x = xcalloc(1, sizeof(*x));
    x->fd = fd;
    x->stream = (lzma_stream)LZMA_STREAM_INIT;
    if (lzma_stream_decoder(&x->stream, UNPACK_MEMORY_MAX, LZMA_CONCATENATED) != LZMA_OK)
        abort(); /* no memory for a few hundred bytes, or flags that liblzma does not know */
    return x;
}

void unpack_xz_free(struct unpack_xz *x)
{
    if (x)
        lzma_end(&x->stream);
    free(x);
}

static int refill_xz(struct unpack_xz *x, struct err *err)
{
    size_t n = 0;
    int r = file_read_at(x->fd, x->at, x->in, sizeof(x->in), &n);
    if (r < 0)
        return message_refuse(err, r, "archive_no_read",
                              MESSAGE_ARGS(MESSAGE_STR("why", strerror(-r))));
    x->at += n;
    x->is_read = n == 0;
    x->stream.next_in = x->in;
    x->stream.avail_in = n;
    return 0;
}

static int refuse_xz(lzma_ret why, struct err *err)
{
    if (why == LZMA_MEMLIMIT_ERROR || why == LZMA_MEM_ERROR)
        return message_refuse(err, ERR_REFUSED, "xz_memory", MESSAGE_NO_ARGS);
    if (why == LZMA_BUF_ERROR)
        return message_refuse(err, ERR_REFUSED, "xz_cut", MESSAGE_NO_ARGS);
    return message_refuse(err, ERR_REFUSED, "xz_broken",
                          MESSAGE_ARGS(MESSAGE_NUM("number", (int)why)));
}

int unpack_xz_read(struct unpack_xz *x, const void **ret, size_t *ret_n, struct err *err)
{
    lzma_ret got = x->is_over ? LZMA_STREAM_END : LZMA_OK;
    x->stream.next_out = x->out;
    x->stream.avail_out = sizeof(x->out);
    while (got == LZMA_OK && x->stream.avail_out > 0) {
        int r = x->stream.avail_in > 0 || x->is_read ? 0 : refill_xz(x, err);
        if (r < 0)
            return r;
        got = lzma_code(&x->stream, x->is_read ? LZMA_FINISH : LZMA_RUN);
    }
    if (got != LZMA_OK && got != LZMA_STREAM_END)
        return refuse_xz(got, err);
    x->is_over = got == LZMA_STREAM_END;
    *ret = x->out;
    *ret_n = sizeof(x->out) - x->stream.avail_out;
    return 0;
}
