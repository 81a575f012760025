/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt_dir.h - what the files of ckpt.h share: the directory of a job's checkpoints, opened. */
#pragma once
#include <dirent.h>

#include "fsroot/ckpt/ckpt.h"

#define CKPT_TRACKER "latest_checkpointed_iteration.txt"
/* The prefix of a directory that is being removed: no version of verl looks for such a name. */
#define CKPT_GONE_PREFIX ".argus-gone-"
/* The prefix of a torn checkpoint that was put aside: it is deleted with the first checkpoint
 * that retention removes. */
#define CKPT_TORN_PREFIX ".argus-torn-"

/* A descriptor, or -ENOENT (without a sentence), or what the system said. */
must_check int ckpt_dir_open(const char *root, const char *job, struct err *err);
/* Opens the listing of a directory from its first name; the caller calls closedir(). dir is only
 * borrowed. */
must_check int ckpt_dir_list(int dir, DIR **ret, struct err *err);
/* Also CKPT_TRACKER_*. */
must_check int ckpt_dir_tracker(int dir, int64_t *ret, struct err *err);
/* Deletes remains of removals; with_torn: and torn checkpoints put aside. As many as possible
 * are deleted; the first failure is told. */
must_check int ckpt_dir_sweep(int dir, bool with_torn, struct err *err);
/* To a name that is not taken, <prefix><label>.<n>. -ENOENT: it is not there. */
must_check int ckpt_dir_rename_away(int dir,
                                    const char *name,
                                    const char *prefix,
                                    const char *label);
/* Restores the checkpoint of each pin, of every attempt, and removes the pin. A pin whose
 * checkpoint cannot be restored stays; all are tried and the first failure is told. No process
 * may write there meanwhile. */
must_check int ckpt_dir_settle_pins(int dir, struct err *err);
/* The pins of a step go, put back or not. */
must_check int ckpt_dir_unpin(int dir, int64_t step, struct err *err);
/* The directory name of a step, as ckpt_look() and ckpt_remove() use it. */
void ckpt_dir_name(int64_t step, char *ret, size_t n);
