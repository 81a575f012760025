/* SPDX-License-Identifier: Apache-2.0 */
/* modelcopy.h - where a job reads its model: from the caches of its nodes, or from the shared root.
 *
 * Asked before each start of a job whose model the registry has, and told as an event of the job
 * (kind `model_cache`). Whatever fails, the job starts with the model of the shared root. */
#pragma once
#include "argusd/jobs/jobs.h"
#include "argusd/machines/nodes_cache.h"

struct modelcopy;
/* path: the model on each of its nodes, borrowed for the call; NULL: on the shared root. */
typedef void (*modelcopy_f)(const char *path, void *arg);

/* l has a lease. NULL: nothing is asked, the model is on the shared root. Otherwise one callback,
 * from the loop and never from inside of this call; then the handle is gone. quiet: no event. */
struct modelcopy *modelcopy_begin(const struct nodes *ns,
                                  struct live *l,
                                  bool quiet,
                                  modelcopy_f cb,
                                  void *arg);
void modelcopy_free(struct modelcopy *m); /* the callback never comes; NULL is fine */
