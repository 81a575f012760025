/* SPDX-License-Identifier: Apache-2.0 */
/* metricfile.c - see metricfile.h.
 *
 * A source's offset always stands at the start of a line. Files of a job are outside bytes: no
 * link is followed, lines and files have ceilings. */
#define _GNU_SOURCE
#include "fsroot/metricfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"
#include "fsroot/fsroot.h"
#include "fsroot/launch.h"
#include "fsroot/logread.h"

#define MERGED "metrics/metrics.jsonl"

enum {
    CHUNK = METRIC_LINE_MAX,
    PASS_BYTES = 16 << 20,  /* of one pass */
    OUT_MAX = 32 << 20,     /* not written yet: more than the records of any chunk */
    OUT_FULL = 1 << 20,     /* then a rewritten part is written */
    TOTAL_WITHIN = 64 << 20 /* of the log: who has not said by then how many steps there are … */
};
static const uint64_t MERGED_MAX = 1ULL << 30;
static const uint64_t LOAD_MAX = 256ULL << 20;

struct source {
    uint64_t offset, size; /* size: when it was last read to its end */
    bool skipping;         /* inside of a line that is too long */
};

struct metric_reader {
    char *root, *job;
    struct metric_watch *watch;
    bool loaded;
    int k; /* the attempt that is read */
    struct source file, log;
    bool has_file;
    uint64_t merged_bytes;
    struct buf out; /* belongs at merged_bytes */
    char *chunk;
};

/* What a line is for. */
struct sink {
    void (*record)(struct metric_record *rec, uint64_t end, void *arg);
    void (*total)(int64_t steps, bool sure, void *arg);
    void *arg;
};

struct metric_reader *metric_reader_new(const char *root, const char *job)
{
    struct metric_reader *r = xcalloc(1, sizeof(*r));
    *r = (struct metric_reader){.root = xstrdup(root),
                                .job = xstrdup(job),
                                .watch = metric_watch_new(),
                                .k = 1,
                                .out = BUF_INIT(OUT_MAX)};
    return r;
}

void metric_reader_free(struct metric_reader *r)
{
    if (!r)
        return;
    metric_watch_free(r->watch);
    buf_release(&r->out);
    free(r->chunk);
    free(r->root);
    free(r->job);
    free(r);
}

const struct metric_watch *metric_reader_watch(const struct metric_reader *r)
{
    return r->watch;
}

/* ---- bytes ---- */

/* Where the lines come from: a file, or the log of an attempt, which may be many. */
struct origin {
    int fd; /* -1: the log */
    const struct metric_reader *r;
};

static int read_at(const struct origin *from,
                   uint64_t offset,
                   char *to,
                   size_t n,
                   struct logread_part *ret)
{
    if (from->fd < 0)
        return logread_at(from->r->root, from->r->job, from->r->k, ATTEMPT_LOG, offset, to, n, ret,
                          NULL);
    *ret = (struct logread_part){.offset = offset};
    return file_read_at(from->fd, offset, to, n, &ret->n);
}

/* -ENOENT; -EINVAL for what is no plain file. */
static int open_plain(const char *path, int flags, uint64_t *ret_size)
{
    struct stat st;
    *ret_size = 0;
    int fd = open(path, flags | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW, 0644);
    if (fd < 0)
        return -errno;
    int x = fstat(fd, &st) < 0 ? -errno : S_ISREG(st.st_mode) ? 0 : -EINVAL;
    if (x < 0) {
        (void)close(fd); /* nothing was written */
        return x;
    }
    *ret_size = (uint64_t)st.st_size;
    return fd;
}

static char *merged_path(const char *root, const char *job)
{
    return xasprintf("%s/jobs/%s/" MERGED, root, job);
}

/* ---- lines ---- */

static void take_line(const char *line, size_t n, uint64_t end, const struct sink *s)
{
    struct metric_record rec = {0};
    switch (metric_read_line(line, n, &rec)) {
    case METRIC_RECORD:
        s->record(&rec, end, s->arg);
        break;
    case METRIC_TOTAL:
        s->total(rec.step, true, s->arg);
        break;
    case METRIC_TOTAL_MAYBE:
        s->total(rec.step, false, s->arg);
        break;
    case METRIC_NOTHING:
        break;
    }
    metric_record_release(&rec);
}

