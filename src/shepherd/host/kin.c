/* SPDX-License-Identifier: Apache-2.0 */
/* kin.c - which processes belong to the job, remembered after their end; see kin.h. A process is
 * asked for its environment when it is met, and once more, since it can have been met between
 * its fork and its exec; then a look costs it its `stat` only, by which a pid that came again is
 * known. Reading an environment can hang (peek.h), reading `stat` cannot: one that hangs is met
 * anew at each look until it has said. The lock here is never held while a process is asked. */
#define _GNU_SOURCE
#include "shepherd/host/kin.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "shepherd/host/host.h"
#include "shepherd/host/peek.h"
#include "shepherd/host/process.h"

enum { WAYS = 8, SETS = KIN_MAX / WAYS, ASKED_ENOUGH = 2, COMMAND_MAX = 64 << 10 };
#define PAUSE (5 * USEC_SEC)
#define STILL_THERE UINT64_MAX

struct member {
    pid_t pid; /* 0: a free slot */
    enum kin_is is;
    bool is_anothers; /* of another job */
    bool is_neighbour;
    int asked;
    uint64_t start_ticks; /* 0: it was gone when it was added */
    uint64_t seen;        /* number of its turn */
};

struct kin {
    char *attempt;
    char *job;   /* the directory of its attempts, with the slash */
    char *group; /* of memory; NULL: not known */
    struct peek *peek;
    atomic_int owners; /* the thread and the creator of this struct: the last one frees it */
    pthread_cond_t wake, looked;
    pthread_mutex_t lock; /* of all below */
    bool is_over;
    bool is_watched, is_asked; /* a thread exists; a caller waits for its next look */
    uint64_t begun, done;      /* its looks */
    uint64_t met;              /* how often a neighbour was */
    usec_t neighbours;         /* until when there were some, or STILL_THERE; 0: never */
    uint64_t turn;
    struct member v[KIN_MAX]; /* SETS of WAYS, by pid */
};

struct kin *kin_new(const char *attempt)
{
    return kin_new_by(attempt, NULL);
}

struct kin *kin_new_by(const char *attempt, peek_read_f *read)
{
    struct kin *k = xcalloc(1, sizeof(*k));
    const char *slash = strrchr(attempt, '/');
    k->attempt = xstrdup(attempt);
    k->job = slash && slash != attempt ? xstrndup(attempt, (size_t)(slash - attempt) + 1) : NULL;
    k->group = host_memory_group(0);
    k->peek = peek_new(read, PEEK_LIMIT);
    atomic_init(&k->owners, 1);
    (void)pthread_cond_init(&k->wake, NULL); /* these cannot fail on Linux */
    (void)pthread_cond_init(&k->looked, NULL);
    (void)pthread_mutex_init(&k->lock, NULL);
    return k;
}

static void kin_let_go(struct kin *k)
{
    if (atomic_fetch_sub(&k->owners, 1) != 1)
        return;
    (void)pthread_cond_destroy(&k->wake); /* no owner is left */
    (void)pthread_cond_destroy(&k->looked);
    (void)pthread_mutex_destroy(&k->lock);
    peek_free(k->peek);
    free(k->attempt);
    free(k->job);
    free(k->group);
    free(k);
}

void kin_free(struct kin *k)
{
    if (!k)
        return;
    pthread_mutex_lock(&k->lock);
    k->is_over = true;
    (void)pthread_cond_signal(&k->wake); /* cannot fail */
    pthread_mutex_unlock(&k->lock);
    kin_let_go(k);
}

/* ---- the known processes; under the lock ---- */

/* The process's own slot, or the slot of the process that was not seen for the longest time and
 * may give way. */
static struct member *kin_place_of(struct kin *k, pid_t pid)
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

static bool kin_is_same(const struct member *m, pid_t pid, uint64_t start_ticks)
{
    return m->pid == pid && m->start_ticks == start_ticks;
}

/* ---- asking ---- */

