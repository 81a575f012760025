/* SPDX-License-Identifier: Apache-2.0 */
/* jobpage.h - one job as a page of "label  value" lines. */
#pragma once
#include "argus/cli/cli.h"

/* Only how its training goes, with all newest metrics. */
void jobpage_print_metrics(struct cli *cli, const json_t *job, const struct when *w);
/* One line: what its own processes take of its nodes, of a reply of GET /v1/jobs/{id}/load. Nothing
 * where that is not measured on each of them. */
void jobpage_print_load(struct cli *cli, const json_t *load);
void jobpage_print(struct cli *cli, const json_t *job, const struct when *w);
