/* SPDX-License-Identifier: Apache-2.0 */
/* simulate.h - the result of a simulation (core/past/simulation.h) as a picture. */
#pragma once
#include "core/past/simulation.h"

/* One standalone picture. */
void simulate_svg(const struct simulation *s, struct buf *out);