/* Whole lines; text ends with a line's end, or at the end of its file. base: its offset. */
static void take_lines(const char *text, size_t n, uint64_t base, const struct sink *s)
{
    const char *end = text + n, *p = text;
    while (p < end && (p = metric_find(p, (size_t)(end - p)))) {
        const char *before = memrchr(text, '\n', (size_t)(p - text));
        const char *from = before ? before + 1 : text;
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        const char *next = stop ? stop + 1 : end;
        take_line(from, (size_t)((stop ? stop : end) - from), base + (uint64_t)(next - text), s);
        p = next;
    }
}

/* One chunk of a source, from its offset on. final: a line without an end is one; so is one before
 * a gap. *ret_used: 0 at the end of what can be used now. */
static int take_chunk(const struct origin *from,
                      struct source *src,
                      char *chunk,
                      bool final,
                      const struct sink *s,
                      size_t *ret_used)
{
    struct logread_part part = {0};
    size_t begin = 0;
    int x = read_at(from, src->offset, chunk, CHUNK, &part);
    *ret_used = 0;
    if (x < 0 || !part.n)
        return x;
    size_t n = part.n;
    uint64_t base = part.offset;
    src->skipping = src->skipping && base == src->offset;
    if (src->skipping) {
        const char *nl = memchr(chunk, '\n', n);
        src->skipping = !nl;
        begin = nl ? (size_t)(nl + 1 - chunk) : n;
    }
    const char *last = memrchr(chunk + begin, '\n', n - begin);
    size_t used = last ? (size_t)(last + 1 - chunk) : begin;
    if ((final && n < CHUNK) || logread_is_torn(&part, CHUNK))
        used = n;
    if (!used && n == CHUNK) {
        src->skipping = true;
        used = n;
    } else {
        take_lines(chunk + begin, used - begin, base + begin, s);
    }
    src->offset = base + used;
    *ret_used = used;
    return 0;
}

/* ---- the merged file ---- */

static int flush(struct metric_reader *r, struct err *err)
{
    uint64_t size;
    if (!r->out.len)
        return 0;
    _cleanup_(freep) char *path = merged_path(r->root, r->job);
    int fd = open_plain(path, O_WRONLY | O_CREAT, &size);
    if (fd == -ELOOP && unlink(path) == 0) /* an older argusd made a link to an attempt's file */
        fd = open_plain(path, O_WRONLY | O_CREAT, &size);
    if (fd < 0)
        return err_set(err, fd, "cannot open '%s': %s", path, strerror(-fd));
    int x = 0;
    if (size > r->merged_bytes && ftruncate(fd, (off_t)r->merged_bytes) < 0)
        x = -errno; /* a torn line */
    if (x == 0 && r->merged_bytes + r->out.len <= MERGED_MAX)
        x = file_write_at(fd, r->merged_bytes, buf_str(&r->out), r->out.len);
    if (close(fd) < 0 && x == 0)
        x = -errno; /* NFS tells of a full disk here */
    if (x < 0)
        return err_set(err, x, "cannot write '%s': %s", path, strerror(-x));
    if (r->merged_bytes + r->out.len <= MERGED_MAX)
        r->merged_bytes += r->out.len;
    buf_reset(&r->out);
    return 0;
}

static void ignore_total(int64_t steps, bool sure, void *arg)
{
    (void)steps;
    (void)sure;
    (void)arg;
}

/* Each line of the merged file from *bytes on, which then is where its last whole line ends. None
 * is fine. */
