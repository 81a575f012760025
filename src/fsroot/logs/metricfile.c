/* SPDX-License-Identifier: Apache-2.0 */
/* metricfile.c - what attempts said, merged into one file; see metricfile.h. Reading is
 * metricread.c, tables of the merged file are metriccurves.c. */
#define _GNU_SOURCE
#include "fsroot/logs/metricfile.h"

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
#include "fsroot/attempt/launch.h"
#include "fsroot/logs/logread.h"
#include "fsroot/logs/metricread.h"
#include "fsroot/tree/paths.h"
#include "fsroot/tree/rootfile.h"

enum {
    PASS_BYTES = 16 << 20, /* of one pass */
    OUT_MAX = 32 << 20,    /* not written yet: more than the records of any chunk */
    OUT_FULL = 1 << 20,    /* then a rewritten part is written */
    MORE_MAX = 200,        /* records of the other source in one pass */
    TOTAL_WITHIN =
        64 << 20 /* bytes of the log within which the number of steps must have been told */
};
static const uint64_t MERGED_MAX = 1ULL << 30;

/* All that the records feed. */
struct watching {
    struct metric_watch *watch;
    struct training *training;
};

struct metric_reader {
    char *root, *job;
    struct watching on;
    bool loaded;
    int k; /* the attempt that is read */
    struct metricread_source file, log;
    bool has_file;
    metric_more_f more; /* NULL: there is none */
    void *more_arg;
    int64_t more_after; /* the step that it was taken of last, or before the first of the attempt */
    bool has_begun;     /* the attempt told of a step of training */
    uint64_t most;      /* bytes of a source of an attempt */
    uint64_t merged_bytes;
    struct buf out; /* belongs at merged_bytes */
    char *chunk;
};

static struct watching watching_new(void)
{
    return (struct watching){metric_watch_new(), training_new()};
}

/* Anew, for the records from the first one on. */
static struct watching watching_like(const struct watching *w)
{
    return (struct watching){metric_watch_new(), training_like(w->training)};
}

static void watching_free(struct watching *w)
{
    metric_watch_free(w->watch);
    training_free(w->training);
    *w = (struct watching){0};
}

static void watching_add(struct watching *w, const struct metric_record *rec)
{
    metric_watch_add(w->watch, rec);
    training_add(w->training, rec, w->watch);
}

struct metric_reader *metric_reader_new(const char *root, const char *job)
{
    struct metric_reader *r = xcalloc(1, sizeof(*r));
    *r = (struct metric_reader){.root = xstrdup(root),
                                .job = xstrdup(job),
                                .on = watching_new(),
                                .k = 1,
                                .most = UINT64_MAX,
                                .out = BUF_INIT(OUT_MAX)};
    return r;
}

void metric_reader_set_more(struct metric_reader *r, metric_more_f next, void *arg)
{
    r->more = next;
    r->more_arg = arg;
}

void metric_reader_set_most(struct metric_reader *r, uint64_t bytes)
{
    r->most = bytes;
}

void metric_reader_free(struct metric_reader *r)
{
    if (!r)
        return;
    watching_free(&r->on);
    buf_release(&r->out);
    free(r->chunk);
    free(r->root);
    free(r->job);
    free(r);
}

const struct metric_watch *metric_reader_watch(const struct metric_reader *r)
{
    return r->on.watch;
}

struct training *metric_reader_training(const struct metric_reader *r)
{
    return r->on.training;
}

/* ---- the merged file ---- */

/* The directory of the merged file. */
static int open_merged_dir(const struct metric_reader *r, struct rootdir *ret, struct err *err)
{
    _cleanup_(freep) char *path = xasprintf("jobs/%s/metrics", r->job);
    return rootdir_open(r->root, path, 0, ret, err);
}

/* A descriptor, for writing where its lines end. */
static int open_merged(const struct metric_reader *r, uint64_t *ret_size, struct err *err)
{
    enum { FLAGS = O_WRONLY | O_CREAT };
    _cleanup_(rootdir_release) struct rootdir dir = ROOTDIR_NONE;
    int x = open_merged_dir(r, &dir, err);
    if (x < 0)
        return x;
    int fd = rootdir_open_for(&dir, METRICREAD_MERGED, FLAGS, 0644, err);
    if (fd == -ELOOP && rootdir_unlink(&dir, METRICREAD_MERGED, NULL) == 0)
        fd = rootdir_open_for(&dir, METRICREAD_MERGED, FLAGS, 0644, err);
    x = fd < 0 ? fd : metricread_size(fd, ret_size);
    if (fd < 0 || x == 0)
        return fd;
    closep(&fd);
    return message_refuse(err, x, "disk_no_look_in",
                          MESSAGE_ARGS(MESSAGE_STR("dir", dir.path),
                                       MESSAGE_STR("name", METRICREAD_MERGED),
                                       MESSAGE_STR("why", strerror(-x))));
}

