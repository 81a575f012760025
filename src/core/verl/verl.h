/* SPDX-License-Identifier: Apache-2.0 */
/* verl.h - what each verl release calls things: programs, config keys, demands.
 *
 * One row per release whose names differ, read from the configs of that release.
 * Whoever reads a row needs no version numbers of his own. A key that begins with
 * "+" is not in that release's config and must be appended. NULL: not there. */
#pragma once
#include <stdbool.h>

struct verl_version {
    const char *name; /* "0.9.1" */
    int major, minor, patch;

    const char *generate;     /* module of workload generate */
    bool generate_is_server;  /* its keys are those of ppo */
    const char *sft_torchrun; /* module, one node */
    const char *sft_ray;      /* module, any number of nodes; NULL before 0.7.0 */
    bool sft_is_engine;       /* engine trainer, else the FSDP trainer before it */
    bool
        sft_cpu_is_resource; /* sft_ray with trainer.device=cpu asks Ray for a resource named cpu */
    bool sft_has_gang_keys;  /* trainer.nnodes and trainer.n_gpus_per_node are in its config */

    const char *reward_path, *reward_function;           /* of ppo and grpo */
    const char *eval_reward_path, *eval_reward_function; /* of eval */
    bool eval_imports_custom_module; /* its workers import the reward file by that name */
    bool reward_takes_modules;       /* "pkg://dotted.module" may stand for a file */

    bool has_file_logger;    /* trainer.logger takes "file"; VERL_FILE_LOGGER_PATH */
    bool has_transfer_queue; /* storage units ask for CPUs; TQ_NUM_THREADS */
    bool has_loop_workers;   /* agent and reward loops: one CPU each while they start */
    int ppo_cpus_per_gpu;    /* of a bundle */
    int generate_cpus_per_gpu;
};

enum { VERL_SFT_CPUS_PER_GPU = 10 }; /* of sft_ray, in every release that has it */

/* The row for a version text ("0.7.1", "0.9.2", "0.8.0.dev\n"). *ret_exact (may be NULL) is
 * false when the row is a guess: no row is of that minor version, or the text names a
 * development version. Newer and unreadable texts get the newest row, older ones the
 * oldest. Never NULL; borrowed for ever. */
const struct verl_version *verl_version_find(const char *text, bool *ret_exact);

/* All rows, oldest first. */
const struct verl_version *verl_version_all(int *ret_n);
