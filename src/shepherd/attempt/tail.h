/* SPDX-License-Identifier: Apache-2.0 */
/* tail.h - what Ray is given of the output: enough to look at, never a flood.
 *
 * The first 64 KiB as they come, afterwards at most 4 KiB a second of the newest,
 * and the last 16 KiB at the end. What is left out is counted in a line. While the
 * command runs it never blocks: a reader that does not read loses output, but not
 * our own lines: up to 4 KiB of them wait for it. */
#pragma once
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

enum { TAIL_FIRST = 64 << 10, TAIL_PER_SECOND = 4 << 10, TAIL_LAST = 16 << 10 };
enum { TAIL_LINE = 1024, TAIL_SAID = 4 << 10 };

struct tail {
    int fd;               /* borrowed */
    const char *log_path; /* borrowed; named in the lines about what is left out */
    uint64_t first_left;  /* of TAIL_FIRST */
    uint64_t left_out;    /* bytes since the last piece */
    usec_t next;          /* when the next piece may go */
    int patience_ms;      /* how long a slow reader is waited for: at the end only */
    size_t said_n;
    char said[TAIL_SAID]; /* our own lines that no reader took yet */
    size_t n;
    char newest[TAIL_LAST]; /* bytes that were not given yet, the newest last */
};

void tail_init(struct tail *t, int fd, const char *log_path);
void tail_add(struct tail *t, const char *p, size_t n);
/* Gives the next piece when its time has come. */
void tail_tick(struct tail *t, usec_t mono);
/* Gives what is still held; from now on a slow reader is waited for, five seconds in all. */
void tail_finish(struct tail *t);
/* Adds one line of our own, at once or when the reader takes it; cut at TAIL_LINE. */
void tail_say(struct tail *t, const char *fmt, ...) printf_like(2, 3);