static int metricfile_flush(struct metric_reader *r, struct err *err)
{
    uint64_t size;
    if (!r->out.len)
        return 0;
    int fd = open_merged(r, &size, err);
    if (fd < 0)
        return fd;
    int x = 0;
    if (size > r->merged_bytes && ftruncate(fd, (off_t)r->merged_bytes) < 0)
        x = -errno; /* a torn line */
    if (x == 0 && r->merged_bytes + r->out.len <= MERGED_MAX)
        x = file_write_at(fd, r->merged_bytes, buf_str(&r->out), r->out.len);
    if (close(fd) < 0 && x == 0)
        x = -errno; /* NFS tells of a full disk here */
    if (x < 0)
        return message_refuse(
            err, x, "metrics_no_write",
            MESSAGE_ARGS(MESSAGE_STR("name", r->job), MESSAGE_STR("why", strerror(-x))));
    if (r->merged_bytes + r->out.len <= MERGED_MAX)
        r->merged_bytes += r->out.len;
    buf_reset(&r->out);
    return 0;
}

/* ---- the sources of the attempt that is read ---- */

static void sources_reset(struct metric_reader *r)
{
    r->file = r->log = (struct metricread_source){0};
    r->has_begun = false;
}

/* Its own steps are those from the first one on that it told of. */
static void sources_note(struct metric_reader *r, const struct metric_record *rec)
{
    if (rec->is_made) {
        r->more_after = (int64_t)rec->offset;
    } else if (!r->has_begun && metric_is_training(rec)) {
        r->has_begun = true;
        r->more_after = rec->step - 1;
    }
}

/* ---- loading, once ---- */

static void load_record(struct metric_record *rec, uint64_t end, void *arg)
{
    struct metric_reader *r = arg;
    (void)end;
    if (rec->attempt < r->k)
        return; /* not ours: a user's own file */
    if (rec->attempt > r->k) {
        sources_reset(r);
        r->k = rec->attempt;
    }
    watching_add(&r->on, rec);
    sources_note(r, rec);
    struct metricread_source *src = rec->from_log ? &r->log : &r->file;
    if (!rec->is_made)
        src->offset = rec->offset;
}

static int metricfile_load(struct metric_reader *r, struct err *err)
{
    r->merged_bytes = 0;
    int x = metricread_merged(r->root, r->job, MERGED_MAX, load_record, r, &r->merged_bytes, err);
    if (x < 0) { /* from the beginning, another time */
        struct watching anew = watching_like(&r->on);
        watching_free(&r->on);
        r->on = anew;
        sources_reset(r);
        r->k = 1;
        return x;
    }
    r->loaded = true;
    return 0;
}

/* ---- steps that are run again ---- */

struct rewriting {
    const struct metric_record *begin;
    struct watching on;
    struct buf out;
    uint64_t bytes;
    int fd, result;
};

static void write_out(struct rewriting *w)
{
    if (w->result == 0)
        w->result = file_write_at(w->fd, w->bytes, buf_str(&w->out), w->out.len);
    w->bytes += w->out.len;
    buf_reset(&w->out);
}

static void rewrite_record(struct metric_record *rec, uint64_t end, void *arg)
{
    struct rewriting *w = arg;
    (void)end;
    rec->superseded = rec->superseded || metric_is_void(rec, w->begin);
    watching_add(&w->on, rec);
    metric_record_to_json(rec, &w->out);
    if (w->out.len > OUT_FULL)
        write_out(w);
}

/* Its lines by another name, with the void ones marked. */
static int write_rewritten(const struct metric_reader *r,
                           const struct rootdir *dir,
                           const char *name,
                           struct rewriting *w,
                           struct err *err)
{
    uint64_t read = 0;
    int x = rootdir_unlink(dir, name, err);
    if (x < 0)
        return x;
    w->fd = rootdir_open_for(dir, name, O_WRONLY | O_CREAT | O_EXCL, 0644, err);
    if (w->fd < 0)
        return w->fd;
    x = metricread_merged(r->root, r->job, MERGED_MAX, rewrite_record, w, &read, err);
    write_out(w);
    if (close(w->fd) < 0 && w->result == 0)
        w->result = -errno;
    if (x == 0 && w->result < 0)
        x = message_refuse(err, w->result, "disk_no_write_in",
                           MESSAGE_ARGS(MESSAGE_STR("dir", dir->path), MESSAGE_STR("name", name),
                                        MESSAGE_STR("why", strerror(-w->result))));
    return x;
}

