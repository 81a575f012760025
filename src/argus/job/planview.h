/* SPDX-License-Identifier: Apache-2.0 */
/* planview.h - what the server says to `submit --dry-run`, for people. */
#pragma once
#include <stdbool.h>

#include "argus/cli/cli.h"

/* The command line (or the resolved spec where there is none) goes to cli->out; where it would
 * run or why not, and what it adds to its quotas, to stderr. file: as the user wrote it. */
void planview_print(struct cli *cli, const char *file, const json_t *answer);
/* What would serve it better, as YAML to be laid over the file. */
void planview_advice(struct cli *cli, const char *file, const json_t *answer);
/* False: its trial found something. */
bool planview_is_good(const json_t *answer);
