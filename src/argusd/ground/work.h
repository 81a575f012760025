/* SPDX-License-Identifier: Apache-2.0 */
/* work.h - run a blocking call in libuv's worker pool, and hear of its end on the loop.
 *
 * The threads are few and the root may be slow: what is done because somebody asked is started for
 * him, and nobody has more than a share of the threads, nor have all who ask together. So argusd's
 * own work (jobs that start, the watcher's look) always finds a thread, and one user's requests
 * wait behind each other and not before another's. */
#pragma once
#include <uv.h>

enum { WORK_THREADS = 16, WORK_OF_USER_MAX = 4, WORK_OF_USERS_MAX = 12 };

/* Who waits on this loop for his share; until work_shares_free() the loop's data is ours. A loop
 * without shares starts everything at once. */
void work_shares_new(uv_loop_t *loop);
void work_shares_free(uv_loop_t *loop); /* nothing runs or waits any more; none is fine */

/* `run` on a worker thread: it touches nothing but arg. `done` on the loop, always, once. */
typedef void (*work_f)(void *arg);
void work_start(uv_loop_t *loop, work_f run, work_f done, void *arg);
/* The same when it is the user's turn; copied. Which of those that wait is next: the first of the
 * user who has the fewest threads. */
void work_start_for(uv_loop_t *loop, const char *user, work_f run, work_f done, void *arg);
