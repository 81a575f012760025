/* SPDX-License-Identifier: Apache-2.0 */
/* nodepage.h - all about one machine, for eyes. */
#pragma once
#include "argus/cli/ask.h"
#include "argus/cli/cli.h"

void nodepage_print(struct cli *cli, const json_t *node, const struct seen *seen);
