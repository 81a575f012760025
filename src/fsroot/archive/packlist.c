/* SPDX-License-Identifier: Apache-2.0 */
/* packlist.c - a tree as a list; see packlist.h. Jobs may change the tree while it is walked: a
 * directory is opened by one name below one that is held open, and a name that went meanwhile is
 * not there. Names that wait to be looked at count as entries, so that a directory of millions is
 * refused before they are in memory; holes count as bytes that must be hashed for nothing. */
#include "fsroot/archive/packlist.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/map.h"
#include "base/message.h"
#include "base/str.h"
#include "base/strv.h"
#include "base/text.h"

enum { DEPTH_MAX = 100, PATH_BYTES_MAX = 4000, LINE_MAX_BYTES = 32 << 10 };
static const uint64_t HOLES_MAX_BYTES = 64ULL << 30; /* some minutes of hashing zeros */

void packlist_release(struct packlist *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->v[i].path);
        free(l->v[i].target);
    }
    free(l->v);
    *l = (struct packlist){0};
}

struct packlist_entry *packlist_add(struct packlist *l,
                                    enum packlist_kind kind,
                                    const char *path,
                                    const char *target)
{
    if (l->n == l->cap) {
        l->cap = l->cap ? l->cap * 2 : 64;
        l->v = xrealloc(l->v, l->cap, sizeof(*l->v));
    }
    struct packlist_entry *e = &l->v[l->n++];
    *e = (struct packlist_entry){.kind = kind, .path = xstrdup(path), .target = xstrdup(target)};
    return e;
}

/* ---- gathering ---- */

struct gathering {
    struct packlist *l;
    const struct packlist_limits *limits;
    struct map *firsts; /* "dev:ino" of files with several names -> the path of the first */
    uid_t uid;
    size_t waiting; /* names that were listed and not looked at */
    uint64_t holes; /* of all files */
};

static int packlist_check_count(const struct gathering *g, struct err *err)
{
    if ((int64_t)(g->l->n + g->waiting) < g->limits->entries)
        return 0;
    return message_refuse(err, ERR_REFUSED, "pack_too_many",
                          MESSAGE_ARGS(MESSAGE_NUM("most", g->limits->entries)));
}

static char *packlist_join(const char *above, const char *name)
{
    return *above ? xasprintf("%s/%s", above, name) : xstrdup(name);
}

static int packlist_names(struct gathering *g,
                          const struct rootdir *d,
                          struct strv *ret,
                          struct err *err)
{
    DIR *dir = NULL;
    int r = rootdir_list(d, &dir, err);
    if (r < 0)
        return r;
    for (struct dirent *e; r == 0 && (e = readdir(dir));) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        r = packlist_check_count(g, err); /* the ceiling: limits->entries */
        strv_add(ret, e->d_name);
        g->waiting++;
    }
    (void)closedir(dir); /* it was only read */
    return r;
}

static int by_bytes(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void packlist_fill(struct packlist_entry *e, const struct stat *st, uid_t uid)
{
    /* What another user's setuid file may do must not become what argusd's own may do. */
    e->mode = st->st_mode & (st->st_uid == uid ? 07777 : 0777);
    e->mtime_s = st->st_mtim.tv_sec;
    e->mtime_ns = st->st_mtim.tv_nsec;
    e->dev = st->st_dev;
    e->ino = st->st_ino;
    e->ctime = st->st_ctim;
}

static int packlist_add_link(const struct gathering *g,
                             const struct rootdir *d,
                             const char *name,
                             const char *path,
                             const struct stat *st,
                             struct err *err)
{
    char text[PATH_BYTES_MAX + 1];
    ssize_t n = readlinkat(d->fd, name, text, sizeof(text));
    if (n < 0 || n == (ssize_t)sizeof(text))
        return message_refuse(
            err, n < 0 ? -errno : -ENAMETOOLONG, "disk_no_link",
            MESSAGE_ARGS(MESSAGE_STR("path", path),
                         MESSAGE_STR("why", strerror(n < 0 ? errno : ENAMETOOLONG))));
    text[n] = 0;
    struct packlist_entry *e = packlist_add(g->l, PACKLIST_LINK, path, text);
    packlist_fill(e, st, g->uid);
    e->mode = 0;
    return 0;
}

static void packlist_file_key(const struct stat *st, char ret[static 64])
{
    text_printf_to(ret, 64, "%ju:%ju", (uintmax_t)st->st_dev, (uintmax_t)st->st_ino);
}

static int packlist_count_holes(struct gathering *g,
                                const char *path,
                                const struct stat *st,
                                struct err *err)
{
    uint64_t size = (uint64_t)st->st_size, there = (uint64_t)st->st_blocks * 512;
    g->holes += size > there ? size - there : 0;
    if (g->holes <= HOLES_MAX_BYTES)
        return 0;
    return message_refuse(
        err, ERR_REFUSED, "pack_holes",
        MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_NUM("most", HOLES_MAX_BYTES)));
}

