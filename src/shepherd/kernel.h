/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.h - lines of the kernel's log that can be the reason of a failure: killed for memory, an
 * Xid of the GPU driver, a disk or file system in trouble. Where it may not be read there is none.
 */
#pragma once
#include <stdbool.h>

#include "base/buf.h"
#include "base/clock.h"

enum { KERNEL_TEXT_MAX = 256 << 10 };

struct kernel_log {
    struct buf text; /* the lines; those beyond the ceiling are left out */
    int xid;         /* the first; 0: none */
    char *xid_line;  /* yours with the rest; NULL */
};

/* Lines that are younger than `since` (mono). */
void kernel_log_read(struct kernel_log *k, usec_t since);
void kernel_log_release(struct kernel_log *k);

/* Whether such a line matters, without its time and level. *ret_xid: of an Xid, else 0. */
bool kernel_line_matters(const char *line, int *ret_xid);
