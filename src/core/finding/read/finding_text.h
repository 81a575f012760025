/* SPDX-License-Identifier: Apache-2.0 */
/* finding_text.h - one line of a log without what programs put around a message: ANSI codes,
 * boxes, Ray's actor prefixes, ranks, times, levels, places in the source, "[repeated 3x across
 * cluster]". What the prefixes tell is kept. */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/finding/read/finding_carrier.h"

struct finding_text {
    struct text_part whole; /* without ANSI codes and surrounding blanks */
    struct text_part body;  /* what is left when the prefixes are gone */
    size_t indent;          /* blanks before the body, behind the prefixes */
    enum text_level level;
    bool boxed; /* inside a drawn box */
    struct text_part actor, pid, node, rank, time;
    uint64_t stream; /* the same for lines of one process, as far as the prefixes tell; 0: none */
};

/* Clean up to n bytes of line into out (n + 1 bytes at least), which ret's parts point into. */
void finding_text_read(const char *line, size_t n, char *out, struct finding_text *ret);
/* Where a raylet tells of a worker ("Worker PID: 12", "Worker IP address: 10.0.0.1"), the process
 * and its node are the worker's, and the actor is not known. Else nothing is changed. */
void finding_text_subject(struct finding_text *t);
