/* SPDX-License-Identifier: Apache-2.0 */
/* routes.h - the one route table, joined from the parts (kit/part.h) that the files of handlers
 * bring. openapi.json is made from it, and the tests hold live replies against it. */
#pragma once
#include "argusd/kit/part.h"

/* The list in meson.build names the files; each has a part_<file>. NULL at the end. */
extern const struct api_part *const API_PARTS[];

/* All rows; free() them after the server is closed. */
struct http_route *routes_join(size_t *ret_n);
/* openapi.json */
void routes_openapi(struct buf *out);
