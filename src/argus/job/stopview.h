/* SPDX-License-Identifier: Apache-2.0 */
/* stopview.h - what would end with jobs that are stopped, as the server plans it, for people. */
#pragma once
#include "argus/cli/cli.h"

/* What comes back with each of them, what is lost, and who waits for it. Nothing is stopped. */
must_check int stopview_run(struct cli *cli, const struct strv *ids, int output, struct err *err);
