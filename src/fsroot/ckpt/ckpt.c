/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt.c - looks at the checkpoints of a job; see ckpt.h.
 *
 * The newest are looked at first, within a ceiling of files: a job that leaves a million of them
 * costs a look no more than one that trains. What was not looked at is not in the list, and what
 * is not in the list is never removed. */
#define _GNU_SOURCE
#include "fsroot/ckpt/ckpt.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/digest/hash.h"
#include "base/file.h"
#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "fsroot/ckpt/ckpt_dir.h"
#include "fsroot/ckpt/ckpt_shard.h"
#include "fsroot/tree/beneath.h"
#include "fsroot/tree/paths.h"
#include "fsroot/tree/rootdir.h"

enum {
    DIRS_MAX = 200000,  /* names in checkpoints/ */
    FILES_MAX = 400000, /* of all checkpoints, in one look */
    DEPTH_MAX = 4,
    PATH_MAX_BYTES = 600,
    TRACKER_MAX = 64,
};

/* ---- the directory ---- */

int ckpt_dir_open(const char *root, const char *job, struct err *err)
{
    if (!fsroot_is_name(job))
        return message_refuse(err, -EINVAL, "no_job_dir", MESSAGE_ARGS(MESSAGE_STR("name", job)));
    _cleanup_(rootdir_release) struct rootdir jobs = ROOTDIR_NONE, dir = ROOTDIR_NONE;
    _cleanup_(freep) char *path = xasprintf("%s/checkpoints", job);
    int r = rootdir_open(root, "jobs", 0, &jobs, err);
    if (r < 0)
        return r == -ENOENT ? message_refuse(err, -EIO, "root_no_jobs",
                                             MESSAGE_ARGS(MESSAGE_STR("root", root)))
                            : r;
    r = rootdir_open_in(&jobs, path, 0, &dir, err);
    if (r < 0)
        return r;
    int fd = dir.fd;
    dir.fd = -1;
    return fd;
}

void ckpt_dir_name(int64_t step, char *ret, size_t n)
{
    text_printf_to(ret, n, "global_step_%" PRId64, step);
}

int ckpt_dir_list(int dir, DIR **ret, struct err *err)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    if (!d) {
        int error = errno;
        closep(&fd);
        return message_refuse(err, -error, "ckpt_no_list",
                              MESSAGE_ARGS(MESSAGE_STR("why", strerror(error))));
    }
    *ret = d;
    return 0;
}

int ckpt_dir_tracker(int dir, int64_t *ret, struct err *err)
{
    char text[TRACKER_MAX + 1];
    size_t n = 0;
    _cleanup_(closep) int fd = file_open_regular(dir, CKPT_TRACKER, O_RDONLY);
    if (fd == -ENOENT) {
        *ret = CKPT_TRACKER_NONE;
        return 0;
    }
    int r = fd < 0 ? fd : file_read_at(fd, 0, text, TRACKER_MAX, &n);
    if (r < 0 && r != -ELOOP && r != -EINVAL) /* a link, a directory: a torn one */
        return message_refuse(
            err, r, "disk_no_read",
            MESSAGE_ARGS(MESSAGE_STR("path", CKPT_TRACKER), MESSAGE_STR("why", strerror(-r))));
    text[n] = 0;
    text[strcspn(text, " \r\n")] = 0;
    if (str_to_int(text, 1, INT32_MAX, ret, NULL) < 0)
        *ret = CKPT_TRACKER_TORN;
    return 0;
}

static int newest_first(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? 1 : x > y ? -1 : 0;
}

struct steps {
    int64_t *v;
    size_t n;
};

