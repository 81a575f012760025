/* SPDX-License-Identifier: Apache-2.0 */
/* saving_facts.h - what a job that saves and fails did, for the tests of what is advised and of
 * what came of it. */
#pragma once
#include "core/account/waste.h"

/* Steps of 10 s on 4 GPUs, a save of 5 s each `every` steps; three failures lose what came since
 * the last save. The facts borrow the sums. */
static inline struct waste_facts saving_facts(struct goodput_sums *sums, int every)
{
    *sums = (struct goodput_sums){0};
    for (int k = 1; k <= 3; k++)
        for (int i = 0; i < 350; i++)
            goodput_add(sums, k, k < 3 && i >= 350 / every * every, 10,
                        i % every == every - 1 ? 5 : 0);
    return (struct waste_facts){
        .held_s = 4 * 3 * 3500, .gpus = 4, .sums = sums, .failures = 3, .failed = true};
}
