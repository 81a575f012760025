/* SPDX-License-Identifier: Apache-2.0 */
/* client.h - the Python client as pip installs it from argusd: one wheel, and the page on which pip
 * finds it.
 *
 * They are made with argusd by tools/client/wheel and kept inside it. They hold public code and the
 * types that openapi.json describes, so they are the same for everybody and need no token, as the
 * pages. */
#pragma once
#include "argusd/kit/part.h"
#include "argusd/web/pages.h"

/* GET /client and all that is below it, from the table api.client: a file by its path, as it is.
 * Any other path is refused as not found. */
extern const struct api_part part_client;