/* Steps that have a name there, the newest first. dir is only borrowed. */
static int list_steps(int dir, struct steps *ret, struct err *err)
{
    struct steps s = {0};
    DIR *d = NULL;
    int r = ckpt_dir_list(dir, &d, err);
    if (r < 0 || !d)
        return r;
    errno = 0;
    for (struct dirent *e; s.n < DIRS_MAX && (e = readdir(d)); errno = 0) {
        int64_t step = ckpt_step_of_name(e->d_name);
        if (!step || (e->d_type != DT_DIR && e->d_type != DT_UNKNOWN))
            continue;
        if ((s.n & (s.n - 1)) == 0)
            s.v = xrealloc(s.v, s.n ? s.n * 2 : 1, sizeof(*s.v));
        s.v[s.n++] = step;
    }
    int error = errno;
    (void)closedir(d); /* it was only read */
    if (error) {
        free(s.v);
        return message_refuse(err, -error, "ckpt_no_list",
                              MESSAGE_ARGS(MESSAGE_STR("why", strerror(error))));
    }
    xsort(s.v, s.n, sizeof(*s.v), newest_first);
    if (s.n > CKPT_LIST_MAX)
        s.n = CKPT_LIST_MAX;
    *ret = s;
    return 0;
}

/* ---- one checkpoint ---- */

struct shard_path {
    char *path;
    uint64_t bytes;
};

struct walk {
    struct ckpt *c;
    struct ckpt_listing *listing;
    struct shard_path *shards;
    size_t n_shards;
    size_t files_left; /* of the look */
    char path[PATH_MAX_BYTES];
    struct err *err;
};

static void walk_release(struct walk *w)
{
    for (size_t i = 0; i < w->n_shards; i++)
        free(w->shards[i].path);
    free(w->shards);
    ckpt_listing_free(w->listing);
}

static void take_file(struct walk *w, const struct stat *st)
{
    struct ckpt *c = w->c;
    struct {
        uint64_t before, size, seconds, nanos, inode;
    } mark = {c->mark, (uint64_t)st->st_size, (uint64_t)st->st_mtim.tv_sec,
              (uint64_t)st->st_mtim.tv_nsec, (uint64_t)st->st_ino};
    static const unsigned char key[16] = "argus ckpt mark";
    usec_t at = (usec_t)st->st_mtim.tv_sec * USEC_SEC + (usec_t)st->st_mtim.tv_nsec / 1000;
    uint64_t size = (uint64_t)st->st_size;
    /* Names come in any order: a sum does not mind. */
    mark.before = hash_keyed(key, w->path, strlen(w->path));
    c->mark += hash_keyed(key, &mark, sizeof(mark));
    c->bytes = c->bytes + size < c->bytes ? UINT64_MAX : c->bytes + size;
    if (st->st_mtim.tv_sec > 0 && at > c->at)
        c->at = at;
    ckpt_listing_add(w->listing, w->path, size);
    if (!ckpt_is_shard(w->path))
        return;
    if ((w->n_shards & (w->n_shards - 1)) == 0)
        w->shards = xrealloc(w->shards, w->n_shards ? w->n_shards * 2 : 1, sizeof(*w->shards));
    w->shards[w->n_shards++] = (struct shard_path){xstrdup(w->path), size};
}

static int walk_dir(struct walk *w, int fd, size_t len, int depth);

/* A name below fd, its path is in w->path with this length. */
static int walk_name(struct walk *w, int fd, const char *name, size_t len, int depth)
{
    struct stat st;
    if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno; /* it went meanwhile */
    if (!w->files_left)
        return -E2BIG;
    w->files_left--;
    if (S_ISREG(st.st_mode))
        take_file(w, &st);
    if (!S_ISDIR(st.st_mode) || depth >= DEPTH_MAX)
        return 0;
    int dir = openat(fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (dir < 0)
        return errno == ENOENT || errno == ELOOP || errno == ENOTDIR ? 0 : -errno;
    return walk_dir(w, dir, len, depth + 1);
}

/* fd is taken. */
static int walk_dir(struct walk *w, int fd, size_t len, int depth)
{
    DIR *d = fdopendir(fd);
    int r = 0;
    if (!d) {
        r = -errno;
        (void)close(fd); /* nothing was written */
        return r;
    }
    errno = 0;
    for (struct dirent *e; r == 0 && (e = readdir(d)); errno = 0) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        int n = snprintf(w->path + len, sizeof(w->path) - len, "%s%s", len ? "/" : "", e->d_name);
        if (n > 0 && (size_t)n < sizeof(w->path) - len)
            r = walk_name(w, fd, e->d_name, len + (size_t)n, depth);
        w->path[len] = 0;
    }
    if (r == 0)
        r = -errno;
    (void)closedir(d); /* it was only read */
    return r;
}

