/* SPDX-License-Identifier: Apache-2.0 */
/* jobpage.h - one job as a page of "label  value" lines. */
#pragma once
#include "argus/cli.h"

void jobpage_print(struct cli *cli, const json_t *job, const struct when *w);
