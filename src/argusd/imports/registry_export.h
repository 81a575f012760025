/* SPDX-License-Identifier: Apache-2.0 */
/* registry_export.h - a checkpoint becomes a model of the registry.
 *
 *   POST …:export ─▶ entry (importing, made) and a job of workload merge ─▶ it SUCCEEDED ─▶ a job
 *   that looks at what it left, where it lies ─▶ entry (ready)
 *
 * Both jobs are ordinary ones of the training's user, in its project. The checkpoint stays while
 * the first has not ended, since its spec names it. All that is kept is the entry's row, so a kill
 * at any point leaves nothing that the next start does not go on with; an entry whose job ended in
 * another way goes, and an event says why. */
#pragma once
#include "argusd/content/registry.h"
#include "argusd/imports/importer.h"
#include "core/spec/spec.h"

struct registry_export {
    char id[SPEC_ID_BUF]; /* of the job that merges */
    char *spec;           /* of that job, JSON */
    char *source;         /* the checkpoint: what the merger reads */
    char *target;         /* the model: what it leaves */
};
void registry_export_release(struct registry_export *x);

/* What merges this checkpoint with the verl, the environment and the project of its training; job
 * is borrowed for the call. ERR_REFUSED: it does not train, or its spec cannot be read any more. */
must_check int registry_export_plan(const struct importer *im,
                                    const struct job *job,
                                    int64_t step,
                                    struct registry_export *ret,
                                    struct err *err);

struct registry_export_as {
    const struct http_principal *who; /* whose it will be */
    const char *name, *project;       /* project: "" = none */
    bool is_common;
};
/* Its entry, before that job is submitted: it is busy, so nothing becomes of it until
 * registry_export_begun() or registry_drop(). lineage (taken; NULL: unknown) is what lineage.h says
 * of the source. ERR_BAD_SPEC: the name; ERR_REFUSED: too many. */
must_check int registry_export_add(const struct importer *im,
                                   const struct registry_export *x,
                                   const struct registry_export_as *as,
                                   json_t *lineage,
                                   struct registry_entry **ret,
                                   struct err *err);
/* The job is there. */
void registry_export_begun(struct registry_entry *e);

/* What this checkpoint was merged to before by an export, by argusd's own records, as far as he may
 * see it: one that is ready, else one that is being made, of several the newest. owner: of the job;
 * what others made of his checkpoint is not taken. NULL: it never was, or the step was saved anew
 * since. */
struct registry_entry *registry_export_find(const struct importer *im,
                                            const struct access_who *who,
                                            const char *owner,
                                            const char *job,
                                            int64_t step);

/* The job of e, one that is made, has ended well: another looks at what it left and is e's job from
 * now on. A registry_made_f; arg: the importer. */
must_check int registry_export_take(struct registry_entry *e, void *arg, struct err *err);