/* ---- the verdict ---- */

/* path: of the file that decides; NULL: it is the checkpoint itself. */
static void ckpt_judge(struct ckpt *c, enum ckpt_state state, const char *path, const char *code)
{
    c->state = state;
    if (path)
        ckpt_write_why(c->why, "ckpt_of_file",
                       MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_OF("why", code, "{}")));
    else
        ckpt_write_why(c->why, code, MESSAGE_NO_ARGS);
}

static void ckpt_judge_file(struct ckpt *c,
                            enum ckpt_state state,
                            const char *path,
                            const struct err *why)
{
    c->state = state;
    ckpt_write_why(c->why, "ckpt_of_file",
                   MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_ERR("why", why)));
}

static void ckpt_judge_kept(struct ckpt *c, enum ckpt_state state, const char *why)
{
    c->state = state;
    text_copy(c->why, why);
}

static int read_shards(const struct walk *w,
                       int step_dir,
                       bool deep,
                       const volatile int *stop,
                       struct err *err)
{
    for (size_t i = 0; i < w->n_shards; i++) {
        const struct shard_path *s = &w->shards[i];
        struct err why = {0};
        _cleanup_(closep) int fd = beneath_open(step_dir, s->path, O_RDONLY, 0);
        if (fd == -ENOENT) { /* it is being removed, which says nothing of its bytes */
            ckpt_judge(w->c, CKPT_PARTIAL, s->path, "file_went");
            return 0;
        }
        int r = fd;
        if (fd >= 0)
            r = ckpt_shard_check(fd, s->path, s->bytes, deep, stop, &why);
        else if (fd == -EXDEV || fd == -ELOOP)
            r = message_refuse(&why, -EINVAL, "disk_says",
                               MESSAGE_ARGS(MESSAGE_STR("why", strerror(-fd))));
        if (r == -ECANCELED)
            return message_refuse(err, r, "reading_given_up", MESSAGE_NO_ARGS);
        if (r == -EINVAL) {
            ckpt_judge_file(w->c, CKPT_BROKEN, s->path, &why);
            return 0;
        }
        if (r == -EACCES) { /* which says nothing of its bytes */
            (void)message_refuse(
                &why, r, "disk_says",
                MESSAGE_ARGS(MESSAGE_STR("why", strerror(-r)))); /* only fills it */
            ckpt_judge_file(w->c, CKPT_COMPLETE, s->path, &why);
            w->c->strange = true;
            return 0;
        }
        if (r < 0)
            return message_refuse(err, r, "ckpt_file_no_read",
                                  MESSAGE_ARGS(MESSAGE_STR("path", s->path),
                                               MESSAGE_NUM("step", w->c->step),
                                               MESSAGE_STR("why", strerror(-r))));
    }
    ckpt_judge_kept(w->c, CKPT_VERIFIED, "");
    return 0;
}

/* True if verl takes the checkpoint for finished. A checkpoint that no tracker names is torn or
 * still being written. */
static bool is_named(const struct ckpt_list *l, const struct ckpt *c)
{
    return l->tracker == CKPT_TRACKER_TORN || l->tracker >= c->step;
}

