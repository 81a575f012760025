/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot.c - making, naming and removing of snapshots; see snapshot.h. A snapshot is made
 * beside its place under a random name and renamed when it is whole. */
#define _GNU_SOURCE
#include "fsroot/snapshot.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "core/spec/snapshot.h"
#include "fsroot/bundle.h"
#include "fsroot/dirtree.h"
#include "fsroot/fsroot.h"

#define STORE "argus/snapshots"
#define STAGE_PREFIX ".new-"

void snapshot_made_release(struct snapshot_made *m)
{
    freep(&m->verl);
}

char *snapshot_tree(const char *root, const char *hash)
{
    return xasprintf("%s/" STORE "/%s/tree", root, hash);
}

char *snapshot_path(const char *root, const char *user, const char *ref)
{
    size_t n = strcspn(ref, "@");
    char *path = user ? xasprintf("%s/users/%s/code/%s", root, user, ref)
                      : xasprintf("%s/common/code/%s", root, ref);
    path[strlen(path) - strlen(ref) + n] = '/';
    return path;
}

/* ---- making ---- */

struct stage {
    char *dir, *tree, *manifest;
};

static void stage_release(struct stage *st)
{
    if (st->dir)
        (void)dirtree_remove(st->dir, NULL); /* else the next start sweeps it */
    freep(&st->dir);
    freep(&st->tree);
    freep(&st->manifest);
}

/* ext4 puts what lies in such a directory into parts of the disk that have room, each snapshot into
 * another. In one part it goes, for every new file, through all inodes that were in use a minute
 * ago: 20,000 files then take ten times as long. Other file systems have no such hint. */
static void spread_apart(const char *store)
{
    int flags;
    _cleanup_(closep) int fd = open(store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0 || (flags & FS_TOPDIR_FL))
        return;
    flags |= FS_TOPDIR_FL;
    (void)ioctl(fd, FS_IOC_SETFLAGS, &flags); /* only a hint */
}

static int open_stage(const char *root, struct stage *st, struct err *err)
{
    unsigned char bytes[8];
    char hex[2 * sizeof(bytes) + 1];
    _cleanup_(freep) char *store = xasprintf("%s/" STORE, root);
    int r = fsroot_check_mounted(root, err);
    if (r == 0)
        r = file_mkdirs(store, 0755, err);
    if (r < 0)
        return r;
    spread_apart(store);
    random_bytes(bytes, sizeof(bytes));
    st->dir = xasprintf("%s/" STAGE_PREFIX "%s", store, str_hex(bytes, sizeof(bytes), hex));
    st->tree = xasprintf("%s/tree", st->dir);
    st->manifest = xasprintf("%s/manifest", st->dir);
    if (mkdir(st->dir, 0700) < 0 || mkdir(st->tree, 0755) < 0)
        return err_set(err, -errno, "'%s' cannot be made: %s", st->dir, strerror(errno));
    return 0;
}

static int write_manifest(const struct stage *st, const struct manifest *m, struct err *err)
{
    struct buf text = BUF_INIT(MANIFEST_TEXT_MAX);
    manifest_write(m, &text);
    int r = text.failed
                ? err_set(err, ERR_REFUSED, "the names of the tree have more than 256 MiB together")
                : file_write(st->manifest, buf_str(&text), text.len, 0444, 0, err);
    buf_release(&text);
    return r;
}

/* Directories are locked from the inside out; what is missing then cannot be written by accident.
 */
