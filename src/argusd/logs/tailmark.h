/* SPDX-License-Identifier: Apache-2.0 */
/* tailmark.h - the last bytes before a place in a log, by which a later read tells whether the file
 * is still that log.
 *
 * A name in a job's directory can come to mean another file: replaced, rotated, cut, or in a
 * directory that a file server put in its place. Numbers of files say little (they are used again,
 * and a copy that goes on has another), so the bytes themselves are compared. Pure. */
#pragma once
#include <stddef.h>
#include <stdint.h>

enum { TAILMARK_BYTES = 1024 };

struct tailmark { /* zeroed: nothing is known */
    uint64_t end; /* the place */
    size_t n;
    char bytes[TAILMARK_BYTES]; /* those before it, without a gap */
};

/* n bytes at `at` were read. What does not join what is known begins anew. */
void tailmark_add(struct tailmark *m, uint64_t at, const char *bytes, size_t n);

enum tailmark_sight {
    TAILMARK_SAME,  /* or nothing says otherwise */
    TAILMARK_CUT,   /* the log that it was, which ends before the place now */
    TAILMARK_OTHER, /* another log */
};
/* By a read from the first byte of the mark on, which brought n bytes at `at` (behind that byte
 * where a gap is) of a log that ends at `end`. */
enum tailmark_sight tailmark_compare(const struct tailmark *m,
                                     uint64_t at,
                                     const char *bytes,
                                     size_t n,
                                     uint64_t end);
