/* SPDX-License-Identifier: Apache-2.0 */
/* ansi.h - lets the colours of a log through to a terminal, and nothing else.
 *
 * A log is written by whoever wrote the job's code; a terminal obeys what is in
 * it: titles, clipboards, cursor, answers typed back. SGR (ESC [ … m) passes,
 * as do \n, \r and \t; every other control character is shown (^[ for ESC, \x9b). The
 * state lives across chunks, so that a sequence may be split anywhere. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

enum { ANSI_HELD_MAX = 64 };

struct ansi {
    char held[ANSI_HELD_MAX]; /* the start of what may become a colour or a C1 control */
    size_t n_held;
};

/* Append the harmless form of n bytes. With end, what is held is let out too. */
void ansi_filter(struct ansi *a, const char *p, size_t n, bool end, struct buf *out);
