/* SPDX-License-Identifier: Apache-2.0 */
/* beat.h - the sign of life in the attempt's directory, replaced at each beat.
 *
 * fsroot_beat_read() is its reader. On a full disk the old file is overwritten in
 * place, because silence would look like death. */
#pragma once
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/err.h"

struct beat {
    const char *job;
    int attempt;
    uint64_t seq;
    usec_t at;
    const char *state; /* starting running stopping */
    pid_t pid;         /* of the command, 0 before it runs */
    uint64_t start_ticks;
    const char *node, *ip;
    uint64_t log_bytes, dropped_bytes;
    uint64_t waiting_bytes; /* in the spool */
};

must_check int beat_write(const char *path, const struct beat *b, struct err *err);
