/* SPDX-License-Identifier: Apache-2.0 */
/* follow.h - a job's log, live, to its end: the heart of `logs -f` and
 * `submit --follow`.
 *
 * Reconnects by itself and asks for the byte after the last one printed, so that
 * none is lost or doubled. While nothing is printed it says on stderr what the job
 * does: never a silent minute. */
#pragma once
#include "argus/cli/cli.h"
#include "argus/log/logout.h"

struct follow_opts {
    uint64_t offset;       /* first byte wanted, */
    int64_t attempt;       /* in the log of this one; 0: of the newest, or of the one in query */
    const char *query;     /* "&attempt=2", "" = none: goes with every request */
    const char *since;     /* with offset 0: begin with what was written since then; NULL: any */
    struct logout *logout; /* borrowed */
};

/* id: the job's whole id. Returns the exit status of the ended job, 0 when detached by Ctrl-C,
 * or a negative code. */
must_check int follow_run(struct cli *cli,
                          const char *id,
                          const struct follow_opts *opts,
                          struct err *err);
