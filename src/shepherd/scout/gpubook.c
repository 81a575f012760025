/* SPDX-License-Identifier: Apache-2.0 */
/* gpubook.c - see gpubook.h. A GPU is known by its UUID, since its index may change with a driver
 * that was loaded anew; a process by its pid. */
#include "shepherd/scout/gpubook.h"

#include <string.h>

#include "base/text.h"

static struct gpu_card *gpubook_card(struct gpu_sample *book, const struct gpu_card *now)
{
    for (size_t i = 0; i < book->n; i++) {
        struct gpu_card *c = &book->v[i];
        if (*now->uuid ? !strcmp(c->uuid, now->uuid) : c->index == now->index)
            return c;
    }
    if (book->n == FIGURE_GPUS_MAX)
        return NULL;
    gpu_card_init(&book->v[book->n]);
    return &book->v[book->n++];
}

static void gpubook_most(double *most, double v)
{
    *most = v > *most ? v : *most;
}

static void gpubook_count(struct gpu_card *c, const struct gpu_card *now, double seconds)
{
    bool is_counted = c->energy_joules >= 0 && now->energy_joules >= c->energy_joules;
    if (is_counted)
        c->used_joules += now->energy_joules - c->energy_joules;
    else if (now->power_watts >= 0)
        c->used_joules += now->power_watts * seconds;
    if (now->util >= 0) {
        c->watched_s += seconds;
        c->busy_s += now->util * seconds;
    }
    gpubook_most(&c->mem_peak_bytes, now->mem_used_bytes);
}

/* What is the case now; an error that was told once stays. */
static void gpubook_take_now(struct gpu_card *c, const struct gpu_card *now)
{
    double xid = c->xid;
#define X(member, words) c->member = now->member;
    GPU_CARD_NUMBERS(X)
#undef X
    if (c->xid <= 0 && xid > 0)
        c->xid = xid;
    c->index = now->index;
    text_copy(c->uuid, now->uuid);
    text_copy(c->name, now->name);
    if (*now->pci) /* a driver that fails may not tell it any more, and it stays the same */
        text_copy(c->pci, now->pci);
}

/* Where the table is full, one that is gone and was never ours gives way. */
static struct gpu_process *gpubook_process(struct gpu_card *c, int pid)
{
    struct gpu_process *p = NULL;
    for (size_t i = 0; i < c->n; i++)
        if (c->v[i].pid == pid)
            return &c->v[i];
    for (size_t i = 0; i < c->n && c->n == GPU_PROCESSES_MAX && !p; i++)
        if (!c->v[i].lives && !c->v[i].is_ours)
            p = &c->v[i];
    if (!p && c->n < GPU_PROCESSES_MAX)
        p = &c->v[c->n++];
    if (p)
        *p = (struct gpu_process){
            .pid = pid, .util = -1, .mem_bytes = -1, .mem_peak_bytes = -1, .rank = -1};
    return p;
}

static void gpubook_place(struct gpu_card *c, struct gpu_process *p, const struct gpubook_who *who)
{
    if (p->is_ours)
        return;
    enum gpubook_is is = who->is(p->pid, who->arg);
    p->is_anothers = is == GPUBOOK_ANOTHERS;
    if (is == GPUBOOK_OURS) {
        p->is_ours = c->is_ours = true;
        p->rank = who->rank(p->pid, who->arg);
    }
}

/* How much of the GPU's work is one process's: as the driver tells, but together never more than
 * the GPU has worked; where it tells of no process, as in a container, each has an equal part. */
static double gpubook_share(const struct gpu_card *now, const struct gpu_process *p)
{
    double total = 0;
    bool is_told = false;
    for (size_t i = 0; i < now->n; i++) {
        total += now->v[i].util > 0 ? now->v[i].util : 0;
        is_told |= now->v[i].util >= 0;
    }
    if (now->util < 0)
        return 0;
    if (p->util >= 0)
        return total > now->util ? p->util / total * now->util : p->util;
    return is_told ? 0 : now->util / (double)now->n;
}

static void gpubook_take_processes(struct gpu_card *c,
                                   const struct gpu_card *now,
                                   double seconds,
                                   const struct gpubook_who *who)
{
    for (size_t i = 0; i < c->n; i++)
        c->v[i].lives = false;
    for (size_t i = 0; i < now->n; i++) {
        const struct gpu_process *from = &now->v[i];
        struct gpu_process *p = gpubook_process(c, from->pid);
        if (!p)
            continue;
        p->lives = true;
        p->util = from->util;
        p->mem_bytes = from->mem_bytes;
        gpubook_most(&p->mem_peak_bytes, from->mem_bytes);
        gpubook_most(&p->mem_peak_bytes, from->mem_peak_bytes);
        p->busy_s += gpubook_share(now, from) * seconds;
        gpubook_place(c, p, who);
    }
}

void gpubook_add(struct gpu_sample *book,
                 const struct gpu_sample *now,
                 usec_t span,
                 const struct gpubook_who *who)
{
    double seconds = (double)(span < GPUBOOK_SPAN_MAX ? span : GPUBOOK_SPAN_MAX) / USEC_SEC;
    book->at = now->at;
    text_copy(book->driver, now->driver);
    text_copy(book->trouble, now->trouble);
    for (size_t i = 0; i < now->n; i++) {
        struct gpu_card *c = gpubook_card(book, &now->v[i]);
        if (!c)
            continue;
        gpubook_count(c, &now->v[i], seconds);
        gpubook_take_processes(c, &now->v[i], seconds, who);
        gpubook_take_now(c, &now->v[i]);
    }
}
