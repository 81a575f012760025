/* SPDX-License-Identifier: Apache-2.0 */
/* pack.c - see pack.h. A small file whose hash is not remembered is read whole, hashed, and put
 * into the tar at once. The others, links among them, follow when the tar is asked for: the server
 * takes entries in any order. */
#define _GNU_SOURCE
#include "argus/transfer/pack.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "argus/transfer/pack_cache.h"
#include "argus/transfer/pack_list.h"
#include "argus/transfer/pack_tar.h"
#include "argus/transfer/upload.h"
#include "base/digest/filehash.h"
#include "base/digest/hash.h"
#include "base/map.h"
#include "base/message.h"
#include "base/str.h"
#include "core/spec/snapshot.h"

/* More than this is not written before anybody asked for it: the server may have it already. */
static const uint64_t EARLY_BYTES = 256 << 20;

struct pack {
    int dir;
    uint64_t most; /* bytes of all files, 0 = no ceiling */
    struct manifest m;
    bool *packed; /* by its index in m: it is in the tar */
    struct pack_cache *cache;
    int spool; /* of the tar; negative: there is none */
    struct pack_tar *tar;
    uint64_t early;
    char *bytes; /* PACK_TAR_PIECE: one small file */
};

static int pack_refuse(const char *path, const char *message, const char *why, struct err *err)
{
    char shown[SNAPSHOT_SHOWN];
    return message_refuse(
        err, ERR_REFUSED, message,
        MESSAGE_ARGS(MESSAGE_STR("path", snapshot_show(path, shown)), MESSAGE_STR("why", why)));
}

/* ---- the tar ---- */

static int begin_tar(struct pack *p, struct err *err)
{
    p->spool = upload_spool(err);
    if (p->spool < 0)
        return p->spool;
    p->tar = pack_tar_new(p->dir, p->spool);
    return 0;
}

static void drop_tar(struct pack *p)
{
    pack_tar_free(p->tar);
    p->tar = NULL;
    closep(&p->spool);
    p->spool = -1;
    for (size_t i = 0; i < p->m.n; i++)
        p->packed[i] = false;
}

/* A tar that cannot be written now is of account only when it is asked for. */
static void pack_early(struct pack *p, size_t index)
{
    const struct manifest_entry *e = &p->m.v[index];
    if (p->early >= EARLY_BYTES)
        return;
    p->early += e->size;
    if ((p->spool < 0 && begin_tar(p, NULL) < 0) ||
        pack_tar_add_bytes(p->tar, e, p->bytes, NULL) < 0) {
        drop_tar(p);
        p->early = EARLY_BYTES;
        return;
    }
    p->packed[index] = true;
}

/* ---- looking ---- */

static int look_link(struct pack *p, const char *path, struct err *err)
{
    char target[SNAPSHOT_PATH_MAX + 2];
    ssize_t n = readlinkat(p->dir, path, target, sizeof(target) - 1);
    if (n < 0)
        return pack_refuse(path, "cli_pack_file", strerror(errno), err);
    target[n] = 0;
    struct manifest_entry e = {.kind = MANIFEST_LINK, .path = xstrdup(path), .target = target};
    int r = snapshot_check_link(path, target, err);
    if (r == 0)
        r = manifest_add(&p->m, &e, err);
    free(e.path);
    return r;
}

/* The whole of a small file into p->bytes: 1; 0: it is not small, or no plain file. */
static int pack_read_small(struct pack *p, const char *path, size_t *ret_size, struct err *err)
{
    struct stat st;
    size_t size = 0;
    _cleanup_(closep) int fd =
        openat(p->dir, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) < 0)
        return message_refuse(
            err, -errno, "disk_no_read",
            MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_STR("why", strerror(errno))));
    if (!S_ISREG(st.st_mode) || st.st_size > PACK_TAR_PIECE)
        return 0;
    for (ssize_t n; size < PACK_TAR_PIECE; size += (size_t)n) {
        n = read(fd, p->bytes + size, PACK_TAR_PIECE - size);
        if (n == 0)
            break;
        if (n < 0 && errno != EINTR)
            return message_refuse(
                err, -errno, "disk_no_read",
                MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_STR("why", strerror(errno))));
        if (n < 0)
            n = 0;
    }
    *ret_size = size;
    return size < PACK_TAR_PIECE;
}

