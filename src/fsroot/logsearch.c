/* SPDX-License-Identifier: Apache-2.0 */
/* logsearch.c - see logsearch.h. Offsets always stand at the beginning of a line, so that one goes
 * on from them as if there had been no pause. */
#define _GNU_SOURCE
#include "fsroot/logsearch.h"

#include <stdlib.h>
#include <string.h>

#include "fsroot/launch.h"
#include "fsroot/logread.h"

enum { CHUNK = 512 << 10 };

struct scan {
    struct logsearch *s;
    uint64_t base; /* of the text */
    bool enough;
};

static bool on_line(size_t offset, const char *line, size_t n, void *arg)
{
    struct scan *c = arg;
    const struct logsearch *s = c->s;
    struct logsearch_hit hit = {
        .job = s->targets[s->at].job, .k = s->k, .offset = c->base + offset, .line = line, .n = n};
    c->enough = !s->on_hit(&hit, s->arg);
    return !c->enough;
}

/* 1: the log is at its end; 0: it goes on; -1: that was enough. */
static int search_chunk(struct logsearch *s, char *text)
{
    struct logread_part p;
    if (logread_at(s->root, s->targets[s->at].job, s->k, ATTEMPT_LOG, s->offset, text, CHUNK, &p,
                   NULL) < 0 ||
        !p.n)
        return 1;
    const char *last = memrchr(text, '\n', p.n);
    size_t used = p.n < CHUNK || !last ? p.n : (size_t)(last + 1 - text);
    struct scan c = {.s = s, .base = p.offset};
    s->offset = p.offset + loggrep_scan(s->grep, text, used, on_line, &c);
    s->bytes += used;
    return c.enough ? -1 : p.offset + p.n >= p.end && p.n < CHUNK;
}

static void next_log(struct logsearch *s)
{
    s->offset = 0;
    if (--s->k >= s->targets[s->at].last_k)
        return;
    s->k = 0;
    s->at++;
}

static bool is_late(const struct logsearch *s)
{
    return s->is_late && s->is_late(s->arg);
}

void logsearch_run(struct logsearch *s)
{
    _cleanup_(freep) char *text = xmalloc(CHUNK);
    int r = 0;
    while (s->at < s->n_targets && r >= 0 && s->bytes < s->most_bytes && !is_late(s)) {
        if (!s->k)
            s->k = s->targets[s->at].k;
        r = s->k < s->targets[s->at].last_k ? 1 : search_chunk(s, text);
        if (r > 0)
            next_log(s);
    }
}
