/* SPDX-License-Identifier: Apache-2.0 */
/* drainview.h - what a drain would do, as the server plans it, for people: the jobs on the machine,
 * then what is at risk and when it would be empty. */
#pragma once
#include "argus/cli/cli.h"

void drainview_print(struct cli *cli, const json_t *plan, int output);
/* Its jobs alone, as a table. */
void drainview_print_jobs(struct cli *cli, const json_t *plan);
