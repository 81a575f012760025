/* SPDX-License-Identifier: Apache-2.0 */
/* finale.h - how the output of a command ends: with an exception, or with what a shell says of a
 * command that did not run.
 *
 * Of "train | tee log" the shell knows the end of tee alone, and a training that failed has exit
 * code 0. Its last words are all that tells. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

enum { FINALE_BYTES = 16 << 10, FINALE_LINE_MAX = 240 };

struct finale {
    size_t n;
    char newest[2 * FINALE_BYTES]; /* at least the last FINALE_BYTES of what there was */
};

void finale_add(struct finale *f, const char *p, size_t n);

/* The line by which the output says that something failed, if it ends so: of a traceback the
 * exception, with at most a few lines behind it. False: it does not. */
bool finale_says_failure(const struct finale *f, char line[static FINALE_LINE_MAX]);
