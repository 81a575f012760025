/* SPDX-License-Identifier: Apache-2.0 */
/* pathsum.c - see pathsum.h. The hashes of the single files are mixed by exclusive or: each has its
 * path in it, so that no two are the same, and the order in which a directory gives its names does
 * not count. A directory may change while it is walked: then the next look finds another hash. */
#define _GNU_SOURCE
#include "fsroot/tree/pathsum.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"
#include "fsroot/tree/dirtree.h"

enum { SUM_TEXT_MAX = WALK_PATH_MAX + PATH_MAX + 64 };

struct summing {
    const struct walk_place *place;
    uint64_t names;
    bool is_cut;
    unsigned char mix[HASH_BYTES];
};

static bool pathsum_leaves_out(const char *name)
{
    return str_eq(name, ".") || str_eq(name, "..") || str_eq(name, DIRTREE_BYTECODE);
}

/* target: of a link. */
static void pathsum_mix(struct summing *x,
                        const char *below,
                        const struct stat *st,
                        const char *target)
{
    struct buf text = BUF_INIT(SUM_TEXT_MAX);
    unsigned char hash[HASH_BYTES];
    int r = buf_addf(&text, "%s\n%u %" PRId64 " %" PRId64 ".%09ld\n%s", below,
                     (unsigned)(st->st_mode & S_IFMT), (int64_t)st->st_size,
                     (int64_t)st->st_mtim.tv_sec, st->st_mtim.tv_nsec, target);
    x->is_cut = x->is_cut || r < 0;
    hash_sha256(buf_str(&text), text.len, hash);
    for (size_t i = 0; i < HASH_BYTES; i++)
        x->mix[i] = (unsigned char)(x->mix[i] ^ hash[i]);
    buf_release(&text);
}

static int pathsum_directory(struct summing *x, int dir, const char *below, int depth);

/* One name of a directory. What went meanwhile is not there. */
static int pathsum_name(struct summing *x, int dir, const char *name, const char *below, int depth)
{
    struct stat st;
    char target[PATH_MAX] = "";
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : walk_trouble(x->place, errno, NULL);
    if (S_ISDIR(st.st_mode)) {
        int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0)
            return errno == ENOENT ? 0 : walk_trouble(x->place, errno, NULL);
        return pathsum_directory(x, fd, below, depth + 1);
    }
    if (S_ISLNK(st.st_mode)) {
        ssize_t n = readlinkat(dir, name, target, sizeof(target) - 1);
        target[n > 0 ? n : 0] = 0;
    }
    pathsum_mix(x, below, &st, target);
    return 0;
}

/* dir is taken. below: its path below the place, "" for the place itself. */
static int pathsum_directory(struct summing *x, int dir, const char *below, int depth)
{
    DIR *d = fdopendir(dir);
    int r = 0;
    if (!d) {
        r = walk_trouble(x->place, errno, NULL);
        (void)close(dir); /* nothing was written */
        return r;
    }
    errno = 0;
    for (struct dirent *e; r == 0 && !x->is_cut && (e = readdir(d)); errno = 0) {
        struct buf path = BUF_INIT(WALK_PATH_MAX);
        if (pathsum_leaves_out(e->d_name))
            continue;
        x->is_cut = ++x->names > PATHSUM_FILES_MAX || depth == PATHSUM_DEPTH_MAX ||
                    buf_addf(&path, "%s%s%s", below, *below ? "/" : "", e->d_name) < 0;
        if (!x->is_cut)
            r = pathsum_name(x, dir, e->d_name, buf_str(&path), depth);
        buf_release(&path);
    }
    if (r == 0 && errno)
        r = walk_trouble(x->place, errno, NULL);
    (void)closedir(d); /* it was only read */
    return r;
}

/* What is at fd, which is taken. */
static int pathsum_of(struct summing *x, int fd)
{
    struct stat st;
    if (fstat(fd, &st) < 0) {
        int r = walk_trouble(x->place, errno, NULL);
        (void)close(fd); /* as above */
        return r;
    }
    if (!S_ISDIR(st.st_mode)) {
        x->names = 1;
        pathsum_mix(x, "", &st, "");
        (void)close(fd); /* as above */
        return 0;
    }
    int r = pathsum_directory(x, fd, "", 0);
    if (r == 0 && x->is_cut) {
        memset(x->mix, 0, sizeof(x->mix));
        pathsum_mix(x, "", &st, "");
    }
    return r;
}

int pathsum_take(const char *root, const struct walk_place *p, struct pathsum *ret)
{
    struct summing x = {.place = p};
    int fd = -1;
    int r = walk_open(root, p, O_RDONLY, 0, &fd, NULL);
    if (r == ERR_NOT_FOUND) {
        *ret = (struct pathsum){0};
        return 0;
    }
    if (r == 0)
        r = pathsum_of(&x, fd);
    if (r < 0)
        return r;
    *ret = (struct pathsum){.is_there = true, .is_cut = x.is_cut, .files = x.names};
    if (x.is_cut)
        ret->files = PATHSUM_FILES_MAX;
    (void)str_hex(x.mix, sizeof(x.mix), ret->hash);
    return 0;
}
