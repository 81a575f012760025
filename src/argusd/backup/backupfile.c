/* SPDX-License-Identifier: Apache-2.0 */
/* backupfile.c - see backupfile.h. The scratch is a directory of state_dir that nobody else opens:
 * it holds the store and the keys in the clear until the backup is sealed. */
#include "argusd/backup/backupfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "argusd/ground/keyfile.h"
#include "base/file.h"
#include "base/json.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "base/version.h"
#include "fsroot/archive/packtar.h"
#include "fsroot/tree/dirtree.h"

#define BACKUP_BEGINS "argus-"
#define BACKUP_ENDS ".backup"
#define BACKUP_TREE "argus-backup"
enum { BACKUP_STAMP = sizeof("20261126T213000Z") - 1, KEPT_MAX = 4 << 20, ENTRIES_MAX = 64 };
static const uint64_t BACKUP_BYTES_MAX = (uint64_t)1 << 40;

const char *const backup_kept[] = {"secrets.key", "serve.key", "known_hosts", NULL};

void backup_files_release(struct backup_files *f)
{
    free(f->v);
    *f = (struct backup_files){0};
}

int backup_need_key(const struct settings *s,
                    unsigned char ret[static SEAL_KEY_BYTES],
                    struct err *err)
{
    _cleanup_(freep) char *path = xasprintf("%s/backup.key", s->state_dir);
    bool is_there = false;
    int r = file_look_for(path, &is_there, err);
    if (r < 0) /* it may be there: another key over it would open none of the backups */
        return r;
    return is_there ? keyfile_read(path, ret, err) : keyfile_make(path, ret, err);
}

/* ---- names ---- */

static void backup_name(usec_t at, char ret[static BACKUP_NAME_MAX])
{
    time_t t = (time_t)(at / USEC_SEC);
    struct tm tm;
    char stamp[BACKUP_STAMP + 1];
    (void)gmtime_r(&t, &tm); /* a year that no clock here has is its only failure */
    (void)strftime(stamp, sizeof(stamp), "%Y%m%dT%H%M%SZ", &tm);                 /* fits */
    (void)snprintf(ret, BACKUP_NAME_MAX, BACKUP_BEGINS "%s" BACKUP_ENDS, stamp); /* fits */
}

static bool backup_read_name(const char *name, usec_t *ret_at)
{
    struct tm tm = {0};
    if (!str_starts(name, BACKUP_BEGINS))
        return false;
    const char *end = strptime(name + sizeof(BACKUP_BEGINS) - 1, "%Y%m%dT%H%M%SZ", &tm);
    if (!end || strcmp(end, BACKUP_ENDS) != 0 ||
        end - name != sizeof(BACKUP_BEGINS) - 1 + BACKUP_STAMP)
        return false;
    *ret_at = (usec_t)timegm(&tm) * USEC_SEC;
    return true;
}

/* ---- the directory ---- */

static int backup_dir(const struct settings *s, bool make, struct rootdir *ret, struct err *err)
{
    if (s->backup_dir)
        return rootdir_open(s->backup_dir, "", 0, ret, err);
    return rootdir_open(s->shared_root, "argus/backup", make ? 0700 : 0, ret, err);
}

static int backup_compare(const void *x, const void *y)
{
    const struct backup_file *a = x, *b = y;
    return a->at == b->at ? 0 : a->at < b->at ? 1 : -1;
}

