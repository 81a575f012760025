/* SPDX-License-Identifier: Apache-2.0 */
/* remotewriter.h - pushes what /metrics has to a Prometheus that argus.yaml names.
 *
 * One request at a time, each of the page of that moment with a later time than the one before,
 * also while the wall clock is behind. The series that the page before had and this one lacks are
 * ended. Nothing of this is known after a restart of argusd: a series that is no more then ends by
 * itself, after the receiver's five minutes; and where the clock was set back, the receiver refuses
 * the pages until the clock has caught up. */
#pragma once
#include "argusd/kit/api.h"

struct remotewriter;

/* a is borrowed, and is not looked at before the start. */
struct remotewriter *remotewriter_new(struct api *a);
void remotewriter_start(struct remotewriter *rw);
/* What is on its way ends without an answer. NULL is fine. */
void remotewriter_close(struct remotewriter *rw);
void remotewriter_free(struct remotewriter *rw);

/* How the pushing goes. */
void remotewriter_put_metrics(const struct remotewriter *rw, struct expo *e);
