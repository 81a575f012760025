/* SPDX-License-Identifier: Apache-2.0 */
/* work.h - run a blocking call in libuv's worker pool, and hear of its end on the loop. */
#pragma once
#include <uv.h>

/* `run` on a worker thread: it touches nothing but arg. `done` on the loop, always, once. */
typedef void (*work_f)(void *arg);
void work_start(uv_loop_t *loop, work_f run, work_f done, void *arg);
