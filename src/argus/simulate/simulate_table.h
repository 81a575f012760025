/* SPDX-License-Identifier: Apache-2.0 */
/* simulate_table.h - the result of a simulation, as simulation_page() writes it or a server answers
 * it, for a terminal: pools under each policy, then waits by the size of the gang. */
#pragma once
#include <stdio.h>

#include "argus/show/term.h"
#include "base/json.h"

void simulate_table(const json_t *result, const struct term *term, bool wide, FILE *out);
