/* SPDX-License-Identifier: Apache-2.0 */
/* sampleindex.c - see sampleindex.h. A block is appended by one write and never changed; where more
 * than half of the file is of dumps that went or were dumped anew, it is written anew beside it and
 * renamed. A writer holds a lock of the file that has the name. */
#include "fsroot/samples/sampleindex.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/digest/crc.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/sample/sample.h"
#include "core/sample/sample_effect.h"
#include "core/sample/sample_mark.h"

#define SAMPLEINDEX_MAGIC 0x3478647341677241ULL /* "ArgAsdx4" */

enum {
    BLOCKS_MAX = 4 * SAMPLEDUMPS_MAX,
    SLACK = 1 << 20, /* bytes of what counts no more, below which nobody cares */
};
static const uint64_t JOB_BYTES_MAX = 64ULL
                                      << 30; /* of all dumps of a job: the rest is not indexed */

enum sampleindex_flags {
    SAMPLEINDEX_IS_CUT = 1 << 0,
    SAMPLEINDEX_IS_GONE = 1 << 1, /* the dump is no longer there: the step is not in the index */
};

struct sampleindex_head {
    uint64_t magic;
    uint32_t crc; /* of all that follows in the head */
    uint32_t kind;
    int64_t step;
    uint64_t bytes, inode;
    int64_t changed_ns;
    uint64_t n, unread;
    uint64_t scored, groups, flat;
    double mean, least, most;
    uint32_t records_crc;
    uint32_t flags; /* enum sampleindex_flags */
};
_Static_assert(sizeof(struct sampleindex_head) == 120, "as it is on disk");

struct sampleindex_record {
    uint64_t offset, prompt, group;
    double score;
    uint32_t bytes, answer;
    uint16_t repeats, marks;
    uint16_t wide_answer, wide_prompt;
    uint8_t traits[SAMPLE_TRAITS];
};
_Static_assert(sizeof(struct sampleindex_record) == 56, "as it is on disk");

static uint32_t sampleindex_head_crc(const struct sampleindex_head *h)
{
    size_t from = offsetof(struct sampleindex_head, kind);
    return crc32_add(0, (const char *)h + from, sizeof(*h) - from);
}

/* ---- reading ---- */

static int sampleindex_compare(const void *a, const void *b)
{
    const struct sampleindex_dump *x = a, *y = b;
    if (x->file.kind != y->file.kind)
        return x->file.kind < y->file.kind ? -1 : 1;
    if (x->file.step != y->file.step)
        return x->file.step > y->file.step ? -1 : 1;
    return x->at > y->at ? -1 : x->at < y->at; /* the newest of a step first */
}

static bool sampleindex_read_head(int fd, uint64_t at, uint64_t end, struct sampleindex_dump *ret)
{
    struct sampleindex_head h;
    size_t got = 0;
    if (at > end || end - at < sizeof(h) || file_read_at(fd, at, &h, sizeof(h), &got) < 0 ||
        got != sizeof(h))
        return false;
    if (h.magic != SAMPLEINDEX_MAGIC || h.crc != sampleindex_head_crc(&h) ||
        h.kind >= SAMPLE_KINDS || h.n > SAMPLEDUMP_LINES_MAX + 1 ||
        h.n * sizeof(struct sampleindex_record) > end - at - sizeof(h))
        return false;
    *ret = (struct sampleindex_dump){
        .file = {.kind = (int)h.kind,
                 .step = h.step,
                 .bytes = h.bytes,
                 .inode = h.inode,
                 .changed_ns = h.changed_ns},
        .n = h.n,
        .unread = h.unread,
        .is_cut = (h.flags & SAMPLEINDEX_IS_CUT) != 0,
        .is_gone = (h.flags & SAMPLEINDEX_IS_GONE) != 0,
        .sum = {.scored = h.scored,
                .mean = h.mean,
                .least = h.least,
                .most = h.most,
                .groups = h.groups,
                .flat = h.flat},
        .at = at + sizeof(h),
        .crc = h.records_crc,
    };
    return true;
}

