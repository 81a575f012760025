/* SPDX-License-Identifier: Apache-2.0 */
/* hostbook.c - see hostbook.h. `stat` and `statm` of a process are the kernel's own numbers:
 * neither touches the memory of the process, so neither can hang.
 *
 * The memory is a process's resident pages without those that it shares: every worker of Ray maps
 * the object store, and a sum in which it counted for each of them would be more than the machine
 * has. */
#define _GNU_SOURCE
#include "shepherd/scout/hostbook.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/figure/host_load.h"
#include "fsroot/attempt/launch.h"
#include "shepherd/host/process.h"
#include "shepherd/scout/tool.h"

struct hostbook {
    char *dir, *file;
    struct kin *kin;
    usec_t next, looked; /* mono; looked 0: not yet */
    struct hostbook_look was, now;
    double mem_bytes; /* of the look under way */
};

/* Cores want two looks: the second one soon, so that they are known when a job has just begun. */
#define HOSTBOOK_SOON (3 * USEC_SEC)

struct hostbook *hostbook_new(const char *attempt, const char *node, struct kin *kin)
{
    struct hostbook *b = xcalloc(1, sizeof(*b));
    *b = (struct hostbook){.dir = xasprintf("%s/" ATTEMPT_LOAD, attempt),
                           .file = xasprintf("%s.json", node),
                           .kin = kin};
    return b;
}

void hostbook_free(struct hostbook *b)
{
    if (!b)
        return;
    free(b->was.v);
    free(b->now.v);
    free(b->dir);
    free(b->file);
    free(b);
}

/* ---- what was used ---- */

static int hostbook_compare(const void *a, const void *b)
{
    pid_t x = ((const struct hostbook_process *)a)->pid;
    pid_t y = ((const struct hostbook_process *)b)->pid;
    return (x > y) - (x < y);
}

void hostbook_sort(struct hostbook_look *look)
{
    xsort(look->v, look->n, sizeof(*look->v), hostbook_compare);
}

uint64_t hostbook_ticks(const struct hostbook_look *was, const struct hostbook_look *now)
{
    uint64_t sum = 0;
    for (size_t i = 0, k = 0; i < now->n; i++) {
        const struct hostbook_process *p = &now->v[i], *old;
        while (k < was->n && was->v[k].pid < p->pid)
            k++;
        old = k < was->n && was->v[k].pid == p->pid ? &was->v[k] : NULL;
        if (old && old->start_ticks == p->start_ticks)
            sum += p->cpu_ticks > old->cpu_ticks ? p->cpu_ticks - old->cpu_ticks : 0;
        else if (p->start_ticks >= was->at_ticks)
            sum += p->cpu_ticks;
    }
    return sum;
}

/* ---- a look ---- */

static uint64_t hostbook_now_ticks(uint64_t per_second)
{
    return clock_moment("").boot * per_second / USEC_SEC;
}

/* Size, resident, shared, …: in pages. */
static double hostbook_memory(pid_t pid)
{
    char *end;
    _cleanup_(buf_release) struct buf text = BUF_INIT(256);
    if (!process_read(pid, "statm", &text))
        return 0;
    (void)strtoull(buf_str(&text), &end, 10);
    uint64_t resident = strtoull(end, &end, 10), shared = strtoull(end, &end, 10);
    return resident > shared ? (double)(resident - shared) * (double)sysconf(_SC_PAGESIZE) : 0;
}

static bool hostbook_meet(pid_t pid, void *arg)
{
    struct hostbook *b = arg;
    struct process_stat st;
    if (kin_ask(b->kin, pid) != KIN_OURS || !process_stat(pid, &st) || st.state == 'Z' ||
        st.state == 'X')
        return true;
    b->now.v = xrealloc(b->now.v, b->now.n + 1, sizeof(*b->now.v));
    b->now.v[b->now.n++] = (struct hostbook_process){pid, st.start_ticks, st.cpu_ticks};
    b->mem_bytes += hostbook_memory(pid);
    return b->now.n < HOSTBOOK_PROCESSES_MAX;
}

static void hostbook_look_again(struct hostbook *b, uint64_t per_second)
{
    free(b->was.v);
    b->was = b->now;
    b->now = (struct hostbook_look){.at_ticks = hostbook_now_ticks(per_second)};
    b->mem_bytes = 0;
    process_each(hostbook_meet, b);
    hostbook_sort(&b->now);
}

/* Rounded to a hundredth, since the kernel counts whole ticks. ticks: those that one core had. */
static double hostbook_cores(const struct hostbook *b, double ticks)
{
    double cores = (double)hostbook_ticks(&b->was, &b->now) / ticks;
    return (double)(int64_t)(cores * 100 + 0.5) / 100;
}

void hostbook_turn(struct hostbook *b, usec_t now)
{
    struct host_load load;
    long ticks = sysconf(_SC_CLK_TCK);
    if (now < b->next || ticks <= 0)
        return;
    b->next = now + (b->looked ? HOST_LOAD_EVERY : HOSTBOOK_SOON);
    hostbook_look_again(b, (uint64_t)ticks);
    host_load_init(&load);
    load.at = clock_wall();
    load.processes = (double)b->now.n;
    load.mem_bytes = b->mem_bytes;
    if (b->looked && now > b->looked)
        load.cpu_cores = hostbook_cores(b, (double)ticks * (double)(now - b->looked) / USEC_SEC);
    b->looked = now;
    _cleanup_(buf_release) struct buf out = BUF_INIT(HOST_LOAD_MAX_BYTES);
    host_load_put(&load, &out);
    if (!out.failed)
        (void)!tool_note(b->dir, b->file, NULL, &out, NULL); /* again with the next look */
}
