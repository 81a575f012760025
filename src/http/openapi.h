/* SPDX-License-Identifier: Apache-2.0 */
/* openapi.h - the OpenAPI 3.1 document of the API, made from the route table.
 *
 * Nothing is described twice: paths, parameters, roles, sizes and schemas come from the
 * rows that the server itself runs on. */
#pragma once
#include "base/field.h"
#include "http/http.h"

/* A schema under components/schemas: JSON text, or the rows `which` of a field table, as a page or
 * as a form. In the text others are named as {"$ref":"#/components/schemas/NAME"}, and an object
 * whose members it names is closed: it has no others unless the text says so by
 * additionalProperties. "Problem" and "SpecProblem" come by themselves. */
struct http_schema {
    const char *name;
    const char *json;
    const struct field_table *table;
    unsigned which;
    bool is_form;
    const char
        *sent; /* argusd sends it by itself, as a webhook: in one line when; NULL: it does not */
};

/* Append the document. Hidden routes are left out. */
void http_openapi(const struct http_route *routes,
                  size_t n_routes,
                  const struct http_schema *schemas,
                  size_t n_schemas,
                  const char *version,
                  struct buf *out);
