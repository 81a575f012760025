/* SPDX-License-Identifier: Apache-2.0 */
/* rankfiles.h - what the ranks of an attempt tell of their time (hook/argus_ranks.py). Blocking. */
#pragma once
#include "base/err.h"
#include "core/training/rank.h"

/* Those of attempts/<k>/ranks that can be read, RANKS_MAX at most; yours. Outside bytes, since the
 * job can write there: what is no such file is left out. None is fine. */
must_check int fsroot_ranks_read(const char *root,
                                 const char *job,
                                 int attempt,
                                 struct rank_told **ret,
                                 size_t *ret_n,
                                 struct err *err);
