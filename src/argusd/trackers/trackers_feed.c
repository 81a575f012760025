/* SPDX-License-Identifier: Apache-2.0 */
/* trackers_feed.c - the metrics of an attempt that MLflow does not have, from the job's
 * metrics.jsonl: as many as one request takes, which may be a part of a record. In the worker pool.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "argusd/trackers/trackers_state.h"
#include "base/file.h"
#include "base/json.h"
#include "base/message.h"
#include "core/metric/metric.h"
#include "fsroot/tree/paths.h"
#include "fsroot/tree/rootfile.h"

enum { FEED_CHUNK = 2 << 20 }; /* more than a line may have */

struct feeding {
    struct feed *f;
    struct jout j;
    size_t n;
};

/* JSON of MLflow says NaN and infinity in words. */
static void feed_put_value(struct jout *j, double v)
{
    if (isnan(v))
        jout_str(j, "value", "NaN");
    else if (isinf(v))
        jout_str(j, "value", v > 0 ? "Infinity" : "-Infinity");
    else
        jout_real(j, "value", v);
}

/* False: the request is full, and the rest of the record is of the next one. */
static bool feed_put_record(struct feeding *g, const struct metric_record *m)
{
    char key[METRIC_NAME_MAX * 4 + 8];
    usec_t at = m->at ? m->at : g->f->at;
    for (size_t i = g->f->taken; i < m->n; i++) {
        tracker_mlflow_key(m->v[i].name, key, sizeof(key));
        const int64_t *newest = map_find(g->f->newest, key);
        if (newest && m->step <= *newest)
            continue;
        if (g->n == FEED_METRICS_MAX) {
            g->f->taken = i;
            return false;
        }
        jout_open(&g->j, NULL, '{');
        jout_str(&g->j, "key", key);
        feed_put_value(&g->j, m->v[i].value);
        jout_int(&g->j, "timestamp", (int64_t)(at / USEC_MS));
        jout_int(&g->j, "step", m->step);
        jout_close(&g->j, '}');
        g->n++;
    }
    g->f->taken = 0;
    return true;
}

/* False: the request is full, and this line, or the rest of it, is of the next one. */
static bool feed_line(struct feeding *g, const char *line, size_t n)
{
    struct metric_record m = {0};
    bool fits = true;
    if (metric_read_line(line, n, &m) == METRIC_RECORD && m.attempt == g->f->attempt && !m.is_made)
        fits = feed_put_record(g, &m);
    metric_record_release(&m);
    return fits;
}

/* The number of bytes that were used. */
static size_t feed_lines(struct feeding *g, const char *text, size_t n, bool *ret_full)
{
    size_t used = 0;
    const char *end;
    *ret_full = false;
    while ((end = memchr(text + used, '\n', n - used))) {
        size_t len = (size_t)(end - text) - used;
        if (!feed_line(g, text + used, len)) {
            *ret_full = true;
            break;
        }
        used += len + 1;
    }
    return used;
}

static int feed_read(struct feeding *g)
{
    struct feed *f = g->f;
    _cleanup_(freep) char *dir = fsroot_job_dir(f->root, f->job);
    _cleanup_(freep) char *path = xasprintf("%s/metrics/metrics.jsonl", dir);
    _cleanup_(freep) char *chunk = xmalloc(FEED_CHUNK);
    _cleanup_(closep) int fd = rootfile_open(f->root, path, &f->err);
    bool full = false;
    if (fd == -ENOENT)
        return 0; /* it told of no metrics */
    if (fd < 0)
        return fd;
    while (!full) {
        ssize_t n = pread(fd, chunk, FEED_CHUNK, f->offset);
        if (n < 0)
            return err_set(&f->err, -errno, "the metrics cannot be read: %s", strerror(errno));
        size_t used = feed_lines(g, chunk, (size_t)n, &full);
        if (!used && !full)
            return 0; /* the rest is no whole line */
        f->offset += (off_t)used;
    }
    return 0;
}

void feed_run(struct feed *f)
{
    struct feeding g = {.f = f};
    buf_reset(&f->body);
    g.j = jout_begin(&f->body);
    jout_open(&g.j, NULL, '{');
    jout_str(&g.j, "run_id", f->run);
    jout_open(&g.j, "metrics", '[');
    f->result = feed_read(&g);
    jout_close(&g.j, ']');
    jout_close(&g.j, '}');
    if (f->result == 0 && f->body.failed)
        f->result =
            message_refuse(&f->err, ERR_TOO_LARGE, "tracker_request_large", MESSAGE_NO_ARGS);
    if (!g.n)
        buf_reset(&f->body);
}