static struct member kin_find(struct kin *k, pid_t pid)
{
    pthread_mutex_lock(&k->lock);
    struct member *m = kin_place_of(k, pid), found = m->pid == pid ? *m : (struct member){0};
    pthread_mutex_unlock(&k->lock);
    return found;
}

enum kin_is kin_ask(struct kin *k, pid_t pid)
{
    return pid > 0 ? kin_find(k, pid).is : KIN_UNKNOWN;
}

bool kin_is_anothers(struct kin *k, pid_t pid)
{
    const struct member m = pid > 0 ? kin_find(k, pid) : (struct member){0};
    return m.is != KIN_OURS && m.is_anothers;
}

bool kin_has_neighbours(struct kin *k, usec_t since)
{
    pthread_mutex_lock(&k->lock);
    bool has = k->neighbours && k->neighbours >= since;
    pthread_mutex_unlock(&k->lock);
    return has;
}

/* Under the lock. */
static void meet_neighbour(struct kin *k)
{
    k->met++;
    k->neighbours = STILL_THERE;
}

static void kin_note(struct kin *k, pid_t pid, uint64_t start_ticks, enum kin_is is, bool has_said)
{
    pthread_mutex_lock(&k->lock);
    struct member *m = kin_place_of(k, pid);
    bool same = kin_is_same(m, pid, start_ticks);
    bool keeps = m->is == KIN_OURS || !has_said; /* the first: it was added meanwhile */
    *m = (struct member){.pid = pid,
                         .is = same && is != KIN_OURS && keeps ? m->is : is,
                         .is_anothers = same && is != KIN_OURS && m->is_anothers,
                         .is_neighbour = same && is != KIN_OURS && m->is_neighbour,
                         .asked = (same ? m->asked : 0) + (has_said ? 1 : 0),
                         .start_ticks = start_ticks,
                         .seen = ++k->turn};
    pthread_mutex_unlock(&k->lock);
}

void kin_add(struct kin *k, pid_t pid)
{
    struct process_stat st;
    if (pid > 0)
        kin_note(k, pid, process_stat(pid, &st) ? st.start_ticks : 0, KIN_OURS, true);
}

static bool kin_is_known(struct kin *k, pid_t pid, uint64_t start_ticks)
{
    pthread_mutex_lock(&k->lock);
    struct member *m = kin_place_of(k, pid);
    bool same = kin_is_same(m, pid, start_ticks);
    bool known = same && (m->is == KIN_OURS || m->asked >= ASKED_ENOUGH);
    if (same && m->is_neighbour)
        meet_neighbour(k);
    if (known)
        m->seen = ++k->turn;
    pthread_mutex_unlock(&k->lock);
    return known;
}

static bool kin_is_ours(struct kin *k, pid_t pid)
{
    struct process_stat st;
    const struct member m = kin_find(k, pid);
    return m.is == KIN_OURS && process_stat(pid, &st) && st.start_ticks == m.start_ticks;
}

static bool is_of_job(const struct kin *k, const char *path)
{
    return str_eq(path, k->attempt) || (k->job && str_starts(path, k->job));
}

/* A shepherd or scout says whose it is in its command line. */
static bool serves_another(struct kin *k, pid_t pid, const char *name)
{
    if (!str_eq(name, "argus-shepherd") && !str_eq(name, "argus-scout"))
        return false;
    _cleanup_(buf_release) struct buf line = BUF_INIT(COMMAND_MAX);
    if (peek_file(k->peek, pid, "cmdline", &line) < 0)
        return false;
    const char *end = buf_str(&line) + line.len;
    for (const char *word = buf_str(&line); word < end; word += strlen(word) + 1)
        if (is_of_job(k, word))
            return false;
    return line.len > 0;
}

static bool is_in_our_group(const struct kin *k, pid_t pid)
{
    _cleanup_(freep) char *group = host_memory_group(pid);
    return group && (str_eq(group, k->group) || host_is_in_group(k->group, group));
}