static int walk_merged(const char *root,
                       const char *job,
                       uint64_t most,
                       void (*record)(struct metric_record *rec, uint64_t end, void *arg),
                       void *arg,
                       uint64_t *bytes,
                       struct err *err)
{
    _cleanup_(freep) char *path = merged_path(root, job);
    _cleanup_(freep) char *chunk = NULL;
    uint64_t size;
    int x = open_plain(path, O_RDONLY, &size);
    if (x == -ENOENT || x == -ELOOP)
        return 0;
    if (x < 0)
        return err_set(err, x, "cannot open '%s': %s", path, strerror(-x));
    _cleanup_(closep) int fd = x;
    struct sink s = {.record = record, .total = ignore_total, .arg = arg};
    struct source src = {.offset = *bytes};
    struct origin from = {.fd = fd};
    size_t used = 1;
    chunk = xmalloc(CHUNK);
    for (x = 0; x == 0 && used && src.offset < most;)
        x = take_chunk(&from, &src, chunk, false, &s, &used);
    *bytes = src.offset;
    return x < 0 ? err_set(err, x, "cannot read '%s': %s", path, strerror(-x)) : 0;
}

/* ---- loading, once ---- */

static void load_record(struct metric_record *rec, uint64_t end, void *arg)
{
    struct metric_reader *r = arg;
    (void)end;
    if (rec->attempt < r->k)
        return; /* not ours: a file that somebody wrote */
    if (rec->attempt > r->k) {
        r->file = r->log = (struct source){0};
        r->k = rec->attempt;
    }
    metric_watch_add(r->watch, rec);
    struct source *src = rec->from_log ? &r->log : &r->file;
    src->offset = rec->offset;
}

static int load(struct metric_reader *r, struct err *err)
{
    r->merged_bytes = 0;
    int x = walk_merged(r->root, r->job, MERGED_MAX, load_record, r, &r->merged_bytes, err);
    if (x < 0) { /* from the beginning, another time */
        metric_watch_free(r->watch);
        r->watch = metric_watch_new();
        r->file = r->log = (struct source){0};
        r->k = 1;
        return x;
    }
    r->loaded = true;
    return 0;
}

/* ---- steps that are run again ---- */

struct rewriting {
    const struct metric_record *begin;
    struct metric_watch *watch;
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
    metric_watch_add(w->watch, rec);
    metric_record_to_json(rec, &w->out);
    if (w->out.len > OUT_FULL)
        write_out(w);
}

