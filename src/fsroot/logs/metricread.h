/* SPDX-License-Identifier: Apache-2.0 */
/* metricread.h - lines of a source of metrics, and of the merged file. For metricfile.c and
 * metriccurves.c only.
 *
 * A source's offset always stands at the start of a line. Files of a job are outside bytes: no
 * link is followed, lines and files have ceilings. */
#pragma once
#include "core/metric/metric.h"
#include "fsroot/logs/metricfile.h"

enum { METRICREAD_CHUNK = METRIC_LINE_MAX };

/* Where the lines come from: a file, or the log of an attempt, which may be many. */
struct metricread_origin {
    int fd; /* -1: the log */
    const char *root, *job;
    int attempt;
};

struct metricread_source {
    uint64_t offset, size; /* size: when it was last read to its end */
    uint64_t read;         /* bytes, without the holes that were passed over */
    bool skipping;         /* inside of a line that is too long */
};

/* The receivers of a line. */
struct metricread_sink {
    void (*record)(struct metric_record *rec, uint64_t end, void *arg);
    void (*total)(int64_t steps, bool sure, void *arg);
    void *arg;
};

/* Reads one chunk of a source from its offset on, behind the hole of a file where one is as large
 * as a chunk: that is inside of a line, which is too long. final: a last line without a newline
 * counts as a line, and so does a line before a gap. *ret_used: 0 when no more can be used now.
 * Returns a negative errno on failure. */
must_check int metricread_chunk(const struct metricread_origin *from,
                                struct metricread_source *src,
                                char *chunk, /* METRICREAD_CHUNK bytes */
                                bool final,
                                const struct metricread_sink *s,
                                size_t *ret_used);

/* A descriptor. -ENOENT; -EINVAL for what is no plain file, -ELOOP for a link. */
must_check int metricread_open(const char *root, const char *path, uint64_t *ret_size);
/* The size of an open file. A negative errno. */
must_check int metricread_size(int fd, uint64_t *ret);
/* <root>/jobs/<job>/metrics/metrics.jsonl */
#define METRICREAD_MERGED "metrics.jsonl"
char *metricread_merged_path(const char *root, const char *job);
/* Each line of the merged file from *bytes on, which then is where its last whole line ends. None
 * is fine. */
must_check int metricread_merged(const char *root,
                                 const char *job,
                                 uint64_t most,
                                 void (*record)(struct metric_record *rec, uint64_t end, void *arg),
                                 void *arg,
                                 uint64_t *bytes,
                                 struct err *err);
