/* SPDX-License-Identifier: Apache-2.0 */
/* gpufiles.h - the books that the scouts of an attempt keep of its nodes. Blocking. */
#pragma once
#include "base/buf.h"
#include "base/err.h"

/* What the scout of a node wrote of its GPUs (core/figure/gpu_card.h): outside bytes, since the job
 * can write there, too. -ENOENT: nothing; -EMSGSIZE past the ceiling of out. */
must_check int fsroot_gpus_read(const char *root,
                                const char *job,
                                int attempt,
                                const char *node,
                                struct buf *out,
                                struct err *err);
/* The same of what its processes take there (core/figure/host_load.h). */
must_check int fsroot_load_read(const char *root,
                                const char *job,
                                int attempt,
                                const char *node,
                                struct buf *out,
                                struct err *err);
