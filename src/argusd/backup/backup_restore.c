/* SPDX-License-Identifier: Apache-2.0 */
/* backup_restore.c - see backup_restore.h.
 *
 * Under the store's lock, so that no argusd runs: the backup is opened beside, looked at whole,
 * what is there now is moved into a directory of its own, and what was opened takes its place, the
 * store last. A kill in between leaves no store or the new one; the same command again ends it. */
#include "argusd/backup/backup_restore.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "argusd/backup/backupfile.h"
#include "argusd/ground/keyfile.h"
#include "base/file.h"
#include "base/str.h"
#include "fsroot/tree/dirtree.h"
#include "store/store.h"

struct restoring {
    const struct settings *settings;
    const struct restore_args *a;
    unsigned char key[SEAL_KEY_BYTES];
    char *opened, *aside; /* directories */
    const char *name;     /* of the backup that was opened */
    struct backup_files all;
    struct store_copied of;
};

static void restore_say(const char *sentence)
{
    (void)fprintf(stderr, "argusd restore: %s\n", sentence); /* nowhere else to say it */
}

static int restore_list(const struct backup_files *all)
{
    char at[CLOCK_TEXT_MAX];
    for (size_t i = 0; i < all->n; i++)
        (void)printf("%s  %s  %llu bytes\n", all->v[i].name, clock_to_string(all->v[i].at, at),
                     (unsigned long long)all->v[i].bytes); /* fflush tells */
    return fflush(stdout) ? 1 : 0;
}

static int restore_key(struct restoring *x, struct err *err)
{
    _cleanup_(freep) char *own = xasprintf("%s/backup.key", x->settings->state_dir);
    const char *path = x->a->key ? x->a->key : own;
    int r = keyfile_read(path, x->key, err);
    return r == -ENOENT ? err_set(err, ERR_USAGE,
                                  "'%s' is not there: name a copy of backup.key with --key", path)
                        : r;
}

/* The one that was named; else the newest that opens: those that do not are told. */
static int restore_open(struct restoring *x, struct err *err)
{
    const struct backup_place place = {.settings = x->settings, .key = x->key};
    int r = dirtree_remove(x->opened, err); /* of a kill */
    if (r < 0)
        return r;
    if (x->a->from) {
        x->name = x->a->from;
        return backup_open(&place, x->name, x->opened, &x->of, err);
    }
    for (size_t i = 0; i < x->all.n; i++) {
        x->name = x->all.v[i].name;
        if (backup_open(&place, x->name, x->opened, &x->of, err) == 0)
            return 0;
        restore_say(err->text);
    }
    return err_set(err, ERR_USAGE, x->all.n ? "none of the backups opens" : "there is no backup");
}

/* Moves what has this name, if anything has. */
static int restore_move(const char *from_dir, const char *to_dir, const char *name, struct err *err)
{
    _cleanup_(freep) char *from = xasprintf("%s/%s", from_dir, name);
    _cleanup_(freep) char *to = xasprintf("%s/%s", to_dir, name);
    if (rename(from, to) == 0 || errno == ENOENT)
        return 0;
    return err_set(err, -errno, "'%s' cannot be moved to '%s': %s", from, to, strerror(errno));
}

static int restore_put_aside(const struct restoring *x, struct err *err)
{
    static const char *const store[] = {BACKUP_STORE, BACKUP_STORE "-wal", BACKUP_STORE "-shm"};
    const char *dir = x->settings->state_dir;
    int r = file_mkdirs(x->aside, 0700, err);
    for (size_t i = 0; r == 0 && i < array_len(store); i++)
        r = restore_move(dir, x->aside, store[i], err);
    for (size_t i = 0; r == 0 && backup_kept[i]; i++) {
        _cleanup_(freep) char *ours = xasprintf("%s/%s", x->opened, backup_kept[i]);
        bool is_there = false;
        r = file_look_for(ours, &is_there, err);
        if (r == 0 && is_there)
            r = restore_move(dir, x->aside, backup_kept[i], err);
    }
    return r;
}

static int restore_put_in_place(const struct restoring *x, struct err *err)
{
    const char *dir = x->settings->state_dir;
    int r = 0;
    for (size_t i = 0; r == 0 && backup_kept[i]; i++)
        r = restore_move(x->opened, dir, backup_kept[i], err);
    if (r == 0)
        r = file_sync_directory(dir);
    if (r == 0)
        r = restore_move(x->opened, dir, BACKUP_STORE, err);
    return r == 0 ? file_sync_directory(dir) : r;
}

/* A key that was given stays: the next backups open with it, too. */
static int restore_keep_key(const struct restoring *x, struct err *err)
{
    _cleanup_(freep) char *path = xasprintf("%s/backup.key", x->settings->state_dir);
    return x->a->key ? keyfile_write(path, x->key, err) : 0;
}

static void restore_tell(const struct restoring *x)
{
    char at[CLOCK_TEXT_MAX];
    (void)printf("%s is in place: %lld jobs, %lld events, the last of them at %s.\n", x->name,
                 (long long)x->of.jobs, (long long)x->of.events,
                 x->of.last_at ? clock_to_string(x->of.last_at, at) : "no time");
    (void)printf("What was there is in %s.\n"
                 "What happened after the backup is not in it: 'argus cluster foreign' lists jobs "
                 "that run and are unknown.\n",
                 x->aside); /* fflush tells */
}

static int restore_run(struct restoring *x, struct err *err)
{
    int r = backup_list(x->settings, &x->all, err);
    if (r < 0 || x->a->list)
        return r < 0 ? r : restore_list(&x->all);
    r = restore_key(x, err);
    if (r == 0)
        r = restore_open(x, err);
    if (r == 0)
        r = restore_put_aside(x, err);
    if (r == 0)
        r = restore_keep_key(x, err);
    if (r == 0)
        r = restore_put_in_place(x, err);
    if (r < 0)
        return r;
    (void)dirtree_remove(x->opened, NULL); /* the next one removes it */
    restore_tell(x);
    return fflush(stdout) ? 1 : 0;
}

int backup_restore(const struct settings *s, const struct restore_args *a)
{
    struct err err = {0};
    struct restoring x = {.settings = s, .a = a};
    _cleanup_(freep) char *store = settings_store_path(s);
    _cleanup_(closep) int lock = -1;
    x.opened = xasprintf("%s/restore.opened", s->state_dir);
    x.aside =
        xasprintf("%s/before-restore-%lld", s->state_dir, (long long)(clock_wall() / USEC_SEC));
    int r = file_mkdirs(s->state_dir, 0700, &err);
    if (r == 0 && !a->list)
        r = store_lock(store, &lock, &err);
    if (r == 0)
        r = restore_run(&x, &err);
    seal_forget(x.key, sizeof(x.key));
    backup_files_release(&x.all);
    free(x.opened);
    free(x.aside);
    if (r < 0)
        restore_say(*err.text ? err.text : strerror(-r));
    return r < 0 ? 1 : r;
}
