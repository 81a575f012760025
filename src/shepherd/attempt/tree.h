/* SPDX-License-Identifier: Apache-2.0 */
/* tree.h - all processes below one process, whatever they did to get away.
 *
 * Process groups and sessions can be left (setsid, double fork); the parent chain
 * cannot, once the root has made itself the reaper of orphans: whoever loses its
 * parent becomes a child of the root. So /proc is walked along that chain. */
#pragma once
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"

/* Orphans below this process become its children from now on. */
must_check int tree_adopt(struct err *err);

/* Sends sig to every process below root (never to root itself). Returns how many were reached. A
 * process that ends or is born meanwhile may be missed, so a caller that wants all of them gone
 * repeats the call until it returns 0. A zombie counts as gone. */
size_t tree_signal(pid_t root, int sig);

/* When the process started, in clock ticks after boot; with the pid it names a
 * process for ever. 0 when it is gone. */
uint64_t tree_start_ticks(pid_t pid);
