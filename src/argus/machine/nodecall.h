/* SPDX-License-Identifier: Apache-2.0 */
/* nodecall.h - machines on the server: one change of one, and waiting until they are where they
 * are wanted. */
#pragma once
#include "argus/cli/cli.h"

/* POST /v1/nodes/<name><verb> (":drain"); body (taken, NULL = none). *ret is the node. */
must_check int nodecall_post(struct cli *cli,
                             const char *name,
                             const char *verb,
                             json_t *body,
                             json_t **ret,
                             struct err *err);

/* One line to cli->out: "node-1 online", with the reason where there is one. */
void nodecall_print(struct cli *cli, const json_t *node);
/* What stands in its way, one sentence and one fix for each, to cli->out. How many. */
size_t nodecall_print_findings(struct cli *cli, const json_t *node);

enum node_goal { NODE_GOAL_ONLINE, NODE_GOAL_OFFLINE, NODE_GOAL_GONE };

/* Until all of them are there; every change on the way is told on stderr, the end printed.
 * timeout 0 = for ever. ERR_REFUSED: something stood in the way to the end; ERR_TIMEOUT. */
must_check int nodecall_wait(struct cli *cli,
                             const struct strv *names,
                             enum node_goal goal,
                             usec_t timeout,
                             struct err *err);
