/* SPDX-License-Identifier: Apache-2.0 */
/* sweep.h - removing what we made below the shared root. Blocking. */
#pragma once
#include "base/err.h"

/* Remove what stands at this path below the root, whole trees too, but follow no link on the way
 * there, nor below. Nothing there is fine. */
must_check int fsroot_sweep(const char *root, const char *path, struct err *err);
