/* SPDX-License-Identifier: Apache-2.0 */
/* ckpt.h - the checkpoints of a job on the shared root: found, read, removed.
 *
 * All is below jobs/<job>/checkpoints, opened name by name and without following a link. Whoever
 * writes there may change it meanwhile: what vanishes while it is looked at is not there, what
 * cannot be read for another reason (EIO, a stale handle) fails the call and says nothing of the
 * checkpoint. Blocking. */
#pragma once
#include "base/err.h"
#include "core/ckpt.h"

enum ckpt_look_flags {
    CKPT_LOOK_TRUST = 1 << 0, /* what was verified or broken is not walked again if it is there */
    CKPT_LOOK_FRESH = 1 << 1, /* that one is good is not believed: every shard's directory is read.
                                 That it is broken is: reading all may have told that */
};

/* All of them. Of a known one whose files are the same the verdict stays. attempt: that of new
 * ones. No directory, no checkpoints. */
must_check int ckpt_look(const char *root,
                         const char *job,
                         const struct ckpt_list *known, /* NULL: none */
                         int attempt,
                         unsigned flags,
                         struct ckpt_list *ret,
                         struct err *err);

/* Reads every byte of every shard of one. c: what ckpt_look() said of it; its state and why
 * become what was found. Long. stop is looked at now and then: not 0 ends it with -ECANCELED. */
must_check int ckpt_verify(const char *root,
                           const char *job,
                           struct ckpt *c,
                           const volatile int *stop,
                           struct err *err);

/* Takes one away: renamed first, to a name that training never takes for a checkpoint, then
 * removed. That it is not there is fine. 1: it is no checkpoint any more, but something of it
 * stays, err says why; it goes with a later call of this or ckpt_sweep(). -EBUSY: the tracker
 * names it. */
must_check int ckpt_remove(const char *root, const char *job, int64_t step, struct err *err);
/* What crashes left of removals. with_torn: also what ckpt_settle() put aside. */
must_check int ckpt_sweep(const char *root, const char *job, bool with_torn, struct err *err);

/* verl removes the oldest that it saved, by a limit of its own, and asks nobody. A pinned
 * checkpoint has second names (hard links: no bytes) that verl does not know, and may have no
 * others: a pin goes only when its step was seen whole and is not needed. */
struct ckpt_pins {
    const int64_t *needed; /* steps that are pinned from now on */
    size_t n_needed;
    const int64_t *spare; /* seen whole by their own names; needs no pin */
    size_t n_spare;
};
/* Of the attempt that runs. A pin of an older attempt goes as well once its step is there by its
 * own name, if need be put back here; those of a newer one are not touched. 1: pins that are not
 * needed stay. Where the file system has no hard links it fails. */
must_check int ckpt_pin(const char *root,
                        const char *job,
                        int attempt,
                        const struct ckpt_pins *pins,
                        struct err *err);
/* What of this attempt's pinned ones was removed is there again. All are tried, the first failure
 * is told; what training removes meanwhile is for the next call. */
must_check int ckpt_put_back(const char *root, const char *job, int attempt, struct err *err);
/* After a look: what of the pinned ones training took away since, or could not be put back, stays
 * in the list as it was known, by_pin; one that was not known is left out of it. */
must_check int ckpt_add_pinned(const char *root,
                               const char *job,
                               int attempt,
                               const struct ckpt_list *known,
                               struct ckpt_list *l,
                               struct err *err);

/* Before an attempt goes on, when nobody writes there: the newest that can be read whole, in *ret
 * (0: none). Newer ones, which are torn, are put aside under another name, so that nothing of them
 * is mixed into what the attempt will write, and the tracker names it, or is put aside with the
 * last. Nothing is deleted. All pins are put back and go then; where one cannot be, this fails and
 * it stays. Where training has finished one that
 * nobody here can judge (an unknown layout, no right to read), all stays as it is and *ret is 0:
 * verl decides. skipped (CKPT_SKIPPED_MAX) says what was torn, "" nothing. */
enum { CKPT_SKIPPED_MAX = 256 };
must_check int ckpt_settle(const char *root,
                           const char *job,
                           const struct ckpt_list *known, /* broken ones stay so; NULL: none */
                           int64_t *ret,
                           char *skipped,
                           struct err *err);

/* The metric's value of each verified one that has none yet, by the job's metrics: the mean over
 * the names that fit the pattern. The file is read once for all of them, and only when it is not
 * what it was when *seen was set (0: never); one that was looked for often in vain has none. */
void ckpt_find_values(const char *root,
                      const char *job,
                      const char *pattern,
                      struct ckpt_list *l,
                      uint64_t *seen);

/* Free bytes where the job's checkpoints go. */
must_check int ckpt_free_bytes(const char *root, const char *job, uint64_t *ret, struct err *err);