/* The merged file anew, by another name and rename, with the void lines marked. */
static int rewrite(struct metric_reader *r, const struct metric_record *begin, struct err *err)
{
    static const char name[] = ".merged";
    _cleanup_(rootdir_release) struct rootdir dir = ROOTDIR_NONE;
    struct rewriting w = {.begin = begin, .on = watching_like(&r->on), .out = BUF_INIT(OUT_MAX)};
    int x = open_merged_dir(r, &dir, err);
    if (x == 0)
        x = write_rewritten(r, &dir, name, &w, err);
    if (x == 0)
        x = rootdir_rename(&dir, name, &dir, METRICREAD_MERGED, 0, err);
    buf_release(&w.out);
    if (x < 0) {
        watching_free(&w.on);
        if (dir.fd >= 0)
            (void)rootdir_unlink(&dir, name, NULL); /* it is made anew */
        return x;
    }
    metric_watch_set_total(w.on.watch, metric_watch_total(r->on.watch), true);
    watching_free(&r->on);
    r->on = w.on;
    r->merged_bytes = w.bytes;
    return 0;
}

/* ---- a pass ---- */

struct taking {
    struct metric_reader *r;
    struct metric_pass *pass;
    bool from_log, want_records;
    bool asked; /* whether there is a file, since these bytes of the log were read */
    usec_t now;
    int result;
    struct err *err;
};

/* *ret stays true once it is. A look that fails is no missing file: the log would be read in its
 * place, and the file too from the next pass on. */
static int metricfile_look_for(const struct metric_reader *r, bool *ret, struct err *err)
{
    _cleanup_(freep) char *path = fsroot_attempt_dir(r->root, r->job, r->k, "metrics.jsonl");
    struct stat st;
    int x = *ret ? 0 : rootfile_look(r->root, path, &st);
    if (x < 0 && !file_is_absence(x) && x != -ELOOP)
        return message_refuse(
            err, x, "disk_no_look",
            MESSAGE_ARGS(MESSAGE_STR("path", path), MESSAGE_STR("why", strerror(-x))));
    *ret = *ret || (x == 0 && S_ISREG(st.st_mode));
    return 0;
}

/* verl makes its file before it prints a step: a step in the log without a file means a verl
 * that writes none. */
static bool metricfile_is_wanted(struct taking *t)
{
    if (t->want_records && t->from_log && !t->asked) {
        t->asked = true;
        int x = metricfile_look_for(t->r, &t->r->has_file, t->err);
        t->result = t->result < 0 ? t->result : x;
        t->want_records = !t->r->has_file;
    }
    return t->want_records && t->result == 0;
}

/* What goes back is the first of its attempt, so nothing of it was taken yet if that fails. */
static void new_record(struct metric_record *rec, uint64_t end, void *arg)
{
    struct taking *t = arg;
    struct metric_reader *r = t->r;
    if (!metricfile_is_wanted(t))
        return;
    rec->attempt = r->k;
    rec->offset = end;
    rec->from_log = t->from_log;
    rec->at = t->now;
    rec->superseded = rec->is_made = false;
    metric_watch_set_total(r->on.watch, rec->total, true);
    rec->total = metric_watch_total(r->on.watch);
    if (metric_watch_goes_back(r->on.watch, rec)) {
        t->result = metricfile_flush(r, t->err);
        if (t->result == 0)
            t->result = rewrite(r, rec, t->err);
        if (t->result < 0)
            return;
    }
    watching_add(&r->on, rec);
    sources_note(r, rec);
    metric_record_to_json(rec, &r->out);
    t->pass->records++;
}

/* What there is to tell of its steps beside its own words. True: there may be more. */
static bool take_more(struct metric_reader *r, bool final, struct taking *t)
{
    struct metric_record rec = {0};
    int64_t last = metric_watch_step(r->on.watch) - (final ? 0 : 1);
    for (int i = 0; r->more && r->has_begun && i < MORE_MAX; i++) {
        if (!r->more(r->more_after, last, &rec, r->more_arg))
            return false;
        rec.attempt = r->k;
        rec.offset = (uint64_t)rec.step;
        rec.is_made = true;
        rec.at = t->now;
        watching_add(&r->on, &rec);
        sources_note(r, &rec);
        metric_record_to_json(&rec, &r->out);
        t->pass->records++;
        metric_record_release(&rec);
    }
    return r->more && r->has_begun;
}

static void new_total(int64_t steps, bool sure, void *arg)
{
    const struct taking *t = arg;
    metric_watch_set_total(t->r->on.watch, steps, sure);
}

static bool total_is_known(const struct metric_reader *r)
{
    return metric_watch_total(r->on.watch) > 0 || r->log.offset > TOTAL_WITHIN;
}

