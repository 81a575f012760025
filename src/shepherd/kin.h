/* SPDX-License-Identifier: Apache-2.0 */
/* kin.h - whose the pids of this node are, of those that live and of those that have been seen:
 * what the kernel's log says of a process is often said when it has gone. */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

#include "base/clock.h"
#include "shepherd/peek.h"

enum { KIN_MAX = 16384 }; /* those that were not seen for longest are forgotten */

enum kin_is {
    KIN_UNKNOWN,
    KIN_OURS,    /* of the attempt */
    KIN_STRANGER /* of nobody, or of another job */
};

struct kin;

/* attempt: its directory, which the processes of the job have in their environment. */
struct kin *kin_new(const char *attempt);
struct kin *kin_new_by(const char *attempt, peek_read_f *read); /* read: as peek_new() has it */
void kin_free(struct kin *k);                                   /* NULL is fine */
/* One of ours, or one that has just been; its children are ours too. */
void kin_add(struct kin *k, pid_t pid);
/* Meets each process that lives now. Takes seconds where some hang: see peek.h. */
void kin_look(struct kin *k);
/* The same every few seconds, in a thread of its own that kin_free() does not wait for. Where none
 * can be made only those that are added are known. */
void kin_watch(struct kin *k);
/* Waits until that thread has met each process that lives now, for so long at most; not at all
 * where there is no thread. */
void kin_look_within(struct kin *k, usec_t limit);
/* Processes of another job were in our cgroup of memory, then or later: what is said of the group
 * may be about them. since: mono. An earlier attempt of the same job is none, nor is one that does
 * not tell whose it is. */
bool kin_has_neighbours(struct kin *k, usec_t since);
/* Who had this pid last. */
enum kin_is kin_ask(struct kin *k, pid_t pid);