static int packlist_add_file(struct gathering *g,
                             const char *path,
                             const struct stat *st,
                             struct err *err)
{
    char key[64];
    packlist_file_key(st, key);
    const char *first = st->st_nlink > 1 ? map_find(g->firsts, key) : NULL;
    if (first) {
        (void)packlist_add(g->l, PACKLIST_SAME, path, first);
        return 0;
    }
    struct packlist_entry *e = packlist_add(g->l, PACKLIST_FILE, path, NULL);
    packlist_fill(e, st, g->uid);
    e->size = (uint64_t)st->st_size;
    if (st->st_nlink > 1)
        (void)map_set(g->firsts, key, e->path); /* it is the first */
    g->l->files++;
    g->l->bytes += e->size;
    if (g->l->bytes > g->limits->bytes)
        return message_refuse(err, ERR_REFUSED, "pack_too_large",
                              MESSAGE_ARGS(MESSAGE_NUM("most", g->limits->bytes)));
    return packlist_count_holes(g, path, st, err);
}

static int packlist_check_room(const struct gathering *g,
                               const char *path,
                               int depth,
                               struct err *err)
{
    if (g->limits->stop && *g->limits->stop)
        return message_refuse(err, -ECANCELED, "argusd_ends", MESSAGE_NO_ARGS);
    if (depth > DEPTH_MAX || strlen(path) > PATH_BYTES_MAX)
        return message_refuse(err, ERR_REFUSED, "pack_too_deep",
                              MESSAGE_ARGS(MESSAGE_STR("path", path)));
    return packlist_check_count(g, err);
}

static int packlist_walk(struct gathering *g,
                         const struct rootdir *d,
                         const char *above,
                         int depth,
                         struct err *err);

static int packlist_add_dir(struct gathering *g,
                            const struct rootdir *d,
                            const char *name,
                            const char *path,
                            int depth,
                            struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir sub = ROOTDIR_NONE;
    struct stat st;
    int r = rootdir_open_in(d, name, 0, &sub, err);
    if (r < 0)
        return r;
    if (fstat(sub.fd, &st) < 0)
        return message_refuse(
            err, -errno, "disk_no_look",
            MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_STR("why", strerror(errno))));
    packlist_fill(packlist_add(g->l, PACKLIST_DIR, path, NULL), &st, g->uid);
    return str_eq(path, g->limits->hollow) ? 0 : packlist_walk(g, &sub, path, depth + 1, err);
}

static const char *packlist_odd_kind(mode_t mode)
{
    return S_ISFIFO(mode) ? "a pipe" : S_ISSOCK(mode) ? "a socket" : "a device";
}

static int packlist_add_name(struct gathering *g,
                             const struct rootdir *d,
                             const char *name,
                             const char *path,
                             int depth,
                             struct err *err)
{
    struct stat st;
    int r = packlist_check_room(g, path, depth, err);
    if (r < 0)
        return r;
    r = rootdir_look(d, name, &st);
    if (r < 0)
        return message_refuse(
            err, r, "disk_no_look",
            MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_STR("why", strerror(-r))));
    if (S_ISDIR(st.st_mode))
        return packlist_add_dir(g, d, name, path, depth, err);
    if (S_ISLNK(st.st_mode))
        return packlist_add_link(g, d, name, path, &st, err);
    if (S_ISREG(st.st_mode))
        return packlist_add_file(g, path, &st, err);
    return message_refuse(
        err, ERR_REFUSED, "pack_odd",
        MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_STR("is", packlist_odd_kind(st.st_mode))));
}

static int packlist_walk(struct gathering *g,
                         const struct rootdir *d,
                         const char *above,
                         int depth,
                         struct err *err)
{
    _cleanup_(strv_release) struct strv names = {0};
    int r = packlist_names(g, d, &names, err);
    xsort(names.v, names.n, sizeof(*names.v), by_bytes);
    for (size_t i = 0; r == 0 && i < names.n; i++) {
        _cleanup_(freep) char *path = packlist_join(above, names.v[i]);
        g->waiting--;
        r = packlist_add_name(g, d, names.v[i], path, depth, err);
    }
    return r;
}

int packlist_gather(const struct rootdir *d,
                    const struct packlist_limits *limits,
                    struct packlist *ret,
                    struct err *err)
{
    static const unsigned char seed[16] = {0}; /* inode numbers: nobody chooses them */
    struct stat st;
    if (fstat(d->fd, &st) < 0)
        return message_refuse(
            err, -errno, "disk_no_look",
            MESSAGE_ARGS(MESSAGE_STR("path", d->path), MESSAGE_STR("why", strerror(errno))));
    struct gathering g = {.l = ret, .limits = limits, .firsts = map_new(seed), .uid = geteuid()};
    packlist_fill(packlist_add(ret, PACKLIST_DIR, "", NULL), &st, g.uid);
    int r = packlist_walk(&g, d, "", 1, err);
    map_free(g.firsts);
    return r;
}

/* ---- comparing ---- */

bool packlist_is_same_file(const struct packlist_entry *e, const struct stat *st)
{
    return e->dev == st->st_dev && e->ino == st->st_ino && e->size == (uint64_t)st->st_size &&
           e->mtime_s == st->st_mtim.tv_sec && e->mtime_ns == st->st_mtim.tv_nsec &&
           e->ctime.tv_sec == st->st_ctim.tv_sec && e->ctime.tv_nsec == st->st_ctim.tv_nsec;
}

