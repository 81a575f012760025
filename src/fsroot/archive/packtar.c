/* SPDX-License-Identifier: Apache-2.0 */
/* packtar.c - a tree to a tar and back by libarchive; see packtar.h. A file is opened by its path
 * below the tree and by no link, and has to be the one that was gathered before and after it is
 * read. What is unpacked is made anew by one name in a directory that is held open; times and modes
 * of directories come last, from the deepest up. */
#define _GNU_SOURCE
#include "fsroot/archive/packtar.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/message.h"
#include "base/str.h"

enum { CHUNK = 1 << 18, BLOCK_BYTES = 1 << 18, HOLES_MAX = 10000 };

static int packtar_fail(struct archive *a, const char *verb, struct err *err)
{
    int r = a ? archive_errno(a) : ENOMEM;
    return message_refuse(
        err, r > 0 ? -r : -EIO, "archive_no_pass",
        MESSAGE_ARGS(
            MESSAGE_STR("verb", verb),
            MESSAGE_STR("why", a ? str_or(archive_error_string(a), strerror(r)) : "no memory")));
}

/* ---- writing ---- */

struct packing {
    const struct rootdir *d;
    const char *name;
    struct archive *a;
    struct archive_entry *e;
    char *chunk;
    volatile int *stop;
};

static void packing_release(struct packing *p)
{
    archive_entry_free(p->e);
    if (p->a)
        (void)archive_write_free(p->a); /* a failure was told by then */
    free(p->chunk);
}

static int packing_open(struct packing *p, int fd, struct err *err)
{
    p->a = archive_write_new();
    p->e = archive_entry_new();
    p->chunk = xmalloc(CHUNK);
    bool good = p->a && p->e && archive_write_add_filter_zstd(p->a) == ARCHIVE_OK &&
                archive_write_set_format_pax(p->a) == ARCHIVE_OK &&
                archive_write_set_options(p->a, "pax:hdrcharset=BINARY,zstd:compression-level=3") ==
                    ARCHIVE_OK &&
                archive_write_open_fd(p->a, fd) == ARCHIVE_OK;
    return good ? 0 : packtar_fail(p->a, "written", err);
}

static char *packing_path(const struct packing *p, const char *below)
{
    return *below ? xasprintf("%s/%s", p->name, below) : xstrdup(p->name);
}

static void packing_describe(struct packing *p, const struct packlist_entry *x)
{
    static const mode_t types[] = {[PACKLIST_DIR] = AE_IFDIR,
                                   [PACKLIST_FILE] = AE_IFREG,
                                   [PACKLIST_LINK] = AE_IFLNK,
                                   [PACKLIST_SAME] = AE_IFREG};
    _cleanup_(freep) char *path = packing_path(p, x->path);
    archive_entry_clear(p->e);
    archive_entry_set_pathname(p->e, path);
    archive_entry_set_filetype(p->e, types[x->kind]);
    archive_entry_set_perm(p->e, x->kind == PACKLIST_LINK ? 0777 : x->mode);
    archive_entry_set_mtime(p->e, x->mtime_s, x->mtime_ns);
    archive_entry_set_size(p->e, x->kind == PACKLIST_FILE ? (int64_t)x->size : 0);
    if (x->kind == PACKLIST_LINK)
        archive_entry_set_symlink(p->e, x->target);
    if (x->kind == PACKLIST_SAME) {
        _cleanup_(freep) char *first = packing_path(p, x->target);
        archive_entry_set_hardlink(p->e, first);
    }
}

/* Where its bytes are, if it has holes. A file system that cannot say has none. */
static void packing_find_holes(struct packing *p, int fd, const struct stat *st)
{
    off_t size = st->st_size, at = 0;
    if (st->st_blocks >= (size + 511) / 512)
        return;
    for (int n = 0; n < HOLES_MAX && at < size; n++) {
        off_t data = lseek(fd, at, SEEK_DATA);
        if (data < 0 && errno == ENXIO && n == 0)
            archive_entry_sparse_add_entry(p->e, 0, 0); /* all of it is a hole */
        if (data < 0)
            return;
        off_t end = n + 1 < HOLES_MAX ? lseek(fd, data, SEEK_HOLE) : size;
        if (end <= data || end > size)
            end = size;
        if (data > 0 || end < size)
            archive_entry_sparse_add_entry(p->e, data, end - data);
        at = end;
    }
}

