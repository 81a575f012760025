/* SPDX-License-Identifier: Apache-2.0 */
/* snapshot.c - making, naming and removing of snapshots; see snapshot.h. A snapshot is made
 * beside its place under a random name and renamed when it is whole. */
#define _GNU_SOURCE
#include "fsroot/content/snapshot.h"

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
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "core/job/needs.h"
#include "core/spec/snapshot.h"
#include "fsroot/content/bundle.h"
#include "fsroot/look/verlversion.h"
#include "fsroot/tree/beneath.h"
#include "fsroot/tree/dirtree.h"
#include "fsroot/tree/root.h"
#include "fsroot/tree/rootdir.h"

#define STORE "argus/snapshots"
#define STAGE_PREFIX ".new-"

void snapshot_made_release(struct snapshot_made *m)
{
    freep(&m->verl);
    strv_release(&m->needs);
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

/* Held open, each below the one before: what jobs do to the names meanwhile leads nowhere else. */
struct stage {
    struct rootdir store, dir, tree;
    char name[sizeof(STAGE_PREFIX) + 16]; /* of dir in store; "": it has gone to its place */
};

static void stage_release(struct stage *st)
{
    if (*st->name)
        (void)dirtree_remove_at(st->store.fd, st->name, NULL); /* else the next start sweeps it */
    rootdir_release(&st->tree);
    rootdir_release(&st->dir);
    rootdir_release(&st->store);
}

/* ext4 puts what lies in such a directory into parts of the disk that have room, each snapshot into
 * another. In one part it goes, for every new file, through all inodes that were in use a minute
 * ago: 20,000 files then take ten times as long. Other file systems have no such hint. */
static void spread_apart(int fd)
{
    int flags;
    if (ioctl(fd, FS_IOC_GETFLAGS, &flags) < 0 || (flags & FS_TOPDIR_FL))
        return;
    flags |= FS_TOPDIR_FL;
    (void)ioctl(fd, FS_IOC_SETFLAGS, &flags); /* only a hint */
}

static int open_stage(const char *root, struct stage *st, struct err *err)
{
    char hex[2 * 8 + 1];
    char name[sizeof(st->name)];
    int r = fsroot_check_mounted(root, err);
    if (r == 0)
        r = rootdir_open(root, STORE, 0755, &st->store, err);
    if (r < 0)
        return r;
    spread_apart(st->store.fd);
    text_printf(name, STAGE_PREFIX "%s", random_hex(hex));
    r = rootdir_make_new(&st->store, name, 0700, &st->dir, err);
    if (r < 0)
        return r;
    text_copy(st->name, name);
    return rootdir_make_new(&st->dir, "tree", 0755, &st->tree, err);
}

static int write_manifest(const struct stage *st, const struct manifest *m, struct err *err)
{
    struct buf text = BUF_INIT(MANIFEST_TEXT_MAX);
    manifest_write(m, &text);
    int r = text.failed
                ? message_refuse(err, ERR_REFUSED, "tree_names_long", MESSAGE_NO_ARGS)
                : rootdir_write(&st->dir, "manifest", buf_str(&text), text.len, 0444, 0, err);
    buf_release(&text);
    return r;
}

static int lock_dir(int tree, const char *path)
{
    _cleanup_(closep) int fd = beneath_open(tree, path, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return fd;
    return fchmod(fd, 0555) < 0 ? -errno : 0;
}

/* Directories are locked from the inside out; what is missing then cannot be written by accident.
 */
static int lock_dirs(const struct stage *st, const struct manifest *m, struct err *err)
{
    _cleanup_(freep) char *last = xstrdup("");
    for (size_t i = 0; i < m->n; i++) {
        _cleanup_(freep) char *dir = xstrdup(m->v[i].path);
        for (char *slash; (slash = strrchr(dir, '/')) != NULL;) {
            *slash = 0;
            if (str_starts(last, dir) && (last[strlen(dir)] == '/' || !last[strlen(dir)]))
                break; /* done with the file before */
            int r = lock_dir(st->tree.fd, dir);
            if (r < 0)
                return message_refuse(
                    err, r, "disk_no_lock",
                    MESSAGE_ARGS(MESSAGE_STR("path", dir), MESSAGE_STR("why", strerror(-r))));
        }
        set_str(&last, m->v[i].path);
        if (strrchr(last, '/'))
            *strrchr(last, '/') = 0;
        else
            *last = 0;
    }
    return fchmod(st->tree.fd, 0555) < 0
               ? message_refuse(err, -errno, "disk_no_lock",
                                MESSAGE_ARGS(MESSAGE_STR("path", st->tree.path),
                                             MESSAGE_STR("why", strerror(errno))))
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
    return r < 0 && !is_damage(r) ? err_copy(err, r, &why) : r;
}

/* Swaps in one step where the file system can, so that a reader sees either the old or the new
 * tree. The damaged tree is removed with the stage. */
static int swap(const struct stage *st, const char *to, struct err *err)
{
    int in = st->store.fd;
    if (renameat2(in, st->name, in, to, RENAME_EXCHANGE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS && errno != ENOENT) /* NFS knows no flags */
        return message_refuse(
            err, -errno, "disk_no_replace",
            MESSAGE_ARGS(MESSAGE_STR("path", to), MESSAGE_STR("why", strerror(errno))));
    _cleanup_(freep) char *gone = xasprintf("%s-gone", st->name); /* a stage's name: it is swept */
    if (renameat(in, to, in, gone) < 0 && errno != ENOENT)
        return message_refuse(
            err, -errno, "disk_no_replace",
            MESSAGE_ARGS(MESSAGE_STR("path", to), MESSAGE_STR("why", strerror(errno))));
    if (renameat(in, st->name, in, to) < 0) {
        int error = errno;
        (void)renameat(in, gone, in, to); /* as it was */
        return message_refuse(
            err, -error, "disk_no_make",
            MESSAGE_ARGS(MESSAGE_STR("path", to), MESSAGE_STR("why", strerror(error))));
    }
    (void)dirtree_remove_at(in, gone, NULL); /* else the next start sweeps it */
    return 0;
}

/* Something has the name: its twin, which was faster, or what is damaged. Of two that would heal it
 * the second finds it whole. */
static int snapshot_replace(const struct snapshot_source *s,
                            const struct stage *st,
                            struct snapshot_made *made,
                            struct err *err)
{
    if (s->healing)
        (void)pthread_mutex_lock(s->healing); /* never fails */
    int r = find_whole(s->root, made, err);
    if (is_damage(r))
        r = swap(st, made->hash, err);
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
    int r = find_whole(s->root, made, err);
    if (r == 0 || !is_damage(r))
        return r;
    if (fchmod(st->dir.fd, 0755) < 0)
        return message_refuse(
            err, -errno, "disk_no_open_all",
            MESSAGE_ARGS(MESSAGE_STR("path", st->dir.path), MESSAGE_STR("why", strerror(errno))));
    if (renameat(st->store.fd, st->name, st->store.fd, made->hash) == 0) {
        *st->name = 0;
        return 0;
    }
    if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR)
        return message_refuse(
            err, -errno, "disk_no_make",
            MESSAGE_ARGS(MESSAGE_STR("path", made->hash), MESSAGE_STR("why", strerror(errno))));
    return snapshot_replace(s, st, made, err);
}

/* The tar of its commit has no name, and lies where the tree will. */
static int snapshot_from_git(const struct snapshot_source *s,
                             const struct stage *st,
                             const struct unpack_limits *limits,
                             int *ret_fd,
                             struct err *err)
{
    static const char name[] = "out.tar";
    int fd = openat(st->dir.fd, ".", O_RDWR | O_TMPFILE | O_CLOEXEC, 0600);
    if (fd < 0) { /* not every file system has these */
        fd = openat(st->dir.fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd >= 0)
            (void)unlinkat(st->dir.fd, name, 0); /* it lives as long as the descriptor */
    }
    if (fd < 0)
        return message_refuse(
            err, -errno, "disk_no_write",
            MESSAGE_ARGS(MESSAGE_STR("path", st->dir.path), MESSAGE_STR("why", strerror(errno))));
    int r = bundle_to_tar(s->archive, s->work, s->version, limits, fd, err);
    if (r < 0)
        closep(&fd);
    *ret_fd = fd;
    return r;
}

static int snapshot_fill(const struct snapshot_source *s,
                         const struct stage *st,
                         struct manifest *m,
                         struct err *err)
{
    const struct unpack_limits *limits = s->limits ? s->limits : &unpack_default_limits;
    _cleanup_(closep) int from_git = -1;
    bool is_bundle = bundle_is(s->archive);
    int r = is_bundle ? snapshot_from_git(s, st, limits, &from_git, err) : 0;
    if (r == 0)
        r = unpack_archive(is_bundle ? from_git : s->archive, st->tree.fd, !s->want && !is_bundle,
                           limits, m, err);
    return r;
}

static int read_needs_of(const struct rootdir *tree, struct strv *ret, struct err *err)
{
    struct err why = {0};
    int r = 0;
    for (size_t i = 0; r == 0 && needs_files[i]; i++) {
        struct buf text = BUF_INIT(NEEDS_FILE_MAX);
        r = rootdir_read(tree, needs_files[i], &text, &why);
        if (r == 0)
            needs_read(needs_files[i], buf_str(&text), ret);
        buf_release(&text);
        if (rootdir_is_answer(r))
            r = 0;
    }
    return r < 0 ? err_copy(err, r, &why) : 0;
}

int snapshot_read_needs(const char *root, const char *hash, struct strv *ret, struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir tree = ROOTDIR_NONE;
    _cleanup_(freep) char *path = snapshot_tree(root, hash);
    int r = rootdir_open(root, path, 0, &tree, err);
    return r < 0 ? r : read_needs_of(&tree, ret, err);
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
        return message_refuse(
            err, ERR_REFUSED, "content_other_hash",
            MESSAGE_ARGS(MESSAGE_STR("hash", made->hash), MESSAGE_STR("wanted", s->want)));
    int r = write_manifest(st, m, err);
    if (r == 0)
        r = lock_dirs(st, m, err);
    if (r == 0) /* both are kept with its row: a look that fails must not stand there as "none" */
        r = fsroot_verl_version(s->root, st->tree.path, &made->verl, err);
    if (r == 0)
        r = read_needs_of(&st->tree, &made->needs, err);
    return r < 0 ? r : publish(s, st, made, err);
}

int snapshot_make(const struct snapshot_source *s, struct snapshot_made *ret, struct err *err)
{
    _cleanup_(stage_release) struct stage st = {
        .store = ROOTDIR_NONE, .dir = ROOTDIR_NONE, .tree = ROOTDIR_NONE};
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
    made.needs = (struct strv){0};
    return 0;
}

/* By its descriptor, so that what takes this one's place meanwhile is not called settled. */
static int sync_and_mark(int dir)
{
    if (syncfs(dir) < 0)
        return -errno;
    _cleanup_(closep) int mark =
        openat(dir, SNAPSHOT_SETTLED, O_RDONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
    if (mark < 0 && errno == EEXIST) /* another call may have made the mark, and it is read-only */
        mark = file_open_regular(dir, SNAPSHOT_SETTLED, O_RDONLY);
    else if (mark < 0)
        return -errno;
    if (mark < 0)
        return mark;
    if (fsync(mark) < 0)
        return -errno;
    return fsync(dir) < 0 && errno != EINVAL ? -errno
                                             : 0; /* some file systems cannot, and need not */
}

int snapshot_settle(const char *root, const char *hash, bool unsure, struct err *err)
{
    _cleanup_(freep) char *path = xasprintf(STORE "/%s", hash);
    _cleanup_(rootdir_release) struct rootdir dir = ROOTDIR_NONE;
    int r = rootdir_open(root, path, 0, &dir, err);
    if (r < 0)
        return r;
    if (faccessat(dir.fd, SNAPSHOT_SETTLED, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    r = unsure ? snapshot_verify(root, hash, err) : 0;
    if (r < 0)
        return r;
    r = sync_and_mark(dir.fd);
    return r < 0 ? message_refuse(err, r, "snapshot_no_sync",
                                  MESSAGE_ARGS(MESSAGE_STR("why", strerror(-r))))
                 : 0;
}

/* ---- names ---- */

/* The text of a link. 0 where nothing has the name, -EINVAL where it is no link. */
static int read_text(const struct rootdir *dir,
                     const char *name,
                     char ret[static 256],
                     struct err *err)
{
    ssize_t n = readlinkat(dir->fd, name, ret, 255);
    if (n < 0 && !file_is_absence(-errno))
        return message_refuse(err, -errno, "disk_no_read_in",
                              MESSAGE_ARGS(MESSAGE_STR("dir", dir->path), MESSAGE_STR("name", name),
                                           MESSAGE_STR("why", strerror(errno))));
    ret[n < 0 ? 0 : n] = 0;
    return n > 0;
}

/* "../../../argus/snapshots/<hash>/tree" at whatever depth. */
static bool snapshot_is_ours(const char *to)
{
    return str_starts(to, "../") && strstr(to, "/" STORE "/") && str_ends(to, "/tree");
}

int snapshot_link(const char *root,
                  const char *user,
                  const char *ref,
                  const char *hash,
                  struct err *err)
{
    char now[256];
    const char *name = "";
    _cleanup_(rootdir_release) struct rootdir dir = ROOTDIR_NONE;
    _cleanup_(freep) char *path = snapshot_path(root, user, ref);
    _cleanup_(freep) char *to =
        xasprintf("%s" STORE "/%s/tree", user ? "../../../../" : "../../../", hash);
    int r = fsroot_check_mounted(root, err);
    if (r == 0)
        r = rootdir_open_above(root, path, 0755, &dir, &name, err);
    if (r < 0)
        return r;
    int is_link = read_text(&dir, name, now, err);
    if (is_link < 0 && is_link != -EINVAL)
        return is_link;
    if (is_link && !(is_link > 0 && snapshot_is_ours(now)))
        return message_refuse(err, -EEXIST, "no_snapshot_there",
                              MESSAGE_ARGS(MESSAGE_STR("path", path)));
    return is_link && str_eq(now, to) ? 0 : rootdir_symlink(&dir, name, to, err);
}

/* The directory of all versions goes with the last of them. */
static void remove_empty(const char *root, char *path)
{
    const char *name;
    _cleanup_(rootdir_release) struct rootdir dir = ROOTDIR_NONE;
    *strrchr(path, '/') = 0;
    if (rootdir_open_above(root, path, 0, &dir, &name, NULL) == 0)
        (void)unlinkat(dir.fd, name, AT_REMOVEDIR); /* other versions may be there */
}

int snapshot_unlink(const char *root, const char *user, const char *ref, struct err *err)
{
    char now[256];
    const char *name;
    _cleanup_(rootdir_release) struct rootdir dir = ROOTDIR_NONE;
    _cleanup_(freep) char *path = snapshot_path(root, user, ref);
    int r = rootdir_open_above(root, path, 0, &dir, &name, err);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    struct err why = {0};
    int is_link = read_text(&dir, name, now, &why);
    if (is_link < 0 && is_link != -EINVAL)
        return err_copy(err, is_link, &why);
    if (is_link > 0 && snapshot_is_ours(now))
        r = rootdir_unlink(&dir, name, err);
    if (r == 0)
        remove_empty(root, path);
    return r;
}

int snapshot_remove(const char *root, const char *hash, struct err *err)
{
    if (!hash_is_hex(hash))
        return message_refuse(err, -EINVAL, "no_hash", MESSAGE_ARGS(MESSAGE_STR("text", hash)));
    _cleanup_(freep) char *gone = xasprintf(STAGE_PREFIX "gone-%s", hash);
    _cleanup_(rootdir_release) struct rootdir store = ROOTDIR_NONE;
    int r = rootdir_open(root, STORE, 0, &store, err);
    if (r == 0)
        r = dirtree_remove_at(store.fd, gone, err);
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    r = rootdir_rename(&store, hash, &store, gone, 0, err); /* whole or not there, never a part */
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    return dirtree_remove_at(store.fd, gone, err);
}

void snapshot_sweep(const char *root)
{
    _cleanup_(rootdir_release) struct rootdir store = ROOTDIR_NONE;
    DIR *dir = NULL;
    if (rootdir_open(root, STORE, 0, &store, NULL) < 0 || rootdir_list(&store, &dir, NULL) < 0)
        return; /* none was ever made, or the next start tries again */
    for (struct dirent *e; (e = readdir(dir));)
        if (str_starts(e->d_name, STAGE_PREFIX))
            (void)dirtree_remove_at(dirfd(dir), e->d_name, NULL); /* the next start tries again */
    (void)closedir(dir);                                          /* it was only read */
}

int snapshot_read(const char *root, const char *hash, struct manifest *ret, struct err *err)
{
    char is[HASH_HEX];
    if (!hash_is_hex(hash))
        return message_refuse(err, -EINVAL, "no_hash", MESSAGE_ARGS(MESSAGE_STR("text", hash)));
    _cleanup_(freep) char *path = xasprintf(STORE "/%s", hash);
    _cleanup_(buf_release) struct buf text = BUF_INIT(MANIFEST_TEXT_MAX);
    _cleanup_(rootdir_release) struct rootdir dir = ROOTDIR_NONE;
    int r = rootdir_open(root, path, 0, &dir, err);
    if (r == 0)
        r = rootdir_read(&dir, "manifest", &text, err);
    if (r == 0 && strcmp(hash_sha256_hex(buf_str(&text), text.len, is), hash) != 0)
        r = message_refuse(err, ERR_REFUSED, "manifest_changed",
                           MESSAGE_ARGS(MESSAGE_STR("path", path)));
    return r < 0 ? r : manifest_read(buf_str(&text), text.len, ret, err);
}
