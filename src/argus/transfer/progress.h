/* SPDX-License-Identifier: Apache-2.0 */
/* progress.h - a line on a terminal that says how far a long thing is: bytes, speed, what is left.
 * Where stderr is no terminal nothing is written. */
#pragma once
#include <stdint.h>

#include "argus/cli/cli.h"
#include "base/clock.h"

struct progress {
    const struct cli *cli; /* borrowed */
    const char *what;      /* borrowed */
    uint64_t from, total;  /* total 0 = not known */
    usec_t began, shown;
    bool is_open; /* a line stands there */
};

/* from: what was there already and does not count as speed. */
void progress_begin(struct progress *p,
                    const struct cli *cli,
                    const char *what,
                    uint64_t from,
                    uint64_t total);
/* Shows it when it is time to. */
void progress_at(struct progress *p, uint64_t done);
/* Takes the line away. */
void progress_end(struct progress *p);

enum { PROGRESS_TEXT_MAX = 512 };
/* "name  45% [####.....] 1.2GiB/2.6GiB 120MiB/s 12s" in at most width columns. Returns out. */
const char *progress_text(const char *what,
                          uint64_t done,
                          uint64_t total,
                          double per_second,
                          int width,
                          char out[static PROGRESS_TEXT_MAX]);
/* "1.2GiB", "17B". Returns out. */
enum { PROGRESS_SIZE_MAX = 32 };
const char *progress_size(double bytes, char out[static PROGRESS_SIZE_MAX]);
