/* SPDX-License-Identifier: Apache-2.0 */
/* cmd.h - the rows of the command table, one from each file of this folder. */
#pragma once
#include "argus/cli.h"
#include "argus/command.h"

extern const struct command cmd_ckpt_gc;
extern const struct command cmd_ckpt_ls;
extern const struct command cmd_ckpt_verify;
extern const struct command cmd_cluster_down;
extern const struct command cmd_cluster_ls;
extern const struct command cmd_cluster_status;
extern const struct command cmd_cluster_up;
extern const struct command cmd_completion;
extern const struct command cmd_data_import;
extern const struct command cmd_data_ls;
extern const struct command cmd_data_prepare;
extern const struct command cmd_data_rm;
extern const struct command cmd_data_show;
extern const struct command cmd_data_upload;
extern const struct command cmd_diagnose;
extern const struct command cmd_events;
extern const struct command cmd_files_get;
extern const struct command cmd_files_ls;
extern const struct command cmd_files_put;
extern const struct command cmd_files_rm;
extern const struct command cmd_gpus;
extern const struct command cmd_help;
extern const struct command cmd_hold;
extern const struct command cmd_login;
extern const struct command cmd_logs;
extern const struct command cmd_ls;
extern const struct command cmd_model_import;
extern const struct command cmd_model_ls;
extern const struct command cmd_model_rm;
extern const struct command cmd_model_show;
extern const struct command cmd_node_add;
extern const struct command cmd_node_check;
extern const struct command cmd_node_drain;
extern const struct command cmd_node_firewall;
extern const struct command cmd_node_ls;
extern const struct command cmd_node_rm;
extern const struct command cmd_node_undrain;
extern const struct command cmd_pool_ls;
extern const struct command cmd_priority;
extern const struct command cmd_project_add;
extern const struct command cmd_project_ls;
extern const struct command cmd_project_rm;
extern const struct command cmd_project_set;
extern const struct command cmd_project_show;
extern const struct command cmd_queue;
extern const struct command cmd_quota_ls;
extern const struct command cmd_quota_set;
extern const struct command cmd_quota_show;
extern const struct command cmd_release;
extern const struct command cmd_retry;
extern const struct command cmd_simulate;
extern const struct command cmd_snapshot_add;
extern const struct command cmd_snapshot_diff;
extern const struct command cmd_snapshot_ls;
extern const struct command cmd_snapshot_rm;
extern const struct command cmd_status;
extern const struct command cmd_stop;
extern const struct command cmd_submit;
extern const struct command cmd_preset_add;
extern const struct command cmd_preset_ls;
extern const struct command cmd_preset_rm;
extern const struct command cmd_preset_show;
extern const struct command cmd_secret_ls;
extern const struct command cmd_secret_rm;
extern const struct command cmd_secret_set;
extern const struct command cmd_token_add;
extern const struct command cmd_token_ls;
extern const struct command cmd_token_revoke;
extern const struct command cmd_top;
extern const struct command cmd_user_add;
extern const struct command cmd_user_ls;
extern const struct command cmd_user_rm;
extern const struct command cmd_user_set;
extern const struct command cmd_version;
extern const struct command cmd_wait;
extern const struct command cmd_whoami;
extern const struct command cmd_why;

/* As many as one likes. */
#define ARGS_ANY ((size_t)-1)
