/* SPDX-License-Identifier: Apache-2.0 */
/* jobarchive.c - the steps of jobarchive.h. Names with the token are this archive's own: what they
 * are called tells a later call how far an earlier one came. What is renamed is synced before
 * anything that depends on it is removed. */
#define _GNU_SOURCE
#include "fsroot/archive/jobarchive.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/digest/filehash.h"
#include "base/json.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "fsroot/archive/packtar.h"
#include "fsroot/tree/dirtree.h"

enum { NAME_MAX_TEXT = 256, META_MAX = 4 << 20 };

/* The two directories, and the names in them. */
struct jobarchive_place {
    struct rootdir jobs, dir;
    char file[NAME_MAX_TEXT], part[NAME_MAX_TEXT];
    char old[NAME_MAX_TEXT], fresh[NAME_MAX_TEXT], stub[NAME_MAX_TEXT];
};

#define PLACE_NONE                                                                                 \
    {                                                                                              \
        .jobs = ROOTDIR_NONE, .dir = ROOTDIR_NONE                                                  \
    }

static void place_release(struct jobarchive_place *p)
{
    rootdir_release(&p->jobs);
    rootdir_release(&p->dir);
}

char *jobarchive_path(const struct jobarchive *a)
{
    return xasprintf("%s/%s-%s.tar.zst", a->dir, a->id, a->token);
}

static void jobarchive_step(const struct jobarchive *a, const char *name)
{
    if (a->step)
        a->step(name);
}

static int place_open(const struct jobarchive *a, struct jobarchive_place *p, struct err *err)
{
    bool is_on_root = rootdir_below(a->root, a->dir) != NULL;
    text_printf(p->file, "%s-%s.tar.zst", a->id, a->token);
    text_printf(p->part, ".%s.%s.part", a->id, a->token);
    text_printf(p->old, ".argus-old-%s", a->token);
    text_printf(p->fresh, ".argus-new-%s", a->token);
    text_printf(p->stub, ".argus-stub-%s", a->token);
    int r = rootdir_open(a->root, "jobs", 0, &p->jobs, err);
    if (r == 0)
        r = rootdir_open(is_on_root ? a->root : a->dir, a->dir, is_on_root ? 0755 : 0, &p->dir,
                         err);
    return r;
}

static int jobarchive_sync(const struct rootdir *d, struct err *err)
{
    /* EINVAL: this file system has no need of it. */
    return fsync(d->fd) == 0 || errno == EINVAL
               ? 0
               : message_refuse(err, -errno, "disk_no_sync",
                                MESSAGE_ARGS(MESSAGE_STR("path", d->path),
                                             MESSAGE_STR("why", strerror(errno))));
}

/* ---- pack ---- */

static int pack_create(const struct jobarchive_place *p, int *ret, struct err *err)
{
    *ret = openat(p->dir.fd, p->part, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    return *ret < 0 ? message_refuse(err, -errno, "disk_no_make_in",
                                     MESSAGE_ARGS(MESSAGE_STR("dir", p->dir.path),
                                                  MESSAGE_STR("name", p->part),
                                                  MESSAGE_STR("why", strerror(errno))))
                    : 0;
}

/* What was written is read back, from the file and not from memory where the system allows. */
static int pack_verify(const struct jobarchive *a,
                       const struct packlist *l,
                       int fd,
                       struct err *err)
{
    _cleanup_(packlist_release) struct packlist seen = {0};
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); /* a wish */
    int r = packtar_read(fd, a->id, NULL, &a->limits, &seen, err);
    if (r == 0)
        r = packlist_check_same(l, &seen, 0, err);
    return r < 0 && r != -ECANCELED ? message_wrap(err, "archive_reads_other") : r;
}