static void note_another(struct kin *k, pid_t pid, uint64_t start_ticks, bool is_neighbour)
{
    pthread_mutex_lock(&k->lock);
    struct member *m = kin_place_of(k, pid);
    if (kin_is_same(m, pid, start_ticks) && m->is != KIN_OURS) {
        m->is_anothers = true;
        m->is_neighbour |= is_neighbour;
        if (is_neighbour)
            meet_neighbour(k);
    }
    pthread_mutex_unlock(&k->lock);
}

static bool kin_meet(pid_t pid, void *arg)
{
    struct kin *k = arg;
    struct process_stat st;
    if (!process_stat(pid, &st) || st.state == 'Z' || st.state == 'X' ||
        kin_is_known(k, pid, st.start_ticks))
        return true;
    _cleanup_(freep) char *attempt = NULL;
    int r = peek_env(k->peek, pid, "ARGUS_ATTEMPT_DIR", &attempt);
    bool is_of_it = str_eq(attempt, k->attempt);
    enum kin_is is = is_of_it || (st.parent > 0 && kin_is_ours(k, st.parent)) ? KIN_OURS
                     : r == 0 || r == -ENODATA                                ? KIN_STRANGER
                                                                              : KIN_UNKNOWN;
    bool is_another = attempt ? !is_of_job(k, attempt) : serves_another(k, pid, st.name);
    kin_note(k, pid, st.start_ticks, is, r != -ETIME);
    if (is != KIN_OURS && is_another)
        note_another(k, pid, st.start_ticks, is_in_our_group(k, pid));
    return true;
}

void kin_look(struct kin *k)
{
    pthread_mutex_lock(&k->lock);
    uint64_t met = k->met;
    pthread_mutex_unlock(&k->lock);
    process_each(kin_meet, k);
    pthread_mutex_lock(&k->lock);
    if (k->neighbours == STILL_THERE && k->met == met)
        k->neighbours = clock_mono(); /* the last of them has gone meanwhile */
    pthread_mutex_unlock(&k->lock);
}

static int wait_until(struct kin *k, pthread_cond_t *news, usec_t until)
{
    const struct timespec at = {.tv_sec = (time_t)(until / USEC_SEC),
                                .tv_nsec = (long)(until % USEC_SEC * 1000)};
    return pthread_cond_clockwait(news, &k->lock, CLOCK_MONOTONIC, &at);
}

void kin_look_within(struct kin *k, usec_t limit)
{
    usec_t until = clock_mono() + limit;
    int r = 0;
    pthread_mutex_lock(&k->lock);
    uint64_t mine =
        k->begun + 1; /* the look that is under way may have passed the new process already */
    k->is_asked = true;
    (void)pthread_cond_signal(&k->wake); /* cannot fail */
    while (k->is_watched && k->done < mine && r == 0)
        r = wait_until(k, &k->looked, until);
    pthread_mutex_unlock(&k->lock);
}

static void *kin_watch_loop(void *arg)
{
    struct kin *k = arg;
    pthread_mutex_lock(&k->lock);
    while (!k->is_over) {
        k->is_asked = false;
        k->begun++;
        pthread_mutex_unlock(&k->lock);
        kin_look(k);
        usec_t next = clock_mono() + PAUSE;
        pthread_mutex_lock(&k->lock);
        k->done = k->begun;
        (void)pthread_cond_broadcast(&k->looked); /* cannot fail */
        if (!k->is_over && !k->is_asked)          /* woken for nothing it only looks sooner */
            (void)wait_until(k, &k->wake, next);
    }
    pthread_mutex_unlock(&k->lock);
    kin_let_go(k);
    return NULL;
}

void kin_watch(struct kin *k)
{
    pthread_t thread;
    (void)atomic_fetch_add(&k->owners, 1);
    pthread_mutex_lock(&k->lock);
    k->is_watched = pthread_create(&thread, NULL, kin_watch_loop, k) == 0;
    bool is_watched = k->is_watched;
    pthread_mutex_unlock(&k->lock);
    if (!is_watched)
        kin_let_go(k);
    else
        (void)pthread_detach(thread); /* cannot fail for a thread of ours */
}
