/* SPDX-License-Identifier: Apache-2.0 */
/* drainplan.h - what a drain would do; see drainplan.c. */
#pragma once
#include "argusd/kit/api.h"

/* Answers with what the drain would do to the jobs there; nothing is done. */
void api_nodes_plan_drain(struct http_req *req,
                          const struct api *a,
                          const struct noderun *nr,
                          const struct nodes_drain *how);
