/* SPDX-License-Identifier: Apache-2.0 */
/* logsearch.h - lines that match a pattern, in the logs of many attempts, one after the other, with
 * ceilings on hits, bytes and time, and a place from where to go on. Blocking. */
#pragma once
#include "base/err.h"
#include "core/metric/loggrep.h"
#include "fsroot/logs/logindex.h"
#include "fsroot/logs/loglist.h"

enum logsearch_sources {
    LOGSEARCH_DRIVER = 1 << 0,
    LOGSEARCH_WORKERS = 1 << 1, /* those of an attempt after its driver's, as loglist_read() does */
    LOGSEARCH_SCENE = 1 << 2,   /* in place of the workers' */
};

struct logsearch_target {
    char *job;
    int k, last_k; /* attempts from k down to last_k */
};

struct logsearch_hit {
    const char *job;
    int k;
    const struct loglist_file *file; /* a worker's or the scene's; NULL: the driver's */
    uint64_t offset;                 /* of the line, in the log */
    const char *line;
    size_t n; /* without its end */
};

struct logsearch {
    const char *root; /* borrowed, as all of these */
    struct loggrep *grep;
    const struct logindex_ask *ask; /* of the same pattern; NULL: all is read */
    const struct logsearch_target *targets;
    size_t n_targets;
    unsigned sources;
    const char *only;           /* of the workers' or the scene's this one; NULL: all */
    uint64_t most_bytes;        /* read */
    bool (*is_late)(void *arg); /* asked before and within each piece; NULL: never */
    /* False: these are enough. */
    bool (*on_hit)(const struct logsearch_hit *hit, void *arg);
    void *arg;

    /* Where it stands: set before, moved on. at == n_targets: all was searched. */
    size_t at;
    int k;      /* 0: the target's first */
    char *file; /* its loglist_name(), owned; NULL: the first of the sources */
    uint64_t offset;
    uint64_t whole;   /* behind the last whole line that was searched: what is there may grow */
    uint64_t bytes;   /* read so far */
    uint64_t skipped; /* bytes of which an index said that they hold no hit */
};

/* Which logs beside the driver's. */
enum loglist_source logsearch_listed(unsigned sources);

/* Until all was searched or a ceiling was met. A log that cannot be read is passed over. A line of
 * more than half a MiB is judged piece by piece. */
void logsearch_run(struct logsearch *s);
