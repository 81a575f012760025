/* SPDX-License-Identifier: Apache-2.0 */
/* evalspec.h - eval_on_save of a JobSpec: the job that judges each checkpoint of a training.
 *
 * The key holds a JobSpec, in which ${CHECKPOINT}, ${STEP} and ${JOB} mean the checkpoint that was
 * saved. One that names neither a workload nor a preset is the training itself, run to validate
 * alone (verl's trainer.val_only), and its keys go before the training's; ppo and grpo can do so.
 * What either form does not say is the training's project, cluster and pool, and priority 0, so
 * that it takes what is free. Pure. */
#pragma once
#include "base/buf.h"
#include "base/doc/doc.h"
#include "core/spec/spec.h"

enum { EVALSPEC_MAX = 256 << 10 }; /* bytes of such a text */

/* True: it is the training itself, run to validate alone. eval: the value of eval_on_save. */
bool evalspec_is_own(const struct node *eval);

/* The spec of the eval job as JSON, with the three names still in it, of the training's spec. Heap;
 * NULL: it has no eval_on_save, or is too long. Values under secret names stay behind: such a job
 * asks for them by `secrets`. */
char *evalspec_template(const struct node *root);
/* The same of a spec's text. */
char *evalspec_template_of(const char *text);

struct evalspec_of {
    const char *job; /* the training */
    int64_t step;
    int attempt; /* that saved it, from 1 */
};
/* The id of that eval job: the same for a step and the attempt that saved it first, and for no
 * others. */
void evalspec_id(const struct evalspec_of *of, char ret[static SPEC_ID_BUF]);
/* The template with the names in their places and that id. Heap; NULL: it is no object. */
char *evalspec_fill(const char *text, const struct evalspec_of *of);
