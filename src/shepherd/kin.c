/* SPDX-License-Identifier: Apache-2.0 */
/* kin.c - see kin.h. A pid is met once: its environment is read then, and what it is stays known,
 * so that a look costs a listing of /proc. One that was nobody of ours is forgotten when it lives
 * no more, since its number comes again. */
#include "shepherd/kin.h"

#include <stdlib.h>

#include "base/mem.h"
#include "shepherd/process.h"

/* Who is not of the attempt, sorted. What does not fit is asked again each time. */
struct others {
    pid_t v[KIN_MAX];
    size_t n;
};

struct kin {
    char *mark;
    pid_t ours[KIN_MAX];
    size_t n, next;             /* where the next one goes, when it is full too */
    struct others *known, *now; /* of the look before, and of this one */
};

struct kin *kin_new(const char *attempt)
{
    struct kin *k = xcalloc(1, sizeof(*k));
    k->mark = xasprintf("ARGUS_ATTEMPT_DIR=%s", attempt);
    k->known = xcalloc(1, sizeof(*k->known));
    k->now = xcalloc(1, sizeof(*k->now));
    return k;
}

void kin_free(struct kin *k)
{
    if (!k)
        return;
    free(k->mark);
    free(k->known);
    free(k->now);
    free(k);
}

bool kin_has(const struct kin *k, pid_t pid)
{
    for (size_t i = 0; i < k->n; i++)
        if (k->ours[i] == pid)
            return true;
    return false;
}

void kin_add(struct kin *k, pid_t pid)
{
    if (kin_has(k, pid))
        return;
    k->ours[k->next] = pid;
    k->next = (k->next + 1) % KIN_MAX;
    k->n += k->n < KIN_MAX;
}

static int by_pid(const void *a, const void *b)
{
    const pid_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

static bool meet(pid_t pid, void *arg)
{
    struct kin *k = arg;
    struct others *o = k->known;
    if (kin_has(k, pid))
        return true;
    bool is_known = o->n && bsearch(&pid, o->v, o->n, sizeof(*o->v), by_pid);
    if (!is_known && process_has_env(pid, k->mark))
        kin_add(k, pid);
    else if (k->now->n < KIN_MAX)
        k->now->v[k->now->n++] = pid;
    return true;
}

void kin_look(struct kin *k)
{
    struct others *old = k->known;
    k->now->n = 0;
    process_each(meet, k);
    xsort(k->now->v, k->now->n, sizeof(*k->now->v), by_pid);
    k->known = k->now;
    k->now = old;
}
