/* SPDX-License-Identifier: Apache-2.0 */
/* finding_carrier.h - what those that carry a line put in front of it: journald, CRI, kubectl,
 * kubetail, compose, pdsh, loguru, wandb, Determined, GitHub Actions, Airflow.
 *
 * One prefix at a time, since one carrier stands before another. What carries whole lines inside
 * something else (JSON, UTF-16) is finding_unwrap.h's. */
#pragma once
#include <stdbool.h>
#include <stddef.h>

enum text_level { LEVEL_NONE, LEVEL_DEBUG, LEVEL_INFO, LEVEL_WARNING, LEVEL_ERROR, LEVEL_FATAL };

/* A part of the line; n 0: it had none. */
struct text_part {
    const char *s;
    size_t n;
};

/* Where in the line it would stand. */
enum carrier_place {
    CARRIER_FIRST = 1 << 0,      /* nothing came before, not even a blank */
    CARRIER_AFTER_TIME = 1 << 1, /* a time or a level came before */
};

struct carrier {
    size_t n; /* bytes of the prefix, without the blanks behind it */
    enum text_level level;
    struct text_part node, rank; /* n 0: it names none */
    bool is_stream;              /* lines with another one are of another process */
};

/* False: no prefix begins at p. */
bool carrier_read(const char *p, const char *end, unsigned place, struct carrier *ret);
