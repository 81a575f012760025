/* SPDX-License-Identifier: Apache-2.0 */
/* finding_piece.h - pieces of a log: what stands between two ends of line (\n, or the \r of a
 * progress bar), or FINDING_LINE_MAX bytes of a longer line. */
#pragma once
#include <stddef.h>
#include <stdint.h>

/* The lines that begin in these bytes. */
uint64_t piece_lines(const char *p, size_t n);

/* The first end of a piece in n bytes, n if there is none. */
size_t piece_end(const char *p, size_t n);

/* Where the piece that holds p[at] begins. */
size_t piece_start(const char *p, size_t at);

/* How many of n bytes end with the last end of a piece. */
size_t piece_whole(const char *p, size_t n);
