/* SPDX-License-Identifier: Apache-2.0 */
/* sampledump.c - see sampledump.h. What the directory says of a file is a hint; the descriptor of
 * it is asked again. */
#include "fsroot/samples/sampledump.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/message.h"
#include "base/str.h"
#include "core/sample/sample.h"
#include "fsroot/tree/paths.h"
#include "fsroot/tree/rootdir.h"

enum { DUMP_CHUNK = 1 << 20 };

const char *const sample_kind_names[] = {
#define X(e, word) word,
    SAMPLE_KIND_TABLE(X)
#undef X
        NULL};
_Static_assert(array_len(sample_kind_names) == SAMPLE_KINDS + 1, "each kind has its word");

bool sampledump_is_same(const struct sampledump *a, const struct sampledump *b)
{
    return a->kind == b->kind && a->step == b->step && a->bytes == b->bytes &&
           a->inode == b->inode && a->changed_ns == b->changed_ns;
}

static void sampledump_fill(struct sampledump *d, const struct stat *st)
{
    d->bytes = (uint64_t)st->st_size;
    d->inode = (uint64_t)st->st_ino;
    d->changed_ns = (int64_t)st->st_mtim.tv_sec * 1000000000 + st->st_mtim.tv_nsec;
}

/* ---- the list ---- */

static int sampledump_open_dir(const char *root,
                               const char *job,
                               int kind,
                               struct rootdir *ret,
                               struct err *err)
{
    if (!fsroot_is_name(job))
        return err_set(err, -EINVAL, "'%s' is no job", job);
    _cleanup_(freep) char *path = xasprintf("jobs/%s/samples/%s", job, sample_kind_names[kind]);
    return rootdir_open(root, path, 0, ret, err);
}

/* "12.jsonl"; -1: another name. */
static int64_t sampledump_step(const char *name)
{
    const char *dot = strchr(name, '.');
    _cleanup_(freep) char *digits = dot ? xstrndup(name, (size_t)(dot - name)) : NULL;
    int64_t step = -1;
    bool is = dot && str_eq(dot, ".jsonl") && *digits >= '0' && *digits <= '9' &&
              (*digits != '0' || !digits[1]) && str_to_int(digits, 0, INT64_MAX, &step, NULL) == 0;
    return is ? step : -1;
}

static void sampledumps_add(struct sampledumps *d, const struct sampledump *found)
{
    if (d->n == d->cap) {
        d->cap = d->cap ? 2 * d->cap : 64;
        d->v = xrealloc(d->v, d->cap, sizeof(*d->v));
    }
    d->v[d->n++] = *found;
}

static int sampledumps_list_kind(const struct rootdir *dir,
                                 int kind,
                                 struct sampledumps *d,
                                 struct err *err)
{
    DIR *names = NULL;
    int r = rootdir_list(dir, &names, err);
    if (r < 0)
        return r;
    const struct dirent *e;
    for (size_t seen = 0; (e = readdir(names)) != NULL; seen++) {
        struct stat st;
        if (seen == SAMPLEDUMPS_MAX) {
            d->is_cut = true;
            break;
        }
        struct sampledump found = {.kind = kind, .step = sampledump_step(e->d_name)};
        if (found.step < 0 || rootdir_look(dir, e->d_name, &st) < 0 || !S_ISREG(st.st_mode))
            continue;
        if (st.st_nlink > 1) { /* one file by many names would be indexed as often */
            d->linked++;
            continue;
        }
        sampledump_fill(&found, &st);
        sampledumps_add(d, &found);
    }
    (void)closedir(names); /* it was read */
    return 0;
}

static int sampledump_compare(const void *a, const void *b)
{
    const struct sampledump *x = a, *y = b;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return x->step > y->step ? -1 : x->step < y->step;
}

bool sampledump_is_before(const struct sampledump *a, const struct sampledump *b)
{
    return sampledump_compare(a, b) < 0;
}