static int packing_header(struct packing *p, struct err *err)
{
    int r = archive_write_header(p->a, p->e);
    return r == ARCHIVE_OK || r == ARCHIVE_WARN ? 0 : packtar_fail(p->a, "written", err);
}

static int packing_copy(struct packing *p, struct packlist_entry *x, int fd, struct err *err)
{
    struct hash_running h;
    hash_begin(&h);
    for (uint64_t at = 0; at < x->size;) {
        size_t n = 0;
        if (p->stop && *p->stop)
            return message_refuse(err, -ECANCELED, "argusd_ends", MESSAGE_NO_ARGS);
        int r = packlist_read_file(x, fd, at, p->chunk, CHUNK, &n, err);
        if (r < 0)
            return r;
        hash_add(&h, p->chunk, n);
        if (archive_write_data(p->a, p->chunk, n) != (la_ssize_t)n)
            return packtar_fail(p->a, "written", err);
        at += n;
    }
    hash_end(&h, x->hash);
    return 0;
}

static int packing_check_file(int fd,
                              const struct packlist_entry *x,
                              struct stat *ret,
                              struct err *err)
{
    if (fstat(fd, ret) < 0)
        return message_refuse(
            err, -errno, "disk_no_look",
            MESSAGE_ARGS(MESSAGE_STR("path", x->path), MESSAGE_STR("why", strerror(errno))));
    return packlist_is_same_file(x, ret)
               ? 0
               : message_refuse(err, ERR_CONFLICT, "file_written_meanwhile",
                                MESSAGE_ARGS(MESSAGE_STR("path", x->path)));
}

static int packing_add_file(struct packing *p, struct packlist_entry *x, struct err *err)
{
    struct stat st;
    _cleanup_(closep) int fd = rootdir_open_file(p->d, x->path, err);
    if (fd < 0)
        return fd;
    int r = packing_check_file(fd, x, &st, err);
    if (r < 0)
        return r;
    packing_find_holes(p, fd, &st);
    r = packing_header(p, err);
    if (r == 0)
        r = packing_copy(p, x, fd, err);
    return r < 0 ? r : packing_check_file(fd, x, &st, err);
}

static int packing_add_manifest(struct packing *p, const struct packlist *l, struct err *err)
{
    struct buf text = BUF_INIT(1U << 30);
    packlist_write(l, &text);
    struct packlist_entry x = {.kind = PACKLIST_FILE, .mode = 0644, .path = NULL, .size = text.len};
    _cleanup_(freep) char *path = xasprintf("%s.manifest", p->name);
    archive_entry_clear(p->e);
    archive_entry_set_pathname(p->e, path);
    archive_entry_set_filetype(p->e, AE_IFREG);
    archive_entry_set_perm(p->e, x.mode);
    archive_entry_set_size(p->e, (int64_t)x.size);
    int r = text.failed ? message_refuse(err, ERR_REFUSED, "pack_list_long", MESSAGE_NO_ARGS)
                        : packing_header(p, err);
    if (r == 0 && archive_write_data(p->a, text.data, text.len) != (la_ssize_t)text.len)
        r = packtar_fail(p->a, "written", err);
    buf_release(&text);
    return r;
}

int packtar_write(const struct rootdir *d,
                  struct packlist *l,
                  const char *name,
                  int fd,
                  volatile int *stop,
                  struct err *err)
{
    _cleanup_(packing_release) struct packing p = {.d = d, .name = name, .stop = stop};
    int r = packing_open(&p, fd, err);
    for (size_t i = 0; r == 0 && i < l->n; i++) {
        packing_describe(&p, &l->v[i]);
        r = l->v[i].kind == PACKLIST_FILE ? packing_add_file(&p, &l->v[i], err)
                                          : packing_header(&p, err);
    }
    if (r == 0)
        r = packing_add_manifest(&p, l, err);
    if (r == 0 && archive_write_close(p.a) != ARCHIVE_OK)
        r = packtar_fail(p.a, "written", err);
    return r;
}

/* ---- reading ---- */

struct unpacking {
    const char *name;
    const struct rootdir *into; /* NULL: only read */
    const struct packlist_limits *limits;
    struct packlist *l;
    struct archive *a;
    char *zeros;
};

static void unpacking_release(struct unpacking *u)
{
    if (u->a)
        (void)archive_read_free(u->a); /* whatever it says, it is gone */
    free(u->zeros);
}

static int unpacking_refuse(const char *path, const char *message, struct err *err)
{
    return message_refuse(err, ERR_REFUSED, message, MESSAGE_ARGS(MESSAGE_STR("name", path)));
}

