/* SPDX-License-Identifier: Apache-2.0 */
/* smoke.h - a spec made small: the same job with one GPU, two steps and no checkpoint, to see
 * whether it runs at all. */
#pragma once
#include "base/doc/doc.h"

enum { SMOKE_STEPS = 2 };

/* Append the small spec as JSON. root is a spec that spec_read() takes. */
void smoke_spec(const struct node *root, struct buf *out);
