/* SPDX-License-Identifier: Apache-2.0 */
/* quota.h - what of a user's or project's use there are limits for, and how each limit is called.
 *
 * The one list of it: the members of a quota in requests and replies (argusd/people/people_form.c),
 * the options of 'argus quota set' and the lines of 'argus quota show' are made from these rows.
 * What a limit does is decided elsewhere: core/sched/share/sched_quota.h and
 * argusd/content/storage.h. */
#pragma once

enum { QUOTA_REAL_MOST = 1000000, QUOTA_INT_MOST = 1000000 };

/* X(member of a quota, REAL or INT, option, what --help calls its value, title of its line, the
 * member of 'usage' that it limits (NULL: usage does not tell), what it is) */
#define QUOTA_LIMITS(X)                                                                            \
    X(gpus_guaranteed, REAL, "guaranteed", "N", "GPUs guaranteed", NULL,                           \
      "GPUs that others give back when these jobs ask for them")                                   \
    X(gpus_ceiling, REAL, "gpus", "N", "GPUs", "gpus", "GPUs at most, borrowed ones too")          \
    X(cpus, REAL, "cpus", "N", "CPUs", "cpus", "CPUs at most")                                     \
    X(memory, REAL, "memory", "GIB", "memory (GiB)", "memory",                                     \
      "GiB of memory at most, as jobs state it (memory_per_node)")                                 \
    X(checkpoints, REAL, "checkpoints", "GIB", "checkpoints (GiB)", NULL,                          \
      "GiB of checkpoints at most")                                                                \
    X(storage, REAL, "storage", "GIB", "storage (GiB)", "storage",                                 \
      "GiB of snapshots, data sets and models at most")                                            \
    X(running, INT, "running", "N", "jobs running", "running",                                     \
      "jobs at most that hold GPUs or CPUs at the same time")                                      \
    X(queued, INT, "queued", "N", "jobs waiting", "queued", "jobs at most that wait")              \
    X(gpu_hours_per_month, REAL, "gpu-hours", "N", "GPU-hours a month", "gpu_hours_this_month",    \
      "GPU-hours at most in a calendar month (UTC)")
