/* SPDX-License-Identifier: Apache-2.0 */
/* changes.h - a stream of what changed: ids of jobs, of pipelines and their runs and of services,
 * and that nodes, pools or events did.
 *
 * Events tell transitions; steps, use, positions and expected starts change without one. Once a
 * second, while somebody follows, live jobs are looked at, and each follower is told the ids that
 * he may see. Ids and no rows: a page asks again for the rows that it shows, in its language, so
 * that 500 open pages cost what they show and not what there is.
 *
 * A message has an id. Who comes back with it is told what changed since, or `reset`: too much did,
 * or argusd was started anew. Its work of one second has a ceiling: of many waiting jobs each is
 * looked at every few seconds. */
#pragma once
#include "argusd/kit/api.h"

struct changes;

/* a is borrowed, and is not looked at before somebody follows. */
struct changes *changes_new(struct api *a);
void changes_close(struct changes *c); /* NULL is fine, as below; no more is looked at */
void changes_free(struct changes *c);
/* A pipeline, or a run of one: its name or id, and who may see it. Copied. */
void changes_tell_pipeline(struct changes *c,
                           const char *id,
                           const char *owner,
                           const char *project);
/* A service: its name, and who may see it. Copied. */
void changes_tell_service(struct changes *c,
                          const char *name,
                          const char *owner,
                          const char *project);