static bool ckpt_is_same(const struct ckpt *old, const struct ckpt *c, unsigned flags)
{
    if (!old || !old->mark || old->mark != c->mark || old->bytes != c->bytes)
        return false;
    return old->state == CKPT_BROKEN || (old->state == CKPT_VERIFIED && !(flags & CKPT_LOOK_FRESH));
}

static void keep_known(struct ckpt *c, const struct ckpt *old)
{
    c->state = old->state;
    memcpy(c->why, old->why, sizeof(c->why));
}

/* step_dir is taken. */
static int look_into(const struct ckpt_list *l,
                     int step_dir,
                     const struct ckpt *old,
                     unsigned flags,
                     struct walk *w,
                     struct err *err)
{
    char why[CKPT_WHY_MAX];
    _cleanup_(closep) int fd = dup(step_dir);
    w->listing = ckpt_listing_new();
    if (fd < 0) {
        closep(&step_dir);
        return message_refuse(err, -EMFILE, "too_many_open", MESSAGE_NO_ARGS);
    }
    int r = walk_dir(w, step_dir, 0, 0);
    if (r < 0)
        return r == -E2BIG ? r
                           : message_refuse(err, r, "ckpt_step_no_look",
                                            MESSAGE_ARGS(MESSAGE_NUM("step", w->c->step),
                                                         MESSAGE_STR("why", strerror(-r))));
    w->c->strange = !ckpt_listing_is_known(w->listing);
    w->c->kinds = ckpt_listing_kinds(w->listing);
    if (!ckpt_listing_is_whole(w->listing, why))
        ckpt_judge_kept(w->c, CKPT_PARTIAL, why);
    else if (!is_named(l, w->c))
        ckpt_judge(w->c, CKPT_PARTIAL, NULL, "ckpt_not_named");
    else if (ckpt_is_same(old, w->c, flags))
        keep_known(w->c, old);
    else
        r = read_shards(w, fd, false, NULL, err);
    return r;
}

static bool is_trusted(const struct ckpt *old, unsigned flags)
{
    return old && (flags & CKPT_LOOK_TRUST) &&
           (old->state == CKPT_VERIFIED || old->state == CKPT_BROKEN);
}

/* 0, -E2BIG: enough for now, else a failure. */
static int look_at_step(int dir,
                        int64_t step,
                        const struct ckpt *old,
                        int attempt,
                        unsigned flags,
                        struct ckpt_list *l,
                        size_t *files_left,
                        struct err *err)
{
    char name[32];
    struct ckpt found = {.step = step, .attempt = old ? old->attempt : attempt};
    ckpt_dir_name(step, name, sizeof(name));
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 && (errno == ENOENT || errno == ELOOP || errno == ENOTDIR))
        return 0;
    if (fd < 0)
        return message_refuse(
            err, -errno, "disk_no_open",
            MESSAGE_ARGS(MESSAGE_STR("path", name), MESSAGE_STR("why", strerror(errno))));
    if (old) {
        found.has_value = old->has_value;
        found.value = old->value;
        found.told = old->told;
        memcpy(found.values, old->values, sizeof(found.values));
        found.asked = old->asked;
        found.eval = old->eval;
        memcpy(found.eval_job, old->eval_job, sizeof(found.eval_job));
    }
    if (is_trusted(old, flags)) {
        (void)close(fd); /* it was only opened */
        *ckpt_list_add(l, step) = *old;
        return 0;
    }
    struct walk w = {.c = &found, .files_left = *files_left, .err = err};
    int r = look_into(l, fd, old, flags, &w, err);
    *files_left = w.files_left;
    walk_release(&w);
    if (r == 0)
        *ckpt_list_add(l, step) = found;
    return r;
}

