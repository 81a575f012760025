/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt_shard.c - checks one file of a checkpoint; see ckpt_shard.h. A hole in a file reads as
 * zeros, which its CRC tells. */
#include "fsroot/ckpt/ckpt_shard.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/digest/crc.h"
#include "base/file.h"
#include "base/message.h"
#include "base/str.h"
#include "core/check/safetensors.h"
#include "core/check/torchzip.h"

enum {
    SMALL = 64 << 10,    /* a member of at most so many bytes is read at each look, */
    SMALL_MAX = 2 << 20, /* so many bytes of a file in all, */
    LOCALS_MAX = 256,    /* and so many of its local headers */
    CHUNK = 1 << 20,
    HEADER_MAX = 32 << 20, /* of safetensors; a longer one is believed */
};

struct shard {
    int fd;
    uint64_t bytes;
    bool deep;
    const volatile int *stop;
    unsigned char *chunk;
    uint64_t small; /* bytes of small members that were read */
    int locals;
};

static int ckpt_shard_read_at(int fd, void *to, size_t n, uint64_t at, struct err *err)
{
    size_t got;
    int r = file_read_at(fd, at, to, n, &got);
    if (r < 0)
        return message_refuse(err, r, "disk_says", MESSAGE_ARGS(MESSAGE_STR("why", strerror(-r))));
    return got < n ? message_refuse(err, -EINVAL, "file_got_shorter", MESSAGE_NO_ARGS) : 0;
}

static int read_sum(struct shard *s, uint64_t at, uint64_t n, uint32_t *ret, struct err *err)
{
    uint32_t crc = 0;
    while (n) {
        size_t part = n < CHUNK ? (size_t)n : CHUNK;
        int r = ckpt_shard_read_at(s->fd, s->chunk, part, at, err);
        if (r < 0)
            return r;
        if (s->stop && *s->stop)
            return message_refuse(err, -ECANCELED, "reading_given_up", MESSAGE_NO_ARGS);
        crc = crc32_add(crc, s->chunk, part);
        at += part;
        n -= part;
    }
    *ret = crc;
    return 0;
}

static bool wants_bytes(struct shard *s, const struct torchzip_member *m)
{
    if (s->deep)
        return true;
    if (m->bytes > SMALL || s->small + m->bytes > SMALL_MAX)
        return false;
    s->small += m->bytes;
    return true;
}

static int ckpt_shard_refuse_member(const struct torchzip_member *m, struct err *err)
{
    _cleanup_(freep) char *name = xstrndup(m->name, m->name_len < 80 ? m->name_len : 80);
    return message_refuse(err, -EINVAL, "shard_other_bytes",
                          MESSAGE_ARGS(MESSAGE_STR("name", name)));
}

static int check_member(struct shard *s,
                        const struct torchzip_end *end,
                        const struct torchzip_member *m,
                        struct err *err)
{
    unsigned char local[TORCHZIP_LOCAL_BYTES];
    uint64_t at = 0;
    uint32_t crc = 0;
    if (!s->deep && ++s->locals > LOCALS_MAX)
        return 0;
    int r = ckpt_shard_read_at(s->fd, local, sizeof(local), m->at, err);
    if (r == 0)
        r = torchzip_data_at(local, m, end, &at, err);
    if (r < 0 || !wants_bytes(s, m))
        return r;
    r = read_sum(s, at, m->bytes, &crc, err);
    if (r == 0 && m->crc && crc != m->crc) /* 0: torch was told to make none */
        r = ckpt_shard_refuse_member(m, err);
    return r;
}

static bool ends_with(const struct torchzip_member *m, const char *end)
{
    size_t n = strlen(end);
    return m->name_len >= n && !memcmp(m->name + m->name_len - n, end, n);
}

static int ckpt_shard_check_members(struct shard *s,
                                    const struct torchzip_end *end,
                                    const unsigned char *dir,
                                    struct err *err)
{
    struct torchzip_member m;
    size_t pos = 0;
    uint64_t n = 0;
    bool pickled = false;
    int r;
    while ((r = torchzip_next(dir, end, &pos, &m, err)) == 1) {
        n++;
        pickled = pickled || ends_with(&m, "/data.pkl");
        r = check_member(s, end, &m, err);
        if (r < 0)
            return r;
    }
    if (r == 0 && (n != end->members || !pickled))
        r = message_refuse(err, -EINVAL, pickled ? "shard_lacks_members" : "shard_no_torch",
                           MESSAGE_NO_ARGS);
    return r;
}

static int check_zip(struct shard *s, struct err *err)
{
    size_t n = s->bytes < TORCHZIP_TAIL_MAX ? (size_t)s->bytes : TORCHZIP_TAIL_MAX;
    struct torchzip_end end = {0};
    _cleanup_(freep) unsigned char *tail = xmalloc(TORCHZIP_TAIL_MAX);
    _cleanup_(freep) unsigned char *dir = NULL;
    int r = ckpt_shard_read_at(s->fd, tail, n, s->bytes - n, err);
    if (r == 0)
        r = torchzip_find_end(tail, n, s->bytes, &end, err);
    if (r < 0)
        return r;
    dir = xmalloc((size_t)end.dir_bytes);
    r = ckpt_shard_read_at(s->fd, dir, (size_t)end.dir_bytes, end.dir_at, err);
    return r < 0 ? r : ckpt_shard_check_members(s, &end, dir, err);
}

static int check_safetensors(struct shard *s, struct err *err)
{
    unsigned char first[SAFETENSORS_LENGTH_BYTES];
    struct safetensors found = {0};
    uint64_t n = 0;
    uint32_t crc;
    if (s->bytes < sizeof(first))
        return message_refuse(err, -EINVAL, "file_cut_off", MESSAGE_NO_ARGS);
    int r = ckpt_shard_read_at(s->fd, first, sizeof(first), 0, err);
    if (r == 0)
        r = safetensors_header_length(first, &n, err);
    if (r < 0 || n > HEADER_MAX)
        return r;
    if (n > s->bytes - sizeof(first))
        return message_refuse(err, -EINVAL, "file_cut_off", MESSAGE_NO_ARGS);
    _cleanup_(freep) char *header = xmalloc((size_t)n + 1);
    r = ckpt_shard_read_at(s->fd, header, (size_t)n, sizeof(first), err);
    if (r == 0)
        r = safetensors_read(header, (size_t)n, &found, err);
    if (r == 0 && found.bytes != s->bytes)
        r = message_refuse(err, -EINVAL, "file_other_size",
                           MESSAGE_ARGS(MESSAGE_NUM("bytes", (unsigned long long)s->bytes),
                                        MESSAGE_NUM("wanted", (unsigned long long)found.bytes)));
    return r == 0 && s->deep ? read_sum(s, 0, s->bytes, &crc, err) : r;
}

int ckpt_shard_check(int fd,
                     const char *name,
                     uint64_t bytes,
                     bool deep,
                     const volatile int *stop,
                     struct err *err)
{
    _cleanup_(freep) unsigned char *chunk = xmalloc(CHUNK);
    struct shard s = {.fd = fd, .bytes = bytes, .deep = deep, .stop = stop, .chunk = chunk};
    uint32_t crc;
    if (!bytes)
        return message_refuse(err, -EINVAL, "shard_has_nothing", MESSAGE_NO_ARGS);
    if (str_ends(name, ".pt"))
        return check_zip(&s, err);
    if (str_ends(name, ".safetensors"))
        return check_safetensors(&s, err);
    return deep ? read_sum(&s, 0, bytes, &crc, err) : 0;
}
