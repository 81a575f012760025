/* SPDX-License-Identifier: Apache-2.0 */
/* searchcall.h - lines that match a pattern, in the logs of all jobs that one may see. */
#pragma once
#include "argus/cli.h"

struct searchcall {
    const char *grep, *source, *user, *project, *since; /* NULL: any; source NULL: driver */
    int64_t most;                                       /* hits; 0: all */
};

/* Prints "ID/ATTEMPT:OFFSET: LINE" for each hit as its page comes, and of a worker's log
 * "ID/ATTEMPT/NODE/NAME[RANK]:OFFSET: LINE"; "[RANK]" where it is known. */
must_check int searchcall_run(struct cli *cli, const struct searchcall *call, struct err *err);