static int backup_list_in(const struct rootdir *at, struct backup_files *ret, struct err *err)
{
    DIR *names = NULL;
    struct backup_files out = {0};
    size_t cap = 0;
    int r = rootdir_list(at, &names, err);
    if (r < 0)
        return r;
    for (const struct dirent *e; out.n < BACKUPS_MAX && (e = readdir(names));) {
        struct backup_file f = {0};
        struct stat st;
        if (!backup_read_name(e->d_name, &f.at))
            continue;
        r = rootdir_look(at, e->d_name, &st);
        if (r < 0 && !file_is_absence(r))
            break;
        if (r < 0 || !S_ISREG(st.st_mode))
            continue;
        text_copy(f.name, e->d_name);
        f.bytes = (uint64_t)st.st_size;
        if (out.n == cap)
            out.v = xrealloc(out.v, cap = cap ? 2 * cap : 64, sizeof(*out.v));
        out.v[out.n++] = f;
    }
    (void)closedir(names);              /* it was for reading */
    if (r < 0 && !file_is_absence(r)) { /* a list without it would have others removed */
        free(out.v);
        return message_refuse(
            err, r, "disk_no_list",
            MESSAGE_ARGS(MESSAGE_STR("path", at->path), MESSAGE_STR("why", strerror(-r))));
    }
    xsort(out.v, out.n, sizeof(*out.v), backup_compare);
    *ret = out;
    return 0;
}

int backup_list(const struct settings *s, struct backup_files *ret, struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir at = ROOTDIR_NONE;
    int r = backup_dir(s, false, &at, err);
    if (r == -ENOENT && !s->backup_dir) {
        *ret = (struct backup_files){0};
        return 0;
    }
    return r < 0 ? r : backup_list_in(&at, ret, err);
}

static void backup_prune(const struct settings *s, const struct rootdir *at)
{
    struct backup_files all = {0};
    if (backup_list_in(at, &all, NULL) < 0)
        return; /* another time */
    for (size_t i = (size_t)s->backup_keep; i < all.n; i++)
        (void)rootdir_unlink(at, all.v[i].name, NULL); /* it is met again */
    backup_files_release(&all);
}

/* ---- making ---- */

struct making {
    const struct backup_place *p;
    char *scratch, *tree; /* the second in the first */
    struct packlist list;
    int packed; /* the tar, not sealed yet */
};

static int scratch_file(const struct making *m, const char *name, int *ret, struct err *err)
{
    _cleanup_(freep) char *path = xasprintf("%s/%s", m->scratch, name);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0)
        return err_set(err, -errno, "'%s' cannot be written: %s", path, strerror(errno));
    *ret = fd;
    return 0;
}

static int making_keep(const struct making *m, const char *name, struct err *err)
{
    struct buf text = BUF_INIT(KEPT_MAX);
    _cleanup_(freep) char *from = xasprintf("%s/%s", m->p->settings->state_dir, name);
    _cleanup_(freep) char *to = xasprintf("%s/%s", m->tree, name);
    int r = file_read(from, &text, err);
    if (r == 0)
        r = file_write_private(to, buf_str(&text), text.len, err);
    seal_forget(text.data, text.len);
    buf_release(&text);
    return r == -ENOENT ? 0 : r;
}

static int making_say(const struct making *m,
                      usec_t now,
                      const struct store_copied *of,
                      struct err *err)
{
    struct buf out = BUF_INIT(4096);
    struct jout j = jout_begin(&out);
    _cleanup_(freep) char *path = xasprintf("%s/backup.json", m->tree);
    char at[CLOCK_TEXT_MAX];
    jout_open(&j, NULL, '{');
    jout_str(&j, "taken_at", clock_to_string(now, at));
    jout_str(&j, "argusd", ARGUS_VERSION);
    jout_int(&j, "schema", of->schema);
    jout_int(&j, "jobs", of->jobs);
    jout_int(&j, "events", of->events);
    jout_int(&j, "last_event", of->last_event);
    jout_close(&j, '}');
    int r = file_write_private(path, buf_str(&out), out.len, err);
    buf_release(&out);
    return r;
}