static int lock_dirs(const struct stage *st, const struct manifest *m, struct err *err)
{
    _cleanup_(closep) int fd = open(st->tree, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return err_set(err, -errno, "'%s' cannot be opened: %s", st->tree, strerror(errno));
    _cleanup_(freep) char *last = xstrdup("");
    for (size_t i = 0; i < m->n; i++) {
        _cleanup_(freep) char *dir = xstrdup(m->v[i].path);
        for (char *slash; (slash = strrchr(dir, '/')) != NULL;) {
            *slash = 0;
            if (str_starts(last, dir) && (last[strlen(dir)] == '/' || !last[strlen(dir)]))
                break; /* done with the file before */
            if (fchmodat(fd, dir, 0555, 0) < 0)
                return err_set(err, -errno, "'%s' cannot be locked: %s", dir, strerror(errno));
        }
        set_str(&last, m->v[i].path);
        if (strrchr(last, '/'))
            *strrchr(last, '/') = 0;
        else
            *last = 0;
    }
    return fchmod(fd, 0555) < 0
               ? err_set(err, -errno, "'%s' cannot be locked: %s", st->tree, strerror(errno))
               : 0;
}

/* A disk that does not answer, or too many open files, says nothing of the content. */
static bool is_damage(int r)
{
    return r == ERR_REFUSED || r == -ENOENT || r == -ENOTDIR || r == -EISDIR || r == -ELOOP;
}

/* Is this content there, and whole? What is no damage is told; that it lacks or is damaged is not:
 * it is about to be made. */
static int find_whole(const char *root, struct snapshot_made *made, struct err *err)
{
    struct err why = {0};
    int r = snapshot_verify(root, made->hash, &why);
    made->existed = r == 0;
    return r < 0 && !is_damage(r) ? err_set(err, r, "%s", why.text) : r;
}

/* Swaps in one step where the file system can, so that a reader sees either the old or the new
 * tree. The damaged tree is removed with the stage. */
static int swap(const struct stage *st, const char *to, struct err *err)
{
    if (renameat2(AT_FDCWD, st->dir, AT_FDCWD, to, RENAME_EXCHANGE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS && errno != ENOENT) /* NFS knows no flags */
        return err_set(err, -errno, "'%s' cannot be replaced: %s", to, strerror(errno));
    _cleanup_(freep) char *gone = xasprintf("%s-gone", st->dir); /* a stage's name: it is swept */
    if (rename(to, gone) < 0 && errno != ENOENT)
        return err_set(err, -errno, "'%s' cannot be replaced: %s", to, strerror(errno));
    if (rename(st->dir, to) < 0) {
        int error = errno;
        (void)rename(gone, to); /* as it was */
        return err_set(err, -error, "'%s' cannot be made: %s", to, strerror(error));
    }
    (void)dirtree_remove(gone, NULL); /* else the next start sweeps it */
    return 0;
}

/* Something has the name: its twin, which was faster, or what is damaged. Of two that would heal it
 * the second finds it whole. */
static int snapshot_replace(const struct snapshot_source *s,
                            const struct stage *st,
                            const char *to,
                            struct snapshot_made *made,
                            struct err *err)
{
    if (s->healing)
        (void)pthread_mutex_lock(s->healing); /* never fails */
    int r = find_whole(s->root, made, err);
    if (is_damage(r))
        r = swap(st, to, err);
    if (s->healing)
        (void)pthread_mutex_unlock(s->healing); /* never fails */
    return r;
}

/* A whole snapshot under that name stays; any other content there is removed. */
static int publish(const struct snapshot_source *s,
                   struct stage *st,
                   struct snapshot_made *made,
                   struct err *err)
{
    _cleanup_(freep) char *to = xasprintf("%s/" STORE "/%s", s->root, made->hash);
    int r = find_whole(s->root, made, err);
    if (r == 0 || !is_damage(r))
        return r;
    if (chmod(st->dir, 0755) < 0)
        return err_set(err, -errno, "'%s' cannot be opened for all: %s", st->dir, strerror(errno));
    if (rename(st->dir, to) == 0) {
        freep(&st->dir);
        return 0;
    }
    if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR)
        return err_set(err, -errno, "'%s' cannot be made: %s", to, strerror(errno));
    return snapshot_replace(s, st, to, made, err);
}

static int snapshot_fill(const struct snapshot_source *s,
                         const struct stage *st,
                         struct manifest *m,
                         struct err *err)
{
    const struct unpack_limits *limits = s->limits ? s->limits : &unpack_default_limits;
    _cleanup_(closep) int from_git = -1;
    bool is_bundle = bundle_is(s->archive);
    int r = is_bundle ? bundle_to_tar(s->archive, st->dir, s->version, limits, &from_git, err) : 0;
    if (r == 0)
        r = unpack_archive(is_bundle ? from_git : s->archive, st->tree, !s->want && !is_bundle,
                           limits, m, err);
    return r;
}

static int snapshot_finish(const struct snapshot_source *s,
                           struct stage *st,
                           const struct manifest *m,
                           struct snapshot_made *made,
                           struct err *err)
{
    (void)manifest_hash(m, made->hash);
    made->bytes = m->bytes;
    made->files = m->n;
    if (s->want && strcmp(s->want, made->hash) != 0)
        return err_set(err, ERR_REFUSED,
                       "what came has the hash %.12s and not %.12s: it was changed on its way, or "
                       "while it was packed; send it again",
                       made->hash, s->want);
    int r = write_manifest(st, m, err);
    if (r == 0)
        r = lock_dirs(st, m, err);
    if (r < 0)
        return r;
    made->verl = fsroot_verl_version(st->tree);
    return publish(s, st, made, err);
}

int snapshot_make(const struct snapshot_source *s, struct snapshot_made *ret, struct err *err)
{
    _cleanup_(stage_release) struct stage st = {0};
    _cleanup_(manifest_release) struct manifest m = {0};
    _cleanup_(snapshot_made_release) struct snapshot_made made = {0};
    int r = open_stage(s->root, &st, err);
    if (r == 0)
        r = snapshot_fill(s, &st, &m, err);
    if (r == 0)
        r = snapshot_finish(s, &st, &m, &made, err);
    if (r < 0)
        return r;
    *ret = made;
    made.verl = NULL;
    return 0;
}

/* By its descriptor, so that what takes this one's place meanwhile is not called settled. */
static int sync_and_mark(int dir)
{
    if (syncfs(dir) < 0)
        return -errno;
    _cleanup_(closep) int mark = /* another call may have made the mark, and it is read-only */
        openat(dir, SNAPSHOT_SETTLED, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0444);
    if (mark < 0 || fsync(mark) < 0)
        return -errno;
    return fsync(dir) < 0 && errno != EINVAL ? -errno
                                             : 0; /* some file systems cannot, and need not */
}

int snapshot_settle(const char *root, const char *hash, bool unsure, struct err *err)
{
    _cleanup_(freep) char *path = xasprintf("%s/" STORE "/%s", root, hash);
    _cleanup_(closep) int dir = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir >= 0 && faccessat(dir, SNAPSHOT_SETTLED, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    int r = dir < 0 ? -errno : 0;
    if (r == 0 && unsure) {
        r = snapshot_verify(root, hash, err);
        if (r < 0)
            return r;
    }
    if (r == 0)
        r = sync_and_mark(dir);
    return r < 0 ? err_set(err, r, "the snapshot cannot be brought to disk: %s", strerror(-r)) : 0;
}

/* ---- names ---- */

static bool is_hash(const char *s)
{
    return strlen(s) == HASH_HEX - 1 && strspn(s, "0123456789abcdef") == HASH_HEX - 1;
}

/* "../../../argus/snapshots/<hash>/tree" at whatever depth. */
static bool snapshot_is_ours(const char *path)
{
    char to[256];
    ssize_t n = readlink(path, to, sizeof(to) - 1);
    if (n < 0)
        return false;
    to[n] = 0;
    return str_starts(to, "../") && strstr(to, "/" STORE "/") && str_ends(to, "/tree");
}

static bool links_to(const char *path, const char *to)
{
    char now[256];
    ssize_t n = readlink(path, now, sizeof(now));
    return n >= 0 && (size_t)n == strlen(to) && !memcmp(now, to, (size_t)n);
}

int snapshot_link(const char *root,
                  const char *user,
                  const char *ref,
                  const char *hash,
                  struct err *err)
{
    struct stat st;
    _cleanup_(freep) char *path = snapshot_path(root, user, ref);
    _cleanup_(freep) char *dir = xstrndup(path, (size_t)(strrchr(path, '/') - path));
    _cleanup_(freep) char *to =
        xasprintf("%s" STORE "/%s/tree", user ? "../../../../" : "../../../", hash);
    int r = fsroot_check_mounted(root, err);
    if (r == 0 && lstat(path, &st) == 0 && !snapshot_is_ours(path))
        r = err_set(err, -EEXIST, "'%s' is there already and is no snapshot: choose another name",
                    path);
    if (r < 0 || links_to(path, to))
        return r;
    r = file_mkdirs(dir, 0755, err);
    return r < 0 ? r : file_link(to, path, err);
}

int snapshot_unlink(const char *root, const char *user, const char *ref, struct err *err)
{
    _cleanup_(freep) char *path = snapshot_path(root, user, ref);
    if (snapshot_is_ours(path) && unlink(path) < 0 && errno != ENOENT)
        return err_set(err, -errno, "'%s' cannot be removed: %s", path, strerror(errno));
    *strrchr(path, '/') = 0;
    (void)rmdir(path); /* other versions may be there */
    return 0;
}

int snapshot_remove(const char *root, const char *hash, struct err *err)
{
    if (!is_hash(hash))
        return err_set(err, -EINVAL, "'%.80s' is no hash", hash);
    _cleanup_(freep) char *path = xasprintf("%s/" STORE "/%s", root, hash);
    _cleanup_(freep) char *gone = xasprintf("%s/" STORE "/" STAGE_PREFIX "gone-%s", root, hash);
    int r = dirtree_remove(gone, err);
    if (r < 0 || rename(path, gone) < 0) /* whole or not there, never a part */
        return r < 0 || errno == ENOENT
                   ? r
                   : err_set(err, -errno, "'%s' cannot be removed: %s", path, strerror(errno));
    return dirtree_remove(gone, err);
}

void snapshot_sweep(const char *root)
{
    _cleanup_(freep) char *store = xasprintf("%s/" STORE, root);
    DIR *dir = opendir(store);
    for (struct dirent *e; dir && (e = readdir(dir));)
        if (str_starts(e->d_name, STAGE_PREFIX))
            (void)dirtree_remove_at(dirfd(dir), e->d_name, NULL); /* the next start tries again */
    if (dir)
        (void)closedir(dir); /* it was only read */
}

int snapshot_read(const char *root, const char *hash, struct manifest *ret, struct err *err)
{
    char is[HASH_HEX];
    if (!is_hash(hash))
        return err_set(err, -EINVAL, "'%.80s' is no hash", hash);
    _cleanup_(freep) char *path = xasprintf("%s/" STORE "/%s/manifest", root, hash);
    _cleanup_(buf_release) struct buf text = BUF_INIT(MANIFEST_TEXT_MAX);
    int r = file_read(path, &text, err);
    if (r == 0 && strcmp(hash_sha256_hex(buf_str(&text), text.len, is), hash) != 0)
        r = err_set(err, ERR_REFUSED, "the manifest of the snapshot was changed ('%s')", path);
    return r < 0 ? r : manifest_read(buf_str(&text), text.len, ret, err);
}