int packlist_read_file(const struct packlist_entry *e,
                       int fd,
                       uint64_t at,
                       void *chunk,
                       size_t size,
                       size_t *ret,
                       struct err *err)
{
    uint64_t left = e->size - at;
    size_t want = left < size ? (size_t)left : size, n = 0;
    int r = file_read_at(fd, at, chunk, want, &n);
    if (r < 0)
        return message_refuse(
            err, r, "disk_no_read",
            MESSAGE_ARGS(MESSAGE_STR("path", e->path), MESSAGE_STR("why", strerror(-r))));
    if (n < want)
        return message_refuse(err, ERR_CONFLICT, "file_written_meanwhile",
                              MESSAGE_ARGS(MESSAGE_STR("path", e->path)));
    *ret = n;
    return 0;
}

/* The change time of the tree itself is that of its last rename. */
static bool packlist_is_untouched(const struct packlist_entry *a, const struct packlist_entry *b)
{
    bool is_top = !*a->path;
    return a->dev == b->dev && a->ino == b->ino &&
           (is_top || (a->ctime.tv_sec == b->ctime.tv_sec && a->ctime.tv_nsec == b->ctime.tv_nsec));
}

static bool packlist_is_equal(const struct packlist_entry *a,
                              const struct packlist_entry *b,
                              unsigned flags)
{
    mode_t mask = flags & PACKLIST_PLAIN ? 0777 : 07777;
    bool same = a->kind == b->kind && !strcmp(a->path, b->path) && str_eq(a->target, b->target) &&
                a->size == b->size && ((a->mode ^ b->mode) & mask) == 0 && a->mtime_s == b->mtime_s;
    if (!(flags & PACKLIST_PLAIN))
        same = same && a->mtime_ns == b->mtime_ns;
    if (flags & PACKLIST_UNTOUCHED)
        return same && packlist_is_untouched(a, b);
    return same && !memcmp(a->hash, b->hash, sizeof(a->hash));
}

int packlist_check_same(const struct packlist *was,
                        const struct packlist *is,
                        unsigned flags,
                        struct err *err)
{
    for (size_t i = 0; i < was->n && i < is->n; i++)
        if (!packlist_is_equal(&was->v[i], &is->v[i], flags))
            return message_refuse(
                err, ERR_CONFLICT, "tree_entry_changed",
                MESSAGE_ARGS(MESSAGE_STR("path", *was->v[i].path ? was->v[i].path : ".")));
    if (was->n != is->n)
        return message_refuse(
            err, ERR_CONFLICT, "tree_count_changed",
            MESSAGE_ARGS(MESSAGE_NUM("now", is->n), MESSAGE_NUM("before", was->n)));
    return 0;
}

/* ---- the text ---- */

static void packlist_write_path(struct buf *out, const char *path)
{
    /* All that is visible, but '%'. */
    static const char others[] = "!\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~";
    buf_add_escaped(out, path, others, BUF_HEX_LOWER); /* a ceiling passed shows in out->failed */
}

static void packlist_write_entry(const struct packlist_entry *e, struct buf *out)
{
    char hex[HASH_HEX];
    switch (e->kind) {
    case PACKLIST_DIR:
        (void)buf_addf(out, "D %04o %" PRId64 ".%09ld ./", (unsigned)e->mode, e->mtime_s,
                       e->mtime_ns);
        break;
    case PACKLIST_FILE:
        str_hex(e->hash, HASH_BYTES, hex);
        (void)buf_addf(out, "F %04o %" PRId64 ".%09ld %" PRIu64 " %s ./", (unsigned)e->mode,
                       e->mtime_s, e->mtime_ns, e->size, hex);
        break;
    case PACKLIST_LINK:
        (void)buf_addf(out, "L %" PRId64 ".%09ld ./", e->mtime_s, e->mtime_ns);
        break;
    case PACKLIST_SAME:
        (void)buf_adds(out, "S ./");
        break;
    }
    packlist_write_path(out, e->path);
    if (e->target) {
        (void)buf_adds(out, e->kind == PACKLIST_SAME ? " ./" : " ");
        packlist_write_path(out, e->target);
    }
    (void)buf_addc(out, '\n');
}

void packlist_write(const struct packlist *l, struct buf *out)
{
    for (size_t i = 0; i < l->n; i++)
        packlist_write_entry(&l->v[i], out);
}

const char *packlist_hash(const struct packlist *l, char ret[static HASH_HEX])
{
    unsigned char hash[HASH_BYTES];
    struct hash_running h;
    struct buf line = BUF_INIT(LINE_MAX_BYTES);
    hash_begin(&h);
    for (size_t i = 0; i < l->n; i++) {
        packlist_write_entry(&l->v[i], &line);
        hash_add(&h, line.data, line.len);
        buf_reset(&line);
    }
    hash_end(&h, hash);
    buf_release(&line);
    str_hex(hash, HASH_BYTES, ret);
    return ret;
}
