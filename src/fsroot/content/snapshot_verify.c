/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot_verify.c - is the content still what its hash says? See snapshot.h.
 *
 * Python writes __pycache__ beside what it imports when the job runs as root. These directories
 * count for nothing, wherever they are, also where they were in what was added. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest/filehash.h"
#include "base/message.h"
#include "base/str.h"
#include "core/spec/snapshot.h"
#include "fsroot/content/snapshot.h"
#include "fsroot/content/unpack_way.h"
#include "fsroot/tree/beneath.h"
#include "fsroot/tree/dirtree.h"
#include "fsroot/tree/rootdir.h"

enum { SAMPLE = 2000, DEPTH_MAX = SNAPSHOT_DEPTH_MAX + 1 };

struct verify {
    struct unpack_way *way; /* below the tree */
    const struct manifest *m;
    struct err *err;
};

static int snapshot_verify_differs(const struct verify *v, const char *path, const char *message)
{
    char shown[SNAPSHOT_SHOWN];
    return message_refuse(v->err, ERR_REFUSED, message,
                          MESSAGE_ARGS(MESSAGE_STR("path", snapshot_show(path, shown))));
}

/* ---- one file ---- */

/* 1 or 0; a negative errno: that could not be found out, which is no change of it. */
static int link_is_same(const struct verify *v, const struct manifest_entry *e)
{
    char to[SNAPSHOT_PATH_MAX + 1];
    const char *name;
    int dir = unpack_way_enter(v->way, e->path, false, &name);
    ssize_t n = dir < 0 ? dir : readlinkat(dir, name, to, sizeof(to));
    int r = dir < 0 ? dir : n < 0 ? -errno : 0;
    if (r < 0)
        return file_is_absence(r) || r == -EINVAL || r == -ELOOP ? 0 : r;
    return (size_t)n == strlen(e->target) && !memcmp(to, e->target, (size_t)n);
}

static bool looks_same(const struct verify *v, const struct manifest_entry *e)
{
    struct stat st;
    const char *name;
    if (e->kind == MANIFEST_LINK)
        return link_is_same(v, e) > 0; /* all is looked at then, and tells why */
    int dir = unpack_way_enter(v->way, e->path, false, &name);
    return dir >= 0 && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
           (uint64_t)st.st_size == e->size && st.st_mtim.tv_sec == DIRTREE_MTIME &&
           !(st.st_mode & 0111) == (e->kind == MANIFEST_FILE);
}

static int check_content(const struct verify *v, const struct manifest_entry *e)
{
    unsigned char hash[HASH_BYTES];
    const char *name;
    if (e->kind == MANIFEST_LINK) {
        int same = link_is_same(v, e);
        return same > 0   ? 0
               : same < 0 ? message_refuse(v->err, same, "disk_no_link",
                                           MESSAGE_ARGS(MESSAGE_STR("path", e->path),
                                                        MESSAGE_STR("why", strerror(-same))))
                          : snapshot_verify_differs(v, e->path, "content_link_changed");
    }
    int dir = unpack_way_enter(v->way, e->path, false, &name);
    int r = dir < 0 ? message_refuse(v->err, dir, "disk_no_look",
                                     MESSAGE_ARGS(MESSAGE_STR("path", e->path),
                                                  MESSAGE_STR("why", strerror(-dir))))
                    : filehash_at(dir, name, e->size, hash, v->err);
    if (r == -ENOENT || r == -ENOTDIR)
        return snapshot_verify_differs(v, e->path, "content_gone");
    if (r == -EINVAL || r == -ELOOP)
        return snapshot_verify_differs(v, e->path, "content_no_file");
    if (r < 0 && r != -EMSGSIZE)
        return r;
    return r == 0 && !memcmp(hash, e->hash, sizeof(hash))
               ? 0
               : snapshot_verify_differs(v, e->path, "content_changed");
}

/* ---- what was added ---- */

/* A path of the manifest, or a directory above one. */
static bool snapshot_verify_is_known(const struct manifest *m, const char *path)
{
    size_t lo = manifest_place(m, path), n = strlen(path);
    /* "a", "a-b", "a/c": what begins with the path and a slash need not be the next. */
    for (; lo < m->n && !strncmp(m->v[lo].path, path, n); lo++)
        if (!m->v[lo].path[n] || m->v[lo].path[n] == '/')
            return true;
    return false;
}

