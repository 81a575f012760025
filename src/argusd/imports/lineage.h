/* SPDX-License-Identifier: Apache-2.0 */
/* lineage.h - what the output of a job was made of, by argusd's own records and by nobody's word.
 *
 * Of a path below jobs/<id>/ it says
 *   {"job", "workload", "attempt", "step", "verl",
 *    "snapshot": [{"key", "name", "hash"}, …]    its code; {"key", "path"}: no snapshot
 *    "data": [{"key", "ref", "hash"} or {"key", "path"}, …], "model": {"ref", "hash"} or {"id"},
 *    "merge": the job that made one model of that job's checkpoint,
 *    "eval": {"job", "values": {"val-core/…": 0.75}}    what judged that checkpoint, and what it
 * told} and leaves out what was not recorded. */
#pragma once
#include "argusd/imports/importer.h"

/* The id of the job below whose directory the path lies, yours; NULL: none. */
char *lineage_job_of(const struct settings *s, const char *path);

/* What is told now of the checkpoint that this lineage names: its "eval". Yours; NULL: nothing, the
 * checkpoint is gone, or its step was saved anew since. */
struct checkpoints;
json_t *lineage_eval(const struct checkpoints *cs, const json_t *lineage);

/* lineage is yours; NULL: there is no such job, or it is not for him to see. On the loop, once,
 * maybe before this returns. */
typedef void (*lineage_f)(json_t *lineage, void *arg);
void lineage_find(const struct importer *im,
                  const struct http_principal *p,
                  const char *path,
                  lineage_f done,
                  void *arg);
