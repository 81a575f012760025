/* SPDX-License-Identifier: Apache-2.0 */
/* waiting.h - waits for the end of several jobs at once, for `wait`, `submit --wait`
 * and `stop --wait`. */
#pragma once
#include "argus/cli/cli.h"

/* Each job's last line goes to cli->out as it ends (with OUTPUT_JSON or OUTPUT_YAML all of them
 * together at the end); what they do meanwhile goes to stderr. timeout 0 = for ever. Returns the
 * exit status of the worst one, ERR_TIMEOUT, 128 + SIGINT after Ctrl-C, or what the
 * server refused. */
must_check int waiting_run(struct cli *cli,
                           const struct strv *ids,
                           usec_t timeout,
                           int output,
                           struct err *err);
