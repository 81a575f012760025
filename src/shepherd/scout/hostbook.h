/* SPDX-License-Identifier: Apache-2.0 */
/* hostbook.h - what the attempt's processes take of a scout's node (core/figure/host_load.h), as
 * attempts/<k>/load/<node>.json.
 *
 * Counted are the processes of kin.h that live at the moment of a look; what one that ended between
 * two looks used after the first of them is not. */
#pragma once
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "shepherd/host/kin.h"

/* One process at a look. */
struct hostbook_process {
    pid_t pid;
    uint64_t start_ticks, cpu_ticks; /* as process_stat() has them */
};
/* More are not looked at: a node has no more that matter. */
enum { HOSTBOOK_PROCESSES_MAX = 8192 };
struct hostbook_look {
    uint64_t at_ticks; /* since boot, as start_ticks are */
    size_t n;
    struct hostbook_process *v; /* by pid once hostbook_sort() has been called */
};

void hostbook_sort(struct hostbook_look *look);
/* What the processes of `now` have used since `was`, in ticks; both are sorted. Of one that began
 * in between it is all; of an older one that was not looked at before, nothing. */
uint64_t hostbook_ticks(const struct hostbook_look *was, const struct hostbook_look *now);

struct hostbook;
/* attempt: its directory; kin: borrowed. Never NULL. */
struct hostbook *hostbook_new(const char *attempt, const char *node, struct kin *kin);
void hostbook_free(struct hostbook *b); /* the file stays; NULL is fine */
/* Looks, and writes the file, where it is time. Reads nothing that can hang. */
void hostbook_turn(struct hostbook *b, usec_t now);
