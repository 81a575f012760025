/* SPDX-License-Identifier: Apache-2.0 */
/* simulate_table.h - the result of a simulation for a terminal: pools under each policy, then
 * waits by the size of the gang. */
#pragma once
#include <stdio.h>

#include "argus/show/term.h"
#include "argus/simulate/simulate.h"

void simulate_table(const struct simulation *s, const struct term *term, bool wide, FILE *out);
