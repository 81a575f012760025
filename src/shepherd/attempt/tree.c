/* SPDX-License-Identifier: Apache-2.0 */
/* tree.c - descendants by a walk over /proc; see tree.h.
 *
 * Between the walk and the signal a pid can end and be given to somebody else. So
 * the process is held by a descriptor first, and its start time is read again: only
 * then is it certain that the signal meets the one that was seen. */
#define _GNU_SOURCE
#include "shepherd/attempt/tree.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/message.h"
#include "base/str.h"
#include "base/text.h"
#include "shepherd/host/process.h"

struct process {
    pid_t pid, parent;
    uint64_t start_ticks;
    bool is_zombie;
    bool is_below;    /* of the root, as far as known */
    bool is_spared;   /* a reader, or below one */
    uint64_t pipe[3]; /* what its first descriptors are; 0: no pipe, or not looked at */
};

struct tree_reader {
    pid_t pid;
    uint64_t start_ticks;
};

struct table {
    struct process *v;
    size_t n, cap;
};

static void table_release(struct table *t)
{
    free(t->v);
}

int tree_adopt(struct err *err)
{
    if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
        return message_refuse(err, -errno, "shepherd_no_reaper",
                              MESSAGE_ARGS(MESSAGE_STR("why", strerror(errno))));
    return 0;
}

static bool read_process(pid_t pid, struct process *ret)
{
    struct process_stat s;
    if (!process_stat(pid, &s))
        return false;
    *ret = (struct process){.pid = pid,
                            .parent = s.parent,
                            .start_ticks = s.start_ticks,
                            .is_zombie = s.state == 'Z' || s.state == 'X'};
    return true;
}

uint64_t tree_start_ticks(pid_t pid)
{
    struct process p;
    return read_process(pid, &p) ? p.start_ticks : 0;
}

static void tree_table_add(struct table *t, const struct process *p)
{
    if (t->n == t->cap) {
        t->cap = t->cap ? t->cap * 2 : 256;
        t->v = xrealloc(t->v, t->cap, sizeof(*t->v));
    }
    t->v[t->n++] = *p;
}

static int by_pid(const void *a, const void *b)
{
    const struct process *x = a, *y = b;
    return (x->pid > y->pid) - (x->pid < y->pid);
}

static bool add_process(pid_t pid, void *arg)
{
    struct process p;
    if (read_process(pid, &p))
        tree_table_add(arg, &p);
    return true;
}

static void tree_read_all(struct table *t)
{
    process_each(add_process, t);
    if (t->n)
        xsort(t->v, t->n, sizeof(*t->v), by_pid);
}

/* The table is sorted. */
static bool tree_is_below(const struct table *t, pid_t root, pid_t parent)
{
    if (parent == root)
        return true;
    const struct process key = {.pid = parent};
    const struct process *p = bsearch(&key, t->v, t->n, sizeof(*t->v), by_pid);
    return p && p->is_below;
}

/* Repeats until a round finds no new process: as many rounds as the tree is deep, and trees are
 * flat. */
static void mark_below(struct table *t, pid_t root)
{
    for (bool found = true; found;) {
        found = false;
        for (size_t i = 0; i < t->n; i++)
            if (!t->v[i].is_below && t->v[i].pid != root &&
                tree_is_below(t, root, t->v[i].parent)) {
                t->v[i].is_below = true;
                found = true;
            }
    }
}

static bool send(const struct process *p, int sig)
{
    int fd = pidfd_open(p->pid, 0);
    if (fd < 0)
        return errno == ENOSYS && kill(p->pid, sig) == 0; /* kernels before 5.3 */
    bool sent =
        tree_start_ticks(p->pid) == p->start_ticks && pidfd_send_signal(fd, sig, NULL, 0) == 0;
    close(fd);
    return sent;
}

static struct process *tree_process(const struct table *t, pid_t pid)
{
    const struct process key = {.pid = pid};
    return bsearch(&key, t->v, t->n, sizeof(*t->v), by_pid);
}

static size_t tree_send(const struct table *t, int sig)
{
    size_t sent = 0;
    for (size_t i = 0; i < t->n; i++)
        if (t->v[i].is_below && !t->v[i].is_zombie && !t->v[i].is_spared && send(&t->v[i], sig))
            sent++;
    return sent;
}

size_t tree_signal(pid_t root, int sig)
{
    _cleanup_(table_release) struct table t = {0};
    tree_read_all(&t);
    mark_below(&t, root);
    return tree_send(&t, sig);
}

/* ---- readers ---- */

/* The inode of the pipe that a descriptor is; 0: it is none. */
static uint64_t tree_pipe(pid_t pid, int fd)
{
    char path[48], target[64];
    static const char mark[] = "pipe:[";
    text_printf(path, "/proc/%d/fd/%d", (int)pid, fd);
    ssize_t n = readlink(path, target, sizeof(target) - 1);
    if (n <= 0)
        return 0;
    target[n] = 0;
    return str_starts(target, mark) ? strtoull(target + sizeof(mark) - 1, NULL, 10) : 0;
}

/* The output of somebody below the root is what it reads. Who feeds a child of its own writes
 * elsewhere. */
static bool tree_is_reader(const struct table *t, const struct process *p)
{
    uint64_t in = p->pipe[STDIN_FILENO];
    for (size_t i = 0; in && i < t->n; i++) {
        const struct process *w = &t->v[i];
        bool writes = w->pipe[STDOUT_FILENO] == in || w->pipe[STDERR_FILENO] == in;
        if (writes && w->pid != p->pid)
            return true;
    }
    return false;
}

void tree_readers_release(struct tree_readers *r)
{
    free(r->v);
    *r = (struct tree_readers){0};
}

void tree_find_readers(pid_t root, struct tree_readers *ret)
{
    _cleanup_(table_release) struct table t = {0};
    tree_readers_release(ret);
    tree_read_all(&t);
    mark_below(&t, root);
    for (size_t i = 0; i < t.n; i++)
        for (int fd = 0; t.v[i].is_below && fd < (int)array_len(t.v[i].pipe); fd++)
            t.v[i].pipe[fd] = tree_pipe(t.v[i].pid, fd);
    for (size_t i = 0; i < t.n; i++) {
        const struct process *p = &t.v[i];
        if (!tree_is_reader(&t, p))
            continue;
        ret->v = xrealloc(ret->v, ret->n + 1, sizeof(*ret->v));
        ret->v[ret->n++] = (struct tree_reader){.pid = p->pid, .start_ticks = p->start_ticks};
    }
}

/* Those of the set that still live, and all below them. */
static void mark_spared(struct table *t, const struct tree_readers *but)
{
    bool found = but->n;
    for (size_t i = 0; i < but->n; i++) {
        struct process *p = tree_process(t, but->v[i].pid);
        if (p && p->start_ticks == but->v[i].start_ticks)
            p->is_spared = true;
    }
    while (found) {
        found = false;
        for (size_t i = 0; i < t->n; i++) {
            const struct process *above = tree_process(t, t->v[i].parent);
            if (!t->v[i].is_spared && above && above->is_spared)
                t->v[i].is_spared = found = true;
        }
    }
}

size_t tree_signal_but(pid_t root, const struct tree_readers *but, int sig)
{
    _cleanup_(table_release) struct table t = {0};
    tree_read_all(&t);
    mark_below(&t, root);
    mark_spared(&t, but);
    return tree_send(&t, sig);
}
