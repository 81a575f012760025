/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.h - lines of the kernel's log that can be the reason of a failure: killed for memory, an
 * Xid of the GPU driver, a disk or file system in trouble. Where it may not be read there is none.
 */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"

struct kin;

enum {
    KERNEL_TEXT_MAX = 256 << 10,
    KERNEL_LINE_MAX = 300,
    KERNEL_SUSPECTS = 16,
    KERNEL_XIDS = 64 /* GPUs of one node; an Xid of a further one is in the text alone */
};

/* A process that was killed for memory in our cgroup and whose owner is not known. */
struct kernel_suspect {
    long pid;
    int asked; /* how often */
    char *line;
};

/* The first Xid of one GPU. */
struct kernel_xid {
    int number;
    uint64_t gpu; /* see kernel_gpu_at(); 0: the line does not say which */
    char *line;   /* cut at KERNEL_LINE_MAX */
};

struct kernel_log {
    uint64_t first;                      /* number of the first record that is taken; 0: all */
    struct buf text;                     /* the lines; those beyond the ceiling are left out */
    struct kernel_xid xids[KERNEL_XIDS]; /* in the order in which they came */
    int n_xids;
    int oom_kills;                                   /* of processes of the attempt */
    char *oom_line;                                  /* the first kill's line; NULL */
    int oom_in_group;                                /* in our cgroup, whose process ever */
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

/* The first Xid that can be the reason of the attempt's failure: one of a GPU among these n, or one
 * of which it is not known whose it is. n < 0: it is not known which GPUs the attempt has, and the
 * first of the node is that Xid. NULL: none. Of the log. */
const struct kernel_xid *kernel_xid_among(const struct kernel_log *k, const uint64_t *gpus, int n);
/* The PCI address at the start of a text, as one number that is the same for the kernel's
 * "PCI:0000:3b:00" and the driver's "00000000:3B:00.0". 0: there is none. */
uint64_t kernel_gpu_at(const char *text);

/* Whether such a line matters, without its time and level. *ret_xid: of an Xid, else 0. */
bool kernel_line_matters(const char *line, int *ret_xid);