/* The newest block of each step, sorted, up to the first one that is damaged. *ret_whole: the bytes
 * of all blocks, *ret_blocks: how many they are. */
static void sampleindex_read(struct sampleindex *x, uint64_t *ret_whole, size_t *ret_blocks)
{
    struct stat st;
    uint64_t at = 0, end = fstat(x->fd, &st) == 0 ? (uint64_t)st.st_size : 0;
    size_t cap = 0, kept = 0;
    int kind = 0;
    int64_t step = 0;
    struct sampleindex_dump d;
    while (x->n < BLOCKS_MAX && sampleindex_read_head(x->fd, at, end, &d)) {
        if (x->n == cap) {
            cap = cap ? 2 * cap : 64;
            x->v = xrealloc(x->v, cap, sizeof(*x->v));
        }
        x->v[x->n++] = d;
        at = d.at + d.n * sizeof(struct sampleindex_record);
    }
    *ret_whole = at;
    *ret_blocks = x->n;
    xsort(x->v, x->n, sizeof(*x->v), sampleindex_compare);
    for (size_t i = 0; i < x->n; i++) {
        bool is_newest = !i || x->v[i].file.kind != kind || x->v[i].file.step != step;
        kind = x->v[i].file.kind;
        step = x->v[i].file.step;
        if (is_newest && !x->v[i].is_gone)
            x->v[kept++] = x->v[i];
    }
    x->n = kept;
}

int sampleindex_open(const char *path, struct sampleindex *ret, struct err *err)
{
    struct sampleindex x = SAMPLEINDEX_NONE;
    uint64_t whole;
    size_t blocks;
    x.fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (x.fd < 0 && errno != ENOENT)
        return err_set(err, -errno, "cannot open '%s': %s", path, strerror(errno));
    if (x.fd >= 0) {
        sampleindex_read(&x, &whole, &blocks);
        (void)futimens(x.fd, NULL); /* it is in use; else it is made anew one day */
    }
    *ret = x;
    return 0;
}

void sampleindex_release(struct sampleindex *x)
{
    closep(&x->fd);
    free(x->v);
    *x = (struct sampleindex)SAMPLEINDEX_NONE;
}

