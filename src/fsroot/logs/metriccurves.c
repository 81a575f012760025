/* SPDX-License-Identifier: Apache-2.0 */
/* metriccurves.c - a job's merged file as a table that follows it; see metricfile.h. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/message.h"
#include "base/str.h"
#include "fsroot/logs/metricread.h"
#include "fsroot/tree/paths.h"
#include "fsroot/tree/rootfile.h"

static const uint64_t LOAD_MAX = 256ULL << 20;
enum { VOID_POINTS = 64 }; /* there may be METRIC_VOIDS_MAX such tables */

struct metric_curves {
    char *root, *job;
    size_t points;
    struct metric_table *table;
    struct metric_void voids[METRIC_VOIDS_MAX];
    struct metric_table *void_tables[METRIC_VOIDS_MAX];
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

static void forget_voids(struct metric_curves *c)
{
    for (size_t i = 0; i < c->n_voids; i++)
        metric_table_free(c->void_tables[i]);
    c->n_voids = 0;
}

void metric_curves_free(struct metric_curves *c)
{
    if (!c)
        return;
    forget_voids(c);
    metric_table_free(c->table);
    free(c->root);
    free(c->job);
    free(c);
}

/* In a table of its own it counts. */
static void note_void(struct metric_curves *c, struct metric_record *rec)
{
    rec->superseded = false;
    size_t i = c->n_voids ? c->n_voids - 1 : 0;
    bool goes_on = c->n_voids && c->voids[i].attempt == rec->attempt;
    if (goes_on)
        metric_table_add(c->void_tables[i], rec);
    if (!metric_is_training(rec))
        return;
    if (goes_on) {
        c->voids[i].last = rec->step;
    } else if (c->n_voids < METRIC_VOIDS_MAX) {
        c->voids[c->n_voids] = (struct metric_void){rec->attempt, rec->step, rec->step};
        c->void_tables[c->n_voids] = metric_table_new(VOID_POINTS);
        metric_table_add(c->void_tables[c->n_voids++], rec);
    }
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
    if (metric_has_step(rec)) {
        if (!c->fresh && rec->attempt > c->attempt && rec->step <= c->step)
            c->stale = true;
        c->attempt = rec->attempt;
    }
    c->step = rec->step > c->step ? rec->step : c->step;
    metric_table_add(c->table, rec);
}

static void begin_anew(struct metric_curves *c, ino_t file)
{
    metric_table_free(c->table);
    c->table = metric_table_new(c->points);
    forget_voids(c);
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
        return message_refuse(err, -EINVAL, "no_job_dir",
                              MESSAGE_ARGS(MESSAGE_STR("name", c->job)));
    _cleanup_(freep) char *path = metricread_merged_path(c->root, c->job);
    if (rootfile_look(c->root, path, &st) < 0 || st.st_ino != c->file ||
        (uint64_t)st.st_size < c->bytes)
        begin_anew(c, st.st_ino);
    c->fresh = !c->bytes;
    int x = metricread_merged(c->root, c->job, LOAD_MAX, curves_record, c, &c->bytes, err);
    if (x == 0 && c->stale) {
        begin_anew(c, st.st_ino);
        c->fresh = true;
        x = metricread_merged(c->root, c->job, LOAD_MAX, curves_record, c, &c->bytes, err);
    }
    if (x < 0)
        begin_anew(c, 0);
    return x;
}

const struct metric_table *metric_curves_table(const struct metric_curves *c)
{
    return c->table;
}

const struct metric_table *metric_curves_void_table(const struct metric_curves *c, size_t i)
{
    return c->void_tables[i];
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