int ckpt_look(const char *root,
              const char *job,
              const struct ckpt_list *known,
              int attempt,
              unsigned flags,
              struct ckpt_list *ret,
              struct err *err)
{
    struct ckpt_list l = {0};
    struct steps steps = {0};
    size_t files_left = FILES_MAX;
    _cleanup_(closep) int dir = ckpt_dir_open(root, job, err);
    if (known)
        ckpt_list_copy_names(&l, known);
    if (dir == -ENOENT) {
        *ret = l;
        return 0;
    }
    int r = dir < 0 ? dir : ckpt_dir_tracker(dir, &l.tracker, err);
    if (r == 0)
        r = list_steps(dir, &steps, err);
    for (size_t i = 0; r == 0 && i < steps.n; i++) {
        const struct ckpt *old = known ? ckpt_list_find(known, steps.v[i]) : NULL;
        r = look_at_step(dir, steps.v[i], old, attempt, flags, &l, &files_left, err);
    }
    free(steps.v);
    if (r < 0 && r != -E2BIG) {
        ckpt_list_release(&l);
        return r;
    }
    l.cut = r == -E2BIG;
    ckpt_list_compare(&l);
    *ret = l;
    return 0;
}

/* A descriptor. ERR_NOT_FOUND: nothing has its name, or what is no directory. */
static int ckpt_open_step(const char *root, const char *job, int64_t step, struct err *err)
{
    char name[32];
    struct err why = {0};
    _cleanup_(closep) int dir = ckpt_dir_open(root, job, &why);
    ckpt_dir_name(step, name, sizeof(name));
    int fd = dir < 0 ? dir : openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0)
        return fd;
    int r = dir < 0 ? dir : -errno;
    if (file_is_absence(r) || r == -ELOOP)
        return message_refuse(err, ERR_NOT_FOUND, "no_ckpt_step",
                              MESSAGE_ARGS(MESSAGE_NUM("step", step)));
    if (dir < 0)
        return message_refuse(err, r, "ckpt_step_no_look",
                              MESSAGE_ARGS(MESSAGE_NUM("step", step), MESSAGE_ERR("why", &why)));
    return message_refuse(
        err, r, "ckpt_step_no_look",
        MESSAGE_ARGS(MESSAGE_NUM("step", step), MESSAGE_STR("why", strerror(-r))));
}

int ckpt_verify(const char *root,
                const char *job,
                struct ckpt *c,
                const volatile int *stop,
                struct err *err)
{
    char why[CKPT_WHY_MAX];
    struct ckpt found = {.step = c->step};
    _cleanup_(closep) int step = ckpt_open_step(root, job, c->step, err);
    int copy = step < 0 ? step : dup(step);
    if (copy < 0)
        return step < 0 ? step
                        : message_refuse(err, -errno, "ckpt_no_look",
                                         MESSAGE_ARGS(MESSAGE_STR("why", strerror(errno))));
    struct walk w = {.c = &found, .files_left = FILES_MAX, .listing = ckpt_listing_new()};
    int r = walk_dir(&w, copy, 0, 0);
    if (r == 0 && !ckpt_listing_is_whole(w.listing, why))
        ckpt_judge_kept(&found, CKPT_PARTIAL, why);
    else if (r == 0)
        r = read_shards(&w, step, true, stop, err);
    else
        r = message_refuse(err, r, "ckpt_no_look", MESSAGE_ARGS(MESSAGE_STR("why", strerror(-r))));
    walk_release(&w);
    if (r < 0)
        return r;
    c->state = found.state;
    c->mark = found.mark;
    c->bytes = found.bytes;
    memcpy(c->why, found.why, sizeof(c->why));
    return 0;
}

int ckpt_free_bytes(const char *root, const char *job, uint64_t *ret, struct err *err)
{
    struct statvfs st;
    _cleanup_(closep) int dir = ckpt_dir_open(root, job, err);
    if (dir < 0 || fstatvfs(dir, &st) < 0 || !st.f_blocks) /* some know no sizes */
        return message_refuse(err, -EIO, "ckpt_no_room_known",
                              MESSAGE_ARGS(MESSAGE_STR("job", job)));
    *ret = (uint64_t)st.f_bavail * st.f_frsize;
    return 0;
}
