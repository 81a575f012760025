/* SPDX-License-Identifier: Apache-2.0 */
/* jobsight.h - may somebody see each of these jobs?
 *
 * Live jobs are asked in memory, jobs that are over in the store. A job that the user may not see
 * is told of with the same sentence as one that never was. */
#pragma once
#include "argusd/kit/api.h"
#include "core/spec/spec.h"

struct jobsight;
/* field: where the job is named that the user does not see, with ERR_NOT_FOUND or what kept the
 * store from telling; NULL: all are seen. */
typedef void (*jobsight_f)(const char *field, const struct err *err, void *arg);

/* taken: the jobs, emptied. *ret is set before done is called, at once or later, and is NULL again
 * by then. */
void jobsight_ask(struct api *a,
                  const struct http_principal *who,
                  struct spec_jobs *taken,
                  jobsight_f done,
                  void *arg,
                  struct jobsight **ret);
/* done is never called; NULL is fine. */
void jobsight_forget(struct jobsight *js);