/* What stands below the name; NULL: it is none of ours. "" is the tree itself. */
static const char *unpacking_below(const struct unpacking *u, const char *path)
{
    size_t n = strlen(u->name);
    if (!path || strncmp(path, u->name, n) != 0)
        return NULL;
    if (path[n] == '/')
        return path + n + 1;
    return path[n] ? NULL : "";
}

/* "a/b", with no part that leads elsewhere. */
static bool unpacking_is_plain(const char *path)
{
    for (const char *p = path; *p;) {
        size_t n = strcspn(p, "/");
        if (!n || (n == 1 && *p == '.') || (n == 2 && p[0] == '.' && p[1] == '.'))
            return false;
        p += n + (p[n] == '/' && p[n + 1]);
        if (*p == '/')
            return false;
    }
    return true;
}

/* A directory's name may end with a slash. Yours. */
static char *unpacking_clean(const char *below)
{
    size_t n = strlen(below);
    return xstrndup(below, n && below[n - 1] == '/' ? n - 1 : n);
}

/* The directory in which the path stands, opened, and its last name. */
static int unpacking_above(const struct unpacking *u,
                           const char *path,
                           struct rootdir *ret,
                           const char **ret_name,
                           struct err *err)
{
    const char *slash = strrchr(path, '/');
    _cleanup_(freep) char *dir = slash ? xstrndup(path, (size_t)(slash - path)) : xstrdup(".");
    *ret_name = slash ? slash + 1 : path;
    return rootdir_open_in(u->into, dir, 0, ret, err);
}

static int unpacking_make_dir(const struct unpacking *u, const char *path, struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir above = ROOTDIR_NONE, made = ROOTDIR_NONE;
    const char *name = NULL;
    if (!u->into || !*path)
        return 0;
    int r = unpacking_above(u, path, &above, &name, err);
    return r < 0 ? r : rootdir_make_new(&above, name, 0700, &made, err);
}

static int unpacking_make_link(const struct unpacking *u,
                               const struct packlist_entry *x,
                               struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir above = ROOTDIR_NONE;
    const char *name = NULL;
    if (!u->into)
        return 0;
    int r = unpacking_above(u, x->path, &above, &name, err);
    if (r == 0)
        r = rootdir_symlink(&above, name, x->target, err);
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {x->mtime_s, x->mtime_ns}};
    if (r == 0 && utimensat(above.fd, name, times, AT_SYMLINK_NOFOLLOW) < 0)
        r = message_refuse(
            err, -errno, "disk_no_time",
            MESSAGE_ARGS(MESSAGE_STR("path", x->path), MESSAGE_STR("why", strerror(errno))));
    return r;
}

static int unpacking_make_same(const struct unpacking *u,
                               const struct packlist_entry *x,
                               struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir from = ROOTDIR_NONE, to = ROOTDIR_NONE;
    const char *first = NULL, *name = NULL;
    if (!u->into)
        return 0;
    int r = unpacking_above(u, x->target, &from, &first, err);
    if (r == 0)
        r = unpacking_above(u, x->path, &to, &name, err);
    return r < 0 ? r : rootdir_link(&from, first, &to, name, err);
}

