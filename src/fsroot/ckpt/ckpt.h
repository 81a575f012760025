/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt.h - the checkpoints of a job on the shared root: found, read, removed.
 *
 * All is below jobs/<job>/checkpoints, opened name by name and without following a link. Whoever
 * writes there may change it meanwhile: what vanishes while it is looked at is not there, what
 * cannot be read for another reason (EIO, a stale handle) fails the call and says nothing of the
 * checkpoint. Blocking. */
#pragma once
#include "base/err.h"
#include "core/metric/ckpt.h"

enum ckpt_look_flags {
    CKPT_LOOK_TRUST = 1 << 0, /* what was verified or broken is not walked again if it is there */
    CKPT_LOOK_FRESH = 1 << 1, /* that one is good is not believed: every shard's directory is read.
                                 That it is broken is: reading all may have told that */
};

/* Lists all checkpoints. A known checkpoint whose files are unchanged keeps its verdict; one that
 * lacks a kind of shards which an older verified one has is partial.
 * attempt: the attempt of new checkpoints. No directory, no checkpoints. */
must_check int ckpt_look(const char *root,
                         const char *job,
                         const struct ckpt_list *known, /* NULL: none */
                         int attempt,
                         unsigned flags,
                         struct ckpt_list *ret,
                         struct err *err);

/* Reads every byte of every shard of one checkpoint. c: as ckpt_look() filled it; its state and
 * why become the result. Takes long. stop is looked at now and then: not 0 ends the call with
 * -ECANCELED. */
must_check int ckpt_verify(const char *root,
                           const char *job,
                           struct ckpt *c,
                           const volatile int *stop,
                           struct err *err);

/* Removes a checkpoint: renames it first, to a name that training never takes for a checkpoint,
 * then deletes it. A missing checkpoint is no failure. 1: it is no checkpoint any more, but some
 * of its files remain, err says why; a later call of this or of ckpt_sweep() deletes them.
 * -EBUSY: the tracker names it. */
must_check int ckpt_remove(const char *root, const char *job, int64_t step, struct err *err);
/* Deletes remains of removals that a crash interrupted. with_torn: also those that ckpt_settle()
 * renamed. */
must_check int ckpt_sweep(const char *root, const char *job, bool with_torn, struct err *err);

/* verl removes the oldest checkpoint that it saved, by a limit of its own and without asking. A
 * pinned checkpoint has second names (hard links, no bytes) that verl does not know, and these
 * may be its only names: a pin is removed only when its step was seen whole and is not needed. */
struct ckpt_pins {
    const int64_t *needed; /* steps that are pinned from now on */
    size_t n_needed;
    const int64_t *spare; /* seen whole by their own names; needs no pin */
    size_t n_spare;
};
/* Pins a checkpoint of the running attempt. The pin of an older attempt is removed once its step
 * exists under its own name, which is restored here if necessary; pins of a newer attempt are
 * not touched. 1: pins that are not needed remain. Fails on a file system without hard links. */
must_check int ckpt_pin(const char *root,
                        const char *job,
                        int attempt,
                        const struct ckpt_pins *pins,
                        struct err *err);
/* Restores removed files of this attempt's pinned checkpoints. All are tried, the first failure
 * is told; files that training removes meanwhile are left to the next call. */
must_check int ckpt_put_back(const char *root, const char *job, int attempt, struct err *err);
/* After a look: a pinned checkpoint that training removed since, or that could not be restored,
 * stays in the list as it was known, with by_pin; one that was not known is left out. */
must_check int ckpt_add_pinned(const char *root,
                               const char *job,
                               int attempt,
                               const struct ckpt_list *known,
                               struct ckpt_list *l,
                               struct err *err);

/* Called before an attempt goes on, while no process writes there: *ret is the newest checkpoint
 * that can be read whole (0: none). Newer, torn checkpoints are renamed so that none of their
 * files mixes with what the attempt will write; the tracker then names *ret, or is renamed with
 * the last checkpoint. No file is deleted. All pins are restored to their own names and removed;
 * a pin that cannot be restored stays, and the call fails. If training finished a checkpoint
 * that cannot be judged here (an unknown layout, no right to read), everything stays as it is
 * and *ret is 0: verl decides. *ret_torn: the newest torn one. */
struct ckpt_torn {
    int64_t step;           /* 0: none is torn */
    char why[CKPT_WHY_MAX]; /* kept (message_kept_say()) */
};
must_check int ckpt_settle(const char *root,
                           const char *job,
                           const struct ckpt_list *known, /* broken ones stay so; NULL: none */
                           int64_t *ret,
                           struct ckpt_torn *ret_torn,
                           struct err *err);

/* Fills in what each verified checkpoint lacks yet, from the job's metrics: its value, the mean
 * over the names that fit the pattern, and what validation told at its step. The file is read once
 * for all checkpoints, and only if it changed since *seen was set (0: never); a checkpoint of which
 * nothing was found in several reads has none. */
void ckpt_find_values(const char *root,
                      const char *job,
                      const char *pattern, /* NULL: only what validation told */
                      struct ckpt_list *l,
                      uint64_t *seen);

/* The value of each verified checkpoint becomes that of this metric, a name or a pattern, at its
 * step; where it was not told there is none. ERR_NOT_FOUND: the job has told no such metric, and
 * the sentence says the nearest name. */
must_check int ckpt_find_metric(const char *root,
                                const char *job,
                                const char *metric,
                                struct ckpt_list *l,
                                struct err *err);

/* Free bytes where the job's checkpoints go. */
must_check int ckpt_free_bytes(const char *root, const char *job, uint64_t *ret, struct err *err);
