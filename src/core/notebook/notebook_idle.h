/* SPDX-License-Identifier: Apache-2.0 */
/* notebook_idle.h - when a notebook that nobody uses is warned, and when it is stopped. Pure. */
#pragma once
#include <stdbool.h>

#include "base/clock.h"

enum notebook_idle { NOTEBOOK_IN_USE, NOTEBOOK_WARNED, NOTEBOOK_OVERDUE };

struct notebook_use {
    usec_t limit;  /* stopped after so long without use; 0: never */
    usec_t quiet;  /* how long nothing happened: kernels, terminals, processes and GPUs */
    usec_t kept;   /* so long it is kept in any case */
    usec_t warned; /* how long ago its owner was warned; 0: he was not */
};
/* Nobody is stopped without having been warned a while before. *ret_left: until it is stopped, as
 * things are; 0 where the limit is. */
enum notebook_idle notebook_idle_judge(const struct notebook_use *u, usec_t *ret_left);
/* How long before its stop a notebook with this limit is warned. */
usec_t notebook_idle_notice(usec_t limit);
