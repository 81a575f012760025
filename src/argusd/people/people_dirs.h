/* SPDX-License-Identifier: Apache-2.0 */
/* people_dirs.h - users/<user>/{datasets,models,code} on the shared root, made on first use. */
#pragma once
#include <uv.h>

#include "argusd/ground/cluster.h"
#include "argusd/people/people.h"

/* Once per user and life of argusd, on a worker. While the root is away they are only wanted,
 * see people_dirs_retry(). What fails is logged, and tried at the next use. */
void people_dirs_make(uv_loop_t *loop,
                      const struct cluster *cluster,
                      const char *shared_root,
                      struct people *people,
                      struct person *p);
/* The root may be there again: make what was wanted meanwhile. */
void people_dirs_retry(uv_loop_t *loop,
                       const struct cluster *cluster,
                       const char *shared_root,
                       struct people *people);
