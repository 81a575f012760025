/* SPDX-License-Identifier: Apache-2.0 */
/* searchcall.h - lines that match a pattern, as the server finds them: in the logs of all jobs that
 * one may see, or in one log. */
#pragma once
#include "argus/cli/cli.h"
#include "argus/log/logout.h"

struct searchcall {
    const char *job; /* only in logs of this one, its whole id; NULL: of all */
    int64_t attempt; /* with job; 0: its newest */
    const char *grep, *source, *user, *project, *since; /* NULL: any; source NULL: driver */
    int64_t most;                                       /* hits; 0: all */
};

/* Prints "ID/ATTEMPT:OFFSET: LINE" for each hit as its page comes, and of a worker's log
 * "ID/ATTEMPT/NODE/NAME[RANK]:OFFSET: LINE"; "[RANK]" where it is known. */
must_check int searchcall_run(struct cli *cli, const struct searchcall *call, struct err *err);

struct searchlog {
    const char *job;   /* its whole id */
    const char *query; /* which log of it: "&attempt=2&source=worker&file=…", "" = the driver's */
    const char *grep, *since; /* since NULL: from its beginning */
    bool leave_rest;          /* a last line that has no end yet is left to who follows */
};
/* Where one goes on: behind the last whole line. */
struct searchlog_end {
    int64_t attempt; /* 0: there is none yet */
    uint64_t offset;
};
/* Prints the lines of one log that match, as they are. */
must_check int searchcall_log(struct cli *cli,
                              const struct searchlog *ask,
                              struct logout *logout,
                              struct searchlog_end *ret,
                              struct err *err);
