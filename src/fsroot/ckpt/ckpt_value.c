/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt_value.c - the metrics of checkpoints' steps; see ckpt.h. Only lines that name such a step
 * are read as records, and of a long file only its end. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/digest/hash.h"
#include "base/file.h"
#include "base/message.h"
#include "base/str.h"
#include "core/metric/metric.h"
#include "fsroot/ckpt/ckpt.h"
#include "fsroot/logs/metricfile.h"
#include "fsroot/tree/paths.h"
#include "fsroot/tree/rootfile.h"

enum {
    TAIL_MAX = 64 << 20,
    ASKS_MAX = 10,   /* a step's line comes soon after its checkpoint */
    NAME_POINTS = 2, /* of a table of which only the names are wanted */
};

struct search {
    const char *pattern; /* NULL: none */
    struct ckpt_list *l;
    bool *wants; /* of each: as this reading began */
};

static bool wants(const char *pattern, const struct ckpt *c)
{
    bool has_all = c->told && (c->has_value || !pattern);
    return c->state == CKPT_VERIFIED && !has_all && c->asked < ASKS_MAX;
}

/* The newest record of a step that has it counts. */
static void ckpt_value_take_mean(const struct search *x,
                                 const struct metric_record *m,
                                 struct ckpt *c)
{
    double sum = 0;
    size_t fit = 0;
    for (size_t i = 0; x->pattern && i < m->n; i++)
        if (str_glob(x->pattern, m->v[i].name) && isfinite(m->v[i].value)) {
            sum += m->v[i].value;
            fit++;
        }
    if (fit) {
        c->has_value = true;
        c->value = sum / (double)fit;
    }
}

static void ckpt_value_take_told(struct ckpt_list *l,
                                 const struct metric_record *m,
                                 const char *prefix,
                                 struct ckpt *c)
{
    for (size_t i = 0; i < m->n; i++) {
        bool is_one = str_starts(m->v[i].name, prefix) && ckpt_is_validation(m->v[i].name);
        int at = is_one ? ckpt_list_name(l, m->v[i].name) : -1;
        if (at < 0)
            continue;
        c->told |= 1U << at;
        c->values[at] = m->v[i].value;
    }
}

static void ckpt_value_take_line(const struct search *x, const char *line, size_t n, size_t at)
{
    struct metric_record m = {0};
    struct ckpt *c = &x->l->v[at];
    if (metric_read_line(line, n, &m) == METRIC_RECORD && m.step == c->step && !m.superseded) {
        ckpt_value_take_mean(x, &m, c);
        ckpt_value_take_told(x->l, &m, "val-core/", c); /* first: there is room for a few */
        ckpt_value_take_told(x->l, &m, "val/", c);
    }
    metric_record_release(&m);
}

/* The step that a line names: it is cheaper to look for than a record to read. 0: none. */
static int64_t step_of_line(const char *line, size_t n)
{
    static const char word[] = "\"step\":";
    const char *at = memmem(line, n, word, sizeof(word) - 1);
    int64_t step = 0;
    if (!at)
        return 0;
    for (at += sizeof(word) - 1; at < line + n && *at >= '0' && *at <= '9' && step < INT32_MAX;
         at++)
        step = step * 10 + (*at - '0');
    return step;
}

static void search_text(const struct search *x, const char *text, size_t n)
{
    for (const char *p = text, *end = text + n; n && p < end;) {
        const char *stop = memchr(p, '\n', (size_t)(end - p));
        size_t len = (size_t)((stop ? stop : end) - p);
        int64_t step = len <= METRIC_LINE_MAX ? step_of_line(p, len) : 0;
        const struct ckpt *c = step ? ckpt_list_find(x->l, step) : NULL;
        if (c && x->wants[c - x->l->v])
            ckpt_value_take_line(x, p, len, (size_t)(c - x->l->v));
        p += len + 1;
    }
}

