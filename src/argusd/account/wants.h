/* SPDX-License-Identifier: Apache-2.0 */
/* wants.h - what the scheduler says of guarantees, and of jobs that only GPUs keep waiting, told to
 * the slotbook as events wherever it is not so there already. */
#pragma once
#include "core/account/slotbook.h"
#include "core/sched/sched.h"

/* Applies the event to the book, and keeps it if it changed something. */
typedef void (*wants_tell_f)(struct slotbook_event *e, void *arg);
void wants_look(const struct slotbook *book,
                const struct sched *sched,
                int64_t now,
                wants_tell_f tell,
                void *arg);
