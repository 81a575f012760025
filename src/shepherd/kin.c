/* SPDX-License-Identifier: Apache-2.0 */
/* kin.c - see kin.h. A process is asked for its environment when it is met, and once more, since
 * it can have been met between its fork and its exec; then a look costs it its `stat` only, by
 * which a pid that came again is known. Reading an environment can hang (peek.h), reading `stat`
 * cannot: one that hangs is met anew at each look until it has said. The lock here is never held
 * while a process is asked. */
#define _GNU_SOURCE
#include "shepherd/kin.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "shepherd/host.h"
#include "shepherd/peek.h"
#include "shepherd/process.h"

enum { WAYS = 8, SETS = KIN_MAX / WAYS, ASKED_ENOUGH = 2 };
#define PAUSE (5 * USEC_SEC)

struct member {
    pid_t pid; /* 0: nobody */
    enum kin_is is;
    int asked;
    uint64_t start_ticks; /* 0: it was gone when it was added */
    uint64_t seen;        /* number of its turn */
};

struct kin {
    char *attempt;
    char *group; /* of memory; NULL: not known */
    struct peek *peek;
    atomic_int owners; /* the thread and whoever made it: the last one frees */
    pthread_cond_t end;
    pthread_mutex_t lock; /* of all below */
    bool is_over, has_neighbours;
    uint64_t turn;
    struct member v[KIN_MAX]; /* SETS of WAYS, by pid */
};

struct kin *kin_new(const char *attempt)
{
    struct kin *k = xcalloc(1, sizeof(*k));
    k->attempt = xstrdup(attempt);
    k->group = host_memory_group(0);
    k->peek = peek_new(NULL, PEEK_LIMIT);
    atomic_init(&k->owners, 1);
    (void)pthread_cond_init(&k->end, NULL); /* these cannot fail on Linux */
    (void)pthread_mutex_init(&k->lock, NULL);
    return k;
}

static void let_go(struct kin *k)
{
    if (atomic_fetch_sub(&k->owners, 1) != 1)
        return;
    (void)pthread_cond_destroy(&k->end); /* nobody is left */
    (void)pthread_mutex_destroy(&k->lock);
    peek_free(k->peek);
    free(k->attempt);
    free(k->group);
    free(k);
}

void kin_free(struct kin *k)
{
    if (!k)
        return;
    pthread_mutex_lock(&k->lock);
    k->is_over = true;
    (void)pthread_cond_signal(&k->end); /* cannot fail */
    pthread_mutex_unlock(&k->lock);
    let_go(k);
}

/* ---- who is known; under the lock ---- */

/* Its own place, or that of whoever was not seen for longest of those that can be there. */
static struct member *place_of(struct kin *k, pid_t pid)
{
    struct member *set = &k->v[(size_t)pid % SETS * WAYS], *oldest = set;
    for (size_t i = 0; i < WAYS; i++) {
        if (set[i].pid == pid)
            return &set[i];
        if (set[i].seen < oldest->seen)
            oldest = &set[i];
    }
    return oldest;
}

static bool is_same(const struct member *m, pid_t pid, uint64_t start_ticks)
{
    return m->pid == pid && m->start_ticks == start_ticks;
}

/* ---- asking ---- */

static struct member find(struct kin *k, pid_t pid)
{
    pthread_mutex_lock(&k->lock);
    struct member *m = place_of(k, pid), found = m->pid == pid ? *m : (struct member){0};
    pthread_mutex_unlock(&k->lock);
    return found;
}

enum kin_is kin_ask(struct kin *k, pid_t pid)
{
    return pid > 0 ? find(k, pid).is : KIN_UNKNOWN;
}

bool kin_has_neighbours(struct kin *k)
{
    pthread_mutex_lock(&k->lock);
    bool has = k->has_neighbours;
    pthread_mutex_unlock(&k->lock);
    return has;
}

