/* SPDX-License-Identifier: Apache-2.0 */
/* logsearch.c - one search through many logs; see logsearch.h. Offsets always stand at the
 * beginning of a line, so that one goes on from them as if there had been no pause. */
#define _GNU_SOURCE
#include "fsroot/logs/logsearch.h"

#include <stdlib.h>
#include <string.h>

#include "fsroot/attempt/launch.h"
#include "fsroot/logs/logread.h"

enum { CHUNK = 512 << 10 };

enum loglist_source logsearch_listed(unsigned sources)
{
    return sources & LOGSEARCH_SCENE ? LOGLIST_SCENE : LOGLIST_WORKER;
}

/* One search: the logs are opened one after the other. */
struct run {
    struct logsearch *s;
    bool is_open, is_listed;
    char *name;             /* of the log, in the attempt's directory */
    struct logindex *index; /* of the log; NULL: it has none of use */
    uint64_t until;         /* where what has to be read ends now */
    struct loglist files;   /* of the attempt's workers, */
    size_t at;              /* and which of them */
    char *text;
};

struct scan {
    struct run *run;
    uint64_t base; /* of the text */
    bool enough;
};

static bool on_line(size_t offset, const char *line, size_t n, void *arg)
{
    struct scan *c = arg;
    const struct logsearch *s = c->run->s;
    struct logsearch_hit hit = {.job = s->targets[s->at].job,
                                .k = s->k,
                                .file = s->file ? &c->run->files.v[c->run->at] : NULL,
                                .offset = c->base + offset,
                                .line = line,
                                .n = n};
    c->enough = !s->on_hit(&hit, s->arg);
    return !c->enough;
}

/* ---- the logs of an attempt ---- */

static void list_files(struct run *r)
{
    const struct logsearch *s = r->s;
    if (r->is_listed)
        return;
    /* Logs that cannot be listed are skipped. */
    (void)!loglist_read(s->root, s->targets[s->at].job, s->k, logsearch_listed(s->sources), NULL,
                        &r->files, NULL);
    r->is_listed = true;
}

/* From the at-th on, the one that is called so (NULL: any); false: there is none. */
static bool logsearch_stand_in(struct run *r, size_t at, const char *called)
{
    for (; at < r->files.n; at++) {
        char *name = loglist_name(&r->files.v[at]);
        if (!called || !strcmp(name, called)) {
            free(r->s->file);
            r->s->file = name;
            r->at = at;
            return true;
        }
        free(name);
    }
    return false;
}

/* The first of the logs beside the driver's, or the one after this; false: there is none. */
static bool next_file(struct run *r)
{
    if (!(r->s->sources & (LOGSEARCH_WORKERS | LOGSEARCH_SCENE)))
        return false;
    list_files(r);
    return logsearch_stand_in(r, r->s->file ? r->at + 1 : 0, r->s->only);
}

/* Where an earlier run stood; one that has gone since: all of them once more. */
static bool find_file(struct run *r)
{
    list_files(r);
    if (logsearch_stand_in(r, 0, r->s->file))
        return true;
    r->s->offset = 0;
    freep(&r->s->file);
    return next_file(r);
}

/* False: the attempt has no more. */
static bool logsearch_open_log(struct run *r)
{
    struct logsearch *s = r->s;
    if (r->is_open)
        return true;
    if (s->file ? !r->is_listed && !find_file(r)
                : !(s->sources & LOGSEARCH_DRIVER) && !next_file(r))
        return false;
    r->name = s->file ? loglist_path(logsearch_listed(s->sources), s->file) : xstrdup(ATTEMPT_LOG);
    const char *job = s->targets[s->at].job;
    r->index = s->ask && r->name ? logindex_open(s->root, job, s->k, r->name, s->ask) : NULL;
    r->is_open = r->name != NULL;
    r->until = 0;
    s->whole = s->offset;
    return r->is_open;
}

/* ---- one log ---- */

/* How many bytes may be read from where it stands; behind what the index excludes. */
static size_t next_part(struct run *r)
{
    struct logsearch *s = r->s;
    if (s->offset >= r->until) {
        uint64_t begin = s->offset;
        r->until = UINT64_MAX;
        if (r->index)
            logindex_next(r->index, s->offset, &begin, &r->until);
        s->whole = begin > s->offset ? begin : s->whole;
        s->skipped += begin - s->offset;
        s->offset = begin;
    }
    uint64_t n = r->until - s->offset; /* 0: the index is asked again behind the next piece */
    return n && n < CHUNK ? (size_t)n : CHUNK;
}

/* 1: the log is at its end; 0: it goes on; -1: that was enough. */
static int search_chunk(struct run *r)
{
    struct logsearch *s = r->s;
    struct logread_part p;
    if (!logsearch_open_log(r))
        return 1;
    size_t most = next_part(r);
    if (logread_at(s->root, s->targets[s->at].job, s->k, r->name, s->offset, r->text, most, &p,
                   NULL) < 0 ||
        !p.n)
        return 1;
    if (p.offset > s->offset) { /* behind a gap another part begins */
        s->offset = r->until = p.offset;
        return 0;
    }
    const char *last = memrchr(r->text, '\n', p.n);
    bool at_end = p.offset + p.n >= p.end && p.n < most;
    size_t lines = last ? (size_t)(last + 1 - r->text) : 0;
    size_t used = at_end || !last ? p.n : lines;
    s->whole = last ? p.offset + lines : s->whole;
    struct scan c = {.run = r, .base = p.offset};
    size_t came = loggrep_scan(s->grep, r->text, used, on_line, &c);
    s->offset = p.offset + came;
    s->bytes += used;
    if (c.enough)
        return -1;
    if (came < used) /* it is late: the rest of the piece comes next time */
        s->whole = s->offset;
    return came == used && at_end;
}

static void close_log(struct run *r)
{
    logindex_close(r->index);
    r->index = NULL;
    freep(&r->name);
    r->is_open = false;
}

static void next_log(struct run *r)
{
    struct logsearch *s = r->s;
    close_log(r);
    s->offset = 0;
    if (s->k >= s->targets[s->at].last_k && next_file(r))
        return;
    freep(&s->file);
    loglist_release(&r->files);
    r->is_listed = false;
    if (--s->k >= s->targets[s->at].last_k)
        return;
    s->k = 0;
    s->at++;
}

static bool logsearch_is_late(const struct logsearch *s)
{
    return s->is_late && s->is_late(s->arg);
}

void logsearch_run(struct logsearch *s)
{
    struct run run = {.s = s, .text = xmalloc(CHUNK)};
    int r = 0;
    loggrep_until(s->grep, s->is_late, s->arg);
    while (s->at < s->n_targets && r >= 0 && s->bytes < s->most_bytes && !logsearch_is_late(s)) {
        if (!s->k)
            s->k = s->targets[s->at].k;
        r = s->k < s->targets[s->at].last_k ? 1 : search_chunk(&run);
        if (r > 0)
            next_log(&run);
    }
    close_log(&run);
    loglist_release(&run.files);
    free(run.text);
}
