/* SPDX-License-Identifier: Apache-2.0 */
/* verl.c - one row per verl release; see verl.h.
 *
 * Read from the wheels' configs and sources; tests/verl/test_cmdline_real.py holds
 * the command lines made from them against the real programs. */
#include "core/verl/verl.h"

#include <stddef.h>
#include <string.h>

#include "base/mem.h"

#define OLD_REWARD                                                                                 \
    .reward_path = "custom_reward_function.path",                                                  \
    .reward_function = "custom_reward_function.name",                                              \
    .eval_reward_path = "custom_reward_function.path",                                             \
    .eval_reward_function = "custom_reward_function.name"
/* From 0.7.1 on eval reads reward.*, which its own config lacks. */
#define NEW_REWARD                                                                                 \
    .reward_path = "reward.custom_reward_function.path",                                           \
    .reward_function = "reward.custom_reward_function.name",                                       \
    .eval_reward_path = "+reward.custom_reward_function.path",                                     \
    .eval_reward_function = "+reward.custom_reward_function.name", .reward_takes_modules = true
#define SERVER .generate = "verl.trainer.main_generation_server", .generate_is_server = true
#define ENGINE .sft_torchrun = "verl.trainer.sft_trainer", .sft_is_engine = true
#define ENGINE_ON_RAY ENGINE, .sft_ray = "verl.trainer.sft_trainer_ray", .sft_has_gang_keys = true

/* clang-format off */
static const struct verl_version versions[] = {
    {.name = "0.5.0", .major = 0, .minor = 5, .patch = 0,
     .generate = "verl.trainer.main_generation", .generate_cpus_per_gpu = 10,
     .sft_torchrun = "verl.trainer.fsdp_sft_trainer", .sft_has_gang_keys = true,
     OLD_REWARD, .eval_imports_custom_module = true, .ppo_cpus_per_gpu = 1},
    {.name = "0.6.0", .major = 0, .minor = 6, .patch = 0,
     SERVER, .generate_cpus_per_gpu = 1, ENGINE, OLD_REWARD,
     .has_file_logger = true, .ppo_cpus_per_gpu = 1},
    {.name = "0.6.1", .major = 0, .minor = 6, .patch = 1,
     SERVER, .generate_cpus_per_gpu = 1, ENGINE, OLD_REWARD,
     .has_file_logger = true, .ppo_cpus_per_gpu = 1},
    {.name = "0.7.0", .major = 0, .minor = 7, .patch = 0,
     SERVER, .generate_cpus_per_gpu = 3, ENGINE_ON_RAY, OLD_REWARD, .reward_takes_modules = true,
     .sft_cpu_is_resource = true,
     .has_file_logger = true, .has_loop_workers = true, .ppo_cpus_per_gpu = 3},
    {.name = "0.7.1", .major = 0, .minor = 7, .patch = 1,
     SERVER, .generate_cpus_per_gpu = 3, ENGINE_ON_RAY, NEW_REWARD,
     .sft_cpu_is_resource = true,
     .has_file_logger = true, .has_loop_workers = true, .ppo_cpus_per_gpu = 3},
    {.name = "0.8.0", .major = 0, .minor = 8, .patch = 0,
     SERVER, .generate_cpus_per_gpu = 2, ENGINE_ON_RAY, NEW_REWARD,
     .sft_cpu_is_resource = true,
     .has_file_logger = true, .has_loop_workers = true, .ppo_cpus_per_gpu = 3},
    {.name = "0.9.0", .major = 0, .minor = 9, .patch = 0,
     SERVER, .generate_cpus_per_gpu = 2, ENGINE_ON_RAY, NEW_REWARD, .has_file_logger = true,
     .has_transfer_queue = true, .has_loop_workers = true, .ppo_cpus_per_gpu = 3},
    {.name = "0.9.1", .major = 0, .minor = 9, .patch = 1,
     SERVER, .generate_cpus_per_gpu = 2, ENGINE_ON_RAY, NEW_REWARD, .has_file_logger = true,
     .has_transfer_queue = true, .has_loop_workers = true, .ppo_cpus_per_gpu = 3},
};
/* clang-format on */

enum { N_VERSIONS = (int)array_len(versions) };

const struct verl_version *verl_version_all(int *ret_n)
{
    *ret_n = N_VERSIONS;
    return versions;
}

static int verl_compare(const struct verl_version *v, int major, int minor, int patch)
{
    if (v->major != major)
        return v->major - major;
    if (v->minor != minor)
        return v->minor - minor;
    return v->patch - patch;
}

/* "0.7.1.post1" to its first three numbers; false when it does not begin with two. */
static bool verl_read_numbers(const char *text, int n[static 3])
{
    int count = 0;
    while (text && count < 3 && *text >= '0' && *text <= '9') {
        n[count] = 0;
        for (; *text >= '0' && *text <= '9' && n[count] < 100000; text++)
            n[count] = n[count] * 10 + (*text - '0');
        count++;
        if (*text != '.')
            break;
        text++;
    }
    return count >= 2;
}

const struct verl_version *verl_version_find(const char *text, bool *ret_exact)
{
    int n[3] = {0};
    const struct verl_version *found = &versions[0];
    bool readable = verl_read_numbers(text, n);
    for (int i = 0; readable && i < N_VERSIONS; i++)
        if (verl_compare(&versions[i], n[0], n[1], n[2]) <= 0)
            found = &versions[i];
    if (!readable)
        found = &versions[N_VERSIONS - 1];
    if (ret_exact)
        *ret_exact =
            readable && found->major == n[0] && found->minor == n[1] && !strstr(text, "dev");
    return found;
}
