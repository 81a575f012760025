/* SPDX-License-Identifier: Apache-2.0 */
/* stopping.h - stop all live jobs that fit filters: named, asked about, stopped at once. */
#pragma once
#include "argus/cli/cli.h"

/* filters: see filter.h; without one of users only one's own, unless all. Each job is named on
 * stderr and, unless yes, the terminal is asked. All are stopped in one transaction; *ids gets
 * them. */
must_check int stopping_run(struct cli *cli,
                            const struct strv *filters,
                            bool all,
                            bool yes,
                            struct strv *ids,
                            struct err *err);
