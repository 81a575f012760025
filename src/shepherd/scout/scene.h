/* SPDX-License-Identifier: Apache-2.0 */
/* scene.h - what a node can say after a failure: scene/<node>/ of the attempt.
 *
 * The shepherd asks (scene/ask), each scout gathers its node's part, and the shepherd waits for
 * them before it cleans up, SCENE_PATIENCE at most. A part is
 *   scene.json        the facts, written last: see scene_gather()
 *   stacks.json       of the job's processes that still live (stacks.h)
 *   kernel.txt        lines of the kernel's log about memory, GPUs and disks since the attempt
 * began nvidia-smi.txt, infiniband.txt, environment.txt (NCCL and its like), system.txt logs/ the
 * last SCENE_LOG_MAX of each of Ray's own logs of the job's workers What the workers printed is in
 * logs/workers/ already. */
#pragma once
#include <stdbool.h>

#include "base/buf.h"
#include "base/clock.h"
#include "shepherd/host/kernel.h"
#include "shepherd/host/peek.h"
#include "shepherd/scout/copier.h"

#define SCENE_PATIENCE (60 * USEC_SEC)
enum { SCENE_LOG_MAX = 2 << 20, SCENE_LOGS = 64, SCENE_FACTS_MAX = 256 << 10 };

struct gpus;

/* A scout's observations while the attempt ran. */
struct scene_watch {
    struct kin *kin;          /* its processes on this node */
    struct peek *peek;        /* by which they are asked */
    int kernel_fd;            /* of its log, from the beginning on; -1: not readable */
    struct kernel_log kernel; /* what it said so far */
    int64_t oom_kills;        /* of our cgroup at the beginning; -1: cannot be read */
    usec_t no_kill_until;     /* mono: the last time at which the kernel was known to have killed no
                                 process there */
    usec_t shm_full;          /* mono: when /dev/shm was last seen full; 0: never */
    usec_t disk_full;         /* the same of the disk that Ray's session lies on */
    struct buf environment;   /* of workers when they were first seen */
};

/* attempt: its directory. */
void scene_watch_init(struct scene_watch *w, const char *attempt);
void scene_watch_release(struct scene_watch *w);
/* Called in the process that watches: when it dies, its successor reads all records of the
 * kernel again. */
void scene_watch_begin(struct scene_watch *w);
/* Looks at the node's file systems and the kernel's log; session: a path on that of Ray's session.
 */
void scene_watch_look(struct scene_watch *w, const char *session);
/* Takes down what of this process's environment is about communication. */
void scene_watch_process(struct scene_watch *w, pid_t pid);

/* Gathers this node's part; takes up to half a minute where tools are slow. attempt: its
 * directory. The facts: {"version": 1, "node", "host", "at", "took_ms", "oom_kills": n or null (in
 * our cgroup), "own_oom_kills": n or null (of its processes, by all that is known), "oom_unsure":
 * bool (they may have been another job's), "oom_line": text or null, "memory_max_bytes",
 * "memory_peak_bytes": n or null, "shm_full": bool, "disk_full": bool, "xid": n or 0, "xid_line":
 * text or null (the first of one of the attempt's GPUs; of any GPU of the node where it is not
 * known which it has: gpuheld.h), "file_systems": [{"path", "total_bytes", "free_bytes",
 * "free_inodes"}], "memory": {…}, "processes": n that live, "logs": n}. A scout that may show
 * nothing says "trouble" in the place of all after "at". gpus: of this node, for the Xid. */
void scene_gather(const char *attempt,
                  const char *node,
                  const struct copier *copier,
                  struct veil *veil,
                  const struct gpus *gpus,
                  struct scene_watch *w);
bool scene_is_gathered(const char *attempt, const char *node);

/* ---- for the shepherd ---- */

struct scene_wait;

/* Asks every scout there is and waits for them, in a thread of its own: a shared root that hangs
 * must not hold the shepherd. `why` is for people. NULL: no thread could be made. */
struct scene_wait *scene_ask(const char *attempt, const char *why);
/* All that can be expected is there, or the patience is over. */
bool scene_is_over(const struct scene_wait *w);
/* A thread that still hangs is left behind. NULL is fine. */
void scene_wait_free(struct scene_wait *w);
