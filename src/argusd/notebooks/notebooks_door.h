/* SPDX-License-Identifier: Apache-2.0 */
/* notebooks_door.h - the door of notebooks: the routes of a server of its own, and who may pass.
 *
 * Nothing of the API is behind it, and no token or cookie of the API opens it. app is the struct
 * api. */
#pragma once
#include "http/http.h"

const struct http_route *notebooks_door_routes(size_t *ret_n);
int notebooks_door_authenticate(const struct http_credentials *c,
                                struct http_principal *ret,
                                void *app);
/* POST /v1/notebooks/{name}:open, on argusd's own server: a ticket, as the address that uses it. */
void notebooks_open_door(struct http_req *req, void *app);
