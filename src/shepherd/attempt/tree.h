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

/* Readers: those that only read what another process below the same root writes, as `tee` in
 * "train | tee log". A stop leaves them to the last, or what the writer says while it saves breaks
 * on a pipe that nobody reads. */
struct tree_readers {
    struct tree_reader *v;
    size_t n;
};
/* Those of now; what ret held before is released. A process that could not be looked at is none. */
void tree_find_readers(pid_t root, struct tree_readers *ret);
void tree_readers_release(struct tree_readers *r);
/* As tree_signal(), without these readers and what is below them. sig 0 only counts. */
size_t tree_signal_but(pid_t root, const struct tree_readers *but, int sig);

/* When the process started, in clock ticks after boot; with the pid it names a
 * process for ever. 0 when it is gone. */
uint64_t tree_start_ticks(pid_t pid);
