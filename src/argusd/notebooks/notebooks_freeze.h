/* SPDX-License-Identifier: Apache-2.0 */
/* notebooks_freeze.h - the packages of a notebook as a snapshot that a JobSpec uses.
 *
 * They are packed on a worker thread into bytes of an upload that nobody else knows, of which a
 * snapshot is made as of any upload; the bytes go when that has ended, or with the next start of
 * argusd. One user freezes one notebook at a time. */
#pragma once
#include "argusd/kit/part.h"

/* POST /v1/notebooks/{name}:freeze */
extern const struct api_part part_notebooks_freeze;
