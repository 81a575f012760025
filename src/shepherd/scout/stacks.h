/* SPDX-License-Identifier: Apache-2.0 */
/* stacks.h - what every Python process of an attempt on this node is doing right now.
 *
 * py-spy tells where it can be found and may look (beside the job's python, in PATH, in the shared
 * root's argus/bin); else what the kernel says of each thread. The answer is a JSON array:
 *   [{"pid": 7, "rank": "3" or null, "actor": "WorkerDict" or null, "worker": Ray's id or null,
 *     "cmd": "ray::WorkerDict.update", "state": "S", "cpu_s": 1.25,
 *     "parent": the nearest process above that is in this array, else its parent,
 *     "by": "py-spy" or "proc", "error": why it was not py-spy, or null,
 *     "threads": [{"name": …, "id": …, "active": true, "frames": [{"function", "file", "line"}]}],
 *     "frames": those of the main thread, "text": all of it for people}]
 * Innermost frame first. Bounded in time and size; what does not fit is left out. No process is
 * halted for it, and one that is stopped stays so. core/metric/stacks.h reads this. */
#pragma once
#include "base/buf.h"
#include "shepherd/host/peek.h"
#include "shepherd/scout/copier.h"

enum { STACKS_MAX = 16 << 20, STACKS_PROCESSES = 256 };

/* attempt: its directory, which every process of the job has in its environment. copier knows
 * the workers; NULL: no text may be shown that could hold a secret, and "cmd" is null. A process
 * that hangs so that its owner cannot be found out (peek.h) is told if copier knows it. Returns
 * how many processes there are. */
size_t stacks_tell(const char *attempt,
                   const struct copier *copier,
                   struct peek *peek,
                   struct buf *out);

/* The number of the newest question stacks/<n>.ask of the attempt that this node has not
 * answered (older ones are no longer waited for); 0: there is none. */
long stacks_question(const char *attempt, const char *node);
/* Answers it: stacks/<n>/<node>.json. What cannot be written is a question that stays. */
void stacks_answer(const char *attempt,
                   const char *node,
                   long n,
                   const struct copier *copier,
                   struct peek *peek,
                   struct veil *veil);
