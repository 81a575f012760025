/* SPDX-License-Identifier: Apache-2.0 */
/* stackask.h - asks all nodes of an attempt twice where its processes stand, and compares.
 *
 * The asks are files on the shared root (fsroot/attempt/stacks.h), the nodes have STACKASK_PATIENCE
 * each time. One that does not answer is left out, and one whose scout gives no sign of life is
 * waited for no longer than STACKASK_DEAD; where nobody can answer, that is known at once. */
#pragma once
#include <uv.h>

#include "base/clock.h"
#include "core/metric/stacks.h"

#define STACKASK_PATIENCE (30 * USEC_SEC)
#define STACKASK_DEAD                                                                              \
    (15 * USEC_SEC) /* a scout writes its file again every 5 s, and when it is asked */
#define STACKASK_PAUSE (5 * USEC_SEC) /* between the two */

struct stackask;

/* verdict: borrowed, its processes are 0 when nobody answered; NULL: the root could not be asked.
 * n: the number of the second ask, 0 if there was none. */
typedef void (*stackask_f)(const struct stacks_verdict *verdict, int n, void *arg);

/* done is called once, on the loop, unless cancelled. why: goes into the ask. Texts are copied. */
struct stackask *stackask_start(uv_loop_t *loop,
                                const char *root,
                                const char *job,
                                int k,
                                const char *why,
                                stackask_f done,
                                void *arg);
/* done is not called any more; frees itself. NULL is fine; not after the call. */
void stackask_cancel(struct stackask *s);
