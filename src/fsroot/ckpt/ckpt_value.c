/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt_value.c - the metric of checkpoints' steps; see ckpt.h. Only lines that name such a step are
 * read as records, and of a long file only its end. */
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
#include "base/str.h"
#include "core/metric/metric.h"
#include "fsroot/ckpt/ckpt.h"
#include "fsroot/tree/paths.h"
#include "fsroot/tree/rootfile.h"

enum { TAIL_MAX = 64 << 20, ASKS_MAX = 10 /* a step's line comes soon after its checkpoint */ };

struct search {
    const char *pattern;
    struct ckpt_list *l;
    bool *found; /* of each: anew in this reading */
};

static bool wants(const struct ckpt *c)
{
    return c->state == CKPT_VERIFIED && !c->has_value && c->asked < ASKS_MAX;
}

static void ckpt_value_take_line(const struct search *x, const char *line, size_t n, size_t at)
{
    struct metric_record m = {0};
    struct ckpt *c = &x->l->v[at];
    double sum = 0;
    size_t fit = 0;
    if (metric_read_line(line, n, &m) == METRIC_RECORD && m.step == c->step && !m.superseded)
        for (size_t i = 0; i < m.n; i++)
            if (str_glob(x->pattern, m.v[i].name) && isfinite(m.v[i].value)) {
                sum += m.v[i].value;
                fit++;
            }
    metric_record_release(&m);
    if (fit) { /* the newest record of the step that has it */
        x->found[at] = true;
        c->value = sum / (double)fit;
    }
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
        if (c && wants(c))
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

static void conclude(const struct search *x)
{
    for (size_t i = 0; i < x->l->n; i++) {
        struct ckpt *c = &x->l->v[i];
        c->asked += wants(c) && !x->found[i];
        c->has_value = c->has_value || x->found[i];
    }
}

void ckpt_find_values(const char *root,
                      const char *job,
                      const char *pattern,
                      struct ckpt_list *l,
                      uint64_t *seen)
{
    _cleanup_(freep) char *text = NULL;
    size_t waiting = 0;
    for (size_t i = 0; i < l->n; i++)
        waiting += wants(&l->v[i]);
    if (!waiting || !fsroot_is_name(job))
        return;
    _cleanup_(freep) char *path = xasprintf("jobs/%s/metrics/metrics.jsonl", job);
    _cleanup_(closep) int fd = rootfile_open(root, path, NULL);
    size_t n = fd < 0 ? 0 : ckpt_value_read_end(fd, seen, &text);
    if (!n)
        return;
    struct search x = {.pattern = pattern, .l = l, .found = xcalloc(l->n, sizeof(*x.found))};
    search_text(&x, text, n);
    conclude(&x);
    free(x.found);
}