static int unpacking_create(const struct unpacking *u, const char *path, int *ret, struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir above = ROOTDIR_NONE;
    const char *name = NULL;
    int r = unpacking_above(u, path, &above, &name, err);
    if (r < 0)
        return r;
    *ret = openat(above.fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return *ret < 0 ? message_refuse(err, -errno, "disk_no_make",
                                     MESSAGE_ARGS(MESSAGE_STR("path", path),
                                                  MESSAGE_STR("why", strerror(errno))))
                    : 0;
}

static void unpacking_hash_hole(const struct unpacking *u, struct hash_running *h, uint64_t n)
{
    for (; n; n -= n < CHUNK ? n : CHUNK)
        hash_add(h, u->zeros, n < CHUNK ? (size_t)n : CHUNK);
}

/* fd -1: the bytes are only hashed. */
static int unpacking_copy(struct unpacking *u, struct packlist_entry *x, int fd, struct err *err)
{
    struct hash_running h;
    const void *block;
    size_t n;
    int64_t at;
    uint64_t end = 0;
    int r;
    hash_begin(&h);
    while ((r = archive_read_data_block(u->a, &block, &n, &at)) == ARCHIVE_OK) {
        if (u->limits->stop && *u->limits->stop)
            return message_refuse(err, -ECANCELED, "argusd_ends", MESSAGE_NO_ARGS);
        if (at < 0 || (uint64_t)at < end || (uint64_t)at > x->size || n > x->size - (uint64_t)at)
            return unpacking_refuse(x->path, "entry_size", err);
        unpacking_hash_hole(u, &h, (uint64_t)at - end);
        hash_add(&h, block, n);
        int w = fd >= 0 ? file_write_at(fd, (uint64_t)at, block, n) : 0;
        if (w < 0)
            return message_refuse(
                err, w, "disk_no_write",
                MESSAGE_ARGS(MESSAGE_STR("path", x->path), MESSAGE_STR("why", strerror(-w))));
        end = (uint64_t)at + n;
    }
    if (r != ARCHIVE_EOF)
        return packtar_fail(u->a, "read", err);
    unpacking_hash_hole(u, &h, x->size - end);
    hash_end(&h, x->hash);
    return 0;
}

static int unpacking_settle_file(int fd, const struct packlist_entry *x)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {x->mtime_s, x->mtime_ns}};
    if (ftruncate(fd, (off_t)x->size) < 0 || fchmod(fd, x->mode) < 0 || futimens(fd, times) < 0)
        return -errno;
    return 0;
}

static int unpacking_file(struct unpacking *u, struct packlist_entry *x, struct err *err)
{
    int fd = -1;
    int r = u->into ? unpacking_create(u, x->path, &fd, err) : 0;
    if (r < 0)
        return r;
    r = unpacking_copy(u, x, fd, err);
    if (fd < 0)
        return r;
    int s = r == 0 ? unpacking_settle_file(fd, x) : 0;
    if (close(fd) < 0 && s == 0) /* NFS tells here that there was no space */
        s = -errno;
    return s < 0 ? message_refuse(
                       err, s, "disk_no_write",
                       MESSAGE_ARGS(MESSAGE_STR("path", x->path), MESSAGE_STR("why", strerror(-s))))
                 : r;
}

/* False: it is nothing that packtar_write() writes. */
static bool unpacking_kind(struct archive_entry *e, enum packlist_kind *ret)
{
    if (archive_entry_hardlink(e))
        *ret = PACKLIST_SAME;
    else if (archive_entry_filetype(e) == AE_IFDIR)
        *ret = PACKLIST_DIR;
    else if (archive_entry_filetype(e) == AE_IFLNK && archive_entry_symlink(e))
        *ret = PACKLIST_LINK;
    else if (archive_entry_filetype(e) == AE_IFREG)
        *ret = PACKLIST_FILE;
    else
        return false;
    return true;
}

static int unpacking_check_limits(const struct unpacking *u, int64_t size, struct err *err)
{
    if ((int64_t)u->l->n >= u->limits->entries || size < 0 ||
        (uint64_t)size > u->limits->bytes - u->l->bytes)
        return message_refuse(err, ERR_REFUSED, "archive_over_limit", MESSAGE_NO_ARGS);
    return 0;
}

static int unpacking_take(struct unpacking *u,
                          struct archive_entry *e,
                          enum packlist_kind kind,
                          const char *path,
                          const char *target,
                          struct err *err)
{
    struct packlist_entry *x = packlist_add(u->l, kind, path, target);
    if (kind == PACKLIST_SAME)
        return unpacking_make_same(u, x, err);
    x->mode = kind == PACKLIST_LINK ? 0 : archive_entry_perm(e) & 07777;
    x->mtime_s = archive_entry_mtime(e);
    x->mtime_ns = archive_entry_mtime_nsec(e);
    if (kind == PACKLIST_DIR)
        return unpacking_make_dir(u, x->path, err);
    if (kind == PACKLIST_LINK)
        return unpacking_make_link(u, x, err);
    x->size = (uint64_t)archive_entry_size(e);
    u->l->bytes += x->size;
    u->l->files++;
    return unpacking_file(u, x, err);
}

