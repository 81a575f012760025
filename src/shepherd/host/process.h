/* SPDX-License-Identifier: Apache-2.0 */
/* process.h - what /proc says of one process that is not below us.
 *
 * A process can end between two questions: then the answer is NULL or false. Texts are outside
 * bytes with a ceiling. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"

struct process_stat {
    pid_t parent;
    char state; /* R S D T t Z X */
    char name[32];
    uint64_t start_ticks; /* with the pid it names a process for ever */
    uint64_t cpu_ticks;   /* user and system */
};

bool process_stat(pid_t pid, struct process_stat *ret);

/* Append /proc/<pid>/<file>; a file that is longer than the buf's ceiling is cut there. False: it
 * cannot be read. What lies in the memory of the process can hang: peek.h asks for it. */
bool process_read(pid_t pid, const char *file, struct buf *out);

/* The nearest process above this one of this name; 0: there is none. */
pid_t process_above(pid_t pid, const char *name);

/* Every process there is, in no order, for as long as f says true. */
void process_each(bool (*f)(pid_t pid, void *arg), void *arg);
