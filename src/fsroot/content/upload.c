/* SPDX-License-Identifier: Apache-2.0 */
/* upload.c - the file of an upload; see upload.h.
 *
 * Its size says nothing: a job may have made it larger, by terabytes without a byte on the disk.
 * What counts is what the caller knows; the rest is cut off and never read. */
#define _GNU_SOURCE
#include "fsroot/content/upload.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/message.h"
#include "base/str.h"
#include "fsroot/tree/dirtree.h"
#include "fsroot/tree/paths.h"
#include "fsroot/tree/root.h"
#include "fsroot/tree/rootfile.h"

#define UPLOADS "argus/uploads"
#define DATA "data"

enum {
    PUSH_BYTES = 8 << 20, /* so much is written back ahead of the sync */
    IDS_MAX = 100000
};

struct upload_file {
    char *root;
    struct rootdir dir; /* in which it lies */
    int fd;
    uint64_t offset, pushed;
    struct hash_running hash;    /* of what was written */
    struct upload_progress safe; /* of what was synced */
};

void upload_progress_init(struct upload_progress *p)
{
    p->synced = 0;
    hash_begin(&p->hash);
}

int upload_trouble(const char *root, int error, const char *what, struct err *err)
{
    if (error < 0)
        error = -error;
    switch (error) {
    case ENOSPC:
    case EDQUOT:
        return message_refuse(err, ERR_NO_SPACE, "root_full",
                              MESSAGE_ARGS(MESSAGE_STR("why", strerror(error))));
    case EFBIG:
        return message_refuse(err, ERR_NO_SPACE, "root_file_size",
                              MESSAGE_ARGS(MESSAGE_STR("why", strerror(error))));
    case ENOENT:
        return message_refuse(err, ERR_NOT_FOUND, "upload_bytes_gone",
                              MESSAGE_ARGS(MESSAGE_STR("verb", what)));
    }
    return message_refuse(
        err, ERR_UNAVAILABLE, "root_unusable",
        MESSAGE_ARGS(MESSAGE_STR("root", root), MESSAGE_STR("verb", what),
                     MESSAGE_STR("why", error == ELOOP
                                            ? "a link is in the way, and argusd follows none"
                                            : strerror(error))));
}

char *upload_path(const char *root, const char *id)
{
    return xasprintf("%s/" UPLOADS "/%s/" DATA, root, id);
}

/* ---- open ---- */

static int upload_open_dir(struct upload_file *f, const char *id, bool is_new, struct err *err)
{
    struct err why;
    if (is_new && fsroot_check_mounted(f->root, &why) < 0)
        return message_refuse(err, ERR_UNAVAILABLE, "shared_root_unavailable",
                              MESSAGE_ARGS(MESSAGE_ERR("why", &why)));
    _cleanup_(freep) char *path = xasprintf(UPLOADS "/%s", id);
    int r = rootdir_open(f->root, path, is_new ? 0700 : 0, &f->dir, NULL);
    return r < 0 ? upload_trouble(f->root, r, "open the directory of an upload", err) : 0;
}

static int upload_cut(struct upload_file *f, uint64_t to, struct err *err)
{
    if (ftruncate(f->fd, (off_t)to) < 0)
        return upload_trouble(f->root, errno, "cut an upload", err);
    return 0;
}

static int upload_go_on(struct upload_file *f, const struct upload_progress *from, struct err *err)
{
    struct stat st;
    if (fstat(f->fd, &st) < 0)
        return upload_trouble(f->root, errno, "look at an upload", err);
    uint64_t size = (uint64_t)st.st_size;
    if (from->synced <= size)
        f->safe = *from;
    f->offset = f->pushed = f->safe.synced;
    f->hash = f->safe.hash;
    return size > f->offset ? upload_cut(f, f->offset, err) : 0;
}

int upload_file_open(const char *root,
                     const char *id,
                     const struct upload_progress *from,
                     unsigned flags,
                     struct upload_file **ret,
                     struct err *err)
{
    bool is_new = flags & UPLOAD_FILE_NEW;
    struct upload_file *f = xcalloc(1, sizeof(*f));
    f->fd = f->dir.fd = -1;
    f->root = xstrdup(root);
    upload_progress_init(&f->safe);
    int r = upload_open_dir(f, id, is_new, err);
    if (r == 0) {
        f->fd = rootdir_open_for(&f->dir, DATA, O_RDWR | (is_new ? O_CREAT : 0), 0600, NULL);
        if (f->fd < 0)
            r = upload_trouble(root, f->fd, "open an upload", err);
    }
    if (r == 0)
        r = upload_go_on(f, from, err);
    if (r < 0) {
        upload_file_close(f);
        return r;
    }
    *ret = f;
    return 0;
}

void upload_file_close(struct upload_file *f)
{
    if (!f)
        return;
    closep(&f->fd);
    free(f->root);
    rootdir_release(&f->dir);
    free(f);
}

/* ---- add ---- */

uint64_t upload_file_offset(const struct upload_file *f)
{
    return f->offset;
}

uint64_t upload_file_synced(const struct upload_file *f)
{
    return f->safe.synced;
}

void upload_file_progress(const struct upload_file *f, struct upload_progress *ret)
{
    *ret = f->safe;
}

void upload_file_hash(const struct upload_file *f, char ret[static HASH_HEX])
{
    (void)hash_so_far_hex(&f->hash, ret); /* returns ret */
}

int upload_file_add(struct upload_file *f, const void *p, size_t n, struct err *err)
{
    int r = file_write_at(f->fd, f->offset, p, n);
    if (r < 0) {
        (void)upload_cut(f, f->offset, NULL); /* else the next open does */
        return upload_trouble(f->root, r, "write an upload", err);
    }
    hash_add(&f->hash, p, n);
    f->offset += n;
    if (f->offset - f->pushed >= PUSH_BYTES) {
        /* Begun now, so that the sync has less to wait for; it need not work. */
        (void)sync_file_range(f->fd, (off_t)f->pushed, (off_t)(f->offset - f->pushed),
                              SYNC_FILE_RANGE_WRITE);
        f->pushed = f->offset;
    }
    return 0;
}

int upload_file_sync(struct upload_file *f, struct err *err)
{
    if (fsync(f->fd) < 0)
        return upload_trouble(f->root, errno, "sync an upload", err);
    f->safe = (struct upload_progress){.synced = f->offset, .hash = f->hash};
    return 0;
}

/* ---- all of them ---- */

int upload_remove(const char *root, const char *id, struct err *err)
{
    if (!fsroot_is_name(id))
        return message_refuse(err, -EINVAL, "no_upload_id", MESSAGE_ARGS(MESSAGE_STR("text", id)));
    _cleanup_(rootdir_release) struct rootdir all = ROOTDIR_NONE;
    int r = rootdir_open(root, UPLOADS, 0, &all, NULL);
    if (r == 0)
        r = dirtree_remove_at(all.fd, id, NULL);
    return r == 0 || r == -ENOENT ? 0 : upload_trouble(root, r, "remove an upload", err);
}

int upload_list(const char *root, struct strv *ret, struct err *err)
{
    DIR *d = NULL;
    int r = rootfile_list(root, UPLOADS, &d, NULL);
    if (r < 0)
        return r == -ENOENT ? 0 : upload_trouble(root, r, "list the uploads", err);
    for (struct dirent *e; ret->n < IDS_MAX && (e = readdir(d));)
        if (fsroot_is_name(e->d_name))
            strv_add(ret, e->d_name);
    (void)closedir(d); /* it was only read */
    return 0;
}
