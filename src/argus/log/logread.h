/* SPDX-License-Identifier: Apache-2.0 */
/* logread.h - a job's log as far as it goes now. */
#pragma once
#include "argus/cli/cli.h"
#include "argus/log/logout.h"

/* Say on stderr that these bytes are not there: they were dropped, or have not been kept. */
void logread_tell_gap(struct cli *cli, uint64_t from, uint64_t to);

/* Print the whole log, or its last `tail` lines when tail is not 0; of what was written since then
 * when `since` is not NULL. query ("&attempt=2" or "") goes with every request. *ret_offset is the
 * byte after the last one printed. */
must_check int logread_print(struct cli *cli,
                             const char *id,
                             const char *query,
                             int64_t tail,
                             const char *since,
                             struct logout *logout,
                             uint64_t *ret_offset,
                             struct err *err);
