/* SPDX-License-Identifier: Apache-2.0 */
/* run.h - inside of this layer: a child process that is fed, read and ended from the loop.
 *
 * A text is written to its standard input as fast as the child reads; its output is kept up to
 * ceilings; it has a deadline. The end is told once, from the loop, when the process is gone,
 * with the output until then; processes that inherited the output are not waited for. */
#pragma once
#include <uv.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/strv.h"

enum { RUN_OUT_MAX = 264 << 10, RUN_ERR_MAX = 64 << 10 };

struct run_end {
    int status;                   /* exit status, or -signal */
    bool is_late;                 /* killed at the deadline */
    bool is_loud;                 /* killed because it printed more than RUN_OUT_MAX */
    struct err err;               /* code < 0: it never started */
    const struct buf *out, *errs; /* borrowed */
};

struct run;
struct run_ops {
    void (*heard)(const struct buf *out, void *arg);     /* more of out is there; NULL is fine */
    void (*ended)(const struct run_end *end, void *arg); /* then the handle is gone */
};

/* argv and env are borrowed during the call; env NULL = ours. The input is taken. A NULL `ops`:
 * the caller does not want to know the end. The child runs in a session of its own. */
struct run *run_start(uv_loop_t *loop,
                      const char *const *argv,
                      const struct pairs *env,
                      struct buf *input,
                      usec_t limit,
                      const struct run_ops *ops,
                      void *arg);
/* From now on a kill hits only the process itself, not its process group. */
void run_spare_group(struct run *r);
/* Kills it; nothing is told. NULL is fine. */
void run_free(struct run *r);
