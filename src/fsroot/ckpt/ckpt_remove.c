/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt_remove.c - takes checkpoints away, and makes a directory ready to be gone on from; see
 * ckpt.h.
 *
 *   global_step_30 ─ rename ─▶ .argus-gone-30.<n> ─ remove ─▶ nothing
 *   a torn one     ─ rename ─▶ .argus-torn-30.<n>, which goes with the next that is removed
 *
 * A kill between the two leaves a name that training does not know and that goes at the next call.
 * The tracker is replaced by rename as well: it names the old or the new step, and never half. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "base/strv.h"
#include "base/text.h"
#include "fsroot/ckpt/ckpt_dir.h"
#include "fsroot/tree/dirtree.h"

enum { NAMES_MAX = 1000, TRIES = 100 };

static int names_of_gone(int dir, bool with_torn, struct strv *ret, struct err *err)
{
    DIR *d = NULL;
    int r = ckpt_dir_list(dir, &d, err);
    if (r < 0 || !d)
        return r;
    for (struct dirent *e; ret->n < NAMES_MAX && (e = readdir(d));)
        if (str_starts(e->d_name, CKPT_GONE_PREFIX) ||
            (with_torn && str_starts(e->d_name, CKPT_TORN_PREFIX)))
            strv_add(ret, e->d_name);
    (void)closedir(d); /* it was only read */
    return 0;
}

int ckpt_dir_sweep(int dir, bool with_torn, struct err *err)
{
    struct strv names = {0};
    int r = names_of_gone(dir, with_torn, &names, err);
    for (size_t i = 0; i < names.n; i++) {
        int one = dirtree_remove_at(dir, names.v[i], r == 0 ? err : NULL);
        r = r == 0 ? one : r;
    }
    strv_release(&names);
    return r;
}

int ckpt_sweep(const char *root, const char *job, bool with_torn, struct err *err)
{
    _cleanup_(closep) int dir = ckpt_dir_open(root, job, err);
    if (dir == -ENOENT)
        return 0;
    return dir < 0 ? dir : ckpt_dir_sweep(dir, with_torn, err);
}