static int unpacking_entry(struct unpacking *u, struct archive_entry *e, struct err *err)
{
    enum packlist_kind kind = PACKLIST_FILE;
    const char *raw = unpacking_below(u, archive_entry_pathname(e));
    const char *link = archive_entry_hardlink(e);
    const char *target = link ? unpacking_below(u, link) : archive_entry_symlink(e);
    if (!raw || (link && !target) || !unpacking_kind(e, &kind))
        return unpacking_refuse(str_or(archive_entry_pathname(e), "?"), "entry_not_ours", err);
    _cleanup_(freep) char *path = unpacking_clean(raw);
    bool is_top = u->l->n == 0;
    if (!unpacking_is_plain(path) || (link && !unpacking_is_plain(target)) ||
        is_top != (kind == PACKLIST_DIR && !*path))
        return unpacking_refuse(path, "entry_leads_out", err);
    int r = unpacking_check_limits(u, kind == PACKLIST_FILE ? archive_entry_size(e) : 0, err);
    return r < 0 ? r : unpacking_take(u, e, kind, path, target, err);
}

static int unpacking_open(struct unpacking *u, int fd, struct err *err)
{
    u->a = archive_read_new();
    u->zeros = xcalloc(1, CHUNK);
    bool good = u->a && lseek(fd, 0, SEEK_SET) == 0 &&
                archive_read_support_filter_zstd(u->a) == ARCHIVE_OK &&
                archive_read_support_format_tar(u->a) == ARCHIVE_OK &&
                archive_read_open_fd(u->a, fd, BLOCK_BYTES) == ARCHIVE_OK;
    return good ? 0 : packtar_fail(u->a, "read", err);
}

/* From the deepest up, so that none is written into after it got its time. */
static int unpacking_settle_dirs(const struct unpacking *u, struct err *err)
{
    for (size_t i = u->l->n; i > 0; i--) {
        const struct packlist_entry *x = &u->l->v[i - 1];
        _cleanup_(rootdir_release) struct rootdir d = ROOTDIR_NONE;
        struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {x->mtime_s, x->mtime_ns}};
        if (x->kind != PACKLIST_DIR)
            continue;
        int r = rootdir_open_in(u->into, *x->path ? x->path : ".", 0, &d, err);
        if (r < 0)
            return r;
        if (fchmod(d.fd, x->mode) < 0 || futimens(d.fd, times) < 0)
            return message_refuse(
                err, -errno, "disk_no_dir_time",
                MESSAGE_ARGS(MESSAGE_STR("path", x->path), MESSAGE_STR("why", strerror(errno))));
    }
    return 0;
}

/* The list at its end is that of what came before it. */
static int unpacking_manifest(struct unpacking *u, struct archive_entry *e, struct err *err)
{
    char is[HASH_HEX], was[HASH_HEX];
    struct packlist_entry x = {.kind = PACKLIST_FILE, .path = (char[]){"manifest"}};
    int64_t size = archive_entry_size(e);
    if (archive_entry_filetype(e) != AE_IFREG || size < 0)
        return unpacking_refuse(x.path, "entry_no_file", err);
    x.size = (uint64_t)size;
    int r = unpacking_copy(u, &x, -1, err);
    if (r < 0)
        return r;
    str_hex(x.hash, HASH_BYTES, was);
    return strcmp(packlist_hash(u->l, is), was) == 0
               ? 0
               : message_refuse(err, ERR_REFUSED, "archive_other_list", MESSAGE_NO_ARGS);
}

static int unpacking_all(struct unpacking *u, struct err *err)
{
    _cleanup_(freep) char *manifest = xasprintf("%s.manifest", u->name);
    struct archive_entry *e = NULL;
    bool has_manifest = false;
    for (;;) {
        int r = archive_read_next_header(u->a, &e);
        if (r == ARCHIVE_EOF)
            break;
        if (r != ARCHIVE_OK && r != ARCHIVE_WARN)
            return packtar_fail(u->a, "read", err);
        if (has_manifest)
            return message_refuse(err, ERR_REFUSED, "archive_long", MESSAGE_NO_ARGS);
        has_manifest = str_eq(archive_entry_pathname(e), manifest);
        r = has_manifest ? unpacking_manifest(u, e, err) : unpacking_entry(u, e, err);
        if (r < 0)
            return r;
    }
    return has_manifest ? 0 : message_refuse(err, ERR_REFUSED, "archive_cut", MESSAGE_NO_ARGS);
}

int packtar_read(int fd,
                 const char *name,
                 const struct rootdir *into,
                 const struct packlist_limits *limits,
                 struct packlist *ret,
                 struct err *err)
{
    _cleanup_(unpacking_release) struct unpacking u = {
        .name = name, .into = into, .limits = limits, .l = ret};
    int r = unpacking_open(&u, fd, err);
    if (r == 0)
        r = unpacking_all(&u, err);
    return r == 0 && into ? unpacking_settle_dirs(&u, err) : r;
}