static int pack_bytes(const struct jobarchive *a,
                      const struct jobarchive_place *p,
                      const struct rootdir *job,
                      struct packlist *l,
                      uint64_t *ret_packed,
                      struct err *err)
{
    struct stat st = {0};
    _cleanup_(closep) int fd = -1;
    int r = pack_create(p, &fd, err);
    if (r == 0)
        r = packtar_write(job, l, a->id, fd, a->limits.stop, err);
    jobarchive_step(a, "written");
    if (r == 0 && (fsync(fd) < 0 || fstat(fd, &st) < 0))
        r = message_refuse(err, -errno, "archive_no_sync",
                           MESSAGE_ARGS(MESSAGE_STR("why", strerror(errno))));
    if (r == 0)
        r = pack_verify(a, l, fd, err);
    jobarchive_step(a, "verified");
    if (r == 0)
        r = rootdir_rename(&p->dir, p->part, &p->dir, p->file, ROOTDIR_NEW, err);
    if (r == 0)
        r = jobarchive_sync(&p->dir, err);
    if (r == 0)
        *ret_packed = (uint64_t)st.st_size;
    return r;
}

static int stub_write_pointer(const struct jobarchive *a,
                              const struct jobarchive_made *made,
                              const struct rootdir *stub,
                              struct err *err)
{
    struct buf out = BUF_INIT(8192);
    struct jout j = jout_begin(&out);
    _cleanup_(freep) char *path = jobarchive_path(a);
    _cleanup_(freep) char *how = xasprintf("argus unarchive %s", a->id);
    jout_open(&j, NULL, '{');
    jout_str(&j, "archive", path);
    jout_str(&j, "unarchive", how);
    jout_int(&j, "bytes", (int64_t)(made->bytes & INT64_MAX));
    jout_int(&j, "packed", (int64_t)(made->packed & INT64_MAX));
    jout_int(&j, "files", (int64_t)(made->files & INT64_MAX));
    jout_str(&j, "manifest", made->hash);
    if (a->limits.hollow)
        jout_str(&j, "without", a->limits.hollow);
    jout_close(&j, '}');
    (void)buf_addc(&out, '\n');
    int r = rootdir_write(stub, "archived.json", out.data, out.len, 0644, FILE_SYNC, err);
    buf_release(&out);
    return r;
}

/* Copies meta.json; a job without one has none in its stub. */
static int stub_copy_meta(const struct rootdir *job, const struct rootdir *stub, struct err *err)
{
    struct buf text = BUF_INIT(META_MAX);
    int r = rootdir_read(job, "meta.json", &text, err);
    if (r == 0)
        r = rootdir_write(stub, "meta.json", text.data, text.len, 0644, FILE_SYNC, err);
    else if (r == -ENOENT)
        r = 0;
    buf_release(&text);
    return r;
}

static int stub_make(const struct jobarchive *a,
                     const struct jobarchive_place *p,
                     const struct jobarchive_made *made,
                     const struct rootdir *job,
                     struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir stub = ROOTDIR_NONE;
    int r = rootdir_make_new(&p->jobs, p->stub, 0755, &stub, err);
    if (r == 0)
        r = stub_copy_meta(job, &stub, err);
    if (r == 0)
        r = stub_write_pointer(a, made, &stub, err);
    return r == 0 ? jobarchive_sync(&stub, err) : r;
}

/* From here on nobody writes into it by its path. */
static int pack_put_away(const struct jobarchive *a,
                         const struct jobarchive_place *p,
                         struct err *err)
{
    jobarchive_step(a, "stub");
    int r = rootdir_rename(&p->jobs, a->id, &p->jobs, p->old, 0, err);
    jobarchive_step(a, "away");
    if (r == 0)
        r = rootdir_rename(&p->jobs, p->stub, &p->jobs, a->id, 0, err);
    jobarchive_step(a, "placed");
    return r == 0 ? jobarchive_sync(&p->jobs, err) : r;
}

static int pack_check_unchanged(const struct jobarchive *a,
                                const struct jobarchive_place *p,
                                const struct packlist *l,
                                struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir old = ROOTDIR_NONE;
    _cleanup_(packlist_release) struct packlist now = {0};
    int r = rootdir_open_in(&p->jobs, p->old, 0, &old, err);
    if (r == 0)
        r = packlist_gather(&old, &a->limits, &now, err);
    if (r == 0)
        r = packlist_check_same(l, &now, PACKLIST_UNTOUCHED, err);
    return r == ERR_CONFLICT ? message_wrap(err, "dir_written_meanwhile") : r;
}

