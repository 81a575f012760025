/* SPDX-License-Identifier: Apache-2.0 */
/* sampledump.h - the dumps of a job: which there are, and one of them line by line. Blocking. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define SAMPLE_KIND_TABLE(X)                                                                       \
    X(SAMPLE_ROLLOUT, "rollout")                                                                   \
    X(SAMPLE_VALIDATION, "validation")
enum sample_kind {
#define X(e, word) e,
    SAMPLE_KIND_TABLE(X)
#undef X
        SAMPLE_KINDS
};
extern const char *const sample_kind_names[]; /* NULL ends them */

enum {
    SAMPLEDUMPS_MAX = 20000,       /* names in one directory that are looked at */
    SAMPLEDUMP_LINES_MAX = 1 << 17 /* of one dump; what follows is not read */
};
#define SAMPLEDUMP_BYTES_MAX (2ULL << 30) /* of one dump, likewise */

struct sampledump {
    int kind; /* enum sample_kind */
    int64_t step;
    uint64_t bytes, inode;
    int64_t changed_ns; /* mtime */
};
/* Is it the file that it was? */
bool sampledump_is_same(const struct sampledump *a, const struct sampledump *b);
/* Does it stand before the other one in a list? */
bool sampledump_is_before(const struct sampledump *a, const struct sampledump *b);

struct sampledumps {
    struct sampledump *v; /* by kind, then the newest step first */
    size_t n, cap;
    size_t linked; /* files that have another name, too: they are left out */
    bool is_cut;   /* there are more */
};
/* A job without any has none. */
must_check int sampledumps_list(const char *root,
                                const char *job,
                                struct sampledumps *ret,
                                struct err *err);
void sampledumps_release(struct sampledumps *d);

/* A descriptor. -ESTALE: it is another file by now, or longer or shorter, or has another
 * name, too. */
must_check int sampledump_open(const char *root,
                               const char *job,
                               const struct sampledump *d,
                               struct err *err);

/* Each line that could be a sample, in its order: without its end, n <= SAMPLE_LINE_MAX. */
typedef void (*sampledump_line_f)(uint64_t offset, const char *line, size_t n, void *arg);
struct sampledump_read {
    uint64_t lines, skipped; /* skipped: too long */
    bool is_cut;             /* at a ceiling above */
};
must_check int sampledump_each_line(int fd,
                                    uint64_t bytes,
                                    sampledump_line_f each,
                                    void *arg,
                                    struct sampledump_read *ret);