static void note(struct kin *k, pid_t pid, uint64_t start_ticks, enum kin_is is, bool has_said)
{
    pthread_mutex_lock(&k->lock);
    struct member *m = place_of(k, pid);
    bool same = is_same(m, pid, start_ticks);
    bool keeps = m->is == KIN_OURS || !has_said; /* the first: it was added meanwhile */
    *m = (struct member){.pid = pid,
                         .is = same && is != KIN_OURS && keeps ? m->is : is,
                         .asked = (same ? m->asked : 0) + (has_said ? 1 : 0),
                         .start_ticks = start_ticks,
                         .seen = ++k->turn};
    pthread_mutex_unlock(&k->lock);
}

void kin_add(struct kin *k, pid_t pid)
{
    struct process_stat st;
    if (pid > 0)
        note(k, pid, process_stat(pid, &st) ? st.start_ticks : 0, KIN_OURS, true);
}

static bool is_known(struct kin *k, pid_t pid, uint64_t start_ticks)
{
    pthread_mutex_lock(&k->lock);
    struct member *m = place_of(k, pid);
    bool known = is_same(m, pid, start_ticks) && (m->is == KIN_OURS || m->asked >= ASKED_ENOUGH);
    if (known)
        m->seen = ++k->turn;
    pthread_mutex_unlock(&k->lock);
    return known;
}

static bool is_ours(struct kin *k, pid_t pid)
{
    struct process_stat st;
    const struct member m = find(k, pid);
    return m.is == KIN_OURS && process_stat(pid, &st) && st.start_ticks == m.start_ticks;
}

/* A shepherd or scout says whose it is in its command line. */
static bool serves_another(struct kin *k, pid_t pid, const char *name)
{
    if (!str_eq(name, "argus-shepherd") && !str_eq(name, "argus-scout"))
        return false;
    _cleanup_(freep) char *rest = peek_word(k->peek, pid, k->attempt);
    return !str_eq(rest, "");
}

static void note_neighbour(struct kin *k, pid_t pid)
{
    _cleanup_(freep) char *group = host_memory_group(pid);
    if (!group || (!str_eq(group, k->group) && !host_is_in_group(k->group, group)))
        return;
    pthread_mutex_lock(&k->lock);
    k->has_neighbours = true;
    pthread_mutex_unlock(&k->lock);
}

static bool meet(pid_t pid, void *arg)
{
    struct kin *k = arg;
    struct process_stat st;
    if (!process_stat(pid, &st) || st.state == 'Z' || st.state == 'X' ||
        is_known(k, pid, st.start_ticks))
        return true;
    _cleanup_(freep) char *attempt = NULL;
    int r = peek_env(k->peek, pid, "ARGUS_ATTEMPT_DIR", &attempt);
    bool is_of_it = str_eq(attempt, k->attempt);
    enum kin_is is = is_of_it || (st.parent > 0 && is_ours(k, st.parent)) ? KIN_OURS
                     : r == 0 || r == -ENODATA                            ? KIN_STRANGER
                                                                          : KIN_UNKNOWN;
    if (is != KIN_OURS && (attempt || serves_another(k, pid, st.name)))
        note_neighbour(k, pid);
    note(k, pid, st.start_ticks, is, r != -ETIME);
    return true;
}

void kin_look(struct kin *k)
{
    process_each(meet, k);
}

static void *watch(void *arg)
{
    struct kin *k = arg;
    pthread_mutex_lock(&k->lock);
    while (!k->is_over) {
        pthread_mutex_unlock(&k->lock);
        kin_look(k);
        usec_t next = clock_mono() + PAUSE;
        const struct timespec at = {.tv_sec = (time_t)(next / USEC_SEC),
                                    .tv_nsec = (long)(next % USEC_SEC * 1000)};
        pthread_mutex_lock(&k->lock);
        if (!k->is_over) /* woken for nothing it only looks sooner */
            (void)pthread_cond_clockwait(&k->end, &k->lock, CLOCK_MONOTONIC, &at);
    }
    pthread_mutex_unlock(&k->lock);
    let_go(k);
    return NULL;
}

void kin_watch(struct kin *k)
{
    pthread_t thread;
    (void)atomic_fetch_add(&k->owners, 1);
    if (pthread_create(&thread, NULL, watch, k) != 0)
        let_go(k);
    else
        (void)pthread_detach(thread); /* cannot fail for a thread of ours */
}