static int pack_all(const struct jobarchive *a,
                    const struct jobarchive_place *p,
                    struct packlist *l,
                    struct jobarchive_made *made,
                    struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir job = ROOTDIR_NONE;
    int r = rootdir_open_in(&p->jobs, a->id, 0, &job, err);
    if (r == 0)
        r = packlist_gather(&job, &a->limits, l, err);
    if (r == 0)
        r = pack_bytes(a, p, &job, l, &made->packed, err);
    if (r < 0)
        return r;
    made->bytes = l->bytes;
    made->files = l->files;
    (void)packlist_hash(l, made->hash);
    r = stub_make(a, p, made, &job, err);
    if (r == 0)
        r = pack_put_away(a, p, err);
    return r == 0 ? pack_check_unchanged(a, p, l, err) : r;
}

int jobarchive_pack(const struct jobarchive *a, struct jobarchive_made *ret, struct err *err)
{
    _cleanup_(place_release) struct jobarchive_place p = PLACE_NONE;
    _cleanup_(packlist_release) struct packlist l = {0};
    struct jobarchive_made made = {0};
    int r = place_open(a, &p, err);
    if (r == 0)
        r = pack_all(a, &p, &l, &made, err);
    if (r == 0)
        *ret = made;
    return r;
}

/* ---- undo ---- */

/* It may be anything; that it is not there is fine. */
static int place_remove(const struct rootdir *d, const char *name, struct err *err)
{
    return dirtree_remove_at(d->fd, name, err);
}

static int undo_put_back(const struct jobarchive *a,
                         const struct jobarchive_place *p,
                         struct err *err)
{
    bool has_stub = false;
    int r = rootdir_look_for(&p->jobs, a->id, &has_stub, err);
    if (r == 0 && has_stub)
        r = rootdir_rename(&p->jobs, a->id, &p->jobs, p->stub, 0, err);
    if (r == 0)
        r = rootdir_rename(&p->jobs, p->old, &p->jobs, a->id, 0, err);
    return r == 0 ? jobarchive_sync(&p->jobs, err) : r;
}

int jobarchive_undo(const struct jobarchive *a, struct err *err)
{
    _cleanup_(place_release) struct jobarchive_place p = PLACE_NONE;
    bool has_old = false;
    int r = place_open(a, &p, err);
    if (r == 0) /* the archive goes below: not before it is certain where the job itself is */
        r = rootdir_look_for(&p.jobs, p.old, &has_old, err);
    if (r < 0)
        return r;
    if (has_old)
        r = undo_put_back(a, &p, err);
    jobarchive_step(a, "back");
    if (r == 0)
        r = rootdir_unlink(&p.dir, p.part, err);
    if (r == 0)
        r = rootdir_unlink(&p.dir, p.file, err);
    return r == 0 ? place_remove(&p.jobs, p.stub, err) : r;
}

/* ---- finish ---- */

int jobarchive_finish(const struct jobarchive *a, struct err *err)
{
    _cleanup_(place_release) struct jobarchive_place p = PLACE_NONE;
    int r = place_open(a, &p, err);
    jobarchive_step(a, "removing");
    return r == 0 ? place_remove(&p.jobs, p.old, err) : r;
}

/* ---- unpack ---- */

static int unpack_open(const struct jobarchive_place *p, struct err *err)
{
    int fd = rootdir_open_file(&p->dir, p->file, err);
    return fd == -ENOENT ? message_refuse(err, ERR_NOT_FOUND, "archive_file_gone",
                                          MESSAGE_ARGS(MESSAGE_STR("dir", p->dir.path),
                                                       MESSAGE_STR("name", p->file)))
                         : fd;
}

static int unpack_hash_file(const struct rootdir *d, struct packlist_entry *e, struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir above = ROOTDIR_NONE;
    const char *slash = strrchr(e->path, '/');
    _cleanup_(freep) char *dir = xstrndup(e->path, slash ? (size_t)(slash - e->path) : 0);
    int r = slash ? rootdir_open_in(d, dir, 0, &above, err) : 0;
    return r < 0 ? r
                 : filehash_at(slash ? above.fd : d->fd, slash ? slash + 1 : e->path, e->size,
                               e->hash, err);
}

