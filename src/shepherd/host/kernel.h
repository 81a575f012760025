/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.h - lines of the kernel's log that can be the reason of a failure: killed for memory, an
 * Xid of the GPU driver, a disk or file system in trouble. Where it may not be read there is none.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct kin;

enum { KERNEL_TEXT_MAX = 256 << 10, KERNEL_LINE_MAX = 300, KERNEL_SUSPECTS = 16 };

/* A process that was killed for memory in our cgroup and whose owner is not known. */
struct kernel_suspect {
    long pid;
    int asked; /* how often */
    char *line;
};

struct kernel_log {
    uint64_t first;   /* number of the first record that is taken; 0: all */
    struct buf text;  /* the lines; those beyond the ceiling are left out */
    int xid;          /* the first; 0: none */
    char *xid_line;   /* yours with the rest, cut at KERNEL_LINE_MAX; NULL */
    int oom_kills;    /* of processes of the attempt */
    char *oom_line;   /* the first kill's line; NULL */
    int oom_in_group; /* in our cgroup, whose process ever */
    struct kernel_suspect suspects[KERNEL_SUSPECTS]; /* the first suspects */
    int n_suspects;                                  /* the number of all suspects */
    long told_pid;                                   /* of the newest "oom-kill:" line; 0: none */
    bool is_told_ours;                               /* it was in our cgroup */
};
#define KERNEL_LOG_INIT ((struct kernel_log){.text = BUF_INIT(KERNEL_TEXT_MAX)})

/* The processes whose OOM kills concern us. In a pid namespace of our own the kernel's pids are
 * not ours, and only the cgroup decides. */
struct kernel_concern {
    struct kin *kin; /* borrowed; NULL: no process is known by its pid */
    char *group;     /* path of our cgroup of memory, as the kernel names it; NULL: not known */
};
void kernel_concern_init(struct kernel_concern *c, struct kin *kin);
void kernel_concern_release(struct kernel_concern *c);

/* Opens /dev/kmsg at its end: records that are written from now on can be read. -1: reading is
 * not allowed. ret_first, unless NULL, gets the number of the next record, so that a later
 * reader can begin there. */
int kernel_log_open(uint64_t *ret_first);
/* Rewinds, so that any holder of the descriptor can read the records once more: they share one
 * position. */
void kernel_log_again(int fd);

/* The kills for memory, as far as they can be told. */
struct kernel_oom {
    int kills;        /* of the attempt's processes; -1: nothing can be known */
    bool is_unsure;   /* they may all have been another job's, which has the same cgroup */
    const char *line; /* the kernel's, of the first; NULL. Of the log. */
};
/* in_group: how often the kernel killed in our cgroup meanwhile, by its own count; -1: not known.
 * can_read: its log can be read. has_neighbours: see kin.h. */
struct kernel_oom kernel_oom(const struct kernel_log *k,
                             bool can_read,
                             int64_t in_group,
                             bool has_neighbours);

/* Adds what is new in fd: kernel_log_open()'s, or a file that holds what it would give; -1: nothing
 * is read. Asked now and then, it knows whose a pid was at that time. */
void kernel_log_read(struct kernel_log *k, int fd, const struct kernel_concern *concern);
void kernel_log_release(struct kernel_log *k);

/* Whether such a line matters, without its time and level. *ret_xid: of an Xid, else 0. */
bool kernel_line_matters(const char *line, int *ret_xid);
