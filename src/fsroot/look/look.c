/* SPDX-License-Identifier: Apache-2.0 */
/* look.c - files and models as they lie there; see look.h. A link is followed by ourselves, and
 * only as long as it stays on the root: what lies elsewhere is not even asked whether it is there.
 */
#define _GNU_SOURCE
#include "fsroot/look/looking.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/message.h"
#include "base/str.h"
#include "fsroot/look/looked.h"
#include "fsroot/tree/rootdir.h"

enum { TREE_MAX = 1 << 20 };

/* ---- the way there ---- */

void looking_release(struct looking *k)
{
    rootdir_release(&k->dir);
    freep(&k->asked);
}

/* Opens the directory, unless it is that of the previous file. -EXDEV: *ret_out is where it leads.
 */
static int look_enter(struct looking *k, const char *below, char **ret_out)
{
    _cleanup_(freep) char *real = NULL;
    if (k->dir.fd >= 0 && str_eq(k->asked, below))
        return 0;
    int fd = rootdir_open_followed(k->top, below, O_PATH | O_DIRECTORY, &real);
    if (fd == -EXDEV) {
        *ret_out = real;
        real = NULL;
    }
    if (fd < 0)
        return fd;
    rootdir_release(&k->dir);
    const char *slash = real && *real ? "/" : "";
    k->dir = (struct rootdir){.fd = fd,
                              .path = xasprintf("%s%s%s", k->top->path, slash, str_or(real, ""))};
    set_str(&k->asked, below);
    return 0;
}

/* The last name of the path, in k->dir, and what it is, which is no link. */
static int look_step(struct looking *k,
                     const char *below,
                     char **ret_name,
                     struct stat *ret,
                     char **ret_out)
{
    const char *slash = strrchr(below, '/');
    _cleanup_(freep) char *dir = slash ? xstrndup(below, (size_t)(slash - below)) : xstrdup("");
    const char *name = slash ? slash + 1 : below;
    int r = look_enter(k, dir, ret_out);
    if (r == 0 && *name)
        r = rootdir_look(&k->dir, name, ret);
    else if (r == 0) /* the root itself */
        r = fstat(k->dir.fd, ret) < 0 ? -errno : 0;
    if (r == 0 && S_ISLNK(ret->st_mode))
        return -ELOOP;
    if (r == 0)
        *ret_name = xstrdup(*name ? name : ".");
    return r;
}

/* The thing at the end of the path: its name in k->dir. -EXDEV: a link leads off the root, and
 * *ret_out says where; that is not looked at. */
int look_reach(struct looking *k,
               const char *path,
               char **ret_name,
               struct stat *ret,
               char **ret_out)
{
    const char *given = rootdir_below(k->top->path, path);
    if (!given) {
        *ret_out = xstrdup(path);
        return -EXDEV;
    }
    _cleanup_(freep) char *below = xstrdup(given);
    int r = look_step(k, below, ret_name, ret, ret_out);
    for (int n = 0; r == -ELOOP && n < 2; n++) { /* twice: it was moved meanwhile */
        char *real = NULL;
        r = rootdir_resolve(k->top, given, &real);
        if (r == -EXDEV)
            *ret_out = real;
        if (r < 0)
            return r;
        free(below);
        below = real;
        r = look_step(k, below, ret_name, ret, ret_out);
    }
    return r;
}

/* A sandbox that does not know this call refuses it: then opening tells. errno. */
static int look_may(const struct rootdir *dir, const char *name, int mode)
{
    int r = faccessat(dir->fd, name, mode, AT_SYMLINK_NOFOLLOW);
    return r == 0 || errno == EPERM ? 0 : errno;
}

/* ---- one file ---- */

/* What cannot be read is missing. */
size_t look_read_at(int fd, void *buf, size_t n, uint64_t at)
{
    size_t got;
    (void)file_read_at(fd, at, buf, n, &got); /* fewer bytes tell it */
    return got;
}

static char *why_not_a_tree(const struct rootdir *dir, const char *name)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(TREE_MAX);
    _cleanup_(problems_release) struct problems ps = {0};
    struct doc *d = NULL;
    struct err err = {0};
    if (rootdir_read(dir, name, &text, &err) < 0)
        return message_keep(&err);
    if (doc_parse(buf_str(&text), text.len, true, &d, &ps) < 0)
        (void)problems_to_err(&ps, name, ERR_BAD_SPEC, &err); /* only fills err */
    if (err.code)
        return message_keep(&err);
    doc_free(d);
    return NULL;
}

