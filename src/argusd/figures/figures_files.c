/* SPDX-License-Identifier: Apache-2.0 */
/* figures_files.c - files of figures, one per node, day and kind; see figures_files.h.
 *
 * They lie below state_dir, which is argusd's own. Appending is not synced: a power cut may cost
 * what the system had not written yet, and the checksum tells. */
#include "argusd/figures/figures_files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "base/str.h"

enum { FILE_BYTES_MAX = 16 << 20, SAMPLES_DAYS = 2, ROLLUPS_DAYS = 91 };
static const char *const kind_suffix[] =
    {[FIGURES_SAMPLES] = ".samples", [FIGURES_ROLLUPS] = ".rollups"};

char *figures_dir(const char *root, const char *node)
{
    struct buf b = BUF_INIT(4096);
    (void)buf_addf(&b, "%s/", root); /* fits: names have ceilings */
    if (*node == '.')
        (void)buf_adds(&b, "%2E"); /* a name of its own, and not hidden */
    buf_add_escaped(&b, node + (*node == '.'), "-_.", BUF_HEX_UPPER);
    return buf_take(&b);
}

static char *figures_path(const char *dir, enum figures_kind kind, int64_t slot)
{
    time_t t = (time_t)(slot * (int64_t)(FIGURE_EVERY / USEC_SEC));
    struct tm tm;
    char day[32];
    gmtime_r(&t, &tm);
    strftime(day, sizeof(day), "%Y%m%d", &tm);
    return xasprintf("%s/%s%s", dir, day, kind_suffix[kind]);
}

/* Where the last whole record of a file ends. */
static size_t figures_whole(const struct buf *file,
                            void (*each)(const struct figure_record *r, void *arg),
                            void *arg)
{
    struct figure_before before = {0};
    struct figure_record *r = xcalloc(1, sizeof(*r));
    size_t at = 0;
    while (figure_record_get((const unsigned char *)buf_str(file), file->len, &at, &before, r) > 0)
        if (each)
            each(r, arg);
    figure_before_release(&before);
    free(r);
    return at;
}

static int figures_cut_back(const char *path, struct err *err)
{
    struct buf file = BUF_INIT(FILE_BYTES_MAX + FIGURE_RECORD_MAX);
    int r = file_read(path, &file, err);
    if (r == 0) {
        size_t whole = figures_whole(&file, NULL, NULL);
        if (whole < file.len && truncate(path, (off_t)whole) < 0)
            r = err_set(err, -errno, "cannot cut '%s' back: %s", path, strerror(errno));
    }
    buf_release(&file);
    return r == -ENOENT ? 0 : r;
}

int figures_append(const char *dir,
                   enum figures_kind kind,
                   int64_t slot,
                   bool fresh,
                   const struct buf *record,
                   struct err *err)
{
    _cleanup_(freep) char *path = figures_path(dir, kind, slot);
    int r = file_mkdirs(dir, 0700, err);
    if (r == 0 && fresh)
        r = figures_cut_back(path, err);
    if (r < 0)
        return r;
    _cleanup_(closep) int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    off_t end = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    if (end < 0)
        return err_set(err, -errno, "cannot open '%s': %s", path, strerror(errno));
    if (end > FILE_BYTES_MAX)
        return err_set(err, -EFBIG, "'%s' is full: nothing more is kept for this day", path);
    r = file_write_all(fd, record->data, record->len);
    if (r < 0) { /* a part of it would end the file for all that follow */
        (void)!ftruncate(fd, end);
        return err_set(err, r, "cannot write '%s': %s", path, strerror(-r));
    }
    return 0;
}

void figures_each_record(const char *dir,
                         enum figures_kind kind,
                         int64_t from,
                         int64_t to,
                         void (*each)(const struct figure_record *r, void *arg),
                         void *arg)
{
    for (int64_t day = from / FIGURES_DAY_SLOTS; day <= to / FIGURES_DAY_SLOTS; day++) {
        _cleanup_(freep) char *path = figures_path(dir, kind, day * FIGURES_DAY_SLOTS);
        struct buf file = BUF_INIT(FILE_BYTES_MAX + FIGURE_RECORD_MAX);
        if (file_read(path, &file, NULL) == 0)
            (void)figures_whole(&file, each, arg); /* what follows a damaged one is lost */
        buf_release(&file);
    }
}

/* ---- keeping it small ---- */

struct sweeping {
    const char *dir;
    char oldest[FIGURES_ROLLUPS + 1][16]; /* days: what sorts before goes */
};

static bool figures_sweep_file(int fd, const char *name, void *arg)
{
    struct sweeping *s = arg;
    for (int kind = 0; kind <= FIGURES_ROLLUPS; kind++)
        if (str_ends(name, kind_suffix[kind]) && strncmp(name, s->oldest[kind], 8) < 0)
            (void)unlinkat(fd, name, 0); /* the next sweep tries again */
    return true;
}

static bool figures_sweep_node(int fd, const char *name, void *arg)
{
    struct sweeping *s = arg;
    _cleanup_(freep) char *dir = xasprintf("%s/%s", s->dir, name);
    file_each_name(dir, figures_sweep_file, s);
    (void)unlinkat(fd, name, AT_REMOVEDIR); /* it is empty, or it stays */
    return true;
}

void figures_sweep(const char *root, int64_t now_slot)
{
    static const int64_t days[] = {
        [FIGURES_SAMPLES] = SAMPLES_DAYS, [FIGURES_ROLLUPS] = ROLLUPS_DAYS};
    struct sweeping s = {.dir = root};
    for (int kind = 0; kind <= FIGURES_ROLLUPS; kind++) {
        int64_t slot = now_slot - (days[kind] - 1) * FIGURES_DAY_SLOTS;
        _cleanup_(freep) char *path = figures_path("", (enum figures_kind)kind, slot);
        (void)snprintf(s.oldest[kind], sizeof(s.oldest[kind]), "%.8s", path + 1);
    }
    file_each_name(root, figures_sweep_node, &s);
}