/* What now lies there against what the archive holds. */
static int unpack_verify(const struct jobarchive *a,
                         const struct rootdir *fresh,
                         const struct packlist *l,
                         struct err *err)
{
    _cleanup_(packlist_release) struct packlist now = {0};
    int r = packlist_gather(fresh, &a->limits, &now, err);
    for (size_t i = 0; r == 0 && i < now.n; i++) {
        if (a->limits.stop && *a->limits.stop)
            return message_refuse(err, -ECANCELED, "argusd_ends", MESSAGE_NO_ARGS);
        if (i >= l->n || now.v[i].size != l->v[i].size)
            break; /* it differs already, and how is said below */
        if (now.v[i].kind == PACKLIST_FILE)
            r = unpack_hash_file(fresh, &now.v[i], err);
    }
    if (r == 0)
        r = packlist_check_same(l, &now, PACKLIST_PLAIN, err);
    return r < 0 && r != -ECANCELED ? message_wrap(err, "unpacked_other") : r;
}

static int unpack_check_hash(const struct packlist *l, const char *hash, struct err *err)
{
    char is[HASH_HEX];
    return !strcmp(packlist_hash(l, is), hash)
               ? 0
               : message_refuse(err, ERR_REFUSED, "archive_was_changed", MESSAGE_NO_ARGS);
}

static int unpack_into(const struct jobarchive *a,
                       const struct jobarchive_place *p,
                       const char *hash,
                       struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir fresh = ROOTDIR_NONE;
    _cleanup_(packlist_release) struct packlist l = {0};
    _cleanup_(closep) int fd = unpack_open(p, err);
    if (fd < 0)
        return fd;
    int r = rootdir_make_new(&p->jobs, p->fresh, 0700, &fresh, err);
    if (r == 0)
        r = packtar_read(fd, a->id, &fresh, &a->limits, &l, err);
    jobarchive_step(a, "unpacked");
    if (r == 0)
        r = unpack_check_hash(&l, hash, err);
    if (r == 0)
        r = unpack_verify(a, &fresh, &l, err);
    if (r == 0 && syncfs(fresh.fd) < 0)
        r = message_refuse(err, -errno, "unpacked_no_sync",
                           MESSAGE_ARGS(MESSAGE_STR("why", strerror(errno))));
    return r;
}

int jobarchive_unpack(const struct jobarchive *a, const char *hash, struct err *err)
{
    _cleanup_(place_release) struct jobarchive_place p = PLACE_NONE;
    int r = place_open(a, &p, err);
    if (r == 0)
        r = place_remove(&p.jobs, p.fresh, err);
    return r == 0 ? unpack_into(a, &p, hash, err) : r;
}

int jobarchive_drop(const struct jobarchive *a, struct err *err)
{
    _cleanup_(place_release) struct jobarchive_place p = PLACE_NONE;
    int r = place_open(a, &p, err);
    return r == 0 ? place_remove(&p.jobs, p.fresh, err) : r;
}

/* ---- swap ---- */

static int swap_names(const struct jobarchive *a, const struct jobarchive_place *p, struct err *err)
{
    bool has_fresh = false, has_own = false;
    int r = rootdir_look_for(&p->jobs, p->fresh, &has_fresh, err);
    if (r == 0)
        r = rootdir_look_for(&p->jobs, a->id, &has_own, err);
    if (r < 0)
        return r;
    if (!has_fresh)
        return has_own ? 0 /* it was done before */
                       : message_refuse(err, -ENOENT, "unpacked_gone", MESSAGE_NO_ARGS);
    if (has_own)
        r = place_remove(&p->jobs, p->stub, err); /* left by a kill */
    if (r == 0 && has_own)
        r = rootdir_rename(&p->jobs, a->id, &p->jobs, p->stub, 0, err);
    jobarchive_step(a, "unstubbed");
    if (r == 0)
        r = rootdir_rename(&p->jobs, p->fresh, &p->jobs, a->id, 0, err);
    jobarchive_step(a, "swapped");
    return r == 0 ? jobarchive_sync(&p->jobs, err) : r;
}

int jobarchive_swap(const struct jobarchive *a, struct err *err)
{
    _cleanup_(place_release) struct jobarchive_place p = PLACE_NONE;
    int r = place_open(a, &p, err);
    if (r == 0)
        r = swap_names(a, &p, err);
    if (r == 0)
        r = place_remove(&p.jobs, p.stub, err);
    return r == 0 ? rootdir_unlink(&p.dir, p.file, err) : r;
}
