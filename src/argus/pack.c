/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c - see pack.h. The tar is the plainest there is: ustar headers, and a pax header before
 * those whose name, target or size does not fit. Its times and owners are all the same, since
 * a snapshot has none. */
#define _GNU_SOURCE
#include "argus/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "argus/pack_cache.h"
#include "argus/pack_list.h"
#include "base/file.h"
#include "base/filehash.h"
#include "base/str.h"
#include "core/snapshot.h"

enum { BLOCK = 512, OUT_BYTES = 1 << 20, USTAR_NAME = 100, READ_BYTES = 128 << 10 };

/* ---- looking ---- */

static int refuse(const char *path, const char *why, struct err *err)
{
    char shown[SNAPSHOT_SHOWN];
    return err_set(err, ERR_REFUSED, "'%s' %s", snapshot_show(path, shown), why);
}

static int look_link(int fd, const char *path, struct manifest *m, struct err *err)
{
    char target[SNAPSHOT_PATH_MAX + 2];
    ssize_t n = readlinkat(fd, path, target, sizeof(target) - 1);
    if (n < 0)
        return refuse(path, strerror(errno), err);
    target[n] = 0;
    struct manifest_entry e = {.kind = MANIFEST_LINK, .path = xstrdup(path), .target = target};
    int r = snapshot_check_link(path, target, err);
    if (r == 0)
        r = manifest_add(m, &e, err);
    free(e.path);
    return r;
}

static int look_file(int fd,
                     const char *path,
                     const struct stat *st,
                     struct pack_cache *cache,
                     struct manifest *m,
                     struct err *err)
{
    struct manifest_entry e = {.kind = st->st_mode & 0111 ? MANIFEST_PROGRAM : MANIFEST_FILE,
                               .path = xstrdup(path),
                               .size = (uint64_t)st->st_size};
    int r = 0;
    if (!pack_cache_find(cache, path, st, e.hash))
        r = filehash_at(fd, path, e.hash, &e.size, err);
    if (r == 0) {
        pack_cache_put(cache, path, st, e.hash);
        r = manifest_add(m, &e, err);
    }
    free(e.path);
    return r;
}

