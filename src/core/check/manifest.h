/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.h - what a snapshot holds, as a text whose SHA-256 is the snapshot's name.
 *
 *   argus-snapshot 1
 *   F <sha256 of the content> <size> <path>
 *   X <the same>                              an executable one
 *   L <path><tab><target>                     a link
 *
 * sorted by path, byte by byte, one line each. Neither times nor owners nor directories: the same
 * code has the same hash wherever it was packed, and an empty directory is not kept. The text on
 * the shared root can be changed by whoever can write there: it is read as outside bytes. Pure. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/digest/hash.h"
#include "base/err.h"

enum { MANIFEST_ENTRIES_MAX = 250000, MANIFEST_TEXT_MAX = 256 << 20 };

enum manifest_kind { MANIFEST_FILE, MANIFEST_PROGRAM, MANIFEST_LINK };

struct manifest_entry {
    enum manifest_kind kind;
    char *path;
    char *target; /* of a link, else NULL */
    uint64_t size;
    unsigned char hash[HASH_BYTES];
};

struct manifest {
    struct manifest_entry *v;
    size_t n, cap;
    uint64_t bytes; /* of all files */
};

void manifest_release(struct manifest *m); /* zeroed memory is an empty one */
/* Copied. ERR_REFUSED past MANIFEST_ENTRIES_MAX. */
must_check int manifest_add(struct manifest *m, const struct manifest_entry *e, struct err *err);
/* Into the order of the text; needed before all that follows. */
void manifest_sort(struct manifest *m);
/* Where path stands, or would stand, in v. */
size_t manifest_place(const struct manifest *m, const char *path);
/* Append the text; overflow: out->failed. */
void manifest_write(const struct manifest *m, struct buf *out);
const char *manifest_hash(const struct manifest *m, char ret[static HASH_HEX]);
/* Reads a manifest's text and checks each of its paths. ERR_REFUSED with the line. */
must_check int manifest_read(const char *text, size_t n, struct manifest *ret, struct err *err);

/* Each path that is not the same in both; NULL where one does not have it. */
typedef void (*manifest_diff_f)(const struct manifest_entry *a,
                                const struct manifest_entry *b,
                                void *arg);
void manifest_diff(const struct manifest *a,
                   const struct manifest *b,
                   manifest_diff_f cb,
                   void *arg);
