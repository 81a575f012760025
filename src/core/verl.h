/* SPDX-License-Identifier: Apache-2.0 */
/* verl.h - what each verl release calls things: programs, config keys, demands.
 *
 * One row per release whose names differ. A row is data; who reads it needs no
 * version numbers of his own. Absent key: NULL. "+key" must be appended, since
 * that release's config does not have it. */
#pragma once
#include <stdbool.h>

enum verl_launcher { VERL_PYTHON, VERL_TORCHRUN };

struct verl_version {
    const char *name; /* "0.9.1": the release that the row was read from */
    int major, minor, patch;

    struct {
        const char *ppo, *eval, *merge;
        const char *generate;
        bool generate_server; /* its keys are those of ppo, else generate_* below */
        const char *sft;      /* one node, under torchrun */
        const char *sft_ray;  /* several nodes, by itself on Ray; NULL before 0.7.0 */
    } module;

    const char *rollout_mode; /* what rollout.mode must be on GPUs, NULL: leave it */
    const char *reward_path;  /* of ppo and grpo */
    const char *reward_function;
    const char *eval_reward_path;
    const char *eval_reward_function;
    bool eval_needs_module_name; /* the reward file must be importable as 'custom_module' */
    bool reward_modules;         /* pkg://dotted.module is taken as a path */
    bool has_file_logger;        /* trainer.logger file, VERL_FILE_LOGGER_PATH */
    bool has_transfer_queue;     /* TQ_NUM_THREADS; storage units ask for CPUs */

    struct {
        const char *model;  /* model.path or model.partial_pretrain */
        const char *keep;   /* NULL: has no such key */
        bool engine;        /* engine trainer: data.messages_key, pad_mode */
        bool is_device_key; /* trainer.device is read */
    } sft;

    int ppo_cpus_per_gpu; /* of a bundle */
    int sft_cpus_per_gpu; /* of a bundle of sft_ray */
    int generate_cpus_per_gpu;
    bool has_loop_workers; /* agent- and reward-loop workers need one CPU to start */
};

/* The row for a version text ("0.7.1", "0.9.2", "0.8.0.dev\n"). *ret_exact (may be NULL)
 * is false when no row is of that minor version or the text is a development version:
 * then the newest row (the oldest for what is older still) is the best guess and the
 * caller warns. Never NULL; borrowed for ever. */
const struct verl_version *verl_version_find(const char *text, bool *ret_exact);
/* All rows, oldest first. */
const struct verl_version *verl_version_all(int *ret_n);