static int making_gather(struct making *m, usec_t now, struct store_copied *of, struct err *err)
{
    const struct settings *s = m->p->settings;
    _cleanup_(freep) char *store = settings_store_path(s);
    _cleanup_(freep) char *copy = xasprintf("%s/" BACKUP_STORE, m->tree);
    _cleanup_(freep) char *config = xasprintf("%s/argus.yaml", m->tree);
    int r = file_mkdirs(m->tree, 0700, err);
    if (r == 0)
        r = store_copy(store, copy, err);
    if (r == 0)
        r = store_copy_check(copy, of, err);
    for (size_t i = 0; r == 0 && backup_kept[i]; i++)
        r = making_keep(m, backup_kept[i], err);
    if (r == 0)
        r = file_write_private(config, s->text, strlen(s->text), err);
    return r < 0 ? r : making_say(m, now, of, err);
}

static struct packlist_limits backup_limits(const struct backup_place *p)
{
    return (struct packlist_limits){
        .bytes = BACKUP_BYTES_MAX, .entries = ENTRIES_MAX, .stop = p->stop};
}

static int making_pack(struct making *m, struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir tree = ROOTDIR_NONE;
    struct packlist_limits limits = backup_limits(m->p);
    int r = rootdir_open(m->scratch, "tree", 0, &tree, err);
    if (r == 0)
        r = packlist_gather(&tree, &limits, &m->list, err);
    if (r == 0)
        r = scratch_file(m, "packed", &m->packed, err);
    if (r == 0)
        r = packtar_write(&tree, &m->list, BACKUP_TREE, m->packed, limits.stop, err);
    return r;
}

/* What a sealed file holds, as a tar: a descriptor that stands at its beginning. */
static int backup_unseal(const struct backup_place *p,
                         const struct rootdir *at,
                         const char *file,
                         const char *name,
                         int to,
                         struct err *err)
{
    _cleanup_(closep) int fd = rootdir_open_file(at, file, err);
    if (fd < 0)
        return fd;
    int r = sealfile_open(p->key, name, fd, to, BACKUP_BYTES_MAX, err);
    if (r == 0 && lseek(to, 0, SEEK_SET) < 0)
        r = -errno;
    return r;
}

/* It is read again from where it lies, and is what went in. */
static int making_verify(const struct making *m,
                         const struct rootdir *at,
                         const char *file,
                         const char *name,
                         struct err *err)
{
    _cleanup_(closep) int tar = -1;
    struct packlist read = {0};
    struct packlist_limits limits = backup_limits(m->p);
    int r = scratch_file(m, "read", &tar, err);
    if (r == 0)
        r = backup_unseal(m->p, at, file, name, tar, err);
    if (r == 0)
        r = packtar_read(tar, BACKUP_TREE, NULL, &limits, &read, err);
    if (r == 0)
        r = packlist_check_same(&m->list, &read, PACKLIST_PLAIN, err);
    packlist_release(&read);
    return r;
}

static int making_seal(const struct making *m,
                       const struct rootdir *at,
                       struct backup_file *f,
                       struct err *err)
{
    static const char unfinished[] = ".unfinished";
    bool is_taken = true;
    int r = rootdir_look_for(at, f->name, &is_taken, err);
    for (; r == 0 && is_taken; f->at += USEC_SEC) { /* a second has one name */
        backup_name(f->at + USEC_SEC, f->name);
        r = rootdir_look_for(at, f->name, &is_taken, err);
    }
    if (r < 0)
        return r;
    (void)rootdir_unlink(at, unfinished, NULL); /* of a kill; else the next line tells */
    _cleanup_(closep) int fd =
        rootdir_open_for(at, unfinished, O_WRONLY | O_CREAT | O_EXCL, 0600, err);
    if (fd < 0)
        return fd;
    if (lseek(m->packed, 0, SEEK_SET) < 0)
        return -errno;
    r = sealfile_close(m->p->key, f->name, m->packed, fd, m->p->stop, &f->bytes, err);
    if (r == 0 && fsync(fd) < 0)
        r = err_set(err, -errno, "'%s' cannot be written: %s", f->name, strerror(errno));
    if (r == 0)
        r = making_verify(m, at, unfinished, f->name, err);
    if (r == 0)
        r = rootdir_rename(at, unfinished, at, f->name, 0, err);
    if (r == 0 && fsync(at->fd) < 0)
        r = err_set(err, -errno, "'%s' cannot be written: %s", at->path, strerror(errno));
    if (r < 0)
        (void)rootdir_unlink(at, unfinished, NULL); /* the next one removes it */
    return r;
}

