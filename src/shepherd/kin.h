/* SPDX-License-Identifier: Apache-2.0 */
/* kin.h - the pids of an attempt on this node, of those that live and of those that have been seen:
 * what the kernel's log says of a process is often said when it has gone. */
#pragma once
#include <stdbool.h>
#include <sys/types.h>

enum { KIN_MAX = 16384 }; /* the oldest are forgotten */

struct kin;

/* attempt: its directory, which every process of the job has in its environment. */
struct kin *kin_new(const char *attempt);
void kin_free(struct kin *k); /* NULL is fine */
void kin_add(struct kin *k, pid_t pid);
/* Notes each process of the attempt that lives now. Asks only those it has not met before. */
void kin_look(struct kin *k);
bool kin_has(const struct kin *k, pid_t pid);