int sampledumps_list(const char *root, const char *job, struct sampledumps *ret, struct err *err)
{
    struct sampledumps found = {0};
    int r = 0;
    for (int kind = 0; kind < SAMPLE_KINDS && r == 0; kind++) {
        _cleanup_(rootdir_release) struct rootdir dir = ROOTDIR_NONE;
        r = sampledump_open_dir(root, job, kind, &dir, err);
        if (r == 0)
            r = sampledumps_list_kind(&dir, kind, &found, err);
        else if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP) /* a job may put anything there */
            r = 0;
    }
    if (r < 0) {
        sampledumps_release(&found);
        return r;
    }
    xsort(found.v, found.n, sizeof(*found.v), sampledump_compare);
    *ret = found;
    return 0;
}

void sampledumps_release(struct sampledumps *d)
{
    free(d->v);
    *d = (struct sampledumps){0};
}

/* ---- one of them ---- */

int sampledump_open(const char *root, const char *job, const struct sampledump *d, struct err *err)
{
    _cleanup_(rootdir_release) struct rootdir dir = ROOTDIR_NONE;
    _cleanup_(freep) char *name = xasprintf("%lld.jsonl", (long long)d->step);
    struct sampledump now = {.kind = d->kind, .step = d->step};
    struct stat st;
    int r = sampledump_open_dir(root, job, d->kind, &dir, err);
    if (r < 0)
        return r;
    int fd = rootdir_open_file(&dir, name, err);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) == 0 && st.st_nlink <= 1)
        sampledump_fill(&now, &st);
    if (sampledump_is_same(d, &now))
        return fd;
    closep(&fd);
    return err_set(err, -ESTALE, "%s/%s has changed", dir.path, name);
}

struct dumpread {
    struct buf held; /* from the line that begins at `at` on */
    uint64_t at;
    bool is_skipping; /* to the end of a line that is too long */
    sampledump_line_f each;
    void *arg;
    struct sampledump_read *told;
};

/* The whole lines in what is held; is_end: what follows them is one too. */
static void dumpread_lines(struct dumpread *d, bool is_end)
{
    size_t from = 0;
    while (from < d->held.len && !d->told->is_cut) {
        const char *line = d->held.data + from, *end = memchr(line, '\n', d->held.len - from);
        if (!end && !is_end)
            break;
        size_t n = end ? (size_t)(end - line) : d->held.len - from;
        if (!d->is_skipping && n) {
            d->told->is_cut = d->told->lines == SAMPLEDUMP_LINES_MAX;
            d->told->lines++;
            d->each(d->at + from, line, n, d->arg);
        }
        d->is_skipping = false;
        from += n + (end != NULL);
    }
    buf_consume(&d->held, from);
    d->at += from;
    if (d->held.len > SAMPLE_LINE_MAX) {
        d->told->skipped += !d->is_skipping;
        d->is_skipping = true;
    }
    if (d->is_skipping) {
        d->at += d->held.len;
        buf_reset(&d->held);
    }
}

int sampledump_each_line(int fd,
                         uint64_t bytes,
                         sampledump_line_f each,
                         void *arg,
                         struct sampledump_read *ret)
{
    *ret = (struct sampledump_read){.is_cut = false};
    struct dumpread d = {
        .held = BUF_INIT(SAMPLE_LINE_MAX + 2 * DUMP_CHUNK), .each = each, .arg = arg, .told = ret};
    uint64_t most = bytes < SAMPLEDUMP_BYTES_MAX ? bytes : SAMPLEDUMP_BYTES_MAX;
    int r = 0;
    for (uint64_t at = 0; at < most && !ret->is_cut && r == 0;) {
        size_t want = most - at < DUMP_CHUNK ? (size_t)(most - at) : DUMP_CHUNK, got = 0;
        char *room = buf_room(&d.held, want); /* a line that long is dropped before */
        r = file_read_at(fd, at, room, want, &got);
        if (r == 0 && got < want)
            most = at + got; /* it was cut short meanwhile */
        buf_wrote(&d.held, got);
        at += got;
        dumpread_lines(&d, at == bytes);
    }
    ret->is_cut |= bytes > SAMPLEDUMP_BYTES_MAX;
    buf_release(&d.held);
    return r;
}
