/* SPDX-License-Identifier: Apache-2.0 */
/* hiding.h - what is secret to a job, so that it can be masked in what the job wrote. */
#pragma once
#include "argusd/kit/api.h"
#include "fsroot/attempt/mask.h"

/* Adds the values of all secrets of its user and its project, whether the job asked for them or
 * not, what its spec's environment has under a secret name, and what looks like a key in its
 * command. */
void hiding_add(const struct api *a, const struct job *job, struct mask *ret);