/* What it is now. *ret_early: its content is in p->bytes. */
static int hash_file(struct pack *p, struct manifest_entry *e, bool *ret_early, struct err *err)
{
    struct hash_running h;
    size_t size = 0;
    struct stat st;
    int r = pack_read_small(p, e->path, &size, err);
    if (r < 0)
        return r;
    if (r == 0) {
        if (fstatat(p->dir, e->path, &st, AT_SYMLINK_NOFOLLOW) < 0)
            return message_refuse(
                err, -errno, "disk_no_read",
                MESSAGE_ARGS(MESSAGE_STR("path", e->path), MESSAGE_STR("why", strerror(errno))));
        e->size = (uint64_t)st.st_size;
        return filehash_at(p->dir, e->path, e->size, e->hash, err);
    }
    hash_begin(&h);
    hash_add(&h, p->bytes, size);
    hash_end(&h, e->hash);
    e->size = size;
    *ret_early = true;
    return 0;
}

static int look_file(struct pack *p, const char *path, const struct stat *st, struct err *err)
{
    struct manifest_entry e = {.kind = st->st_mode & 0111 ? MANIFEST_PROGRAM : MANIFEST_FILE,
                               .path = xstrdup(path),
                               .size = (uint64_t)st->st_size};
    bool early = false;
    int r = 0;
    if (!pack_cache_find(p->cache, path, st, e.hash))
        r = hash_file(p, &e, &early, err);
    if (r == 0) {
        pack_cache_put(p->cache, path, st, e.hash);
        r = manifest_add(&p->m, &e, err);
    }
    if (r == 0 && early)
        pack_early(p, p->m.n - 1);
    free(e.path);
    return r;
}

/* What no snapshot takes, whatever is in it. */
static int pack_check_at(const struct pack *p,
                         const char *path,
                         struct stat *ret_st,
                         struct err *err)
{
    int r = snapshot_check_path(path, err);
    if (r < 0)
        return r;
    if (fstatat(p->dir, path, ret_st, AT_SYMLINK_NOFOLLOW) < 0)
        return pack_refuse(path, "cli_pack_file", strerror(errno), err);
    if (S_ISLNK(ret_st->st_mode)) {
        char target[SNAPSHOT_PATH_MAX + 2];
        ssize_t n = readlinkat(p->dir, path, target, sizeof(target) - 1);
        target[n < 0 ? 0 : n] = 0;
        return n < 0 ? pack_refuse(path, "cli_pack_file", strerror(errno), err)
                     : snapshot_check_link(path, target, err);
    }
    return S_ISREG(ret_st->st_mode) ? 0 : pack_refuse(path, "cli_pack_odd", "", err);
}

