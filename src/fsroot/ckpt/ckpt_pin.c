/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt_pin.c - second names for checkpoints that training must not take away; see ckpt.h.
 *
 *   global_step_10/actor/… ─ hard links ─▶ .argus-pin-<attempt>-10/actor/…
 *
 * verl keeps a list of what it saved, removes its oldest by name and forgets it then. What it
 * removed has its names again with the next look, from the pin. A pin is of one attempt: the next
 * one has forgotten what this one saved, and may write those steps anew. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/message.h"
#include "base/str.h"
#include "base/strv.h"
#include "base/text.h"
#include "fsroot/ckpt/ckpt_dir.h"
#include "fsroot/tree/dirtree.h"

#define PIN_PREFIX ".argus-pin-"
/* A pin that is being made; a sweep removes it. */
#define FRESH_PREFIX CKPT_GONE_PREFIX "pin-"

enum { DEPTH_MAX = 4, PINS_MAX = 1000, NAME_BYTES = 64 };

static void pin_name(const char *prefix, int attempt, int64_t step, char ret[static NAME_BYTES])
{
    text_printf_to(ret, NAME_BYTES, "%s%d-%" PRId64, prefix, attempt, step);
}

struct pin {
    int64_t attempt, step;
};

/* False: it is no pin's name. */
static bool ckpt_pin_read_name(const char *name, struct pin *ret)
{
    char k[16];
    if (!str_starts(name, PIN_PREFIX))
        return false;
    const char *at = name + strlen(PIN_PREFIX), *dash = strchr(at, '-');
    if (!dash || (size_t)(dash - at) >= sizeof(k))
        return false;
    text_printf(k, "%.*s", (int)(dash - at), at);
    return str_to_int(k, 0, INT32_MAX, &ret->attempt, NULL) == 0 &&
           str_to_int(dash + 1, 1, INT32_MAX, &ret->step, NULL) == 0;
}

static int list_pins(int dir, struct strv *ret, struct err *err)
{
    struct pin pin;
    DIR *d = NULL;
    int r = ckpt_dir_list(dir, &d, err);
    if (r < 0 || !d)
        return r;
    errno = 0;
    for (struct dirent *e; ret->n < PINS_MAX && (e = readdir(d)); errno = 0)
        if (ckpt_pin_read_name(e->d_name, &pin))
            strv_add(ret, e->d_name);
    int error = errno;
    (void)closedir(d); /* it was only read */
    return error ? message_refuse(err, -error, "ckpt_no_list",
                                  MESSAGE_ARGS(MESSAGE_STR("why", strerror(error))))
                 : 0;
}

/* ---- links ---- */

static int link_below(int from, int to, const char *name, int depth);

/* from is taken. Every file that is there and is not in `to` has a name there, too. */
static int link_all(int from, int to, int depth)
{
    DIR *d = fdopendir(from);
    int r = 0;
    if (!d) {
        r = -errno;
        (void)close(from); /* it was only opened */
        return r;
    }
    errno = 0;
    for (struct dirent *e; r == 0 && (e = readdir(d)); errno = 0)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            r = link_below(dirfd(d), to, e->d_name, depth);
    if (r == 0)
        r = -errno;
    (void)closedir(d); /* it was only read */
    return r;
}

