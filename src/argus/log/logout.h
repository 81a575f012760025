/* SPDX-License-Identifier: Apache-2.0 */
/* logout.h - the last step of a log's bytes on their way to stdout: unchanged into a
 * pipe, harmless on a terminal, and only the matching lines with --grep. */
#pragma once
#include <stdbool.h>
#include <stdio.h>

#include "argus/show/ansi.h"
#include "base/err.h"
#include "core/metric/loggrep.h"

enum { LOGOUT_LINE_MAX = 1 << 20 };

struct logout {
    FILE *out;
    bool is_tty;
    bool in_line;     /* the last byte printed was no line end */
    const char *head; /* goes out before the first byte does, as it is; borrowed, NULL = none */
    struct ansi ansi;
    struct loggrep *grep; /* NULL: everything */
    struct buf line;      /* the beginning of a line that --grep cannot judge yet */
};

/* pattern: regular expression, NULL = everything. ERR_USAGE when it is none. */
must_check int logout_init(struct logout *l,
                           FILE *out,
                           bool is_tty,
                           const char *pattern,
                           struct err *err);
void logout_release(struct logout *l);

void logout_add(struct logout *l, const char *p, size_t n);
/* A line without its end, that the server has chosen. */
void logout_line(struct logout *l, const char *p, size_t n);
/* The log ends here: what was held back goes out. */
void logout_end(struct logout *l);