static int making_run(struct making *m,
                      usec_t now,
                      struct backup_file *f,
                      struct store_copied *of,
                      struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir at = ROOTDIR_NONE;
    int r = backup_dir(m->p->settings, true, &at, err);
    if (r == 0)
        r = making_gather(m, now, of, err);
    if (r == 0)
        r = making_pack(m, err);
    if (r == 0)
        r = making_seal(m, &at, f, err);
    if (r == 0)
        backup_prune(m->p->settings, &at);
    return r;
}

int backup_make(const struct backup_place *p,
                usec_t now,
                struct backup_file *ret,
                struct store_copied *ret_of,
                struct err *err)
{
    struct making m = {.p = p, .packed = -1};
    struct backup_file f = {.at = now - now % USEC_SEC};
    struct store_copied of = {0};
    backup_name(now, f.name);
    m.scratch = xasprintf("%s/backup.scratch", p->settings->state_dir);
    m.tree = xasprintf("%s/tree", m.scratch);
    int r = dirtree_remove(m.scratch, err); /* of a kill */
    if (r == 0)
        r = making_run(&m, now, &f, &of, err);
    closep(&m.packed);
    (void)dirtree_remove(m.scratch, NULL); /* the next one removes it */
    packlist_release(&m.list);
    free(m.tree);
    free(m.scratch);
    if (r == 0) {
        *ret = f;
        *ret_of = of;
    }
    return r;
}

/* ---- opening ---- */

static int open_into(const struct backup_place *p,
                     const char *name,
                     const char *into,
                     int tar,
                     struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir at = ROOTDIR_NONE, dir = ROOTDIR_NONE;
    struct packlist list = {0};
    struct packlist_limits limits = backup_limits(p);
    int r = backup_dir(p->settings, false, &at, err);
    if (r == 0)
        r = backup_unseal(p, &at, name, name, tar, err);
    if (r == 0)
        r = file_mkdirs(into, 0700, err);
    if (r == 0)
        r = rootdir_open(into, "", 0, &dir, err);
    if (r == 0)
        r = packtar_read(tar, BACKUP_TREE, &dir, &limits, &list, err);
    packlist_release(&list);
    return r;
}

int backup_open(const struct backup_place *p,
                const char *name,
                const char *into,
                struct store_copied *ret_of,
                struct err *err)
{
    usec_t at;
    struct err why = {0};
    _cleanup_(freep) char *tar_path = xasprintf("%s.tar", into);
    _cleanup_(freep) char *store = xasprintf("%s/" BACKUP_STORE, into);
    if (!backup_read_name(name, &at))
        return message_refuse(err, ERR_REFUSED, "backup_no_name",
                              MESSAGE_ARGS(MESSAGE_STR("name", name)));
    (void)unlink(tar_path); /* of a kill; else the next line tells */
    _cleanup_(closep) int tar = open(tar_path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int r = tar < 0 ? err_set(&why, -errno, "'%s' cannot be written: %s", tar_path, strerror(errno))
                    : open_into(p, name, into, tar, &why);
    if (r == 0)
        r = store_copy_check(store, ret_of, &why);
    (void)unlink(tar_path); /* it may not be there */
    if (r == 0)
        return 0;
    (void)dirtree_remove(into, NULL); /* the next one is told */
    return message_refuse(err, ERR_REFUSED, "backup_no_open",
                          MESSAGE_ARGS(MESSAGE_STR("name", name), MESSAGE_ERR("why", &why)));
}
