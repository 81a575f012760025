/* SPDX-License-Identifier: Apache-2.0 */
/* pack_tar.c - see pack_tar.h. Its times and owners are all the same, since a snapshot has none. */
#define _GNU_SOURCE
#include "argus/transfer/pack_tar.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "core/spec/snapshot.h"

enum { BLOCK = 512, OUT_BYTES = 1 << 20, USTAR_NAME = 100 };

struct pack_tar {
    int from, to;
    struct buf out;
    char *bytes; /* PACK_TAR_PIECE */
};

struct pack_tar *pack_tar_new(int from, int to)
{
    struct pack_tar *t = xcalloc(1, sizeof(*t));
    t->from = from;
    t->to = to;
    buf_init(&t->out, OUT_BYTES);
    t->bytes = xmalloc(PACK_TAR_PIECE);
    return t;
}

void pack_tar_free(struct pack_tar *t)
{
    if (!t)
        return;
    buf_release(&t->out);
    free(t->bytes);
    free(t);
}

static int pack_tar_refuse(const char *path, const char *message, const char *why, struct err *err)
{
    char shown[SNAPSHOT_SHOWN];
    return message_refuse(
        err, ERR_REFUSED, message,
        MESSAGE_ARGS(MESSAGE_STR("path", snapshot_show(path, shown)), MESSAGE_STR("why", why)));
}

static int flush(struct pack_tar *t, struct err *err)
{
    int r = t->out.len ? file_write_all(t->to, t->out.data, t->out.len) : 0;
    buf_reset(&t->out);
    return r < 0 ? message_refuse(err, r, "cli_no_pack",
                                  MESSAGE_ARGS(MESSAGE_STR("why", strerror(-r))))
                 : 0;
}

static int pack_tar_put(struct pack_tar *t, const void *p, size_t n, struct err *err)
{
    int r = t->out.len + n > OUT_BYTES ? flush(t, err) : 0;
    return r < 0 ? r : buf_add(&t->out, p, n); /* there is room now: n is at most PACK_TAR_PIECE */
}

static int pad(struct pack_tar *t, uint64_t size, struct err *err)
{
    static const char zeros[BLOCK];
    size_t over = (size_t)(size % BLOCK);
    return over ? pack_tar_put(t, zeros, BLOCK - over, err) : 0;
}

static int pack_tar_put_header(struct pack_tar *t,
                               const char *name,
                               char type,
                               const char *link,
                               uint64_t size,
                               bool program,
                               struct err *err)
{
    char h[BLOCK] = {0};
    unsigned sum = 0;
    /* What does not fit stands in the pax header before it: cut is fine. */
    memcpy(h, name, strnlen(name, USTAR_NAME));
    text_printf_to(h + 100, 8, "%07o", program ? 0755U : 0644U);
    text_printf_to(h + 108, 8, "%07o", 0U);
    text_printf_to(h + 116, 8, "%07o", 0U);
    text_printf_to(h + 124, 12, "%011" PRIo64, size & 077777777777);
    text_printf_to(h + 136, 12, "%011o", 0U);
    memset(h + 148, ' ', 8);
    h[156] = type;
    memcpy(h + 157, link, strnlen(link, USTAR_NAME));
    memcpy(h + 257, "ustar\0", 6);
    memcpy(h + 263, "00", 2);
    for (size_t i = 0; i < sizeof(h); i++)
        sum += (unsigned char)h[i];
    text_printf_to(h + 148, 8, "%06o", sum & 0777777);
    return pack_tar_put(t, h, sizeof(h), err);
}

/* "<length> <key>=<value>\n", the length with itself. */
static void add_record(struct buf *out, const char *keyword, const char *value)
{
    size_t rest = strlen(keyword) + strlen(value) + 3, n = rest + 1;
    char digits[24];
    for (size_t before = 0; before != n;) {
        before = n;
        n = rest + (size_t)snprintf(digits, sizeof(digits), "%zu", n);
    }
    (void)buf_addf(out, "%zu %s=%s\n", n, keyword, value); /* a few paths: it fits */
}

static int put_pax(struct pack_tar *t, const struct manifest_entry *e, struct err *err)
{
    struct buf records = BUF_INIT(8 * SNAPSHOT_PATH_MAX);
    char size[24];
    if (strlen(e->path) > USTAR_NAME)
        add_record(&records, "path", e->path);
    if (e->target && strlen(e->target) > USTAR_NAME)
        add_record(&records, "linkpath", e->target);
    text_printf(size, "%" PRIu64, e->size);
    if (e->size > 077777777777)
        add_record(&records, "size", size);
    int r = 0;
    if (records.len) {
        r = pack_tar_put_header(t, "pax", 'x', "", records.len, false, err);
        if (r == 0)
            r = pack_tar_put(t, records.data, records.len, err);
        if (r == 0)
            r = pad(t, records.len, err);
    }
    buf_release(&records);
    return r;
}

/* All but the content. */
static int pack_tar_put_head(struct pack_tar *t, const struct manifest_entry *e, struct err *err)
{
    bool link = e->kind == MANIFEST_LINK;
    int r = put_pax(t, e, err);
    return r < 0 ? r
                 : pack_tar_put_header(t, e->path, link ? '2' : '0', link ? e->target : "", e->size,
                                       e->kind == MANIFEST_PROGRAM, err);
}

static int put_content(struct pack_tar *t, const struct manifest_entry *e, struct err *err)
{
    _cleanup_(closep) int fd = openat(t->from, e->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return pack_tar_refuse(e->path, "cli_pack_file", strerror(errno), err);
    uint64_t done = 0;
    int r = 0;
    for (ssize_t n; r == 0 && (n = read(fd, t->bytes, PACK_TAR_PIECE)) != 0; done += (uint64_t)n) {
        if (n < 0 || done + (uint64_t)n > e->size)
            return pack_tar_refuse(e->path, n < 0 ? "cli_pack_file" : "cli_pack_changed",
                                   n < 0 ? strerror(errno) : "", err);
        r = pack_tar_put(t, t->bytes, (size_t)n, err);
    }
    if (r == 0 && done != e->size)
        r = pack_tar_refuse(e->path, "cli_pack_changed", "", err);
    return r < 0 ? r : pad(t, e->size, err);
}

int pack_tar_add(struct pack_tar *t, const struct manifest_entry *e, struct err *err)
{
    int r = pack_tar_put_head(t, e, err);
    return r < 0 || e->kind == MANIFEST_LINK ? r : put_content(t, e, err);
}

int pack_tar_add_bytes(struct pack_tar *t,
                       const struct manifest_entry *e,
                       const void *bytes,
                       struct err *err)
{
    int r = pack_tar_put_head(t, e, err);
    if (r == 0)
        r = pack_tar_put(t, bytes, (size_t)e->size, err);
    return r < 0 ? r : pad(t, e->size, err);
}

int pack_tar_end(struct pack_tar *t, struct err *err)
{
    static const char end[2 * BLOCK];
    int r = pack_tar_put(t, end, sizeof(end), err);
    return r < 0 ? r : flush(t, err);
}
