/* SPDX-License-Identifier: Apache-2.0 */
/* findingcall.h - the findings of a job, asked of the server. */
#pragma once
#include "argus/cli/cli.h"

/* That of the attempt, or of the newest that has one (attempt 0). *ret is a new reference, *ret_id
 * the job's id, yours to free. ERR_NOT_FOUND: there is none. */
must_check int findingcall_get(struct cli *cli,
                               const char *job,
                               int64_t attempt,
                               json_t **ret,
                               char **ret_id,
                               struct err *err);
