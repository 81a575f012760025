/* SPDX-License-Identifier: Apache-2.0 */
/* pipe_jobs.h - what is wrong with the JobSpecs of a pipeline's steps, before anything runs.
 *
 * Each key, and each value that stands there as it is, is held against the rows of the JobSpec. A
 * value with an expression in it is known at the submit, as is what goes together and what must be
 * there for a workload. A step that names a preset is checked by who has presets, with
 * pipe_jobs_tell() and pipe_jobs_check_filled(). Pure. */
#pragma once
#include "core/pipe/pipe.h"

/* Those of all steps that name no preset. */
void pipe_jobs_check(const struct pipe *p, struct problems *ps);

/* The preset that a step's JobSpec names; NULL: none, the step is no job, or an expression says
 * which. Borrowed. */
const char *pipe_jobs_preset(const struct pipe_step *s);
/* Adds what was found of the step's `with`, but what is of values with an expression. What has no
 * place of its own gets that of `with`. */
void pipe_jobs_tell(const struct pipe_step *s, const struct problems *found, struct problems *to);
/* A JobSpec that a preset became with the step's values, as JSON: all is told at `with`. */
void pipe_jobs_check_filled(const struct pipe_step *s,
                            const char *text,
                            size_t len,
                            struct problems *ps);