static int link_below(int from, int to, const char *name, int depth)
{
    struct stat st;
    if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    if (S_ISREG(st.st_mode))
        return linkat(from, name, to, name, 0) == 0 || errno == EEXIST ? 0 : -errno;
    if (!S_ISDIR(st.st_mode) || depth >= DEPTH_MAX)
        return 0; /* no file of a checkpoint */
    if (mkdirat(to, name, st.st_mode & 0777) < 0 && errno != EEXIST)
        return -errno;
    int source = openat(from, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (source < 0)
        return -errno;
    _cleanup_(closep) int target =
        openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (target < 0) {
        int error = errno;
        (void)close(source); /* it was only opened */
        return -error;
    }
    return link_all(source, target, depth + 1);
}

/* ---- making ---- */

static int pin_one(int dir, int attempt, int64_t step, struct err *err)
{
    char name[32], pin[NAME_BYTES], fresh[NAME_BYTES];
    ckpt_dir_name(step, name, sizeof(name));
    pin_name(PIN_PREFIX, attempt, step, pin);
    pin_name(FRESH_PREFIX, attempt, step, fresh);
    if (faccessat(dir, pin, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    if (errno != ENOENT)
        return message_refuse(
            err, -errno, "disk_no_look",
            MESSAGE_ARGS(MESSAGE_STR("path", pin), MESSAGE_STR("why", strerror(errno))));
    int r = dirtree_remove_at(dir, fresh, err); /* of a crash */
    if (r < 0)
        return r;
    if (mkdirat(dir, fresh, 0755) < 0)
        return message_refuse(
            err, -errno, "disk_no_make",
            MESSAGE_ARGS(MESSAGE_STR("path", fresh), MESSAGE_STR("why", strerror(errno))));
    int from = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    _cleanup_(closep) int to = openat(dir, fresh, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (from < 0 || to < 0) {
        r = -errno;
        closep(&from);
    } else {
        r = link_all(from, to, 0);
    }
    if (r == 0 && renameat(dir, fresh, dir, pin) < 0)
        r = -errno;
    if (r == 0)
        return 0;
    (void)dirtree_remove_at(dir, fresh, NULL); /* else the sweep takes it */
    return message_refuse(
        err, r, "ckpt_no_pin",
        MESSAGE_ARGS(MESSAGE_NUM("step", step), MESSAGE_STR("why", strerror(-r))));
}

static bool is_among(int64_t step, const int64_t *steps, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (step == steps[i])
            return true;
    return false;
}

/* No pin any more; a sweep frees what is left of it. */
static int ckpt_pin_drop(int dir, const char *name, struct err *err)
{
    int r = ckpt_dir_rename_away(dir, name, CKPT_GONE_PREFIX, name + 1);
    return r == 0 || r == -ENOENT ? 0
                                  : message_refuse(err, r, "disk_no_rename",
                                                   MESSAGE_ARGS(MESSAGE_STR("path", name),
                                                                MESSAGE_STR("why", strerror(-r))));
}

/* ---- what they are for ---- */

/* -ENOENT: the pin is gone, or the restored files are being removed by another process. */
static int put_back_one(int dir, const char *pin, int64_t step)
{
    char name[32];
    ckpt_dir_name(step, name, sizeof(name));
    int from = openat(dir, pin, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (from < 0)
        return -errno;
    int made = mkdirat(dir, name, 0755) < 0 && errno != EEXIST ? -errno : 0;
    _cleanup_(closep) int to =
        made < 0 ? -1 : openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (to < 0) {
        int r = made < 0 ? made : -errno;
        (void)close(from); /* it was only opened */
        return r;
    }
    return link_all(from, to, 0);
}

/* Tells the first failure of many. */
static int tell_not_back(int before, int r, int64_t step, struct err *err)
{
    if (before < 0)
        return before;
    return message_refuse(
        err, r, "ckpt_no_back",
        MESSAGE_ARGS(MESSAGE_NUM("step", step), MESSAGE_STR("why", strerror(-r))));
}

int ckpt_put_back(const char *root, const char *job, int attempt, struct err *err)
{
    struct strv names = {0};
    _cleanup_(closep) int dir = ckpt_dir_open(root, job, err);
    if (dir == -ENOENT)
        return 0;
    int r = dir < 0 ? dir : list_pins(dir, &names, err);
    for (size_t i = 0; i < names.n; i++) {
        struct pin pin;
        if (!ckpt_pin_read_name(names.v[i], &pin) || pin.attempt != attempt)
            continue;
        int one = put_back_one(dir, names.v[i], pin.step);
        if (one < 0 && one != -ENOENT)
            r = tell_not_back(r, one, pin.step, err);
    }
    strv_release(&names);
    return r;
}

int ckpt_dir_settle_pins(int dir, struct err *err)
{
    struct strv names = {0};
    int r = list_pins(dir, &names, err);
    for (size_t i = 0; i < names.n; i++) {
        struct pin pin;
        if (!ckpt_pin_read_name(names.v[i], &pin))
            continue;
        int one = put_back_one(dir, names.v[i], pin.step);
        if (one < 0 && faccessat(dir, names.v[i], F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT)
            continue; /* a look that was under way dropped it */
        if (one < 0)
            r = tell_not_back(r, one, pin.step, err);
        else
            one = ckpt_pin_drop(dir, names.v[i], r == 0 ? err : NULL);
        r = r == 0 ? one : r;
    }
    strv_release(&names);
    return r;
}

/* Whose own names hold what it holds. */
static bool ckpt_pin_is_spare(int dir,
                              const char *name,
                              const struct pin *pin,
                              const struct ckpt_pins *p)
{
    char own[32];
    if (is_among(pin->step, p->spare, p->n_spare) ||
        is_among(pin->step, p->needed, p->n_needed)) /* it has a pin of the attempt that runs */
        return true;
    ckpt_dir_name(pin->step, own, sizeof(own));
    /* What is there may be another's, half written: it is not mixed with that. */
    return faccessat(dir, own, F_OK, AT_SYMLINK_NOFOLLOW) < 0 && errno == ENOENT &&
           put_back_one(dir, name, pin->step) == 0;
}

/* 1: it stays and is not needed. */
static int drop_spare(int dir,
                      const char *name,
                      int attempt,
                      const struct ckpt_pins *p,
                      struct err *err)
{
    struct pin pin;
    if (!ckpt_pin_read_name(name, &pin) || pin.attempt > attempt)
        return 0;
    bool is_own = pin.attempt == attempt;
    if (is_own && is_among(pin.step, p->needed, p->n_needed))
        return 0;
    if (is_own ? is_among(pin.step, p->spare, p->n_spare) : ckpt_pin_is_spare(dir, name, &pin, p))
        return ckpt_pin_drop(dir, name, err);
    return 1;
}

int ckpt_pin(const char *root,
             const char *job,
             int attempt,
             const struct ckpt_pins *pins,
             struct err *err)
{
    struct strv names = {0};
    bool any_stays = false;
    _cleanup_(closep) int dir = ckpt_dir_open(root, job, err);
    if (dir == -ENOENT)
        return 0;
    int r = dir < 0 ? dir : list_pins(dir, &names, err);
    for (size_t i = 0; r >= 0 && i < pins->n_needed; i++)
        r = pin_one(dir, attempt, pins->needed[i], err);
    for (size_t i = 0; r >= 0 && i < names.n; i++) {
        r = drop_spare(dir, names.v[i], attempt, pins, err);
        any_stays = any_stays || r > 0;
    }
    if (r >= 0 && names.n)
        r = ckpt_dir_sweep(dir, false, err);
    strv_release(&names);
    return r < 0 ? r : any_stays;
}

int ckpt_dir_unpin(int dir, int64_t step, struct err *err)
{
    struct strv names = {0};
    struct pin pin;
    int r = list_pins(dir, &names, err);
    for (size_t i = 0; r == 0 && i < names.n; i++)
        if (ckpt_pin_read_name(names.v[i], &pin) && pin.step == step)
            r = ckpt_pin_drop(dir, names.v[i], err);
    strv_release(&names);
    return r;
}

/* ---- what a look did not see ---- */

static void add_pinned(int64_t step, const struct ckpt_list *known, struct ckpt_list *l)
{
    const struct ckpt *old = known ? ckpt_list_find(known, step) : NULL;
    struct ckpt *c = ckpt_list_find(l, step);
    if (c && c->state != CKPT_PARTIAL)
        return;
    if (!old || old->state != CKPT_VERIFIED) {
        ckpt_list_remove(l, step); /* what is not in the list is not removed */
        return;
    }
    if (!c)
        c = ckpt_list_add(l, step);
    *c = *old;
    c->by_pin = true;
}

int ckpt_add_pinned(const char *root,
                    const char *job,
                    int attempt,
                    const struct ckpt_list *known,
                    struct ckpt_list *l,
                    struct err *err)
{
    struct strv names = {0};
    struct pin pin;
    for (size_t i = 0; i < l->n; i++)
        l->v[i].by_pin = false;
    _cleanup_(closep) int dir = ckpt_dir_open(root, job, err);
    if (dir == -ENOENT)
        return 0;
    int r = dir < 0 ? dir : list_pins(dir, &names, err);
    for (size_t i = 0; r == 0 && i < names.n; i++)
        if (ckpt_pin_read_name(names.v[i], &pin) && pin.attempt == attempt)
            add_pinned(pin.step, known, l);
    strv_release(&names);
    return r;
}