static int check_dir(const struct verify *v, const char *path, bool deep, int depth);

static int snapshot_verify_check_name(const struct verify *v,
                                      const char *dir,
                                      const char *name,
                                      bool deep,
                                      int d)
{
    if (!strcmp(name, ".") || !strcmp(name, "..") || !strcmp(name, DIRTREE_BYTECODE))
        return 0;
    if (str_starts(
            name,
            ".nfs")) /* a name that an NFS client gives to a removed file that is still open */
        return 0;
    _cleanup_(freep) char *path = xasprintf("%s%s%s", dir, *dir ? "/" : "", name);
    if (!snapshot_verify_is_known(v->m, path))
        return snapshot_verify_differs(v, path, "content_added");
    return deep ? check_dir(v, path, true, d + 1) : 0;
}

static int check_dir(const struct verify *v, const char *path, bool deep, int depth)
{
    int fd = beneath_open(v->way->tree, *path ? path : ".", O_RDONLY | O_DIRECTORY, 0);
    if (fd == -ENOTDIR || fd == -ELOOP)
        return 0; /* a file or link: looked at as such */
    if (fd < 0)
        return message_refuse(
            v->err, fd, "disk_no_read",
            MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_STR("why", strerror(-fd))));
    if (depth > DEPTH_MAX) {
        (void)close(fd); /* nothing was written */
        return snapshot_verify_differs(v, path, "content_added");
    }
    DIR *dir = fdopendir(fd);
    int r = 0, error = errno;
    if (!dir) {
        (void)close(fd); /* it was only opened */
        return message_refuse(
            v->err, -error, "disk_no_read",
            MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_STR("why", strerror(error))));
    }
    errno = 0;
    for (struct dirent *e; r == 0 && (e = readdir(dir)); errno = 0)
        r = snapshot_verify_check_name(v, path, e->d_name, deep, depth);
    error = r == 0 ? errno : 0;
    (void)closedir(dir); /* it was only read */
    return error ? message_refuse(
                       v->err, -error, "disk_no_read",
                       MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_STR("why", strerror(error))))
                 : r;
}

/* ---- all ---- */

static bool sample_is_same(const struct verify *v)
{
    size_t n = v->m->n, take = n < SAMPLE ? n : SAMPLE, first = 0;
    random_bytes(&first, sizeof(first));
    for (size_t i = 0; i < take; i++) {
        const struct manifest_entry *e = &v->m->v[(first % n + i * n / take) % n];
        if (!dirtree_is_bytecode(e->path) && !looks_same(v, e))
            return false;
    }
    return check_dir(v, "", false, 0) == 0;
}

static int verify_all(const struct verify *v)
{
    int r = check_dir(v, "", true, 0);
    for (size_t i = 0; i < v->m->n && r == 0; i++)
        r = dirtree_is_bytecode(v->m->v[i].path) ? 0 : check_content(v, &v->m->v[i]);
    return r;
}

int snapshot_verify(const char *root, const char *hash, struct err *err)
{
    struct err quiet = {0};
    _cleanup_(manifest_release) struct manifest m = {0};
    int r = snapshot_read(root, hash, &m, err);
    if (r < 0)
        return r;
    _cleanup_(freep) char *path = snapshot_tree(root, hash);
    _cleanup_(rootdir_release) struct rootdir tree = ROOTDIR_NONE;
    r = rootdir_open(root, path, 0, &tree, err);
    if (r < 0)
        return r == -ENOENT ? message_refuse(err, ERR_REFUSED, "disk_gone",
                                             MESSAGE_ARGS(MESSAGE_STR("path", path)))
                            : r;
    _cleanup_(unpack_way_release) struct unpack_way way = UNPACK_WAY(tree.fd);
    struct verify v = {.way = &way, .m = &m, .err = &quiet};
    if (faccessat(tree.fd, "../" SNAPSHOT_SETTLED, F_OK, AT_SYMLINK_NOFOLLOW) == 0 &&
        sample_is_same(&v))
        return 0;
    v.err = err;
    return verify_all(&v);
}