static int look_at(int fd,
                   const char *path,
                   struct pack_cache *cache,
                   struct manifest *m,
                   struct err *err)
{
    struct stat st;
    int r = snapshot_check_path(path, err);
    if (r < 0)
        return r;
    if (fstatat(fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return refuse(path, strerror(errno), err);
    if (S_ISLNK(st.st_mode))
        return look_link(fd, path, m, err);
    if (S_ISREG(st.st_mode))
        return look_file(fd, path, &st, cache, m, err);
    return refuse(path, "is a device, pipe or socket: name it in .gitignore", err);
}

static int open_dir(const char *dir, struct err *err)
{
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return fd >= 0 ? fd : err_set(err, ERR_USAGE, "'%s' cannot be read: %s", dir, strerror(errno));
}

int pack_look(const char *dir, struct manifest *ret, struct err *err)
{
    struct strv paths = {0};
    struct manifest m = {0};
    _cleanup_(closep) int fd = open_dir(dir, err);
    if (fd < 0)
        return fd;
    hash_init();
    struct pack_cache *cache = pack_cache_open(dir);
    int r = pack_list(dir, fd, &paths, err);
    for (size_t i = 0; i < paths.n && r == 0; i++)
        r = look_at(fd, paths.v[i], cache, &m, err);
    if (r == 0 && !m.n)
        r = err_set(err, ERR_REFUSED, "there is no file in '%s' that is not ignored", dir);
    if (r == 0)
        pack_cache_save(cache);
    pack_cache_free(cache);
    strv_release(&paths);
    if (r < 0) {
        manifest_release(&m);
        return r;
    }
    manifest_sort(&m);
    *ret = m;
    return 0;
}

/* ---- writing ---- */

struct tar {
    int from, to;
    struct buf out;
    char *bytes; /* READ_BYTES */
};

static int flush(struct tar *t, struct err *err)
{
    int r = t->out.len ? file_write_all(t->to, t->out.data, t->out.len) : 0;
    buf_reset(&t->out);
    return r < 0 ? err_set(err, r, "the archive cannot be written: %s", strerror(-r)) : 0;
}

static int put(struct tar *t, const void *p, size_t n, struct err *err)
{
    int r = t->out.len + n > OUT_BYTES ? flush(t, err) : 0;
    return r < 0 ? r : buf_add(&t->out, p, n); /* there is room now: n is at most READ_BYTES */
}

static int pad(struct tar *t, uint64_t size, struct err *err)
{
    static const char zeros[BLOCK];
    size_t over = (size_t)(size % BLOCK);
    return over ? put(t, zeros, BLOCK - over, err) : 0;
}

static int put_header(struct tar *t,
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
    (void)snprintf(h + 100, 8, "%07o", program ? 0755U : 0644U);
    (void)snprintf(h + 108, 8, "%07o", 0U);
    (void)snprintf(h + 116, 8, "%07o", 0U);
    (void)snprintf(h + 124, 12, "%011" PRIo64, size & 077777777777);
    (void)snprintf(h + 136, 12, "%011o", 0U);
    memset(h + 148, ' ', 8);
    h[156] = type;
    memcpy(h + 157, link, strnlen(link, USTAR_NAME));
    memcpy(h + 257, "ustar\0", 6);
    memcpy(h + 263, "00", 2);
    for (size_t i = 0; i < sizeof(h); i++)
        sum += (unsigned char)h[i];
    (void)snprintf(h + 148, 8, "%06o", sum & 0777777);
    return put(t, h, sizeof(h), err);
}

/* "<length> <key>=<value>\n", the length with itself. */
static void add_record(struct buf *out, const char *key, const char *value)
{
    size_t rest = strlen(key) + strlen(value) + 3, n = rest + 1;
    char digits[24];
    for (size_t before = 0; before != n;) {
        before = n;
        n = rest + (size_t)snprintf(digits, sizeof(digits), "%zu", n);
    }
    (void)buf_addf(out, "%zu %s=%s\n", n, key, value); /* a few paths: it fits */
}

static int put_pax(struct tar *t, const struct manifest_entry *e, struct err *err)
{
    struct buf records = BUF_INIT(8 * SNAPSHOT_PATH_MAX);
    char size[24];
    if (strlen(e->path) > USTAR_NAME)
        add_record(&records, "path", e->path);
    if (e->target && strlen(e->target) > USTAR_NAME)
        add_record(&records, "linkpath", e->target);
    (void)snprintf(size, sizeof(size), "%" PRIu64, e->size);
    if (e->size > 077777777777)
        add_record(&records, "size", size);
    int r = 0;
    if (records.len) {
        r = put_header(t, "pax", 'x', "", records.len, false, err);
        if (r == 0)
            r = put(t, records.data, records.len, err);
        if (r == 0)
            r = pad(t, records.len, err);
    }
    buf_release(&records);
    return r;
}

static int put_content(struct tar *t, const struct manifest_entry *e, struct err *err)
{
    _cleanup_(closep) int fd = openat(t->from, e->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return refuse(e->path, strerror(errno), err);
    uint64_t done = 0;
    int r = 0;
    for (ssize_t n; r == 0 && (n = read(fd, t->bytes, READ_BYTES)) != 0; done += (uint64_t)n) {
        if (n < 0 || done + (uint64_t)n > e->size)
            return refuse(e->path, n < 0 ? strerror(errno) : "changed while it was packed", err);
        r = put(t, t->bytes, (size_t)n, err);
    }
    if (r == 0 && done != e->size)
        r = refuse(e->path, "changed while it was packed", err);
    return r < 0 ? r : pad(t, e->size, err);
}

static int put_entry(struct tar *t, const struct manifest_entry *e, struct err *err)
{
    bool link = e->kind == MANIFEST_LINK;
    int r = put_pax(t, e, err);
    if (r == 0)
        r = put_header(t, e->path, link ? '2' : '0', link ? e->target : "", e->size,
                       e->kind == MANIFEST_PROGRAM, err);
    return r < 0 || link ? r : put_content(t, e, err);
}

int pack_write(const char *dir, const struct manifest *m, int fd, struct err *err)
{
    static const char end[2 * BLOCK];
    _cleanup_(closep) int from = open_dir(dir, err);
    if (from < 0)
        return from;
    struct tar t = {
        .from = from, .to = fd, .out = BUF_INIT(OUT_BYTES), .bytes = xmalloc(READ_BYTES)};
    int r = 0;
    for (size_t i = 0; i < m->n && r == 0; i++)
        r = put_entry(&t, &m->v[i], err);
    if (r == 0)
        r = put(&t, end, sizeof(end), err);
    if (r == 0)
        r = flush(&t, err);
    buf_release(&t.out);
    free(t.bytes);
    return r;
}