const struct sampleindex_dump *sampleindex_find(const struct sampleindex *x,
                                                enum sample_kind kind,
                                                int64_t step)
{
    const struct sampleindex_dump key = {.file = {.kind = (int)kind, .step = step},
                                         .at = UINT64_MAX};
    size_t low = 0, high = x->n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (sampleindex_compare(&x->v[mid], &key) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    bool is = low < x->n && x->v[low].file.kind == (int)kind && x->v[low].file.step == step;
    return is ? &x->v[low] : NULL;
}

int sampleindex_places(const struct sampleindex *x,
                       const struct sampleindex_dump *d,
                       struct sample_place **ret,
                       struct err *err)
{
    size_t bytes = (size_t)d->n * sizeof(struct sampleindex_record), got = 0;
    _cleanup_(freep) struct sampleindex_record *records =
        xcalloc((size_t)d->n + 1, sizeof(*records));
    int r = file_read_at(x->fd, d->at, records, bytes, &got);
    if (r < 0 || got != bytes || crc32_add(0, records, bytes) != d->crc)
        return err_set(err, r < 0 ? r : -EBADMSG, "the index of step %lld is damaged",
                       (long long)d->file.step);
    struct sample_place *v = xcalloc((size_t)d->n + 1, sizeof(*v));
    for (size_t i = 0; i < d->n; i++) {
        v[i] = (struct sample_place){.offset = records[i].offset,
                                     .prompt = records[i].prompt,
                                     .group = records[i].group,
                                     .score = records[i].score,
                                     .change = NAN,
                                     .bytes = records[i].bytes,
                                     .repeats = records[i].repeats,
                                     .marks = records[i].marks,
                                     .answer = records[i].answer,
                                     .wide_answer = records[i].wide_answer,
                                     .wide_prompt = records[i].wide_prompt};
        memcpy(v[i].traits, records[i].traits, sizeof(v[i].traits));
    }
    *ret = v;
    return 0;
}

/* ---- writing ---- */

struct indexing {
    struct sample_place *places; /* for the sums */
    struct sampleindex_record *records;
    size_t n, cap;
    uint64_t unread;
    struct buf text;
};

/* In SAMPLE_SHARE parts, of the value as it is written: verl writes UTF-8 as it is. */
static uint16_t wide_share(struct sample_value v)
{
    size_t wide = 0;
    for (size_t i = 0; i < v.n; i++)
        wide += (unsigned char)v.p[i] >> 7;
    return (uint16_t)(v.n ? wide * SAMPLE_SHARE / v.n : 0);
}

static void indexing_on_line(uint64_t offset, const char *line, size_t n, void *arg)
{
    struct indexing *x = arg;
    struct sample s;
    if (!sample_read(line, n, &s)) {
        x->unread++;
        return;
    }
    if (x->n == x->cap) {
        x->cap = x->cap ? 2 * x->cap : 256;
        x->records = xrealloc(x->records, x->cap, sizeof(*x->records));
        x->places = xrealloc(x->places, x->cap, sizeof(*x->places));
    }
    buf_reset(&x->text);
    sample_text(s.output, &x->text); /* it is no longer than the line */
    double repeats = sample_repeats(buf_str(&x->text), x->text.len);
    struct sampleindex_record r = {.offset = offset,
                                   .prompt = sample_prompt(&s),
                                   .group = sample_group(&s),
                                   .score = s.score,
                                   .bytes = (uint32_t)n,
                                   .repeats = (uint16_t)(repeats * SAMPLE_SHARE),
                                   .marks = (uint16_t)sample_marks(buf_str(&x->text), x->text.len),
                                   .answer = crc32_add(0, buf_str(&x->text), x->text.len),
                                   .wide_answer = wide_share(s.output),
                                   .wide_prompt = wide_share(s.input)};
    sample_traits(buf_str(&x->text), x->text.len, r.traits);
    x->records[x->n] = r;
    x->places[x->n++] = (struct sample_place){.group = r.group, .score = r.score};
}

static struct sampleindex_head indexing_head(const struct indexing *x,
                                             const struct sampledump *d,
                                             const struct sampledump_read *read)
{
    struct sample_sum sum;
    sample_order_sum(x->places, x->n, &sum);
    struct sampleindex_head h = {.magic = SAMPLEINDEX_MAGIC,
                                 .kind = (uint32_t)d->kind,
                                 .step = d->step,
                                 .bytes = d->bytes,
                                 .inode = d->inode,
                                 .changed_ns = d->changed_ns,
                                 .n = x->n,
                                 .unread = x->unread + read->skipped,
                                 .scored = sum.scored,
                                 .groups = sum.groups,
                                 .flat = sum.flat,
                                 .mean = sum.mean,
                                 .least = sum.least,
                                 .most = sum.most,
                                 .flags = read->is_cut ? SAMPLEINDEX_IS_CUT : 0};
    h.records_crc = crc32_add(0, x->records, x->n * sizeof(*x->records));
    h.crc = sampleindex_head_crc(&h);
    return h;
}

/* Appends what is in the dump at *end, which goes on. A dump that goes, changes or cannot be read
 * meanwhile is left to who asks next. */
static int sampleindex_add(int fd,
                           const struct sampleindex_update *u,
                           const struct sampledump *d,
                           uint64_t *end,
                           struct err *err)
{
    struct indexing x = {.text = BUF_INIT(SAMPLE_LINE_MAX)};
    struct sampledump_read read = {0};
    _cleanup_(closep) int dump = sampledump_open(u->root, u->job, d, NULL);
    int r = 0;
    if (dump >= 0 && sampledump_each_line(dump, d->bytes, indexing_on_line, &x, &read) == 0) {
        struct sampleindex_head h = indexing_head(&x, d, &read);
        size_t bytes = x.n * sizeof(*x.records);
        r = file_write_at(fd, *end + sizeof(h), x.records, bytes);
        if (r == 0)
            r = file_write_at(fd, *end, &h, sizeof(h)); /* last: without it there is nothing */
        *end += r == 0 ? sizeof(h) + bytes : 0;
    }
    buf_release(&x.text);
    free(x.records);
    free(x.places);
    return r < 0 ? err_set(err, r, "cannot write '%s': %s", u->path, strerror(-r)) : 0;
}

/* The index for writing, locked; -EWOULDBLOCK: somebody else has it. -ENOENT: there is none, and it
 * is not to be made. */
static int sampleindex_lock(const char *path, bool makes, struct err *err)
{
    struct stat ours, theirs;
    int fd = open(path, O_RDWR | (makes ? O_CREAT : 0) | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0 && !makes && errno == ENOENT)
        return -ENOENT;
    if (fd < 0)
        return err_set(err, -errno, "cannot open '%s': %s", path, strerror(errno));
    bool is_ours = flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &ours) == 0 &&
                   lstat(path, &theirs) == 0 && ours.st_ino == theirs.st_ino;
    if (!is_ours)
        closep(&fd);
    return is_ours ? fd : -EWOULDBLOCK;
}