/* Opened for reading; it is plain. */
int look_open_plain(const struct rootdir *dir, const char *name, struct stat *ret)
{
    int fd = rootdir_open_file(dir, name, NULL);
    if (fd < 0 || fstat(fd, ret) == 0)
        return fd;
    int r = -errno;
    (void)close(fd); /* nothing was written */
    return r;
}

/* Nothing is kept of what cannot be read. errno. */
static int read_ends(struct preflight_file *f,
                     struct looking *k,
                     const char *name,
                     const struct stat *now)
{
    struct looked_facts read = {0};
    struct stat st = {0};
    if (!looked_find(k->known, LOOKED_FILE, f->path, now, &read)) {
        int fd = look_open_plain(&k->dir, name, &st);
        if (fd < 0)
            return -fd;
        read.n_head = look_read_at(fd, read.head, sizeof(read.head), 0);
        if (f->size >= sizeof(read.tail))
            (void)look_read_at(fd, read.tail, sizeof(read.tail),
                               f->size - sizeof(read.tail)); /* else zeros */
        (void)close(fd);                                     /* it was only read */
        if (read.n_head || !st.st_size)
            looked_add(k->known, LOOKED_FILE, f->path, &st, &read);
    }
    memcpy(f->head, read.head, sizeof(f->head));
    memcpy(f->tail, read.tail, sizeof(f->tail));
    f->n_head = read.n_head;
    if (f->kind == PREFLIGHT_TREE)
        f->broken = why_not_a_tree(&k->dir, name);
    return 0;
}

/* So that the judge sees that it is not below the root, however it is written. */
char *look_outside(const struct looking *k, char *taken)
{
    if (*taken == '/' && rootdir_below(k->top->path, taken))
        set_str(&taken, "/");
    return taken;
}

static void look_at_file(struct preflight_file *f, struct looking *k)
{
    struct stat st = {0};
    _cleanup_(freep) char *name = NULL;
    char *out = NULL;
    int r = look_reach(k, f->path, &name, &st, &out);
    if (r == -EXDEV) {
        f->is_elsewhere = f->kind == PREFLIGHT_PROGRAM;
        f->real = look_outside(k, out);
        return;
    }
    if (!name) {
        f->error = -r;
        return;
    }
    f->real = str_eq(name, ".") ? xstrdup(k->dir.path) : xasprintf("%s/%s", k->dir.path, name);
    f->is_dir = S_ISDIR(st.st_mode);
    f->is_file = S_ISREG(st.st_mode);
    f->size = (uint64_t)st.st_size;
    if (f->is_dir)
        f->error = look_may(&k->dir, name, R_OK | X_OK);
    f->may_run = f->kind == PREFLIGHT_PROGRAM && look_may(&k->dir, name, X_OK) == 0;
    if (f->is_file) /* a file that is known could be read: what forbids it changes its times */
        f->error = read_ends(f, k, name, &st);
}

/* ---- all ---- */

static void look_at_all(struct preflight_facts *f, struct looking *k, _Atomic(size_t) *at)
{
    struct statvfs vfs;
    f->real_root = xstrdup(k->top->path);
    f->has_free = fstatvfs(k->top->fd, &vfs) == 0;
    if (f->has_free)
        f->free_bytes = (uint64_t)vfs.f_bavail * vfs.f_frsize;
    for (size_t i = 0; i < f->n_files; i++) {
        if (at)
            *at = i + 1;
        look_at_file(&f->files[i], k);
    }
    if (at)
        *at = f->n_files + 1;
    if (f->model)
        look_at_model_there(f->model, k);
}

void fsroot_look(const char *shared_root,
                 struct looked *known,
                 struct preflight_facts *f,
                 _Atomic(size_t) *at)
{
    _cleanup_(rootdir_release) struct rootdir top = ROOTDIR_NONE;
    int r = rootdir_open(shared_root, "", 0, &top, NULL);
    for (size_t i = 0; r < 0 && i < f->n_files; i++)
        f->files[i].error = -r;
    if (r < 0 && f->model)
        f->model->error = -r;
    if (r < 0)
        return;
    struct looking k = {.top = &top, .known = known, .dir = ROOTDIR_NONE};
    look_at_all(f, &k, at);
    looking_release(&k);
}