/* All of it, or its end. Bytes in *ret (yours), how many; 0: none, or as it was before. */
static size_t ckpt_value_read_end(int fd, uint64_t *seen, char **ret)
{
    static const unsigned char key[16] = "argus ckpt vals";
    struct stat st;
    if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0)
        return 0;
    uint64_t marks[] = {(uint64_t)st.st_size, (uint64_t)st.st_mtim.tv_sec,
                        (uint64_t)st.st_mtim.tv_nsec, (uint64_t)st.st_ino};
    uint64_t mark = hash_keyed(key, marks, sizeof(marks));
    if (mark == *seen)
        return 0;
    *seen = mark;
    off_t from = st.st_size > TAIL_MAX ? st.st_size - TAIL_MAX : 0;
    size_t want = (size_t)(st.st_size - from), got;
    *ret = xmalloc(want);
    (void)file_read_at(fd, (uint64_t)from, *ret, want, &got); /* what can be read */
    return got;
}

void ckpt_find_values(const char *root,
                      const char *job,
                      const char *pattern,
                      struct ckpt_list *l,
                      uint64_t *seen)
{
    _cleanup_(freep) char *text = NULL;
    size_t waiting = 0;
    if (!fsroot_is_name(job))
        return;
    _cleanup_(freep) bool *wanting = xcalloc(l->n + 1, sizeof(*wanting));
    for (size_t i = 0; i < l->n; i++)
        waiting += wanting[i] = wants(pattern, &l->v[i]);
    if (!waiting)
        return;
    _cleanup_(freep) char *path = xasprintf("jobs/%s/metrics/metrics.jsonl", job);
    _cleanup_(closep) int fd = rootfile_open(root, path, NULL);
    size_t n = fd < 0 ? 0 : ckpt_value_read_end(fd, seen, &text);
    if (!n)
        return;
    struct search x = {.pattern = pattern, .l = l, .wants = wanting};
    search_text(&x, text, n);
    for (size_t i = 0; i < l->n; i++)
        l->v[i].asked += wants(pattern, &l->v[i]);
}

/* ---- any metric ---- */

static int ckpt_value_refuse(const char *job,
                             const char *metric,
                             const struct metric_table *t,
                             struct err *err)
{
    size_t n = metric_table_keys(t);
    _cleanup_(freep) const char **names = xcalloc(n + 1, sizeof(*names));
    for (size_t i = 0; i < n; i++)
        names[i] = metric_table_key(t, i);
    const char *near = str_nearest(metric, names, n);
    if (!near)
        return message_refuse(err, ERR_NOT_FOUND, "no_metric",
                              MESSAGE_ARGS(MESSAGE_STR("job", job), MESSAGE_STR("metric", metric)));
    return message_refuse(err, ERR_NOT_FOUND, "no_metric",
                          MESSAGE_ARGS(MESSAGE_STR("job", job), MESSAGE_STR("metric", metric),
                                       MESSAGE_STR("near", near)));
}

/* Was it told at any step? */
static int ckpt_value_check_name(const char *root,
                                 const char *job,
                                 const char *metric,
                                 struct err *err)
{
    struct metric_curves *curves = metric_curves_new(root, job, NAME_POINTS);
    int r = metric_curves_update(curves, err);
    const struct metric_table *t = metric_curves_table(curves);
    bool is_there = false;
    for (size_t i = 0; r == 0 && !is_there && i < metric_table_keys(t); i++)
        is_there = str_glob(metric, metric_table_key(t, i));
    if (r == 0 && !is_there)
        r = ckpt_value_refuse(job, metric, t, err);
    metric_curves_free(curves);
    return r;
}

int ckpt_find_metric(const char *root,
                     const char *job,
                     const char *metric,
                     struct ckpt_list *l,
                     struct err *err)
{
    uint64_t seen = 0;
    for (size_t i = 0; i < l->n; i++) {
        l->v[i].has_value = false;
        l->v[i].asked = 0;
    }
    ckpt_find_values(root, job, metric, l, &seen);
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].has_value)
            return 0;
    return ckpt_value_check_name(root, job, metric, err);
}
