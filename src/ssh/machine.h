/* SPDX-License-Identifier: Apache-2.0 */
/* machine.h - inside of this layer: what the scripts tell of clock, disks and GPUs in the same
 * words. Pure. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

struct machine_gpus {
    int n;
    char type[64], driver[32];
    char trouble[200];   /* what nvidia-smi says of the first that has one; "" = none */
    uint64_t ecc_errors; /* that could not be corrected, of the first GPU that has any; 0 = none */
    int ecc_gpu;
};

/* A line of nvidia-smi: "NVIDIA H200, 550.54.15, 0"; a sick GPU or driver says a sentence instead.
 */
void machine_read_gpu(const char *value, struct machine_gpus *ret);
/* "1795270069.327497242", or whole seconds where date knows no better; 0 if it makes no sense. */
double machine_read_clock(const char *value);
/* "<size> <free>" in KiB; false and nothing set if it makes no sense. */
bool machine_read_space(const char *value, uint64_t *ret_size, uint64_t *ret_free);
