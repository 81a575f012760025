/* SPDX-License-Identifier: Apache-2.0 */
/* proof.h - attempts/<k>/proof/: what the job's Python processes really imported.
 *
 * The hook writes the records, one file per process up to a few on each node: KIND-NODE-N.json
 * (KIND: driver worker child), and mismatch-KIND-NODE-N.json of a process that has not what
 * launch.json promised. The shepherd ends an attempt for one of those, argusd shows them all.
 * A record is outside bytes: its texts are cut and made harmless for a terminal, and a file
 * that is no record is passed over, since a job may write there what it likes. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/field.h"
#include "fsroot/tree/rootdir.h"

#define ATTEMPT_PROOF "proof"
#define PROOF_CLASS "import_error" /* of a failure that a mismatch is the reason of */

enum {
    PROOF_MAX_BYTES = 2 << 20, /* ceiling of one record; the hook writes a tenth at most */
    PROOF_FILES_MAX = 1024,    /* of one attempt; the rest is not read */
    PROOF_SHOWN_MAX = 64,      /* processes that proof_summary() names */
    PROOF_SAYS_MAX = 600,      /* bytes of proof_says() */
};

/* The values that one process reported; NULL: not reported. */
struct proof_record {
    char *kind, *node, *python, *torch, *ray, *snapshot, *hash;
    int64_t pid;
    char *verl, *file; /* version and place of the verl that it imported */
    char *reward;      /* file of the reward function, as this process finds it */
    char *what;        /* "verl" "code" "working_dir": what is not as it was to be; NULL: all is */
    char *expected, *found; /* the two paths; found is NULL where there was nothing */
};

void proof_record_release(struct proof_record *r); /* zeroed memory is fine */

/* ret is untouched on failure. */
must_check int proof_record_from_json(const char *text,
                                      size_t len,
                                      struct proof_record *ret,
                                      struct err *err);

/* A mismatch as a message to be kept (message_kept_say()): both paths, the process, its node.
 * Yours. */
char *proof_says(const struct proof_record *r);

/* What is said of a mismatch in attempt directory dir, NULL when there is none now. Yours. dir is
 * the caller's own: links on the way there are followed, none is in it. */
char *proof_mismatch(const char *dir);

/* What all records of an attempt say together. */
struct proof_summary {
    struct field_list processes; /* the first of them, as rows of the table */
    int attempt;
    bool ok;
    struct proof_record all; /* the first thing that anybody said */
    struct strv nodes;       /* with a process that told */
    char *mismatch;          /* kept, or a sentence of a version before; NULL: all is well */
    size_t n;                /* records; not in the JSON */
};
extern const struct field_table proof_summary_table; /* "Imports" in openapi.json */
void proof_summary_release(struct proof_summary *s); /* zeroed memory is fine */

/* Append the summary of this proof directory of an attempt as one JSON object. Returns how many
 * records there are; 0: nothing was appended. */
size_t proof_summary(const struct rootdir *proof, int attempt, struct buf *out);