/* The merged file anew, by another name and rename, with the void lines marked. */
static int rewrite(struct metric_reader *r, const struct metric_record *begin, struct err *err)
{
    _cleanup_(freep) char *path = merged_path(r->root, r->job);
    _cleanup_(freep) char *new = xasprintf("%s/jobs/%s/metrics/.merged", r->root, r->job);
    uint64_t size, read = 0;
    if (unlink(new) < 0 && errno != ENOENT)
        return err_set(err, -errno, "cannot remove '%s': %s", new, strerror(errno));
    int fd = open_plain(new, O_WRONLY | O_CREAT | O_EXCL, &size);
    if (fd < 0)
        return err_set(err, fd, "cannot write '%s': %s", new, strerror(-fd));
    struct rewriting w = {
        .begin = begin, .watch = metric_watch_new(), .out = BUF_INIT(OUT_MAX), .fd = fd};
    int x = walk_merged(r->root, r->job, MERGED_MAX, rewrite_record, &w, &read, err);
    write_out(&w);
    if (close(fd) < 0 && w.result == 0)
        w.result = -errno;
    if (x == 0 && w.result == 0 && rename(new, path) < 0)
        w.result = -errno;
    if (x == 0 && w.result < 0)
        x = err_set(err, w.result, "cannot write '%s': %s", path, strerror(-w.result));
    buf_release(&w.out);
    if (x < 0) {
        metric_watch_free(w.watch);
        (void)unlink(new); /* it is made anew */
        return x;
    }
    metric_watch_set_total(w.watch, metric_watch_total(r->watch), true);
    metric_watch_free(r->watch);
    r->watch = w.watch;
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

static bool is_there(const struct metric_reader *r)
{
    _cleanup_(freep) char *path = fsroot_attempt_dir(r->root, r->job, r->k, "metrics.jsonl");
    struct stat st;
    return lstat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* verl makes its file before it prints a step: who sees a step in the log, and then no file, has a
 * verl without one. */
static bool is_wanted(struct taking *t)
{
    if (t->want_records && t->from_log && !t->asked) {
        t->asked = true;
        t->r->has_file = is_there(t->r);
        t->want_records = !t->r->has_file;
    }
    return t->want_records && t->result == 0;
}

/* What goes back is the first of its attempt, so nothing of it was taken yet if that fails. */
static void new_record(struct metric_record *rec, uint64_t end, void *arg)
{
    struct taking *t = arg;
    struct metric_reader *r = t->r;
    if (!is_wanted(t))
        return;
    rec->attempt = r->k;
    rec->offset = end;
    rec->from_log = t->from_log;
    rec->at = t->now;
    rec->superseded = false;
    rec->total = metric_watch_total(r->watch);
    if (metric_watch_goes_back(r->watch, rec)) {
        t->result = flush(r, t->err);
        if (t->result == 0)
            t->result = rewrite(r, rec, t->err);
        if (t->result < 0)
            return;
    }
    metric_watch_add(r->watch, rec);
    metric_record_to_json(rec, &r->out);
    t->pass->records++;
}

static void new_total(int64_t steps, bool sure, void *arg)
{
    const struct taking *t = arg;
    metric_watch_set_total(t->r->watch, steps, sure);
}

static bool total_is_known(const struct metric_reader *r)
{
    return metric_watch_total(r->watch) > 0 || r->log.offset > TOTAL_WITHIN;
}

/* fd stays -1 for the log. */
static int open_source(const struct metric_reader *r,
                       const char *path,
                       int *ret_fd,
                       uint64_t *ret_size)
{
    struct logread_part none;
    if (path) {
        int x = open_plain(path, O_RDONLY, ret_size);
        *ret_fd = x;
        return x < 0 ? x : 0;
    }
    int x = logread_at(r->root, r->job, r->k, ATTEMPT_LOG, 0, NULL, 0, &none, NULL);
    *ret_size = x < 0 ? 0 : none.end;
    return x;
}

/* One chunk of this source; file: its name, NULL is the log. *ret_used: 0 = there is no more now.
 */
static int read_source(struct metric_reader *r,
                       struct source *src,
                       const char *file,
                       bool final,
                       struct taking *t,
                       size_t *ret_used)
{
    _cleanup_(freep) char *path = file ? fsroot_attempt_dir(r->root, r->job, r->k, file) : NULL;
    _cleanup_(closep) int fd = -1;
    uint64_t size = 0;
    *ret_used = 0;
    int x = open_source(r, path, &fd, &size);
    if (x == -ENOENT || x == -ELOOP || x == -EINVAL)
        return 0;
    if (x < 0)
        return err_set(t->err, x, "cannot open '%s': %s", path ? path : ATTEMPT_LOG, strerror(-x));
    if (size < src->offset)
        *src = (struct source){0}; /* begun anew */
    if (size == src->size && !final)
        return 0;
    struct source before = *src;
    struct sink s = {.record = new_record, .total = new_total, .arg = t};
    struct origin from = {.fd = fd, .r = r};
    x = take_chunk(&from, src, r->chunk, final, &s, ret_used);
    if (x < 0)
        return err_set(t->err, x, "cannot read '%s': %s", path ? path : ATTEMPT_LOG, strerror(-x));
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
    int x = 0;
    r->has_file = r->has_file || is_there(r);
    t->from_log = true;
    t->asked = false;
    t->want_records = !r->has_file;
    if (!r->has_file || !total_is_known(r))
        x = read_source(r, &r->log, NULL, final, t, &of_log);
    t->from_log = false;
    t->want_records = true;
    if (x == 0 && r->has_file)
        x = read_source(r, &r->file, "metrics.jsonl", final, t, &of_file);
    *ret_used = of_log + of_file;
    return x;
}

static void next_attempt(struct metric_reader *r)
{
    r->k++;
    r->file = r->log = (struct source){0};
    r->has_file = false;
}

/* From the attempt that is read on, until there is no more or the pass had its fill. */
static int read_on(struct metric_reader *r, int attempt, bool ended, struct taking *t)
{
    size_t budget = PASS_BYTES, used = 0;
    while (r->k <= attempt) {
        int x = read_attempt(r, r->k < attempt || ended, t, &used);
        if (x == 0)
            x = flush(r, t->err);
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
        return err_set(err, -EINVAL, "'%.60s' is no job's directory", r->job);
    int x = r->loaded ? 0 : load(r, err);
    if (x == 0)
        x = flush(r, err);
    r->chunk = xmalloc(CHUNK);
    if (x == 0)
        x = read_on(r, attempt, ended, &t);
    freep(&r->chunk); /* a quiet job costs no memory */
    *ret = pass;
    return x;
}

/* ---- for readers ---- */

struct metric_curves {
    char *root, *job;
    size_t points;
    struct metric_table *table;
    struct metric_void voids[METRIC_VOIDS_MAX];
    size_t n_voids;
    uint64_t bytes; /* of the file, read so far */
    ino_t file;     /* which one that was */
    int attempt;    /* the newest, */
    int64_t step;   /* and the highest that counts */
    bool fresh;     /* all of the file is read in this walk */
    bool stale;     /* lines that were read before are void now */
};

struct metric_curves *metric_curves_new(const char *root, const char *job, size_t points)
{
    struct metric_curves *c = xcalloc(1, sizeof(*c));
    *c = (struct metric_curves){.root = xstrdup(root),
                                .job = xstrdup(job),
                                .points = points,
                                .table = metric_table_new(points)};
    return c;
}

void metric_curves_free(struct metric_curves *c)
{
    if (!c)
        return;
    metric_table_free(c->table);
    free(c->root);
    free(c->job);
    free(c);
}

static void note_void(struct metric_curves *c, const struct metric_record *rec)
{
    struct metric_void *v = c->n_voids ? &c->voids[c->n_voids - 1] : NULL;
    if (!metric_is_training(rec))
        return;
    if (v && v->attempt == rec->attempt)
        v->last = rec->step;
    else if (c->n_voids < METRIC_VOIDS_MAX)
        c->voids[c->n_voids++] = (struct metric_void){rec->attempt, rec->step, rec->step};
}

static void curves_record(struct metric_record *rec, uint64_t end, void *arg)
{
    struct metric_curves *c = arg;
    (void)end;
    if (rec->superseded) {
        note_void(c, rec);
        return;
    }
    /* What such a record makes void was marked in a new file, before it was written. */
    if (!c->fresh && rec->attempt > c->attempt && rec->step <= c->step)
        c->stale = true;
    c->attempt = rec->attempt;
    c->step = rec->step > c->step ? rec->step : c->step;
    metric_table_add(c->table, rec);
}

static void begin_anew(struct metric_curves *c, ino_t file)
{
    metric_table_free(c->table);
    c->table = metric_table_new(c->points);
    c->n_voids = 0;
    c->bytes = 0;
    c->file = file;
    c->attempt = 0;
    c->step = -1;
    c->stale = false;
}

int metric_curves_update(struct metric_curves *c, struct err *err)
{
    struct stat st = {0};
    if (!fsroot_is_name(c->job))
        return err_set(err, -EINVAL, "'%.60s' is no job's directory", c->job);
    _cleanup_(freep) char *path = merged_path(c->root, c->job);
    if (lstat(path, &st) < 0 || st.st_ino != c->file || (uint64_t)st.st_size < c->bytes)
        begin_anew(c, st.st_ino);
    c->fresh = !c->bytes;
    int x = walk_merged(c->root, c->job, LOAD_MAX, curves_record, c, &c->bytes, err);
    if (x == 0 && c->stale) {
        begin_anew(c, st.st_ino);
        c->fresh = true;
        x = walk_merged(c->root, c->job, LOAD_MAX, curves_record, c, &c->bytes, err);
    }
    if (x < 0)
        begin_anew(c, 0);
    return x;
}

const struct metric_table *metric_curves_table(const struct metric_curves *c)
{
    return c->table;
}

const struct metric_void *metric_curves_voids(const struct metric_curves *c, size_t *ret_n)
{
    *ret_n = c->n_voids;
    return c->voids;
}

bool metric_curves_is_cut(const struct metric_curves *c)
{
    return c->bytes >= LOAD_MAX;
}
