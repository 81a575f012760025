/* SPDX-License-Identifier: Apache-2.0 */
/* registry_inputs.h - the registered data sets and models that a spec names. */
#pragma once
#include "argusd/content/registry.h"
#include "core/spec/spec.h"

extern const struct field_table registry_input_table; /* "InputUse" in openapi.json */

/* Each name in train_file, val_file and model_id becomes paths in the spec. *ret is what was put
 * (see spec_put_inputs()), with hashes, or NULL when there is no name. Every problem goes to ps;
 * what does not fit the workload is a warning. ERR_BAD_SPEC when ps got errors. */
must_check int registry_resolve(const struct registry *rg,
                                const struct access_who *who,
                                struct spec *spec,
                                char **ret,
                                struct problems *ps);
/* The job was accepted: its inputs are in use. */
void registry_note_inputs(struct registry *rg, const char *inputs, const char *job);
