/* SPDX-License-Identifier: Apache-2.0 */
/* csv.h - text as a cell of CSV (RFC 4180). */
#pragma once
#include <stdio.h>

/* In quotes; control characters become spaces, so that a cell is never two lines. What a table
 * would take for a formula has ' before it. */
void csv_text(FILE *out, const char *text);
