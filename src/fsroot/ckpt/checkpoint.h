/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint.h - finds a checkpoint, as verl leaves them, that another job may go on from.
 * Blocking. */
#pragma once
#include <stdint.h>

#include "base/err.h"

struct ckpt_list;
/* The step of a checkpoint of the job that training can go on from, in *ret: the newest (step 0),
 * or this one. All its shards are there and were read (fsroot/ckpt/ckpt.h), and it is none that is
 * known to be broken (known: NULL, none is). ERR_NOT_FOUND. */
must_check int fsroot_checkpoint_find(const char *root,
                                      const char *job,
                                      const struct ckpt_list *known,
                                      int64_t step,
                                      int64_t *ret,
                                      struct err *err);