static int pack_look_at(struct pack *p, const char *path, struct err *err)
{
    struct stat st;
    int r = pack_check_at(p, path, &st, err);
    if (r < 0)
        return r;
    if (S_ISLNK(st.st_mode))
        return look_link(p, path, err);
    if (p->most && p->m.bytes + (uint64_t)st.st_size > p->most)
        return message_refuse(err, ERR_REFUSED, "cli_pack_large",
                              MESSAGE_ARGS(MESSAGE_NUM("most", p->most >> 20)));
    return look_file(p, path, &st, err);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Names that differ in case or composition alone, of files and of the directories above them. */
struct pack_twins {
    struct map *by_fold; /* what a path is compared by -> the path as it was first, heap */
    struct buf key;
};

static void pack_twins_begin(struct pack_twins *tw)
{
    unsigned char seed[16];
    random_bytes(seed, sizeof(seed));
    tw->by_fold = map_new(seed);
    buf_init(&tw->key, (size_t)4 * SNAPSHOT_PATH_MAX);
}

static void pack_twins_end(struct pack_twins *tw)
{
    char *path;
    for (size_t pos = 0; (path = map_next(tw->by_fold, &pos, NULL));)
        free(path);
    map_free(tw->by_fold);
    buf_release(&tw->key);
}

/* The pair is told once: from then on the other one counts. */
static int pack_twins_add(struct pack_twins *tw, const char *path, struct err *err)
{
    char a[SNAPSHOT_SHOWN], b[SNAPSHOT_SHOWN];
    int r = 0;
    for (size_t n = 0; path[n]; n += path[n] == '/') {
        n += strcspn(path + n, "/");
        _cleanup_(freep) char *part = xstrndup(path, n);
        buf_reset(&tw->key);
        snapshot_fold(&tw->key, part);
        _cleanup_(freep) char *old = map_remove(tw->by_fold, buf_str(&tw->key));
        if (old && strcmp(old, part) != 0 && r == 0)
            r = message_refuse(err, ERR_REFUSED, "archive_case",
                               MESSAGE_ARGS(MESSAGE_STR("name", snapshot_show(old, a)),
                                            MESSAGE_STR("other", snapshot_show(part, b))));
        (void)map_set(tw->by_fold, buf_str(&tw->key), part); /* there is none */
        part = NULL;
    }
    return r;
}

enum { TOLD_MAX = 50 }; /* a tree full of them is not listed file by file */

/* All that cannot be sent, before anything is read: nobody mends a tree one name at a time. */
static int pack_check_all(const struct pack *p,
                          const char *dir,
                          const struct strv *paths,
                          const struct pack_tell *tell,
                          struct err *err)
{
    struct stat st;
    struct err first = {0}, other = {0};
    struct pack_twins twins;
    int bad = 0;
    pack_twins_begin(&twins);
    for (size_t i = 0; i < paths->n; i++) {
        struct err *to = bad ? &other : &first;
        if (pack_check_at(p, paths->v[i], &st, to) == 0 &&
            pack_twins_add(&twins, paths->v[i], to) == 0)
            continue;
        if (++bad == 2)
            tell->say(&first, tell->arg);
        if (bad > 1 && bad <= TOLD_MAX)
            tell->say(&other, tell->arg);
    }
    pack_twins_end(&twins);
    if (bad == 1)
        *err = first;
    return bad == 0 ? 0
           : bad == 1
               ? first.code
               : message_refuse(err, ERR_REFUSED, "cli_pack_several",
                                MESSAGE_ARGS(MESSAGE_STR("path", dir), MESSAGE_NUM("count", bad)));
}

/* In the order of the manifest, so that an index in it stays. */
static int pack_look(struct pack *p, const char *dir, const struct pack_tell *tell, struct err *err)
{
    _cleanup_(strv_release) struct strv paths = {0};
    int r = pack_list(dir, p->dir, tell, &paths, err);
    if (r < 0)
        return r;
    xsort(paths.v, paths.n, sizeof(char *), by_path);
    r = pack_check_all(p, dir, &paths, tell, err);
    if (r < 0)
        return r;
    p->packed = xcalloc(paths.n + 1, sizeof(bool));
    for (size_t i = 0; i < paths.n && r == 0; i++)
        if (!i || strcmp(paths.v[i - 1], paths.v[i]) != 0) /* git tells of a conflict thrice */
            r = pack_look_at(p, paths.v[i], err);
    if (r == 0 && !p->m.n)
        r = message_refuse(err, ERR_REFUSED, "cli_pack_empty",
                           MESSAGE_ARGS(MESSAGE_STR("path", dir)));
    return r;
}

/* ---- all ---- */

int pack_open(const char *dir,
              uint64_t most_bytes,
              const struct pack_tell *tell,
              struct pack **ret,
              struct err *err)
{
    struct pack *p = xcalloc(1, sizeof(*p));
    p->spool = -1;
    p->most = most_bytes;
    p->bytes = xmalloc(PACK_TAR_PIECE);
    p->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int r = 0;
    if (p->dir < 0)
        r = message_refuse(
            err, ERR_USAGE, "disk_no_read",
            MESSAGE_ARGS(MESSAGE_STR("path", dir), MESSAGE_STR("why", strerror(errno))));
    if (r == 0) {
        hash_init();
        p->cache = pack_cache_open(dir);
        r = pack_look(p, dir, tell, err);
    }
    if (r < 0) {
        pack_free(p);
        return r;
    }
    pack_cache_save(p->cache);
    *ret = p;
    return 0;
}

void pack_free(struct pack *p)
{
    if (!p)
        return;
    pack_tar_free(p->tar);
    closep(&p->spool);
    closep(&p->dir);
    pack_cache_free(p->cache);
    manifest_release(&p->m);
    free(p->packed);
    free(p->bytes);
    free(p);
}

const struct manifest *pack_manifest(const struct pack *p)
{
    return &p->m;
}

int pack_write(struct pack *p, int *ret_fd, struct err *err)
{
    int r = p->spool < 0 ? begin_tar(p, err) : 0;
    for (size_t i = 0; i < p->m.n && r == 0; i++)
        if (!p->packed[i])
            r = pack_tar_add(p->tar, &p->m.v[i], err);
    if (r == 0)
        r = pack_tar_end(p->tar, err);
    if (r == 0 && lseek(p->spool, 0, SEEK_SET) < 0)
        r = message_refuse(err, -errno, "cli_no_reread",
                           MESSAGE_ARGS(MESSAGE_STR("why", strerror(errno))));
    if (r < 0)
        return r;
    *ret_fd = p->spool;
    p->spool = -1;
    return 0;
}
