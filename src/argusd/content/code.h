/* SPDX-License-Identifier: Apache-2.0 */
/* code.h - the snapshots that a spec names, fixed when it is submitted.
 *
 * What `code` and `working_dir` named then is what every attempt runs, whatever the names mean
 * later. It is kept with the job as JSON, a list of code_use_table.
 * A code_path or working_dir that lies in a snapshot is one as well. */
#pragma once
#include "argusd/content/snapshots.h"
#include "base/doc/problem.h"
#include "base/field.h"

struct spec;
extern const struct field_table code_use_table; /* "SnapshotUse" in openapi.json */

/* Put paths in place of names. What is wrong is added to ps. The text (yours), NULL: it names
 * none. */
char *code_resolve(const struct snapshots *sn,
                   const char *user,
                   struct spec *spec,
                   struct problems *ps);
/* None of them was removed since. Else err is set. */
bool code_is_there(const struct snapshots *sn, const char *text, struct err *err);
/* Content of this hash is one of them. text may be NULL. */
bool code_has(const char *text, const char *hash);
/* A job has them from now on: what came with its submit stays. row: for each such one. */
void code_keep(struct snapshots *sn, const char *text, snapshots_row_f row, void *arg);
/* The same to the spec read again. text may be NULL. */
void code_apply(const char *text, struct spec *spec);
/* Is each still what its hash says? Blocking. ERR_REFUSED names what changed. */
must_check int code_verify(const char *root, const char *text, struct err *err);
/* Members "snapshot" and "hash" of what stands for the package verl; nulls if it is none. */
void code_put_proof(const char *text, struct jout *j);
/* The snapshot that stands for the package verl, as a JSON object. Heap; NULL: none does. */
char *code_of_verl(const char *text);
