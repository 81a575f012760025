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

/* One log after the other is open. */
struct run {
    struct logsearch *s;
    bool is_open;
    struct logindex *index; /* of the log; NULL: it has none of use */
    uint64_t until;         /* where what has to be read ends now */
    char *text;
};

/* How many bytes may be read from where it stands; behind what the index excludes. */
static size_t next_part(struct run *r)
{
    struct logsearch *s = r->s;
    if (!r->is_open) {
        const char *job = s->targets[s->at].job;
        r->index = s->ask ? logindex_open(s->root, job, s->k, ATTEMPT_LOG, s->ask) : NULL;
        r->is_open = true;
        r->until = 0;
    }
    if (s->offset >= r->until) {
        uint64_t begin = s->offset;
        r->until = UINT64_MAX;
        if (r->index)
            logindex_next(r->index, s->offset, &begin, &r->until);
        s->skipped += begin - s->offset;
        s->offset = begin;
    }
    return r->until - s->offset < CHUNK ? (size_t)(r->until - s->offset) : CHUNK;
}

/* 1: the log is at its end; 0: it goes on; -1: that was enough. */
static int search_chunk(struct run *r)
{
    struct logsearch *s = r->s;
    struct logread_part p;
    size_t most = next_part(r);
    if (logread_at(s->root, s->targets[s->at].job, s->k, ATTEMPT_LOG, s->offset, r->text, most, &p,
                   NULL) < 0 ||
        !p.n)
        return 1;
    if (p.offset > s->offset) { /* behind a gap another part begins */
        s->offset = r->until = p.offset;
        return 0;
    }
    const char *last = memrchr(r->text, '\n', p.n);
    size_t used = p.n < CHUNK || !last ? p.n : (size_t)(last + 1 - r->text);
    struct scan c = {.s = s, .base = p.offset};
    s->offset = p.offset + loggrep_scan(s->grep, r->text, used, on_line, &c);
    s->bytes += used;
    return c.enough ? -1 : p.offset + p.n >= p.end && p.n < most;
}

static void close_log(struct run *r)
{
    logindex_close(r->index);
    r->index = NULL;
    r->is_open = false;
}

static void next_log(struct run *r)
{
    struct logsearch *s = r->s;
    close_log(r);
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
    struct run run = {.s = s, .text = xmalloc(CHUNK)};
    int r = 0;
    while (s->at < s->n_targets && r >= 0 && s->bytes < s->most_bytes && !is_late(s)) {
        if (!s->k)
            s->k = s->targets[s->at].k;
        r = s->k < s->targets[s->at].last_k ? 1 : search_chunk(&run);
        if (r > 0)
            next_log(&run);
    }
    close_log(&run);
    free(run.text);
}