int ckpt_dir_rename_away(int dir, const char *name, const char *prefix, const char *label)
{
    for (int k = 1; k <= TRIES; k++) {
        char gone[64];
        text_printf(gone, "%s%s.%d", prefix, label, k);
        if (renameat2(dir, name, dir, gone, RENAME_NOREPLACE) == 0)
            return 0;
        if (errno == EINVAL || errno == ENOSYS) { /* NFS knows no flags */
            if (faccessat(dir, gone, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
                continue;
            if (errno != ENOENT) /* a rename would lose what may have the name */
                return -errno;
            return renameat(dir, name, dir, gone) == 0 ? 0 : -errno;
        }
        if (errno != EEXIST)
            return -errno;
    }
    return -EBUSY;
}

static int ckpt_remove_put_away(int dir, int64_t step, const char *prefix, struct err *err)
{
    char name[32], label[24];
    ckpt_dir_name(step, name, sizeof(name));
    text_printf(label, "%" PRId64, step);
    int r = ckpt_dir_rename_away(dir, name, prefix, label);
    if (r < 0 && r != -ENOENT)
        return message_refuse(
            err, r, "disk_no_rename",
            MESSAGE_ARGS(MESSAGE_STR("path", name), MESSAGE_STR("why", strerror(-r))));
    (void)fsync(
        dir); /* otherwise a power cut may bring the whole checkpoint back, which is harmless */
    return 0;
}

int ckpt_remove(const char *root, const char *job, int64_t step, struct err *err)
{
    int64_t named = 0;
    _cleanup_(closep) int dir = ckpt_dir_open(root, job, err);
    if (dir == -ENOENT)
        return 0;
    int r = dir < 0 ? dir : ckpt_dir_tracker(dir, &named, err);
    if (r < 0)
        return r;
    if (named == step)
        return message_refuse(err, -EBUSY, "ckpt_is_named",
                              MESSAGE_ARGS(MESSAGE_NUM("step", step)));
    r = ckpt_dir_unpin(dir, step, err);
    if (r == 0)
        r = ckpt_remove_put_away(dir, step, CKPT_GONE_PREFIX, err);
    if (r < 0)
        return r;
    return ckpt_dir_sweep(dir, true, err) <
           0; /* a file that is open on an NFS client stays for a while */
}

/* ---- before it is gone on from ---- */

static int write_tracker(int dir, int64_t step, struct err *err)
{
    static const char fresh[] = ".argus-tracker"; /* not swept by a removal that runs meanwhile */
    char text[24];
    int n = snprintf(text, sizeof(text), "%" PRId64, step); /* fits */
    if (unlinkat(dir, fresh, 0) < 0 && errno != ENOENT)
        return message_refuse(err, -errno, "ckpt_tracker_no_write",
                              MESSAGE_ARGS(MESSAGE_STR("why", strerror(errno))));
    _cleanup_(closep) int fd =
        openat(dir, fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    int r = fd < 0 ? -errno : file_write_all(fd, text, (size_t)n);
    if (r == 0 && fsync(fd) < 0)
        r = -errno;
    if (r == 0 && renameat(dir, fresh, dir, CKPT_TRACKER) < 0)
        r = -errno;
    return r < 0 ? message_refuse(err, r, "ckpt_tracker_no_write",
                                  MESSAGE_ARGS(MESSAGE_STR("why", strerror(-r))))
                 : 0;
}

static int settle_tracker(int dir, int64_t named, int64_t step, struct err *err)
{
    if (named == step)
        return 0;
    if (step)
        return write_tracker(dir, step, err);
    int r = ckpt_dir_rename_away(dir, CKPT_TRACKER, CKPT_TORN_PREFIX, "tracker");
    return r == 0 || r == -ENOENT ? 0
                                  : message_refuse(err, r, "ckpt_tracker_no_remove",
                                                   MESSAGE_ARGS(MESSAGE_STR("why", strerror(-r))));
}

/* The tracker goes first: a kill after it leaves torn checkpoints that no tracker names. */
static int ckpt_remove_settle(int dir, const struct ckpt_list *l, int64_t step, struct err *err)
{
    int r = settle_tracker(dir, l->tracker, step, err);
    for (size_t i = 0; r == 0 && i < l->n; i++)
        if (l->v[i].step > step)
            r = ckpt_remove_put_away(dir, l->v[i].step, CKPT_TORN_PREFIX, err);
    return r;
}

/* True if training finished a checkpoint newer than this step that cannot be judged here. */
static bool is_strange(const struct ckpt_list *l, int64_t step)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].strange && l->v[i].step > step && l->v[i].step <= l->tracker)
            return true;
    return l->cut && l->tracker > step;
}

static void ckpt_tell_torn(const struct ckpt_list *l, int64_t step, struct ckpt_torn *ret)
{
    const struct ckpt *newest = l->n ? &l->v[l->n - 1] : NULL;
    if (newest && newest->step > step) {
        ret->step = newest->step;
        text_copy(ret->why, newest->why);
    }
}

int ckpt_settle(const char *root,
                const char *job,
                const struct ckpt_list *known,
                int64_t *ret,
                struct ckpt_torn *ret_torn,
                struct err *err)
{
    struct ckpt_list l = {0};
    *ret_torn = (struct ckpt_torn){0};
    _cleanup_(closep) int dir = ckpt_dir_open(root, job, err);
    if (dir == -ENOENT) {
        *ret = 0;
        return 0;
    }
    int r = dir < 0 ? dir : ckpt_dir_settle_pins(dir, err);
    if (r == 0)
        r = ckpt_look(root, job, known, 0, CKPT_LOOK_FRESH, &l, err);
    if (r < 0)
        return r;
    const struct ckpt *newest = ckpt_list_newest(&l);
    int64_t step = newest ? newest->step : 0;
    if (is_strange(&l, step)) {
        step = 0;
    } else {
        ckpt_tell_torn(&l, step, ret_torn);
        r = ckpt_remove_settle(dir, &l, step, err);
    }
    ckpt_list_release(&l);
    if (r == 0)
        *ret = step;
    return r;
}
