/* SPDX-License-Identifier: Apache-2.0 */
/* place.c - a user's operations on files; see place.h. Everything goes by descriptors that
 * walk.c opened: no path is resolved a second time. */
#define _GNU_SOURCE
#include "fsroot/content/place.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/message.h"
#include "base/str.h"
#include "base/strv.h"
#include "base/text.h"
#include "fsroot/tree/dirtree.h"
#include "fsroot/tree/rootdir.h"

enum { LINK_TEXT_MAX = 4096, COPY_BYTES = 1 << 20 };

static const char *const kinds[] = {[PLACE_FILE] = "file",
                                    [PLACE_DIRECTORY] = "directory",
                                    [PLACE_LINK] = "link",
                                    [PLACE_OTHER] = "other"};

const char *place_kind_to_string(enum place_kind k)
{
    return kinds[k];
}

void place_entry_release(struct place_entry *e)
{
    free(e->name);
    free(e->target);
    *e = (struct place_entry){0};
}

/* ---- look ---- */

static void place_fill(struct place_entry *e, const struct stat *st)
{
    e->kind = S_ISREG(st->st_mode)   ? PLACE_FILE
              : S_ISDIR(st->st_mode) ? PLACE_DIRECTORY
              : S_ISLNK(st->st_mode) ? PLACE_LINK
                                     : PLACE_OTHER;
    e->bytes = e->kind == PLACE_FILE ? (uint64_t)st->st_size : 0;
    e->changed_at = (usec_t)st->st_mtim.tv_sec * USEC_SEC + (usec_t)st->st_mtim.tv_nsec / 1000;
    if (e->kind == PLACE_FILE)
        text_printf(e->etag, "%" PRIx64 "-%" PRIx64 "-%" PRIx64 "-%" PRIx64, (uint64_t)st->st_size,
                    (uint64_t)st->st_mtim.tv_sec, (uint64_t)st->st_mtim.tv_nsec,
                    (uint64_t)st->st_ino);
}

static char *target_of(int dir, const char *name)
{
    char text[LINK_TEXT_MAX];
    ssize_t n = readlinkat(dir, name, text, sizeof(text));
    return n < 0 ? NULL : xstrndup(text, (size_t)n);
}

/* The thing itself, where opening it fails: a link to nowhere. */
static int look_at_link(const char *root,
                        const struct walk_place *p,
                        struct place_entry *ret,
                        struct err *err)
{
    _cleanup_(closep) int dir = -1;
    const char *name = NULL;
    struct stat st;
    int r = walk_open_parent(root, p, false, 0, &dir, &name, err);
    if (r < 0)
        return r;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return walk_trouble(p, errno, err);
    if (!S_ISLNK(st.st_mode))
        return walk_trouble(p, ENOENT, err);
    place_fill(ret, &st);
    ret->target = target_of(dir, name);
    return 0;
}

int place_look(const char *root,
               const struct walk_place *p,
               struct place_entry *ret,
               struct err *err)
{
    _cleanup_(closep) int fd = -1;
    struct stat st;
    struct err why = {0};
    *ret = (struct place_entry){0};
    int r = walk_open(root, p, O_PATH, 0, &fd, &why);
    if (r == ERR_NOT_FOUND && *p->rest && look_at_link(root, p, ret, NULL) == 0)
        return 0;
    if (r < 0)
        return err_copy(err, r, &why);
    if (fstat(fd, &st) < 0)
        return walk_trouble(p, errno, err);
    place_fill(ret, &st);
    return 0;
}

/* ---- list ---- */

void place_list_release(struct place_list *l)
{
    for (size_t i = 0; i < l->n; i++)
        place_entry_release(&l->v[i]);
    free(l->v);
    *l = (struct place_list){0};
}

