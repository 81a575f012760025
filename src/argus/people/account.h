/* SPDX-License-Identifier: Apache-2.0 */
/* account.h - what users and projects have in common: limits, and what is used of them. */
#pragma once
#include "argus/cli/ask.h"
#include "argus/cli/cli.h"

/* A cell: how many jobs run or wait. */
void account_jobs(struct table *t, const json_t *account, const struct when *w);
/* One of them: its members and limits, line by line. */
void account_print(struct cli *cli, const json_t *account, const struct seen *seen);
