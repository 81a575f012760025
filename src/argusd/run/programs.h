/* SPDX-License-Identifier: Apache-2.0 */
/* programs.h - what argusd brings to the shared root and argus.yaml may leave unnamed: the
 * shepherd, and the hook. */
#pragma once
#include "argusd/ground/settings.h"

/* s->shepherd: beside argusd; s->hook: written below state_dir, which is there. What is named
 * stays. ERR_USAGE when there is no shepherd. */
must_check int programs_find(struct settings *s, struct err *err);
