/* SPDX-License-Identifier: Apache-2.0 */
/* sampleindex.h - the index of a job's dumps: a file of argusd's own, see README.md.
 *
 *   head of a dump (struct sampleindex_head), n records (struct sampleindex_record), head, …
 *
 * Numbers are little-endian, as on all machines we run on. Blocking. */
#pragma once
#include <stdatomic.h>

#include "core/sample/sample_order.h"
#include "fsroot/samples/sampledump.h"

/* What the index has of a dump. */
struct sampleindex_dump {
    struct sampledump file; /* as it was when it was read */
    uint64_t n, unread;     /* samples; lines that are none */
    bool is_cut;            /* not all of it was read */
    bool is_gone;           /* never of one that is told */
    struct sample_sum sum;
    uint64_t at;  /* of its records in the index */
    uint32_t crc; /* of these */
};

struct sampleindex {
    int fd;                     /* -1: there is no index yet, and nothing is in it */
    struct sampleindex_dump *v; /* by kind, then the newest step first */
    size_t n;
};
#define SAMPLEINDEX_NONE                                                                           \
    {                                                                                              \
        .fd = -1                                                                                   \
    }

/* path: in state_dir. An index that is damaged has what stands before the damage. */
must_check int sampleindex_open(const char *path, struct sampleindex *ret, struct err *err);
void sampleindex_release(struct sampleindex *x);
/* NULL: it has none of this step. */
const struct sampleindex_dump *sampleindex_find(const struct sampleindex *x,
                                                enum sample_kind kind,
                                                int64_t step);
/* Its samples, d->n of them as they were dumped; yours. -EBADMSG: they are damaged. */
must_check int sampleindex_places(const struct sampleindex *x,
                                  const struct sampleindex_dump *d,
                                  struct sample_place **ret,
                                  struct err *err);

/* What keeps dumps out of the index. */
enum sampleindex_limits {
    SAMPLEINDEX_JOB_FULL = 1 << 0,  /* the older ones: of the index of one job */
    SAMPLEINDEX_USER_FULL = 1 << 1, /* of the indexes beside it, which are its user's, with it */
    SAMPLEINDEX_DISK_FULL = 1 << 2, /* too little is free where the index is */
    SAMPLEINDEX_LINKED = 1 << 3,    /* files that have more than one name */
    SAMPLEINDEX_LIMITS_END = 1 << 4,
};
#define SAMPLEINDEX_JOB_BYTES (1ULL << 30)
#define SAMPLEINDEX_USER_BYTES (8ULL << 30)
#define SAMPLEINDEX_FREE_BYTES (1ULL << 30)

/* Brings the index up to the dumps, the newest step first, and reads `budget` bytes of dumps or a
 * few more. Another one who does so is not waited for: then nothing is done. The directory of the
 * index has the indexes of one user alone. */
struct sampleindex_update {
    const char *root, *job, *path;
    uint64_t budget;
    const atomic_bool *stop;                    /* it ends before the next dump; NULL: never */
    uint64_t job_bytes, user_bytes, free_bytes; /* 0: as above */
    /* Results. */
    unsigned limits;        /* enum sampleindex_limits that it met */
    uint64_t read, pending; /* bytes that were read, and that are not in the index yet */
    bool is_cut;            /* there are more dumps than are looked at */
    bool is_busy;           /* another one is at it */
};
must_check int sampleindex_run_update(struct sampleindex_update *u, struct err *err);

/* Removes the indexes of all users, each in his directory below this one, that nobody used since
 * then (seconds of wall time). */
void sampleindex_sweep(const char *dir, int64_t since);
