/* SPDX-License-Identifier: Apache-2.0 */
/* files.h - what the handlers of /v1/files share. */
#pragma once
#include "argusd/kit/api.h"
#include "fsroot/content/place.h"

/* The place is taken. */
typedef void (*api_place_f)(struct http_req *req, struct api *a, struct walk_place *taken);
/* The place of ?path=, which he who asks may read: (*then) is called with it, at once or later;
 * else it was answered. then outlives the request. */
void api_find_place(struct http_req *req, struct api *a, const api_place_f *then);
