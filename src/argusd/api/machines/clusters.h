/* SPDX-License-Identifier: Apache-2.0 */
/* clusters.h - is a request about our cluster; see clusters.c. */
#pragma once
#include "argusd/kit/api.h"

/* True if the path names our cluster; else the 404 was sent. */
bool api_is_our_cluster(struct http_req *req, const struct api *a);
