/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt_dir.h - what the files of ckpt.h share: the directory of a job's checkpoints, opened. */
#pragma once
#include <dirent.h>

#include "fsroot/ckpt.h"

#define CKPT_TRACKER "latest_checkpointed_iteration.txt"
/* What is on its way out: no name that any version of verl looks for. */
#define CKPT_GONE_PREFIX ".argus-gone-"
/* A torn one that was put aside: it goes with the first that retention takes away. */
#define CKPT_TORN_PREFIX ".argus-torn-"

/* A descriptor, or -ENOENT (without a sentence), or what the system said. */
must_check int ckpt_dir_open(const char *root, const char *job, struct err *err);
/* Its names, from the first: closedir() it. dir is only borrowed. */
must_check int ckpt_dir_list(int dir, DIR **ret, struct err *err);
/* Also CKPT_TRACKER_*. */
must_check int ckpt_dir_tracker(int dir, int64_t *ret, struct err *err);
/* What is left of removals; with_torn: and what was put aside. All that can be removed is; the
 * first failure is told. */
must_check int ckpt_dir_sweep(int dir, bool with_torn, struct err *err);
/* To a name that is not taken, <prefix><label>.<n>. -ENOENT: it is not there. */
must_check int ckpt_dir_rename_away(int dir,
                                    const char *name,
                                    const char *prefix,
                                    const char *label);
/* Each pin is put back, of whatever attempt, and goes then. One that cannot be stays; all are
 * tried, the first failure is told. Nobody writes there. */
must_check int ckpt_dir_settle_pins(int dir, struct err *err);
/* The pins of a step go, put back or not. */
must_check int ckpt_dir_unpin(int dir, int64_t step, struct err *err);
/* As ckpt_look() and ckpt_remove() name it. */
void ckpt_dir_name(int64_t step, char *ret, size_t n);