/* fd stays -1 for the log. */
static int open_source(const struct metric_reader *r,
                       const char *path,
                       int *ret_fd,
                       uint64_t *ret_size)
{
    struct logread_part none;
    if (path) {
        int x = metricread_open(r->root, path, ret_size);
        *ret_fd = x;
        return x < 0 ? x : 0;
    }
    int x = logread_at(r->root, r->job, r->k, ATTEMPT_LOG, 0, NULL, 0, &none, NULL);
    *ret_size = x < 0 ? 0 : none.end;
    return x;
}

/* Reads one chunk of this source; file: its name, NULL is the log. *ret_used: 0 = there is no
 * more now. */
static int metricfile_read_source(struct metric_reader *r,
                                  struct metricread_source *src,
                                  const char *file,
                                  bool final,
                                  struct taking *t,
                                  size_t *ret_used)
{
    _cleanup_(freep) char *path = file ? fsroot_attempt_dir(r->root, r->job, r->k, file) : NULL;
    const char *named = str_or(path, ATTEMPT_LOG);
    _cleanup_(closep) int fd = -1;
    uint64_t size = 0;
    *ret_used = 0;
    if (src->read >= r->most) {
        t->pass->is_cut = true;
        return 0;
    }
    int x = open_source(r, path, &fd, &size);
    if (x == -ENOENT || x == -ELOOP || x == -EINVAL)
        return 0;
    if (x < 0)
        return message_refuse(
            t->err, x, "disk_no_open_it",
            MESSAGE_ARGS(MESSAGE_STR("path", named), MESSAGE_STR("why", strerror(-x))));
    if (size < src->offset)
        *src = (struct metricread_source){.read = src->read}; /* begun anew */
    if (size == src->size && !final)
        return 0;
    struct metricread_source before = *src;
    struct metricread_sink s = {.record = new_record, .total = new_total, .arg = t};
    struct metricread_origin from = {.fd = fd, .root = r->root, .job = r->job, .attempt = r->k};
    x = metricread_chunk(&from, src, r->chunk, final, &s, ret_used);
    if (x < 0)
        return message_refuse(
            t->err, x, "disk_no_read_it",
            MESSAGE_ARGS(MESSAGE_STR("path", named), MESSAGE_STR("why", strerror(-x))));
    if (t->result < 0) {
        *src = before;
        return t->result;
    }
    if (!*ret_used || src->offset == size)
        src->size = size;
    return 0;
}

/* A chunk of each source of the attempt. */
static int read_attempt(struct metric_reader *r, bool final, struct taking *t, size_t *ret_used)
{
    size_t of_log = 0, of_file = 0;
    int x = metricfile_look_for(r, &r->has_file, t->err);
    if (x < 0)
        return x;
    t->from_log = true;
    t->asked = false;
    t->want_records = !r->has_file;
    if (!r->has_file || !total_is_known(r))
        x = metricfile_read_source(r, &r->log, NULL, final, t, &of_log);
    t->from_log = false;
    t->want_records = true;
    if (x == 0 && r->has_file)
        x = metricfile_read_source(r, &r->file, "metrics.jsonl", final, t, &of_file);
    *ret_used = of_log + of_file;
    return x;
}

static void next_attempt(struct metric_reader *r)
{
    r->k++;
    sources_reset(r);
    r->has_file = false;
}

/* From the attempt that is read on, until there is no more or the pass had its fill. */
static int read_on(struct metric_reader *r, int attempt, bool ended, struct taking *t)
{
    size_t budget = PASS_BYTES, used = 0;
    while (r->k <= attempt) {
        bool final = r->k < attempt || ended;
        int x = read_attempt(r, final, t, &used);
        if (x == 0 && !used)
            used = take_more(r, final, t);
        if (x == 0)
            x = metricfile_flush(r, t->err);
        budget -= used < budget ? used : budget;
        t->pass->more = x == 0 && !budget;
        if (x < 0 || t->pass->more || (!used && r->k == attempt))
            return x;
        if (!used)
            next_attempt(r);
    }
    return 0;
}

int metric_reader_pass(struct metric_reader *r,
                       int attempt,
                       bool ended,
                       usec_t now,
                       struct metric_pass *ret,
                       struct err *err)
{
    struct metric_pass pass = {0};
    struct taking t = {.r = r, .pass = &pass, .now = now, .err = err};
    if (!fsroot_is_name(r->job))
        return message_refuse(err, -EINVAL, "no_job_dir",
                              MESSAGE_ARGS(MESSAGE_STR("name", r->job)));
    int x = r->loaded ? 0 : metricfile_load(r, err);
    if (x == 0)
        x = metricfile_flush(r, err);
    r->chunk = xmalloc(METRICREAD_CHUNK);
    if (x == 0)
        x = read_on(r, attempt, ended, &t);
    freep(&r->chunk); /* a quiet job costs no memory */
    *ret = pass;
    return x;
}