static int place_by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool place_is_dots(const char *name)
{
    return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

/* fd is taken. */
static int read_names(const struct walk_place *p,
                      int fd,
                      const char *after,
                      struct strv *names,
                      struct err *err)
{
    DIR *d = fdopendir(fd);
    if (!d) {
        int error = errno;
        (void)close(fd); /* it was only read */
        return walk_trouble(p, error, err);
    }
    errno = 0;
    for (struct dirent *e; names->n <= PLACE_ENTRIES_MAX && (e = readdir(d)); errno = 0)
        if (!place_is_dots(e->d_name) && strcmp(e->d_name, after) > 0)
            strv_add(names, e->d_name);
    int error = errno;
    (void)closedir(d); /* as above */
    if (names->n > PLACE_ENTRIES_MAX)
        return message_refuse(
            err, ERR_TOO_LARGE, "directory_long",
            MESSAGE_ARGS(MESSAGE_STR("path", p->path), MESSAGE_NUM("most", PLACE_ENTRIES_MAX)));
    return error ? walk_trouble(p, error, err) : 0;
}

int place_list(const char *root,
               const struct walk_place *p,
               const char *after,
               size_t limit,
               struct place_list *ret,
               struct err *err)
{
    _cleanup_(strv_release) struct strv names = {0};
    _cleanup_(closep) int dir = -1;
    int fd = -1;
    int r = walk_open(root, p, O_RDONLY | O_DIRECTORY, 0, &dir, err);
    if (r < 0)
        return r;
    fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return walk_trouble(p, errno, err);
    r = read_names(p, fd, after, &names, err);
    if (r < 0)
        return r;
    xsort(names.v, names.n, sizeof(char *), place_by_name);
    *ret = (struct place_list){.v = xcalloc(limit + 1, sizeof(struct place_entry))};
    size_t i = 0;
    for (struct stat st; i < names.n && ret->n < limit; i++) {
        if (fstatat(dir, names.v[i], &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue; /* it went meanwhile */
        struct place_entry *e = &ret->v[ret->n++];
        place_fill(e, &st);
        e->name = xstrdup(names.v[i]);
        e->is_odd = walk_check_name(e->name, strlen(e->name), NULL) < 0;
        e->target = e->kind == PLACE_LINK ? target_of(dir, e->name) : NULL;
    }
    ret->more = i < names.n;
    return 0;
}

/* ---- read ---- */

int place_open_file(const char *root,
                    const struct walk_place *p,
                    int *ret_fd,
                    struct place_entry *ret,
                    struct err *err)
{
    _cleanup_(closep) int fd = -1;
    struct stat st;
    int r = walk_open(root, p, O_RDONLY, 0, &fd, err);
    if (r < 0)
        return r;
    if (fstat(fd, &st) < 0)
        return walk_trouble(p, errno, err);
    if (S_ISDIR(st.st_mode))
        return message_refuse(err, ERR_BAD_REQUEST, "path_is_directory",
                              MESSAGE_ARGS(MESSAGE_STR("path", p->path)));
    if (!S_ISREG(st.st_mode))
        return walk_trouble(p, EISDIR, err);
    if (p->zone == WALK_JOB && !(st.st_mode & S_IROTH))
        return walk_trouble(p, EACCES, err);
    *ret = (struct place_entry){0};
    place_fill(ret, &st);
    *ret_fd = fd;
    fd = -1;
    return 0;
}

int place_read(const struct walk_place *p,
               int fd,
               uint64_t offset,
               void *buf,
               size_t n,
               size_t *ret_n,
               struct err *err)
{
    int r = file_read_at(fd, offset, buf, n, ret_n);
    return r < 0 ? walk_trouble(p, -r, err) : 0;
}

/* ---- put ---- */

/* 1: the name of a snapshot, which its own command removes, with its row; 0: none, or nothing. A
 * negative errno: that could not be found out, and it stays. */
static int place_is_snapshot(int dir, const char *name)
{
    char text[LINK_TEXT_MAX + 1];
    ssize_t n = readlinkat(dir, name, text, LINK_TEXT_MAX);
    if (n < 0)
        return file_is_absence(-errno) || errno == EINVAL ? 0 : -errno;
    text[n] = 0;
    return strstr(text, "argus/snapshots/") != NULL;
}

static int refuse_snapshot(const struct walk_place *p, const char *name, struct err *err)
{
    return message_refuse(err, ERR_CONFLICT, "file_is_snapshot",
                          MESSAGE_ARGS(MESSAGE_STR("path", p->path), MESSAGE_STR("name", name)));
}

/* A name that is not there yet, in one step. NFS knows no RENAME_NOREPLACE, but hard links. */
static int rename_new(int from_dir, const char *from, int dir, const char *name)
{
    if (renameat2(from_dir, from, dir, name, RENAME_NOREPLACE) == 0)
        return 0;
    if (errno != EINVAL && errno != ENOSYS)
        return -errno;
    if (linkat(from_dir, from, dir, name, 0) < 0)
        return -errno;
    (void)unlinkat(from_dir, from,
                   0); /* a second name of the same bytes: removed with the upload */
    return 0;
}

static int rename_any(int from_dir, const char *from, int dir, const char *name, unsigned flags)
{
    if (!(flags & PLACE_REPLACE))
        return rename_new(from_dir, from, dir, name);
    return renameat(from_dir, from, dir, name) < 0 ? -errno : 0;
}

/* What came and no more: a job may make it as long as it likes. */
static int place_copy(int from, int to, uint64_t bytes)
{
    _cleanup_(freep) char *block = xmalloc(COPY_BYTES);
    for (uint64_t at = 0; at < bytes;) {
        size_t n = 0, want = bytes - at < COPY_BYTES ? (size_t)(bytes - at) : COPY_BYTES;
        int r = file_read_at(from, at, block, want, &n);
        if (r == 0 && n)
            r = file_write_all(to, block, n);
        if (r < 0)
            return r;
        if (!n)
            break; /* it got shorter: what is there counts */
        at += n;
    }
    return fsync(to) < 0 ? -errno : 0;
}

/* The place is on another file system than the uploads: by a hidden name beside it. */
static int put_by_copy(const struct rootdir *from,
                       const char *source,
                       uint64_t bytes,
                       int dir,
                       const char *name,
                       unsigned flags)
{
    _cleanup_(freep) char *tmp = xasprintf(".argus-%d-%.200s", (int)gettid(), name);
    _cleanup_(closep) int in = rootdir_open_file(from, source, NULL);
    if (in < 0)
        return in;
    (void)unlinkat(dir, tmp, 0); /* a crash may have left it */
    _cleanup_(closep) int out =
        openat(dir, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    if (out < 0)
        return -errno;
    int r = place_copy(in, out, bytes);
    if (r == 0 && fchmod(out, 0644) < 0)
        r = -errno;
    if (r == 0)
        r = rename_any(dir, tmp, dir, name, flags);
    if (r < 0)
        (void)unlinkat(dir, tmp, 0); /* what is left of it */
    else
        (void)rootdir_unlink(from, source, NULL); /* removed with the upload */
    return r;
}

/* Moves what the directory has under that name; a failure leaves it there, for its owner only. */
static int put_from(const struct rootdir *above,
                    const char *source,
                    uint64_t bytes,
                    int dir,
                    const char *name,
                    unsigned flags)
{
    int r = rename_any(above->fd, source, dir, name, flags);
    if (r == -EXDEV)
        r = put_by_copy(above, source, bytes, dir, name, flags);
    if (r < 0)
        (void)rootdir_chmod(above, source, 0600, NULL); /* it may be gone */
    return r;
}

int place_put(const char *root,
              const struct walk_place *p,
              const char *from,
              uint64_t bytes,
              unsigned flags,
              struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir above = ROOTDIR_NONE;
    _cleanup_(closep) int dir = -1;
    const char *name = NULL, *source = NULL;
    struct stat st;
    int r = walk_open_parent(root, p, flags & PLACE_PARENTS, 0, &dir, &name, err);
    if (r < 0)
        return r;
    bool is_there = fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
    if (!is_there && !file_is_absence(-errno)) /* what may be there is not replaced unseen */
        return walk_trouble(p, errno, err);
    if (is_there && S_ISDIR(st.st_mode))
        return message_refuse(err, ERR_CONFLICT, "file_name_missing",
                              MESSAGE_ARGS(MESSAGE_STR("path", p->path)));
    r = place_is_snapshot(dir, name);
    if (r != 0)
        return r < 0 ? walk_trouble(p, r, err) : refuse_snapshot(p, name, err);
    r = rootdir_open_above(root, from, 0, &above, &source, err);
    if (r == 0)
        r = rootdir_chmod(&above, source, 0644, err);
    if (r < 0)
        return r == -ENOENT ? walk_trouble(p, r, err) : r;
    r = put_from(&above, source, bytes, dir, name, flags);
    if (r == -EEXIST)
        return message_refuse(err, ERR_CONFLICT, "file_is_there",
                              MESSAGE_ARGS(MESSAGE_STR("path", p->path)));
    if (r < 0)
        return walk_trouble(p, r, err);
    (void)fsync(
        dir); /* the bytes are synced; where the name's loss matters the caller asks again */
    return 0;
}

/* ---- remove ---- */

struct removing {
    const struct walk_place *p;
    struct err *err;
    bool refused;
};

static int place_check_name(int dir, const char *name, void *arg)
{
    struct removing *x = arg;
    int r = place_is_snapshot(dir, name);
    x->refused = r > 0;
    return x->refused ? refuse_snapshot(x->p, name, x->err) : r;
}

int place_remove(const char *root,
                 const struct walk_place *p,
                 bool recursive,
                 uint64_t *ret_removed,
                 struct err *err)
{
    _cleanup_(closep) int dir = -1;
    const char *name = NULL;
    struct stat st;
    *ret_removed = 0;
    int r = walk_open_parent(root, p, false, 0, &dir, &name, err);
    if (r < 0)
        return r;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return walk_trouble(p, errno, err);
    if (S_ISDIR(st.st_mode) && !recursive) {
        if (unlinkat(dir, name, AT_REMOVEDIR) == 0) {
            *ret_removed = 1;
            return 0;
        }
        if (errno != ENOTEMPTY && errno != EEXIST)
            return walk_trouble(p, errno, err);
        return message_refuse(err, ERR_CONFLICT, "directory_not_empty",
                              MESSAGE_ARGS(MESSAGE_STR("path", p->path)));
    }
    struct removing x = {.p = p, .err = err};
    struct dirtree_removal all = {.check = place_check_name, .arg = &x};
    r = dirtree_remove_with(dir, name, &all);
    *ret_removed = all.removed;
    free(all.at);
    if (r < 0 && !x.refused)
        r = r == -E2BIG ? message_refuse(err, ERR_BAD_REQUEST, "directory_deep",
                                         MESSAGE_ARGS(MESSAGE_STR("path", p->path)))
                        : walk_trouble(p, r, err);
    return r;
}