static uint64_t sampleindex_block_bytes(const struct sampleindex_dump *d)
{
    return sizeof(struct sampleindex_head) + d->n * sizeof(struct sampleindex_record);
}

/* Writes the blocks of dumps that are still there beside the index, and puts that in its place. */
static int sampleindex_compact(const struct sampleindex *x, const char *path, struct err *err)
{
    _cleanup_(freep) char *beside = xasprintf("%s.new", path);
    _cleanup_(closep) int fd =
        open(beside, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
    uint64_t end = 0;
    int r = fd < 0 ? -errno : 0;
    for (size_t i = 0; i < x->n && r == 0; i++) {
        size_t n = (size_t)sampleindex_block_bytes(&x->v[i]), got = 0;
        _cleanup_(freep) char *block = xmalloc(n);
        r = file_read_at(x->fd, x->v[i].at - sizeof(struct sampleindex_head), block, n, &got);
        if (r == 0 && got == n)
            r = file_write_at(fd, end, block, n);
        end += n;
    }
    if (r == 0 && rename(beside, path) < 0)
        r = -errno;
    return r < 0 ? err_set(err, r, "cannot write '%s': %s", beside, strerror(-r)) : 0;
}

/* Notes at *end that the dump is gone. */
static int sampleindex_add_gone(int fd, const struct sampledump *d, uint64_t *end, struct err *err)
{
    struct sampleindex_head h = {.magic = SAMPLEINDEX_MAGIC,
                                 .kind = (uint32_t)d->kind,
                                 .step = d->step,
                                 .flags = SAMPLEINDEX_IS_GONE};
    h.crc = sampleindex_head_crc(&h);
    int r = file_write_at(fd, *end, &h, sizeof(h));
    if (r == 0)
        *end += sizeof(h);
    return r < 0 ? err_set(err, r, "cannot note that step %lld is gone: %s", (long long)d->step,
                           strerror(-r))
                 : 0;
}

static uint64_t sampleindex_ceiling(uint64_t said, uint64_t otherwise)
{
    return said ? said : otherwise;
}

/* ---- what may be added ---- */

struct sampleindex_beside {
    const char *name; /* the one that is not counted */
    uint64_t bytes;
};

static bool sampleindex_count_beside(int dir, const char *name, void *arg)
{
    struct sampleindex_beside *b = arg;
    struct stat st;
    if (!str_eq(name, b->name) && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISREG(st.st_mode))
        b->bytes += (uint64_t)st.st_size;
    return true;
}

/* Bytes of the other indexes in its directory. */
static uint64_t sampleindex_others(const char *path)
{
    const char *slash = strrchr(path, '/');
    struct sampleindex_beside b = {.name = slash + 1};
    _cleanup_(freep) char *dir = xstrndup(path, (size_t)(slash - path));
    file_each_name(dir, sampleindex_count_beside, &b);
    return b.bytes;
}

/* The limit that keeps the next dump out; 0: none. index: bytes of what counts, newer ones first.
 * all: of all indexes of the user, as they are on disk. */
static unsigned sampleindex_limit(const struct sampleindex_update *u,
                                  int fd,
                                  uint64_t index,
                                  uint64_t all)
{
    struct statvfs vfs;
    uint64_t least = sampleindex_ceiling(u->free_bytes, SAMPLEINDEX_FREE_BYTES);
    if (index >= sampleindex_ceiling(u->job_bytes, SAMPLEINDEX_JOB_BYTES))
        return SAMPLEINDEX_JOB_FULL;
    if (all >= sampleindex_ceiling(u->user_bytes, SAMPLEINDEX_USER_BYTES))
        return SAMPLEINDEX_USER_FULL;
    bool is_full = fstatvfs(fd, &vfs) == 0 && (uint64_t)vfs.f_bavail * vfs.f_frsize < least;
    return is_full ? SAMPLEINDEX_DISK_FULL : 0;
}

/* ---- an update ---- */

/* x has only the dumps that are as the list has them, as far as an index goes: the older ones
 * count no more. Those that are gone are noted at *end. *ret_spare: bytes of blocks that count no
 * more. */
static int sampleindex_drop_others(struct sampleindex *x,
                                   uint64_t most,
                                   const struct sampledumps *list,
                                   uint64_t *end,
                                   uint64_t *ret_spare,
                                   struct err *err)
{
    size_t kept = 0, at = 0;
    uint64_t used = 0;
    int r = 0;
    for (size_t i = 0; i < x->n && r == 0; i++) {
        const struct sampledump *d = &x->v[i].file;
        while (at < list->n && sampledump_is_before(&list->v[at], d))
            at++;
        bool is_there = at < list->n && !sampledump_is_before(d, &list->v[at]);
        if (!is_there && !list->is_cut)
            r = sampleindex_add_gone(x->fd, d, end, err);
        if (is_there ? !sampledump_is_same(&list->v[at], d) : !list->is_cut)
            continue;
        if (used >= most)
            continue;
        used += sampleindex_block_bytes(&x->v[i]);
        x->v[kept++] = x->v[i];
    }
    x->n = kept;
    *ret_spare = *end - used;
    return r;
}

/* Adds what x, of which `end` bytes are whole, lacks of the list: the newest first, within the
 * budget. */
static int sampleindex_add_missing(const struct sampleindex *x,
                                   struct sampleindex_update *u,
                                   const struct sampledumps *list,
                                   uint64_t *end,
                                   struct err *err)
{
    uint64_t total = 0, index = 0, others = 0;
    bool is_counted = false; /* the others: mostly nothing is missing, and nobody asks */
    int r = 0;
    for (size_t i = 0; i < list->n && r == 0; i++) {
        const struct sampledump *d = &list->v[i];
        const struct sampleindex_dump *has =
            sampleindex_find(x, (enum sample_kind)d->kind, d->step);
        uint64_t bytes = d->bytes < SAMPLEDUMP_BYTES_MAX ? d->bytes : SAMPLEDUMP_BYTES_MAX;
        total += bytes;
        if (total > JOB_BYTES_MAX) {
            u->is_cut = true;
            break;
        }
        if (has && sampledump_is_same(&has->file, d)) {
            index += sampleindex_block_bytes(has);
            continue;
        }
        if (!is_counted)
            others = sampleindex_others(u->path);
        is_counted = true;
        unsigned limit = sampleindex_limit(u, x->fd, index, others + *end);
        if (limit) {
            u->limits |= limit;
            u->is_cut = true;
            break;
        }
        if (u->read >= u->budget || (u->stop && atomic_load(u->stop))) {
            u->pending += bytes;
            continue;
        }
        uint64_t before = *end;
        u->read += bytes ? bytes : 1;
        r = sampleindex_add(x->fd, u, d, end, err);
        index += *end - before;
    }
    return r;
}

/* *is_anew: set where it was written anew instead, as much of it counts no more: then it is to be
 * opened again. NULL: it is not. */
static int sampleindex_update_locked(int fd,
                                     struct sampleindex_update *u,
                                     const struct sampledumps *list,
                                     bool *is_anew,
                                     struct err *err)
{
    struct sampleindex x = {.fd = fd};
    uint64_t whole, spare = 0;
    size_t blocks;
    int r = 0;
    sampleindex_read(&x, &whole, &blocks);
    if (ftruncate(fd, (off_t)whole) < 0) /* what is torn would hide what is added */
        r = err_set(err, -errno, "cannot cut '%s' back: %s", u->path, strerror(errno));
    if (r == 0)
        r = sampleindex_drop_others(&x, sampleindex_ceiling(u->job_bytes, SAMPLEINDEX_JOB_BYTES),
                                    list, &whole, &spare, err);
    bool is_wide = (spare > SLACK && spare > whole / 2) || blocks > BLOCKS_MAX / 2;
    if (r == 0 && is_anew && is_wide) {
        r = sampleindex_compact(&x, u->path, err);
        *is_anew = r == 0;
    } else if (r == 0) {
        r = sampleindex_add_missing(&x, u, list, &whole, err);
    }
    free(x.v);
    return r;
}

int sampleindex_run_update(struct sampleindex_update *u, struct err *err)
{
    struct sampledumps list = {0};
    _cleanup_(freep) char *dir = xstrndup(u->path, (size_t)(strrchr(u->path, '/') - u->path));
    u->read = u->pending = 0;
    u->is_busy = false;
    int r = sampledumps_list(u->root, u->job, &list, err);
    if (r < 0)
        return r;
    u->is_cut = list.is_cut;
    u->limits = list.linked ? SAMPLEINDEX_LINKED : 0;
    if (list.n)
        r = file_mkdirs(dir, 0700, err);
    bool is_anew = true;
    for (int turn = 0; turn < 2 && is_anew && r == 0; turn++) {
        is_anew = false;
        _cleanup_(closep) int fd = r = sampleindex_lock(u->path, list.n > 0, err);
        if (fd >= 0)
            r = sampleindex_update_locked(fd, u, &list, turn ? NULL : &is_anew, err);
    }
    u->is_busy = r == -EWOULDBLOCK;
    sampledumps_release(&list);
    return u->is_busy || r == -ENOENT ? 0 : r; /* without an index nothing is in it */
}

/* ---- keeping it small ---- */

static bool sampleindex_sweep_file(int dir, const char *name, void *arg)
{
    const int64_t *since = arg;
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
        st.st_mtime < *since)
        (void)unlinkat(dir, name, 0); /* the next sweep tries again */
    return true;
}

struct sampleindex_sweep {
    const char *dir;
    int64_t since;
};

static bool sampleindex_sweep_user(int dir, const char *name, void *arg)
{
    struct sampleindex_sweep *w = arg;
    _cleanup_(freep) char *path = xasprintf("%s/%s", w->dir, name);
    struct stat st;
    if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return true;
    if (S_ISDIR(st.st_mode))
        file_each_name(path, sampleindex_sweep_file, &w->since);
    else
        (void)unlinkat(dir, name, 0); /* of an argusd that had them all in one place */
    return true;
}

void sampleindex_sweep(const char *dir, int64_t since)
{
    struct sampleindex_sweep w = {.dir = dir, .since = since};
    file_each_name(dir, sampleindex_sweep_user, &w);
}
