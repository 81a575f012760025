/* SPDX-License-Identifier: Apache-2.0 */
/* cmd.h - the rows of the command table, one from each file of this folder. */
#pragma once
#include "argus/cli.h"
#include "argus/command.h"

extern const struct command cmd_completion;
extern const struct command cmd_events;
extern const struct command cmd_help;
extern const struct command cmd_login;
extern const struct command cmd_logs;
extern const struct command cmd_ls;
extern const struct command cmd_node_ls;
extern const struct command cmd_queue;
extern const struct command cmd_status;
extern const struct command cmd_stop;
extern const struct command cmd_submit;
extern const struct command cmd_version;
extern const struct command cmd_wait;
extern const struct command cmd_whoami;

/* As many as one likes. */
#define ARGS_ANY ((size_t)-1)
