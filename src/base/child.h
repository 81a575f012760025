/* SPDX-License-Identifier: Apache-2.0 */
/* child.h - start a program: argv vector, never a shell.
 *
 * Every descriptor but the three given is closed in the child. The parent gets a
 * pid and a pidfd (poll it for the end); a program that cannot be executed is an
 * error here, not an exit code. */
#pragma once
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/strv.h"

enum child_flags {
    CHILD_NEW_SESSION = 1 << 0,     /* setsid: its own process group and session */
    CHILD_DIE_WITH_PARENT = 1 << 1, /* SIGKILL when the starting thread ends */
};

/* Ceilings of the program and of all that it starts; 0: as ours. Past one of bytes a call fails or
 * the program dies; of its time it dies. */
struct child_limits {
    uint64_t memory_bytes; /* of address space */
    uint64_t file_bytes;   /* of each file that it writes */
    uint64_t cpu_seconds;
};

struct child_spec {
    const char *const *argv; /* NULL-terminated; argv[0] is looked up in PATH of env */
    const struct pairs *env; /* the whole environment; NULL = ours */
    const char *cwd;         /* NULL = ours */
    int in, out, err;        /* borrowed; -1 = /dev/null */
    unsigned flags;
    const struct child_limits *limits; /* NULL: as ours */
};

struct child {
    pid_t pid;
    int pidfd; /* owned: close it; -1 on kernels before 5.3 */
};

/* -ENOENT and the like with the program's name, when it cannot be executed. */
must_check int child_start(const struct child_spec *spec, struct child *ret, struct err *err);
