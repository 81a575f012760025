/* SPDX-License-Identifier: Apache-2.0 */
/* kin.h - the owners of this node's pids, both of living processes and of those seen earlier:
 * the kernel's log often tells of a process only after its end. */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

#include "base/clock.h"
#include "shepherd/host/peek.h"

enum {
    KIN_MAX = 16384
}; /* beyond that the processes that were not seen for longest are forgotten */

enum kin_is {
    KIN_UNKNOWN,
    KIN_OURS,    /* of the attempt */
    KIN_STRANGER /* a process of no job, or of another job */
};

struct kin;

/* attempt: its directory, which the processes of the job have in their environment. */
struct kin *kin_new(const char *attempt);
struct kin *kin_new_by(const char *attempt, peek_read_f *read); /* read: as peek_new() has it */
void kin_free(struct kin *k);                                   /* NULL is fine */
/* Adds a process that belongs to us or has just ended as ours; its children become ours too. */
void kin_add(struct kin *k, pid_t pid);
/* Meets each process that lives now. Takes seconds where some hang: see peek.h. */
void kin_look(struct kin *k);
/* Repeats kin_look() every few seconds in a thread of its own, for which kin_free() does not
 * wait. If no thread can be created, only processes given to kin_add() are known. */
void kin_watch(struct kin *k);
/* Waits until that thread has met each process that lives now, for so long at most; not at all
 * where there is no thread. */
void kin_look_within(struct kin *k, usec_t limit);
/* True if processes of another job were in our memory cgroup at `since` (mono) or later:
 * messages about the group may then concern them. An earlier attempt of the same job does not
 * count, nor does a process whose owner is unknown. */
bool kin_has_neighbours(struct kin *k, usec_t since);
/* Which job the last process with this pid belonged to. */
enum kin_is kin_ask(struct kin *k, pid_t pid);
/* True if it is known to be of another job: an earlier attempt of the same job is none. */
bool kin_is_anothers(struct kin *k, pid_t pid);
