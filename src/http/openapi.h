/* SPDX-License-Identifier: Apache-2.0 */
/* openapi.h - the OpenAPI 3.1 document of the API, made from the route table.
 *
 * Nothing is described twice: paths, parameters, roles, sizes and schemas come from the
 * rows that the server itself runs on. */
#pragma once
#include "http/http.h"

/* A schema under components/schemas. The text is a JSON object; others are named in it as
 * {"$ref":"#/components/schemas/NAME"}. "Problem" comes by itself. */
struct http_schema {
    const char *name;
    const char *json;
};

/* Append the document. Hidden routes are left out. */
void http_openapi(const struct http_route *routes,
                  size_t n_routes,
                  const struct http_schema *schemas,
                  size_t n_schemas,
                  const char *version,
                  struct buf *out);
