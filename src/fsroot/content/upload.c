/* SPDX-License-Identifier: Apache-2.0 */
/* upload.c - the file of an upload and its resumable state; see upload.h.
 *
 * `state` is written after the data is synced, so it never says more than is there. A file that is
 * longer than its state was written by an argusd that died: the rest is hashed again from the
 * disk, or, when the machine itself started anew since, cut off. */
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

#include "base/clock.h"
#include "base/file.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "fsroot/tree/dirtree.h"
#include "fsroot/tree/paths.h"
#include "fsroot/tree/root.h"
#include "fsroot/tree/rootfile.h"

#define UPLOADS "argus/uploads"
#define DATA "data"
#define STATE "state"

enum {
    BLOCK_BYTES = 1 << 20,
    PUSH_BYTES = 8 << 20, /* so much is written back ahead of the sync */
    IDS_MAX = 100000
};

/* The state as it lies on the disk; only machines of one kind share it. */
struct saved {
    char magic[8];
    uint64_t synced;
    char boot_id[CLOCK_BOOT_ID_MAX];
    struct hash_running hash;
};
static const char magic[8] = "argusup1";

struct upload_file {
    char *root;
    struct rootdir dir; /* in which it lies */
    char boot_id[CLOCK_BOOT_ID_MAX];
    int fd;
    uint64_t offset, synced, pushed;
    struct hash_running hash;
};

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

static int upload_save(struct upload_file *f, struct err *err)
{
    struct saved s;
    memset(&s, 0, sizeof(s)); /* no stray bytes between the members */
    memcpy(s.magic, magic, sizeof(magic));
    memcpy(s.boot_id, f->boot_id, sizeof(s.boot_id));
    s.synced = f->synced;
    s.hash = f->hash;
    int r = rootdir_write(&f->dir, STATE, &s, sizeof(s), 0600, 0, NULL);
    return r < 0 ? upload_trouble(f->root, r, "keep the state of an upload", err) : 0;
}

/* *ret_is_ours false: there is no state, or one that we did not write. A read that fails is
 * neither: what came before is kept. */
static int upload_load(const struct upload_file *f,
                       struct saved *ret,
                       bool *ret_is_ours,
                       struct err *err)
{
    _cleanup_(buf_release) struct buf text = BUF_INIT(sizeof(*ret));
    int r = rootdir_read(&f->dir, STATE, &text, NULL);
    if (r < 0 && r != -ENOENT && r != -EMSGSIZE && r != -EINVAL && r != -ELOOP)
        return upload_trouble(f->root, r, "read the state of an upload", err);
    *ret_is_ours = false;
    if (r < 0 || text.len != sizeof(*ret))
        return 0;
    memcpy(ret, text.data, sizeof(*ret));
    *ret_is_ours = !memcmp(ret->magic, magic, sizeof(magic));
    return 0;
}

static int upload_cut(struct upload_file *f, uint64_t to, struct err *err)
{
    if (ftruncate(f->fd, (off_t)to) < 0)
        return upload_trouble(f->root, errno, "cut an upload", err);
    return 0;
}

/* What was written after the last sync. */
static int hash_rest(struct upload_file *f, uint64_t size, struct err *err)
{
    _cleanup_(freep) char *block = xmalloc(BLOCK_BYTES);
    while (f->offset < size) {
        ssize_t n = pread(f->fd, block, BLOCK_BYTES, (off_t)f->offset);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return upload_trouble(f->root, errno, "read an upload", err);
        if (n == 0)
            break; /* it got shorter: what is there counts */
        hash_add(&f->hash, block, (size_t)n);
        f->offset += (uint64_t)n;
    }
    return 0;
}

static int upload_go_on(struct upload_file *f, struct err *err)
{
    struct stat st;
    struct saved s;
    bool is_ours = false;
    if (fstat(f->fd, &st) < 0)
        return upload_trouble(f->root, errno, "look at an upload", err);
    uint64_t size = (uint64_t)st.st_size;
    int r = upload_load(f, &s, &is_ours, err);
    if (r < 0)
        return r;
    if (!is_ours || s.synced > size) {
        r = upload_cut(f, 0, err);
        return r < 0 ? r : upload_save(f, err);
    }
    f->offset = f->synced = s.synced;
    f->hash = s.hash;
    bool same_start = *f->boot_id && !memcmp(s.boot_id, f->boot_id, sizeof(s.boot_id));
    if (!same_start)
        return size > s.synced ? upload_cut(f, s.synced, err) : 0;
    return hash_rest(f, size, err);
}

int upload_file_open(const char *root,
                     const char *id,
                     const char *boot_id,
                     unsigned flags,
                     struct upload_file **ret,
                     struct err *err)
{
    bool is_new = flags & UPLOAD_FILE_NEW;
    struct upload_file *f = xcalloc(1, sizeof(*f));
    f->fd = f->dir.fd = -1;
    f->root = xstrdup(root);
    text_copy(f->boot_id, boot_id);
    hash_begin(&f->hash);
    int r = upload_open_dir(f, id, is_new, err);
    if (r == 0) {
        f->fd = rootdir_open_for(&f->dir, DATA, O_RDWR | (is_new ? O_CREAT : 0), 0600, NULL);
        if (f->fd < 0)
            r = upload_trouble(root, f->fd, "open an upload", err);
    }
    if (r == 0)
        r = upload_go_on(f, err);
    f->pushed = f->offset;
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
    return f->synced;
}

void upload_file_hash(const struct upload_file *f, char ret[static HASH_HEX])
{
    (void)hash_so_far_hex(&f->hash, ret); /* returns ret */
}

int upload_file_add(struct upload_file *f, const void *p, size_t n, struct err *err)
{
    int r = file_write_at(f->fd, f->offset, p, n);
    if (r < 0) {
        (void)upload_cut(f, f->offset,
                         NULL); /* else the next open hashes what is there, and is right too */
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
    f->synced = f->offset;
    return upload_save(f, err);
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
