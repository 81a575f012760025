/* SPDX-License-Identifier: Apache-2.0 */
/* evals.h - submits the jobs that judge checkpoints (eval_on_save), and takes what they told; see
 * README.md. */
#pragma once
#include "argusd/jobs/jobs.h"

struct api;
struct evals;

struct evals *evals_new(struct api *a); /* borrowed */
void evals_start(struct evals *es);
void evals_close(struct evals *es); /* nothing is begun any more; NULL is fine, as below */
void evals_free(struct evals *es);  /* once the loop has run dry */

/* A job has ended, within the open batch: what it told goes to the checkpoint that it judged. */
void evals_ended(struct evals *es, const struct live *l);
